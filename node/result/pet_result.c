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

#include "dicom/core/bulk.h"
#include "node/result/pet_result_internal.h"
#include "node/sinogram/pet_source.h"

#define SMALLEST_VOXEL 0.5 /* of a radial bin */
#define MATRIX_LEAST 8	   /* as in the configuration */

static int volumes_of(const struct pet_result *r)
{
	return r->n_frames > 0 ? r->n_frames : 1;
}

/* Return the factor of the values of a volume. */
static double factor_of(const struct pet_result *r, int frame)
{
	return r->n_frames > 0 ? r->frame[frame].factor : r->quantity.factor;
}

static int measure_volume(struct pet_result *r, const float *volume, struct slice_range *ret_range, struct err *err)
{
	const struct grid *g = r->series.grid;
	size_t voxels = (size_t)g->n[0] * (size_t)g->n[1] * (size_t)g->n[2];
	int rc = 0;

	for (int f = 0; rc == 0 && f < volumes_of(r); f++) {
		struct slice_range *range = ret_range + (size_t)f * (size_t)g->n[2];

		rc = slice_ranges(g, volume + (size_t)f * voxels, NULL, range, err);
		for (int k = 0; rc == 0 && k < g->n[2]; k++) {
			r->is_signed = r->is_signed || range[k].lo < 0;
			r->largest = fmax(r->largest, factor_of(r, f) * range[k].hi);
		}
	}
	return rc;
}

static int fill_header(void *ctx, struct item_writer *root)
{
	const struct pet_result *r = ctx;

	pet_result_fill_header(r, root);
	pet_result_fill_sources(r, root);
	return root->rc;
}

/* Write the attributes of one slice, and return the scale of its stored values: with the slope as rounded in the header. */
static int fill_slice(void *ctx, int index, struct item_writer *root, struct slice_scale *ret_scale)
{
	const struct pet_result *r = ctx;
	int slice = slice_view_slice(&r->series.view, r->series.grid, index), frame = index / r->series.grid->n[2];
	const struct slice_range *range = &r->range[slice];
	double factor = factor_of(r, frame), top = factor * fmax(range->hi, -range->lo), slope;

	result_series_fill_slice(&r->series, index, root);
	if (r->n_frames > 0)
		pet_result_fill_frame(r, frame, root);
	else if (r->info->join)
		pet_result_fill_frame(r, pet_join_bed_of(r->info->join, slice), root);
	item_put_int(root, TAG_IMAGE_INDEX, index + 1);
	item_put_double(root, TAG_RESCALE_SLOPE, top > 0 ? top / SLICE_STORED_MAX : 1);
	if (root->rc < 0)
		return root->rc;
	if (dicom_get_double(root->item, TAG_RESCALE_SLOPE, 0, &slope, root->err) != 1 || !(slope > 0))
		return err_set(root->err, EIO, "slice %d: its largest value %g cannot be a Rescale Slope", index + 1, top);
	*ret_scale = (struct slice_scale){.gain = factor / slope, .lo = -SLICE_STORED_MAX, .hi = SLICE_STORED_MAX};
	return 0;
}

/* The calibration is configuration, not part of the protocol: another factor gives another image, with other UIDs. So do other
 * data in files beside the objects. */
static void identify_result(struct pet_result *r)
{
	struct result_series *series = &r->series;
	char files[400] = "";

	pet_result_describe_scanner(series->s, series->geometry, sizeof(series->geometry));
	if (series->s->source->files)
		series->s->source->files(series->s, files, sizeof(files));
	snprintf(series->identity, sizeof(series->identity), "%s%s%s|%s|%.17g%s%s", files[0] ? "|" : "", files, r->gating,
		 series->geometry, r->quantity.factor, series->s->made_from ? "|" : "",
		 series->s->made_from ? series->s->made_from : "");
	result_series_begin(series, r->info->now);
}

/* Compute what differs between frames, gates or beds. Marks are not part of the protocol: their digest identifies them. */
static int divide_frames(struct pet_result *r, struct pet_frame_quantity **ret, struct err *err)
{
	const struct sinogram *s = r->series.s;
	int n = s->images.n;
	struct dicom_digest *d;

	*ret = calloc((size_t)n + 1, sizeof(**ret));
	if (!*ret)
		return err_set(err, ENOMEM, "no memory for %d images", n);
	for (int f = 0; f < n; f++)
		(*ret)[f] = pet_result_frame(s, &r->quantity, f);
	r->frame = *ret;
	if (s->images.of != PET_GATES)
		return 0;
	pet_gates_count(&s->images.gates, &r->cycles);
	d = dicom_digest_new();
	if (!d)
		return err_set(err, ENOMEM, "no memory for a digest");
	dicom_digest_add(d, s->images.gates.marks.ms, s->images.gates.marks.n * sizeof(*s->images.gates.marks.ms));
	memcpy(r->gating, "|", 1);
	dicom_digest_hex(d, r->gating + 1);
	dicom_digest_free(d);
	return 0;
}

static void add_note(const char *note, char *warnings, size_t size)
{
	size_t n = strlen(warnings);

	snprintf(warnings + n, size - n, "%s%s", n ? " " : "", note);
}

int pet_result_matrix(const struct sinogram *s, const struct pet_protocol *p, const struct pet_plan *plan, double *ret_bin)
{
	const struct michelogram *m = &s->part[SINOGRAM_EMISSION].header.m;
	double bin = m->arc_corrected ? m->scanner.bin : michelogram_radius(m, m->n_radial / 2 + 1);
	int matrix = (int)ceil(2 * plan->fov_radius / bin);

	*ret_bin = bin;
	if (s->list || p->algorithm == ALGORITHM_FBP || plan->grid.h[0] >= SMALLEST_VOXEL * bin)
		return 0;
	return matrix < MATRIX_LEAST ? MATRIX_LEAST : matrix;
}

/* Say that voxels are much smaller than what was measured. */
static void note_voxels(const struct pet_result *r, char *ret, size_t size)
{
	const struct pet_protocol *p = &r->info->protocol->pet;
	double bin, voxel = r->info->plan->grid.h[0];
	int matrix = pet_result_matrix(r->series.s, p, r->info->plan, &bin), n;

	if (matrix == 0)
		return;
	n = snprintf(ret, size, "Voxels of %.3g mm are smaller than half a radial bin (%.3g mm), which makes stripes: ", voxel,
		     bin);
	if (p->voxel > 0)
		snprintf(ret + n, size - (size_t)n, "voxel=%.3g fits.", bin);
	else
		snprintf(ret + n, size - (size_t)n, "matrix=%d fits.", matrix);
}

int pet_result_write(const struct sinogram *s, const struct pet_result_info *info, const float *volume, const char *folder,
		     struct series_report *ret_report, struct err *err)
{
	int n_frames = info->join ? 0 : s->images.n;
	struct pet_result r = {.info = info,
			       .n_frames = n_frames,
			       .series = {.kind = &pet_series,
					  .s = s,
					  .protocol = info->protocol,
					  .method = pet_result_uses_tof(s, info->protocol) ? "TOF" : NULL,
					  .keep_free = info->keep_free,
					  .grid = &info->plan->grid,
					  .frames = n_frames,
					  .device = info->device}};
	struct series_filler filler = {fill_header, fill_slice, &r};
	struct pet_frame_quantity *frame = NULL;
	struct slice_range *range = calloc((size_t)volumes_of(&r) * (size_t)r.series.grid->n[2], sizeof(*range));
	struct series_report report;
	char small[200] = "";
	int rc = range ? 0 : err_set(err, ENOMEM, "no memory for %d slices", r.series.grid->n[2]);

	r.range = range;
	if (rc >= 0)
		rc = pet_result_quantify(s, &r.quantity, err);
	r.series.counts = rc >= 0 && !r.quantity.calibrated;
	r.series.origins = r.quantity.origins;
	if (rc >= 0 && info->note[0])
		add_note(info->note, r.quantity.warnings, sizeof(r.quantity.warnings));
	if (rc >= 0 && info->protocol->pet.tof_mashing > 1 && s->part[SINOGRAM_EMISSION].header.m.tof.n == 0)
		add_note("tof_mashing of the protocol had no effect: the data have no time of flight.", r.quantity.warnings,
			 sizeof(r.quantity.warnings));
	if (rc >= 0)
		note_voxels(&r, small, sizeof(small));
	if (rc >= 0 && small[0])
		add_note(small, r.quantity.warnings, sizeof(r.quantity.warnings));
	if (rc >= 0)
		rc = divide_frames(&r, &frame, err);
	if (rc >= 0)
		rc = measure_volume(&r, volume, range, err);
	if (rc >= 0) {
		identify_result(&r);
		rc = result_series_write(&r.series, &filler, volume, folder, &report, err);
	}
	free(range);
	free(frame);
	if (rc < 0) {
		err_prefix(err, "result");
		return rc;
	}
	snprintf(report.units, sizeof(report.units), "%s", r.quantity.calibrated ? "BQML" : "CNTS");
	memcpy(report.unit, report.units, sizeof(report.units));
	report.factor = r.quantity.factor;
	memcpy(report.corrected, r.quantity.corrected, sizeof(report.corrected));
	memcpy(report.origins, r.quantity.origins, sizeof(report.origins));
	memcpy(report.warnings, r.quantity.warnings, sizeof(report.warnings));
	*ret_report = report;
	return 0;
}
