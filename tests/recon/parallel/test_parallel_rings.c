/* SPDX-License-Identifier: Apache-2.0 */
/* Offsets of detector bins: most of their energy goes, in two phantoms, with noise and without; a scan without rings
 * hardly changes; each bin has one offset in all views; parts and threads change nothing. */
#include "recon/parallel/parallel_rings.h"
#include "recon/phantom/poisson.h"
#include "tests/recon/parallel/parallel_fixture.h"
#include "tests/test.h"

enum { N = 180, SLICES = 2 };

static const struct parallel_shape bodies[][4] = {
	{{.c = {3, -2}, .r = {80, 60}, .turn = 30, .mu = 0.02},
	 {.c = {-35, 14}, .r = {13, 24}, .turn = -70, .mu = 0.01},
	 {.c = {30, 8}, .r = {9, 9}, .mu = -0.012},
	 {.c = {10, -30}, .r = {4, 4}, .mu = 0.03}},
	{{.c = {-8, 5}, .r = {60, 75}, .turn = 10, .mu = 0.03},
	 {.c = {-8, 5}, .r = {55, 70}, .turn = 10, .mu = -0.022},
	 {.c = {20, 20}, .r = {12, 20}, .turn = 50, .mu = -0.006},
	 {.c = {-30, -10}, .r = {6, 6}, .mu = 0.02}},
};

/* A body with noise of this many photons (0: none). */
static float *make_lines(const struct parallel_scan *s, int body, double photons)
{
	float *lines = parallel_lines(s, bodies[body], 4, 0.2);

	for (size_t i = 0; photons > 0 && i < parallel_size(s); i++)
		lines[i] = (float)-log(fmax(poisson_draw(photons * exp(-lines[i]), poisson_stream(3, i)), 1) / photons);
	return lines;
}

/* Offsets of 0.02 in two fifths of the bins of a slice. */
static void make_offsets(int slice, float ret[])
{
	uint32_t seed = 17 + (uint32_t)slice;

	for (int t = 0; t < N; t++)
		ret[t] = fixture_random(&seed) < 0.4f ? 0.02f * 3.4641f * (fixture_random(&seed) - 0.5f) : 0;
}

/* Energy of offsets in the image: that of their spectrum times the ramp of two dimensions, with Shepp and Logan's window. */
static double image_energy(const double offset[N])
{
	double sum = 0;

	for (int k = 1; k <= N; k++) {
		const double turn = 3.14159265358979 * k / N, window = sin(turn / 2) / (turn / 2);
		double re = 0, im = 0;

		for (int t = 0; t < N; t++) {
			re += offset[t] * cos(turn * t);
			im += offset[t] * sin(turn * t);
		}
		sum += (re * re + im * im) * k * window * window;
	}
	return sum;
}

TEST(rings_go)
{
	static const double photons[] = {0, 2e4};

	for (int body = 0; body < 2; body++)
		for (int noise = 0; noise < 2; noise++) {
			struct parallel_scan s = {
				.n_slices = SLICES, .n_angles = 120, .n_radial = N, .bin = 1, .slice = 1, .arc = 180};
			float *clean = make_lines(&s, body, photons[noise]), *made = make_lines(&s, body, photons[noise]),
			      *same = make_lines(&s, body, photons[noise]), offset[SLICES][N];
			double energy = 0, left = 0, changed = 0, image = 0, image_left = 0;
			struct parallel_rings r, none;

			for (int k = 0; k < SLICES; k++) {
				make_offsets(k, offset[k]);
				for (int i = 0; i < s.n_angles * N; i++)
					made[k * s.n_angles * N + i] += offset[k][i % N];
			}
			assert_int_equal(parallel_remove_rings(&s, 3, made, NULL, &r, NULL), 0);
			assert_int_equal(parallel_remove_rings(&s, 3, same, NULL, &none, NULL), 0);
			for (int k = 0; k < SLICES; k++) {
				double all_rest[N], all_made[N];

				for (int t = 0; t < N; t++) {
					size_t at = (size_t)(k * s.n_angles * N + t);
					double rest = made[at] - clean[at], of_clean = same[at] - clean[at];

					for (int a = 1; a < s.n_angles; a++) /* float32 sums of values up to 4 */
						assert_near(made[at + (size_t)(a * N)] - clean[at + (size_t)(a * N)], rest, 1e-6);
					energy += offset[k][t] * offset[k][t];
					left += (rest - of_clean) * (rest - of_clean);
					changed += of_clean * of_clean;
					all_rest[t] = rest - of_clean;
					all_made[t] = offset[k][t];
				}
				image += image_energy(all_made);
				image_left += image_energy(all_rest);
			}
			print_message("body %d, %g photons: %.3f of the energy is left, in the image %.3f; %.3f is made; %.5f "
				      "before, %.5f after\n",
				      body, photons[noise], left / energy, image_left / image, changed / energy, r.before,
				      r.after);
			assert_true(image_left < 0.15 * image); /* measured: 0.07 to 0.11 */
			assert_int_equal(r.n_round + none.n_round, 0);
			assert_true(left < 0.45 * energy);    /* measured: 0.28 to 0.37 */
			assert_true(changed < 0.25 * energy); /* 0.001; 0.15 of a round shell about the axis */
			assert_true(r.before > 0.6 * sqrt(energy / SLICES / N) && r.after < 0.5 * r.before);
			assert_true(none.before < 0.5 * r.before);
		}
}

/* The edges of a tube that is round about the axis, with a body in it, stay; wherever the axis is between two bins, if the header does
 * not say that it is elsewhere: then 40 times the energy of the offsets is made. */
TEST(round_edges_stay)
{
	static const double axes[] = {0, 0.25, -7.6};
	static const struct parallel_shape tube[] = {{.c = {0, 0}, .r = {70, 70}, .mu = 0.02},
						     {.c = {0, 0}, .r = {66, 66}, .mu = -0.015},
						     {.c = {20, -25}, .r = {18, 12}, .turn = 40, .mu = 0.01},
						     {.c = {5, 30}, .r = {14, 20}, .turn = 10, .mu = 0.008}};

	for (int i = 0; i < 3; i++) {
		struct parallel_scan s = {.n_slices = 1, .n_angles = 120, .n_radial = N, .bin = 1, .slice = 1, .arc = 180};
		double made = 0, energy = 0, elsewhere = 0;
		float *clean, *same, *other, offset[N];
		struct parallel_rings r;

		s.offset = axes[i];
		clean = parallel_lines(&s, tube, 4, 0);
		same = parallel_lines(&s, tube, 4, 0);
		other = parallel_lines(&s, tube, 4, 0);
		make_offsets(0, offset);
		s.offset_unknown = i == 1;
		assert_int_equal(parallel_remove_rings(&s, 3, same, NULL, &r, NULL), 0);
		assert_int_equal(r.n_round, 1);
		s.offset += 2;
		assert_int_equal(parallel_remove_rings(&s, 3, other, NULL, &r, NULL), 0);
		assert_int_equal(r.n_round, i == 1);
		for (int t = 0; t < N; t++) {
			made += pow(same[t] - clean[t], 2);
			elsewhere += pow(other[t] - clean[t], 2);
			energy += offset[t] * offset[t];
		}
		print_message("axis at %g: %.3f is made; if the header says elsewhere %.1f\n", axes[i], made / energy,
			      elsewhere / energy);
		assert_true(made < energy); /* measured: 0.00, 0.00, 0.58 */
		assert_true(i == 1 || elsewhere > 30 * energy);
	}
}

/* The last bins are treated as the first ones: bins in the opposite order lose the same offsets. */
TEST(order_of_bins)
{
	struct parallel_scan s = {.n_slices = 1, .n_angles = 120, .n_radial = N, .bin = 1, .slice = 1, .arc = 180};
	float *lines = make_lines(&s, 0, 2e4), *mirrored = make_lines(&s, 0, 2e4), offset[N];
	struct parallel_rings r;

	make_offsets(0, offset);
	for (int i = 0; i < s.n_angles * N; i++)
		lines[i] += offset[i % N];
	for (int i = 0; i < s.n_angles * N; i++)
		mirrored[i] = lines[i - i % N + N - 1 - i % N];
	assert_int_equal(parallel_remove_rings(&s, 3, lines, NULL, &r, NULL), 0);
	assert_int_equal(parallel_remove_rings(&s, 3, mirrored, NULL, &r, NULL), 0);
	for (int i = 0; i < s.n_angles * N; i++)
		assert_near(mirrored[i], lines[i - i % N + N - 1 - i % N], 1e-6); /* float32 values up to 4 */
}

/* The sectors are those of the angles: views in another order, as of a golden-angle scan, lose the same offsets. */
TEST(order_of_views)
{
	enum { VIEWS = 120, STEP = 77 }; /* no common divisor */
	struct parallel_scan s = {.n_slices = 1, .n_angles = VIEWS, .n_radial = N, .bin = 1, .slice = 1, .arc = 180}, other = s;
	float *lines = make_lines(&s, 0, 2e4), *mixed = fixture_floats(parallel_size(&s), 1, 0, 0);
	double angle[VIEWS];
	struct parallel_rings r;

	other.angle = angle;
	for (int a = 0; a < VIEWS; a++) {
		angle[a] = parallel_angle(&s, a * STEP % VIEWS);
		memcpy(mixed + (size_t)a * N, lines + (size_t)(a * STEP % VIEWS) * N, N * sizeof(*mixed));
	}
	assert_int_equal(parallel_remove_rings(&s, 3, lines, NULL, &r, NULL), 0);
	assert_int_equal(parallel_remove_rings(&other, 3, mixed, NULL, &r, NULL), 0);
	for (int a = 0; a < VIEWS; a++)
		assert_memory_equal(mixed + (size_t)a * N, lines + (size_t)(a * STEP % VIEWS) * N, N * sizeof(*mixed));
}

TEST(limits)
{
	struct parallel_scan s = {.n_slices = 1, .n_angles = 12, .n_radial = 24, .bin = 1, .slice = 1, .arc = 180};
	float *lines = fixture_floats(12 * 24, 4, 0, 1);
	struct parallel_rings r;

	assert_int_equal(parallel_remove_rings(&s, 3, lines, NULL, &r, NULL), 0);
	assert_int_equal(parallel_remove_rings(&s, 4, lines, NULL, &r, NULL), -EINVAL);
	assert_int_equal(parallel_remove_rings(&s, 0, lines, NULL, &r, NULL), -EINVAL);
	s.n_angles = 11;
	assert_int_equal(parallel_remove_rings(&s, 3, lines, NULL, &r, NULL), -EINVAL);
	s.n_angles = 12;
	s.n_radial = 8 * (PARALLEL_RING_WIDTH_MAX + 1);
	lines = fixture_floats(parallel_size(&s), 4, 0, 1);
	assert_int_equal(parallel_remove_rings(&s, PARALLEL_RING_WIDTH_MAX, lines, NULL, &r, NULL), 0);
	assert_int_equal(parallel_remove_rings(&s, PARALLEL_RING_WIDTH_MAX + 1, lines, NULL, &r, NULL), -EINVAL);
}
