/* SPDX-License-Identifier: Apache-2.0 */
/* reconstruct_parallel.c - reconstruct one scan of parallel beams. A stack that main memory does not hold, its lines
 * and its image, is in files of struct stack_memory; `watch` gives their pages back whenever a slice, or a part, is done. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dicom/object/dicom_tags.h"
#include "kernels/clock.h"
#include "node/base/plural.h"
#include "node/base/sentence.h"
#include "node/reconstruct/reconstruct_internal.h"
#include "node/reconstruct/stack_memory.h"
#include "node/result/ct_result.h"

struct parallel_work {
	struct reconstruct_work base;
	struct sinogram *s;
	const struct interfile *header; /* header of s */
	char unit[CT_RESULT_UNIT_SIZE]; /* of the volume */
	struct parallel_plan plan;
	double planned;	      /* axis offset of the plan, mm */
	bool planned_gaps;    /* the plan leaves bins out */
	bool apart;	      /* lines and volume are in files */
	struct monitor watch; /* base.monitor, of the loops over slices */
	struct stack_memory lines, volume;
	bool is_looked_at;
	struct parallel_look look;
	struct parallel_gaps gaps;
	struct parallel_report run;
	struct series_report made;
};

static int recognise_parallel(const struct dicom_file *file, struct case_facts *f, struct err *err)
{
	return case_recognise_sinogram(file, INTERFILE_PARALLEL, f, err);
}

static size_t bytes_of_lines(const struct parallel_work *w)
{
	return parallel_size(&w->header->parallel) * sizeof(*w->lines.values);
}

static void watch_progress(void *ctx, const char *stage, double fraction)
{
	struct parallel_work *w = ctx;

	stack_memory_leave(&w->lines);
	stack_memory_leave(&w->volume);
	monitor_progress(w->base.monitor, stage, fraction);
}

static bool watch_cancelled(void *ctx)
{
	return monitor_cancelled(((struct parallel_work *)ctx)->base.monitor);
}

static int plan_parallel_case(struct parallel_work *w, struct err *err)
{
	struct reconstruct_work *base = &w->base;
	const struct parallel_protocol *p = &base->protocol->parallel;
	int rc = parallel_plan(p, &w->header->parallel, base->dev, &w->plan, err);

	w->planned = w->header->parallel.offset;
	w->planned_gaps = w->gaps.n > 0;
	w->apart = rc == 0 && parallel_is_too_large(p, &w->plan, base->dev);
	if (w->apart)
		rc = parallel_plan_apart(p, &w->header->parallel, base->dev, &w->plan, err);
	reconstruct_name_protocol(base, rc, err);
	if (rc == 0)
		rc = reconstruct_check_size(base, &w->plan.grid, base->protocol->parallel.matrix > 0 ? NULL : "matrix", err);
	if (rc == 0)
		rc = reconstruct_reserve_memory(base, w->plan.bytes.total + w->plan.bytes.threads,
						w->plan.bytes.host + case_steps_bytes(base, &w->plan.grid),
						base->again || (base->keep && !w->apart) ? bytes_of_lines(w) : 0, err);
	return err_remap(rc, EINVAL, ENOTSUP, err);
}

static int open_parallel_case(struct reconstruct_work *base, struct err *err)
{
	struct parallel_work *w = (struct parallel_work *)base;
	int rc = w->s ? 0 : sinogram_open(base->paths, base->n_paths, &base->decision->patient, base->config, &w->s, err);

	if (rc < 0)
		return rc;
	if (w->s->format->header != INTERFILE_PARALLEL)
		return err_set(err, EBADMSG, "the case is a PET acquisition, not a scan with parallel beams");
	w->watch = (struct monitor){.ctx = w, .progress = watch_progress, .cancelled = watch_cancelled};
	if (base->decision->assumed)
		w->s->assumed = base->decision->assumed->text;
	w->header = &w->s->part[SINOGRAM_LINES].header;
	ct_result_unit(w->header->unit, base->protocol->parallel.algorithm == ALGORITHM_BP, w->unit);
	w->s->part[SINOGRAM_LINES].header.parallel.gaps = &w->gaps;
	if (algorithm_info(base->protocol->parallel.algorithm)->rule == RULE_TRANSMISSION &&
	    strcmp(w->header->unit, INTERFILE_ATTENUATION) != 0)
		return err_set(err, EBADMSG,
			       "sinogram: unit %s; algorithm %s needs attenuation (line integrals -ln(I / I0) without a unit)",
			       w->header->unit, algorithm_info(base->protocol->parallel.algorithm)->word);
	return plan_parallel_case(w, err);
}

/* Find the axis of rotation that the protocol asks for; with another one than the header's, or with bins that are left out, the plan
 * is another. */
static int settle_axis(struct parallel_work *w, struct err *err)
{
	struct interfile *header = &w->s->part[SINOGRAM_LINES].header;
	int rc = w->is_looked_at ? 0 : parallel_look_at(header, w->lines.values, &w->watch, &w->look, err);

	if (rc == 0)
		rc = parallel_settle_axis(w->base.protocol->axis, &header->parallel, &w->look, err);
	if (rc < 0)
		return rc;
	w->is_looked_at = true;
	return header->parallel.offset != w->planned || w->planned_gaps != (w->gaps.n > 0) ? plan_parallel_case(w, err) : 0;
}

/* Make the memory of n values of the stack. */
static int make_stack(const struct parallel_work *w, size_t n, struct stack_memory *ret, struct err *err)
{
	char above[500];

	return stack_memory_make(n, w->apart ? reconstruct_disk_folder(&w->base, above) : NULL, w->base.keep_free, ret, err);
}

#define GROUP_BYTES ((size_t)16 << 20) /* of the data that are read at a time */

/* Slices that are converted to line integrals. */
struct lines_maker {
	struct parallel_work *w;
	struct interfile header; /* with an offset of 0 */
	float *frames;		 /* of one slice; NULL: the data are line integrals */
};

/* Convert slices. Values that are no line integrals are refused by parallel_reconstruct(). */
static int make_lines(void *ctx, const uint8_t *bytes, size_t first, size_t n, struct err *err)
{
	struct lines_maker *m = ctx;
	const struct parallel_scan *beams = &m->header.parallel;
	size_t n_lines = (size_t)beams->n_angles * (size_t)beams->n_radial;
	int rc = 0;

	for (size_t k = 0; rc == 0 && k < n; k++) {
		float *lines = m->w->lines.values + (first + k) * n_lines;

		interfile_plane(&m->header, bytes, k, m->frames ? m->frames : lines);
		if (m->frames)
			rc = parallel_flat_lines(&m->header.frames, beams, (int)(first + k), m->frames, lines, &m->w->gaps,
						 &m->w->look.flat, err);
	}
	monitor_progress(&m->w->watch, "read", (double)(first + n) / beams->n_slices);
	if (rc == 0 && monitor_cancelled(&m->w->watch))
		rc = err_set(err, ECANCELED, "cancelled after %zu of %d slices were read", first + n, beams->n_slices);
	return rc;
}

/* Read the data group by group, and make them line integrals. */
static int read_lines(struct parallel_work *w, struct err *err)
{
	struct lines_maker maker = {.w = w, .header = *w->header};
	const struct parallel_frames *f = &w->header->frames;
	size_t planes, values, of_plane;
	struct sinogram_planes use = {.use = make_lines, .ctx = &maker};
	int rc = make_stack(w, parallel_size(&w->header->parallel), &w->lines, err);

	maker.header.offset = 0;
	interfile_shape(w->header, &planes, &values);
	of_plane = values * (size_t)w->header->bytes;
	use.group = of_plane < GROUP_BYTES ? GROUP_BYTES / of_plane : 1;
	use.group = use.group < planes ? use.group : planes;
	if (rc == 0 && f->n_runs > 0 && !(maker.frames = malloc(values * sizeof(*maker.frames))))
		rc = err_set(err, ENOMEM, "no memory for %d frames of %d bins", f->n, w->header->parallel.n_radial);
	if (rc == 0)
		rc = sinogram_read_planes(w->s, SINOGRAM_LINES, &use, err);
	free(maker.frames);
	return rc;
}

/* Read line integrals, or intensities, unless they are kept. */
static int read_parallel_case(struct reconstruct_work *base, struct err *err)
{
	struct parallel_work *w = (struct parallel_work *)base;
	double begun = clock_seconds();
	int rc;

	monitor_progress(base->monitor, "read", 0);
	if (w->lines.values && w->look.ring_width == base->protocol->ring_width)
		return settle_axis(w, err);
	if (w->is_looked_at) /* by another protocol, whose rings were other ones */
		w->s->part[SINOGRAM_LINES].header.parallel.offset = w->look.given;
	stack_memory_free(&w->lines);
	w->look = (struct parallel_look){.ring_width = base->protocol->ring_width};
	w->is_looked_at = false;
	w->gaps.n = 0;
	rc = read_lines(w, err);
	base->report.seconds_read = clock_seconds() - begun;
	begun = clock_seconds();
	if (rc == 0 && w->look.ring_width > 0) {
		rc = parallel_remove_rings(&w->header->parallel, w->look.ring_width, w->lines.values, &w->watch, &w->look.rings,
					   err);
		reconstruct_name_protocol(base, rc, err);
	}
	if (rc == 0)
		rc = settle_axis(w, err);
	base->report.seconds_prepare = clock_seconds() - begun;
	return rc;
}

static int run_parallel_case(struct reconstruct_work *base, struct err *err)
{
	struct parallel_work *w = (struct parallel_work *)base;
	int rc = make_stack(w, grid_size(&w->plan.grid), &w->volume, err);

	if (rc < 0)
		return rc;
	rc = parallel_reconstruct(&base->protocol->parallel, &w->plan, &w->header->parallel, base->dev, w->lines.values,
				  &w->watch, w->volume.values, &w->run, err);
	rc = err_remap(rc, EINVAL, EBADMSG, err); /* NaN; negative values for MLEM */
	return err_remap(rc, EDOM, EBADMSG, err);
}

static int take_parallel_volume(struct reconstruct_work *base, struct err *err)
{
	struct parallel_work *w = (struct parallel_work *)base;
	int rc = make_stack(w, grid_size(&w->plan.grid), &w->volume, err);

	return rc < 0 ? rc : reconstruct_outside(base, &w->plan.grid, w->volume.values, err);
}

/* Return the unit of the values, and how those of a result are computed from them. */
static struct case_scale scale_of(const struct parallel_work *w)
{
	const struct protocol_conf *p = w->base.protocol;

	return ct_result_is_hounsfield(p, w->header->unit) ? (struct case_scale){1000 / p->mu_water, -1000, "HU"}
							   : (struct case_scale){1, 0, w->unit};
}

static int apply_steps(struct parallel_work *w, struct err *err)
{
	struct case_scale scale = scale_of(w);
	struct case_volumes v = {.values = w->volume.values, .n = 1, .grid = &w->plan.grid, .unit = w->unit};
	const struct case_origin from = case_steps_origin(w->s);
	json_t *about = case_steps_about(&w->base, &from, v.grid, &scale);
	int rc;

	v.about = about;
	rc = case_steps_apply(&w->base, &v, err);
	json_decref(about);
	return rc;
}

static const char *filter_name(const struct parallel_protocol *p)
{
	switch (p->filter) {
	case PARALLEL_RAM_LAK:
		return "Ram-Lak";
	case PARALLEL_SHEPP_LOGAN:
		return "Shepp-Logan";
	case PARALLEL_COSINE:
		return "cosine";
	default:
		return "Hann";
	}
}

/* Describe the scan for provenance. */
static void describe_scan(const struct interfile *h, const struct parallel_flat_report *flat, char *ret_text, size_t size)
{
	const struct parallel_scan *b = &h->parallel;
	char angles[64], fields[64] = "";

	if (flat->n_flat > 0)
		snprintf(fields, sizeof(fields), " flat fields=%d dark fields=%d", flat->n_flat, flat->n_dark);

	if (b->angle)
		snprintf(angles, sizeof(angles), "list");
	else
		snprintf(angles, sizeof(angles), "%g+%g", b->first_angle, b->arc);
	snprintf(ret_text, size, "slices=%d spacing=%g angles=%d degrees=%s radial=%d bin=%g offset=%g unit=%s%s", b->n_slices,
		 b->slice, b->n_angles, angles, b->n_radial, b->bin, b->offset, h->unit, fields);
}

#define FAR_REACH 1.05 /* least reach of rays that is said, in that of the image */
#define FAR_PART 0.05  /* mean of lines beside the image, in that of all, from which they are of the object */

/* Say that an image of as many pixels as bins does not reach as far as the rays of a half acquisition, which are there for that. */
static void note_field(struct parallel_work *w, char *ret, size_t size)
{
	const struct parallel_protocol *p = &w->base.protocol->parallel;
	const struct parallel_scan *s = &w->header->parallel;
	const size_t n = (size_t)s->n_radial;
	double *share = malloc(n * sizeof(*share)), half = 0.5 * w->plan.grid.n[0] * (double)w->plan.grid.h[0];
	double reach = 0, far = 0, all = 0;
	bool half_acquisition = share && parallel_shares(s, share);
	size_t n_far = 0;

	free(share);
	if (!half_acquisition || p->matrix > 0 || p->pixel > 0 || p->fov_radius > 0)
		return;
	for (size_t i = 0; i < parallel_size(s); i++) {
		double radius = fabs(parallel_radius(s, (int)(i % n))), value = fabs((double)w->lines.values[i]);

		reach = fmax(reach, radius + 0.5 * s->bin);
		all += value;
		far += radius > half ? value : 0;
		n_far += radius > half;
		if ((i + 1) % (n * (size_t)s->n_angles) == 0)
			monitor_progress(&w->watch, "write", 0);
	}
	if (reach > FAR_REACH * half && n_far > 0 && far / (double)n_far > FAR_PART * all / (double)parallel_size(s))
		sentence_add(
			ret, size,
			"The axis of rotation is beside the middle: rays reach %.4g mm from it, and the image %.4g mm, so that a part "
			"of the object is not in it; matrix=%d fits.",
			reach, half, (int)ceil(2 * reach / (double)w->plan.grid.h[0] - 1e-6));
}

static int write_parallel_case(struct reconstruct_work *base, struct err *err)
{
	struct parallel_work *w = (struct parallel_work *)base;
	const struct parallel_protocol *p = &base->protocol->parallel;
	struct ct_result_info info = {.protocol = base->protocol,
				      .grid = &w->plan.grid,
				      .algorithm = p->algorithm,
				      .iterations = w->plan.iterations,
				      .subsets = w->plan.subsets,
				      .filter = filter_name(p),
				      .diameter = p->fov_radius > 0 ? 2 * w->plan.fov_radius : 0,
				      .n_angles = w->header->parallel.n_angles,
				      .now = clock_wall(),
				      .keep_free = base->keep_free,
				      .monitor = &w->watch};
	double begun;
	int rc;

	rc = case_steps_wanted(base) ? apply_steps(w, err) : 0;
	if (rc < 0)
		return rc;
	info.protocol = base->protocol; /* a step may have failed */
	describe_scan(w->header, &w->look.flat, info.scan, sizeof(info.scan));
	if (w->look.is_found)
		snprintf(info.axis, sizeof(info.axis), "axis offset %.6g mm found by %s, +- %.2g mm", w->header->parallel.offset,
			 parallel_axis_word(&w->look.axis), w->look.axis.sigma);
	parallel_note(w->header, &w->look, info.note, sizeof(info.note));
	note_field(w, info.note, sizeof(info.note));
	if (base->notes[0])
		sentence_add(info.note, sizeof(info.note), "%s", base->notes);
	snprintf(info.device, sizeof(info.device), "%s", base->dev->name);
	w->s->place = base->decision->place;
	w->s->place.step = base->step;
	w->s->place.n_steps = base->n_steps;
	begun = clock_seconds();
	rc = ct_result_write(w->s, &info, w->volume.values, base->out_dir, &w->made, err);
	if (rc < 0)
		return rc;
	base->report.seconds_write = clock_seconds() - begun;
	return reconstruct_report_series(&base->report, &w->made, err);
}

static int write_parallel_arrays(struct reconstruct_work *base, struct err *err)
{
	struct parallel_work *w = (struct parallel_work *)base;
	const struct interfile *h = w->header;
	struct case_scale scale = scale_of(w);
	char unit[CT_RESULT_UNIT_SIZE];
	int rc;

	ct_result_unit(h->unit, true, unit);
	rc = case_arrays_parallel(base->arrays, &h->parallel, unit, w->lines.values, err);
	if (rc < 0)
		return rc;
	parallel_note(h, &w->look, base->report.warnings, sizeof(base->report.warnings));
	case_arrays_describe(base->arrays, base->protocol, "", &w->plan.grid, &scale);
	return 0;
}

static json_t *axis_details(const struct parallel_scan *s, const struct parallel_look *look)
{
	const struct parallel_axis *a = &look->axis;
	json_t *found = a->reason == PARALLEL_AXIS_KNOWN ? json_pack("{s:f, s:f, s:f}", "offset_mm", a->offset, "sigma_mm",
								     a->sigma, "lean_degrees", a->lean)
							 : json_null();

	return json_pack("{s:f, s:o, s:o, s:s}", "offset_mm", s->offset, "header_mm",
			 s->offset_unknown ? json_null() : json_real(look->given), "found", found,
			 a->reason == PARALLEL_AXIS_KNOWN ? "by" : "unknown", parallel_axis_word(a));
}

static json_t *flat_details(const struct parallel_flat_report *f)
{
	return f->n_flat == 0
		       ? json_null()
		       : json_pack("{s:i, s:i, s:I, s:I, s:I, s:I, s:I}", "flat_fields", f->n_flat, "dark_fields", f->n_dark,
				   "dead_bins", (json_int_t)f->dead, "hot_bins", (json_int_t)f->hot, "noisy_bins",
				   (json_int_t)f->noisy, "hits", (json_int_t)f->hits, "no_signal", (json_int_t)f->dark);
}

static json_t *ring_details(const struct parallel_look *look)
{
	return look->ring_width == 0 ? json_null()
				     : json_pack("{s:i, s:f, s:f}", "width_bins", look->ring_width, "offsets_before",
						 look->rings.before, "offsets_after", look->rings.after);
}

static json_t *parallel_details(const struct parallel_work *w)
{
	return json_pack("{s:{s:i, s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:s, s:s, s:s, s:s, s:o, s:o, s:o}}",
			 kind_parallel.name, "radial", w->header->parallel.n_radial, "iterations", w->plan.iterations, "subsets",
			 w->plan.subsets, "slices_at_a_time", w->plan.part_slices, "fov_radius_mm", w->plan.fov_radius,
			 "residual", w->run.residual, "seconds_setup", w->run.seconds_setup, "seconds_filter",
			 w->run.seconds_filter, "seconds_iterate", w->run.seconds_iterate, "units", w->made.units, "unit",
			 w->made.unit, "warnings", w->made.warnings, "patient_position", w->s->facts.patient_position, "axis",
			 axis_details(&w->header->parallel, &w->look), "intensities", flat_details(&w->look.flat), "rings",
			 ring_details(&w->look));
}

static const struct grid *fill_parallel_report(struct reconstruct_work *base)
{
	struct parallel_work *w = (struct parallel_work *)base;
	const struct parallel_scan *beams = &w->header->parallel;
	struct reconstruct_report *report = &base->report;

	snprintf(report->content, sizeof(report->content), "%d slice%s of %d angle%s", w->plan.grid.n[2],
		 plural(w->plan.grid.n[2]), beams->n_angles, plural(beams->n_angles));
	report->n_views = beams->n_angles;
	report->bytes_device = w->plan.bytes.total + w->plan.bytes.threads;
	report->details = parallel_details(w);
	return &w->plan.grid;
}

static void release_parallel_case(struct reconstruct_work *base)
{
	struct parallel_work *w = (struct parallel_work *)base;

	stack_memory_free(&w->volume);
	series_report_clear(&w->made);
	*w = (struct parallel_work){
		.s = w->s, .lines = w->lines, .is_looked_at = w->is_looked_at, .look = w->look, .gaps = w->gaps};
}

static void close_parallel_case(struct reconstruct_work *base)
{
	struct parallel_work *w = (struct parallel_work *)base;

	release_parallel_case(base);
	stack_memory_free(&w->lines);
	parallel_gaps_release(&w->gaps);
	sinogram_close(w->s);
}

const struct reconstruct_kind reconstruct_parallel = {
	.recognise = recognise_parallel,
	.size = sizeof(struct parallel_work),
	.open = open_parallel_case,
	.read = read_parallel_case,
	.run = run_parallel_case,
	.take = take_parallel_volume,
	.write = write_parallel_case,
	.arrays = write_parallel_arrays,
	.fill = fill_parallel_report,
	.release = release_parallel_case,
	.close = close_parallel_case,
	.slices_class = CLASS_CT,
};
