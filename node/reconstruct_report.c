/* reconstruct_report.c - what a reconstruction took and found, as JSON: the same words in the journal, in `show` and in `recon`.
 */
#include <stdio.h>

#include "node/reconstruct.h"

const char *const reconstruct_stages[RECONSTRUCT_STAGES] = {"open",	   "read",     "prepare", "upload",
							    "reconstruct", "download", "write"};

json_t *reconstruct_seconds(const struct reconstruct_report *r)
{
	const double seconds[RECONSTRUCT_STAGES] = {r->seconds_open,   r->seconds_read,	       r->seconds_prepare,
						    r->seconds_upload, r->seconds_reconstruct, r->seconds_download,
						    r->seconds_write};
	json_t *o = json_object();

	for (size_t i = 0; i < RECONSTRUCT_STAGES; i++)
		json_object_set_new(o, reconstruct_stages[i], json_real(seconds[i]));
	json_object_set_new(o, "total", json_real(r->seconds_total));
	return o;
}

json_t *reconstruct_bins(const struct reconstruct_report *r)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:i}", "padded", (json_int_t)r->padded, "saturated", (json_int_t)r->saturated,
			 "floored", (json_int_t)r->floored, "clamped", (json_int_t)r->clamped, "air", (json_int_t)r->air,
			 "views_without_mask", r->unmasked);
}

static json_t *object(const struct result_object *o, const char *folder)
{
	char file[400];

	snprintf(file, sizeof(file), "%s%s%s", folder, folder[0] ? "/" : "", o->file);
	return json_pack("{s:s, s:s, s:s, s:s}", "file", file, "sop_instance", o->sop_instance, "sop_class", o->sop_class,
			 "series", o->series);
}

json_t *reconstruct_objects(const struct reconstruct_report *r, const char *folder)
{
	static const char *const kinds[] = {
		[RESULT_SLICES] = "slices", [RESULT_SLABS] = "slabs", [RESULT_SYNTHETIC] = "synthetic"};
	json_t *all = object(&r->result.objects[0], folder), *list = json_array();

	for (size_t i = 0; i < r->result.n_objects; i++) {
		const struct result_object *o = &r->result.objects[i];
		json_t *one = object(o, folder);

		json_object_set_new(one, "kind", json_string(kinds[o->kind]));
		json_object_set_new(one, "bytes", json_integer((json_int_t)o->bytes));
		json_array_append_new(list, one);
	}
	if (json_object_set_new(all, "objects", list) < 0) {
		json_decref(all);
		return NULL;
	}
	return all;
}
