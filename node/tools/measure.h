/* SPDX-License-Identifier: Apache-2.0 */
/* Measure the image quality of one tomosynthesis object: regions and points, the profile along the normal to the skin, and with a
 * truth each tissue, in one pass over its slices (recon/core/figures.h has the formulas). Positions come from truth.json of
 * `tomonode simulate dbt`, or from the caller.
 *
 * Region: an ellipse of half axes r on a background. With truth.json, the background is the ring 2 to 6 mm around it, without
 * pixels where the phantom's tissue differs from that at the region, and without pixels within 1 mm of another detail. Otherwise
 * it is the same ring, or the circle that the caller gives. The measured ellipse has 0.7 of the detail's half axes, to exclude
 * its edge. Point: a small detail of high contrast. It is the voxel of the highest value within 1.5 mm in the slice and 5 mm of
 * depth; its position and width come from Gaussians fitted to the profiles through it, 3 mm to either side (along z all slices).
 */
#ifndef TOMONODE_NODE_MEASURE_H
#define TOMONODE_NODE_MEASURE_H

#include <jansson.h>

#include "dicom/object/tomo_object.h"
#include "recon/phantom/breast_phantom.h"

struct measure_item {
	char name[64];
	bool point;	      /* true: a point; false: a region */
	bool in_truth;	      /* the item is in truth.json: patient and center are set */
	double patient[3];    /* true position in the patient (LPS), mm */
	double center[3];     /* true position in the scan axes of truth.json, mm */
	double at[3];	      /* position in the image: column, row (pixels), depth above the lowest slice (mm) */
	double radius[3];     /* half axes along column index, row index and depth, mm */
	bool has_background;  /* the caller gave a circle as background */
	double background[3]; /* column, row, radius in mm */
};

struct measure_list {
	struct measure_item *items;
	size_t n;
	struct phantom truth; /* all shapes of truth.json; n = 0: no truth.json */
	double axis[3][3];    /* directions of the truth's scan axes in the patient */
	bool known;	      /* the true attenuation is known everywhere */
	bool breast;	      /* the phantom has the outline of a breast */
	/* a breast of tissue, made again from its seed; NULL: the shapes are the truth */
	struct voxel_phantom *voxels;
	struct phantom *details;
};

/* Read truth.json; make its breast of tissue again. EBADMSG: it is not a truth.json, or belongs to another object (another frame of
 * reference), or this program makes another breast from its seed. */
int measure_read_truth(const char *path, const struct tomo_object *object, struct measure_list *list, struct err *err);
/* Append a copy of an item. */
int measure_add(struct measure_list *list, const struct measure_item *item, struct err *err);
void measure_clear(struct measure_list *list);

/* Measure and return {"object": {...}, "regions": [...], "points": [...], "distances": [...], "skin": [...], "tissues": [...]} as a
 * new reference; docs/measure.md describes the members. */
int measure_run(struct tomo_object *object, const struct measure_list *list, json_t **ret_result, struct err *err);

#endif
