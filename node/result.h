/* From a volume back to DICOM: one Breast Tomosynthesis Image object per view, with its provenance.
 * node/dicom_from_volume.c and the files result_*.c, the one place where geometry becomes tags, implement it.
 */
#ifndef TOMONODE_NODE_RESULT_H
#define TOMONODE_NODE_RESULT_H

#include "node/exam.h"
#include "recon/dbt.h"

#define RESULT_CLASS "1.2.840.10008.5.1.4.1.1.13.1.3" /* Breast Tomosynthesis Image Storage */

struct result_info {
	const struct protocol_conf *protocol;
	const struct dbt_plan *plan;
	char device[96]; /* name of the device that did it */
	double now;	 /* s since the epoch: ContentDate/Time, ContributionDateTime */
};

/* SOP Instance UID of the result: a pure function of the sources' UIDs, protocol, profile and software version. */
void result_uid(const struct exam *exam, const struct protocol_conf *protocol, char ret_uid[DICOM_UID_SIZE]);
/* Series Instance UID: of the source series, laterality, view, frame of reference, protocol, profile and software version. */
void result_series(const struct exam *exam, const struct protocol_conf *protocol, char ret_uid[DICOM_UID_SIZE]);

/* Writes the object to `path` (.part, fsync, rename). volume: plan->grid, 1/mm. Stored value = round(mu / scale), the scale fixed
 * per software version (documented in docs/conformance.md) so that exams compare. EIO when a voxel is no number. */
int result_write(const struct exam *exam, const struct result_info *info, const float *volume, const char *path, struct err *err);

#endif
