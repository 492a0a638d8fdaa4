/* reconstruct_parallel.c - one scan of parallel beams from objects to a series: open, plan, read, reconstruct, write.
 *
 * Nothing is allocated in proportion to the data before the plan is accepted, but for the objects' headers; nothing appears in
 * the output folder before all objects are on disk.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kernels/clock.h"
#include "node/reconstruct_parts.h"

struct work {
	const struct protocol_conf *protocol;
	const struct monitor *monitor;
	struct sinogram *s;
	const struct interfile *header; /* of s */
	struct device *dev;		/* borrowed */
	struct parallel_plan plan;
	float *lines, *volume;
	struct reconstruct_report report;
};

static int open_case(struct work *w, const struct config *config, const char *const *paths, size_t n_paths, struct err *err)
{
	double begun = clock_seconds();
	int rc;

	monitor_progress(w->monitor, "open", 0);
	rc = sinogram_open(paths, n_paths, config, &w->s, err);
	if (rc < 0)
		return rc;
	if (sinogram_first_role(w->s) != SINOGRAM_LINES)
		return err_set(err, EBADMSG, "a PET acquisition, no parallel beams");
	w->header = &w->s->part[SINOGRAM_LINES].header;
	rc = parallel_plan(&w->protocol->parallel, &w->header->beams, w->dev, &w->plan, err);
	w->report.seconds_open = clock_seconds() - begun;
	return reconstruct_hold(rc, EINVAL, ENOTSUP, err);
}

/* The bytes, then floats of them. Values that are no line integrals are refused by parallel_reconstruct(). */
static int read_case(struct work *w, struct err *err)
{
	const struct parallel_scan *beams = &w->header->beams;
	size_t slice = (size_t)beams->n_angles * (size_t)beams->n_radial;
	double begun = clock_seconds();
	uint8_t *bytes = NULL;
	int rc;

	monitor_progress(w->monitor, "read", 0);
	rc = sinogram_read(w->s, SINOGRAM_LINES, &bytes, err);
	if (rc < 0)
		return rc;
	w->report.seconds_read = clock_seconds() - begun;
	begun = clock_seconds();
	w->lines = malloc(parallel_size(beams) * sizeof(*w->lines));
	if (!w->lines)
		rc = err_set(err, ENOMEM, "no memory for %zu line integrals", parallel_size(beams));
	for (int k = 0; rc == 0 && k < beams->n_slices; k++)
		interfile_plane(w->header, bytes, (size_t)k, w->lines + (size_t)k * slice);
	free(bytes);
	w->report.seconds_prepare = clock_seconds() - begun;
	return rc;
}

static int reconstruct(struct work *w, struct err *err)
{
	double begun = clock_seconds();
	int rc;

	w->volume = malloc(grid_size(&w->plan.grid) * sizeof(*w->volume));
	if (!w->volume)
		return err_set(err, ENOMEM, "no memory for %d slices of %d x %d", w->plan.grid.n[2], w->plan.grid.n[0],
			       w->plan.grid.n[1]);
	rc = parallel_reconstruct(&w->protocol->parallel, &w->plan, &w->header->beams, w->dev, w->lines, w->monitor, w->volume,
				  &w->report.parallel.run, err);
	w->report.seconds_reconstruct = clock_seconds() - begun;
	rc = reconstruct_hold(rc, EINVAL, EBADMSG, err); /* NaN; negative values for MLEM */
	return reconstruct_hold(rc, EDOM, EBADMSG, err);
}

static int write_case(struct work *w, const char *out_dir, struct err *err)
{
	struct ct_result_info info = {.protocol = w->protocol, .plan = &w->plan, .now = clock_wall()};
	double begun = clock_seconds();
	int rc;

	monitor_progress(w->monitor, "write", 0);
	if (monitor_cancelled(w->monitor))
		return err_set(err, ECANCELED, "cancelled before writing");
	snprintf(info.device, sizeof(info.device), "%s", w->dev->name);
	if (mkdir(out_dir, 0777) < 0 && errno != EEXIST)
		return err_set(err, errno, "cannot make the output folder %s: %s", out_dir, strerror(errno));
	rc = ct_result_write(w->s, &info, w->volume, out_dir, &w->report.parallel.result, err);
	if (rc < 0)
		return rc;
	w->report.seconds_write = clock_seconds() - begun;
	monitor_progress(w->monitor, "write", 1);
	return 0;
}

static void fill_report(struct work *w)
{
	struct reconstruct_report *report = &w->report;

	report->kind = KIND_PARALLEL;
	snprintf(report->device, sizeof(report->device), "%s", w->dev->name);
	report->n_views = w->header->beams.n_angles;
	report->bytes_device = w->plan.bytes_total;
	for (int c = 0; c < 3; c++) {
		report->n[c] = w->plan.grid.n[c];
		report->voxel[c] = w->plan.grid.h[c];
	}
	report->parallel.radial = w->header->beams.n_radial;
	report->parallel.iterations = w->plan.iterations;
	report->parallel.subsets = w->plan.subsets;
	report->parallel.part_slices = w->plan.part_slices;
	report->parallel.fov_radius = w->plan.fov_radius;
}

int reconstruct_parallel(const struct config *config, const struct protocol_conf *protocol, struct device *dev,
			 const char *const *paths, size_t n_paths, const char *out_dir, const struct monitor *monitor,
			 struct reconstruct_report *ret_report, struct err *err)
{
	struct work w = {.protocol = protocol, .monitor = monitor, .dev = dev};
	double begun = clock_seconds();
	int rc = open_case(&w, config, paths, n_paths, err);

	if (rc == 0)
		rc = read_case(&w, err);
	if (rc == 0)
		rc = reconstruct(&w, err);
	if (rc == 0)
		rc = write_case(&w, out_dir, err);
	if (rc == 0) {
		fill_report(&w);
		w.report.seconds_total = clock_seconds() - begun;
		*ret_report = w.report;
	} else {
		reconstruct_report_clear(&w.report);
	}
	free(w.volume);
	free(w.lines);
	sinogram_close(w.s);
	return rc;
}
