/* All projections of a case as line integrals in a session: read, turned, binned, logarithm taken, air marked. */
#ifndef TOMONODE_NODE_CASE_VIEWS_H
#define TOMONODE_NODE_CASE_VIEWS_H

#include "node/tomo/exam.h"
#include "recon/core/monitor.h"
#include "recon/dbt/dbt.h"

struct case_views_report {
	/* Each summed over the threads and divided by their number: together they are about what the whole takes.
	 * Upload: waiting for room in the session and handing the view over. */
	double seconds_read, seconds_prepare, seconds_upload;
	size_t padded, saturated, floored, clamped; /* summed over the views, see struct prep_stats */
	size_t air;				    /* merged bins that the breast mask marks */
	int unmasked;				    /* views in which the breast mask was wanted and found nothing to mark */
};

/* Hands every view to the session, in any order. threads: how many may work, at most; each of those that read holds a view's
 * stored values. */
int case_read_views(const struct exam *exam, const struct dbt_protocol *protocol, const struct dbt_plan *plan,
		    struct dbt_session *session, int threads, const struct monitor *monitor, struct case_views_report *ret_report,
		    struct err *err);

#endif
