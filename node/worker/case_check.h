/* SPDX-License-Identifier: Apache-2.0 */
/* Verify the files of a job's instances against their digests before the case is reconstructed. */
#ifndef TOMONODE_NODE_CASE_CHECK_H
#define TOMONODE_NODE_CASE_CHECK_H

#include "node/store/journal.h"
#include "recon/core/monitor.h"

struct case_check_report {
	size_t files, damaged;
	double seconds;
};

/* Read every file completely, with several threads. EBADMSG: files are missing or damaged; the text names the first, the journal
 * marks all, ret_report has their number. ECANCELED: the monitor cancelled. Other errors are temporary; *ret_journal is true if
 * the journal failed. */
int case_check(struct journal *j, const char *spool, int64_t job, double now, const struct monitor *monitor,
	       struct case_check_report *ret_report, bool *ret_journal, struct err *err);

/* Verify one file. 0: its bytes have not changed; EBADMSG: they have, or the file is missing; the text gives the difference.
 * stopped(ctx) is polled and may be NULL; once it returns true, the result is ECANCELED. */
int case_check_file(const char *spool, const struct instance_row *row, bool (*stopped)(void *ctx), void *ctx, struct err *err);

#endif
