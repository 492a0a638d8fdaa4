/* SPDX-License-Identifier: Apache-2.0 */
/* Read a volume of labels (a segmentation, a mask) with its position in the patient: NIfTI-1 in one file (.nii, .nii.gz), or
 * MetaImage (.mha, .mhd with its data file in the same folder). Elements: integers of 8, 16 or 32 bits, or floats whose values
 * are whole numbers; one channel; three axes. Label 0 is the background.
 *
 * NIfTI: the sform if its code is above 0, else the qform; a file with neither has no position in the patient, and is refused.
 * MetaImage: Offset is the centre of the first voxel, the rows of TransformMatrix are the directions of the axes, both in LPS.
 *
 * The files are untrusted: sizes are checked before memory is allocated, and the data must have exactly the bytes of the header.
 */
#ifndef TOMONODE_NODE_LABEL_VOLUME_H
#define TOMONODE_NODE_LABEL_VOLUME_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"

#define LABEL_SIDE_MAX 4096
#define LABEL_COUNT_MAX ((size_t)1 << 29)
#define LABEL_MAX 65535

struct label_volume {
	int n[3];
	double corner[3];  /* centre of the first voxel, LPS, mm */
	double step[3][3]; /* from a voxel to the next along each axis, LPS, mm */
	double inverse[3][3];
	uint16_t *labels; /* first axis fastest */
};

/* EBADMSG: not such a file, or contradictory; ENOTSUP: a property that is not supported; the text names it. */
int label_volume_open(const char *path, struct label_volume *ret, struct err *err);
void label_volume_clear(struct label_volume *v);

/* Return the label of the voxel whose centre is nearest (along the axes of the volume) to a point of the patient; 0: outside. */
int label_volume_at(const struct label_volume *v, const double patient[3]);

#endif
