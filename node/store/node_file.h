/* SPDX-License-Identifier: Apache-2.0 */
/* SPOOL/node.json: state that only the manager has in memory, for the processes that display it. Each write replaces the whole
 * file by a rename, so that a reader never gets a partial one. Its members are described in node/serve/node_report.h. */
#ifndef TOMONODE_NODE_NODE_FILE_H
#define TOMONODE_NODE_NODE_FILE_H

#include <jansson.h>
#include <stdbool.h>

bool node_file_write(const char *spool, const char *text); /* false: the write failed, the old file is unchanged */
json_t *node_file_read(const char *spool);		   /* new reference; NULL: missing or unreadable */

#endif
