/* SPDX-License-Identifier: Apache-2.0 */
/* reconstruct_report.c - write times and objects of a reconstruction as JSON, with the same names in the journal, in `show` and
 * in `recon`.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/stage_names.h"
#include "node/reconstruct/reconstruct_internal.h"

json_t *reconstruct_seconds(const struct reconstruct_report *r)
{
	const double seconds[STAGES] = {r->seconds_open,	r->seconds_read,     r->seconds_prepare, r->seconds_upload,
					r->seconds_reconstruct, r->seconds_download, r->seconds_write};
	json_t *o = json_object();

	for (size_t i = 0; i < STAGES; i++)
		json_object_set_new(o, stage_names[i], json_real(seconds[i]));
	json_object_set_new(o, "total", json_real(r->seconds_total));
	return o;
}

static json_t *describe_object(const struct reconstruct_object *o, const char *folder)
{
	char file[400];

	snprintf(file, sizeof(file), "%s%s%s", folder, folder[0] ? "/" : "", o->file);
	return json_pack("{s:s, s:s, s:s, s:s}", "file", file, "sop_instance", o->sop_instance, "sop_class", o->sop_class,
			 "series", o->series);
}

json_t *reconstruct_objects(const struct reconstruct_report *r, const char *folder)
{
	json_t *all = describe_object(&r->objects[0], folder), *list = json_array();

	for (size_t i = 0; i < r->n_objects; i++) {
		json_t *one = describe_object(&r->objects[i], folder);

		json_object_set_new(one, "kind", json_string(r->objects[i].kind));
		if (r->objects[i].bytes >= 0)
			json_object_set_new(one, "bytes", json_integer((json_int_t)r->objects[i].bytes));
		json_array_append_new(list, one);
	}
	if (json_object_set_new(all, "objects", list) < 0) {
		json_decref(all);
		return NULL;
	}
	return all;
}

int reconstruct_report_make_room(struct reconstruct_report *r, size_t n, struct err *err)
{
	r->objects = calloc(n, sizeof(*r->objects));
	if (!r->objects)
		return err_set(err, EAGAIN, "no memory for the names of %zu objects", n);
	r->n_objects = n;
	return 0;
}

int reconstruct_report_series(struct reconstruct_report *r, const struct series_report *s, struct err *err)
{
	int rc = reconstruct_report_make_room(r, (size_t)s->n, err);

	for (int i = 0; rc == 0 && i < s->n; i++) {
		struct reconstruct_object *o = &r->objects[i];

		snprintf(o->file, sizeof(o->file), "%s", s->file[i]);
		snprintf(o->sop_instance, sizeof(o->sop_instance), "%s", s->sop_instance[i]);
		snprintf(o->sop_class, sizeof(o->sop_class), "%s", s->sop_class);
		snprintf(o->series, sizeof(o->series), "%s", s->series);
		snprintf(o->digest, sizeof(o->digest), "%s", s->digest[i]);
		o->kind = "slice";
		o->bytes = -1;
	}
	r->is_series = true;
	snprintf(r->unit, sizeof(r->unit), "%s", s->unit);
	snprintf(r->warnings, sizeof(r->warnings), "%s", s->warnings);
	return rc;
}

void reconstruct_report_clear(struct reconstruct_report *r)
{
	free(r->objects);
	json_decref(r->details);
	json_decref(r->pictures);
	memset(r, 0, sizeof(*r));
}
