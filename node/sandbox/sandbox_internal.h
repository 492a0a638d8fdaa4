/* SPDX-License-Identifier: Apache-2.0 */
/* The layers of node/sandbox/sandbox.h; private to node/sandbox/sandbox*.c. */
#ifndef TOMONODE_NODE_SANDBOX_INTERNAL_H
#define TOMONODE_NODE_SANDBOX_INTERNAL_H

#include "node/sandbox/sandbox.h"

/* Return the version of Landlock's ABI; 0: none. */
int sandbox_files_abi(void);
/* Restrict the files that this role can open, as far as ABI version `abi` allows. */
int sandbox_files_restrict(enum sandbox_role role, const struct config *config, bool gpu, int abi, struct err *err);

bool sandbox_calls_supported(void);
int sandbox_calls_limit(enum sandbox_role role, const struct config *config, bool gpu, struct err *err);

#endif
