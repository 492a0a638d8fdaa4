/* SPDX-License-Identifier: Apache-2.0 */
/* For `tomonode check`: what depends on the user that the node runs as: its addresses, files, folders and cluster. */
#ifndef TOMONODE_NODE_CHECK_AS_USER_H
#define TOMONODE_NODE_CHECK_AS_USER_H

#include "node/config/config.h"

struct check_report {
	void *ctx;
	void (*problem)(void *ctx, const char *text); /* the node, or its pilots, cannot work until a person corrects it */
	void (*warning)(void *ctx, const char *text); /* it may pass by itself, or could not be tested */
	void (*told)(void *ctx, const char *text);    /* what a step did; NULL: steps are not run */
};

/* Test them in a process that becomes node.user, if this one is root's. runs: a node runs with this spool. */
void check_as_user(const struct config *config, bool runs, const struct check_report *report);

#endif
