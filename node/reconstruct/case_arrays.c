/* SPDX-License-Identifier: Apache-2.0 */
/* case_arrays.c - see node/reconstruct/case_arrays.h. */
#include "node/reconstruct/case_arrays.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/folder.h"
#include "node/config/kind.h"
#include "recon/dbt/dbt_keys.h"
#include "recon/parallel/parallel_keys.h"
#include "recon/pet/pet_keys.h"

#define KEYS_SIZE 2000

/* The keys that tn_recon_new() has. */
static const struct key pet_keys[] = {PET_KEYS(protocol_conf, pet.), PET_KEYS_DEVICE(protocol_conf, pet.)};
static const struct key dbt_keys[] = {DBT_KEYS(protocol_conf, dbt.), DBT_KEYS_DEVICE(protocol_conf, dbt.)};
static const struct key parallel_keys[] = {PARALLEL_KEYS(protocol_conf, parallel.)};

#define TABLE(name) [KIND_##name]
#define KEYS(keys)                                                                                                               \
	{                                                                                                                        \
		keys, sizeof(keys) / sizeof((keys)[0])                                                                           \
	}
static const struct {
	const struct key *keys;
	size_t n;
} tables[KIND_COUNT] = {TABLE(PET) = KEYS(pet_keys), TABLE(DBT) = KEYS(dbt_keys), TABLE(PARALLEL) = KEYS(parallel_keys)};

static int open_file(struct case_arrays *a, const char *name, struct err *err)
{
	size_t size = strlen(a->folder) + strlen(name) + 2;
	char *path = malloc(size);
	int rc = path ? 0 : err_set(err, ENOMEM, "no memory for the name of a file");

	if (rc == 0) {
		snprintf(path, size, "%s/%s", a->folder, name);
		rc = atomic_file_open(path, &a->file[a->n], err);
		a->n += rc == 0;
	}
	free(path);
	return rc;
}

int case_arrays_open(struct case_arrays *a, const char *role, const char *unit, bool is_int, const size_t shape[CASE_ARRAYS_AXES],
		     struct err *err)
{
	json_t *axes = json_array(), *all;
	char name[40];
	int rc = a->n == 0 ? folder_create(a->folder, err) : 0;

	if (!a->json)
		a->json = json_pack("{s:{}}", "arrays");
	all = json_object_get(a->json, "arrays");
	for (int i = 0; i < CASE_ARRAYS_AXES; i++)
		if (shape[i] > 0)
			json_array_append_new(axes, json_integer((json_int_t)shape[i]));
	snprintf(name, sizeof(name), "%s.%s", role, is_int ? "i32" : "f32");
	json_object_set_new(
		all, role,
		json_pack("{s:s, s:s, s:o, s:s}", "file", name, "type", is_int ? "<i4" : "<f4", "shape", axes, "unit", unit));
	return rc < 0 ? rc : open_file(a, name, err);
}

int case_arrays_add(struct case_arrays *a, const void *values, size_t n, struct err *err)
{
	return atomic_file_write(a->file[a->n - 1], values, n * sizeof(float), err);
}

/* Set keys without effect to their defaults, as the library refuses others. */
static void drop_keys(const struct key *keys, size_t n, const struct protocol_conf *defaults, struct protocol_conf *p)
{
	char why[KEY_EFFECT_SIZE];
	const char *name;

	while ((name = keys_without_effect(keys, n, defaults, p, "", why))) {
		const struct key *key = key_find(keys, n, name);

		if (key_store_text(key, key->fallback, p) < 0)
			return;
	}
}

static void write_keys(const struct protocol_conf *protocol, char *ret, size_t size)
{
	const struct key *keys = tables[protocol->kind].keys;
	size_t n = tables[protocol->kind].n;
	struct protocol_conf p = *protocol, defaults = *protocol;
	char value[100], usual[100];

	for (size_t i = 0; i < n; i++)
		key_store_text(&keys[i], keys[i].fallback, &defaults);
	drop_keys(keys, n, &defaults, &p);
	for (size_t i = 0; i < n; i++) {
		size_t at = strlen(ret);

		key_format(&keys[i], &p, value, sizeof(value));
		key_format(&keys[i], &defaults, usual, sizeof(usual));
		if (i == 0 || strcmp(value, usual) != 0) /* the algorithm is always said */
			snprintf(ret + at, size - at, "%s%s=%s", at ? " " : "", keys[i].name, value);
	}
}

void case_arrays_grid(struct case_arrays *a, const struct grid *g)
{
	json_object_set_new(a->json, "grid",
			    json_pack("{s:[i,i,i], s:[f,f,f], s:[f,f,f]}", "n", g->n[0], g->n[1], g->n[2], "h", g->h[0], g->h[1],
				      g->h[2], "lo", g->lo[0], g->lo[1], g->lo[2]));
}

void case_arrays_describe(struct case_arrays *a, const struct protocol_conf *protocol, const char *more, const struct grid *g,
			  const struct case_scale *scale)
{
	char keys[KEYS_SIZE];

	snprintf(keys, sizeof(keys), "%s", more);
	write_keys(protocol, keys, sizeof(keys));
	json_object_set_new(a->json, "keys", json_string(keys));
	case_arrays_grid(a, g);
	json_object_set_new(a->json, "result",
			    json_pack("{s:f, s:f, s:s}", "scale", scale->scale, "offset", scale->offset, "unit", scale->unit));
}

json_t *case_arrays_tof(const struct scan_tof *tof)
{
	return tof->n > 0 ? json_pack("{s:i, s:f, s:f}", "n", tof->n, "width", tof->width, "sigma", tof->sigma) : json_null();
}

static int write_array(struct case_arrays *a, const char *role, const char *unit, const size_t shape[CASE_ARRAYS_AXES],
		       const float *const *parts, size_t offset, struct err *err)
{
	size_t n = shape[1] * shape[2];
	int rc = case_arrays_open(a, role, unit, false, shape, err);

	for (size_t i = 0; rc == 0 && i < shape[0]; i++)
		rc = case_arrays_add(a, parts[i] + offset, n, err);
	return rc;
}

/* Describe a view by 12 numbers: source, centre of the detector, and the steps of its columns and rows. */
static json_t *describe_view(const struct scan *scan, const struct scan_view *view)
{
	double at[4][3], middle[2] = {0.5 * (scan->n_u - 1), 0.5 * (scan->n_v - 1)};
	json_t *all = json_array();

	memcpy(at[0], view->src, sizeof(at[0]));
	scan_bin_at(scan, view, middle[0], middle[1], at[1]);
	scan_bin_at(scan, view, middle[0] + 1, middle[1], at[2]);
	scan_bin_at(scan, view, middle[0], middle[1] + 1, at[3]);
	for (int i = 0; i < 4; i++)
		for (int c = 0; c < 3; c++)
			json_array_append_new(all, json_real(i < 2 ? at[i][c] : at[i][c] - at[1][c]));
	return all;
}

int case_arrays_views(struct case_arrays *a, const struct scan *detector, const struct dbt_plan *plan, float *const *views,
		      struct err *err)
{
	const size_t shape[CASE_ARRAYS_AXES] = {(size_t)plan->n_views, (size_t)plan->n_v, (size_t)plan->n_u};
	const float *const *parts = (const float *const *)views;
	json_t *all = json_array();
	struct scan *scan = NULL;
	int rc = scan_create_binned(detector, plan->bin, NULL, &scan, err);

	if (rc == 0)
		rc = write_array(a, "data", "1", shape, parts, 0, err);
	if (rc == 0)
		rc = write_array(a, "valid", "1", shape, parts, shape[1] * shape[2], err);
	for (int i = 0; rc == 0 && i < plan->n_views; i++)
		json_array_append_new(all, describe_view(scan, &scan->views[i]));
	scan_free(scan);
	json_object_set_new(a->json, "kind", json_string("views"));
	json_object_set_new(
		a->json, "scan",
		json_pack("{s:i, s:i, s:i, s:o}", "n", plan->n_views, "n_u", plan->n_u, "n_v", plan->n_v, "views", all));
	return rc;
}

int case_arrays_parallel(struct case_arrays *a, const struct parallel_scan *p, const char *unit, const float *lines,
			 struct err *err)
{
	const size_t shape[CASE_ARRAYS_AXES] = {(size_t)p->n_slices, (size_t)p->n_angles, (size_t)p->n_radial};
	json_t *angle = p->angle ? json_array() : NULL;
	int rc = case_arrays_open(a, "data", unit, false, shape, err);

	for (int i = 0; angle && i < p->n_angles; i++)
		json_array_append_new(angle, json_real(p->angle[i]));
	json_object_set_new(a->json, "kind", json_string(kind_parallel.name));
	json_object_set_new(a->json, "scan",
			    json_pack("{s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:o*}", "slices", p->n_slices, "angles",
				      p->n_angles, "radial", p->n_radial, "bin", p->bin, "slice", p->slice, "offset", p->offset,
				      "first_angle", p->first_angle, "arc", p->arc, "angle", angle));
	return rc < 0 ? rc : case_arrays_add(a, lines, shape[0] * shape[1] * shape[2], err);
}

int case_arrays_end(struct case_arrays *a, struct err *err)
{
	char *text = json_dumps(a->json, JSON_INDENT(1) | JSON_SORT_KEYS);
	int rc = text ? open_file(a, "case.json", err) : err_set(err, ENOMEM, "no memory for case.json");

	if (rc == 0)
		rc = atomic_file_write(a->file[a->n - 1], text, strlen(text), err);
	free(text);
	if (rc < 0)
		return rc;
	rc = atomic_files_close(a->file, a->n, err);
	a->n = 0; /* they are freed, on failure too */
	return rc;
}

void case_arrays_clear(struct case_arrays *a)
{
	while (a->n > 0)
		atomic_file_abort(a->file[--a->n]);
	json_decref(a->json);
	a->json = NULL;
}
