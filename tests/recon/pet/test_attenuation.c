/* SPDX-License-Identifier: Apache-2.0 */
/* The map of attenuation from CT, and its factors: the table, values and positions after resampling at any orientation, the
 * Gaussian, 200 mm of water, the cache. */
#include "recon/core/psf.h"
#include "recon/core/scan.h"
#include "recon/pet/attenuation.h"
#include "recon/pet/mu_map.h"
#include "tests/recon/pet/pet_fixture.h"
#include "tests/test.h"

#define WATER_200 6.82	      /* exp(0.0096 * 200) is 6.8210 */
#define WATER_TOLERANCE 0.005 /* relative: edges of the map are blurred along the ray */

/* ---- the table ---- */

TEST(table_of_voltages)
{
	static const double entries[] = {80, 100, 110, 120, 130, 140};

	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		struct mu_curve c = mu_curve_of(entries[i]);
		double below = mu_of_hu(&c, c.edge - 1000), above = mu_of_hu(&c, c.edge - 1000 + 1e-6);

		assert_near(c.kvp, entries[i], 0);
		assert_near(above, below, 0.01 * below);
		assert_near(mu_of_hu(&c, 0), MU_WATER, 1e-12);
		assert_near(mu_of_hu(&c, -1000), 0, 0);
		assert_near(mu_of_hu(&c, -3024), 0, 0);
		for (int hu = -1000; hu < 3000; hu++)
			assert_true(mu_of_hu(&c, hu + 1) >= mu_of_hu(&c, hu) * (1 - 0.01));
		if (i > 0) { /* the higher the voltage, the less bone differs from water in CT, and the steeper is the line */
			struct mu_curve lower = mu_curve_of(entries[i - 1]);

			assert_true(mu_of_hu(&c, 1000) > mu_of_hu(&lower, 1000));
		}
	}
	assert_near(mu_of_hu(&(struct mu_curve){.slope = 5.10e-6, .offset = 0.00471, .edge = 1047}, 1000), 0.01491, 1e-12);
	assert_near(mu_curve_of(120).slope * 2000 + mu_curve_of(120).offset, 0.01491, 1e-12);
	assert_near(mu_curve_of(125.1).kvp, 130, 0);
	assert_near(mu_curve_of(70).kvp, 80, 0);
	assert_near(mu_curve_of(0).kvp, 120, 0);
	assert_near(mu_curve_of(NAN).kvp, 120, 0);
}

/* ---- resampling ---- */

static uint32_t seed_now;

static double random_in(double lo, double hi)
{
	seed_now = seed_now * 1664525u + 1013904223u;
	return lo + (hi - lo) * (seed_now >> 8) / 16777216.0;
}

/* A rotation matrix of random direction and angle. */
static void random_rotation(double ret[3][3])
{
	double q[4], n = 0;

	do {
		n = 0;
		for (int i = 0; i < 4; i++) {
			q[i] = random_in(-1, 1);
			n += q[i] * q[i];
		}
	} while (n > 1 || n < 0.01);
	for (int i = 0; i < 4; i++)
		q[i] /= sqrt(n);
	ret[0][0] = 1 - 2 * (q[2] * q[2] + q[3] * q[3]);
	ret[0][1] = 2 * (q[1] * q[2] - q[0] * q[3]);
	ret[0][2] = 2 * (q[1] * q[3] + q[0] * q[2]);
	ret[1][0] = 2 * (q[1] * q[2] + q[0] * q[3]);
	ret[1][1] = 1 - 2 * (q[1] * q[1] + q[3] * q[3]);
	ret[1][2] = 2 * (q[2] * q[3] - q[0] * q[1]);
	ret[2][0] = 2 * (q[1] * q[3] - q[0] * q[2]);
	ret[2][1] = 2 * (q[2] * q[3] + q[0] * q[1]);
	ret[2][2] = 1 - 2 * (q[1] * q[1] + q[2] * q[2]);
}

/* Two smooth blobs of different sizes that lie off the middle: mu at a point of the grid's axes, as HU. */
static double blobs(const double p[3])
{
	static const double at[2][3] = {{12, -8, 5}, {-15, 10, -9}}, width[2] = {7, 5}, height[2] = {1000, 600};
	double h = 0;

	for (int b = 0; b < 2; b++) {
		double d2 = 0;

		for (int c = 0; c < 3; c++)
			d2 += (p[c] - at[b][c]) * (p[c] - at[b][c]);
		h += height[b] * exp(-0.5 * d2 / (width[b] * width[b]));
	}
	return h - 1000;
}

/* Integral, and centre of mass, of a map. */
static double moments(const struct grid *g, const float *mu, double ret_centre[3])
{
	double sum = 0;

	ret_centre[0] = ret_centre[1] = ret_centre[2] = 0;
	for (int i = 0; i < g->n[0]; i++)
		for (int j = 0; j < g->n[1]; j++)
			for (int k = 0; k < g->n[2]; k++) {
				const int at[3] = {i, j, k};
				double v = (double)mu[(size_t)i * grid_step(g, 0) + (size_t)j * grid_step(g, 1) +
						      (size_t)k * grid_step(g, 2)];

				sum += v;
				for (int c = 0; c < 3; c++)
					ret_centre[c] += v * (g->lo[c] + (at[c] + 0.5) * g->h[c]);
			}
	for (int c = 0; c < 3; c++)
		ret_centre[c] /= sum;
	return sum * g->h[0] * g->h[1] * g->h[2];
}

/* Make a CT of blobs() with the steps rotation * spacing, whose middle is near the middle of the axes. */
static int16_t *make_ct(const double rotation[3][3], const double spacing[3], struct mu_source *ret)
{
	int16_t *hu;

	for (int i = 0; i < 3; i++)
		ret->n[i] = (int)(140 / spacing[i]);
	for (int c = 0; c < 3; c++) {
		ret->at[c][3] = random_in(-3, 3);
		for (int i = 0; i < 3; i++) {
			ret->at[c][i] = rotation[c][i] * spacing[i];
			ret->at[c][3] -= ret->at[c][i] * 0.5 * (ret->n[i] - 1);
		}
	}
	hu = take_memory((size_t)ret->n[0] * (size_t)ret->n[1] * (size_t)ret->n[2] * sizeof(*hu));
	for (int k = 0; k < ret->n[2]; k++)
		for (int j = 0; j < ret->n[1]; j++)
			for (int i = 0; i < ret->n[0]; i++) {
				double p[3];

				for (int c = 0; c < 3; c++)
					p[c] = ret->at[c][0] * i + ret->at[c][1] * j + ret->at[c][2] * k + ret->at[c][3];
				hu[((size_t)k * (size_t)ret->n[1] + (size_t)j) * (size_t)ret->n[0] + (size_t)i] =
					(int16_t)lround(blobs(p));
			}
	ret->hu = hu;
	return hu;
}

/* Integral and position stay those of the blobs at any orientation, whether the CT's voxels are finer or coarser. The curve is a
 * line, so that the integral is that of the Gaussians. */
TEST(resampling_keeps_integral_and_place)
{
	static const double pi2 = 2 * M_PI;
	const struct mu_curve line = {120, 9.6e-6, 0, 1e9};
	double first = 1000 * pow(pi2, 1.5) * 343, second = 600 * pow(pi2, 1.5) * 125, expected = 9.6e-6 * (first + second);
	double centre[3] = {(12 * first - 15 * second) / (first + second), (-8 * first + 10 * second) / (first + second),
			    (5 * first - 9 * second) / (first + second)};

	seed_now = 18;
	for (int n = 0; n < 8; n++) {
		double rotation[3][3] = {{1, 0, 0}, {0, n == 1 ? -1 : 1, 0}, {0, 0, n == 1 ? -1 : 1}};
		double spacing[3] = {random_in(0.9, 2.5), random_in(0.9, 2.5), random_in(1.5, 5)}, found[3], sum;
		struct grid g = {.n = {41, 37, 33}, .h = {2.4, 2.7, 3.1}, .z_fastest = n % 2 == 0};
		struct mu_source ct = {0};
		float *mu;

		if (n > 1)
			random_rotation(rotation);
		for (int c = 0; c < 3; c++)
			g.lo[c] = -0.5 * g.n[c] * g.h[c];
		make_ct(rotation, spacing, &ct);
		mu = take_memory(grid_size(&g) * sizeof(*mu));
		assert_int_equal(mu_map_resample(&ct, &line, &g, NULL, mu, NULL), 0);
		sum = moments(&g, mu, found);
		assert_near(sum, expected, 0.003 * expected);
		for (int c = 0; c < 3; c++)
			assert_near(found[c], centre[c], 0.1);
	}
}

/* A voxel of the grid is the mean of mu of the CT's voxels, not mu of their mean: bone and air beside each other. */
TEST(mean_is_of_mu)
{
	int16_t hu[8] = {1000, 1000, 1000, 1000, -1000, -1000, -1000, -1000};
	struct mu_source ct = {hu, {2, 2, 2}, {{1, 0, 0, -0.5}, {0, 1, 0, -0.5}, {0, 0, 1, -0.5}}};
	struct grid g = {.n = {1, 1, 3}, .h = {2, 2, 2}, .lo = {-1, -1, -3}};
	struct mu_curve c = mu_curve_of(120);
	double covered[2];
	float mu[3];

	assert_int_equal(mu_map_resample(&ct, &c, &g, NULL, mu, NULL), 0);
	assert_near((double)mu[1], mu_of_hu(&c, 1000) / 2, 1e-7);
	assert_near((double)mu[0], 0, 0);
	assert_near((double)mu[2], 0, 0);
	assert_int_equal(mu_map_uncovered(&ct, &g, covered, NULL), 2);
	assert_near(covered[0], -1, 1e-12);
	assert_near(covered[1], 1, 1e-12);
	ct.at[2][2] = 0;
	assert_int_equal(mu_map_resample(&ct, &c, &g, NULL, mu, NULL), -EINVAL);
	assert_int_equal(mu_map_uncovered(&ct, &g, NULL, NULL), -EINVAL);
}

/* ---- the Gaussian ---- */

static double width_along(const struct grid *g, const float *mu, int axis)
{
	double centre[3], sum = 0, second = 0;

	moments(g, mu, centre);
	for (int i = 0; i < g->n[0]; i++)
		for (int j = 0; j < g->n[1]; j++)
			for (int k = 0; k < g->n[2]; k++) {
				const int at[3] = {i, j, k};
				double v = (double)mu[(size_t)i * grid_step(g, 0) + (size_t)j * grid_step(g, 1) +
						      (size_t)k * grid_step(g, 2)];
				double d = g->lo[axis] + (at[axis] + 0.5) * g->h[axis] - centre[axis];

				sum += v;
				second += v * d * d;
			}
	return PSF_FWHM_PER_SIGMA * sqrt(second / sum);
}

/* What one map has of another: all of itself and of its part, nothing of what is beside it, half of what is half as dense. */
TEST(repeated_maps)
{
	static const struct {
		int from[2], to[2]; /* along the first axis */
		float a, b;
		double expected;
	} rows[] = {{{2, 2}, {8, 8}, 0.01f, 0.01f, 1},	  {{2, 4}, {8, 6}, 0.01f, 0.01f, 1},
		    {{4, 2}, {6, 8}, 0.01f, 0.01f, 1},	  {{0, 5}, {5, 10}, 0.01f, 0.01f, 0},
		    {{2, 4}, {8, 6}, 0.01f, 0.005f, 0.5}, {{2, 4}, {8, 6}, 0.01f, 0.04f, 0.25},
		    {{0, 4}, {5, 9}, 0.01f, 0.01f, 0.2},  {{2, 2}, {8, 2}, 0.01f, 0.01f, 0}};
	const struct grid g = {.n = {10, 3, 2}, .h = {1, 1, 1}, .z_fastest = true};
	float *a = take_zeros(grid_size(&g), sizeof(*a)), *b = take_zeros(grid_size(&g), sizeof(*b));

	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		for (int i = 0; i < 10; i++)
			for (size_t j = 0; j < 6; j++) {
				size_t at = (size_t)i * grid_step(&g, 0) + j / 2 * grid_step(&g, 1) + j % 2;

				a[at] = i >= rows[r].from[0] && i < rows[r].to[0] ? rows[r].a : 0;
				b[at] = i >= rows[r].from[1] && i < rows[r].to[1] ? rows[r].b : 0;
			}
		assert_near(mu_map_repeated(&g, a, b), rows[r].expected, 1e-6);
		assert_near(mu_map_repeated(&g, b, a), rows[r].expected, 1e-6);
	}
}

TEST(gaussian_has_its_width)
{
	struct grid g = {.n = {41, 37, 33}, .h = {1.0, 1.3, 0.8}, .z_fastest = true};
	float *mu = take_zeros(grid_size(&g), sizeof(*mu));
	double centre[3];

	mu[20 * grid_step(&g, 0) + 15 * grid_step(&g, 1) + 17 * grid_step(&g, 2)] = 1;
	assert_int_equal(mu_map_smooth(&g, 5, mu, NULL), 0);
	for (int c = 0; c < 3; c++)
		assert_near(width_along(&g, mu, c), 5, 0.02);
	assert_near(moments(&g, mu, centre) / (1.0 * 1.3 * 0.8), 1, 1e-4); /* the edges are normalised */
	for (size_t i = 0; i < grid_size(&g); i++)			   /* what is uniform stays so up to the last slice */
		mu[i] = 0.0096F;
	assert_int_equal(mu_map_smooth(&g, 5, mu, NULL), 0);
	for (int k = 0; k < g.n[2]; k++)
		assert_near((double)mu[20 * grid_step(&g, 0) + 15 * grid_step(&g, 1) + (size_t)k], 0.0096, 1e-7);
}

/* ---- factors ---- */

/* A scanner as small as those of the other tests, but with room for 200 mm. */
static struct michelogram scanner_of_water(int span)
{
	struct michelogram m = {.scanner = {PET_RINGS, 48, 6, 240, 5, 4}, .n_radial = 121, .n_angles = 24, .arc_corrected = true};

	fixture_segments(&m, span, 4);
	return m;
}

/* A CT of a box of water, 200 mm along x, 120 mm along y, at (10, -20) mm; patient and grid have the same axes. */
static int16_t *water_box(struct mu_source *ret)
{
	*ret = (struct mu_source){.n = {300, 200, 30}, .at = {{1, 0, 0, -149.5}, {0, 1, 0, -99.5}, {0, 0, 3, -43.5}}};
	int16_t *hu = take_memory(300 * 200 * 30 * sizeof(*hu));

	for (int k = 0; k < 30; k++)
		for (int j = 0; j < 200; j++)
			for (int i = 0; i < 300; i++) {
				double x = ret->at[0][3] + i, y = ret->at[1][3] + j;

				hu[((size_t)k * 200 + (size_t)j) * 300 + (size_t)i] =
					fabs(x - 10) < 100 && fabs(y + 20) < 60 ? 0 : -1000;
			}
	ret->hu = hu;
	return hu;
}

/* The same, only above z = 0. */
static void cut_below(const struct mu_source *ct, int16_t *hu)
{
	size_t slice = (size_t)ct->n[0] * (size_t)ct->n[1];

	for (size_t i = 0; i < 15 * slice; i++)
		hu[i] = -1000;
}

static struct attenuation *make_water(struct device *dev, const struct michelogram *m, struct pet_cache *cache, uint64_t key,
				      bool half)
{
	struct mu_curve c = mu_curve_of(120);
	struct attenuation_plan plan;
	struct attenuation *a = NULL;
	struct mu_source ct;
	int16_t *hu = water_box(&ct);
	struct err err = {0};

	if (half)
		cut_below(&ct, hu);
	assert_done(attenuation_plan(m, dev, 0, &plan, &err) < 0 || attenuation_new(&plan, m, key, &a, &err) < 0 ||
			    mu_map_resample(&ct, &c, &plan.grid, NULL, attenuation_map(a), &err) < 0 ||
			    mu_map_smooth(&plan.grid, MU_MAP_FWHM, attenuation_map(a), &err) < 0 ||
			    attenuation_compute(a, m, dev, cache, NULL, &err),
		    &err);
	return a;
}

static double factor_at(const struct michelogram *m, const float *f, size_t plane, int angle, int radial)
{
	return (double)f[(plane * (size_t)m->n_angles + (size_t)angle) * (size_t)m->n_radial + (size_t)radial];
}

/* At the angle 0 rays run along y at x = r; at 90 degrees along x at y = r. */
TEST(water_attenuates)
{
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct michelogram m = scanner_of_water(3);
	struct attenuation *a = make_water(dev, &m, NULL, 1, false);
	const float *f = attenuation_factors(a);
	int direct = m.segments[0].n_planes;
	double oblique;

	for (int p = 0; p < direct; p++) {
		double along_x = 1 / factor_at(&m, f, (size_t)p, 12, 60 - 5),
		       along_y = 1 / factor_at(&m, f, (size_t)p, 0, 60 + 2);

		assert_near(along_x, WATER_200, WATER_TOLERANCE * WATER_200);
		assert_near(along_y, exp(MU_WATER * 120), WATER_TOLERANCE * exp(MU_WATER * 120));
		assert_near(factor_at(&m, f, (size_t)p, 12, 60 + 15), 1, 1e-3);	 /* y = 60, outside: the box ends at 40 */
		assert_true(factor_at(&m, f, (size_t)p, 12, 60 - 15) < 1 / 6.0); /* y = -60, inside: it ends at -80 */
		assert_near(factor_at(&m, f, (size_t)p, 0, 60 - 25), 1, 1e-3);	 /* x = -100: it ends at -90 */
		assert_true(factor_at(&m, f, (size_t)p, 0, 60 + 25) < 1 / 3.0);	 /* x = 100: it ends at 110 */
	}
	oblique = 1 / factor_at(&m, f, (size_t)(direct + 1), 12, 60); /* longer by the cosine of the ray's slope */
	assert_true(oblique > WATER_200 * (1 - WATER_TOLERANCE) && oblique < WATER_200 * 1.02);
	attenuation_release(a, NULL);
}

/* Every plane has its own factor, that of its ends' heights: water above z = 0 only, rays along y, from -80 to 40, that rise. The
 * map ends at z = 0 with a Gaussian, and with the line between two slices of the CT, 3 mm apart;
 * Joseph's projector adds another one. With GE's span the scan has the planes in another order. */
TEST(planes_are_in_their_order)
{
	struct device *dev = fixture_device(FIXTURE_CPU, 2);
	struct michelogram m = scanner_of_water(2);
	struct attenuation *a = make_water(dev, &m, NULL, 1, true);
	double gauss = MU_MAP_FWHM / PSF_FWHM_PER_SIGMA, sigma = sqrt(gauss * gauss + 3 * 3 / 6.0);
	int *plane;
	struct scan *scan = fixture_michelogram_scan(&m, 230, &plane);

	for (int u = 0; u < scan->n_u; u++) {
		double slope = scan_slope(scan, scan->planes[u].rise, 62), line = 0;

		for (int t = -80; t < 40; t++)
			line += MU_WATER * 0.5 * erfc(-(scan->planes[u].z + slope * (t + 0.5)) / (sigma * M_SQRT2));
		assert_near(factor_at(&m, attenuation_factors(a), (size_t)plane[u], 0, 62), exp(-line), 0.03);
	}
	attenuation_release(a, NULL);
}

/* The same map in parts of one angle gives the same factors; the cache returns them for the same key and rays only. */
TEST(parts_and_cache)
{
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	struct michelogram m = scanner_of_water(3), other = m;
	struct pet_cache *cache = pet_cache_create(dev, PET_CACHE_BYTES);
	struct attenuation *whole = make_water(dev, &m, cache, 7, false), *found, *parts;
	struct attenuation_plan plan;

	assert_int_equal(attenuation_plan(&m, dev, 0, &plan, NULL), 0);
	found = attenuation_find(cache, &plan, &m, 7);
	assert_ptr_equal(attenuation_factors(found), attenuation_factors(whole));
	attenuation_release(found, cache);
	assert_null(attenuation_find(cache, &plan, &m, 8));
	other.angle_offset = 1;
	assert_null(attenuation_find(cache, &plan, &other, 7));
	plan.views = 5;
	assert_int_equal(attenuation_new(&plan, &m, 9, &parts, NULL), 0);
	memcpy(attenuation_map(parts), attenuation_map(whole), grid_size(&plan.grid) * sizeof(float));
	assert_int_equal(attenuation_compute(parts, &m, dev, NULL, NULL, NULL), 0);
	assert_memory_equal(attenuation_factors(parts), attenuation_factors(whole), plan.bins * sizeof(float));
	attenuation_release(parts, NULL);
	attenuation_release(whole, cache);
	pet_cache_free(cache);
}
