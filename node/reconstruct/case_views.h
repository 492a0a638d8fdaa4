/* SPDX-License-Identifier: Apache-2.0 */
/* Read all projections of a case, orient and bin them, take the logarithm, mark air, and pass the line integrals to a
 * reconstruction session. */
#ifndef TOMONODE_NODE_CASE_VIEWS_H
#define TOMONODE_NODE_CASE_VIEWS_H

#include "node/tomo/exam.h"
#include "recon/core/monitor.h"
#include "recon/dbt/dbt.h"

struct case_views_report {
	/* Mean over the threads, so that the sum is about the total time. seconds_upload: waiting for space in the session and
	 * copying the view. A view whose I0 depends on other views is read and prepared twice. */
	double seconds_read, seconds_prepare, seconds_upload;
	size_t padded, saturated, over_range, floored, clamped; /* summed over the views, see struct prep_stats */
	size_t air;						/* merged bins marked by the breast mask */
	/* Mean ratio of scattered to primary intensity behind tissue: of all views, and least and most of a view; 0: not
	 * corrected
	 */
	double scatter_mean, scatter_least, scatter_most;
	double scatter_air; /* mean over the views of the scatter that I0 included, relative to I0 */
	int unmasked;	    /* views in which the breast mask was requested but found no air */
};

/* What is kept of the views for another result of the same exam: the stored values of all of them, and the line integrals of one
 * preparation. All zero: nothing. */
struct case_views_kept {
	bool keep;	/* another result follows: add what is not there yet; false after reading: there was no memory for it */
	uint16_t **raw; /* [view]: from exam_read_view(); NULL: not read yet */
	float **made;	/* [view]: line integrals, then validity, as passed to the session; NULL: none */
	bool complete;	/* made has all views, and these are of them: */
	int n_views, bin;
	bool mask, scatter;
	struct case_views_report report;
};

/* Free line integrals that this protocol and plan would not give. Return the bytes of what remains and, with kept->keep, of what
 * reading adds. */
size_t case_views_kept_bytes(struct case_views_kept *kept, const struct exam *exam, const struct dbt_protocol *protocol,
			     const struct dbt_plan *plan);
/* Make room for what is to be kept and is not there yet. pixels: of a view. kept may be NULL. */
void case_views_kept_make_room(struct case_views_kept *kept, size_t pixels, const struct dbt_plan *plan);
void case_views_kept_clear(struct case_views_kept *kept);

/* Decide I0 of the views (exam_decide_i0(); not of logarithmic values) and pass every view to the session, in any order. threads:
 * maximum number of threads; each thread that reads holds the stored values of one view. kept: NULL: nothing is kept. With the
 * values that it has, no file is read, and with complete line integrals nothing is prepared; it must be of this exam, and
 * case_views_kept_bytes() must have been called. After an error it is to be cleared. */
int case_read_views(struct exam *exam, const struct dbt_protocol *protocol, const struct dbt_plan *plan,
		    struct dbt_session *session, int threads, const struct monitor *monitor, struct case_views_kept *kept,
		    struct case_views_report *ret_report, struct err *err);

#endif
