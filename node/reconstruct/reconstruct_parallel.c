/* reconstruct_parallel.c - one scan of parallel beams, read as a whole. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/clock.h"
#include "node/reconstruct/reconstruct_internal.h"

struct parallel_work {
	struct reconstruct_work base;
	struct sinogram *s;
	const struct interfile *header; /* of s */
	struct parallel_plan plan;
	float *lines, *volume;
};

static int open_case(struct reconstruct_work *base, struct err *err)
{
	struct parallel_work *w = (struct parallel_work *)base;
	int rc = sinogram_open(base->paths, base->n_paths, base->config, &w->s, err);

	if (rc < 0)
		return rc;
	if (sinogram_first_role(w->s) != SINOGRAM_LINES)
		return err_set(err, EBADMSG, "a PET acquisition, no parallel beams");
	w->header = &w->s->part[SINOGRAM_LINES].header;
	rc = parallel_plan(&base->protocol->parallel, &w->header->beams, base->dev, &w->plan, err);
	return err_remap(rc, EINVAL, ENOTSUP, err);
}

/* The bytes, then floats of them. Values that are no line integrals are refused by parallel_reconstruct(). */
static int read_case(struct reconstruct_work *base, struct err *err)
{
	struct parallel_work *w = (struct parallel_work *)base;
	const struct parallel_scan *beams = &w->header->beams;
	size_t slice = (size_t)beams->n_angles * (size_t)beams->n_radial;
	double begun = clock_seconds();
	uint8_t *bytes = NULL;
	int rc;

	monitor_progress(base->monitor, "read", 0);
	rc = sinogram_read(w->s, SINOGRAM_LINES, &bytes, err);
	if (rc < 0)
		return rc;
	base->report.seconds_read = clock_seconds() - begun;
	begun = clock_seconds();
	w->lines = malloc(parallel_size(beams) * sizeof(*w->lines));
	if (!w->lines)
		rc = err_set(err, ENOMEM, "no memory for %zu line integrals", parallel_size(beams));
	for (int k = 0; rc == 0 && k < beams->n_slices; k++)
		interfile_plane(w->header, bytes, (size_t)k, w->lines + (size_t)k * slice);
	free(bytes);
	base->report.seconds_prepare = clock_seconds() - begun;
	return rc;
}

static int run_case(struct reconstruct_work *base, struct err *err)
{
	struct parallel_work *w = (struct parallel_work *)base;
	int rc;

	w->volume = malloc(grid_size(&w->plan.grid) * sizeof(*w->volume));
	if (!w->volume)
		return err_set(err, ENOMEM, "no memory for %d slices of %d x %d", w->plan.grid.n[2], w->plan.grid.n[0],
			       w->plan.grid.n[1]);
	rc = parallel_reconstruct(&base->protocol->parallel, &w->plan, &w->header->beams, base->dev, w->lines, base->monitor,
				  w->volume, &base->report.parallel.run, err);
	rc = err_remap(rc, EINVAL, EBADMSG, err); /* NaN; negative values for MLEM */
	return err_remap(rc, EDOM, EBADMSG, err);
}

static int write_case(struct reconstruct_work *base, struct err *err)
{
	struct parallel_work *w = (struct parallel_work *)base;
	struct ct_result_info info = {.protocol = base->protocol, .plan = &w->plan, .now = clock_wall()};
	double begun = clock_seconds();
	int rc;

	snprintf(info.device, sizeof(info.device), "%s", base->dev->name);
	rc = ct_result_write(w->s, &info, w->volume, base->out_dir, &base->report.parallel.result, err);
	if (rc < 0)
		return rc;
	base->report.seconds_write = clock_seconds() - begun;
	return 0;
}

static const struct grid *fill_report(struct reconstruct_work *base)
{
	struct parallel_work *w = (struct parallel_work *)base;
	struct reconstruct_report *report = &base->report;

	report->n_views = w->header->beams.n_angles;
	report->bytes_device = w->plan.bytes_total;
	report->parallel.radial = w->header->beams.n_radial;
	report->parallel.iterations = w->plan.iterations;
	report->parallel.subsets = w->plan.subsets;
	report->parallel.part_slices = w->plan.part_slices;
	report->parallel.fov_radius = w->plan.fov_radius;
	return &w->plan.grid;
}

static void close_case(struct reconstruct_work *base)
{
	struct parallel_work *w = (struct parallel_work *)base;

	free(w->volume);
	free(w->lines);
	sinogram_close(w->s);
}

const struct reconstruct_kind reconstruct_parallel = {
	sizeof(struct parallel_work), open_case, read_case, run_case, write_case, fill_report, close_case,
};
