/* SPDX-License-Identifier: Apache-2.0 */
/* For `tomonode check`: the programs of steps. */
#ifndef TOMONODE_NODE_CHECK_STEPS_H
#define TOMONODE_NODE_CHECK_STEPS_H

#include "node/command/check_as_user.h"

/* Are program and files of each step there, as `sha256` says, and nobody else's to write to? */
void check_step_files(const struct config *config, const struct check_report *to);
/* Run each step twice with a phantom, and once with a constant volume: report what fails, what differs from its keys, and what was
 * seen. Call it while this process has one thread. */
void check_steps(const struct config *config, const struct check_report *to);

#endif
