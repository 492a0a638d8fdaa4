/* SPDX-License-Identifier: Apache-2.0 */
/* pet_result.c - write a volume of activity as a series of PET Image objects. See node/result/pet_result.h. stored = round(value
 * / slope); slope = largest |value| of the slice / 32767, rounded to the DS of the header, so that stored * slope is the value to
 * within half a step.
 */
#include "node/result/pet_result.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/clock.h"
#include "node/base/version.h"
#include "node/result/pet_result_internal.h"

/* ---- identity ---- */

static void seed_uid(const char *what, const struct sinogram *s, const struct protocol_conf *protocol,
		     char ret_uid[DICOM_UID_SIZE])
{
	char recipe[1024], scanner[512], text[4096];
	struct pet_quantity q = {.factor = NAN};

	config_describe_protocol(protocol, recipe, sizeof(recipe));
	pet_result_describe_scanner(s, scanner, sizeof(scanner));
	pet_result_quantify(s, &q, NULL); /* the calibration of a scanner is configuration: another factor gives another image */
	snprintf(text, sizeof(text), "tomonode pet %s|%s|%s|%s|%s|%.17g", what, TOMONODE_VERSION, protocol->name, recipe, scanner,
		 q.factor);
	provenance_uid(text, s->files, s->n_files, ret_uid);
}

void pet_result_series(const struct sinogram *s, const struct protocol_conf *protocol, char ret_uid[DICOM_UID_SIZE])
{
	seed_uid("series", s, protocol, ret_uid);
}

void pet_result_uid(const struct sinogram *s, const struct protocol_conf *protocol, int slice, char ret_uid[DICOM_UID_SIZE])
{
	char what[32];

	snprintf(what, sizeof(what), "instance %d", slice);
	seed_uid(what, s, protocol, ret_uid);
}

/* ---- all of it ---- */

void pet_result_report_clear(struct pet_result_report *r)
{
	free(r->file);
	free(r->sop_instance);
	*r = (struct pet_result_report){0};
}

static int measure_volume(struct pet_result *r, const float *volume, struct slice_range *ret_range, struct err *err)
{
	const struct grid *g = &r->info->plan->grid;
	int rc = slice_ranges(g, volume, ret_range, err);

	for (int k = 0; rc == 0 && k < g->n[2]; k++) {
		r->is_signed = r->is_signed || ret_range[k].lo < 0;
		r->largest = fmax(r->largest, r->quantity.factor * ret_range[k].hi);
	}
	return rc;
}

/* Write the attributes of one slice, and return the scale of its stored values: with the slope as rounded in the header. */
static int fill_slice(void *ctx, int index, struct item_writer *root, struct slice_scale *ret_scale)
{
	const struct pet_result *r = ctx;
	const struct slice_range *range = &r->range[slice_view_slice(&r->view, &r->info->plan->grid, index)];
	double top = r->quantity.factor * fmax(range->hi, -range->lo), slope;

	pet_result_fill_slice(r, index, top > 0 ? top / SLICE_STORED_MAX : 1, root);
	if (root->rc < 0)
		return root->rc;
	if (dicom_get_double(root->item, TAG_RESCALE_SLOPE, 0, &slope, root->err) != 1 || !(slope > 0))
		return err_set(root->err, EIO, "slice %d: its largest value %g cannot be a Rescale Slope", index + 1, top);
	*ret_scale = (struct slice_scale){.gain = r->quantity.factor / slope, .lo = -SLICE_STORED_MAX, .hi = SLICE_STORED_MAX};
	return 0;
}

static int make_header(const struct pet_result *r, struct dicom_file **ret_header, struct err *err)
{
	struct dicom_file *header = NULL;
	struct item_writer root = {.err = err};
	char uid[DICOM_UID_SIZE];

	pet_result_uid(r->s, r->info->protocol, 0, uid);
	root.rc = dicom_new(PET_RESULT_CLASS, uid, &header, err);
	if (root.rc < 0)
		return root.rc;
	root.item = dicom_root(header);
	pet_result_fill_header(r, &root);
	pet_result_fill_sources(r, &root);
	if (root.rc < 0)
		dicom_close(header);
	else
		*ret_header = header;
	return root.rc;
}

static int describe(struct pet_result *r, struct err *err)
{
	const struct sinogram *s = r->s;
	int rc = pet_result_quantify(s, &r->quantity, err);

	if (rc < 0)
		return rc;
	r->source = dicom_root(s->files[s->part[SINOGRAM_EMISSION].file[0]]);
	slice_view_make(s->axis, &r->view);
	pet_result_series(s, r->info->protocol, r->series);
	provenance_format_time(r->source, r->info->now, &r->now);
	config_describe_protocol(r->info->protocol, r->protocol, sizeof(r->protocol));
	pet_result_describe_scanner(s, r->scanner, sizeof(r->scanner));
	return 0;
}

int pet_result_write(const struct sinogram *s, const struct pet_result_info *info, const float *volume, const char *folder,
		     struct pet_result_report *ret_report, struct err *err)
{
	size_t n = (size_t)info->plan->grid.n[2];
	struct pet_result r = {.s = s, .info = info};
	struct pet_result_report report = {.n = (int)n};
	struct slice_range *range = calloc(n, sizeof(*range));
	struct result_slices slices = {.grid = &info->plan->grid,
				       .view = &r.view,
				       .compression = info->protocol->compression,
				       .prefix = "pt",
				       .fill = fill_slice,
				       .ctx = &r};
	struct dicom_file *header = NULL;
	double begun = clock_seconds();
	int rc;

	report.file = calloc(n, sizeof(*report.file));
	report.sop_instance = calloc(n, sizeof(*report.sop_instance));
	if (!range || !report.file || !report.sop_instance) {
		rc = err_set(err, ENOMEM, "no memory for %zu slices", n);
		goto out;
	}
	r.range = range;
	rc = describe(&r, err);
	if (rc >= 0)
		rc = measure_volume(&r, volume, range, err);
	if (rc >= 0)
		rc = make_header(&r, &header, err);
	if (rc >= 0)
		rc = result_slices_write(&slices, header, volume, folder, report.file, report.sop_instance, &report.bytes, err);
	if (rc < 0) {
		err_prefix(err, "result");
		goto out;
	}
	memcpy(report.series, r.series, sizeof(report.series));
	snprintf(report.units, sizeof(report.units), "%s", r.quantity.calibrated ? "BQML" : "CNTS");
	report.factor = r.quantity.factor;
	memcpy(report.corrected, r.quantity.corrected, sizeof(report.corrected));
	memcpy(report.warnings, r.quantity.warnings, sizeof(report.warnings));
	report.seconds_write = clock_seconds() - begun;
	*ret_report = report;
	report = (struct pet_result_report){0};
	rc = 0;
out:
	dicom_close(header);
	pet_result_report_clear(&report);
	free(range);
	return rc;
}
