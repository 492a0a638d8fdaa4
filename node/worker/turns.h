/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which the indexer reads the instances of several senders: fair shares of its time.
 *
 * - A sender is a calling AE title at an address. Its instances are read in the order of arrival.
 * - The next instance is that of the address whose instances have used the least time, and of this address' AE titles that of the
 *   one with the least. So a sender whose headers take long delays those at other addresses by at most the header that is being
 *   read, however many it sends and under however many AE titles; and other AE titles at its address as little, if it uses one.
 * - A sender or address without waiting instances gains no advantage: when it sends again, it starts with the time of the one
 * read last.
 *
 * Pure: the time used is an argument. */
#ifndef TOMONODE_NODE_TURNS_H
#define TOMONODE_NODE_TURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"

struct turns;

int turns_create(struct turns **ret_turns, struct err *err);
struct turns *turns_free(struct turns *t); /* accepts NULL, returns NULL */

/* Append an instance to the queue of its sender. ENOMEM. */
int turns_add(struct turns *t, const char *calling, const char *host, int64_t instance, struct err *err);
/* Return the instance to read next; 0: none. It stays the first of its sender until turns_done(). */
int64_t turns_next(struct turns *t);
/* Remove the instance that turns_next() has returned; reading it used `seconds`. */
void turns_done(struct turns *t, double seconds);
/* Add to the time that a sender has used. */
int turns_charge(struct turns *t, const char *calling, const char *host, double seconds, struct err *err);

#endif
