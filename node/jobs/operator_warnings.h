/* What a person has to do about the spool itself: the same sentences for `tomonode list` and for the status page. Each answers
 * false, and leaves `ret` empty, where there is nothing to say. */
#ifndef TOMONODE_NODE_OPERATOR_WARNINGS_H
#define TOMONODE_NODE_OPERATOR_WARNINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPERATOR_WARNING_SIZE 700

/* `images` lie in SPOOL/orphans (node/store/orphans.h). */
bool operator_warning_orphans(const char *spool, uint64_t images, char ret[OPERATOR_WARNING_SIZE]);
/* `problem` is what the journal's check at the node's last start found; "" or NULL: nothing. */
bool operator_warning_journal(const char *problem, char ret[OPERATOR_WARNING_SIZE]);

#endif
