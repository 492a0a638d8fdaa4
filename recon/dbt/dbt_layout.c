/* SPDX-License-Identifier: Apache-2.0 */
/* dbt_layout.c - derive rule, subsets, groups and projections from a protocol and a detector. */
#include "recon/dbt/dbt_layout.h"

#include <math.h>

/* Least divisor A x: a line integral this small is below any detector's noise. For a ray's length, and for A'1 of a subset, in
 * mm: far below the length at a voxel's corner. */
#define BIN_FLOOR 1e-6f
#define VOXEL_FLOOR 1e-6f
/* Least divisor A'(1 / l): the length at a voxel's corner over the longest ray. For A'(p e^-p): behind 20 half-value layers it is
 * 1e-5 mm. */
#define VOXEL_FLOOR_ROWS 1e-9f
#define VOXEL_FLOOR_TRANSMISSION 1e-12f
#define PRIOR_EPSILON 1e-3 /* fraction of the start: below it the relative difference prior becomes quadratic */

bool dbt_supports(enum algorithm a)
{
	const struct algorithm_info *i = algorithm_info(a);

	return i->update != UPDATE_RAYS &&
	       (i->rule == RULE_EM || i->rule == RULE_TRANSMISSION || i->rule == RULE_SART || i->rule == RULE_BACKPROJECT);
}

struct iterate_conf dbt_iterate_conf(const struct dbt_protocol *p)
{
	struct iterate_conf c = {{algorithm_info(p->algorithm)->rule, BIN_FLOOR, VOXEL_FLOOR, 1}, p->iterations};

	if (c.rule.kind == RULE_EM && p->normalise_rows) {
		c.rule.kind = RULE_EM_ROWS;
		c.rule.voxel_floor = VOXEL_FLOOR_ROWS;
	} else if (c.rule.kind == RULE_TRANSMISSION) {
		c.rule.voxel_floor = VOXEL_FLOOR_TRANSMISSION;
	} else if (c.rule.kind == RULE_SART) {
		c.rule.step = (float)p->relaxation;
	} else if (c.rule.kind == RULE_BACKPROJECT) {
		c.iterations = 1;
	}
	return c;
}

/* The angle at which a view's source is seen. */
static double position_of(const void *detector, int view)
{
	const double *src = ((const struct scan *)detector)->views[view].src;

	return atan2(src[1], src[2]);
}

int dbt_layout_make(const struct dbt_protocol *p, const struct dbt_plan *plan, const struct scan *detector,
		    struct dbt_layout *ret_layout, struct err *err)
{
	struct dbt_layout l = {0};
	int subsets = algorithm_info(p->algorithm)->update == UPDATE_SUBSETS ? p->subsets : 1;
	int r = subsets_create(position_of, detector, detector->n_views, subsets, &l.views, err);

	if (r == 0)
		r = scan_create_binned(detector, plan->bin, l.views.order, &l.scan, err);
	if (r < 0)
		dbt_layout_release(&l);
	else
		*ret_layout = l;
	return r;
}

void dbt_layout_release(struct dbt_layout *l)
{
	l->scan = scan_free(l->scan);
	subsets_release(&l->views);
}

struct projection_spec dbt_layout_spec(const struct dbt_layout *l, const struct dbt_protocol *p, const struct dbt_plan *plan,
				       int first, int n_views, int slice, int n_slices, struct grid *grid)
{
	*grid = plan->grid;
	grid->n[2] = n_slices;
	grid->lo[2] += slice * grid->h[2];
	return (struct projection_spec){
		.model = p->projector,
		.scan = l->scan,
		.first = first,
		.n_views = n_views,
		.grid = grid,
		.tile = {plan->tile[0], plan->tile[1]},
		.deterministic = p->deterministic,
		.keep_den = plan->keep_den,
	};
}

struct projection_spec dbt_layout_spec_of_marks(const struct dbt_layout *l, const struct dbt_protocol *p,
						const struct dbt_plan *plan, struct grid *grid)
{
	struct projection_spec spec = dbt_layout_spec(l, p, plan, 0, l->scan->n_views, 0, plan->grid.n[2], grid);

	spec.model = PROJECTION_EXACT;
	spec.deterministic = spec.keep_den = false;
	return spec;
}

int dbt_layout_groups(const struct dbt_layout *l, int views, int *ret_first)
{
	int n = 0;

	for (int s = 0; s < l->views.n_subsets; s++) {
		int end = l->views.first[s + 1], step = views > 0 ? views : end - l->views.first[s];

		for (int at = l->views.first[s]; at < end; at += step)
			ret_first[n++] = at;
	}
	ret_first[n] = l->scan->n_views;
	return n;
}

/* Return A'1 of a voxel in the middle of the volume, mm: its volume times the number of rays per area there times their
 * obliquity, summed over the views. */
static double middle_sensitivity(const struct dbt_layout *l, const struct grid *g)
{
	double middle[3], sum = 0;

	for (int c = 0; c < 3; c++)
		middle[c] = g->lo[c] + 0.5 * g->n[c] * g->h[c];
	for (int i = 0; i < l->scan->n_views; i++) {
		const double *src = l->scan->views[i].src;
		double below = src[2] - middle[2], shrink = below / src[2];

		sum += hypot(hypot(src[0] - middle[0], src[1] - middle[1]), below) / (below * shrink * shrink);
	}
	return sum * g->h[0] * g->h[1] * g->h[2] / (l->scan->h[0] * l->scan->h[1]);
}

struct prior dbt_layout_prior(const struct dbt_layout *l, const struct dbt_protocol *p, const struct dbt_plan *plan, double start)
{
	double line = start * plan->grid.n[2] * plan->grid.h[2],
	       beta = p->prior_weight * middle_sensitivity(l, &plan->grid) / l->views.n_subsets;

	if (algorithm_info(p->algorithm)->rule == RULE_TRANSMISSION) /* d of the rule for the typical line integral */
		beta *= line * exp(-line);
	return (struct prior){
		.kind = p->prior,
		.beta = (float)beta,
		.gamma = (float)p->prior_gamma,
		.epsilon = (float)(PRIOR_EPSILON * start),
		.level = (float)start,
		.across = (float)p->prior_across,
	};
}
