/* SPDX-License-Identifier: Apache-2.0 */
/* Projections of the CPU devices, in addition to A and A' (tests/recon/core/test_projector.c): adding to existing values, pairs,
 * sums of both halves, fused passes for every rule, and the marks of the support. */
#include <errno.h>

#include "kernels/device.h"
#include "kernels/slice_map.h"
#include "tests/test.h"

#define VIEWS 5
/* error of a sum that is rounded once, compared with one whose parts are rounded */
#define ADD_TOL 3e-7
/* both use the same loops in the same order, and both store a row of line integrals in float32 */
#define FUSED_TOL 1e-6

static const struct rule rules[] = {
	{RULE_EM, 1e-6f, 1e-6f, 0},   {RULE_EM_ROWS, 1e-6f, 1e-6f, 0},	   {RULE_TRANSMISSION, 1e-6f, 1e-6f, 0},
	{RULE_SART, 1e-6f, 1e-6f, 1}, {RULE_BACKPROJECT, 1e-6f, 1e-6f, 0},
};
#define N_RULES (sizeof(rules) / sizeof(rules[0]))

struct setup {
	const char *name;
	int n_u, n_v;
	double pitch;
	struct grid grid;
	double ratio; /* turn of the detector per angle of the source */
};

static const struct setup setups[] = {
	{"as fine", 37, 41, 1.0, {{37, 41, 11}, {1, 1, 1.5}, {0, -20.5, 17}}},
	{"finer bins", 61, 67, 0.4, {{23, 27, 9}, {1.1, 1.05, 2}, {0.3, -14, 20}}},
	{"much coarser bins", 9, 7, 7.3, {{63, 55, 3}, {0.5, 0.7, 8}, {2, -19, 17}}},
	{"small detector", 11, 13, 1.0, {{50, 60, 6}, {0.8, 0.8, 2}, {-10, -24, 17}}},
	{"wide", 203, 31, 0.5, {{199, 29, 9}, {0.5, 0.5, 2}, {0, -7, 17}}},
	{"as fine, turning", 37, 41, 1.0, {{37, 41, 11}, {1, 1, 1.5}, {0, -20.5, 27}}, 0.28},
	{"finer bins, turning", 61, 67, 0.4, {{23, 27, 9}, {1.1, 1.05, 2}, {0.3, -14, 20}}, 0.28},
	{"much coarser bins, turning", 9, 7, 7.3, {{63, 55, 3}, {0.5, 0.7, 8}, {2, -19, 27}}, 0.28},
	{"small detector, turning", 13, 31, 1.0, {{30, 40, 4}, {0.8, 0.8, 2}, {-10, -16, 27}}, 0.28},
	{"turning with the source", 37, 41, 1.0, {{50, 60, 6}, {0.8, 0.8, 2}, {-10, -24, 27}}, 1},
};
#define N_SETUPS (sizeof(setups) / sizeof(setups[0]))

/* A detector under a source that turns by 50 degrees (docs/geometry.md), on a device, with volumes and bins of random values. */
struct fixture {
	const struct setup *s;
	struct device *dev;
	const struct device_ops *v;
	struct scan_view views[VIEWS];
	struct scan scan;
	size_t n_in, n_out; /* of all views */
	float *mask_host;
	struct buf x, y, mask; /* y with NaN where the mask does not count */
	struct buf volume[2], bins, row, pair[2];
};

static float uniform(uint32_t *seed, float lo, float hi)
{
	*seed = *seed * 1664525u + 1013904223u;
	return lo + (hi - lo) * (float)(*seed >> 8) / (1 << 24);
}

static struct buf empty(struct device *dev, size_t n)
{
	struct buf b;

	assert_int_equal(dev->ops->alloc(dev, n, &b, NULL), 0);
	return b;
}

static struct buf random_buf(struct device *dev, size_t n, uint32_t seed, float lo, float hi)
{
	float *host = malloc(n * sizeof(*host));
	struct buf b = empty(dev, n);

	assert_non_null(host);
	for (size_t i = 0; i < n; i++)
		host[i] = uniform(&seed, lo, hi);
	assert_int_equal(dev->ops->upload(&b, host, NULL), 0);
	free(host);
	return b;
}

static float *fetched(const struct buf *b)
{
	float *host = malloc(b->n * sizeof(*host));

	assert_non_null(host);
	assert_int_equal(b->dev->ops->download(b, host, NULL), 0);
	return host;
}

/* Return the largest difference divided by the largest value of b; infinity if a value is NaN. */
static double difference(const struct buf *a, const struct buf *b)
{
	float *x = fetched(a), *y = fetched(b);
	double most = 0, scale = 0;

	assert_true(a->n == b->n);
	for (size_t i = 0; i < a->n; i++) {
		double d = fabs((double)x[i] - y[i]);

		most = d >= most ? d : d < most ? most : INFINITY;
		scale = fmax(scale, fabs(y[i]));
	}
	free(x);
	free(y);
	return scale > 0 ? most / scale : most;
}

/* Turn the detector around its middle. */
static void turn(const struct fixture *f, struct scan_view *view, double angle)
{
	double h = f->s->pitch, c = cos(angle), s = sin(angle), first = (0.5 - 0.5 * f->s->n_v) * h;

	view->posed = f->s->ratio != 0;
	view->pose = (struct scan_pose){{0.5 * h, first * c, -first * s}, {h, 0, 0}, {0, h * c, -h * s}};
}

static void make_scan(struct fixture *f)
{
	for (int i = 0; i < VIEWS; i++) {
		double angle = (-25 + 50.0 * i / (VIEWS - 1)) * M_PI / 180;

		f->views[i] = (struct scan_view){{3.7, 608.5 * sin(angle), 47 + 608.5 * cos(angle)}, {0.3 * i, 0.7 * (i - 2)}};
		turn(f, &f->views[i], f->s->ratio * angle);
	}
	f->scan = (struct scan){
		SCAN_DBT, f->s->n_u, f->s->n_v, VIEWS, {f->s->pitch, f->s->pitch}, {0, -0.5 * f->s->n_v * f->s->pitch}, f->views};
}

static void setup_fixture(struct fixture *f, const struct setup *s, struct device *dev)
{
	uint32_t seed = 17;
	float *y;

	*f = (struct fixture){.s = s, .dev = dev, .v = dev->ops};
	make_scan(f);
	f->n_in = grid_size(&s->grid);
	f->n_out = VIEWS * scan_view_size(&f->scan);
	f->x = random_buf(dev, f->n_in, 1, 0.02f, 0.06f);
	f->y = random_buf(dev, f->n_out, 2, 0.5f, 3);
	f->row = random_buf(dev, f->n_out, 3, 10, 30);
	f->mask = empty(dev, f->n_out);
	f->mask_host = malloc(f->n_out * sizeof(float));
	y = fetched(&f->y);
	assert_non_null(f->mask_host);
	for (size_t i = 0; i < f->n_out; i++) {
		float of_ten = uniform(&seed, 0, 10);

		f->mask_host[i] = of_ten < 2 ? 0 : of_ten < 3 ? -1 : 1;
		y[i] = f->mask_host[i] > 0 ? y[i] : NAN;
	}
	assert_int_equal(f->v->upload(&f->mask, f->mask_host, NULL) | f->v->upload(&f->y, y, NULL), 0);
	free(y);
	f->bins = empty(dev, f->n_out);
	for (int i = 0; i < 2; i++) {
		f->volume[i] = empty(dev, f->n_in);
		f->pair[i] = empty(dev, 2 * f->n_out);
	}
}

static void clear_fixture(struct fixture *f)
{
	buf_release(&f->x);
	buf_release(&f->y);
	buf_release(&f->row);
	buf_release(&f->mask);
	buf_release(&f->bins);
	for (int i = 0; i < 2; i++) {
		buf_release(&f->volume[i]);
		buf_release(&f->pair[i]);
	}
	free(f->mask_host);
}

/* The views [first, first + n); `masked`: with the fixture's mask. */
static struct projection *project(const struct fixture *f, enum projection_model model, int first, int n, bool masked,
				  struct buf *part)
{
	struct projection_spec spec = {.model = model,
				       .scan = &f->scan,
				       .first = first,
				       .n_views = n,
				       .grid = &f->s->grid,
				       .mask = masked ? part : NULL};
	struct projection *a = NULL;
	struct err err = {0};

	*part = buf_part(&f->mask, (size_t)first * scan_view_size(&f->scan), (size_t)n * scan_view_size(&f->scan));
	if (f->v->projection_create(f->dev, &spec, &a, &err) < 0)
		print_error("%s: %s\n", f->s->name, err.msg);
	assert_non_null(a);
	return a;
}

static void each(void (*test)(struct fixture *f, enum projection_model model))
{
	for (int poison = 0; poison < 2; poison++) {
		for (size_t i = 0; i < N_SETUPS; i++) {
			struct device *dev = NULL;
			struct fixture f;

			assert_int_equal(poison ? device_poison_open(2, &dev, NULL) : device_cpu_open(3, &dev, NULL), 0);
			setup_fixture(&f, &setups[i], dev);
			for (int model = PROJECTION_EXACT; model <= PROJECTION_SLICES; model++)
				test(&f, model);
			clear_fixture(&f);
			if (poison)
				assert_int_equal(device_poison_check(dev, NULL), 0);
			device_close(dev);
		}
	}
}

/* Check y += A x; masked bins do not change. */
static void forward_adds_one(struct fixture *f, enum projection_model model)
{
	struct buf part, sum = random_buf(f->dev, f->n_out, 9, 1, 2), before = random_buf(f->dev, f->n_out, 9, 1, 2);
	struct projection *a = project(f, model, 0, VIEWS, true, &part);
	float *old = fetched(&before), *got;

	assert_int_equal(f->v->forward(a, &f->x, false, &f->bins, NULL), 0);
	assert_int_equal(f->v->forward(a, &f->x, true, &sum, NULL), 0);
	got = fetched(&sum);
	for (size_t i = 0; i < f->n_out; i++)
		assert_true(f->mask_host[i] > 0 ? got[i] >= old[i] : got[i] == old[i]);
	free(got);
	assert_int_equal(f->v->axpy(1, &f->bins, &before, NULL), 0);
	assert_true(difference(&sum, &before) <= ADD_TOL);
	free(old);
	buf_release(&sum);
	buf_release(&before);
	f->v->projection_free(a);
}

TEST(forward_adds)
{
	each(forward_adds_one);
}

/* Compare pairs and their sums with the adjoint of q and of d. */
static void sums_are_adjoints_one(struct fixture *f, enum projection_model model)
{
	const struct rule rule = {RULE_TRANSMISSION, 1e-6f, 1e-6f, 0};
	struct buf part, q = empty(f->dev, f->n_out), d = empty(f->dev, f->n_out), want = empty(f->dev, f->n_in);
	struct projection *a = project(f, model, 0, VIEWS, true, &part);
	float *p, *y = fetched(&f->y), *hq = malloc(f->n_out * sizeof(float)), *hd = malloc(f->n_out * sizeof(float));

	assert_true(hq && hd);
	assert_int_equal(f->v->forward(a, &f->x, false, &f->bins, NULL), 0);
	assert_int_equal(f->v->make_pair(a, &rule, &f->y, &f->bins, NULL, &f->pair[0], NULL), 0);
	assert_int_equal(f->v->back_sums(a, &f->pair[0], false, &f->volume[0], &f->volume[1], NULL), 0);
	p = fetched(&f->bins);
	for (size_t i = 0; i < f->n_out; i++) {
		hq[i] = f->mask_host[i] > 0 ? (float)(exp(-p[i]) - exp(-y[i])) : 0;
		hd[i] = f->mask_host[i] > 0 ? (float)(p[i] * exp(-p[i])) : 0;
	}
	assert_int_equal(f->v->upload(&q, hq, NULL) | f->v->upload(&d, hd, NULL), 0);
	assert_int_equal(f->v->adjoint(a, &q, false, &want, NULL), 0);
	assert_true(difference(&f->volume[0], &want) <= FUSED_TOL);
	assert_int_equal(f->v->adjoint(a, &d, false, &want, NULL), 0);
	assert_true(difference(&f->volume[1], &want) <= FUSED_TOL);
	free(p);
	free(y);
	free(hq);
	free(hd);
	buf_release(&q);
	buf_release(&d);
	buf_release(&want);
	f->v->projection_free(a);
}

TEST(sums_are_adjoints)
{
	each(sums_are_adjoints_one);
}

/* Back sums of two groups of views, one added to the other, are bitwise the sums of all views: every model adds view by view. */
static void sums_add_up_one(struct fixture *f, enum projection_model model)
{
	const struct rule rule = {RULE_EM, 1e-6f, 1e-6f, 0};
	size_t at = 0;
	struct buf part, num = empty(f->dev, f->n_in), den = empty(f->dev, f->n_in);
	struct projection *all = project(f, model, 0, VIEWS, true, &part);
	float *a, *b;

	assert_int_equal(f->v->forward(all, &f->x, false, &f->bins, NULL), 0);
	assert_int_equal(f->v->make_pair(all, &rule, &f->y, &f->bins, NULL, &f->pair[0], NULL), 0);
	assert_int_equal(f->v->back_sums(all, &f->pair[0], false, &num, &den, NULL), 0);
	for (int first = 0; first < VIEWS; first += 2) {
		int n = first + 2 < VIEWS ? 2 : VIEWS - first;
		size_t bins = (size_t)n * scan_view_size(&f->scan);
		struct buf mask, y = buf_part(&f->y, at, bins), p = buf_part(&f->bins, at, bins),
				 pair = buf_part(&f->pair[1], 0, 2 * bins);
		struct projection *some = project(f, model, first, n, true, &mask);

		assert_int_equal(f->v->make_pair(some, &rule, &y, &p, NULL, &pair, NULL), 0);
		assert_int_equal(f->v->back_sums(some, &pair, first > 0, &f->volume[0], &f->volume[1], NULL), 0);
		f->v->projection_free(some);
		at += bins;
	}
	a = fetched(&num);
	b = fetched(&f->volume[0]);
	assert_memory_equal(a, b, f->n_in * sizeof(float));
	free(a);
	free(b);
	a = fetched(&den);
	b = fetched(&f->volume[1]);
	assert_memory_equal(a, b, f->n_in * sizeof(float));
	free(a);
	free(b);
	buf_release(&num);
	buf_release(&den);
	f->v->projection_free(all);
}

TEST(sums_add_up)
{
	each(sums_add_up_one);
}

/* A sub-iteration with separate passes gives the same image as with fused passes; voxels outside the support remain 0. */
static void fused_is_plain_one(struct fixture *f, enum projection_model model)
{
	struct buf part, plain = empty(f->dev, f->n_in), fused = empty(f->dev, f->n_in);
	struct projection *a = project(f, model, 0, VIEWS, true, &part);
	struct err err = {0};

	if (!f->v->fused(a)) {
		assert_int_equal(model, PROJECTION_EXACT);
		assert_int_equal(f->v->forward_pair(a, &rules[0], &f->x, &f->y, NULL, &f->pair[0], &err), -ENOTSUP);
		assert_int_equal(f->v->back_update(a, &rules[0], &f->pair[0], &plain, &err), -ENOTSUP);
		assert_int_equal(f->v->sub_iterate(a, &rules[0], &f->y, NULL, &f->pair[0], &plain, &err), -ENOTSUP);
	}
	for (size_t k = 0; k < N_RULES && f->v->fused(a); k++) {
		const struct buf *row = rule_needs_length(rules[k].kind) ? &f->row : NULL;
		float *x = fetched(&f->x), *got, *pair;

		for (size_t i = 0; i < f->n_in; i += 3)
			x[i] = 0;
		assert_int_equal(f->v->upload(&plain, x, NULL) | f->v->upload(&fused, x, NULL), 0);
		assert_int_equal(f->v->forward(a, &plain, false, &f->bins, NULL), 0);
		assert_int_equal(f->v->make_pair(a, &rules[k], &f->y, &f->bins, row, &f->pair[0], NULL), 0);
		assert_int_equal(f->v->forward_pair(a, &rules[k], &fused, &f->y, row, &f->pair[1], NULL), 0);
		assert_true(difference(&f->pair[1], &f->pair[0]) <= FUSED_TOL);
		pair = fetched(&f->pair[1]);
		for (size_t i = 0; i < f->n_out; i++)
			assert_true(f->mask_host[i] > 0 || (pair[i] == 0 && pair[f->n_out + i] == 0));
		assert_int_equal(f->v->back_sums(a, &f->pair[0], false, &f->volume[0], &f->volume[1], NULL), 0);
		assert_int_equal(f->v->rule_voxels(&rules[k], &f->volume[0], &f->volume[1], &plain, NULL), 0);
		assert_int_equal(f->v->back_update(a, &rules[k], &f->pair[1], &fused, NULL), 0);
		assert_true(difference(&fused, &plain) <= FUSED_TOL);
		assert_true(difference(&fused, &f->x) > 0.01); /* it has done something */
		assert_int_equal(f->v->upload(&fused, x, NULL) | f->v->fill(&f->pair[1], NAN, NULL), 0);
		assert_int_equal(f->v->sub_iterate(a, &rules[k], &f->y, row, &f->pair[1], &fused, NULL), 0);
		assert_true(difference(&fused, &plain) <= FUSED_TOL);
		got = fetched(&fused);
		for (size_t i = 0; i < f->n_in; i++)
			assert_true((got[i] == 0) == (x[i] == 0));
		free(x);
		free(got);
		free(pair);
	}
	buf_release(&plain);
	buf_release(&fused);
	f->v->projection_free(a);
}

TEST(fused_is_plain)
{
	each(fused_is_plain_one);
}

/* Rules that do not use line integrals do not read the volume. */
TEST(no_line_no_volume)
{
	struct device *dev = NULL;
	struct fixture f;
	struct buf part;
	struct projection *a;
	struct rule rule = {RULE_BACKPROJECT, 1e-6f, 1e-6f, 0};
	struct err err = {0};
	float *pair;

	assert_int_equal(device_poison_open(2, &dev, NULL), 0);
	setup_fixture(&f, &setups[0], dev);
	a = project(&f, PROJECTION_SLICES, 0, VIEWS, true, &part);
	assert_int_equal(f.v->forward_pair(a, &rule, &f.volume[0], &f.y, &f.row, &f.pair[0], NULL), 0); /* a volume of NaN */
	assert_int_equal(f.v->make_pair(a, &rule, &f.y, NULL, &f.row, &f.pair[1], NULL), 0);
	assert_true(difference(&f.pair[0], &f.pair[1]) == 0);
	pair = fetched(&f.pair[0]);
	for (size_t i = 0; i < 2 * f.n_out; i++)
		assert_true(isfinite(pair[i]));
	free(pair);
	assert_int_equal(f.v->make_pair(a, &rule, &f.y, NULL, NULL, &f.pair[1], &err), -EINVAL);
	assert_non_null(strstr(err.msg, "length"));
	part = buf_part(&f.pair[1], 0, f.n_out);
	assert_int_equal(f.v->make_pair(a, &rule, &f.y, NULL, &f.row, &part, &err), -EINVAL);
	assert_int_equal(f.v->back_sums(a, &part, false, &f.volume[0], &f.volume[1], &err), -EINVAL);
	assert_int_equal(f.v->back_update(a, &rule, &part, &f.volume[0], &err), -EINVAL);
	rule.kind = RULE_SART; /* with no relaxation */
	assert_int_equal(f.v->forward_pair(a, &rule, &f.x, &f.y, &f.row, &f.pair[0], &err), -EINVAL);
	assert_int_equal(f.v->back_update(a, &rule, &f.pair[0], &f.x, &err), -EINVAL);
	f.v->projection_free(a);
	clear_fixture(&f);
	device_close(dev);
}

/* The position of bin (u, v) of a view in the middle plane of a slice, in mm. */
static void shadow(const struct fixture *f, const struct scan_view *view, int u, int v, double z, double ret[2])
{
	double a[3], b[3];

	scan_ray(&f->scan, view, u, v, a, b);
	for (int c = 0; c < 2; c++)
		ret[c] = a[c] + (b[c] - a[c]) * (a[2] - z) / (a[2] - b[2]);
}

/* What a bin does to a voxel by the definition in kernels/device.h, if distances are wrong by up to `error` bins. */
struct touch {
	bool near, nearest;
};

static struct touch touches(const struct fixture *f, const double at[2], const double next[2], const double voxel[2],
			    double error)
{
	struct touch t = {true, true};

	for (int c = 0; c < 2; c++) {
		double distance = fabs(at[c] - voxel[c]), bin = next[c] - at[c];

		t.near = t.near && distance < f->s->grid.h[c] + error * bin;
		t.nearest = t.nearest && distance < (0.5 + error) * bin;
	}
	return t;
}

/* Compute the mark of a voxel, testing every bin of every view. Return false if a bin is so near to a border that rounding
 * decides, or the error of a strip's map. */
static bool expected_mark(const struct fixture *f, const float *mask, int i, int j, int k, bool *ret_air, bool *ret_seen)
{
	const struct grid *g = &f->s->grid;
	const double voxel[2] = {g->lo[0] + (i + 0.5) * g->h[0], g->lo[1] + (j + 0.5) * g->h[1]};
	double z = g->lo[2] + (k + 0.5) * g->h[2];
	bool air[2] = {false, false}, seen[2] = {false, false}; /* certainly; possibly */

	for (int view = 0; view < VIEWS; view++) {
		double error = f->views[view].posed ? SLICE_STRIP_ERROR : 1e-9;

		for (int v = 0; v < f->scan.n_v; v++) {
			for (int u = 0; u < f->scan.n_u; u++) {
				size_t bin = ((size_t)view * (size_t)f->scan.n_v + (size_t)v) * (size_t)f->scan.n_u + (size_t)u;
				float value = mask ? mask[bin] : 1;
				double at[2], next[2];

				shadow(f, &f->views[view], u, v, z, at);
				shadow(f, &f->views[view], u + 1, v + 1, z, next);
				for (int possibly = 0; possibly < 2; possibly++) {
					struct touch t = touches(f, at, next, voxel, possibly ? error : -error);

					seen[possibly] = seen[possibly] || (value > 0 && t.near);
					air[possibly] = air[possibly] || (value < 0 && t.nearest);
				}
			}
		}
	}
	*ret_air = air[0];
	*ret_seen = seen[0];
	return air[0] == air[1] && (air[0] || seen[0] == seen[1]);
}

static void check_marks(const struct fixture *f, const float *mask, const float *before, const float *got)
{
	size_t skipped = 0, at = 0, kinds[3] = {0};
	bool air, seen;

	for (int k = 0; k < f->s->grid.n[2]; k++) {
		for (int j = 0; j < f->s->grid.n[1]; j++) {
			for (int i = 0; i < f->s->grid.n[0]; i++, at++) {
				float want;

				if (!expected_mark(f, mask, i, j, k, &air, &seen)) {
					skipped++;
					continue;
				}
				want = air || before[at] < 0 ? -1 : seen ? 1 : before[at];
				if (got[at] != want)
					print_error("%s: voxel %d %d %d: %g instead of %g\n", f->s->name, i, j, k,
						    (double)got[at], (double)want);
				assert_true(got[at] == want);
				kinds[want < 0 ? 0 : want > 0 ? 2 : 1]++;
			}
		}
	}
	assert_true(skipped < f->n_in / (f->s->ratio != 0 ? 2 : 20));
	assert_true(kinds[2] > 0 && (!mask || kinds[0] > 0));
}

/* Masks with air beyond a line, as in reality, with holes, and random ones; the volume is 0 or already marked by another
 * projection. */
static void marks_one(struct fixture *f, enum projection_model model)
{
	static const struct {
		int first, n;
	} group[] = {{0, 2}, {2, 3}};
	float *host = malloc(f->n_in * sizeof(*host)), *got;
	struct buf part;

	assert_non_null(host);
	if (f->n_in * f->n_out > 60000000)
		goto out; /* testing every bin for every voxel would take too long */
	for (int which = 0; which < 3; which++) {
		for (size_t i = 0; i < f->n_in; i++)
			host[i] = which == 2 && i % 50 == 7 ? -1 : 0;
		for (size_t i = 0; which == 1 && i < f->n_out; i++)
			f->mask_host[i] = i % 101 == 3 ? 0 : (int)(i % (size_t)f->scan.n_u) * 10 > 4 * f->scan.n_u ? -1 : 1;
		assert_int_equal(f->v->upload(&f->mask, f->mask_host, NULL) | f->v->upload(&f->volume[0], host, NULL), 0);
		for (int s = 0; s < 2; s++) {
			struct projection *a = project(f, model, group[s].first, group[s].n, which < 2, &part);

			assert_int_equal(f->v->mark(a, &f->volume[0], NULL), 0);
			f->v->projection_free(a);
		}
		got = fetched(&f->volume[0]);
		check_marks(f, which < 2 ? f->mask_host : NULL, host, got);
		free(got);
	}
out:
	free(host);
}

TEST(marks)
{
	each(marks_one);
}

/* mark() needs the volume between detector and source, with the exact model too. */
TEST(marks_want_slices)
{
	const struct setup high = {"through the source", 9, 9, 1, {{9, 9, 9}, {1, 1, 100}, {0, -4.5, 17}}};
	struct device *dev = NULL;
	struct fixture f;
	struct buf part;
	struct projection *a;
	struct err err = {0};

	assert_int_equal(device_cpu_open(1, &dev, NULL), 0);
	setup_fixture(&f, &high, dev);
	a = project(&f, PROJECTION_EXACT, 0, VIEWS, false, &part);
	assert_int_equal(f.v->mark(a, &f.x, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "view 0"));
	part = buf_part(&f.x, 0, 5);
	assert_int_equal(f.v->mark(a, &part, &err), -EINVAL);
	f.v->projection_free(a);
	clear_fixture(&f);
	device_close(dev);
}
