/* SPDX-License-Identifier: Apache-2.0 */
/* Report the progress of a long computation, and cancel it. Every callback may be NULL, and so may the pointer to the monitor. */
#ifndef TOMONODE_RECON_MONITOR_H
#define TOMONODE_RECON_MONITOR_H

#include <stdbool.h>

struct monitor {
	void *ctx;
	void (*progress)(void *ctx, const char *stage, double fraction); /* 0..1 within the stage; called in the calling thread */
	bool (*cancelled)(void *ctx);					 /* true: the computation ends with ECANCELED */
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

#endif
