/* From a volume back to DICOM: one Breast Tomosynthesis Image object per view, with its provenance.
 * node/dicom_from_volume.c, the one place where geometry becomes tags, implements it.
 */
#ifndef TOMONODE_NODE_RESULT_H
#define TOMONODE_NODE_RESULT_H

#include "node/exam.h"
#include "recon/dbt.h"

struct result_info {
	const struct protocol_conf *protocol;
	const struct dbt_plan *plan;
	char device[96];         /* name of the device that did it */
	double now;              /* s since the epoch: ContentDate/Time, ContributionDateTime */
};

/* SOP Instance UID of the result: a pure function of the sources' UIDs, protocol, profile and software version. */
void result_uid(const struct exam *exam, const struct protocol_conf *protocol, char ret_uid[DICOM_UID_SIZE]);

/* Writes the object to `path` (.part, fsync, rename). volume: plan->grid, 1/mm. Stored value = round(mu / scale), the scale fixed per
 * software version (documented in docs/conformance.md) so that exams compare. */
int result_write(const struct exam *exam, const struct result_info *info, const float *volume, const char *path, struct err *err);

#endif
