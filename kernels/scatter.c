/* SPDX-License-Identifier: Apache-2.0 */
/* scatter.c - what single scatter simulation has in common on all devices: checks, sizes and the blur of time of flight. */
#include "kernels/scatter.h"

#include <errno.h>
#include <math.h>

#define SAMPLES_PER_SIGMA 2 /* linear between them, a profile is blurred by another 2 % of sigma^2 at most */

static int check_spec(const struct scatter_spec *s, struct err *err)
{
	const struct grid *g = s->grid;

	if (s->n_points == 0 || s->n_pairs == 0 || s->n_detectors < 2)
		return err_set(err, EINVAL, "single scatter: %zu scatter points, %d detectors, %zu pairs", s->n_points,
			       s->n_detectors, s->n_pairs);
	for (size_t i = 0; i < s->n_points; i++)
		for (int c = 0; c < 3; c++)
			if (!(s->points[i][c] >= g->lo[c] && s->points[i][c] <= g->lo[c] + g->n[c] * g->h[c]) ||
			    !(s->points[i][3] >= 0) || isinf(s->points[i][3]))
				return err_set(err, EINVAL, "single scatter: point %zu at (%g, %g, %g) mm of %g mm^2", i,
					       (double)s->points[i][0], (double)s->points[i][1], (double)s->points[i][2],
					       (double)s->points[i][3]);
	for (size_t i = 0; i < s->n_pairs; i++)
		if (s->pairs[i][0] < 0 || s->pairs[i][0] >= s->n_detectors || s->pairs[i][1] < 0 ||
		    s->pairs[i][1] >= s->n_detectors)
			return err_set(err, EINVAL, "single scatter: pair %zu has the detectors %d and %d of %d", i,
				       (int)s->pairs[i][0], (int)s->pairs[i][1], s->n_detectors);
	for (int i = 0; i <= SCATTER_ANGLES; i++)
		if (!(s->angles[i][0] >= 0 && s->angles[i][1] >= 0))
			return err_set(err, EINVAL, "single scatter: row %d of the table of angles is %g, %g", i,
				       (double)s->angles[i][0], (double)s->angles[i][1]);
	return 0;
}

int scatter_model_size(const struct grid *g, const struct scan_tof *tof, int n_detectors, struct scatter_model *ret_model,
		       struct err *err)
{
	struct scatter_model m = {.grid = *g, .tof = *tof, .n_detectors = n_detectors, .cosine_least = -2};
	double diagonal = sqrt(g->n[0] * g->h[0] * g->n[0] * g->h[0] + g->n[1] * g->h[1] * g->n[1] * g->h[1] +
			       g->n[2] * g->h[2] * g->n[2] * g->h[2]);

	if (tof->n > 0) {
		double bins;

		if (!(tof->width > 0 && tof->sigma > 0))
			return err_set(err, EINVAL, "single scatter: TOF bins of %g mm, resolution of %g mm", tof->width,
				       tof->sigma);
		m.phases = (int)ceil(fmin(tof->width * SAMPLES_PER_SIGMA / tof->sigma, SCATTER_BINS_MOST));
		m.step = tof->width / m.phases;
		bins = ceil(diagonal / m.step) + 1;
		if (bins > SCATTER_BINS_MOST || (TOF_CUT * tof->sigma + 0.5 * tof->width) / m.step > SCATTER_REACH_MOST - 1)
			return err_set(err, EINVAL,
				       "single scatter: TOF bins of %g mm are too narrow for a resolution of %g mm and %g mm of "
				       "activity",
				       tof->width, tof->sigma, diagonal);
		m.reach = (int)ceil((TOF_CUT * tof->sigma + 0.5 * tof->width) / m.step);
		m.n_bins = (int)bins;
		m.n_samples = m.n_bins + 2 * m.reach + 1;
		m.n_slots = (m.n_samples + m.phases - 1) / m.phases + 2;
	}
	*ret_model = m;
	return 0;
}

int scatter_model_make(const struct scatter_spec *spec, struct scatter_model *ret_model, struct err *err)
{
	struct scatter_model m;
	int r = check_spec(spec, err), first = 0;

	r = r < 0 ? r : scatter_model_size(spec->grid, &spec->tof, spec->n_detectors, &m, err);
	if (r < 0)
		return r;
	while (first < SCATTER_ANGLES && spec->angles[first][0] == 0 && spec->angles[first + 1][0] == 0)
		first++;
	if (first > 0)
		m.cosine_least = (float)first / (SCATTER_ANGLES / 2) - 1;
	*ret_model = m;
	return 0;
}

size_t scatter_tables_bytes(const struct scatter_model *m, size_t n_points, size_t n_pairs)
{
	size_t legs = (size_t)m->n_detectors * SCATTER_BATCH, tof = m->tof.n > 0 ? (size_t)m->tof.n : 1;
	size_t bytes = n_points * 4 * sizeof(float) + (size_t)m->n_detectors * 6 * sizeof(float) +
		       n_pairs * (2 * sizeof(int32_t) + tof * sizeof(double)) + (SCATTER_ANGLES + 1) * 2 * sizeof(float) +
		       LEG_FIELDS * legs * sizeof(float);

	if (m->tof.n > 0)
		bytes += sizeof(float) * ((size_t)scatter_taps(m) + legs * ((size_t)m->n_bins + 2 * scatter_profile_pairs(m)));
	return bytes;
}

void scatter_blur(const struct scatter_model *m, float *ret_weight)
{
	double s = m->tof.sigma, half = 0.5 * m->tof.width;

	/* mean over a bin of `step` mm of the probability of being within half a TOF bin, for a sample d steps after its
	 * beginning */
	for (int i = 0; i < scatter_taps(m); i++) {
		double to = (i - m->reach) * m->step, from = to - m->step;

		double sum = s / m->step *
			     (tof_cumulative_integral((to + half) / s) - tof_cumulative_integral((from + half) / s) -
			      tof_cumulative_integral((to - half) / s) + tof_cumulative_integral((from - half) / s));

		ret_weight[i] = (float)(sum > 0 ? sum : 0);
	}
}
