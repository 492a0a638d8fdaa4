/* SPDX-License-Identifier: Apache-2.0 */
/* The instance that the indexer is reading, in a file of the spool: if the indexer dies, the node knows at which instance, and
 * the next indexer reads those of other senders first. The file is never synced: after the machine has stopped it is not used. */
#ifndef TOMONODE_NODE_INDEX_MARK_H
#define TOMONODE_NODE_INDEX_MARK_H

#include <stdint.h>

#include "kernels/err.h"

/* Seconds of processor time that reading a header may use; then SIGPROF ends the indexer, and the instance becomes unassigned. A
 * header at the limits of dicom/core/layout.hh needed less than 1 s on two busy cores. */
#define INDEX_CPU_SECONDS 3

struct index_mark {
	int64_t instance; /* 0: none */
	char calling[17], host[64];
};

/* Open the file, create it if it is missing. Returns its descriptor; negative: it cannot be created. */
int index_mark_open(const char *spool, struct err *err);
/* Replace its contents. A failure (full disk) is ignored: then the node takes the oldest instance that waits. */
void index_mark_write(int fd, const struct index_mark *mark);
/* Read it; no instance if it is missing or damaged. */
void index_mark_read(const char *spool, struct index_mark *ret_mark);

#endif
