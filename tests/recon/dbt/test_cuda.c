/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA device compared with the CPU device: both DBT operators, fused passes, a whole reconstruction. Skipped (exit
 * code 77) without a CUDA device. */
#include "tests/recon/dbt/dbt_reconstruct.h"
#include "tests/recon/dbt_fixture.h"
#include "tests/test.h"

/* Sums of at most some hundred float32 terms in another order: 100 * 2^-24 = 6e-6 of the largest value; the tolerance is
 * 1e-5. */
#define DEVICE_TOL 1e-5
/* A ray at the edge of the volume has a small A x, and y / A x has its relative error: a position of some tens of voxels is
 * rounded to 2^-24, and the weight is a few hundredths. */
#define RATIO_TOL 1e-4
#define ADJOINT_TOL 1e-5

struct setup {
	const char *name;
	int n_u, n_v, n_views;
	double pitch;
	struct grid grid;
	double ratio; /* turn of the detector per angle of the source */
	bool one;     /* project only the view in the middle */
	int tile[2];  /* bins along u and v; 0: one tile */
};

/* Odd sizes; bins smaller than, equal to, larger than voxels; a detector larger than the volume. */
static const struct setup setups[] = {
	{"as fine", 97, 141, 5, 1.0, {{97, 141, 31}, {1, 1, 1.5}, {0, -70.5, 17}}},
	{"finer bins", 161, 167, 3, 0.4, {{63, 67, 19}, {1.1, 1.05, 2}, {0.3, -34, 20}}},
	{"coarser bins", 33, 47, 3, 3.0, {{101, 143, 17}, {0.9, 1, 3}, {0, -66, 17}}},
	{"large detector", 180, 190, 3, 1.0, {{20, 22, 6}, {1, 1, 2}, {60, -33, 40}}},
	{"small bins", 161, 167, 3, 0.4, {{150, 163, 19}, {0.4, 0.4, 2}, {0.3, -34.1, 20}}},
	{"small bins, high slices", 261, 257, 3, 0.4, {{150, 163, 9}, {0.4, 0.4, 4}, {0.3, -34.1, 80}}},
	{"small bins, higher slices", 261, 257, 3, 0.4, {{150, 163, 9}, {0.4, 0.4, 4}, {0.3, -34.1, 130}}},
	{"many small bins", 704, 640, 5, 0.2, {{660, 600, 4}, {0.2, 0.2, 1.5}, {0.3, -60.1, 17}}},
	{"many small bins, rows of odd length", 705, 641, 5, 0.2, {{661, 601, 4}, {0.2, 0.2, 1.5}, {0.3, -60.1, 17}}},
	{"one view of small bins", 161, 167, 3, 0.4, {{150, 163, 23}, {0.4, 0.4, 2}, {0.3, -34.1, 20}}, .one = true},
	/* rows of a multiple of 16 bytes: voxels and bins are copied into shared memory as boxes, if these are not too large */
	{"boxes", 164, 172, 5, 0.4, {{152, 164, 23}, {0.4, 0.4, 2}, {0.3, -34.1, 20}}},
	{"boxes, one view", 164, 172, 3, 0.4, {{152, 164, 23}, {0.4, 0.4, 2}, {0.3, -34.1, 20}}, .one = true},
	/* random_mask() uses all bins of the left half, which is wider than a box here */
	{"boxes, one view, all bins of a box used",
	 352,
	 172,
	 3,
	 0.4,
	 {{340, 164, 13}, {0.4, 0.4, 2}, {0.3, -34.1, 20}},
	 .one = true},
	{"boxes, large detector", 180, 192, 3, 0.4, {{20, 24, 6}, {0.4, 0.4, 2}, {24, -13, 40}}},
	{"boxes, large volume", 32, 48, 3, 0.4, {{100, 144, 17}, {0.4, 0.4, 1.5}, {-8, -26, 17}}},
	{"boxes, tile of the detector, larger volume",
	 96,
	 100,
	 3,
	 0.4,
	 {{104, 112, 5}, {0.4, 0.4, 1.5}, {0, -22, 17}},
	 .tile = {96, 100}},
	{"boxes, two bins of a thread along u", 704, 640, 10, 0.2, {{660, 600, 3}, {0.2, 0.2, 1.5}, {0.3, -60.1, 17}}},
	{"boxes, pairs of views", 704, 560, 11, 0.2, {{660, 520, 3}, {0.2, 0.2, 1.5}, {0.3, -52.1, 6}}},
	{"boxes, thin", 8, 100, 3, 0.4, {{4, 100, 3}, {0.4, 0.4, 1.5}, {0.8, -20, 17}}},
	{"boxes, bins exactly on voxels", 144, 131, 5, 0.4, {{128, 127, 20}, {0.4, 0.4, 2}, {0, -25.4, 20}}},
	{"boxes, flat", 96, 4, 3, 0.4, {{96, 1, 40}, {0.4, 0.4, 1.5}, {0, -0.2, 17}}},
	{"boxes, one view, large detector", 180, 192, 3, 0.4, {{20, 24, 6}, {0.4, 0.4, 2}, {24, -13, 40}}, .one = true},
	{"boxes, one view, large volume", 32, 48, 3, 0.4, {{100, 144, 17}, {0.4, 0.4, 1.5}, {-8, -26, 17}}, .one = true},
	{"boxes, one view, thin", 8, 100, 3, 0.4, {{4, 100, 3}, {0.4, 0.4, 1.5}, {0.8, -20, 17}}, .one = true},
	{"boxes, one view, flat", 96, 4, 3, 0.4, {{96, 1, 40}, {0.4, 0.4, 1.5}, {0, -0.2, 17}}, .one = true},
	{"boxes too large", 644, 172, 3, 0.1, {{640, 164, 4}, {0.1, 0.1, 12}, {0.3, -8.1, 20}}},
	{"one voxel", 5, 15, 2, 1.0, {{1, 1, 1}, {2, 2, 2}, {1, -1, 17}}},
	{"turning, as fine", 97, 141, 5, 1.0, {{97, 141, 31}, {1, 1, 1.5}, {0, -70.5, 17}}, 0.085},
	{"turning, rows apart by more than voxels", 64, 301, 5, 1.0, {{64, 301, 9}, {1, 1, 1.5}, {0, -150.5, 17}}, 0.085},
	{"turning, all rows apart by more than voxels", 64, 301, 5, 1.0, {{64, 317, 9}, {1, 0.93, 1.5}, {0, -150.5, 17}}, 0.085},
	{"turning, many bins", 704, 640, 5, 0.2, {{704, 790, 4}, {0.2, 0.186, 1.5}, {0, -73.5, 17}}, 0.085},
	{"turning, finer bins", 161, 167, 3, 0.4, {{63, 67, 19}, {1.1, 1.05, 2}, {0.1, -34, 20}}, 0.285},
	{"turning, coarser bins", 33, 47, 3, 3.0, {{101, 143, 17}, {0.9, 1, 3}, {0, -66, 17}}, 0.085},
	{"turning with the source", 97, 61, 3, 1.0, {{97, 61, 11}, {1, 1, 1.5}, {0, -30.5, 40}}, 1},
};
#define N_SETUPS (sizeof(setups) / sizeof(setups[0]))

/* Return a mask. Columns up to half: 1. The others: 70 % of the bins are valid, half of these with weights below 1; 20 % have no
 * data, 10 % show air. */
static float *random_mask(size_t n, int n_u)
{
	float *mask = fixture_floats(n, 77, 0, 1);

	for (size_t i = 0; i < n; i++)
		mask[i] = i % (size_t)n_u < (size_t)n_u / 2 ? 1
			  : mask[i] < 0.35f		    ? mask[i] + 0.1f
			  : mask[i] < 0.7f		    ? 1
			  : mask[i] < 0.9f		    ? 0
							    : -1;
	return mask;
}

struct side {
	struct device *dev;
	struct buf mask, x, y, row, pair, out_x, out_den, out_y;
	struct projection *a;
};

static void side_open(struct side *s, struct device *dev, const struct setup *setup, const struct scan *scan,
		      enum projection_model model, bool deterministic)
{
	const int n_views = setup->one ? 1 : setup->n_views;
	size_t n_bins = scan_view_size(scan) * (size_t)n_views, n_voxels = grid_size(&setup->grid);
	float *mask = random_mask(n_bins, setup->n_u), *x = fixture_floats(n_voxels, 1, 0.1f, 1),
	      *y = fixture_floats(n_bins, 2, 0.1f, 1);
	struct projection_spec spec = {.model = model,
				       .scan = scan,
				       .first = setup->one ? setup->n_views / 2 : 0,
				       .n_views = n_views,
				       .grid = &setup->grid,
				       .mask = &s->mask,
				       .tile = {setup->tile[0], setup->tile[1]},
				       .deterministic = deterministic,
				       .keep_den = deterministic}; /* so that both are tested */

	s->dev = dev;
	s->mask = fixture_upload(dev, mask, n_bins);
	s->x = fixture_upload(dev, x, n_voxels);
	s->y = fixture_upload(dev, y, n_bins);
	s->row = fixture_upload(dev, y, n_bins);
	s->pair = fixture_upload(dev, NULL, 2 * n_bins);
	s->out_x = fixture_upload(dev, NULL, n_voxels);
	s->out_den = fixture_upload(dev, NULL, n_voxels);
	s->out_y = fixture_upload(dev, NULL, n_bins);
	s->a = fixture_projection(dev, &spec);
}

/* Fill the output with NaN first, so that an element that is not written is detected. */
static void poison(struct buf *b)
{
	assert_int_equal(b->dev->ops->fill(b, NAN, NULL), 0);
}

static void same(const struct buf *found, const struct buf *expected, double tolerance, const char *what)
{
	float *a = fixture_download(found), *b = fixture_download(expected);
	double d = fixture_difference(a, b, found->n);

	if (!(d <= tolerance))
		fail_msg("%s: CPU and CUDA differ by %g", what, d);
}

static void same_of(const struct buf *found, const struct buf *expected, double tolerance, const char *name, const char *what)
{
	char text[128];

	snprintf(text, sizeof(text), "%s, %s", name, what);
	same(found, expected, tolerance, text);
}

static const struct rule rules[] = {
	{RULE_EM, 1e-3f, 1e-6f, 1},
	{RULE_EM_ROWS, 1e-3f, 1e-6f, 1},
	{RULE_TRANSMISSION, 1e-6f, 1e-12f, 1},
	{RULE_SART, 1e-6f, 1e-6f, 0.5f},
	{RULE_BACKPROJECT, 1e-6f, 1e-6f, 1},
	{RULE_EM, 1e-3f, 1e-6f, 1, false, true},
	{RULE_EM_ROWS, 1e-3f, 1e-6f, 1, false, true},
	{RULE_TRANSMISSION, 1e-6f, 1e-12f, 1, false, true},
	{RULE_SART, 1e-6f, 1e-6f, 0.5f, false, true},
	{RULE_BACKPROJECT, 1e-6f, 1e-6f, 1, false, true},
};
#define N_RULES (sizeof(rules) / sizeof(rules[0]))

/* Set attenuations with line integrals of some tenths: for larger ones e^-p, the divisor of the transmission rule, is lost in
 * rounding. */
static void set_volume(struct side *s)
{
	float *x = fixture_floats(s->x.n, 1, 0.004f, 0.04f);

	for (size_t i = 3; i < s->x.n; i += 7)
		x[i] = 0; /* outside the support */
	assert_int_equal(s->dev->ops->upload(&s->x, x, NULL), 0);
}

/* One sub-iteration, pass by pass and fused. */
static void both_rules(struct side *cpu, struct side *cuda, const char *name)
{
	struct side *sides[2] = {cpu, cuda};

	for (size_t k = 0; k < N_RULES; k++) {
		const struct rule *rule = &rules[k];
		char separate[64], fused[64], at_once[64];

		snprintf(separate, sizeof(separate), "rule %zu, separate passes", k);
		snprintf(fused, sizeof(fused), "rule %zu, fused passes", k);
		snprintf(at_once, sizeof(at_once), "rule %zu, sub_iterate()", k);
		for (int i = 0; i < 2; i++) {
			struct side *s = sides[i];
			const struct device_ops *ops = s->dev->ops;
			const struct buf *row = rule_needs_length(rule->kind) ? &s->row : NULL;

			set_volume(s);
			poison(&s->pair);
			poison(&s->out_x);
			poison(&s->out_den);
			assert_int_equal(ops->forward(s->a, &s->x, false, &s->out_y, NULL), 0);
			assert_int_equal(ops->make_pair(s->a, rule, &s->y, &s->out_y, row, &s->pair, NULL), 0);
			assert_int_equal(ops->back_sums(s->a, &s->pair, false, &s->out_x, &s->out_den, NULL), 0);
			assert_int_equal(ops->back_sums(s->a, &s->pair, true, &s->out_x, &s->out_den, NULL), 0);
			assert_int_equal(ops->rule_voxels(rule, &s->out_x, &s->out_den, &s->x, NULL), 0);
		}
		same_of(&cuda->out_x, &cpu->out_x, RATIO_TOL, name, separate);
		same_of(&cuda->out_den, &cpu->out_den, DEVICE_TOL, name, separate);
		same_of(&cuda->x, &cpu->x, RATIO_TOL, name, separate);
		if (!cuda->dev->ops->fused(cuda->a))
			continue;
		for (int i = 0; i < 2; i++) {
			struct side *s = sides[i];
			const struct device_ops *ops = s->dev->ops;
			const struct buf *row = rule_needs_length(rule->kind) ? &s->row : NULL;

			set_volume(s);
			poison(&s->pair);
			assert_int_equal(ops->forward_pair(s->a, rule, &s->x, &s->y, row, &s->pair, NULL), 0);
			assert_int_equal(ops->back_update(s->a, rule, &s->pair, &s->x, NULL), 0);
		}
		same_of(&cuda->x, &cpu->x, RATIO_TOL, name, fused);
		for (int again = 0; again < 3; again++) { /* what the first update has kept */
			set_volume(cuda);
			poison(&cuda->pair);
			assert_int_equal(cuda->dev->ops->sub_iterate(cuda->a, rule, &cuda->y,
								     rule_needs_length(rule->kind) ? &cuda->row : NULL,
								     &cuda->pair, &cuda->x, NULL),
					 0);
			same_of(&cuda->x, &cpu->x, RATIO_TOL, name, at_once);
		}
	}
}

static void both_pass(struct side *cpu, struct side *cuda, const char *name)
{
	struct side *sides[2] = {cpu, cuda};

	for (int i = 0; i < 2; i++) {
		struct side *s = sides[i];
		const struct device_ops *ops = s->dev->ops;

		poison(&s->out_y);
		poison(&s->out_x);
		assert_int_equal(ops->forward(s->a, &s->x, false, &s->out_y, NULL), 0);
		assert_int_equal(ops->adjoint(s->a, &s->y, false, &s->out_x, NULL), 0);
	}
	same_of(&cuda->out_y, &cpu->out_y, DEVICE_TOL, name, "forward");
	same_of(&cuda->out_x, &cpu->out_x, DEVICE_TOL, name, "adjoint");
	for (int i = 0; i < 2; i++) {
		struct side *s = sides[i];

		assert_int_equal(s->dev->ops->forward(s->a, &s->x, true, &s->out_y, NULL), 0);
		assert_int_equal(s->dev->ops->fill(&s->out_x, 0, NULL), 0);
		assert_int_equal(s->dev->ops->mark(s->a, &s->out_x, NULL), 0);
	}
	same_of(&cuda->out_y, &cpu->out_y, DEVICE_TOL, name, "forward, added");
	same_of(&cuda->out_x, &cpu->out_x, 0, name, "mark");
	both_rules(cpu, cuda, name);
	if (!cuda->dev->ops->fused(cuda->a))
		for (int i = 0; i < 2; i++) {
			struct side *s = sides[i];
			const struct device_ops *ops = s->dev->ops;

			assert_int_equal(ops->forward_pair(s->a, rules, &s->x, &s->y, NULL, &s->pair, NULL), -ENOTSUP);
			assert_int_equal(ops->back_update(s->a, rules, &s->pair, &s->x, NULL), -ENOTSUP);
			assert_int_equal(ops->sub_iterate(s->a, rules, &s->y, NULL, &s->pair, &s->x, NULL), -ENOTSUP);
		}
}

TEST(operators)
{
	for (size_t i = 0; i < N_SETUPS; i++) {
		const struct setup *s = &setups[i];
		struct scan *scan = fixture_turning_scan(s->n_u, s->n_v, s->pitch, s->n_views, s->ratio);

		for (int model = PROJECTION_EXACT; model <= PROJECTION_SLICES; model++)
			for (int deterministic = 0; deterministic < 2; deterministic++) {
				TEST_BLOCK;
				struct side cpu, cuda;

				side_open(&cpu, fixture_device(FIXTURE_CPU, 2), s, scan, model, deterministic);
				side_open(&cuda, fixture_device(FIXTURE_CUDA, 0), s, scan, model, deterministic);
				both_pass(&cpu, &cuda, s->name);
			}
	}
}

TEST(adjoint_gap)
{
	struct device *dev = fixture_device(FIXTURE_CUDA, 0);

	for (size_t i = 0; i < N_SETUPS; i++) {
		const struct setup *s = &setups[i];
		struct scan *scan = fixture_turning_scan(s->n_u, s->n_v, s->pitch, s->n_views, s->ratio);

		for (int model = PROJECTION_EXACT; model <= PROJECTION_SLICES; model++) {
			TEST_BLOCK;
			struct projection_spec spec = {.model = model, .scan = scan, .n_views = s->n_views, .grid = &s->grid};
			double gap = linop_adjoint_gap(fixture_projector(dev, &spec), (unsigned)i, NULL);

			if (!(gap >= 0 && gap <= ADJOINT_TOL))
				fail_msg("%s, model %d: gap %g", s->name, model, gap);
		}
	}
}

TEST(repeatable)
{
	const struct setup *s = &setups[0];
	struct scan *scan = fixture_turning_scan(s->n_u, s->n_v, s->pitch, s->n_views, s->ratio);

	for (int model = PROJECTION_EXACT; model <= PROJECTION_SLICES; model++) {
		float *first = NULL;
		struct side cuda;

		side_open(&cuda, fixture_device(FIXTURE_CUDA, 0), s, scan, model, true);
		for (int run = 0; run < 5; run++) {
			float *x;

			poison(&cuda.out_x);
			assert_int_equal(cuda.dev->ops->adjoint(cuda.a, &cuda.y, false, &cuda.out_x, NULL), 0);
			x = fixture_download(&cuda.out_x);
			first = first ? first : x;
			assert_memory_equal(x, first, cuda.out_x.n * sizeof(*x));
		}
	}
}

/* The value of an invalid bin has no effect, not even as a scale. */
TEST(masked_bins_do_not_count)
{
	const struct setup *s = &setups[0];
	struct scan *scan = fixture_turning_scan(s->n_u, s->n_v, s->pitch, s->n_views, s->ratio);

	for (int model = PROJECTION_EXACT; model <= PROJECTION_SLICES; model++)
		for (int deterministic = 0; deterministic < 2; deterministic++) {
			struct side cuda;
			float *mask, *y, *before, *after;

			side_open(&cuda, fixture_device(FIXTURE_CUDA, 0), s, scan, model, deterministic);
			assert_int_equal(cuda.dev->ops->adjoint(cuda.a, &cuda.y, false, &cuda.out_x, NULL), 0);
			before = fixture_download(&cuda.out_x);
			mask = fixture_download(&cuda.mask);
			y = fixture_download(&cuda.y);
			for (size_t i = 0; i < cuda.y.n; i++)
				y[i] = mask[i] > 0 ? y[i] : NAN;
			assert_int_equal(cuda.dev->ops->upload(&cuda.y, y, NULL), 0);
			assert_int_equal(cuda.dev->ops->adjoint(cuda.a, &cuda.y, false, &cuda.out_x, NULL), 0);
			after = fixture_download(&cuda.out_x);
			assert_true(fixture_difference(after, before, cuda.out_x.n) <= DEVICE_TOL);
		}
}

static float *reconstruct(struct device *dev, const struct scan *scan, const struct dbt_protocol *p, size_t *ret_n)
{
	size_t n_bins = scan_view_size(scan) * (size_t)scan->n_views;
	float *line = fixture_floats(n_bins, 5, 0.5f, 2), *valid = fixture_floats(n_bins, 77, 0, 1), *volume;
	struct dbt_plan plan;
	struct err err = {0};

	for (size_t i = 0; i < n_bins; i++)
		valid[i] = valid[i] < 0.9f;
	assert_done(dbt_plan(p, scan, 17, 40, dev, &plan, &err), &err);
	*ret_n = grid_size(&plan.grid);
	volume = fixture_floats(*ret_n, 9, 0, 1);
	assert_done(dbt_reconstruct(p, &plan, scan, dev, line, valid, NULL, volume, NULL, &err), &err);
	return volume;
}

/* Return a limit that makes CUDA stream slabs. */
static size_t streaming_limit(struct device *dev, const struct scan *scan, struct dbt_protocol p)
{
	struct dbt_plan plan;

	assert_int_equal(dbt_plan(&p, scan, 17, 40, dev, &plan, NULL), 0);
	do { /* without what the device may keep, then in slabs */
		p.memory_limit = plan.bytes.total - 1;
		assert_int_equal(dbt_plan(&p, scan, 17, 40, dev, &plan, NULL), 0);
	} while (plan.group_views == 0);
	return p.memory_limit;
}

/* A'd is kept if there is memory for it in the plan; the image is the same. */
TEST(kept_den)
{
	struct dbt_protocol p = {.algorithm = ALGORITHM_MLEM,
				 .iterations = 3,
				 .slice_spacing = 1.5,
				 .projector = PROJECTION_SLICES,
				 .deterministic = true};
	struct scan *scan = fixture_turning_scan(112, 136, 0.4, 7, 0); /* boxes */
	struct device *dev = fixture_device(FIXTURE_CUDA, 0);
	struct dbt_plan kept, made;
	size_t n = 0, m = 0;
	float *a, *b;

	assert_int_equal(dbt_plan(&p, scan, 17, 40, dev, &kept, NULL), 0);
	assert_true(kept.keep_den);
	a = reconstruct(dev, scan, &p, &n);
	p.memory_limit = kept.bytes.total - 1;
	assert_int_equal(dbt_plan(&p, scan, 17, 40, dev, &made, NULL), 0);
	assert_false(made.keep_den);
	b = reconstruct(dev, scan, &p, &m);
	assert_int_equal(n, m);
	if (made.group_views == 0 && made.tile[0] == 0) { /* a device that can keep it */
		assert_true(kept.bytes.total == made.bytes.total + grid_size(&kept.grid) * sizeof(float));
		assert_memory_equal(a, b, n * sizeof(*a));
	}
}

/* Two passes over 7 subsets: 14 updates, each with the relative error of an operator. */
static void reconstruct_on_both(double ratio)
{
	static const struct {
		enum algorithm algorithm;
		double prior_weight;
		enum prior_kind prior;
		double across;
	} ways[] = {
		{ALGORITHM_OSEM},
		{ALGORITHM_MLEM},
		{ALGORITHM_OSTR},
		{ALGORITHM_MLTR},
		{ALGORITHM_SART},
		{ALGORITHM_BP},
		{ALGORITHM_FBP},
		{ALGORITHM_OSEM, 0.05, PRIOR_RELATIVE, 1},
		{ALGORITHM_MLEM, 0.05, PRIOR_QUADRATIC, 1},
		{ALGORITHM_OSTR, 0.05, PRIOR_QUADRATIC, 0.5},
		{ALGORITHM_MLTR, 0.05, PRIOR_RELATIVE, 0},
		{ALGORITHM_OSTR, 10, PRIOR_RELATIVE, 1},
	};
	struct scan *scan = fixture_turning_scan(111, 137, 1.0, 7, ratio);
	struct device *cpu = fixture_device(FIXTURE_CPU, 2), *cuda = fixture_device(FIXTURE_CUDA, 0);

	for (size_t i = 0; i < 2 * sizeof(ways) / sizeof(ways[0]); i++) {
		TEST_BLOCK;
		struct dbt_protocol p = {.algorithm = ways[i / 2].algorithm,
					 .prior_weight = ways[i / 2].prior_weight,
					 .prior = ways[i / 2].prior,
					 .prior_gamma = 2,
					 .prior_across = ways[i / 2].across,
					 .iterations = 2,
					 .slice_spacing = 1.5,
					 .relaxation = 0.5,
					 .filter = DBT_FILTER_HANN,
					 .filter_cut = 0.8,
					 .projector = i % 2 ? PROJECTION_EXACT : PROJECTION_SLICES};
		size_t n = 0, m = 0;
		float *a = reconstruct(cpu, scan, &p, &n), *b = reconstruct(cuda, scan, &p, &m);
		/* FBP divides by the sum of the weights. With a detector that turns it is small for some voxels at the edge of
		 * the views' fields, so that the relative error of the weights counts. */
		double d, tolerance = ratio != 0 && p.algorithm == ALGORITHM_FBP ? RATIO_TOL : DEVICE_TOL;

		assert_int_equal(n, m);
		d = fixture_difference(b, a, n);
		if (!(d <= tolerance))
			fail_msg("algorithm %d, model %d, prior %g: CPU and CUDA images differ by %g", (int)p.algorithm,
				 (int)p.projector, p.prior_weight, d);
		p.memory_limit = ratio != 0 ? streaming_limit(cuda, scan, p) : 3500000; /* streams slabs */
		b = reconstruct(cuda, scan, &p, &m);
		d = fixture_difference(b, a, n);
		if (!(d <= tolerance))
			fail_msg("algorithm %d, model %d, prior %g: streamed image differs by %g", (int)p.algorithm,
				 (int)p.projector, p.prior_weight, d);
	}
}

TEST(whole_reconstruction)
{
	reconstruct_on_both(0);
	reconstruct_on_both(0.085);
}

TESTS_NEED(device_cuda_count() > 0, "no CUDA device");
