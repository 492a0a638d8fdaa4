/* Private to the DBT pipeline: the binned scan in subset order, shared by the plan and the reconstruction. */
#ifndef TOMONODE_RECON_DBT_LAYOUT_H
#define TOMONODE_RECON_DBT_LAYOUT_H

#include "recon/dbt.h"

struct dbt_layout {
	struct scan *scan; /* binned, views in the order of the subsets */
	int *order;	   /* scan's view i is the detector scan's view order[i] */
	int *first;	   /* subset s: views first[s] .. first[s + 1] - 1 of scan */
	int n_subsets;
};

int dbt_layout_make(const struct dbt_protocol *p, const struct dbt_plan *plan, const struct scan *detector,
		    struct dbt_layout *ret_layout, struct err *err);
void dbt_layout_clear(struct dbt_layout *l); /* an empty one is fine */

/* What the device's projection of subset s is made from; the mask is left out. */
struct projection_spec dbt_layout_spec(const struct dbt_layout *l, const struct dbt_protocol *p, const struct dbt_plan *plan,
				       int s);

#endif
