/* SPDX-License-Identifier: Apache-2.0 */
/* The secrets of pilots: SPOOL/pilots/ID has the secret that the pilots of this name share with the node, SPOOL/pilots/ID.used
 * the highest number of a token that was used. The secret is never sent; see node/cluster/link.h. */
#ifndef TOMONODE_NODE_PILOT_SECRET_H
#define TOMONODE_NODE_PILOT_SECRET_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/err.h"

#define PILOT_ID_SIZE 64     /* 1 to 63 letters, digits, '-' and '_' */
#define PILOT_SECRET_SIZE 65 /* 64 hexadecimal digits */

bool pilot_id_is_valid(const char *id);
bool pilot_secret_is_valid(const char *hex);
/* Create a secret, mode 0600, on disk when this returns. EEXIST: this ID has one. */
int pilot_secret_create(const char *spool, const char *id, char ret_hex[PILOT_SECRET_SIZE], struct err *err);
/* Remove it: new connections with this ID are refused. ENOENT: there is none. */
int pilot_secret_remove(const char *spool, const char *id, struct err *err);
/* ENOENT: there is none, or the ID is not valid. */
int pilot_secret_read(const char *spool, const char *id, char ret_hex[PILOT_SECRET_SIZE], struct err *err);
#define PILOT_TOKEN_MAX ((uint64_t)1 << 53)
/* Record that the token `number`, 1 to PILOT_TOKEN_MAX, is used; on disk when this returns. EALREADY: it, or one with a higher
 * number, was used; *ret_last is the highest one. EPERM: the ID is blocked. */
int pilot_token_use(const char *spool, const char *id, uint64_t number, uint64_t *ret_last, struct err *err);
/* Accept no token of this ID any more, until its secret is removed and another one is created. */
int pilot_block(const char *spool, const char *id, struct err *err);
/* Return the number of IDs that are blocked. */
int pilot_blocked_count(const char *spool);

#endif
