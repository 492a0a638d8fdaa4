/* SPDX-License-Identifier: Apache-2.0 */
/* From frames of a detector to line integrals: known line integrals come back from flat fields that drift, dark fields and dead
 * bins; what is refused. */
#include "recon/parallel/parallel_flat.h"
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
	float *x = malloc((size_t)frames.n * RADIAL * sizeof(*x));
	int frame = 0, view = 0;

	assert_non_null(x);
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

	assert_int_equal(parallel_flat_check(&frames, &scan, NULL), 0);
	assert_int_equal(parallel_flat_lines(&frames, &scan, 0, x, lines, &report, NULL), 0);
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
	free(x);
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

		for (int frame = 0; frame < frames.n; frame++) {
			float *at = x + frame * RADIAL;

			for (int t = 0; t < RADIAL; t++) /* even, so that the median of the neighbours is known */
				at[t] = (float)(frame < 3 ? 100 : 1100);
			at[5] = (float)(frame < 3 ? 100 : 100 + 1000 * cases[i].factor);
		}
		assert_int_equal(parallel_flat_lines(&frames, &scan, 0, x, lines, &report, NULL), 0);
		assert_int_equal(report.dead, cases[i].dead);
		for (int j = 0; j < 14 * RADIAL; j++)
			assert_near(lines[j], 0, 1e-6);
		free(x);
	}
}

TEST(refusals)
{
	const struct parallel_run none[] = {{PARALLEL_FRAME_DARK, 16}, {PARALLEL_FRAME_VIEW, 14}},
				  empty[] = {{PARALLEL_FRAME_FLAT, 0}}, odd[] = {{PARALLEL_FRAME_KINDS, 1}};
	const struct parallel_frames fewer = {30, 7, runs}, no_flat = {30, 2, none}, no_frames = {0, 1, empty},
				     unknown = {1, 1, odd};
	struct parallel_flat_report report = {0};
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
	assert_error(parallel_flat_lines(&frames, &scan, 4, x, lines, &report, &err), &err, EBADMSG, "slice 4: frame 8 ");
	free(x);
	x = make_frames();
	for (int i = 0; i < frames.n * RADIAL; i++) /* no bin is like its neighbours: frames in another order */
		x[i] = i < 3 * RADIAL ? 100 : 100 + powf(30, (float)(i % RADIAL % 4));
	assert_error(parallel_flat_lines(&frames, &scan, 4, x, lines, &report, &err), &err, EBADMSG,
		     "[slice][frame][radial bin]");
	memset(x, 0, (size_t)frames.n * RADIAL * sizeof(*x));
	assert_error(parallel_flat_lines(&frames, &scan, 4, x, lines, &report, &err), &err, EBADMSG, "no light");
	free(x);
}
