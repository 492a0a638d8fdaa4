/* All projections of a case as line integrals: read, turned, binned, logarithm taken. */
#ifndef TOMONODE_NODE_CASE_VIEWS_H
#define TOMONODE_NODE_CASE_VIEWS_H

#include "node/exam.h"
#include "recon/dbt.h"
#include "recon/monitor.h"

struct case_views_report {
	double seconds_read, seconds_prepare;	    /* they overlap */
	size_t padded, saturated, floored, clamped; /* summed over the views, see struct prep_stats */
};

/* ret_line, ret_valid: plan->n_views * n_v * n_u floats, in the order of exam->views. */
int case_read_views(struct exam *exam, const struct dbt_plan *plan, float *ret_line, float *ret_valid,
		    const struct monitor *monitor, struct case_views_report *ret_report, struct err *err);

#endif
