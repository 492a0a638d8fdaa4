/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a case, with functions in place of their programs: what is taken, what is refused and leaves the volume as it was, and
 * what a failure means for the case. */
#include "node/base/folder.h"
#include "node/reconstruct/reconstruct_internal.h"
#include "tests/test.h"

#define N ((size_t)24) /* 4 x 3 x 2 */

static const struct grid grid = {.n = {4, 3, 2}, .h = {1, 1, 2}, .lo = {-2, -1.5, -2}};
static const char told[] = "{\"summary\": \"doubled\", \"figures\": {\"gain\": 2}, \"warnings\": [\"it is a test\"]}";

/* What the program makes. */
struct made {
	const char *name, *json; /* of a row; step.json, NULL: none */
	size_t values;		 /* of volume.f32; 0: no file */
	float last;
	int as;		 /* 1: a link, 2: a FIFO, 3: a hard link, instead of volume.f32 */
	int fails_at;	 /* this call ends with EBADMSG, from 1 */
	const char *why; /* of the refusal */
	int calls;
	const char *then; /* step.json of further calls; NULL: the same */
};

/* Double the values, as far as they are wanted. */
static int run_made(void *ctx, const struct step_conf *step, const char *folder, uint64_t bytes, const struct monitor *monitor,
		    struct step_end *ret, struct err *err)
{
	struct made *m = ctx;
	char out[440], in[460], to[460];
	float values[2 * N];
	FILE *f;

	(void)monitor;
	assert_int_equal(bytes, N * sizeof(float));
	*ret = (struct step_end){.seconds = m->calls + 1};
	if (++m->calls == m->fails_at)
		return err_set(err, EBADMSG, "exit code 1");
	snprintf(in, sizeof(in), "%s/in/volume.f32", folder);
	f = fopen(in, "rb");
	assert_non_null(f);
	assert_int_equal(fread(values, sizeof(float), 2 * N, f), N);
	fclose(f);
	for (size_t i = 0; i < N; i++)
		values[i] *= 2;
	if (m->last != 0)
		values[m->values - 1] = m->last;
	snprintf(out, sizeof(out), "%s/out", folder);
	snprintf(to, sizeof(to), "%s/volume.f32", out);
	if (m->then && m->calls > 1)
		test_put_file(test_path(out, "step.json"), m->then, strlen(m->then));
	else if (m->json)
		test_put_file(test_path(out, "step.json"), m->json, strlen(m->json));
	if (m->as > 0)
		assert_int_equal(m->as == 1 ? symlink(in, to) : m->as == 2 ? mkfifo(to, 0600) : link(in, to), 0);
	else if (m->values > 0)
		test_put_file(test_path(out, "volume.f32"), values, m->values * sizeof(float));
	assert_string_equal(step->name, "one");
	return 0;
}

struct fixture {
	char folder[200];
	float values[2 * N], before[2 * N];
	struct case_volumes v;
	struct step_runner runner;
	struct step_conf step;
};

static void begin(struct fixture *f, struct made *m, int images)
{
	*f = (struct fixture){.v = {.n = images, .grid = &grid, .unit = "1"},
			      .runner = {.ctx = m, .run = run_made},
			      .step = {.name = "one", .version = "1", .sha256 = "0123"}};
	test_folder(f->folder, sizeof(f->folder));
	snprintf(f->runner.folder, sizeof(f->runner.folder), "%s/steps", f->folder);
	for (size_t i = 0; i < 2 * N; i++)
		f->values[i] = f->before[i] = (float)(i % 7) - 2;
	f->v.values = f->values;
	f->v.about = json_object();
}

static void end(struct fixture *f)
{
	struct err err = {0};

	json_decref((json_t *)f->v.about);
	assert_int_equal(folder_entries(f->folder), 0); /* nothing of the step is left */
	folder_remove(f->folder, &err);
}

static int run_step(struct fixture *f, struct case_step_report *ret, bool *ret_failed, struct err *err)
{
	return case_step_run(&f->runner, &f->step, &f->v, NULL, ret, ret_failed, err);
}

TEST(every_image_is_replaced)
{
	struct made m = {.json = told, .values = N};
	struct case_step_report report;
	struct fixture f;
	struct err err = {0};
	bool failed;

	begin(&f, &m, 2);
	assert_int_equal(run_step(&f, &report, &failed, &err), 0);
	assert_false(failed);
	for (size_t i = 0; i < 2 * N; i++)
		assert_true(f.values[i] == 2 * f.before[i]);
	assert_float_equal(report.after, 2 * report.before, 1e-12);
	assert_float_equal(report.largest, 1, 1e-12);
	assert_float_equal(report.end.seconds, 2, 0); /* the longer one */
	assert_int_equal(m.calls, 2);
	json_decref(report.told);
	end(&f);
}

/* What a later frame says is not lost, and is said once. */
TEST(warnings_of_all_images)
{
	struct made m[2] = {
		{.json = told, .then = "{\"summary\": \"\", \"warnings\": [\"it is a test\", \"late\"]}", .values = N},
		{.json = "{\"summary\": \"\"}", .then = told, .values = N}};
	static const char *const last[2] = {"late", "it is a test"};
	struct case_step_report report;
	struct fixture f;
	struct err err = {0};
	bool failed;

	for (size_t k = 0; k < 2; k++) {
		json_t *warnings;

		begin(&f, &m[k], 2);
		assert_int_equal(run_step(&f, &report, &failed, &err), 0);
		warnings = json_object_get(report.told, "warnings");
		assert_int_equal(json_array_size(warnings), 2 - k);
		assert_string_equal(json_string_value(json_array_get(warnings, 1 - k)), last[k]);
		json_decref(report.told);
		end(&f);
	}
}

static int read_slice(void *ctx, int slice, float *ret, struct err *err)
{
	(void)err;
	memcpy(ret, (float *)ctx + (size_t)slice * N / 2, N / 2 * sizeof(float));
	return 0;
}

static int replace_slice(void *ctx, int slice, const float *values, struct err *err)
{
	if (slice > 0 && values[0] < 0)
		return err_set(err, EHWPOISON, "the device is broken");
	memcpy((float *)ctx + (size_t)slice * N / 2, values, N / 2 * sizeof(float));
	return 0;
}

/* The same for a volume that is not in host memory; its device may break, which is no failure of the step. */
TEST(a_volume_elsewhere)
{
	for (int broken = 0; broken < 2; broken++) {
		struct made m = {.json = told, .values = N};
		struct case_step_report report;
		struct fixture f;
		struct err err = {0};
		bool failed;

		begin(&f, &m, 1);
		f.values[N / 2] = f.before[N / 2] = broken ? -1 : 1;
		f.v.values = NULL;
		f.v.read = read_slice;
		f.v.replace = replace_slice;
		f.v.ctx = f.values;
		assert_int_equal(run_step(&f, &report, &failed, &err), broken ? -EHWPOISON : 0);
		assert_false(failed);
		for (size_t i = 0; i < 2 * N; i++)
			assert_true(f.values[i] == (i < (broken ? N / 2 : N) ? 2 : 1) * f.before[i]);
		assert_float_equal(report.largest, 1, 1e-12);
		json_decref(report.told);
		end(&f);
	}
}

static struct made bad[] = {
	{"no_output", told, 0, .why = "it made no volume.f32"},
	{"no_json", NULL, N, .why = "it made no step.json"},
	{"fewer_values", told, N - 1, .why = "92 bytes; needed: 96"},
	{"more_values", told, N + 1, .why = "100 bytes; needed: 96"},
	{"not_a_number", told, N, NAN, .why = "voxel 23 of its volume.f32 is nan"},
	{"infinite", told, N, -INFINITY, .why = "voxel 23 of its volume.f32 is -inf"},
	{"symbolic_link", told, N, .as = 1, .why = "it is a link"},
	{"fifo", told, N, .as = 2, .why = "not a regular file"},
	{"hard_link", told, N, .as = 3, .why = "not a regular file of its own"},
	{"no_object", "[]", N, .why = "no JSON object"},
	{"half_an_object", "{\"summary\": ", N, .why = "not valid JSON"},
	{"no_summary", "{}", N, .why = "'summary'"},
	{"summary_with_backslash", "{\"summary\": \"a\\\\b\"}", N, .why = "'summary'"},
	{"summary_of_two_lines", "{\"summary\": \"a\\nb\"}", N, .why = "'summary'"},
	{"figures_of_texts", "{\"summary\": \"\", \"figures\": {\"a\": \"1\"}}", N, .why = "'figures'"},
	{"warnings_of_numbers", "{\"summary\": \"\", \"warnings\": [1]}", N, .why = "warning 1"},
	{"second_image_fails", told, N, .fails_at = 2, .why = "step 'one' 1: image 2 of 2: exit code 1"},
};

static void refuse_made(struct made *m)
{
	struct case_step_report report;
	struct fixture f;
	struct err err = {0};
	bool failed;

	begin(&f, m, 2);
	m->calls = 0;
	assert_int_equal(run_step(&f, &report, &failed, &err), -EBADMSG);
	assert_true(failed);
	if (!strstr(err.msg, m->why) || strncmp(err.msg, "step 'one' 1: ", 14) != 0)
		fail_msg("%s: %s", m->name, err.msg);
	assert_memory_equal(f.values, f.before, sizeof(f.before));
	json_decref(report.told);
	end(&f);
}

TEST(what_is_refused_changes_nothing)
{
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refuse_made(&bad[i]);
}

/* Run the protocol's two steps, of which the second one fails, or none. */
static int apply_both(struct made *m, enum step_failure on_failure, struct reconstruct_work *ret_work, struct fixture *f,
		      struct err *err)
{
	static struct protocol_conf protocol;
	static struct case_decision decision;

	begin(f, m, 1);
	f->step.on_failure = on_failure;
	protocol = (struct protocol_conf){.name = "p", .kind = KIND_PET, .steps = {.name = {"one", "one"}, .n = 2}};
	protocol.step[0] = protocol.step[1] = &f->step;
	decision = (struct case_decision){.steps = &f->runner};
	*ret_work = (struct reconstruct_work){.protocol = &protocol, .decision = &decision};
	return case_steps_apply(ret_work, &f->v, err);
}

TEST(a_failure_holds_falls_back_or_fails)
{
	static const int codes[] = {[STEP_HOLD] = -ENOTSUP, [STEP_FALLBACK] = 0, [STEP_FAIL] = -ECHILD};

	for (int on = STEP_HOLD; on <= STEP_FAIL; on++) {
		struct made m = {.json = told, .values = N, .fails_at = 2};
		struct reconstruct_work w;
		struct fixture f;
		struct err err = {0};

		assert_int_equal(apply_both(&m, (enum step_failure)on, &w, &f, &err), codes[on]);
		assert_int_equal(json_array_size(w.steps), 2);
		assert_non_null(json_object_get(json_array_get(w.steps, 1), "failed"));
		assert_int_equal(w.n_steps, 1);
		assert_int_equal(w.protocol->steps.n, on == STEP_FALLBACK ? 1 : 2);
		if (on == STEP_FALLBACK) {
			assert_string_equal(w.notes, "Without step 'one' 1: exit code 1: it failed. Step one: it is a test.");
			assert_true(f.values[0] == 2 * f.before[0]);
		}
		json_decref(w.steps);
		end(&f);
	}
}

TEST(what_a_step_told_is_said)
{
	struct made m = {.json = told, .values = N};
	struct reconstruct_work w;
	struct fixture f;
	struct err err = {0};

	assert_int_equal(apply_both(&m, STEP_HOLD, &w, &f, &err), 0);
	assert_int_equal(w.n_steps, 2);
	assert_string_equal(w.step[0].said, "doubled; gain 2");
	assert_string_equal(w.step[0].sha256, "0123");
	assert_string_equal(w.step[0].change, "mean +100 %, largest change 100 % of the largest value");
	json_decref(w.steps);
	end(&f);
}

TEST(a_protocol_with_steps_needs_somebody_who_runs_them)
{
	struct made m = {.json = told, .values = N};
	struct reconstruct_work w;
	struct case_decision none = {0};
	struct fixture f;
	struct err err = {0};

	assert_int_equal(apply_both(&m, STEP_HOLD, &w, &f, &err), 0);
	json_decref(w.steps);
	w.steps = NULL;
	w.decision = &none;
	assert_int_equal(case_steps_apply(&w, &f.v, &err), -ENOTSUP);
	end(&f);
}
