/* Image quality of one tomosynthesis object: regions and points measured in one pass over its slices (recon/core/figures.h has
 * the formulas). Where they lie comes from truth.json of `tomonode simulate dbt`, or from the caller.
 *
 * Region: an ellipse of half axes r on a background. With a truth the background is the ring 2 to 6 mm around it, without
 * pixels where the phantom's tissue is another than at the region, or that lie within 1 mm of another detail; else the same ring,
 * or the circle that the caller names. The ellipse is 0.7 of the detail's, so that its edge has no part.
 * Point: a small detail of high contrast. Found as the highest voxel within 1.5 mm in the slice and 5 mm of depth; its place and
 * width come from Gaussians fitted to the profiles through it, 3 mm to either side (along z all slices).
 */
#ifndef TOMONODE_NODE_MEASURE_H
#define TOMONODE_NODE_MEASURE_H

#include <jansson.h>

#include "dicom/object/tomo_object.h"
#include "recon/phantom/phantom.h"

struct measure_item {
	char name[64];
	bool point;
	bool in_truth;	      /* patient and center are known */
	double patient[3];    /* LPS, mm */
	double center[3];     /* in the truth's scan axes, mm */
	double at[3];	      /* column, row (pixels), depth over the lowest slice (mm) */
	double radius[3];     /* half axes in mm: along columns' index, rows' index, depth */
	bool has_background;  /* a circle */
	double background[3]; /* column, row, radius in mm */
};

struct measure_list {
	struct measure_item *items;
	size_t n;
	struct phantom truth; /* all shapes; n = 0: there is none */
	double axis[3][3];    /* of the truth's scan in the patient */
};

/* EBADMSG: no truth.json of this object (another frame of reference), or not a truth.json at all. */
int measure_read_truth(const char *path, const struct tomo_object *object, struct measure_list *list, struct err *err);
int measure_add(struct measure_list *list, const struct measure_item *item, struct err *err);
void measure_clear(struct measure_list *list);

/* {"object": {...}, "regions": [...], "points": [...], "distances": [...]}, a new reference; docs/measure.md has the members. */
int measure_run(struct tomo_object *object, const struct measure_list *list, json_t **ret_result, struct err *err);

#endif
