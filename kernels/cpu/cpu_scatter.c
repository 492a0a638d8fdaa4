/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_scatter.c - single scatter simulation on the CPU: the legs of a batch of points, then the sum of each pair over these
 * points. One thread computes a pair, in the order of the points. Sums over a batch with time of flight are float, all others
 * double. */
#include "kernels/cpu/cpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct tables {
	float *leg;	/* kernels/scatter.h */
	float *profile; /* [detector][SCATTER_BATCH][scatter_profile_size()]; NULL without time of flight */
	float *weight;	/* of scatter_sample() */
	double *sum;	/* [pair][TOF bin] */
	float *thread;	/* for each thread: bins of a leg, or two sums over a batch */
	size_t thread_floats;
};

static void free_tables(struct tables *t)
{
	free(t->leg);
	free(t->profile);
	free(t->weight);
	free(t->sum);
	free(t->thread);
}

static int alloc_tables(const struct scatter_spec *spec, const struct scatter_model *m, int threads, struct tables *t)
{
	size_t legs = (size_t)m->n_detectors * SCATTER_BATCH;

	t->leg = cpu_memory(LEG_FIELDS * legs * sizeof(float));
	t->sum = calloc(spec->n_pairs * (size_t)cpu_max(m->tof.n, 1), sizeof(*t->sum));
	if (!t->leg || !t->sum)
		return -ENOMEM;
	if (m->tof.n == 0)
		return 0;
	t->thread_floats = (size_t)cpu_max(m->n_bins, 2 * m->tof.n) + 16; /* no two threads on a cache line */
	t->profile = cpu_memory(legs * scatter_profile_size(m) * sizeof(float));
	t->weight = malloc((size_t)scatter_taps(m) * sizeof(float));
	t->thread = malloc((size_t)threads * t->thread_floats * sizeof(float));
	return t->profile && t->weight && t->thread ? 0 : -ENOMEM;
}

static float *thread_memory(const struct tables *t)
{
#ifdef _OPENMP
	return t->thread + (size_t)omp_get_thread_num() * t->thread_floats;
#else
	return t->thread;
#endif
}

static void make_profile(const struct scatter_model *m, const float *weight, const float *bins, float *profile)
{
	memset(profile, 0, scatter_profile_size(m) * sizeof(*profile));
	for (int s = 0; s < m->n_samples; s++)
		profile[scatter_slot(m, s)] = scatter_sample(m, weight, bins, s);
}

/* Compute the legs from the points [first, first + n) to a detector. */
static void make_legs(const struct scatter_spec *spec, const struct scatter_model *m, const struct tables *t,
		      const float *activity, const float *mu, int detector, size_t first, int n)
{
	size_t at = (size_t)detector * SCATTER_BATCH, field = (size_t)m->n_detectors * SCATTER_BATCH;
	float *bins = m->tof.n > 0 ? thread_memory(t) : NULL;

	for (int p = 0; p < n; p++, at++) {
		if (bins)
			memset(bins, 0, (size_t)m->n_bins * sizeof(*bins));
		scatter_leg(m, activity, mu, spec->points[first + (size_t)p], spec->detectors[detector], t->leg + at, field,
			    bins);
		if (bins)
			make_profile(m, t->weight, bins, t->profile + at * scatter_profile_size(m));
	}
}

/* Add a leg's profile to the TOF bins, counted towards its detector. */
static void add_profile(const struct scatter_model *m, const float *profile, struct scatter_shift s, float weight, float *sum)
{
	bool wraps = s.phase + 1 == m->phases;
	const float *low = profile + s.phase * m->n_slots, *high = wraps ? profile : low + m->n_slots;
	int low_at = s.slot, high_at = s.slot + wraps;
	int first = cpu_max(0, -low_at), end = cpu_min(m->tof.n, m->n_slots - high_at);
	float w0 = weight * (1 - s.f), w1 = weight * s.f;

	for (int k = first; k < end; k++)
		sum[k] += w0 * low[low_at + k] + w1 * high[high_at + k];
}

/* Add the points [first, first + n) to a pair. */
static void add_points(const struct scatter_spec *spec, const struct scatter_model *m, const struct tables *t, size_t pair,
		       size_t first, int n)
{
	size_t at_a = (size_t)spec->pairs[pair][0] * SCATTER_BATCH, at_b = (size_t)spec->pairs[pair][1] * SCATTER_BATCH;
	size_t field = (size_t)m->n_detectors * SCATTER_BATCH;
	const float *a = t->leg + at_a, *b = t->leg + at_b;
	int n_tof = m->tof.n;
	float cosine[SCATTER_BATCH], weight[2], *to_a = NULL, *to_b = NULL;
	double sum = 0;

	for (int p = 0; p < n; p++)
		cosine[p] = scatter_cosine(a + p, b + p, field);
	if (n_tof > 0) {
		to_a = thread_memory(t);
		to_b = to_a + n_tof;
		memset(to_a, 0, 2 * (size_t)n_tof * sizeof(*to_a));
	}
	for (int p = 0; p < n; p++) {
		if (cosine[p] <= m->cosine_least)
			continue;
		scatter_weights(a + p, b + p, field, spec->points[first + (size_t)p][3], cosine[p], spec->angles, weight);
		if (n_tof == 0) {
			sum += (double)weight[0] * a[LEG_ACTIVITY * field + (size_t)p] +
			       (double)weight[1] * b[LEG_ACTIVITY * field + (size_t)p];
		} else if (weight[0] > 0 || weight[1] > 0) {
			float length_a = a[LEG_LENGTH * field + (size_t)p], length_b = b[LEG_LENGTH * field + (size_t)p];
			size_t size = scatter_profile_size(m);

			add_profile(m, t->profile + (at_a + (size_t)p) * size, scatter_shift(m, length_a, length_b), weight[0],
				    to_a);
			add_profile(m, t->profile + (at_b + (size_t)p) * size, scatter_shift(m, length_b, length_a), weight[1],
				    to_b);
		}
	}
	if (n_tof == 0)
		t->sum[pair] += sum;
	for (int k = 0; k < n_tof; k++)
		t->sum[pair * (size_t)n_tof + (size_t)k] += (double)to_a[k] + to_b[n_tof - 1 - k];
}

int cpu_scatter_pairs(const struct scatter_spec *spec, const struct buf *activity, const struct buf *mu, struct buf *ret,
		      struct err *err)
{
	int threads = cpu_state(activity->dev)->threads, r;
	struct tables t = {0};
	struct scatter_model m;
	size_t n_tof;

	(void)threads;
	r = device_check_scatter(spec, activity, mu, ret, &m, err);
	if (r < 0)
		return r;
	if (alloc_tables(spec, &m, threads, &t) < 0) {
		r = err_set(err, ENOMEM, "%s: single scatter: no memory for %zu pairs of %d detectors and %d points",
			    activity->dev->name, spec->n_pairs, m.n_detectors, SCATTER_BATCH);
		goto out;
	}
	if (m.tof.n > 0)
		scatter_blur(&m, t.weight);
	for (size_t first = 0; first < spec->n_points; first += SCATTER_BATCH) {
		int n = spec->n_points - first < SCATTER_BATCH ? (int)(spec->n_points - first) : SCATTER_BATCH;

		if (spec->stop && spec->stop(spec->ctx, (double)first / (double)spec->n_points)) {
			r = err_set(err, ECANCELED, "cancelled while scatter was simulated");
			goto out;
		}
#pragma omp parallel for num_threads(threads) schedule(dynamic)
		for (int d = 0; d < m.n_detectors; d++)
			make_legs(spec, &m, &t, activity->mem, mu->mem, d, first, n);
#pragma omp parallel for num_threads(threads) schedule(dynamic, 256)
		for (size_t pair = 0; pair < spec->n_pairs; pair++)
			add_points(spec, &m, &t, pair, first, n);
	}
	n_tof = (size_t)cpu_max(m.tof.n, 1);
	for (size_t pair = 0; pair < spec->n_pairs; pair++) {
		double factor = scatter_pair_factor(spec->detectors[spec->pairs[pair][0]], spec->detectors[spec->pairs[pair][1]]);

		for (size_t k = 0; k < n_tof; k++)
			ret->mem[k * spec->n_pairs + pair] = (float)(factor * t.sum[pair * n_tof + k]);
	}
out:
	free_tables(&t);
	return r;
}
