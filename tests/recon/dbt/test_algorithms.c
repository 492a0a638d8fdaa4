/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of the algorithms: uniform tissue is uniform and has its attenuation, likelihoods never decrease, one pass over
 * subsets achieves what many whole iterations do, backprojections show objects at their positions, air is 0. */
#include "recon/core/iterate.h"
#include "tests/recon/dbt/case_fixture.h"
#include "tests/recon/dbt/slab_fixture.h"
#include "tests/test.h"

static struct dbt_protocol slab_protocol(enum algorithm algorithm, int iterations)
{
	return (struct dbt_protocol){.algorithm = algorithm,
				     .iterations = iterations,
				     .relaxation = 0.5,
				     .voxel = 2,
				     .slice_spacing = 1,
				     .projector = PROJECTION_SLICES};
}

enum { CUT_BY_THE_SIDES, ENDS_IN_AIR, ENDS_IN_MASKED_AIR, SLABS };

/* Mark all bins with the value 0 as air. */
static void mark_air(struct slab *s)
{
	for (size_t b = 0; b < 25 * scan_view_size(s->scan); b++)
		s->valid[b] = s->line[b] > 0 ? 1 : -1;
}

/* The mean, and the mean of every slice, are mu within 1 %. The slices differ by less than 1 % if the support is that of the
 * slab: if the slab extends to the sides of the volume, or if air is masked. Otherwise the start is wrong beside the slab, and
 * after one pass the slab's ends still cause shadows. */
TEST(uniform_tissue)
{
	static const struct {
		const char *name;
		enum algorithm algorithm;
		int iterations;
		enum projection_model projector;
	} runs[] = {{"osem", ALGORITHM_OSEM, 1, PROJECTION_SLICES},  {"osem, exact", ALGORITHM_OSEM, 1, PROJECTION_EXACT},
		    {"mlem", ALGORITHM_MLEM, 25, PROJECTION_SLICES}, {"ostr", ALGORITHM_OSTR, 1, PROJECTION_SLICES},
		    {"mltr", ALGORITHM_MLTR, 25, PROJECTION_SLICES}, {"sart", ALGORITHM_SART, 1, PROJECTION_SLICES}};

	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++)
		for (int kind = 0; kind < SLABS; kind++) {
			if (test_tier() < 2 && runs[i].iterations > 1 && kind == ENDS_IN_AIR)
				continue; /* which shows less than the others */
			TEST_BLOCK;
			struct dbt_protocol p = slab_protocol(runs[i].algorithm, runs[i].iterations);
			struct slab s;
			double lo, hi, mean;

			p.projector = runs[i].projector;
			s = slab_open(&p, i % 2 ? FIXTURE_POISON : FIXTURE_CPU);
			if (kind != CUT_BY_THE_SIDES)
				slab_ends(&s);
			if (kind == ENDS_IN_MASKED_AIR)
				mark_air(&s);
			slab_run(&s, &p);
			slab_depth(&s, &lo, &hi, &mean);
			print_message("%s, slab %d: mean %+.3f %%, depth %+.3f to %+.3f %%\n", runs[i].name, kind,
				      100 * (mean / MU - 1), 100 * (lo / MU - 1), 100 * (hi / MU - 1));
			assert_near(mean, MU, 0.01 * MU);
			assert_near(lo, MU, 0.01 * MU);
			assert_near(hi, MU, 0.01 * MU);
			if (kind != ENDS_IN_AIR)
				assert_true(hi - lo < 0.01 * MU);
			if (runs[i].algorithm == ALGORITHM_MLEM) /* see test_iterate.c */
				assert_near(s.report.sum_model, s.report.sum_data, 1e-5 * s.report.sum_data);
			else if (runs[i].algorithm == ALGORITHM_OSEM)
				assert_near(s.report.sum_model, 0, 0);
		}
}

/* With rows divided by their sums, the datum is the mean along a ray instead of the integral: the image is mu times the length of
 * a ray, and it is shaded, because rays have different lengths. With true lengths the same data result in mu without shading. */
TEST(normalised_rows)
{
	struct dbt_protocol p = slab_protocol(ALGORITHM_MLEM, 25);
	double lo, hi, mean, true_lo, true_hi, true_mean;
	struct slab s = slab_open(&p, FIXTURE_CPU);

	slab_ends(&s);
	slab_run(&s, &p);
	slab_depth(&s, &true_lo, &true_hi, &true_mean);
	p.normalise_rows = true;
	p.iterations = 50;
	s = slab_open(&p, FIXTURE_CPU);
	slab_ends(&s);
	slab_run(&s, &p);
	slab_depth(&s, &lo, &hi, &mean);
	print_message("true lengths: factor %.3f, depth %.2f %%; normalised: factor %.2f, depth %.2f %%\n", true_mean / MU,
		      100 * (true_hi - true_lo) / true_mean, mean / MU, 100 * (hi - lo) / mean);
	assert_near(true_mean, MU, 0.01 * MU);
	assert_near(true_lo, MU, 0.01 * MU);
	assert_near(true_hi, MU, 0.01 * MU);
	assert_true(mean / MU > HEIGHT && mean / MU < 1.15 * HEIGHT); /* from 50 mm to 50 mm / cos(29 degrees) */
	assert_true((hi - lo) / mean > 0.15);
}

/* Return the sum over valid bins of I ln q - q, or of y ln p - p: log-likelihoods without the terms independent of the image. */
static double likelihood(enum rule_kind kind, const float *y, const float *p, const float *valid, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++) {
		if (!(valid[i] > 0))
			continue;
		if (kind == RULE_TRANSMISSION)
			sum += -exp(-(double)y[i]) * p[i] - exp(-(double)p[i]);
		else if (p[i] > 1e-6)
			sum += y[i] * log((double)p[i]) - p[i];
	}
	return sum;
}

TEST(likelihood_never_falls)
{
	static const struct rule rules[] = {{RULE_TRANSMISSION, 1e-6f, 1e-12f, 1}, {RULE_EM, 1e-6f, 1e-6f, 1}};
	static const struct grid grid = {{44, 62, 20}, {1, 1, 1}, {0, -31, CASE_SUPPORT}};
	struct test_case c = case_open();
	size_t n = c.view_bins * CASE_VIEWS;

	for (size_t b = 0; b < n; b++)
		if (!(c.valid[b] > 0))
			c.line[b] = 0;
	for (int run = 0; run < 6; run++) { /* starts: far too low, correct, far too high */
		const struct iterate_conf conf = {rules[run % 2], 1};
		static const float starts[] = {0.002f, 0.05f, 0.4f};
		struct device *dev = fixture_device(FIXTURE_CPU, 2);
		struct buf y = fixture_upload(dev, c.line, n), mask = fixture_upload(dev, c.valid, n),
			   x = fixture_upload(dev, NULL, grid_size(&grid)), p = fixture_upload(dev, NULL, n);
		struct projection_spec spec = {
			.model = PROJECTION_SLICES, .scan = c.scan, .n_views = CASE_VIEWS, .grid = &grid, .mask = &mask};
		struct linop *op = fixture_projector(dev, &spec);
		struct iterate_subset all = {.op = op, .y = y};
		double first = 0, before = -INFINITY, now = 0;
		struct session_memory memory = {.dev = dev};
		struct iterate_work work;

		assert_int_equal(iterate_work_alloc(&memory, op->n_in, op->n_out, true, false, &work, NULL), 0);
		assert_int_equal(dev->ops->fill(&x, 0, NULL), 0);
		assert_int_equal(op->mark(op, &x, NULL), 0);
		assert_int_equal(dev->ops->threshold(&x, 0, starts[run / 2], NULL), 0);
		for (int k = 0; k <= 40; k++) {
			float *host;

			assert_int_equal(op->apply(op, &x, &p, NULL), 0);
			host = fixture_download(&p);
			now = likelihood(rules[run % 2].kind, c.line, host, c.valid, n);
			if (!(now >= before - 1e-6 * fabs(now)))
				print_error("start %g, rule %d, iteration %d: %.9g after %.9g\n", (double)starts[run / 2],
					    (int)rules[run % 2].kind, k, now, before);
			assert_true(now >= before - 1e-6 * fabs(now)); /* float32 line integrals */
			first = k == 0 ? now : first;
			before = now;
			assert_int_equal(iterate_run(&conf, &all, 1, &work, &x, NULL, NULL), 0);
		}
		print_message("start %g, rule %d: from %.6g to %.6g\n", (double)starts[run / 2], (int)rules[run % 2].kind, first,
			      now);
		assert_true(now > first);
		session_release(&memory);
	}
}

#define DISC_Z 25 /* slice of its middle */

/* Return the contrast of a disc of +20 %, 6 mm high and 12 mm wide, in its slice: its inner 4 x 4 voxels compared with voxels at
 * a distance of 24 mm. */
static double disc_contrast(enum algorithm algorithm, int iterations)
{
	struct shape disc = {SHAPE_CYLINDER_Z, ROLE_LESION, {32, 0, 17 + DISC_Z}, {6, 6, 3}, 0.2 * MU};
	struct dbt_protocol p = slab_protocol(algorithm, iterations);
	struct phantom phantom = {"disc", 1, &disc};
	struct slab s = slab_open(&p, FIXTURE_CPU);
	size_t n = scan_view_size(s.scan);
	float *line = take_memory(n * sizeof(*line));
	double inside = 0, outside = 0;

	for (int view = 0; view < 25; view++) {
		assert_int_equal(phantom_project(&phantom, s.scan, view, line, NULL), 0);
		for (size_t b = 0; b < n; b++)
			s.line[(size_t)view * n + b] += line[b];
	}
	slab_run(&s, &p);
	for (int k = DISC_Z - 1; k <= DISC_Z; k++)
		for (int j = 58; j < 62; j++)
			for (int i = 14; i < 18; i++) {
				const float *row = s.volume + (size_t)k * 40 * 120;

				inside += row[j * 40 + i] / 32;
				outside += (row[(j - 12) * 40 + i] + row[(j + 12) * 40 + i]) / 64;
			}
	return (inside - outside) / outside;
}

/* One pass over 25 subsets reaches about the contrast of 25 to 50 iterations with all views. */
TEST(subsets_are_fast)
{
	double osem = disc_contrast(ALGORITHM_OSEM, 1), mlem25 = disc_contrast(ALGORITHM_MLEM, 25),
	       mlem50 = disc_contrast(ALGORITHM_MLEM, 50), mlem1 = disc_contrast(ALGORITHM_MLEM, 1);
	double ostr = disc_contrast(ALGORITHM_OSTR, 1), mltr25 = disc_contrast(ALGORITHM_MLTR, 25),
	       mltr1 = disc_contrast(ALGORITHM_MLTR, 1);

	print_message(
		"contrast of 20 %%: osem %.2f %%, mlem 25 %.2f %%, 50 %.2f %%, 1 %.2f %%; ostr %.2f %%, mltr 25 %.2f %%, 1 %.2f "
		"%%\n",
		100 * osem, 100 * mlem25, 100 * mlem50, 100 * mlem1, 100 * ostr, 100 * mltr25, 100 * mltr1);
	assert_true(osem > 0.9 * mlem25 && osem < 1.1 * mlem50);
	assert_near(ostr, mltr25, 0.1 * mltr25);
	assert_true(mlem1 < 0.6 * osem && mltr1 < 0.6 * ostr); /* one iteration is not enough */
	assert_true(osem > 0.03 && osem < 0.2); /* some of the contrast is lost over a limited angle, whatever the algorithm */
}

TEST(backprojection_of_a_slab)
{
	struct dbt_protocol p = slab_protocol(ALGORITHM_BP, 0);
	struct slab s = slab_open(&p, FIXTURE_POISON);
	size_t inside = 0;

	slab_run(&s, &p);
	for (int k = 0; k < HEIGHT; k++)
		assert_near(slice_mean(&s, k), MU, 1e-3 * MU);
	for (size_t i = 0; i < grid_size(&s.plan.grid); i++)
		inside += s.volume[i] != 0;
	assert_true(inside > grid_size(&s.plan.grid) / 2);
}

/* A bead in air: its voxel is the brightest one, the maximum of a slice decreases with the distance from the bead, and distant
 * shadows are weak. */
TEST(beads_of_fbp)
{
	static const int places[][3] = {{12, 30, 4}, {30, 52, 10}, {45, 71, 17}};

	for (size_t b = 0; b < sizeof(places) / sizeof(places[0]); b++) {
		const int *at = places[b];
		struct shape bead = {
			SHAPE_ELLIPSOID, ROLE_BEAD, {at[0] + 0.5, at[1] + 0.5 - 50, 17 + at[2] + 0.5}, {1, 1, 1}, 0.5};
		struct phantom phantom = {"bead", 1, &bead};
		struct dbt_protocol p = slab_protocol(ALGORITHM_FBP, 0);
		struct scan *scan = fixture_scan(60, 100, 1, 25);
		struct device *dev = fixture_device(FIXTURE_CPU, 2);
		size_t n = scan_view_size(scan);
		float *line = take_memory(25 * n * sizeof(*line)), *valid = fixture_floats(25 * n, 1, 1, 1), *x, most[20];
		double sum[3] = {0}, left = 0;
		struct dbt_plan plan;
		int r;

		p.filter = DBT_FILTER_HANN;
		p.filter_cut = 1;
		p.voxel = 1;
		for (int view = 0; view < 25; view++)
			assert_int_equal(phantom_project(&phantom, scan, view, line + (size_t)view * n, NULL), 0);
		assert_int_equal(dbt_plan(&p, scan, 17, 20, dev, &plan, NULL), 0);
		x = take_memory(grid_size(&plan.grid) * sizeof(*x));
		r = dbt_reconstruct(&p, &plan, scan, dev, line, valid, NULL, x, NULL, NULL);
		if (!TOMONODE_FFT && r == -ENOTSUP)
			skip_because("this build has no FFT (kissfft)");
		assert_int_equal(r, 0);
		for (int k = 0; k < 20; k++) {
			const float *slice = x + (size_t)k * 6000;
			size_t top = 0;

			for (size_t i = 0; i < 6000; i++)
				top = slice[i] > slice[top] ? i : top;
			most[k] = slice[top];
			if (k == at[2])
				assert_int_equal(top, at[1] * 60 + at[0]);
		}
		for (int k = 0; k < 20; k++) {
			int away = abs(k - at[2]);

			if (away > 4) /* where the 25 shadows are separate */
				assert_true(most[k] < 0.35f * most[at[2]]);
			else if (away > 0)
				assert_true(most[k] < most[k > at[2] ? k - 1 : k + 1]);
		}
		for (int j = -2; j <= 2;
		     j++) /* centre of mass of the positive values; the filter causes negative ones around the bead */
			for (int i = -2; i <= 2; i++) {
				double v = x[(at[2] * 100 + at[1] + j) * 60 + at[0] + i];

				v = v > 0 ? v : 0;
				left += v;
				sum[0] += v * i;
				sum[1] += v * j;
			}
		print_message("bead %zu: off by %.3f and %.3f voxels; %.4f in its slice, %.4f beside it\n", b, sum[0] / left,
			      sum[1] / left, (double)most[at[2]], (double)most[at[2] + 1]);
		assert_near(sum[0] / left, 0, 0.1);
		assert_near(sum[1] / left, 0, 0.1);
	}
}

/* Return the bin of a view onto which a voxel's centre is projected; -1: none. */
static long bin_of(const struct scan *scan, int view, const double at[3])
{
	const double *s = scan->views[view].src;
	double m = s[2] / (s[2] - at[2]);
	double u = (s[0] + (at[0] - s[0]) * m - scan->lo[0]) / scan->h[0],
	       v = (s[1] + (at[1] - s[1]) * m - scan->lo[1]) / scan->h[1];

	/* Closer than 0.001 bins to an edge, float and double may select different bins. */
	if (fabs(u - round(u)) < 1e-3 || fabs(v - round(v)) < 1e-3)
		return -2;
	return u < 0 || v < 0 || u >= scan->n_u || v >= scan->n_v ? -1 : (long)v * scan->n_u + (long)u;
}

/* A voxel is exactly 0 if a view shows air there, and never 0 if no view does and one has a valid bin; for every algorithm. */
TEST(air_is_zero)
{
	struct test_case c = case_open();

	for (size_t a = 0; a < 2 * CASE_ALGORITHMS; a++) {
		struct dbt_protocol p = case_with(&case_algorithms[a / 2], a % 2 ? PROJECTION_EXACT : PROJECTION_SLICES);
		struct device *dev = fixture_device(FIXTURE_CPU, 2);
		struct dbt_plan plan = case_plan(&c, &p, dev);
		float *x = case_run(&c, &p, &plan, dev);
		const struct grid *g = &plan.grid;
		size_t air = 0, tissue = 0;

		for (size_t i = 0; x && i < grid_size(g); i++) {
			size_t n0 = (size_t)g->n[0], n1 = (size_t)g->n[1];
			double at[3] = {g->lo[0] + ((double)(i % n0) + 0.5) * g->h[0],
					g->lo[1] + ((double)(i / n0 % n1) + 0.5) * g->h[1],
					g->lo[2] + ((double)(i / n0 / n1) + 0.5) * g->h[2]};
			bool shown = false, counts = false, unsure = false;

			for (int view = 0; view < CASE_VIEWS; view++) {
				long bin = bin_of(c.scan, view, at);

				unsure |= bin == -2;
				if (bin >= 0) {
					shown |= c.valid[(size_t)view * c.view_bins + (size_t)bin] < 0;
					counts |= c.valid[(size_t)view * c.view_bins + (size_t)bin] > 0;
				}
			}
			if (shown) {
				assert_true(x[i] == 0);
				air++;
			} else if (counts && !unsure) {
				assert_true(x[i] != 0);
				tissue++;
			}
		}
		assert_true(!x || (air > grid_size(g) / 10 && tissue > grid_size(g) / 10));
	}
}

/* A small system of full rank: far fewer voxels than rays, over 50 degrees. */
#define FIT_VIEWS 9
#define FIT_VOXELS 96
static const struct grid fit_grid = {.n = {6, 8, 2}, .h = {4, 4, 16}, .lo = {0, -16, 17}};

struct fit {
	struct device *dev;
	struct scan *scan;
	size_t bins;   /* of all views */
	float *matrix; /* by columns: the operator applied to one voxel with value 1 */
	float *length, *y;
	double x[FIT_VOXELS]; /* the volume from which y was computed */
};

static struct fit fit_open(enum projection_model model, float noise)
{
	struct fit f = {.dev = fixture_device(FIXTURE_CPU, 2), .scan = fixture_scan(30, 80, 1, FIT_VIEWS)};
	struct projection_spec spec = {.model = model, .scan = f.scan, .n_views = FIT_VIEWS, .grid = &fit_grid};
	struct linop *op = fixture_projector(f.dev, &spec);
	struct buf x = fixture_upload(f.dev, NULL, FIT_VOXELS), p = fixture_upload(f.dev, NULL, op->n_out);
	uint32_t seed = 31;

	f.bins = op->n_out;
	f.matrix = take_memory(FIT_VOXELS * f.bins * sizeof(*f.matrix));
	f.length = take_zeros(f.bins, sizeof(*f.length));
	f.y = take_zeros(f.bins, sizeof(*f.y));
	for (size_t j = 0; j < FIT_VOXELS; j++) {
		float one[FIT_VOXELS] = {0}, *column = f.matrix + j * f.bins;

		f.x[j] = 0.03 + 0.04 * fixture_random(&seed);
		one[j] = 1;
		assert_int_equal(f.dev->ops->upload(&x, one, NULL), 0);
		assert_int_equal(op->apply(op, &x, &p, NULL), 0);
		assert_int_equal(f.dev->ops->download(&p, column, NULL), 0);
		for (size_t i = 0; i < f.bins; i++) {
			f.length[i] += column[i];
			f.y[i] += (float)(column[i] * f.x[j]);
		}
	}
	for (size_t i = 0; i < f.bins; i++)
		f.y[i] *= 1 + noise * (2 * fixture_random(&seed) - 1);
	return f;
}

/* Compute the x that minimises the sum of (y - A x)^2 / l (unweighted: of (y - A x)^2): normal equations, by Cholesky. */
static void least_squares(const struct fit *f, bool weighted, double x[FIT_VOXELS])
{
	static double n[FIT_VOXELS][FIT_VOXELS];

	for (int j = 0; j < FIT_VOXELS; j++) {
		const float *a = f->matrix + (size_t)j * f->bins;

		x[j] = 0;
		for (int k = 0; k <= j; k++)
			n[j][k] = 0;
		for (size_t i = 0; i < f->bins; i++) {
			double weighed = f->length[i] > 1e-6f ? a[i] / (weighted ? f->length[i] : 1) : 0;

			if (weighed == 0)
				continue;
			x[j] += weighed * f->y[i];
			for (int k = 0; k <= j; k++)
				n[j][k] += weighed * f->matrix[(size_t)k * f->bins + i];
		}
	}
	for (int j = 0; j < FIT_VOXELS; j++)
		for (int k = 0; k <= j; k++) {
			for (int m = 0; m < k; m++)
				n[j][k] -= n[j][m] * n[k][m];
			assert_true(j > k || n[j][j] > 0); /* full rank */
			n[j][k] = j == k ? sqrt(n[j][j]) : n[j][k] / n[k][k];
		}
	for (int j = 0; j < FIT_VOXELS; j++) {
		for (int k = 0; k < j; k++)
			x[j] -= n[j][k] * x[k];
		x[j] /= n[j][j];
	}
	for (int j = FIT_VOXELS - 1; j >= 0; j--) {
		for (int k = j + 1; k < FIT_VOXELS; k++)
			x[j] -= n[k][j] * x[k];
		x[j] /= n[j][j];
	}
}

/* Return |a - b| / |b|. */
static double relative_distance(const double *a, const double *b)
{
	double d = 0, s = 0;

	for (int j = 0; j < FIT_VOXELS; j++) {
		d += (a[j] - b[j]) * (a[j] - b[j]);
		s += b[j] * b[j];
	}
	return sqrt(d / s);
}

/* Run SART from a uniform start, with subsets of `views` views: `rounds` times `iterations`. ret_left: relative distance to
 * `goal` after each round. */
static void fit_sart(const struct fit *f, enum projection_model model, int views, float step, int iterations, int rounds,
		     const double *goal, double *ret_left)
{
	const struct iterate_conf conf = {{RULE_SART, 1e-6f, 1e-6f, step}, iterations};
	struct buf y = fixture_upload(f->dev, f->y, f->bins), row = fixture_upload(f->dev, f->length, f->bins);
	struct buf x = fixture_upload(f->dev, NULL, FIT_VOXELS);
	struct linop *op[FIT_VIEWS];
	struct iterate_subset subset[FIT_VIEWS] = {0};
	struct session_memory memory = {.dev = f->dev};
	struct iterate_work work;
	int n = FIT_VIEWS / views;

	for (int s = 0; s < n; s++) {
		struct projection_spec spec = {
			.model = model, .scan = f->scan, .first = s * views, .n_views = views, .grid = &fit_grid};
		size_t bins = f->bins / (size_t)n, at = (size_t)s * bins;

		op[s] = fixture_projector(f->dev, &spec);
		subset[s] = (struct iterate_subset){.op = op[s], .y = buf_part(&y, at, bins), .row = buf_part(&row, at, bins)};
	}
	assert_int_equal(iterate_work_alloc(&memory, FIT_VOXELS, subset[0].y.n, linop_fused(op[0]), false, &work, NULL), 0);
	assert_int_equal(f->dev->ops->fill(&x, 0.05f, NULL), 0);
	for (int k = 0; k < rounds; k++) {
		double now[FIT_VOXELS];
		float *host;

		assert_int_equal(iterate_run(&conf, subset, (size_t)n, &work, &x, NULL, NULL), 0);
		host = fixture_download(&x);
		for (int j = 0; j < FIT_VOXELS; j++)
			now[j] = host[j];
		ret_left[k] = relative_distance(now, goal);
	}
	session_release(&memory);
}

#define ROUNDS 4

/* Convergence of SART with more rays than voxels (Jiang & Wang 2003): for consistent data it converges to the solution with any
 * subsets and relaxation; for inconsistent data, with all views in one subset, to the x that minimises the sum of (y - A x)^2 /
 * l. */
TEST(sart_converges)
{
	static const struct {
		int views;
		float step;
		float noise; /* fraction of the datum */
		int iterations;
	} ways[] = {{1, 0.5f, 0, 35}, {1, 1, 0, 20}, {3, 1.8f, 0, 25}, {FIT_VIEWS, 1.9f, 0, 60}, {FIT_VIEWS, 1.9f, 0.1f, 80}};
	static const enum projection_model models[] = {PROJECTION_EXACT, PROJECTION_SLICES};
	double left[ROUNDS], best[FIT_VOXELS], plain[FIT_VOXELS];

	for (size_t m = 0; m < 2; m++)
		for (size_t k = 0; k < sizeof(ways) / sizeof(ways[0]); k++) {
			if (test_tier() < 2 && models[m] == PROJECTION_EXACT && k % 2)
				continue;
			struct fit f = fit_open(models[m], ways[k].noise);

			least_squares(&f, true, best);
			least_squares(&f, false, plain);
			fit_sart(&f, models[m], ways[k].views, ways[k].step, ways[k].iterations, ROUNDS, best, left);
			print_message(
				"model %d, %d views, relaxation %.1f, noise %.1f: off by %.2g, %.2g, %.2g, %.2g; not weighted "
				"%.2g, truth %.2g\n",
				(int)models[m], ways[k].views, (double)ways[k].step, (double)ways[k].noise, left[0], left[1],
				left[2], left[3], relative_distance(plain, best), relative_distance(f.x, best));
			for (int i = 1; i < ROUNDS; i++) /* down to the rounding error of float32 */
				assert_true(left[i] < 0.2 * left[i - 1] || left[i] < 1e-5);
			assert_true(left[ROUNDS - 1] < 1e-5);
			if (ways[k].noise > 0) /* the weighted solution differs clearly from the others */
				assert_true(relative_distance(plain, best) > 1e-3 && relative_distance(f.x, best) > 1e-3);
			else
				assert_true(relative_distance(f.x, best) < 1e-5);
		}
}
