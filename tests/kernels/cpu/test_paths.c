/* SPDX-License-Identifier: Apache-2.0 */
/* Parallel rays on the CPU: the chord of every ray, transaxial paths compared with the ray walk, Joseph's weights compared with a
 * simple implementation, adjoints, adding, bitwise the same result for any number of threads; on every instruction set, and with
 * memory full of NaN. */
#include "tests/kernels/cpu/parallel.h"
#include "tests/kernels/draw.h"
#include "tests/test.h"

#include "kernels/planes.h"

/* float32 positions have an error of up to 2^-24 of the field of view, and sums of a few hundred steps are in float32 */
#define CHORD_TOL 1e-5
#define AGREE_TOL 1e-5 /* of the largest value */
#define GAP_TOL 1e-5

/* Return the length of the part of a ray that is in the field of view and in the grid, mm; computed in double from the
 * definition. */
static double chord_of(const struct fixture *f, int view, int v, int u)
{
	const struct grid *g = &f->grid;
	const double *turn = f->views[view].turn;
	double r = f->radius[v], left = f->scan.fov_radius * f->scan.fov_radius - r * r, slope, t0, t1;

	if (left <= 0)
		return 0;
	slope = f->planes[u].rise / sqrt(f->scan.ring_radius * f->scan.ring_radius - r * r);
	t1 = sqrt(left);
	t0 = -t1;
	for (int c = 0; c < 3; c++) {
		double from = c == 0 ? r * turn[0] : c == 1 ? r * turn[1] : f->planes[u].z;
		double along = c == 0 ? -turn[1] : c == 1 ? turn[0] : slope;
		double lo = g->lo[c] - from, hi = lo + g->n[c] * g->h[c];

		if (fabs(along) < 1e-15) {
			if (lo > 0 || hi <= 0)
				return 0;
			continue;
		}
		t0 = fmax(t0, fmin(lo / along, hi / along));
		t1 = fmin(t1, fmax(lo / along, hi / along));
	}
	return t1 > t0 ? (t1 - t0) * sqrt(1 + slope * slope) : 0;
}

static void check_chords(struct fixture *f, const struct setup *s)
{
	struct buf ones = volume(f, 1, 1, 1);

	for (int m = f->first; m < 2 && !s->tof.n; m++) {
		struct projection *a = create(f, models[m], 0);
		float *y = forward(f, a, &ones);
		size_t bin = 0, seen = 0;

		for (int view = 0; view < VIEWS; view++)
			for (int v = 0; v < f->scan.n_v; v++)
				for (int u = 0; u < f->scan.n_u; u++, bin++) {
					double length = chord_of(f, view, v, u), most = 2 * f->scan.fov_radius;

					if (scan_reach(&f->scan, v) == 0) {
						assert_true(y[bin] == 0);
						continue;
					}
					/* where a ray cuts only a corner of the grid, the error is relative to the length of the
					 * whole ray */
					if (fabs(y[bin] - length) > CHORD_TOL * (s->inside ? length : most))
						fail_msg("%s, model %d, view %d, bin %d, plane %d: %.9g, not %.9g mm", s->name,
							 (int)models[m], view, v, u, (double)y[bin], length);
					seen += length > 0;
				}
		assert_true(seen > f->n_out / 4);
	}
}

TEST(test_chords)
{
	everywhere(check_chords);
}

/* Compare the paths with the ray walk, forward and back. */
static void check_exact(struct fixture *f, const struct setup *s)
{
	struct projection *exact = create(f, PROJECTION_EXACT, 11), *paths = create(f, PROJECTION_PATHS, 0);
	struct buf x = volume(f, 7, 0.1f, 1), y = sinogram(f, 8, 0.1f, 1);
	float *y0 = forward(f, exact, &x), *y1 = forward(f, paths, &x), *x0 = back(f, exact, &y), *x1 = back(f, paths, &y);
	double there = fixture_difference(y1, y0, f->n_out), here = fixture_difference(x1, x0, f->n_in);

	if (there > AGREE_TOL || here > AGREE_TOL)
		fail_msg("%s, %s: forward %g, back %g of the largest value", s->name, f->dev->name, there, here);
	for (size_t i = 0; i < f->n_in; i++)
		if (is_padding(&f->grid, i))
			assert_true(x0[i] == 0 && x1[i] == 0);
}

TEST(test_exact)
{
	everywhere(check_exact);
}

/* Return the line integral of one ray by Joseph's method (1982): the sum over the rows (or columns) of pixels that the ray
 * crosses. */
static double joseph(const struct fixture *f, const float *x, int view, int v, int u)
{
	const struct grid *g = &f->grid;
	double c = f->views[view].turn[0], s = f->views[view].turn[1], r = f->radius[v], reach = scan_reach(&f->scan, v);
	double slope = scan_slope(&f->scan, f->planes[u].rise, v), sum = 0;
	bool by_x = fabs(s) > fabs(c);
	int lead = by_x ? 0 : 1, other = 1 - lead;

	for (int i = 0; i < g->n[lead]; i++) {
		double at = g->lo[lead] + (i + 0.5) * g->h[lead];
		double t = by_x ? (r * c - at) / s : (at - r * s) / c;
		double q = ((by_x ? r * s + t * c : r * c - t * s) - g->lo[other]) / g->h[other] - 0.5;
		double w = (f->planes[u].z + slope * t - g->lo[2]) / g->h[2] - 0.5;
		double far = fmin(fmax(q, 0), g->n[other] - 1);

		if (fabs(t) > reach || q < -0.5 || q >= g->n[other] - 0.5)
			continue;
		for (int j = cpu_max((int)far - 1, 0); j < cpu_min((int)far + 3, g->n[other]); j++)
			for (int k = cpu_max((int)floor(w), 0); k < cpu_min((int)floor(w) + 2, g->n[2]); k++)
				sum += fmax(0, 1 - fabs(far - j)) * fmax(0, 1 - fabs(w - k)) *
				       x[(size_t)i * grid_step(g, lead) + (size_t)j * grid_step(g, other) + (size_t)k];
	}
	return sum * g->h[lead] / fmax(fabs(c), fabs(s)) * sqrt(1 + slope * slope);
}

static void check_joseph(struct fixture *f, const struct setup *s)
{
	struct projection *a = create(f, PROJECTION_JOSEPH, 0);
	struct buf x = volume(f, 9, 0.1f, 1);
	float *host = fixture_download(&x), *y = forward(f, a, &x);
	size_t bin = 0;

	for (int view = 0; view < VIEWS && !s->tof.n; view++)
		for (int v = 0; v < f->scan.n_v; v++)
			for (int u = 0; u < f->scan.n_u; u++, bin++) {
				double expect = scan_reach(&f->scan, v) > 0 ? joseph(f, host, view, v, u) : 0;

				if (fabs(y[bin] - expect) > AGREE_TOL * 2 * f->scan.fov_radius)
					fail_msg("%s, view %d, bin %d, plane %d: %.9g, not %.9g", s->name, view, v, u,
						 (double)y[bin], expect);
			}
}

TEST(test_joseph)
{
	everywhere(check_joseph);
}

/* Check |<A x, y> - <x, A'y>| / (|A x| |y|), in double, without padding and bins without rays. */
static void check_adjoint(struct fixture *f, const struct setup *s)
{
	for (int m = f->first; m < 3; m++) {
		struct projection *a = create(f, models[m], 0);
		struct buf x = volume(f, 3, -1, 1), y = sinogram(f, 4, -1, 1);
		float *hx = fixture_download(&x), *hy = fixture_download(&y), *ax = forward(f, a, &x), *aty = back(f, a, &y);
		double left = 0, right = 0, norm_ax = 0, norm_y = 0;

		for (size_t i = 0; i < f->n_out; i++) {
			double value = exists(f, i) ? hy[i] : 0;

			left += ax[i] * value;
			norm_ax += (double)ax[i] * ax[i];
			norm_y += value * value;
		}
		for (size_t i = 0; i < f->n_in; i++)
			right += is_padding(&f->grid, i) ? aty[i] : (double)hx[i] * aty[i];
		if (!(fabs(left - right) <= GAP_TOL * sqrt(norm_ax * norm_y)))
			fail_msg("%s, model %d: <Ax, y> = %.9g, <x, A'y> = %.9g", s->name, (int)models[m], left, right);
		assert_true(norm_ax > 0);
	}
}

TEST(test_adjoint)
{
	everywhere(check_adjoint);
}

/* With `add`, the result is added to the existing values; the padding does not change. */
static void check_add(struct fixture *f, const struct setup *s)
{
	for (int m = f->first; m < 3; m++) {
		struct projection *a = create(f, models[m], 13);
		struct buf x = volume(f, 5, 0.1f, 1), y = sinogram(f, 6, 0.1f, 1), sum_x, sum_y;
		float *ax = forward(f, a, &x), *aty = back(f, a, &y), *old_x = fixture_download(&x),
		      *old_y = take_memory(f->n_out * sizeof(*old_y));
		uint32_t seed = 5;

		for (size_t i = 0; i < f->n_out; i++)
			old_y[i] = fixture_uniform(&seed, 1, 2);
		sum_x = fixture_upload(f->dev, old_x, f->n_in);
		sum_y = fixture_upload(f->dev, old_y, f->n_out);
		assert_int_equal(f->v->forward(a, &x, true, &sum_y, NULL), 0);
		assert_int_equal(f->v->adjoint(a, &y, true, &sum_x, NULL), 0);
		for (size_t i = 0; i < f->n_out; i++)
			ax[i] += old_y[i];
		old_y = fixture_download(&sum_y);
		assert_true(fixture_difference(old_y, ax, f->n_out) < 3e-7);
		for (size_t i = 0; i < f->n_in; i++)
			aty[i] = is_padding(&f->grid, i) ? 0 : aty[i] + old_x[i];
		old_x = fixture_download(&sum_x);
		for (size_t i = 0; i < f->n_in; i++)
			if (is_padding(&f->grid, i)) {
				assert_true(isnan(old_x[i]));
				old_x[i] = 0;
			}
		if (!(fixture_difference(old_x, aty, f->n_in) < 3e-6)) /* another order of addition */
			fail_msg("%s, model %d: adding: %g", s->name, (int)models[m], fixture_difference(old_x, aty, f->n_in));
	}
}

TEST(test_add)
{
	everywhere(check_add);
}

/* Random scanners and volumes, on each instruction set in turn: as in the tests above. */
static void draw_setup(uint64_t *seed, struct setup *s)
{
	double slice = draw(seed, 0.4, 5), pitch = slice * (draw_int(seed, 0, 1) ? 1 : draw_ratio(seed, 0.5, 3));
	double fov = draw(seed, 30, 90), pixel = draw(seed, 3, 12);

	*s = (struct setup){.name = "random",
			    .height = pitch * draw_size(seed, 1, 40),
			    .pitch = {pitch, pitch * draw_int(seed, 1, 2)},
			    .rises = draw_int(seed, 0, 2),
			    .ring = fov * draw(seed, 1.05, 2),
			    .fov = fov,
			    .bin = draw(seed, 2, 9),
			    .bins = draw_size(seed, 3, 40),
			    .grid = {{draw_size(seed, 2, 34), draw_size(seed, 2, 34), draw_size(seed, 1, 50)},
				     {pixel, pixel * draw(seed, 0.8, 1.2), slice},
				     {draw(seed, -15, 15), draw(seed, -15, 15), draw(seed, -5, 5)},
				     true}};
	s->rise = s->rises > 0 ? s->height / 2 / s->rises * draw(seed, 0.2, 0.9) : 1;
	if (draw_int(seed, 0, 1))
		s->tof = (struct scan_tof){draw_size(seed, 1, 20), draw(seed, 8, 40), draw(seed, 5, 30)};
}

/* Whether rays meet the volume, in both models. */
static bool is_met(const struct setup *s)
{
	TEST_BLOCK;
	struct fixture *f = take_memory(sizeof(*f));
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	int met = 0;

	set_up(f, s, dev);
	for (int m = 1; m < 3; m++) {
		struct projection *a = create(f, models[m], 0);
		struct buf ones = volume(f, 1, 1, 1);
		float *y = forward(f, a, &ones);
		size_t i = 0;

		while (i < f->n_out && !(y[i] > 0))
			i++;
		met += i < f->n_out;
	}
	return met == 2;
}

TEST(test_random)
{
	uint64_t seed = test_seed();
	int sets = 0;

	while (cpu_rows_at(sets))
		sets++;
	for (int i = 0; i < draw_cases(30); i++) {
		static parallel_test *const tests[] = {check_exact, check_joseph, check_adjoint, check_add};
		struct setup s;

		do
			draw_setup(&seed, &s);
		while (!is_met(&s));
		for (size_t k = 0; k < sizeof(tests) / sizeof(tests[0]); k++)
			on_device(FIXTURE_CPU, draw_int(&seed, 1, 4), cpu_rows_at(i % sets), &s, 1, tests[k]);
	}
}

/* The results are bitwise the same with 1 and 3 threads, which use different tile sizes. */
TEST(test_threads)
{
	const int threads[] = {1, 3};
	struct fixture *f = take_memory(sizeof(*f));

	for (size_t i = 0; i < N_SETUPS; i++)
		for (int m = PROJECTION_PATHS; m <= PROJECTION_JOSEPH; m++) {
			TEST_BLOCK;
			float *ax[2], *aty[2];

			for (int k = 0; k < 2; k++) {
				struct projection *a;
				struct buf x, y;

				set_up(f, &setups[i], fixture_device(FIXTURE_CPU, threads[k]));
				a = create(f, (enum projection_model)m, 0);
				x = volume(f, 3, 0.1f, 1);
				y = sinogram(f, 4, 0.1f, 1);
				ax[k] = forward(f, a, &x);
				aty[k] = back(f, a, &y);
			}
			assert_memory_equal(ax[0], ax[1], f->n_out * sizeof(**ax));
			assert_memory_equal(aty[0], aty[1], f->n_in * sizeof(**aty));
		}
}

/* No path has more steps than path_bound(), each step begins where the last one ends, and projection_bytes() is enough for
 * all. */
static void check_tables(struct fixture *f, const struct setup *s)
{
	for (int m = PROJECTION_PATHS; m <= PROJECTION_JOSEPH; m++) {
		struct projection *a = create(f, (enum projection_model)m, 0);
		struct projection_spec spec = {
			.model = (enum projection_model)m, .scan = &f->scan, .n_views = VIEWS, .grid = &f->grid};
		const struct cpu_paths *p = a->paths;
		size_t n = (size_t)VIEWS * (size_t)f->scan.n_v, steps = 0;

		if (a->stack) /* has lines instead: test_lines.c */
			continue;
		for (size_t i = 0; i < n; i++) {
			const struct path *path = &p->path[i];

			assert_true(path->at == steps);
			steps += (size_t)path_bound(&f->scan, &f->views[i / (size_t)f->scan.n_v], (int)(i % (size_t)f->scan.n_v),
						    &f->grid, m == PROJECTION_PATHS ? planes_max_abs_rise(&f->scan) : 0);
			if (path->at + (size_t)path->n > steps)
				fail_msg("%s: path %zu has %d steps in %zu", s->name, i, path->n, steps - path->at);
		}
		assert_true(f->v->projection_bytes(f->dev, &spec) >=
			    sizeof(*a) + sizeof(*p) + n * sizeof(*p->path) + steps * sizeof(*p->step) +
				    (size_t)p->n_lanes * sizeof(*p->lane) +
				    (size_t)p->n_lanes * (size_t)f->scan.n_v * sizeof(*p->ray));
		assert_true(f->v->scratch_bytes(f->dev, &spec) >=
			    sizeof(float) * ((size_t)p->block * (size_t)(p->slab.row + p->tof.row) +
					     (size_t)p->sums * (size_t)scan_ray_bins(&f->scan)));
	}
}

TEST(test_tables)
{
	everywhere(check_tables);
}

/* ---- what is refused, and what is just allowed ---- */

/* A good input: the first setup, PATHS, all views. */
struct input {
	struct fixture f;
	struct projection_spec spec;
};

/* One number of it is changed. */
struct change {
	size_t at;
	bool is_double;
	double value;
};
#define NUMBER(member, value) offsetof(struct input, member), true, value
#define WHOLE(member, value) offsetof(struct input, member), false, value

static int create_changed(const struct change *change, enum projection_model model, struct err *err)
{
	struct input *in = take_zeros(1, sizeof(*in));
	struct projection *a = NULL;
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	int r, whole = change->is_double ? 0 : (int)change->value;

	set_up(&in->f, &setups[0], dev);
	in->spec = (struct projection_spec){
		.model = model, .scan = &in->f.scan, .n_views = VIEWS, .grid = &in->f.grid, .sampling = 1};
	if (change->is_double)
		memcpy((char *)in + change->at, &change->value, sizeof(change->value));
	else
		memcpy((char *)in + change->at, &whole, sizeof(whole));
	r = dev->ops->projection_create(dev, &in->spec, &a, err);
	assert_true((r < 0) == (dev->ops->projection_bytes(dev, &in->spec) == 0));
	assert_true((r < 0) == !a);
	dev->ops->projection_free(a);
	return r;
}

static const struct {
	REFUSED;
	struct change change;
	enum projection_model model;
} bad_inputs[] = {
	{{"a grid without voxels", EINVAL, "axis 1"}, {WHOLE(f.grid.n[1], 0)}, PROJECTION_PATHS},
	{{"voxels of no height", EINVAL, "axis 2"}, {NUMBER(f.grid.h[2], 0)}, PROJECTION_PATHS},
	{{"voxels without end", EINVAL, "axis 0"}, {NUMBER(f.grid.h[0], INFINITY)}, PROJECTION_PATHS},
	{{"a grid nowhere", EINVAL, "axis 0"}, {NUMBER(f.grid.lo[0], NAN)}, PROJECTION_PATHS},
	{{"no radial bins", EINVAL, "detector"}, {WHOLE(f.scan.n_v, 0)}, PROJECTION_PATHS},
	{{"too many planes", EINVAL, "65536 planes"}, {WHOLE(f.scan.n_u, 65536)}, PROJECTION_PATHS},
	{{"one view too many", EINVAL, "views 0 to 7"}, {WHOLE(spec.n_views, VIEWS + 1)}, PROJECTION_PATHS},
	{{"no views", EINVAL, "views"}, {WHOLE(spec.n_views, 0)}, PROJECTION_PATHS},
	{{"views from -1 on", EINVAL, "views -1"}, {WHOLE(spec.first, -1)}, PROJECTION_PATHS},
	{{"views beyond the last", EINVAL, "views 1 to 7"}, {WHOLE(spec.first, 1)}, PROJECTION_PATHS},
	{{"a tile below 0", EINVAL, "tile"}, {WHOLE(spec.tile[1], -1)}, PROJECTION_EXACT},
	{{"a model below the first", EINVAL, "model -1"}, {WHOLE(spec.model, -1)}, PROJECTION_PATHS},
	{{"a model beyond the last", EINVAL, "model"}, {WHOLE(spec.model, PROJECTION_SAMPLED + 1)}, PROJECTION_PATHS},
	{{"a model of tomosynthesis", EINVAL, "parallel rays"}, {WHOLE(spec.model, PROJECTION_SLICES)}, PROJECTION_PATHS},
	{{"no field of view", EINVAL, "field of view"}, {NUMBER(f.scan.fov_radius, 0)}, PROJECTION_EXACT},
	{{"a field of view without end", EINVAL, "field of view"}, {NUMBER(f.scan.fov_radius, INFINITY)}, PROJECTION_EXACT},
	{{"a radius that is no number", EINVAL, "radial bin 0"}, {NUMBER(f.radius[0], NAN)}, PROJECTION_EXACT},
	{{"radii that do not ascend", EINVAL, "radial bin 24"}, {NUMBER(f.radius[24], 0)}, PROJECTION_EXACT},
	{{"a plane nowhere", EINVAL, "plane 3"}, {NUMBER(f.planes[3].z, NAN)}, PROJECTION_EXACT},
	{{"a rise without end", EINVAL, "plane 3"}, {NUMBER(f.planes[3].rise, INFINITY)}, PROJECTION_EXACT},
	{{"a plane below the one before", EINVAL, "plane 1"}, {NUMBER(f.planes[1].z, -1000)}, PROJECTION_EXACT},
	{{"oblique planes inside the ring", EINVAL, "oblique"}, {NUMBER(f.scan.ring_radius, 90)}, PROJECTION_EXACT},
	{{"no cosine and sine", EINVAL, "view 2"}, {NUMBER(f.views[2].turn[0], 1e-4)}, PROJECTION_EXACT},
	{{"a volume stored x fastest", EINVAL, "z fastest"}, {WHOLE(f.grid.z_fastest, 0)}, PROJECTION_PATHS},
	{{"one row of pixels", EINVAL, "2 x 2"}, {WHOLE(f.grid.n[1], 1)}, PROJECTION_JOSEPH},
	{{"one column of pixels", EINVAL, "2 x 2"}, {WHOLE(f.grid.n[0], 1)}, PROJECTION_JOSEPH},
	{{"samples where there is no stack", EINVAL, "stack"}, {NUMBER(spec.sampling, 1)}, PROJECTION_SAMPLED},
};

static int try_input(const void *row, struct err *err)
{
	size_t i = (size_t)((const char *)row - (const char *)bad_inputs) / sizeof(bad_inputs[0]);

	return create_changed(&bad_inputs[i].change, bad_inputs[i].model, err);
}

REFUSES(test_refused, bad_inputs, try_input)

TEST(test_just_allowed)
{
	static const struct {
		struct change change;
		enum projection_model model;
	} good[] = {
		{{WHOLE(spec.n_views, VIEWS)}, PROJECTION_PATHS},   {{WHOLE(spec.n_views, 1)}, PROJECTION_JOSEPH},
		{{WHOLE(f.grid.n[1], 1)}, PROJECTION_PATHS},	    {{WHOLE(f.grid.n[1], 2)}, PROJECTION_JOSEPH},
		{{WHOLE(f.grid.z_fastest, 0)}, PROJECTION_EXACT},   {{NUMBER(f.scan.ring_radius, 90.001)}, PROJECTION_EXACT},
		{{NUMBER(f.radius[24], 0.001)}, PROJECTION_EXACT},  {{NUMBER(f.views[2].turn[0], 1e-5)}, PROJECTION_EXACT},
		{{NUMBER(f.planes[1].z, -8.18)}, PROJECTION_EXACT},
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct err err = {0};

		if (create_changed(&good[i].change, good[i].model, &err) < 0)
			fail_msg("row %zu: %s", i, err.msg);
	}
}

/* Transaxial paths allow no mask, a mask of another size is refused by all models, and the last view alone is a part. */
TEST(test_masks)
{
	struct fixture *f = take_memory(sizeof(*f));
	struct projection_spec spec = {.scan = &f->scan, .n_views = VIEWS, .grid = &f->grid};
	struct projection *a = NULL;
	struct err err = {0};
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	struct buf mask, part;

	set_up(f, &setups[0], dev);
	mask = sinogram(f, 1, 1, 1);
	spec.mask = &mask;
	spec.model = PROJECTION_PATHS;
	assert_error(f->v->projection_create(dev, &spec, &a, &err), &err, EINVAL, "mask");
	part = buf_part(&mask, 0, mask.n - 1);
	spec.mask = &part;
	spec.model = PROJECTION_EXACT;
	assert_error(f->v->projection_create(dev, &spec, &a, &err), &err, EINVAL, "mask");
	assert_null(a);
	part = buf_part(&mask, 0, scan_view_size(&f->scan));
	spec.first = VIEWS - 1;
	spec.n_views = 1;
	fixture_projection(dev, &spec);
}
