/* bench_dbt.c - iterations of emission EM over a DBT volume, slice by slice, through the iteration that reconstructs.
 *
 * Data are the projections of a random volume, made on the device itself. Least traffic of an update: the volume read forward,
 * read and written back, and its data read.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "recon/bench/bench_job.h"
#include "recon/core/iterate.h"
#include "recon/core/projector.h"

#define DEPTH 239.36 /* mm, of the detector */
#define SUPPORT 17.0 /* mm, of the lowest slice above the detector */
#define FLOOR 1e-6f
#define START 0.05f    /* 1/mm */
#define TOLERANCE 1e-5 /* of sums in double of bins in float, some hundred terms each */

struct state {
	struct scan *scan;
	struct grid grid;
	int views, n_subsets;
	struct linop **op;
	struct iterate_subset *subset; /* in the order of the updates */
	struct iterate_work work;
	struct iterate_conf conf;
	struct buf x, y;
};

static const struct sizes {
	int n[3], views;
} sizes[BENCH_SIZES] = {
	[BENCH_TINY] = {{40, 48, 6}, 5},
	[BENCH_QUICK] = {{352, 448, 30}, 9},
	[BENCH_NORMAL] = {{704, 896, 60}, 25},
	[BENCH_FULL] = {{2816, 3584, 60}, 25},
};

int bench_dbt_geometry(const int n[3], int views, struct scan **ret_scan, struct grid *ret_grid, struct err *err)
{
	double pitch = DEPTH / n[0], *angle = malloc((size_t)views * sizeof(*angle));
	struct dbt_geometry g = {
		.n_u = n[0],
		.n_v = n[1],
		.pitch = pitch,
		.axis_height = 47,
		.source_axis = 608.5,
		.n_views = views,
		.angle = angle,
	};
	int r;

	if (!angle)
		return err_set(err, ENOMEM, "no memory for %d angles", views);
	for (int i = 0; i < views; i++)
		angle[i] = views > 1 ? -25 + 50.0 * i / (views - 1) : 0;
	r = scan_create_dbt(&g, ret_scan, err);
	if (r == 0)
		*ret_grid = (struct grid){{n[0], n[1], n[2]}, {pitch, pitch, 1}, {0, -0.5 * n[1] * pitch, SUPPORT}, false};
	free(angle);
	return r;
}

static int once(struct bench_job *job, struct err *err)
{
	struct state *s = job->state;

	return iterate_run(&s->conf, s->subset, (size_t)s->n_subsets, &s->work, &s->x, NULL, err);
}

/* EM keeps counts: sum over the bins of an update of A x = sum of y, exactly but for rounding (Shepp & Vardi 1982). */
static int check(struct bench_job *job, double *ret_found, double *ret_expected, double *ret_tolerance, struct err *err)
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
	*ret_tolerance = TOLERANCE;
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
	iterate_work_release(&s->work);
	buf_release(&s->x);
	buf_release(&s->y);
	scan_free(s->scan);
	free(s);
}

static struct projection_spec spec_of(const struct state *s, int first)
{
	return (struct projection_spec){.model = PROJECTION_SLICES,
					.scan = s->scan,
					.first = first,
					.n_views = s->views / s->n_subsets,
					.grid = &s->grid};
}

/* Bytes of everything, before any of it is allocated. */
static size_t count_bytes(const struct state *s, struct device *dev)
{
	size_t bins = scan_view_size(s->scan) * (size_t)s->views, of_subset = bins / (size_t)s->n_subsets;
	size_t floats = grid_size(&s->grid) + bins + iterate_work_size(grid_size(&s->grid), of_subset, true) + of_subset;
	size_t tables = 0, scratch = 0;

	for (int i = 0; i < s->n_subsets; i++) {
		struct projection_spec spec = spec_of(s, i * s->views / s->n_subsets);
		size_t shared = dev->ops->scratch_bytes(dev, &spec);

		tables += dev->ops->projection_bytes(dev, &spec);
		scratch = shared > scratch ? shared : scratch;
	}
	return floats * sizeof(float) + tables + scratch;
}

static int make_subsets(struct state *s, struct device *dev, struct err *err)
{
	size_t per_view = scan_view_size(s->scan);
	int step = s->n_subsets % 11 ? 11 : 7, each = s->views / s->n_subsets, r = 0; /* updates far apart in angle */

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

static int open_state(struct state *s, struct bench_job *job, struct err *err)
{
	struct device *dev = job->dev;
	size_t bins = scan_view_size(s->scan) * (size_t)s->views;
	int r = bench_fits(dev, count_bytes(s, dev), err);

	if (r == 0)
		r = bench_random_alloc(dev, grid_size(&s->grid), 0.03f, 0.06f, 1, &s->x, err); /* 1/mm: fat to tumour */
	if (r == 0)
		r = dev->ops->alloc(dev, bins, &s->y, err);
	if (r == 0)
		r = make_subsets(s, dev, err);
	if (r == 0)
		r = iterate_work_alloc(dev, s->x.n, bins / (size_t)s->n_subsets, linop_fused(s->op[0]), &s->work, err);
	return r < 0 ? r : dev->ops->fill(&s->x, START, err);
}

int bench_dbt_open(struct bench_job *job, int kind, enum bench_size size, struct err *err)
{
	const struct sizes *z = &sizes[size];
	struct state *s = calloc(1, sizeof(*s));
	double volume;
	int r;

	if (!s)
		return err_set(err, ENOMEM, "dbt: out of memory");
	job->state = s;
	job->once = once;
	job->check = check;
	job->close = close_job;
	s->views = z->views;
	s->n_subsets = kind == BENCH_DBT_OSEM ? z->views : 1;
	s->conf = (struct iterate_conf){.rule = {.kind = RULE_EM, .bin_floor = FLOOR, .voxel_floor = FLOOR, .step = 1},
					.iterations = 1};
	r = bench_dbt_geometry(z->n, z->views, &s->scan, &s->grid, err);
	if (r == 0)
		r = open_state(s, job, err);
	if (r < 0)
		return r;
	volume = (double)grid_size(&s->grid);
	job->steps = 2 * volume * s->views;
	job->bytes = sizeof(float) * (3 * volume * s->n_subsets + (double)s->y.n);
	snprintf(job->sizes, sizeof(job->sizes), "%d x %d x %d voxels, %d views of %d x %d bins, %d updates", z->n[0], z->n[1],
		 z->n[2], z->views, z->n[0], z->n[1], s->n_subsets);
	return 0;
}
