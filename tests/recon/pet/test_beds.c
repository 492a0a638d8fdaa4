/* SPDX-License-Identifier: Apache-2.0 */
/* Joined beds: weights from ring pairs, of the smallest variance; what is uniform, or was whole before it was divided into beds,
 * is so again, whatever the order, times, decay and distances of the beds; noise in the overlap; refused beds. */
#include "recon/pet/beds.h"
#include "recon/phantom/poisson.h"
#include "tests/recon/pet/pet_fixture.h"
#include "tests/test.h"

#define NX 5
#define NY 4
#define NZ PET_SLICES
#define H 3.0 /* mm: half of the ring spacing */
#define BED (NX * NY * NZ)
#define LAMBDA (0.69314718055994530942 / 6586.2) /* 1/s */

static const double head_first[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
static const double feet_first[3][3] = {{-1, 0, 0}, {0, 1, 0}, {0, 0, -1}};
static struct michelogram scanner;

static struct grid bed_grid(void)
{
	struct grid g = {.n = {NX, NY, NZ}, .h = {2, 2, H}, .lo = {-5, -4, -0.5 * NZ * H}, .z_fastest = true};

	return g;
}

/* Beds at these distances along z, mm, each of `seconds` and 30 s after the end of the one before. */
static struct pet_images beds_at(const double *along, const double *seconds, int n)
{
	struct pet_images beds = {.of = PET_BEDS, .n = n};
	int64_t start = 0;

	for (int b = 0; b < n; b++) {
		beds.image[b] = (struct pet_image){{start, start + llround(1000 * seconds[b])}, {7, -3, along[b]}};
		start = beds.image[b].time.stop + 30000;
	}
	return beds;
}

static struct pet_join plan(const struct pet_images *beds, double lambda)
{
	struct grid g = bed_grid();
	struct pet_join j;
	struct err err = {0};

	assert_done(pet_join_plan(beds, head_first, &g, &scanner, lambda, &j, &err), &err);
	return j;
}

static float *zeros(const struct pet_join *j)
{
	return take_zeros((size_t)NX * NY * (size_t)j->grid.n[2], sizeof(float));
}

/* ---- sensitivity ---- */

TEST(ring_pairs_of_slices)
{
	struct grid g = bed_grid();
	struct michelogram all = scanner, direct = scanner;
	double s[NZ], thick[2];

	assert_int_equal(michelogram_segments_all(PET_RINGS, 11, &all.segments, &all.n_segments, NULL), 0);
	test_later(free, all.segments);
	pet_bed_sensitivity(&all, &g, s);
	for (int k = 0; k < NZ; k++) /* all ring pairs: a triangle */
		assert_true(fabs(s[k] - (1 + (k < PET_RINGS ? k : NZ - 1 - k))) < 1e-12);
	g.n[2] = 2;
	g.h[2] = NZ * H / 2;
	pet_bed_sensitivity(&all, &g, thick);
	assert_true(fabs(thick[0] - PET_RINGS * PET_RINGS / (double)NZ) < 1e-12 && fabs(thick[1] - thick[0]) < 1e-12);
	direct.n_segments = 1; /* |difference| <= 1: 1 pair in direct planes, 2 in cross planes */
	g = bed_grid();
	pet_bed_sensitivity(&direct, &g, s);
	for (int k = 0; k < NZ; k++)
		assert_true(fabs(s[k] - 1 - k % 2) < 1e-12);
	assert_int_equal(michelogram_segments_all(PET_RINGS, 1, &all.segments, &all.n_segments, NULL), 0);
	test_later(free, all.segments);
	pet_bed_sensitivity(&all, &g, s);
	for (int k = 1; k < NZ - 1; k++) /* planes a ring apart: each reaches half a ring to both sides */
		assert_true(fabs(s[k] - (1 + (k < PET_RINGS ? k : NZ - 1 - k))) <= 0.51);
}

/* ---- what is joined is as before ---- */

/* Volumes of beds that are cut out of one volume of activity, in counts of each bed; then they are joined again. */
TEST(cut_and_joined)
{
	static const double seconds[] = {120, 60, 300}, up[] = {0, 7 * H, 15 * H}, down[] = {0, -9 * H, -18 * H},
			    mixed[] = {0, 10 * H + 0.02, -10 * H - 0.02}, again[] = {0, 0, H}, touching[] = {0, NZ * H, -NZ * H};
	static const double *const places[] = {up, down, mixed, again, touching};
	uint64_t stream = poisson_stream(5, 1);

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		for (int decays = 0; decays < 2; decays++) {
			struct pet_images beds = beds_at(places[i], seconds, 3);
			double lambda = decays ? LAMBDA : 0;
			struct pet_join j = plan(&beds, lambda);
			float *joint = zeros(&j), volume[BED];
			size_t n = (size_t)NX * NY * (size_t)j.grid.n[2];
			double *truth = take_memory(n * sizeof(*truth));

			for (size_t p = 0; p < n; p++)
				truth[p] = 1 + poisson_uniform(&stream);
			for (int b = 0; b < 3; b++) {
				double factor = pet_bed_factor(&beds.image[b], lambda) / pet_bed_factor(&beds.image[0], lambda);

				assert_false(j.part[b].interpolated);
				assert_true(j.part[b].first == (int)j.part[b].shift && j.part[b].end == j.part[b].first + NZ);
				for (int p = 0; p < BED; p++)
					volume[p] = (float)(truth[j.part[b].first * NX * NY + p] / factor);
				pet_join_add(&j, b, volume, joint);
			}
			for (size_t p = 0; p < n; p++)
				if (fabs(joint[p] / truth[p] - 1) > 1e-6)
					fail_msg("places %zu, voxel %zu: %g, not %g", i, p, (double)joint[p], truth[p]);
			pet_join_clear(&j);
		}
}

/* The joint grid is where the slices of bed 1 are, also if beds are below it, or z points to the feet. */
TEST(the_grid_is_that_of_bed_1)
{
	static const double along[] = {0, 7 * H, -5 * H}, seconds[] = {60, 60, 60};
	struct pet_images beds = beds_at(along, seconds, 3);
	struct grid g = bed_grid();
	struct pet_join j = plan(&beds, 0);

	assert_int_equal(j.grid.n[2], NZ + 12);
	assert_true(fabs(j.grid.lo[2] - (g.lo[2] - 5 * H)) < 1e-9 && j.grid.h[2] == H);
	assert_true(j.part[0].first == 5 && j.part[1].first == 12 && j.part[2].first == 0);
	assert_true(pet_join_bed_of(&j, 0) == 2 && pet_join_bed_of(&j, 5 + NZ / 2) == 0 && pet_join_bed_of(&j, NZ + 11) == 1);
	pet_join_clear(&j);
	assert_int_equal(pet_join_plan(&beds, feet_first, &g, &scanner, 0, &j, NULL), 0);
	assert_true(j.part[0].first == 7 && j.part[1].first == 0 && j.part[2].first == 12);
	assert_true(fabs(j.grid.lo[2] - (g.lo[2] - 7 * H)) < 1e-9);
	pet_join_clear(&j);
}

/* Any distances, any times: a uniform activity is uniform. The last bed is measured one half-life after the first. */
TEST(uniform_stays_uniform)
{
	uint64_t stream = poisson_stream(9, 1);

	for (int round = 0; round < 50; round++) {
		double along[4] = {0}, seconds[4], at = 0, half_life = LAMBDA > 0 ? log(2) / LAMBDA : 0;
		struct pet_images beds;
		struct pet_join j GOES(pet_join_clear) = {0};
		float *joint, volume[BED];

		for (int b = 0; b < 4; b++) {
			seconds[b] = 20 + 200 * poisson_uniform(&stream);
			along[b] = at;
			at += (round % 2 ? 1 : -1) * NZ * H * poisson_uniform(&stream);
		}
		beds = beds_at(along, seconds, 4);
		beds.image[3].time.stop += llround(1000 * half_life) - beds.image[3].time.start;
		beds.image[3].time.start = llround(1000 * half_life);
		j = plan(&beds, LAMBDA);
		joint = zeros(&j);
		for (int b = 0; b < 4; b++) {
			double t = (double)beds.image[b].time.start / 1000,
			       counts = 37 / LAMBDA * (exp(-LAMBDA * t) - exp(-LAMBDA * (double)beds.image[b].time.stop / 1000));

			for (int p = 0; p < BED; p++)
				volume[p] = (float)counts;
			pet_join_add(&j, b, volume, joint);
		}
		for (int p = 0; p < NX * NY * j.grid.n[2]; p++) {
			double value = joint[p] * pet_bed_factor(&beds.image[0], LAMBDA);

			if (fabs(value / 37 - 1) > 1e-5)
				fail_msg("round %d, slice %d: %.9g, not 37", round, p / (NX * NY), value);
		}
	}
}

/* A distance of 7.25 slices: values that are linear along z stay so, and a single slice becomes two. */
TEST(fractions_are_interpolated)
{
	static const double along[] = {0, 7.25 * H}, seconds[] = {60, 60};
	struct pet_images beds = beds_at(along, seconds, 2);
	struct pet_join j = plan(&beds, 0);
	float *joint = zeros(&j), volume[BED] = {0};

	assert_true(j.part[1].interpolated && !j.part[0].interpolated && j.part[1].first == 7 && j.grid.n[2] == NZ + 7);
	for (int b = 0; b < 2; b++) {
		for (int p = 0; p < BED; p++)
			volume[p] = (float)(p / (NX * NY) + (b ? 7.25 : 0));
		pet_join_add(&j, b, volume, joint);
	}
	for (int k = 0; k < j.grid.n[2]; k++)
		if (k != 7) /* in slice 7 bed 2 has only its first slice, at 7.25, with little weight */
			assert_true(fabs((double)joint[k * NX * NY] - k) < 1e-5);
		else
			assert_true(joint[k * NX * NY] > 7 && joint[k * NX * NY] < 7.25 / 2 + 3.5);
	memset(joint, 0, sizeof(*joint) * NX * NY * (size_t)j.grid.n[2]);
	memset(volume, 0, sizeof(volume));
	for (int p = 0; p < NX * NY; p++)
		volume[9 * NX * NY + p] = 1; /* at 16.25: only bed 2 has slices 16 and 17 */
	pet_join_add(&j, 1, volume, joint);
	assert_true(fabs((double)joint[16 * NX * NY] - 0.75) < 1e-6 && fabs((double)joint[17 * NX * NY] - 0.25) < 1e-6);
	pet_join_clear(&j);
}

/* ---- noise ---- */

/* Values with the variance of counts, F a / S: in the overlap the joint noise is lower than that of each bed and as predicted,
 * 1 / sum(1 / variance), and other weights make it higher. */
TEST(noise_in_the_overlap)
{
	static const double along[] = {0, 5 * H}, seconds[] = {100, 40};
	struct pet_images beds = beds_at(along, seconds, 2);
	struct pet_join j = plan(&beds, LAMBDA);
	struct grid g = bed_grid();
	double s[NZ], sum[NZ + 5] = {0}, square[NZ + 5] = {0};
	uint64_t stream = poisson_stream(3, 1);
	int rounds = 400, n = NX * NY * rounds;

	pet_bed_sensitivity(&scanner, &g, s);
	for (int round = 0; round < rounds; round++) {
		float *joint = zeros(&j), volume[BED];

		for (int b = 0; b < 2; b++) {
			double x = 1e4 / j.part[b].gain; /* counts per unit of sensitivity */

			for (int p = 0; p < BED; p++) {
				double mean = x * s[p / (NX * NY)];

				volume[p] = (float)(poisson_draw(mean, poisson_stream(poisson_uniform(&stream) * 4e9, 1)) /
						    s[p / (NX * NY)]);
			}
			pet_join_add(&j, b, volume, joint);
		}
		for (int p = 0; p < NX * NY * j.grid.n[2]; p++) {
			sum[p / (NX * NY)] += joint[p];
			square[p / (NX * NY)] += (double)joint[p] * (double)joint[p];
		}
	}
	for (int k = 0; k < j.grid.n[2]; k++) {
		double mean = sum[k] / n, variance = square[k] / n - mean * mean, inverse = 0, least = INFINITY;

		for (int b = 0; b < 2; b++)
			if (k >= j.part[b].first && k < j.part[b].end) {
				double of_bed = 1e4 * j.part[b].gain / s[k - j.part[b].first];

				inverse += 1 / of_bed;
				least = fmin(least, of_bed);
			}
		if (fabs(mean / 1e4 - 1) > 2e-3 || fabs(variance * inverse - 1) > 0.08) /* sd of the variance: 1.6 % */
			fail_msg("slice %d: mean %g, variance %g, predicted %g", k, mean, variance, 1 / inverse);
		if (k >= 5 && k < NZ)
			assert_true(1 / inverse < 0.99 * least);
		for (int other = 0; other < 2 && k >= 5 && k < NZ; other++) {
			double w = (double)j.weight[k] + (other ? 0.05 : -0.05),
			       changed = 1e4 * (w * w * j.part[0].gain / s[k] + (1 - w) * (1 - w) * j.part[1].gain / s[k - 5]);

			assert_true(changed > 1 / inverse);
		}
	}
	pet_join_clear(&j);
}

/* ---- refused ---- */

static void refuse(const struct pet_images *beds, const char *part)
{
	struct grid g = bed_grid();
	struct pet_join j = {.n = -7};
	struct err err = {0};

	if (pet_join_plan(beds, head_first, &g, &scanner, 0, &j, &err) != -EBADMSG || !strstr(err.msg, part))
		fail_msg("\"%s\" does not contain \"%s\"", err.msg, part);
	assert_int_equal(j.n, -7);
}

TEST(refused)
{
	static const double gap[] = {0, -2 * NZ * H + 0.5, -NZ * H + 0.5}, far[] = {0, 8000, 0}, seconds[] = {60, 60, 60};
	static const double third[] = {0, 30, 60 + 3.5};
	struct pet_images beds = beds_at(gap, seconds, 3), aside = beds_at(third, seconds, 2);

	beds.image[1].centre[2] -= 1;
	refuse(&beds,
	       "beds 2 and 3 leave a gap of 1 mm: their centres are 34 mm apart, and the volume of a bed has a length of 33 mm");
	beds = beds_at(third, seconds, 3);
	beds.image[2].centre[2] += 30;
	refuse(&beds, "beds 2 and 3 leave a gap of 30.5 mm");
	aside.image[1].centre[0] += 0.2;
	refuse(&aside, "bed 2 is 0.2 mm to the right of bed 1 and 0 mm below it; beds may differ only along the axis");
	aside.image[1].centre[0] -= 0.2;
	aside.image[1].centre[1] -= 4;
	refuse(&aside, "bed 2 is 0 mm to the right of bed 1 and -4 mm below it");
	for (int first = 0; first < 2; first++) { /* in either order */
		beds = beds_at(far + first, seconds, 2);
		refuse(&beds, "beds 1 and 2 leave a gap of 7967 mm");
	}
}

static int setup(void **state)
{
	scanner = pet_scanner_small(false);
	return 0;
}

TESTS_SETUP(setup, NULL);
