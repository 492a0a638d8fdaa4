/* SPDX-License-Identifier: Apache-2.0 */
/* Report of a result that is a series of images, one slice each: PET (node/result/pet_result.h) and CT
 * (node/result/ct_result.h). */
#ifndef TOMONODE_NODE_RESULT_SERIES_H
#define TOMONODE_NODE_RESULT_SERIES_H

#include "dicom/core/dataset.h"
#include "node/base/digest.h"
#include "node/format/interfile.h"
#include "node/sinogram/fact_origins.h"

struct series_report {
	int n;		  /* number of objects, in the order of InstanceNumber: from head to feet, frame after frame */
	char (*file)[64]; /* [n]: file names inside the folder */
	char (*sop_instance)[DICOM_UID_SIZE];
	char (*digest)[DIGEST_SIZE]; /* of the files (digest_files()) */
	char series[DICOM_UID_SIZE];
	const char *sop_class;
	char unit[INTERFILE_UNIT_SIZE + 4]; /* unit of the values: "BQML", "CNTS", "HU", "1/mm" */
	char units[8];			    /* PET: Units, "BQML", "CNTS"; CT: Rescale Type, "HU", "US" */
	double factor;			    /* PET: value in this unit = factor times x */
	char corrected[200];		    /* PET: CorrectedImage */
	char origins[FACT_ORIGINS_SIZE];    /* PET: of its facts */
	char warnings[4096]; /* sentences: why the unit is not BQML or HU, which values are missing or were clipped */
};
void series_report_clear(struct series_report *r);

#endif
