/* Slots: where cases are reconstructed. A slot is one device with one worker process that keeps it open.
 *
 * Pure: events and the time go in, what is to be done comes out. Who starts, stops and hears the processes is
 * node/serve/schedule_workers.c.
 *
 *	            spawned             ready             given
 *	 down ──────────► starting ──────────► idle ◄──────────► busy
 *	  ▲ at                │ taken out        │ told    done     │ taken out, told
 *	  └──── ended ──── ending ◄──────────────┴──────────────────┘
 *
 * - A device that fails its self-test, or an error that is the device's own, takes the slot out: it is tried again after
 *   SLOT_RETRY_FIRST seconds, twice as long each time up to SLOT_RETRY_CAP, and at once when the configuration is read. It is in
 *   again when its worker is ready; the waiting starts from the beginning when it has done a case.
 * - A worker that dies before it has done anything is started again SLOT_DEATHS_MAX times; then the slot is taken out.
 * - While all slots are out, there is a spare one on the CPU. It ends, after its case, when another is in again.
 * - "auto" and "cuda" become one slot for each CUDA device when a worker has counted them; where such workers die, too, it is
 *   as if there were none.
 * - After configure() a worker of before does its case and ends; a slot that is not asked for any more goes with it.
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
	int id; /* never given twice */
	char name[DEVICE_NAME_SIZE];
	enum slot_state state;
	char device[96];    /* what its worker opened: "cuda:0 (NVIDIA H200)"; "": none yet */
	bool disabled;	    /* taken out, and not in again */
	bool spare;	    /* not configured: the CPU, because all others are out */
	bool old;	    /* its worker works with an earlier configuration */
	bool retiring;	    /* gone as soon as there is no process */
	bool abandoned;	    /* its process does not even end */
	int disabled_count; /* taken out so often, since it last did a case */
	int deaths;	    /* of workers that had done nothing yet, in a row */
	double at;	    /* DOWN: start then */
	double since;	    /* of the state */
	double seen;	    /* BUSY: last sign of progress */
	char reason[300];   /* why it was taken out last */
};

struct slots {
	struct slot list[SLOTS_MAX]; /* {0} to begin with */
	size_t n;
	int last_id;
};

enum slot_event {
	SLOT_SPAWNED,	/* its process is started */
	SLOT_COUNTED,	/* number: so many CUDA devices; the slot becomes them */
	SLOT_READY,	/* text: the device's name */
	SLOT_DISABLED,	/* text: the reason; its process ends or never came up */
	SLOT_ASSIGNED,	/* a case */
	SLOT_ALIVE,	/* the case goes on */
	SLOT_DONE,	/* number: did the device do it (1), or was the case refused (0) */
	SLOT_STOPPING,	/* its process is told to end */
	SLOT_ENDED,	/* its process ended; text: how */
	SLOT_ABANDONED, /* its process does not end: the slot counts as out */
};

enum slot_action {
	SLOT_NOTHING,
	SLOT_START,
	SLOT_STOP,    /* tell its process to end */
	SLOT_KILL,    /* its process hangs: while starting, or over its case */
	SLOT_ABANDON, /* it was killed and does not end */
};

/* The slots that node.device asks for; also for a text that did not change (workers read the configuration anew). */
void slots_configure(struct slots *all, const char *device, double now);
/* Slots may move in the list: find them again by id. */
void slots_update(struct slots *all, int id, enum slot_event event, int number, const char *text, double now);
struct slot *slots_find(struct slots *all, int id); /* NULL: none */
/* What is to be done about a slot now. *ret_next: when to ask again at the latest. timeout: s that a case may go without
 * progress. */
enum slot_action slots_next_action(const struct slot *slot, double timeout, double now, double *ret_next);
/* One that waits for a case, on a CUDA device where there is one; NULL: none. */
struct slot *slots_idle(struct slots *all);
/* How many threads a worker there may use, with `cores` for all of them. */
int slots_threads(const struct slots *all, const struct slot *slot, int cores);

#endif
