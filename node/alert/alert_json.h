/* SPDX-License-Identifier: Apache-2.0 */
/* The message to the webhook, and the file that stores what was told, as JSON. docs/alerts.md describes the message. */
#ifndef TOMONODE_NODE_ALERT_JSON_H
#define TOMONODE_NODE_ALERT_JSON_H

#include <jansson.h>

#include "node/alert/alerts.h"
#include "node/config/config.h"

/* Fill in 32 hexadecimal digits that no other call fills in. */
void alert_new_id(char ret[ALERT_ID_SIZE]);

/* Return the text of the present message, or of a test; the caller frees it. NULL: no memory. */
char *alert_message_text(const struct alerts *a, const struct config *config);
char *alert_test_text(const struct config *config, double wall);
/* Return such a text as a mail without its receiver: Subject and a few other lines, an empty one, what is wrong and what to do. The
 * caller frees it. NULL: no memory. */
char *alert_mail_text(const char *message);

/* SPOOL/alerts.json: what was told, and the present message. Replaced atomically and durably; on a full disk written in place, if
 * there is one and it is large enough. */
int alert_file_write(const char *spool, const struct alerts *a, struct err *err);
/* A file that does not exist is an empty state. Negative: it cannot be read or is damaged; *ret is empty. clock: present time. */
int alert_file_read(const char *spool, double clock, struct alerts *ret, struct err *err);

#endif
