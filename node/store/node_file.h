/* SPDX-License-Identifier: Apache-2.0 */
/* SPOOL/node.json: what the manager alone knows, for the processes that display it. It is written by replacing, so a reader sees
 * a whole file. Members: node/serve/node_report.h. */
#ifndef TOMONODE_NODE_NODE_FILE_H
#define TOMONODE_NODE_NODE_FILE_H

#include <jansson.h>
#include <stdbool.h>

bool node_file_write(const char *spool, const char *text); /* false: not written, the old file stays */
json_t *node_file_read(const char *spool);		   /* NULL: none, or not readable */

#endif
