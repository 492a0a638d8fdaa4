/* SPDX-License-Identifier: Apache-2.0 */
/* case_steps.c - see node/reconstruct/case_steps.h. What a program made is read like data from outside: nothing of it is followed,
 * executed or believed. */
#include "node/reconstruct/case_steps.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/base/folder.h"
#include "node/base/json_get.h"
#include "node/base/sentence.h"
#include "node/base/version.h"
#include "node/reconstruct/reconstruct_internal.h"
#include "node/sinogram/provenance.h"

#define TOLD_MOST 65536	 /* bytes of step.json */
#define SUMMARY_MOST 200 /* characters of its summary and of each warning */
#define WARNINGS_MOST 8
#define FIGURES_MOST 16
#define CHANGE_MOST 10	/* change of a voxel, in the largest value, beyond which it is said */
#define MEAN_LEAST 1e-3 /* mean afterwards, in the mean before, below which it is said */
#define STEP_PATH (sizeof(((struct step_runner *)NULL)->folder) + 60) /* bytes of the paths below its folder */
#define VALUES_AT_A_TIME ((size_t)1 << 16)

struct step_run {
	const struct step_runner *runner;
	const struct step_conf *step;
	const struct case_volumes *v;
	const struct monitor *monitor;
	struct case_step_report report;
	size_t n;      /* values of a volume */
	float *values; /* [VALUES_AT_A_TIME] */
};

static void name_folder(const struct step_run *r, int image, const char *below, char *ret, size_t size)
{
	snprintf(ret, size, "%s/%d%s", r->runner->folder, image + 1, below);
}

/* ---- in ---- */

static void describe_image(const struct step_run *r, int image, json_t *json)
{
	const struct step_conf *s = r->step;

	json_object_update(json, (json_t *)r->v->about);
	json_object_set_new(json, "tomonode", json_string(TOMONODE_VERSION));
	json_object_set_new(json, "step",
			    json_pack("{s:s, s:s, s:s, s:i}", "name", s->name, "version", s->version, "parameters", s->parameters,
				      "threads", s->threads));
	if (r->v->images)
		json_object_set(json, "image", json_array_get(r->v->images, (size_t)image));
}

static int write_image(const struct step_run *r, int image, struct err *err)
{
	static const char *const parts[] = {"/out", "/scratch"};
	const struct grid *g = r->v->grid;
	const size_t shape[CASE_ARRAYS_AXES] = {(size_t)g->n[2], (size_t)g->n[1], (size_t)g->n[0]};
	char in[STEP_PATH], folder[STEP_PATH];
	struct case_arrays a = {.folder = in};
	int rc;

	name_folder(r, image, "", folder, sizeof(folder));
	rc = folder_make(folder, err);
	for (size_t i = 0; rc == 0 && i < sizeof(parts) / sizeof(parts[0]); i++) {
		name_folder(r, image, parts[i], folder, sizeof(folder));
		rc = folder_make(folder, err);
	}
	name_folder(r, image, "/in", in, sizeof(in));
	if (rc == 0)
		rc = case_arrays_open(&a, "volume", r->v->unit, false, shape, err);
	if (rc == 0)
		rc = case_arrays_add(&a, r->v->values + (size_t)image * r->n, r->n, err);
	if (rc == 0) {
		case_arrays_grid(&a, g);
		describe_image(r, image, a.json);
		rc = case_arrays_end(&a, err);
	}
	case_arrays_clear(&a);
	return rc;
}

/* ---- out ---- */

/* Open a file that the program made; *ret_size: its bytes. EBADMSG. */
static int open_made(const struct step_run *r, int image, const char *name, int *ret_fd, off_t *ret_size, struct err *err)
{
	char path[STEP_PATH], below[40];
	struct stat st;
	int fd;

	snprintf(below, sizeof(below), "/out/%s", name);
	name_folder(r, image, below, path, sizeof(path));
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return errno == ENOENT ? err_set(err, EBADMSG, "it made no %s", name)
				       : err_set(err, EBADMSG, "its %s cannot be opened%s%s", name,
						 errno == ELOOP ? ": it is a link" : ": ", errno == ELOOP ? "" : strerror(errno));
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1) {
		close(fd);
		return err_set(err, EBADMSG, "its %s is not a regular file of its own", name);
	}
	*ret_fd = fd;
	*ret_size = st.st_size;
	return 0;
}

/* Read the values that it made, in parts; take() may be NULL. */
static int read_made(struct step_run *r, int image, void (*take)(struct step_run *, float *at, size_t n), struct err *err)
{
	float *volume = r->v->values + (size_t)image * r->n;
	off_t size = 0;
	int fd = -1, rc = open_made(r, image, "volume.f32", &fd, &size, err);
	FILE *f = NULL;

	if (rc < 0)
		return rc;
	if (size != (off_t)(r->n * sizeof(float)))
		rc = err_set(err, EBADMSG, "its volume.f32 has %lld bytes; needed: %zu, as that of in", (long long)size,
			     r->n * sizeof(float));
	else if (!(f = fdopen(fd, "rb")))
		rc = err_set(err, ENOMEM, "no memory to read what step '%s' made", r->step->name);
	for (size_t at = 0; rc == 0 && at < r->n;) {
		size_t n = r->n - at < VALUES_AT_A_TIME ? r->n - at : VALUES_AT_A_TIME;

		if (fread(r->values, sizeof(float), n, f) != n)
			rc = err_set(err, EBADMSG, "its volume.f32 cannot be read");
		for (size_t i = 0; rc == 0 && i < n; i++)
			if (!isfinite(r->values[i]))
				rc = err_set(err, EBADMSG, "voxel %zu of its volume.f32 is %g", at + i, (double)r->values[i]);
		if (rc == 0 && take)
			take(r, volume + at, n);
		at += n;
	}
	if (f)
		fclose(f);
	else
		close(fd);
	return rc;
}

/* Is it a text for a header: printable ASCII without backslash, and of at most SUMMARY_MOST characters? */
static bool is_text(const json_t *value)
{
	const char *text = json_string_value(value);

	for (size_t i = 0; text && text[i]; i++)
		if (!isascii((unsigned char)text[i]) || !isprint((unsigned char)text[i]) || text[i] == '\\')
			return false;
	return text && strlen(text) <= SUMMARY_MOST;
}

static int check_told(const json_t *told, struct err *err)
{
	json_t *figures = json_object_get(told, "figures"), *warnings = json_object_get(told, "warnings"), *value;
	const char *name;
	size_t i;

	if (!json_is_object(told))
		return err_set(err, EBADMSG, "its step.json is no JSON object");
	if (!is_text(json_object_get(told, "summary")))
		return err_set(err, EBADMSG,
			       "'summary' of its step.json is missing, or no text of at most %d printable "
			       "characters of ASCII without backslash",
			       SUMMARY_MOST);
	if ((figures && !json_is_object(figures)) || json_object_size(figures) > FIGURES_MOST)
		return err_set(err, EBADMSG, "'figures' of its step.json is no object of at most %d numbers", FIGURES_MOST);
	json_object_foreach(figures, name, value)
	{
		json_t *text = json_string(name);
		bool ok = json_is_number(value) && isfinite(json_number_value(value)) && is_text(text) && strlen(name) <= 40;

		json_decref(text);
		if (!ok)
			return err_set(err, EBADMSG,
				       "a member of 'figures' of its step.json is no number, or its name is no "
				       "text of at most 40 characters");
	}
	if ((warnings && !json_is_array(warnings)) || json_array_size(warnings) > WARNINGS_MOST)
		return err_set(err, EBADMSG, "'warnings' of its step.json is no array of at most %d texts", WARNINGS_MOST);
	json_array_foreach(warnings, i, value)
	{
		if (!is_text(value))
			return err_set(err, EBADMSG, "warning %zu of its step.json is no text as its summary", i + 1);
	}
	return 0;
}

/* Read step.json; that of the first image is kept. */
static int read_told(struct step_run *r, int image, struct err *err)
{
	off_t size = 0;
	char *text = NULL;
	json_t *told = NULL;
	int fd = -1, rc = open_made(r, image, "step.json", &fd, &size, err);

	if (rc < 0)
		return rc;
	if (size > TOLD_MOST)
		rc = err_set(err, EBADMSG, "its step.json has %lld bytes; allowed: %d", (long long)size, TOLD_MOST);
	else if (!(text = malloc((size_t)size + 1)))
		rc = err_set(err, ENOMEM, "no memory to read what step '%s' made", r->step->name);
	else if (read(fd, text, (size_t)size) != (ssize_t)size)
		rc = err_set(err, EBADMSG, "its step.json cannot be read");
	else if (!(told = json_loadb(text, (size_t)size, JSON_REJECT_DUPLICATES, NULL)))
		rc = err_set(err, EBADMSG, "its step.json is not valid JSON");
	else
		rc = check_told(told, err);
	close(fd);
	free(text);
	if (rc == 0 && !r->report.told)
		r->report.told = json_incref(told);
	json_decref(told);
	return rc;
}

/* ---- run ---- */

static void remove_part(const struct step_run *r, int image, const char *below)
{
	struct err ignored = {0}; /* what stays is removed with the folder above */
	char path[STEP_PATH];

	name_folder(r, image, below, path, sizeof(path));
	folder_remove(path, &ignored);
}

static int run_image(struct step_run *r, int image, bool *ret_failed, struct err *err)
{
	struct step_end end = {0};
	char folder[STEP_PATH];
	int rc;

	remove_part(r, image, "");
	rc = write_image(r, image, err);
	if (rc < 0)
		return rc;
	name_folder(r, image, "", folder, sizeof(folder));
	rc = r->runner->run(r->runner->ctx, r->step, folder, r->n * sizeof(float), r->monitor, &end, err);
	if (end.seconds >= r->report.end.seconds)
		r->report.end = end;
	if (rc == 0)
		rc = read_told(r, image, err);
	if (rc == 0)
		rc = read_made(r, image, NULL, err);
	*ret_failed = rc == -EBADMSG;
	if (*ret_failed && r->v->n > 1)
		err_prefix(err, "image %d of %d", image + 1, r->v->n);
	remove_part(r, image, "/in");
	remove_part(r, image, "/scratch");
	return rc;
}

/* Replace values, and note how they change. */
static void take_values(struct step_run *r, float *at, size_t n)
{
	struct case_step_report *report = &r->report;

	for (size_t i = 0; i < n; i++) {
		report->before += at[i];
		report->after += r->values[i];
		report->largest = fmax(report->largest, fabs((double)r->values[i] - at[i]));
	}
	memcpy(at, r->values, n * sizeof(*at));
}

/* Replace all volumes. They were read before, so that an error is one of the disk: nothing of them is used then. */
static int take_volumes(struct step_run *r, struct err *err)
{
	size_t all = (size_t)r->v->n * r->n;
	double top = 0;
	int rc = 0;

	for (size_t i = 0; i < all; i++)
		top = fmax(top, fabs((double)r->v->values[i]));
	for (int image = 0; rc == 0 && image < r->v->n; image++)
		rc = read_made(r, image, take_values, err);
	r->report.before /= (double)all;
	r->report.after /= (double)all;
	r->report.largest /= top > 0 ? top : 1;
	return err_remap(rc, EBADMSG, EIO, err);
}

int case_step_run(const struct step_runner *runner, const struct step_conf *step, const struct case_volumes *v,
		  const struct monitor *monitor, struct case_step_report *ret, bool *ret_failed, struct err *err)
{
	struct step_run r = {.runner = runner,
			     .step = step,
			     .v = v,
			     .monitor = monitor,
			     .n = (size_t)v->grid->n[0] * (size_t)v->grid->n[1] * (size_t)v->grid->n[2],
			     .values = malloc(VALUES_AT_A_TIME * sizeof(float))};
	struct err ignored = {0};
	int rc = r.values ? folder_make(runner->folder, err) : err_set(err, ENOMEM, "no memory for step '%s'", step->name);

	*ret_failed = false;
	for (int image = 0; rc == 0 && image < v->n; image++)
		rc = run_image(&r, image, ret_failed, err);
	if (rc == 0)
		rc = take_volumes(&r, err);
	folder_remove(runner->folder, &ignored);
	free(r.values);
	*ret = r.report;
	if (*ret_failed)
		err_prefix(err, "step '%s' %s", step->name, step->version);
	return rc;
}

/* ---- a case ---- */

static json_t *describe_step(const struct step_conf *s, const struct case_step_report *r, const char *why)
{
	json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:f, s:I, s:i, s:i}", "name", s->name, "version", s->version, "sha256",
			      s->sha256, "parameters", s->parameters, "seconds", r->end.seconds, "memory",
			      (json_int_t)r->end.memory, "exit", r->end.exit_code, "signal", r->end.signal);

	if (why)
		json_object_set_new(o, "failed", json_string(why));
	else
		json_object_update_new(o, json_pack("{s:f, s:f, s:f, s:O*}", "mean_before", r->before, "mean_after", r->after,
						    "largest_change", r->largest, "told", r->told));
	return o;
}

/* Add what the program told: its summary, and whole figures as far as there is room. */
static void add_told(const json_t *told, char *ret, size_t size)
{
	json_t *value;
	const char *name;

	snprintf(ret, size, "%s", json_get_text(told, "summary"));
	json_object_foreach(json_object_get(told, "figures"), name, value)
	{
		size_t n = strlen(ret);

		if (n + (size_t)snprintf(NULL, 0, "; %s %.6g; ...", name, json_number_value(value)) >= size) {
			snprintf(ret + n, size - n, "; ...");
			return;
		}
		snprintf(ret + n, size - n, "; %s %.6g", name, json_number_value(value));
	}
}

/* Say in the result what the program told, and what it changed. */
static void say_step(struct reconstruct_work *w, const struct step_conf *s, const struct case_step_report *r)
{
	struct result_step *said = &w->step[w->n_steps++];
	json_t *value;
	size_t i;

	snprintf(said->name, sizeof(said->name), "%s", s->name);
	snprintf(said->version, sizeof(said->version), "%s", s->version);
	snprintf(said->sha256, sizeof(said->sha256), "%s", s->sha256);
	snprintf(said->parameters, sizeof(said->parameters), "%s", s->parameters);
	add_told(r->told, said->said, sizeof(said->said));
	snprintf(said->change, sizeof(said->change), "mean %+.3g %%, largest change %.3g %% of the largest value",
		 r->before != 0 ? 100 * (r->after - r->before) / fabs(r->before) : 0.0, 100 * r->largest);
	if (r->largest > CHANGE_MOST || fabs(r->after) < MEAN_LEAST * fabs(r->before))
		sentence_add(w->step_notes, sizeof(w->step_notes),
			     "Step %s made another volume (%s): probably in another unit or byte order.", s->name, said->change);
	json_array_foreach(json_object_get(r->told, "warnings"), i, value)
		sentence_add(w->step_notes, sizeof(w->step_notes), "Step %s: %s.", s->name, json_string_value(value));
}

/* Continue without a step that failed: the result is that of the protocol without it. */
static void drop_step(struct reconstruct_work *w, size_t at, const char *why)
{
	struct protocol_conf *p = &w->without_step;

	if (w->protocol != p)
		*p = *w->protocol;
	sentence_add(w->step_notes, sizeof(w->step_notes), "Without %.400s: it failed.", why);
	p->steps.n--;
	for (size_t i = at; i < p->steps.n; i++) {
		memcpy(p->steps.name[i], p->steps.name[i + 1], sizeof(p->steps.name[i]));
		p->step[i] = p->step[i + 1];
	}
	w->protocol = p;
}

/* Run the step at *io_at, and go to the next one. */
static int apply_step(struct reconstruct_work *w, const struct case_volumes *v, size_t *io_at, struct err *err)
{
	const struct step_conf *s = w->protocol->step[*io_at];
	struct case_step_report report = {0};
	bool failed;
	int rc = case_step_run(w->decision->steps, s, v, w->monitor, &report, &failed, err);

	if (rc == 0 || failed)
		json_array_append_new(w->steps, describe_step(s, &report, failed ? err->msg : NULL));
	if (rc == 0) {
		say_step(w, s, &report);
		++*io_at;
	} else if (failed && s->on_failure == STEP_FALLBACK) {
		drop_step(w, *io_at, err->msg);
		*err = (struct err){0};
		rc = 0;
	} else if (failed) {
		rc = err_remap(rc, EBADMSG, s->on_failure == STEP_FAIL ? ECHILD : ENOTSUP, err);
	}
	json_decref(report.told);
	return rc;
}

bool case_steps_wanted(const struct reconstruct_work *w)
{
	return w->protocol->steps.n > 0 && !w->decision->place.outside;
}

int case_steps_apply(struct reconstruct_work *w, const struct case_volumes *v, struct err *err)
{
	double begun = clock_seconds();
	size_t at = 0;
	int rc = 0;

	if (!w->decision->steps)
		return err_set(err, ENOTSUP, "protocol '%s' has steps, which cannot be run here", w->protocol->name);
	w->steps = json_array();
	while (rc == 0 && at < w->protocol->steps.n)
		rc = apply_step(w, v, &at, err);
	w->report.seconds_reconstruct += clock_seconds() - begun;
	return rc;
}

json_t *case_steps_about(const struct reconstruct_work *w, const struct sinogram *s, const struct grid *g,
			 const struct case_scale *scale)
{
	char uid[DICOM_UID_SIZE], hex[65];
	json_t *matrix = json_array();

	for (int row = 0; row < 3; row++) {
		double first = s->centre[row];

		for (int a = 0; a < 3; a++) {
			first += s->axis[a][row] * (g->lo[a] + 0.5 * g->h[a]);
			json_array_append_new(matrix, json_real(s->axis[a][row] * g->h[a]));
		}
		json_array_append_new(matrix, json_real(first));
	}
	provenance_uid("tomonode step", s->files, s->n_files, uid); /* of the sources; only its digest is told */
	dicom_sha256(uid, strlen(uid), hex);
	hex[7] = '\0';
	return json_pack("{s:s, s:s, s:s, s:i, s:o, s:{s:f, s:f, s:s}}", "kind", kind_of(w->protocol->kind)->name, "protocol",
			 w->protocol->name, "scanner", s->scanner ? s->scanner->name : "", "seed", (int)strtol(hex, NULL, 16),
			 "matrix", matrix, "result", "scale", scale->scale, "offset", scale->offset, "unit", scale->unit);
}
