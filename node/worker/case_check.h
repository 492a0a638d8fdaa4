/* Are the files of a job's instances what was received? Looked at before anything of a case is reconstructed. */
#ifndef TOMONODE_NODE_CASE_CHECK_H
#define TOMONODE_NODE_CASE_CHECK_H

#include "node/store/journal.h"
#include "recon/core/monitor.h"

struct case_check_report {
	size_t files, damaged;
	double seconds;
};

/* Every file is read to its end by several threads. EBADMSG: some are missing or damaged, the sentence names the first; they
 * are marked in the journal, and ret_report tells how many. ECANCELED. Other errors may pass, or are the journal's
 * (*ret_journal true). */
int case_check(struct journal *j, const char *spool, int64_t job, double now, const struct monitor *monitor,
	       struct case_check_report *ret_report, bool *ret_journal, struct err *err);

/* One file, for tests and for who has a row: 0 as received; EBADMSG: the sentence says what is wrong with it. */
int case_check_file(const char *spool, const struct instance_row *row, bool (*stopped)(void *ctx), void *ctx, struct err *err);

#endif
