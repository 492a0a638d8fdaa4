/* From a volume of parallel beams to DICOM: a series of CT Image Storage objects, one slice each.
 *
 * Values are honest (docs/conformance.md): Hounsfield units only of attenuation and where the protocol knows that of water; else
 * the unit of the data with Rescale Type US. UIDs are a pure function of sources, protocol and version. node/result/ct_result*.c,
 * the one place where the geometry of parallel beams becomes tags.
 */
#ifndef TOMONODE_NODE_CT_RESULT_H
#define TOMONODE_NODE_CT_RESULT_H

#include "node/config/config.h"
#include "node/sinogram/sinogram.h"
#include "recon/parallel/parallel.h"

#define CT_RESULT_CLASS "1.2.840.10008.5.1.4.1.1.2"

struct ct_result_info {
	const struct protocol_conf *protocol;
	const struct parallel_plan *plan;
	char device[96];
	double now; /* s since the epoch */
};

/* Series and SOP Instance UIDs: pure functions of the sources' UIDs, protocol and version; slice: of the volume. */
void ct_result_series(const struct sinogram *s, const struct protocol_conf *protocol, char ret_uid[DICOM_UID_SIZE]);
void ct_result_uid(const struct sinogram *s, const struct protocol_conf *protocol, int slice, char ret_uid[DICOM_UID_SIZE]);

struct ct_result_report {
	int n;		  /* objects, in the order of InstanceNumber: from the head down */
	char (*file)[64]; /* n names inside the folder */
	char (*sop_instance)[DICOM_UID_SIZE];
	char series[DICOM_UID_SIZE];
	uint64_t bytes;			    /* of all files */
	char units[8];			    /* Rescale Type: "HU", "US" */
	char unit[INTERFILE_UNIT_SIZE + 4]; /* what the values are: "HU", "1/mm" */
	char warnings[512];		    /* why not HU, what was cut off; sentences, "": nothing */
	double seconds_write;		    /* sync included */
};
void ct_result_report_clear(struct ct_result_report *r);

/* volume: as parallel_reconstruct() gives it. All objects or none (.part, fsync, rename). EIO: a voxel is no number. */
int ct_result_write(const struct sinogram *s, const struct ct_result_info *info, const float *volume, const char *folder,
		    struct ct_result_report *ret_report, struct err *err);

#endif
