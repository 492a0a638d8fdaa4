/* SPDX-License-Identifier: Apache-2.0 */
/* From frames of a detector to line integrals: known line integrals come back from flat fields that drift, dark fields and dead
 * bins; hot and flickering bins and hits are found; what is refused. */
#include "recon/parallel/parallel_flat.h"
#include "recon/phantom/poisson.h"
#include "tests/recon/parallel/parallel_fixture.h"
#include "tests/test.h"

enum { RADIAL = 60, DEAD = 17, HOT = 59, NO_SIGNAL_VIEW = 3, NO_SIGNAL = 40 };

static const struct parallel_run runs[] = {{PARALLEL_FRAME_DARK, 3}, {PARALLEL_FRAME_FLAT, 4},	 {PARALLEL_FRAME_VIEW, 7},
					   {PARALLEL_FRAME_FLAT, 2}, {PARALLEL_FRAME_UNUSED, 1}, {PARALLEL_FRAME_VIEW, 5},
					   {PARALLEL_FRAME_FLAT, 6}, {PARALLEL_FRAME_VIEW, 2}};
static const struct parallel_frames frames = {30, 8, runs};
static const struct parallel_scan scan = {.n_slices = 1, .n_angles = 14, .n_radial = RADIAL, .bin = 1, .slice = 1, .arc = 180};

static double dark_of(int t)
{
	return 90 + t;
}

/* The open beam of a frame: linear from run to run of the flat fields, whose middles are the frames 4.5, 14.5 and 24.5; constant
 * after the last one. */
static double open_of(double frame, int t)
{
	double drift = frame < 14.5 ? 0.02 * (frame - 4.5) : 0.2 - 0.03 * (fmin(frame, 24.5) - 14.5);

	return (3000 + 20 * t) * (1 + drift);
}

static double line_of(int view, int t)
{
	return 2 * exp(-pow((t - 30 + view) / 8.0, 2)) - 0.01; /* air is below 0, as with noise */
}

static float *make_frames(void)
{
	float *x = take_memory((size_t)frames.n * RADIAL * sizeof(*x));
	int frame = 0, view = 0;

	for (int i = 0; i < frames.n_runs; i++)
		for (int j = 0; j < runs[i].n; j++, frame++) {
			for (int t = 0; t < RADIAL; t++) {
				double light = 0, open = open_of(frame, t) * (t == DEAD ? 0.19 : t == HOT ? 5.1 : 1);

				if (runs[i].kind == PARALLEL_FRAME_FLAT) /* flat fields of a run differ; their mean counts */
					light = open_of(frame - j + 0.5 * (runs[i].n - 1), t) * open / open_of(frame, t) *
						(1 + 0.001 * (j - 0.5 * (runs[i].n - 1)));
				else if (runs[i].kind == PARALLEL_FRAME_VIEW)
					light = open * exp(-line_of(view, t));
				if (runs[i].kind == PARALLEL_FRAME_VIEW && view == NO_SIGNAL_VIEW && t == NO_SIGNAL)
					light = 0.99e-4 * open;
				x[frame * RADIAL + t] = runs[i].kind == PARALLEL_FRAME_UNUSED ? NAN : (float)(dark_of(t) + light);
			}
			view += runs[i].kind == PARALLEL_FRAME_VIEW;
		}
	assert_int_equal(frame, frames.n);
	assert_int_equal(view, scan.n_angles);
	return x;
}

/* Intensities of 3000 in float32 with a dark field of 100: ln is right to 1e-6 where a tenth arrives. */
TEST(lines_come_back)
{
	float *x = make_frames(), lines[14 * RADIAL];
	struct parallel_flat_report report = {0};
	struct parallel_gaps gaps = {0};

	assert_int_equal(parallel_flat_check(&frames, &scan, NULL), 0);
	assert_int_equal(parallel_flat_lines(&frames, &scan, 0, x, lines, &gaps, &report, NULL), 0);
	for (int a = 0; a < scan.n_angles; a++)
		for (int t = 0; t < RADIAL; t++) {
			double want = line_of(a, t);

			if (t == DEAD)
				want = 0.5 * (line_of(a, t - 1) + line_of(a, t + 1));
			else if (t == HOT) /* the last bin: there is none beyond it */
				want = line_of(a, t - 1);
			else if (a == NO_SIGNAL_VIEW && t == NO_SIGNAL)
				want = log(1e4);
			assert_near(lines[a * RADIAL + t], want, 2e-6);
		}
	assert_int_equal(report.n_flat, 12);
	assert_int_equal(report.n_dark, 3);
	assert_int_equal(report.dead, 2);
	assert_int_equal(report.dark, 1);
	assert_int_equal(report.bins, RADIAL);
	assert_int_equal(report.values, 14 * RADIAL);
	assert_int_equal(gaps.n, 2);
	parallel_gaps_release(&gaps);
}

/* A fifth and five times the light of the neighbours are a measurement; no light and NaN are none. */
TEST(dead_bins)
{
	static const struct {
		double factor;
		size_t dead;
	} cases[] = {{0.205, 0}, {0.195, 1}, {4.9, 0}, {5.1, 1}, {0, 1}, {NAN, 1}, {-1, 1}};
	float lines[14 * RADIAL];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		float *x = make_frames();
		struct parallel_flat_report report = {0};
		struct parallel_gaps gaps = {0};

		for (int frame = 0; frame < frames.n; frame++) {
			float *at = x + frame * RADIAL;

			for (int t = 0; t < RADIAL; t++) /* even, so that the median of the neighbours is known */
				at[t] = (float)(frame < 3 ? 100 : 1100);
			at[5] = (float)(frame < 3 ? 100 : 100 + 1000 * cases[i].factor);
		}
		assert_int_equal(parallel_flat_lines(&frames, &scan, 0, x, lines, &gaps, &report, NULL), 0);
		assert_int_equal(report.dead, cases[i].dead);
		assert_int_equal(report.hot + report.noisy + report.hits, 0);
		parallel_gaps_release(&gaps);
		for (int j = 0; j < 14 * RADIAL; j++)
			assert_near(lines[j], 0, 1e-6);
	}
}

/* A detector with the noise of photons, of a body that turns: what is planted is found, and nothing else. */
enum { BINS = 300, VIEWS = 90, FLATS = 8, DARKS = 6, ROWS = 10, FRAMES = DARKS + FLATS + VIEWS };

enum plant { CLEAN, FLICKERS, JUMPS, HOT_DARK, NOISY_DARK, STUCK, HIT, WIDE_HIT, HIT_IN_FLAT, HIT_IN_DARK, PLANTS };

static const struct parallel_run detector_runs[] = {
	{PARALLEL_FRAME_DARK, DARKS}, {PARALLEL_FRAME_FLAT, FLATS}, {PARALLEL_FRAME_VIEW, VIEWS}};
static const struct parallel_frames detector_frames = {FRAMES, 3, detector_runs};
static const struct parallel_scan detector_scan = {
	.n_slices = ROWS, .n_angles = VIEWS, .n_radial = BINS, .bin = 1, .slice = 1, .arc = 180};

static double body_line(int view, int t)
{
	double turn = view * 3.14159265358979 / VIEWS, y = 0;
	const struct {
		double x, y, r, mu;
	} discs[] = {{0, 10, 90, 0.008}, {40, -20, 12, 0.03}, {-60, 5, 3, 0.1}, {2, 1, 2, -0.008}};

	for (int i = 0; i < 4; i++) {
		double s = t - 149.5 - discs[i].x * cos(turn) - discs[i].y * sin(turn), h = discs[i].r * discs[i].r - s * s;

		y += h > 0 ? 2 * discs[i].mu * sqrt(h) : 0;
	}
	return y;
}

enum { PLANTED = 120, PLANTED_VIEW = 33 };

static double planted_value(enum plant plant, enum parallel_frame kind, int number, int t, double dark, double light, uint64_t i)
{
	double value = dark + light, random = (double)(poisson_hash(i) % 1000) / 1000;
	bool own = t == PLANTED;

	if (plant == FLICKERS && own && kind == PARALLEL_FRAME_VIEW)
		value += 4000 * (random - 0.5);
	else if (plant == JUMPS && own && random < 0.3)
		value += 3000;
	else if (plant == HOT_DARK && own)
		value += 2600;
	else if (plant == NOISY_DARK && own && kind == PARALLEL_FRAME_DARK)
		value += 500 * random;
	else if (plant == STUCK && own && kind != PARALLEL_FRAME_DARK)
		value = 9000;
	else if (plant == HIT && own && kind == PARALLEL_FRAME_VIEW && number == PLANTED_VIEW)
		value += 2500;
	else if (plant == WIDE_HIT && (own || t == PLANTED + 1) && kind == PARALLEL_FRAME_VIEW && number == PLANTED_VIEW)
		value += 2500;
	else if (plant == HIT_IN_FLAT && own && kind == PARALLEL_FRAME_FLAT && number == 3)
		value += 8000;
	else if (plant == HIT_IN_DARK && own && kind == PARALLEL_FRAME_DARK && number == 3)
		value += 8000;
	return value;
}

static void make_row(enum plant plant, int row, float *ret)
{
	uint64_t i = (uint64_t)row * FRAMES * BINS;
	int frame = 0;

	for (int run = 0; run < 3; run++)
		for (int n = 0; n < detector_runs[run].n; n++, frame++)
			for (int t = 0; t < BINS; t++, i++) {
				enum parallel_frame kind = detector_runs[run].kind;
				double open = 10000 * (1 + 0.1 * sin(t * 1.7)), offset = plant == STUCK ? 0 : 100 + t % 7;
				double light = kind == PARALLEL_FRAME_DARK   ? 0
					       : kind == PARALLEL_FRAME_FLAT ? open
									     : open * exp(-body_line(n, t));

				light = poisson_draw(light, poisson_stream(5, i));
				offset += plant == STUCK ? 0 : poisson_draw(9, poisson_stream(6, i));
				ret[frame * BINS + t] =
					(float)planted_value(plant, kind, n, t, offset, light, poisson_stream(7, i));
			}
}

TEST(planted_faults_are_found)
{
	static const struct {
		const char *name;
		size_t hot, noisy, hits;
	} expected[PLANTS] = {
		[CLEAN] = {"clean", 0, 0, 0},
		[FLICKERS] = {"flickers", 0, 1, 0},
		[JUMPS] = {"jumps", 0, 1, 0},
		[HOT_DARK] = {"hot in the dark field", 1, 0, 0},
		[NOISY_DARK] = {"noise in the dark fields", 0, 1, 0},
		[STUCK] = {"stuck, not in the dark fields", 1, 0, 0},
		[HIT] = {"hit", 0, 0, 1},
		[WIDE_HIT] = {"hit of two bins", 0, 0, 2},
		[HIT_IN_FLAT] = {"hit in a flat field", 0, 0, 0},
		[HIT_IN_DARK] = {"hit in a dark field", 0, 0, 0},
	};
	float *x = take_memory(sizeof(*x) * FRAMES * BINS), *lines = take_memory(sizeof(*lines) * VIEWS * BINS);

	for (enum plant plant = CLEAN; plant < PLANTS; plant++) {
		struct parallel_flat_report report = {0};
		struct parallel_gaps gaps = {0};
		int rows = plant == CLEAN ? ROWS : 3;
		double worst = 0, mean = 0;

		for (int row = 0; row < rows; row++) {
			make_row(plant, row, x);
			assert_int_equal(
				parallel_flat_lines(&detector_frames, &detector_scan, row, x, lines, &gaps, &report, NULL), 0);
			for (int a = 0; a < VIEWS; a++) {
				double error = lines[a * BINS + PLANTED] - body_line(a, PLANTED);

				worst = fmax(worst, fabs(error));
				mean += error / (rows * VIEWS);
			}
		}
		if (report.dead || report.hot != (size_t)rows * expected[plant].hot ||
		    report.noisy != (size_t)rows * expected[plant].noisy || report.hits != (size_t)rows * expected[plant].hits)
			fail_msg("%s, %d rows: %zu dead, %zu hot, %zu noisy, %zu hits", expected[plant].name, rows, report.dead,
				 report.hot, report.noisy, report.hits);
		assert_int_equal(gaps.n, report.hot + report.noisy + report.hits);
		print_message("%s: %.3f, mean %.4f\n", expected[plant].name, worst, mean);
		for (size_t i = 0; i < gaps.n; i++) {
			assert_int_equal(gaps.gap[i].slice, i * (size_t)rows / gaps.n);
			assert_in_range(gaps.gap[i].bin, PLANTED, plant == WIDE_HIT ? PLANTED + 1 : PLANTED);
			assert_int_equal(gaps.gap[i].view, expected[plant].hits ? PLANTED_VIEW : -1);
		}
		assert_true(worst < 0.25);	/* noise of 3 % behind the body, edges between bins; planted: 0.3 and more */
		assert_true(fabs(mean) < 0.02); /* hits in a flat or dark field: 0.09 and more */
		parallel_gaps_release(&gaps);
	}
}

TEST(refusals)
{
	const struct parallel_run none[] = {{PARALLEL_FRAME_DARK, 16}, {PARALLEL_FRAME_VIEW, 14}},
				  empty[] = {{PARALLEL_FRAME_FLAT, 0}}, odd[] = {{PARALLEL_FRAME_KINDS, 1}};
	const struct parallel_frames fewer = {30, 7, runs}, no_flat = {30, 2, none}, no_frames = {0, 1, empty},
				     unknown = {1, 1, odd};
	struct parallel_flat_report report = {0};
	struct parallel_gaps gaps = {0};
	struct parallel_scan more = scan;
	float *x = make_frames(), lines[14 * RADIAL];
	struct err err;

	more.n_angles = 15;
	assert_int_equal(parallel_flat_check(&frames, &more, NULL), -EINVAL);
	assert_int_equal(parallel_flat_check(&fewer, &scan, NULL), -EINVAL);
	assert_int_equal(parallel_flat_check(&no_flat, &scan, NULL), -EINVAL);
	assert_int_equal(parallel_flat_check(&no_frames, &scan, NULL), -EINVAL);
	assert_int_equal(parallel_flat_check(&unknown, &scan, NULL), -EINVAL);
	x[8 * RADIAL + 11] = NAN; /* a view */
	assert_error(parallel_flat_lines(&frames, &scan, 4, x, lines, &gaps, &report, &err), &err, EBADMSG, "slice 4: frame 8 ");
	x = make_frames();
	for (int i = 0; i < frames.n * RADIAL; i++) /* no bin is like its neighbours: frames in another order */
		x[i] = i < 3 * RADIAL ? 100 : 100 + powf(30, (float)(i % RADIAL % 4));
	assert_error(parallel_flat_lines(&frames, &scan, 4, x, lines, &gaps, &report, &err), &err, EBADMSG,
		     "[slice][frame][radial bin]");
	memset(x, 0, (size_t)frames.n * RADIAL * sizeof(*x));
	assert_error(parallel_flat_lines(&frames, &scan, 4, x, lines, &gaps, &report, &err), &err, EBADMSG, "no light");
	parallel_gaps_release(&gaps);
}
