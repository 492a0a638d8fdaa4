/* SPDX-License-Identifier: Apache-2.0 */
/* Penalties on differences between neighbours in the updates of tomosynthesis (kernels/prior.h): the penalised objective never
 * rises, no weight oscillates, a large one makes the image flat, air stays 0, tiles and a turning detector do not matter. */
#include "recon/core/iterate.h"
#include "tests/recon/dbt/case_fixture.h"
#include "tests/test.h"

static const struct grid grid = {{22, 31, 10}, {2, 2, 2}, {0, -31, CASE_SUPPORT}};

/* Return the objective: the negative log-likelihood, without the terms that do not depend on the image, plus beta R. */
static double objective(enum rule_kind kind, const float *y, const float *p, const float *valid, size_t n,
			const struct prior *prior, const float *x)
{
	float weight[PRIOR_NEIGHBOURS];
	double sum = 0;

	prior_weights(prior, &grid, weight);
	for (size_t i = 0; i < n; i++) {
		if (!(valid[i] > 0))
			continue;
		if (kind == RULE_TRANSMISSION)
			sum += exp(-(double)y[i]) * (double)p[i] + exp(-(double)p[i]);
		else if (p[i] > 1e-6f)
			sum -= (double)y[i] * log((double)p[i]) - (double)p[i];
	}
	for (int i = 0; i < (int)grid_size(&grid); i++)
		for (int m = 0; m < PRIOR_NEIGHBOURS; m++) {
			int at[3] = {i % grid.n[0], i / grid.n[0] % grid.n[1], i / grid.n[0] / grid.n[1]};
			int d[3] = {m % 3 - 1, m / 3 % 3 - 1, m / 9 - 1};
			double a = (double)x[i], b, w = (double)weight[m];
			bool inside = w > 0;

			for (int c = 0; c < 3; c++)
				inside = inside && at[c] + d[c] >= 0 && at[c] + d[c] < grid.n[c];
			if (!inside)
				continue;
			b = (double)x[i + d[0] + grid.n[0] * (d[1] + grid.n[1] * d[2])];
			if (a == 0 || b == 0)
				continue;
			sum += 0.5 * w * (a - b) * (a - b) /
			       (prior->kind == PRIOR_QUADRATIC
					? 2 * (double)prior->level
					: a + b + (double)prior->gamma * fabs(a - b) + (double)prior->epsilon);
		}
	return sum;
}

/* Iterate, and check that the objective does not rise. */
static void descend(const struct test_case *c, enum rule_kind kind, const struct prior *prior, float start)
{
	const struct iterate_conf conf = {
		.rule = {kind, 1e-6f, kind == RULE_EM ? 1e-6f : 1e-12f, 1}, .iterations = 1, .prior = prior, .grid = &grid};
	size_t n = c->view_bins * CASE_VIEWS;
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	struct buf y = fixture_upload(dev, c->line, n), mask = fixture_upload(dev, c->valid, n),
		   x = fixture_upload(dev, NULL, grid_size(&grid)), p = fixture_upload(dev, NULL, n);
	struct projection_spec spec = {
		.model = PROJECTION_SLICES, .scan = c->scan, .n_views = CASE_VIEWS, .grid = &grid, .mask = &mask};
	struct linop *op = fixture_projector(dev, &spec);
	struct iterate_subset all = {.op = op, .y = y};
	double before = INFINITY, first = 0;
	struct session_memory memory = {.dev = dev};
	struct iterate_work work;

	assert_int_equal(iterate_work_alloc(&memory, op->n_in, op->n_out, true, true, &work, NULL), 0);
	assert_int_equal(dev->ops->fill(&x, 0, NULL), 0);
	assert_int_equal(op->mark(op, &x, NULL), 0);
	assert_int_equal(dev->ops->threshold(&x, 0, start, NULL), 0);
	for (int k = 0; k <= 6; k++) {
		float *lines, *volume;
		double now;

		assert_int_equal(op->apply(op, &x, &p, NULL), 0);
		lines = fixture_download(&p);
		volume = fixture_download(&x);
		now = objective(kind, c->line, lines, c->valid, n, prior, volume);
		if (!(now <= before + 1e-6 * fabs(now)))
			fail_msg("rule %d, prior %d, beta %g, start %g, iteration %d: %.9g after %.9g", (int)kind,
				 (int)prior->kind, (double)prior->beta, (double)start, k, now, before);
		before = now;
		first = k == 0 ? now : first;
		assert_int_equal(iterate_run(&conf, &all, 1, &work, &x, NULL, NULL), 0);
	}
	assert_true(before < first);
	session_release(&memory);
}

TEST(objective_never_rises)
{
	static const struct prior priors[] = {{.gamma = 2, .epsilon = 5e-5f, .across = 1},
					      {.gamma = 0, .epsilon = 5e-5f, .across = 0.5f},
					      {.kind = PRIOR_QUADRATIC, .level = 0.05f, .across = 1}};
	static const float betas[] = {3, 300}, starts[] = {0.03f, 0.4f};
	struct test_case c = case_open();

	for (size_t i = 0; i < 3; i++)
		for (size_t b = 0; b < 2; b++)
			for (size_t k = 0; k < 2; k++) {
				struct prior prior = priors[i];

				prior.beta = betas[b];
				descend(&c, RULE_EM, &prior, starts[k]);
				descend(&c, RULE_TRANSMISSION, &prior, starts[k]);
			}
}

/* Return the largest difference of neighbours along x in the support, relative to their mean. */
static double roughness(const float *x, const struct grid *g)
{
	double most = 0;

	for (size_t i = 0; i + 1 < grid_size(g); i++)
		if ((i + 1) % (size_t)g->n[0] && x[i] > 0 && x[i + 1] > 0)
			most = fmax(most, 2 * fabs((double)(x[i] - x[i + 1])) / (double)(x[i] + x[i + 1]));
	return most;
}

/* A larger weight makes the image smoother, up to flat; air stays 0; tiles do not change a bit. */
TEST(weights)
{
	struct test_case c = case_open();
	struct device *dev = fixture_device(FIXTURE_CPU, 1);

	for (size_t k = 0; k < CASE_ALGORITHMS; k++) {
		struct dbt_protocol p = case_with(&case_algorithms[k], PROJECTION_SLICES);
		static const double ways[] = {0, 0.03, 0.3, 1e6};
		double before = INFINITY;

		for (size_t i = 0; p.prior_weight > 0 && i < 4; i++) {
			struct dbt_protocol q = p;
			struct dbt_plan plan;
			float *x, *tiled;
			size_t zeros = 0;

			q.prior_weight = ways[i];
			q.iterations = i == 3 ? 30 : 3;
			plan = case_plan(&c, &q, dev);
			x = case_run(&c, &q, &plan, dev);
			for (size_t j = 0; j < grid_size(&plan.grid); j++) {
				assert_true(x[j] >= 0 && isfinite(x[j]));
				zeros += x[j] == 0;
			}
			assert_true(zeros > grid_size(&plan.grid) / 20 && zeros < grid_size(&plan.grid));
			if (!(roughness(x, &plan.grid) < before))
				fail_msg("%s, weight %g: roughness %g after %g", case_algorithms[k].name, ways[i],
					 roughness(x, &plan.grid), before);
			before = roughness(x, &plan.grid);
			q.tile[0] = 8;
			q.tile[1] = 6;
			plan = case_plan(&c, &q, dev);
			tiled = case_run(&c, &q, &plan, dev);
			assert_memory_equal(x, tiled, grid_size(&plan.grid) * sizeof(*x));
		}
		assert_true(before < 0.01 || p.prior_weight == 0);
	}
}

/* With a detector that turns, the image of a streamed session is that of a resident one. */
TEST(turning_detector)
{
	struct test_case c = case_open();
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	struct dbt_protocol p = case_with(&case_algorithms[CASE_ALGORITHMS - 1], PROJECTION_SLICES);
	struct dbt_plan plan;
	float *x, *y;

	c.scan = fixture_turning_scan(44, 62, 1, CASE_VIEWS, 0.085);
	plan = case_plan(&c, &p, dev);
	x = case_run(&c, &p, &plan, dev);
	for (; plan.slab_slices == CASE_SLICES; plan = case_plan(&c, &p, dev))
		p.memory_limit = plan.bytes.total - 1;
	y = case_run(&c, &p, &plan, dev);
	assert_true(fixture_difference(x, y, grid_size(&plan.grid)) <= 1e-6);
	assert_true(roughness(x, &plan.grid) > 0);
}

TEST(refused)
{
	static const struct {
		double weight, gamma, across;
		enum algorithm algorithm;
		const char *words;
	} bad[] = {
		{-1, 2, 1, ALGORITHM_OSEM, "prior_weight=-1"},
		{0.1, NAN, 1, ALGORITHM_OSEM, "prior_gamma=nan"},
		{0.1, 2, 1.5, ALGORITHM_MLTR, "prior_across=1.5"},
		{0.1, 2, 1, ALGORITHM_SART, "prior_weight=0.1; allowed only with osem"},
		{0.1, 2, 1, ALGORITHM_FBP, "prior_weight=0.1; allowed only with osem"},
	};
	struct test_case c = case_open();
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	struct dbt_plan plan;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct dbt_protocol p = case_protocol;
		struct err err = {0};

		p.algorithm = bad[i].algorithm;
		p.prior_weight = bad[i].weight;
		p.prior_gamma = bad[i].gamma;
		p.prior_across = bad[i].across;
		assert_error(dbt_plan(&p, c.scan, CASE_SUPPORT, 2 * CASE_SLICES, dev, &plan, &err), &err, EINVAL, bad[i].words);
	}
}
