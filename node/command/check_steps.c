/* SPDX-License-Identifier: Apache-2.0 */
#include "node/command/check_steps.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/base/folder.h"
#include "node/base/json_get.h"
#include "node/command/check_paths.h"
#include "node/config/kind.h"
#include "node/step/step_files.h"
#include "node/step/step_helper.h"

#define SIDE 48
#define SLICES 32
#define VOXELS ((size_t)SIDE * SIDE * SLICES)

void check_step_files(const struct config *config, const struct check_report *to)
{
	for (size_t i = 0; i < config->n_steps; i++) {
		struct step_files seen = {0};
		struct err err = {0};
		int fd;

		if (step_files_open(&config->steps[i], &seen, &fd, &err) == 0)
			close(fd);
		else
			check_say(to, FINDING_PROBLEM, "step '%s': %s", config->steps[i].name, err.msg);
	}
}

/* An ellipsoid with noise, on a background; the same in each call. */
static void make_phantom(const struct kind_image *like, float *ret)
{
	uint32_t random = 1;

	for (int k = 0; k < SLICES; k++)
		for (int j = 0; j < SIDE; j++)
			for (int i = 0; i < SIDE; i++) {
				double x = (i + 0.5) / SIDE - 0.5, y = (j + 0.5) / SIDE - 0.5, z = (k + 0.5) / SLICES - 0.5;
				bool in = 9 * x * x + 12 * y * y + 6 * z * z < 1;

				random = random * 1664525u + 1013904223u;
				*ret++ = (in ? like->object : like->around) * (0.875F + (float)(random >> 8) / 67108864.0F);
			}
}

struct test {
	struct step_helper helper;
	const struct step_conf *step;
	const struct kind *kind; /* of the case; its phantom is like it */
	const struct check_report *to;
	struct case_step_report report; /* of the last run, without what it told */
	char summary[256];
};

static bool run_once(struct test *t, float *volume)
{
	const struct kind_image *like = &t->kind->image;
	struct grid grid = {.n = {SIDE, SIDE, SLICES}};
	json_t *about = json_pack("{s:s, s:s, s:s, s:i, s:{s:f, s:f, s:s}}", "kind", t->kind->name, "protocol", "", "scanner", "",
				  "seed", 1, "result", "scale", 1.0, "offset", 0.0, "unit", like->unit);
	const struct case_volumes v = {.values = volume, .n = 1, .grid = &grid, .unit = like->unit, .about = about};
	struct err err = {0};
	bool failed;
	int rc;

	for (int a = 0; a < 3; a++) {
		grid.h[a] = like->voxel[a];
		grid.lo[a] = -0.5 * grid.n[a] * grid.h[a];
	}
	rc = case_step_run(&t->helper.runner, t->step, &v, NULL, &t->report, &failed, &err);

	json_decref(about);
	snprintf(t->summary, sizeof(t->summary), "%s", json_get_text(t->report.told, "summary"));
	json_decref(t->report.told);
	t->report.told = NULL;
	return rc == 0 || check_say(t->to, FINDING_PROBLEM, "%s%s%s%s", failed ? "" : "step '", failed ? "" : t->step->name,
				    failed ? "" : "': ", err.msg);
}

/* Run it with a constant volume; return the change of the mean, or NaN. */
static double run_constant(struct test *t, float *volume)
{
	for (size_t i = 0; i < VOXELS; i++)
		volume[i] = t->kind->image.object;
	return run_once(t, volume) ? fabs(t->report.after / t->report.before - 1) : NAN;
}

static void test_step(struct test *t, float *a, float *b)
{
	const struct step_conf *s = t->step;
	struct case_step_report seen;
	char text[600], summary[sizeof(t->summary)];
	double change;
	bool same = true;

	make_phantom(&t->kind->image, a);
	make_phantom(&t->kind->image, b);
	if (!run_once(t, a) || !run_once(t, b))
		return;
	for (size_t i = 0; i < VOXELS; i++) /* both are finite */
		same = same && a[i] == b[i];
	seen = t->report;
	memcpy(summary, t->summary, sizeof(summary));
	if (s->deterministic && !same)
		check_say(t->to, FINDING_PROBLEM,
			  "step '%s': two runs with the same volume differ; allowed: with deterministic = false", s->name);
	change = run_constant(t, a);
	if (s->preserves_mean > 0 && change > s->preserves_mean)
		check_say(t->to, FINDING_PROBLEM,
			  "step '%s': the mean of a constant volume changes by %.3g; allowed: at most preserves_mean, %g",
			  s->name, change, s->preserves_mean);
	snprintf(
		text, sizeof(text),
		"%s %s: %.2f s, %.0f MB, %s bits twice; a phantom like %s, %d x %d x %d: mean %+.3g %%, largest change %.3g %%; a "
		"constant volume: mean changes by %.3g; it says: %.200s",
		s->name, s->version, seen.end.seconds, (double)seen.end.memory / 1e6, same ? "the same" : "different",
		t->kind->title, SIDE, SIDE, SLICES, 100 * (seen.after / seen.before - 1), 100 * seen.largest, change, summary);
	if (isfinite(change))
		t->to->told(t->to->ctx, text);
}

static bool is_used(const struct config *config, const struct step_conf *step, const struct kind *kind)
{
	for (size_t i = 0; i < config->n_protocols; i++) {
		const struct protocol_conf *p = &config->protocols[i];

		for (size_t k = 0; k < p->steps.n; k++)
			if (kind_of(p->kind) == kind && p->step[k] == step)
				return true;
	}
	return false;
}

/* Test a step with a phantom of each kind whose protocols name it; if none does, of the last one. */
static void test_kinds(struct test *t, const struct config *config, float *a, float *b)
{
	bool any = false;

	for (int i = 0; i < KIND_COUNT; i++) {
		t->kind = kind_of((enum case_kind)i);
		if (is_used(config, t->step, t->kind)) {
			any = true;
			test_step(t, a, b);
		}
	}
	if (!any)
		test_step(t, a, b);
}

static void test_all(struct test *t, const struct config *config)
{
	float *a = malloc(VOXELS * sizeof(*a)), *b = malloc(VOXELS * sizeof(*b));

	for (size_t i = 0; a && b && i < config->n_steps; i++) {
		t->step = &config->steps[i];
		test_kinds(t, config, a, b);
	}
	if (!a || !b)
		check_say(t->to, FINDING_WARNING, "no memory to test steps");
	free(a);
	free(b);
}

void check_steps(const struct config *config, const struct check_report *to)
{
	const char *base = getenv("TMPDIR");
	char folder[300];
	struct test t = {.helper = {.fd = -1, .command = "check"}, .to = to};
	struct err err = {0};

	snprintf(folder, sizeof(folder), "%.200s/tomonode-steps-XXXXXX", base && base[0] == '/' ? base : "/tmp");
	if (!mkdtemp(folder)) {
		check_say(to, FINDING_PROBLEM, "steps cannot be tested: no folder %s: %s", folder, strerror(errno));
		return;
	}
	snprintf(t.helper.runner.folder, sizeof(t.helper.runner.folder), "%s/case", folder);
	if (step_helper_start(&t.helper, config, folder, &err) < 0)
		check_say(to, FINDING_PROBLEM, "steps cannot be tested: %s", err.msg);
	else if (config->n_steps > 0)
		test_all(&t, config);
	step_helper_stop(&t.helper);
	folder_remove(folder, &err);
}
