/* SPDX-License-Identifier: Apache-2.0 */
/* Projections of the CPU devices, in addition to A and A' (tests/recon/core/test_projector.c): adding to existing values, pairs,
 * sums of both halves, fused passes for every rule, and the marks of the support. */
#include "kernels/device.h"
#include "kernels/slice_map.h"
#include "tests/kernels/buffers.h"
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

static struct buf random_buf(struct device *dev, size_t n, uint32_t seed, float lo, float hi)
{
	return fixture_upload(dev, fixture_floats(n, seed, lo, hi), n);
}

/* Return the largest difference divided by the largest value of b; infinity if a value is NaN. */
static double difference(const struct buf *a, const struct buf *b)
{
	assert_true(a->n == b->n);
	return fixture_difference(fixture_download(a), fixture_download(b), a->n);
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
	f->mask = fixture_upload(dev, NULL, f->n_out);
	f->mask_host = take_memory(f->n_out * sizeof(float));
	y = fixture_download(&f->y);
	for (size_t i = 0; i < f->n_out; i++) {
		float of_ten = fixture_uniform(&seed, 0, 10);
		size_t n_u = (size_t)f->scan.n_u, row = i / n_u;

		f->mask_host[i] = of_ten < 2 ? 0 : of_ten < 3 ? -1 : 1;
		if (row % 3 == 0 && i % n_u >= row * 7 % n_u) /* no data up to the end of the row */
			f->mask_host[i] = row % 2 ? -1 : 0;
		y[i] = f->mask_host[i] > 0 ? y[i] : NAN;
	}
	assert_int_equal(f->v->upload(&f->mask, f->mask_host, NULL) | f->v->upload(&f->y, y, NULL), 0);
	f->bins = fixture_upload(dev, NULL, f->n_out);
	for (int i = 0; i < 2; i++) {
		f->volume[i] = fixture_upload(dev, NULL, f->n_in);
		f->pair[i] = fixture_upload(dev, NULL, 2 * f->n_out);
	}
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

	*part = buf_part(&f->mask, (size_t)first * scan_view_size(&f->scan), (size_t)n * scan_view_size(&f->scan));
	return fixture_projection(f->dev, &spec);
}

static void each(void (*test)(struct fixture *f, enum projection_model model))
{
	for (int poison = 0; poison < 2; poison++) {
		for (size_t i = 0; i < N_SETUPS; i++) {
			TEST_BLOCK;
			struct fixture f;

			setup_fixture(&f, &setups[i], fixture_device(poison ? FIXTURE_POISON : FIXTURE_CPU, poison ? 2 : 3));
			for (int model = PROJECTION_EXACT; model <= PROJECTION_SLICES; model++)
				test(&f, model);
		}
	}
}

/* Check y += A x; masked bins do not change. */
static void forward_adds_one(struct fixture *f, enum projection_model model)
{
	struct buf part, sum = random_buf(f->dev, f->n_out, 9, 1, 2), before = random_buf(f->dev, f->n_out, 9, 1, 2);
	struct projection *a = project(f, model, 0, VIEWS, true, &part);
	float *old = fixture_download(&before), *got;

	assert_int_equal(f->v->forward(a, &f->x, false, &f->bins, NULL), 0);
	assert_int_equal(f->v->forward(a, &f->x, true, &sum, NULL), 0);
	got = fixture_download(&sum);
	for (size_t i = 0; i < f->n_out; i++)
		assert_true(f->mask_host[i] > 0 ? got[i] >= old[i] : got[i] == old[i]);
	assert_int_equal(f->v->axpy(1, &f->bins, &before, NULL), 0);
	assert_true(difference(&sum, &before) <= ADD_TOL);
}

TEST(forward_adds)
{
	each(forward_adds_one);
}

/* Compare pairs and their sums with the adjoint of q and of d. */
static void sums_are_adjoints_one(struct fixture *f, enum projection_model model)
{
	const struct rule rule = {RULE_TRANSMISSION, 1e-6f, 1e-6f, 0};
	struct buf part, q = fixture_upload(f->dev, NULL, f->n_out), d = fixture_upload(f->dev, NULL, f->n_out),
			 want = fixture_upload(f->dev, NULL, f->n_in);
	struct projection *a = project(f, model, 0, VIEWS, true, &part);
	float *p, *y = fixture_download(&f->y), *hq = take_memory(f->n_out * sizeof(float)),
		  *hd = take_memory(f->n_out * sizeof(float));

	assert_int_equal(f->v->forward(a, &f->x, false, &f->bins, NULL), 0);
	assert_int_equal(f->v->make_pair(a, &rule, &f->y, &f->bins, NULL, &f->pair[0], NULL), 0);
	assert_int_equal(f->v->back_sums(a, &f->pair[0], false, &f->volume[0], &f->volume[1], NULL), 0);
	p = fixture_download(&f->bins);
	for (size_t i = 0; i < f->n_out; i++) {
		hq[i] = f->mask_host[i] > 0 ? (float)(exp(-p[i]) - exp(-y[i])) : 0;
		hd[i] = f->mask_host[i] > 0 ? (float)(p[i] * exp(-p[i])) : 0;
	}
	assert_int_equal(f->v->upload(&q, hq, NULL) | f->v->upload(&d, hd, NULL), 0);
	assert_int_equal(f->v->adjoint(a, &q, false, &want, NULL), 0);
	assert_true(difference(&f->volume[0], &want) <= FUSED_TOL);
	assert_int_equal(f->v->adjoint(a, &d, false, &want, NULL), 0);
	assert_true(difference(&f->volume[1], &want) <= FUSED_TOL);
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
	struct buf part, num = fixture_upload(f->dev, NULL, f->n_in), den = fixture_upload(f->dev, NULL, f->n_in);
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
		at += bins;
	}
	a = fixture_download(&num);
	b = fixture_download(&f->volume[0]);
	assert_memory_equal(a, b, f->n_in * sizeof(float));
	a = fixture_download(&den);
	b = fixture_download(&f->volume[1]);
	assert_memory_equal(a, b, f->n_in * sizeof(float));
}

TEST(sums_add_up)
{
	each(sums_add_up_one);
}

/* A forward projection with a mask is that without one where the mask counts, and 0 elsewhere. */
static void masked_is_part_one(struct fixture *f, enum projection_model model)
{
	struct buf part, masked = fixture_upload(f->dev, NULL, f->n_out);
	float *want;

	assert_int_equal(f->v->forward(project(f, model, 0, VIEWS, false, &part), &f->x, false, &f->bins, NULL), 0);
	assert_int_equal(f->v->forward(project(f, model, 0, VIEWS, true, &part), &f->x, false, &masked, NULL), 0);
	want = fixture_download(&f->bins);
	for (size_t i = 0; i < f->n_out; i++)
		want[i] = f->mask_host[i] > 0 ? want[i] : 0;
	assert_true(fixture_difference(fixture_download(&masked), want, f->n_out) <= FUSED_TOL);
}

TEST(masked_is_part)
{
	each(masked_is_part_one);
}

/* Set a part of the voxels to 0: each third one, and in most rows all up to a place, from a place on, or all. */
static void leave_support(const struct fixture *f, float *x)
{
	size_t n_x = (size_t)f->s->grid.n[0];

	for (size_t i = 0; i < f->n_in; i++) {
		size_t row = i / n_x, at = i % n_x;

		if (i % 3 == 0 || (row % 4 && (at < row * 5 % n_x || (row % 4 > 1 && at >= row * 11 % n_x))))
			x[i] = 0;
	}
}

/* A sub-iteration with separate passes gives the same image as with fused passes; voxels outside the support remain 0. */
static void fused_is_plain_one(struct fixture *f, enum projection_model model)
{
	struct buf part, plain = fixture_upload(f->dev, NULL, f->n_in), fused = fixture_upload(f->dev, NULL, f->n_in);
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
		float *x = fixture_download(&f->x), *got, *pair;

		leave_support(f, x);
		assert_int_equal(f->v->upload(&plain, x, NULL) | f->v->upload(&fused, x, NULL), 0);
		assert_int_equal(f->v->forward(a, &plain, false, &f->bins, NULL), 0);
		assert_int_equal(f->v->make_pair(a, &rules[k], &f->y, &f->bins, row, &f->pair[0], NULL), 0);
		assert_int_equal(f->v->forward_pair(a, &rules[k], &fused, &f->y, row, &f->pair[1], NULL), 0);
		assert_true(difference(&f->pair[1], &f->pair[0]) <= FUSED_TOL);
		pair = fixture_download(&f->pair[1]);
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
		got = fixture_download(&fused);
		for (size_t i = 0; i < f->n_in; i++)
			assert_true((got[i] == 0) == (x[i] == 0));
	}
}

TEST(fused_is_plain)
{
	each(fused_is_plain_one);
}

/* Rules that do not use line integrals do not read the volume. */
TEST(no_line_no_volume)
{
	struct device *dev = fixture_device(FIXTURE_POISON, 2);
	struct fixture f;
	struct buf part;
	struct projection *a;
	struct rule rule = {RULE_BACKPROJECT, 1e-6f, 1e-6f, 0};
	struct err err = {0};
	float *pair;

	setup_fixture(&f, &setups[0], dev);
	a = project(&f, PROJECTION_SLICES, 0, VIEWS, true, &part);
	assert_int_equal(f.v->forward_pair(a, &rule, &f.volume[0], &f.y, &f.row, &f.pair[0], NULL), 0); /* a volume of NaN */
	assert_int_equal(f.v->make_pair(a, &rule, &f.y, NULL, &f.row, &f.pair[1], NULL), 0);
	assert_true(difference(&f.pair[0], &f.pair[1]) == 0);
	pair = fixture_download(&f.pair[0]);
	for (size_t i = 0; i < 2 * f.n_out; i++)
		assert_true(isfinite(pair[i]));
	assert_error(f.v->make_pair(a, &rule, &f.y, NULL, NULL, &f.pair[1], &err), &err, EINVAL, "length");
	part = buf_part(&f.pair[1], 0, f.n_out);
	assert_int_equal(f.v->make_pair(a, &rule, &f.y, NULL, &f.row, &part, &err), -EINVAL);
	assert_int_equal(f.v->back_sums(a, &part, false, &f.volume[0], &f.volume[1], &err), -EINVAL);
	assert_int_equal(f.v->back_update(a, &rule, &part, &f.volume[0], &err), -EINVAL);
	rule.kind = RULE_SART; /* with no relaxation */
	assert_int_equal(f.v->forward_pair(a, &rule, &f.x, &f.y, &f.row, &f.pair[0], &err), -EINVAL);
	assert_int_equal(f.v->back_update(a, &rule, &f.pair[0], &f.x, &err), -EINVAL);
}

/* The position of bin (u, v) of a view in the middle plane of a slice, in mm. */
static void shadow(const struct fixture *f, const struct scan_view *view, int u, int v, double z, double ret[2])
{
	double a[3], b[3];

	scan_ray(&f->scan, view, u, v, a, b);
	for (int c = 0; c < 2; c++)
		ret[c] = a[c] + (b[c] - a[c]) * (a[2] - z) / (a[2] - b[2]);
}

/* Where the bins of all views are in one slice, mm: each bin's centre, and that of the bin one row and one column further. */
struct shadows {
	double (*at)[2], (*next)[2];
};

static void make_shadows(const struct fixture *f, double z, struct shadows *ret)
{
	size_t bin = 0;

	for (int view = 0; view < VIEWS; view++)
		for (int v = 0; v < f->scan.n_v; v++)
			for (int u = 0; u < f->scan.n_u; u++, bin++) {
				shadow(f, &f->views[view], u, v, z, ret->at[bin]);
				shadow(f, &f->views[view], u + 1, v + 1, z, ret->next[bin]);
			}
}

/* What a voxel is marked as; UNSURE: a bin is so near to a border that rounding decides, or the error of a strip's map. */
enum mark { NOTHING, AIR, SEEN, UNSURE };

/* Compute the mark of a voxel by the definition in kernels/device.h, testing every bin of every view. */
static enum mark mark_of(const struct fixture *f, const struct shadows *s, const float *mask, const double voxel[2])
{
	bool air[2] = {false, false}, seen[2] = {false, false}; /* certainly; possibly */
	size_t bins = scan_view_size(&f->scan);

	for (size_t bin = 0; bin < VIEWS * bins; bin++) {
		double value = mask ? (double)mask[bin] : 1, error = f->views[bin / bins].posed ? SLICE_STRIP_ERROR : 1e-9;
		bool near[2] = {true, true}, nearest[2] = {true, true};

		for (int c = 0; c < 2 && near[1] + nearest[1] > 0; c++) {
			double distance = fabs(s->at[bin][c] - voxel[c]), step = s->next[bin][c] - s->at[bin][c];

			for (int possibly = 0; possibly < 2; possibly++) {
				double wrong = possibly ? error : -error;

				near[possibly] = near[possibly] && distance < f->s->grid.h[c] + wrong * step;
				nearest[possibly] = nearest[possibly] && distance < (0.5 + wrong) * step;
			}
		}
		for (int possibly = 0; possibly < 2; possibly++) {
			seen[possibly] = seen[possibly] || (value > 0 && near[possibly]);
			air[possibly] = air[possibly] || (value < 0 && nearest[possibly]);
		}
	}
	if (air[0] != air[1] || (!air[0] && seen[0] != seen[1]))
		return UNSURE;
	return air[0] ? AIR : seen[0] ? SEEN : NOTHING;
}

/* The marks of all voxels. */
static enum mark *marks_of(const struct fixture *f, const float *mask)
{
	const struct grid *g = &f->s->grid;
	enum mark *mark = take_memory(f->n_in * sizeof(*mark));
	struct shadows s = {take_memory(f->n_out * sizeof(*s.at)), take_memory(f->n_out * sizeof(*s.next))};
	size_t at = 0;

	assert_true(mark && s.at && s.next);
	for (int k = 0; k < g->n[2]; k++) {
		make_shadows(f, g->lo[2] + (k + 0.5) * g->h[2], &s);
		for (int j = 0; j < g->n[1]; j++)
			for (int i = 0; i < g->n[0]; i++) {
				const double voxel[2] = {g->lo[0] + (i + 0.5) * g->h[0], g->lo[1] + (j + 0.5) * g->h[1]};

				mark[at++] = mark_of(f, &s, mask, voxel);
			}
	}
	return mark;
}

static void check_marks(const struct fixture *f, const enum mark *mark, bool masked, const float *before, const float *got)
{
	size_t count[UNSURE + 1] = {0};

	for (size_t i = 0; i < f->n_in; i++) {
		float want = mark[i] == AIR || before[i] < 0 ? -1 : mark[i] == SEEN ? 1 : before[i];

		count[mark[i]]++;
		if (mark[i] != UNSURE && got[i] != want)
			fail_msg("%s: voxel %zu: %g instead of %g", f->s->name, i, (double)got[i], (double)want);
	}
	assert_true(count[UNSURE] < f->n_in / (f->s->ratio != 0 ? 2 : 20));
	assert_true(count[SEEN] > 0 && (!masked || count[AIR] > 0));
}

/* Masks with holes and random ones (0), and with air beyond a line, as in reality (1); without a mask, the volume already marked
 * by another projection (2). */
static void make_marked(struct fixture *f, int which, float *before)
{
	for (size_t i = 0; i < f->n_in; i++)
		before[i] = which == 2 && i % 50 == 7 ? -1 : 0;
	for (size_t i = 0; which == 1 && i < f->n_out; i++)
		f->mask_host[i] = i % 101 == 3 ? 0 : (int)(i % (size_t)f->scan.n_u) * 10 > 4 * f->scan.n_u ? -1 : 1;
}

static void mark_and_check(struct fixture *f, int which, enum projection_model model, const enum mark *mark, const float *before)
{
	static const struct {
		int first, n;
	} group[] = {{0, 2}, {2, 3}};
	struct buf part;
	float *got;

	assert_int_equal(f->v->upload(&f->mask, f->mask_host, NULL) | f->v->upload(&f->volume[0], before, NULL), 0);
	for (int s = 0; s < 2; s++) {
		struct projection *a = project(f, model, group[s].first, group[s].n, which < 2, &part);

		assert_int_equal(f->v->mark(a, &f->volume[0], NULL), 0);
	}
	got = fixture_download(&f->volume[0]);
	check_marks(f, mark, which < 2, before, got);
}

/* The marks are the same on all devices and in both models, so they are computed once. */
static void check_setup(const struct setup *s)
{
	enum mark *mark[3] = {NULL};

	for (int poison = 0; poison < 2; poison++) {
		struct fixture f;
		float *before;

		setup_fixture(&f, s, fixture_device(poison ? FIXTURE_POISON : FIXTURE_CPU, poison ? 2 : 3));
		before = take_memory(f.n_in * sizeof(*before));
		for (int which = 0; which < 3; which++) {
			make_marked(&f, which, before);
			if (!mark[which])
				mark[which] = marks_of(&f, which < 2 ? f.mask_host : NULL);
			for (int model = PROJECTION_EXACT; model <= PROJECTION_SLICES; model++)
				mark_and_check(&f, which, model, mark[which], before);
		}
	}
}

TEST(marks)
{
	for (size_t i = 0; i < N_SETUPS; i++)
		if (grid_size(&setups[i].grid) * (size_t)(setups[i].n_u * setups[i].n_v * VIEWS) <=
		    (test_tier() == 2 ? 200000000 : 60000000)) /* every bin is tested for every voxel */
			check_setup(&setups[i]);
}

/* mark() needs the volume between detector and source, with the exact model too. */
TEST(marks_want_slices)
{
	const struct setup high = {"through the source", 9, 9, 1, {{9, 9, 9}, {1, 1, 100}, {0, -4.5, 17}}};
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	struct fixture f;
	struct buf part;
	struct projection *a;
	struct err err = {0};

	setup_fixture(&f, &high, dev);
	a = project(&f, PROJECTION_EXACT, 0, VIEWS, false, &part);
	assert_error(f.v->mark(a, &f.x, &err), &err, EINVAL, "view 0");
	part = buf_part(&f.x, 0, 5);
	assert_int_equal(f.v->mark(a, &part, &err), -EINVAL);
}
