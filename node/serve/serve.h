/* SPDX-License-Identifier: Apache-2.0 */
/* The main process of the node: wait (poll) for the receiver, child processes, signals and the clock, and call the scheduler.
 *
 * SIGTERM, SIGINT: stop accepting, wait a limited time until running associations and deliveries end, interrupt the workers,
 * return 0. A second signal ends all processes at once. SIGHUP: read the configuration again; if it has a problem, continue with
 * the old one.
 */
#ifndef TOMONODE_NODE_SERVE_H
#define TOMONODE_NODE_SERVE_H

#include "kernels/err.h"
#include "node/config/config.h"
#include "node/receive/listen.h"

struct serve_conf {
	const char *path;	       /* of the configuration file, read again on SIGHUP; NULL: embedded defaults */
	char *text;		       /* content of the file, from malloc; NULL: embedded defaults */
	struct config *config;	       /* the same, parsed */
	int lock_fd;		       /* of the spool */
	struct listen_sockets sockets; /* open */
};

/* Run the node until a signal ends it. Frees text and config and closes the sockets of `conf`, also on failure. Returns 0 after a
 * clean stop. */
int serve_run(struct serve_conf *conf, struct err *err);

/* Read and check a configuration file. The text is returned, so that work processes read exactly what was checked. path NULL: the
 * embedded defaults; then *ret_text is NULL. */
int serve_load(const char *path, void (*report)(void *ctx, const char *problem), void *ctx, char **ret_text,
	       struct config **ret_config, struct err *err);

#endif
