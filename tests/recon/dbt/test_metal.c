/* SPDX-License-Identifier: Apache-2.0 */
/* Metal: clips are found at their places and calcifications are not; without the shadows of clips there are no streaks, and clips are
 * back in the slices; nothing changes where there is no metal. */
#include "recon/dbt/metal.h"

#include "recon/phantom/phantom.h"
#include "tests/kernels/devices_test.h"
#include "tests/recon/dbt/dbt_reconstruct.h"
#include "tests/recon/dbt_fixture.h"

#define N_U 100
#define N_V 300
#define PITCH 0.2
#define VIEWS 11
#define SUPPORT 17
#define SLICES 20
#define TITANIUM 7.1
#define BINS ((size_t)N_U * N_V)
#define VOXELS (BINS * SLICES)

static const struct shape tissue = {SHAPE_BOX, ROLE_BODY, {0, 0, SUPPORT + 10}, {40, 60, 10}, 0.05};
static const struct shape clips[] = {
	{SHAPE_ELLIPSOID, ROLE_METAL, {6.03, -7.1, 24.2}, {1.5, 0.25, 0.25}, TITANIUM},
	{SHAPE_ELLIPSOID, ROLE_METAL, {12.3, 2.0, 30.4}, {0.25, 1.5, 0.25}, TITANIUM},
	{SHAPE_ELLIPSOID, ROLE_METAL, {8.4, 8.5, 27.5}, {0.25, 0.25, 1.5}, TITANIUM},
};
#define CLIPS (sizeof clips / sizeof *clips)

/* Calcifications of 0.15 to 0.5 mm, single ones and a cluster, the densest that there are; a bead; one of 3 mm. */
#define BALL(x, y, z, r, mu)                                                                                                     \
	{                                                                                                                        \
		SHAPE_ELLIPSOID, ROLE_LESION, {x, y, z}, {r, r, r}, mu                                                           \
	}
static const struct shape calcifications[] = {
	BALL(4, -8, 22, 0.25, 2),      BALL(4, 0, 27, 0.2, 2),	    BALL(4, 8, 32, 0.15, 2),	  BALL(8, -8, 30, 0.1, 2),
	BALL(8, 0, 24, 0.075, 2),      BALL(12, 6, 27, 0.25, 1),    BALL(12.3, 6.4, 26, 0.25, 1), BALL(12.5, 5.8, 28, 0.25, 1),
	BALL(11.7, 6.3, 27.5, 0.2, 1), BALL(15, -4, 25, 0.55, 0.8), BALL(8, 4, 26, 1.5, 1.0),
};
#define CALCIFICATIONS (sizeof calcifications / sizeof *calcifications)

struct exam {
	struct scan *scan;
	float *line, *valid;
};

/* Make the projections of tissue with n shapes in it. */
static struct exam exam_of(const struct shape *shapes, size_t n, double ratio)
{
	struct exam e = {.scan = fixture_turning_scan(N_U, N_V, PITCH, VIEWS, ratio)};
	struct shape all[32] = {tissue};
	struct phantom phantom = {"metal", n + 1, all};

	if (n > 0)
		memcpy(all + 1, shapes, n * sizeof(*shapes));
	e.line = take_memory(VIEWS * BINS * sizeof(float));
	e.valid = fixture_floats(VIEWS * BINS, 1, 1, 1);
	for (int i = 0; i < VIEWS; i++)
		assert_int_equal(phantom_project(&phantom, e.scan, i, e.line + (size_t)i * BINS, NULL), 0);
	return e;
}

static const struct grid grid = {{N_U, N_V, SLICES}, {PITCH, PITCH, 1}, {0, -N_V *PITCH / 2, SUPPORT}};

static struct metal_report find(const struct exam *e, int *ret_sure)
{
	struct view_cells cells = view_cells_of(e->scan);
	float *mean = take_memory((size_t)cells.n_u * (size_t)cells.n_v * sizeof(*mean));
	struct metal_view views[VIEWS];
	signed char of[METAL_OBJECTS_MOST * VIEWS];
	struct metal_report report;

	*ret_sure = 0;
	for (int i = 0; i < VIEWS; i++) {
		const float *line = e->line + (size_t)i * BINS, *valid = e->valid + (size_t)i * BINS;

		view_cells_average(e->scan, &cells, true, line, valid, mean);
		assert_int_equal(metal_find(e->scan, &cells, mean, line, valid, &views[i], NULL), 0);
		for (int k = 0; k < views[i].n; k++)
			*ret_sure += views[i].shadow[k].sure;
	}
	metal_locate(e->scan, &grid, views, of, &report);
	for (int i = 0; i < VIEWS; i++)
		metal_release(&views[i]);
	return report;
}

TEST(clips_are_found)
{
	for (int turning = 0; turning < 2; turning++) {
		struct exam e = exam_of(clips, CLIPS, turning ? 0.285 : 0);
		int sure;
		struct metal_report r = find(&e, &sure);

		assert_int_equal(r.n, CLIPS);
		for (size_t i = 0; i < CLIPS; i++) {
			int best = 0;

			for (int k = 1; k < r.n; k++)
				if (fabs(r.object[k].at[1] - clips[i].c[1]) < fabs(r.object[best].at[1] - clips[i].c[1]))
					best = k;
			for (int c = 0; c < 3; c++)
				assert_near(r.object[best].at[c], clips[i].c[c], 0.1);
			assert_int_equal(r.object[best].of, VIEWS);
			assert_int_equal(r.object[best].views, VIEWS);
			assert_true(r.object[best].mu > 3);
		}
	}
}

TEST(calcifications_are_no_metal)
{
	struct exam e = exam_of(calcifications, CALCIFICATIONS, 0);
	int sure;

	assert_int_equal(find(&e, &sure).n, 0);
	assert_int_equal(sure, 0);
}

/* What one view alone shows has no place: here a shadow of a clip in one view. */
TEST(one_view_is_not_enough)
{
	struct exam e = exam_of(clips, 1, 0), without = exam_of(NULL, 0, 0);
	int sure;

	memcpy(e.line + BINS, without.line + BINS, (VIEWS - 1) * BINS * sizeof(float));
	assert_int_equal(find(&e, &sure).n, 0);
	assert_int_equal(sure, 1);
}

TEST(other_scans_are_refused)
{
	const struct scan parallel = {.kind = SCAN_PARALLEL, .n_u = 1, .n_v = 1};
	const struct view_cells cells = {.n_u = 1, .n_v = 1, .bins_u = 1, .bins_v = 1};
	const float one = 1;
	struct metal_view view;
	struct err err;

	assert_error(metal_find(&parallel, &cells, &one, &one, &one, &view, &err), &err, EINVAL, "not tomosynthesis");
}

/* ---- images ---- */

static const struct dbt_protocol osem = {.algorithm = ALGORITHM_OSEM,
					 .iterations = 1,
					 .relaxation = 0.5,
					 .prior_gamma = 2,
					 .filter = DBT_FILTER_HANN,
					 .filter_cut = 1,
					 .slice_spacing = 1,
					 .projector = PROJECTION_SLICES};

/* NULL: this build has no FFT, which the algorithm needs. */
static float *image_of(const struct exam *e, struct dbt_protocol p, enum dbt_metal metal, struct device *dev,
		       struct dbt_report *ret_report)
{
	float *x = take_memory(VOXELS * sizeof(*x));
	struct dbt_plan plan;
	struct err err = {0};
	int r;

	p.metal = metal;
	assert_done(dbt_plan(&p, e->scan, SUPPORT, SLICES, dev, &plan, &err), &err);
	assert_true(grid_size(&plan.grid) == VOXELS);
	r = dbt_reconstruct(&p, &plan, e->scan, dev, e->line, e->valid, NULL, x, ret_report, &err);
	if (!TOMONODE_FFT && r == -ENOTSUP)
		return NULL;
	assert_done(r, &err);
	return x;
}

static double voxel_at(const struct grid *g, int axis, size_t i)
{
	size_t index = axis == 0 ? i % N_U : axis == 1 ? i / N_U % N_V : i / BINS;

	return g->lo[axis] + ((double)index + 0.5) * g->h[axis];
}

/* Root of the mean square of the difference in the slices at least 3 mm from all clips. */
static double streaks(const float *x, const float *without)
{
	double sum = 0, n = 0;

	for (size_t i = 0; i < VOXELS; i++) {
		double z = voxel_at(&grid, 2, i), d = (double)x[i] - (double)without[i];
		bool away = true;

		for (size_t k = 0; k < CLIPS; k++)
			away = away && fabs(z - clips[k].c[2]) >= 3;
		sum += away ? d * d : 0;
		n += away;
	}
	return sqrt(sum / n);
}

/* Sum of the difference over a box of 2.5 mm around a clip: its attenuation times its volume. */
static double content(const float *x, const float *without, const struct shape *clip)
{
	double sum = 0;

	for (size_t i = 0; i < VOXELS; i++) {
		bool near = true;

		for (int c = 0; c < 3; c++)
			near = near && fabs(voxel_at(&grid, c, i) - clip->c[c]) <= 2.5;
		sum += near ? (double)x[i] - (double)without[i] : 0;
	}
	return sum * PITCH * PITCH;
}

static const struct {
	const char *name;
	enum algorithm algorithm;
} algorithms[] = {{"osem", ALGORITHM_OSEM}, {"ostr", ALGORITHM_OSTR}, {"sart", ALGORITHM_SART},
		  {"mlem", ALGORITHM_MLEM}, {"bp", ALGORITHM_BP},     {"fbp", ALGORITHM_FBP}};

TEST(no_streaks)
{
	struct device *dev = fixture_device(FIXTURE_POISON, 2);
	struct exam e = exam_of(clips, CLIPS, 0), none = exam_of(NULL, 0, 0);

	for (size_t k = 0; k < sizeof(algorithms) / sizeof(algorithms[0]); k++) {
		struct dbt_protocol p = osem;
		struct dbt_report report;
		float *without, *off, *reduced;
		double before, after;

		p.algorithm = algorithms[k].algorithm;
		p.iterations = p.algorithm == ALGORITHM_MLEM ? 5 : 1;
		without = image_of(&none, p, DBT_METAL_OFF, dev, NULL);
		if (!without)
			continue;
		off = image_of(&e, p, DBT_METAL_OFF, dev, &report);
		assert_true(!report.metal.asked && report.metal.n == 0);
		reduced = image_of(&e, p, DBT_METAL_REDUCE, dev, &report);
		assert_true(report.metal.asked);
		assert_int_equal(report.metal.n, CLIPS);
		before = streaks(off, without);
		after = streaks(reduced, without);
		print_message("%s: %.5f, %.5f\n", algorithms[k].name, before, after);
		for (size_t i = 0; i < CLIPS; i++) {
			double volume = 4 / 3.0 * M_PI * 0.25 * 0.25 * 1.5, found = content(reduced, without, &clips[i]);

			print_message("  clip %zu: %.3f of %.3f mm^2\n", i, found, TITANIUM * volume);
			assert_near(found / (TITANIUM * volume), 1, 0.2);
		}
		assert_true(after < 0.02 * before);
	}
}

/* Without metal the image has the same bits. */
TEST(nothing_changes_without_metal)
{
	struct device *dev = fixture_device(FIXTURE_POISON, 2);
	struct exam e = exam_of(calcifications, CALCIFICATIONS, 0);

	for (size_t k = 0; k < sizeof(algorithms) / sizeof(algorithms[0]); k++) {
		struct dbt_protocol p = osem;
		float *off, *on;

		p.algorithm = algorithms[k].algorithm;
		off = image_of(&e, p, DBT_METAL_OFF, dev, NULL);
		if (!off)
			continue;
		on = image_of(&e, p, DBT_METAL_REDUCE, dev, NULL);
		assert_memory_equal(off, on, VOXELS * sizeof(*off));
	}
}

/* Height of a speck above the tissue around it: its voxel, minus one 1.6 mm beside it along x. */
static double height_of(const float *x, const struct shape *speck)
{
	size_t index[3];

	for (int c = 0; c < 3; c++)
		index[c] = (size_t)((speck->c[c] - grid.lo[c]) / grid.h[c]);
	x += (index[2] * N_V + index[1]) * N_U + index[0];
	return (double)x[0] - (double)x[8];
}

/* A clip along y covers these in all views; the first one 2 mm below it, the other 3 mm above it. */
TEST(covered_specks_stay)
{
	static const struct shape specks[] = {BALL(12.31, 1.9, 28.5, 0.2, 1.0), BALL(12.31, 2.1, 33.5, 0.15, 1.5)};
	struct device *dev = fixture_device(FIXTURE_CPU, 2);

	for (int k = 0; k < 2; k++) {
		const struct shape both[] = {clips[1], specks[k]};
		struct exam e = exam_of(both, 2, 0), speck = exam_of(both + 1, 1, 0), clip = exam_of(both, 1, 0);
		float *expected = image_of(&speck, osem, DBT_METAL_OFF, dev, NULL),
		      *reduced = image_of(&e, osem, DBT_METAL_REDUCE, dev, NULL),
		      *empty = image_of(&clip, osem, DBT_METAL_REDUCE, dev, NULL);

		double height = height_of(expected, &specks[k]), clip_alone = height_of(empty, &specks[k]),
		       kept = height_of(reduced, &specks[k]) - clip_alone;

		print_message("%.3f of %.3f / mm, beside %.3f of the clip\n", kept, height, clip_alone);
		assert_true(height > 0.1);
		assert_near(kept / height, 1, 0.5); /* 0.03 if it is replaced with the shadow */
	}
}

TEST(slabs_have_the_same_image)
{
	struct device *dev = fixture_device(FIXTURE_POISON, 2);
	struct exam e = exam_of(clips, CLIPS, 0);
	struct dbt_protocol p = osem;
	struct dbt_plan plan;
	float *whole = image_of(&e, p, DBT_METAL_REDUCE, dev, NULL), *slabs;

	p.metal = DBT_METAL_REDUCE;
	assert_int_equal(dbt_plan(&p, e.scan, SUPPORT, SLICES, dev, &plan, NULL), 0);
	p.memory_limit = plan.bytes.total * 6 / 10;
	assert_int_equal(dbt_plan(&p, e.scan, SUPPORT, SLICES, dev, &plan, NULL), 0);
	assert_true(plan.slab_slices < plan.grid.n[2]);
	slabs = image_of(&e, p, DBT_METAL_REDUCE, dev, NULL);
	assert_true(fixture_difference(slabs, whole, VOXELS) <= 1e-5); /* as without metal: tests/recon/dbt/test_stream.c */
}

ON_DEVICES(images_of_devices, dev)
{
	struct device *cpu = fixture_device(FIXTURE_CPU, 2);
	struct exam e = exam_of(clips, CLIPS, 0);
	float *expected = image_of(&e, osem, DBT_METAL_REDUCE, cpu, NULL),
	      *found = image_of(&e, osem, DBT_METAL_REDUCE, dev, NULL);

	assert_true(fixture_difference(found, expected, VOXELS) <= 1e-4); /* that of test_cuda.c */
}

/* A view that is passed again replaces its shadows. */
TEST(views_are_passed_again)
{
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	struct exam e = exam_of(clips, CLIPS, 0), none = exam_of(NULL, 0, 0);
	struct dbt_protocol p = osem;
	struct dbt_report report;
	struct dbt_session *s;
	struct dbt_plan plan;

	p.metal = DBT_METAL_REDUCE;
	assert_int_equal(dbt_plan(&p, e.scan, SUPPORT, SLICES, dev, &plan, NULL), 0);
	assert_int_equal(dbt_open(&p, &plan, e.scan, dev, &s, NULL), 0);
	for (int again = 0; again < 2; again++)
		for (int i = 0; i < VIEWS; i++) {
			float *line, *valid;

			if (again)
				assert_int_equal(dbt_view_withdraw(s, i, NULL), 0);
			assert_int_equal(dbt_view_begin(s, i, &line, &valid, NULL), 0);
			memcpy(line, (again ? none : e).line + (size_t)i * BINS, BINS * sizeof(*line));
			memcpy(valid, e.valid, BINS * sizeof(*valid));
			assert_int_equal(dbt_view_end(s, i, NULL), 0);
		}
	assert_int_equal(dbt_run(s, NULL, &report, NULL), 0);
	assert_int_equal(report.metal.n, 0);
	dbt_close(s);
}
