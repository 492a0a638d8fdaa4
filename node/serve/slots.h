/* SPDX-License-Identifier: Apache-2.0 */
/* Slots: a slot is one worker process that keeps a device open and reconstructs cases on it; a CUDA device may have several.
 *
 * Pure: functions of events and time that return the next action. node/serve/schedule_workers.c starts and stops the
 * processes and reads their messages.
 *
 *	            spawned             ready            assigned
 *	 down ──────────► starting ──────────► idle ◄──────────► busy
 *	  ▲ at                │ disabled         │ stop    done     │ disabled, stop
 *	  └──── ended ──── ending ◄──────────────┴──────────────────┘
 *
 * - If a device fails its self-test or fails during a case, its slot is disabled. A worker tries the device again after
 *   SLOT_RETRY_FIRST seconds, then after twice the last waiting time up to SLOT_RETRY_CAP, and whenever the configuration is
 *   read. When that worker is ready, the slot is enabled; after its next case the waiting time is SLOT_RETRY_FIRST again.
 * - A worker that dies before its first message is started again up to SLOT_DEATHS_MAX times; then the slot is disabled.
 * - While all slots are disabled, a spare slot computes on the CPU. When another slot is enabled, it is removed after its case.
 * - A slot named "auto" or "cuda" is replaced by one slot for each CUDA device when a worker has counted the devices. If these
 *   workers die, the node continues as if there were no CUDA device.
 * - A seat is a slot whose device is that of a pilot on another machine: it is starting until one is connected, however long that
 *   takes, and is removed when the connection ends.
 * - After slots_configure(), a worker with the old configuration finishes its case and ends. A slot that is no longer
 *   configured is then removed.
 */
#ifndef TOMONODE_NODE_SLOTS_H
#define TOMONODE_NODE_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node/base/device_names.h"

#define SLOTS_MAX 224	   /* configured slots, slots to be removed, the spare slot and seats together */
#define SLOTS_SEATS_MAX 64 /* pilots */
#define SLOTS_AUTOMATIC 3  /* slots of each CUDA device if none has less memory than SLOTS_AUTOMATIC_BYTES */
#define SLOTS_AUTOMATIC_BYTES 23e9
#define SLOT_RETRY_FIRST 600.0 /* s */
#define SLOT_RETRY_CAP 86400.0
#define SLOT_DEATHS_MAX 3
#define SLOT_START_LIMIT 180.0 /* s; longest time for a worker to open and test its device */
#define SLOT_END_LIMIT                                                                                                           \
	60.0 /* s; longest time for a worker to end, SIGKILL included; a longer one means that the driver hangs                  \
	      */

enum slot_state {
	SLOT_DOWN, /* has no process; one is started at `at` */
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
	bool seat;	    /* its process waits for a pilot on another machine, see node/worker/cmd_seat.c */
	char pilot[64];	    /* of a seat: ID of the connected pilot; "": none yet */
	int64_t images;	    /* first job of the case whose images its worker read last; 0: none */
	bool spare;	    /* not configured: the CPU, because all others are disabled */
	bool old;	    /* its worker has an older configuration */
	bool retiring;	    /* remove it as soon as it has no process */
	bool abandoned;	    /* its process was killed and does not end */
	int disabled_count; /* number of times it was disabled since its last case */
	int deaths;	    /* consecutive deaths of workers before their first message */
	double at;	    /* SLOT_DOWN: when to start a process */
	double since;	    /* start of the present state */
	double seen;	    /* SLOT_BUSY: time of the last progress */
	char reason[300];   /* why it was disabled last */
};

struct slots {
	struct slot list[SLOTS_MAX]; /* start with {0} */
	size_t n;
	int per_device; /* number of slots of each CUDA device; 0: automatic. Set it before slots_configure() */
	int automatic;	/* this number, if the devices were counted; 0: 1 */
	int last_id;
};

enum slot_event {
	SLOT_SPAWNED,	/* its process was started */
	SLOT_COUNTED,	/* number: of CUDA devices; the slot is replaced by those of each; text: bytes of the smallest one */
	SLOT_READY,	/* text: the device's name */
	SLOT_DISABLED,	/* text: the reason; its process ends or did not start */
	SLOT_ASSIGNED,	/* it got a case */
	SLOT_ALIVE,	/* the case makes progress */
	SLOT_DONE,	/* number: 1: the device computed it; 0: the case was refused */
	SLOT_STOPPING,	/* its process was asked to end */
	SLOT_ENDED,	/* its process ended; text: how it ended */
	SLOT_ABANDONED, /* its process does not end: the slot is disabled */
};

enum slot_action {
	SLOT_NOTHING,
	SLOT_START,
	SLOT_STOP,    /* ask its process to end */
	SLOT_KILL,    /* its process hangs, while starting or in a case */
	SLOT_ABANDON, /* its process was killed and does not end: disable the slot */
};

/* Make the slots of node.device; "": none. Call it on every reload, also with the same text: workers must read the new
 * configuration. */
void slots_configure(struct slots *all, const char *device, double now);
/* Keep one seat that waits for a pilot, as long as there are fewer than SLOTS_SEATS_MAX; wanted false: remove all seats. */
void slots_seats(struct slots *all, bool wanted, double now);
/* Apply an event. Slots may move in the list: find them again by id. */
void slots_update(struct slots *all, int id, enum slot_event event, int number, const char *text, double now);
struct slot *slots_find(struct slots *all, int id); /* NULL: none */
/* Return what to do with a slot now. *ret_next: latest time of the next call. timeout: s that a case may take without progress.
 */
enum slot_action slots_next_action(const struct slot *slot, double timeout, double now, double *ret_next);
/* Return an idle slot, preferably on a CUDA device, and there on the one with the fewest busy slots; NULL: none. */
struct slot *slots_find_idle(struct slots *all);
/* Return an idle slot whose worker read these images last (struct slot, images); NULL: none. */
struct slot *slots_find_idle_with(struct slots *all, int64_t images);
/* Return the number of threads for the worker of a slot, when all workers share `cores` cores. Workers that share a CUDA device
 * get twice their part, because each waits part of the time for the device or the disk. */
int slots_threads(const struct slots *all, const struct slot *slot, int cores);

#endif
