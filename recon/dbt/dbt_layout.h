/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the DBT pipeline: the update rule of an algorithm, and the binned scan with its views in the order of subsets; used
 * by the plan and the session. */
#ifndef TOMONODE_RECON_DBT_LAYOUT_H
#define TOMONODE_RECON_DBT_LAYOUT_H

#include "recon/core/iterate.h"
#include "recon/core/subsets.h"
#include "recon/dbt/dbt.h"

/* Return the update rule with its floors (least divisors), and the number of iterations. */
struct iterate_conf dbt_iterate_conf(const struct dbt_protocol *p);

static inline bool dbt_has_prior(const struct dbt_protocol *p)
{
	return p->prior_weight > 0;
}

/* Return whether the start image may have the shape of the breast: what the projections do not determine stays as in it. */
static inline bool dbt_has_shape(const struct dbt_protocol *p)
{
	return p->breast_shape && algorithm_info(p->algorithm)->rule != RULE_BACKPROJECT;
}

/* Return whether line integrals are softened at the skin: the algorithm multiplies, so that voxels outside are 0. */
static inline bool dbt_has_skin_edge(const struct dbt_protocol *p)
{
	enum rule_kind rule = algorithm_info(p->algorithm)->rule;

	return p->skin_edge && (rule == RULE_EM || rule == RULE_TRANSMISSION);
}

/* Return whether the session keeps cells of the views (recon/dbt/view_cells.h). */
static inline bool dbt_needs_cells(const struct dbt_protocol *p)
{
	return dbt_has_shape(p) || p->metal != DBT_METAL_OFF;
}

struct dbt_layout {
	struct scan *scan;    /* binned, views in the order of the subsets */
	struct subsets views; /* those of the detector's scan */
};

int dbt_layout_make(const struct dbt_protocol *p, const struct dbt_plan *plan, const struct scan *detector,
		    struct dbt_layout *ret_layout, struct err *err);
void dbt_layout_release(struct dbt_layout *l); /* accepts an empty one */

/* Return the specification of the device's projection of n_views views onto the slices [slice, slice + n_slices), without a mask.
 * grid: memory for the slab's grid, which must live as long as the specification. */
struct projection_spec dbt_layout_spec(const struct dbt_layout *l, const struct dbt_protocol *p, const struct dbt_plan *plan,
				       int first, int n_views, int slice, int n_slices, struct grid *grid);

/* The same of all views and slices, for mark() only: one pass over the volume, with the model that has the smallest tables. */
struct projection_spec dbt_layout_spec_of_marks(const struct dbt_layout *l, const struct dbt_protocol *p,
						const struct dbt_plan *plan, struct grid *grid);

/* Divide the subsets into groups of at most `views` views (0: whole subsets). Group i begins with view ret_first[i], and
 * ret_first[n] is n_views; room for n_views + 1. Return the number n of groups. */
int dbt_layout_groups(const struct dbt_layout *l, int views, int *ret_first);

/* Return the penalty of one subset. start: the starting value of the volume, 1/mm. */
struct prior dbt_layout_prior(const struct dbt_layout *l, const struct dbt_protocol *p, const struct dbt_plan *plan,
			      double start);

#endif
