/* SPDX-License-Identifier: Apache-2.0 */
/* result_series.c - see node/result/result_series_internal.h. */
#include "node/result/result_series.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/version.h"
#include "node/result/result_series_internal.h"

#define SERIES_NUMBER_MOST 10000000 /* largest series number of a source; IS can hold ten times as much */

void series_report_clear(struct series_report *r)
{
	free(r->file);
	free(r->sop_instance);
	free(r->digest);
	*r = (struct series_report){0};
}

/* ---- identity ---- */

/* Compute a UID. what: "series", or "instance N" with N the slice of the volume. */
static void seed_uid(const struct result_series *r, const char *what, char ret_uid[DICOM_UID_SIZE])
{
	char text[CONFIG_PROTOCOL_TEXT + 4096], uid[DICOM_UID_SIZE] = "";
	size_t n = (size_t)snprintf(text, sizeof(text), "%s %s|%s|%s|%s%s", r->kind->seed, what, TOMONODE_VERSION,
				    r->protocol->name, r->recipe, r->identity);

	if (r->s->patient) { /* another header, another patient: another object */
		dicom_get_text(r->patient, TAG_SOP_INSTANCE_UID, uid, sizeof(uid), NULL);
		n += (size_t)snprintf(text + n, sizeof(text) - n, "|patient of %s", uid);
	}
	provenance_place_seed(&r->s->place, text + n, sizeof(text) - n);
	provenance_uid(text, r->s->files, r->s->n_files, ret_uid);
}

static void instance_uid(const struct result_series *r, int slice, char ret_uid[DICOM_UID_SIZE])
{
	char what[32];

	snprintf(what, sizeof(what), "instance %d", slice);
	seed_uid(r, what, ret_uid);
}

static int no_memory(struct err *err)
{
	return err_set(err, ENOMEM, "no memory for the UIDs of a result");
}

void result_series_begin(struct result_series *r, double now)
{
	r->source = dicom_root(r->s->files[r->s->part[r->kind->role].file[0]]);
	r->patient = r->s->patient ? dicom_root(r->s->patient) : r->source;
	slice_view_make(r->s->axis, &r->view);
	provenance_format_time(r->source, now, &r->now);
	config_describe_protocol(r->protocol, r->recipe, sizeof(r->recipe));
	seed_uid(r, "series", r->uid);
}

/* ---- header ---- */

/* Write series and frame of reference, marked as made for research. Body Part Examined must already be copied. */
static void fill_series(const struct result_series *r, struct item_writer *w)
{
	const char *text = r->protocol->description;
	char description[PROVENANCE_TITLE_SIZE];
	long number = 0;

	if (dicom_get_int(r->source, TAG_SERIES_NUMBER, 0, &number, NULL) != 1 || number < 0 || number > SERIES_NUMBER_MOST)
		number = 0;
	item_put_int(w, TAG_SERIES_NUMBER, number * 10 + 1001 + result_place_offset(&r->s->place));
	if (text[0])
		snprintf(description, sizeof(description), "%.64s", text);
	else
		snprintf(description, sizeof(description), "%s%s%s %s %.40s", r->kind->name, r->method ? " " : "",
			 r->method ? r->method : "", r->counts ? "image in counts" : "reconstruction", r->protocol->name);
	provenance_place_title(&r->s->place, description);
	item_put_text(w, TAG_SERIES_DESCRIPTION, description);
	item_put_text(w, TAG_SERIES_INSTANCE_UID, r->uid);
	item_put_text(w, TAG_MODALITY, r->kind->modality);
	provenance_fill_place(&r->s->place, r->patient, w);
	if (w->rc >= 0 && !dicom_has(w->item, TAG_BODY_PART_EXAMINED))
		item_copy_or_empty(w, TAG_LATERALITY, r->source); /* type 2C */
	provenance_fill_frame(r->source, w);
}

/* Write Image Type and creation times, which all images of the series share. */
static void fill_image(const struct result_series *r, struct item_writer *w)
{
	item_put_text(w, TAG_IMAGE_TYPE, r->kind->image_type);
	item_put_text(w, TAG_PHOTOMETRIC_INTERPRETATION, "MONOCHROME2");
	item_put_text(w, TAG_BURNED_IN_ANNOTATION, "NO");
	item_put_text(w, TAG_LOSSY_IMAGE_COMPRESSION, "00"); /* JPEG-LS is lossless, too */
	item_put_text(w, TAG_CONTENT_QUALIFICATION, "RESEARCH");
	item_put_text(w, TAG_CONTENT_DATE, r->now.date);
	item_put_text(w, TAG_CONTENT_TIME, r->now.time);
	item_put_text(w, TAG_INSTANCE_CREATION_DATE, r->now.date);
	item_put_text(w, TAG_INSTANCE_CREATION_TIME, r->now.time);
}

void result_series_fill_header(const struct result_series *r, bool is_signed, struct item_writer *root)
{
	const struct series_kind *kind = r->kind;

	provenance_fill_patient(r->patient, root);
	item_copy_all(root, r->source, kind->copied, kind->n_copied);
	item_copy_all_or_empty(root, r->source, kind->copied_or_empty, kind->n_copied_or_empty);
	fill_series(r, root);
	provenance_fill_equipment(root);
	fill_image(r, root);
	result_slices_fill_plane(&r->view, r->grid, is_signed, root);
	item_put_double(root, TAG_RESCALE_INTERCEPT, 0);
	if (!r->s->origin) /* else the header was made by this program, and is not an object */
		provenance_fill_references(r->s->files, r->s->n_files, root);
}

void result_series_fill_slice(const struct result_series *r, int index, struct item_writer *root)
{
	char uid[DICOM_UID_SIZE];
	double position[3];

	slice_view_position(&r->view, r->s->centre, r->s->axis, r->grid, index, position);
	instance_uid(r, slice_view_slice(&r->view, r->grid, index), uid);
	if (!uid[0] && root->rc >= 0)
		root->rc = no_memory(root->err);
	item_put_text(root, TAG_SOP_INSTANCE_UID, uid);
	item_put_int(root, TAG_INSTANCE_NUMBER, index + 1);
	result_slices_fill_place(&r->view, position, root);
}

void result_series_fill_recipe(const struct result_series *r, const char *values, const char *further, struct item_writer *root)
{
	struct provenance_recipe recipe = {
		.values = values,
		.device = r->device,
		.protocol_name = r->protocol->name,
		.protocol = r->recipe,
		.geometry_kind = r->kind->geometry,
		.geometry = r->geometry,
		.further = further,
		.place = &r->s->place,
		.origins = r->origins,
	};

	provenance_fill_contributing_equipment(r->source, &r->now, &recipe, root);
}

void result_series_fill_window(double lo, double hi, struct item_writer *w)
{
	if (!(hi > lo))
		return;
	item_put_double(w, TAG_WINDOW_CENTER, (hi + lo) / 2);
	item_put_double(w, TAG_WINDOW_WIDTH, hi - lo);
	item_put_text(w, TAG_VOI_LUT_FUNCTION, "LINEAR_EXACT");
}

/* ---- all objects ---- */

/* Build the header that all instances share; dicom_close() it. */
static int make_header(const struct result_series *r, const struct series_filler *filler, struct dicom_file **ret_header,
		       struct err *err)
{
	struct dicom_file *header = NULL;
	struct item_writer root = {.err = err};
	char uid[DICOM_UID_SIZE];
	int rc;

	instance_uid(r, 0, uid);
	if (!r->uid[0] || !uid[0])
		return no_memory(err);
	rc = dicom_new(r->kind->sop_class, uid, &header, err);
	if (rc < 0)
		return rc;
	root.item = dicom_root(header);
	rc = filler->header(filler->ctx, &root);
	if (rc < 0)
		dicom_close(header);
	else
		*ret_header = header;
	return rc;
}

int result_series_write(const struct result_series *r, const struct series_filler *filler, const float *volume,
			const char *folder, struct series_report *ret_report, struct err *err)
{
	size_t n = (size_t)(r->frames > 0 ? r->frames : 1) * (size_t)r->grid->n[2];
	struct series_report report = {.n = (int)n, .sop_class = r->kind->sop_class};
	struct result_slices slices = {.grid = r->grid,
				       .frames = r->frames,
				       .view = &r->view,
				       .compression = r->protocol->compression,
				       .keep_free = r->keep_free,
				       .monitor = r->monitor,
				       .prefix = r->kind->prefix,
				       .fill = filler->slice,
				       .ctx = filler->ctx};
	struct dicom_file *header = NULL;
	int rc = 0;

	report.file = calloc(n, sizeof(*report.file));
	report.sop_instance = calloc(n, sizeof(*report.sop_instance));
	report.digest = calloc(n, sizeof(*report.digest));
	memcpy(report.series, r->uid, sizeof(report.series));
	if (!report.file || !report.sop_instance || !report.digest)
		rc = err_set(err, ENOMEM, "no memory for %zu slices", n);
	if (rc >= 0)
		rc = make_header(r, filler, &header, err);
	if (rc >= 0)
		rc = result_slices_write(&slices, header, volume, folder, report.file, report.sop_instance, report.digest, err);
	if (rc < 0)
		series_report_clear(&report);
	else
		*ret_report = report;
	dicom_close(header);
	return rc < 0 ? rc : 0;
}
