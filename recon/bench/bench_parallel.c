/* SPDX-License-Identifier: Apache-2.0 */
/* bench_parallel.c - 2-D parallel beams of the phantom of Shepp & Logan: Radon transform, backprojection, FBP with both filters,
 * ART.
 *
 * A picture of n x n pixels of 1 mm, n radial bins of 1 mm, angles over 180 degrees; in a stack the picture shrinks from slice to
 * slice. The smallest memory traffic: the input is read, the output is written; ART reads the data, and reads and writes the
 * picture; Joseph's iteration writes the sinogram and reads it again. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/clock.h"
#include "recon/bench/bench_internal.h"
#include "recon/core/ramp.h"
#include "recon/core/scan.h"
#include "recon/parallel/parallel_session.h"
#include "recon/phantom/parallel_phantom.h"

#define SIDE 0.95 /* the phantom's side, relative to the picture's */
#define TAPER 0.2 /* taper of a stack */
#define SAMPLES 2 /* samples per pixel and axis, for the true image */
#define RELAXATION 0.1
#define CENTRE_X 0.1 /* centre of the weight with which results are summed; in units of the picture's side, like its width */
#define CENTRE_Y -0.07
#define SIGMA 0.1
#define TOLERANCE 0.01	       /* large, because there are few views, bins and pixels */
#define TOLERANCE_SQUARES 0.02 /* the same of squares */
#define TOLERANCE_ART 0.05     /* ART has not converged */
#define ENOUGH_ANGLES 0.15     /* angles per radial bin; from fewer, an image may differ much from the phantom */

enum { FILTER, BACK, N_STAGES };
static const char *const stages[N_STAGES] = {"filter", "back"}; /* for BENCH_CONVOLUTION */

struct state {
	int kind;
	const struct bench_setup *setup; /* valid only while the work is opened */
	struct parallel_scan scan;
	struct parallel_protocol protocol;
	struct parallel_plan plan;
	struct parallel_session session;
	struct parallel_phantom *phantom;
	struct ramp *ramp;
	float *lines;	     /* the analytic sinogram */
	double expected;     /* for the check */
	struct buf weight;   /* for the check, in the order of the session's volume */
	struct buf filtered; /* if the device filters */
	struct buf adjoint;  /* for BENCH_JOSEPH: A'A x */
};

static const struct sizes {
	int side, angles, slices;
} one_sizes[BENCH_SIZES] = {{48, 72, 1}, {150, 150, 1}, {300, 300, 1}, {2048, 2048, 1}},
  stack_sizes[BENCH_SIZES] = {{40, 60, 5}, {150, 150, 32}, {300, 300, 256}, {300, 300, 256}},
  large_sizes[BENCH_SIZES] = {{48, 72, 1}, {512, 512, 1}, {2048, 2048, 1}, {2048, 2048, 1}},
  large_stack_sizes[BENCH_SIZES] = {{40, 60, 3}, {512, 512, 4}, {2048, 2048, 16}, {2048, 2048, 16}},
  joseph_sizes[BENCH_SIZES] = {{48, 72, 1}, {256, 180, 1}, {512, 360, 1}, {512, 360, 1}};

/* Does the device filter? Then the data are there at the start; else parallel_back_run() filters on the host and uploads. */
static bool device_filters(const struct state *s, const struct device *dev)
{
	return s->kind == BENCH_CONVOLUTION || (s->kind == BENCH_FOURIER && dev->ops->transforms(dev, s->scan.n_radial));
}

static int run_parallel_stage(struct bench_job *job, int i, struct err *err)
{
	struct state *s = job->state;
	struct parallel_session *t = &s->session;
	const struct device_ops *v = job->dev->ops;

	if (i == BACK)
		return v->back_interpolated(t->a, &s->filtered, false, &t->x, err);
	return v->convolve(&t->y, (size_t)s->scan.n_angles, s->scan.n_radial, (size_t)s->scan.n_slices, ramp_kernel(s->ramp),
			   s->kind == BENCH_FOURIER, &s->filtered, err);
}

static int run_parallel(struct bench_job *job, struct err *err)
{
	struct state *s = job->state;
	struct parallel_session *t = &s->session;
	const struct device_ops *v = job->dev->ops;
	int r;

	switch (s->kind) {
	case BENCH_RADON:
		return v->forward(t->a, &t->x, false, &t->y, err);
	case BENCH_JOSEPH:
		r = v->forward(t->a, &t->x, false, &t->y, err);
		return r < 0 ? r : v->adjoint(t->a, &t->y, false, &s->adjoint, err);
	case BENCH_BP:
		return v->back_interpolated(t->a, &t->y, false, &t->x, err);
	case BENCH_CONVOLUTION:
		r = run_parallel_stage(job, FILTER, err);
		return r < 0 ? r : run_parallel_stage(job, BACK, err);
	case BENCH_FOURIER:
		if (!device_filters(s, job->dev))
			return parallel_back_run(t, err);
		r = run_parallel_stage(job, FILTER, err);
		return r < 0 ? r : run_parallel_stage(job, BACK, err);
	default:
		return v->row_sweep(t->a, RELAXATION, &t->y, &t->x, err);
	}
}

/* Return the tolerance of the check; infinity if there are so few angles that the image is only checked to be finite. */
static double tolerance_of(const struct state *s)
{
	bool image = s->kind == BENCH_CONVOLUTION || s->kind == BENCH_FOURIER || s->kind == BENCH_ART;

	if (image && s->scan.n_angles < ENOUGH_ANGLES * s->scan.n_radial)
		return INFINITY;
	return s->kind == BENCH_ART ? TOLERANCE_ART : s->kind == BENCH_JOSEPH ? TOLERANCE_SQUARES : TOLERANCE;
}

static int check_parallel(struct bench_job *job, double *ret_found, double *ret_expected, double *ret_tolerance, struct err *err)
{
	struct state *s = job->state;
	struct parallel_session *t = &s->session;
	const struct device_ops *v = job->dev->ops;

	*ret_expected = s->expected;
	*ret_tolerance = tolerance_of(s);
	if (s->kind == BENCH_RADON)
		return v->sum(&t->y, ret_found, err);
	return v->dot(&t->x, s->kind == BENCH_JOSEPH ? &s->adjoint : &s->weight, ret_found, err);
}

static void close_job(struct bench_job *job)
{
	struct state *s = job->state;

	if (s->session.dev) {
		parallel_part_release(&s->session);
		subsets_release(&s->session.views);
	}
	buf_release(&s->weight);
	buf_release(&s->filtered);
	buf_release(&s->adjoint);
	ramp_free(s->ramp);
	parallel_phantom_free(s->phantom);
	free(s->lines);
	free(s);
}

/* Whether the work begins with the picture, not with the data. */
static bool takes_picture(int kind)
{
	return kind == BENCH_RADON || kind == BENCH_JOSEPH;
}

static enum parallel_work work_of(int kind)
{
	return takes_picture(kind) ? PARALLEL_WORK_RADON : kind == BENCH_ART ? PARALLEL_WORK_ROWS : PARALLEL_WORK_BACK;
}

static struct parallel_protocol protocol_of(const struct state *s, const struct device *dev)
{
	return (struct parallel_protocol){
		.algorithm = s->kind == BENCH_ART				   ? ALGORITHM_ART
			     : s->kind == BENCH_FOURIER && !device_filters(s, dev) ? ALGORITHM_FBP
										   : ALGORITHM_BP,
		.iterations = 1,
		.subsets = 1,
		.relaxation = RELAXATION,
		.filter = PARALLEL_SHEPP_LOGAN,
		.filter_cut = 1,
		.route = PARALLEL_FOURIER,
		.matrix = s->scan.n_radial,
		.pixel = 1,
		.projector = s->setup->model	       ? s->setup->model
			     : s->kind == BENCH_JOSEPH ? PROJECTION_JOSEPH
						       : PROJECTION_PATHS,
		.deterministic = s->setup->deterministic,
	};
}

/* Return the weight, at (x, y), of the sum that is checked: a Gaussian beside the centre, so smooth that the width of bins and
 * pixels has no effect. */
static double weight_at(const struct state *s, double x, double y)
{
	double n = s->scan.n_radial, dx = (x - CENTRE_X * n) / (SIGMA * n), dy = (y - CENTRE_Y * n) / (SIGMA * n);

	return exp(-0.5 * (dx * dx + dy * dy));
}

/* Return the line integral of weight_at(). */
static double weight_line(const struct state *s, const double turn[2], double radius)
{
	double n = s->scan.n_radial, sigma = SIGMA * n, at = (radius - n * (CENTRE_X * turn[0] + CENTRE_Y * turn[1])) / sigma;

	return sqrt(2 * M_PI) * sigma * exp(-0.5 * at * at);
}

/* Return the expected sum of the result. BP: sum over pixels of w times their sums over views = sum over bins of the data times
 * the weight's line integral, in pixels and bins of 1 mm. Joseph: <x, A'A x> = |A x|^2. */
static double expected_sum(const struct state *s, const float *picture)
{
	const struct grid *g = &s->plan.grid;
	double sum = 0;

	if (takes_picture(s->kind) || s->kind == BENCH_BP) {
		size_t rows = (size_t)s->scan.n_slices * (size_t)s->scan.n_angles;

		for (size_t row = 0; row < rows; row++) {
			double turn[2];

			scan_turn(parallel_angle(&s->scan, (int)(row % (size_t)s->scan.n_angles)), turn);
			for (int t = 0; t < s->scan.n_radial; t++) {
				double line = s->lines[row * (size_t)s->scan.n_radial + (size_t)t];

				sum += line * (s->kind == BENCH_BP	 ? weight_line(s, turn, parallel_radius(&s->scan, t))
					       : s->kind == BENCH_JOSEPH ? line
									 : 1);
			}
		}
		return sum;
	}
	for (int k = 0; k < g->n[2]; k++)
		for (int j = 0; j < g->n[1]; j++)
			for (int i = 0; i < g->n[0]; i++)
				sum += weight_at(s, g->lo[0] + i + 0.5, g->lo[1] + j + 0.5) *
				       (double)picture[((size_t)k * (size_t)g->n[1] + (size_t)j) * (size_t)g->n[0] + (size_t)i];
	return sum;
}

static void fill_weight(const struct state *s, float *ret_picture)
{
	const struct grid *g = &s->plan.grid;

	for (int k = 0; k < g->n[2]; k++)
		for (int j = 0; j < g->n[1]; j++)
			for (int i = 0; i < g->n[0]; i++)
				*ret_picture++ = (float)weight_at(s, g->lo[0] + i + 0.5, g->lo[1] + j + 0.5);
}

/* Compute the picture and its sinogram, on the host and on the device. */
static int make_data(struct state *s, struct err *err)
{
	struct parallel_session *t = &s->session;
	const struct device_ops *v = t->dev->ops;
	size_t pixels = (size_t)s->plan.grid.n[0] * (size_t)s->plan.grid.n[1] * (size_t)s->plan.grid.n[2];
	float *picture = malloc(pixels * sizeof(*picture));
	double *weight = malloc((size_t)s->scan.n_angles * sizeof(*weight));
	bool convolve = device_filters(s, t->dev);
	int r = 0;

	s->lines = malloc(parallel_size(&s->scan) * sizeof(*s->lines));
	if (!picture || !weight || !s->lines)
		r = err_set(err, ENOMEM, "no memory for %zu pixels and %zu bins", pixels, parallel_size(&s->scan));
	if (r == 0)
		r = parallel_phantom_create(PARALLEL_PHANTOM_SHEPP_LOGAN, SIDE * s->scan.n_radial, &s->phantom, err);
	if (r == 0)
		r = parallel_phantom_project(s->phantom, &s->scan, TAPER, s->lines, err);
	if (r == 0)
		r = parallel_phantom_draw(s->phantom, &s->plan.grid, TAPER, SAMPLES, picture, err);
	if (r == 0)
		r = parallel_weights(&s->scan, weight, err);
	if (r < 0)
		goto out;
	s->expected = expected_sum(s, picture);
	t->lines = s->lines;
	parallel_bins_in(t, convolve ? weight : NULL, NULL, t->host);
	r = v->upload(&t->y, t->host, err);
	parallel_volume_in(t, picture, t->host);
	if (r == 0)
		r = takes_picture(s->kind) ? v->upload(&t->x, t->host, err) : v->fill(&t->x, 0, err);
	if (r == 0) {
		fill_weight(s, picture);
		parallel_volume_in(t, picture, t->host);
		r = v->upload(&s->weight, t->host, err);
	}
out:
	free(picture);
	free(weight);
	return r;
}

/* Plan for all slices at once, or return ENOMEM. */
static int make_plan(struct state *s, enum parallel_work work, struct device *dev, struct err *err)
{
	size_t n = (size_t)s->scan.n_radial, slices = (size_t)s->scan.n_slices + 3; /* columns are padded */
	size_t more = n * slices * (n + (device_filters(s, dev) ? (size_t)s->scan.n_angles : s->kind == BENCH_JOSEPH ? n : 0));
	int r = parallel_plan(&s->protocol, &s->scan, dev, &s->plan, err);

	if (r == 0 && work == PARALLEL_WORK_RADON) /* the Radon transform is no reconstruction algorithm */
		r = parallel_fit(&s->protocol, &s->scan, work, dev, &s->plan, err);
	if (r == 0)
		r = bench_fits(dev, s->plan.bytes.total + s->plan.bytes.threads + more * sizeof(float), err);
	if (r == 0 && s->plan.part_slices < s->scan.n_slices)
		r = err_set(err, ENOMEM, "%d slices together do not fit on %s; %d slices fit", s->scan.n_slices, dev->name,
			    s->plan.part_slices);
	return r;
}

static int open_state(struct state *s, struct device *dev, double *ret_session, struct err *err)
{
	double begun = clock_seconds();
	struct parallel_session *t = &s->session;
	enum parallel_work work = work_of(s->kind);
	bool convolve = device_filters(s, dev);
	int r;

	s->protocol = protocol_of(s, dev);
	*t = (struct parallel_session){.p = &s->protocol, .plan = &s->plan, .s = &s->scan, .dev = dev, .work = work, .unit = 1};
	r = make_plan(s, work, dev, err);
	if (r == 0)
		r = parallel_views_make(&s->protocol, &s->scan, work, &t->views, err);
	if (r == 0)
		r = parallel_part_open(t, s->scan.n_slices, err);
	if (r == 0)
		r = dev->ops->alloc(dev, t->x.n, &s->weight, err);
	if (r == 0 && convolve)
		r = dev->ops->alloc(dev, t->y.n, &s->filtered, err);
	if (r == 0 && s->kind == BENCH_JOSEPH)
		r = dev->ops->alloc(dev, t->x.n, &s->adjoint, err);
	if (r == 0 && convolve)
		r = ramp_create(RAMP_SHEPP_LOGAN, 1, s->scan.bin, s->scan.n_radial, &s->ramp, err);
	if (r == 0)
		r = dev->ops->wait(dev, QUEUE_WORK, err);
	*ret_session = clock_seconds() - begun;
	return r < 0 ? r : make_data(s, err);
}

static int check_setup(const struct bench_setup *s, int kind, struct err *err)
{
	bool rays = takes_picture(kind) || kind == BENCH_ART;
	bool model = s->model == 0 || (rays && s->model != PROJECTION_SLICES);

	if (model && !s->rule && s->turn == 0 && !s->tile[0] && !s->tile[1] && !(s->fov_radius > 0) &&
	    (!s->voxels[1] || s->voxels[1] == s->voxels[0]))
		return 0;
	return err_set(err, EINVAL,
		       "parallel beams: as many voxels along y as along x; models, for radon and art alone: siddon, "
		       "joseph, sampled, exact; no rules, no tiles, no field of view");
}

static const struct sizes *sizes_of(int kind)
{
	if (kind == BENCH_JOSEPH)
		return joseph_sizes;
	switch (kind & (BENCH_STACK | BENCH_LARGE)) {
	case BENCH_STACK:
		return stack_sizes;
	case BENCH_LARGE:
		return large_sizes;
	case BENCH_STACK | BENCH_LARGE:
		return large_stack_sizes;
	default:
		return one_sizes;
	}
}

int bench_parallel_open(struct bench_job *job, int kind, const struct bench_setup *setup, struct err *err)
{
	const struct sizes *z = &sizes_of(kind)[setup->size];
	int n = bench_or(setup->voxels[0], z->side), angles = bench_or(setup->views, z->angles);
	int slices = bench_or(setup->voxels[2], z->slices);
	struct state *s = calloc(1, sizeof(*s));
	double picture = (double)n * n * slices, sinogram = (double)n * angles * slices, passes;
	int r;

	if (!s)
		return err_set(err, ENOMEM, "parallel: out of memory");
	*job = (struct bench_job){.dev = job->dev, .state = s, .once = run_parallel, .check = check_parallel, .close = close_job};
	s->kind = kind & (BENCH_STACK - 1);
	s->setup = setup;
	s->scan = (struct parallel_scan){.n_slices = slices, .n_angles = angles, .n_radial = n, .bin = 1, .slice = 1, .arc = 180};
	if (device_filters(s, job->dev)) {
		job->n_stages = N_STAGES;
		job->stages = stages;
		job->stage = run_parallel_stage;
	}
	r = check_setup(setup, s->kind, err);
	if (r == 0)
		r = open_state(s, job->dev, &job->seconds_session, err);
	passes = s->kind == BENCH_ART || s->kind == BENCH_JOSEPH ? 2 : 1;
	job->steps = passes * picture * angles;
	job->bytes = sizeof(float) * ((s->kind == BENCH_JOSEPH ? 2 : 1) * sinogram + passes * picture);
	snprintf(job->sizes, sizeof(job->sizes), "%d x %d pixels, %d angles, %d radial bins, %d slices", n, n, angles, n, slices);
	return r;
}
