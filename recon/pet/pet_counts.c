/* SPDX-License-Identifier: Apache-2.0 */
/* pet_counts.c - which bins count, and their sums.
 *
 * A bin with m = 0 measures nothing: whatever the scanner wrote there (a gap between detectors, a dead block) is not data. Its y
 * and b are set to 0 in host memory before anything is summed, multiplied or transferred, so that no later step depends on them.
 * EM with time of flight divides b by m in the same pass: with y and b / m alone the iteration is that of y, m and b (pet_em.c).
 * Sums are taken view by view and added in the order of the views, independent of the number of threads. */
#include <errno.h>
#include <stdlib.h>

#include "recon/pet/pet_internal.h"

/* Set *bin to 0 if it does not count. */
static inline float take_bin(float *bin, bool counts)
{
	if (!counts && *bin != 0)
		*bin = 0;
	return *bin;
}

/* Add up the bins of one radial bin and TOF bin. divide: replace b by b / m. */
static void count_planes(const float *m, float *y, float *b, size_t n, bool ray, bool divide, struct pet_counts *c)
{
	for (size_t i = 0; i < n; i++) {
		double data = take_bin(&y[i], m[i] > 0), add = b ? take_bin(&b[i], m[i] > 0) : 0;

		c->all += data;
		c->data += ray ? data : 0;
		c->background += ray ? add : 0;
		c->factors += ray ? m[i] : 0;
		c->bins += ray && m[i] > 0;
		if (divide && m[i] > 0)
			b[i] /= m[i];
	}
}

/* Add up one view; `all` gets every bin, the other sums the bins that have a ray. */
static struct pet_counts count_view(const struct pet_session *s, int view)
{
	size_t n_u = (size_t)s->n_planes, row = pet_row(s, PET_DATA), m_row = pet_row(s, PET_FACTORS);
	const float *m = s->host[PET_FACTORS] + (size_t)view * pet_view(s, PET_FACTORS);
	size_t at = (size_t)view * s->view_bins;
	float *y = s->host[PET_DATA] + at, *b = s->has[PET_BACKGROUND] ? s->host[PET_BACKGROUND] + at : NULL;
	bool divide = b && pet_is_tof(s) && !algorithm_info(s->p->algorithm)->filtered;
	struct pet_counts c = {0};

	for (int v = 0; v < s->layout.scan->n_v; v++)
		for (size_t k = 0; k < row; k += n_u) {
			size_t i = (size_t)v * row + k;

			count_planes(m + (size_t)v * m_row + (m_row > n_u ? k : 0), y + i, b ? b + i : NULL, n_u,
				     v >= s->v_first && v < s->v_end, divide, &c);
		}
	return c;
}

static double sum_planes(const struct pet_session *s, enum pet_role role, bool all)
{
	double sum = 0;

	for (int i = 0; s->has[role] && i < s->expected[role]; i++)
		sum += all ? s->plane[role][i].all : s->plane[role][i].seen;
	return sum;
}

/* Return the number of bins that have a ray. */
static double count_rays(const struct pet_session *s)
{
	return (double)s->expected[PET_DATA] * s->m->n_angles * (s->v_end - s->v_first);
}

int pet_counts_take(struct pet_session *s, struct err *err)
{
	int n_views = s->layout.scan->n_views;
	struct pet_counts *views;

	if (!s->has[PET_FACTORS]) {
		s->counts = (struct pet_counts){.all = sum_planes(s, PET_DATA, true),
						.data = sum_planes(s, PET_DATA, false),
						.background = sum_planes(s, PET_BACKGROUND, false),
						.factors = count_rays(s),
						.bins = count_rays(s)};
		return 0;
	}
	views = calloc((size_t)n_views, sizeof(*views));
	if (!views)
		return err_set(err, ENOMEM, "reconstruction: cannot allocate the sums of %d angles", n_views);
#pragma omp parallel for schedule(static)
	for (int i = 0; i < n_views; i++)
		views[i] = count_view(s, i);
	for (int i = 0; i < n_views; i++) {
		s->counts.all += views[i].all;
		s->counts.data += views[i].data;
		s->counts.background += views[i].background;
		s->counts.factors += views[i].factors;
		s->counts.bins += views[i].bins;
	}
	free(views);
	return 0;
}
