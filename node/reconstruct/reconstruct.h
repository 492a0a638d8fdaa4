/* SPDX-License-Identifier: Apache-2.0 */
/* Reconstruct one case: read its DICOM files, compute the volume, write the result as DICOM files. Used by the worker process and
 * by `tomonode recon`. */
#ifndef TOMONODE_NODE_RECONSTRUCT_H
#define TOMONODE_NODE_RECONSTRUCT_H

#include <jansson.h>

#include "dicom/object/patient.h"
#include "kernels/device.h"
#include "node/base/digest.h"
#include "node/config/config.h"
#include "node/format/map_file.h"
#include "node/sinogram/sinogram_list.h"
#include "recon/core/monitor.h"

/* One file of the result. */
struct reconstruct_object {
	char file[64]; /* file name inside the folder */
	char sop_instance[DICOM_UID_SIZE], sop_class[DICOM_UID_SIZE], series[DICOM_UID_SIZE];
	const char *kind;	  /* "slices", "slabs", "synthetic"; in a series "slice" */
	int64_t bytes;		  /* size of the file; -1: unknown */
	char digest[DIGEST_SIZE]; /* of the file (digest_files()) */
};

struct reconstruct_report {
	/* The objects of the result. is_series: true: each slice is an object; false: the first object contains all slices, and
	 * the others were computed from them. */
	bool is_series;
	size_t n_objects;
	struct reconstruct_object *objects;
	char content[100];   /* the measured data, such as "47 planes of 280 angles" */
	char unit[40];	     /* for a series: unit of its values */
	char warnings[4096]; /* sentences about the values and the header; "": none */
	char omitted[2400];  /* sentences about modules that the result's header lacks; "": none */
	json_t *pictures;    /* of corrections, for correction_pictures_write(); NULL: none */
	json_t *details;     /* further members of the --json report, by the kind of case: {"bins": {...}} */
	char device[96], profile[CONFIG_NAME_SIZE]; /* profile: for PET the scanner; "": not configured */
	int n_views, n[3];			    /* number of views or angles used; number of voxels along x, y, z */
	double voxel[3];			    /* size of a voxel, mm */
	size_t bytes_device;
	/* The time of stages that run at the same time (read, prepare, upload; download, write) is divided among them, so that
	 * all add up to the total. Steps are part of `reconstruct`. */
	double seconds_open, seconds_read, seconds_prepare, seconds_upload, seconds_reconstruct, seconds_download, seconds_write,
		seconds_total;
	double seconds_wait; /* time that it waited for other workers, for memory or for the device; not in the total */
};

#define CASE_MAPS_MOST 8 /* maps that a person gives with a case */

/* What a person decided about a case, and what the caller knows about it. All zero: nothing. */
struct case_decision {
	char content[DIGEST_SIZE]; /* digest of the digests of all files, which were compared; "": not known: estimates of randoms
				      and scatter are not kept for further results */
	bool as_is; /* for kinds that allow it, accept a number of instances other than that in the headers; the result states
		       this */
	struct result_place place;	    /* among the results of these instances; outside: the volume that is written */
	struct patient_statement patient;   /* about headers that name different patients; the result states this, too */
	const struct pet_marks *marks;	    /* of gates of PET list mode; NULL: those of the protocol's signal */
	const struct sinogram_import *file; /* of a file of events: what it does not say; NULL: nothing was said */
	int n_maps;			    /* of attenuation, that a person gave; at most CASE_MAPS_MOST */
	const struct map_request *maps;
	const struct step_runner *steps; /* of the protocol (case_steps.h); NULL: a protocol that has some is refused */
	bool arrays; /* write the arrays of the case for other programs (case_arrays.h), instead of a result */
	const struct sinogram_assumed *assumed; /* of an Interfile that was imported; NULL: nothing was assumed */
};

struct step_runner;
struct reconstruct_work;

/* What a process keeps from one case to the next, which is another result of the same images: their headers, values, and what
 * was prepared from them. All zero: nothing. */
struct reconstruct_kept {
	bool keep;		       /* in: another result follows: keep what it can use */
	struct reconstruct_work *work; /* NULL: nothing is kept */
	const struct kind *kind;
	size_t bytes; /* of host memory that remain reserved */
};
void reconstruct_kept_clear(struct reconstruct_kept *kept);

/* Reconstruct one case; of arrays the report has only the size, the warnings, and case.json as details. cache: the device's cache of sensitivity images of PET; NULL: none is kept. Error codes: EBADMSG,
 * ENOTSUP, ENOKEY, ENOTUNIQ (data: hold the case), ENOTSUP (also: the protocol is for another kind of case), ENOMEM (plan),
 * EHWPOISON (the device is broken), ECANCELED. The device is borrowed and can be used for several cases in turn; data of a case
 * are freed at its end, except what is kept. kept: NULL: nothing is kept. If it has something, no file of the case is read: the
 * caller must know that configuration, files, their order and content, and what was decided are those of the case before.
 * Afterwards it has something only if the case succeeded, kept->keep was true, and the memory could be reserved beside the plan.
 * ESTALE: there is no memory for the plan beside what was kept: clear it, and call again. */
int reconstruct_case(const struct config *config, const struct protocol_conf *protocol, struct device *dev,
		     struct pet_cache *cache, struct reconstruct_kept *kept, const char *const *paths, size_t n_paths,
		     const struct case_decision *decision, const char *out_dir, const struct monitor *monitor,
		     struct reconstruct_report *ret_report, struct err *err);

void reconstruct_report_clear(struct reconstruct_report *r);

#define RECONSTRUCT_CLASSES_MAX 2
/* List the SOP classes of the objects that a protocol makes. Returns their number. */
size_t reconstruct_classes(const struct protocol_conf *protocol, const char *ret_classes[RECONSTRUCT_CLASSES_MAX]);

/* reconstruct_report.c. Return the seconds of each stage (node/base/stage_names.h), and "total". NULL: no memory. */
json_t *reconstruct_seconds(const struct reconstruct_report *r);
/* Return "file" (with `folder` and a slash in front unless folder is ""), "sop_instance", "sop_class" and "series" of the first
 * object, and "objects": the same for all objects, with "kind" and, if known, "bytes". */
json_t *reconstruct_objects(const struct reconstruct_report *r, const char *folder);

#endif
