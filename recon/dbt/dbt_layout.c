/* SPDX-License-Identifier: Apache-2.0 */
/* dbt_layout.c - derive rule, subsets, groups and projections from a protocol and a detector. */
#include "recon/dbt/dbt_layout.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "recon/core/subsets.h"

/* Least divisor A x: a line integral this small is below any detector's noise. For a ray's length, and for A'1 of a subset, in
 * mm: far below the length at a voxel's corner. */
#define BIN_FLOOR 1e-6f
#define VOXEL_FLOOR 1e-6f
/* Least divisor A'(1 / l): the length at a voxel's corner over the longest ray. For A'(p e^-p): behind 20 half-value layers it is
 * 1e-5 mm. */
#define VOXEL_FLOOR_ROWS 1e-9f
#define VOXEL_FLOOR_TRANSMISSION 1e-12f

bool dbt_supports(enum algorithm a)
{
	const struct algorithm_info *i = algorithm_info(a);

	return i->update != UPDATE_RAYS &&
	       (i->rule == RULE_EM || i->rule == RULE_TRANSMISSION || i->rule == RULE_SART || i->rule == RULE_BACKPROJECT);
}

int dbt_rule_check(const struct dbt_protocol *p, struct err *err)
{
	const struct algorithm_info *a = algorithm_info(p->algorithm);

	if (a->rule == RULE_SART && !(p->relaxation > 0 && p->relaxation < 2))
		return err_set(err, EINVAL, "relaxation=%g; allowed: more than 0, less than 2", p->relaxation);
	if (p->normalise_rows && a->rule != RULE_EM)
		return err_set(err, EINVAL, "normalise_rows=true; allowed only with osem and mlem");
	return 0;
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

int dbt_layout_make(const struct dbt_protocol *p, const struct dbt_plan *plan, const struct scan *detector,
		    struct dbt_layout *ret_layout, struct err *err)
{
	struct dbt_layout l = {0};
	size_t n = (size_t)detector->n_views;
	double *position = malloc(n * sizeof(*position));
	int r;

	l.order = malloc(n * sizeof(*l.order));
	l.place = malloc(n * sizeof(*l.place));
	l.first = malloc((n + 1) * sizeof(*l.first));
	if (!position || !l.order || !l.place || !l.first) {
		r = err_set(err, ENOMEM, "plan: cannot allocate %zu views", n);
		goto out;
	}
	for (size_t i = 0; i < n; i++)
		position[i] = atan2(detector->views[i].src[1], detector->views[i].src[2]);
	r = subsets_make(position, detector->n_views, algorithm_info(p->algorithm)->update == UPDATE_SUBSETS ? p->subsets : 1,
			 l.order, l.first, err);
	if (r < 0)
		goto out;
	l.n_subsets = r;
	subsets_places(l.order, detector->n_views, l.place);
	r = scan_create_binned(detector, plan->bin, l.order, &l.scan, err);
out:
	free(position);
	if (r < 0)
		dbt_layout_release(&l);
	else
		*ret_layout = l;
	return r < 0 ? r : 0;
}

void dbt_layout_release(struct dbt_layout *l)
{
	l->scan = scan_free(l->scan);
	free(l->order);
	free(l->place);
	free(l->first);
	*l = (struct dbt_layout){0};
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
	};
}

int dbt_layout_groups(const struct dbt_layout *l, int views, int *ret_first)
{
	int n = 0;

	for (int s = 0; s < l->n_subsets; s++) {
		int end = l->first[s + 1], step = views > 0 ? views : end - l->first[s];

		for (int at = l->first[s]; at < end; at += step)
			ret_first[n++] = at;
	}
	ret_first[n] = l->scan->n_views;
	return n;
}
