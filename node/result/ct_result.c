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

#include "node/result/ct_result_internal.h"

#define HU_LEAST (-32768) /* smallest value of 16 bits */
#define HU_MOST 32767

/* ---- values ---- */

static double hounsfield_of(double x, double mu_water)
{
	return 1000 * (x / mu_water - 1);
}

bool ct_result_is_hounsfield(const struct protocol_conf *p, const char *unit)
{
	return p->mu_water > 0 && !strcmp(unit, INTERFILE_ATTENUATION) && p->parallel.algorithm != ALGORITHM_BP;
}

void ct_result_unit(const char *unit, bool integrals, char ret_unit[CT_RESULT_UNIT_SIZE])
{
	if (integrals && !strcmp(unit, INTERFILE_ATTENUATION))
		snprintf(ret_unit, CT_RESULT_UNIT_SIZE, "1"); /* 1/mm times mm */
	else
		snprintf(ret_unit, CT_RESULT_UNIT_SIZE, "%s%s", unit, integrals ? " mm" : "");
}

/* Choose the unit and the slope of the stored values. */
static void choose_unit(struct ct_result *r)
{
	const struct interfile *h = &r->series.s->part[SINOGRAM_LINES].header;
	const struct protocol_conf *p = r->info->protocol;
	bool back = r->info->algorithm == ALGORITHM_BP;
	double top = fmax(r->hi, -r->lo);

	r->hounsfield = ct_result_is_hounsfield(p, h->unit);
	if (r->hounsfield) {
		r->is_signed = true;
		r->slope = 1;
		snprintf(r->unit, sizeof(r->unit), "HU");
		if (hounsfield_of(r->hi, p->mu_water) > HU_MOST + 0.5 || hounsfield_of(r->lo, p->mu_water) < HU_LEAST - 0.5)
			snprintf(r->warnings, sizeof(r->warnings), "Values from %.6g to %.6g HU were cut off at %d and %d.",
				 hounsfield_of(r->lo, p->mu_water), hounsfield_of(r->hi, p->mu_water), HU_LEAST, HU_MOST);
		return;
	}
	r->is_signed = r->lo < 0;
	r->slope = top > 0 ? top / SLICE_STORED_MAX : 1;
	ct_result_unit(h->unit, back, r->unit);
	if (p->mu_water > 0 && back)
		snprintf(r->warnings, sizeof(r->warnings),
			 "Not in Hounsfield units: backprojection alone has the unit of line integrals.");
	else if (p->mu_water > 0)
		snprintf(r->warnings, sizeof(r->warnings),
			 "Not in Hounsfield units: the data are of unit %s, not of attenuation (" INTERFILE_ATTENUATION ").",
			 h->unit);
}

static void add_notes(const struct sinogram *s, struct ct_result *r)
{
	char notes[INTERFILE_NOTES];

	sinogram_header_notes(s, notes, sizeof(notes));
	for (int i = 0; i < 3; i++) {
		const char *text = i == 0 ? r->info->note : i == 1 ? s->assumed : notes;
		size_t n = strlen(r->warnings);

		if (text && text[0])
			snprintf(r->warnings + n, sizeof(r->warnings) - n, "%s%s", n ? " " : "", text);
	}
}

/* ---- objects ---- */

static int measure_volume(struct ct_result *r, const float *volume, struct err *err)
{
	const struct grid *g = r->series.grid;
	struct slice_range *range = calloc((size_t)g->n[2], sizeof(*range));
	int rc = range ? slice_ranges(g, volume, r->info->monitor, range, err)
		       : err_set(err, ENOMEM, "no memory for %d slices", g->n[2]);

	for (int k = 0; rc == 0 && k < g->n[2]; k++) {
		r->lo = fmin(r->lo, range[k].lo);
		r->hi = fmax(r->hi, range[k].hi);
	}
	free(range);
	return rc;
}

/* Write the shared header, and replace the slope by its value as rounded in that header. */
static int fill_header(void *ctx, struct item_writer *root)
{
	struct ct_result *r = ctx;
	double slope;

	ct_result_fill_header(r, root);
	if (root->rc < 0)
		return root->rc;
	if (dicom_get_double(root->item, TAG_RESCALE_SLOPE, 0, &slope, root->err) != 1 || !(slope > 0))
		return err_set(root->err, EIO, "the largest value, %g, cannot be a Rescale Slope", r->slope * SLICE_STORED_MAX);
	r->slope = slope;
	return 0;
}

static int fill_slice(void *ctx, int index, struct item_writer *root, struct slice_scale *ret_scale)
{
	const struct ct_result *r = ctx;

	result_series_fill_slice(&r->series, index, root);
	if (r->hounsfield)
		*ret_scale = (struct slice_scale){1000 / r->info->protocol->mu_water, -1000, HU_LEAST, HU_MOST};
	else
		*ret_scale = (struct slice_scale){1 / r->slope, 0, -SLICE_STORED_MAX, SLICE_STORED_MAX};
	return root->rc < 0 ? root->rc : 0;
}

int ct_result_write(const struct sinogram *s, const struct ct_result_info *info, const float *volume, const char *folder,
		    struct series_report *ret_report, struct err *err)
{
	struct ct_result r = {.info = info,
			      .series = {.kind = &ct_series,
					 .s = s,
					 .protocol = info->protocol,
					 .grid = info->grid,
					 .device = info->device,
					 .keep_free = info->keep_free,
					 .monitor = info->monitor}};
	struct series_filler filler = {fill_header, fill_slice, &r};
	struct series_report report;
	int rc = measure_volume(&r, volume, err);

	if (rc >= 0) {
		choose_unit(&r);
		add_notes(s, &r);
		snprintf(r.series.geometry, sizeof(r.series.geometry), "%s", info->scan);
		result_series_begin(&r.series, info->now);
		rc = result_series_write(&r.series, &filler, volume, folder, &report, err);
	}
	if (rc < 0) {
		err_prefix(err, "result");
		return rc;
	}
	snprintf(report.units, sizeof(report.units), "%s", r.hounsfield ? "HU" : "US");
	memcpy(report.unit, r.unit, sizeof(report.unit));
	memcpy(report.warnings, r.warnings, sizeof(r.warnings));
	*ret_report = report;
	return 0;
}
