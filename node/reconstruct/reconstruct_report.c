/* reconstruct_report.c - what a reconstruction took and found, as JSON: the same words in the journal,
 * in `show` and in `recon`. */
#include <stdio.h>

#include "node/base/stage_names.h"
#include "node/reconstruct/reconstruct.h"

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

static json_t *bins(const struct reconstruct_report *r)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:i}", "padded", (json_int_t)r->padded, "saturated", (json_int_t)r->saturated,
			 "floored", (json_int_t)r->floored, "clamped", (json_int_t)r->clamped, "air", (json_int_t)r->air,
			 "views_without_mask", r->unmasked);
}

static json_t *pet_details(const struct reconstruct_pet *p)
{
	return json_pack("{s:I, s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:b, s:f, s:f, s:f, s:f, s:s, s:s, s:s}", "planes",
			 (json_int_t)p->planes, "iterations", p->iterations, "subsets", p->subsets, "angles_at_a_time",
			 p->group_views, "fov_radius_mm", p->fov_radius, "counts", p->run.counts, "sum_data", p->run.sum_data,
			 "sum_model", p->run.sum_model, "sensitivity_cached", p->run.sensitivity_cached, "seconds_setup",
			 p->run.seconds_setup, "seconds_sensitivity", p->run.seconds_sensitivity, "seconds_iterate",
			 p->run.seconds_iterate, "seconds_filter", p->run.seconds_filter, "units", p->result.units, "corrected",
			 p->result.corrected, "warnings", p->result.warnings);
}

static json_t *parallel_details(const struct reconstruct_parallel *p)
{
	return json_pack("{s:i, s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:s, s:s, s:s}", "radial", p->radial, "iterations",
			 p->iterations, "subsets", p->subsets, "slices_at_a_time", p->part_slices, "fov_radius_mm", p->fov_radius,
			 "residual", p->run.residual, "seconds_setup", p->run.seconds_setup, "seconds_filter",
			 p->run.seconds_filter, "seconds_iterate", p->run.seconds_iterate, "units", p->result.units, "unit",
			 p->result.unit, "warnings", p->result.warnings);
}

json_t *reconstruct_details(const struct reconstruct_report *r)
{
	if (r->kind == KIND_PET)
		return json_pack("{s:o}", "pet", pet_details(&r->pet));
	if (r->kind == KIND_PARALLEL)
		return json_pack("{s:o}", "parallel", parallel_details(&r->parallel));
	return json_pack("{s:o}", "bins", bins(r));
}

size_t reconstruct_n_objects(const struct reconstruct_report *r)
{
	return r->kind == KIND_PET	  ? (size_t)r->pet.result.n
	       : r->kind == KIND_PARALLEL ? (size_t)r->parallel.result.n
					  : r->result.n_objects;
}

const char *reconstruct_file(const struct reconstruct_report *r, size_t object)
{
	return r->kind == KIND_PET	  ? r->pet.result.file[object]
	       : r->kind == KIND_PARALLEL ? r->parallel.result.file[object]
					  : r->result.objects[object].file;
}

static json_t *describe(const struct reconstruct_report *r, size_t i, const char *folder)
{
	const struct pet_result_report *pet = &r->pet.result;
	const struct ct_result_report *ct = &r->parallel.result;
	const struct result_object *o;
	char file[400];

	snprintf(file, sizeof(file), "%s%s%s", folder, folder[0] ? "/" : "", reconstruct_file(r, i));
	if (r->kind == KIND_PET)
		return json_pack("{s:s, s:s, s:s, s:s}", "file", file, "sop_instance", pet->sop_instance[i], "sop_class",
				 PET_RESULT_CLASS, "series", pet->series);
	if (r->kind == KIND_PARALLEL)
		return json_pack("{s:s, s:s, s:s, s:s}", "file", file, "sop_instance", ct->sop_instance[i], "sop_class",
				 CT_RESULT_CLASS, "series", ct->series);
	o = &r->result.objects[i];
	return json_pack("{s:s, s:s, s:s, s:s}", "file", file, "sop_instance", o->sop_instance, "sop_class", o->sop_class,
			 "series", o->series);
}

json_t *reconstruct_objects(const struct reconstruct_report *r, const char *folder)
{
	static const char *const kinds[] = {
		[RESULT_SLICES] = "slices", [RESULT_SLABS] = "slabs", [RESULT_SYNTHETIC] = "synthetic"};
	json_t *all = describe(r, 0, folder), *list = json_array();

	for (size_t i = 0; i < reconstruct_n_objects(r); i++) {
		json_t *one = describe(r, i, folder);

		if (r->kind != KIND_DBT) {
			json_object_set_new(one, "kind", json_string("slice"));
		} else {
			json_object_set_new(one, "kind", json_string(kinds[r->result.objects[i].kind]));
			json_object_set_new(one, "bytes", json_integer((json_int_t)r->result.objects[i].bytes));
		}
		json_array_append_new(list, one);
	}
	if (json_object_set_new(all, "objects", list) < 0) {
		json_decref(all);
		return NULL;
	}
	return all;
}
