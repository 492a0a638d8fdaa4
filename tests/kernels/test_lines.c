/* Stacks of 2-D parallel beams: every ray of each model against a row of the system matrix made pixel by pixel, sweeps against
 * Kaczmarz' method with these rows, and the voxel-driven backprojection against its definition. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/cpu.h"
#include "kernels/lines.h"

#define TOL 1e-5 /* of the largest value */
#define VIEWS 6
#define MOST_BINS 256
#define MOST_SLICES 64

static const double angles[VIEWS] = {0, 45, 90, 17.3, 135, 161};

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
	{"threads share passes", {180, 170, 1}, {1, 1}, {0, 0}, 251, 1, 0, 124, false},
};
#define N_SETUPS (sizeof(setups) / sizeof(setups[0]))

static const enum projection_model models[] = {PROJECTION_PATHS, PROJECTION_JOSEPH, PROJECTION_SAMPLED};
#define N_MODELS (sizeof(models) / sizeof(models[0]))

struct fixture {
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

static void set_up(struct fixture *f, const struct setup *s, struct device *dev)
{
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

static struct projection *create(struct fixture *f, enum projection_model model)
{
	struct projection_spec spec = {.model = model,
				       .scan = &f->scan,
				       .n_views = VIEWS,
				       .grid = &f->grid,
				       .sampling = f->sampling,
				       .sweeps = model != PROJECTION_EXACT};
	struct projection *a = NULL;
	struct err err = {0};

	if (f->v->projection_create(f->dev, &spec, &a, &err) < 0)
		fail_msg("%s", err.msg);
	return a;
}

static float uniform(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (float)(*seed >> 8) / (1 << 24) - 0.3f;
}

static size_t voxel(const struct fixture *f, size_t pixel, int u)
{
	return pixel * lines_column(&f->grid) + (size_t)u;
}

static float *host(size_t n)
{
	float *x = malloc(n * sizeof(*x));

	assert_non_null(x);
	return x;
}

static struct buf put(struct fixture *f, const float *from, size_t n)
{
	struct buf b;

	assert_int_equal(f->v->alloc(f->dev, n, &b, NULL), 0);
	if (from)
		assert_int_equal(f->v->upload(&b, from, NULL), 0);
	return b;
}

static float *fetched(const struct buf *b)
{
	float *x = host(b->n);

	assert_int_equal(b->dev->ops->download(b, x, NULL), 0);
	return x;
}

/* Random, `padding` in the padding. */
static float *volume(const struct fixture *f, uint32_t seed, float padding)
{
	float *x = host(f->n_in);

	for (size_t i = 0; i < f->n_in; i++)
		x[i] = padding;
	for (size_t i = 0; i < f->pixels; i++)
		for (int u = 0; u < f->scan.n_u; u++)
			x[voxel(f, i, u)] = uniform(&seed);
	return x;
}

/* Random; NaN where there is no ray. */
static float *sinogram(const struct fixture *f, uint32_t seed)
{
	float *y = host(f->n_out);

	for (size_t i = 0; i < f->n_out; i++)
		y[i] = scan_reach(&f->scan, (int)(i / (size_t)f->scan.n_u % (size_t)f->scan.n_v)) > 0 ? uniform(&seed) : NAN;
	return y;
}

static void near(const float *got, const double *expect, size_t n, double tol)
{
	double most = 0;

	for (size_t i = 0; i < n; i++)
		most = fmax(most, fabs(expect[i]));
	for (size_t i = 0; i < n; i++)
		if (!(fabs(got[i] - expect[i]) <= tol * most))
			fail_msg("value %zu of %zu: %.9g, not %.9g (largest %g)", i, n, (double)got[i], expect[i], most);
}

/* Where the line is in [low, high) of one axis: o + t d. */
static void clip(double o, double d, double low, double high, double *t0, double *t1)
{
	if (d == 0) {
		if (!(low <= o && o < high))
			*t1 = *t0;
		return;
	}
	*t0 = fmax(*t0, fmin((low - o) / d, (high - o) / d));
	*t1 = fmin(*t1, fmax((low - o) / d, (high - o) / d));
}

static void row_lengths(const struct fixture *f, double r, double reach, const double turn[2], double *row)
{
	const struct grid *g = &f->grid;

	for (int j = 0; j < g->n[1]; j++)
		for (int i = 0; i < g->n[0]; i++) {
			double t0 = -reach, t1 = reach, x = g->lo[0] + i * g->h[0], y = g->lo[1] + j * g->h[1];

			clip(r * turn[0], -turn[1], x, x + g->h[0], &t0, &t1);
			clip(r * turn[1], turn[0], y, y + g->h[1], &t0, &t1);
			row[j * g->n[0] + i] = fmax(t1 - t0, 0);
		}
}

static void row_joseph(const struct fixture *f, double r, double reach, const double turn[2], double *row)
{
	const struct grid *g = &f->grid;
	bool along_x = fabs(turn[1]) > fabs(turn[0]);
	int lead = along_x ? 0 : 1, other = 1 - lead, last = g->n[other] - 1;
	double d[2] = {-turn[1], turn[0]};

	for (int k = 0; k < g->n[lead]; k++) {
		double t = (g->lo[lead] + (k + 0.5) * g->h[lead] - r * turn[lead]) / d[lead];
		double at = (r * turn[other] + t * d[other] - g->lo[other]) / g->h[other] - 0.5,
		       step = g->h[lead] / fabs(d[lead]);

		if (fabs(t) > reach || at < -0.5 || at >= last + 0.5)
			continue;
		at = fmin(fmax(at, 0), last);
		for (int i = 0; i <= last; i++)
			row[along_x ? i * g->n[0] + k : k * g->n[0] + i] = step * fmax(0, 1 - fabs(i - at));
	}
}

static void row_sampled(const struct fixture *f, double r, double reach, const double turn[2], double *row)
{
	const struct grid *g = &f->grid;

	for (long k = -(long)(reach / f->sampling) - 2; k < (long)(reach / f->sampling) + 2; k++) {
		double t = (k + 0.5) * f->sampling;
		double x = (r * turn[0] - t * turn[1] - g->lo[0]) / g->h[0] - 0.5;
		double y = (r * turn[1] + t * turn[0] - g->lo[1]) / g->h[1] - 0.5;

		for (int j = (int)floor(y); fabs(t) <= reach && j <= (int)floor(y) + 1; j++)
			for (int i = (int)floor(x); i <= (int)floor(x) + 1; i++)
				if (i >= 0 && j >= 0 && i < g->n[0] && j < g->n[1])
					row[j * g->n[0] + i] += f->sampling * (1 - fabs(i - x)) * (1 - fabs(j - y));
	}
}

static void make_row(const struct fixture *f, enum projection_model model, int view, int v, double *row)
{
	double reach = scan_reach(&f->scan, v), r = f->radius[v];

	memset(row, 0, f->pixels * sizeof(*row));
	if (reach == 0)
		return;
	if (model == PROJECTION_PATHS)
		row_lengths(f, r, reach, f->views[view].turn, row);
	else if (model == PROJECTION_JOSEPH)
		row_joseph(f, r, reach, f->views[view].turn, row);
	else
		row_sampled(f, r, reach, f->views[view].turn, row);
}

static double *doubles(size_t n)
{
	double *x = calloc(n, sizeof(*x));

	assert_non_null(x);
	return x;
}

/* Forward and back, each twice: the second time added. */
static void check_operator(struct fixture *f, enum projection_model model)
{
	struct projection *a = create(f, model);
	float *x = volume(f, 1, NAN), *y = sinogram(f, 2), *ax, *aty;
	double *row = doubles(f->pixels), *want_y = doubles(f->n_out), *want_x = doubles(f->n_in);
	struct buf bx = put(f, x, f->n_in), by = put(f, y, f->n_out), ret_y = put(f, NULL, f->n_out), ret_x;
	size_t n_u = (size_t)f->scan.n_u, n_v = (size_t)f->scan.n_v;

	ret_x = put(f, NULL, f->n_in);
	for (int view = 0; view < VIEWS; view++)
		for (size_t v = 0; v < n_v; v++) {
			size_t bin = ((size_t)view * n_v + v) * n_u;

			make_row(f, model, view, (int)v, row);
			for (size_t i = 0; i < f->pixels; i++)
				for (size_t u = 0; row[i] > 0 && u < n_u; u++) {
					want_y[bin + u] += row[i] * x[voxel(f, i, (int)u)];
					want_x[voxel(f, i, (int)u)] += row[i] * y[bin + u];
				}
		}
	for (int pass = 1; pass <= 2; pass++) {
		assert_int_equal(f->v->forward(a, &bx, pass == 2, &ret_y, NULL), 0);
		assert_int_equal(f->v->adjoint(a, &by, pass == 2, &ret_x, NULL), 0);
		ax = fetched(&ret_y);
		aty = fetched(&ret_x);
		near(ax, want_y, f->n_out, TOL);
		near(aty, want_x, f->n_in, TOL); /* 0 in the padding */
		free(ax);
		free(aty);
		for (size_t i = 0; i < f->n_out; i++)
			want_y[i] *= 2;
		for (size_t i = 0; i < f->n_in; i++)
			want_x[i] *= 2;
	}
	f->v->projection_free(a);
	free(x);
	free(y);
	free(row);
	free(want_x);
	free(want_y);
	buf_release(&bx);
	buf_release(&by);
	buf_release(&ret_x);
	buf_release(&ret_y);
}

/* The order is spelled out here. That a pass may be done at once is checked first: its rays share no pixel. */
static void sweep(const struct fixture *f, enum projection_model model, double relaxation, const float *y, double *x)
{
	int stride = lines_stride(model, &f->scan, &f->grid), n_v = f->scan.n_v, *taken = calloc(f->pixels, sizeof(*taken));
	size_t n_u = (size_t)f->scan.n_u;
	double *row = doubles(f->pixels);
	int pass = 0;

	assert_non_null(taken);
	for (int view = 0; view < VIEWS; view++)
		for (int first = 0; first < stride; first++) {
			pass++;
			for (int v = first; v < n_v; v += stride) {
				const float *data = y + ((size_t)view * (size_t)n_v + (size_t)v) * n_u;
				double norm = 0;

				make_row(f, model, view, v, row);
				for (size_t i = 0; i < f->pixels; i++) {
					norm += row[i] * row[i];
					assert_true(!(row[i] > 0) || taken[i] != pass);
					if (row[i] > 0)
						taken[i] = pass;
				}
				for (size_t u = 0; norm > 0 && u < n_u; u++) {
					double sum = 0;

					for (size_t i = 0; i < f->pixels; i++)
						sum += row[i] > 0 ? row[i] * x[voxel(f, i, (int)u)] : 0;
					for (size_t i = 0; i < f->pixels; i++)
						if (row[i] > 0)
							x[voxel(f, i, (int)u)] += relaxation * (data[u] - sum) / norm * row[i];
				}
			}
		}
	free(taken);
	free(row);
}

/* Data of an image, as noise would be amplified: a ray that touches a corner has next to no norm. */
static void check_sweep(struct fixture *f, enum projection_model model)
{
	struct projection *a = create(f, model);
	float *x = volume(f, 3, 0), *start = volume(f, 4, 0), *y, *got;
	double *want = doubles(f->n_in);
	struct buf bx = put(f, x, f->n_in), by = put(f, NULL, f->n_out);

	assert_int_equal(f->v->forward(a, &bx, false, &by, NULL), 0);
	y = fetched(&by);
	for (size_t i = 0; i < f->n_in; i++)
		want[i] = start[i];
	assert_int_equal(f->v->upload(&bx, start, NULL), 0);
	sweep(f, model, 0.4f, y, want);
	assert_int_equal(f->v->row_sweep(a, 0.4f, &by, &bx, NULL), 0);
	got = fetched(&bx);
	near(got, want, f->n_in, 3 * TOL);
	f->v->projection_free(a);
	free(x);
	free(start);
	free(y);
	free(got);
	free(want);
	buf_release(&bx);
	buf_release(&by);
}

static void check_models(struct fixture *f)
{
	for (size_t m = 0; m < N_MODELS; m++) {
		check_operator(f, models[m]);
		check_sweep(f, models[m]);
	}
}

/* As if every ray were walked by itself. */
static void check_exact(struct fixture *f)
{
	struct projection *exact = create(f, PROJECTION_EXACT), *paths = create(f, PROJECTION_PATHS);
	float *x = volume(f, 5, 0), *reference, *got;
	struct buf bx = put(f, x, f->n_in), by = put(f, NULL, f->n_out);
	double *want = doubles(f->n_out);

	assert_int_equal(f->v->forward(exact, &bx, false, &by, NULL), 0);
	reference = fetched(&by);
	assert_int_equal(f->v->forward(paths, &bx, false, &by, NULL), 0);
	got = fetched(&by);
	for (size_t i = 0; i < f->n_out; i++)
		want[i] = reference[i];
	near(got, want, f->n_out, TOL);
	f->v->projection_free(exact);
	f->v->projection_free(paths);
	free(x);
	free(reference);
	free(got);
	free(want);
	buf_release(&bx);
	buf_release(&by);
}

/* <A x, y> = <x, A'y> in double. */
static void check_gap(struct fixture *f)
{
	for (size_t m = 0; m < N_MODELS; m++) {
		struct projection *a = create(f, models[m]);
		float *x = volume(f, 6, 0), *y = sinogram(f, 7), *ax, *aty;
		struct buf bx, by, ret_x = put(f, NULL, f->n_in), ret_y = put(f, NULL, f->n_out);
		double left = 0, right = 0, left2 = 0, y2 = 0;

		for (size_t i = 0; i < f->n_in; i++)
			x[i] = fabsf(x[i]);
		for (size_t i = 0; i < f->n_out; i++)
			y[i] = isnan(y[i]) ? 0 : fabsf(y[i]);
		bx = put(f, x, f->n_in);
		by = put(f, y, f->n_out);
		assert_int_equal(f->v->forward(a, &bx, false, &ret_y, NULL), 0);
		assert_int_equal(f->v->adjoint(a, &by, false, &ret_x, NULL), 0);
		ax = fetched(&ret_y);
		aty = fetched(&ret_x);
		for (size_t i = 0; i < f->n_out; i++) {
			left += (double)ax[i] * y[i];
			left2 += (double)ax[i] * ax[i];
			y2 += (double)y[i] * y[i];
		}
		for (size_t i = 0; i < f->n_in; i++)
			right += (double)aty[i] * x[i];
		assert_true(left > 0);
		assert_true(fabs(left - right) <= 1e-6 * sqrt(left2 * y2));
		f->v->projection_free(a);
		free(x);
		free(y);
		free(ax);
		free(aty);
		buf_release(&bx);
		buf_release(&by);
		buf_release(&ret_x);
		buf_release(&ret_y);
	}
}

/* Each voxel's sum, as device.h defines it. Positions within 1e-4 of a bin of the ends count as the ends:
 * rounding decides there. */
static void check_interpolated(struct fixture *f)
{
	struct projection *a = create(f, PROJECTION_EXACT);
	const struct grid *g = &f->grid;
	int n_u = f->scan.n_u, n_v = f->scan.n_v;
	uint32_t seed = 8;
	float *y = host(f->n_out), *got;
	double *want = doubles(f->n_in);
	struct buf by, ret = put(f, NULL, f->n_in);

	for (size_t i = 0; i < f->n_out; i++)
		y[i] = uniform(&seed);
	by = put(f, y, f->n_out);
	for (size_t i = 0; i < f->pixels; i++) {
		double px = g->lo[0] + ((int)i % g->n[0] + 0.5) * g->h[0], py = g->lo[1] + ((int)i / g->n[0] + 0.5) * g->h[1];

		for (int view = 0; view < VIEWS && hypot(px, py) < f->scan.fov_radius; view++) {
			const double *turn = f->views[view].turn;
			double at = (px * turn[0] + py * turn[1] - f->radius[0]) / (f->radius[1] - f->radius[0]);

			if (at < -LINE_EDGE || at > n_v - 1 + LINE_EDGE)
				continue;
			at = fmin(fmax(at, 0), n_v - 1);
			for (int u = 0; u < n_u; u++) {
				int bin = (int)fmin(floor(at), n_v - 2);
				const float *low = y + ((size_t)view * (size_t)n_v + (size_t)bin) * (size_t)n_u + u;

				want[voxel(f, i, u)] += (1 - (at - bin)) * low[0] + (at - bin) * low[n_u];
			}
		}
	}
	for (int pass = 1; pass <= 2; pass++) {
		assert_int_equal(f->v->back_interpolated(a, &by, pass == 2, &ret, NULL), 0);
		got = fetched(&ret);
		near(got, want, f->n_in, TOL);
		free(got);
		for (size_t i = 0; i < f->n_in; i++)
			want[i] *= 2;
	}
	f->v->projection_free(a);
	free(y);
	free(want);
	buf_release(&by);
	buf_release(&ret);
}

typedef void lines_test(struct fixture *f);

static void on_device(struct device *dev, const struct cpu_rows *rows, const struct setup *s, lines_test *test)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	if (rows)
		cpu_state(dev)->rows = rows;
	set_up(f, s, dev);
	test(f);
	device_close(dev);
	free(f);
}

/* In memory full of NaN, and with each instruction set. */
static void everywhere(lines_test *test)
{
	struct device *dev;

	for (size_t i = 0; i < N_SETUPS; i++) {
		assert_int_equal(device_poison_open(3, &dev, NULL), 0);
		on_device(dev, NULL, &setups[i], test);
		for (int set = 0; cpu_rows_at(set) && i + 1 < N_SETUPS; set++) {
			assert_int_equal(device_cpu_open(2, &dev, NULL), 0);
			on_device(dev, cpu_rows_at(set), &setups[i], test);
		}
	}
}

static void test_models(void **state)
{
	(void)state;
	everywhere(check_models);
}

static void test_exact(void **state)
{
	(void)state;
	everywhere(check_exact);
}

static void test_gap(void **state)
{
	(void)state;
	everywhere(check_gap);
}

static void test_interpolated(void **state)
{
	(void)state;
	everywhere(check_interpolated);
}

/* Everything that a setup can make on `threads` threads, one after the other. */
static float *results(const struct setup *s, int threads, size_t *ret_n)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct device *dev;
	struct projection *a;
	struct buf x, y, ret_x, ret_y;
	float *from, *all, *at;
	uint32_t seed = 9;

	assert_non_null(f);
	assert_int_equal(device_cpu_open(threads, &dev, NULL), 0);
	set_up(f, s, dev);
	*ret_n = N_MODELS * (2 * f->n_in + f->n_out) + f->n_in;
	at = all = host(*ret_n);
	from = volume(f, 10, 0);
	x = put(f, from, f->n_in);
	free(from);
	from = host(f->n_out);
	for (size_t i = 0; i < f->n_out; i++)
		from[i] = uniform(&seed);
	y = put(f, from, f->n_out);
	free(from);
	ret_x = put(f, NULL, f->n_in);
	ret_y = put(f, NULL, f->n_out);
	for (size_t m = 0; m < N_MODELS; m++) {
		a = create(f, models[m]);
		assert_int_equal(f->v->forward(a, &x, false, &ret_y, NULL), 0);
		assert_int_equal(f->v->download(&ret_y, at, NULL), 0);
		at += f->n_out;
		assert_int_equal(f->v->adjoint(a, &y, false, &ret_x, NULL), 0);
		assert_int_equal(f->v->download(&ret_x, at, NULL), 0);
		at += f->n_in;
		assert_int_equal(f->v->row_sweep(a, 0.3f, &y, &ret_x, NULL), 0);
		assert_int_equal(f->v->download(&ret_x, at, NULL), 0);
		at += f->n_in;
		if (m == 0)
			assert_int_equal(f->v->back_interpolated(a, &y, false, &ret_x, NULL), 0);
		if (m == 0)
			assert_int_equal(f->v->download(&ret_x, all + *ret_n - f->n_in, NULL), 0);
		f->v->projection_free(a);
	}
	buf_release(&x);
	buf_release(&y);
	buf_release(&ret_x);
	buf_release(&ret_y);
	device_close(dev);
	free(f);
	return all;
}

static void test_threads(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_SETUPS; i++) {
		size_t n, same;
		float *one = results(&setups[i], 1, &n), *three = results(&setups[i], 3, &same);

		assert_int_equal(n, same);
		assert_memory_equal(one, three, n * sizeof(*one));
		free(one);
		free(three);
	}
}

/* Rows of single values and of many against two loops. */
static void test_convolve(void **state)
{
	static const struct {
		size_t outer, inner;
		int n;
	} shapes[] = {{3, 1, 1}, {5, 1, 37}, {2, 1, 300}, {2, 1, 1100}, {4, 5, 33}, {1, 64, 70}, {2, 600, 9}, {7, 1, 16}};

	(void)state;
	for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++)
		for (int set = 0; cpu_rows_at(set); set++) {
			size_t inner = shapes[s].inner, size = shapes[s].outer * (size_t)shapes[s].n * inner;
			struct fixture f = {0};
			float *y = host(size), *kernel = host((size_t)shapes[s].n), *got;
			double *want = doubles(size);
			struct buf by, ret;
			uint32_t seed = 11;
			int n = shapes[s].n;

			assert_int_equal(device_cpu_open(2, &f.dev, NULL), 0);
			cpu_state(f.dev)->rows = cpu_rows_at(set);
			f.v = f.dev->ops;
			for (size_t i = 0; i < size; i++)
				y[i] = uniform(&seed);
			for (int i = 0; i < n; i++)
				kernel[i] = uniform(&seed) / (float)(1 + i);
			for (size_t o = 0; o < shapes[s].outer; o++)
				for (int i = 0; i < n; i++)
					for (int j = 0; j < n; j++)
						for (size_t k = 0; k < inner; k++)
							want[(o * (size_t)n + (size_t)i) * inner + k] +=
								(double)kernel[abs(i - j)] *
								y[(o * (size_t)n + (size_t)j) * inner + k];
			by = put(&f, y, size);
			ret = put(&f, NULL, size);
			assert_int_equal(f.v->convolve(&by, shapes[s].outer, n, inner, kernel, &ret, NULL), 0);
			got = fetched(&ret);
			near(got, want, size, 3e-6);
			assert_int_equal(f.v->convolve(&by, shapes[s].outer, n, inner, kernel, &by, NULL), -EINVAL);
			free(y);
			free(kernel);
			free(got);
			free(want);
			buf_release(&by);
			buf_release(&ret);
			device_close(f.dev);
		}
}

static void test_refused(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct projection *a;
	struct device *dev;
	struct err err = {0};
	struct buf x, y;

	(void)state;
	assert_non_null(f);
	assert_int_equal(device_cpu_open(1, &dev, NULL), 0);
	set_up(f, &setups[2], dev);
	x = put(f, NULL, f->n_in);
	y = put(f, NULL, f->n_out);
	a = create(f, PROJECTION_EXACT);
	assert_int_equal(f->v->row_sweep(a, 0.5f, &y, &x, &err), -ENOTSUP);
	f->v->projection_free(a);
	a = create(f, PROJECTION_JOSEPH);
	assert_int_equal(f->v->row_sweep(a, 2, &y, &x, &err), -EINVAL);
	assert_int_equal(f->v->row_sweep(a, 0, &y, &x, &err), -EINVAL);
	assert_int_equal(f->v->row_sweep(a, 0.5f, &x, &y, &err), -EINVAL);
	assert_int_equal(f->v->back_sums(a, &y, false, &x, &x, &err), -EINVAL);
	f->v->projection_free(a);
	buf_release(&x);
	buf_release(&y);
	device_close(dev);
	free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_models),	     cmocka_unit_test(test_exact),   cmocka_unit_test(test_gap),
		cmocka_unit_test(test_interpolated), cmocka_unit_test(test_threads), cmocka_unit_test(test_convolve),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
