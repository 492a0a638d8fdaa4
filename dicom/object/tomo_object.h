/* A reconstructed Breast Tomosynthesis Image object, read from its own attributes alone: where each voxel lies in the patient,
 * and what its value means. Frames may come in any order and encoding that dicom/pixels/pixels.h reads; slices are given from the
 * lowest position along the normal upward, the normal being row direction cross column direction, or its opposite where the
 * frames, in the order they are stored, go that way.
 */
#ifndef TOMONODE_NODE_TOMO_OBJECT_H
#define TOMONODE_NODE_TOMO_OBJECT_H

#include "dicom/pixels/pixels.h"

struct tomo_object {
	struct dicom_file *file;
	struct dicom_pixel_info info;
	char sop_instance[DICOM_UID_SIZE], frame_of_reference[DICOM_UID_SIZE];
	double spacing[2];    /* between columns, between rows, mm */
	double across[3];     /* direction of increasing column index, LPS */
	double down[3];	      /* of increasing row index */
	double normal[3];     /* of increasing slice index */
	double corner[3];     /* middle of the first pixel of slice 0, mm */
	double *depth;	      /* of each slice over `corner` along the normal, mm, ascending */
	long *frame;	      /* of each slice */
	double slope, offset; /* value = slope * stored + offset, 1/mm */
	uint16_t *stored;     /* room for a frame */
};

/* EBADMSG: an attribute that is missing or contradicts another, with its tag. */
int tomo_object_open(const char *path, struct tomo_object **ret_object, struct err *err);
struct tomo_object *tomo_object_close(struct tomo_object *t); /* takes NULL, returns NULL */

/* Attenuations of slice k, columns * rows, 1/mm. */
int tomo_object_slice(struct tomo_object *t, long k, float *ret_values, struct err *err);

/* A point of the patient (LPS, mm) as column, row (pixels, the first one's middle at 0) and depth (mm, as above). */
void tomo_object_locate(const struct tomo_object *t, const double patient[3], double ret_at[3]);

#endif
