/* SPDX-License-Identifier: Apache-2.0 */
/* Write planes of a series as grey PNG pictures, as they are viewed:
 *
 *   stored    slices as they are in the objects; slice 1 is the first one of struct image_series
 *   axial     from the feet: the patient's right is on the left, the front is at the top; slices from feet to head
 *   coronal   from the front: the patient's right is on the left, the head is at the top; slices from front to back
 *   sagittal  from the patient's left: the front is on the left, the head is at the top; slices from right to left
 *
 * Planes follow the axes of the voxels: of an oblique volume the ones nearest to those of the patient, without rotation. A pixel
 * is a square of the smaller of the two voxel sizes, divided by `zoom`; between the centres of voxels, values are interpolated
 * linearly. */
#ifndef TOMONODE_NODE_EXPORT_PICTURE_H
#define TOMONODE_NODE_EXPORT_PICTURE_H

#include "node/tools/image_series.h"

enum picture_plane { PLANE_STORED, PLANE_AXIAL, PLANE_CORONAL, PLANE_SAGITTAL };
/* How a picture is cut out of the volume: for its columns, its rows and the planes the axis of the voxels, and whether the index
 * decreases. */
struct picture_view {
	int axis[3];
	bool reversed[3];
};
struct picture_view export_picture_view(const struct image_series *s, enum picture_plane plane);

/* AUTO: the window of the objects (tomosynthesis, CT); of PET from 0 to what node/tools/series_window.h finds; of CT without
 * window the range of most values: from the 2nd to the 99.5th percentile of the image, or of the projection. FULL: from the
 * smallest to the largest value. */
enum picture_window { WINDOW_AUTO, WINDOW_FULL, WINDOW_GIVEN };
#define SLICE_ALL (-1)
#define PICTURE_ZOOM_MAX 32

struct picture_choice {
	int plane; /* enum picture_plane */
	bool mip;  /* maximum intensity projection across the planes, instead of slices */
	int slice; /* from 1; 0: the middle one, of two the upper number; SLICE_ALL */
	int image; /* time frame or gate, from 1 */
	enum picture_window window;
	double range[2]; /* of WINDOW_GIVEN: values of black and white */
	int bits;	 /* 8 or 16 */
	int zoom;	 /* pixels of the picture along the smaller of the two voxel sizes, 1 to PICTURE_ZOOM_MAX */
	bool invert;	 /* large values dark */
};

struct picture_report {
	int width, height; /* pixels */
	int first, n;	   /* number of the first slice, number of pictures; 0, 1: a projection */
	double mm;	   /* size of a pixel */
	double range[2];   /* values of black and white */
};

/* Write the pictures. Files that exist are replaced. */
int export_pictures(const struct image_series *s, const struct picture_choice *c, const char *path,
		    struct picture_report *ret_report, struct err *err);

#endif
