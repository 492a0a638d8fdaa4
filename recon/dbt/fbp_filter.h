/* SPDX-License-Identifier: Apache-2.0 */
/* Filtered backprojection for a source on an arc above a detector that stands still or turns: filter a view before it is
 * backprojected.
 *
 * Feldkamp, Davis & Kress 1984, adapted to a detector that does not turn with the source (Lauritsch & Haerer 1998 and Mertelmeier
 * et al. 2006 use the same ramp along the path of the source), for every bin of view i with the source s_i:
 *
 *   g(u, v)  = line(u, v) * (a_y + a_z s_z d_y / (s_z^2 + d_x^2)) / r        weight; FDK's cosine where detector and source turn
 *   F(u, v)  = sum over v' of g(u, v') h((v - v') t) t                       filter along v, t = bin pitch
 *   line     <- F * n * k / (r / s_z),  k^2 = mean over all views of (r / s_z)^2
 *
 * A detector that turns is replaced by its shadow in the plane z = 0; then k has a further factor, the mean over all views of the
 * number of bins for each bin of that plane, which is in A'1.
 *
 * d: bin's centre - source, r = |d|; a: the part of the source's path that the view represents (half the distance to its
 * neighbours on either side; at the ends of the arc as far outward as inward), mm; n: number of views. h: recon/core/ramp.h; of
 * infinite length, so a constant gives exactly 0.
 *
 * Then take the weighted average A'(line) / A'1 (RULE_BACKPROJECT with row lengths of 1: the weights of A are (r / s_z) / m^2
 * with m = 1 - z / s_z). Multiplied by fbp_slice_scale() of the slice's height z, it is the sum over the views of F / m^2: the
 * attenuation in 1/mm as far as a limited arc can measure it. In the Fourier domain the wedge |k_z| <= tan(half arc) |k_y| is
 * unchanged, the rest is 0: the mean of a slice is lost, detail that is long in z keeps its contrast, a ball seen over 50 degrees
 * keeps 50/180 of it.
 *
 * In a build without kissfft, fbp_filter_view() returns ENOTSUP. */
#ifndef TOMONODE_RECON_FBP_FILTER_H
#define TOMONODE_RECON_FBP_FILTER_H

#include "recon/dbt/dbt.h"

/* Filter one view of the scan in place, host memory, n_v * n_u floats; threaded, and several views may be filtered at the same
 * time. cut: fraction of the Nyquist frequency at which the Hann window reaches 0, 0 < cut <= 1; the plain ramp ignores it. Bins
 * with valid > 0 (counts) and valid < 0 (air) are used. Bins with valid = 0 and values that are not finite are gaps, filled
 * along v by linear interpolation; beyond the first and the last datum, also outside the detector, the nearest datum is repeated.
 * A row of v without data becomes 0. */
int fbp_filter_view(const struct scan *scan, int view, enum dbt_filter filter, double cut, float *line, const float *valid,
		    struct err *err);

/* Return the factor for the average at height z (mm, below every source): the mean over the views of 1 / m^2. */
static inline double fbp_slice_scale(const struct scan *scan, double z)
{
	double sum = 0;

	for (int i = 0; i < scan->n_views; i++) {
		double m = 1 - z / scan->views[i].src[2];

		sum += 1 / (m * m);
	}
	return sum / scan->n_views;
}

#endif
