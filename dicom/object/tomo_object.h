/* SPDX-License-Identifier: Apache-2.0 */
/* Read a reconstructed Breast Tomosynthesis Image object: the attenuation of each voxel and its position in the patient. Only
 * attributes of the object are used. The frames may be stored in any order, and in any encoding that dicom/pixels/pixels.h reads.
 * Slices are sorted by ascending position along the normal. The normal is the cross product of row and column direction, with the
 * opposite sign if the last stored frame would otherwise be below the first. */
#ifndef TOMONODE_NODE_TOMO_OBJECT_H
#define TOMONODE_NODE_TOMO_OBJECT_H

#include "dicom/pixels/pixels.h"

struct tomo_object {
	struct dicom_file *file;
	struct dicom_pixel_info info;
	char sop_instance[DICOM_UID_SIZE], frame_of_reference[DICOM_UID_SIZE];
	double spacing[2];    /* distance between columns, between rows, mm */
	double across[3];     /* direction of increasing column index, LPS */
	double down[3];	      /* direction of increasing row index, LPS */
	double normal[3];     /* direction of increasing slice index, LPS */
	double corner[3];     /* centre of the first pixel of slice 0, LPS, mm */
	double *depth;	      /* distance of each slice from `corner` along the normal, mm, ascending */
	long *frame;	      /* frame index of each slice */
	double slope, offset; /* value = slope * stored + offset, 1/mm */
	uint16_t *stored;     /* memory for one frame */
};

/* Open the file and read its geometry. EBADMSG: an attribute is missing or contradicts another; the message has its tag. */
int tomo_object_open(const char *path, struct tomo_object **ret_object, struct err *err);
struct tomo_object *tomo_object_close(struct tomo_object *t); /* accepts NULL; returns NULL */

/* Read the attenuations of slice k, columns * rows, 1/mm. */
int tomo_object_slice(struct tomo_object *t, long k, float *ret_values, struct err *err);

/* Convert a point of the patient (LPS, mm) into column and row (in pixels, 0 at the centre of the first one) and depth (mm, from
 * slice 0 along the normal). */
void tomo_object_locate(const struct tomo_object *t, const double patient[3], double ret_at[3]);

#endif
