/* SPDX-License-Identifier: Apache-2.0 */
/* Write a PET volume as DICOM: a series of PET Image Storage objects, one slice each.
 *
 * Units (docs/conformance.md): BQML only if a calibration factor is known and the data are corrected for attenuation and all else
 * that BQML requires; otherwise CNTS, with DecayCorrection NONE and the CorrectedImage values that apply. UIDs depend only on
 * sources, protocol and version. Only node/result/pet_result*.c convert PET geometry to tags.
 */
#ifndef TOMONODE_NODE_PET_RESULT_H
#define TOMONODE_NODE_PET_RESULT_H

#include "node/result/result.h"
#include "node/sinogram/sinogram.h"
#include "recon/pet/pet.h"

#define PET_RESULT_CLASS "1.2.840.10008.5.1.4.1.1.128"

struct pet_result_info {
	const struct protocol_conf *protocol;
	const struct pet_plan *plan;
	const struct pet_report *report;
	char device[96];
	double now; /* s since the epoch */
};

/* Compute Series and SOP Instance UIDs from the sources' UIDs, protocol, scanner, calibration and version only; slice: index in
 * the volume. */
void pet_result_series(const struct sinogram *s, const struct protocol_conf *protocol, char ret_uid[DICOM_UID_SIZE]);
void pet_result_uid(const struct sinogram *s, const struct protocol_conf *protocol, int slice, char ret_uid[DICOM_UID_SIZE]);

/* Check, before the reconstruction, that objects can be made from these sources. EBADMSG: the start or the duration of the
 * acquisition is missing, or the data contradict themselves. */
int pet_result_check(const struct sinogram *s, struct err *err);

struct pet_result_report {
	int n;		  /* number of objects, in the order of InstanceNumber: from head to feet */
	char (*file)[64]; /* [n]: file names inside the folder */
	char (*sop_instance)[DICOM_UID_SIZE];
	char series[DICOM_UID_SIZE];
	uint64_t bytes;	      /* of all files */
	char units[8];	      /* "BQML", "CNTS" */
	double factor;	      /* value in these units = factor times x */
	char corrected[200];  /* CorrectedImage */
	char warnings[1024];  /* sentences: why not BQML, which values an SUV viewer will miss; "": none */
	double seconds_write; /* including fsync */
};
void pet_result_report_clear(struct pet_result_report *r);

/* Write all objects or none (.part, fsync, rename). volume: nx * ny * nz floats as from pet_read_slices(). EIO: a voxel is not a
 * number. */
int pet_result_write(const struct sinogram *s, const struct pet_result_info *info, const float *volume, const char *folder,
		     struct pet_result_report *ret_report, struct err *err);

#endif
