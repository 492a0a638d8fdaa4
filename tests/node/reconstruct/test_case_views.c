/* SPDX-License-Identifier: Apache-2.0 */
/* Test the parallel reading of views: the image does not depend on the number of threads; errors and cancelling while readers
 * run. */
#include "tests/node/tomo/exam_edits.h"
#include "tests/test.h"

#include "kernels/device.h"
#include "node/reconstruct/case_views.h"

#define VOXELS ((size_t)COLUMNS * ROWS * 4) /* 12 mm in slices of 3 */

struct one {
	struct exam *exam;
	struct device *dev;
	struct dbt_protocol protocol;
	struct dbt_plan plan;
	struct dbt_session *session;
};

static void begin(struct one *o, int files)
{
	struct err err = {0};

	*o = (struct one){.protocol = config_protocol(fixture_config, "dbt-osem")->dbt};
	o->protocol.voxel = 1;
	o->protocol.slice_spacing = 3;
	o->protocol.deterministic = true;
	if (fixture_open(files, &o->exam, &err) < 0 || device_open("cpu:1", &o->dev, &err) < 0 ||
	    dbt_plan(&o->protocol, o->exam->scan, o->exam->support, o->exam->thickness, o->dev, &o->plan, &err) < 0 ||
	    dbt_open(&o->protocol, &o->plan, o->exam->scan, o->dev, &o->session, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(grid_size(&o->plan.grid), VOXELS);
}

static void end(struct one *o)
{
	dbt_close(o->session);
	device_close(o->dev);
}

static void image(int files, int threads, bool mask, bool scatter, float ret_volume[VOXELS], struct case_views_report *ret_report)
{
	struct err err = {0};
	struct one o;

	begin(&o, files);
	o.protocol.breast_mask = mask;
	o.protocol.scatter = scatter;
	if (case_read_views(o.exam, &o.protocol, &o.plan, o.session, threads, NULL, NULL, ret_report, &err) < 0 ||
	    dbt_run(o.session, NULL, NULL, &err) < 0 || dbt_read_slices(o.session, 0, o.plan.grid.n[2], ret_volume, &err) < 0)
		fail_msg("%s", err.msg);
	end(&o);
}

/* Single-frame files and frames of one file give the same image with any number of threads. */
TEST(test_any_number)
{
	static const int threads[] = {-1, 1, 2, 3, 5, 16, 1000};
	static float want[VOXELS], have[VOXELS];
	struct case_views_report report;

	for (int multi = 0; multi < 2; multi++) {
		if (multi)
			fixture_write_bp(NULL);
		else
			fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS});
		for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]); i++) {
			image(multi ? 1 : N_VIEWS, threads[i], false, false, i == 0 ? want : have, &report);
			if (i > 0)
				assert_memory_equal(have, want, sizeof(want));
			assert_int_equal(report.padded + report.saturated + report.air, 0);
			assert_int_equal(report.unmasked, 0); /* not asked for */
			assert_true(report.seconds_read > 0 && report.seconds_prepare > 0 && report.seconds_upload >= 0);
		}
		assert_true(want[VOXELS / 2] > 0);
	}
}

/* The brightest corner of the fixture is opposite the chest wall: the mask treats it as air. */
TEST(test_mask)
{
	static float with[VOXELS], without[VOXELS];
	struct case_views_report report;

	fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS});
	image(N_VIEWS, 2, false, false, without, &report);
	assert_int_equal(report.air, 0);
	image(N_VIEWS, 2, true, false, with, &report);
	assert_true(report.air > 0 && report.air < (size_t)N_VIEWS * COLUMNS * ROWS / 2);
	assert_int_equal(report.unmasked, 0);
	assert_memory_not_equal(with, without, sizeof(with));
}

/* Scatter is subtracted if the protocol says so, with any number of threads the same. */
TEST(test_scatter)
{
	static float with[VOXELS], without[VOXELS], again[VOXELS];
	struct case_views_report report;
	double sum[2] = {0, 0};

	fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS});
	image(N_VIEWS, 2, true, false, without, &report);
	assert_true(report.scatter_mean == 0 && report.scatter_least == 0 && report.scatter_most == 0);
	image(N_VIEWS, 2, true, true, with, &report);
	assert_true(report.scatter_least > 0 && report.scatter_least <= report.scatter_mean);
	assert_true(report.scatter_mean <= report.scatter_most && report.scatter_most < 1);
	image(N_VIEWS, 5, true, true, again, &report);
	assert_memory_equal(with, again, sizeof(with));
	for (size_t i = 0; i < VOXELS; i++) {
		sum[0] += (double)without[i];
		sum[1] += (double)with[i];
	}
	assert_true(sum[1] > 1.005 * sum[0]);
}

/* Air of 3000 in the outer half of the columns of all views but the third. */
static void part_air(int view, uint16_t values[ROWS * COLUMNS])
{
	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < COLUMNS; j++)
			values[i * COLUMNS + j] =
				(uint16_t)(view != 2 && j >= COLUMNS / 2 ? 3000 : 400 + 3 * ((i + j + view) % 7));
}

/* Pass each view once, with the I0 that was decided. */
static void read_decided(struct one *o)
{
	static uint16_t raw[ROWS * COLUMNS];
	struct err err = {0};
	float *line, *valid;

	for (int i = 0; i < N_VIEWS; i++) {
		struct prep prep = exam_view_prep(o->exam, &o->exam->i0[i]);

		prep.bin = o->plan.bin;
		if (exam_read_view(o->exam, i, raw, &err) < 0 || dbt_view_begin(o->session, i, &line, &valid, &err) < 0 ||
		    prep_view(&prep, raw, line, valid, NULL, &err) < 0 || dbt_view_end(o->session, i, &err) < 0)
			fail_msg("%s", err.msg);
	}
}

/* A view without air is first converted with a value of the object as I0, then with the air of the other views: nothing of the
 * first remains. */
TEST(test_changed_i0)
{
	static float have[VOXELS], want[VOXELS];
	static const struct edit model[] = {{-1, TAG_MANUFACTURER_MODEL_NAME, "Part"}, {0}};
	struct fixture_mg files = {.n = N_VIEWS, .change = edit, .ctx = model, .pixels = part_air};
	struct case_views_report report;
	struct err err = {0};

	fixture_write_mg(&files);
	for (int threads = 1; threads <= 4; threads += 3) {
		struct one o, decided;

		begin(&o, N_VIEWS);
		o.protocol.breast_mask = false;
		assert_int_equal(case_read_views(o.exam, &o.protocol, &o.plan, o.session, threads, NULL, NULL, &report, &err), 0);
		for (int i = 0; i < N_VIEWS; i++)
			assert_true(o.exam->i0[i].i0 == 3000 && o.exam->i0[i].source == (i == 2 ? I0_OF_OTHERS : I0_OF_VIEW));
		assert_int_equal(report.clamped + report.floored, 0); /* counted once, with the decided I0 */
		assert_int_equal(dbt_run(o.session, NULL, NULL, &err), 0);
		assert_int_equal(dbt_read_slices(o.session, 0, o.plan.grid.n[2], have, &err), 0);

		begin(&decided, N_VIEWS);
		decided.exam->i0 = o.exam->i0;
		read_decided(&decided);
		decided.exam->i0 = NULL;
		assert_int_equal(dbt_run(decided.session, NULL, NULL, &err), 0);
		assert_int_equal(dbt_read_slices(decided.session, 0, o.plan.grid.n[2], want, &err), 0);
		assert_memory_equal(have, want, sizeof(want));
		end(&decided);
		end(&o);
	}
}

static void third_twice(int view, uint16_t values[ROWS * COLUMNS])
{
	part_air(view == 4 ? 3 : view, values);
}

/* One image under two UIDs and two angles. */
TEST(test_one_image_twice)
{
	struct case_views_report report;
	struct err err = {0};
	struct one o;

	fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS, .pixels = third_twice});
	begin(&o, N_VIEWS);
	assert_error(case_read_views(o.exam, &o.protocol, &o.plan, o.session, 2, NULL, NULL, &report, &err), &err, EBADMSG,
		     "3.dcm");
	assert_non_null(strstr(err.msg, "4.dcm"));
	assert_non_null(strstr(err.msg, "have the same pixels at"));
	end(&o);
}

static void refused_read(int threads, int code, const char *part)
{
	struct case_views_report report = {.unmasked = 7};
	struct err err = {0};
	struct one o;

	begin(&o, N_VIEWS);
	assert_int_equal(truncate(fixture_path("3.dcm"), 2200), 0); /* within the pixels, after the headers are read */
	assert_int_equal(case_read_views(o.exam, &o.protocol, &o.plan, o.session, threads, NULL, NULL, &report, &err), -code);
	if (err.code != code || !strstr(err.msg, part))
		fail_msg("'%s' does not hold '%s'", err.msg, part);
	assert_int_equal(report.unmasked, 7); /* untouched */
	end(&o);
}

TEST(test_a_reader_fails)
{
	for (int threads = 1; threads <= 5; threads += 2) {
		fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS});
		refused_read(threads, EIO, "3.dcm");
	}
}

TEST(test_wrong_plan)
{
	struct case_views_report report;
	struct err err = {0};
	struct one o;

	fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS});
	begin(&o, N_VIEWS);
	o.plan.n_views--;
	assert_int_equal(case_read_views(o.exam, &o.protocol, &o.plan, o.session, 2, NULL, NULL, &report, &err), -EINVAL);
	o.plan.n_views++;
	end(&o);
}

struct stop {
	int asked, after;
	double last;
};

static bool is_cancelled(void *ctx)
{
	struct stop *s = ctx;

	return s->asked++ >= s->after;
}

static void on_progress(void *ctx, const char *stage, double fraction)
{
	struct stop *s = ctx;

	assert_string_equal(stage, "read");
	assert_true(fraction >= s->last && fraction <= 1);
	s->last = fraction;
}

TEST(test_cancel)
{
	fixture_write_mg(&(struct fixture_mg){.n = N_VIEWS});
	for (int after = 0; after < 2; after++) {
		struct stop stop = {.after = after};
		struct monitor monitor = {.ctx = &stop, .progress = on_progress, .cancelled = is_cancelled};
		struct case_views_report report;
		struct err err = {0};
		struct one o;
		int rc;

		begin(&o, N_VIEWS);
		rc = case_read_views(o.exam, &o.protocol, &o.plan, o.session, 2, &monitor, NULL, &report, &err);
		if (after == 0 || rc < 0) { /* the second time, readers may finish before the first check */
			assert_int_equal(rc, -ECANCELED);
			assert_non_null(strstr(err.msg, "cancelled"));
		}
		end(&o);
	}
}

TESTS_SETUP(fixture_start, fixture_stop);
