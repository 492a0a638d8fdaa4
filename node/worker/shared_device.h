/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's share of its device and of the host's memory: other workers of the node use them, too
 * (node/process/memory_ledger.h).
 */
#ifndef TOMONODE_NODE_SHARED_DEVICE_H
#define TOMONODE_NODE_SHARED_DEVICE_H

#include "kernels/device.h"
#include "node/process/memory_ledger.h"
#include "recon/core/monitor.h"

struct shared_device {
	struct ledger *ledger; /* NULL: nothing is shared */
	bool cpu, in_turn;     /* in_turn: only one worker of the device computes at a time */
	uint64_t host;	       /* bytes of the host that are reserved */
	struct monitor monitor;
	const struct monitor *inner;
};

/* Before the sandbox. ledger_fd: inherited from the manager; 0: none. name: of the device; host_memory: bytes that the workers
 * may use together, 0: those of the machine. */
int shared_device_open(struct shared_device *s, int ledger_fd, const char *name, size_t host_memory, struct err *err);
void shared_device_close(struct shared_device *s);
/* After the device is opened: its memory is what the workers may use together. */
void shared_device_limit(struct shared_device *s, struct device *dev);
/* Return the monitor for one case, which waits for memory and turns, and otherwise forwards to `inner`. */
const struct monitor *shared_device_begin(struct shared_device *s, const struct monitor *inner, bool in_turn);
/* The case has ended, and its memory is freed, except these bytes of the host, which remain reserved. Call it again with 0 when
 * they are freed. */
void shared_device_end(struct shared_device *s, size_t kept);

#endif
