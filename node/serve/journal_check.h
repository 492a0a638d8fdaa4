/* SPDX-License-Identifier: Apache-2.0 */
/* Check the journal for damage when the node starts. A large one is checked by a process of its own while the node runs, so that a
 * start does not take longer with each year. Before an image would be moved or removed because the journal lacks it, the whole
 * journal is checked whatever its size (node/serve/serve_start.c).
 */
#ifndef TOMONODE_NODE_JOURNAL_CHECK_H
#define TOMONODE_NODE_JOURNAL_CHECK_H

#include <stdbool.h>

#include "node/jobs/node_facts.h"
#include "node/process/process_table.h"
#include "node/store/journal.h"

struct journal_check_page;

struct journal_check {
	struct journal_check_page *page; /* shared with the process; NULL: none runs */
};

/* Return true if the journal is so small that it is checked before the receiver starts. */
bool journal_check_is_short(const char *path);
/* Check it now. Logs each problem, and keeps the first one in `facts`. true: it is damaged, or cannot be read. */
bool journal_check_now(struct journal *j, struct manager_facts *facts);
/* Start the process; the caller has no open journal. If that fails, it is logged, and `facts` say so. */
void journal_check_start(struct journal_check *c, struct process_table *processes, const struct config *config, const char *path,
			 double clock, struct manager_facts *facts);
/* The process has ended with this status of waitpid(). */
void journal_check_ended(struct journal_check *c, int status, bool stopping, struct manager_facts *facts);

#endif
