/* SPDX-License-Identifier: Apache-2.0 */
/* Expected randoms: fan sums are those of the delayeds; the truth is found without noise, and with noise as exactly as the counts
 * of the fans allow; spans, mashed angles, dead detectors, one ring; randoms of singles against an integral over time. The truth
 * is computed pair by pair with michelogram_bin_of(). */
#include "recon/pet/michelogram_pairs.h"
#include "recon/pet/randoms.h"
#include "recon/phantom/poisson.h"
#include "tests/recon/pet/michelogram_fixture.h"
#include "tests/test.h"

void omp_set_num_threads(int) __attribute__((weak)); /* not there without OpenMP */

struct randoms_case {
	int rings, detectors, n_radial, n_angles, span, largest;
};

struct fixture {
	struct michelogram m;
	struct michelogram_index x;
	size_t bins, detectors;
	double *r;	 /* [ring][crystal]: true efficiencies */
	float *expected; /* true randoms */
	float *counts, *found;
};

static struct fixture make(const struct randoms_case *c)
{
	struct fixture f = {
		.m = {.scanner = {c->rings, c->detectors, 4, 90, 5, 2}, .n_radial = c->n_radial, .n_angles = c->n_angles}};

	fixture_segments(&f.m, c->span, c->largest);
	assert_int_equal(michelogram_index_init(&f.m, &f.x, NULL), 0);
	f.bins = michelogram_size(&f.m);
	f.detectors = (size_t)c->rings * (size_t)c->detectors;
	f.r = take_zeros(f.detectors, sizeof(*f.r));
	f.expected = take_zeros(f.bins, sizeof(*f.expected));
	f.counts = take_zeros(f.bins, sizeof(*f.counts));
	f.found = take_zeros(f.bins, sizeof(*f.found));
	return f;
}

/* Call use() with each pair of detectors, once, and its bin. */
static void each_pair(struct fixture *f, void (*use)(struct fixture *f, size_t a, size_t b, size_t bin, void *ctx), void *ctx)
{
	size_t n = (size_t)f->x.detectors;

	for (size_t a = 0; a < f->detectors; a++)
		for (size_t b = a + 1; b < f->detectors; b++) {
			struct michelogram_ends e = {{(int)(a / n), (int)(b / n)}, {(int)(a % n), (int)(b % n)}};
			struct michelogram_bin to;

			if (michelogram_bin_of(&f->x, &e, &to))
				use(f, a, b,
				    ((size_t)to.plane * (size_t)f->x.n_angles + (size_t)to.angle) * (size_t)f->x.n_radial +
					    (size_t)to.radial,
				    ctx);
		}
}

static void add_expected(struct fixture *f, size_t a, size_t b, size_t bin, void *ctx)
{
	(void)ctx;
	f->expected[bin] += (float)(f->r[a] * f->r[b]);
}

/* Efficiencies: a slow change along the ring and between rings, times a random one of `spread`, and `mean` counts a pair. Every
 * dead-th detector is dead. */
static void make_truth(struct fixture *f, double mean, double spread, size_t dead)
{
	uint64_t stream = poisson_stream(7, 0);

	for (size_t i = 0; i < f->detectors; i++) {
		double angle = 2 * M_PI * (double)(i % (size_t)f->x.detectors) / f->x.detectors;

		f->r[i] = sqrt(mean) * (1 + 0.4 * cos(angle)) * (1 + 0.1 * (double)(i / (size_t)f->x.detectors) / f->x.rings) *
			  (1 + spread * (2 * poisson_uniform(&stream) - 1));
		if (dead > 0 && i % dead == 0)
			f->r[i] = 0;
	}
	each_pair(f, add_expected, NULL);
}

static void draw(struct fixture *f, uint64_t seed)
{
	for (size_t i = 0; i < f->bins; i++)
		f->counts[i] = (float)poisson_draw((double)f->expected[i], poisson_stream(seed, i));
}

struct fans {
	const float *values;
	double *sum; /* [detector] */
};

static void add_to_fans(struct fixture *f, size_t a, size_t b, size_t bin, void *ctx)
{
	struct fans *fans = ctx;

	(void)f;
	fans->sum[a] += (double)fans->values[bin];
	fans->sum[b] += (double)fans->values[bin];
}

/* Return the largest relative difference of the fan sums of two sets of bins. */
static double fan_difference(struct fixture *f, const float *values, const float *other)
{
	struct fans a = {values, take_zeros(f->detectors, sizeof(double))}, b = {other, take_zeros(f->detectors, sizeof(double))};
	double worst = 0;

	each_pair(f, add_to_fans, &a);
	each_pair(f, add_to_fans, &b);
	for (size_t i = 0; i < f->detectors; i++)
		worst = fmax(worst, fabs(a.sum[i] - b.sum[i]) / fmax(b.sum[i], 1e-3));
	return worst;
}

/* Root of the mean square of (values - truth), over the mean of the truth. */
static double error_of(const struct fixture *f, const float *values)
{
	double squares = 0, sum = 0;

	for (size_t i = 0; i < f->bins; i++) {
		squares += pow((double)values[i] - (double)f->expected[i], 2);
		sum += (double)f->expected[i];
	}
	return sqrt(squares * (double)f->bins) / sum;
}

static const struct randoms_case single_pairs[] = {
	{1, 48, 33, 24, 1, 0}, {5, 40, 25, 20, 1, 4}, {5, 40, 24, 20, 1, 4}, {6, 36, 21, 18, 1, 3}, {3, 32, 31, 16, 1, 2},
};
#define SINGLE_PAIRS (sizeof(single_pairs) / sizeof(single_pairs[0]))

TEST(fan_sums_are_those_of_the_delayeds)
{
	for (size_t i = 0; i < SINGLE_PAIRS; i++)
		for (size_t dead = 0; dead < 12; dead += 11) {
			struct fixture f = make(&single_pairs[i]);
			struct randoms_report report;
			double sum = 0;

			make_truth(&f, 2, 0.5, dead);
			draw(&f, i);
			for (size_t k = 0; k < f.bins; k++)
				sum += (double)f.counts[k];
			assert_int_equal(randoms_from_delayeds(&f.m, f.counts, NULL, f.found, NULL, &report, NULL), 0);
			assert_true(fan_difference(&f, f.found, f.counts) < 1e-5);
			assert_true(report.fan_error < 1e-5);
			assert_near(report.total / sum, 1, 1e-6);
			assert_near(report.pairs_per_bin, 1, 0);
			assert_int_equal(report.detectors, f.detectors);
			assert_int_equal(report.dead, dead ? (f.detectors + dead - 1) / dead : 0);
			assert_true(report.iterations < 50); /* at most 100: they end at an error, not at that number */
		}
}

/* Of single pairs the noise of an estimate is that of two fan sums: 1 / counts of each. If bins are sums of pairs, the estimate
 * is compared with the same noise over these pairs, and must still be far better than the counts. */
TEST(noise_is_that_of_the_fans)
{
	static const struct {
		struct randoms_case c;
		double most; /* of the error, over that of two fans */
	} cases[] = {
		{{1, 48, 33, 24, 1, 0}, 1.3},  {{5, 40, 25, 20, 1, 4}, 1.3}, {{5, 40, 24, 20, 1, 4}, 1.3},
		{{6, 36, 21, 18, 1, 3}, 1.3},  {{8, 40, 25, 20, 3, 7}, 1.3}, {{8, 40, 25, 20, 2, 7}, 1.3},
		{{16, 40, 25, 20, 11, 15}, 2}, {{5, 40, 25, 10, 1, 4}, 2},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f = make(&cases[i].c);
		struct randoms_report report;
		double before, after, fans;

		make_truth(&f, 0.5, 0.5, 0);
		draw(&f, 20 + i);
		assert_int_equal(randoms_from_delayeds(&f.m, f.counts, NULL, f.found, NULL, &report, NULL), 0);
		before = error_of(&f, f.counts);
		after = error_of(&f, f.found);
		fans = sqrt(2 / report.total * (double)f.detectors / 2);
		print_message("case %zu, %.1f pairs a bin: error %.4f of delayeds, %.4f of randoms, %.4f of two fans\n", i,
			      report.pairs_per_bin, before, after, fans);
		assert_true(after < cases[i].most * fans && after > 0.5 * fans / report.pairs_per_bin);
		assert_true(after < 0.3 * before);
	}
}

/* Of single pairs exactly; of sums of pairs, differences of neighbouring detectors, here up to 86 %, are found step by step. */
TEST(truth_is_found_without_noise)
{
	static const struct {
		struct randoms_case c;
		double most, smooth; /* errors with and without differences of neighbouring detectors */
	} cases[] = {
		{{5, 40, 25, 20, 1, 4}, 1e-5, 1e-5}, {{1, 48, 33, 24, 1, 0}, 1e-5, 1e-5},    {{8, 40, 25, 20, 3, 7}, 1e-3, 1e-5},
		{{8, 40, 25, 20, 2, 7}, 1e-3, 1e-5}, {{16, 40, 25, 20, 11, 15}, 3e-2, 1e-5}, {{5, 40, 25, 10, 1, 4}, 3e-2, 1e-3},
		{{8, 40, 25, 5, 3, 7}, 3e-2, 1e-3},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int rough = 0; rough < 2; rough++) {
			struct fixture f = make(&cases[i].c);
			struct randoms_report report;

			make_truth(&f, 2, rough ? 0.3 : 0, 0);
			assert_int_equal(randoms_from_delayeds(&f.m, f.expected, NULL, f.found, NULL, &report, NULL), 0);
			print_message("case %zu, %.1f pairs a bin: error %.2e, fans %.2e, %d iterations\n", i,
				      report.pairs_per_bin, error_of(&f, f.found), fan_difference(&f, f.found, f.expected),
				      report.iterations);
			assert_true(error_of(&f, f.found) < (rough ? cases[i].most : cases[i].smooth));
		}
}

/* Equal detectors: every bin has the same randoms for each of its pairs. A dead ring has none, and no bin of live ones changes.
 */
TEST(equal_detectors_give_equal_randoms)
{
	static const struct randoms_case c = {6, 36, 21, 18, 3, 4};
	struct fixture f = make(&c), dead = make(&c);

	for (size_t i = 0; i < f.detectors; i++) {
		f.r[i] = 1.5;
		dead.r[i] = i / 36 == 2 ? 0 : 1.5;
	}
	each_pair(&f, add_expected, NULL);
	each_pair(&dead, add_expected, NULL);
	assert_int_equal(randoms_from_delayeds(&f.m, f.expected, NULL, f.found, NULL, NULL, NULL), 0);
	for (size_t i = 0; i < f.bins; i++)
		assert_near((double)f.found[i], 2.25 * michelogram_plane_rings(&f.x, (int)(i / (18 * 21))).n, 1e-5);
	assert_int_equal(randoms_from_delayeds(&dead.m, dead.expected, NULL, dead.found, NULL, NULL, NULL), 0);
	for (size_t i = 0; i < f.bins; i++)
		assert_near((double)dead.found[i], (double)dead.expected[i], 0.02);
}

/* Planes that are not measured, and single bins: the others have the randoms that they have with all of them measured, to what
 * the iterations leave. */
TEST(bins_that_are_not_measured_take_nothing)
{
	static const struct {
		struct randoms_case c;
		size_t dead;	  /* every dead-th detector; 0: none, because its bins have the counts of others, too */
		double tolerance; /* of the mean */
	} cases[] = {{{6, 36, 21, 18, 1, 5}, 50, 1e-3}, {{6, 36, 21, 9, 3, 4}, 0, 0.02}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f = make(&cases[i].c);
		size_t per_plane = (size_t)f.x.n_angles * (size_t)f.x.n_radial, live = 0;
		uint64_t stream = poisson_stream(11, i);
		float *factors = f.counts;
		double mean = 0, total = 0, sum = 0;
		struct randoms_report report;

		make_truth(&f, 2, 0.2, cases[i].dead);
		for (size_t b = 0; b < f.bins; b++) {
			int plane = (int)(b / per_plane), direct = f.x.segments[0].n_planes;

			factors[b] = plane >= direct + direct / 2 || poisson_uniform(&stream) < 0.05 ? 0 : 1.5f;
			mean += factors[b] > 0 ? (double)f.expected[b] : 0;
			live += factors[b] > 0;
			f.found[b] = factors[b] > 0 ? f.expected[b] : 0;
		}
		assert_true(live > f.bins / 10 && live < f.bins * 7 / 10);
		sum = mean;
		mean /= (double)live;
		assert_int_equal(randoms_from_delayeds(&f.m, f.found, factors, f.found, NULL, &report, NULL), 0);
		for (size_t b = 0; b < f.bins; b++)
			if (factors[b] > 0) {
				assert_near((double)f.found[b], (double)f.expected[b], cases[i].tolerance * mean);
				total += (double)f.found[b];
			}
		assert_near(total / sum, 1, 1e-4);
		assert_int_equal(report.dead, cases[i].dead ? (f.detectors + cases[i].dead - 1) / cases[i].dead : 0);
	}
}

TEST(threads_and_place_change_nothing)
{
	static const struct randoms_case c = {6, 36, 21, 18, 3, 4};
	struct fixture f = make(&c);

	make_truth(&f, 1, 0.3, 0);
	draw(&f, 3);
	for (int threads = 1; threads <= 3; threads++) {
		if (omp_set_num_threads)
			omp_set_num_threads(threads);
		assert_int_equal(
			randoms_from_delayeds(&f.m, f.counts, NULL, threads == 1 ? f.found : f.expected, NULL, NULL, NULL), 0);
		if (threads > 1)
			assert_memory_equal(f.found, f.expected, f.bins * sizeof(*f.found));
	}
	assert_int_equal(randoms_from_delayeds(&f.m, f.counts, NULL, f.counts, f.r, NULL, NULL), 0);
	assert_memory_equal(f.found, f.counts, f.bins * sizeof(*f.found));
	assert_int_equal(randoms_from_singles(&f.m, f.r, 1, f.expected, NULL), 0); /* what is kept of an estimate */
	assert_memory_equal(f.found, f.expected, f.bins * sizeof(*f.found));
}

/* 2 tau times the integral of the product of the rates, by the trapezoidal rule. */
TEST(randoms_of_singles_are_the_integral)
{
	static const double lives[] = {0, 1e-5, 1e-3, 0.0102, 0.5}; /* 1/s: times 300 s, from nothing to 216 half-lives */
	const double duration = 300, window = 4.06e-9, rate[2] = {8e4, 3e4};
	const int n = 3000000;

	for (size_t i = 0; i < sizeof(lives) / sizeof(lives[0]); i++) {
		double randoms = 0, singles[2] = {0, 0}, dt = duration / n, mean = 0, squared = 0;

		for (int k = 0; k <= n; k++) {
			double decay = exp(-lives[i] * k * dt), weight = k == 0 || k == n ? dt / 2 : dt;

			mean += decay * weight / duration;
			squared += decay * decay * weight / duration;
			randoms += window * rate[0] * decay * rate[1] * decay * weight;
			for (int d = 0; d < 2; d++)
				singles[d] += rate[d] * decay * weight;
		}
		assert_near(randoms_singles_factor(window, duration, 1 / mean, 1 / squared) * singles[0] * singles[1] / randoms,
			    1, 1e-8);
	}
}

TEST(bins_have_the_randoms_of_their_singles)
{
	static const struct randoms_case cases[] = {{5, 40, 25, 20, 1, 4}, {8, 40, 24, 5, 3, 7}, {8, 40, 25, 20, 2, 7}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f = make(&cases[i]);
		struct err err;

		make_truth(&f, 2, 0.5, 7);
		for (size_t k = 0; k < f.detectors; k++)
			f.r[k] *= 1000;
		assert_int_equal(randoms_from_singles(&f.m, f.r, 1e-6, f.found, NULL), 0);
		assert_true(error_of(&f, f.found) < 1e-6);
		f.r[45] = -1;
		assert_int_equal(randoms_from_singles(&f.m, f.r, 1e-6, f.found, &err), -EINVAL);
		assert_string_equal(err.msg, "singles of ring 1, crystal 5: -1; allowed: finite and at least 0");
	}
}

TEST(what_cannot_be_estimated_is_refused)
{
	static const struct randoms_case c = {5, 40, 25, 20, 1, 4};
	struct fixture f = make(&c);
	struct err err;

	assert_int_equal(randoms_from_delayeds(&f.m, f.counts, NULL, f.found, NULL, NULL, &err), -EDOM);
	assert_string_equal(err.msg, "there are no delayed coincidences");
	f.counts[2 * 500 + 3 * 25 + 4] = -1;
	assert_int_equal(randoms_from_delayeds(&f.m, f.counts, NULL, f.found, NULL, NULL, &err), -EINVAL);
	assert_string_equal(err.msg, "delayed coincidences: plane 2, angle 3, radial bin 4: -1; allowed: finite and at least 0");
	assert_int_equal(randoms_from_neighbours(&f.m, f.counts, NULL, f.found, NULL, &err), -EINVAL);
	f.m.arc_corrected = true;
	assert_error(randoms_from_delayeds(&f.m, f.counts, NULL, f.found, NULL, NULL, &err), &err, EINVAL,
		     "the bins of arc-corrected sinograms are not pairs of detectors");
	f.m.arc_corrected = false;
	f.m.n_angles = 6;
	assert_error(randoms_from_delayeds(&f.m, f.counts, NULL, f.found, NULL, NULL, &err), &err, EINVAL,
		     "6 angles of 40 detectors");
}

/* Means of neighbours keep the total of each plane and what is equal, and have less noise. */
TEST(neighbours_are_averaged)
{
	static const struct randoms_case c = {5, 80, 51, 40, 1, 4};
	struct fixture f = make(&c);
	size_t bins = 51 * 40;
	double before, after;

	for (size_t i = 0; i < f.bins; i++)
		f.expected[i] = (float)(i / bins);
	f.m.arc_corrected = true;
	assert_int_equal(randoms_from_neighbours(&f.m, f.expected, NULL, f.found, NULL, NULL), 0);
	for (size_t i = 0; i < f.bins; i++)
		assert_near((double)f.found[i], (double)f.expected[i], 1e-4);
	draw(&f, 9);
	before = error_of(&f, f.counts);
	assert_int_equal(randoms_from_neighbours(&f.m, f.counts, NULL, f.found, NULL, NULL), 0);
	after = error_of(&f, f.found);
	print_message("means: error %.4f before, %.4f after\n", before, after);
	assert_true(after < before / (RANDOMS_REACH + 1));
	for (size_t p = 0; p < f.bins / bins; p++) {
		double sum = 0, counts = 0;

		for (size_t i = p * bins; i < (p + 1) * bins; i++) {
			sum += (double)f.found[i];
			counts += (double)f.counts[i];
		}
		assert_near(sum, counts, 1e-5 * counts);
	}
}

/* A dead block has no randoms, and takes none from the bins around it. */
TEST(dead_bins_are_no_neighbours)
{
	static const struct randoms_case c = {5, 80, 51, 40, 1, 4};
	struct fixture f = make(&c);
	size_t bins = 51 * 40;
	float *factors = take_memory(f.bins * sizeof(*factors));
	double total;

	f.m.arc_corrected = true;
	for (size_t i = 0; i < f.bins; i++) {
		size_t radial = i % 51, angle = i % bins / 51;

		factors[i] = radial >= 20 && radial < 26 && angle < 22 ? 0 : 0.5f;
		f.counts[i] = factors[i] > 0 ? 3 : 0;
	}
	assert_int_equal(randoms_from_neighbours(&f.m, f.counts, factors, f.found, &total, NULL), 0);
	for (size_t i = 0; i < f.bins; i++)
		assert_near((double)f.found[i], (double)f.counts[i], 1e-4);
	assert_near(total, 3.0 * (double)(f.bins / bins) * (double)(bins - 6 * 22), 1);
}

/* Crystals that are not in coincidence, whatever their rings, have no randoms, and take none from the others: the estimate
 * without noise is the truth of the others, though their fans differ. */
TEST(crystals_not_in_coincidence_take_nothing)
{
	static const struct randoms_case cases[] = {{5, 40, 25, 20, 1, 4}, {8, 40, 25, 20, 3, 7}, {5, 40, 25, 10, 1, 4}};

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct fixture f = make(&cases[k]);
		size_t bins = (size_t)f.m.n_angles * (size_t)f.m.n_radial, n_radial = (size_t)f.m.n_radial;
		float *factors = take_memory(f.bins * sizeof(*factors));
		struct randoms_report report;
		double total = 0;

		make_truth(&f, 2, 0, 0);
		for (size_t i = 0; i < f.bins; i++) {
			size_t radial = i % n_radial, angle = i % bins / n_radial;

			factors[i] = radial < 3 + angle % 4 || (radial > 15 && angle < 3) ? 0 : 0.7f;
			f.expected[i] *= factors[i] > 0;
			total += (double)f.expected[i];
		}
		factors[bins + n_radial / 2] = 0; /* in one plane only: these crystals are in coincidence */
		assert_int_equal(randoms_from_delayeds(&f.m, f.expected, factors, f.found, f.r, &report, NULL), 0);
		print_message("case %zu: error %.2e\n", k, error_of(&f, f.found));
		assert_true(error_of(&f, f.found) < 1e-3);
		assert_near(report.total, total, 1e-4 * total);
		for (size_t i = 0; i < f.bins; i++)
			assert_true((f.found[i] > 0) == (f.expected[i] > 0));
		assert_int_equal(randoms_from_delayeds(&f.m, f.expected, NULL, f.found, NULL, NULL, NULL), 0);
		assert_true(error_of(&f, f.found) > 0.1);
	}
}
