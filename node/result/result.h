/* SPDX-License-Identifier: Apache-2.0 */
/* Write a reconstructed tomosynthesis volume as DICOM objects, with references to its sources and the parameters used.
 *
 * - Slices: one multi-frame Breast Tomosynthesis Image. If the protocol requests slabs: another one, in a separate series. If it
 * requests a synthetic 2-D view: a Digital Mammography X-Ray Image For Presentation (PS3.3 C.8.11.7.1.4: GENERATED_2D), a class
 * that workstations without tomosynthesis can display, too, in a separate series; or a Breast Tomosynthesis Image of one frame.
 * - Stored value = round((mu - stored_offset) / stored_step) of the protocol, clipped to 0..65535, so that exams of one protocol
 * can be compared. With fewer than 16 stored_bits, the step is a multiple of stored_step; the object contains it.
 * - Implemented by node/result/result_write.c and the files result_*.c; only these files convert the geometry to tags.
 */
#ifndef TOMONODE_NODE_RESULT_H
#define TOMONODE_NODE_RESULT_H

#include "dicom/object/dicom_tags.h"
#include "node/base/digest.h"
#include "node/tomo/exam.h"
#include "recon/dbt/dbt.h"

enum result_kind {
	RESULT_SLICES,
	RESULT_SLABS,
	RESULT_SYNTHETIC,
	RESULT_OBJECTS_MAX, /* maximum number of objects of a result */
};

struct result_info {
	const struct protocol_conf *protocol;
	const struct dbt_plan *plan;
	char device[96];    /* name of the device that reconstructed the volume */
	char scatter[480];  /* sentences about the subtracted scatter; "": none was subtracted */
	char shape[320];    /* a sentence about the start image; "": the protocol does not ask for the breast's shape */
	char metal[440];    /* a sentence about metal that was found; "": none, or the protocol does not look for it */
	const char *note;   /* further sentences for the description; borrowed */
	double now;	    /* s since the epoch: ContentDate/Time, ContributionDateTime */
	uint64_t keep_free; /* bytes, see struct dicom_writer_options */
};

struct result_object {
	const char *name; /* name of its type: "slices", "slabs", "synthetic" */
	enum result_kind kind;
	char file[64]; /* file name inside the folder; the same object always has the same name */
	char sop_instance[DICOM_UID_SIZE], sop_class[DICOM_UID_SIZE], series[DICOM_UID_SIZE];
	uint64_t bytes;		  /* size of the file */
	char digest[DIGEST_SIZE]; /* of the file (digest_files()) */
};

/* Return the SOP class of a protocol's synthetic view; NULL: it makes none. */
const char *result_view_class(const struct protocol_conf *protocol);

struct result_report {
	struct result_object objects[RESULT_OBJECTS_MAX]; /* the object of slices first */
	size_t n_objects;
	double seconds_tally;	 /* first pass over the slices: count clipped voxels, find the display window */
	double seconds_download; /* time spent waiting for slices */
	double seconds_write;	 /* remaining time until the files have their final names, including fsync */
	char omitted[2400];	 /* sentences: modules that are left out, and the values that they lack; "": none */
	int bits;		 /* of a stored value */
	double step;		 /* of the stored values of slices and slabs, 1/mm */
	char doubt[240];	 /* a sentence: these are not the values of a breast; "": they may be */
	size_t below, above;	 /* voxels stored as 0 and as the largest value because their values are out of range */
};

/* Compute the SOP Instance UID and Series Instance UID of an object. They depend only on the sources' UIDs (the series: on source
 * series, laterality, view and frame of reference), kind, protocol, profile and software version. */
void result_uid(const struct exam *exam, const struct protocol_conf *protocol, enum result_kind kind,
		char ret_uid[DICOM_UID_SIZE]);
void result_series(const struct exam *exam, const struct protocol_conf *protocol, enum result_kind kind,
		   char ret_uid[DICOM_UID_SIZE]);

/* List the keys of a profile's constants (Contributing Sources, X-Ray 3D Acquisition) that are not set; "": all are set. */
void result_profile_constants(const struct profile_conf *profile, char *ret_keys, size_t size);

/* Check that the objects of the protocol can be computed from the slices of this plan. EINVAL: slabs are thinner or closer
 * together than slices. */
int result_check(const struct protocol_conf *protocol, const struct dbt_plan *plan, struct err *err);

/* Call after dbt_run(): read the slices once, in order, and write every object that the protocol requests into `folder` (.part,
 * fsync, rename): all of them or none. Uses several threads, and memory for a few slices. EIO: a voxel is not a number. */
int result_write(const struct exam *exam, const struct result_info *info, struct dbt_session *session, const char *folder,
		 struct result_report *ret_report, struct err *err);

#endif
