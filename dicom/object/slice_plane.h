/* SPDX-License-Identifier: Apache-2.0 */
/* Where the slices of a series are in the patient (PS3.3 C.7.6.2): what a series of CT (dicom/object/ct_series.h) and one of PET or
 * CT images (node/tools/image_series.h) have in common. */
#ifndef TOMONODE_DICOM_SLICE_PLANE_H
#define TOMONODE_DICOM_SLICE_PLANE_H

#include "dicom/core/dataset.h"
#include "dicom/core/pixel_info.h"

#define SLICE_UNIT_TOLERANCE 1e-3 /* of the length of a direction vector, and between directions */

/* What all slices of a volume share. */
struct slice_plane {
	double cosines[6], spacing[2]; /* directions of rows and columns; spacing between rows, between columns, mm */
	long columns, rows;
	char series[DICOM_UID_SIZE], frame_of_reference[DICOM_UID_SIZE]; /* "": not in the object */
};

/* EBADMSG: an attribute is missing, or the directions are not orthogonal unit vectors; the text names it. */
int slice_plane_read(const struct dicom_item *root, struct slice_plane *ret, struct err *err);
/* EBADMSG: the plane is of another series, size or orientation than the first one. */
int slice_plane_compare(const struct slice_plane *first, const struct slice_plane *p, struct err *err);
void slice_plane_normal(const struct slice_plane *p, double ret_normal[3]); /* row x column */

/* The first member of the structure that stands for a slice. */
struct slice_place {
	char sop_instance[DICOM_UID_SIZE];
	double at[3], depth; /* position, and its component along the normal, mm */
	size_t file;	     /* number of its file */
};

int slice_place_read(const struct dicom_item *root, const double normal[3], size_t file, struct slice_place *ret,
		     struct err *err);
/* Keep the first of the files that repeat an object, in any order; size: of an element of the list. Returns how many remain. */
size_t slice_places_unique(void *list, size_t n, size_t size);

/* The number that a pixel has: the bits above those stored are read as 0, so that the sign of a negative one is extended. */
static inline int slice_stored_value(const struct dicom_pixel_info *info, uint16_t stored)
{
	int sign = info->is_signed ? 1 << (info->bits_stored - 1) : 0;

	return (stored ^ sign) - sign;
}

#endif
