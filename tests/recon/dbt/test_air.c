/* SPDX-License-Identifier: Apache-2.0 */
/* Find air and I0: slabs with more and less air, none at all, and regions that look like air; codes that are over range. */
#include "recon/dbt/air.h"
#include "recon/dbt/air_internal.h"
#include "recon/phantom/poisson.h"
#include "tests/test.h"

#define N_U 240
#define N_V 300
#define N ((size_t)N_U * N_V)
#define THICKNESS 50.0
#define MU 0.05

static const double pitch[2] = {0.5, 0.5};
static const struct prep plain = {.n_u = N_U, .n_v = N_V, .bin = 1, .max_value = 16383, .floor = 1e-4};

static double intensity[N];
static uint16_t raw[N];
static uint32_t hist[PREP_VALUES];

/* A slab below a source 650 mm above the chest-wall edge covers the columns below `columns`, and air covers the others. */
static void draw_slab(double i0, int columns)
{
	for (int v = 0; v < N_V; v++)
		for (int u = 0; u < N_U; u++) {
			double x = (u + 0.5) * pitch[0], y = (v + 0.5 - N_V / 2.0) * pitch[1];
			double oblique = sqrt(1 + (x * x + y * y) / (650.0 * 650));

			intensity[v * N_U + u] = u < columns ? i0 * exp(-MU * THICKNESS * oblique) : i0;
		}
}

static void store(const struct prep *p, bool noise)
{
	for (size_t i = 0; i < N; i++) {
		double counts = noise ? poisson_draw(intensity[i], poisson_stream(7, i)) : floor(intensity[i] + 0.5);
		double value = fmin(fmax(counts + p->offset, 0), p->max_value);

		raw[i] = (uint16_t)(p->inverted ? p->max_value - value : value);
	}
}

static bool fit; /* of air_find() */

static int find(const struct prep *p, const double size[2], double thickness, struct air *ret_air, struct err *err)
{
	int rc = prep_histogram(p, raw, hist, err);

	return rc < 0 ? rc : air_find(p, size, thickness, fit, raw, hist, ret_air, err);
}

static struct air found(const struct prep *p, enum air_verdict want)
{
	struct err err = {0};
	struct air air;

	assert_done(find(p, pitch, THICKNESS, &air, &err), &err);
	if (air.verdict != want)
		fail_msg("'%s', share %g, contrast %g, not '%s'", air_verdict_text(air.verdict), air.share, air.contrast,
			 air_verdict_text(want));
	assert_true(want == AIR_FOUND ? air.level > 0 : air.level == 0);
	return air;
}

/* Air from one column in a hundred to all but a few: the level is I0, for any noise, offset and polarity. Where air covers less
 * than 5 %, the percentile that was used before is a value of the slab, 12 times too small. */
TEST(test_share)
{
	static const int air_columns[] = {2, 3, 5, 8, 12, 24, 120, 220};
	static const double levels[] = {300, 2000, 12000};

	for (size_t k = 0; k < sizeof(levels) / sizeof(levels[0]); k++)
		for (size_t i = 0; i < sizeof(air_columns) / sizeof(air_columns[0]); i++)
			for (int way = 0; way < 4; way++) {
				if (test_tier() < 2 && (i + (size_t)way) % 3 != k)
					continue;
				struct prep p = plain;
				struct err err = {0};
				struct air air;
				double value;

				p.inverted = way & 1;
				p.offset = way & 1 ? 0 : 60;
				draw_slab(levels[k], N_U - air_columns[i]);
				store(&p, way & 2);
				air = found(&p, AIR_FOUND);
				if (!(fabs(air.level / levels[k] - 1) < 0.01))
					fail_msg("%g of %g with %d columns of air", air.level, levels[k], air_columns[i]);
				assert_true(fabs(air.share - air_columns[i] / (double)N_U) < 0.005);
				assert_true(air.contrast > 2.4 && air.contrast < 4.5); /* the darkest cells of a noisy slab */
				assert_true(way & 2 ? fabs(air.noise * sqrt(levels[k]) - 1) < 0.15 : air.noise < 0.05);
				assert_true(air.over_code == -1);
				if (air_columns[i] > 8 || p.inverted)
					continue;
				assert_int_equal(prep_percentile(&p, hist, 95, &value, &err), 0);
				assert_true(value - p.offset < 0.15 * levels[k]);
			}
}

/* A slab fills the image; the side opposite the chest wall is padding in a second image. */
TEST(test_no_air)
{
	struct prep p = plain;

	for (int noise = 0; noise < 2; noise++) {
		draw_slab(12000, N_U);
		store(&p, noise);
		found(&p, AIR_NO_CONTRAST);
	}
	p.has_padding = true;
	for (int v = 0; v < N_V; v++)
		for (int u = N_U - 30; u < N_U; u++)
			raw[v * N_U + u] = 0;
	found(&p, AIR_NO_CONTRAST);
	for (size_t i = 0; i < N; i++)
		raw[i] = 0;
	found(&p, AIR_NO_PLATEAU);
}

/* Air, then a collimator's shadow: the last cells with data in each row are air. */
TEST(test_collimator)
{
	struct prep p = plain;

	p.has_padding = true;
	draw_slab(12000, N_U - 40);
	store(&p, true);
	for (int v = 0; v < N_V; v++)
		for (int u = N_U - 30; u < N_U; u++)
			raw[v * N_U + u] = 0;
	assert_true(fabs(found(&p, AIR_FOUND).level / 12000 - 1) < 0.01);
}

/* A bright region that does not touch the side opposite the chest wall is not air. */
TEST(test_hole)
{
	draw_slab(12000, N_U);
	for (int v = 100; v < 150; v++)
		for (int u = 0; u < 100; u++)
			intensity[v * N_U + u] = 12000;
	store(&plain, true);
	found(&plain, AIR_NO_PLATEAU);
}

/* A thin part of a slab reaches the side opposite the chest wall; the thick part is not dark enough for the thickness. */
TEST(test_step)
{
	draw_slab(12000, N_U);
	for (int v = 0; v < N_V; v++)
		for (int u = 0; u < 180; u++)
			intensity[v * N_U + u] *= exp(-0.5);
	store(&plain, true);
	found(&plain, AIR_NO_CONTRAST);
}

/* Fat and glandular tissue that fill the image: regions of all levels between 25 and 50 mm of tissue. */
TEST(test_tissue)
{
	struct err err = {0};
	struct air air;

	for (int wave = 20; wave <= 160; wave *= 2) {
		for (int v = 0; v < N_V; v++)
			for (int u = 0; u < N_U; u++) {
				double dense = 0.5 + 0.5 * sin(6.28 * u / wave) * cos(6.28 * v / wave);

				intensity[v * N_U + u] = 12000 * exp(-THICKNESS * (0.04 + 0.04 * dense));
			}
		store(&plain, true);
		assert_int_equal(find(&plain, pitch, THICKNESS, &air, &err), 0);
		if (air.verdict == AIR_FOUND)
			fail_msg("waves of %d bins: air of %g, share %g", wave, air.level, air.share);
		assert_true(air.level == 0);
	}
}

/* A plate of 5 mm with beads covers most of the image: its level is near that of air, but nothing is between. */
TEST(test_plate)
{
	for (int v = 0; v < N_V; v++)
		for (int u = 0; u < N_U; u++) {
			bool bead = (u / 4 + v / 4) % 40 == 0;

			intensity[v * N_U + u] = u < N_U - 15 ? 12000 * exp(bead ? -1.5 : -0.25) : 12000;
		}
	store(&plain, true);
	assert_true(fabs(found(&plain, AIR_FOUND).level / 12000 - 1) < 0.01);
}

/* The breast becomes thinner toward the skin over 15 mm. */
TEST(test_skin)
{
	for (int v = 0; v < N_V; v++)
		for (int u = 0; u < N_U; u++) {
			double depth = 230 - (v - 150) * (v - 150) / 1500.0 - u; /* from the skin, bins */
			double part = fmin(fmax(depth, 0) / 30, 1);

			intensity[v * N_U + u] = 3000 * exp(-2.5 * sqrt(part * (2 - part)));
		}
	store(&plain, true);
	assert_true(fabs(found(&plain, AIR_FOUND).level / 3000 - 1) < 0.01);
}

/* A bright rim that becomes darker by degrees, as the edge of a breast does: it is not air, which has an edge. */
TEST(test_continuous)
{
	for (int noise = 0; noise < 2; noise++) {
		draw_slab(12000, 120);
		for (int v = 0; v < N_V; v++)
			for (int u = 120; u < 220; u++)
				intensity[v * N_U + u] = 12000 * exp(-0.003 * (220 - u));
		store(&plain, noise);
		found(&plain, AIR_NO_EDGE);
	}
}

/* One code for air, far above all others: it shows air, and is never its level. */
TEST(test_over_range)
{
	struct prep p = plain;
	struct err err = {0};
	struct air air;

	draw_slab(3648, N_U - 24);
	store(&p, true);
	for (size_t i = 0; i < N; i++)
		if (raw[i] > 2000)
			raw[i] = 16383;
	air = found(&p, AIR_OVER_RANGE);
	assert_int_equal(air.over_code, 16383);
	p.has_padding = true; /* the code is named in the header: no data */
	p.padding_lo = p.padding_hi = 16383;
	assert_int_equal(found(&p, AIR_NO_CONTRAST).over_code, -1);
	p = plain;
	for (size_t i = 0; i < N; i++) /* inverted: the code is 0 */
		raw[i] = (uint16_t)(16383 - raw[i]);
	p.inverted = true;
	assert_int_equal(found(&p, AIR_OVER_RANGE).over_code, 0);
	/* a saturated end of the range has no gap below it */
	draw_slab(16300, N_U - 24);
	store(&plain, true);
	assert_int_equal(prep_histogram(&plain, raw, hist, &err), 0);
	assert_int_equal(air_over_code(&plain, hist), -1);
	/* more rows end over range than in air that can be measured: what remains is not taken for all of it */
	draw_slab(3000, N_U - 60);
	store(&plain, true);
	for (int v = 0; v < 180; v++)
		for (int u = N_U - 10; u < N_U; u++)
			raw[v * N_U + u] = 16383;
	found(&plain, AIR_OVER_RANGE);
	/* a few bins at the end of the range do not hide the air */
	draw_slab(3648, N_U - 24);
	store(&plain, true);
	raw[5000] = raw[40000] = 16383;
	air = found(&plain, AIR_FOUND);
	assert_true(air.over_code == 16383 && fabs(air.level / 3648 - 1) < 0.01);
}

/* ---- clipped air, collimators, paddles ---- */

/* A detector that clips at a value below that of air, with occupied values just below it: the noise of the air shows it. Without
 * noise nothing does. */
TEST(test_clipped)
{
	static const int columns[] = {N_U - 24, N_U - 120, 40};
	struct prep p = plain;

	for (size_t k = 0; k < 3; k++)
		for (int way = 0; way < 2; way++) {
			struct air air;

			p.inverted = way;
			draw_slab(12000, columns[k]);
			store(&p, true);
			for (size_t i = 0; i < N; i++) {
				int value = p.inverted ? 16383 - raw[i] : raw[i];

				value = value > 9000 ? 9000 : value;
				raw[i] = (uint16_t)(p.inverted ? 16383 - value : value);
			}
			air = found(&p, AIR_OVER_RANGE);
			assert_int_equal(air.over_code, p.inverted ? 16383 - 9000 : 9000);
		}
	draw_slab(9000, N_U - 24);
	store(&plain, false);
	assert_true(found(&plain, AIR_FOUND).gain < 0.01);
	draw_slab(9000, N_U - 24);
	store(&plain, true);
	assert_true(fabs(found(&plain, AIR_FOUND).gain - 1) < 0.1);
}

/* A marker of lead whose values are at the offset has no logarithm; with a slope of the open field it would be negative. */
TEST(test_marker)
{
	for (int v = 0; v < N_V; v++)
		for (int u = 0; u < N_U; u++)
			intensity[v * N_U + u] = 6000 * exp(0.001 * (u - 120)) * (u < 100 ? 0.08 : 1);
	store(&plain, true);
	for (int v = 101; v < 120; v++)
		for (int u = 181; u < 200; u++)
			raw[v * N_U + u] = 0;
	fit = true;
	assert_true(found(&plain, AIR_FOUND).level > 0);
	fit = false;
}

/* Darken the bins beyond a column, and the rows at both ends, as a collimator does that lets 0.5 % pass. */
static void collimate(int far, int first, int last)
{
	for (int v = 0; v < N_V; v++)
		for (int u = 0; u < N_U; u++)
			if (u >= N_U - far || v < first || v >= N_V - last)
				intensity[v * N_U + u] = 60;
	store(&plain, true);
}

/* The shadow of a collimator is neither air nor object: beside a slab that fills the field, its darkness proves no air. Also one
 * that covers most of the detector. */
TEST(test_shadow)
{
	static const int sides[][3] = {{8, 0, 0},   {30, 0, 0},	  {0, 40, 0},  {0, 0, 40},   {24, 30, 50}, {0, 120, 0},
				       {0, 0, 125}, {60, 30, 30}, {60, 60, 0}, {70, 100, 0}, {150, 0, 0}};
	struct air air;

	for (size_t k = 0; k < sizeof(sides) / sizeof(sides[0]); k++) {
		const int *s = sides[k];

		draw_slab(12000, N_U);
		collimate(s[0], s[1], s[2]);
		air = found(&plain, AIR_NO_CONTRAST);
		draw_slab(12000, N_U - 60 - s[0]);
		collimate(s[0], s[1], s[2]);
		air = found(&plain, AIR_FOUND);
		assert_true(fabs(air.level / 12000 - 1) < 0.01);
		assert_true(air.shadow.far >= s[0] && air.shadow.far <= (s[0] ? s[0] + 10 : 0));
		assert_true(air.shadow.first >= s[1] && air.shadow.first <= (s[1] ? s[1] + 10 : 0));
		assert_true(air.shadow.last >= s[2] && air.shadow.last <= (s[2] ? s[2] + 10 : 0));
	}
	draw_slab(12000, N_U - 60);
	store(&plain, true);
	air = found(&plain, AIR_FOUND);
	assert_true(air.shadow.far + air.shadow.first + air.shadow.last == 0);
}

/* Beyond the edge of a compression paddle the air is brighter than around the object. */
TEST(test_paddle)
{
	static const double steps[] = {0.08, 0.17, 0.22};

	for (size_t k = 0; k < 3; k++) {
		draw_slab(12000, N_U - 100);
		for (int v = 0; v < N_V; v++)
			for (int u = 0; u < N_U - 30; u++)
				intensity[v * N_U + u] *= exp(-steps[k]);
		store(&plain, true);
		found(&plain, AIR_TWO_LEVELS);
	}
	draw_slab(12000, N_U - 100);
	store(&plain, true);
	found(&plain, AIR_FOUND);
}

/* ---- air that varies over the detector ---- */

#define FAR (N_U * 0.5) /* mm */
#define WIDE (N_V * 0.5)

static double logarithm_at(const double slope[2], int u, int v)
{
	return slope[0] * ((u + 0.5) * pitch[0] - FAR / 2) + slope[1] * ((v + 0.5) * pitch[1] - WIDE / 2);
}

static void tilt(const double slope[2])
{
	for (int v = 0; v < N_V; v++)
		for (int u = 0; u < N_U; u++)
			intensity[v * N_U + u] *= exp(logarithm_at(slope, u, v));
}

/* A breast between air of 12000: half an ellipse of 80 x 50 mm. */
static void draw_breast(void)
{
	for (int v = 0; v < N_V; v++)
		for (int u = 0; u < N_U; u++) {
			double x = (u + 0.5) * pitch[0] / 80, y = ((v + 0.5) * pitch[1] - WIDE / 2) / 50, in = 1 - x * x - y * y;

			intensity[v * N_U + u] = 12000 * (in > 0 ? exp(-2.5 * fmin(1, 2 * sqrt(in))) : 1);
		}
}

/* A small step, and an edge 3 mm from the object, of a slab or in front of a breast. */
TEST(test_paddle_close)
{
	static const double steps[] = {0.06, 0.07, 0.12, 0.22};

	for (size_t k = 0; k < 4; k++)
		for (int gap = 6 + 2 * (int)k; gap < 40; gap += test_tier() == 2 ? 2 : 8)
			for (int breast = 0; breast < 2; breast++) {
				int edge = breast ? 160 + gap : N_U - 30;

				if (breast)
					draw_breast();
				else
					draw_slab(12000, edge - gap);
				for (int v = 0; v < N_V; v++)
					for (int u = 0; u < edge; u++)
						intensity[v * N_U + u] *= exp(-steps[k]);
				store(&plain, true);
				found(&plain, AIR_TWO_LEVELS);
			}
}

/* The slope of air around a breast is measured, and with the fit the level is that in the middle. Without it there is no plateau,
 * or one that is only a part of the air; the variation is found all the same. */
TEST(test_slope)
{
	static const double slopes[][2] = {{0, 0}, {-5e-4, 3e-4}, {-1.5e-3, 0}, {0, 2e-3}, {1e-3, -1.5e-3}};
	struct prep p = plain;
	struct err err = {0};
	struct air air;

	for (size_t k = 0; k < sizeof(slopes) / sizeof(slopes[0]); k++) {
		const double *s = slopes[k];

		draw_breast();
		tilt(s);
		store(&p, true);
		fit = true;
		air = found(&p, AIR_FOUND);
		fit = false;
		assert_true(air.field.along[0] && air.field.along[1]);
		for (int c = 0; c < 2; c++)
			if (!(fabs(air.field.slope[c] - s[c]) < 5e-5))
				fail_msg("slope %zu along %d: %g, not %g", k, c, air.field.slope[c], s[c]);
		if (!(fabs(log(air.level / 12000)) < 0.005))
			fail_msg("slope %zu: %g in the middle", k, air.level);
		assert_int_equal(find(&p, pitch, THICKNESS, &air, &err), 0);
		assert_true((air.field.variation > AIR_LOG_ERROR * THICKNESS) == (k > 0));
	}
}

/* A strip at the far end: its slope along x says nothing about the other end of the detector, however little noise there is. */
TEST(test_strip)
{
	struct air air;

	draw_slab(12000, N_U - 24);
	tilt((const double[]){-3e-4, 1e-4});
	store(&plain, true);
	fit = true;
	air = found(&plain, AIR_FOUND);
	fit = false;
	assert_true(!air.field.along[0] && air.field.along[1]);
	assert_true(air.field.slope[0] == 0 && fabs(air.field.slope[1] - 1e-4) < 2e-5);
	assert_true(fabs(air.at[0] - (FAR / 2 - 6)) < 1 && fabs(air.at[1]) < 2);
}

/* The open field of the conversion is divided out before anything else. */
TEST(test_open_field)
{
	const struct scan detector = {.n_u = N_U, .n_v = N_V, .h = {pitch[0], pitch[1]}};
	const double slope[2] = {-2e-3, 2e-3};
	struct prep p = plain;
	struct air air;

	draw_breast();
	tilt(slope);
	store(&p, true);
	open_field_set_slope(&detector, slope, &p.open);
	air = found(&p, AIR_FOUND);
	assert_true(fabs(air.level / 12000 - 1) < 0.005 && air.field.variation < 0.01);
}

static int compare(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

/* A value selected by rank is that of the sorted values: of few and many, all different, many alike, ascending. */
TEST(test_select)
{
	static const size_t sizes[] = {1, 2, 3, 100, 2048, 2049, 70000};
	float *values = (float *)intensity, *sorted = values + N;

	for (int way = 0; way < 5; way++)
		for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
			for (size_t k = 0; k < 9; k++) {
				size_t n = sizes[s], place = k * (n - 1) / 8;
				uint64_t stream = poisson_stream(3, n);

				for (size_t i = 0; i < n; i++) {
					double u = poisson_uniform(&stream);

					values[i] = (float)(way == 0   ? u - 0.5
							    : way == 1 ? floor(3 * u)
							    : way == 2 ? 7.0
							    : way == 3 ? (double)i
								       : pow(u, 20));
				}
				memcpy(sorted, values, n * sizeof(*values));
				qsort(sorted, n, sizeof(*sorted), compare);
				assert_true(air_select(values, n, place) == (double)sorted[place]);
			}
	assert_true(air_median(values, 0) == 0);
}

TEST(test_refused)
{
	struct prep p = plain;
	struct air air = {.share = 7};
	struct err err = {0};

	p.is_log = true;
	assert_int_equal(find(&p, pitch, THICKNESS, &air, &err), -EINVAL);
	p = plain;
	p.n_u = 0;
	assert_int_equal(find(&p, pitch, THICKNESS, &air, &err), -EINVAL);
	assert_int_equal(find(&plain, (double[]){0, 1}, THICKNESS, &air, &err), -EINVAL);
	assert_int_equal(find(&plain, pitch, NAN, &air, &err), -EINVAL);
	assert_true(air.share == 7);
}

/* Padding that does not occur changes nothing, however the cells are filled: a fraction in the offset excludes fast sums. */
TEST(test_absent_padding)
{
	for (int k = 0; k < 4; k++) {
		struct prep p = {.n_u = N_U, .n_v = N_V, .max_value = 65535, .offset = k & 2 ? 50.5 : 50, .inverted = k & 1};
		struct air without, with;

		draw_slab(9000, N_U / 2);
		store(&p, true);
		without = found(&p, AIR_FOUND);
		p.has_padding = true;
		p.padding_lo = p.padding_hi = k & 1 ? 65535 : 0;
		with = found(&p, AIR_FOUND);
		if (p.offset == floor(p.offset)) /* exact sums */
			assert_true(with.level == without.level && with.gain == without.gain && with.noise == without.noise &&
				    with.contrast == without.contrast && with.field.level == without.field.level);
		assert_true(fabs(with.level / without.level - 1) < 1e-9 && with.share == without.share);
	}
}
