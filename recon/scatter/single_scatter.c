/* SPDX-License-Identifier: Apache-2.0 */
/* single_scatter.c - simulate the sampled pairs of detectors, and read planes. */
#include "recon/scatter/single_scatter.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/clock.h"
#include "recon/scatter/single_scatter_internal.h"

#define DETECTORS 64
#define DETECTORS_LEAST 8
#define DETECTORS_MOST 512
#define POINT_DISTANCE 20.0
#define MU_LEAST 0.001

static int check_conf(struct single_scatter_conf *c, struct err *err)
{
	c->detectors = c->detectors ? c->detectors : DETECTORS;
	c->point_distance = c->point_distance != 0 ? c->point_distance : POINT_DISTANCE;
	c->mu_least = c->mu_least != 0 ? c->mu_least : MU_LEAST;
	if (c->detectors < DETECTORS_LEAST || c->detectors > DETECTORS_MOST || !(c->point_distance > 0) ||
	    !(c->ring_distance >= 0) || !(c->mu_least > 0))
		return err_set(err, EINVAL,
			       "scatter: %d detectors (%d to %d), rings every %g mm, points every %g mm, mu from %g/mm",
			       c->detectors, DETECTORS_LEAST, DETECTORS_MOST, c->ring_distance, c->point_distance, c->mu_least);
	return 0;
}

/* Everything but the results. */
static int lay_out(struct single_scatter *s, const struct michelogram *m, const struct single_scatter_conf *conf, struct err *err)
{
	int r = michelogram_check(m, err);

	s->m = m;
	s->conf = *conf;
	r = r < 0 ? r : check_conf(&s->conf, err);
	return r < 0 ? r : single_scatter_layout(s, err);
}

int single_scatter_open(const struct michelogram *m, const struct single_scatter_conf *conf, struct device *dev,
			struct single_scatter **ret, struct err *err)
{
	struct single_scatter *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return err_set(err, ENOMEM, "scatter: out of memory");
	s->dev = dev;
	r = lay_out(s, m, conf, err);
	if (r == 0) {
		s->values = malloc(single_scatter_values(s, NULL) * sizeof(*s->values));
		if (!s->values)
			r = err_set(err, ENOMEM, "scatter: no memory for %zu pairs of %d TOF bins", s->n_pairs, s->n_tof);
	}
	if (r < 0) {
		single_scatter_close(s);
		return r;
	}
	*ret = s;
	return 0;
}

struct single_scatter *single_scatter_close(struct single_scatter *s)
{
	if (s) {
		free(s->detectors);
		free(s->pairs);
		free(s->ring_pair);
		free(s->links);
		free(s->reverse);
		free(s->bins);
		free(s->planes);
		free(s->values);
		free(s);
	}
	return NULL;
}

int single_scatter_count(const struct michelogram *m, const struct single_scatter_conf *conf, const struct grid *grid,
			 struct single_scatter_bytes *ret, struct err *err)
{
	struct single_scatter *s = calloc(1, sizeof(*s));
	struct scatter_model model = {0};
	size_t n, results, points;
	int r = s ? lay_out(s, m, conf, err) : err_set(err, ENOMEM, "scatter: out of memory");

	r = r < 0 ? r : scatter_model_size(grid, &m->tof, s->n_rings * s->conf.detectors, &model, err);
	if (r == 0) {
		n = (size_t)s->n_rings * (size_t)s->n_rings;
		results = s->n_pairs * (size_t)s->n_tof;
		points = single_scatter_cells(&s->conf, grid);
		ret->host = (size_t)model.n_detectors * sizeof(*s->detectors) + s->n_pairs * sizeof(*s->pairs) +
			    n * sizeof(*s->ring_pair) + s->n_links * (sizeof(*s->links) + sizeof(*s->reverse)) +
			    michelogram_plane_bins(m) * sizeof(*s->bins) + (size_t)s->n_planes * sizeof(*s->planes) +
			    results * sizeof(*s->values) + points * (4 * sizeof(float) + 2 * sizeof(double));
		ret->values = results * sizeof(*s->values);
		ret->device = (2 * grid_size(grid) + results) * sizeof(float) + scatter_tables_bytes(&model, points, s->n_pairs);
	}
	single_scatter_close(s);
	return r;
}

size_t single_scatter_values(const struct single_scatter *s, const float **ret)
{
	if (ret)
		*ret = s->values;
	return s->n_pairs * (size_t)s->n_tof;
}

int single_scatter_restore(struct single_scatter *s, const float *values, size_t n, struct err *err)
{
	if (n != single_scatter_values(s, NULL))
		return err_set(err, EINVAL, "scatter: %zu values for %zu pairs of %d TOF bins", n, s->n_pairs, s->n_tof);
	memcpy(s->values, values, n * sizeof(*values));
	s->simulated = true;
	return 0;
}

void single_scatter_use(struct single_scatter *s, const struct michelogram *m)
{
	s->m = m;
}

static int check_volume(const char *what, const struct grid *g, const float *x, struct err *err)
{
	for (size_t k = 0; k < (size_t)g->n[2]; k++)
		for (size_t j = 0; j < (size_t)g->n[1]; j++)
			for (size_t i = 0; i < (size_t)g->n[0]; i++) {
				float value = x[i * grid_step(g, 0) + j * grid_step(g, 1) + k * grid_step(g, 2)];

				if (!(value >= 0) || isinf(value))
					return err_set(err, EINVAL, "scatter: %s of voxel (%zu, %zu, %zu) is %g", what, i, j, k,
						       (double)value);
			}
	return 0;
}

/* Simulate on the device; activity and mu: host memory. */
static int simulate_spec(struct single_scatter *s, const struct scatter_spec *spec, const float *activity, const float *mu,
			 struct err *err)
{
	const struct device_ops *v = s->dev->ops;
	struct buf x = {0}, attenuation = {0}, pairs = {0};
	size_t n = grid_size(spec->grid);
	int r = v->alloc(s->dev, n, &x, err);

	r = r < 0 ? r : v->alloc(s->dev, n, &attenuation, err);
	r = r < 0 ? r : v->alloc(s->dev, s->n_pairs * (size_t)s->n_tof, &pairs, err);
	r = r < 0 ? r : v->upload(&x, activity, err);
	r = r < 0 ? r : v->upload(&attenuation, mu, err);
	r = r < 0 ? r : v->scatter_pairs(spec, &x, &attenuation, &pairs, err);
	r = r < 0 ? r : v->download(&pairs, s->values, err);
	buf_release(&x);
	buf_release(&attenuation);
	buf_release(&pairs);
	return r;
}

static bool is_stopped(void *ctx, double fraction)
{
	const struct monitor *monitor = ctx;

	monitor_progress(monitor, "read", fraction);
	return monitor_cancelled(monitor);
}

int single_scatter_run(struct single_scatter *s, const struct grid *grid, const float *activity, const float *mu,
		       const struct monitor *monitor, struct single_scatter_report *ret_report, struct err *err)
{
	struct scatter_spec spec = {.grid = grid,
				    .n_pairs = s->n_pairs,
				    .n_detectors = s->n_rings * s->conf.detectors,
				    .detectors = s->detectors,
				    .pairs = s->pairs,
				    .tof = s->m->tof,
				    .stop = monitor ? is_stopped : NULL,
				    .ctx = (void *)monitor};
	double begun = clock_seconds();
	float(*points)[4] = NULL, (*angles)[2] = malloc((SCATTER_ANGLES + 1) * sizeof(*angles));
	int r = angles ? single_scatter_angles(&s->conf, angles, err) : err_set(err, ENOMEM, "scatter: out of memory");

	s->simulated = false;
	r = r < 0 ? r : check_volume("the activity", grid, activity, err);
	r = r < 0 ? r : check_volume("mu", grid, mu, err);
	r = r < 0 ? r : single_scatter_points(&s->conf, grid, mu, &points, &spec.n_points, err);
	if (r == 0) {
		spec.points = (const float(*)[4])points;
		spec.angles = (const float(*)[2])angles;
		r = simulate_spec(s, &spec, activity, mu, err);
	}
	if (r == 0) {
		s->simulated = true;
		*ret_report = (struct single_scatter_report){spec.n_points, s->n_pairs, clock_seconds() - begun};
	}
	free(points);
	free(angles);
	return r;
}

/* Find the values of the links of pair i (0 .. 3) of the four sampled pairs of rings around a plane. *ret_turned: they are those
 * of the reverse links. */
static const float *ring_links(const struct single_scatter *s, int plane, int tof, int i, float *ret_weight, bool *ret_turned)
{
	int a = s->planes[plane].first.at[i & 1], b = s->planes[plane].second.at[i >> 1], n = s->n_rings;
	bool turned = a > b;
	size_t rings = (size_t)s->ring_pair[turned ? b * n + a : a * n + b];
	size_t bin = (size_t)(turned ? s->n_tof - 1 - tof : tof);

	*ret_weight = s->planes[plane].first.weight[i & 1] * s->planes[plane].second.weight[i >> 1];
	*ret_turned = turned;
	return s->values + (bin * s->n_ring_pairs + rings) * s->n_links;
}

/* Combine the pairs of rings of a plane: ret_link[n_links + 1], the last one is 0. */
static void plane_links(const struct single_scatter *s, int plane, int tof, float *ret_link)
{
	for (size_t l = 0; l <= s->n_links; l++)
		ret_link[l] = 0;
	for (int i = 0; i < 4; i++) {
		bool turned;
		float weight;
		const float *from = ring_links(s, plane, tof, i, &weight, &turned);

		if (weight == 0)
			continue;
		for (size_t l = 0; l < s->n_links; l++)
			ret_link[l] += weight * from[turned ? (size_t)s->reverse[l] : l];
	}
}

float single_scatter_value(const struct single_scatter *s, int k, int plane, size_t bin)
{
	const struct scatter_bin *at = &s->bins[bin];
	float sum = 0;

	for (int i = 0; i < 4; i++) {
		bool turned;
		float weight;
		const float *from = ring_links(s, plane, k, i, &weight, &turned);

		if (weight == 0)
			continue;
		for (int j = 0; j < 4; j++)
			if ((size_t)at->link[j] < s->n_links)
				sum += weight * at->weight[j] * from[turned ? s->reverse[at->link[j]] : at->link[j]];
	}
	return sum;
}

int single_scatter_planes(const struct single_scatter *s, int first, int n, int threads, float *ret, struct err *err)
{
	size_t size = michelogram_plane_bins(s->m);
	bool failed = false;

	if (!s->simulated || first < 0 || n < 0 || n > s->n_planes * s->n_tof - first || threads < 1)
		return err_set(err, EINVAL, "scatter: planes %d to %d of %d, %s", first, first + n - 1, s->n_planes * s->n_tof,
			       s->simulated ? "simulated" : "not simulated yet");
#pragma omp parallel num_threads(threads)
	{
		float *link = malloc((s->n_links + 1) * sizeof(*link));

#pragma omp for schedule(static)
		for (int p = first; p < first + n; p++) {
			float *to = ret + (size_t)(p - first) * size;

			if (!link) {
#pragma omp atomic write
				failed = true;
				continue;
			}
			plane_links(s, p % s->n_planes, p / s->n_planes, link);
			for (size_t i = 0; i < size; i++) {
				const struct scatter_bin *bin = &s->bins[i];

				to[i] = bin->weight[0] * link[bin->link[0]] + bin->weight[1] * link[bin->link[1]] +
					bin->weight[2] * link[bin->link[2]] + bin->weight[3] * link[bin->link[3]];
			}
		}
		free(link);
	}
	return failed ? err_set(err, ENOMEM, "scatter: out of memory") : 0;
}
