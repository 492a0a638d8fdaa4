/* SPDX-License-Identifier: Apache-2.0 */
/* Small scans of every kind through the public interface, random arrays, and their inner products. */
#ifndef TOMONODE_TESTS_API_FIXTURE_H
#define TOMONODE_TESTS_API_FIXTURE_H

#include "recon/api/tomonode.h"
#include "tests/test.h"

static struct tn_err last;

/* A call that must succeed. */
#define WORKS(call)                                                                                                              \
	do {                                                                                                                     \
		if ((call) < 0)                                                                                                  \
			fail_msg("%s: %s", #call, last.text);                                                                    \
	} while (0)

/* 5 rings, 2 segments beside the direct one; span 2 has planes that the device sorts in another way. */
static inline struct tn_pet small_pet(int span, int tof)
{
	struct tn_pet p = {TN_SIZE(p),	 .rings = 5,   .detectors = 80,	 .ring_spacing = 6, .radius = 120,	.depth = 8,
			   .radial = 29, .angles = 20, .first_angle = 3, .span = span,	    .max_difference = 4};

	if (tof)
		p.tof = (struct tn_tof){tof, 230.0 / tof, 30};
	return p;
}

TEST_GIVES_BACK(tn_scan_free);

static inline struct tn_scan *pet_scan(int span, int tof)
{
	struct tn_pet p = small_pet(span, tof);
	struct tn_scan *s = NULL;

	WORKS(tn_scan_pet(&p, &s, &last));
	test_later(give_back_tn_scan_free, s);
	return s;
}

static inline double next_random(unsigned *state)
{
	return rand_r(state) / (RAND_MAX + 1.0);
}

/* n lines between random points of a sphere of 150 mm. */
static inline struct tn_scan *line_scan(size_t n, int tof, unsigned seed)
{
	enum { POINTS = 500 };
	float points[3 * POINTS];
	int32_t *pairs = take_memory(2 * n * sizeof(*pairs)), *bins = take_memory(n * sizeof(*bins));
	struct tn_lines l = {TN_SIZE(l), points, POINTS, pairs, n, bins, NULL, 0, {0, 0, 0}};
	struct tn_scan *s = NULL;

	if (tof)
		l.tof = (struct tn_tof){tof, 230.0 / tof, 30};
	for (int i = 0; i < POINTS; i++) {
		double z = 2 * next_random(&seed) - 1, phi = 2 * M_PI * next_random(&seed);

		points[3 * i] = (float)(150 * sqrt(1 - z * z) * cos(phi));
		points[3 * i + 1] = (float)(150 * sqrt(1 - z * z) * sin(phi));
		points[3 * i + 2] = (float)(150 * z);
	}
	for (size_t i = 0; i < n; i++) {
		pairs[2 * i] = (int32_t)(POINTS * next_random(&seed));
		pairs[2 * i + 1] = (int32_t)(POINTS * next_random(&seed));
		bins[i] = (int32_t)(tof * next_random(&seed));
	}
	WORKS(tn_scan_lines(&l, &s, &last));
	test_later(give_back_tn_scan_free, s);
	return s;
}

/* 7 views over 40 degrees of a detector of 30 x 44 bins of 2 mm with its edge at x = 0, which stands still or turns with the source. */
static inline struct tn_scan *view_scan(bool turning)
{
	enum { N = 7, N_U = 30, N_V = 44 };
	double views[N][12];
	struct tn_views p = {TN_SIZE(p), N, N_U, N_V, views[0]};
	struct tn_scan *s = NULL;

	for (int i = 0; i < N; i++) {
		double a = (i - 3) * 6.5 * M_PI / 180, t = turning ? a : 0;
		double v[12] = {0, 600 * sin(a), 40 + 600 * cos(a), N_U, -40 * sin(t), 40 - 40 * cos(t), 2, 0, 0,
				0, 2 * cos(t),	 -2 * sin(t)};

		memcpy(views[i], v, sizeof(v));
	}
	WORKS(tn_scan_views(&p, &s, &last));
	test_later(give_back_tn_scan_free, s);
	return s;
}

static inline struct tn_scan *beam_scan(int slices)
{
	struct tn_parallel p = {TN_SIZE(p), .slices = slices, .angles = 24, .radial = 41, .bin = 3, .slice = 4, .offset = 0.7};
	struct tn_scan *s = NULL;

	WORKS(tn_scan_parallel(&p, &s, &last));
	test_later(give_back_tn_scan_free, s);
	return s;
}

static const struct tn_grid small_grid = {{24, 21, 9}, {6, 6.5, 3}, {-72, -68.25, -13.5}};

TEST_GIVES_BACK(tn_projector_free);

static inline struct tn_projector *projector_new(struct tn_device *dev, struct tn_scan *s, const struct tn_grid *g,
						 const struct tn_model *m)
{
	struct tn_projector *a = NULL;

	WORKS(tn_projector_new(dev, s, g, m, &a, &last));
	test_later(give_back_tn_projector_free, a);
	return a;
}

/* An array with an order, in memory of its own. */
struct field {
	struct tn_layout layout;
	struct tn_array a;
	float *mem;
};

static inline struct field *field_new(const struct tn_layout *l, bool native)
{
	struct field *f = take_zeros(1, sizeof(*f));

	f->layout = *l;
	if (!native) {
		f->layout.floats = 1;
		for (int i = l->ndim - 1; i >= 0; i--) {
			f->layout.strides[i] = f->layout.floats;
			f->layout.floats *= l->shape[i];
		}
	}
	f->mem = take_zeros((size_t)f->layout.floats, sizeof(float));
	f->a = (struct tn_array){f->mem, {TN_HOST, 0}, l->ndim, {2, 32, 1}, f->layout.shape, f->layout.strides, 0};
	return f;
}

/* The place of element number i in C order. */
static inline float *field_at(const struct field *f, size_t i)
{
	int64_t at = 0;

	for (int k = f->layout.ndim - 1; k >= 0; k--) {
		at += (int64_t)(i % (size_t)f->layout.shape[k]) * f->layout.strides[k];
		i /= (size_t)f->layout.shape[k];
	}
	return f->mem + at;
}

static inline size_t field_count(const struct field *f)
{
	size_t n = 1;

	for (int k = 0; k < f->layout.ndim; k++)
		n *= (size_t)f->layout.shape[k];
	return n;
}

static inline void field_fill(struct field *f, unsigned seed)
{
	size_t n = field_count(f);

	for (size_t i = 0; i < n; i++)
		*field_at(f, i) = (float)next_random(&seed);
}

static inline double field_dot(const struct field *f, const struct field *g)
{
	size_t n = field_count(f);
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (double)*field_at(f, i) * (double)*field_at(g, i);
	return sum;
}

static inline void assert_same(const struct field *f, const struct field *g)
{
	size_t n = field_count(f), wrong = 0;

	for (size_t i = 0; i < n; i++)
		wrong += !(*field_at(f, i) == *field_at(g, i));
	assert_int_equal(wrong, 0);
}

#endif
