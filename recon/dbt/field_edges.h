/* SPDX-License-Identifier: Apache-2.0 */
/* Reduce the weights of bins at the two ends in y of a view's field, where it cuts the object, so that the image has no steps
 * there, and of bins whose rays leave the volume at the chest wall.
 *
 * A view sees only a part of each slice. If the object continues beyond it, voxels on the two sides of the field's edge are
 * corrected by different views, and differ. So the weight of a bin decreases to 0 towards the edge (rule_weigh() in
 * kernels/rules.h). In addition, rays of oblique views leave the volume through its ends in y; if the object continues there,
 * their line integrals contain tissue that the volume does not, and would make its ends too bright. They are multiplied by the
 * part of the ray that is in the volume, which is exact for uniform tissue. Whether the object continues, the view says whose
 * last rays with data are nearest to the end of the volume: they have tissue or not. An object that ends inside the volume, and
 * is cut by oblique views only, keeps its line integrals.
 *
 * An end cuts the object if tissue is in its last row that has data. If no end cuts the object, nothing changes. Columns at the
 * sides in x keep their weight: the source moves along y, so the fields of all views end there at the same place, without
 * steps; and with reduced weights in all views, voxels at that place would keep values near those of the start image.
 *
 * At the chest wall the object always continues. Where the source is behind the first bins (source_x, or images that begin away
 * from the detector's edge), their rays leave the volume through its side in x, and the lowest voxels there would contain what
 * they pass outside: many times too bright. Their line integrals are multiplied by the part of the ray that is in the volume, and
 * so are their weights, because less is known of shorter parts. */
#ifndef TOMONODE_RECON_FIELD_EDGES_H
#define TOMONODE_RECON_FIELD_EDGES_H

#include <stdbool.h>

#include "kernels/geometry.h"

#define FIELD_EDGES_TISSUE 0.25 /* smallest line integral of tissue, relative to the typical one of the view */
#define FIELD_EDGES_LEAST 2.0	/* mm: tissue covers more than this of the last row, dead bins cover less */

/* What a view says of its two ends in y, [0]: low, [1]: high. */
struct field_ends {
	bool cut[2];	  /* tissue is in the last row that has data */
	double beside[2]; /* mm: how far its rays pass beside the end of the volume at most; INFINITY: no row has data */
};

/* Change one view in place. scan: with merged bins; view: index in it. width: of the margin with reduced weights, mm in the
 * detector's plane, > 0. typical: line integral of the object. line, valid: n_v * n_u floats; valid is 1 (datum), 0 (no datum) or
 * -1 (air). Data become weights, 0 <= valid <= 1. scale: also multiply line integrals of bins at the chest wall by the part
 * inside the volume, and weigh them. Return whether a weight is reduced. */
bool field_edges_weigh(const struct scan *scan, int view, const struct grid *grid, double width, double typical, bool scale,
		       float *line, float *valid, struct field_ends *ret_ends);

/* Find the ends of the volume beyond which the object continues. ends: of all views. */
void field_edges_continue(const struct field_ends *ends, int n_views, bool ret_continues[2]);

/* Compute for each row of a view (n_v floats) by which its line integrals are to be multiplied. Return whether any is below 1. */
bool field_edges_parts(const struct scan *scan, int view, const struct grid *grid, const struct field_ends *ends,
		       const bool continues[2], float *ret_part);

#endif
