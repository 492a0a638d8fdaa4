/* SPDX-License-Identifier: Apache-2.0 */
/* Find metal in a tomosynthesis: clips and markers.
 *
 * A clip stops most photons. A view's shadow of it, backprojected into slices where the clip is not, is a streak in each of them.
 * Its bins say little about the tissue on their rays, so they are replaced by that beside them, and the clip is put back at its
 * place afterwards (recon/dbt/dbt_metal.c): metal artefact reduction in the projections. Bins without a datum would do, too, but not
 * for algorithms with one view in an update: their voxels would lack the update of a view, which is a streak as well.
 *
 * - Shadows (metal_find()): bins that exceed the tissue around them (median of 9 x 9 mm) by METAL_RISE, with all that is connected
 *   with them. Size: the intensity that is missing, sum of (1 - e^-rise) times the bin's area, is at least METAL_SIZE: more than a
 *   calcification of 0.5 mm can take away, whatever it consists of. Attenuation: the largest rise divided by the shadow's width is
 *   at least METAL_MU, which calcifications of any size are below.
 * - Replaced by: the line integrals of the nearest bins beside the shadow in eight directions, weighted by 1 / distance.
 * - Kept (metal_keep_specks()): calcifications above or below an object, which move through its shadow from view to view.
 * - Places (metal_locate()): the point where the rays through the shadows of the views meet. What most views do not show there is no
 *   metal. With a place known, weaker shadows at it count too.
 *
 * Lost: what is weaker than the noise in the shadows that cover it. Not found: metal wider than METAL_REACH, and metal of which most views show nothing. Lengths in mm. */
#ifndef TOMONODE_RECON_METAL_H
#define TOMONODE_RECON_METAL_H

#include <stdbool.h>

#include "kernels/err.h"
#include "recon/dbt/view_cells.h"

#define METAL_RISE 0.9	 /* line integral above that of the tissue; with scatter, no shadow is much darker than 1.1 */
#define METAL_SIZE 0.3	 /* mm^2 on the detector; a ball of 0.5 mm covers at most 0.2 mm^2 times the magnification, 1.0 to 1.4 */
#define METAL_MU 1.8	 /* 1/mm; a ball of calcium oxalate has 1.1, a clip 5 to 8, with scatter 2.3 */
#define METAL_REACH 10.0 /* mm from the middle of a shadow to its end, at most */
#define METAL_ALONE 0.3	 /* mm on the detector: a shadow whose middle is farther from an object's is also that of another one */
#define METAL_SHADOWS_MOST 16 /* of a view, the largest ones */
#define METAL_OBJECTS_MOST 20

/* A bin of a shadow. */
struct metal_bin {
	int u, v;
	float rise;   /* line integral above that of the tissue; 0: beside the shadow, but replaced with it */
	float excess; /* line integral above the one that it is replaced by */
};

struct metal_shadow {
	double at[2];	  /* u and v of its middle, weighted by the missing intensity */
	double rise, sum; /* the largest, and the sum over the bins */
	double size;	  /* mm^2 on the detector */
	double width;	  /* mm on the detector, of the shorter axis */
	double spread;	  /* variance along v, bins^2 */
	bool sure;	  /* all three limits are met, and it is not cut by the edge; else a part of each is met */
	bool taken;	  /* metal_locate(): by an object, or it is none */
	size_t n;	  /* bins */
	struct metal_bin *bin;
};

/* The shadows of one view; all zero: none. */
struct metal_view {
	int n;
	struct metal_shadow shadow[METAL_SHADOWS_MOST];
};

struct metal_object {
	double at[3];
	double mu;     /* mean over the views of rise / width: less than the attenuation of the metal, 1/mm */
	int views, of; /* in which its shadow was found; in which its place is on the detector */
};

struct metal_report {
	bool asked; /* the protocol asks for it */
	int n;
	struct metal_object object[METAL_OBJECTS_MOST];
};

/* Find the shadows of a view of a SCAN_DBT. cells, mean: of this view (view_cells_average(), with air); line, valid: n_v * n_u;
 * only bins with valid > 0 belong to shadows. Release ret_view afterwards. ENOMEM. */
int metal_find(const struct scan *scan, const struct view_cells *cells, const float *mean, const float *line, const float *valid,
	       struct metal_view *ret_view, struct err *err);
void metal_release(struct metal_view *v); /* accepts an empty one */

/* Find the objects from the shadows of all views. grid: the volume in which they are. ret_of: METAL_OBJECTS_MOST * n_views: of each
 * object the number of its shadow in each view, or -1. */
void metal_locate(const struct scan *scan, const struct grid *grid, struct metal_view *views, signed char *ret_of,
		  struct metal_report *ret_report);

/* Keep in the projections what is no metal in the shadows of the objects: reduce the excess of bins in which the views agree on a
 * calcification above or below an object (recon/dbt/metal_specks.c). ENOMEM. */
int metal_keep_specks(const struct scan *scan, struct metal_view *views, const signed char *of, const struct metal_report *report,
		      struct err *err);

/* Return whether a shadow in this view is that of the object alone. */
bool metal_is_alone(const struct scan *scan, int view, const struct metal_shadow *m, const struct metal_object *o);

/* A shadow as an image: bins lo + (0 .. n - 1) along u and v. The caller frees value. */
struct metal_image {
	int lo[2], n[2];
	float *value;
	float beside; /* value of bins that are not in the shadow */
};

/* Make the image of the excess or, with lost, of the lost part of the intensity. ENOMEM. */
int metal_image_create(const struct metal_shadow *m, bool lost, float beside, struct metal_image *ret, struct err *err);
float metal_image_at(const struct metal_image *m, const double foot[2]); /* a point between bins */

/* Solve the normal equations of three unknowns, a positive matrix with the right side in column 3, in place: the solution is there
 * afterwards. Return false if they do not determine it. */
bool metal_solve(double m[3][4]);

#endif
