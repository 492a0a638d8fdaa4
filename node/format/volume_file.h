/* SPDX-License-Identifier: Apache-2.0 */
/* Read a volume with its place from a file of another program: NIfTI-1 in one file (.nii, .nii.gz), MetaImage (.mha, .mhd
 * with its data file), or an Interfile image (.hv, .h33, .hdr with its data file). Three axes, one channel.
 *
 * NIfTI (RAS there) and MetaImage have a place in the patient: LPS, mm. MetaImage: Offset is the centre of the first voxel,
 * the rows of TransformMatrix are the directions of the axes. An Interfile image has one in the scanner (docs/geometry.md): x
 * to the right, seen from the bed, y down, z into the gantry, mm from the scanner's centre. STIR's z points out of it, and
 * the middle of its slices is in the middle of the scanner, moved by "first pixel offset" of z
 * (DataSymmetriesForBins_PET_CartesianGrid.cxx).
 *
 * The files are untrusted: sizes are checked before memory is allocated, and the data must have exactly the bytes of the
 * header. */
#ifndef TOMONODE_NODE_VOLUME_FILE_H
#define TOMONODE_NODE_VOLUME_FILE_H

#include "node/format/interfile.h"
#include "node/format/mhd.h"
#include "node/format/nifti.h"

#define VOLUME_FILE_SIDE_MAX 4096
#define VOLUME_FILE_COUNT_MAX ((size_t)1 << 29)
#define VOLUME_FILE_ENDINGS ".nii, .nii.gz, .mha, .mhd"
#define VOLUME_FILE_IMAGES ".hv, .h33, .hdr" /* of Interfile */

enum volume_form { VOLUME_NIFTI, VOLUME_METAIMAGE, VOLUME_INTERFILE };

struct volume_file {
	const char *path; /* borrowed */
	enum volume_form form;
	int n[3];	    /* number of voxels along each axis, the first fastest */
	double corner[3];   /* centre of the first voxel, mm: in the patient (LPS), of VOLUME_INTERFILE in the scanner */
	double step[3][3];  /* from a voxel to the next along each axis, mm */
	struct nifti nifti; /* of the form, as the following */
	struct mhd meta;
	struct interfile image;
};

/* Read the header. EBADMSG: not such a file, or contradictory; ENOTSUP: a property that is not supported; the text names it. */
int volume_file_open(const char *path, struct volume_file *ret, struct err *err);
size_t volume_file_count(const struct volume_file *v); /* of voxels */
/* Read all values in the order of the file. */
int volume_file_read(const struct volume_file *v, volume_take *take, void *ctx, struct err *err);

#endif
