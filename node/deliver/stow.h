/* SPDX-License-Identifier: Apache-2.0 */
/* STOW-RS user agent (PS3.18 section 10.5): store instances in a DICOMweb server, one instance in each request.
 *
 * One instance in a request, because the outcome of each is then known for certain: a server may stop at the first part that it
 * does not understand, without a word about the following ones, and after a lost answer only one object is in doubt. The
 * connection is kept, so the cost is one round trip for an object, as with C-STORE. The file is read while it is sent; no object
 * is in memory as a whole. Objects are sent in the transfer syntax of their file. */
#ifndef TOMONODE_NODE_STOW_H
#define TOMONODE_NODE_STOW_H

#include "node/config/config.h"
#include "node/deliver/stow_answer.h"

struct stow;

/* Does not connect. Errors: those of http_client_open(). */
int stow_open(const struct config *config, const struct destination_conf *destination, struct stow **ret_stow, struct err *err);
/* Send one Part 10 file and wait for the answer. 0: the server has answered, and *ret_result says what. Errors: those of
 * http_client_send(). */
int stow_store(struct stow *s, const char *path, const char *sop_instance, struct stow_result *ret_result, struct err *err);
/* Return the time that the last answer asks to wait (Retry-After), s; 0: none. */
double stow_retry_after(const struct stow *s);
void stow_close(struct stow *s); /* may be NULL */

#endif
