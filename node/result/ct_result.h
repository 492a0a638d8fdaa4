/* SPDX-License-Identifier: Apache-2.0 */
/* Write a volume reconstructed from line integrals as DICOM: a series of CT Image Storage objects, one slice each.
 *
 * Units (docs/conformance.md): Hounsfield units only for attenuation, and only if the protocol gives the attenuation of water;
 * otherwise the unit of the data, with Rescale Type US. UIDs depend only on the sources' UIDs, protocol and version. Only
 * node/result/ct_result*.c convert the geometry of such volumes to tags. Nothing depends on the kind of case.
 */
#ifndef TOMONODE_NODE_CT_RESULT_H
#define TOMONODE_NODE_CT_RESULT_H

#include "node/config/config.h"
#include "node/result/result_series.h"
#include "node/sinogram/sinogram.h"
#include "recon/core/algorithm.h"

struct ct_result_info {
	const struct protocol_conf *protocol;
	const struct grid *grid; /* of the volume */
	enum algorithm algorithm;
	int iterations, subsets; /* used if the algorithm iterates */
	const char *filter;	 /* name of the filter, used if the algorithm filters: "Hann" */
	double diameter;	 /* of the reconstructed field, mm; 0: the whole image */
	int n_angles;
	char scan[256];		       /* description of the scan, for provenance: "slices=1 ..." */
	char axis[96];		       /* how the axis of rotation was found; "": it is that of the header */
	char note[1900];	       /* what is probably wrong with the data, sentences; "": nothing */
	char device[96];	       /* name of the device that reconstructed the volume */
	double now;		       /* s since the epoch */
	uint64_t keep_free;	       /* bytes, see struct dicom_writer_options */
	const struct monitor *monitor; /* of the writing; NULL: none */
};

/* Are the values of a result Hounsfield units, 1000 (x / protocol->mu_water - 1)? unit: of the data. */
bool ct_result_is_hounsfield(const struct protocol_conf *protocol, const char *unit);
/* Write the unit of what is computed from data of a unit: that one of an image, of line integrals and of backprojection alone that
 * one times mm: "1" of attenuation. */
#define CT_RESULT_UNIT_SIZE (INTERFILE_UNIT_SIZE + 4)
void ct_result_unit(const char *unit, bool integrals, char ret_unit[CT_RESULT_UNIT_SIZE]);

/* Write all objects or none (.part, fsync, rename). volume: values at the points of the grid. EIO: a voxel is not a number. */
int ct_result_write(const struct sinogram *s, const struct ct_result_info *info, const float *volume, const char *folder,
		    struct series_report *ret_report, struct err *err);

#endif
