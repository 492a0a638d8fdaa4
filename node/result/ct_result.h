/* SPDX-License-Identifier: Apache-2.0 */
/* Write a volume reconstructed from line integrals as DICOM: a series of CT Image Storage objects, one slice each.
 *
 * Units (docs/conformance.md): Hounsfield units only for attenuation, and only if the protocol gives the attenuation of water;
 * otherwise the unit of the data, with Rescale Type US. UIDs depend only on sources, protocol and version. Only
 * node/result/ct_result*.c convert the geometry of such volumes to tags. Nothing depends on the kind of case.
 */
#ifndef TOMONODE_NODE_CT_RESULT_H
#define TOMONODE_NODE_CT_RESULT_H

#include "node/config/config.h"
#include "node/sinogram/sinogram.h"
#include "recon/core/algorithm.h"

#define CT_RESULT_CLASS "1.2.840.10008.5.1.4.1.1.2"

struct ct_result_info {
	const struct protocol_conf *protocol;
	const struct grid *grid; /* of the volume */
	enum algorithm algorithm;
	int iterations, subsets; /* used if the algorithm iterates */
	const char *filter;	 /* name of the filter, used if the algorithm filters: "Hann" */
	double diameter;	 /* of the reconstructed field, mm; 0: the whole image */
	int n_angles;
	char scan[256]; /* description of the scan, for provenance: "slices=1 ..." */
	char device[96];
	double now; /* s since the epoch */
};

/* Compute Series and SOP Instance UIDs from the sources' UIDs, protocol and version only; slice: index in the volume. */
void ct_result_series(const struct sinogram *s, const struct protocol_conf *protocol, char ret_uid[DICOM_UID_SIZE]);
void ct_result_uid(const struct sinogram *s, const struct protocol_conf *protocol, int slice, char ret_uid[DICOM_UID_SIZE]);

struct ct_result_report {
	int n;		  /* number of objects, in the order of InstanceNumber: from head to feet */
	char (*file)[64]; /* [n]: file names inside the folder */
	char (*sop_instance)[DICOM_UID_SIZE];
	char series[DICOM_UID_SIZE];
	uint64_t bytes;			    /* of all files */
	char units[8];			    /* Rescale Type: "HU", "US" */
	char unit[INTERFILE_UNIT_SIZE + 4]; /* unit of the values: "HU", "1/mm" */
	char warnings[512];		    /* sentences: why not HU, which values were clipped; "": none */
	double seconds_write;		    /* including fsync */
};
void ct_result_report_clear(struct ct_result_report *r);

/* Write all objects or none (.part, fsync, rename). volume: values at the points of the grid. EIO: a voxel is not a number. */
int ct_result_write(const struct sinogram *s, const struct ct_result_info *info, const float *volume, const char *folder,
		    struct ct_result_report *ret_report, struct err *err);

#endif
