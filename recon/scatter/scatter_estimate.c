/* SPDX-License-Identifier: Apache-2.0 */
/* scatter_estimate.c - see recon/scatter/scatter_estimate.h. */
#include "recon/scatter/scatter_estimate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/clock.h"
#include "kernels/order.h"
#include "recon/pet/activity_outside.h"

#define VOXEL 8.0		/* mm, of the coarse images; single scatter is smooth */
#define VOXEL_OF_RADIUS 0.03125 /* largest voxel of a small scanner: this part of the field of view's radius */
#define POINT_DISTANCE 20.0	/* mm, of scatter points unless the caller gives it */
#define POINT_OF_RADIUS 0.1	/* the same for them */
#define IMAGE_ITERATIONS 2
#define IMAGE_SUBSETS 8
#define ARRAYS 3  /* of all bins: m, background, scatter */
#define VOLUMES 3 /* coarse ones: image, the first image, mu */

/* A step of the whole: its progress is that part of the progress. */
struct part {
	const struct monitor *whole;
	int done, parts;
};

struct work {
	struct michelogram m; /* without TOF bins */
	const struct scatter_estimate_conf *conf;
	const struct scatter_data *data;
	struct device *dev;
	struct part part;
	struct monitor monitor; /* of the present part */
	struct scatter_estimate_plan plan;
	size_t bins;
	struct grid grid; /* of activity and mu, x fastest */
	float *factors, *background, *scatter;
	float *image, *before, *mu;
	struct single_scatter *plain;
	struct scatter_estimate_report report;
};

static void part_progress(void *ctx, const char *stage, double fraction)
{
	const struct part *p = ctx;

	(void)stage; /* the images have stages of their own */
	monitor_progress(p->whole, "read", (p->done + fraction) / p->parts);
}

static bool part_cancelled(void *ctx)
{
	const struct part *p = ctx;

	return monitor_cancelled(p->whole);
}

/* Plan the coarse images of m, which has no TOF bins. */
static int plan_images(const struct michelogram *m, const struct scatter_estimate_conf *conf, struct device *dev,
		       struct scatter_estimate_plan *p, struct err *err)
{
	double half = 0.5 * m->scanner.ring_spacing, voxel;
	int subsets = m->n_angles < IMAGE_SUBSETS ? m->n_angles : IMAGE_SUBSETS, r;

	p->protocol = (struct pet_protocol){.algorithm = ALGORITHM_OSEM,
					    .iterations = IMAGE_ITERATIONS,
					    .subsets = subsets,
					    .matrix = 16,
					    .fov_radius = conf->fov_radius,
					    .projector = PROJECTION_PATHS,
					    .memory_limit = conf->memory_limit,
					    .deterministic = true};
	/* once for the radius of the field of view, which determines the matrix */
	r = pet_plan(&p->protocol, m, PET_FACTORS_SHARED, true, dev, &p->images, err);
	if (r < 0)
		return r;
	voxel = fmin(VOXEL, VOXEL_OF_RADIUS * p->images.fov_radius);
	p->protocol.matrix = (int)ceil(2 * p->images.fov_radius / voxel);
	p->protocol.slice = half * fmax(1, floor(voxel / half));
	p->simulation = conf->simulation;
	if (p->simulation.point_distance == 0)
		p->simulation.point_distance = fmin(POINT_DISTANCE, POINT_OF_RADIUS * p->images.fov_radius);
	return pet_plan(&p->protocol, m, PET_FACTORS_SHARED, true, dev, &p->images, err);
}

int scatter_estimate_plan(const struct michelogram *m, const struct scatter_estimate_conf *conf, struct device *dev,
			  struct scatter_estimate_plan *ret, struct err *err)
{
	struct michelogram without = *m;
	struct scatter_estimate_plan p = {0};
	struct single_scatter_bytes plain, tof = {0};
	size_t voxels;
	int r;

	without.tof = (struct scan_tof){0};
	r = plan_images(&without, conf, dev, &p, err);
	r = r < 0 ? r : single_scatter_count(&without, &p.simulation, &p.images.grid, &plain, err);
	if (r == 0 && m->tof.n > 0)
		r = single_scatter_count(m, &p.simulation, &p.images.grid, &tof, err);
	if (r < 0)
		return r;
	voxels = grid_size(&p.images.grid);
	p.bytes_device =
		order_larger_size(p.images.bytes.total + p.images.bytes.threads, order_larger_size(plain.device, tof.device));
	p.bytes_kept = (m->tof.n > 0 ? tof.host : plain.host) + michelogram_planes(m) * sizeof(float);
	p.bytes_packed = scatter_estimate_packed(michelogram_planes(m), m->tof.n > 0 ? tof.values : plain.values);
	p.bytes_host = sizeof(float) * (ARRAYS * michelogram_size(&without) + VOLUMES * voxels) + p.images.bytes.host +
		       (m->tof.n > 0 ? plain.host : 0);
	*ret = p;
	return 0;
}

static int alloc_work(struct work *w, struct err *err)
{
	size_t voxels = grid_size(&w->grid);

	w->factors = malloc(w->bins * sizeof(float));
	w->background = malloc(w->bins * sizeof(float));
	w->scatter = calloc(w->bins, sizeof(float));
	w->image = malloc(voxels * sizeof(float));
	w->before = malloc(voxels * sizeof(float));
	w->mu = malloc(voxels * sizeof(float));
	if (w->factors && w->background && w->scatter && w->image && w->before && w->mu)
		return 0;
	return err_set(err, ENOMEM, "scatter: no memory for %zu bins and %zu voxels", w->bins, voxels);
}

/* Reconstruct the coarse image with the scatter estimate so far; scale NULL: without. */
static int make_image(struct work *w, const float *scale, struct err *err)
{
	const struct scatter_data *d = w->data;
	size_t plane = michelogram_plane_bins(&w->m);
	int n = (int)michelogram_planes(&w->m), r;
	struct pet_session *session = NULL;
	struct pet_report report;
	double begun = clock_seconds();

#pragma omp parallel for num_threads(w->conf->threads)
	for (int p = 0; p < n; p++)
		for (size_t i = (size_t)p * plane; i < (size_t)(p + 1) * plane; i++) {
			float norm = d->norm ? d->norm[i] : 1;

			w->factors[i] = norm * d->attenuation[i];
			w->background[i] = (d->background ? d->background[i] : 0) + (scale ? norm * scale[p] * w->scatter[i] : 0);
		}
	r = pet_open(&w->plan.protocol, &w->plan.images, &w->m, PET_FACTORS_SHARED, true, w->dev, NULL, &session, err);
	r = r < 0 ? r : pet_put(session, PET_DATA, 0, n, d->prompts, err);
	r = r < 0 ? r : pet_put(session, PET_FACTORS, 0, n, w->factors, err);
	r = r < 0 ? r : pet_put(session, PET_BACKGROUND, 0, n, w->background, err);
	r = r < 0 ? r : pet_run(session, &w->monitor, &report, err);
	r = r < 0 ? r : pet_read_slices(session, 0, w->grid.n[2], w->image, err);
	pet_close(session);
	w->report.seconds_image += clock_seconds() - begun;
	return r;
}

/* Simulate the image without TOF bins, and fit it. */
static int simulate_image(struct work *w, float *scale, struct err *err)
{
	double begun = clock_seconds(), made;
	int r = single_scatter_run(w->plain, &w->grid, w->image, w->mu, &w->monitor, &w->report.simulation, err);

	r = r < 0 ? r : single_scatter_planes(w->plain, 0, (int)michelogram_planes(&w->m), w->conf->threads, w->scatter, err);
	made = clock_seconds();
	w->report.seconds_simulate += made - begun;
	r = r < 0 ? r : scatter_scale_fit(&w->m, w->data, w->scatter, w->conf->threads, scale, &w->report.scale, err);
	w->report.seconds_scale += clock_seconds() - made;
	return r;
}

static int iterate_image(struct work *w, float *scale, struct err *err)
{
	size_t voxels = grid_size(&w->grid);
	int r = 0;

	for (int i = 0; r == 0 && i < w->conf->iterations; i++) {
		r = make_image(w, i > 0 ? scale : NULL, err);
		w->part.done++;
		for (size_t k = 0; r == 0 && i == 1 && k < voxels; k++)
			w->image[k] = 0.5f * (w->image[k] + w->before[k]);
		if (r == 0 && i == 0)
			memcpy(w->before, w->image, voxels * sizeof(float));
		r = r < 0 ? r : simulate_image(w, scale, err);
		w->part.done++;
	}
	return r;
}

/* Simulate the last image with the TOF bins of m. */
static int finish_estimate(struct work *w, const struct michelogram *m, struct scatter_estimate *ret, struct err *err)
{
	double begun = clock_seconds();
	int r;

	if (m->tof.n == 0) {
		single_scatter_use(w->plain, m);
		ret->simulated = w->plain;
		w->plain = NULL;
		return 0;
	}
	r = single_scatter_open(m, &w->plan.simulation, w->dev, &ret->simulated, err);
	r = r < 0 ? r : single_scatter_run(ret->simulated, &w->grid, w->image, w->mu, &w->monitor, &w->report.simulation, err);
	w->report.seconds_simulate += clock_seconds() - begun;
	return r;
}

int scatter_estimate(const struct michelogram *m, const struct scatter_estimate_conf *conf, const struct scatter_data *data,
		     const struct grid *mu_grid, const float *mu, struct device *dev, const struct monitor *monitor,
		     struct scatter_estimate *ret, struct scatter_estimate_report *ret_report, struct err *err)
{
	struct work w = {.m = *m,
			 .conf = conf,
			 .data = data,
			 .dev = dev,
			 .part = {monitor, 0, 2 * conf->iterations + (m->tof.n > 0)},
			 .monitor = {.ctx = &w.part, .progress = part_progress, .cancelled = part_cancelled}};
	struct scatter_estimate made = {.scale = malloc(michelogram_planes(m) * sizeof(float))};
	int r = made.scale ? 0 : err_set(err, ENOMEM, "scatter: out of memory");

	w.m.tof = (struct scan_tof){0};
	w.bins = michelogram_size(&w.m);
	r = r < 0 ? r : plan_images(&w.m, conf, dev, &w.plan, err);
	w.grid = w.plan.images.grid;
	w.grid.z_fastest = false;
	w.report.grid = w.grid;
	r = r < 0 ? r : alloc_work(&w, err);
	r = r < 0 ? r : single_scatter_open(&w.m, &w.plan.simulation, dev, &w.plain, err);
	if (r == 0)
		activity_outside_average(mu_grid, mu, &w.grid, conf->threads, w.mu);
	r = r < 0 ? r : iterate_image(&w, made.scale, err);
	if (r == 0)
		w.report.outside = activity_outside(&w.grid, w.image, w.mu, w.data->covered);
	r = r < 0 ? r : finish_estimate(&w, m, &made, err);
	single_scatter_close(w.plain);
	free(w.factors);
	free(w.background);
	free(w.scatter);
	free(w.image);
	free(w.before);
	free(w.mu);
	if (r < 0) {
		scatter_estimate_clear(&made);
		return r;
	}
	*ret = made;
	*ret_report = w.report;
	return 0;
}

void scatter_estimate_clear(struct scatter_estimate *e)
{
	single_scatter_close(e->simulated);
	free(e->scale);
	*e = (struct scatter_estimate){0};
}
