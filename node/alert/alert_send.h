/* SPDX-License-Identifier: Apache-2.0 */
/* Send a message: one POST to the webhook, or one run of the program of `exec`. Waits for its end. */
#ifndef TOMONODE_NODE_ALERT_SEND_H
#define TOMONODE_NODE_ALERT_SEND_H

#include <stdbool.h>

#include "kernels/err.h"
#include "node/config/config.h"

/* Check what the section `alerts` names, without connecting or executing: errors as of http_client_open(); EINVAL: no program. */
int alert_check(const struct config *config, struct err *err);

/* Returns the status of the answer if it is 2xx, of a program 0; else an error with a sentence. EACCES: an answer with another
 * status, or the program failed; the others are those of http_client.h. text: JSON. fenced: enter the sandbox of the webhook before;
 * a program is always in its own. */
int alert_send(const struct config *config, const char *text, bool fenced, struct err *err);

#endif
