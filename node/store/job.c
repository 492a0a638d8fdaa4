/* SPDX-License-Identifier: Apache-2.0 */
/* job.c - the state table of jobs.
 *
 * - One row per state, one entry per event; a missing entry is JOB_IMPOSSIBLE (a return value, never an assertion).
 * - Only COLLECTING leads to READY by a check of the instances, so every event that may change them (another instance, a manual
 *   retry) leads back to COLLECTING, where completeness is decided again.
 * - A job that a worker has started accepts no more instances: a late one opens a revision, which is a job of its own.
 * - A cancelled job still accepts instances of its case (the person cancelled the case), and the outcome of a delivery that was
 *   running is still recorded, so that a retry knows it.
 * - Only delivered and cancelled jobs are cleaned.
 * - `committed` is accepted at any time, also late, when the job was already a dead letter. `commit-failed` returns the job to
 *   the state in which objects are due.
 * - JOB_IMPOSSIBLE is final: no event leads out of it.
 */
#include "node/store/job.h"

#include <stddef.h>
#include <string.h>

#define N_STATES (JOB_IMPOSSIBLE + 1)
#define N_EVENTS (EVENT_CLEANED + 1)

/* Entry: next state + 1; 0 (not written): impossible. */
#define TO(state) ((unsigned char)((state) + 1))

/* clang-format off */
static const unsigned char table[N_STATES][N_EVENTS] = {
	[JOB_NONE] = {
		[EVENT_OPENED]           = TO(JOB_COLLECTING),
	},
	[JOB_COLLECTING] = {
		[EVENT_INSTANCE]         = TO(JOB_COLLECTING),
		[EVENT_HELD]             = TO(JOB_HELD),
		[EVENT_COMPLETE]         = TO(JOB_READY),
		[EVENT_WAITS]            = TO(JOB_COLLECTING),
		[EVENT_CANCEL]           = TO(JOB_CANCELLED),
		[EVENT_PRIORITY]         = TO(JOB_COLLECTING),
	},
	[JOB_HELD] = {
		[EVENT_INSTANCE]         = TO(JOB_COLLECTING),
		[EVENT_RETRY]            = TO(JOB_COLLECTING),
		[EVENT_CANCEL]           = TO(JOB_CANCELLED),
		[EVENT_PRIORITY]         = TO(JOB_HELD),
	},
	[JOB_READY] = {
		[EVENT_INSTANCE]         = TO(JOB_COLLECTING),
		[EVENT_STARTED]          = TO(JOB_RUNNING),
		[EVENT_COMPANION]        = TO(JOB_READY),
		[EVENT_HELD]             = TO(JOB_HELD),
		[EVENT_FAILED]           = TO(JOB_FAILED),
		[EVENT_RETRY]            = TO(JOB_READY), /* do not wait for the back-off */
		[EVENT_CANCEL]           = TO(JOB_CANCELLED),
		[EVENT_PRIORITY]         = TO(JOB_READY),
	},
	[JOB_RUNNING] = {
		[EVENT_HELD]             = TO(JOB_HELD),
		[EVENT_INTERRUPTED]      = TO(JOB_READY),
		[EVENT_CRASHED]          = TO(JOB_READY),
		[EVENT_RECONSTRUCTED]    = TO(JOB_RECONSTRUCTED),
		[EVENT_FAILED]           = TO(JOB_FAILED),
		[EVENT_CANCEL]           = TO(JOB_CANCELLED),
		[EVENT_PRIORITY]         = TO(JOB_RUNNING),
	},
	[JOB_RECONSTRUCTED] = {
		[EVENT_RESULT_LOST]      = TO(JOB_READY),
		[EVENT_CRASHED]          = TO(JOB_READY), /* earlier versions wrote this event instead of `result-lost` */
		[EVENT_SEND_FAILED]      = TO(JOB_RECONSTRUCTED),
		[EVENT_SENT]             = TO(JOB_RECONSTRUCTED),
		[EVENT_SEND_REFUSED]     = TO(JOB_RECONSTRUCTED),
		[EVENT_DELIVERED]        = TO(JOB_DELIVERED),
		[EVENT_DEAD_LETTER]      = TO(JOB_DEAD_LETTER),
		[EVENT_RETRY]            = TO(JOB_RECONSTRUCTED), /* do not wait for the back-off */
		[EVENT_CANCEL]           = TO(JOB_CANCELLED),
		[EVENT_FALLBACK]         = TO(JOB_RECONSTRUCTED),
		[EVENT_STORED]           = TO(JOB_STORED),
		[EVENT_COMMIT_REQUESTED]     = TO(JOB_RECONSTRUCTED),
		[EVENT_COMMIT_ACCEPTED]     = TO(JOB_RECONSTRUCTED),
		[EVENT_COMMIT_REQUEST_FAILED] = TO(JOB_RECONSTRUCTED),
		[EVENT_COMMITTED]        = TO(JOB_RECONSTRUCTED),
		[EVENT_COMMIT_FAILED]    = TO(JOB_RECONSTRUCTED),
		[EVENT_COMMIT_REFUSED]   = TO(JOB_RECONSTRUCTED),
		[EVENT_PRIORITY]         = TO(JOB_RECONSTRUCTED),
	},
	[JOB_STORED] = {
		[EVENT_FALLBACK]         = TO(JOB_RECONSTRUCTED),
		[EVENT_COMMIT_REQUESTED]     = TO(JOB_STORED),
		[EVENT_COMMIT_ACCEPTED]     = TO(JOB_STORED),
		[EVENT_COMMIT_REQUEST_FAILED] = TO(JOB_STORED),
		[EVENT_COMMITTED]        = TO(JOB_STORED),
		[EVENT_COMMIT_FAILED]    = TO(JOB_RECONSTRUCTED),
		[EVENT_COMMIT_REFUSED]   = TO(JOB_STORED),
		[EVENT_DELIVERED]        = TO(JOB_DELIVERED),
		[EVENT_DEAD_LETTER]      = TO(JOB_DEAD_LETTER),
		[EVENT_PRIORITY]         = TO(JOB_STORED),
		[EVENT_RETRY]            = TO(JOB_RECONSTRUCTED),
		[EVENT_CANCEL]           = TO(JOB_CANCELLED),
	},
	[JOB_DELIVERED] = {
		[EVENT_CLEANED]          = TO(JOB_CLEANED),
	},
	[JOB_DEAD_LETTER] = {
		[EVENT_RETRY]            = TO(JOB_RECONSTRUCTED),
		[EVENT_CANCEL]           = TO(JOB_CANCELLED),
		[EVENT_PRIORITY]         = TO(JOB_DEAD_LETTER),
		[EVENT_COMMITTED]        = TO(JOB_RECONSTRUCTED),
	},
	[JOB_FAILED] = {
		[EVENT_RETRY]            = TO(JOB_COLLECTING),
		[EVENT_CANCEL]           = TO(JOB_CANCELLED),
		[EVENT_PRIORITY]         = TO(JOB_FAILED),
	},
	[JOB_CANCELLED] = {
		[EVENT_INSTANCE]         = TO(JOB_CANCELLED),
		[EVENT_SEND_FAILED]      = TO(JOB_CANCELLED),
		[EVENT_SENT]             = TO(JOB_CANCELLED),
		[EVENT_SEND_REFUSED]     = TO(JOB_CANCELLED),
		[EVENT_RETRY]            = TO(JOB_COLLECTING),
		[EVENT_PRIORITY]         = TO(JOB_CANCELLED),
		[EVENT_COMMIT_REQUESTED]     = TO(JOB_CANCELLED),
		[EVENT_COMMIT_ACCEPTED]     = TO(JOB_CANCELLED),
		[EVENT_COMMIT_REQUEST_FAILED] = TO(JOB_CANCELLED),
		[EVENT_COMMIT_FAILED]    = TO(JOB_CANCELLED),
		[EVENT_COMMIT_REFUSED]   = TO(JOB_CANCELLED),
		[EVENT_COMMITTED]        = TO(JOB_CANCELLED),
		[EVENT_CLEANED]          = TO(JOB_CLEANED),
	},
};
/* clang-format on */

static const char *const state_names[N_STATES] = {
	[JOB_NONE] = "none",
	[JOB_COLLECTING] = "collecting",
	[JOB_HELD] = "held",
	[JOB_READY] = "ready",
	[JOB_RUNNING] = "running",
	[JOB_RECONSTRUCTED] = "reconstructed",
	[JOB_STORED] = "stored",
	[JOB_DELIVERED] = "delivered",
	[JOB_DEAD_LETTER] = "dead-letter",
	[JOB_FAILED] = "failed",
	[JOB_CANCELLED] = "cancelled",
	[JOB_CLEANED] = "cleaned",
	[JOB_IMPOSSIBLE] = "quarantined",
};

static const char *const event_names[N_EVENTS] = {
	[EVENT_OPENED] = "opened",
	[EVENT_INSTANCE] = "instance",
	[EVENT_HELD] = "held",
	[EVENT_COMPLETE] = "complete",
	[EVENT_WAITS] = "waits",
	[EVENT_COMPANION] = "companion",
	[EVENT_STARTED] = "started",
	[EVENT_INTERRUPTED] = "interrupted",
	[EVENT_CRASHED] = "crashed",
	[EVENT_RECONSTRUCTED] = "reconstructed",
	[EVENT_RESULT_LOST] = "result-lost",
	[EVENT_FAILED] = "failed",
	[EVENT_SEND_FAILED] = "send-failed",
	[EVENT_SENT] = "sent",
	[EVENT_SEND_REFUSED] = "send-refused",
	[EVENT_DELIVERED] = "delivered",
	[EVENT_DEAD_LETTER] = "dead-letter",
	[EVENT_RETRY] = "retry",
	[EVENT_CANCEL] = "cancel",
	[EVENT_CLEANED] = "cleaned",
	[EVENT_FALLBACK] = "fallback",
	[EVENT_STORED] = "stored",
	[EVENT_COMMIT_REQUESTED] = "commit-requested",
	[EVENT_COMMIT_ACCEPTED] = "commit-accepted",
	[EVENT_COMMIT_REQUEST_FAILED] = "commit-request-failed",
	[EVENT_COMMITTED] = "committed",
	[EVENT_COMMIT_FAILED] = "commit-failed",
	[EVENT_COMMIT_REFUSED] = "commit-refused",
	[EVENT_PRIORITY] = "priority",
};

enum job_state job_next(enum job_state state, enum job_event event)
{
	unsigned s = (unsigned)state, e = (unsigned)event;

	if (s >= N_STATES || e >= N_EVENTS || !table[s][e])
		return JOB_IMPOSSIBLE;
	return (enum job_state)(table[s][e] - 1);
}

const char *job_state_name(enum job_state state)
{
	return (unsigned)state < N_STATES ? state_names[state] : "unknown";
}

const char *job_event_name(enum job_event event)
{
	return (unsigned)event < N_EVENTS ? event_names[event] : "unknown";
}

int job_event_parse(const char *name, enum job_event *ret_event)
{
	for (size_t e = 0; name && e < N_EVENTS; e++)
		if (!strcmp(event_names[e], name)) {
			*ret_event = (enum job_event)e;
			return 0;
		}
	return -1;
}

static const char *const priority_names[] = {"low", "normal", "high"};

const char *job_priority_name(int priority)
{
	return priority_names[priority < 0 ? 0 : priority > 0 ? 2 : 1];
}

int job_priority_parse(const char *name, int *ret_priority)
{
	for (int i = 0; i < 3; i++)
		if (!strcmp(name, priority_names[i])) {
			*ret_priority = i - 1;
			return 0;
		}
	return -1;
}
