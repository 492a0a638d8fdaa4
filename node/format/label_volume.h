/* SPDX-License-Identifier: Apache-2.0 */
/* Read a volume of labels (a segmentation, a mask) with its position in the patient: NIfTI or MetaImage
 * (node/format/volume_file.h). Elements: integers of 8, 16 or 32 bits, or floats whose values are whole numbers. Label 0 is
 * the background. */
#ifndef TOMONODE_NODE_LABEL_VOLUME_H
#define TOMONODE_NODE_LABEL_VOLUME_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"

#define LABEL_MAX 65535

struct label_volume {
	int n[3];
	double corner[3];     /* centre of the first voxel, LPS, mm */
	double inverse[3][3]; /* index a of a voxel: inverse[a] (point - corner) */
	uint16_t *labels;     /* first axis fastest */
};

/* EBADMSG: not such a file, or contradictory; ENOTSUP: a property that is not supported; the text names it. */
int label_volume_open(const char *path, struct label_volume *ret, struct err *err);
void label_volume_clear(struct label_volume *v);

/* Return the label of the voxel whose centre is nearest (along the axes of the volume) to a point of the patient; 0: outside. */
int label_volume_at(const struct label_volume *v, const double patient[3]);

#endif
