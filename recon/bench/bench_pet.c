/* bench_pet.c - an MLEM iteration over a michelogram, sensitivity kept, through the iteration that reconstructs.
 *
 * Data are the projections of a random volume, made on the device itself. Least traffic: the volume read forward, read and
 * written back, the data read.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "recon/bench/bench_job.h"
#include "recon/core/iterate.h"
#include "recon/core/projector.h"

#define FLOOR 1e-6f
#define TOLERANCE 1e-5 /* as in bench_dbt.c */

const struct bench_pet bench_pet_discovery_ste = {
	.scanner = {.rings = 24, .detectors = 560, .ring_spacing = 6.54, .radius = 443.1, .interaction_depth = 8.4, .bin = 2.397},
	.n_radial = 329,
	.n_angles = 280,
	.span = 2,
	.largest_difference = 23,
	.matrix = 256,
	.fov_radius = 350,
};

struct state {
	struct scan *scan;
	struct grid grid;
	struct linop *op;
	struct iterate_part part;
	struct iterate_subset subset;
	struct iterate_work work;
	struct iterate_conf conf;
	struct buf x;
};

int bench_pet_geometry(const struct bench_pet *p, struct scan **ret_scan, struct grid *ret_grid, struct err *err)
{
	struct michelogram m = {.scanner = p->scanner, .n_radial = p->n_radial, .n_angles = p->n_angles, .arc_corrected = true};
	int *plane = NULL, slices = 2 * p->scanner.rings - 1;
	double pixel = 2 * p->fov_radius / p->matrix, slice = p->scanner.ring_spacing / 2;
	int r = michelogram_segments(p->scanner.rings, p->span, p->largest_difference, &m.segments, &m.n_segments, err);

	if (r == 0)
		r = scan_create_michelogram(&m, p->fov_radius, NULL, ret_scan, &plane, err);
	if (r == 0)
		*ret_grid = (struct grid){.n = {p->matrix, p->matrix, slices},
					  .h = {pixel, pixel, slice},
					  .lo = {-p->fov_radius, -p->fov_radius, -0.5 * slices * slice},
					  .z_fastest = true};
	free(plane);
	free(m.segments);
	return r;
}

static struct bench_pet shape_of(enum bench_size size)
{
	struct bench_pet p = bench_pet_discovery_ste;

	if (size == BENCH_TINY)
		p = (struct bench_pet){.scanner = {.rings = 4,
						   .detectors = 64,
						   .ring_spacing = 6.5,
						   .radius = 100,
						   .interaction_depth = 5,
						   .bin = 4},
				       .n_radial = 41,
				       .n_angles = 32,
				       .span = 3,
				       .largest_difference = 1,
				       .matrix = 32,
				       .fov_radius = 78};
	if (size == BENCH_QUICK) { /* every seventh angle */
		p.n_angles = 40;
		p.matrix = 128;
	}
	return p;
}

static int once(struct bench_job *job, struct err *err)
{
	struct state *s = job->state;

	return iterate_run(&s->conf, &s->subset, 1, &s->work, &s->x, NULL, err);
}

/* EM keeps counts, see bench_dbt.c. */
static int check(struct bench_job *job, double *ret_found, double *ret_expected, double *ret_tolerance, struct err *err)
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
	iterate_work_release(&s->work);
	buf_release(&s->subset.den);
	buf_release(&s->part.y);
	buf_release(&s->x);
	scan_free(s->scan);
	free(s);
}

static int open_state(struct state *s, struct device *dev, struct err *err)
{
	const struct projection_spec spec = {
		.model = PROJECTION_PATHS, .scan = s->scan, .n_views = s->scan->n_views, .grid = &s->grid};
	size_t bins = scan_view_size(s->scan) * (size_t)s->scan->n_views, voxels = grid_size(&s->grid);
	size_t bytes = sizeof(float) * (2 * bins + 3 * voxels) + dev->ops->projection_bytes(dev, &spec) +
		       dev->ops->scratch_bytes(dev, &spec);
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
	if (r == 0)
		r = iterate_work_alloc_kept(dev, voxels, bins, false, &s->work, err);
	return r < 0 ? r : dev->ops->fill(&s->x, 1, err);
}

/* Bins that have a ray. */
static double count_rays(const struct scan *s)
{
	double rays = 0;

	for (int v = 0; v < s->n_v; v++)
		rays += scan_reach(s, v) > 0;
	return rays * s->n_u * s->n_views;
}

int bench_pet_open(struct bench_job *job, int kind, enum bench_size size, struct err *err)
{
	struct bench_pet p = shape_of(size);
	struct state *s = calloc(1, sizeof(*s));
	int r;

	(void)kind;
	if (!s)
		return err_set(err, ENOMEM, "pet: out of memory");
	job->state = s;
	job->once = once;
	job->check = check;
	job->close = close_job;
	s->conf = (struct iterate_conf){.rule = {.kind = RULE_EM, .bin_floor = FLOOR, .voxel_floor = FLOOR, .step = 1},
					.iterations = 1};
	r = bench_pet_geometry(&p, &s->scan, &s->grid, err);
	if (r == 0)
		r = open_state(s, job->dev, err);
	if (r < 0)
		return r;
	s->part.op = s->op;
	s->subset.op = s->op;
	s->subset.part = &s->part;
	s->subset.n_parts = 1;
	job->steps = 2 * count_rays(s->scan) * p.matrix;
	job->bytes = sizeof(float) * (3 * (double)s->x.n + (double)s->part.y.n);
	snprintf(job->sizes, sizeof(job->sizes), "%d x %d x %d voxels, %d planes of %d angles and %d radial bins", p.matrix,
		 p.matrix, s->grid.n[2], s->scan->n_u, s->scan->n_views, s->scan->n_v);
	return 0;
}
