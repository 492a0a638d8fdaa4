/* SPDX-License-Identifier: Apache-2.0 */
/* Write a PET volume as DICOM: a series of PET Image Storage objects, one slice each. The volumes of several time frames are one
 * series of type DYNAMIC\IMAGE, those of gates one of type GATED\IMAGE, the joint volume of beds one of type WHOLE BODY\IMAGE.
 *
 * Units (docs/conformance.md): BQML only if a calibration factor is known and the data are corrected for attenuation and all else
 * that BQML requires; otherwise CNTS, with DecayCorrection NONE and the CorrectedImage values that apply. UIDs depend only on the
 * sources' UIDs, protocol, scanner, calibration and version. Only node/result/pet_result*.c convert PET geometry to tags.
 */
#ifndef TOMONODE_NODE_PET_RESULT_H
#define TOMONODE_NODE_PET_RESULT_H

#include "node/config/config.h"
#include "node/result/result_series.h"
#include "node/sinogram/sinogram.h"
#include "recon/pet/beds.h"
#include "recon/pet/pet.h"

struct pet_result_info {
	const struct protocol_conf *protocol;
	const struct pet_plan *plan;
	const struct pet_join *join; /* of the beds of the acquisition, whose joint grid is that of the plan; NULL: no beds */
	char device[96];	     /* name of the device that reconstructed the volume */
	double now;		     /* s since the epoch */
	uint64_t keep_free;	     /* bytes, see struct dicom_writer_options */
	double counts;		     /* total of the measured counts; 0: not known */
	char note[1800];	     /* further sentences for the description and the report */
};

/* Check, before the reconstruction, that objects can be made from these sources. EBADMSG: the start or the duration of the
 * acquisition is missing, or the data contradict themselves. */
int pet_result_check(const struct sinogram *s, struct err *err);

/* Compute the factor between counts per mm and the values of a result, and whether these are Bq/ml or counts. Errors of
 * pet_result_check(). */
int pet_result_scale(const struct sinogram *s, double *ret_factor, bool *ret_bqml, struct err *err);

/* Are the voxels of a plan smaller than half a radial bin? The rays of an iteration then miss some of them, and the image gets
 * stripes. Return the matrix whose voxels are as large as the bins, and in *ret_bin their distance in mm (of bins that follow the
 * crystals the largest, in the middle of the scanner); 0: they are not, the image is not iterated, or it is of single events. */
int pet_result_matrix(const struct sinogram *s, const struct pet_protocol *p, const struct pet_plan *plan, double *ret_bin);

/* Write all objects or none (.part, fsync, rename). volume: nx * ny * nz floats as from pet_read_slices(), for each
 * frame or gate of s; of beds the joint volume, whose unit is that of bed 1. EIO: a voxel is not a number. */
int pet_result_write(const struct sinogram *s, const struct pet_result_info *info, const float *volume, const char *folder,
		     struct series_report *ret_report, struct err *err);

#endif
