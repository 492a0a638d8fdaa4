/* SPDX-License-Identifier: Apache-2.0 */
/* Share the memory of devices and host among the workers of a node: each reserves what its case needs before it allocates, and
 * waits while it does not fit.
 *
 * - The ledger is a memory file that the manager creates and every worker inherits. A worker's entry counts as long as the worker
 *   holds a lock on it, which the kernel frees when the process dies, also after SIGKILL.
 * - Workers of one device are served in the order in which they asked, so that a large case does not wait for ever. A case that
 *   needs more than the whole capacity runs when no other case uses the device (or the host): it is not the ledger that refuses.
 * - A dead worker's reservation counts LEDGER_GRACE seconds longer, because the driver frees the memory shortly after the lock.
 * - No call but ledger_capacity() and ledger_change() waits: one that does not succeed is repeated by the caller, who can be
 * cancelled meanwhile.
 */
#ifndef TOMONODE_NODE_MEMORY_LEDGER_H
#define TOMONODE_NODE_MEMORY_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"
#include "node/base/device_names.h"

#define LEDGER_ENTRIES 256
#define LEDGER_GRACE 3.0	/* s */
#define LEDGER_LOCK_SECONDS 2.0 /* longest wait of these, for a worker that is stopped while it changes the table */

enum ledger_state {
	LEDGER_FREE,	/* of no worker */
	LEDGER_IDLE,	/* no case; host_bytes: what the worker keeps of its last one */
	LEDGER_WAITING, /* asks for its bytes */
	LEDGER_HOLDING, /* may use its bytes */
};

struct ledger_entry {
	char device[DEVICE_NAME_SIZE];
	enum ledger_state state;
	uint64_t ticket; /* order of the requests */
	uint64_t device_bytes, host_bytes;
	double died; /* clock_seconds() when its worker was first found dead; 0: it lives */
};

/* Pure: may entry `me` have its bytes now? */
bool ledger_fits(const struct ledger_entry *list, size_t n, size_t me, uint64_t device_capacity, uint64_t host_capacity);

struct ledger;

/* In the manager: create the memory file; -1: see errno. */
int ledger_create(void);
/* In a worker: get an entry for its device. fd: inherited from the manager. host_capacity: bytes, 0: no limit. EAGAIN: the ledger
 * is in use or full; try again. */
int ledger_open(int fd, const char *device, uint64_t host_capacity, struct ledger **ret_ledger, struct err *err);
struct ledger *ledger_close(struct ledger *l); /* accepts NULL; returns NULL */
/* Return the bytes of the device that cases may use: free_now, or, while other workers hold memory of the device, what was found
 * when none did. */
uint64_t ledger_capacity(struct ledger *l, uint64_t free_now);
/* Reserve. false: not now; repeat the call. */
bool ledger_reserve(struct ledger *l, uint64_t device_bytes, uint64_t host_bytes);
/* Change what is reserved already. false: the new bytes do not fit now, and the old ones remain reserved. */
bool ledger_change(struct ledger *l, uint64_t device_bytes, uint64_t host_bytes);
/* Return whether something is reserved. */
bool ledger_holds(const struct ledger *l);
/* End a reservation, or a request that was given up. keep_host: the process keeps the host memory for its next case. */
void ledger_release(struct ledger *l, bool keep_host);
/* Take the turn to compute on the device, of which there is one. false: another worker has it; repeat the call. */
bool ledger_take_turn(struct ledger *l);
void ledger_end_turn(struct ledger *l);

#endif
