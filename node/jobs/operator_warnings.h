/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings about the spool that need a person: the same sentences for `tomonode list` and for the status page. Each function
 * returns false and sets `ret` to "" if there is no warning. */
#ifndef TOMONODE_NODE_OPERATOR_WARNINGS_H
#define TOMONODE_NODE_OPERATOR_WARNINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPERATOR_WARNING_SIZE 700

/* images: number of images in SPOOL/orphans (node/store/orphans.h). */
bool operator_warning_orphans(const char *spool, uint64_t images, char ret[OPERATOR_WARNING_SIZE]);
/* problem: result of the journal's check at the node's last start; "" or NULL: no problem. */
bool operator_warning_journal(const char *problem, char ret[OPERATOR_WARNING_SIZE]);

#endif
