/* SPDX-License-Identifier: Apache-2.0 */
/* The benchmark: every work runs on the CPU and on the poison device, computes the known result, and has plausible figures; a
 * work that computes nothing or something else is detected; medians; random data. */
#include "recon/bench/bench.h"
#include "recon/bench/bench_data.h"
#include "recon/bench/bench_internal.h"
#include "tests/kernels/buffers.h"
#include "tests/test.h"

static const struct bench_ceiling round_ceiling = {1e10, 1e9}; /* bytes and steps a second */
static const struct bench_setup tiny = {.size = BENCH_TINY}, normal = {.size = BENCH_NORMAL}, full = {.size = BENCH_FULL};

static void assert_figures(const struct bench_result *r)
{
	assert_true(isfinite(r->seconds.median) && r->seconds.median > 0);
	assert_true(r->seconds.least > 0 && r->seconds.least <= r->seconds.median && r->seconds.median <= r->seconds.most);
	assert_true(r->seconds.spread >= 0 && r->seconds.spread <= r->seconds.most - r->seconds.least);
	assert_true(r->seconds_open > 0 && isfinite(r->seconds_open));
	assert_true(r->steps > 0 && isfinite(r->steps) && r->bytes > 0 && isfinite(r->bytes));
	assert_float_equal(r->floor, fmax(r->bytes / round_ceiling.copy_bytes, r->steps / round_ceiling.steps), 1e-12 * r->floor);
	assert_int_equal(r->floor_memory, r->bytes / round_ceiling.copy_bytes >= r->steps / round_ceiling.steps);
	assert_true(isfinite(r->found) && r->expected > 0);
	assert_true(fabs(r->found / r->expected - 1) < (strstr(r->sizes, " 2 angles") ? 1 : 0.02));
	assert_true(strlen(r->sizes) > 10 && strlen(r->device) > 0);
}

/* In tier 1 every `step`-th work. */
static void run_all(struct device *dev, size_t step)
{
	const struct bench_work *work;
	struct bench_result result;
	struct err err = {0};
	size_t i;

	for (i = 0; (work = bench_work_at(i)); i++) {
		if (test_tier() < 2 && i % step)
			continue;
		assert_done(bench_run(work, dev, &tiny, 2, &round_ceiling, &result, &err), &err);
		assert_ptr_equal(result.work, work);
		assert_ptr_equal(bench_work_find(work->name), work);
		assert_int_equal(result.seconds.n, 2);
		assert_figures(&result);
	}
	assert_true(i >= 8);
	assert_null(bench_work_find("none"));
	for (int size = 0; size < BENCH_SIZES; size++)
		assert_int_equal(bench_size_find(bench_size_name((enum bench_size)size)), size);
	assert_int_equal(bench_size_find("none"), BENCH_SIZES);
}

TEST(on_cpu)
{
	run_all(fixture_device(FIXTURE_CPU, 2), 3);
}

TEST(on_poison)
{
	run_all(fixture_device(FIXTURE_POISON, 2), 1);
}

TEST(on_cuda)
{
	struct bench_ceiling ceiling;
	struct device *dev;

	if (device_cuda_count() == 0)
		skip_because("no CUDA device");
	dev = fixture_device(FIXTURE_CUDA, 0);
	run_all(dev, 1);
	assert_int_equal(bench_ceiling(dev, BENCH_TINY, &ceiling, NULL), 0);
	assert_true(ceiling.steps > 1e9 && isfinite(ceiling.steps)); /* even the slowest GPU exceeds this */
}

/* Steps and bytes that were counted by hand. */
TEST(counts)
{
	const double each = 4; /* bytes */
	struct bench_result r;
	struct device *dev = fixture_device(FIXTURE_CPU, 1);

	assert_int_equal(bench_run(bench_work_find("bp"), dev, &tiny, 1, &round_ceiling, &r, NULL), 0);
	assert_float_equal(r.steps, 48. * 48 * 72, 0); /* pixels, views */
	assert_float_equal(r.bytes, each * (48 * 48 + 48 * 72), 0);
	assert_int_equal(bench_run(bench_work_find("art-stack"), dev, &tiny, 1, &round_ceiling, &r, NULL), 0);
	assert_float_equal(r.steps, 2. * 40 * 40 * 60 * 5, 0);
	assert_float_equal(r.bytes, each * (2 * 40 * 40 + 40 * 60) * 5, 0);
	assert_int_equal(bench_run(bench_work_find("dbt-osem"), dev, &tiny, 1, &round_ceiling, &r, NULL), 0);
	assert_float_equal(r.steps, 2. * 40 * 48 * 6 * 5, 0);
	assert_float_equal(r.bytes, each * (3. * 40 * 48 * 6 * 5 + 40 * 48 * 5), 0);
}

static void run_setup(struct device *dev, const char *work, const struct bench_setup *setup, struct bench_result *ret_result)
{
	struct err err = {0};

	assert_done(bench_run(bench_work_find(work), dev, setup, 1, &round_ceiling, ret_result, &err), &err);
	assert_figures(ret_result);
}

/* Each member of a setup takes effect: the result is correct, and the reported sizes are those of the setup. */
TEST(setups)
{
	static const struct {
		const char *work;
		struct bench_setup setup;
		const char *sizes;
		double steps;
	} cases[] = {
		{"dbt-osem", {.rule = RULE_TRANSMISSION}, "5 updates", 2. * 40 * 48 * 6 * 5},
		{"dbt-mlem", {.rule = RULE_SART, .model = PROJECTION_EXACT}, "1 updates", 2. * 40 * 48 * 6 * 5},
		{"dbt-osem", {.rule = RULE_BACKPROJECT, .tile = {16, 8}}, "5 updates", 40. * 48 * 6 * 5},
		{"dbt-osem",
		 {.voxels = {24, 20, 4}, .views = 3},
		 "24 x 20 x 4 voxels, 3 views of 24 x 20 bins",
		 2. * 24 * 20 * 4 * 3},
		{"dbt-osem", {.model = PROJECTION_EXACT, .deterministic = true}, "40 x 48", 2. * 40 * 48 * 6 * 5},
		{"pet-mlem", {.voxels = {24}, .views = 16}, "24 x 24 x 7 voxels, 7 planes of 16 angles", 2. * 39 * 7 * 16 * 24},
		{"pet-mlem", {.model = PROJECTION_EXACT, .fov_radius = 40}, "32 x 32 x 7", 2. * 19 * 7 * 32 * 32},
		{"pet-mlem", {.model = PROJECTION_JOSEPH, .deterministic = true}, "32 x 32 x 7", 2. * 39 * 7 * 32 * 32},
		{"radon",
		 {.model = PROJECTION_SAMPLED, .voxels = {40, 40, 3}, .views = 60},
		 "40 x 40 pixels, 60 angles",
		 40. * 40 * 3 * 60},
		{"art", {.model = PROJECTION_JOSEPH, .views = 50}, "50 angles", 2. * 48 * 48 * 50},
		{"art", {.views = 2}, "2 angles", 2. * 48 * 48 * 2},
	};
	struct bench_result r;
	struct device *dev = fixture_device(FIXTURE_POISON, 2);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		run_setup(dev, cases[i].work, &cases[i].setup, &r);
		assert_non_null(strstr(r.sizes, cases[i].sizes));
		assert_float_equal(r.steps, cases[i].steps, 0);
		assert_int_equal(r.n_stages, 0);
	}
}

TEST(staged)
{
	const struct bench_setup setup = {.stages = true};
	struct bench_result r;
	struct device *dev = fixture_device(FIXTURE_POISON, 2);

	run_setup(dev, "pet-mlem", &setup, &r);
	assert_int_equal(r.n_stages, 4);
	assert_string_equal(r.stage[0].name, "forward");
	assert_string_equal(r.stage[3].name, "update");
	run_setup(dev, "pet-list", &setup, &r);
	assert_int_equal(r.n_stages, 3);
	assert_non_null(strstr(r.sizes, "20000 events, 64 x 64 x 24 voxels"));
	assert_true(r.steps > 2. * 20000 * 5 && r.steps < 2. * 20000 * 64);
	run_setup(dev, "fbp-convolution-stack", &setup, &r);
	assert_int_equal(r.n_stages, 2);
	assert_string_equal(r.stage[0].name, "filter");
	for (int i = 0; i < r.n_stages; i++)
		assert_true(r.stage[i].seconds.n == 1 && r.stage[i].seconds.median > 0);
}

/* A member that a work does not use is rejected, not ignored. */
TEST(setups_refused)
{
	static const struct {
		const char *work;
		struct bench_setup setup;
	} cases[] = {
		{"dbt-osem", {.fov_radius = 100}},
		{"dbt-osem", {.model = PROJECTION_PATHS}},
		{"dbt-osem", {.rule = RULE_EM_ROWS}},
		{"dbt-osem", {.stages = true}},
		{"dbt-osem", {.voxels = {-1}}},
		{"dbt-osem", {.views = -1}},
		{"dbt-osem", {.tile = {-1, 4}}},
		{"pet-mlem", {.voxels = {24, 20}}},
		{"pet-mlem", {.voxels = {24, 24, 3}}},
		{"pet-mlem", {.rule = RULE_EM}},
		{"pet-mlem", {.tile = {4, 4}}},
		{"pet-mlem", {.fov_radius = NAN}},
		{"bp", {.model = PROJECTION_PATHS}},
		{"radon", {.model = PROJECTION_SLICES}},
		{"radon", {.voxels = {24, 20}}},
		{"radon", {.fov_radius = 100}},
		{"radon", {.stages = true}},
		{"art", {.model = PROJECTION_EXACT}},
		{"pet-list", {.views = 3}},
		{"pet-list", {.model = PROJECTION_PATHS}},
	};
	struct bench_result result = {.steps = -1};
	struct device *dev = fixture_device(FIXTURE_CPU, 1);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = {0};

		assert_int_equal(
			bench_run(bench_work_find(cases[i].work), dev, &cases[i].setup, 1, &round_ceiling, &result, &err),
			-EINVAL);
		assert_true(err.msg[0] && result.steps == -1); /* not written */
	}
}

/* Devices in which a function does nothing: the check of a work that uses the function fails. */
#define IDLE(name, ...)                                                                                                          \
	static int name(__VA_ARGS__)                                                                                             \
	{                                                                                                                        \
		return 0;                                                                                                        \
	}

IDLE(idle_back, struct projection *a, const struct buf *y, bool add, struct buf *x, struct err *err)
IDLE(idle_sweep, struct projection *a, float relaxation, const struct buf *y, struct buf *x, struct err *err)
IDLE(idle_update, struct projection *a, const struct rule *rule, const struct buf *pair, struct buf *x, struct err *err)
IDLE(idle_sub_iterate, struct projection *a, const struct rule *rule, const struct buf *y, const struct buf *row,
     struct buf *work, struct buf *x, struct err *err)
IDLE(idle_voxels, const struct rule *rule, const struct buf *num, const struct buf *den, struct buf *x, struct err *err)
IDLE(idle_ratio, struct events *a, const struct buf *events, float floor, const struct buf *x, struct buf *sum, struct err *err)

TEST(found_out)
{
	static const char *const names[] = {"bp",	"fbp-convolution", "fbp-fourier", "art",
					    "dbt-osem", "dbt-mlem",	   "pet-mlem",	  "pet-list"};
	struct bench_result result = {.steps = -1};
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	static struct device_ops ops; /* until the device is closed */
	struct err err = {0};

	ops = *dev->ops;
	ops.back_interpolated = idle_back;
	ops.row_sweep = idle_sweep;
	ops.back_update = idle_update;
	ops.sub_iterate = idle_sub_iterate;
	ops.rule_voxels = idle_voxels;
	ops.events_ratio = idle_ratio;
	dev->ops = &ops;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_error(bench_run(bench_work_find(names[i]), dev, &tiny, 1, &round_ceiling, &result, &err), &err, EHWPOISON,
			     names[i]);
		assert_non_null(strstr(err.msg, "wrong numbers"));
		assert_true(result.steps == -1); /* not written */
	}
}

TEST(refusals)
{
	const struct bench_work *work = bench_work_find("radon"), *big = bench_work_find("dbt-osem");
	struct bench_ceiling ceiling;
	struct bench_result result;
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	struct err err = {0};

	assert_int_equal(bench_run(work, dev, &(struct bench_setup){.size = BENCH_SIZES}, 1, &round_ceiling, &result, &err),
			 -EINVAL);
	assert_int_equal(bench_run(work, dev, &tiny, -1, &round_ceiling, &result, &err), -EINVAL);
	assert_int_equal(bench_run(work, dev, &tiny, BENCH_REPEAT_MAX + 1, &round_ceiling, &result, &err), -EINVAL);
	dev->memory = 1000000;
	assert_error(bench_run(big, dev, &full, 1, &round_ceiling, &result, &err), &err, ENOMEM, "GB");
	assert_int_equal(bench_run(bench_work_find("pet-mlem"), dev, &normal, 1, &round_ceiling, &result, &err), -ENOMEM);
	assert_int_equal(bench_run(bench_work_find("bp-stack"), dev, &normal, 1, &round_ceiling, &result, &err), -ENOMEM);
	assert_int_equal(bench_ceiling(dev, BENCH_TINY, &ceiling, &err), -ENOMEM);
	dev->memory = 0;
	assert_int_equal(bench_ceiling(dev, BENCH_TINY, &ceiling, &err), 0);
	assert_true(ceiling.copy_bytes > 0 && isfinite(ceiling.copy_bytes));
	assert_true(ceiling.steps > 0 && isfinite(ceiling.steps));
}

TEST(medians)
{
	double one[] = {3}, even[] = {4, 1, 2, 3}, odd[] = {9, 1, 5, 3, 7};
	struct bench_times t;

	bench_median(one, 1, &t);
	assert_true(t.n == 1 && t.median == 3 && t.least == 3 && t.most == 3 && t.spread == 0);
	bench_median(even, 4, &t);
	assert_true(t.n == 4 && t.median == 2.5 && t.least == 1 && t.most == 4);
	bench_median(odd, 5, &t);
	assert_true(t.n == 5 && t.median == 5 && t.least == 1 && t.most == 9 && t.spread == 4);
}

static int count_call(void *ctx, int i, struct err *err)
{
	(void)i, (void)err;
	++*(int *)ctx;
	return 0;
}

static int fail_late(void *ctx, int i, struct err *err)
{
	(void)i;
	return ++*(int *)ctx == 3 ? err_set(err, EIO, "third call") : 0;
}

TEST(measuring)
{
	struct bench_times t = {.n = -1}, stage[3];
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	int calls = 0;

	assert_int_equal(bench_measure(dev, 5, 1, count_call, &calls, &t, NULL), 0);
	assert_int_equal(calls, 6); /* and the warm-up */
	assert_int_equal(t.n, 5);
	calls = 0;
	assert_int_equal(bench_measure(dev, 0, 1, count_call, &calls, &t, NULL), 0);
	assert_int_equal(calls, 101); /* empty runs never last a second: 100 runs and the warm-up */
	calls = 0;
	t.n = -1;
	assert_int_equal(bench_measure(dev, 5, 1, fail_late, &calls, &t, NULL), -EIO);
	assert_int_equal(calls, 3);
	assert_int_equal(t.n, -1);
	calls = 0;
	assert_int_equal(bench_measure(dev, 2, 3, count_call, &calls, stage, NULL), 0);
	assert_int_equal(calls, 9);
	assert_true(stage[0].n == 2 && stage[1].n == 2 && stage[2].n == 2);
}

TEST(random_data)
{
	struct device *dev = fixture_device(FIXTURE_CPU, 1);
	struct buf a = {0}, b = {0}, c = {0};
	double sum, squares, other;

	assert_int_equal(bench_random_alloc(dev, 10000, 2, 4, 1, &a, NULL), 0);
	assert_int_equal(bench_random_alloc(dev, 10000, 2, 4, 1, &b, NULL), 0);
	assert_int_equal(bench_random_alloc(dev, 10000, 2, 4, 2, &c, NULL), 0);
	assert_memory_equal(a.mem, b.mem, 10000 * sizeof(float));
	assert_memory_not_equal(a.mem, c.mem, 10000 * sizeof(float));
	assert_int_equal(dev->ops->sum(&a, &sum, NULL), 0);
	assert_int_equal(dev->ops->dot(&a, &a, &squares, NULL), 0);
	assert_int_equal(dev->ops->dot(&a, &c, &other, NULL), 0);
	assert_float_equal(sum / 10000, 3, 0.03);	       /* 5 sigma: 5 * 2 / sqrt(12 * 10000) */
	assert_float_equal(squares / 10000, 9 + 4 / 12., 0.2); /* of a uniform */
	assert_float_equal(other / 10000, 9, 0.1);	       /* independent */
	for (size_t i = 0; i < a.n; i++)
		assert_true(a.mem[i] >= 2 && a.mem[i] <= 4);
	buf_release(&a);
	buf_release(&b);
	buf_release(&c);
}

struct written {
	int texts, numbers;
};

static void count_text(void *ctx, const char *name, const char *value)
{
	assert_true(name[0] && value[0]);
	((struct written *)ctx)->texts++;
}

static void count_number(void *ctx, const char *name, double value)
{
	assert_true(isfinite(value));
	if (!strcmp(name, "gsteps_per_s"))
		assert_float_equal(value, 3, 1e-12);
	if (!strcmp(name, "gb_per_s"))
		assert_float_equal(value, 5, 1e-12);
	if (!strcmp(name, "back_seconds"))
		assert_float_equal(value, 7, 0);
	if (!strcmp(name, "floor_share"))
		assert_float_equal(value, 0.25, 1e-12);
	((struct written *)ctx)->numbers++;
}

TEST(writing)
{
	struct bench_result r = {.work = bench_work_at(0),
				 .device = "cpu",
				 .size = BENCH_QUICK,
				 .sizes = "some",
				 .seconds = {.n = 3, .median = 2, .least = 1, .most = 3, .spread = 1},
				 .steps = 6e9,
				 .bytes = 1e10,
				 .floor = 0.5,
				 .n_stages = 1,
				 .stage = {{.name = "back", .seconds = {.median = 7}}},
				 .ceiling = round_ceiling};
	struct written written = {0};
	const struct bench_writer writer = {&written, count_text, count_number};

	bench_write(&r, &writer);
	assert_true(written.texts >= 6 && written.numbers >= 11);
}
