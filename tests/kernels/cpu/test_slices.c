/* SPDX-License-Identifier: Apache-2.0 */
/* The operators of a DBT scan with random detectors, grids, ratios of bins to voxels, tiles and numbers of threads, with each
 * instruction set: slices compared with their definition in kernels/slice_map.h, the ray walk with kernels/ray_walk.h, both in
 * double, forward and back, one and two vectors at once; adjoint; equal bits for any number of threads. */
#include "kernels/cpu/cpu.h"
#include "kernels/ray_walk.h"
#include "kernels/slice_map.h"
#include "tests/kernels/buffers.h"
#include "tests/kernels/draw.h"
#include "tests/test.h"

#define GAP_TOL 1e-5
#define VIEWS 3

/* The positions of the 16 results of a block are in float32: the scale, its multiple and the sum with the block's first position
 * are rounded, each to 2^-24 of up to 16 voxels or 16 bins, whichever are more. That is the error of a weight, of at most two
 * axes. Sums over slices, taps and views: 4e-6. Relative to the largest value, or to what one voxel or bin of 1 with a weight of
 * 1 gives. */
static double tolerance_of(const struct scan *s, const struct grid *g)
{
	return 4 * 16 * fmax(1, s->h[0] / g->h[0]) * 0x1p-24 + 4e-6;
}

struct random_scan {
	struct scan_view views[VIEWS];
	struct scan scan;
	struct grid grid;
	size_t n_in, n_out;
	int tile[2];
};

/* Random bins, voxels and source, the detector shifted, or turning with the source if `posed`. */
static void draw_scan(uint64_t *seed, bool posed, struct random_scan *r)
{
	double pitch = draw(seed, 0.2, 2), turn, c, s;
	int n_u = draw_size(seed, posed ? 2 : 1, 70), n_v = draw_size(seed, posed ? 2 : 1, 20);

	*r = (struct random_scan){.grid = {.n = {draw_size(seed, 1, 70), draw_size(seed, 1, 20), draw_int(seed, 1, 5)}},
				  .tile = {draw_int(seed, 0, 40), draw_int(seed, 0, 12)}};
	for (int i = 0; i < 2; i++) {
		int n = i ? n_v : n_u;

		r->grid.h[i] = pitch / draw_ratio(seed, 0.22, 5);
		/* the grid's middle is over the detector */
		r->grid.lo[i] = (i ? 0 : 0.5 * n * pitch) - r->grid.n[i] * r->grid.h[i] * draw(seed, 0.3, 0.7);
	}
	r->grid.h[2] = draw(seed, 0.5, 3);
	r->grid.lo[2] = draw(seed, 15, 40);
	for (int i = 0; i < VIEWS; i++) {
		struct scan_view *view = &r->views[i];
		double first = (0.5 - 0.5 * n_v) * pitch;

		turn = draw(seed, -0.1, 0.1);
		c = cos(turn);
		s = sin(turn);
		*view = (struct scan_view){{draw(seed, -20, 20), 20 * turn, draw(seed, 300, 700)},
					   {draw(seed, -1, 1), draw(seed, -1, 1)}};
		view->posed = posed;
		view->pose = (struct scan_pose){{0.5 * pitch, first * c, -first * s}, {pitch, 0, 0}, {0, pitch * c, -pitch * s}};
	}
	r->scan = (struct scan){SCAN_DBT, n_u, n_v, VIEWS, {pitch, pitch}, {0, -0.5 * n_v * pitch}, r->views};
	r->n_in = grid_size(&r->grid);
	r->n_out = VIEWS * scan_view_size(&r->scan);
}

static float *random_floats(uint64_t *seed, size_t n)
{
	float *x = take_memory(n * sizeof(*x));

	for (size_t i = 0; i < n; i++)
		x[i] = (float)draw(seed, 0.1, 1);
	return x;
}

/* Both directions of an operator: y = A x, and x = A'y. */
struct images {
	double *y, *x;
};

static void add_entry(const struct images *to, const float *x, const float *y, size_t bin, size_t voxel, double weight)
{
	to->y[bin] += weight * (double)x[voxel];
	to->x[voxel] += weight * (double)y[bin];
}

static void slices_of_bin(const struct random_scan *r, int view, int u, int v, const float *x, const float *y,
			  const struct images *to)
{
	const struct scan_view *s = &r->views[view];
	const struct grid *g = &r->grid;
	size_t bin = ((size_t)view * (size_t)r->scan.n_v + (size_t)v) * (size_t)r->scan.n_u + (size_t)u;
	double length = sqrt(slice_length_u(&r->scan, s, g, u) + slice_length_v(&r->scan, s, g, v));

	for (int k = 0; k < g->n[2]; k++) {
		struct slice_map map = slice_map_make(&r->scan, s, g, k);
		double at[2] = {map.scale[0] * u + map.shift[0], map.scale[1] * v + map.shift[1]};

		for (int j = (int)floor(at[1]); j <= (int)floor(at[1]) + 1; j++)
			for (int i = (int)floor(at[0]); i <= (int)floor(at[0]) + 1; i++)
				if (i >= 0 && j >= 0 && i < g->n[0] && j < g->n[1])
					add_entry(to, x, y, bin,
						  ((size_t)k * (size_t)g->n[1] + (size_t)j) * (size_t)g->n[0] + (size_t)i,
						  slice_weight(at[0] - i) * slice_weight(at[1] - j) * length);
	}
}

static void walk_of_bin(const struct random_scan *r, int view, int u, int v, const float *x, const float *y,
			const struct images *to)
{
	size_t bin = ((size_t)view * (size_t)r->scan.n_v + (size_t)v) * (size_t)r->scan.n_u + (size_t)u, voxel;
	struct voxel_box whole = voxel_box_whole(&r->grid);
	double a[3], b[3], length;
	struct ray_walk w;

	scan_ray(&r->scan, &r->views[view], u, v, a, b);
	if (ray_walk_start(&w, &r->grid, &whole, a, b))
		while (ray_walk_next(&w, &voxel, &length))
			add_entry(to, x, y, bin, voxel, length);
}

static struct images reference(const struct random_scan *r, enum projection_model model, const float *x, const float *y)
{
	struct images to = {take_zeros(r->n_out, sizeof(double)), take_zeros(r->n_in, sizeof(double))};

	for (int view = 0; view < VIEWS; view++)
		for (int v = 0; v < r->scan.n_v; v++)
			for (int u = 0; u < r->scan.n_u; u++)
				(model == PROJECTION_SLICES ? slices_of_bin : walk_of_bin)(r, view, u, v, x, y, &to);
	return to;
}

/* What the device computes: A x, A'y alone, and A'y as the first and the second of two sums, of y and y / 2. */
struct results {
	float *y, *x, *num, *den;
};

static struct results compute(const struct random_scan *r, enum projection_model model, int set, int threads, const float *x,
			      const float *y)
{
	struct projection_spec spec = {
		.model = model, .scan = &r->scan, .n_views = VIEWS, .grid = &r->grid, .tile = {r->tile[0], r->tile[1]}};
	struct projection *a;
	struct device *dev = fixture_device(FIXTURE_CPU, threads);
	struct buf bx, by, pair, to_x, to_y, num, den;
	float *both = take_memory(2 * r->n_out * sizeof(*both));

	for (size_t i = 0; i < r->n_out; i++) {
		both[i] = y[i];
		both[r->n_out + i] = y[i] / 2;
	}
	cpu_state(dev)->rows = cpu_rows_at(set);
	bx = fixture_upload(dev, x, r->n_in);
	by = fixture_upload(dev, y, r->n_out);
	pair = fixture_upload(dev, both, 2 * r->n_out);
	to_x = fixture_upload(dev, NULL, r->n_in);
	num = fixture_upload(dev, NULL, r->n_in);
	den = fixture_upload(dev, NULL, r->n_in);
	to_y = fixture_upload(dev, NULL, r->n_out);
	a = fixture_projection(dev, &spec);
	assert_int_equal(dev->ops->forward(a, &bx, false, &to_y, NULL), 0);
	assert_int_equal(dev->ops->adjoint(a, &by, false, &to_x, NULL), 0);
	assert_int_equal(dev->ops->fill(&num, 0, NULL), 0);
	assert_int_equal(dev->ops->adjoint(a, &by, true, &num, NULL), 0);
	assert_memory_equal(num.mem, to_x.mem, r->n_in * sizeof(float));
	assert_int_equal(dev->ops->back_sums(a, &pair, false, &num, &den, NULL), 0);
	return (struct results){fixture_download(&to_y), fixture_download(&to_x), fixture_download(&num), fixture_download(&den)};
}

static void describe(const struct random_scan *r, enum projection_model model, int set)
{
	const struct grid *g = &r->grid;

	print_error("model %d, %s: %d x %d bins of %g mm, %d x %d x %d voxels of %g x %g x %g mm, tile %d x %d\n", (int)model,
		    cpu_rows_at(set)->name, r->scan.n_u, r->scan.n_v, r->scan.h[0], g->n[0], g->n[1], g->n[2], g->h[0], g->h[1],
		    g->h[2], r->tile[0], r->tile[1]);
}

static bool agrees(const struct random_scan *r, const float *got, const double *want, double factor, size_t n, const char *what)
{
	double most = factor * r->grid.h[2], tolerance = tolerance_of(&r->scan, &r->grid);

	for (size_t i = 0; i < n; i++)
		most = fmax(most, fabs(factor * want[i]));
	for (size_t i = 0; i < n; i++)
		if (!(fabs((double)got[i] - factor * want[i]) <= tolerance * most)) {
			print_error("%s %zu of %zu: %.9g, not %.9g (largest %g)\n", what, i, n, (double)got[i], factor * want[i],
				    most);
			return false;
		}
	return true;
}

static void check_case(uint64_t *seed, enum projection_model model)
{
	TEST_BLOCK;
	struct random_scan r;
	struct images want;
	float *x, *y;

	draw_scan(seed, false, &r);
	x = random_floats(seed, r.n_in);
	y = random_floats(seed, r.n_out);
	want = reference(&r, model, x, y);
	for (int set = 0; cpu_rows_at(set); set++) {
		struct results got = compute(&r, model, set, 1 + draw_int(seed, 0, 3), x, y);

		if (!agrees(&r, got.y, want.y, 1, r.n_out, "bin") || !agrees(&r, got.x, want.x, 1, r.n_in, "voxel") ||
		    !agrees(&r, got.num, want.x, 1, r.n_in, "voxel of the first sum") ||
		    !agrees(&r, got.den, want.x, 0.5, r.n_in, "voxel of the second sum")) {
			describe(&r, model, set);
			fail();
		}
		if (model == PROJECTION_EXACT)
			break; /* the ray walk has no vector loops */
	}
}

TEST(slices_are_their_definition)
{
	uint64_t seed = test_seed();

	for (int i = 0; i < draw_cases(400); i++)
		check_case(&seed, PROJECTION_SLICES);
}

TEST(walks_are_their_definition)
{
	uint64_t seed = test_seed();

	for (int i = 0; i < draw_cases(60); i++)
		check_case(&seed, PROJECTION_EXACT);
}

/* A detector that turns, in strips: each instruction set gives the values of the plain loops, and A' is adjoint to A. */
TEST(strips)
{
	uint64_t seed = test_seed();

	for (int i = 0; i < draw_cases(200); i++) {
		TEST_BLOCK;
		struct random_scan r;
		struct images plain;
		float *x, *y;

		draw_scan(&seed, true, &r);
		x = random_floats(&seed, r.n_in);
		y = random_floats(&seed, r.n_out);
		plain = (struct images){take_zeros(r.n_out, sizeof(double)), take_zeros(r.n_in, sizeof(double))};
		for (int set = 0; cpu_rows_at(set); set++) {
			struct results got = compute(&r, PROJECTION_SLICES, set, 1 + set, x, y);
			double left = 0, right = 0, ax = 0, yy = 0;

			for (size_t k = 0; k < r.n_out; k++) {
				left += (double)got.y[k] * (double)y[k];
				ax += (double)got.y[k] * (double)got.y[k];
				yy += (double)y[k] * (double)y[k];
				plain.y[k] = set ? plain.y[k] : (double)got.y[k];
			}
			for (size_t k = 0; k < r.n_in; k++) {
				right += (double)got.x[k] * (double)x[k];
				plain.x[k] = set ? plain.x[k] : (double)got.x[k];
			}
			if (!agrees(&r, got.y, plain.y, 1, r.n_out, "bin") || !agrees(&r, got.x, plain.x, 1, r.n_in, "voxel") ||
			    !(fabs(left - right) <= GAP_TOL * sqrt(ax * yy))) {
				print_error("<Ax, y> = %.9g, <x, A'y> = %.9g\n", left, right);
				describe(&r, PROJECTION_SLICES, set);
				fail();
			}
		}
	}
}

/* The same bits for any number of threads, with the same tiles. */
TEST(threads)
{
	uint64_t seed = test_seed();

	for (int i = 0; i < draw_cases(40); i++) {
		TEST_BLOCK;
		enum projection_model model = i % 2 ? PROJECTION_EXACT : PROJECTION_SLICES;
		struct results got[2];
		struct random_scan r;
		float *x, *y;

		draw_scan(&seed, false, &r);
		x = random_floats(&seed, r.n_in);
		y = random_floats(&seed, r.n_out);
		for (int k = 0; k < 2; k++)
			got[k] = compute(&r, model, 0, k ? draw_int(&seed, 2, 7) : 1, x, y);
		assert_memory_equal(got[0].y, got[1].y, r.n_out * sizeof(float));
		assert_memory_equal(got[0].x, got[1].x, r.n_in * sizeof(float));
		assert_memory_equal(got[0].num, got[1].num, r.n_in * sizeof(float));
	}
}

/* ---- what is refused, and what is just allowed ---- */

static struct grid good_grid(void)
{
	return (struct grid){{8, 9, 3}, {1, 1, 1}, {0, -4, 20}};
}

/* A good input with one number changed. */
struct input {
	struct grid grid;
	struct scan scan;
	struct scan_view views[2];
	struct projection_spec spec;
};

static const struct {
	REFUSED;
	size_t at;
	double value;
	enum projection_model model;
} bad_inputs[] = {
	{{"no pitch", EINVAL, "bins along axis 0"}, offsetof(struct input, scan.h[0]), 0, PROJECTION_EXACT},
	{{"a pitch without end", EINVAL, "bins along axis 1"}, offsetof(struct input, scan.h[1]), INFINITY, PROJECTION_EXACT},
	{{"a detector nowhere", EINVAL, "bins along axis 1"}, offsetof(struct input, scan.lo[1]), NAN, PROJECTION_EXACT},
	{{"a source nowhere", EINVAL, "view 1"}, offsetof(struct input, views[1].src[0]), NAN, PROJECTION_EXACT},
	{{"a source without end", EINVAL, "view 1"}, offsetof(struct input, views[1].src[1]), INFINITY, PROJECTION_EXACT},
	{{"a source at no height", EINVAL, "view 0"}, offsetof(struct input, views[0].src[2]), NAN, PROJECTION_EXACT},
	{{"a shift that is no number", EINVAL, "view 1"}, offsetof(struct input, views[1].shift[0]), NAN, PROJECTION_EXACT},
	{{"the other shift", EINVAL, "view 1"}, offsetof(struct input, views[1].shift[1]), NAN, PROJECTION_EXACT},
	{{"a source in the upper face", EINVAL, "view 1"}, offsetof(struct input, views[1].src[2]), 23, PROJECTION_SLICES},
	{{"a volume below the detector", EINVAL, "view 0"}, offsetof(struct input, grid.lo[2]), -1e-9, PROJECTION_SLICES},
};

static int create_changed(size_t at, double value, enum projection_model model, struct err *err)
{
	struct input in = {.grid = good_grid(),
			   .views = {{{1, -5, 300}, {0, 0}}, {{1, 5, 300}, {0, 0}}},
			   .scan = {SCAN_DBT, 8, 9, 2, {1, 1}, {0, -4.5}, NULL}};
	struct projection *a = NULL;
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	int r;

	in.scan.views = in.views;
	in.spec = (struct projection_spec){.model = model, .scan = &in.scan, .n_views = 2, .grid = &in.grid};
	memcpy((char *)&in + at, &value, sizeof(value));
	r = dev->ops->projection_create(dev, &in.spec, &a, err);
	assert_true((r < 0) == !a);
	dev->ops->projection_free(a);
	return r;
}

static int try_input(const void *row, struct err *err)
{
	size_t i = (size_t)((const char *)row - (const char *)bad_inputs) / sizeof(bad_inputs[0]);

	return create_changed(bad_inputs[i].at, bad_inputs[i].value, bad_inputs[i].model, err);
}

REFUSES(refused, bad_inputs, try_input)

TEST(just_allowed)
{
	struct err err = {0};

	assert_int_equal(create_changed(offsetof(struct input, views[1].src[2]), 23.001, PROJECTION_SLICES, &err), 0);
	assert_int_equal(create_changed(offsetof(struct input, views[1].src[2]), 23, PROJECTION_EXACT, &err), 0);
	assert_int_equal(create_changed(offsetof(struct input, grid.lo[2]), 0, PROJECTION_SLICES, &err), 0);
}
