/* SPDX-License-Identifier: Apache-2.0 */
/* Verify the files of a job's instances against their digests before the case is reconstructed. */
#ifndef TOMONODE_NODE_CASE_CHECK_H
#define TOMONODE_NODE_CASE_CHECK_H

#include "node/jobs/case_order.h"
#include "recon/core/monitor.h"

struct case_check_report {
	size_t files, damaged;
	double seconds;
};

/* Read every file of the order in `folder` completely, with several threads. EBADMSG: files are missing or damaged; the text
 * names the first, ret_report has their number. ECANCELED: the monitor cancelled. Other errors are temporary. */
int case_check_files(const char *folder, const struct case_order *order, const struct monitor *monitor,
		     struct case_check_report *ret_report, struct err *err);
/* The same for files in the spool; the journal then marks all damaged ones. *ret_journal is true if the journal failed. */
int case_check(struct journal *j, const char *spool, const struct case_order *order, double now, const struct monitor *monitor,
	       struct case_check_report *ret_report, bool *ret_journal, struct err *err);
/* Remove the marks of an earlier check, because the files may have been received again or restored. */
int case_check_forget(struct journal *j, const struct case_order *order, struct err *err);

/* Verify one file. 0: its bytes have not changed; EBADMSG: they have, or the file is missing; the text gives the difference.
 * stopped(ctx) is polled and may be NULL; once it returns true, the result is ECANCELED. */
int case_check_file(const char *spool, const struct instance_row *row, bool (*stopped)(void *ctx), void *ctx, struct err *err);

#endif
