/* SPDX-License-Identifier: Apache-2.0 */
/* reconstruct_dbt.c - reconstruct one tomosynthesis: views are read and prepared in parallel, and each slice is written as soon
 * as it is available. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dicom/object/dicom_tags.h"
#include "kernels/clock.h"
#include "node/base/sentence.h"
#include "node/base/thread_pool.h"
#include "node/reconstruct/case_views.h"
#include "node/reconstruct/reconstruct_internal.h"
#include "node/result/result.h"
#include "node/tomo/exam.h"
#include "recon/dbt/scatter.h"

#define METAL_SAID 3 /* objects of metal whose places a sentence names */

struct dbt_work {
	struct reconstruct_work base;
	struct exam *exam;
	struct dbt_plan plan;
	struct dbt_session *session;
	struct case_views_report views;
	struct case_views_kept kept;
	struct dbt_report ran;	   /* after run_dbt_case() */
	struct result_report made; /* after write_dbt_case() */
};

static int recognise_dbt(const struct dicom_file *file, struct case_facts *f, struct err *err)
{
	struct exam_facts e;

	(void)err;
	if (!exam_facts_of(file, &e))
		return case_is_not(f, e.refused, e.reason);
	memcpy(f->laterality, e.laterality, sizeof(f->laterality));
	memcpy(f->view, e.view, sizeof(f->view));
	f->expected = e.expected;
	f->frames = e.frames;
	f->angle = e.angle;
	memcpy(f->manufacturer, e.manufacturer, sizeof(f->manufacturer));
	memcpy(f->model, e.model, sizeof(f->model));
	memcpy(f->serial, e.serial, sizeof(f->serial));
	f->exposure = e.exposure;
	return 1;
}

static int reserve_dbt(struct dbt_work *w, struct err *err)
{
	size_t bytes_kept;

	w->kept.keep = w->base.keep || w->base.arrays;
	bytes_kept = case_views_kept_bytes(&w->kept, w->exam, &w->base.protocol->dbt, &w->plan);
	return reconstruct_reserve_memory(&w->base, w->plan.bytes.total + w->plan.bytes.threads,
					  w->plan.bytes.host + case_steps_bytes(&w->base, &w->plan.grid), bytes_kept, err);
}

static int open_dbt_case(struct reconstruct_work *base, struct err *err)
{
	struct dbt_work *w = (struct dbt_work *)base;
	const struct result_outside *outside = base->decision->place.outside;
	int rc;

	if (outside && outside->algorithm == RESULT_UNSTATED)
		return err_set(err, ENOTSUP,
			       "the header of a tomosynthesis names the kind of algorithm that computed it: state --algorithm "
			       "iterative, filtered or backprojection");
	rc = w->exam ? 0
		     : exam_open(base->paths, base->n_paths, base->decision->as_is, &base->decision->patient, base->config,
				 &w->exam, err);

	if (rc < 0)
		return rc;
	rc = dbt_plan(&base->protocol->dbt, w->exam->scan, w->exam->support, w->exam->thickness, base->dev, &w->plan, err);
	reconstruct_name_protocol(base, rc, err);
	if (rc == 0)
		rc = result_check(base->protocol, &w->plan, err);
	rc = err_remap(rc, EINVAL, ENOTSUP, err); /* the protocol cannot be used for this case */
	if (rc == 0)
		rc = reconstruct_check_size(base, &w->plan.grid, base->protocol->dbt.voxel > 0 ? NULL : "voxel", err);
	if (rc == 0)
		rc = reserve_dbt(w, err);
	if (rc == 0)
		rc = dbt_open(&base->protocol->dbt, &w->plan, w->exam->scan, base->dev, &w->session, err);
	return rc;
}

/* Refuse a case of relative attenuation if the protocol requires quantitative values. */
static int check_quantity(const struct dbt_work *w, struct err *err)
{
	if (!w->exam->relative[0] || !w->base.protocol->require_quantitative)
		return 0;
	return err_set(
		err, EBADMSG,
		"the attenuation would be relative (%s), and the protocol '%s' has require_quantitative; add air_value or a "
		"flat field to the profile '%s', or retry with another protocol",
		w->exam->relative, w->base.protocol->name, w->exam->profile->name);
}

static int read_dbt_case(struct reconstruct_work *base, struct err *err)
{
	struct dbt_work *w = (struct dbt_work *)base;
	char unshaped[160];
	int rc;

	w->kept.keep = base->keep || base->arrays;
	rc = case_read_views(w->exam, &base->protocol->dbt, &w->plan, w->session, threads_available(), base->monitor, &w->kept,
			     &w->views, err);
	base->keep = base->keep && w->kept.keep;
	if (rc == 0)
		rc = check_quantity(w, err);
	exam_unshaped(w->exam, unshaped, sizeof(unshaped));
	if (unshaped[0])
		dbt_forgo_shape(w->session, unshaped);
	base->report.seconds_read = w->views.seconds_read;
	base->report.seconds_prepare = w->views.seconds_prepare;
	base->report.seconds_upload = w->views.seconds_upload;
	return rc;
}

static int run_dbt_case(struct reconstruct_work *base, struct err *err)
{
	struct dbt_work *w = (struct dbt_work *)base;

	return dbt_run(w->session, base->monitor, &w->ran, err);
}

static int take_dbt_volume(struct reconstruct_work *base, struct err *err)
{
	struct dbt_work *w = (struct dbt_work *)base;
	int rc = reconstruct_outside(base, &w->plan.grid, NULL, err);

	return rc < 0 ? rc : dbt_take(w->session, base->decision->place.outside->values, err);
}

static int name_objects(const struct result_report *made, struct reconstruct_report *report, struct err *err)
{
	int rc = reconstruct_report_make_room(report, made->n_objects, err);

	for (size_t i = 0; rc == 0 && i < made->n_objects; i++) {
		const struct result_object *from = &made->objects[i];
		struct reconstruct_object *o = &report->objects[i];

		memcpy(o->file, from->file, sizeof(o->file));
		memcpy(o->sop_instance, from->sop_instance, sizeof(o->sop_instance));
		memcpy(o->sop_class, from->sop_class, sizeof(o->sop_class));
		memcpy(o->series, from->series, sizeof(o->series));
		memcpy(o->digest, from->digest, sizeof(o->digest));
		o->kind = from->name;
		o->bytes = (int64_t)from->bytes;
	}
	return rc;
}

/* Add a sentence if the scatter is that of a system without grid, and the header names one. */
static void add_grid_warning(const struct exam *exam, char *text, size_t size)
{
	char grid[49];

	exam_grid(exam, grid, sizeof(grid));
	if (grid[0] && exam->profile->scatter_scale == 1)
		sentence_add(text, size,
			     "The images name an anti-scatter grid, (0018,1166) %s, but scatter_scale of the profile '%s' is 1, "
			     "that of a system without grid: the attenuation is too large.",
			     grid, exam->profile->name);
}

static double largest_angle(const struct exam *exam)
{
	double most = 0;

	for (int i = 0; i < exam->n_views; i++)
		most = fmax(most, fabs(exam->views[i].angle));
	return most;
}

/* Add sentences if the scatter correction is inaccurate, extrapolates its table, or is that of another system. */
static void add_scatter_warnings(const struct dbt_work *w, char *text, size_t size)
{
	double thickness = w->exam->thickness;

	if (!w->base.protocol->dbt.scatter)
		return;
	if (!(thickness >= SCATTER_THICKNESS_LEAST && thickness <= SCATTER_THICKNESS_MOST))
		sentence_add(text, size,
			     "The compressed thickness of %g mm is outside the table of the scatter correction, %g to %g mm.",
			     thickness, SCATTER_THICKNESS_LEAST, SCATTER_THICKNESS_MOST);
	else if (thickness > SCATTER_THICKNESS_SURE && largest_angle(w->exam) > SCATTER_ANGLE_SURE)
		sentence_add(text, size,
			     "At %g mm and %.0f degrees the scatter correction leaves errors of up to 7 %% of the attenuation at "
			     "the sides of the object and behind dense tissue.",
			     thickness, largest_angle(w->exam));
	add_grid_warning(w->exam, text, size);
}

/* Describe the scatter that was subtracted; of a volume from outside only if it was computed from such data. */
static void scatter_text(const struct dbt_work *w, char *ret_text, size_t size)
{
	const struct result_outside *outside = w->base.decision->place.outside;
	const struct case_views_report *v = &w->views;

	ret_text[0] = '\0';
	if (outside && !outside->corrected)
		return;
	if (w->base.protocol->dbt.scatter)
		snprintf(ret_text, size,
			 "Scatter subtracted: %.3f of the primary intensity, %.3f to %.3f in the projections, %.3f in the air.",
			 v->scatter_mean, v->scatter_least, v->scatter_most, v->scatter_air);
	add_scatter_warnings(w, ret_text, size);
}

/* Compute column, row and slice of the result's slices, from 1, at a place. */
static void place_in_slices(const struct dbt_work *w, const double at[3], double ret[3])
{
	const struct grid *g = &w->plan.grid;
	const bool turned[3] = {w->exam->columns_toward_chest, w->exam->rows_toward_minus_y};

	for (int c = 0; c < 3; c++) {
		double i = (at[c] - g->lo[c]) / g->h[c] + 0.5;

		ret[c] = turned[c] ? g->n[c] + 1 - i : i;
	}
}

/* Say how many objects of metal were found, and where the first ones are. */
static void metal_text(const struct dbt_work *w, char *ret_text, size_t size)
{
	const struct metal_report *r = &w->ran.metal;
	size_t at;

	ret_text[0] = '\0';
	if (r->n == 0)
		return;
	snprintf(ret_text, size, "Metal: %d object%s, replaced in the projections and put back", r->n, r->n > 1 ? "s" : "");
	for (int i = 0; i < r->n && i < METAL_SAID; i++) {
		const struct metal_object *o = &r->object[i];
		double place[3];

		place_in_slices(w, o->at, place);
		at = strlen(ret_text);
		snprintf(ret_text + at, size - at, "%s column %.0f, row %.0f, slice %.0f (%d of %d projections)", i ? ";" : ":",
			 place[0], place[1], place[2], o->views, o->of);
	}
	at = strlen(ret_text);
	snprintf(ret_text + at, size - at, r->n > METAL_SAID ? "; and %d more." : ".", r->n - METAL_SAID);
	at = strlen(ret_text);
	snprintf(ret_text + at, size - at, " What its shadows cover in nearly all projections, as a calcification, is lost.");
}

static int read_slice(void *ctx, int slice, float *ret, struct err *err)
{
	return dbt_read_slices(ctx, slice, 1, ret, err);
}

static int replace_slice(void *ctx, int slice, const float *values, struct err *err)
{
	return dbt_replace_slices(ctx, slice, 1, values, err);
}

/* The volume remains in the session. */
static int apply_steps(struct dbt_work *w, struct err *err)
{
	static const struct case_scale scale = {1, 0, "1/mm"};
	const struct case_origin from = {NULL, w->exam->axis, w->exam->profile->name, w->exam->files, w->exam->n_files};
	struct case_volumes v = {.read = read_slice,
				 .replace = replace_slice,
				 .ctx = w->session,
				 .n = 1,
				 .grid = &w->plan.grid,
				 .unit = scale.unit};
	json_t *about = case_steps_about(&w->base, &from, v.grid, &scale);
	int rc;

	json_object_set_new(about, "quantitative", json_boolean(!w->exam->relative[0]));
	v.about = about;
	rc = case_steps_apply(&w->base, &v, err);
	json_decref(about);
	return rc;
}

static int write_dbt_case(struct reconstruct_work *base, struct err *err)
{
	struct dbt_work *w = (struct dbt_work *)base;
	struct result_info info = {.plan = &w->plan, .now = clock_wall(), .keep_free = base->keep_free, .note = base->notes};
	const struct result_report *made = &w->made;
	int rc = case_steps_wanted(base) ? apply_steps(w, err) : 0;

	if (rc < 0)
		return rc;
	info.protocol = base->protocol; /* a step may have failed */
	snprintf(info.device, sizeof(info.device), "%s", base->dev->name);
	scatter_text(w, info.scatter, sizeof(info.scatter));
	breast_shape_text(&w->ran.shape, info.shape, sizeof(info.shape));
	metal_text(w, info.metal, sizeof(info.metal));
	w->exam->place = base->decision->place;
	w->exam->place.step = base->step;
	w->exam->place.n_steps = base->n_steps;
	rc = result_write(w->exam, &info, w->session, base->out_dir, &w->made, err);
	if (rc < 0)
		return rc;
	base->report.seconds_download = made->seconds_tally + made->seconds_download;
	base->report.seconds_write = made->seconds_write;
	snprintf(base->report.omitted, sizeof(base->report.omitted), "%s", made->omitted);
	return name_objects(made, &base->report, err);
}

/* Count the views by the source of their I0. */
static json_t *i0_sources(const struct exam *exam)
{
	int n[I0_UNKNOWN + 1] = {0};

	for (int i = 0; exam->i0 && i < exam->n_views; i++)
		n[exam->i0[i].source]++;
	return json_pack("{s:i, s:i, s:i, s:i}", "air", n[I0_OF_VIEW], "other_views", n[I0_OF_OTHERS], "profile",
			 n[I0_OF_PROFILE], "unknown", n[I0_UNKNOWN]);
}

/* Describe what of the header the geometry is from. */
static json_t *geometry_details(const struct exam *exam)
{
	static const char *const sources[] = {
		[GEOMETRY_LITERATURE] = "literature", [GEOMETRY_CALIBRATED] = "calibrated", [GEOMETRY_SIMULATED] = "simulated"};

	return json_pack("{s:s, s:f, s:[f,f], s:s?}", "source",
			 exam->profile->pose_in_header ? "header" : sources[exam->profile->geometry_source], "bin_mm",
			 exam->scan->h[0], "window_mm", exam->window[0], exam->window[1], "distance_to_patient_is_to",
			 exam->sod_meaning);
}

/* The scale of the stored values, and the number of voxels beyond its ends. */
static json_t *stored_details(const struct result_report *made)
{
	return json_pack("{s:i, s:f, s:I, s:I}", "bits", made->bits, "step", made->step, "below", (json_int_t)made->below,
			 "above", (json_int_t)made->above);
}

/* Return the ratios of scattered to primary intensity; NULL: scatter was not subtracted. */
static json_t *scatter_ratios(const struct dbt_work *w)
{
	const struct case_views_report *v = &w->views;

	return w->base.protocol->dbt.scatter ? json_pack("{s:f, s:f, s:f, s:f}", "mean", v->scatter_mean, "least",
							 v->scatter_least, "most", v->scatter_most, "air", v->scatter_air)
					     : NULL;
}

/* Describe the open field that was used, and what the air shows about it. */
static json_t *open_field(const struct exam *exam)
{
	const struct exam_open_field *f = &exam->open_field;

	return json_pack("{s:s, s:b, s:i, s:i, s:f, s:f}", "model", exam->profile->open_field_distance ? "distance" : "uniform",
			 "fit", exam->profile->open_field_fit, "views_along_x", f->n_along[0], "views_along_y", f->n_along[1],
			 "variation", f->variation, "spread", f->spread);
}

/* Describe the start image: NULL: the protocol asks for no shape, or its algorithm has no use for one. */
static json_t *shape_details(const struct breast_shape_report *r)
{
	json_t *json, *part = json_object();
	char depth[24];

	if (!r->asked || !r->used) {
		json_decref(part);
		return r->asked ? json_pack("{s:b, s:s}", "used", 0, "reason", r->reason) : NULL;
	}
	for (int i = 0; i < BREAST_SHAPE_DEPTHS; i++) {
		snprintf(depth, sizeof(depth), "%g", breast_shape_depths[i]);
		json_object_set_new(part, depth, json_real(r->part[i]));
	}
	json = json_pack("{s:b, s:i, s:f, s:{s:f, s:f, s:f}, s:f, s:o, s:f, s:f, s:[f, f], s:b}", "used", 1, "sectors",
			 r->sectors, "line", r->line, "width_mm", "median", r->width, "least", r->width_least, "most",
			 r->width_most, "roundness", r->roundness, "thickness_at_mm", part, "fit_error", r->error, "height_mm",
			 (r->height[0] + r->height[1]) / 2, "side_heights_mm", r->height[0], r->height[1], "height_seen",
			 r->height_seen);
	return json;
}

/* Describe the metal; NULL: the protocol does not ask for it. */
static json_t *metal_details(const struct dbt_work *w)
{
	const struct metal_report *r = &w->ran.metal;
	json_t *list = r->asked ? json_array() : NULL;

	for (int i = 0; i < r->n; i++) {
		const struct metal_object *o = &r->object[i];
		double at[3];

		place_in_slices(w, o->at, at);
		json_array_append_new(list, json_pack("{s:f, s:f, s:f, s:[f,f,f], s:f, s:i, s:i}", "column", at[0], "row", at[1],
						      "slice", at[2], "position_mm", o->at[0], o->at[1], o->at[2],
						      "rise_per_width", o->mu, "projections", o->views, "of", o->of));
	}
	return list;
}

static json_t *dbt_details(const struct dbt_work *w)
{
	const struct case_views_report *v = &w->views;

	return json_pack("{s:{s:I, s:I, s:I, s:I, s:I, s:I, s:i}, s:o, s:o, s:o, s:o, s:b, s:o*, s:o*, s:o*, s:s, s:s}", "bins",
			 "padded", (json_int_t)v->padded, "saturated", (json_int_t)v->saturated, "over_range",
			 (json_int_t)v->over_range, "floored", (json_int_t)v->floored, "clamped", (json_int_t)v->clamped, "air",
			 (json_int_t)v->air, "views_without_mask", v->unmasked, "geometry", geometry_details(w->exam),
			 "unattenuated", i0_sources(w->exam), "open_field", open_field(w->exam), "stored",
			 stored_details(&w->made), "quantitative", !w->exam->relative[0], "scatter", scatter_ratios(w),
			 "breast_shape", shape_details(&w->ran.shape), "metal", metal_details(w), "warnings",
			 w->base.report.warnings, "omitted", w->base.report.omitted);
}

/* Add a sentence about the voxels that are stored as another value. */
static void warn_limit(size_t voxels, const char *side, double limit, char *ret, size_t size)
{
	if (voxels > 0)
		sentence_add(ret, size, "Voxels %s %g / mm are stored as this limit: %zu.", side, limit, voxels);
}

/* Write sentences about the values. */
static void write_warnings(const struct dbt_work *w, char *ret, size_t size)
{
	double low = w->base.protocol->stored_offset;

	exam_warnings(w->exam, ret, size);
	if (w->base.notes[0])
		sentence_add(ret, size, "%s", w->base.notes);
	if (w->made.doubt[0])
		sentence_add(ret, size, "%s", w->made.doubt);
	warn_limit(w->made.below, "below", low, ret, size);
	warn_limit(w->made.above, "above", low + ((1 << w->made.bits) - 1) * w->made.step, ret, size);
}

/* Write what was kept of the views. */
static int write_dbt_arrays(struct reconstruct_work *base, struct err *err)
{
	struct dbt_work *w = (struct dbt_work *)base;
	static const struct case_scale scale = {1, 0, "1/mm"};
	json_t *json;
	char keys[100];
	int rc = w->kept.complete ? case_arrays_views(base->arrays, w->exam->scan, &w->plan, w->kept.made, err)
				  : err_set(err, ENOMEM, "no memory for the line integrals of %d projections", w->plan.n_views);

	if (rc < 0)
		return rc;
	json = base->arrays->json;
	snprintf(keys, sizeof(keys), "support=%.17g thickness=%.17g", w->exam->support, w->exam->thickness);
	case_arrays_describe(base->arrays, base->protocol, keys, &w->plan.grid, &scale);
	json_object_update_new(json, json_pack("{s:o, s:o, s:o, s:b, s:o*}", "geometry", geometry_details(w->exam),
					       "unattenuated", i0_sources(w->exam), "open_field", open_field(w->exam),
					       "quantitative", !w->exam->relative[0], "scatter", scatter_ratios(w)));
	exam_warnings(w->exam, base->report.warnings, sizeof(base->report.warnings));
	add_scatter_warnings(w, base->report.warnings, sizeof(base->report.warnings));
	if (w->exam->scan->n_u % w->plan.bin || w->exam->scan->n_v % w->plan.bin)
		sentence_add(
			base->report.warnings, sizeof(base->report.warnings),
			"%d x %d bins of the detector are merged, and those that remain at its edge are not in the arrays: a "
			"volume of these is smaller than the grid.",
			w->plan.bin, w->plan.bin);
	return 0;
}

static const struct grid *fill_dbt_report(struct reconstruct_work *base)
{
	struct dbt_work *w = (struct dbt_work *)base;
	struct reconstruct_report *report = &base->report;

	snprintf(report->profile, sizeof(report->profile), "%s", w->exam->profile->name);
	snprintf(report->content, sizeof(report->content), "%d projections", w->plan.n_views);
	write_warnings(w, report->warnings, sizeof(report->warnings));
	add_scatter_warnings(w, report->warnings, sizeof(report->warnings));
	report->n_views = w->plan.n_views;
	report->bytes_device = w->plan.bytes.total + w->plan.bytes.threads;
	report->details = dbt_details(w);
	return &w->plan.grid;
}

static void release_dbt_case(struct reconstruct_work *base)
{
	struct dbt_work *w = (struct dbt_work *)base;

	dbt_close(w->session);
	*w = (struct dbt_work){.exam = w->exam, .kept = w->kept};
}

static void close_dbt_case(struct reconstruct_work *base)
{
	struct dbt_work *w = (struct dbt_work *)base;

	release_dbt_case(base);
	case_views_kept_clear(&w->kept);
	exam_close(w->exam);
}

const struct reconstruct_kind reconstruct_dbt = {
	.recognise = recognise_dbt,
	.size = sizeof(struct dbt_work),
	.open = open_dbt_case,
	.read = read_dbt_case,
	.run = run_dbt_case,
	.take = take_dbt_volume,
	.write = write_dbt_case,
	.arrays = write_dbt_arrays,
	.fill = fill_dbt_report,
	.release = release_dbt_case,
	.close = close_dbt_case,
	.slices_class = CLASS_TOMOSYNTHESIS,
};
