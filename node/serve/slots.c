/* SPDX-License-Identifier: Apache-2.0 */
#include "node/serve/slots.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEATH_WAIT 1.0 /* s until a worker that died before its first message is started again; doubled each time */

struct slot *slots_find(struct slots *all, int id)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->list[i].id == id)
			return &all->list[i];
	return NULL;
}

static struct slot *add_slot(struct slots *all, const char *name, double now)
{
	struct slot *slot;

	if (all->n == SLOTS_MAX)
		return NULL;
	slot = &all->list[all->n++];
	*slot = (struct slot){.id = ++all->last_id, .at = now, .since = now};
	snprintf(slot->name, sizeof(slot->name), "%.*s", DEVICE_NAME_SIZE - 1, name);
	return slot;
}

/* Keep the retiring slot with this name, or add a new slot. */
static void claim_slot(struct slots *all, const char *name, double now)
{
	for (size_t i = 0; i < all->n; i++) {
		struct slot *slot = &all->list[i];

		if (slot->retiring && !slot->spare && !slot->seat && !slot->abandoned && !strcmp(slot->name, name)) {
			slot->retiring = false;
			return;
		}
	}
	add_slot(all, name, now);
}

static int workers_per_device(const struct slots *all)
{
	int n = all->per_device > 0 ? all->per_device : all->automatic;

	return n > 0 ? n : 1;
}

/* The same for each worker of a device. */
static void claim_workers(struct slots *all, const char *name, double now)
{
	int n = !strncmp(name, "cuda:", 5) ? workers_per_device(all) : 1;

	for (int i = 0; i < n; i++)
		claim_slot(all, name, now);
}

static void remove_gone(struct slots *all)
{
	size_t n = 0;

	for (size_t i = 0; i < all->n; i++)
		if (!all->list[i].retiring || all->list[i].state != SLOT_DOWN)
			all->list[n++] = all->list[i];
	all->n = n;
}

/* Add the spare slot if all others are disabled; otherwise retire it. */
static void balance_spare(struct slots *all, double now)
{
	struct slot *spare = NULL;
	bool wanted = false, in = false;

	for (size_t i = 0; i < all->n; i++) {
		struct slot *slot = &all->list[i];

		if (slot->seat)
			continue;
		if (slot->spare && !slot->abandoned)
			spare = slot;
		else if (!slot->retiring)
			*(slot->disabled ? &wanted : &in) = true;
	}
	wanted = wanted && !in;
	if (spare)
		spare->retiring = !wanted;
	else if (wanted && (spare = add_slot(all, "cpu", now)))
		spare->spare = true;
	remove_gone(all);
}

void slots_configure(struct slots *all, const char *device, double now)
{
	char names[DEVICE_NAMES_MAX][DEVICE_NAME_SIZE];
	int n = device[0] ? device_names_parse(device, names) : 0;

	all->automatic = 0;
	for (size_t i = 0; i < all->n; i++) {
		struct slot *slot = &all->list[i];

		slot->retiring = !slot->seat || slot->retiring;
		slot->old = slot->state != SLOT_DOWN;
		slot->deaths = 0;
		slot->at = now;
	}
	for (int i = 0; i < n; i++)
		claim_workers(all, names[i], now);
	balance_spare(all, now);
}

static void enter_state(struct slot *slot, enum slot_state state, double now)
{
	slot->state = state;
	slot->since = now;
	slot->seen = now;
}

static void disable_slot(struct slot *slot, const char *reason, double now)
{
	double wait = SLOT_RETRY_FIRST;

	if (slot->seat) { /* the pilot ends; another one gets another seat */
		slot->retiring = true;
		return;
	}

	for (int i = 0; i < slot->disabled_count && wait < SLOT_RETRY_CAP; i++)
		wait *= 2;
	slot->disabled = true;
	slot->disabled_count++;
	slot->deaths = 0;
	slot->at = now + (wait < SLOT_RETRY_CAP ? wait : SLOT_RETRY_CAP);
	snprintf(slot->reason, sizeof(slot->reason), "%s", reason);
}

static void expand_devices(struct slots *all, int id, int count, double now)
{
	bool instead_of_none = !strcmp(slots_find(all, id)->name, "auto");
	char name[DEVICE_NAME_SIZE];

	slots_find(all, id)->retiring = true;
	for (int i = 0; i < count && i < DEVICE_NAMES_MAX; i++) {
		snprintf(name, sizeof(name), "cuda:%d", i);
		claim_workers(all, name, now);
	}
	if (count <= 0)
		claim_slot(all, instead_of_none ? "cpu" : "cuda:0", now); /* cuda:0: its worker will report the error */
}

static void apply_end(struct slots *all, int id, const char *how, double now)
{
	struct slot *slot = slots_find(all, id);
	enum slot_state was = slot->state;
	char reason[300];

	enter_state(slot, SLOT_DOWN, now);
	slot->old = false;
	slot->device[0] = '\0';
	slot->abandoned = false;
	slot->pilot[0] = '\0';
	slot->images = 0;
	slot->retiring = slot->retiring || (slot->seat && was != SLOT_STARTING);
	if (slot->seat)
		slot->at = now + (how[0] ? DEATH_WAIT : 0);
	if (slot->seat || slot->retiring || slot->disabled)
		return;
	slot->at = now;
	if (was != SLOT_STARTING && was != SLOT_IDLE)
		return;
	if (++slot->deaths < SLOT_DEATHS_MAX) {
		slot->at = now + DEATH_WAIT * (double)(1 << (slot->deaths - 1));
	} else if (device_name_is_wildcard(slot->name)) {
		expand_devices(all, id, 0, now);
	} else {
		snprintf(reason, sizeof(reason), "%d workers ended before their first message; the last one %.200s", slot->deaths,
			 how);
		disable_slot(slot, reason, now);
	}
}

void slots_update(struct slots *all, int id, enum slot_event event, int number, const char *text, double now)
{
	struct slot *slot = slots_find(all, id);

	if (!slot)
		return;
	switch (event) {
	case SLOT_SPAWNED:
		enter_state(slot, SLOT_STARTING, now);
		break;
	case SLOT_COUNTED:
		enter_state(slot, SLOT_ENDING, now);
		all->automatic = text && strtod(text, NULL) >= SLOTS_AUTOMATIC_BYTES ? SLOTS_AUTOMATIC : 1;
		if (!slot->retiring) /* otherwise it is no longer configured, or the message is a repetition */
			expand_devices(all, id, number, now);
		break;
	case SLOT_READY:
		if (slot->state != SLOT_STARTING) /* too late: it was killed, and the reason recorded then stays */
			break;
		enter_state(slot, SLOT_IDLE, now);
		slot->disabled = false;
		snprintf(slot->device, sizeof(slot->device), "%s", text);
		break;
	case SLOT_DISABLED:
		disable_slot(slot, text, now);
		if (slot->state != SLOT_DOWN)
			enter_state(slot, SLOT_ENDING, now);
		break;
	case SLOT_ASSIGNED:
		enter_state(slot, SLOT_BUSY, now);
		break;
	case SLOT_ALIVE:
		slot->seen = now;
		break;
	case SLOT_DONE:
		enter_state(slot, SLOT_IDLE, now);
		slot->deaths = 0;
		slot->disabled_count = number ? 0 : slot->disabled_count;
		break;
	case SLOT_STOPPING:
		enter_state(slot, SLOT_ENDING, now);
		break;
	case SLOT_ENDED:
		apply_end(all, id, text, now);
		break;
	case SLOT_ABANDONED:
		disable_slot(slot, text, now);
		slot->abandoned = true;
		break;
	}
	balance_spare(all, now);
}

static bool is_over(double limit, double now, double *ret_next)
{
	if (limit <= now)
		return true;
	*ret_next = fmin(*ret_next, limit);
	return false;
}

enum slot_action slots_next_action(const struct slot *slot, double timeout, double now, double *ret_next)
{
	*ret_next = INFINITY;
	switch (slot->state) {
	case SLOT_DOWN:
		return is_over(slot->at, now, ret_next) ? SLOT_START : SLOT_NOTHING;
	case SLOT_STARTING:
		if (slot->seat)
			return slot->old || slot->retiring ? SLOT_STOP : SLOT_NOTHING;
		return is_over(slot->since + SLOT_START_LIMIT, now, ret_next) ? SLOT_KILL : SLOT_NOTHING;
	case SLOT_IDLE:
		return slot->old || slot->retiring ? SLOT_STOP : SLOT_NOTHING;
	case SLOT_BUSY:
		return is_over(slot->seen + timeout, now, ret_next) ? SLOT_KILL : SLOT_NOTHING;
	case SLOT_ENDING:
		if (slot->abandoned)
			return SLOT_NOTHING;
		return is_over(slot->since + SLOT_END_LIMIT, now, ret_next) ? SLOT_ABANDON : SLOT_NOTHING;
	}
	return SLOT_NOTHING;
}

static int count_busy(const struct slots *all, const char *name)
{
	int n = 0;

	for (size_t i = 0; i < all->n; i++)
		n += all->list[i].state == SLOT_BUSY && !strcmp(all->list[i].name, name);
	return n;
}

void slots_seats(struct slots *all, bool wanted, double now)
{
	struct slot *waiting = NULL, *slot;
	int n = 0;

	for (size_t i = 0; i < all->n; i++) {
		slot = &all->list[i];
		if (!slot->seat)
			continue;
		slot->retiring = slot->retiring || !wanted;
		n++;
		if (!slot->retiring && (slot->state == SLOT_DOWN || slot->state == SLOT_STARTING))
			waiting = slot;
	}
	remove_gone(all);
	if (!wanted || waiting || n >= SLOTS_SEATS_MAX)
		return;
	slot = add_slot(all, "pilot", now);
	if (slot)
		slot->seat = true;
}

/* The order in which idle slots get cases: CUDA of this machine, CUDA of a pilot, others. */
static int slot_rank(const struct slot *slot)
{
	bool cuda = !strncmp(slot->seat ? slot->device : slot->name, "cuda", 4);

	return cuda ? (slot->seat ? 1 : 0) : 2;
}

struct slot *slots_find_idle(struct slots *all)
{
	struct slot *best = NULL;
	int busy = 0;

	for (size_t i = 0; i < all->n; i++) {
		struct slot *slot = &all->list[i];
		int n = slot_rank(slot) == 0 ? count_busy(all, slot->name) : 0;

		if (slot->state != SLOT_IDLE || slot->old || slot->retiring)
			continue;
		if (best && (slot_rank(slot) > slot_rank(best) || (slot_rank(slot) == slot_rank(best) && n >= busy)))
			continue;
		best = slot;
		busy = n;
	}
	return best;
}

struct slot *slots_find_idle_with(struct slots *all, int64_t images)
{
	for (size_t i = 0; i < all->n; i++) {
		struct slot *slot = &all->list[i];

		if (slot->images == images && slot->state == SLOT_IDLE && !slot->old && !slot->retiring)
			return slot;
	}
	return NULL;
}

int slots_threads(const struct slots *all, const struct slot *slot, int cores)
{
	int n = 0, threads;

	if (!strncmp(slot->name, "cpu:", 4))
		return atoi(slot->name + 4);
	for (size_t i = 0; i < all->n; i++)
		n += !all->list[i].retiring && !all->list[i].disabled && !all->list[i].seat;
	threads = n == 0 ? cores : cores / n;
	if (n > 1 && workers_per_device(all) > 1 && !strncmp(slot->name, "cuda:", 5))
		threads = 2 * cores / n;
	return threads > 1 ? threads : 1;
}
