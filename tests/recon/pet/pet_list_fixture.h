/* SPDX-License-Identifier: Apache-2.0 */
/* Events of a small scanner with one pair of detectors for each bin of a sinogram, as list and as histogram, and a list-mode
 * session in one call; include after cmocka.h. */
#ifndef TOMONODE_TESTS_PET_LIST_FIXTURE_H
#define TOMONODE_TESTS_PET_LIST_FIXTURE_H

#include "recon/core/scan.h"
#include "recon/pet/pet_list.h"
#include "tests/recon/pet/pet_fixture.h"
#include "tests/test.h"

#define RINGS 4
#define RADIAL 33
#define ANGLES 24
#define FOV 60.0
#define MATRIX 20

/* Sums in another order, amplified by the iterations. */
#define IMAGE_TOL 1e-4

struct data {
	struct michelogram m;
	float *detectors; /* two for each LOR; LORs in the order of the michelogram */
	size_t n_lors;
	float *factors, *background; /* of LORs; background: of all bins, b */
	int *counts;		     /* of bins: [TOF bin][LOR] */
	struct event *events;
	size_t n_events;
};

struct reader {
	const struct event *events;
	size_t n, at, most; /* most: events that one call returns */
	int calls, fail_at;
};

static inline int rewind_events(void *ctx, struct err *err)
{
	struct reader *r = ctx;

	(void)err;
	r->at = 0;
	return 0;
}

static inline int read_events(void *ctx, struct event *ret, size_t most, size_t *ret_n, struct err *err)
{
	struct reader *r = ctx;
	size_t n = r->n - r->at;

	if (r->fail_at && ++r->calls == r->fail_at)
		return err_set(err, EIO, "the reader fails");
	n = n < most ? n : most;
	n = n < r->most ? n : r->most;
	memcpy(ret, r->events + r->at, n * sizeof(*ret));
	r->at += n;
	*ret_n = n;
	return 0;
}

static inline int data_bins(const struct data *d)
{
	return d->m.tof.n ? d->m.tof.n : 1;
}

static inline void make_detectors(struct data *d)
{
	int *plane = NULL;
	struct scan *scan = fixture_michelogram_scan(&d->m, FOV, &plane);

	d->n_lors = (size_t)scan->n_u * ANGLES * RADIAL;
	d->detectors = take_memory(6 * d->n_lors * sizeof(*d->detectors));
	for (int u = 0; u < scan->n_u; u++)
		for (int a = 0; a < ANGLES; a++)
			for (int v = 0; v < RADIAL; v++) {
				double r = scan->radius[v], w = sqrt(scan->ring_radius * scan->ring_radius - r * r);
				double c = scan->views[a].turn[0], s = scan->views[a].turn[1];
				float *to = d->detectors + 6 * (((size_t)plane[u] * ANGLES + (size_t)a) * RADIAL + (size_t)v);

				for (int end = 0; end < 2; end++) { /* the first detector is at positive t */
					double t = end ? -w : w;

					to[3 * end] = (float)(r * c - t * s);
					to[3 * end + 1] = (float)(r * s + t * c);
					to[3 * end + 2] = (float)(scan->planes[u].z + scan->planes[u].rise * t / w);
				}
			}
}

static inline struct event event_of(const struct data *d, size_t lor, int k)
{
	float b = d->background && d->factors[lor] > 0 ? d->background[(size_t)k * d->n_lors + lor] / d->factors[lor] : 0;

	return (struct event){{(int32_t)(2 * lor), (int32_t)(2 * lor + 1)}, k, b};
}

/* Counts of a box and a hot voxel, not random but rounded in a random way; events in a random order. */
static inline void make_events(struct data *d, const struct grid *g, double per_mm)
{
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	size_t n = d->n_lors * (size_t)data_bins(d), at = 0;
	struct event *all = take_memory(n * sizeof(*all));
	float *x = take_zeros(grid_size(g), sizeof(*x)), *p;
	struct buf detectors = fixture_upload(dev, d->detectors, 6 * d->n_lors), bx, by, be;
	struct events *a;
	uint32_t seed = 17;

	for (int j = 5; j < 14; j++)
		for (int i = 4; i < 12; i++)
			for (int k = 0; k < g->n[2]; k++)
				x[(size_t)i * grid_step(g, 0) + (size_t)j * grid_step(g, 1) + (size_t)k] = 1;
	x[9 * grid_step(g, 0) + 8 * grid_step(g, 1) + 3] = 12;
	for (size_t i = 0; i < n; i++)
		all[i] = event_of(d, i % d->n_lors, (int)(i / d->n_lors));
	bx = fixture_upload(dev, x, grid_size(g));
	by = fixture_upload(dev, NULL, n);
	be = fixture_upload(dev, (const float *)(const void *)all, n * EVENT_FLOATS);
	a = fixture_events(
		dev, &(struct events_spec){.grid = g, .fov_radius = FOV, .tof = d->m.tof, .detectors = &detectors, .batch = 1});
	assert_int_equal(dev->ops->events_forward(a, &be, &bx, &by, NULL), 0);
	p = fixture_download(&by);
	d->counts = take_zeros(n, sizeof(*d->counts));
	for (size_t i = 0; i < n; i++) {
		double expected = d->factors[i % d->n_lors] * p[i] * per_mm;

		expected += d->background && d->factors[i % d->n_lors] > 0 ? d->background[i] : 0;
		d->counts[i] = (int)(expected + (double)fixture_random(&seed));
		d->n_events += (size_t)d->counts[i];
	}
	d->events = take_memory(d->n_events * sizeof(*d->events));
	for (size_t i = 0; i < n; i++)
		for (int k = 0; k < d->counts[i]; k++)
			d->events[at++] = all[i];
	for (size_t i = d->n_events - 1; i > 0; i--) {
		size_t other = (size_t)((double)fixture_random(&seed) * (double)i);
		struct event e = d->events[i];

		d->events[i] = d->events[other];
		d->events[other] = e;
	}
}

static const struct pet_protocol protocol = {
	.algorithm = ALGORITHM_MLEM,
	.iterations = 6,
	.subsets = 1,
	.matrix = MATRIX,
	.fov_radius = FOV,
	.projector = PROJECTION_JOSEPH,
};

static inline struct data make_data(bool tof, bool background)
{
	struct data d = {.m = {.scanner = {.rings = RINGS,
					   .detectors = 48,
					   .ring_spacing = 8,
					   .radius = 88,
					   .interaction_depth = 2,
					   .bin = 4.8},
			       .n_radial = RADIAL,
			       .n_angles = ANGLES,
			       .angle_offset = 1.7,
			       .arc_corrected = true}}; /* rays of a sinogram, whatever detectors would be there */
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	struct pet_plan plan;
	uint32_t seed = 3;

	fixture_segments(&d.m, 1, RINGS - 1);
	if (tof)
		d.m.tof = (struct scan_tof){7, 22, 14};
	make_detectors(&d);
	d.factors = fixture_floats(d.n_lors, 5, 0.4f, 1.3f);
	for (size_t i = 0; i < d.n_lors; i++)
		if (fixture_random(&seed) < 0.1f)
			d.factors[i] = 0; /* a dead bin */
	if (background)
		d.background = fixture_floats(d.n_lors * (size_t)data_bins(&d), 6, 0, tof ? 0.3f : 1);
	assert_int_equal(pet_plan(&protocol, &d.m, PET_FACTORS_SHARED, background, dev, &plan, NULL), 0);
	make_events(&d, &plan.grid, tof ? 0.15 : 0.1);
	return d;
}

/* A list with its readers. */
struct source {
	struct pet_list list;
	struct reader events, lors;
	struct event *all;
};

static inline struct source *make_source(const struct data *d, bool by_lors)
{
	struct source *s = take_zeros(1, sizeof(*s));

	s->events = (struct reader){d->events, d->n_events, 0, 1000, 0, 0};
	s->list = (struct pet_list){
		.detectors = d->detectors,
		.n_detectors = 2 * d->n_lors,
		.tof = d->m.tof,
		.events = {&s->events, rewind_events, read_events},
		.n_events = d->n_events,
		.with_background = d->background,
		.slice = 4,
	};
	if (by_lors) {
		s->all = take_memory(d->n_lors * sizeof(*s->all));
		for (size_t i = 0; i < d->n_lors; i++)
			s->all[i] = (struct event){{(int32_t)(2 * i), (int32_t)(2 * i + 1)}, -7, d->factors[i]};
		s->lors = (struct reader){s->all, d->n_lors, 0, 777, 0, 0};
		s->list.lors = (struct pet_list_reader){&s->lors, rewind_events, read_events};
		s->list.n_lors = d->n_lors;
	} else {
		s->list.michelogram = &d->m;
		s->list.factors = d->factors;
	}
	return s;
}

static inline int run(const struct pet_protocol *p, const struct pet_list *list, struct device *dev,
		      const struct monitor *monitor, float **ret_image, struct pet_plan *ret_plan, struct err *err)
{
	struct pet_list_session *s = NULL;
	struct pet_report report;
	float *image = NULL;
	int r = pet_list_plan(p, list, dev, ret_plan, err);

	if (r == 0)
		r = pet_list_open(p, ret_plan, list, dev, &s, err);
	if (r == 0)
		r = pet_list_run(s, monitor, &report, err);
	if (r == 0) {
		const int *n = ret_plan->grid.n;

		image = take_memory((size_t)n[0] * (size_t)n[1] * (size_t)n[2] * sizeof(*image));
		assert_int_equal((size_t)report.counts, list->n_events);
		r = pet_list_read_slices(s, 0, n[2], image, err);
	}
	pet_list_close(s);
	if (r == 0)
		*ret_image = image;
	return r;
}

static inline float *image_of(const struct pet_protocol *p, const struct pet_list *list, struct device *dev,
			      struct pet_plan *ret_plan)
{
	struct err err = {0};
	float *image = NULL;

	assert_done(run(p, list, dev, NULL, &image, ret_plan, &err), &err);
	return image;
}

static inline size_t voxels_of(const struct pet_plan *plan)
{
	return (size_t)plan->grid.n[0] * (size_t)plan->grid.n[1] * (size_t)plan->grid.n[2];
}

static inline double difference(const float *a, const float *b, size_t n)
{
	double largest = 0, worst = 0;

	for (size_t i = 0; i < n; i++) {
		assert_true(isfinite(a[i]) && isfinite(b[i]));
		largest = fmax(largest, fabs((double)b[i]));
		worst = fmax(worst, fabs((double)a[i] - b[i]));
	}
	assert_true(largest > 0);
	return worst / largest;
}

#endif
