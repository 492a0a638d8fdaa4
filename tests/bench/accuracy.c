/* SPDX-License-Identifier: Apache-2.0 */
/* accuracy.c - `bench accuracy`: compare a PET model (default: siddon) with the exact one, in the geometry of the benchmark.
 *
 * Prints the largest difference of projections and backprojections of random data over the largest value, the adjoint gap, and
 * the largest relative error of a ray's length against 2 sqrt(fov^2 - r^2) sqrt(1 + slope^2), over all rays. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "recon/core/projector.h"
#include "tests/bench/bench.h"

struct work {
	struct device *dev;
	struct scan *scan;
	struct grid grid;
	struct linop *op, *exact;
	struct buf x, y, p, back;
	float *a, *b; /* their length is that of the longer of x and y */
	double forward, adjoint, gap, chord;
};

static int make_operator(struct work *w, enum projection_model model, bool deterministic, struct linop **ret, struct err *err)
{
	struct projection_spec spec = {
		.model = model, .scan = w->scan, .n_views = w->scan->n_views, .grid = &w->grid, .deterministic = deterministic};

	return projector_create(w->dev, &spec, ret, err);
}

static int open_work(struct work *w, const struct options *o, struct err *err)
{
	const struct bench_setup *s = &o->setup;
	size_t n;
	int r = device_open(o->n_devices ? o->device[0] : "auto", &w->dev, err);

	if (r == 0)
		r = bench_pet_geometry(s, false, &w->scan, &w->grid, err);
	if (r == 0)
		r = make_operator(w, s->model ? s->model : PROJECTION_PATHS, s->deterministic, &w->op, err);
	if (r == 0)
		r = make_operator(w, PROJECTION_EXACT, false, &w->exact, err);
	if (r < 0)
		return r;
	n = w->op->n_in > w->op->n_out ? w->op->n_in : w->op->n_out;
	w->a = malloc(n * sizeof(*w->a));
	w->b = malloc(n * sizeof(*w->b));
	if (!w->a || !w->b)
		return err_set(err, ENOMEM, "no memory for %zu floats", n);
	r = bench_random_alloc(w->dev, w->op->n_in, 0.1f, 1.1f, 5, &w->x, err);
	if (r == 0)
		r = bench_random_alloc(w->dev, w->op->n_out, 0.1f, 1.1f, 2, &w->y, err);
	if (r == 0)
		r = w->dev->ops->alloc(w->dev, w->op->n_out, &w->p, err);
	return r < 0 ? r : w->dev->ops->alloc(w->dev, w->op->n_in, &w->back, err);
}

/* Apply both operators to `from` and compare the results in host memory. */
static int compare(struct work *w, int (*of_model)(const struct linop *, const struct buf *, struct buf *, struct err *),
		   int (*of_exact)(const struct linop *, const struct buf *, struct buf *, struct err *), const struct buf *from,
		   struct buf *to, double *ret_difference, struct err *err)
{
	int r = of_model(w->op, from, to, err);

	if (r == 0)
		r = w->dev->ops->download(to, w->a, err);
	if (r == 0)
		r = of_exact(w->exact, from, to, err);
	if (r == 0)
		r = w->dev->ops->download(to, w->b, err);
	if (r == 0)
		*ret_difference = relative_difference(w->a, w->b, to->n);
	return r;
}

static double worst_chord(const struct scan *s, const float *line)
{
	double worst = 0;

	for (int view = 0; view < s->n_views; view++)
		for (int v = 0; v < s->n_v; v++)
			for (int u = 0; u < s->n_u; u++) {
				double t = scan_reach(s, v), slope = t > 0 ? scan_slope(s, s->planes[u].rise, v) : 0;
				double expected = 2 * t * sqrt(1 + slope * slope);
				double found = line[((size_t)view * (size_t)s->n_v + (size_t)v) * (size_t)s->n_u + (size_t)u];

				if (expected == 0 && found != 0)
					return INFINITY;
				if (expected > 0)
					worst = fmax(worst, fabs(found / expected - 1));
			}
	return worst;
}

static int measure(struct work *w, struct err *err)
{
	const struct device_ops *v = w->dev->ops;
	int r = compare(w, w->op->apply, w->exact->apply, &w->x, &w->p, &w->forward, err);

	if (r == 0)
		r = compare(w, w->op->adjoint, w->exact->adjoint, &w->y, &w->back, &w->adjoint, err);
	if (r == 0)
		r = v->fill(&w->x, 1, err);
	if (r == 0)
		r = w->op->apply(w->op, &w->x, &w->p, err);
	if (r == 0)
		r = v->download(&w->p, w->a, err);
	if (r < 0)
		return r;
	w->chord = worst_chord(w->scan, w->a);
	w->gap = linop_adjoint_gap(w->op, 1, err);
	return w->gap < 0 ? -EIO : 0;
}

static void print(const struct work *w, const struct bench_setup *s)
{
	printf("{\"bench\": \"accuracy\", \"device\": \"%s\", \"model\": \"%s\", \"voxels\": \"%dx%dx%d\", \"fov_mm\": %g, "
	       "\"angles\": %d, \"deterministic\": %s, \"forward_difference\": %.3g, \"back_difference\": %.3g, "
	       "\"adjoint_gap\": %.3g, \"chord_error\": %.3g}\n",
	       w->dev->name, model_name(s->model ? s->model : PROJECTION_PATHS), w->grid.n[0], w->grid.n[1], w->grid.n[2],
	       -w->grid.lo[0], w->scan->n_views, s->deterministic ? "true" : "false", w->forward, w->adjoint, w->gap, w->chord);
}

int bench_accuracy(const struct options *o)
{
	struct work w = {0};
	struct err err = {0};
	int r = open_work(&w, o, &err);

	if (r == 0)
		r = measure(&w, &err);
	if (r == 0)
		print(&w, &o->setup);
	else
		fprintf(stderr, "bench: %s\n", err.msg);
	linop_free(w.op);
	linop_free(w.exact);
	buf_release(&w.x);
	buf_release(&w.y);
	buf_release(&w.p);
	buf_release(&w.back);
	free(w.a);
	free(w.b);
	scan_free(w.scan);
	device_close(w.dev);
	return r < 0 ? 1 : 0;
}
