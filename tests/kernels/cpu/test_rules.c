/* SPDX-License-Identifier: Apache-2.0 */
/* The update rules: every loop of every instruction set, and the device's functions, compared with the formulas in double. */
#include "kernels/cpu/cpu.h"
#include "tests/kernels/buffers.h"
#include "tests/test.h"

#define N 1003
#define SIZES 67 /* 0 to SIZES, and N: several blocks of each instruction set, and what is left over */
/* Error of five operations in float32, one of which is an exponential (2 ulp). The error of a difference of nearly equal numbers
 * is relative to these numbers. */
#define RULE_TOL 6e-7

static const struct rule rules[] = {
	{RULE_EM, 1e-3f, 1e-3f, 0},	 {RULE_EM_ROWS, 1e-3f, 1e-3f, 0},     {RULE_TRANSMISSION, 1e-3f, 1e-3f, 0},
	{RULE_SART, 1e-3f, 1e-3f, 0.7f}, {RULE_BACKPROJECT, 1e-3f, 1e-3f, 0},
};
#define N_RULES (sizeof(rules) / sizeof(rules[0]))

/* Compute a pair by the formulas of the papers, in double; ret_scale: the size of the numbers from which q is computed. */
static void expected_pair(const struct rule *r, double y, double p, double l, double *ret_q, double *ret_d, double *ret_scale)
{
	bool length = l > r->bin_floor;

	*ret_q = *ret_d = 0;
	*ret_scale = 1;
	switch (r->kind) {
	case RULE_EM:
	case RULE_EM_RELAXED:
		*ret_q = p > r->bin_floor ? y / p : 0;
		*ret_d = 1;
		break;
	case RULE_EM_ROWS:
		*ret_q = length && p > r->bin_floor ? y / p : 0;
		*ret_d = length ? 1 / l : 0;
		break;
	case RULE_TRANSMISSION:
		*ret_q = exp(-p) - exp(-y);
		*ret_d = p * exp(-p);
		break;
	case RULE_SART:
		*ret_q = length ? (y - p) / l : 0;
		*ret_d = length;
		*ret_scale = length ? (y + p) / l : 1;
		break;
	case RULE_BACKPROJECT:
		*ret_q = length ? y / l : 0;
		*ret_d = length;
		break;
	}
	*ret_scale = fmax(*ret_scale, fabs(*ret_q));
}

static double expected_voxel(const struct rule *r, double x, double num, double den)
{
	double next = 0;

	if (x == 0 || den <= r->voxel_floor)
		return x;
	switch (r->kind) {
	case RULE_EM:
	case RULE_EM_ROWS:
		next = x * num / den;
		break;
	case RULE_TRANSMISSION:
		next = num < 0 ? x / (1 - num / den) : x + x * num / den;
		break;
	case RULE_EM_RELAXED:
		next = x + r->step * (x * num / den - x);
		break;
	case RULE_SART:
		next = x + r->step * num / den;
		break;
	case RULE_BACKPROJECT:
		return num == 0 ? (double)RULE_TINY : num / den;
	}
	return fmax(next, RULE_TINY);
}

struct bins {
	float y[N], p[N], row[N], mask[N], q[N], d[N];
};

static void random_bins(struct bins *b)
{
	uint32_t seed = 3;

	for (int i = 0; i < N; i++) {
		b->y[i] = i % 13 == 5 ? 0 : fixture_uniform(&seed, 0.01f, 6);
		b->p[i] = i % 17 == 6 ? 0 : i % 19 == 7 ? 0.9e-3f : fixture_uniform(&seed, 0.01f, 6);
		b->row[i] = i % 23 == 8 ? 0 : i % 29 == 9 ? 0.9e-3f : fixture_uniform(&seed, 1, 60);
		b->mask[i] = i % 7 == 1 ? 0 : i % 11 == 2 ? -1 : 1;
		if (b->mask[i] <= 0) /* a masked bin may hold any value */
			b->y[i] = b->p[i] = b->row[i] = i % 2 ? NAN : INFINITY;
	}
}

static void check_pairs(const struct rule *r, const struct bins *b, const float *q, const float *d, int n, bool masked)
{
	for (int i = 0; i < n; i++) {
		double want_q, want_d, scale;

		if (masked && !(b->mask[i] > 0)) {
			assert_true(q[i] == 0 && d[i] == 0);
			continue;
		}
		if (!(b->mask[i] > 0))
			continue;
		expected_pair(r, b->y[i], b->p[i], b->row[i], &want_q, &want_d, &scale);
		assert_near(q[i], want_q, RULE_TOL * scale);
		assert_near(d[i], want_d, RULE_TOL * fabs(want_d));
	}
}

TEST(pairs_of_every_set)
{
	const struct cpu_rows *rows;
	struct bins *b = take_memory(sizeof(*b));

	random_bins(b);
	for (int set = 0; (rows = cpu_rows_at(set)); set++) {
		for (size_t k = 0; k < N_RULES; k++) {
			const float *p = rule_needs_line(rules[k].kind) ? b->p : NULL;
			const float *row = rule_needs_length(rules[k].kind) ? b->row : NULL;

			for (int n = 0; n <= N; n = n < SIZES ? n + 1 : n < N ? N : N + 1) {
				for (int masked = 0; masked < 2; masked++) {
					memset(b->q, 0xff, sizeof(b->q));
					memset(b->d, 0xff, sizeof(b->d));
					rows->pairs(&rules[k], b->y, p, row, masked ? b->mask : NULL, b->q, b->d, n);
					check_pairs(&rules[k], b, b->q, b->d, n, masked);
					assert_true(n == N || isnan(b->q[n]));
				}
			}
		}
	}
}

/* Create sums of every sign, and voxels inside and outside the support. */
static void random_voxels(float *x, float *num, float *den)
{
	uint32_t seed = 5;

	for (int i = 0; i < N; i++) {
		x[i] = i % 5 == 1 ? 0 : i % 31 == 2 ? RULE_TINY : fixture_uniform(&seed, 0.01f, 0.09f);
		num[i] = i % 7 == 3 ? 0 : fixture_uniform(&seed, -20, 60);
		den[i] = i % 9 == 4 ? 0 : i % 10 == 5 ? 0.9e-3f : fixture_uniform(&seed, 1, 60);
		if (i % 15 == 1)
			num[i] = NAN; /* outside the support */
	}
}

static void check_voxels(const struct rule *r, const float *x, const float *num, const float *den, const float *got, int n)
{
	for (int i = 0; i < n; i++) {
		double want = expected_voxel(r, x[i], num[i], den[i]);

		assert_true((got[i] == 0) == (x[i] == 0));
		/* x + step num / den may be near 0, so the error is relative to its terms */
		assert_near(got[i], want, RULE_TOL * (fabs(want) + (x[i] != 0 && den[i] > 0 ? fabs(num[i] / den[i]) : 0)));
		if (r->kind != RULE_BACKPROJECT)
			assert_true(got[i] >= 0);
	}
}

TEST(voxels_of_every_set)
{
	static float x[N], num[N], den[N], got[N];
	const struct cpu_rows *rows;

	random_voxels(x, num, den);
	for (int set = 0; (rows = cpu_rows_at(set)); set++) {
		for (size_t k = 0; k < N_RULES; k++) {
			for (int n = 0; n <= N; n = n < SIZES ? n + 1 : n < N ? N : N + 1) {
				memcpy(got, x, sizeof(x));
				rows->voxels(&rules[k], num, den, got, n);
				check_voxels(&rules[k], x, num, den, got, n);
				assert_memory_equal(got + n, x + n, (size_t)(N - n) * sizeof(float));
			}
		}
	}
}

/* The device's function, with a vector so long that several threads divide it among them. */
TEST(voxels_of_a_device)
{
	enum { COPIES = 67 };
	static float x[N], num[N], den[N], many[3][COPIES * N];
	struct device *dev;
	struct rule bad;
	struct err err = {0};

	random_voxels(x, num, den);
	for (int c = 0; c < COPIES; c++) {
		memcpy(many[0] + c * N, x, sizeof(x));
		memcpy(many[1] + c * N, num, sizeof(x));
		memcpy(many[2] + c * N, den, sizeof(x));
	}
	dev = fixture_device(FIXTURE_POISON, 3);
	for (size_t k = 0; k < N_RULES; k++) {
		struct buf bx = fixture_upload(dev, many[0], COPIES * N), bn = fixture_upload(dev, many[1], COPIES * N),
			   bd = fixture_upload(dev, many[2], COPIES * N), part = buf_part(&bn, 0, N);
		float *got = take_memory(sizeof(many[0]));

		assert_int_equal(dev->ops->rule_voxels(&rules[k], &bn, &bd, &bx, NULL), 0);
		assert_int_equal(dev->ops->download(&bx, got, NULL), 0);
		for (int c = 0; c < COPIES; c++)
			check_voxels(&rules[k], x, num, den, got + c * N, N);
		assert_int_equal(dev->ops->rule_voxels(&rules[k], &part, &bd, &bx, &err), -EINVAL);
		assert_int_equal(dev->ops->rule_voxels(&rules[k], &bn, &part, &bx, &err), -EINVAL);
		bad = rules[k];
		bad.voxel_floor = 0;
		assert_int_equal(dev->ops->rule_voxels(&bad, &bn, &bd, &bx, &err), -EINVAL);
		bad = rules[k];
		bad.kind = 77;
		assert_error(dev->ops->rule_voxels(&bad, &bn, &bd, &bx, &err), &err, EINVAL, "77");
		bad.kind = RULE_SART;
		bad.step = 2;
		assert_int_equal(dev->ops->rule_voxels(&bad, &bn, &bd, &bx, &err), -EINVAL);
	}
}
