/* SPDX-License-Identifier: Apache-2.0 */
/* parallel_plan.c - determine grid, subsets and memory before anything is allocated.
 *
 * bytes.total is the sum of all that is allocated on the device; the CPU device may round vectors up by a page. If that exceeds
 * the limit, slices are processed in parts, with the same result; bisection finds the largest part that fits. ENOMEM if one slice
 * does not fit. Of a stack that is kept apart, main memory has the lines and the image of one part only. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "recon/core/scan.h"
#include "recon/parallel/parallel_internal.h"
#include "recon/parallel/parallel_keys.h"

#define MATRIX_MAX 16384
#define MATRIX_LEAST 2	     /* linear interpolation needs neighbours */
#define SAMPLES_OF_PIXEL 0.1 /* default step along the ray, pixels */

bool parallel_supports(enum algorithm a)
{
	const struct algorithm_info *i = algorithm_info(a);

	return i->rule == RULE_SART ||
	       (i->update != UPDATE_RAYS && (i->rule == RULE_EM || i->rule == RULE_TRANSMISSION || i->rule == RULE_BACKPROJECT));
}

enum parallel_work parallel_work_of(const struct parallel_protocol *p)
{
	if (!algorithm_iterates(p->algorithm))
		return PARALLEL_WORK_BACK;
	return algorithm_info(p->algorithm)->update == UPDATE_RAYS ? PARALLEL_WORK_ROWS : PARALLEL_WORK_RULE;
}

static const struct key keys[] = {PARALLEL_KEYS(parallel_protocol, )};

int parallel_check_protocol(const struct parallel_protocol *p, const struct parallel_scan *s, enum parallel_work work,
			    struct err *err)
{
	struct parallel_protocol q = *p;
	int r;

	if (!parallel_supports(p->algorithm))
		return algorithm_refuse(p->algorithm, parallel_supports, err);
	if (work == PARALLEL_WORK_RADON) { /* the projector of an iteration */
		q.algorithm = ALGORITHM_MLEM;
		q.iterations = 1;
	}
	r = plan_check(&q, keys, sizeof(keys) / sizeof(keys[0]), NULL, (size_t)s->n_angles, "angles", err);
	if (r == 0 && work == PARALLEL_WORK_ROWS && p->projector == PROJECTION_EXACT)
		return err_set(err, EINVAL, "projector=exact; allowed with %s: siddon, joseph, sampled",
			       algorithm_info(p->algorithm)->word);
	if (r == 0 && p->matrix == 0 && (s->n_radial < MATRIX_LEAST || s->n_radial > MATRIX_MAX))
		return err_set(err, EINVAL, "matrix=0, radial bins=%d; allowed: %d to %d", s->n_radial, MATRIX_LEAST, MATRIX_MAX);
	return r;
}

/* The direction of an angle, degrees; theta and theta + 180 degrees are the same direction. */
static double direction_of(const void *scan, int angle)
{
	double at = fmod(parallel_angle(scan, angle), 180);

	return at + (at < 0 ? 180 : 0);
}

static double number_of(const void *scan, int angle)
{
	(void)scan;
	return angle;
}

int parallel_views_make(const struct parallel_protocol *p, const struct parallel_scan *s, enum parallel_work work,
			struct subsets *ret_views, struct err *err)
{
	bool spread = work == PARALLEL_WORK_ROWS && !p->in_sequence;
	bool subsets = work == PARALLEL_WORK_RULE && algorithm_info(p->algorithm)->update == UPDATE_SUBSETS && p->subsets > 1;
	int r = subsets_create(spread || subsets ? direction_of : number_of, s, s->n_angles,
			       spread	 ? s->n_angles
			       : subsets ? p->subsets
					 : 1,
			       ret_views, err);

	if (r == 0 && spread) { /* one subset, in the order of many */
		ret_views->first[1] = s->n_angles;
		ret_views->n_subsets = 1;
		ret_views->largest_subset = s->n_angles;
	}
	return r;
}

struct grid parallel_grid(const struct grid *whole, int n)
{
	struct grid g = *whole;

	g.n[2] = n;
	g.lo[2] = -0.5 * n * g.h[2];
	g.z_fastest = n > 1; /* as kernels/lines.h requires */
	return g;
}

struct projection_spec parallel_spec(const struct parallel_protocol *p, enum parallel_work work, const struct scan *scan,
				     const struct grid *grid, int first, int n_views)
{
	return (struct projection_spec){
		/* backprojection needs no tables: it has its own interpolation function */
		.model = work == PARALLEL_WORK_BACK ? PROJECTION_EXACT : p->projector,
		.scan = scan,
		.first = first,
		.n_views = n_views,
		.grid = grid,
		.deterministic = p->deterministic,
		.sampling = p->sampling > 0 ? p->sampling : SAMPLES_OF_PIXEL * grid->h[0],
		.sweeps = work == PARALLEL_WORK_ROWS,
	};
}

/* Number of vectors on the device in addition to the projector: volumes; data of all views; data of the largest subset. */
struct vectors {
	int volumes, data, subset_data;
};

static struct vectors vectors_of(const struct parallel_protocol *p, enum parallel_work work, const struct device *dev,
				 const struct parallel_scan *s, int n_subsets)
{
	int gaps = s->gaps && s->gaps->n > 0;

	switch (work) {
	case PARALLEL_WORK_BACK:
		return (struct vectors){1, parallel_back_filters(p, dev, s->n_radial) ? 2 : 1, 0};
	case PARALLEL_WORK_ROWS: /* volumes: x, and where it is positive; data: y, and the residual */
		return (struct vectors){p->non_negative ? 2 : 1, 2, 0};
	case PARALLEL_WORK_RULE: /* volumes: x, num, den; data: y, lengths, which bins are used; of a subset: line integrals, pairs */
		if (!rule_keeps_den(algorithm_info(p->algorithm)->rule))
			return (struct vectors){3, 1 + gaps, 3};
		return (struct vectors){2 + n_subsets, (algorithm_info(p->algorithm)->rule == RULE_SART ? 2 : 1) + gaps, 1};
	default:
		return (struct vectors){1, 1, 0};
	}
}

static void lay_out(const struct parallel_protocol *p, const struct parallel_scan *s, struct parallel_plan *plan)
{
	struct grid *g = &plan->grid;

	g->n[0] = g->n[1] = p->matrix ? p->matrix : s->n_radial;
	g->n[2] = s->n_slices;
	g->h[0] = g->h[1] = p->pixel > 0 ? p->pixel : s->bin;
	g->h[2] = s->slice;
	g->z_fastest = false;
	for (int c = 0; c < 3; c++)
		g->lo[c] = -0.5 * g->n[c] * g->h[c];
	/* half a pixel more, because linear interpolation extends beyond the outermost centres */
	plan->fov_radius = p->fov_radius > 0 ? p->fov_radius : hypot(g->lo[0] - g->h[0] / 2, g->lo[1] - g->h[1] / 2);
}

struct parallel_scan parallel_padded_scan(const struct parallel_protocol *p, const struct parallel_scan *s,
					  const struct parallel_plan *plan)
{
	const struct grid *g = &plan->grid;
	double corner = 0.5 * hypot((g->n[0] - 1) * g->h[0], (g->n[1] - 1) * g->h[1]),
	       most = (PARALLEL_BINS_MAX - s->n_radial) / 2;
	double beyond = fmin(corner, plan->fov_radius) + fabs(s->offset) - 0.5 * (s->n_radial - 1) * s->bin;
	struct parallel_scan reach = *s;

	if (algorithm_info(p->algorithm)->filtered && beyond > 0)
		reach.n_radial += 2 * (int)fmin(ceil(beyond / s->bin), most);
	return reach;
}

/* What a plan is counted from; borrowed. */
struct counting {
	const struct parallel_protocol *p;
	const struct parallel_scan *s;
	enum parallel_work work;
	struct subsets views;
	size_t slice; /* bytes of the caller on the host: lines and image of a slice */
	bool apart;   /* of one part only; else of all slices */
	struct device *dev;
	struct parallel_plan *plan;
};

/* Choice i: parts of i slices less than all. */
static int count_choice(void *ctx, int choice, struct err *err)
{
	const struct counting *c = ctx;
	const struct subsets *views = &c->views;
	struct vectors vectors = vectors_of(c->p, c->work, c->dev, c->s, views->n_subsets);
	struct grid grid = parallel_grid(&c->plan->grid, c->s->n_slices - choice);
	struct plan_bytes *b = &c->plan->bytes;
	size_t n_angles = (size_t)c->s->n_angles, bins, most;
	struct scan *scan = NULL;
	int r = scan_create_parallel(c->s, grid.n[2], c->plan->fov_radius, views->order, &scan, err);

	if (r < 0)
		return r;
	bins = scan_view_size(scan);
	most = bins * n_angles > grid_size(&grid) ? bins * n_angles : grid_size(&grid);
	*b = (struct plan_bytes){
		.volumes = (size_t)vectors.volumes * grid_size(&grid) * sizeof(float),
		.data = sizeof(float) * bins *
			((size_t)vectors.data * n_angles + (size_t)vectors.subset_data * (size_t)views->largest_subset),
		.host = c->slice * (size_t)(c->apart ? grid.n[2] : c->s->n_slices) + sizeof(float) * most,
	};
	for (int i = 0; i < views->n_subsets; i++) {
		struct projection_spec spec =
			parallel_spec(c->p, c->work, scan, &grid, views->first[i], views->first[i + 1] - views->first[i]);

		plan_count(b, c->dev, &spec);
	}
	plan_sum(b, c->dev);
	c->plan->part_slices = grid.n[2];
	scan_free(scan);
	return 0;
}

/* Return the bytes of main memory that the work may use with the caller's lines and image; 0: no limit is known. */
static size_t main_memory(const struct parallel_protocol *p, const struct device *dev)
{
	bool cpu = !strcmp(dev->ops->kind, "cpu");
	size_t most = cpu && dev->host_memory == 0 ? dev->memory : dev->host_memory;

	return cpu && p->memory_limit > 0 && (most == 0 || p->memory_limit < most) ? p->memory_limit : most;
}

bool parallel_is_too_large(const struct parallel_protocol *p, const struct parallel_plan *plan, const struct device *dev)
{
	size_t most = main_memory(p, dev);

	return most > 0 && plan_main_memory(&plan->bytes, dev) > most;
}

/* Plan the work on a scan; n_radial: of the data. */
static int fit_parts(const struct parallel_protocol *p, const struct parallel_scan *s, int n_radial, bool apart,
		     enum parallel_work work, struct device *dev, struct parallel_plan *plan, struct err *err)
{
	const struct grid *g = &plan->grid;
	size_t slice = (size_t)s->n_angles * (size_t)n_radial + (size_t)g->n[0] * (size_t)g->n[1];
	struct counting c = {
		.p = p, .s = s, .work = work, .slice = sizeof(float) * slice, .apart = apart, .dev = dev, .plan = plan};
	struct plan_choices choices = {.n = s->n_slices,
				       .falling = true,
				       .least = "one slice",
				       .host_most = apart ? main_memory(p, dev) : 0,
				       .count = count_choice,
				       .ctx = &c,
				       .bytes = &plan->bytes};
	int r = parallel_views_make(p, s, work, &c.views, err);

	if (r < 0)
		return r;
	plan->subsets = c.views.n_subsets;
	r = plan_fit(&choices, dev, p->memory_limit, err);
	subsets_release(&c.views);
	return r;
}

int parallel_fit(const struct parallel_protocol *p, const struct parallel_scan *s, enum parallel_work work, struct device *dev,
		 struct parallel_plan *plan, struct err *err)
{
	return fit_parts(p, s, s->n_radial, false, work, dev, plan, err);
}

static int make_plan(const struct parallel_protocol *p, const struct parallel_scan *s, bool apart, struct device *dev,
		     struct parallel_plan *ret_plan, struct err *err)
{
	enum parallel_work work = parallel_work_of(p);
	struct parallel_plan plan = {.iterations = work == PARALLEL_WORK_BACK ? 1 : p->iterations};
	struct parallel_scan reach;
	int r = parallel_check(s, err);

	if (r == 0)
		r = parallel_check_protocol(p, s, work, err);
	if (r < 0)
		return r;
	lay_out(p, s, &plan);
	reach = parallel_padded_scan(p, s, &plan);
	r = fit_parts(p, &reach, s->n_radial, apart, work, dev, &plan, err);
	if (r == 0)
		*ret_plan = plan;
	return r;
}

int parallel_plan(const struct parallel_protocol *p, const struct parallel_scan *s, struct device *dev,
		  struct parallel_plan *ret_plan, struct err *err)
{
	return make_plan(p, s, false, dev, ret_plan, err);
}

int parallel_plan_apart(const struct parallel_protocol *p, const struct parallel_scan *s, struct device *dev,
			struct parallel_plan *ret_plan, struct err *err)
{
	return make_plan(p, s, true, dev, ret_plan, err);
}
