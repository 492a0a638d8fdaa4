/* SPDX-License-Identifier: Apache-2.0 */
/* Estimate the shape of a compressed breast from its projections, as the start image of iterative algorithms.
 *
 * The compressed thickness is that between the plates, but the rim of a breast is rounded. From a limited arc the height of the
 * rim is hardly seen: an image that starts uniform between the plates ends with the attenuation mu T / H at the nipple (T: local
 * thickness, H: compressed thickness), and with a dark band at the sides where the rim begins. Multiplicative updates keep what
 * the projections do not determine as it is in the start image, so a start image with the shape of the breast removes both. No
 * voxel is excluded: where the shape is wrong, the projections correct it as they correct a uniform start.
 *
 * - Skin and distance: the mean of central projections on the plane at mid-height, and in it the distance d to the skin line.
 * - Thickness: in sectors along the skin, the medians of the line integral over d are fitted with L f(d / w), f(t)^2 = a t -
 *   (a - 1) t^2 up to t = 1, a quadric that the plates cut (a = 1 parabola, 2 ellipse); then T = H f, smoothed along the skin. An
 *   absolute-deviation fit, and no sector has a larger L than the lowest fourth of them, so that dense tissue behind the fat does
 *   not decide. Rays are slanted, so T is corrected until the projection of the shape has the fitted profile.
 * - Height of the rim's middle, at either end of the breast along y: the shift whose shadows in the outermost projections fit the
 *   edges of the skin best; linear between the ends. */
#ifndef TOMONODE_RECON_BREAST_SHAPE_H
#define TOMONODE_RECON_BREAST_SHAPE_H

#include <stdbool.h>

#include "kernels/err.h"
#include "recon/dbt/view_cells.h"

#define BREAST_SHAPE_FLOOR 0.1f /* of the start value, outside the shape */
#define BREAST_SHAPE_SOFT 3.0	/* mm: width of the shape's surface in the start image */
#define BREAST_SHAPE_DEPTHS 3	/* depths of which the report has the thickness */

struct breast_shape_report {
	bool asked;	  /* the protocol asks for a shape, and its algorithm starts from one */
	bool used;	  /* the start image has the shape; false: it is uniform, and `reason` is a sentence that says why */
	char reason[200]; /* with the number that decided */
	/* If the fit was made, medians over the sectors: */
	double line;			       /* L, line integral of the full thickness */
	double width, width_least, width_most; /* w, mm, with the 10th and 90th percentile */
	double roundness;		       /* a */
	double part[BREAST_SHAPE_DEPTHS];      /* T / H at 2, 5 and 10 mm from the skin, after all corrections */
	double error;			       /* mean deviation of the profiles from their fit, relative to L */
	double height[2];		       /* of the rim's middle above that of the plates, mm: where y is least, and most */
	bool height_seen;		       /* false: the arc is too short, and 0 was assumed */
	int sectors;			       /* of BREAST_SHAPE_SECTORS, with a fit */
};
extern const double breast_shape_depths[BREAST_SHAPE_DEPTHS]; /* mm */
#define BREAST_SHAPE_SECTORS 72

struct breast_shape {
	struct breast_shape_report report;
	int n[2];	    /* points of the plane along x and y; point (0, 0) is at lo */
	double lo[2], step; /* mm */
	double thickness;   /* H, mm */
	double middle;	    /* z of the middle between the plates, mm */
	double side[2];	    /* y of the ends of the breast, mm: between them the height of the rim's middle is linear */
	float *square;	    /* (T / H)^2 of each point, x fastest; linear through the skin: negative outside */
};

/* Find the shape. scan: SCAN_DBT with merged bins, whose projections may be in any order; cells, mean: of this scan, one image of
 * cells for each projection (view_cells_average(); its air has line integrals of about 0 or any other level); grid: the volume.
 * If no shape is found, ret->report says why and square is NULL. Threaded; the result does not depend on the number of threads.
 * ENOMEM, EINVAL. */
int breast_shape_find(const struct scan *scan, const struct view_cells *cells, const float *mean, const struct grid *grid,
		      struct breast_shape *ret, struct err *err);
void breast_shape_release(struct breast_shape *s); /* accepts an empty one */

/* The start image: a voxel of slice k has start * shape_weight(columns[i], away(k), BREAST_SHAPE_FLOOR) (kernels/shape.h), i: its
 * place in the slice; columns: of the upper surface for slices above the middle of the plates, else of the lower one.
 * ret_columns: n[0] * n[1] floats of the grid. */
void breast_shape_columns(const struct breast_shape *s, const struct grid *grid, bool upper, float *ret_columns);
float breast_shape_away(const struct breast_shape *s, const struct grid *grid, int slice, bool *ret_upper);

/* Write a sentence about the shape or why there is none; "" if it was not asked for. */
void breast_shape_text(const struct breast_shape_report *r, char *ret_text, size_t size);

#endif
