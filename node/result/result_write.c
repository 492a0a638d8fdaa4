/* SPDX-License-Identifier: Apache-2.0 */
/* result_write.c - write the objects of one reconstructed view. See node/result/result.h.
 *
 * The UIDs depend only on the sources, the recipe and the program's version: a retry gives the same object again, a changed
 * protocol or profile another one. The series depends on the case (source series, laterality, view, frame of reference) and the
 * recipe. If the source has no frame of reference, one is computed from the case. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/base/digest_stream.h"
#include "node/base/version.h"
#include "node/result/algorithm_terms.h"
#include "node/result/result_internal.h"

#define NOTE_MOST 460 /* characters of the note in a description */

/* Begin a UID. sources true: it also depends on the instances. */
static void seed_uid(const char *what, const struct exam *exam, const struct protocol_conf *protocol, bool sources,
		     char ret_uid[DICOM_UID_SIZE])
{
	const struct dicom_item *root = dicom_root(exam->files[0]);
	char recipe[RESULT_RECIPE_SIZE], geometry[RESULT_RECIPE_SIZE], text[2 * RESULT_RECIPE_SIZE + 1024];
	char series[DICOM_UID_SIZE] = "", frame[DICOM_UID_SIZE] = "", header[DICOM_UID_SIZE] = "";
	const char *flatfield = exam_used_flatfield(exam);
	size_t n;

	dicom_get_text(root, TAG_SERIES_INSTANCE_UID, series, sizeof(series), NULL);
	dicom_get_text(root, TAG_FRAME_OF_REFERENCE_UID, frame, sizeof(frame), NULL);
	config_describe_protocol(protocol, recipe, sizeof(recipe));
	config_describe_profile(exam->profile, geometry, sizeof(geometry));
	n = (size_t)snprintf(text, sizeof(text), "tomonode %s|%s|%s|%c|%s|%s|%s|%s|%s", what, TOMONODE_VERSION, series,
			     exam->laterality, exam->view, frame, protocol->name, recipe, geometry);
	if (exam->patient) { /* another header, another patient: another object */
		dicom_get_text(dicom_root(exam->patient), TAG_SOP_INSTANCE_UID, header, sizeof(header), NULL);
		n += (size_t)snprintf(text + n, sizeof(text) - n, "|patient of %s", header);
	}
	if (flatfield[0]) /* the profile has its path only */
		n += (size_t)snprintf(text + n, sizeof(text) - n, "|flat field %s", flatfield);
	provenance_place_seed(&exam->place, text + n, sizeof(text) - n);
	provenance_uid(text, exam->files, sources ? exam->n_files : 0, ret_uid);
}

void result_uid(const struct exam *exam, const struct protocol_conf *protocol, enum result_kind kind,
		char ret_uid[DICOM_UID_SIZE])
{
	char what[64];

	snprintf(what, sizeof(what), "instance%s", result_types[kind].seed);
	seed_uid(what, exam, protocol, true, ret_uid);
}

void result_series(const struct exam *exam, const struct protocol_conf *protocol, enum result_kind kind,
		   char ret_uid[DICOM_UID_SIZE])
{
	char what[64];

	snprintf(what, sizeof(what), "series%s", result_types[kind].seed);
	seed_uid(what, exam, protocol, false, ret_uid);
}

static void fill_derivation(struct result *r)
{
	const struct exam *e = r->exam;
	const struct protocol_conf *p = r->info->protocol;
	const struct grid *g = &r->info->plan->grid;
	char further[380] = "", gantry[120] = "", of[40] = "", patient[180] = "", again[700], warnings[2400] = "", last[1000];
	char outside[PROVENANCE_OUTSIDE_SIZE], protocol[80] = "", device[112] = "";
	const char *scatter = r->info->scatter, *note = r->info->note ? r->info->note : "";
	size_t at;
	int n, room;

	if (r->slabs.mode)
		snprintf(further, sizeof(further), " %s of slices over %g mm, every %g mm.",
			 r->slabs.mode == SLABS_MAXIMUM ? "Maximum" : "Mean", r->slabs.thickness, r->slabs.step);
	else if (r->type->is_view)
		snprintf(further, sizeof(further),
			 " Synthetic view: integral of the slices, details under %g mm enhanced%s%s, %zu pixels clipped; no "
			 "exposure of its own.",
			 SYNTHETIC_CONF.blur,
			 r->rim.used	    ? ", missing thickness of the rim filled"
			 : r->rim.reason[0] ? ", rim not filled: "
					    : "",
			 r->rim.reason, r->clipped);
	if (result_is_partial(e))
		snprintf(of, sizeof(of), " of %ld announced", e->announced);
	provenance_patient_text(e->patient, patient, sizeof(patient));
	provenance_place_text(&e->place, again, sizeof(again));
	snprintf(last, sizeof(last), "%s%s%s Research use only.", further, patient, again);
	if (!e->gantry_recorded)
		snprintf(gantry, sizeof(gantry),
			 "; the gantry angle is not recorded, %g degrees were taken for the orientation in the patient",
			 fabs(e->gantry));
	provenance_outside_text(&e->place, outside);
	if (!outside[0]) {
		snprintf(protocol, sizeof(protocol), ", protocol %.63s", p->name);
		snprintf(device, sizeof(device), ", device %.96s", r->info->device);
	}
	room = (int)(sizeof(r->derivation) - strlen(last)); /* for what can be cut */
	n = provenance_fitting(note, NOTE_MOST);
	n = snprintf(
		r->derivation, (size_t)room,
		"%s%s %d%s projections (%.2f to %.2f degrees)%s: %d x %d x %d voxels of %g x %g x %g mm, profile %.63s%s, %zu "
		"voxels clipped%s.%s%.*s%s%s%s%s%s%s%s%s",
		outside, outside[0] ? "Of" : "Tomosynthesis reconstruction of", e->n_views, of, e->views[0].angle,
		e->views[e->n_views - 1].angle, protocol, g->n[0], g->n[1], g->n[2], g->h[0], g->h[1], g->h[2], e->profile->name,
		device, r->summary.above, gantry, n > 0 ? " " : "", n, note, e->geometry[0] ? " " : "", e->geometry,
		scatter[0] ? " " : "", scatter, r->info->shape[0] ? " " : "", r->info->shape, r->info->metal[0] ? " " : "",
		r->info->metal);
	exam_warnings(e, warnings, sizeof(warnings));
	at = strlen(warnings);
	snprintf(warnings + at, sizeof(warnings) - at, "%s%s", at && r->summary.doubt[0] ? " " : "", r->summary.doubt);
	n = n < room ? n : room - 1;
	room = provenance_fitting(warnings, room - n > 2 ? room - n - 2 : 0);
	snprintf(r->derivation + n, sizeof(r->derivation) - (size_t)n, "%s%.*s%s", room > 0 ? " " : "", room, warnings, last);
}

/* ---- one object ---- */

struct pending_object {
	struct result r;
	struct result_object object;
	struct dicom_writer *writer;
	struct digest_stream *digest;
	char path[4096], omitted[2400];
	bool published;
};

static int describe_result(struct result *r, struct err *err)
{
	const struct exam *exam = r->exam;
	const struct protocol_conf *p = r->info->protocol;

	r->source = dicom_root(exam->patient ? exam->patient : exam->files[exam->views[0].file]);
	r->scale = r->summary.scale; /* that of a view is known when its image is */
	r->window_lo = r->summary.window_lo;
	r->window_hi = r->slabs.mode == SLABS_MAXIMUM ? r->summary.window_top : r->summary.window_hi;
	result_uid(exam, p, r->kind, r->sop_instance);
	result_series(exam, p, r->kind, r->series);
	result_uid(exam, p, RESULT_SLICES, r->slices);
	result_series(exam, p, RESULT_SLICES, r->slices_series);
	if (dicom_get_text(r->source, TAG_FRAME_OF_REFERENCE_UID, r->frame_of_reference, sizeof(r->frame_of_reference), NULL) !=
	    1)
		seed_uid("frame of reference", exam, p, false, r->frame_of_reference);
	if (!r->sop_instance[0] || !r->series[0] || !r->slices[0] || !r->slices_series[0] || !r->frame_of_reference[0])
		return err_set(err, ENOMEM, "no memory for the UIDs of a result");
	if (config_describe_protocol(p, r->protocol, sizeof(r->protocol)) >= sizeof(r->protocol) ||
	    config_describe_profile(exam->profile, r->profile, sizeof(r->profile)) >= sizeof(r->profile))
		return err_set(err, EINVAL, "protocol '%s' or profile '%s' is longer than %d characters as text", p->name,
			       exam->profile->name, RESULT_RECIPE_SIZE - 1);
	provenance_format_time(r->source, r->info->now, &r->now);
	fill_derivation(r);
	return 0;
}

/* Compute the file name from the UID, so that a retry writes the same file. */
static int name_object(struct pending_object *o, const char *folder, struct err *err)
{
	const struct result *r = &o->r;
	char digest[65], file[sizeof(o->object.file)];

	dicom_sha256(r->sop_instance, strlen(r->sop_instance), digest);
	snprintf(file, sizeof(file), "%c-%s-%s%.16s.dcm", r->exam->laterality, r->exam->view, r->type->file, digest);
	o->object.kind = r->kind;
	o->object.name = r->type->name;
	memcpy(o->object.file, file, sizeof(file));
	memcpy(o->object.sop_instance, r->sop_instance, sizeof(o->object.sop_instance));
	memcpy(o->object.series, r->series, sizeof(o->object.series));
	snprintf(o->object.sop_class, sizeof(o->object.sop_class), "%s", r->type->sop_class);
	if (snprintf(o->path, sizeof(o->path), "%s/%s", folder, file) >= (int)sizeof(o->path))
		return err_set(err, ENAMETOOLONG, "the path of the output folder is too long");
	return 0;
}

static void add_to_digest(void *ctx, uint64_t at, const void *bytes, size_t n)
{
	digest_stream_add(ctx, at, bytes, n);
}

static void wait_for_digest(void *ctx)
{
	digest_stream_wait(ctx);
}

/* Write the header to disk; frames can follow. */
static int open_object(struct pending_object *o, struct err *err)
{
	struct dicom_file *file = NULL;
	struct item_writer root = {.err = err};
	struct dicom_writer_options options = {.jpegls = o->r.info->protocol->compression == COMPRESSION_JPEGLS,
					       .keep_free = o->r.info->keep_free};
	int rc;

	o->digest = digest_stream_create();
	if (!o->digest)
		return err_set(err, EAGAIN, "no memory for a digest");
	options.writes = add_to_digest;
	options.wrote = wait_for_digest;
	options.ctx = o->digest;
	rc = dicom_new(o->object.sop_class, o->r.sop_instance, &file, err);
	if (rc < 0)
		return rc;
	root.item = dicom_root(file);
	result_fill_header(&o->r, &root);
	if (!o->r.type->is_mammogram)
		result_fill_groups(&o->r, &root);
	result_fill_sources(&o->r, &root);
	if (!o->r.type->is_mammogram)
		result_fill_acquisition(&o->r, &root, o->omitted, sizeof(o->omitted));
	rc = root.rc;
	if (rc >= 0)
		rc = dicom_writer_open(o->path, file, &options, &o->writer, err);
	dicom_close(file);
	return rc;
}

static int close_object(struct pending_object *o, struct err *err)
{
	struct dicom_writer *writer = o->writer;
	struct stat st;
	int rc;

	o->writer = NULL;
	rc = dicom_writer_close(writer, err);
	o->published = rc >= 0;
	if (rc >= 0 && stat(o->path, &st) == 0)
		o->object.bytes = (uint64_t)st.st_size;
	return rc < 0 ? rc : digest_stream_end(o->digest, o->path, o->object.digest, err);
}

/* ---- all objects ---- */

struct work {
	struct result_pipeline flow;
	struct volume_summary summary;
	struct pending_object objects[RESULT_OBJECTS_MAX]; /* [kind]; no writer: not requested, or not opened yet */
	struct result_report report;
	const char *folder;
};

/* Create the threads and memory that the protocol needs; afterwards the sizes of slabs are known. */
static int open_pipeline(struct result_pipeline *f, struct err *err)
{
	const struct protocol_conf *p = f->info->protocol;
	const struct grid *g = &f->info->plan->grid;
	struct result_slabs slabs;
	int rc = 0;

	for (int i = 0; rc == 0 && i < RESULT_OBJECTS_MAX; i++)
		if (result_types[i].slabs && result_types[i].slabs(f->info, &slabs))
			rc = slabs_open(slabs.mode, slabs.thickness, slabs.step, g, &f->slabs[i], err);
	if (rc == 0 && p->synthetic)
		rc = synthetic_open(&SYNTHETIC_CONF, g, &f->synthetic, err);
	if (rc == 0)
		rc = thread_pool_create(0, &f->pool, err);
	if (rc == 0)
		rc = frames_open(g->n[0], g->n[1], p->compression == COMPRESSION_JPEGLS ? p->stored_bits : 0,
				 thread_pool_size(f->pool), &f->frames, err);
	return rc;
}

static int list_planes(const struct result_pipeline *f, struct result *r, struct err *err)
{
	const struct grid *g = &f->info->plan->grid;

	r->n_planes = r->type->is_view ? 1 : r->slabs.mode ? slabs_count(f->slabs[r->kind]) : g->n[2];
	r->planes = calloc((size_t)r->n_planes, sizeof(*r->planes));
	if (!r->planes)
		return err_set(err, ENOMEM, "no memory for %d planes", r->n_planes);
	for (int k = 0; k < r->n_planes; k++) {
		double lo = g->lo[2] + k * g->h[2], hi = lo + (r->type->is_view ? g->n[2] : 1) * g->h[2];

		if (r->slabs.mode) {
			struct slabs_range range = slabs_range(f->slabs[r->kind], k);

			lo = range.z[0];
			hi = range.z[1];
		}
		r->planes[k] = (struct plane){.z = (lo + hi) / 2, .thickness = hi - lo};
	}
	return 0;
}

static int begin_object(struct work *w, enum result_kind kind, struct err *err)
{
	struct pending_object *o = &w->objects[kind];
	int rc = 0;

	o->r = (struct result){.exam = w->flow.exam,
			       .info = w->flow.info,
			       .kind = kind,
			       .type = result_type_of(kind, w->flow.info->protocol),
			       .summary = w->summary};
	if (o->r.type->slabs)
		o->r.type->slabs(o->r.info, &o->r.slabs);
	rc = describe_result(&o->r, err);
	if (rc == 0 && !o->r.type->is_mammogram)
		rc = list_planes(&w->flow, &o->r, err);
	if (rc == 0)
		rc = name_object(o, w->folder, err);
	if (rc == 0 && !o->r.type->is_view) /* the display window of a view is known only after the last slice */
		rc = open_object(o, err);
	return rc;
}

/* Whether the values are attenuation in 1/mm: those of backprojections are not. */
static bool are_attenuation(const struct exam *exam, const struct protocol_conf *p)
{
	return !exam->relative[0] && !strcmp(algorithm_terms(&exam->place, p->dbt.algorithm).type, "ITERATIVE");
}

static int begin_objects(struct work *w, struct err *err)
{
	const struct protocol_conf *p = w->flow.info->protocol;
	double begun = clock_seconds();
	int rc;

	rc = result_summarise(w->flow.session, &w->flow.info->plan->grid, p, are_attenuation(w->flow.exam, p), &w->summary, err);
	if (rc < 0)
		return rc;
	w->report.seconds_tally = clock_seconds() - begun;
	w->report.below = w->summary.below;
	snprintf(w->report.doubt, sizeof(w->report.doubt), "%s", w->summary.doubt);
	w->report.above = w->summary.above;
	w->report.bits = w->summary.scale.bits;
	w->report.step = w->summary.scale.step;
	w->flow.scale = w->summary.scale;
	rc = open_pipeline(&w->flow, err);
	for (int i = 0; rc == 0 && i < RESULT_OBJECTS_MAX; i++) {
		if (i == RESULT_SLICES || w->flow.slabs[i] || (result_types[i].is_view && w->flow.synthetic))
			rc = begin_object(w, (enum result_kind)i, err);
		w->flow.writer[i] = w->objects[i].writer;
	}
	return rc;
}

/* Filtered backprojection and simple backprojection have no line integrals that fade at the rim of the breast. */
static bool fills_rim(const struct protocol_conf *p)
{
	return p->synthetic_rim && algorithm_info(p->dbt.algorithm)->rule != RULE_BACKPROJECT;
}

/* Write the view after the last slice: window, header and its one frame. */
static int add_view(struct work *w, struct err *err)
{
	const struct grid *g = &w->flow.info->plan->grid;
	size_t n = (size_t)g->n[0] * (size_t)g->n[1];
	const struct protocol_conf *p = w->flow.info->protocol;
	struct pending_object *o = &w->objects[RESULT_SYNTHETIC];
	float *image = malloc(n * sizeof(*image));
	uint16_t *values;
	int rc;

	rc = image ? synthetic_image(w->flow.synthetic, image, err)
		   : err_set(err, ENOMEM, "no memory for a view of %d x %d pixels", g->n[0], g->n[1]);
	if (rc == 0 && fills_rim(p))
		rc = rim_fill(g, image, &o->r.rim, err);
	values = rc == 0 ? frames_acquire(w->flow.frames) : NULL; /* NULL: see frames_finish() for the error */
	if (values) {
		result_image_scale(image, n, p->stored_offset * RESULT_VIEW_LENGTH, p->stored_step * RESULT_VIEW_LENGTH,
				   p->stored_bits, &o->r.scale, &o->r.clipped);
		o->r.scale.padded = result_has_negative(p);
		fill_derivation(&o->r);
		result_store(&w->flow, image, &o->r.scale, values);
		rc = o->r.scale.padded
			     ? result_window_inside(g, image, &o->r.scale, &o->r.window_lo, &o->r.window_hi, err)
			     : result_window(values, n, &o->r.scale, o->r.rim.used, &o->r.window_lo, &o->r.window_hi, err);
		if (rc == 0)
			rc = open_object(o, err);
		if (rc == 0)
			frames_submit(w->flow.frames, o->writer);
	}
	free(image);
	return rc;
}

/* Rename the files when all their bytes are on disk; the slices last, because the other objects refer to them. */
static int publish_files(struct work *w, struct err *err)
{
	int rc = 0;

	for (size_t i = RESULT_OBJECTS_MAX; rc >= 0 && i-- > 0;)
		if (w->objects[i].writer)
			rc = close_object(&w->objects[i], err);
	memcpy(w->report.omitted, w->objects[RESULT_SLICES].omitted, sizeof(w->report.omitted));
	for (size_t i = 0; i < RESULT_OBJECTS_MAX; i++)
		if (w->objects[i].published)
			w->report.objects[w->report.n_objects++] = w->objects[i].object;
	return rc;
}

/* Free everything. After an error also remove the files already written. */
static void clean_up(struct work *w, bool failed)
{
	struct result_pipeline *f = &w->flow;

	f->synthetic = synthetic_close(f->synthetic);
	for (size_t i = 0; i < RESULT_OBJECTS_MAX; i++) {
		struct pending_object *o = &w->objects[i];

		slabs_close(f->slabs[i]);
		dicom_writer_abort(o->writer);
		digest_stream_free(o->digest);
		free(o->r.planes);
		if (failed && o->published)
			unlink(o->path);
	}
}

int result_check(const struct protocol_conf *protocol, const struct dbt_plan *plan, struct err *err)
{
	struct result_info info = {.protocol = protocol, .plan = plan};
	int rc = 0;

	for (int i = 0; rc == 0 && i < RESULT_OBJECTS_MAX; i++) {
		struct result_slabs wanted;
		struct slabs *slabs = NULL;

		if (result_types[i].slabs && result_types[i].slabs(&info, &wanted))
			rc = slabs_open(wanted.mode, wanted.thickness, wanted.step, &plan->grid, &slabs, err);
		slabs_close(slabs);
	}
	return rc;
}

int result_write(const struct exam *exam, const struct result_info *info, struct dbt_session *session, const char *folder,
		 struct result_report *ret_report, struct err *err)
{
	struct work w = {.flow = {.exam = exam, .info = info, .session = session}, .folder = folder};
	double begun = clock_seconds();
	int rc;

	rc = begin_objects(&w, err);
	if (rc >= 0)
		rc = result_pipeline_run(&w.flow, err);
	if (rc >= 0 && w.flow.synthetic)
		rc = add_view(&w, err);
	if (rc >= 0)
		rc = frames_finish(w.flow.frames, err);
	frames_close(w.flow.frames); /* before the writers, because its thread may use one */
	thread_pool_free(w.flow.pool);
	if (rc >= 0)
		rc = publish_files(&w, err);
	clean_up(&w, rc < 0);
	if (rc < 0) {
		err_prefix(err, "result");
		return rc;
	}
	w.report.seconds_download = w.flow.seconds_waited;
	w.report.seconds_write = clock_seconds() - begun - w.report.seconds_tally - w.report.seconds_download;
	*ret_report = w.report;
	return 0;
}
