/* SPDX-License-Identifier: Apache-2.0 */
/* reconstruct_pet.c - reconstruct one PET acquisition. Sensitivity images stay in the cache for later cases. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/clock.h"
#include "kernels/tof.h"
#include "node/base/plural.h"
#include "node/base/thread_pool.h"
#include "node/reconstruct/case_planes.h"
#include "node/reconstruct/reconstruct_internal.h"
#include "node/result/pet_result.h"

#define SLICES_AT_A_TIME 16

struct pet_work {
	struct reconstruct_work base;
	struct sinogram *s;
	struct michelogram m; /* of the emission data, after tof_mashing; borrows the segments of s */
	struct pet_plan plan;
	struct pet_session *session;
	float *volume;
	struct pet_report run;
	struct series_report made;
};

static int recognise(const struct dicom_file *file, struct case_facts *f, struct err *err)
{
	return case_recognise_sinogram(file, INTERFILE_PROJECTIONS, f, err);
}

static int open_case(struct reconstruct_work *base, struct err *err)
{
	struct pet_work *w = (struct pet_work *)base;
	const struct pet_protocol *p = &base->protocol->pet;
	enum pet_factors factors;
	bool background;
	int rc = sinogram_open(base->paths, base->n_paths, &base->decision->patient, base->config, &w->s, err);

	if (rc == 0 && w->s->format->header != INTERFILE_PROJECTIONS)
		rc = err_set(err, EBADMSG, "the case is a scan with parallel beams, not a PET acquisition");
	if (rc == 0)
		rc = pet_result_check(w->s, err);
	if (rc == 0)
		rc = case_planes_roles(w->s, &factors, &background, err);
	if (rc < 0)
		return rc;
	rc = michelogram_mash(&w->s->part[SINOGRAM_EMISSION].header.m, p->tof_mashing, &w->m, err);
	if (rc == 0)
		rc = pet_plan(p, &w->m, factors, background, base->dev, &w->plan, err);
	reconstruct_name_protocol(base, rc, err);
	if (rc == 0)
		rc = reconstruct_check_size(base, &w->plan.grid, NULL, err); /* the protocol always has `matrix` */
	if (rc == 0)
		rc = reconstruct_check_memory(base, w->plan.bytes_total + w->plan.bytes_threads,
					      w->plan.bytes_host + case_planes_bytes(w->s), err);
	if (rc == 0)
		rc = pet_open(p, &w->plan, &w->m, factors, background, base->dev, base->cache, &w->session, err);
	return err_remap(rc, EINVAL, ENOTSUP, err);
}

static int read_case(struct reconstruct_work *base, struct err *err)
{
	struct pet_work *w = (struct pet_work *)base;
	struct case_planes_report planes = {0};
	int rc = case_read_planes(w->s, &w->m, w->session, threads_available(), base->monitor, &planes, err);

	base->report.seconds_read = planes.seconds_read;
	base->report.seconds_prepare = planes.seconds_prepare;
	base->report.seconds_upload = planes.seconds_upload;
	return rc;
}

static int run_case(struct reconstruct_work *base, struct err *err)
{
	struct pet_work *w = (struct pet_work *)base;
	int rc = pet_run(w->session, base->monitor, &w->run, err);

	return err_remap(rc, EDOM, EBADMSG, err); /* the data have no counts */
}

static int read_volume(struct pet_work *w, struct err *err)
{
	const struct grid *g = &w->plan.grid;
	size_t slice = (size_t)g->n[0] * (size_t)g->n[1];
	double begun = clock_seconds();
	int rc = 0;

	w->volume = malloc(slice * (size_t)g->n[2] * sizeof(float));
	if (!w->volume)
		return err_set(err, ENOMEM, "no memory for %d slices of %d x %d", g->n[2], g->n[0], g->n[1]);
	for (int k = 0; rc == 0 && k < g->n[2]; k += SLICES_AT_A_TIME)
		rc = pet_read_slices(w->session, k, g->n[2] - k < SLICES_AT_A_TIME ? g->n[2] - k : SLICES_AT_A_TIME,
				     w->volume + (size_t)k * slice, err);
	w->base.report.seconds_download = clock_seconds() - begun;
	return rc;
}

static int write_case(struct reconstruct_work *base, struct err *err)
{
	struct pet_work *w = (struct pet_work *)base;
	struct pet_result_info info = {
		.protocol = base->protocol, .plan = &w->plan, .now = clock_wall(), .keep_free = base->keep_free};
	int rc = read_volume(w, err);
	double begun;

	if (rc < 0)
		return rc;
	w->session = pet_close(w->session); /* free the session's memory on the device for the next case */
	snprintf(info.device, sizeof(info.device), "%s", base->dev->name);
	begun = clock_seconds();
	rc = pet_result_write(w->s, &info, w->volume, base->out_dir, &w->made, err);
	if (rc < 0)
		return rc;
	base->report.seconds_write = clock_seconds() - begun;
	return reconstruct_report_series(&base->report, &w->made, err);
}

/* Describe the TOF bins that were reconstructed; null: no time of flight. */
static json_t *tof_details(const struct scan_tof *tof)
{
	if (tof->n == 0)
		return json_null();
	return json_pack("{s:i, s:f, s:f, s:f}", "bins", tof->n, "width_ps", tof->width / TOF_MM_PER_PS, "width_mm", tof->width,
			 "resolution_ps", tof->sigma * TOF_FWHM_PER_SIGMA / TOF_MM_PER_PS);
}

static json_t *details(const struct pet_work *w, size_t planes)
{
	return json_pack("{s:{s:I, s:o, s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:b, s:f, s:f, s:f, s:f, s:s, s:s, s:s}}",
			 kind_pet.name, "planes", (json_int_t)planes, "tof", tof_details(&w->m.tof), "iterations",
			 w->plan.iterations, "subsets", w->plan.subsets, "angles_at_a_time", w->plan.group_views, "fov_radius_mm",
			 w->plan.fov_radius, "counts", w->run.counts, "sum_data", w->run.sum_data, "sum_model", w->run.sum_model,
			 "sensitivity_cached", w->run.sensitivity_cached, "seconds_setup", w->run.seconds_setup,
			 "seconds_sensitivity", w->run.seconds_sensitivity, "seconds_iterate", w->run.seconds_iterate,
			 "seconds_filter", w->run.seconds_filter, "units", w->made.units, "corrected", w->made.corrected,
			 "warnings", w->made.warnings);
}

static const struct grid *fill_report(struct reconstruct_work *base)
{
	struct pet_work *w = (struct pet_work *)base;
	const struct michelogram *m = &w->m;
	struct reconstruct_report *report = &base->report;
	size_t planes = michelogram_planes(m);
	char tof[32] = "";

	snprintf(report->profile, sizeof(report->profile), "%s", w->s->scanner ? w->s->scanner->name : "");
	if (m->tof.n > 0)
		snprintf(tof, sizeof(tof), " in %d TOF bin%s", m->tof.n, plural(m->tof.n));
	snprintf(report->content, sizeof(report->content), "%zu plane%s of %d angle%s%s", planes, plural(planes), m->n_angles,
		 plural(m->n_angles), tof);
	report->n_views = m->n_angles;
	report->bytes_device = w->plan.bytes_total + w->plan.bytes_threads;
	report->details = details(w, planes);
	return &w->plan.grid;
}

static void close_case(struct reconstruct_work *base)
{
	struct pet_work *w = (struct pet_work *)base;

	free(w->volume);
	series_report_clear(&w->made);
	pet_close(w->session);
	sinogram_close(w->s);
}

const struct reconstruct_kind reconstruct_pet = {
	recognise, sizeof(struct pet_work), open_case, read_case, run_case, write_case, fill_report, close_case,
};
