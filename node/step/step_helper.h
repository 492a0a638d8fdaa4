/* SPDX-License-Identifier: Apache-2.0 */
/* The process that starts the programs of `steps`, and its caller.
 *
 * - It is forked before the caller enters its sandbox, which may not start programs, and knows the configuration as the caller does.
 *   It believes no message: it runs only programs of the configuration, in folders below the one that it was given.
 * - Each program is a process of its own group, with limits and the rights of sandbox_enter_step(); all of the group is killed when
 *   the program has ended, takes longer than its `time` or writes more than it may, and when the helper or its caller dies.
 * - The helper dies with its caller. */
#ifndef TOMONODE_NODE_STEP_HELPER_H
#define TOMONODE_NODE_STEP_HELPER_H

#include <stdint.h>

#include "node/config/config.h"
#include "node/reconstruct/case_steps.h"

struct step_helper {		   /* starts as {.fd = -1}: none */
	struct step_runner runner; /* for reconstruct_case() */
	int fd;			   /* -1: the configuration has no steps, or the helper is lost */
	bool lost;		   /* it has ended */
	const char *command;	   /* output of programs goes to stderr as of this command; NULL: to the log */
	int64_t job;		   /* for the log */
	const struct device *dev;  /* of the cases, borrowed; may be NULL */
};

/* Start it, if the configuration has steps; command, job and runner.folder may be set before or after. config: borrowed until its end. folder: an existing one, below which runner.folder
 * will be. Call it while this process has one thread. */
int step_helper_start(struct step_helper *h, const struct config *config, const char *folder, struct err *err);
void step_helper_stop(struct step_helper *h);

#endif
