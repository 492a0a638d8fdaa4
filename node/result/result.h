/* From a volume back to DICOM: the objects of one view, with their provenance.
 *
 * - The slices: one multi-frame Breast Tomosynthesis Image. Thick slabs of them, where the protocol asks: another one, a
 *   series of its own. A synthetic 2-D view: a Digital Mammography X-Ray Image For Presentation (PS3.3 C.8.11.7.1.4:
 *   GENERATED_2D), the class that also workstations without tomosynthesis hang; a series of its own.
 * - Stored value = round((mu - stored_offset) / stored_step) of the protocol, limited to 0..65535: exams of one protocol compare.
 * - node/result/result_write.c and the files result_*.c, the one place where geometry becomes tags, implement it.
 */
#ifndef TOMONODE_NODE_RESULT_H
#define TOMONODE_NODE_RESULT_H

#include "node/tomo/exam.h"
#include "recon/dbt/dbt.h"

#define RESULT_CLASS "1.2.840.10008.5.1.4.1.1.13.1.3"	/* Breast Tomosynthesis Image Storage */
#define RESULT_CLASS_VIEW "1.2.840.10008.5.1.4.1.1.1.2" /* Digital Mammography X-Ray Image Storage - For Presentation */

enum result_kind {
	RESULT_SLICES,
	RESULT_SLABS,
	RESULT_SYNTHETIC,
};
#define RESULT_OBJECTS_MAX 3

struct result_info {
	const struct protocol_conf *protocol;
	const struct dbt_plan *plan;
	char device[96]; /* name of the device that did it */
	double now;	 /* s since the epoch: ContentDate/Time, ContributionDateTime */
};

struct result_object {
	enum result_kind kind;
	char file[64]; /* name inside the folder: ours, and the same for the same object */
	char sop_instance[DICOM_UID_SIZE], sop_class[DICOM_UID_SIZE], series[DICOM_UID_SIZE];
	uint64_t bytes; /* of the file */
};

struct result_report {
	struct result_object objects[RESULT_OBJECTS_MAX]; /* the slices first */
	size_t n_objects;
	double seconds_tally;	 /* what the headers must say: clipped voxels, display window */
	double seconds_download; /* spent waiting for slices, nothing else to do */
	double seconds_write;	 /* the rest of the time until the files have their names, sync included */
	double seconds_sync;	 /* of it, from the last byte written until it is on the disk */
	size_t below, above;	 /* voxels stored as 0 and as 65535 because they lie outside */
};

/* SOP Instance UID and Series Instance UID of an object: pure functions of the sources' UIDs (the series: of source series,
 * laterality, view and frame of reference), kind, protocol, profile and software version. */
void result_uid(const struct exam *exam, const struct protocol_conf *protocol, enum result_kind kind,
		char ret_uid[DICOM_UID_SIZE]);
void result_series(const struct exam *exam, const struct protocol_conf *protocol, enum result_kind kind,
		   char ret_uid[DICOM_UID_SIZE]);

/* Can the protocol's objects be made of this plan's slices? EINVAL: slabs thinner or nearer to each other than slices. */
int result_check(const struct protocol_conf *protocol, const struct dbt_plan *plan, struct err *err);

/* After dbt_run(): reads the slices in order, once, and writes every object that the protocol asks for into `folder` (.part,
 * fsync, rename): all of them or none. Several threads; memory of a few slices. EIO when a voxel is no number. */
int result_write(const struct exam *exam, const struct result_info *info, struct dbt_session *session, const char *folder,
		 struct result_report *ret_report, struct err *err);

#endif
