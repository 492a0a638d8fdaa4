/* SPDX-License-Identifier: Apache-2.0 */
/* The skin line: no tissue is ever marked, most of the air is, and unusable views mark nothing. */
#include "recon/core/scan.h"
#include "recon/dbt/breast_mask.h"
#include "recon/phantom/phantom.h"
#include "tests/recon/dbt_fixture.h"
#include "tests/test.h"

#define SUPPORT 17
#define THICKNESS 50

static struct phantom *breast(const struct scan *scan)
{
	struct phantom *p = NULL;

	assert_int_equal(phantom_create(PHANTOM_ELLIPSOIDS, (double[]){scan->n_u * scan->h[0], scan->n_v * scan->h[1]}, SUPPORT,
					THICKNESS, 4, &p, NULL),
			 0);
	return p;
}

/* Convert line integrals to counts, add noise, and convert back to line integrals >= 0, as recon/dbt/prep.h does. i0: the I0 that
 * prep uses. */
static void add_noise(float *line, size_t n, double counts, double i0, uint64_t seed)
{
	uint16_t *raw = take_memory(n * sizeof(*raw));

	assert_int_equal(phantom_counts(line, n, counts, seed, 1, 65535, raw, NULL), 0);
	for (size_t i = 0; i < n; i++)
		line[i] = (float)fmax(0, log(i0 / fmax(raw[i], 0.5)));
}

static struct breast_mask_report run(const struct scan *scan, double margin, const float *line, float *valid)
{
	struct breast_mask_report report;
	struct err err = {0};

	assert_done(breast_mask_view(scan, margin, line, valid, &report, &err), &err);
	return report;
}

/* Return whether all bins within `distance` mm of a bin are air in the noise-free projection. */
static bool far_from_tissue(const struct scan *scan, const float *truth, int u, int v, double distance)
{
	int reach = (int)(distance / scan->h[0]);

	for (int j = -reach; j <= reach; j++)
		for (int i = -reach; i <= reach; i++)
			if (u + i >= 0 && u + i < scan->n_u && v + j >= 0 && v + j < scan->n_v &&
			    hypot(i * scan->h[0], j * scan->h[1]) < distance && truth[(v + j) * scan->n_u + u + i] > 0)
				return false;
	return true;
}

/* Check points of the whole surface of the body: none is projected onto a bin marked as air. */
static void check_surface(const struct scan *scan, int view, const struct shape *body, const float *valid)
{
	const double *src = scan->views[view].src;

	for (int a = 0; a <= 180; a++)
		for (int k = 0; k <= 20; k++) {
			double z = -1 + 0.1 * k, rim = sqrt(1 - 0.36 * z * z), phi = (a - 90) * 3.14159265358979 / 180;
			double p[3] = {body->c[0] + body->r[0] * rim * cos(phi), body->c[1] + body->r[1] * rim * sin(phi),
				       body->c[2] + body->r[2] * z};
			double t = src[2] / (src[2] - p[2]);
			int u = (int)floor((src[0] + (p[0] - src[0]) * t - scan->lo[0]) / scan->h[0]);
			int v = (int)floor((src[1] + (p[1] - src[1]) * t - scan->lo[1]) / scan->h[1]);

			if (u >= 0 && u < scan->n_u && v >= 0 && v < scan->n_v)
				assert_true(valid[v * scan->n_u + u] != -1);
		}
}

/* counts: photons per bin in air; i0: the value assumed for them; share: least fraction of the air that must be marked; every
 * `step`-th view of 5. */
static void check_breast(double pitch, double counts, double i0, double share, int step)
{
	int n_u = (int)(239.36 / pitch), n_v = (int)(304.64 / pitch);
	struct scan *scan = fixture_scan(n_u, n_v, pitch, 5);
	struct phantom *p = breast(scan);
	size_t n = scan_view_size(scan);
	float *truth = take_memory(n * sizeof(*truth)), *line = take_memory(n * sizeof(*line)),
	      *valid = take_memory(n * sizeof(*valid));

	for (int view = 0; view < 5; view += step) {
		size_t far = 0, found = 0, marked = 0;

		assert_int_equal(phantom_project(p, scan, view, truth, NULL), 0);
		memcpy(line, truth, n * sizeof(*line));
		add_noise(line, n, counts, i0, (uint64_t)view);
		for (size_t i = 0; i < n; i++)
			valid[i] = i % 1009 == 5 ? 0 : 1;
		struct breast_mask_report report = run(scan, BREAST_MASK_MARGIN, line, valid);
		assert_int_equal(report.verdict, BREAST_MASK_MARKED);
		for (int v = 0; v < n_v; v++)
			for (int u = 0; u < n_u; u++) {
				size_t at = (size_t)(v * n_u + u);

				assert_true(valid[at] == (at % 1009 == 5 ? 0 : 1) || valid[at] == -1);
				assert_true(at % 1009 != 5 || valid[at] == 0);
				marked += valid[at] == -1;
				if (valid[at] == -1 && truth[at] > 0)
					fail_msg("%g mm, %g counts, view %d: tissue of %g at %d, %d is marked", pitch, counts,
						 view, truth[at], u, v);
				/* Check the distance to tissue for every third bin of every third row. */
				if (u % 3 || v % 3 || truth[at] > 0)
					continue;
				if (valid[at] == -1) /* the skin is inside the last cell of 1 mm */
					assert_true(far_from_tissue(scan, truth, u, v, BREAST_MASK_MARGIN - 1));
				else if (valid[at] != 0 && far_from_tissue(scan, truth, u, v, BREAST_MASK_MARGIN + 3))
					far++;
				if (valid[at] == -1)
					found++;
			}
		check_surface(scan, view, &p->shapes[0], valid);
		assert_int_equal(report.marked, marked);
		if (!((double)found >= share * (double)(found + far)))
			fail_msg("%g mm, %g counts, view %d: %zu of %zu bins of air", pitch, counts, view, found, found + far);
	}
	phantom_free(p);
}

TEST(the_breast)
{
	check_breast(0.34, 20000, 20000, 0.999, 3);
	check_breast(0.68, 2000, 2150, 0.99, 1); /* I0 from a high percentile: the air is above 0 */
	check_breast(0.68, 500, 400, 0.99, 1);	 /* I0 too low: the air's line integrals are cut at 0 */
	check_breast(0.68, 300, 300, 0.99, 1);
	check_breast(1.7, 20000, 20000, 0.97, 1); /* a cell is one bin */
	check_breast(0.68, 8, 8, 0, 1);		  /* very few photons: still no tissue may be marked */
}

TEST(the_breast_in_fine_bins, .tier = 2)
{
	check_breast(0.34, 20000, 20000, 0.999, 1);
	check_breast(0.34, 2000, 2150, 0.999, 1);
	check_breast(0.17, 500, 400, 0.999, 1);
	check_breast(0.34, 8, 8, 0, 1);
}

/* Views without a breast: the same value in all bins, or random values. */
TEST(odd_views)
{
	static const struct {
		float lo, hi, valid;
		enum breast_mask_verdict verdict;
	} cases[] = {
		{0, 0, 1, BREAST_MASK_ALL_AIR},
		{0, 0.05f, 1, BREAST_MASK_ALL_AIR},
		{0.3f, 0.3f, 1, BREAST_MASK_ALL_AIR},
		{2, 2, 1, BREAST_MASK_NO_AIR},
		{0, 4, 1, BREAST_MASK_NO_AIR},
		{0, 0, 0, BREAST_MASK_NO_AIR},
		{0, 0, -1, BREAST_MASK_NO_AIR},
		{NAN, NAN, 1, BREAST_MASK_NO_AIR},
		{INFINITY, INFINITY, 1, BREAST_MASK_NO_AIR},
		{-INFINITY, 0, 1, BREAST_MASK_NO_AIR},
	};
	static const int sizes[][2] = {{1, 1}, {1, 9}, {7, 1}, {251, 333}, {2500, 3}};

	for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
		struct scan *scan = fixture_scan(sizes[k][0], sizes[k][1], k ? 0.2 : 300, 2);
		size_t n = scan_view_size(scan);

		for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
			float *line = fixture_floats(n, (uint32_t)i, cases[i].lo, cases[i].hi);
			float *valid = fixture_floats(n, 1, cases[i].valid, cases[i].valid);
			struct breast_mask_report report = run(scan, 3, line, valid);

			if (n > 1000) /* with few bins the mean of the noise is not 0 */
				assert_int_equal(report.verdict, cases[i].verdict);
			assert_true(n <= 1000 || report.marked == 0);
			for (size_t j = 0; j < n; j++)
				assert_true(valid[j] == cases[i].valid || (n <= 1000 && valid[j] == -1));
		}
	}
}

/* A block of tissue in u < 60 of 100 x 80 bins of 1 mm: a cell is one bin, so distances are exact. */
struct block {
	struct scan *scan;
	float line[8000], valid[8000];
};

static struct block *block_new(void)
{
	struct block *b = take_memory(sizeof(*b));

	b->scan = fixture_scan(100, 80, 1, 2);
	for (int i = 0; i < 8000; i++) {
		b->line[i] = i % 100 < 60 ? 2 : 0;
		b->valid[i] = 1;
	}
	return b;
}

TEST(the_margin)
{
	static const double margins[] = {0, 0.5, 1, 2.9, 3, 3.1, 39, 40, 1000};

	for (size_t k = 0; k < sizeof margins / sizeof *margins; k++) {
		struct block *b = block_new();

		run(b->scan, margins[k], b->line, b->valid);
		for (int i = 0; i < 8000; i++) /* the edge of bin 60 is 0 mm from the tissue */
			assert_true(b->valid[i] == (i % 100 - 60 >= margins[k] && i % 100 >= 60 ? -1 : 1));
	}
	/* one bin: a disc around it */
	struct block *b = block_new();
	for (int i = 0; i < 8000; i++)
		b->line[i] = i % 100 < 20 ? 2 : 0;
	b->line[40 * 100 + 70] = 2;
	run(b->scan, 5, b->line, b->valid);
	for (int v = 0; v < 80; v++)
		for (int u = 26; u < 100; u++) {
			double d_u = fmax(0, abs(u - 70) - 1), d_v = fmax(0, abs(v - 40) - 1);
			bool tissue = u == 70 && v == 40;

			assert_true(b->valid[v * 100 + u] == (!tissue && hypot(d_u, d_v) >= 5 ? -1 : 1));
		}
}

/* Small line integrals inside the breast are never air, nor is a region connected only with the chest wall's side. */
TEST(dark_inside)
{
	struct block *b = block_new();

	for (int v = 20; v < 60; v++)
		for (int u = 0; u < 50; u++)
			if (v > 22 || u > 30)
				b->line[v * 100 + u] = 0;
	assert_int_equal(run(b->scan, 0, b->line, b->valid).verdict, BREAST_MASK_MARKED);
	for (int i = 0; i < 8000; i++)
		assert_true(b->valid[i] == (i % 100 >= 60 ? -1 : 1));
	/* connect the region with the outside by one cell; then by cells that touch only diagonally, which does not connect */
	for (int k = 0; k < 2; k++) {
		for (int i = 0; i < 8000; i++)
			b->valid[i] = 1;
		for (int u = 50; u < 60; u++)
			b->line[40 * 100 + u] = k == 0 || u < 59 ? 0 : 2;
		b->line[41 * 100 + 59] = k == 0 ? 2 : 0;
		run(b->scan, 0, b->line, b->valid);
		assert_true(b->valid[40 * 100 + 20] == (k == 0 ? -1 : 1));
	}
}

/* The ends of rows: the shadow of a collimator without data, its penumbra, dead lines. */
TEST(collimators)
{
	struct block *b = block_new();

	for (int i = 0; i < 8000; i++) {
		b->valid[i] = i % 100 >= 90 || i / 100 < 5 || i / 100 == 40 ? 0 : 1;
		b->line[i] = i % 100 == 89 || i % 100 == 88 ? 4 : i % 100 >= 90 ? NAN : b->line[i];
	}
	assert_int_equal(run(b->scan, 2, b->line, b->valid).verdict, BREAST_MASK_MARKED);
	for (int i = 0; i < 8000; i++) {
		int u = i % 100, v = i / 100;

		if (u >= 90 || v < 5 || v == 40)
			assert_true(b->valid[i] == 0);
		else if (u < 60 || u > 87)
			assert_true(b->valid[i] == 1);
		else if (u >= 62 && u < 86 && v >= 7 && abs(v - 40) > 2)
			assert_true(b->valid[i] == -1);
	}
}

/* Air under a compression paddle, and slow shading: marked where it is near the level of most of the air; tissue is never marked.
 */
TEST(paddles_and_shading)
{
	struct block *b = block_new();

	for (int i = 0; i < 8000; i++)
		b->line[i] += i % 100 < 85 ? 0.1f : 0; /* most of the air is under the paddle */
	assert_int_equal(run(b->scan, 3, b->line, b->valid).verdict, BREAST_MASK_MARKED);
	for (int i = 0; i < 8000; i++)
		assert_true(b->valid[i] == (i % 100 >= 63 ? -1 : 1));
	for (int i = 0; i < 8000; i++) {
		b->valid[i] = 1;
		b->line[i] += i % 100 >= 60 && i % 100 < 65 ? 0.1f : 0; /* the edge of the paddle: above the threshold of air */
	}
	assert_int_equal(run(b->scan, 3, b->line, b->valid).verdict, BREAST_MASK_MARKED);
	for (int i = 0; i < 8000; i++)
		assert_true(b->valid[i] == (i % 100 >= 68 ? -1 : 1));
	for (int i = 0; i < 8000; i++) {
		b->valid[i] = 1;
		b->line[i] = (i % 100 < 60 ? 2 : 0) + 0.0005f * (float)(i / 100); /* a heel effect of 4 % */
	}
	assert_int_equal(run(b->scan, 3, b->line, b->valid).verdict, BREAST_MASK_MARKED);
	for (int i = 0; i < 8000; i++)
		assert_true(b->valid[i] == (i % 100 >= 63 ? -1 : 1));
}

/* Sizes that are not multiples of a cell or of a block of columns: the last cells have fewer bins. */
TEST(odd_sizes)
{
	static const int sizes[][2] = {{2816, 37}, {1025, 64}, {131, 259}};

	for (int k = 0; k < 3; k++) {
		struct scan *scan = fixture_scan(sizes[k][0], sizes[k][1], 0.085, 2);
		size_t n = scan_view_size(scan), marked = 0;
		float *line = fixture_floats(n, 3, 0, 0.02f), *valid = fixture_floats(n, 1, 1, 1);
		int skin = sizes[k][0] / 3;

		for (size_t i = 0; i < n; i++)
			if ((int)(i % (size_t)sizes[k][0]) < skin)
				line[i] += 1;
		assert_int_equal(run(scan, 0.5, line, valid).verdict, BREAST_MASK_MARKED);
		for (size_t i = 0; i < n; i++) {
			int u = (int)(i % (size_t)sizes[k][0]);

			marked += valid[i] == -1;
			assert_true(u >= skin || valid[i] == 1);
			assert_true(u < skin + 30 || valid[i] == -1); /* at most two cells of 12 bins and a part of a cell */
		}
		assert_true(marked > 0);
	}
}

TEST(refusals)
{
	struct scan *scan = fixture_scan(2, 2, 1, 2);
	float line[4] = {0}, valid[4] = {1, 1, 1, 1};
	struct err err = {0};

	assert_error(breast_mask_view(scan, -1, line, valid, NULL, &err), &err, EINVAL, "-1 mm");
	assert_int_equal(breast_mask_view(scan, NAN, line, valid, NULL, NULL), -EINVAL);
	scan->kind = (enum scan_kind)0;
	assert_int_equal(breast_mask_view(scan, 1, line, valid, NULL, NULL), -EINVAL);
	assert_true(valid[0] == 1);
}
