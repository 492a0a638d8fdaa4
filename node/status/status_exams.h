/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of one exam: those with the same Study Instance UID, such as four views and their further results. They stand together on
 * the page, where the one of them stands that a person needs first. Pure functions of the jobs' views.
 */
#ifndef TOMONODE_NODE_STATUS_EXAMS_H
#define TOMONODE_NODE_STATUS_EXAMS_H

#include "node/jobs/jobs.h"
#include "node/status/status_filter.h"

struct status_exam {
	const struct job_view **cases; /* borrowed part of the list that was grouped; n: at least one. Those that need attention
					  first, then those in work; a further result follows the first of its images */
	size_t n;
	enum status_group group;     /* the first of its cases' groups */
	double when;		     /* of GROUP_DONE: when its newest case finished; else when one changed; s since the epoch */
	int64_t newest;		     /* highest id of its cases */
	const struct job_view *lead; /* of GROUP_WORK: the case nearest to its end; else its first */
};

/* Order the list of n cases by exam, and write the exams into ret_exams, which has room for n. A case without a Study Instance UID
 * is an exam of its own. Returns their number. */
size_t status_exams_find(const struct job_view **cases, size_t n, struct status_exam *ret_exams);
/* Order exams as a section of the overview has them: in work by status_exams_work_order(), others the newest first. */
void status_exams_order(struct status_exam *exams, size_t n);
/* Compare two cases in work: the states nearest to the end first; waiting ones in the order in which they start. */
int status_exams_work_order(const struct job_view *x, const struct job_view *y);

#endif
