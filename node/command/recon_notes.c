/* SPDX-License-Identifier: Apache-2.0 */
/* recon_notes.c - what `tomonode recon` and `arrays` say of each case: printed, and collected for --json. */
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "node/base/folder.h"
#include "node/command/audit_files.h"
#include "node/command/recon_internal.h"
#include "node/command/recon_print.h"
#include "node/command/recon_report.h"
#include "node/format/correction_pictures.h"

void recon_notes_refusal(struct recon *r, int code, const char *who, const char *reason)
{
	const char *name = file_name(who);
	size_t n;
	char what[PATH_MAX]; /* JSON must be UTF-8, a file name may be any bytes */

	for (const char *once = who;; once = name) { /* the path or the name once */
		n = strlen(once);
		if (n > 0 && !strncmp(reason, once, n) && (!strncmp(reason + n, ": ", 2) || !strncmp(reason + n, ", ", 2)))
			reason += n + 2;
		if (once == name)
			break;
	}
	snprintf(what, sizeof(what), "%s", who);
	err_clean(what);
	fprintf(stderr, "tomonode %s: %s: %s\n", r->o.spec->name, what, reason);
	json_array_append_new(r->refused, json_pack("{s:s, s:s, s:i}", "what", what, "reason", reason, "code", code));
	if (!r->code)
		r->code = code;
}

/* With --report, write the reports of a result, and add their paths to its JSON. */
static void write_report(struct recon *r, const struct reconstruct_report *p, json_t *o)
{
	json_t *files, *file;
	struct err err = {0};
	size_t i;

	if (!r->report_dir)
		return;
	if (recon_report(r->config, p, r->out_dir, r->report_dir, &files, &err) < 0) {
		fprintf(stderr, "tomonode recon: no report of %s: %s\n", p->objects[0].file, err.msg);
		r->code = r->code ? r->code : (int)options_code(&err);
	}
	json_array_foreach(files, i, file)
	{
		if (!r->o.json)
			printf("  report: %s\n", json_string_value(file));
	}
	json_object_set_new(o, "reports", files);
}

/* Write the pictures of the corrections beside the objects. Without them the result is complete. */
static void write_pictures(const struct recon *r, const struct reconstruct_report *p)
{
	struct err err = {0};

	if (p->pictures && correction_pictures_write(p->pictures, r->out_dir, p->objects[0].series, &err) < 0)
		fprintf(stderr, "tomonode recon: no pictures of the corrections: %s\n", err.msg);
}

void recon_notes_arrays(struct recon *r, const struct case_files *c, const struct reconstruct_report *p)
{
	json_t *arrays = json_object_get(p->details, "arrays"), *array, *n;
	const char *role;
	size_t i;

	json_array_append_new(r->cases,
			      json_pack("{s:s, s:s, s:O}", "kind", c->kind->name, "folder", r->out_dir, "case", p->details));
	if (r->o.json)
		return;
	printf("%s/case.json: %s\n", r->out_dir, c->kind->name);
	json_object_foreach(arrays, role, array)
	{
		printf("  %s:", json_string_value(json_object_get(array, "file")));
		json_array_foreach(json_object_get(array, "shape"), i, n)
			printf("%s%lld", i ? " x " : " ", (long long)json_integer_value(n));
		printf("\n");
	}
	if (p->warnings[0])
		printf("  warning: %s\n", p->warnings);
}

void recon_notes_audit(const struct recon *r)
{
	struct audit_files files = {0};

	if (!r->arrays || !audit_is_on())
		return;
	for (size_t k = 0; k < r->list->n; k++)
		for (size_t i = 0; i < r->list->cases[k].n; i++)
			audit_files_add(&files, r->list->cases[k].paths[i]);
	audit_exported(r->out_dir, files.list, files.n, r->code);
	audit_files_clear(&files);
}

/* With --recipe, add and print what differs in the result. */
static void note_recipe(const struct recon *r, const struct reconstruct_report *p, json_t *o)
{
	json_t *changes, *one;
	char path[PATH_MAX];
	size_t i;

	if (!r->recipe_path)
		return;
	snprintf(path, sizeof(path), "%s/%s", r->out_dir, p->objects[0].file);
	changes = recon_recipe_differences(r->recipe_file, path);
	json_object_set_new(o, "recipe_differs", changes ? changes : json_null());
	if (!r->o.json && json_array_size(changes) == 0)
		printf(changes ? "  made as %s\n" : "  not compared with %s: one of the results cannot be read\n",
		       r->recipe_path);
	json_array_foreach(changes, i, one)
	{
		if (!r->o.json)
			printf("  differs from %s: %s\n", r->recipe_path, json_string_value(one));
	}
}

/* Write what the case is made of: the folder of its first file, or what was imported. JSON must be UTF-8, a path may be any bytes. */
static void name_source(const struct recon *r, const struct case_files *c, char *ret, size_t size)
{
	const struct imported_case *of = imported_cases_of(&r->imported, c);
	const char *path = c->paths[0], *slash = strrchr(path, '/');

	if (of)
		snprintf(ret, size, "%s", of->from);
	else
		snprintf(ret, size, "%.*s", slash > path ? (int)(slash - path) : 1, slash ? path : ".");
	err_clean(ret);
}

void recon_notes_result(struct recon *r, const struct case_files *c, const struct reconstruct_report *p)
{
	json_t *o =
		json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:[i,i,i], s:[f,f,f], s:I}", "kind", c->kind->name, "study",
			  c->study, "source_series", c->series, "laterality", c->laterality, "view", c->view, "device", p->device,
			  "profile", p->profile, c->kind->views, p->n_views, "size", p->n[0], p->n[1], p->n[2], "voxel_mm",
			  p->voxel[0], p->voxel[1], p->voxel[2], "device_bytes", (json_int_t)p->bytes_device);
	char source[PATH_MAX];

	json_object_update_new(o, reconstruct_objects(p, ""));
	json_object_set_new(o, "protocol", json_string(r->protocols[kind_id(c->kind)].name));
	json_object_set_new(o, "seconds", reconstruct_seconds(p));
	json_object_update(o, p->details);
	name_source(r, c, source, sizeof(source));
	json_object_set_new(o, "source", json_string(source));
	json_array_append_new(r->cases, o);
	if (!r->o.json && r->list->n > 1)
		printf("%s: ", source);
	if (!r->o.json)
		recon_print(c, p, imported_cases_of(&r->imported, c), r->out_dir);
	note_recipe(r, p, o);
	write_pictures(r, p);
	write_report(r, p, o);
}

/* Return the number of files that no case uses; CT images are used where the attenuation is made from them. */
static size_t count_ignored(const struct recon *r)
{
	bool with_ct = false;

	for (int kind = 0; kind < KIND_COUNT; kind++)
		with_ct = with_ct || (r->chosen[kind] && kind_needs_ct(&r->protocols[kind]));
	return r->list->n_ignored + (with_ct ? 0 : r->list->n_ct);
}

int recon_notes_summary(struct recon *r)
{
	const struct case_list *l = r->list;

	if (r->o.json)
		options_json(json_pack("{s:b, s:i, s:O, s:O, s:I, s:I, s:I, s:I}", "ok", !r->code, "code", r->code, "cases",
				       r->cases, "refused", r->refused, "files", (json_int_t)l->n_files, "not_dicom",
				       (json_int_t)l->n_other, "not_projections", (json_int_t)count_ignored(r), "duplicates",
				       (json_int_t)l->n_duplicates));
	else if (l->n_other || count_ignored(r) || l->n_duplicates)
		printf("ignored files: %zu not DICOM, %zu neither projections nor sinograms, %zu duplicates\n", l->n_other,
		       count_ignored(r), l->n_duplicates);
	return r->code;
}
