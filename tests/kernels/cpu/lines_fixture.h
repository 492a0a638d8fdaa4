/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of parallel beams of many shapes, and a function that runs a test with each of them on every device. */
#ifndef TOMONODE_TESTS_KERNELS_LINES_FIXTURE_H
#define TOMONODE_TESTS_KERNELS_LINES_FIXTURE_H

#include "kernels/cpu/cpu.h"
#include "kernels/lines.h"
#include "tests/kernels/buffers.h"
#include "tests/test.h"

#define TOL 1e-5 /* of the largest value */
#define VIEWS 10
#define MOST_BINS 256
#define MOST_SLICES 64

static const double angles[VIEWS] = {0, 45, 90, 17.3, 135, 161, 70, 89.9, 100, 118};

struct setup {
	const char *name;
	int n[3];
	double h[2], lo[2]; /* lo: of the middle of the grid */
	int bins;
	double bin, offset, fov;
	bool z_fastest;
};

static const struct setup setups[] = {
	{"one slice, x fastest", {31, 28, 1}, {1, 1}, {0, 0}, 35, 1, 0.1, 15, false},
	{"one slice, z fastest, a large field", {20, 23, 1}, {1.5, 1.2}, {2, -1.1}, 41, 1, 0, 40, true},
	{"five slices, a small field", {24, 25, 5}, {1, 1.1}, {0, 0}, 29, 1.3, -0.2, 9, true},
	{"64 slices, rays in faces", {16, 16, 64}, {2, 2}, {0, 0}, 23, 2, 0, 24, true},
	{"rays far apart", {30, 17, 21}, {0.8, 0.9}, {0, 0}, 9, 5.1, 0.3, 21, true},
	{"rays close together", {19, 19, 1}, {2, 2}, {0, 0}, 120, 0.31, 0, 18, false},
	{"two pixels", {2, 2, 3}, {3, 4}, {0, 0}, 9, 1, 0, 5, true},
	{"one slice, rays far apart", {37, 40, 1}, {0.6, 0.9}, {1, 0}, 15, 2.9, 0.23, 17, false},
	{"threads share passes", {180, 170, 1}, {1, 1}, {0, 0}, 251, 1, 0, 124, false},
};
#define N_SETUPS (sizeof(setups) / sizeof(setups[0]))

static const enum projection_model models[] = {PROJECTION_PATHS, PROJECTION_JOSEPH, PROJECTION_SAMPLED};
#define N_MODELS (sizeof(models) / sizeof(models[0]))

struct fixture {
	const struct setup *setup;
	struct device *dev;
	const struct device_ops *v;
	struct grid grid;
	struct scan scan;
	struct scan_view views[VIEWS];
	struct scan_plane planes[MOST_SLICES];
	double radius[MOST_BINS];
	double sampling;
	size_t n_in, n_out, pixels;
};

static inline void set_up(struct fixture *f, const struct setup *s, struct device *dev)
{
	f->setup = s;
	f->dev = dev;
	f->v = dev->ops;
	f->sampling = 0.17;
	f->grid = (struct grid){.n = {s->n[0], s->n[1], s->n[2]},
				.h = {s->h[0], s->h[1], 2},
				.lo = {s->lo[0] - 0.5 * s->n[0] * s->h[0], s->lo[1] - 0.5 * s->n[1] * s->h[1], -3},
				.z_fastest = s->z_fastest};
	for (int u = 0; u < s->n[2]; u++)
		f->planes[u] = (struct scan_plane){-3 + 2 * (u + 0.5), 0};
	for (int i = 0; i < s->bins; i++)
		f->radius[i] = (i - s->bins / 2) * s->bin + s->offset;
	for (int i = 0; i < VIEWS; i++)
		f->views[i] = (struct scan_view){
			.turn = {angles[i] == 90 ? 0 : cos(angles[i] * M_PI / 180), sin(angles[i] * M_PI / 180)}};
	f->scan = (struct scan){.kind = SCAN_PARALLEL,
				.n_u = s->n[2],
				.n_v = s->bins,
				.n_views = VIEWS,
				.views = f->views,
				.planes = f->planes,
				.radius = f->radius,
				.ring_radius = s->fov,
				.fov_radius = s->fov};
	f->n_in = grid_size(&f->grid);
	f->n_out = scan_view_size(&f->scan) * VIEWS;
	f->pixels = (size_t)s->n[0] * (size_t)s->n[1];
}

static inline struct projection_spec spec_for(const struct fixture *f, enum projection_model model, bool sweeps)
{
	return (struct projection_spec){
		.model = model, .scan = &f->scan, .n_views = VIEWS, .grid = &f->grid, .sampling = f->sampling, .sweeps = sweeps};
}

static inline struct projection *create_for(struct fixture *f, enum projection_model model, bool sweeps)
{
	struct projection_spec spec = spec_for(f, model, sweeps);

	return fixture_projection(f->dev, &spec);
}

static inline struct projection *create(struct fixture *f, enum projection_model model)
{
	return create_for(f, model, model != PROJECTION_EXACT);
}

static inline size_t voxel(const struct fixture *f, size_t pixel, int u)
{
	return pixel * lines_column(&f->grid) + (size_t)u;
}

/* Return a volume of random values; the padding has the value `padding`. */
static inline float *volume(const struct fixture *f, uint32_t seed, float padding)
{
	float *x = take_memory(f->n_in * sizeof(*x));

	for (size_t i = 0; i < f->n_in; i++)
		x[i] = padding;
	for (size_t i = 0; i < f->pixels; i++)
		for (int u = 0; u < f->scan.n_u; u++)
			x[voxel(f, i, u)] = fixture_random(&seed) - 0.3f;
	return x;
}

static inline void near(const float *got, const double *expect, size_t n, double tol)
{
	double most = 0;

	for (size_t i = 0; i < n; i++)
		most = fmax(most, fabs(expect[i]));
	for (size_t i = 0; i < n; i++)
		if (!(fabs(got[i] - expect[i]) <= tol * most))
			fail_msg("value %zu of %zu: %.9g, not %.9g (largest %g)", i, n, (double)got[i], expect[i], most);
}

typedef void lines_test(struct fixture *f);

static inline void on_device(int which, int threads, const struct cpu_rows *rows, const struct setup *s, lines_test *test)
{
	TEST_BLOCK;
	struct device *dev = fixture_device(which, threads);
	struct fixture *f = take_zeros(1, sizeof(*f));

	if (rows)
		cpu_state(dev)->rows = rows;
	set_up(f, s, dev);
	test(f);
}

/* Run a test on the poison device and with each instruction set. */
static inline void everywhere(lines_test *test)
{
	for (size_t i = 0; i < N_SETUPS; i++) {
		on_device(FIXTURE_POISON, 3, NULL, &setups[i], test);
		for (int set = 0; cpu_rows_at(set) && i + 1 < N_SETUPS; set++)
			on_device(FIXTURE_CPU, 2, cpu_rows_at(set), &setups[i], test);
	}
}

#endif
