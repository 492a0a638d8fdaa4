/* SPDX-License-Identifier: Apache-2.0 */
/* Send a message to the webhook: one POST, which waits for the answer. */
#ifndef TOMONODE_NODE_ALERT_SEND_H
#define TOMONODE_NODE_ALERT_SEND_H

#include "kernels/err.h"
#include "node/config/config.h"

/* Check what the section `alerts` names, without connecting: errors as of http_client_open(). */
int alert_check(const struct config *config, struct err *err);

/* Returns the status of the answer if it is 2xx; else an error with
 * a sentence. EACCES: an answer with another status; the others are those of http_client.h. */
int alert_send(const struct config *config, const char *text, struct err *err);

#endif
