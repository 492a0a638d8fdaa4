/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of parallel rays: small scans and grids, on every CPU device. Include after cmocka.h. */
#ifndef TOMONODE_TESTS_KERNELS_PARALLEL_H
#define TOMONODE_TESTS_KERNELS_PARALLEL_H

#include "kernels/cpu/cpu_paths.h"
#include "tests/kernels/buffers.h"
#include "tests/test.h"

#define MOST_PLANES 512
#define MOST_BINS 64
#define VIEWS 7

/* A scan: planes of rise 0 at a distance of pitch[0], then planes of rise +-rises at a distance of pitch[1]; each set has as many
 * planes as fit into `height`. Lengths in mm. */
struct setup {
	const char *name;
	double height, pitch[2], rise, rises;
	double ring, fov, bin;
	int bins;
	struct grid grid;
	bool inside; /* no ray leaves the grid through its lower or upper face */
	struct scan_tof tof;
};

static const struct setup setups[] = {
	{"as GE has them", 33, {3.27, 6.54}, 3.27, 5, 120, 90, 4.1, 47, {{41, 39, 11}, {4.5, 4.7, 3.27}, {0, 0, 0}, 1}, true},
	{"planes a slice apart", 78, {2, 2}, 7, 3, 150, 80, 3, 55, {{32, 33, 39}, {5, 5, 2}, {0, 0, 0}, 1}, true},
	{"many planes", 150, {2, 4}, 10, 2, 150, 60, 6, 23, {{24, 25, 75}, {5, 5, 2}, {0, 0, 0}, 1}, true},
	{"slices stretched", 33, {3.27, 6.54}, 3.27, 5, 120, 90, 4.1, 47, {{41, 39, 11}, {4.5, 4.7, 3.34}, {0, 0, 0}, 1}, true},
	{"thin slices", 30, {3, 6}, 6, 2, 70, 60, 3.7, 35, {{31, 30, 101}, {4, 4.1, 0.3}, {0, 0, 0}, 1}, true},
	{"thick slices", 48, {2, 2}, 6, 2, 70, 60, 3.7, 35, {{31, 30, 12}, {4, 4.1, 4}, {0, 0, 0}, 1}, true},
	{"a volume too short", 60, {3, 6}, 10, 3, 80, 70, 5, 31, {{30, 31, 9}, {4.7, 4.6, 3}, {0, 0, 0}, 1}, false},
	{"a small volume beside the axis",
	 40,
	 {2, 4},
	 8,
	 2,
	 80,
	 70,
	 5,
	 31,
	 {{13, 9, 14}, {4.7, 4.6, 2}, {4.4, -11, 5}, 1},
	 false},
	{"one slice", 3, {3, 6}, 3, 2, 80, 70, 5, 31, {{30, 31, 1}, {4.7, 4.6, 3}, {0, 0, 0}, 1}, false},
	{"time of flight",
	 33,
	 {3.27, 6.54},
	 3.27,
	 5,
	 120,
	 90,
	 8.2,
	 23,
	 {{41, 39, 11}, {4.5, 4.7, 3.27}, {0, 0, 0}, 1},
	 true,
	 {13, 16, 11.5}},
	{"time of flight, planes a slice apart",
	 78,
	 {2, 2},
	 14,
	 1,
	 150,
	 80,
	 19,
	 9,
	 {{32, 33, 39}, {5, 5, 2}, {0, 0, 0}, 1},
	 true,
	 {8, 12, 14}},
	{"narrow TOF bins, thin slices",
	 15,
	 {3, 6},
	 3,
	 2,
	 70,
	 60,
	 7.4,
	 17,
	 {{31, 30, 51}, {4, 4.1, 0.3}, {0, 0, 0}, 1},
	 true,
	 {27, 3, 7}},
	{"TOF bins of a part of the field of view, a volume too short",
	 60,
	 {3, 6},
	 10,
	 3,
	 80,
	 70,
	 10,
	 15,
	 {{30, 31, 9}, {4.7, 4.6, 3}, {0, 0, 0}, 1},
	 false,
	 {4, 17, 8}},
	{"one wide TOF bin, a small volume beside the axis",
	 40,
	 {2, 4},
	 8,
	 2,
	 80,
	 70,
	 5,
	 31,
	 {{13, 9, 14}, {4.7, 4.6, 2}, {4.4, -11, 5}, 1},
	 false,
	 {1, 60, 5}},
};
#define N_SETUPS (sizeof(setups) / sizeof(setups[0]))

static const enum projection_model models[] = {PROJECTION_EXACT, PROJECTION_PATHS, PROJECTION_JOSEPH};

static const double angles[VIEWS] = {0, 45, 90, 17, 71.3, 135, 160};

struct fixture {
	struct device *dev;
	const struct device_ops *v;
	struct grid grid;
	struct scan scan;
	struct scan_view views[VIEWS];
	struct scan_plane planes[MOST_PLANES];
	double radius[MOST_BINS];
	size_t n_in, n_out;
	int first; /* index of the first model to test: 1 omits the ray walk, which is the same for all instruction sets */
};

static inline int add_segment(struct scan_plane *plane, double height, double pitch, double rise)
{
	int n = (int)floor((height - 2 * fabs(rise)) / pitch + 1e-9);

	for (int i = 0; i < n; i++)
		plane[i] = (struct scan_plane){(i - 0.5 * (n - 1)) * pitch, rise};
	return n > 0 ? n : 0;
}

/* Create the scan and the grid of a setup, whose grid.lo is the position of the grid's middle. Some bins are outside the field of
 * view; one ends just inside it. */
static inline void set_up(struct fixture *f, const struct setup *s, struct device *dev)
{
	int n = add_segment(f->planes, s->height, s->pitch[0], 0);

	for (int k = 1; k <= (int)s->rises; k++)
		for (int sign = 1; sign >= -1; sign -= 2)
			n += add_segment(f->planes + n, s->height, s->pitch[1], sign * k * s->rise);
	assert_in_range(n, 1, MOST_PLANES);
	f->grid = s->grid;
	for (int c = 0; c < 3; c++)
		f->grid.lo[c] -= 0.5 * f->grid.n[c] * f->grid.h[c];
	for (int v = 0; v < s->bins; v++)
		f->radius[v] = (v - s->bins / 2) * s->bin;
	for (int v = 1; v < s->bins; v++)
		if (f->radius[v - 1] < s->fov - 0.01 && f->radius[v] >= s->fov)
			f->radius[v] = s->fov - 0.001;
	/* exactly 90 degrees: a ray in the face between voxels must belong to the voxels on one side */
	for (int i = 0; i < VIEWS; i++)
		f->views[i] = (struct scan_view){
			.turn = {angles[i] == 90 ? 0 : cos(angles[i] * M_PI / 180), sin(angles[i] * M_PI / 180)}};
	f->scan = (struct scan){.kind = SCAN_PARALLEL,
				.n_u = n,
				.n_v = s->bins,
				.n_views = VIEWS,
				.views = f->views,
				.planes = f->planes,
				.radius = f->radius,
				.ring_radius = s->ring,
				.fov_radius = s->fov,
				.tof = s->tof};
	f->dev = dev;
	f->v = dev->ops;
	f->n_in = grid_size(&f->grid);
	f->n_out = scan_view_size(&f->scan) * VIEWS;
}

static inline struct projection *create(struct fixture *f, enum projection_model model, int tile)
{
	struct projection_spec spec = {
		.model = model, .scan = &f->scan, .n_views = VIEWS, .grid = &f->grid, .tile = {tile, tile}};

	return fixture_projection(f->dev, &spec);
}

static inline bool is_padding(const struct grid *g, size_t i)
{
	return g->z_fastest && i % grid_column(g) >= (size_t)g->n[2];
}

/* Return a volume of random values in lo..hi (all equal if lo == hi); the padding is NaN. */
static inline struct buf volume(struct fixture *f, uint32_t seed, float lo, float hi)
{
	float *host = take_memory(f->n_in * sizeof(*host));

	for (size_t i = 0; i < f->n_in; i++)
		host[i] = is_padding(&f->grid, i) ? NAN : fixture_uniform(&seed, lo, hi);
	return fixture_upload(f->dev, host, f->n_in);
}

static inline bool exists(const struct fixture *f, size_t bin)
{
	size_t ray = (size_t)f->scan.n_u * (size_t)scan_ray_bins(&f->scan);

	return scan_reach(&f->scan, (int)(bin / ray % (size_t)f->scan.n_v)) > 0;
}

/* Return bins of random values; NaN in bins without a ray. */
static inline struct buf sinogram(struct fixture *f, uint32_t seed, float lo, float hi)
{
	float *host = take_memory(f->n_out * sizeof(*host));

	for (size_t i = 0; i < f->n_out; i++)
		host[i] = exists(f, i) ? fixture_uniform(&seed, lo, hi) : NAN;
	return fixture_upload(f->dev, host, f->n_out);
}

static inline float *forward(struct fixture *f, struct projection *a, const struct buf *x)
{
	struct buf y = fixture_upload(f->dev, NULL, f->n_out);

	assert_int_equal(f->v->forward(a, x, false, &y, NULL), 0);
	return fixture_download(&y);
}

static inline float *back(struct fixture *f, struct projection *a, const struct buf *y)
{
	struct buf x = fixture_upload(f->dev, NULL, f->n_in);

	assert_int_equal(f->v->adjoint(a, y, false, &x, NULL), 0);
	return fixture_download(&x);
}

typedef void parallel_test(struct fixture *f, const struct setup *s);

/* Run a test with one setup on one device. rows: the loops to use; NULL: those of the device. */
static inline void on_device(int which, int threads, const struct cpu_rows *rows, const struct setup *s, int first,
			     parallel_test *test)
{
	TEST_BLOCK;
	struct device *dev = fixture_device(which, threads);
	struct fixture *f = take_memory(sizeof(*f));

	if (rows)
		cpu_state(dev)->rows = rows;
	set_up(f, s, dev);
	f->first = first;
	test(f, s);
}

/* Run a test for every setup on the poison device, which says if memory was overwritten. */
static inline void once(parallel_test *test)
{
	for (size_t i = 0; i < N_SETUPS; i++)
		on_device(FIXTURE_POISON, 2, NULL, &setups[i], 0, test);
}

/* Run a test on the poison device, and, without the ray walk, with each instruction set. */
static inline void everywhere(parallel_test *test)
{
	once(test);
	for (size_t i = 0; i < N_SETUPS; i++)
		for (int set = 0; cpu_rows_at(set); set++)
			on_device(FIXTURE_CPU, 1, cpu_rows_at(set), &setups[i], 1, test);
}

#endif
