/* SPDX-License-Identifier: Apache-2.0 */
/* Read a reconstructed tomosynthesis. Only attributes of the object are used.
 *
 * Breast Tomosynthesis Image: the value of each voxel and its position in the patient. The frames may be stored in any order, and
 * in any encoding that dicom/pixels/pixels.h reads. Slices are sorted by ascending position along the normal. The normal is the
 * cross product of row and column direction, with the opposite sign if the last stored frame would otherwise be below the first.
 *
 * Hologic SCO object with slices (dicom/pixels/sco.h): its attributes have neither the size of a voxel nor a position, and their
 * order is that of the frames. tomo_object_place() sets what else is known. */
#ifndef TOMONODE_NODE_TOMO_OBJECT_H
#define TOMONODE_NODE_TOMO_OBJECT_H

#include "dicom/pixels/pixels.h"
#include "dicom/pixels/sco.h"

struct tomo_object {
	struct dicom_file *file;
	struct sco *sco; /* the slices of a Hologic SCO object; NULL: frames of the object itself */
	bool lower;	 /* slices of an SCO object: in lower resolution, because it has no others */
	struct dicom_pixel_info info;
	char sop_instance[DICOM_UID_SIZE], frame_of_reference[DICOM_UID_SIZE];
	double spacing[2];    /* distance between columns, between rows, mm */
	double across[3];     /* direction of increasing column index, LPS */
	double down[3];	      /* direction of increasing row index, LPS */
	double normal[3];     /* direction of increasing slice index, LPS */
	double corner[3];     /* centre of the first pixel of slice 0, LPS, mm */
	double *depth;	      /* distance of each slice from `corner` along the normal, mm, ascending */
	long *frame;	      /* frame index of each slice */
	double thickness;     /* of a slice, mm; 0: not in the object */
	double slope, offset; /* value = slope * stored + offset */
	char units[17];	      /* of the values: UCUM code, or Rescale Type (0028,1054); "": not in the object */
	double window[2];     /* the values between which the object displays grey; NaN: not in the object */
	long padding;	      /* stored value of voxels that have no value; -1: none */
	float padded;	      /* the value that they get: 0, no attenuation; may be changed, to show them black */
	uint16_t *stored;     /* memory for one frame */
	float *value;	      /* memory for what each stored value stands for */
};

/* Return whether an object has slices that tomo_object_open() reads. */
bool tomo_object_is(const struct dicom_item *root);
/* Open the file and read its geometry; slices of an SCO object have none yet. EBADMSG: an attribute is missing or contradicts
 * another; the message has its tag; errors of sco_open(). */
int tomo_object_open(const char *path, struct tomo_object **ret_object, struct err *err);
struct tomo_object *tomo_object_close(struct tomo_object *t); /* accepts NULL; returns NULL */

/* Set the geometry of an SCO object's slices: distances between columns, rows and slices, mm, and their directions in the
 * patient. The first frame is the lowest slice. `corner` stays at the origin. */
void tomo_object_place(struct tomo_object *t, const double voxel[3], const double across[3], const double down[3],
		       const double normal[3]);

/* Read the window of a tomosynthesis or of one of its frames alone, in stored values; false: it has none. */
bool tomo_object_window(struct dicom_file *file, double ret_window[2]);

/* Read the values of slice k, columns * rows. */
int tomo_object_slice(struct tomo_object *t, long k, float *ret_values, struct err *err);

/* Convert a point of the patient (LPS, mm) into column and row (in pixels, 0 at the centre of the first one) and depth (mm, from
 * slice 0 along the normal). */
void tomo_object_locate(const struct tomo_object *t, const double patient[3], double ret_at[3]);

#endif
