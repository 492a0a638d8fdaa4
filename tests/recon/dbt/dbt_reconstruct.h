/* SPDX-License-Identifier: Apache-2.0 */
/* A DBT session from its plan to its volume in one call, for arrays in host memory. */
#ifndef TOMONODE_TESTS_RECON_DBT_RECONSTRUCT_H
#define TOMONODE_TESTS_RECON_DBT_RECONSTRUCT_H

#include <errno.h>
#include <string.h>

#include "recon/dbt/dbt.h"

/* line, valid: n_views * n_v * n_u floats in the detector scan's view order. ret_volume: grid_size() floats. */
static inline int dbt_reconstruct(const struct dbt_protocol *p, const struct dbt_plan *plan, const struct scan *detector,
				  struct device *dev, const float *line, const float *valid, const struct monitor *monitor,
				  float *ret_volume, struct dbt_report *ret_report, struct err *err)
{
	size_t bins = (size_t)plan->n_u * (size_t)plan->n_v;
	struct dbt_session *s = NULL;
	int r = dbt_open(p, plan, detector, dev, &s, err);

	for (int i = 0; r == 0 && i < plan->n_views; i++) {
		float *to_line, *to_valid;

		if (monitor_cancelled(monitor)) {
			r = err_set(err, ECANCELED, "reconstruction cancelled during upload");
			break;
		}
		r = dbt_view_begin(s, i, &to_line, &to_valid, err);
		if (r < 0)
			break;
		memcpy(to_line, line + (size_t)i * bins, bins * sizeof(*to_line));
		memcpy(to_valid, valid + (size_t)i * bins, bins * sizeof(*to_valid));
		r = dbt_view_end(s, i, err);
		monitor_progress(monitor, "upload", (double)(i + 1) / plan->n_views);
	}
	if (r == 0)
		r = dbt_run(s, monitor, ret_report, err);
	if (r == 0)
		r = dbt_read_slices(s, 0, plan->grid.n[2], ret_volume, err);
	dbt_close(s);
	return r;
}

#endif
