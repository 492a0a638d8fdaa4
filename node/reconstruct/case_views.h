/* SPDX-License-Identifier: Apache-2.0 */
/* Transfer all projections of a case to a session as line integrals: read, orient, bin, take the logarithm, mark air. */
#ifndef TOMONODE_NODE_CASE_VIEWS_H
#define TOMONODE_NODE_CASE_VIEWS_H

#include "node/tomo/exam.h"
#include "recon/core/monitor.h"
#include "recon/dbt/dbt.h"

struct case_views_report {
	/* Each is summed over the threads and divided by their number, so that the sum is about the total time. Upload: waiting
	 * for space in the session and copying the view. */
	double seconds_read, seconds_prepare, seconds_upload;
	size_t padded, saturated, floored, clamped; /* summed over the views, see struct prep_stats */
	size_t air;				    /* merged bins marked by the breast mask */
	int unmasked;				    /* views in which the requested breast mask found nothing to mark */
};

/* Pass every view to the session, in any order. threads: maximum number of threads; each thread that reads holds the stored
 * values of one view. */
int case_read_views(const struct exam *exam, const struct dbt_protocol *protocol, const struct dbt_plan *plan,
		    struct dbt_session *session, int threads, const struct monitor *monitor, struct case_views_report *ret_report,
		    struct err *err);

#endif
