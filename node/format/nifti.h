/* SPDX-License-Identifier: Apache-2.0 */
/* NIfTI-1 volumes in one file, compressed or not (https://nifti.nimh.nih.gov/nifti-1): where the fields of the header are,
 * for those who write it, and a reader of volumes of three axes: integers of 8 to 32 bits, float or double, in either byte
 * order.
 *
 * The place is that of the sform if its code is above 0, else of the qform; a file with neither has no position in the
 * patient, and is refused. The file is untrusted: it must have exactly the bytes of its header. */
#ifndef TOMONODE_NODE_NIFTI_H
#define TOMONODE_NODE_NIFTI_H

#include "node/format/volume_element.h"

/* Offsets of fields in the header, and their values. */
enum {
	NIFTI_DIM = 40,	     /* int16[8]: number of axes, number of voxels along each */
	NIFTI_DATATYPE = 70, /* int16 */
	NIFTI_BITPIX = 72,
	NIFTI_PIXDIM = 76,	/* float[8]; the first is the sign of the qform's third axis */
	NIFTI_VOX_OFFSET = 108, /* float */
	NIFTI_SCL_SLOPE = 112,
	NIFTI_SCL_INTER = 116,
	NIFTI_XYZT_UNITS = 123, /* char */
	NIFTI_CAL_MAX = 124,	/* float */
	NIFTI_CAL_MIN = 128,	/* float */
	NIFTI_TOFFSET = 136,	/* float */
	NIFTI_DESCRIP = 148,	/* char[80] */
	NIFTI_QFORM_CODE = 252, /* int16 */
	NIFTI_SFORM_CODE = 254, /* int16 */
	NIFTI_QUATERN = 256,	/* float[3]: b, c, d */
	NIFTI_QOFFSET = 268,	/* float[3] */
	NIFTI_SROW = 280,	/* float[3][4] */
	NIFTI_MAGIC = 344,	/* char[4] */
	NIFTI_HEADER = 348,	/* bytes */
	NIFTI_FLOAT32 = 16,
	NIFTI_SCANNER_ANATOMY = 1, /* coordinates of the scanner, not those of an atlas */
	NIFTI_MILLIMETRES = 2,
	NIFTI_SECONDS = 8,
};

struct nifti {
	int n[3];	   /* number of voxels along each axis, the first fastest; not checked */
	double corner[3];  /* centre of the first voxel, LPS, mm */
	double step[3][3]; /* from a voxel to the next along each axis, LPS, mm */
	enum volume_element element;
	bool most_significant_first;
	double slope, shift; /* value = slope element + shift */
	size_t data_at;	     /* bytes, of the uncompressed file */
};

/* Read the header. EBADMSG: not such a file, or contradictory; ENOTSUP: a property that is not supported; the text names it. */
int nifti_open(const char *path, struct nifti *ret, struct err *err);
/* Read all values, row by row. */
int nifti_read(const char *path, const struct nifti *h, volume_take *take, void *ctx, struct err *err);

#endif
