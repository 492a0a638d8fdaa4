/* Parallel rays on the CPU: the chord of every ray, transaxial paths against the ray walk, Joseph's weights against a plain
 * implementation, adjoints, adding, the same bits whatever the threads; on every instruction set, and in memory full of NaN. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/near.h"

#include "kernels/cpu_paths.h"
#include "kernels/planes.h"

/* float32 positions of up to 2^-24 of the field of view, and sums of a few hundred steps in float32. */
#define CHORD_TOL 1e-5
#define AGREE_TOL 1e-5 /* of the largest value */
#define GAP_TOL 1e-5
#define MOST_PLANES 512
#define MOST_BINS 64
#define VIEWS 7

/* Segments: planes of rise 0, pitch[0] apart, then of +-rises, pitch[1] apart, each as far as `height` lets it; all in mm. */
struct setup {
	const char *name;
	double height, pitch[2], rise, rises;
	double ring, fov, bin;
	int bins;
	struct grid grid;
	bool inside; /* axially, no ray leaves the grid */
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
};
#define N_SETUPS (sizeof(setups) / sizeof(setups[0]))

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
};

static int add_segment(struct scan_plane *plane, double height, double pitch, double rise)
{
	int n = (int)floor((height - 2 * fabs(rise)) / pitch + 1e-9);

	for (int i = 0; i < n; i++)
		plane[i] = (struct scan_plane){(i - 0.5 * (n - 1)) * pitch, rise};
	return n > 0 ? n : 0;
}

/* grid.lo of a setup is where its middle lies. Bins reach beyond the field of view; one ends just inside of it. */
static void set_up(struct fixture *f, const struct setup *s, struct device *dev)
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
	/* 90 degrees exactly: a ray in a face of voxels lies on one side of it */
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
				.fov_radius = s->fov};
	f->dev = dev;
	f->v = dev->ops;
	f->n_in = grid_size(&f->grid);
	f->n_out = scan_view_size(&f->scan) * VIEWS;
}

static struct projection *create(struct fixture *f, enum projection_model model, int tile)
{
	struct projection_spec spec = {
		.model = model, .scan = &f->scan, .n_views = VIEWS, .grid = &f->grid, .tile = {tile, tile}};
	struct projection *a = NULL;
	struct err err = {0};

	if (f->v->projection_create(f->dev, &spec, &a, &err) < 0)
		fail_msg("%s", err.msg);
	return a;
}

static float uniform(uint32_t *seed, float lo, float hi)
{
	*seed = *seed * 1664525u + 1013904223u;
	return lo + (hi - lo) * (float)(*seed >> 8) / (1 << 24);
}

static struct buf put(struct fixture *f, const float *host, size_t n)
{
	struct buf b;

	assert_int_equal(f->v->alloc(f->dev, n, &b, NULL), 0);
	assert_int_equal(f->v->upload(&b, host, NULL), 0);
	return b;
}

static float *fetched(const struct buf *b)
{
	float *host = malloc(b->n * sizeof(*host));

	assert_non_null(host);
	assert_int_equal(b->dev->ops->download(b, host, NULL), 0);
	return host;
}

static bool is_padding(const struct grid *g, size_t i)
{
	return g->z_fastest && i % grid_column(g) >= (size_t)g->n[2];
}

/* Random, or all of one value where lo == hi; the padding is NaN. */
static struct buf volume(struct fixture *f, uint32_t seed, float lo, float hi)
{
	float *host = malloc(f->n_in * sizeof(*host));
	struct buf b;

	assert_non_null(host);
	for (size_t i = 0; i < f->n_in; i++)
		host[i] = is_padding(&f->grid, i) ? NAN : uniform(&seed, lo, hi);
	b = put(f, host, f->n_in);
	free(host);
	return b;
}

static bool exists(const struct fixture *f, size_t bin)
{
	return scan_reach(&f->scan, (int)(bin / (size_t)f->scan.n_u % (size_t)f->scan.n_v)) > 0;
}

/* Random; NaN where there is no ray. */
static struct buf sinogram(struct fixture *f, uint32_t seed, float lo, float hi)
{
	float *host = malloc(f->n_out * sizeof(*host));
	struct buf b;

	assert_non_null(host);
	for (size_t i = 0; i < f->n_out; i++)
		host[i] = exists(f, i) ? uniform(&seed, lo, hi) : NAN;
	b = put(f, host, f->n_out);
	free(host);
	return b;
}

static struct buf empty(struct fixture *f, size_t n)
{
	struct buf b;

	assert_int_equal(f->v->alloc(f->dev, n, &b, NULL), 0);
	return b;
}

static float *forward(struct fixture *f, struct projection *a, const struct buf *x)
{
	struct buf y = empty(f, f->n_out);
	float *host;

	assert_int_equal(f->v->forward(a, x, false, &y, NULL), 0);
	host = fetched(&y);
	buf_release(&y);
	return host;
}

static float *back(struct fixture *f, struct projection *a, const struct buf *y)
{
	struct buf x = empty(f, f->n_in);
	float *host;

	assert_int_equal(f->v->adjoint(a, y, false, &x, NULL), 0);
	host = fetched(&x);
	buf_release(&x);
	return host;
}

/* The largest difference in units of the largest value of b; NaN counts as infinite. */
static double difference(const float *a, const float *b, size_t n)
{
	double most = 0, scale = 0;

	for (size_t i = 0; i < n; i++) {
		double d = fabs((double)a[i] - b[i]);

		most = d >= most ? d : d < most ? most : INFINITY;
		scale = fmax(scale, fabs(b[i]));
	}
	return scale > 0 ? most / scale : most;
}

/* Calls `test` for every setup, on the CPU with each instruction set and on the poisoned one. */
static void everywhere(void (*test)(struct fixture *f, const struct setup *s))
{
	struct fixture *f = malloc(sizeof(*f));
	struct device *dev;

	assert_non_null(f);
	for (size_t i = 0; i < N_SETUPS; i++) {
		for (int set = 0; cpu_rows_at(set); set++) {
			assert_int_equal(device_cpu_open(2, &dev, NULL), 0);
			cpu_state(dev)->rows = cpu_rows_at(set);
			set_up(f, &setups[i], dev);
			test(f, &setups[i]);
			device_close(dev);
		}
		assert_int_equal(device_poison_open(2, &dev, NULL), 0);
		set_up(f, &setups[i], dev);
		test(f, &setups[i]);
		assert_int_equal(device_poison_check(dev, NULL), 0);
		device_close(dev);
	}
	free(f);
}

/* What of a ray lies in the field of view and in the grid, mm; worked out in double from the definition. */
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
	const enum projection_model models[] = {PROJECTION_EXACT, PROJECTION_PATHS};
	struct buf ones = volume(f, 1, 1, 1);

	for (int m = 0; m < 2; m++) {
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
					/* a corner of the grid that is cut off is judged by the whole ray */
					if (fabs(y[bin] - length) > CHORD_TOL * (s->inside ? length : most))
						fail_msg("%s, model %d, view %d, bin %d, plane %d: %.9g, not %.9g mm", s->name,
							 (int)models[m], view, v, u, (double)y[bin], length);
					seen += length > 0;
				}
		assert_true(seen > f->n_out / 4);
		free(y);
		f->v->projection_free(a);
	}
	buf_release(&ones);
}

static void test_chords(void **state)
{
	(void)state;
	everywhere(check_chords);
}

/* The paths against the ray walk: both ways. */
static void check_exact(struct fixture *f, const struct setup *s)
{
	struct projection *exact = create(f, PROJECTION_EXACT, 11), *paths = create(f, PROJECTION_PATHS, 0);
	struct buf x = volume(f, 7, 0.1f, 1), y = sinogram(f, 8, 0.1f, 1);
	float *y0 = forward(f, exact, &x), *y1 = forward(f, paths, &x), *x0 = back(f, exact, &y), *x1 = back(f, paths, &y);
	double there = difference(y1, y0, f->n_out), here = difference(x1, x0, f->n_in);

	if (there > AGREE_TOL || here > AGREE_TOL)
		fail_msg("%s, %s: forward %g, back %g of the largest value", s->name, f->dev->name, there, here);
	for (size_t i = 0; i < f->n_in; i++)
		if (is_padding(&f->grid, i))
			assert_true(x0[i] == 0 && x1[i] == 0);
	free(y0);
	free(y1);
	free(x0);
	free(x1);
	buf_release(&x);
	buf_release(&y);
	f->v->projection_free(exact);
	f->v->projection_free(paths);
}

static void test_exact(void **state)
{
	(void)state;
	everywhere(check_exact);
}

/* Joseph 1982 for one ray: the sum over the lines of pixels across it. */
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
	float *host = fetched(&x), *y = forward(f, a, &x);
	size_t bin = 0;

	for (int view = 0; view < VIEWS; view++)
		for (int v = 0; v < f->scan.n_v; v++)
			for (int u = 0; u < f->scan.n_u; u++, bin++) {
				double expect = scan_reach(&f->scan, v) > 0 ? joseph(f, host, view, v, u) : 0;

				if (fabs(y[bin] - expect) > AGREE_TOL * 2 * f->scan.fov_radius)
					fail_msg("%s, view %d, bin %d, plane %d: %.9g, not %.9g", s->name, view, v, u,
						 (double)y[bin], expect);
			}
	free(host);
	free(y);
	buf_release(&x);
	f->v->projection_free(a);
}

static void test_joseph(void **state)
{
	(void)state;
	everywhere(check_joseph);
}

/* |<A x, y> - <x, A'y>| / (|A x| |y|), in double over what counts. */
static void check_adjoint(struct fixture *f, const struct setup *s)
{
	for (int model = PROJECTION_EXACT; model <= PROJECTION_JOSEPH; model++) {
		struct projection *a = model == PROJECTION_SLICES ? NULL : create(f, (enum projection_model)model, 0);
		struct buf x = volume(f, 3, -1, 1), y = sinogram(f, 4, -1, 1);
		float *hx = fetched(&x), *hy = fetched(&y), *ax = a ? forward(f, a, &x) : NULL, *aty = a ? back(f, a, &y) : NULL;
		double left = 0, right = 0, norm_ax = 0, norm_y = 0;

		for (size_t i = 0; a && i < f->n_out; i++) {
			double value = exists(f, i) ? hy[i] : 0;

			left += ax[i] * value;
			norm_ax += (double)ax[i] * ax[i];
			norm_y += value * value;
		}
		for (size_t i = 0; a && i < f->n_in; i++)
			right += is_padding(&f->grid, i) ? aty[i] : (double)hx[i] * aty[i];
		if (!(fabs(left - right) <= GAP_TOL * sqrt(norm_ax * norm_y)))
			fail_msg("%s, model %d: <Ax, y> = %.9g, <x, A'y> = %.9g", s->name, model, left, right);
		assert_true(!a || norm_ax > 0);
		free(hx);
		free(hy);
		free(ax);
		free(aty);
		buf_release(&x);
		buf_release(&y);
		f->v->projection_free(a);
	}
}

static void test_adjoint(void **state)
{
	(void)state;
	everywhere(check_adjoint);
}

/* Adding is what is there plus the result; the padding keeps what it holds. */
static void check_add(struct fixture *f, const struct setup *s)
{
	const enum projection_model models[] = {PROJECTION_EXACT, PROJECTION_PATHS, PROJECTION_JOSEPH};

	for (int m = 0; m < 3; m++) {
		struct projection *a = create(f, models[m], 13);
		struct buf x = volume(f, 5, 0.1f, 1), y = sinogram(f, 6, 0.1f, 1), sum_x, sum_y;
		float *ax = forward(f, a, &x), *aty = back(f, a, &y), *old_x = fetched(&x),
		      *old_y = malloc(f->n_out * sizeof(*old_y));
		uint32_t seed = 5;

		assert_non_null(old_y);
		for (size_t i = 0; i < f->n_out; i++)
			old_y[i] = uniform(&seed, 1, 2);
		sum_x = put(f, old_x, f->n_in);
		sum_y = put(f, old_y, f->n_out);
		assert_int_equal(f->v->forward(a, &x, true, &sum_y, NULL), 0);
		assert_int_equal(f->v->adjoint(a, &y, true, &sum_x, NULL), 0);
		for (size_t i = 0; i < f->n_out; i++)
			ax[i] += old_y[i];
		free(old_y);
		old_y = fetched(&sum_y);
		assert_true(difference(old_y, ax, f->n_out) < 3e-7);
		for (size_t i = 0; i < f->n_in; i++)
			aty[i] = is_padding(&f->grid, i) ? 0 : aty[i] + old_x[i];
		free(old_x);
		old_x = fetched(&sum_x);
		for (size_t i = 0; i < f->n_in; i++)
			if (is_padding(&f->grid, i)) {
				assert_true(isnan(old_x[i]));
				old_x[i] = 0;
			}
		if (!(difference(old_x, aty, f->n_in) < 3e-6)) /* another order of addition */
			fail_msg("%s, model %d: adding: %g", s->name, (int)models[m], difference(old_x, aty, f->n_in));
		free(ax);
		free(aty);
		free(old_x);
		free(old_y);
		buf_release(&x);
		buf_release(&y);
		buf_release(&sum_x);
		buf_release(&sum_y);
		f->v->projection_free(a);
	}
}

static void test_add(void **state)
{
	(void)state;
	everywhere(check_add);
}

/* The same bits with 1 and 3 threads, which take tiles of other sizes. */
static void test_threads(void **state)
{
	const int threads[] = {1, 3};
	struct fixture *f = malloc(sizeof(*f));

	(void)state;
	assert_non_null(f);
	for (size_t i = 0; i < N_SETUPS; i++)
		for (int m = PROJECTION_PATHS; m <= PROJECTION_JOSEPH; m++) {
			float *first[2] = {NULL, NULL};

			for (int k = 0; k < 2; k++) {
				struct projection *a;
				struct device *dev;
				struct buf x, y;
				float *ax, *aty;

				assert_int_equal(device_cpu_open(threads[k], &dev, NULL), 0);
				set_up(f, &setups[i], dev);
				a = create(f, (enum projection_model)m, 0);
				x = volume(f, 3, 0.1f, 1);
				y = sinogram(f, 4, 0.1f, 1);
				ax = forward(f, a, &x);
				aty = back(f, a, &y);
				if (k) {
					assert_memory_equal(ax, first[0], f->n_out * sizeof(*ax));
					assert_memory_equal(aty, first[1], f->n_in * sizeof(*aty));
					free(ax);
					free(aty);
				} else {
					first[0] = ax;
					first[1] = aty;
				}
				buf_release(&x);
				buf_release(&y);
				f->v->projection_free(a);
				device_close(dev);
			}
			free(first[0]);
			free(first[1]);
		}
	free(f);
}

/* No path has more steps than there is room for, steps follow each other, and the bytes that are told are enough for all. */
static void check_tables(struct fixture *f, const struct setup *s)
{
	for (int m = PROJECTION_PATHS; m <= PROJECTION_JOSEPH; m++) {
		struct projection *a = create(f, (enum projection_model)m, 0);
		struct projection_spec spec = {
			.model = (enum projection_model)m, .scan = &f->scan, .n_views = VIEWS, .grid = &f->grid};
		const struct cpu_paths *p = a->paths;
		size_t n = (size_t)VIEWS * (size_t)f->scan.n_v, steps = 0;

		for (size_t i = 0; i < n; i++) {
			const struct path *path = &p->path[i];

			assert_true(path->at == steps);
			steps += (size_t)path_bound(&f->scan, &f->views[i / (size_t)f->scan.n_v], (int)(i % (size_t)f->scan.n_v),
						    &f->grid, m == PROJECTION_PATHS ? planes_largest_rise(&f->scan) : 0);
			if (path->at + (size_t)path->n > steps)
				fail_msg("%s: path %zu has %d steps in %zu", s->name, i, path->n, steps - path->at);
		}
		assert_true(f->v->projection_bytes(f->dev, &spec) >=
			    sizeof(*a) + sizeof(*p) + n * sizeof(*p->path) + steps * sizeof(*p->step) +
				    (size_t)p->n_lanes * sizeof(*p->lane) +
				    (size_t)p->n_lanes * (size_t)f->scan.n_v * sizeof(*p->ray));
		assert_true(f->v->scratch_bytes(f->dev, &spec) >=
			    2 * sizeof(float) * ((size_t)p->block * (size_t)p->slab.row + (size_t)p->sums));
		f->v->projection_free(a);
	}
}

static void test_tables(void **state)
{
	(void)state;
	everywhere(check_tables);
}

/* What is refused, by name. */
static void test_refused(void **state)
{
	struct fixture *f = malloc(sizeof(*f));
	struct projection_spec spec = {.model = PROJECTION_PATHS, .scan = &f->scan, .n_views = VIEWS, .grid = &f->grid};
	struct projection *a = NULL;
	struct err err = {0};
	struct device *dev;
	struct buf mask;

	(void)state;
	assert_non_null(f);
	assert_int_equal(device_cpu_open(1, &dev, NULL), 0);
	set_up(f, &setups[0], dev);
	mask = sinogram(f, 1, 1, 1);
	spec.mask = &mask;
	assert_int_equal(f->v->projection_create(dev, &spec, &a, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "mask"));
	spec.mask = NULL;
	f->grid.z_fastest = false;
	assert_int_equal(f->v->projection_create(dev, &spec, &a, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "z fastest"));
	spec.model = PROJECTION_SLICES;
	assert_int_equal(f->v->projection_create(dev, &spec, &a, &err), -EINVAL);
	spec.model = PROJECTION_JOSEPH;
	f->grid.z_fastest = true;
	f->grid.n[1] = 1;
	assert_int_equal(f->v->projection_create(dev, &spec, &a, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "2 x 2"));
	f->grid.n[1] = 9;
	f->scan.ring_radius = f->scan.fov_radius;
	assert_int_equal(f->v->projection_create(dev, &spec, &a, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "oblique"));
	assert_null(a);
	buf_release(&mask);
	device_close(dev);
	free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chords),	cmocka_unit_test(test_exact),	cmocka_unit_test(test_joseph),
		cmocka_unit_test(test_adjoint), cmocka_unit_test(test_add),	cmocka_unit_test(test_threads),
		cmocka_unit_test(test_tables),	cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
