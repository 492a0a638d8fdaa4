/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between the helper and its caller, over a socket pair (SOCK_SEQPACKET). Private to node/step/. */
#ifndef TOMONODE_NODE_STEP_INTERNAL_H
#define TOMONODE_NODE_STEP_INTERNAL_H

#include "node/config/config.h"
#include "node/reconstruct/case_steps.h"

#define STEP_OUTPUT 16384 /* bytes of what a program writes to stdout and stderr that are kept */

struct step_request { /* name "": end the program that runs; then its answer follows */
	char name[CONFIG_NAME_SIZE];
	char folder[400];
	uint64_t bytes; /* of its volume */
	int gpu;	/* N of the case's cuda:N; -1: none */
};

struct step_answer {
	int code; /* 0: the program has succeeded; EBADMSG: it failed; ECANCELED; others: it was not tried */
	char why[400];
	struct step_end end;
	char output[STEP_OUTPUT + 1];
};

/* Write the value of CUDA_VISIBLE_DEVICES that shows device n alone: that of the list, which is the value of this process; NULL: it has
 * none. n -1: all that this process sees. */
void step_visible_devices(const char *list, int n, char *ret, size_t size);

/* The helper: run what is asked for until the caller ends. */
void step_serve(const struct config *config, const char *folder, int fd);

#endif
