/* SPDX-License-Identifier: Apache-2.0 */
/* bench_pet.c - an MLEM iteration over a michelogram, with kept sensitivity and the same code as a reconstruction.
 *
 * Data are the projections of a random volume, computed on the device itself. The smallest memory traffic: the volume is read in
 * the forward pass and read and written in the back pass; the data are read. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/tof.h"
#include "recon/bench/bench_data.h"
#include "recon/bench/bench_internal.h"
#include "recon/core/iterate.h"
#include "recon/core/projector.h"

#define FLOOR 1e-6f
#define TOLERANCE 1e-5 /* as in bench_dbt.c */

enum { FORWARD, BINS, BACK, UPDATE, N_STAGES };
static const char *const stages[N_STAGES] = {"forward", "bins", "back", "update"};

struct state {
	struct scan *scan;
	struct grid grid;
	struct linop *op;
	struct iterate_part part;
	struct iterate_subset subset;
	struct session_memory memory; /* of work */
	struct iterate_work work;
	struct iterate_conf conf;
	struct buf x;
};

static int run_pet(struct bench_job *job, struct err *err)
{
	struct state *s = job->state;

	return iterate_run(&s->conf, &s->subset, 1, &s->work, &s->x, NULL, err);
}

/* The stages of an iteration with a subset whose den is kept: p = A x; p = y / p; num = A'p; x = x num / den. */
static int run_pet_stage(struct bench_job *job, int i, struct err *err)
{
	struct state *s = job->state;
	const struct device_ops *v = job->dev->ops;
	struct buf *p = &s->work.p, *num = &s->work.num;

	switch (i) {
	case FORWARD:
		return s->op->apply(s->op, &s->x, p, err);
	case BINS:
		return v->rule_bins(&s->conf.rule, &s->part.y, p, NULL, NULL, NULL, p, err);
	case BACK:
		return s->op->adjoint(s->op, p, num, err);
	default:
		return v->rule_voxels(&s->conf.rule, num, &s->subset.den, &s->x, err);
	}
}

/* Check that EM preserves the counts, see bench_dbt.c. */
static int check_pet(struct bench_job *job, double *ret_found, double *ret_expected, double *ret_tolerance, struct err *err)
{
	struct state *s = job->state;
	int r = s->op->apply(s->op, &s->x, &s->work.p, err);

	if (r == 0)
		r = job->dev->ops->sum(&s->work.p, ret_found, err);
	*ret_tolerance = TOLERANCE;
	return r < 0 ? r : job->dev->ops->sum(&s->part.y, ret_expected, err);
}

static void close_job(struct bench_job *job)
{
	struct state *s = job->state;

	linop_free(s->op);
	session_release(&s->memory);
	buf_release(&s->subset.den);
	buf_release(&s->part.y);
	buf_release(&s->x);
	scan_free(s->scan);
	free(s);
}

static int check_setup(const struct bench_setup *s, struct err *err)
{
	bool model =
		s->model == 0 || s->model == PROJECTION_PATHS || s->model == PROJECTION_JOSEPH || s->model == PROJECTION_EXACT;

	if (model && !s->rule && s->turn == 0 && !s->tile[0] && !s->tile[1] && (!s->voxels[1] || s->voxels[1] == s->voxels[0]) &&
	    !s->voxels[2])
		return 0;
	return err_set(err, EINVAL,
		       "PET: as many voxels along y as along x, slices of the scanner; models: siddon, joseph, exact; "
		       "no rules, no tiles");
}

static int open_state(struct state *s, const struct bench_setup *setup, struct device *dev, struct err *err)
{
	const struct projection_spec spec = {.model = setup->model ? setup->model : PROJECTION_PATHS,
					     .scan = s->scan,
					     .n_views = s->scan->n_views,
					     .grid = &s->grid,
					     .deterministic = setup->deterministic};
	size_t bins = scan_view_size(s->scan) * (size_t)s->scan->n_views, voxels = grid_size(&s->grid);
	size_t bytes = sizeof(float) * (2 * bins + 3 * voxels) + dev->ops->projection_bytes(dev, &spec) +
		       dev->ops->scratch_bytes(dev, &spec) * (size_t)dev->threads;
	int r = bench_fits(dev, bytes, err);

	if (r == 0)
		r = bench_random_alloc(dev, voxels, 0.1f, 1.1f, 1, &s->x, err);
	if (r == 0)
		r = dev->ops->alloc(dev, bins, &s->part.y, err);
	if (r == 0)
		r = dev->ops->alloc(dev, voxels, &s->subset.den, err);
	if (r == 0)
		r = projector_create(dev, &spec, &s->op, err);
	if (r == 0)
		r = s->op->apply(s->op, &s->x, &s->part.y, err);
	if (r == 0)
		r = linop_sensitivity(s->op, &s->subset.den, err);
	s->memory.dev = dev;
	if (r == 0)
		r = iterate_work_alloc_kept(&s->memory, voxels, bins, &s->work, err);
	return r < 0 ? r : dev->ops->fill(&s->x, 1, err);
}

/* Return the number of bins that have a ray. */
static double count_rays(const struct scan *s)
{
	double rays = 0;

	for (int v = 0; v < s->n_v; v++)
		rays += scan_reach(s, v) > 0;
	return rays * s->n_u * s->n_views;
}

/* Return the mean number of TOF bins that contribute to a point; 0: no time of flight. Each is a multiplication and an addition,
 * half of what a step is. */
static double tof_bins_usual(const struct scan_tof *tof)
{
	return tof->n > 0 ? fmin(2 * TOF_CUT * tof->sigma / tof->width + 1, tof->n) : 0;
}

int bench_pet_open(struct bench_job *job, int kind, const struct bench_setup *setup, struct err *err)
{
	struct state *s = calloc(1, sizeof(*s));
	char tof[32] = "";
	int r;

	if (!s)
		return err_set(err, ENOMEM, "pet: out of memory");
	*job = (struct bench_job){.dev = job->dev,
				  .state = s,
				  .once = run_pet,
				  .n_stages = N_STAGES,
				  .stages = stages,
				  .stage = run_pet_stage,
				  .check = check_pet,
				  .close = close_job};
	s->conf = (struct iterate_conf){.rule = {.kind = RULE_EM, .bin_floor = FLOOR, .voxel_floor = FLOOR, .step = 1},
					.iterations = 1};
	r = check_setup(setup, err);
	if (r == 0)
		r = bench_pet_geometry(setup, kind == BENCH_PET_TOF, &s->scan, &s->grid, err);
	if (r == 0)
		r = open_state(s, setup, job->dev, err);
	if (r < 0)
		return r;
	s->part.op = s->op;
	s->subset.op = s->op;
	s->subset.part = &s->part;
	s->subset.n_parts = 1;
	job->steps = 2 * count_rays(s->scan) * s->grid.n[0] * (1 + tof_bins_usual(&s->scan->tof) / 2);
	job->bytes = sizeof(float) * (3 * (double)s->x.n + (double)s->part.y.n);
	if (s->scan->tof.n > 0)
		snprintf(tof, sizeof(tof), ", %d TOF bins", s->scan->tof.n);
	snprintf(job->sizes, sizeof(job->sizes), "%d x %d x %d voxels, %d planes of %d angles and %d radial bins%s", s->grid.n[0],
		 s->grid.n[1], s->grid.n[2], s->scan->n_u, s->scan->n_views, s->scan->n_v, tof);
	return 0;
}
