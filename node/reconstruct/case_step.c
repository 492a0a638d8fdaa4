/* SPDX-License-Identifier: Apache-2.0 */
/* case_step.c - one step: write what its program gets, and judge what it made. That is read like data from outside: nothing of it is
 * followed, executed or believed. See node/reconstruct/case_steps.h. */
#include "node/reconstruct/case_steps.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/base/folder.h"
#include "node/base/version.h"
#include "node/reconstruct/case_told.h"

#define STEP_PATH (sizeof(((struct step_runner *)NULL)->folder) + 60) /* bytes of the paths below its folder */

#define WARNINGS_MOST 32 /* of all images */

struct step_run {
	const struct step_runner *runner;
	const struct step_conf *step;
	const struct case_volumes *v;
	const struct monitor *monitor;
	struct case_step_report report;
	size_t slice, n; /* values of a slice, of a volume */
	float *before;	 /* of a slice */
	float *made;	 /* what it became */
	double top;	 /* largest value before */
};

size_t case_step_bytes(const struct grid *g)
{
	return 2 * (size_t)g->n[0] * (size_t)g->n[1] * sizeof(float);
}

static void name_folder(const struct step_run *r, int image, const char *below, char *ret, size_t size)
{
	snprintf(ret, size, "%s/%d%s", r->runner->folder, image + 1, below);
}

static float *find_slice(const struct step_run *r, int image, int k)
{
	return r->v->values + (size_t)image * r->n + (size_t)k * r->slice;
}

static int read_slice(struct step_run *r, int image, int k, struct err *err)
{
	if (r->v->read)
		return r->v->read(r->v->ctx, k, r->before, err);
	memcpy(r->before, find_slice(r, image, k), r->slice * sizeof(float));
	return 0;
}

static int replace_slice(const struct step_run *r, int image, int k, struct err *err)
{
	if (r->v->replace)
		return r->v->replace(r->v->ctx, k, r->made, err);
	memcpy(find_slice(r, image, k), r->made, r->slice * sizeof(float));
	return 0;
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

/* Write the values, and note the largest one. */
static int write_values(struct step_run *r, int image, struct case_arrays *a, struct err *err)
{
	float top = 0;
	int rc = 0;

	for (int k = 0; rc == 0 && k < r->v->grid->n[2]; k++) {
		rc = read_slice(r, image, k, err);
		for (size_t i = 0; rc == 0 && i < r->slice; i++)
			top = fabsf(r->before[i]) > top ? fabsf(r->before[i]) : top;
		if (rc == 0)
			rc = case_arrays_add(a, r->before, r->slice, err);
	}
	r->top = fmax(r->top, top);
	return rc;
}

static int write_image(struct step_run *r, int image, struct err *err)
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
		rc = write_values(r, image, &a, err);
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

/* Read slice k of what it made. */
static int read_made(struct step_run *r, FILE *f, int k, struct err *err)
{
	if (fread(r->made, sizeof(float), r->slice, f) != r->slice)
		return err_set(err, EBADMSG, "its volume.f32 cannot be read");
	for (size_t i = 0; i < r->slice; i++)
		if (!isfinite(r->made[i]))
			return err_set(err, EBADMSG, "voxel %zu of its volume.f32 is %g", (size_t)k * r->slice + i,
				       (double)r->made[i]);
	return 0;
}

/* Read what it made, slice by slice; use() may be NULL. */
static int use_made(struct step_run *r, int image, int (*use)(struct step_run *, int image, int k, struct err *), struct err *err)
{
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
	for (int k = 0; rc == 0 && k < r->v->grid->n[2]; k++) {
		rc = read_made(r, f, k, err);
		if (rc == 0 && use)
			rc = use(r, image, k, err);
	}
	if (f)
		fclose(f);
	else
		close(fd);
	return rc;
}

/* Add the warnings of another image that are not there yet. */
static void add_warnings(json_t *told, const json_t *other)
{
	json_t *warnings = json_object_get(told, "warnings"), *value;
	size_t i, k;

	if (!warnings) {
		warnings = json_array();
		json_object_set_new(told, "warnings", warnings);
	}
	json_array_foreach(json_object_get(other, "warnings"), i, value)
	{
		for (k = 0; k < json_array_size(warnings) && !json_equal(json_array_get(warnings, k), value); k++)
			;
		if (k == json_array_size(warnings) && k < WARNINGS_MOST)
			json_array_append(warnings, value);
	}
}

/* Read step.json; that of the first image is kept, with the warnings of all. */
static int read_told(struct step_run *r, int image, struct err *err)
{
	json_t *told = NULL;
	off_t size;
	int fd = -1, rc = open_made(r, image, "step.json", &fd, &size, err);

	if (rc < 0)
		return rc;
	rc = case_told_read(fd, "its step.json", &told, err);
	close(fd);
	if (r->report.told) {
		add_warnings(r->report.told, told);
		json_decref(told);
	} else {
		r->report.told = told;
	}
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

/* Run the program; on a GPU when it is its turn to compute. */
static int run_program(struct step_run *r, const char *folder, struct step_end *ret, struct err *err)
{
	bool gpu = r->step->gpu;
	int rc;

	if (gpu && monitor_take_turn(r->monitor, true) < 0)
		return err_set(err, ECANCELED, "cancelled while step '%s' waited for the device", r->step->name);
	rc = r->runner->run(r->runner->ctx, r->step, folder, r->n * sizeof(float), r->monitor, ret, err);
	if (gpu)
		monitor_take_turn(r->monitor, false);
	return rc;
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
	rc = run_program(r, folder, &end, err);
	if (end.seconds >= r->report.end.seconds)
		r->report.end = end;
	if (rc == 0)
		rc = read_told(r, image, err);
	if (rc == 0)
		rc = use_made(r, image, NULL, err);
	*ret_failed = rc == -EBADMSG;
	if (*ret_failed && r->v->n > 1)
		err_prefix(err, "image %d of %d", image + 1, r->v->n);
	remove_part(r, image, "/in");
	remove_part(r, image, "/scratch");
	return rc;
}

/* Replace a slice, and note how it changes. */
static int take_slice(struct step_run *r, int image, int k, struct err *err)
{
	double before = 0, after = 0, largest = r->report.largest;
	int rc = read_slice(r, image, k, err);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < r->slice; i++) {
		double change = fabs((double)r->made[i] - r->before[i]);

		before += r->before[i];
		after += r->made[i];
		largest = change > largest ? change : largest;
	}
	r->report.before += before;
	r->report.after += after;
	r->report.largest = largest;
	return replace_slice(r, image, k, err);
}

/* Replace all volumes. They were read before, so that an error is one of the disk or the device: nothing of them is used then. */
static int take_volumes(struct step_run *r, struct err *err)
{
	double all = (double)r->v->n * (double)r->n;
	int rc = 0;

	for (int image = 0; rc == 0 && image < r->v->n; image++)
		rc = use_made(r, image, take_slice, err);
	r->report.before /= all;
	r->report.after /= all;
	r->report.largest /= r->top > 0 ? r->top : 1;
	return err_remap(rc, EBADMSG, EIO, err);
}

int case_step_run(const struct step_runner *runner, const struct step_conf *step, const struct case_volumes *v,
		  const struct monitor *monitor, struct case_step_report *ret, bool *ret_failed, struct err *err)
{
	const struct grid *g = v->grid;
	struct step_run r = {.runner = runner,
			     .step = step,
			     .v = v,
			     .monitor = monitor,
			     .slice = (size_t)g->n[0] * (size_t)g->n[1],
			     .n = (size_t)g->n[0] * (size_t)g->n[1] * (size_t)g->n[2],
			     .before = malloc(case_step_bytes(g))};
	struct err ignored = {0};
	int rc = r.before ? folder_make(runner->folder, err) : err_set(err, ENOMEM, "no memory for step '%s'", step->name);

	r.made = r.before ? r.before + r.slice : NULL;
	*ret_failed = false;
	for (int image = 0; rc == 0 && image < v->n; image++)
		rc = run_image(&r, image, ret_failed, err);
	if (rc == 0)
		rc = take_volumes(&r, err);
	folder_remove(runner->folder, &ignored);
	free(r.before);
	*ret = r.report;
	if (*ret_failed)
		err_prefix(err, "step '%s' %s", step->name, step->version);
	return rc;
}
