/* SPDX-License-Identifier: Apache-2.0 */
/* The iteration: properties of every step of EM that theory predicts, fused and plain passes of every rule, the monitor; on both
 * CPU devices. */
#include "recon/core/iterate.h"
#include "tests/recon/dbt_fixture.h"
#include "tests/test.h"

#define FLOOR 1e-6f
/* sum(A x) = sum(y) holds exactly; float32 sums and divisions leave about 1e-6. */
#define SUM_TOL 1e-5
/* a log-likelihood of about 1e4 from float32 projections has a relative error of about 1e-6 */
#define LIKELIHOOD_TOL 1e-6

static const struct grid grid = {{31, 37, 9}, {1, 1, 1.5}, {0, -18.5, 17}};

/* Data of a random volume, with noise of +-20 %, some bins zero, some of them (0.7 count) masked, view 1 masked altogether. */
static void make_data(struct device *dev, const struct scan *scan, struct buf *ret_y, struct buf *ret_mask)
{
	struct projection_spec spec = {.model = PROJECTION_EXACT, .scan = scan, .n_views = scan->n_views, .grid = &grid};
	struct linop *op = fixture_projector(dev, &spec);
	float *xs = fixture_floats(op->n_in, 3, 0.01f, 0.09f), *ys, *mask = take_memory(op->n_out * sizeof(float));
	struct buf x = fixture_upload(dev, xs, op->n_in), y = fixture_upload(dev, NULL, op->n_out);
	size_t per_view = scan_view_size(scan);
	uint32_t seed = 77;

	assert_int_equal(op->apply(op, &x, &y, NULL), 0);
	ys = fixture_download(&y);
	for (size_t i = 0; i < op->n_out; i++) {
		mask[i] = i / per_view != 1 && fixture_random(&seed) < 0.7f;
		ys[i] *= (0.8f + 0.4f * fixture_random(&seed)) * mask[i];
		if (fixture_random(&seed) < 0.05f)
			ys[i] = 0;
	}
	assert_int_equal(dev->ops->upload(&y, ys, NULL), 0);
	*ret_y = y;
	*ret_mask = fixture_upload(dev, mask, op->n_out);
}

static double data_with_support(const struct linop *op, const struct buf *x, const struct buf *y, double *ret_model,
				double *ret_likelihood)
{
	const struct device_ops *v = op->dev->ops;
	struct buf p = fixture_upload(op->dev, NULL, op->n_out);
	double data;

	assert_int_equal(op->apply(op, x, &p, NULL), 0);
	assert_int_equal(v->sum(&p, ret_model, NULL), 0);
	assert_int_equal(v->log_likelihood(y, &p, FLOOR, ret_likelihood, NULL), 0);
	assert_int_equal(v->threshold(&p, FLOOR, 1, NULL), 0);
	assert_int_equal(v->dot(y, &p, &data, NULL), 0); /* y where A x > floor */
	return data;
}

TEST(mlem_identities)
{
	const struct iterate_conf conf = {{RULE_EM, FLOOR, FLOOR, 1}, 1};

	for (int which = 0; which < FIXTURE_DEVICES; which++) {
		struct device *dev = fixture_device(which, 2);
		struct scan *scan = fixture_scan(33, 37, 0.9, 5);
		struct buf y, mask, x = fixture_upload(dev, NULL, grid_size(&grid));

		make_data(dev, scan, &y, &mask);
		for (int model = PROJECTION_EXACT; model <= PROJECTION_SLICES; model++) {
			struct projection_spec spec = {.model = model, .scan = scan, .n_views = 5, .grid = &grid, .mask = &mask};
			struct linop *op = fixture_projector(dev, &spec);
			struct iterate_subset all = {.op = op, .y = y};
			struct session_memory memory = {.dev = dev};
			struct iterate_work work;
			double before = -INFINITY;

			assert_int_equal(iterate_work_alloc(&memory, op->n_in, op->n_out, linop_fused(op), false, &work, NULL),
					 0);
			assert_int_equal(dev->ops->fill(&x, 1, NULL), 0);
			for (int k = 0; k < 15; k++) {
				double data, sum, likelihood;
				float *xs;

				assert_int_equal(iterate_run(&conf, &all, 1, &work, &x, NULL, NULL), 0);
				data = data_with_support(op, &x, &y, &sum, &likelihood);
				assert_near(sum, data, SUM_TOL * data);
				assert_true(likelihood >= before - LIKELIHOOD_TOL * fabs(likelihood));
				before = likelihood;
				xs = fixture_download(&x);
				for (size_t i = 0; i < x.n; i++)
					assert_true(xs[i] >= 0 && isfinite(xs[i]));
			}
			session_release(&memory);
		}
	}
}

static const struct rule rules[] = {
	{RULE_EM, FLOOR, FLOOR, 1},	 {RULE_EM_ROWS, FLOOR, 1e-9f, 1},     {RULE_TRANSMISSION, FLOOR, 1e-12f, 1},
	{RULE_SART, FLOOR, FLOOR, 0.5f}, {RULE_BACKPROJECT, FLOOR, FLOOR, 1},
};

/* Subsets of single views; plain: the same operators without their fused passes. Rows have a length of 9 * 1.5 mm. */
static float *ordered(struct device *dev, const struct rule *rule, const struct scan *scan, const struct buf *y,
		      const struct buf *mask, int iterations, bool plain, const struct monitor *monitor, int expect)
{
	const struct iterate_conf conf = {*rule, iterations};
	struct buf x = fixture_upload(dev, NULL, grid_size(&grid)), row = fixture_upload(dev, NULL, y->n), masks[5];
	struct linop *op[5], kept[5];
	struct iterate_subset subset[5] = {0};
	size_t n = scan_view_size(scan);
	struct session_memory memory = {.dev = dev};
	struct iterate_work work;
	struct err err = {0};
	float *result;

	assert_int_equal(dev->ops->fill(&row, 13.5f, NULL), 0);
	assert_int_equal(iterate_work_alloc(&memory, x.n, n, !plain, false, &work, NULL), 0);
	for (int i = 0; i < 5; i++) {
		struct projection_spec spec = {.model = PROJECTION_SLICES, .scan = scan, .first = i, .n_views = 1, .grid = &grid};

		masks[i] = buf_part(mask, (size_t)i * n, n);
		spec.mask = &masks[i];
		op[i] = fixture_projector(dev, &spec);
		subset[i] = (struct iterate_subset){.op = op[i], .y = buf_part(y, (size_t)i * n, n)};
		if (rule_needs_length(rule->kind))
			subset[i].row = buf_part(&row, (size_t)i * n, n);
		if (plain) {
			kept[i] = *op[i];
			op[i]->apply_pair = NULL;
			op[i]->adjoint_update = NULL;
		}
	}
	assert_int_equal(dev->ops->fill(&x, 0.05f, NULL), 0);
	assert_int_equal(iterate_run(&conf, subset, 5, &work, &x, monitor, &err), expect);
	result = fixture_download(&x);
	for (int i = 0; i < 5; i++) {
		if (plain)
			*op[i] = kept[i];
	}
	session_release(&memory);
	return result;
}

TEST(fused_is_plain)
{
	for (size_t k = 0; k < sizeof(rules) / sizeof(rules[0]); k++)
		for (int which = 0; which < FIXTURE_DEVICES; which++) {
			struct device *dev = fixture_device(which, 2);
			struct scan *scan = fixture_scan(33, 37, 0.9, 5);
			struct buf y, mask;
			float *fused, *plain;
			double d;

			make_data(dev, scan, &y, &mask);
			fused = ordered(dev, &rules[k], scan, &y, &mask, 2, false, NULL, 0);
			plain = ordered(dev, &rules[k], scan, &y, &mask, 2, true, NULL, 0);
			/* Ten updates, each with some 1e-6 of rounding. */
			d = fixture_difference(fused, plain, grid_size(&grid));
			if (!(d <= 2e-5))
				fail_msg("rule %d: %g", (int)rules[k].kind, d);
		}
}

/* For every rule: a voxel that is 0 (outside the support) remains 0, and no voxel of the support becomes 0. */
TEST(support_stays)
{
	for (size_t k = 0; k < sizeof(rules) / sizeof(rules[0]); k++) {
		struct device *dev = fixture_device(FIXTURE_CPU, 2);
		struct scan *scan = fixture_scan(33, 37, 0.9, 5);
		struct projection_spec spec = {.model = PROJECTION_EXACT, .scan = scan, .n_views = 5, .grid = &grid};
		struct linop *op = fixture_projector(dev, &spec);
		struct iterate_conf conf = {rules[k], 3};
		float *xs = fixture_floats(op->n_in, 3, 0.01f, 0.09f);
		struct buf y, mask, x, row = fixture_upload(dev, NULL, op->n_out);
		struct iterate_subset all = {.op = op};
		struct session_memory memory = {.dev = dev};
		struct iterate_work work;

		for (size_t i = 0; i < op->n_in; i += 3)
			xs[i] = 0;
		make_data(dev, scan, &y, &mask);
		x = fixture_upload(dev, xs, op->n_in);
		all.y = y;
		assert_int_equal(dev->ops->fill(&row, 13.5f, NULL), 0);
		if (rule_needs_length(rules[k].kind))
			all.row = row;
		assert_int_equal(iterate_work_alloc(&memory, op->n_in, op->n_out, false, false, &work, NULL), 0);
		assert_int_equal(iterate_run(&conf, &all, 1, &work, &x, NULL, NULL), 0);
		xs = fixture_download(&x);
		for (size_t i = 0; i < op->n_in; i++)
			assert_true(i % 3 == 0 ? xs[i] == 0 : xs[i] != 0 && isfinite(xs[i]));
		session_release(&memory);
	}
}

TEST(refusals)
{
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	struct scan *scan = fixture_scan(33, 37, 0.9, 5);
	struct projection_spec spec = {.model = PROJECTION_SLICES, .scan = scan, .n_views = 5, .grid = &grid};
	struct linop *op = fixture_projector(dev, &spec);
	struct buf x = fixture_upload(dev, NULL, op->n_in), y = fixture_upload(dev, NULL, op->n_out);
	struct iterate_subset all = {.op = op, .y = y};
	struct iterate_conf conf = {{RULE_EM, FLOOR, FLOOR, 1}, 0};
	struct session_memory memory = {.dev = dev};
	struct iterate_work work;
	struct err err = {0};

	assert_int_equal(iterate_work_alloc(&memory, op->n_in, op->n_out, true, false, &work, NULL), 0);
	assert_int_equal(iterate_run(&conf, &all, 1, &work, &x, NULL, &err), -EINVAL);
	conf.iterations = 1;
	assert_int_equal(iterate_run(&conf, &all, 0, &work, &x, NULL, &err), -EINVAL);
	conf.rule.voxel_floor = NAN;
	assert_int_equal(iterate_run(&conf, &all, 1, &work, &x, NULL, &err), -EINVAL);
	conf.rule = rules[3];
	assert_int_equal(iterate_run(&conf, &all, 1, &work, &x, NULL, &err), -EINVAL); /* no rows */
	assert_non_null(strstr(err.msg, "row lengths"));
	conf.rule.step = 2;
	assert_error(iterate_run(&conf, &all, 1, &work, &x, NULL, &err), &err, EINVAL, "relaxation 2");
	session_release(&memory);
}

/* Subsets with kept den, of one part and of two parts; the second part is loaded when it is needed. */
struct bringer {
	const struct iterate_part *late;
	const struct linop *op;
	int calls;
};

static int bring(void *ctx, struct iterate_part *part, struct err *err)
{
	struct bringer *b = ctx;

	(void)err;
	b->calls++;
	if (part == b->late)
		part->op = b->op;
	return 0;
}

TEST(kept_is_plain)
{
	for (int which = 0; which < FIXTURE_DEVICES; which++) {
		struct device *dev = fixture_device(which, 2);
		struct scan *scan = fixture_scan(33, 37, 0.9, 5);
		size_t n = grid_size(&grid), bins = scan_view_size(scan);
		struct buf y, mask, x = fixture_upload(dev, NULL, n), den = fixture_upload(dev, NULL, n), masks[2];
		struct linop *op[2];
		struct iterate_part part[2] = {0};
		struct iterate_subset plain = {0}, kept = {.part = part, .den = den};
		struct iterate_conf conf = {{RULE_EM, FLOOR, FLOOR, 1}, 4};
		struct bringer bringer = {.late = &part[1]};
		struct session_memory memory = {.dev = dev};
		struct iterate_work work, work_kept;
		float *expected, *found;
		struct err err = {0};

		make_data(dev, scan, &y, &mask);
		for (int whole = 0; whole < 2; whole++) {
			struct projection_spec spec = {
				.model = PROJECTION_EXACT, .scan = scan, .first = 0, .n_views = 5, .grid = &grid, .mask = &mask};
			struct linop *all = fixture_projector(dev, &spec);

			kept.n_parts = whole ? 1 : 2;
			for (int i = 0; i < 2; i++) {
				size_t first = whole ? 0 : i ? 2 : 0, views = whole ? 5 : i ? 3 : 2;

				masks[i] = buf_part(&mask, first * bins, views * bins);
				spec.first = (int)first;
				spec.n_views = (int)views;
				spec.mask = &masks[i];
				op[i] = fixture_projector(dev, &spec);
				part[i] = (struct iterate_part){.op = i ? NULL : op[i],
								.y = buf_part(&y, first * bins, views * bins)};
			}
			bringer.op = op[1];
			bringer.calls = 0;
			plain = (struct iterate_subset){.op = all, .y = y};
			assert_int_equal(iterate_work_alloc(&memory, n, y.n, false, false, &work, NULL), 0);
			assert_int_equal(iterate_work_alloc_kept(&memory, n, part[1].y.n, &work_kept, NULL), 0);
			assert_int_equal(linop_sensitivity(all, &den, NULL), 0);
			assert_int_equal(dev->ops->fill(&x, 1, NULL), 0);
			assert_int_equal(iterate_run(&conf, &plain, 1, &work, &x, NULL, NULL), 0);
			expected = fixture_download(&x);
			assert_int_equal(dev->ops->fill(&x, 1, NULL), 0);
			conf.load = bring;
			conf.ctx = &bringer;
			assert_int_equal(iterate_run(&conf, &kept, 1, &work_kept, &x, NULL, &err), 0);
			assert_int_equal(bringer.calls, 4 * (int)kept.n_parts);
			found = fixture_download(&x);
			assert_true(fixture_difference(found, expected, n) < 1e-5);
			conf.rule.kind = RULE_TRANSMISSION;
			assert_error(iterate_run(&conf, &kept, 1, &work_kept, &x, NULL, &err), &err, EINVAL, "cannot be kept");
			conf.rule.kind = RULE_EM;
			conf.relaxation = -1;
			assert_int_equal(iterate_run(&conf, &kept, 1, &work_kept, &x, NULL, &err), -EINVAL);
			conf.relaxation = 0;
			part[0].y.n--;
			assert_int_equal(iterate_run(&conf, &kept, 1, &work_kept, &x, NULL, &err), -EINVAL);
			kept.den.n--;
			assert_int_equal(iterate_run(&conf, &kept, 1, &work_kept, &x, NULL, &err), -EINVAL);
			kept.den.n++;
			conf.load = NULL;
			session_release(&memory);
		}
	}
}

struct watch {
	int calls, stop_after;
	double last;
};

static void watch_progress(void *ctx, const char *stage, double fraction)
{
	struct watch *w = ctx;

	assert_string_equal(stage, "reconstruct");
	assert_true(fraction > w->last && fraction <= 1);
	w->last = fraction;
	w->calls++;
}

static bool watch_cancelled(void *ctx)
{
	struct watch *w = ctx;

	return w->calls >= w->stop_after;
}

TEST(monitor)
{
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	struct scan *scan = fixture_scan(33, 37, 0.9, 5);
	struct watch w = {0, 1000, 0};
	struct monitor m = {&w, watch_progress, watch_cancelled};
	struct buf y, mask;

	make_data(dev, scan, &y, &mask);
	ordered(dev, &rules[0], scan, &y, &mask, 3, false, &m, 0);
	assert_int_equal(w.calls, 15);
	assert_near(w.last, 1, 0);
	w = (struct watch){0, 4, 0};
	ordered(dev, &rules[0], scan, &y, &mask, 3, false, &m, -ECANCELED);
	assert_int_equal(w.calls, 4);
}
