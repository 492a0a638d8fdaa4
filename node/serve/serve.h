/* The node itself: one process that waits (poll) for the receiver, its children, signals and the clock, and lets schedule.h
 * decide.
 *
 * SIGTERM, SIGINT: stop accepting, let associations and deliveries under way end (a grace), interrupt the worker, return 0; a
 * second one does not wait. SIGHUP: read the configuration again; with a problem the old one stays.
 */
#ifndef TOMONODE_NODE_SERVE_H
#define TOMONODE_NODE_SERVE_H

#include "kernels/err.h"
#include "node/config/config.h"
#include "node/receive/listen.h"

struct serve_conf {
	const char *path;	       /* of the configuration file, read again on SIGHUP; NULL: embedded defaults */
	char *text;		       /* its content as it was read; NULL: embedded defaults. Taken over (free) */
	struct config *config;	       /* taken over */
	int lock_fd;		       /* of the spool */
	struct listen_sockets sockets; /* taken over */
};

/* Takes what `conf` holds, also on failure. Returns 0 after a clean stop. */
int serve_run(struct serve_conf *conf, struct err *err);

/* Read and check a configuration file; the text is kept, so that what work processes read is what was checked. path NULL: the
 * embedded defaults, text NULL. */
int serve_load(const char *path, void (*report)(void *ctx, const char *problem), void *ctx, char **ret_text,
	       struct config **ret_config, struct err *err);

#endif
