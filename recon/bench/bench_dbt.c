/* SPDX-License-Identifier: Apache-2.0 */
/* bench_dbt.c - iterations over a DBT volume with the same code as a reconstruction; by default emission EM with the
 * slice-by-slice model.
 *
 * Data are the projections of a random volume, computed on the device itself. The smallest memory traffic of an update: the
 * volume is read in the forward pass (if the rule uses line integrals) and read and written in the back pass; the data of the
 * update are read. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "recon/bench/bench_data.h"
#include "recon/bench/bench_internal.h"
#include "recon/core/iterate.h"
#include "recon/core/plan.h"
#include "recon/core/projector.h"

#define FLOOR 1e-6f
#define START 0.05f	    /* 1/mm */
#define TOLERANCE 1e-5	    /* for sums, in double, of bins that are float sums of some hundred terms */
#define TOLERANCE_STEP 0.01 /* for rules that need more than one step to converge */

struct state {
	struct scan *scan;
	struct grid grid;
	struct bench_setup setup;
	int views, n_subsets;
	struct linop **op;
	struct iterate_subset *subset; /* in the order of the updates */
	struct session_memory memory;  /* of work */
	struct iterate_work work;
	struct iterate_conf conf;
	struct buf x, y, row;
};

static int run_dbt(struct bench_job *job, struct err *err)
{
	struct state *s = job->state;

	return iterate_run(&s->conf, s->subset, (size_t)s->n_subsets, &s->work, &s->x, NULL, err);
}

/* Check data: the sum of A x over the bins of an update = sum of y, except for rounding. EM preserves counts (Shepp & Vardi
 * 1982). SART with a step of 1, and so backprojection: sum of A (x_new - x) = sum over voxels of A'((y - A x) / l), and A 1 =
 * l. */
static int check_dbt(struct bench_job *job, double *ret_found, double *ret_expected, double *ret_tolerance, struct err *err)
{
	struct state *s = job->state;
	const struct iterate_subset *last = &s->subset[s->n_subsets - 1];
	struct buf p = {0};
	int r = job->dev->ops->alloc(job->dev, last->y.n, &p, err);

	if (r == 0)
		r = last->op->apply(last->op, &s->x, &p, err);
	if (r == 0)
		r = job->dev->ops->sum(&p, ret_found, err);
	if (r == 0)
		r = job->dev->ops->sum(&last->y, ret_expected, err);
	*ret_tolerance = s->conf.rule.kind == RULE_TRANSMISSION ? TOLERANCE_STEP : TOLERANCE;
	buf_release(&p);
	return r;
}

static void close_job(struct bench_job *job)
{
	struct state *s = job->state;

	for (int i = 0; s->op && i < s->n_subsets; i++)
		linop_free(s->op[i]);
	free(s->op);
	free(s->subset);
	session_release(&s->memory);
	buf_release(&s->x);
	buf_release(&s->y);
	buf_release(&s->row);
	scan_free(s->scan);
	free(s);
}

static struct projection_spec spec_of(const struct state *s, int first)
{
	return (struct projection_spec){.model = s->setup.model ? s->setup.model : PROJECTION_SLICES,
					.scan = s->scan,
					.first = first,
					.n_views = s->views / s->n_subsets,
					.grid = &s->grid,
					.tile = {s->setup.tile[0], s->setup.tile[1]},
					.deterministic = s->setup.deterministic,
					.keep_den = s->n_subsets == 1 && s->conf.rule.kind == RULE_EM};
}

/* Return the number of bytes that all data will need. */
static size_t count_bytes(const struct state *s, struct device *dev)
{
	size_t bins = scan_view_size(s->scan) * (size_t)s->views, of_subset = bins / (size_t)s->n_subsets;
	bool fused = s->setup.model != PROJECTION_EXACT;
	size_t floats = grid_size(&s->grid) + bins + iterate_work_size(grid_size(&s->grid), of_subset, fused, false) + of_subset +
			(rule_needs_length(s->conf.rule.kind) ? bins : 0);
	struct plan_bytes b = {.data = floats * sizeof(float)};

	for (int i = 0; i < s->n_subsets; i++) {
		struct projection_spec spec = spec_of(s, i * s->views / s->n_subsets);

		plan_count(&b, dev, &spec);
	}
	plan_sum(&b, dev);
	return b.total + b.threads;
}

static int make_subsets(struct state *s, struct device *dev, struct err *err)
{
	size_t per_view = scan_view_size(s->scan);
	int step = s->n_subsets % 11 ? 11 : 7, each = s->views / s->n_subsets,
	    r = 0; /* consecutive updates are far apart in angle */

	s->op = calloc((size_t)s->n_subsets, sizeof(struct linop *));
	s->subset = calloc((size_t)s->n_subsets, sizeof(*s->subset));
	if (!s->op || !s->subset)
		return err_set(err, ENOMEM, "no memory for %d subsets", s->n_subsets);
	for (int i = 0; r == 0 && i < s->n_subsets; i++) {
		int at = i * step % s->n_subsets;
		struct projection_spec spec = spec_of(s, at * each);

		r = projector_create(dev, &spec, &s->op[i], err);
		s->subset[i].op = s->op[i];
		s->subset[i].y = buf_part(&s->y, (size_t)(at * each) * per_view, (size_t)each * per_view);
		if (r == 0)
			r = s->op[i]->apply(s->op[i], &s->x, &s->subset[i].y, err);
	}
	return r;
}

/* Compute the length of every ray in the volume. */
static int make_lengths(struct state *s, struct device *dev, struct err *err)
{
	size_t per_subset = scan_view_size(s->scan) * (size_t)(s->views / s->n_subsets);
	int r = dev->ops->alloc(dev, s->y.n, &s->row, err);

	if (r == 0)
		r = dev->ops->fill(&s->x, 1, err);
	for (int i = 0; r == 0 && i < s->n_subsets; i++) {
		s->subset[i].row = buf_part(&s->row, (size_t)i * per_subset, per_subset);
		r = s->op[i]->apply(s->op[i], &s->x, &s->subset[i].row, err);
	}
	return r;
}

static int check_setup(const struct bench_setup *s, struct err *err)
{
	bool model = s->model == 0 || s->model == PROJECTION_SLICES || s->model == PROJECTION_EXACT;
	bool rule = s->rule == 0 || s->rule == RULE_EM || s->rule == RULE_TRANSMISSION || s->rule == RULE_SART ||
		    s->rule == RULE_BACKPROJECT;

	if (model && rule && !(s->fov_radius > 0))
		return 0;
	return err_set(err, EINVAL, "DBT: models: slices, exact; rules: em, transmission, sart, backproject; no field of view");
}

static int open_state(struct state *s, struct bench_job *job, struct err *err)
{
	struct device *dev = job->dev;
	size_t bins = scan_view_size(s->scan) * (size_t)s->views;
	int r = bench_fits(dev, count_bytes(s, dev), err);

	if (r == 0)
		r = bench_random_alloc(dev, grid_size(&s->grid), 0.03f, 0.06f, 1, &s->x, err); /* 1/mm: from fat to tumour */
	if (r == 0)
		r = dev->ops->alloc(dev, bins, &s->y, err);
	if (r == 0)
		r = make_subsets(s, dev, err);
	if (r == 0 && rule_needs_length(s->conf.rule.kind))
		r = make_lengths(s, dev, err);
	s->memory.dev = dev;
	if (r == 0)
		r = iterate_work_alloc(&s->memory, s->x.n, bins / (size_t)s->n_subsets, linop_fused(s->op[0]), false, &s->work,
				       err);
	return r < 0 ? r : dev->ops->fill(&s->x, START, err);
}

int bench_dbt_open(struct bench_job *job, int kind, const struct bench_setup *setup, struct err *err)
{
	enum rule_kind rule = setup->rule ? setup->rule : RULE_EM;
	struct state *s = calloc(1, sizeof(*s));
	double volume;
	int r;

	if (!s)
		return err_set(err, ENOMEM, "dbt: out of memory");
	*job = (struct bench_job){.dev = job->dev, .state = s, .once = run_dbt, .check = check_dbt, .close = close_job};
	s->setup = *setup;
	s->conf = (struct iterate_conf){.rule = {.kind = rule, .bin_floor = FLOOR, .voxel_floor = FLOOR, .step = 1},
					.iterations = 1};
	r = check_setup(setup, err);
	if (r == 0)
		r = bench_dbt_geometry(setup, &s->scan, &s->grid, err);
	if (r < 0)
		return r;
	s->views = s->scan->n_views;
	s->n_subsets = kind == BENCH_DBT_OSEM ? s->views : 1;
	r = open_state(s, job, err);
	if (r < 0)
		return r;
	volume = (double)grid_size(&s->grid);
	job->steps = (rule_needs_line(rule) ? 2 : 1) * volume * s->views;
	job->bytes = sizeof(float) * ((rule_needs_line(rule) ? 3 : 2) * volume * s->n_subsets + (double)s->y.n);
	snprintf(job->sizes, sizeof(job->sizes), "%d x %d x %d voxels, %d views of %d x %d bins, %d updates", s->grid.n[0],
		 s->grid.n[1], s->grid.n[2], s->views, s->scan->n_u, s->scan->n_v, s->n_subsets);
	return 0;
}
