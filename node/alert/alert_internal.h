/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that only node/alert/alert_send.c calls. */
#ifndef TOMONODE_NODE_ALERT_INTERNAL_H
#define TOMONODE_NODE_ALERT_INTERNAL_H

#include "kernels/err.h"
#include "node/config/config.h"

/* Check that the program of `exec` is there and may be executed by this user. */
int alert_exec_check(const struct alerts_conf *conf, struct err *err);
/* Run the program with the message (JSON) as a mail on its input, at most for `timeout`. Returns 0 if it ended with exit code 0 and
 * left no process behind; else EACCES, with a sentence and the last line that it wrote. */
int alert_exec(const struct config *config, const char *message, struct err *err);

#endif
