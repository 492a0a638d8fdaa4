/* SPDX-License-Identifier: Apache-2.0 */
/* For `tomonode check`: resolve host names, all at once and for a limited time. */
#ifndef TOMONODE_NODE_CHECK_NAMES_H
#define TOMONODE_NODE_CHECK_NAMES_H

#include "node/command/check_as_user.h"
#include "node/jobs/node_problems.h"

/* List the destinations whose host has no address in facts->unresolved; warn of peers. Call it once: what still waits for a name
 * service when the time is over waits until the process ends. */
void check_names(const struct config *config, struct manager_facts *facts, const struct check_report *to);

#endif
