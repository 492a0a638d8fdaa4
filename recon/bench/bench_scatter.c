/* SPDX-License-Identifier: Apache-2.0 */
/* bench_scatter.c - estimate the scatter of PET data, with everything that a reconstruction does for it but reading files.
 *
 * Data are those of a cylinder of water: its projections, computed on the device, with attenuation, and its simulated scatter. A
 * step is the computation of one scatter point for one pair of detectors, in the last simulation one TOF bin of it. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "recon/bench/bench_data.h"
#include "recon/bench/bench_internal.h"
#include "recon/core/projector.h"
#include "recon/scatter/scatter_estimate.h"

#define MU 0.0096
#define RADIUS_OF_FOV 0.55  /* of the cylinder */
#define VOXEL 6.0	    /* mm, of the true image */
#define VOXEL_OF_FOV 0.02   /* largest one of a small scanner: this part of the radius */
#define POINT_DISTANCE 20.0 /* mm, of scatter points; of a small scanner: POINT_OF_FOV of the radius */
#define POINT_OF_FOV 0.1
#define ITERATIONS 3
#define TOLERANCE 0.05
#define FEW_ANGLES 8 /* of the quick size: the coarse image is poor, */
#define TOLERANCE_FEW 0.2

struct state {
	struct michelogram m, plain; /* plain: without TOF bins; borrows the segments of m */
	struct grid grid;
	size_t bins;
	float *activity, *mu, *prompts, *attenuation, *scatter;
	struct scatter_estimate_conf conf;
	struct scatter_estimate_report report;
	double fraction; /* of the data */
};

static int run_scatter(struct bench_job *job, struct err *err)
{
	struct state *s = job->state;
	const struct scatter_data data = {.prompts = s->prompts, .attenuation = s->attenuation};
	struct scatter_estimate made;
	int r = scatter_estimate(&s->m, &s->conf, &data, &s->grid, s->mu, job->dev, NULL, &made, &s->report, err);

	if (r == 0)
		scatter_estimate_clear(&made);
	return r;
}

static int check_scatter(struct bench_job *job, double *ret_found, double *ret_expected, double *ret_tolerance, struct err *err)
{
	const struct state *s = job->state;

	(void)err;
	*ret_found = s->report.scale.fraction;
	*ret_expected = s->fraction;
	*ret_tolerance = s->m.n_angles < FEW_ANGLES ? TOLERANCE_FEW : TOLERANCE;
	return 0;
}

static void close_job(struct bench_job *job)
{
	struct state *s = job->state;

	free(s->activity);
	free(s->mu);
	free(s->prompts);
	free(s->attenuation);
	free(s->scatter);
	free(s->m.segments);
	free(s);
}

static int make_body(struct state *s, double fov_radius, struct err *err)
{
	double length = (2 * s->m.scanner.rings - 1) * s->m.scanner.ring_spacing / 2, radius = RADIUS_OF_FOV * fov_radius;
	double voxel = fmin(VOXEL, VOXEL_OF_FOV * fov_radius);
	struct grid *g = &s->grid;
	size_t voxels, at;

	g->n[0] = g->n[1] = (int)ceil(2 * fov_radius / voxel);
	g->n[2] = (int)ceil(length / voxel);
	g->h[0] = g->h[1] = 2 * fov_radius / g->n[0];
	g->h[2] = length / g->n[2];
	g->z_fastest = true;
	for (int c = 0; c < 3; c++)
		g->lo[c] = -0.5 * g->n[c] * g->h[c];
	voxels = grid_size(g);
	s->activity = calloc(voxels, sizeof(float));
	s->mu = calloc(voxels, sizeof(float));
	if (!s->activity || !s->mu)
		return err_set(err, ENOMEM, "no memory for %zu voxels", voxels);
	for (int y = 0; y < g->n[1]; y++)
		for (int x = 0; x < g->n[0]; x++) {
			double px = g->lo[0] + (x + 0.5) * g->h[0], py = g->lo[1] + (y + 0.5) * g->h[1];

			at = (size_t)x * grid_step(g, 0) + (size_t)y * grid_step(g, 1);
			for (int z = 0; px * px + py * py < radius * radius && z < g->n[2]; z++, at++) {
				s->activity[at] = 1;
				s->mu[at] = (float)MU;
			}
		}
	return 0;
}

/* ret[plane][angle][radial] = A x, without time of flight. */
static int project_image(const struct state *s, const struct scan *scan, const int *plane, struct device *dev, const float *x,
			 float *ret, struct err *err)
{
	const struct projection_spec spec = {.model = PROJECTION_PATHS, .scan = scan, .n_views = scan->n_views, .grid = &s->grid};
	size_t n_u = (size_t)scan->n_u, n_v = (size_t)scan->n_v;
	struct buf bx = {0}, by = {0};
	struct linop *op = NULL;
	float *y = malloc(s->bins * sizeof(*y));
	int r = y ? dev->ops->alloc(dev, grid_size(&s->grid), &bx, err) : err_set(err, ENOMEM, "no memory for %zu bins", s->bins);

	r = r < 0 ? r : dev->ops->alloc(dev, s->bins, &by, err);
	r = r < 0 ? r : dev->ops->upload(&bx, x, err);
	r = r < 0 ? r : projector_create(dev, &spec, &op, err);
	r = r < 0 ? r : op->apply(op, &bx, &by, err);
	r = r < 0 ? r : dev->ops->download(&by, y, err);
	for (size_t i = 0; r == 0 && i < s->bins; i++)
		ret[((size_t)plane[i % n_u] * (size_t)scan->n_views + i / n_u / n_v) * n_v + i / n_u % n_v] = y[i];
	linop_free(op);
	buf_release(&bx);
	buf_release(&by);
	free(y);
	return r;
}

/* Compute attenuation and prompts without scatter. */
static int project_body(struct state *s, double fov_radius, struct device *dev, struct err *err)
{
	struct scan *scan = NULL;
	int *plane = NULL, r;

	s->bins = michelogram_size(&s->plain);
	s->prompts = malloc(s->bins * sizeof(float));
	s->attenuation = malloc(s->bins * sizeof(float));
	s->scatter = malloc(s->bins * sizeof(float));
	if (!s->prompts || !s->attenuation || !s->scatter)
		return err_set(err, ENOMEM, "no memory for %zu bins", s->bins);
	r = scan_create_michelogram(&s->plain, fov_radius, NULL, &scan, &plane, err);
	r = r < 0 ? r : project_image(s, scan, plane, dev, s->mu, s->attenuation, err);
	r = r < 0 ? r : project_image(s, scan, plane, dev, s->activity, s->prompts, err);
	for (size_t i = 0; r == 0 && i < s->bins; i++) {
		s->attenuation[i] = expf(-s->attenuation[i]);
		s->prompts[i] *= s->attenuation[i];
	}
	scan_free(scan);
	free(plane);
	return r;
}

static int add_scatter(struct state *s, struct device *dev, struct err *err)
{
	struct single_scatter_report report;
	struct single_scatter *simulated = NULL;
	double scatter = 0, all = 0;
	int r = single_scatter_open(&s->plain, &s->conf.simulation, dev, &simulated, err);

	r = r < 0 ? r : single_scatter_run(simulated, &s->grid, s->activity, s->mu, NULL, &report, err);
	r = r < 0 ? r : single_scatter_planes(simulated, 0, (int)michelogram_planes(&s->plain), s->conf.threads, s->scatter, err);
	single_scatter_close(simulated);
	for (size_t i = 0; r == 0 && i < s->bins; i++) {
		s->prompts[i] += s->scatter[i];
		scatter += (double)s->scatter[i];
		all += (double)s->prompts[i];
	}
	s->fraction = scatter / all;
	return r;
}

static int check_setup(const struct bench_setup *s, struct err *err)
{
	if (!s->model && !s->rule && s->turn == 0 && !s->tile[0] && !s->tile[1] && !s->voxels[0] && !s->voxels[1] &&
	    !s->voxels[2] && !s->deterministic)
		return 0;
	return err_set(err, EINVAL, "PET scatter: voxels, models, rules, tiles and deterministic runs cannot be chosen");
}

int bench_scatter_open(struct bench_job *job, int kind, const struct bench_setup *setup, struct err *err)
{
	struct state *s = calloc(1, sizeof(*s));
	double fov_radius = 0;
	int r;

	if (!s)
		return err_set(err, ENOMEM, "scatter: out of memory");
	*job = (struct bench_job){.dev = job->dev, .state = s, .once = run_scatter, .check = check_scatter, .close = close_job};
	s->conf = (struct scatter_estimate_conf){
		.simulation = {.energy_low = 435, .energy_high = 585, .energy_resolution = 10, .seed = 1},
		.iterations = ITERATIONS,
		.threads = (int)fmax(1, (double)sysconf(_SC_NPROCESSORS_ONLN))};
	r = check_setup(setup, err);
	r = r < 0 ? r : bench_pet_michelogram(setup, kind == BENCH_PET_TOF, &s->m, &fov_radius, err);
	s->plain = s->m;
	s->plain.tof = (struct scan_tof){0};
	s->conf.fov_radius = fov_radius;
	s->conf.simulation.point_distance = fmin(POINT_DISTANCE, POINT_OF_FOV * fov_radius);
	r = r < 0 ? r : make_body(s, fov_radius, err);
	r = r < 0 ? r : project_body(s, fov_radius, job->dev, err);
	r = r < 0 ? r : add_scatter(s, job->dev, err);
	r = r < 0 ? r : run_scatter(job, err); /* for the numbers of points and pairs */
	if (r < 0)
		return r;
	job->steps = (double)s->report.simulation.points * (double)s->report.simulation.pairs * (ITERATIONS + s->m.tof.n);
	job->bytes = sizeof(float) * 8.0 * ITERATIONS * (double)s->bins;
	snprintf(job->sizes, sizeof(job->sizes), "%zu planes of %d angles and %d radial bins, %d TOF bins, %zu points, %zu pairs",
		 michelogram_planes(&s->m), s->m.n_angles, s->m.n_radial, s->m.tof.n, s->report.simulation.points,
		 s->report.simulation.pairs);
	return 0;
}
