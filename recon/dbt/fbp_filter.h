/* Filtered backprojection for a source on an arc over a stationary detector: what is done to a view before it is backprojected.
 *
 * Feldkamp, Davis & Kress 1984, written for a detector that does not turn with the source (Lauritsch & Haerer 1998 and
 * Mertelmeier et al. 2006 use the same ramp along the way of the source), every bin of view i with the source s_i:
 *
 *   g(u, v)  = line(u, v) * (a_y + a_z s_z d_y / (s_z^2 + d_x^2)) / r        weight; FDK's cosine where detector and source turn
 *   F(u, v)  = sum over v' of g(u, v') h((v - v') t) t                       filter along v, t = bin pitch
 *   line     <- F * n * k / (r / s_z),  k^2 = mean over all views of (r / s_z)^2
 *
 * d: bin's centre - source, r = |d|; a: the part of the source's way that the view stands for (half the way to its neighbours on
 * either side, at the ends of the arc as far outward as inward), mm; n: number of views.
 * h: recon/core/ramp.h; of infinite length, so a constant gives exactly 0.
 *
 * Then the weighted average that A'(line) / A'1 is (RULE_BACKPROJECT with row lengths of 1: the weights of A are (r / s_z) / m^2
 * with m = 1 - z / s_z), times fbp_slice_scale() of the slice's height z, is the sum over the views of F / m^2: attenuation in
 * 1/mm of what a limited arc can see. In the Fourier domain the wedge |k_z| <= tan(half arc) |k_y| is kept as it is, all else is
 * 0: the mean of a slice is lost, detail that is long in z keeps its contrast, a ball seen over 50 degrees keeps 50/180 of it.
 *
 * A build without kissfft has a stub that answers ENOTSUP.
 */
#ifndef TOMONODE_RECON_FBP_FILTER_H
#define TOMONODE_RECON_FBP_FILTER_H

#include "recon/dbt/dbt.h"

/* One view of the scan in place, host memory, n_v * n_u floats; threaded, views may be filtered at the same time. cut: fraction
 * of the Nyquist frequency at which the Hann window reaches 0, 0 < cut <= 1; the plain ramp ignores it. valid > 0 counts and
 * valid < 0 is air: both are used. valid = 0 and numbers that are none are no data: along v, data are continued linearly from one
 * side of such a gap to the other, and constantly beyond the first and the last datum and beyond the detector. A row of v without
 * data gives 0. */
int fbp_filter_view(const struct scan *scan, int view, enum dbt_filter filter, double cut, float *line, const float *valid,
		    struct err *err);

/* What the average is to be multiplied with at height z (mm, below every source): the mean over the views of 1 / m^2. */
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
