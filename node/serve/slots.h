/* SPDX-License-Identifier: Apache-2.0 */
/* Slots: a slot is one device with one worker process that keeps it open and reconstructs cases.
 *
 * Pure: functions of events and time that return the next action. node/serve/schedule_workers.c starts, stops and reads the
 *processes.
 *
 *	            spawned             ready            assigned
 *	 down ──────────► starting ──────────► idle ◄──────────► busy
 *	  ▲ at                │ disabled         │ stop    done     │ disabled, stop
 *	  └──── ended ──── ending ◄──────────────┴──────────────────┘
 *
 * - If a device fails its self-test or fails during a case, its slot is disabled. It is tried again after SLOT_RETRY_FIRST
 *seconds, then after twice as long each time up to SLOT_RETRY_CAP, and at once when the configuration is read. It is enabled when
 *its worker is ready; after its next case the waiting time is SLOT_RETRY_FIRST again.
 * - A worker that dies before it has done anything is started again up to SLOT_DEATHS_MAX times; then the slot is disabled.
 * - While all slots are disabled, a spare slot runs on the CPU. It ends, after its case, when another slot is enabled.
 * - "auto" and "cuda" become one slot for each CUDA device after a worker has counted the devices. If such workers die, the
 *number is taken as 0.
 * - After slots_configure(), a worker with the old configuration finishes its case and ends. A slot that is no longer configured
 *is removed with it.
 */
#ifndef TOMONODE_NODE_SLOTS_H
#define TOMONODE_NODE_SLOTS_H

#include <stdbool.h>
#include <stddef.h>

#include "node/base/device_names.h"

#define SLOTS_MAX 48	       /* those of a configuration, those that leave, the spare one */
#define SLOT_RETRY_FIRST 600.0 /* s */
#define SLOT_RETRY_CAP 86400.0
#define SLOT_DEATHS_MAX 3
#define SLOT_START_LIMIT 180.0 /* s that a worker may take to open and test its device */
#define SLOT_END_LIMIT 60.0    /* s that a worker may take to end, SIGKILL included; then it hangs in the driver */

enum slot_state {
	SLOT_DOWN, /* no process; one is due at `at` */
	SLOT_STARTING,
	SLOT_IDLE,
	SLOT_BUSY,
	SLOT_ENDING,
};

struct slot {
	int id; /* unique during the run */
	char name[DEVICE_NAME_SIZE];
	enum slot_state state;
	char device[96];    /* opened by its worker: "cuda:0 (NVIDIA H200)"; "": none yet */
	bool disabled;	    /* the device failed and is not in use */
	bool spare;	    /* not configured: the CPU, because all others are disabled */
	bool old;	    /* its worker has an older configuration */
	bool retiring;	    /* remove it as soon as it has no process */
	bool abandoned;	    /* its process was killed and does not end */
	int disabled_count; /* number of times it was disabled since its last case */
	int deaths;	    /* consecutive deaths of workers before their first message */
	double at;	    /* DOWN: when to start */
	double since;	    /* start of the state */
	double seen;	    /* BUSY: last sign of progress */
	char reason[300];   /* why it was disabled last */
};

struct slots {
	struct slot list[SLOTS_MAX]; /* start with {0} */
	size_t n;
	int last_id;
};

enum slot_event {
	SLOT_SPAWNED,	/* its process was started */
	SLOT_COUNTED,	/* number: of CUDA devices; the slot is replaced by one for each */
	SLOT_READY,	/* text: the device's name */
	SLOT_DISABLED,	/* text: the reason; its process ends or did not start */
	SLOT_ASSIGNED,	/* it got a case */
	SLOT_ALIVE,	/* the case makes progress */
	SLOT_DONE,	/* number: 1: the device computed it; 0: the case was refused */
	SLOT_STOPPING,	/* its process was told to end */
	SLOT_ENDED,	/* its process ended; text: how it ended */
	SLOT_ABANDONED, /* its process does not end: the slot is disabled */
};

enum slot_action {
	SLOT_NOTHING,
	SLOT_START,
	SLOT_STOP,    /* tell its process to end */
	SLOT_KILL,    /* its process hangs, while starting or in a case */
	SLOT_ABANDON, /* it was killed and does not end */
};

/* Make the slots of node.device. Call it on every reload, also with the same text: workers must read the new configuration. */
void slots_configure(struct slots *all, const char *device, double now);
/* Apply an event. Slots may move in the list: find them again by id. */
void slots_update(struct slots *all, int id, enum slot_event event, int number, const char *text, double now);
struct slot *slots_find(struct slots *all, int id); /* NULL: none */
/* Return what to do with a slot now. *ret_next: latest time of the next call. timeout: s that a case may take without progress.
 */
enum slot_action slots_next_action(const struct slot *slot, double timeout, double now, double *ret_next);
/* Return an idle slot, preferably on a CUDA device; NULL: none. */
struct slot *slots_idle(struct slots *all);
/* Return the number of threads for the worker of a slot, when all workers share `cores` cores. */
int slots_threads(const struct slots *all, const struct slot *slot, int cores);

#endif
