/* SPDX-License-Identifier: Apache-2.0 */
/* Behaviour of a session: views in any order from several threads, invalid calls, slices in any order, its histogram, cancelling,
 * and failing devices: resident and streamed. */
#include <pthread.h>
#include <stdatomic.h>

#include "recon/dbt/inside.h"
#include "tests/recon/dbt/case_fixture.h"
#include "tests/recon/faulty_device.h"
#include "tests/test.h"

enum { RESIDENT, STREAMED, WAYS };

/* The objects that every test of this file uses. */
struct work {
	struct test_case c;
	struct dbt_protocol p;
	struct device *dev;
	struct dbt_plan plan;
	struct dbt_session *s;
	size_t slice; /* voxels */
};

TEST_GIVES_BACK(dbt_close);

static void work_open(struct work *w, int way, int device)
{
	*w = (struct work){.c = case_open(), .p = case_protocol, .dev = fixture_device(device, 2)};
	w->plan = case_plan(&w->c, &w->p, w->dev);
	if (way == STREAMED)
		w->plan.slab_slices = 4;
	w->slice = (size_t)w->plan.grid.n[0] * (size_t)w->plan.grid.n[1];
	assert_int_equal(dbt_open(&w->p, &w->plan, w->c.scan, w->dev, &w->s, NULL), 0);
	test_later(give_back_dbt_close, w->s);
}

static int add_view(struct work *w, int view, struct err *err)
{
	float *line, *valid;
	int r = dbt_view_begin(w->s, view, &line, &valid, err);

	if (r < 0)
		return r;
	memcpy(line, w->c.line + (size_t)view * w->c.view_bins, w->c.view_bins * sizeof(*line));
	memcpy(valid, w->c.valid + (size_t)view * w->c.view_bins, w->c.view_bins * sizeof(*valid));
	return dbt_view_end(w->s, view, err);
}

static void add_all_views(struct work *w)
{
	for (int i = 0; i < CASE_VIEWS; i++)
		assert_int_equal(add_view(w, i, NULL), 0);
}

static float *whole_result(struct work *w)
{
	float *x = take_memory(grid_size(&w->plan.grid) * sizeof(*x));

	assert_int_equal(dbt_read_slices(w->s, 0, CASE_SLICES, x, NULL), 0);
	return x;
}

struct crowd {
	struct work *w;
	int order[CASE_VIEWS];
	atomic_int next, failed;
};

static void *bring_views(void *arg)
{
	struct crowd *crowd = arg;
	int i;

	while ((i = atomic_fetch_add(&crowd->next, 1)) < CASE_VIEWS)
		if (add_view(crowd->w, crowd->order[i], NULL) < 0)
			atomic_fetch_add(&crowd->failed, 1);
	return NULL;
}

/* The result is bitwise equal for any order of views and any number of threads. */
TEST(any_order_from_threads)
{
	uint32_t seed = 1;

	for (int way = 0; way < WAYS; way++) {
		TEST_BLOCK;
		float *expected;
		struct work w;

		work_open(&w, way, FIXTURE_CPU);
		add_all_views(&w);
		assert_int_equal(dbt_run(w.s, NULL, NULL, NULL), 0);
		expected = whole_result(&w);
		for (int round = 0; round < 12; round++) {
			TEST_BLOCK;
			struct crowd crowd = {.w = &w};
			pthread_t thread[4];
			float *found;

			work_open(&w, way, round % 2 ? FIXTURE_POISON : FIXTURE_CPU);
			for (int i = 0; i < CASE_VIEWS; i++) { /* a random permutation */
				int j = (int)(fixture_random(&seed) * (float)(i + 1));

				crowd.order[i] = crowd.order[j];
				crowd.order[j] = i;
			}
			for (int i = 0; i < 4; i++)
				assert_int_equal(pthread_create(&thread[i], NULL, bring_views, &crowd), 0);
			for (int i = 0; i < 4; i++)
				assert_int_equal(pthread_join(thread[i], NULL), 0);
			assert_int_equal(crowd.failed, 0);
			assert_int_equal(dbt_run(w.s, NULL, NULL, NULL), 0);
			found = whole_result(&w);
			assert_memory_equal(found, expected, grid_size(&w.plan.grid) * sizeof(*found));
		}
	}
}

static void *bring_one(void *arg)
{
	struct crowd *crowd = arg;

	if (add_view(crowd->w, 3, NULL) < 0)
		atomic_fetch_add(&crowd->failed, 1);
	return NULL;
}

/* If four threads add the same view, exactly one succeeds. */
TEST(same_view_from_threads)
{
	for (int round = 0; round < 20; round++) {
		TEST_BLOCK;
		struct work w;
		struct crowd crowd = {.w = &w};
		pthread_t thread[4];

		work_open(&w, round % WAYS, FIXTURE_CPU);
		for (int i = 0; i < 4; i++)
			assert_int_equal(pthread_create(&thread[i], NULL, bring_one, &crowd), 0);
		for (int i = 0; i < 4; i++)
			assert_int_equal(pthread_join(thread[i], NULL), 0);
		assert_int_equal(crowd.failed, 3);
	}
}

TEST(refusals)
{
	for (int way = 0; way < WAYS; way++) {
		float *line, *valid, *slices;
		static uint64_t bins[65536];
		struct tally tally;
		struct err err = {0};
		struct work w;
		size_t counted;

		work_open(&w, way, FIXTURE_POISON);
		slices = take_memory(grid_size(&w.plan.grid) * sizeof(*slices));
		assert_error(dbt_view_begin(w.s, -1, &line, &valid, &err), &err, EINVAL, "projection -1 of 7");
		assert_error(dbt_view_begin(w.s, CASE_VIEWS, &line, &valid, &err), &err, EINVAL, "projection 7 of 7");
		assert_error(dbt_view_end(w.s, CASE_VIEWS, &err), &err, EINVAL, "projection 7 of 7");
		assert_error(dbt_view_end(w.s, 2, &err), &err, EINVAL, "projection 2 was not begun");
		assert_int_equal(add_view(&w, 2, NULL), 0);
		assert_error(add_view(&w, 2, &err), &err, EINVAL, "projection 2 was already received");
		assert_error(dbt_view_end(w.s, 2, &err), &err, EINVAL, "projection 2 was not begun"); /* a second time */
		assert_int_equal(dbt_view_begin(w.s, 4, &line, &valid, NULL), 0);
		assert_error(dbt_view_begin(w.s, 4, &line, &valid, &err), &err, EINVAL, "projection 4 was already received");
		assert_error(dbt_run(w.s, NULL, NULL, &err), &err, EINVAL, "1 of 7 projections have been received");
		assert_error(dbt_read_slices(w.s, 0, 1, slices, &err), &err, EINVAL, "before dbt_run()");
		assert_error(dbt_tally(w.s, 0, 1e-5, bins, &counted, &tally, &err), &err, EINVAL, "before dbt_run()");
		memcpy(line, w.c.line + 4 * w.c.view_bins, w.c.view_bins * sizeof(*line));
		memcpy(valid, w.c.valid + 4 * w.c.view_bins, w.c.view_bins * sizeof(*valid));
		assert_int_equal(dbt_view_end(w.s, 4, NULL), 0);
		for (int i = 0; i < CASE_VIEWS - 1; i++)
			if (i != 2 && i != 4)
				assert_int_equal(add_view(&w, i, NULL), 0);
		assert_error(dbt_run(w.s, NULL, NULL, &err), &err, EINVAL, "6 of 7 projections have been received");
		assert_int_equal(add_view(&w, CASE_VIEWS - 1, NULL), 0);
		assert_int_equal(dbt_run(w.s, NULL, NULL, NULL), 0);
		assert_error(dbt_run(w.s, NULL, NULL, &err), &err, EINVAL, "dbt_run() was already called");
		assert_error(add_view(&w, 2, &err), &err, EINVAL, "projection 2 of 7 after dbt_run()");
		assert_error(dbt_view_end(w.s, 2, &err), &err, EINVAL, "projection 2 of 7 after dbt_run()");
		assert_error(dbt_read_slices(w.s, -1, 1, slices, &err), &err, EINVAL, "slices -1 to -1 of 11");
		assert_error(dbt_read_slices(w.s, 0, 0, slices, &err), &err, EINVAL, "slices 0 to -1 of 11");
		assert_error(dbt_read_slices(w.s, 10, 2, slices, &err), &err, EINVAL, "slices 10 to 11 of 11");
		assert_error(dbt_read_slices(w.s, 11, 1, slices, &err), &err, EINVAL, "slices 11 to 11 of 11");
		assert_int_equal(dbt_read_slices(w.s, 0, CASE_SLICES, slices, NULL), 0); /* the result is still available */
	}
}

/* A view that was withdrawn and passed again leaves nothing of its first values: data, mask, starting value. */
TEST(withdrawn_views_are_replaced)
{
	for (int way = 0; way < WAYS; way++) {
		struct err err = {0};
		float *expected, *found, *line, *valid;
		struct work w;

		work_open(&w, way, FIXTURE_CPU);
		assert_error(dbt_view_withdraw(w.s, 2, &err), &err, EINVAL, "projection 2 was not received");
		add_all_views(&w);
		assert_int_equal(dbt_run(w.s, NULL, NULL, NULL), 0);
		assert_error(dbt_view_withdraw(w.s, 2, &err), &err, EINVAL, "projection 2 of 7 after dbt_run()");
		expected = whole_result(&w);

		work_open(&w, way, FIXTURE_CPU);
		for (int i = 0; i < CASE_VIEWS; i += 2) {
			assert_int_equal(dbt_view_begin(w.s, i, &line, &valid, NULL), 0);
			assert_error(dbt_view_withdraw(w.s, i, &err), &err, EINVAL, "was not received");
			for (size_t k = 0; k < w.c.view_bins; k++) {
				line[k] = 7;
				valid[k] = (float)((int)(k % 3) - 1);
			}
			assert_int_equal(dbt_view_end(w.s, i, NULL), 0);
		}
		for (int i = 0; i < CASE_VIEWS; i += 2)
			assert_int_equal(dbt_view_withdraw(w.s, i, NULL), 0);
		assert_error(dbt_run(w.s, NULL, NULL, &err), &err, EINVAL, "0 of 7 projections have been received");
		add_all_views(&w);
		assert_int_equal(dbt_run(w.s, NULL, NULL, NULL), 0);
		found = whole_result(&w);
		assert_memory_equal(found, expected, grid_size(&w.plan.grid) * sizeof(*found));
	}
}

/* An invalid view is refused with its position and frees its staging buffer: add more invalid views than buffers, then all views
 * with valid data. */
TEST(bad_views_release_their_buffer)
{
	for (int way = 0; way < WAYS; way++) {
		struct err err = {0};
		struct work w;
		float *found;

		work_open(&w, way, FIXTURE_POISON);
		for (int i = 0; i < CASE_VIEWS; i++) {
			float *line, *valid;
			size_t bad = 300 + (size_t)i;

			assert_int_equal(dbt_view_begin(w.s, i, &line, &valid, NULL), 0);
			for (size_t b = 0; b < w.c.view_bins; b++) {
				line[b] = 1;
				valid[b] = b != 5; /* invalid bins may have any value */
			}
			line[5] = NAN;
			line[bad] = i % 3 == 0 ? -0.5f : i % 3 == 1 ? NAN : INFINITY;
			assert_int_equal(dbt_view_end(w.s, i, &err), -EINVAL);
			if (i == 0)
				assert_string_equal(
					err.msg, "projection 0, bin (36, 6): line integral -0.5; allowed: finite, not negative");
		}
		assert_error(dbt_run(w.s, NULL, NULL, &err), &err, EINVAL, "0 of 7 projections have been received");
		add_all_views(&w);
		assert_int_equal(dbt_run(w.s, NULL, NULL, NULL), 0);
		found = whole_result(&w);
		for (size_t i = 0; i < grid_size(&w.plan.grid); i++)
			assert_true(found[i] >= 0 && isfinite(found[i]));
	}
}

/* Only the sign of the validity counts, and nothing that an invalid bin holds, wherever it is in its row. */
TEST(other_validities)
{
	for (int way = 0; way < WAYS; way++) {
		TEST_BLOCK;
		float *found[2];
		struct work w;

		for (int other = 0; other < 2; other++) {
			uint32_t seed = 5;

			work_open(&w, way, FIXTURE_POISON);
			for (int i = 0; i < CASE_VIEWS; i++) {
				float *line, *valid;

				assert_int_equal(dbt_view_begin(w.s, i, &line, &valid, NULL), 0);
				for (size_t b = 0; b < w.c.view_bins; b++) {
					float one = fixture_random(&seed);
					size_t row = other ? b / (size_t)w.plan.n_u % 3 : 0;

					valid[b] = (one > 0.3f ? 1.0f : one > 0.2f ? -1.0f : 0) * (row == 1 ? 2.5f : 1);
					line[b] = valid[b] > 0 ? 1 + one : row == 2 ? NAN : 0;
				}
				assert_int_equal(dbt_view_end(w.s, i, NULL), 0);
			}
			assert_int_equal(dbt_run(w.s, NULL, NULL, NULL), 0);
			found[other] = whole_result(&w);
			assert_true(other == 0 || !memcmp(found[0], found[1], grid_size(&w.plan.grid) * sizeof(*found[0])));
		}
	}
}

TEST(slices_in_any_order)
{
	for (int way = 0; way < WAYS; way++) {
		TEST_BLOCK;
		uint32_t seed = 9;
		float *whole, *some;
		struct work w;

		work_open(&w, way, FIXTURE_POISON);
		add_all_views(&w);
		assert_int_equal(dbt_run(w.s, NULL, NULL, NULL), 0);
		whole = whole_result(&w);
		some = take_memory(grid_size(&w.plan.grid) * sizeof(*some));
		for (int round = 0; round < 200; round++) {
			int first = (int)(fixture_random(&seed) * CASE_SLICES);
			int n = 1 + (int)(fixture_random(&seed) * (float)(CASE_SLICES - first));

			if (round < CASE_SLICES) /* in descending order, one by one */
				first = CASE_SLICES - 1 - round, n = 1;
			memset(some, 0xff, grid_size(&w.plan.grid) * sizeof(*some));
			assert_int_equal(dbt_read_slices(w.s, first, n, some, NULL), 0);
			assert_memory_equal(some, whole + (size_t)first * w.slice, (size_t)n * w.slice * sizeof(*some));
		}
	}
}

/* A volume that is taken is the result, in place of a reconstruction, once. */
TEST(taken_volume)
{
	for (int way = 0; way < WAYS; way++) {
		uint32_t seed = 5;
		struct err err = {0};
		float *given, *found;
		struct work w;
		size_t n;

		work_open(&w, way, FIXTURE_POISON);
		n = grid_size(&w.plan.grid);
		given = take_memory(n * sizeof(*given));
		for (size_t i = 0; i < n; i++)
			given[i] = fixture_random(&seed) - 0.25f;
		add_all_views(&w);
		assert_int_equal(dbt_take(w.s, given, &err), 0);
		found = whole_result(&w);
		assert_memory_equal(found, given, n * sizeof(*given));
		assert_int_equal(dbt_take(w.s, found, &err), -EINVAL);
		assert_int_equal(dbt_run(w.s, NULL, NULL, &err), -EINVAL);
	}
}

/* Replace slice k in the session and in `whole`, by other values. */
static void replace_slice(struct work *w, float *whole, int k)
{
	float *slice = whole + (size_t)k * w->slice;

	for (size_t i = 0; i < w->slice; i++)
		slice[i] = 1.5f * slice[i] + 1e-3f;
	assert_int_equal(dbt_replace_slices(w->s, k, 1, slice, NULL), 0);
}

/* Slices in their stored form equal the converted floats, in any order, in turns with floats and after another form; and those that
 * were replaced, also while they were already being read. */
TEST(stored_slices)
{
	for (int way = 0; way < WAYS; way++) {
		struct stored_form form = {0, 1e5f, 65535, 0, 0, false, false};
		struct err err = {0};
		uint16_t *expected, *found;
		uint32_t seed = 3;
		float *whole, *floats;
		struct work w;

		work_open(&w, way, FIXTURE_POISON);
		add_all_views(&w);
		form.columns = (size_t)w.plan.grid.n[0];
		form.rows = (size_t)w.plan.grid.n[1];
		expected = take_memory(w.slice * sizeof(*expected));
		found = take_memory(w.slice * sizeof(*found));
		floats = take_memory(w.slice * sizeof(*floats));
		assert_error(dbt_read_stored(w.s, 0, &form, found, &err), &err, EINVAL, "before dbt_run()");
		assert_error(dbt_replace_slices(w.s, 0, 1, floats, &err), &err, EINVAL, "before dbt_run()");
		assert_int_equal(dbt_run(w.s, NULL, NULL, NULL), 0);
		whole = whole_result(&w);
		for (int round = 0; round < 100; round++) {
			int k = round < 2 * CASE_SLICES ? round % CASE_SLICES : (int)(fixture_random(&seed) * CASE_SLICES);

			if (round >= CASE_SLICES) {
				form.per_step = fixture_random(&seed) < 0.3f ? 3e4f : 1e5f;
				form.turn_columns = fixture_random(&seed) < 0.5f;
				form.turn_rows = fixture_random(&seed) < 0.5f;
			}
			stored_rows(&form, whole + (size_t)k * w.slice, 0, form.rows, expected);
			memset(found, 0xff, w.slice * sizeof(*found));
			assert_int_equal(dbt_read_stored(w.s, k, &form, found, NULL), 0);
			assert_memory_equal(found, expected, w.slice * sizeof(*found));
			k = (k + 1) % CASE_SLICES;
			if (round % 3 == 1)
				replace_slice(&w, whole, k);
			if (round % 5 == 4) {
				assert_int_equal(dbt_read_slices(w.s, k, 1, floats, NULL), 0);
				assert_memory_equal(floats, whole + (size_t)k * w.slice, w.slice * sizeof(*floats));
			}
		}
		assert_error(dbt_read_stored(w.s, CASE_SLICES, &form, found, &err), &err, EINVAL, "slices 11 to 11 of 11");
		form.rows--;
		assert_error(dbt_read_stored(w.s, 0, &form, found, &err), &err, EINVAL, "stored slices of");
	}
}

/* The histogram equals a loop in C, for values below, above and within the range; counts are added to the existing ones. */
TEST(histogram)
{
	static const struct {
		double offset, step;
	} scales[] = {{0, 1e-6}, {0, 1e-5}, {0.02, 1e-5}, {0.01, 2e-7}, {-0.1, 1e-3}};

	for (int way = 0; way < WAYS; way++) {
		TEST_BLOCK;
		uint64_t *found = take_zeros(65536, sizeof(*found)), *expected = take_zeros(65536, sizeof(*expected));
		size_t n, below_seen = 0, above_seen = 0;
		float *whole;
		struct work w;

		work_open(&w, way, FIXTURE_POISON);
		add_all_views(&w);
		assert_int_equal(dbt_run(w.s, NULL, NULL, NULL), 0);
		whole = whole_result(&w);
		n = grid_size(&w.plan.grid);
		for (size_t k = 0; k < sizeof(scales) / sizeof(scales[0]); k++) {
			float offset = (float)scales[k].offset, step = (float)scales[k].step;
			size_t below = 0, above = 0, counted = 0;
			struct tally tally;

			for (size_t i = 0; i < n; i++) {
				float at = floorf((whole[i] - offset) / step + 0.5f);

				below += at < 0;
				above += at > 65535;
				expected[at < 0 ? 0 : at > 65535 ? 65535 : (size_t)at]++;
			}
			assert_int_equal(dbt_tally(w.s, scales[k].offset, scales[k].step, found, &counted, &tally, NULL), 0);
			assert_int_equal(counted, n);
			assert_int_equal(tally.below, below);
			assert_int_equal(tally.above, above);
			assert_int_equal(tally.bad, 0);
			assert_memory_equal(found, expected, 65536 * sizeof(*found));
			below_seen += below;
			above_seen += above;
		}
		assert_true(below_seen > 0 && above_seen > 0 && found[0] < n * 5);
		{ /* the histogram does not change the volume */
			float *again = whole_result(&w);

			assert_memory_equal(again, whole, n * sizeof(*whole));
		}
		{ /* the histogram of the inside: of 8 slices */
			const int slices = 8;
			size_t counted = 0, inside = 0;

			memset(found, 0, 65536 * sizeof(*found));
			memset(expected, 0, 65536 * sizeof(*expected));
			assert_int_equal(dbt_tally_inside(w.s, 0, 1e-5, 0, found, &counted, NULL), 0);
			for (int k = 0; k < slices; k++) {
				const float *slice = whole + (size_t)((2 * k + 1) * w.plan.grid.n[2] / (2 * slices)) * w.slice;

				assert_int_equal(inside_tally(&w.plan.grid, slice, 0, 1e-5, 0, 1, expected, &inside, NULL), 0);
			}
			assert_int_equal(counted, inside);
			assert_true(inside > 0);
			assert_memory_equal(found, expected, 65536 * sizeof(*found));
		}
	}
}

static bool stop(void *ctx)
{
	return --*(int *)ctx < 0;
}

/* The monitor is called before every step; a cancelled session has no result. */
TEST(cancel)
{
	for (int way = 0; way < WAYS; way++)
		for (int after = 0; after <= 2 * CASE_VIEWS; after++) {
			TEST_BLOCK;
			int left = after, r;
			struct monitor m = {&left, NULL, stop};
			struct err err = {0};
			struct work w;
			float *slice;

			work_open(&w, way, FIXTURE_POISON);
			slice = take_memory(w.slice * sizeof(*slice));
			add_all_views(&w);
			r = dbt_run(w.s, &m, NULL, &err);
			assert_int_equal(r, after < 2 * CASE_VIEWS ? -ECANCELED : 0);
			if (r < 0) {
				assert_non_null(strstr(err.msg, "cancelled"));
				assert_error(dbt_read_slices(w.s, 0, 1, slice, &err), &err, EINVAL, "before dbt_run()");
				assert_error(dbt_run(w.s, NULL, NULL, &err), &err, EINVAL, "dbt_run() was already called");
			} else {
				assert_int_equal(dbt_read_slices(w.s, 0, 1, slice, NULL), 0);
			}
		}
}

/* Let each device call of a run fail once: the error is returned, memory is freed, nothing is written out of bounds (checked by
 * the poisoning device and the sanitizers), and finally a run succeeds. */
TEST(faults)
{
	static const struct {
		enum algorithm algorithm;
		int slices, views, least; /* least number of device calls of such a run */
	} ways[] = {{ALGORITHM_OSEM, CASE_SLICES, 0, 60},
		    {ALGORITHM_SART, CASE_SLICES, 0, 60},
		    {ALGORITHM_OSEM, 4, 0, 100},
		    {ALGORITHM_MLTR, 6, 3, 100}};

	for (size_t k = 0; k < sizeof(ways) / sizeof(ways[0]); k++) {
		struct test_case c = case_open();
		int calls = 0, r;

		do {
			TEST_BLOCK;
			struct device *dev = fixture_device(FIXTURE_POISON, 1);
			struct device_ops faulty = faulty_ops(dev->ops);
			struct dbt_protocol p = case_protocol;
			struct dbt_plan plan;
			struct err err = {0};
			float *x;

			p.algorithm = ways[k].algorithm;
			p.iterations = 1;
			plan = case_plan(&c, &p, dev);
			plan.slab_slices = ways[k].slices;
			plan.group_views = ways[k].views;
			x = take_memory(grid_size(&plan.grid) * sizeof(*x));
			fault.ops = dev->ops;
			fault.left = calls++;
			dev->ops = &faulty;
			r = dbt_reconstruct(&p, &plan, c.scan, dev, c.line, c.valid, NULL, x, NULL, &err);
			if (r < 0) {
				assert_int_equal(r, -EIO);
				assert_true(err.msg[0]);
			}
			dev->ops = fault.ops;
			assert_true(calls < 5000);
		} while (r < 0);
		print_message("algorithm %d: %d calls\n", (int)ways[k].algorithm, calls - 1);
		assert_true(calls > ways[k].least);
	}
}

/* A device that records transfers for which nobody has waited, and whose n-th update fails. */
static struct {
	const struct device_ops *ops;
	int under_way[QUEUE_DOWN + 1]; /* number of transfers begun on a queue since the last wait */
	int early;		       /* number of buffers freed while transfers were pending */
	int updates;		       /* number of updates before one fails; -1: none fails */
} watch;

static int watched_upload_begin(struct buf *to, const float *from, struct err *err)
{
	watch.under_way[QUEUE_UP]++;
	return watch.ops->upload_begin(to, from, err);
}

static int watched_download_begin(const struct buf *from, float *to, struct err *err)
{
	watch.under_way[QUEUE_DOWN]++;
	return watch.ops->download_begin(from, to, err);
}

static int watched_update(struct projection *a, const struct rule *rule, const struct buf *pair, struct buf *x, struct err *err)
{
	watch.under_way[QUEUE_WORK]++;
	return watch.updates >= 0 && watch.updates-- == 0 ? err_set(err, EIO, "back_update")
							  : watch.ops->back_update(a, rule, pair, x, err);
}

static int watched_sub_iterate(struct projection *a, const struct rule *rule, const struct buf *y, const struct buf *row,
			       struct buf *work, struct buf *x, struct err *err)
{
	watch.under_way[QUEUE_WORK]++;
	return watch.updates >= 0 && watch.updates-- == 0 ? err_set(err, EIO, "sub_iterate")
							  : watch.ops->sub_iterate(a, rule, y, row, work, x, err);
}

static int watched_wait(struct device *dev, enum device_queue queue, struct err *err)
{
	watch.under_way[queue] = 0;
	return watch.ops->wait(dev, queue, err);
}

static void check_idle(void)
{
	watch.early += watch.under_way[QUEUE_UP] || watch.under_way[QUEUE_WORK] || watch.under_way[QUEUE_DOWN];
}

static void watched_release(struct buf *b)
{
	check_idle();
	watch.ops->release(b);
}

static void watched_host_free(struct device *dev, void *memory)
{
	if (memory)
		check_idle();
	watch.ops->host_free(dev, memory);
}

/* `updates`: see watch. The session is closed at the end of the block. */
static void close_with_pending_transfers(int way, int updates)
{
	TEST_BLOCK;
	struct device_ops watched;
	struct work w;
	float *slices;
	int r, open;

	work_open(&w, way, FIXTURE_POISON);
	slices = take_memory(2 * w.slice * sizeof(*slices));
	watched = *w.dev->ops;
	watched.upload_begin = watched_upload_begin;
	watched.download_begin = watched_download_begin;
	watched.back_update = watched_update;
	watched.sub_iterate = watched_sub_iterate;
	watched.wait = watched_wait;
	watched.release = watched_release;
	watched.host_free = watched_host_free;
	memset(&watch, 0, sizeof(watch));
	watch.ops = w.dev->ops;
	watch.updates = updates;
	w.dev->ops = &watched;
	add_all_views(&w);
	r = dbt_run(w.s, NULL, NULL, NULL);
	assert_int_equal(r, updates < 0 ? 0 : -EIO);
	if (r == 0)
		assert_int_equal(dbt_read_slices(w.s, 0, 2, slices, NULL), 0);
	open = watch.under_way[QUEUE_UP] + watch.under_way[QUEUE_WORK] + watch.under_way[QUEUE_DOWN];
	assert_true(open > 0); /* otherwise the test checks nothing */
}

/* A session that is closed while a slice is read ahead, or after an error during a transfer, frees no memory before all queues
 * are idle. */
TEST(closed_with_pending_transfers)
{
	for (int way = 0; way < WAYS; way++)
		for (int updates = -1; updates < 12; updates++) {
			close_with_pending_transfers(way, updates);
			assert_int_equal(watch.early, 0);
		}
}
