/* SPDX-License-Identifier: Apache-2.0 */
/* Test what views of parallel beams say about the angles and the axis of rotation of their header: phantoms with noise. */
#include "recon/parallel/parallel.h"
#include "tests/test.h"

#define PI 3.14159265358979323846

/* The data of a disc show where the axis is: at any place of the disc, over any arc; not if it leaves the field, or in few views.
 */
TEST(axis_of_rotation)
{
	enum { N = 101, ANGLES = 60 };
	static float lines[2 * ANGLES * N];
	const double arcs[] = {180, 360, 120};
	struct parallel_consistency c;

	for (size_t i = 0; i < 3; i++)
		for (int wrong = -3; wrong <= 3; wrong += 3) {
			struct parallel_scan s = {2, ANGLES, N, 0.8, 0.4, 1, 10, arcs[i], NULL};

			for (int k = 0; k < 2 * ANGLES; k++)
				for (int t = 0; t < N; t++) {
					double angle = parallel_angle(&s, k % ANGLES) * M_PI / 180;
					double r = parallel_radius(&s, t) - 7 * cos(angle) + 4 * sin(angle);

					lines[k * N + t] =
						(float)sqrt(fmax(12.0 * 12.0 - r * r, 0)) + (float)(k % 2 ? 0.01 : -0.01);
				}
			s.offset += wrong * s.bin;
			assert_true(parallel_consistency_of(&s, lines, NULL, &c, NULL));
			assert_near(c.axis_error, wrong * s.bin, 0.1 * s.bin);
			assert_true(c.axis_sigma < 0.1 * s.bin && c.axis_sigma > 0);
		}
	{
		struct parallel_scan s = {2, ANGLES, N, 0.8, 0, 1, 10, 180, NULL}, few = s;

		for (int k = 0; k < 2 * ANGLES; k++) /* cut at one side in some views */
			for (int t = 0; t < 40; t++)
				lines[k * N + t] = 0;
		assert_false(parallel_consistency_of(&s, lines, NULL, &c, NULL));
		few.n_angles = 7;
		assert_false(parallel_consistency_of(&few, lines, NULL, &c, NULL));
		memset(lines, 0, sizeof(lines));
		assert_false(parallel_consistency_of(&s, lines, NULL, &c, NULL));
		lines[5] = NAN;
		assert_false(parallel_consistency_of(&s, lines, NULL, &c, NULL));
	}
}

/* ---- phantoms: ellipses in units of half the field ---- */

struct ellipse {
	double x, y, a, b, turn, value;
};

enum { BODIES = 4, N = 128, ANGLES = 120 };

static const struct ellipse bodies[BODIES + 1][5] = {
	{{0.3, 0.1, 0.5, 0.5, 0, 1}}, /* a disc beside the axis */
	{{0, 0, 0.69, 0.92, 0, 1},    /* a head, its centre on the axis */
	 {0, -0.0184, 0.6624, 0.874, 0, -0.8},
	 {0.22, 0, 0.11, 0.31, -0.314, -0.2},
	 {-0.22, 0, 0.16, 0.41, 0.314, -0.2},
	 {0, 0.35, 0.21, 0.25, 0, 0.1}},
	{{0.05, 0.08, 0.8, 0.45, 0.3, 1}, {0.4, 0.2, 0.15, 0.1, 0, 1}, {-0.3, 0.1, 0.2, 0.2, 0, -0.7}},
	{{0.5, 0.4, 0.06, 0.06, 0, 5}, {-0.4, 0.2, 0.05, 0.05, 0, 5}},
	{{0, 0, 0.9, 0.01, 0.013, 1}}, /* a plate, beside the others */
};

static double random_normal(uint64_t *state)
{
	double sum = -6;

	for (int i = 0; i < 12; i++) {
		*state = *state * 6364136223846793005u + 1442695040888963407u;
		sum += (double)(*state >> 11) / 9007199254740992.0;
	}
	return sum;
}

/* Line integrals of a body over an arc, up to 3, of this many photons (0: without noise); field: part of the field that is
 * measured. */
static void make_lines(int body, double arc, double photons, double field, uint64_t *state, float *lines)
{
	float most = 0;

	for (int i = 0; i < N * ANGLES; i++) {
		double angle = i / N * arc / ANGLES * PI / 180, r = (i % N - 0.5 * (N - 1)) * 2 / N * field, sum = 0;

		for (int e = 0; e < 5; e++) {
			const struct ellipse *o = &bodies[body][e];
			double c = o->a * cos(angle - o->turn), s = o->b * sin(angle - o->turn), w = c * c + s * s;
			double d = r - o->x * cos(angle) - o->y * sin(angle);

			sum += w > d * d ? 2 * o->value * o->a * o->b * sqrt(w - d * d) / w : 0;
		}
		lines[i] = (float)sum;
		most = fmaxf(most, lines[i]);
	}
	for (int i = 0; i < N * ANGLES; i++) {
		double line = 3 * (double)(lines[i] / most), mean = photons * exp(-line);

		lines[i] = (float)line;
		if (photons > 0)
			lines[i] = (float)-log(fmax(1, mean + sqrt(mean) * random_normal(state)) / photons);
	}
}

static const double photons[] = {0, 1e5, 1e4};

/* Angles of the header that are not those of the views are recognised, and half and twice the arc are named; the right ones are
 * not doubted. */
TEST(wrong_angles)
{
	static float lines[N * ANGLES];
	uint64_t noise = test_seed();

	for (int k = 0; k < BODIES * 3 * 2; k++) {
		const double arc = k % 2 ? 360 : 180;
		const int body = k / 6;
		struct parallel_scan s = {1, ANGLES, N, 1, 0, 1, 0, arc, NULL};
		struct parallel_consistency c;
		double angle[ANGLES];

		if (body == 3 && k / 2 % 3 == 2)
			continue; /* rods in so much noise say nothing */
		make_lines(body, arc, photons[k / 2 % 3], 1, &noise, lines);
		if (!parallel_consistency_of(&s, lines, NULL, &c, NULL) || !c.agree || c.n_odd)
			fail_msg("body %d over %g degrees: %d, %g of %g mm, %g of %g mm", body, arc, c.known, c.centre_rest,
				 c.centre_limit, c.width_rest, c.width_limit);
		s.arc = 540 - arc;
		assert_true(parallel_consistency_of(&s, lines, NULL, &c, NULL));
		if (c.agree || c.factor * s.arc != arc)
			fail_msg("body %d over %g degrees: factor %g, %g of %g mm", body, arc, c.factor, c.centre_rest,
				 c.centre_limit);
		for (int a = 0; a < ANGLES; a++)
			angle[a] = (a * 37 + 11) % ANGLES * arc / ANGLES; /* another order */
		s.angle = angle;
		assert_true(parallel_consistency_of(&s, lines, NULL, &c, NULL));
		assert_true(!c.agree && c.factor == 0);
	}
}

/* A body that leaves the field is not judged by what is missing. */
TEST(truncated_views)
{
	static float lines[N * ANGLES];
	uint64_t noise = test_seed();

	for (int body = 0; body < BODIES; body++)
		for (int step = 1; step < 30; step++)
			for (int turn = 1; turn <= 2; turn++) {
				struct parallel_scan s = {1, ANGLES, N, 1, 0, 1, 0, 180 * turn, NULL};
				struct parallel_consistency c;

				make_lines(body, s.arc, 1e5, 1 - 0.02 * step, &noise, lines);
				parallel_consistency_of(&s, lines, NULL, &c, NULL);
				if (!c.agree || c.n_odd > 0 || c.rough > 0.05 || c.air != 0 || c.air_spread > 0)
					fail_msg("body %d, %g of the field: %g of %g mm, %d views, %g, %g, %g", body,
						 1 - 0.02 * step, c.centre_rest, c.centre_limit, c.n_odd, c.rough, c.air,
						 c.air_spread);
			}
}

/* A view of half the intensity, or of none, is found, and the others are judged without it. */
TEST(odd_view)
{
	static float lines[N * ANGLES];
	uint64_t noise = test_seed();

	for (int k = 0; k < 6; k++) {
		const int odd[] = {0, 57, ANGLES - 1};
		struct parallel_scan s = {1, ANGLES, N, 1, 0, 1, 0, 180, NULL};
		struct parallel_consistency c;

		make_lines(2, 180, 1e4, 1, &noise, lines);
		for (int t = 0; t < N; t++) {
			float *line = lines + odd[k % 3] * N + t;

			*line = k < 3 ? *line + (float)log(2) : 0;
		}
		assert_true(parallel_consistency_of(&s, lines, NULL, &c, NULL));
		assert_true(c.agree && c.n_odd == 1 && c.odd == odd[k % 3]);
		assert_true(k < 3 ? c.odd_mass > 1.3 && c.odd_mass < 2.5 : c.odd_mass == 0);
	}
}

/* One to three views in a row are named, and no others, also at the ends. */
TEST(odd_views_in_a_row)
{
	static float lines[N * ANGLES];
	const float factors[] = {0, 0.5f, 1.5f};
	uint64_t noise = test_seed();

	for (int k = 0; k < (BODIES - 1) * 3 * 3 * 3; k++) { /* the edges of rods may be noise */
		const int n = 1 + k / 3 % 3, at[] = {0, 30, ANGLES - n}, first = at[k % 3];
		const float factor = factors[k / 9 % 3];
		struct parallel_scan s = {1, ANGLES, N, 1, 0, 1, 0, 180, NULL};
		struct parallel_consistency c;

		make_lines(k / 27, 180, 1e5, 1, &noise, lines);
		for (int i = first * N; i < (first + n) * N; i++)
			lines[i] *= factor;
		parallel_consistency_of(&s, lines, NULL, &c, NULL);
		if (c.n_odd != n || c.odd != first || fabs(c.odd_mass - (double)factor) > 0.05)
			fail_msg("body %d, views %d to %d have %g: %d, from %d, have %g", k / 27, first, first + n - 1,
				 (double)factor, c.n_odd, c.odd, c.odd_mass);
	}
}

/* A view along a plate through which no photons pass has a part of the mass, and no other intensity. */
TEST(view_along_a_plate)
{
	static float lines[N * ANGLES];
	uint64_t noise = test_seed();

	for (int k = 0; k < 10; k++) {
		struct parallel_scan s = {1, ANGLES, N, 1, 0, 1, 0, 360, NULL};
		struct parallel_consistency c;

		make_lines(BODIES, 360, 0, 1, &noise, lines);
		for (int i = 0; i < N * ANGLES; i++)
			lines[i] = fminf(lines[i], 0.1f * (float)(k + 1)) + 0.001f * (float)random_normal(&noise);
		parallel_consistency_of(&s, lines, NULL, &c, NULL);
		if (c.n_odd > 0)
			fail_msg("up to %g: view %d has %g", 0.1 * (k + 1), c.odd, c.odd_mass);
	}
}

/* Intensities of all views that are not I0: the same for all, another one for each, factors of the lines; and data without. */
TEST(intensities)
{
	static float lines[N * ANGLES];
	uint64_t noise = test_seed();

	for (int k = 0; k < BODIES * 4; k++) {
		struct parallel_scan s = {1, ANGLES, N, 1, 0, 1, 0, 180, NULL};
		struct parallel_consistency c;
		const int body = k / 4, what = k % 4;

		if (body == 3 && what == 3)
			continue; /* the edges of rods may be noise */
		make_lines(body, 180, 1e5, 1, &noise, lines);
		for (int a = 0; a < ANGLES; a++) {
			double other = 1 + 0.2 * random_normal(&noise);

			for (int t = 0; t < N; t++) {
				float *line = lines + a * N + t;

				*line = what == 1   ? *line - 0.3f
					: what == 2 ? *line - (float)log(fmax(0.3, other))
					: what == 3 ? *line * (float)fmax(0.3, other)
						    : *line;
			}
		}
		parallel_consistency_of(&s, lines, NULL, &c, NULL);
		if ((what != 2 && (c.rough > 0.05) != (what == 3)) || (c.air_spread > 0.1) != (what == 2) ||
		    (what == 1 ? fabs(c.air + 0.3) > 0.01 : c.air != 0))
			fail_msg("body %d, %d: rough %g, air %g, spread %g", body, what, c.rough, c.air, c.air_spread);
	}
}

/* A positive level of air is found, however high, unless an object that fills the field may have it. */
TEST(level_of_air)
{
	static float lines[N * ANGLES];
	const float levels[] = {0.1f, 0.2f, 0.5f, 2, 10};
	uint64_t noise = test_seed();

	for (int k = 0; k < 5 * BODIES; k++) {
		struct parallel_scan s = {1, ANGLES, N, 1, 0, 1, 0, 180, NULL};
		struct parallel_consistency c;

		make_lines(k / 5, 180, 1e5, 1, &noise, lines);
		for (int i = 0; i < N * ANGLES; i++)
			lines[i] += levels[k % 5];
		parallel_consistency_of(&s, lines, NULL, &c, NULL);
		if (fabs(c.air - levels[k % 5]) > 0.01 || c.air_spread > 0)
			fail_msg("body %d, air %g: %g, %g", k / 5, levels[k % 5], c.air, c.air_spread);
	}
}

/* Views whose lines are multiplied by turns, or in every n-th of them. */
TEST(alternating_views)
{
	static float lines[N * ANGLES];
	const struct {
		int every;
		double factor;
		bool alternate;
		int odd;
	} of[] = {{2, 1.1, true, 0}, {2, 2, true, 0}, {3, 1.3, false, 0}, {6, 1.5, false, 20}, {60, 1.5, false, 2}};
	uint64_t noise = test_seed();

	for (size_t k = 0; k < 5 * 3; k++) {
		struct parallel_scan s = {1, ANGLES, N, 1, 0, 1, 0, 180, NULL};
		struct parallel_consistency c;
		const size_t i = k % 5;

		make_lines((int)k / 5, 180, 1e5, 1, &noise, lines);
		for (int a = 1; a < ANGLES; a += of[i].every)
			for (int t = 0; t < N; t++)
				lines[a * N + t] *= (float)of[i].factor;
		parallel_consistency_of(&s, lines, NULL, &c, NULL);
		if (c.alternate != of[i].alternate || c.n_odd != of[i].odd ||
		    (c.alternate && fabs((1 + c.rough) / (1 - c.rough) / of[i].factor - 1) > 0.01))
			fail_msg("body %d, every %d: rough %g, %d, %d views", (int)k / 5, of[i].every, c.rough, c.alternate,
				 c.n_odd);
	}
}

/* ---- slices that are not as the rest ---- */

/* Spoil a slice of `lines` as a fault would. */
static void spoil(enum parallel_fault fault, const float *before, float *lines)
{
	static float from[N * ANGLES];

	memcpy(from, lines, sizeof(from));
	for (int i = 0; i < N * ANGLES; i++) {
		int a = i / N, t = i % N;

		lines[i] = fault == PARALLEL_ODD_VIEW ? from[i] * (a == 7 ? 2 : 1)
			   : fault == PARALLEL_ANGLES ? from[(a * 37 + 11) % ANGLES * N + t]
			   : fault == PARALLEL_AXIS   ? from[a * N + (t + N - 3) % N]
			   : fault == PARALLEL_COPY   ? before[i]
						      : from[i];
	}
}

/* Each fault of one or two of five slices is found, there alone, and the axis is that of the others; slices without fault have
 * none, nor have slices that are all the same, or whose axis leans. */
TEST(slices)
{
	enum { SLICES = 5 };
	static float lines[SLICES][N * ANGLES];
	uint64_t noise = test_seed();

	for (int k = 0; k < PARALLEL_FAULTS * 4; k++) {
		const enum parallel_fault fault = (enum parallel_fault)(k / 4);
		const int first = k % 4, last = k % 2 ? first + 1 : first;
		struct parallel_scan s = {SLICES, ANGLES, N, 1, k % 4 == 2 ? 4 : 0, 1, 0, k % 2 ? 180 : 360, NULL};
		struct parallel_faults f;
		struct parallel_consistency c;

		for (int i = 0; i < SLICES; i++)
			make_lines(2, s.arc, 1e5, 1, &noise, lines[i]);
		for (int i = first; i <= last; i++)
			spoil(fault, lines[i > 0 ? i - 1 : 1], lines[i]);
		assert_true(parallel_consistency_of(&s, lines[0], NULL, &c, &f));
		if (fabs(c.axis_error - s.offset) > 0.1 || !c.agree || c.n_odd > 0)
			fail_msg("fault %d, slice %d: axis at %g, %d views", fault, first, c.axis_error, c.n_odd);
		for (int i = 1; i < PARALLEL_FAULTS; i++) {
			int n = i == (int)fault ? last - first + 1 : 0, at = fault == PARALLEL_COPY && first == 0 ? 1 : first;

			if (f.of[i].n != n || (n > 0 && f.of[i].first != at))
				fail_msg("fault %d of slices %d to %d: %d slices have %d, from %d", fault, first, last, f.of[i].n,
					 i, f.of[i].first);
		}
		if (fault == PARALLEL_AXIS)
			assert_near(f.of[fault].value, 3, 0.1);
	}
}

/* No axis is that of all slices if two differ, or three, or two pairs; of slices that are all shifted it is. */
TEST(axes_that_differ)
{
	enum { SLICES = 4 };
	static const struct {
		int n, shift[SLICES];
		bool differ;
	} cases[] = {
		{2, {0, 3}, true},	 {2, {3, 3}, false},	   {3, {-3, 0, 3}, true},    {3, {0, 3, 3}, false},
		{4, {0, 0, 3, 3}, true}, {4, {3, 3, 3, 3}, false}, {4, {0, 3, 3, 3}, false},
	};
	static float lines[SLICES][N * ANGLES], from[N * ANGLES];
	uint64_t noise = test_seed();

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct parallel_scan s = {cases[i].n, ANGLES, N, 1, 0, 1, 0, 180, NULL};
		struct parallel_consistency c;

		for (int k = 0; k < s.n_slices; k++) {
			make_lines(2, s.arc, 1e5, 1, &noise, from);
			for (int j = 0; j < N * ANGLES; j++)
				lines[k][j] = from[j / N * N + (j % N + N - cases[i].shift[k]) % N];
		}
		assert_true(parallel_consistency_of(&s, lines[0], NULL, &c, NULL));
		if (c.axes_differ != cases[i].differ)
			fail_msg("case %zu: the axis is at %g", i, c.axis_error);
	}
}
