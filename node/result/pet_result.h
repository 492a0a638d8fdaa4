/* From a PET volume to DICOM: a series of PET Image Storage objects, one slice each.
 *
 * Units are honest (docs/conformance.md): BQML only where there is a calibration factor and the data are corrected for
 * attenuation and what else that takes; else CNTS, with DecayCorrection NONE and the CorrectedImage that is true. UIDs are a pure
 * function of sources, protocol and version. node/result/pet_result*.c, the one place where PET geometry becomes tags.
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

/* Series and SOP Instance UIDs: pure functions of the sources' UIDs, protocol, scanner, calibration and version; slice: of the
 * volume. */
void pet_result_series(const struct sinogram *s, const struct protocol_conf *protocol, char ret_uid[DICOM_UID_SIZE]);
void pet_result_uid(const struct sinogram *s, const struct protocol_conf *protocol, int slice, char ret_uid[DICOM_UID_SIZE]);

/* Can objects be made of these sources? To be asked before the reconstruction. EBADMSG: the data do not say when the acquisition
 * began or how long it took, or contradict themselves. */
int pet_result_check(const struct sinogram *s, struct err *err);

struct pet_result_report {
	int n;		  /* objects, in the order of InstanceNumber: from the head down */
	char (*file)[64]; /* n names inside the folder */
	char (*sop_instance)[DICOM_UID_SIZE];
	char series[DICOM_UID_SIZE];
	uint64_t bytes;	      /* of all files */
	char units[8];	      /* "BQML", "CNTS" */
	double factor;	      /* value in these units = factor times x */
	char corrected[200];  /* CorrectedImage */
	char warnings[1024];  /* why not BQML, what an SUV viewer will miss; sentences, "": nothing */
	double seconds_write; /* sync included */
};
void pet_result_report_clear(struct pet_result_report *r);

/* volume: nx * ny * nz floats as pet_read_slices() gives them. All objects or none (.part, fsync, rename). EIO: a voxel is no
 * number. */
int pet_result_write(const struct sinogram *s, const struct pet_result_info *info, const float *volume, const char *folder,
		     struct pet_result_report *ret_report, struct err *err);

#endif
