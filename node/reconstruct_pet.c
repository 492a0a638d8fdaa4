/* reconstruct_pet.c - one PET acquisition from objects to a series: open, plan, read, reconstruct, write.
 *
 * Nothing is allocated in proportion to the data before the plan is accepted, but for the objects' headers; nothing appears in
 * the output folder before all objects are on disk. Sensitivity images stay with the device for the cases to come: pet_forget().
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kernels/clock.h"
#include "node/case_planes.h"
#include "node/reconstruct_parts.h"
#include "node/task.h"

#define SLICES_AT_A_TIME 16

struct work {
	const struct protocol_conf *protocol;
	const struct monitor *monitor;
	struct sinogram *s;
	struct device *dev; /* borrowed */
	struct pet_plan plan;
	struct pet_session *session;
	float *volume;
	struct reconstruct_report report;
};

static int open_case(struct work *w, const struct config *config, const char *const *paths, size_t n_paths, struct err *err)
{
	double begun = clock_seconds();
	const struct michelogram *m;
	bool factors, background;
	int rc;

	monitor_progress(w->monitor, "open", 0);
	rc = sinogram_open(paths, n_paths, config, &w->s, err);
	if (rc == 0 && sinogram_first_role(w->s) != SINOGRAM_EMISSION)
		rc = err_set(err, EBADMSG, "parallel beams, no PET");
	if (rc == 0)
		rc = pet_result_check(w->s, err);
	if (rc == 0)
		rc = case_planes_roles(w->s, &factors, &background, err);
	if (rc < 0)
		return rc;
	m = &w->s->part[SINOGRAM_EMISSION].header.m;
	rc = pet_plan(&w->protocol->pet, m, factors, background, w->dev, &w->plan, err);
	if (rc == 0)
		rc = pet_open(&w->protocol->pet, &w->plan, m, factors, background, w->dev, &w->session, err);
	w->report.seconds_open = clock_seconds() - begun;
	return reconstruct_hold(rc, EINVAL, ENOTSUP, err);
}

static int read_case(struct work *w, struct err *err)
{
	struct case_planes_report planes = {0};
	int rc = case_read_planes(w->s, w->session, task_threads(), w->monitor, &planes, err);

	w->report.seconds_read = planes.seconds_read;
	w->report.seconds_prepare = planes.seconds_prepare;
	w->report.seconds_upload = planes.seconds_upload;
	return rc;
}

static int reconstruct(struct work *w, struct err *err)
{
	double begun = clock_seconds();
	int rc = pet_run(w->session, w->monitor, &w->report.pet.run, err);

	w->report.seconds_reconstruct = clock_seconds() - begun;
	return reconstruct_hold(rc, EDOM, EBADMSG, err); /* no counts */
}

static int read_volume(struct work *w, struct err *err)
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
	w->report.seconds_download = clock_seconds() - begun;
	return rc;
}

static int write_case(struct work *w, const char *out_dir, struct err *err)
{
	struct pet_result_info info = {
		.protocol = w->protocol, .plan = &w->plan, .report = &w->report.pet.run, .now = clock_wall()};
	double begun;
	int rc;

	monitor_progress(w->monitor, "write", 0);
	if (monitor_cancelled(w->monitor))
		return err_set(err, ECANCELED, "cancelled before writing");
	rc = read_volume(w, err);
	if (rc < 0)
		return rc;
	w->session = pet_close(w->session); /* the next case's, where the device is short of memory */
	snprintf(info.device, sizeof(info.device), "%s", w->dev->name);
	if (mkdir(out_dir, 0777) < 0 && errno != EEXIST)
		return err_set(err, errno, "cannot make the output folder %s: %s", out_dir, strerror(errno));
	begun = clock_seconds();
	rc = pet_result_write(w->s, &info, w->volume, out_dir, &w->report.pet.result, err);
	if (rc < 0)
		return rc;
	w->report.seconds_write = clock_seconds() - begun;
	monitor_progress(w->monitor, "write", 1);
	return 0;
}

static void fill_report(struct work *w)
{
	struct reconstruct_report *report = &w->report;

	report->kind = KIND_PET;
	snprintf(report->device, sizeof(report->device), "%s", w->dev->name);
	snprintf(report->profile, sizeof(report->profile), "%s", w->s->scanner ? w->s->scanner->name : "");
	report->n_views = w->s->part[SINOGRAM_EMISSION].header.m.n_angles;
	report->bytes_device = w->plan.bytes_total;
	for (int c = 0; c < 3; c++) {
		report->n[c] = w->plan.grid.n[c];
		report->voxel[c] = w->plan.grid.h[c];
	}
	report->pet.planes = michelogram_planes(&w->s->part[SINOGRAM_EMISSION].header.m);
	report->pet.iterations = w->plan.iterations;
	report->pet.subsets = w->plan.subsets;
	report->pet.group_views = w->plan.group_views;
	report->pet.fov_radius = w->plan.fov_radius;
}

int reconstruct_pet(const struct config *config, const struct protocol_conf *protocol, struct device *dev,
		    const char *const *paths, size_t n_paths, const char *out_dir, const struct monitor *monitor,
		    struct reconstruct_report *ret_report, struct err *err)
{
	struct work w = {.protocol = protocol, .monitor = monitor, .dev = dev};
	double begun = clock_seconds();
	int rc;

	rc = open_case(&w, config, paths, n_paths, err);
	if (rc < 0)
		goto out;
	rc = read_case(&w, err);
	if (rc < 0)
		goto out;
	rc = reconstruct(&w, err);
	if (rc < 0)
		goto out;
	rc = write_case(&w, out_dir, err);
	if (rc < 0)
		goto out;
	fill_report(&w);
	w.report.seconds_total = clock_seconds() - begun;
	*ret_report = w.report;
	rc = 0;
out:
	if (rc < 0)
		reconstruct_report_clear(&w.report);
	free(w.volume);
	pet_close(w.session);
	sinogram_close(w.s);
	return rc;
}
