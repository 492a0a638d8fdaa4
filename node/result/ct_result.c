/* SPDX-License-Identifier: Apache-2.0 */
/* ct_result.c - write a volume as a series of CT Image objects. See node/result/ct_result.h.
 *
 * - Hounsfield units: HU = 1000 (x / mu_water - 1), rounded and stored directly: slope 1, intercept 0, signed. Values beyond 16
 * bits are clipped, with a warning.
 * - Otherwise stored = round(x / slope) with one slope for the whole series, its largest |x| / 32767.
 */
#include "node/result/ct_result.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/clock.h"
#include "node/base/version.h"
#include "node/result/ct_result_internal.h"

#define HU_LEAST (-32768) /* smallest value of 16 bits */
#define HU_MOST 32767

/* ---- identity ---- */

static void seed_uid(const char *what, const struct sinogram *s, const struct protocol_conf *protocol,
		     char ret_uid[DICOM_UID_SIZE])
{
	char recipe[1024], text[2048];

	config_describe_protocol(protocol, recipe, sizeof(recipe));
	snprintf(text, sizeof(text), "tomonode ct %s|%s|%s|%s", what, TOMONODE_VERSION, protocol->name, recipe);
	provenance_uid(text, s->files, s->n_files, ret_uid);
}

void ct_result_series(const struct sinogram *s, const struct protocol_conf *protocol, char ret_uid[DICOM_UID_SIZE])
{
	seed_uid("series", s, protocol, ret_uid);
}

void ct_result_uid(const struct sinogram *s, const struct protocol_conf *protocol, int slice, char ret_uid[DICOM_UID_SIZE])
{
	char what[32];

	snprintf(what, sizeof(what), "instance %d", slice);
	seed_uid(what, s, protocol, ret_uid);
}

/* ---- values ---- */

static double hounsfield(double x, double mu_water)
{
	return 1000 * (x / mu_water - 1);
}

/* Choose the unit and the slope of the stored values. */
static void choose_unit(struct ct_result *r)
{
	const struct interfile *h = &r->s->part[SINOGRAM_LINES].header;
	const struct protocol_conf *p = r->info->protocol;
	bool back = r->info->algorithm == ALGORITHM_BP, attenuation = !strcmp(h->unit, INTERFILE_ATTENUATION);
	double top = fmax(r->hi, -r->lo);

	r->hounsfield = p->mu_water > 0 && attenuation && !back;
	if (r->hounsfield) {
		r->is_signed = true;
		r->slope = 1;
		snprintf(r->unit, sizeof(r->unit), "HU");
		if (hounsfield(r->hi, p->mu_water) > HU_MOST + 0.5 || hounsfield(r->lo, p->mu_water) < HU_LEAST - 0.5)
			snprintf(r->warnings, sizeof(r->warnings), "Values from %.6g to %.6g HU were cut off at %d and %d.",
				 hounsfield(r->lo, p->mu_water), hounsfield(r->hi, p->mu_water), HU_LEAST, HU_MOST);
		return;
	}
	r->is_signed = r->lo < 0;
	r->slope = top > 0 ? top / SLICE_STORED_MAX : 1;
	if (back && attenuation)
		snprintf(r->unit, sizeof(r->unit), "1"); /* 1/mm times mm */
	else
		snprintf(r->unit, sizeof(r->unit), "%s%s", h->unit, back ? " mm" : "");
	if (p->mu_water > 0 && back)
		snprintf(r->warnings, sizeof(r->warnings),
			 "Not in Hounsfield units: backprojection alone has the unit of line integrals.");
	else if (p->mu_water > 0)
		snprintf(r->warnings, sizeof(r->warnings),
			 "Not in Hounsfield units: the data are of unit %s, not of attenuation (" INTERFILE_ATTENUATION ").",
			 h->unit);
}

/* ---- all of it ---- */

void ct_result_report_clear(struct ct_result_report *r)
{
	free(r->file);
	free(r->sop_instance);
	*r = (struct ct_result_report){0};
}

static int describe(struct ct_result *r, const float *volume, struct err *err)
{
	const struct sinogram *s = r->s;
	const struct grid *g = r->info->grid;
	struct slice_range *range = calloc((size_t)g->n[2], sizeof(*range));
	int rc = range ? slice_ranges(g, volume, range, err) : err_set(err, ENOMEM, "no memory for %d slices", g->n[2]);

	for (int k = 0; rc == 0 && k < g->n[2]; k++) {
		r->lo = fmin(r->lo, range[k].lo);
		r->hi = fmax(r->hi, range[k].hi);
	}
	free(range);
	if (rc < 0)
		return rc;
	r->source = dicom_root(s->files[s->part[SINOGRAM_LINES].file[0]]);
	slice_view_make(s->axis, &r->view);
	choose_unit(r);
	ct_result_series(s, r->info->protocol, r->series);
	provenance_format_time(r->source, r->info->now, &r->now);
	config_describe_protocol(r->info->protocol, r->protocol, sizeof(r->protocol));
	return 0;
}

static int make_header(struct ct_result *r, struct dicom_file **ret_header, struct err *err)
{
	struct dicom_file *header = NULL;
	struct item_writer root = {.err = err};
	char uid[DICOM_UID_SIZE];
	double slope;

	ct_result_uid(r->s, r->info->protocol, 0, uid);
	root.rc = dicom_new(CT_RESULT_CLASS, uid, &header, err);
	if (root.rc < 0)
		return root.rc;
	root.item = dicom_root(header);
	ct_result_fill_header(r, &root);
	if (root.rc >= 0 && (dicom_get_double(root.item, TAG_RESCALE_SLOPE, 0, &slope, err) != 1 || !(slope > 0)))
		root.rc = err_set(err, EIO, "the largest value, %g, cannot be a Rescale Slope", r->slope * SLICE_STORED_MAX);
	if (root.rc < 0) {
		dicom_close(header);
		return root.rc;
	}
	r->slope = slope; /* the slope with the digits that are in the header */
	*ret_header = header;
	return 0;
}

static int fill_slice(void *ctx, int index, struct item_writer *root, struct slice_scale *ret_scale)
{
	const struct ct_result *r = ctx;

	ct_result_fill_slice(r, index, root);
	if (r->hounsfield)
		*ret_scale = (struct slice_scale){1000 / r->info->protocol->mu_water, -1000, HU_LEAST, HU_MOST};
	else
		*ret_scale = (struct slice_scale){1 / r->slope, 0, -SLICE_STORED_MAX, SLICE_STORED_MAX};
	return root->rc < 0 ? root->rc : 0;
}

int ct_result_write(const struct sinogram *s, const struct ct_result_info *info, const float *volume, const char *folder,
		    struct ct_result_report *ret_report, struct err *err)
{
	size_t n = (size_t)info->grid->n[2];
	struct ct_result r = {.s = s, .info = info};
	struct ct_result_report report = {.n = (int)n};
	struct result_slices slices = {.grid = info->grid,
				       .view = &r.view,
				       .compression = info->protocol->compression,
				       .prefix = "ct",
				       .fill = fill_slice,
				       .ctx = &r};
	struct dicom_file *header = NULL;
	double begun = clock_seconds();
	int rc;

	report.file = calloc(n, sizeof(*report.file));
	report.sop_instance = calloc(n, sizeof(*report.sop_instance));
	rc = report.file && report.sop_instance ? 0 : err_set(err, ENOMEM, "no memory for %zu slices", n);
	if (rc == 0)
		rc = describe(&r, volume, err);
	if (rc == 0)
		rc = make_header(&r, &header, err);
	if (rc == 0)
		rc = result_slices_write(&slices, header, volume, folder, report.file, report.sop_instance, &report.bytes, err);
	if (rc < 0) {
		err_prefix(err, "result");
		goto out;
	}
	memcpy(report.series, r.series, sizeof(report.series));
	snprintf(report.units, sizeof(report.units), "%s", r.hounsfield ? "HU" : "US");
	memcpy(report.unit, r.unit, sizeof(report.unit));
	memcpy(report.warnings, r.warnings, sizeof(report.warnings));
	report.seconds_write = clock_seconds() - begun;
	*ret_report = report;
	report = (struct ct_result_report){0};
out:
	dicom_close(header);
	ct_result_report_clear(&report);
	return rc;
}
