/* SPDX-License-Identifier: Apache-2.0 */
/* Reduce the weights of bins at the two ends in y of a view's field, where it cuts the object, so that the image has no steps
 * there, and of bins whose rays leave the volume at the chest wall.
 *
 * A view sees only a part of each slice. If the object continues beyond it, voxels on the two sides of the field's edge are
 * corrected by different views, and differ. So the weight of a bin decreases to 0 towards the edge (rule_weigh() in
 * kernels/rules.h). In addition, rays of oblique views leave the volume through its ends in y; their line integrals contain
 * tissue that the volume does not, and would make its ends too bright. They are multiplied by the part of the ray that is in the
 * volume, which is exact for uniform tissue.
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

/* Change one view in place. scan: with merged bins; view: index in it. width: of the margin with reduced weights, mm in the
 * detector's plane, > 0. typical: line integral of the object. line, valid: n_v * n_u floats; valid is 1 (datum), 0 (no datum) or
 * -1 (air). Data become weights, 0 <= valid <= 1. scale: also multiply line integrals by the part inside the volume, and weigh
 * bins at the chest wall. Return whether a weight is reduced. */
bool field_edges_weigh(const struct scan *scan, int view, const struct grid *grid, double width, double typical, bool scale,
		       float *line, float *valid);

#endif
