/* SPDX-License-Identifier: Apache-2.0 */
/* Read a reconstructed Breast Tomosynthesis Image object, from its own attributes alone: the position of each voxel in the
 * patient, and the meaning of its value. Frames may have any order, and any encoding that dicom/pixels/pixels.h reads. Slices are
 * returned from the lowest position along the normal upward; the normal is row direction cross column direction, or its opposite
 * if the stored order of the frames runs that way. */
#ifndef TOMONODE_NODE_TOMO_OBJECT_H
#define TOMONODE_NODE_TOMO_OBJECT_H

#include "dicom/pixels/pixels.h"

struct tomo_object {
	struct dicom_file *file;
	struct dicom_pixel_info info;
	char sop_instance[DICOM_UID_SIZE], frame_of_reference[DICOM_UID_SIZE];
	double spacing[2];    /* between columns, between rows, mm */
	double across[3];     /* direction of increasing column index, LPS */
	double down[3];	      /* direction of increasing row index, LPS */
	double normal[3];     /* direction of increasing slice index, LPS */
	double corner[3];     /* centre of the first pixel of slice 0, mm */
	double *depth;	      /* of each slice, relative to `corner` along the normal, mm, ascending */
	long *frame;	      /* frame index of each slice */
	double slope, offset; /* value = slope * stored + offset, 1/mm */
	uint16_t *stored;     /* memory for one frame */
};

/* EBADMSG: an attribute is missing or contradicts another; the message has its tag. */
int tomo_object_open(const char *path, struct tomo_object **ret_object, struct err *err);
struct tomo_object *tomo_object_close(struct tomo_object *t); /* accepts NULL; returns NULL */

/* Read the attenuations of slice k, columns * rows, 1/mm. */
int tomo_object_slice(struct tomo_object *t, long k, float *ret_values, struct err *err);

/* Convert a point of the patient (LPS, mm) into column, row (pixels, 0 at the centre of the first) and depth (mm, as above). */
void tomo_object_locate(const struct tomo_object *t, const double patient[3], double ret_at[3]);

#endif
