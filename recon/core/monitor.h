/* SPDX-License-Identifier: Apache-2.0 */
/* Report the progress of a long computation, cancel it, and let it wait for others that use the same device. Every callback may
 * be NULL, and so may the pointer to the monitor. */
#ifndef TOMONODE_RECON_MONITOR_H
#define TOMONODE_RECON_MONITOR_H

#include <stdbool.h>
#include <stddef.h>

struct monitor {
	void *ctx;
	void (*progress)(void *ctx, const char *stage, double fraction); /* 0..1 within the stage; called in the calling thread */
	bool (*cancelled)(void *ctx);					 /* true: the computation ends with ECANCELED */
	/* Wait until a plan may allocate its bytes on the device and on the host. 0, or -ECANCELED. Where some are reserved
	 * already, replace them without waiting, or return -EAGAIN and leave them; 0 and 0: free them. */
	int (*reserve)(void *ctx, size_t device, size_t host);
	/* begin true: wait for the turn to compute on the device; 0, or -ECANCELED. false: the computation has ended. */
	int (*take_turn)(void *ctx, bool begin);
};

static inline void monitor_progress(const struct monitor *m, const char *stage, double fraction)
{
	if (m && m->progress)
		m->progress(m->ctx, stage, fraction);
}

static inline bool monitor_cancelled(const struct monitor *m)
{
	return m && m->cancelled && m->cancelled(m->ctx);
}

static inline int monitor_reserve(const struct monitor *m, size_t device, size_t host)
{
	return m && m->reserve ? m->reserve(m->ctx, device, host) : 0;
}

static inline int monitor_take_turn(const struct monitor *m, bool begin)
{
	return m && m->take_turn ? m->take_turn(m->ctx, begin) : 0;
}

#endif
