/* SPDX-License-Identifier: Apache-2.0 */
/* The layers of node/sandbox/sandbox.h; private to node/sandbox/sandbox*.c. */
#ifndef TOMONODE_NODE_SANDBOX_INTERNAL_H
#define TOMONODE_NODE_SANDBOX_INTERNAL_H

#include "node/sandbox/sandbox.h"

static inline bool sandbox_is_of_steps(enum sandbox_role role)
{
	return role == SANDBOX_STEPS || role == SANDBOX_STEP;
}

/* Return the version of Landlock's ABI; 0: none. */
int sandbox_files_abi(void);
/* Restrict the files that this role can open, as far as ABI version `abi` allows. folder, step: of SANDBOX_STEPS, SANDBOX_STEP. */
int sandbox_files_restrict(enum sandbox_role role, const struct config *config, bool gpu, const char *folder,
			   const struct sandbox_step *step, int abi, struct err *err);

bool sandbox_calls_supported(void);
int sandbox_calls_limit(enum sandbox_role role, const struct config *config, bool gpu, struct err *err);

#endif
