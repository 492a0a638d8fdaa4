/* Read a reconstructed Breast Tomosynthesis Image object from its own attributes only: the position of each voxel in the patient
 * and the meaning of its value. Frames may be in any order and in any encoding that dicom/pixels/pixels.h reads. Slices are
 * sorted by increasing position along the normal. The normal is row direction cross column direction, or its opposite if the
 * frames are stored in that order.
 */
#ifndef TOMONODE_NODE_TOMO_OBJECT_H
#define TOMONODE_NODE_TOMO_OBJECT_H

#include "dicom/pixels/pixels.h"

struct tomo_object {
	struct dicom_file *file;
	struct dicom_pixel_info info;
	char sop_instance[DICOM_UID_SIZE], frame_of_reference[DICOM_UID_SIZE];
	double spacing[2];    /* between columns, between rows, mm */
	double across[3];     /* direction of increasing column index in the patient, LPS */
	double down[3];	      /* of increasing row index */
	double normal[3];     /* of increasing slice index */
	double corner[3];     /* centre of the first pixel of slice 0, mm */
	double *depth;	      /* [slice]: distance from `corner` along the normal, mm, ascending */
	long *frame;	      /* [slice]: index of its frame */
	double slope, offset; /* value = slope * stored + offset, 1/mm */
	uint16_t *stored;     /* buffer for one frame */
};

/* Open an object. EBADMSG: an attribute is missing or contradicts another one; the text names its tag. */
int tomo_object_open(const char *path, struct tomo_object **ret_object, struct err *err);
struct tomo_object *tomo_object_close(struct tomo_object *t); /* takes NULL, returns NULL */

/* Read the attenuations of slice k, columns * rows values in 1/mm. */
int tomo_object_slice(struct tomo_object *t, long k, float *ret_values, struct err *err);

/* Convert a point in the patient (LPS, mm) to column and row (pixels, 0 at the centre of the first one) and depth (mm, as in
 * `depth`). */
void tomo_object_locate(const struct tomo_object *t, const double patient[3], double ret_at[3]);

#endif
