/* SPDX-License-Identifier: Apache-2.0 */
#include "node/fleet/fleet.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "node/base/backoff.h"
#include "node/base/plural.h"

static struct fleet_pilot *find_pilot(struct fleet *f, const char *id)
{
	for (size_t i = 0; i < f->n; i++)
		if (!strcmp(f->list[i].id, id))
			return &f->list[i];
	return NULL;
}

static void enter_state(struct fleet_pilot *p, enum fleet_state state, double now)
{
	if (p->state != state)
		p->since = now;
	p->state = state;
}

static bool is_alive(const struct fleet_pilot *p)
{
	return p->state == FLEET_PENDING || p->state == FLEET_RUNNING;
}

/* ---- events ---- */

static struct fleet_pilot *add_pilot(struct fleet *f, const char *id, double now)
{
	struct fleet_pilot *p;

	if (f->n == FLEET_MAX || find_pilot(f, id))
		return NULL;
	p = &f->list[f->n++];
	*p = (struct fleet_pilot){.submitted = now, .since = now, .idle_since = now};
	snprintf(p->id, sizeof(p->id), "%s", id);
	return p;
}

void fleet_adopt(struct fleet *f, const char *id, bool used, double now)
{
	struct fleet_pilot *p = add_pilot(f, id, now);

	if (!p)
		return;
	p->existed = used;
	p->was_connected = true; /* unknown if not used; its end is no failure of this submission */
}

void fleet_submission_ok(struct fleet *f)
{
	f->replied = FLEET_UP;
	f->reply[0] = '\0';
}

void fleet_submitted(struct fleet *f, const char *id, uint64_t job, double now)
{
	struct fleet_pilot *p = add_pilot(f, id, now);

	f->submitted++;
	fleet_submission_ok(f);
	if (p)
		p->job = job;
}

/* Delay the next submission. */
static void delay_submission(struct fleet *f, double now)
{
	f->not_before = now + backoff_seconds(++f->failures, FLEET_WAIT_FIRST, FLEET_WAIT_CAP);
}

void fleet_replied(struct fleet *f, enum fleet_controller why, const char *text)
{
	/* A list of jobs does not show whether jobs are accepted again. */
	if (why == FLEET_UP && (f->replied == FLEET_REFUSES || f->replied == FLEET_BUSY))
		return;
	f->replied = why;
	snprintf(f->reply, sizeof(f->reply), "%s", text);
}

void fleet_failed(struct fleet *f, enum fleet_controller why, const char *text, double now)
{
	f->replied = why;
	snprintf(f->reply, sizeof(f->reply), "%s", text);
	delay_submission(f, now);
}

static void failed_pilot(struct fleet *f, const struct fleet_pilot *p, const char *how, double now)
{
	snprintf(f->failure, sizeof(f->failure), "Slurm job %llu %s", (unsigned long long)p->job, how);
	delay_submission(f, now);
}

static void count_started(struct fleet *f, struct fleet_pilot *p, const struct fleet_row *row)
{
	if (row->submitted > 0 && row->started >= row->submitted) {
		f->started++;
		f->queued_seconds += row->started - row->submitted;
	}
	p->reason[0] = '\0';
	p->requeued = false;
}

static void apply_listed(struct fleet *f, struct fleet_pilot *p, const struct fleet_row *row, double now)
{
	p->job = row->job;
	if (p->state == FLEET_ENDING)
		return;
	if (row->state == FLEET_RUNNING && p->state == FLEET_PENDING)
		count_started(f, p, row);
	if (row->state == FLEET_PENDING && p->state == FLEET_RUNNING) {
		f->requeued++;
		p->requeued = true;
		p->submitted = now;
	}
	if (row->state == FLEET_ENDING && !p->connected && !p->was_connected)
		failed_pilot(f, p, "ended before its pilot connected", now);
	if (row->state == FLEET_PENDING)
		snprintf(p->reason, sizeof(p->reason), "%s", row->reason);
	enter_state(p, row->state, now);
}

static void apply_unlisted(struct fleet *f, struct fleet_pilot *p, double now)
{
	if (p->connected || (p->job == 0 && !p->existed && now < p->submitted + FLEET_UNLISTED_LIMIT))
		return;
	if (p->job > 0 && is_alive(p) && !p->was_connected)
		failed_pilot(f, p, "ended before its pilot connected", now);
	enter_state(p, FLEET_GONE, now);
}

void fleet_listed(struct fleet *f, const struct fleet_row *rows, size_t n, double now)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct fleet_row *row = NULL;

		for (size_t k = 0; k < n && !row; k++)
			if (!strcmp(rows[k].id, f->list[i].id))
				row = &rows[k];
		if (row)
			apply_listed(f, &f->list[i], row, now);
		else
			apply_unlisted(f, &f->list[i], now);
	}
}

static void apply_connected(struct fleet *f, struct fleet_pilot *p, const struct fleet_seat *seat, double now)
{
	if (!p->connected) {
		p->unanswered = false;
		p->idle_since = now;
		p->was_connected = true;
		f->failures = 0;
		f->failure[0] = '\0';
		f->not_before = fmin(f->not_before, now);
	}
	if (p->busy && !seat->busy)
		p->idle_since = now;
	p->connected = true;
	p->busy = seat->busy;
}

void fleet_connected(struct fleet *f, const struct fleet_seat *seats, size_t n, int waiting, double now)
{
	f->waiting = waiting;
	for (size_t i = 0; i < f->n; i++) {
		struct fleet_pilot *p = &f->list[i];
		const struct fleet_seat *seat = NULL;

		for (size_t k = 0; k < n && !seat; k++)
			if (!strcmp(seats[k].id, p->id))
				seat = &seats[k];
		if (seat) {
			apply_connected(f, p, seat, now);
		} else if (p->connected) {
			p->connected = p->busy = false;
			p->since = p->state == FLEET_RUNNING ? now : p->since;
		}
	}
}

void fleet_unanswered(struct fleet *f, const char *id)
{
	struct fleet_pilot *p = find_pilot(f, id);

	if (p)
		p->unanswered = true;
}

/* ---- actions ---- */

static struct fleet_action action_for(enum fleet_action_kind kind, const struct fleet_pilot *p)
{
	struct fleet_action a = {.kind = kind};

	if (p) {
		snprintf(a.id, sizeof(a.id), "%s", p->id);
		a.job = p->job;
	}
	return a;
}

static bool is_due(double when, double now, double *next)
{
	if (when <= now)
		return true;
	*next = fmin(*next, when);
	return false;
}

static struct fleet_action cancel_pilot(struct fleet_pilot *p, double now)
{
	enter_state(p, FLEET_ENDING, now);
	p->cancelled = now;
	return action_for(FLEET_CANCEL, p);
}

/* What is due for one pilot, whatever the number of pilots that are wanted. */
static struct fleet_action next_of_pilot(struct fleet *f, struct fleet_pilot *p, double now, double *next)
{
	if (p->state == FLEET_ENDING && p->job > 0 && is_due(fmax(p->since, p->cancelled) + FLEET_END_LIMIT, now, next))
		return cancel_pilot(p, now);
	if (is_alive(p) && p->unanswered && p->job > 0)
		return cancel_pilot(p, now);
	if (p->state == FLEET_RUNNING && !p->connected && p->job > 0 && is_due(p->since + FLEET_CONNECT_LIMIT, now, next)) {
		if (!p->was_connected)
			failed_pilot(f, p, "runs, but its pilot did not connect", now);
		return cancel_pilot(p, now);
	}
	return action_for(FLEET_NOTHING, NULL);
}

static struct fleet_action forget_pilot(struct fleet *f, size_t i)
{
	struct fleet_action a = action_for(FLEET_FORGET, &f->list[i]);

	f->list[i] = f->list[--f->n];
	return a;
}

static int count_wanted(const struct fleet *f, const struct fleet_limits *l)
{
	int n = f->waiting;

	for (size_t i = 0; i < f->n; i++)
		n += f->list[i].connected && f->list[i].busy && is_alive(&f->list[i]);
	n = n > l->min ? n : l->min;
	return n < l->max ? n : l->max;
}

/* Return the pilot to give up first: one that waits in the queue, else one that has been idle for the longest time. all:
 * also one that runs and is not connected. NULL: none. */
static struct fleet_pilot *dispensable_pilot(struct fleet *f, bool all)
{
	struct fleet_pilot *first = NULL;

	for (size_t i = 0; i < f->n; i++) {
		struct fleet_pilot *p = &f->list[i];

		if ((p->state == FLEET_PENDING || (all && is_alive(p))) && p->job > 0 && !p->connected)
			return p;
		if (is_alive(p) && p->connected && !p->busy && (!first || p->idle_since < first->idle_since))
			first = p;
	}
	return first;
}

static struct fleet_action shrink_fleet(struct fleet *f, const struct fleet_limits *l, bool at_once, double now, double *next)
{
	struct fleet_pilot *p = dispensable_pilot(f, l->max == 0);

	if (!p)
		return action_for(FLEET_NOTHING, NULL);
	if (!at_once && !is_due((p->connected ? p->idle_since : f->surplus_since) + l->idle, now, next))
		return action_for(FLEET_NOTHING, NULL);
	if (!p->connected)
		return cancel_pilot(p, now);
	enter_state(p, FLEET_ENDING, now);
	return action_for(FLEET_END, p);
}

static struct fleet_action next_by_number(struct fleet *f, const struct fleet_limits *l, double now, double *next)
{
	int alive = 0, soon = 0, want = count_wanted(f, l);

	for (size_t i = 0; i < f->n; i++) {
		alive += is_alive(&f->list[i]);
		soon += is_alive(&f->list[i]) && !(f->list[i].requeued && f->list[i].state == FLEET_PENDING);
	}
	if (alive <= want)
		f->surplus_since = 0;
	else if (f->surplus_since == 0)
		f->surplus_since = now;
	if (alive > want && (soon >= want || alive > l->max))
		return shrink_fleet(f, l, alive > l->max, now, next);
	if (soon < want && alive < l->max && f->n < FLEET_MAX && is_due(f->not_before, now, next))
		return action_for(FLEET_SUBMIT, NULL);
	if (soon >= want && (f->replied == FLEET_REFUSES || f->replied == FLEET_BUSY) && is_due(f->not_before, now, next))
		return action_for(FLEET_TEST, NULL);
	return action_for(FLEET_NOTHING, NULL);
}

struct fleet_action fleet_next(struct fleet *f, const struct fleet_limits *limits, double now, double *ret_next)
{
	*ret_next = INFINITY;
	for (size_t i = 0; i < f->n; i++) {
		struct fleet_action a;

		if (f->list[i].state == FLEET_GONE)
			return forget_pilot(f, i);
		a = next_of_pilot(f, &f->list[i], now, ret_next);
		if (a.kind != FLEET_NOTHING)
			return a;
	}
	return next_by_number(f, limits, now, ret_next);
}

/* ---- description ---- */

struct fleet_counts fleet_count(const struct fleet *f)
{
	struct fleet_counts c = {0};

	for (size_t i = 0; i < f->n; i++) {
		const struct fleet_pilot *p = &f->list[i];

		c.pending += p->state == FLEET_PENDING && !p->connected;
		c.running += p->state == FLEET_RUNNING || p->connected;
		c.idle += p->connected && !p->busy;
		c.busy += p->connected && p->busy;
	}
	return c;
}

bool fleet_reason_blocks(const char *reason)
{
	static const char *const passing[] = {"", "None", "Resources", "Priority", "BeginTime", "Cleaning", "Prolog", "Licenses"};

	for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++)
		if (!strcmp(reason, passing[i]))
			return false;
	return true;
}

/* The state that pending jobs show: DRAINING, FULL or UP. */
static enum fleet_controller describe_queue(const struct fleet *f, double now, char ret_text[FLEET_TEXT_SIZE])
{
	const struct fleet_pilot *oldest = NULL, *blocked = NULL;
	int n = 0;

	for (size_t i = 0; i < f->n; i++) {
		const struct fleet_pilot *p = &f->list[i];

		if (p->state != FLEET_PENDING || p->connected)
			continue;
		n++;
		oldest = !oldest || p->submitted < oldest->submitted ? p : oldest;
		blocked = !blocked && fleet_reason_blocks(p->reason) ? p : blocked;
	}
	if (blocked)
		snprintf(ret_text, FLEET_TEXT_SIZE, "Slurm does not start job %llu: %s", (unsigned long long)blocked->job,
			 blocked->reason);
	if (blocked)
		return FLEET_DRAINING;
	if (!oldest || now - oldest->submitted < FLEET_FULL_AFTER)
		return FLEET_UP;
	snprintf(ret_text, FLEET_TEXT_SIZE, "%d job%s wait%s in the queue of Slurm until others end (%s)", n, plural(n),
		 n == 1 ? "s" : "", oldest->reason[0] ? oldest->reason : "no reason given");
	return FLEET_FULL;
}

enum fleet_controller fleet_describe(const struct fleet *f, double now, char ret_text[FLEET_TEXT_SIZE])
{
	static const char *const sentences[] = {[FLEET_DOWN] = "Slurm cannot be reached",
						[FLEET_BUSY] = "Slurm accepts no more jobs now",
						[FLEET_REFUSES] = "The job of a pilot cannot be submitted"};

	ret_text[0] = '\0';
	if (f->replied != FLEET_UP) {
		snprintf(ret_text, FLEET_TEXT_SIZE, "%s: %.240s", sentences[f->replied], f->reply);
		return f->replied;
	}
	if (f->failure[0]) {
		snprintf(ret_text, FLEET_TEXT_SIZE, "%s", f->failure);
		return FLEET_FAILING;
	}
	return describe_queue(f, now, ret_text);
}

const char *fleet_controller_name(enum fleet_controller state)
{
	static const char *const names[] = {"up", "down", "busy", "refuses", "draining", "full", "failing"};

	return names[state];
}
