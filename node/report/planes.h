/* SPDX-License-Identifier: Apache-2.0 */
/* Grey pictures of the slices and sections of a volume, for its report.
 *
 * A plane is perpendicular to an axis of the volume. A slice is in the order of its voxels: columns from left to right, rows from
 * top to bottom. A section through the slices is seen as `export --plane` has it (node/tools/export_picture.h): coronal from the
 * front, sagittal from the patient's left, axial from the feet. A picture with more than `side` pixels is reduced: each pixel is
 * the mean of step x step voxels (fewer at the right and lower edge). Its pixels need not be square: a page gives it the size in
 * mm.
 */
#ifndef TOMONODE_NODE_PLANES_H
#define TOMONODE_NODE_PLANES_H

#include "node/format/picture.h"
#include "node/tools/image_series.h"

#define PLANE_LETTERS 4 /* "LPH", terminated */

struct plane_picture {
	int axis, index; /* perpendicular to columns (0), rows (1) or slices (2), at this column, row or slice */
	int width, height, step[2];
	double mm[2]; /* size */
	double at[2]; /* where the point of plane_picture_mark() is, fractions of the width from the left, of the height from the
			 top */
	char left[PLANE_LETTERS], right[PLANE_LETTERS], top[PLANE_LETTERS], bottom[PLANE_LETTERS];
	int along[2];	     /* axes of the volume along the width and the height */
	bool reversed[2];    /* their indices decrease to the right, downward */
	unsigned char *grey; /* [height][width], owned */
};

/* Write the letters of the directions into which a vector (LPS) points, the largest component first: those above 0.35 of its
 * length. */
void plane_letters(const double direction[3], char ret_letters[PLANE_LETTERS]);
/* Return the name of a plane by its normal (LPS): "axial", "coronal", "sagittal", or "oblique". */
const char *plane_name(const double normal[3]);
/* Return the length of a scale bar: 1, 2 or 5 times a power of ten, at most a third of the width, mm. */
double plane_bar(double width);

/* Plan a picture: everything but its pixels. side: largest number of pixels along a side. */
void plane_picture_plan(const struct image_series *s, int axis, int index, int side, struct plane_picture *ret_picture);
/* Set where a voxel is in the picture. */
void plane_picture_mark(const struct image_series *s, const int voxel[3], struct plane_picture *p);
/* Make the pixels of n planned pictures of an image, in one pass over its slices. */
int plane_pictures_fill(const struct image_series *s, int image, const struct picture_levels *window,
			struct plane_picture *pictures, size_t n, struct err *err);
void plane_pictures_clear(struct plane_picture *pictures, size_t n);

#endif
