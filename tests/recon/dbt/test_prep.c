/* SPDX-License-Identifier: Apache-2.0 */
/* Stored values to line integrals: worked examples of every branch, the two ways of summing compared with each other, hostile
 * input. */
#include <time.h>

#include "recon/dbt/prep.h"
#include "recon/phantom/poisson.h"
#include "tests/test.h"

/* float32 of a logarithm below 8: half an ulp is 2.4e-7; the error of the double arithmetic is negligible. */
#define TOL 5e-7

static const struct prep plain = {.n_u = 4, .n_v = 2, .bin = 1, .max_value = 65535, .i0 = 1000, .floor = 1e-4};

static int percentile(const struct prep *p, const uint16_t *raw, double percent, double *ret_value, struct err *err)
{
	static uint32_t hist[PREP_VALUES];
	int rc = prep_histogram(p, raw, hist, err);

	return rc < 0 ? rc : prep_percentile(p, hist, percent, ret_value, err);
}

static void near(double have, double want)
{
	if (!(fabs(have - want) <= TOL))
		fail_msg("%.9g, not %.9g", have, want);
}

TEST(test_values)
{
	const uint16_t raw[8] = {1000, 500, 100, 10, 1, 999, 368, 2000};
	float line[8], valid[8];
	struct prep_stats stats;
	struct err err = {0};

	assert_int_equal(prep_view(&plain, raw, line, valid, &stats, &err), 0);
	for (int i = 0; i < 7; i++)
		near(line[i], log(1000.0 / raw[i]));
	near(line[7], 0); /* brighter than air */
	for (int i = 0; i < 8; i++)
		assert_true(valid[i] == 1);
	assert_int_equal(stats.clamped, 1);
	assert_int_equal(stats.floored, 0);

	struct prep offset = plain;
	offset.offset = 50;
	assert_int_equal(prep_view(&offset, raw, line, valid, &stats, &err), 0);
	near(line[1], log(1000.0 / 450));
	near(line[3], log(1e4)); /* 10 - 50 is below the floor */
	assert_int_equal(stats.floored, 2);
}

TEST(test_polarity)
{
	const uint16_t raw[8] = {4095 - 1000, 4095 - 500, 4095 - 100, 4095 - 10, 4095, 4095 - 999, 4095 - 368, 4095 - 250};
	const double counts[8] = {1000, 500, 100, 10, 0.1, 999, 368, 250};
	struct prep p = plain;
	float line[8], valid[8];
	struct prep_stats stats;
	struct err err = {0};

	p.inverted = true;
	p.max_value = 4095;
	assert_int_equal(prep_view(&p, raw, line, valid, &stats, &err), 0);
	for (int i = 0; i < 8; i++)
		near(line[i], log(1000.0 / counts[i]));
	assert_int_equal(stats.floored, 1);

	p.offset = 20; /* I = max - value - offset */
	assert_int_equal(prep_view(&p, raw, line, valid, NULL, &err), 0);
	near(line[1], log(1000.0 / 480));
}

TEST(test_masks)
{
	const uint16_t raw[8] = {0, 500, 3, 4, 60000, 59999, 65535, 5};
	struct prep p = plain;
	float line[8], valid[8];
	struct prep_stats stats;
	struct err err = {0};

	p.i0 = 70000;
	p.has_padding = true;
	p.padding_lo = 0;
	p.padding_hi = 4;
	p.saturation = 59999.5; /* "at or above": 60000 is, 59999 is not */
	assert_int_equal(prep_view(&p, raw, line, valid, &stats, &err), 0);
	const float want[8] = {0, 1, 0, 0, 0, 1, 0, 1};
	for (int i = 0; i < 8; i++) {
		assert_true(valid[i] == want[i]);
		near(line[i], want[i] > 0 ? fmin(log(70000.0 / raw[i]), log(1e4)) : 0);
	}
	assert_int_equal(stats.padded, 3);
	assert_int_equal(stats.saturated, 2);
	assert_int_equal(stats.floored, 1); /* 5 / 70000 < 1e-4 */
}

/* 5 x 4 detector bins merged 2 x 2: the last column is dropped, padding is excluded from the mean.
 *   100 300 | 1000  0 | 7        (100 + 300 + 500 + 700) / 4 = 400       (1000 + 600) / 2 = 800, two padded
 *   500 700 |  600  0 | 7
 *   -----------------
 *     0   0 |  200 65535 | 7     nothing valid                           200, the rest padded or over range
 *     0   0 |    0 65535 | 7 */
TEST(test_binning)
{
	const uint16_t raw[20] = {100, 300, 1000, 0, 7, 500, 700, 600, 0, 7, 0, 0, 200, 65535, 7, 0, 0, 0, 65535, 7};
	struct prep p = plain;
	float line[4], valid[4];
	struct prep_stats stats;
	struct err err = {0};

	p.n_u = 5;
	p.n_v = 4;
	p.bin = 2;
	p.has_padding = true;
	p.saturation = 65535;
	assert_int_equal(prep_view(&p, raw, line, valid, &stats, &err), 0);
	near(line[0], log(1000.0 / 400));
	near(line[1], log(1000.0 / 800));
	near(line[3], log(1000.0 / 200));
	assert_true(line[2] == 0 && valid[2] == 0);
	assert_true(valid[0] == 1 && valid[1] == 1 && valid[3] == 1);
	assert_int_equal(stats.padded, 7);
	assert_int_equal(stats.saturated, 2);
}

TEST(test_log_data)
{
	const uint16_t raw[8] = {4000, 3000, 2000, 1000, 3500, 2500, 4050, 0};
	struct prep p = plain;
	float line[8], valid[8];
	struct prep_stats stats;
	struct err err = {0};

	p.is_log = true;
	p.log_zero = 4000;
	p.log_scale = 1e-3;
	p.i0 = 0; /* not used */
	p.floor = exp(-3.5);
	assert_int_equal(prep_view(&p, raw, line, valid, &stats, &err), 0);
	for (int i = 0; i < 6; i++)
		near(line[i], (4000 - raw[i]) * 1e-3);
	assert_true(line[6] == 0);
	near(line[7], 3.5);
	assert_int_equal(stats.clamped, 1);
	assert_int_equal(stats.floored, 1);

	p.bin = 2; /* intensities are averaged, not logarithms */
	assert_int_equal(prep_view(&p, raw, line, valid, &stats, &err), 0);
	near(line[0], -log((exp(0) + exp(-1) + exp(-0.5) + exp(-1.5)) / 4));
}

TEST(test_flatfield)
{
	const uint16_t raw[8] = {1000, 500, 500, 500, 1000, 500, 500, 500};
	const float flat[8] = {2, 1, 0, NAN, 2, 1, -1, 0.5f};
	struct prep p = plain;
	float line[8], valid[8];
	struct prep_stats stats;
	struct err err = {0};

	p.flatfield = flat;
	assert_int_equal(prep_view(&p, raw, line, valid, &stats, &err), 0);
	near(line[0], log(2000.0 / 1000));
	near(line[1], log(1000.0 / 500));
	near(line[7], log(500.0 / 500));
	assert_true(valid[2] == 0 && valid[3] == 0 && valid[6] == 0);
	assert_true(line[2] == 0 && line[3] == 0 && line[6] == 0);

	p.bin = 2; /* sum of I0 over sum of I: (2 + 1 + 2 + 1) * 1000 over 3000; 0.5 * 1000 over 500 */
	assert_int_equal(prep_view(&p, raw, line, valid, &stats, &err), 0);
	near(line[0], log(2));
	near(line[1], 0);
	assert_true(valid[1] == 1);
}

/* A flat field of 1 uses a different method from plain values and from the table, with the same result; sizes that are not
 * multiples of a block. */
TEST(test_both_ways)
{
	static const int bins[] = {1, 2, 3, 4, 7, 64};
	enum { U = 2819, V = 131 };
	uint16_t *raw = take_memory((size_t)U * V * sizeof *raw);
	float *flat = take_memory((size_t)U * V * sizeof *flat), *out = take_memory((size_t)U * V * 4 * sizeof *out);
	struct prep p = plain;
	struct err err = {0};

	for (size_t i = 0; i < (size_t)U * V; i++) {
		raw[i] = (uint16_t)(poisson_stream(1, i) >> 48);
		flat[i] = 1;
	}
	p.n_u = U;
	p.n_v = V;
	p.i0 = 60000;
	p.offset = 12.5;
	p.has_padding = true;
	p.padding_lo = 100;
	p.padding_hi = 3000;
	p.saturation = 65000;
	p.log_zero = 40000;
	p.log_scale = 2e-4;
	for (size_t k = 0; k < 6 * sizeof bins / sizeof *bins; k++) {
		struct prep_stats a, b;
		size_t n;

		p.bin = bins[k / 6];
		p.inverted = k % 3 == 1;
		p.is_log = k % 3 == 2;
		p.padding_hi = k % 6 < 3 ? 3000 : p.padding_lo; /* everywhere, or nowhere in most blocks */
		p.saturation = k % 6 < 3 ? 65000 : 65535;
		n = (size_t)(U / p.bin) * (size_t)(V / p.bin);
		p.flatfield = NULL;
		assert_int_equal(prep_view(&p, raw, out, out + n, &a, &err), 0);
		p.flatfield = flat;
		assert_int_equal(prep_view(&p, raw, out + 2 * n, out + 3 * n, &b, &err), 0);
		assert_memory_equal(&a, &b, sizeof a);
		assert_memory_equal(out + n, out + 3 * n, n * sizeof *out);
		for (size_t i = 0; i < n; i++) {
			near(out[i], out[2 * n + i]);
			assert_true(isfinite(out[i]) && out[i] >= 0);
		}
	}
}

TEST(test_percentile)
{
	uint16_t raw[200];
	struct prep p = {.n_u = 20, .n_v = 10};
	double value = -1;
	struct err err = {0};

	for (int i = 0; i < 100; i++) { /* 1..100 in some order, and 100 invalid values */
		raw[2 * i] = (uint16_t)(1 + (i * 37) % 100);
		raw[2 * i + 1] = i % 2 ? 60000 : 0;
	}
	p.has_padding = true;
	p.saturation = 50000;
	assert_int_equal(percentile(&p, raw, 50, &value, &err), 0);
	assert_true(value == 50);
	assert_int_equal(percentile(&p, raw, 100, &value, &err), 0);
	assert_true(value == 100);
	assert_int_equal(percentile(&p, raw, 0.001, &value, &err), 0);
	assert_true(value == 1);
	p.has_padding = false;
	p.saturation = 0;
	assert_int_equal(percentile(&p, raw, 100, &value, &err), 0);
	assert_true(value == 60000);
	assert_int_equal(percentile(&p, raw, 20, &value, &err), 0);
	assert_true(value == 0);

	value = -1;
	p.saturation = 1;
	p.has_padding = true;
	assert_int_equal(percentile(&p, raw, 50, &value, &err), -ENODATA);
	assert_int_equal(percentile(&p, raw, NAN, &value, &err), -EINVAL);
	assert_true(value == -1);
}

static bool is_padding(const struct prep *p, int value)
{
	return p->has_padding && value >= p->padding_lo && value <= p->padding_hi;
}

/* Compare what an outline says with what a histogram says: the percentile, the extreme values, the number of padding. */
static void compare_outline(const struct prep *p, const uint16_t *raw, double percent)
{
	static uint32_t hist[PREP_VALUES], outline[PREP_VALUES];
	double have = -1, want = -2;
	struct err err = {0};
	int ends[2][2];
	size_t n = 0, padded[2] = {0, 0};

	assert_int_equal(prep_histogram(p, raw, hist, &err), 0);
	assert_int_equal(prep_outline(p, raw, percent, outline, &err), 0);
	assert_int_equal(prep_percentile(p, hist, percent, &want, &err), 0);
	assert_int_equal(prep_percentile(p, outline, percent, &have, &err), 0);
	if (have != want)
		fail_msg("%g percent: %g, not %g", percent, have, want);
	for (int k = 0; k < 2; k++) {
		const uint32_t *h = k ? outline : hist;

		for (ends[k][0] = 0; h[ends[k][0]] == 0 || is_padding(p, ends[k][0]);)
			ends[k][0]++;
		for (ends[k][1] = PREP_VALUES - 1; h[ends[k][1]] == 0 || is_padding(p, ends[k][1]);)
			ends[k][1]--;
		for (int v = p->padding_lo; p->has_padding && v <= p->padding_hi; v++)
			padded[k] += h[v];
	}
	assert_int_equal(padded[0], padded[1]);
	assert_memory_equal(ends[0], ends[1], sizeof(ends[0]));
	for (int v = 0; v < PREP_VALUES; v++)
		n += outline[v];
	assert_int_equal(n, (size_t)p->n_u * (size_t)p->n_v);
}

/* Return value i of a view with rows of `width` bins. */
static uint16_t outline_value(int kind, int width, int i)
{
	uint64_t random = poisson_stream((uint64_t)kind, (uint64_t)i);
	int row = i / width;

	switch (kind) {
	case 0:
		return (uint16_t)(random >> 50); /* all below 16384 */
	case 1:
		return (uint16_t)(1 + row * 300);
	case 2: /* the sample has other values than the other rows */
		return row % 32 == 0 ? 77 : (uint16_t)(20000 + random % 9);
	case 3:
		return 4711;
	case 4:
		return (uint16_t)(random >> 48); /* also the last code */
	case 5:
		return (uint16_t)(random % 3 ? 100 + (uint64_t)(i % width) : 60000 + random % 50);
	default:
		return (uint16_t)(10000 + random % 100 + random / 128 % 100);
	}
}

TEST(test_outline)
{
	static const int padding[][2] = {{0, 0}, {77, 77}, {0, 10050}, {10050, 10060}, {60000, 65535}, {20004, 20004}};
	static const double percents[] = {1e-9, 0.1, 5, 33.3, 50, 95, 99.9, 100};
	enum { U = 301, V = 211 };
	static uint16_t raw[U * V];
	struct prep p = {.n_u = U, .n_v = V, .max_value = 65535};

	for (int kind = 0; kind < 7; kind++) {
		for (int i = 0; i < U * V; i++)
			raw[i] = outline_value(kind, U, i);
		for (size_t k = 0; k < sizeof(percents) / sizeof(percents[0]); k++) {
			p.has_padding = false;
			compare_outline(&p, raw, percents[k]);
			p.has_padding = true;
			for (size_t j = 0; kind != 3 && j < sizeof(padding) / sizeof(padding[0]); j++) {
				p.padding_lo = padding[j][0];
				p.padding_hi = padding[j][1];
				compare_outline(&p, raw, percents[k]);
			}
		}
	}
	p.has_padding = false;
	p.n_v = 1;
	for (p.n_u = 1; p.n_u < 20; p.n_u++)
		compare_outline(&p, raw, 50);
}

/* Where the sample misleads and most limits are in the padding, the histogram decides, after few passes over the image. */
TEST(test_outline_misled)
{
	enum { U = 1408, V = 1792 };
	static uint16_t raw[U * V];
	static uint32_t hist[PREP_VALUES];
	struct prep p = {.n_u = U, .n_v = V, .max_value = 65535, .has_padding = true, .padding_lo = 7290, .padding_hi = 65535};
	clock_t began, pass;

	for (int i = 0; i < U * V; i++)
		raw[i] = (uint16_t)(i / U % 32 == 0 ? 5 : 7287 + i % 3);
	compare_outline(&p, raw, 95);
	began = clock();
	assert_int_equal(prep_histogram(&p, raw, hist, NULL), 0);
	pass = clock() - began;
	began = clock();
	assert_int_equal(prep_outline(&p, raw, 95, hist, NULL), 0);
	assert_true(clock() - began < 100 * pass); /* of processor time; it was thousands */
}

/* With saturation, or where the last code occurs, the outline is the histogram. */
TEST(test_outline_complete)
{
	static uint32_t hist[PREP_VALUES], outline[PREP_VALUES];
	uint16_t raw[100];
	struct err err = {0};

	for (int i = 0; i < 100; i++)
		raw[i] = (uint16_t)(10 * i);
	for (int kind = 0; kind < 5; kind++) {
		struct prep p = {.n_u = 10, .n_v = 10, .max_value = kind == 1 ? 990 : 4095};

		p.inverted = kind == 0;
		p.has_padding = kind == 2;
		p.padding_lo = p.padding_hi = 30;
		p.saturation = kind == 3 ? 500 : 0;
		assert_int_equal(prep_histogram(&p, raw, hist, &err), 0);
		assert_int_equal(prep_outline(&p, raw, 95, outline, &err), 0);
		assert_int_equal(memcmp(hist, outline, sizeof(hist)) == 0, kind != 2 && kind != 4);
	}
	struct prep bad = {.n_u = 0, .n_v = 10};
	assert_int_equal(prep_outline(&bad, raw, 95, outline, &err), -EINVAL);
}

/* A code over range is air: y = 0 alone, I0 in a merged bin, the bin's own I0 with a flat field; it is no level. */
TEST(test_over_range)
{
	const uint16_t raw[8] = {16383, 500, 100, 10, 1000, 1000, 16383, 16383};
	const float flat[8] = {2, 1, 1, 1, 1, 1, 1, 1};
	struct prep p = plain;
	float line[8], valid[8];
	struct prep_stats stats;
	struct err err = {0};
	double value = 0;

	p.has_over_code = true;
	p.over_code = 16383;
	assert_int_equal(prep_view(&p, raw, line, valid, &stats, &err), 0);
	assert_true(line[0] == 0 && valid[0] == 1 && line[6] == 0);
	near(line[1], log(2));
	assert_true(stats.over_range == 3 && stats.clamped == 0 && stats.saturated == 0);
	p.bin = 2;
	assert_int_equal(prep_view(&p, raw, line, valid, &stats, &err), 0);
	near(line[0], log(4000 / 3500.0));
	near(line[1], log(4000 / 2110.0));
	assert_int_equal(stats.over_range, 3);
	p.flatfield = flat;
	assert_int_equal(prep_view(&p, raw, line, valid, &stats, &err), 0);
	near(line[0], log(5000 / 4500.0));
	p.flatfield = NULL;
	assert_int_equal(percentile(&p, raw, 100, &value, &err), 0);
	assert_true(value == 1000);
	p.over_code = 65536;
	assert_int_equal(prep_view(&p, raw, line, valid, &stats, &err), -EINVAL);
}

TEST(test_refused)
{
	uint16_t raw[8] = {0};
	float line[8], valid[8];
	struct err err = {0};
#define REFUSE_PREP(field, v)                                                                                                    \
	do {                                                                                                                     \
		struct prep bad = plain;                                                                                         \
		bad.field = (v);                                                                                                 \
		assert_int_equal(prep_view(&bad, raw, line, valid, NULL, &err), -EINVAL);                                        \
	} while (0)

	REFUSE_PREP(n_u, 0);
	REFUSE_PREP(n_v, -1);
	REFUSE_PREP(bin, 0);
	REFUSE_PREP(bin, 3); /* more than the 2 rows */
	REFUSE_PREP(i0, 0);
	REFUSE_PREP(i0, NAN);
	REFUSE_PREP(i0, INFINITY);
	REFUSE_PREP(floor, 0);
	REFUSE_PREP(floor, 1);
	REFUSE_PREP(floor, NAN);
	REFUSE_PREP(offset, NAN);
	REFUSE_PREP(saturation, NAN);
	struct prep bad = plain;
	bad.is_log = true;
	assert_int_equal(prep_view(&bad, raw, line, valid, NULL, &err), -EINVAL); /* log_scale 0 */
}

/* Merged bins that a shadow covers, also in part, have no data. */
TEST(test_shadow)
{
	enum { NU = 12, NV = 16 };
	uint16_t raw[NU * NV];
	float line[NU * NV], valid[NU * NV];
	struct err err = {0};

	for (size_t i = 0; i < NU * NV; i++)
		raw[i] = 500;
	for (int bin = 1; bin <= 2; bin++) {
		struct prep p = {
			.n_u = NU, .n_v = NV, .bin = bin, .max_value = 4095, .i0 = 1000, .floor = 1e-4, .shadow = {3, 5, 2}};

		assert_int_equal(prep_view(&p, raw, line, valid, NULL, &err), 0);
		for (int v = 0; v < NV / bin; v++)
			for (int u = 0; u < NU / bin; u++) {
				bool shown = (u + 1) * bin <= NU - 3 && v * bin >= 5 && (v + 1) * bin <= NV - 2;

				assert_true(valid[v * (NU / bin) + u] == (float)shown);
				assert_true(fabs((double)line[v * (NU / bin) + u] - (shown ? log(2) : 0)) < 1e-6);
			}
	}
}
