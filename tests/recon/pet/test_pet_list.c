/* SPDX-License-Identifier: Apache-2.0 */
/* List-mode PET: compared with the reconstruction of the histogram of the same events, by bins and by the sinogram session;
 * sensitivity over all LORs; subsets; streaming; number of threads; resolution model; errors. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "recon/core/psf.h"
#include "recon/core/scan.h"
#include "recon/pet/pet_list.h"
#include "tests/recon/dbt_fixture.h"
#include "tests/recon/pet/pet_reconstruct.h"

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

static int rewind_events(void *ctx, struct err *err)
{
	struct reader *r = ctx;

	(void)err;
	r->at = 0;
	return 0;
}

static int read_events(void *ctx, struct event *ret, size_t most, size_t *ret_n, struct err *err)
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

static int data_bins(const struct data *d)
{
	return d->m.tof.n ? d->m.tof.n : 1;
}

static void make_detectors(struct data *d)
{
	struct scan *scan = NULL;
	int *plane = NULL;

	assert_int_equal(scan_create_michelogram(&d->m, FOV, NULL, &scan, &plane, NULL), 0);
	d->n_lors = (size_t)scan->n_u * ANGLES * RADIAL;
	d->detectors = malloc(6 * d->n_lors * sizeof(*d->detectors));
	assert_non_null(d->detectors);
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
	scan_free(scan);
	free(plane);
}

static struct event event_of(const struct data *d, size_t lor, int k)
{
	float b = d->background && d->factors[lor] > 0 ? d->background[(size_t)k * d->n_lors + lor] / d->factors[lor] : 0;

	return (struct event){{(int32_t)(2 * lor), (int32_t)(2 * lor + 1)}, k, b};
}

/* Counts of a box and a hot voxel, not random but rounded in a random way; events in a random order. */
static void make_events(struct data *d, const struct grid *g, double per_mm)
{
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	size_t n = d->n_lors * (size_t)data_bins(d), at = 0;
	struct event *all = malloc(n * sizeof(*all));
	float *x = calloc(grid_size(g), sizeof(*x)), *p;
	struct buf detectors = fixture_upload(dev, d->detectors, 6 * d->n_lors), bx, by, be;
	struct events *a;
	uint32_t seed = 17;

	assert_true(all && x);
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
	assert_int_equal(
		dev->ops->events_create(
			dev,
			&(struct events_spec){.grid = g, .fov_radius = FOV, .tof = d->m.tof, .detectors = &detectors, .batch = 1},
			&a, NULL),
		0);
	assert_int_equal(dev->ops->events_forward(a, &be, &bx, &by, NULL), 0);
	p = fixture_download(&by);
	d->counts = calloc(n, sizeof(*d->counts));
	assert_non_null(d->counts);
	for (size_t i = 0; i < n; i++) {
		double expected = d->factors[i % d->n_lors] * p[i] * per_mm;

		expected += d->background && d->factors[i % d->n_lors] > 0 ? d->background[i] : 0;
		d->counts[i] = (int)(expected + (double)fixture_random(&seed));
		d->n_events += (size_t)d->counts[i];
	}
	d->events = malloc(d->n_events * sizeof(*d->events));
	assert_non_null(d->events);
	for (size_t i = 0; i < n; i++)
		for (int k = 0; k < d->counts[i]; k++)
			d->events[at++] = all[i];
	for (size_t i = d->n_events - 1; i > 0; i--) {
		size_t other = (size_t)((double)fixture_random(&seed) * (double)i);
		struct event e = d->events[i];

		d->events[i] = d->events[other];
		d->events[other] = e;
	}
	dev->ops->events_free(a);
	buf_release(&bx);
	buf_release(&by);
	buf_release(&be);
	buf_release(&detectors);
	device_close(dev);
	free(all);
	free(x);
	free(p);
}

static const struct pet_protocol protocol = {
	.algorithm = ALGORITHM_MLEM,
	.iterations = 6,
	.subsets = 1,
	.matrix = MATRIX,
	.fov_radius = FOV,
	.projector = PROJECTION_JOSEPH,
};

static struct data make_data(bool tof, bool background)
{
	struct data d = {
		.m = {.scanner = {.rings = RINGS, .detectors = 48, .ring_spacing = 8, .radius = 88, .interaction_depth = 2},
		      .n_radial = RADIAL,
		      .n_angles = ANGLES,
		      .angle_offset = 1.7}};
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	struct pet_plan plan;
	uint32_t seed = 3;

	assert_int_equal(michelogram_segments(RINGS, 1, RINGS - 1, &d.m.segments, &d.m.n_segments, NULL), 0);
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
	device_close(dev);
	make_events(&d, &plan.grid, tof ? 0.15 : 0.1);
	return d;
}

static void free_data(struct data *d)
{
	free(d->m.segments);
	free(d->detectors);
	free(d->factors);
	free(d->background);
	free(d->counts);
	free(d->events);
}

/* A list with its readers. */
struct source {
	struct pet_list list;
	struct reader events, lors;
	struct event *all;
};

static struct source *make_source(const struct data *d, bool by_lors)
{
	struct source *s = calloc(1, sizeof(*s));

	assert_non_null(s);
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
		s->all = malloc(d->n_lors * sizeof(*s->all));
		assert_non_null(s->all);
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

static void free_source(struct source *s)
{
	free(s->all);
	free(s);
}

static int run(const struct pet_protocol *p, const struct pet_list *list, struct device *dev, const struct monitor *monitor,
	       float **ret_image, struct pet_list_plan *ret_plan, struct err *err)
{
	struct pet_list_session *s = NULL;
	struct pet_list_report report;
	float *image = NULL;
	int r = pet_list_plan(p, list, dev, ret_plan, err);

	if (r == 0)
		r = pet_list_open(p, ret_plan, list, dev, &s, err);
	if (r == 0)
		r = pet_list_run(s, monitor, &report, err);
	if (r == 0) {
		const int *n = ret_plan->grid.n;

		image = malloc((size_t)n[0] * (size_t)n[1] * (size_t)n[2] * sizeof(*image));
		assert_non_null(image);
		assert_int_equal(report.events, list->n_events);
		r = pet_list_read_slices(s, 0, n[2], image, err);
	}
	pet_list_close(s);
	if (r == 0)
		*ret_image = image;
	else
		free(image);
	return r;
}

static float *image_of(const struct pet_protocol *p, const struct pet_list *list, struct device *dev,
		       struct pet_list_plan *ret_plan)
{
	struct err err = {0};
	float *image = NULL;

	if (run(p, list, dev, NULL, &image, ret_plan, &err) < 0)
		fail_msg("%s", err.msg);
	return image;
}

static size_t voxels_of(const struct pet_list_plan *plan)
{
	return (size_t)plan->grid.n[0] * (size_t)plan->grid.n[1] * (size_t)plan->grid.n[2];
}

static double difference(const float *a, const float *b, size_t n)
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

/* MLEM of the histogram, with the same matrix: x <- x / S A'(y / (A x + b / m)), over the bins with m > 0. */
static float *histogram_mlem(const struct data *d, const struct pet_list_plan *plan, int iterations)
{
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	const struct device_ops *v = dev->ops;
	const struct grid *g = &plan->grid;
	size_t n = d->n_lors * (size_t)data_bins(d), n_x = grid_size(g), n_z = (size_t)g->n[2];
	struct event *all = malloc(n * sizeof(*all));
	float *q = malloc(n * sizeof(*q)), *x = malloc(n_x * sizeof(*x)), *s, *num, *image;
	struct buf detectors = fixture_upload(dev, d->detectors, 6 * d->n_lors), be, bq, bx, bs, bn;
	struct events *a;
	double sum = 0;

	assert_true(all && q && x);
	for (size_t i = 0; i < n; i++) {
		all[i] = event_of(d, i % d->n_lors, (int)(i / d->n_lors));
		q[i] = d->factors[i % d->n_lors];
	}
	be = fixture_upload(dev, (const float *)(const void *)all, n * EVENT_FLOATS);
	bq = fixture_upload(dev, q, n);
	bx = fixture_upload(dev, NULL, n_x);
	bs = fixture_upload(dev, NULL, n_x);
	bn = fixture_upload(dev, NULL, n_x);
	v->events_create(dev,
			 &(struct events_spec){
				 .grid = g, .fov_radius = plan->fov_radius, .tof = d->m.tof, .detectors = &detectors, .batch = 1},
			 &a, NULL);
	v->fill(&bs, 0, NULL);
	assert_int_equal(v->events_back(a, &be, &bq, &bs, NULL), 0); /* the sum over all bins, TOF bins too */
	s = fixture_download(&bs);
	for (size_t i = 0; i < n_x; i++) {
		size_t column = i / grid_column(g);
		double px = g->lo[0] + ((double)(column % MATRIX) + 0.5) * g->h[0];
		double py = g->lo[1] + ((double)(column / MATRIX) + 0.5) * g->h[1];

		x[i] = px * px + py * py < FOV * FOV && i % grid_column(g) < n_z && s[i] > 0;
		sum += x[i] * s[i];
	}
	for (size_t i = 0; i < n_x; i++)
		x[i] *= (float)((double)d->n_events / sum);
	for (int it = 0; it < iterations; it++) {
		float *p;

		v->upload(&bx, x, NULL);
		v->events_forward(a, &be, &bx, &bq, NULL);
		p = fixture_download(&bq);
		for (size_t i = 0; i < n; i++)
			q[i] = d->counts[i] && p[i] + all[i].add > 1e-9f ? (float)d->counts[i] / (p[i] + all[i].add) : 0;
		free(p);
		v->upload(&bq, q, NULL);
		v->fill(&bn, 0, NULL);
		v->events_back(a, &be, &bq, &bn, NULL);
		num = fixture_download(&bn);
		for (size_t i = 0; i < n_x; i++)
			x[i] = x[i] > 0 ? x[i] * num[i] / s[i] : 0;
		free(num);
	}
	image = malloc(voxels_of(plan) * sizeof(*image));
	assert_non_null(image);
	for (size_t k = 0; k < n_z; k++)
		for (size_t i = 0; i < MATRIX * MATRIX; i++)
			image[k * MATRIX * MATRIX + i] = x[i * grid_column(g) + k];
	v->events_free(a);
	buf_release(&detectors);
	buf_release(&be);
	buf_release(&bq);
	buf_release(&bx);
	buf_release(&bs);
	buf_release(&bn);
	device_close(dev);
	free(all);
	free(q);
	free(x);
	free(s);
	return image;
}

/* One subset: list mode is the reconstruction of the histogram. */
static void equals_histogram(void **state)
{
	(void)state;
	for (int which = 0; which < 4; which++) {
		struct data d = make_data(which & 1, which & 2);
		struct source *s = make_source(&d, true);
		struct device *dev = fixture_device(which ? FIXTURE_CPU : FIXTURE_POISON, 2);
		struct pet_list_plan plan;
		float *image = image_of(&protocol, &s->list, dev, &plan), *expected;

		assert_true(plan.resident);
		expected = histogram_mlem(&d, &plan, protocol.iterations);
		print_message("%zu events, difference %g\n", d.n_events, difference(image, expected, voxels_of(&plan)));
		assert_true(difference(image, expected, voxels_of(&plan)) < IMAGE_TOL);
		free(image);
		free(expected);
		device_close(dev);
		free_source(s);
		free_data(&d);
	}
}

/* The sinogram session with the histogram of the events gives the same image, its sensitivity by sinograms included. */
static void equals_sinogram(void **state)
{
	(void)state;
	for (int tof = 0; tof < 2; tof++) {
		struct data d = make_data(tof, false);
		struct source *s = make_source(&d, false);
		struct device *dev = fixture_device(FIXTURE_CPU, 2);
		struct pet_list_plan plan;
		float *image = image_of(&protocol, &s->list, dev, &plan), *y, *expected;
		size_t n = d.n_lors * (size_t)data_bins(&d);
		struct pet_plan bins;
		struct err err = {0};

		y = malloc(n * sizeof(*y));
		expected = malloc(voxels_of(&plan) * sizeof(*expected));
		assert_true(y && expected);
		for (size_t i = 0; i < n; i++)
			y[i] = (float)d.counts[i];
		assert_int_equal(pet_plan(&protocol, &d.m, PET_FACTORS_SHARED, false, dev, &bins, &err), 0);
		assert_memory_equal(bins.grid.n, plan.grid.n, sizeof(plan.grid.n));
		if (pet_reconstruct(&protocol, &bins, &d.m, dev, NULL, y, d.factors, NULL, NULL, expected, NULL, &err) < 0)
			fail_msg("%s", err.msg);
		print_message("difference %g\n", difference(image, expected, voxels_of(&plan)));
		assert_true(difference(image, expected, voxels_of(&plan)) < IMAGE_TOL);
		free(image);
		free(expected);
		free(y);
		device_close(dev);
		free_source(s);
		free_data(&d);
	}
}

/* Every event four times, one after the other: each of four subsets has all events, and an update is that of one subset times 4.
 */
static void subsets(void **state)
{
	struct data d = make_data(true, false);
	struct source *s = make_source(&d, true);
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct event *four = malloc(4 * d.n_events * sizeof(*four));
	struct pet_protocol p = protocol;
	struct pet_list_plan plan;
	float *expected, *image;

	(void)state;
	assert_non_null(four);
	p.iterations = 8;
	expected = image_of(&p, &s->list, dev, &plan);
	for (size_t i = 0; i < 4 * d.n_events; i++)
		four[i] = d.events[i / 4];
	s->events = (struct reader){four, 4 * d.n_events, 0, 1001, 0, 0};
	s->list.n_events = 4 * d.n_events;
	p.algorithm = ALGORITHM_OSEM;
	p.iterations = 2;
	p.subsets = 4;
	for (int streamed = 0; streamed < 2; streamed++) {
		p.memory_limit = streamed ? plan.bytes_total - 2 * d.n_events * sizeof(struct event) : 0;
		image = image_of(&p, &s->list, dev, &plan);
		assert_int_equal(plan.resident, !streamed);
		for (size_t i = 0; i < voxels_of(&plan); i++)
			image[i] /= 4;
		assert_true(difference(image, expected, voxels_of(&plan)) < IMAGE_TOL);
		free(image);
	}
	free(expected);
	free(four);
	device_close(dev);
	free_source(s);
	free_data(&d);
}

/* A session that reads the events again for every update gives the image of one that keeps them; it uses what it planned. */
static void streamed(void **state)
{
	struct data d = make_data(true, true);
	struct source *s = make_source(&d, true);
	struct device *dev = fixture_device(FIXTURE_POISON, 2);
	struct pet_protocol p = protocol;
	struct pet_list_plan resident, plan;
	float *kept, *image;

	(void)state;
	p.algorithm = ALGORITHM_OSEM;
	p.iterations = 2;
	p.subsets = 3;
	kept = image_of(&p, &s->list, dev, &resident);
	p.memory_limit = resident.bytes_total - d.n_events * sizeof(struct event) / 2;
	image = image_of(&p, &s->list, dev, &plan);
	assert_true(resident.resident && !plan.resident && plan.bytes_total <= p.memory_limit);
	assert_true(difference(image, kept, voxels_of(&plan)) < 1e-5);
	assert_int_equal(device_poison_check(dev, NULL), 0);
	p.memory_limit = 1000;
	assert_int_equal(pet_list_plan(&p, &s->list, dev, &plan, NULL), -ENOMEM);
	free(kept);
	free(image);
	device_close(dev);
	free_source(s);
	free_data(&d);
}

static void threads(void **state)
{
	struct data d = make_data(true, true);
	struct source *s = make_source(&d, true);
	struct pet_protocol p = protocol;
	struct pet_list_plan plan;
	float *one = NULL;

	(void)state;
	p.psf = 6;
	p.postfilter = 5;
	for (int n = 1; n <= 3; n++) {
		struct device *dev = fixture_device(FIXTURE_CPU, n);
		float *image = image_of(&p, &s->list, dev, &plan);

		if (one)
			assert_memory_equal(one, image, voxels_of(&plan) * sizeof(*one));
		device_close(dev);
		if (n > 1)
			free(image);
		else
			one = image;
	}
	free(one);
	free_source(s);
	free_data(&d);
}

/* A sample of the pairs gives nearly the same sensitivity: the image is that of all pairs within a few percent. */
static void sampled_pairs(void **state)
{
	struct data d = make_data(false, false);
	struct source *s = make_source(&d, true);
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct pet_list_pairs pairs = {.n = 0, .stride = 1, .seed = 5};
	struct pet_protocol p = protocol;
	struct pet_list_plan plan;
	float *few = malloc(3 * 480 * sizeof(*few)), *all, *image;
	struct event events[500];
	double sum[2] = {0, 0};

	(void)state;
	assert_non_null(few);
	for (int i = 0; i < 480; i++) { /* 8 rings of 60 */
		double angle = 2 * M_PI * (i % 60) / 60;

		few[3 * i] = (float)(90 * cos(angle));
		few[3 * i + 1] = (float)(90 * sin(angle));
		few[3 * i + 2] = (float)(4 * (i / 60) - 14);
	}
	for (int i = 0; i < 500; i++)
		events[i] = (struct event){{i % 60 + 60 * (i % 8), (i % 60 + 28 + i % 5) % 60 + 60 * (i % 7)}, 0, 0};
	p.iterations = 1;
	pairs.n = 480;
	s->events = (struct reader){events, 500, 0, 300, 0, 0};
	s->list.n_events = 500;
	s->list.detectors = few;
	s->list.n_detectors = 480;
	s->list.lors = pet_list_pairs_reader(&pairs);
	s->list.n_lors = 0;
	all = image_of(&p, &s->list, dev, &plan);
	pairs.stride = 7;
	s->list.lors_scale = 7;
	image = image_of(&p, &s->list, dev, &plan);
	for (size_t i = 0; i < voxels_of(&plan); i++) {
		sum[0] += all[i];
		sum[1] += image[i];
	}
	assert_near(sum[1] / sum[0], 1, 0.03);
	assert_true(difference(image, all, voxels_of(&plan)) > 0);
	free(all);
	free(image);
	free(few);
	device_close(dev);
	free_source(s);
	free_data(&d);
}

static int copy_volume(const struct linop *op, const struct buf *x, struct buf *ret, struct err *err)
{
	return op->dev->ops->copy(x, ret, err);
}

static void free_op(struct linop *op)
{
	free(op);
}

/* After an update of MLEM without background, the model has as many counts as there are events: sum over LORs of m a D G x. */
static void resolution_model(void **state)
{
	struct data d = make_data(false, false);
	struct source *s = make_source(&d, true);
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct pet_protocol p = protocol;
	struct pet_list_plan plan;
	struct buf work[PSF_WORK_VOLUMES], x, seen, detectors, lors, y;
	struct linop *volume = calloc(1, sizeof(*volume)), *psf = NULL;
	struct events *a;
	float *image, *host, *lines;
	double counts = 0;
	size_t n;

	(void)state;
	p.psf = 9;
	image = image_of(&p, &s->list, dev, &plan);
	n = grid_size(&plan.grid);
	host = calloc(n, sizeof(*host));
	assert_true(host && volume);
	for (size_t i = 0; i < voxels_of(&plan); i++)
		host[i % (MATRIX * MATRIX) * grid_column(&plan.grid) + i / (MATRIX * MATRIX)] = image[i];
	*volume = (struct linop){
		.n_in = n, .n_out = n, .dev = dev, .apply = copy_volume, .adjoint = copy_volume, .destroy = free_op};
	assert_int_equal(psf_work_alloc(dev, &plan.grid, p.psf, work, NULL), 0);
	assert_int_equal(psf_create(volume, &plan.grid, p.psf, work, &psf, NULL), 0);
	x = fixture_upload(dev, host, n);
	seen = fixture_upload(dev, NULL, n);
	assert_int_equal(psf->apply(psf, &x, &seen, NULL), 0);
	detectors = fixture_upload(dev, d.detectors, 6 * d.n_lors);
	lors = fixture_upload(dev, (const float *)(const void *)s->all, d.n_lors * EVENT_FLOATS);
	y = fixture_upload(dev, NULL, d.n_lors);
	dev->ops->events_create(
		dev, &(struct events_spec){.grid = &plan.grid, .fov_radius = FOV, .detectors = &detectors, .batch = 1}, &a, NULL);
	assert_int_equal(dev->ops->events_forward(a, &lors, &seen, &y, NULL), 0);
	lines = fixture_download(&y);
	for (size_t i = 0; i < d.n_lors; i++)
		counts += d.factors[i] * lines[i];
	assert_near(counts / (double)d.n_events, 1, 1e-4);
	dev->ops->events_free(a);
	linop_free(psf);
	psf_work_release(work);
	buf_release(&x);
	buf_release(&seen);
	buf_release(&detectors);
	buf_release(&lors);
	buf_release(&y);
	free(host);
	free(image);
	free(lines);
	device_close(dev);
	free_source(s);
	free_data(&d);
}

static void refuse(struct source *s, const struct pet_protocol *p, int code, const char *text)
{
	struct device *dev = fixture_device(FIXTURE_POISON, 1);
	struct pet_list_plan plan;
	struct err err = {0};
	float *image = NULL;

	assert_int_equal(run(p, &s->list, dev, NULL, &image, &plan, &err), -code);
	if (!strstr(err.msg, text))
		fail_msg("%s", err.msg);
	assert_null(image);
	device_close(dev);
}

static bool always(void *ctx)
{
	(void)ctx;
	return true;
}

static void errors(void **state)
{
	struct data d = make_data(true, false);
	struct source *s = make_source(&d, true);
	struct pet_protocol p = protocol;
	const struct event good = d.events[100];
	struct monitor cancel = {.cancelled = always};
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	struct pet_list_plan plan;
	float *image = NULL;

	(void)state;
	d.events[100].detector[1] = (int32_t)(2 * d.n_lors);
	refuse(s, &p, EINVAL, "event 100 of detectors");
	d.events[100].detector[1] = -1;
	refuse(s, &p, EINVAL, "event 100 of detectors");
	d.events[100] = good;
	d.events[100].tof = 7;
	refuse(s, &p, EINVAL, "event 100 in TOF bin 7");
	d.events[100] = good;
	d.events[100].add = 0.1f;
	refuse(s, &p, EINVAL, "event 100 with a background");
	d.events[100] = good;
	d.events[100].add = NAN;
	refuse(s, &p, EINVAL, "event 100 with a background");
	d.events[100] = good;
	s->list.n_events++;
	refuse(s, &p, EINVAL, "only");
	s->list.n_events -= 2;
	refuse(s, &p, EINVAL, "more than the announced");
	s->list.n_events = 0;
	refuse(s, &p, EDOM, "no events");
	s->list.n_events = d.n_events;
	s->events.fail_at = 3;
	refuse(s, &p, EIO, "the reader fails");
	s->events.fail_at = 0;
	s->all[5].add = -1;
	refuse(s, &p, EINVAL, "LOR");
	for (size_t i = 0; i < d.n_lors; i++)
		s->all[i].add = 0;
	refuse(s, &p, EDOM, "no LOR with a factor above 0");
	p.algorithm = ALGORITHM_FBP;
	refuse(s, &p, EINVAL, "algorithm");
	p.algorithm = ALGORITHM_BSREM;
	refuse(s, &p, EINVAL, "algorithm");
	p = protocol;
	p.fov_radius = 500;
	refuse(s, &p, EINVAL, "fov_radius");
	assert_int_equal(run(&protocol, &s->list, dev, &cancel, &image, &plan, NULL), -ECANCELED);
	device_close(dev);
	free_source(s);
	free_data(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equals_histogram), cmocka_unit_test(equals_sinogram), cmocka_unit_test(subsets),
		cmocka_unit_test(streamed),	    cmocka_unit_test(threads),	       cmocka_unit_test(sampled_pairs),
		cmocka_unit_test(resolution_model), cmocka_unit_test(errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
