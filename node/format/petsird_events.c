/* SPDX-License-Identifier: Apache-2.0 */
/* petsird_events.c - the time blocks of a PETSIRD file, event by event.
 *
 * The place of the next event is a cursor: part of the stream, block, field of the block, lists of the pair of types. So one
 * block of any size is read in pieces. */
#include "node/base/list_grow.h"
#include "node/format/petsird_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define EVENT_BLOCK "EventTimeBlock"
#define SIGNAL_BLOCK "ExternalSignalTimeBlock"
#define PIECE 4096 /* events */

static const struct petsird_field event_block[] = {
	{"timeInterval", NULL, true},
	{"promptEvents", NULL, true},
	{"delayedEvents", NULL, true},
	{0},
};
static const struct petsird_field event[] = {{"detectionBins", NULL, true}, {"tofIdx", NULL, true}, {0}};
static const struct petsird_field interval[] = {{"start", NULL, true}, {"stop", NULL, true}, {0}};
static const struct petsird_field signal_block[] = {{"timeInterval", NULL, true}, {"signalID", NULL, true}, {0}};

/* Check that t is a list of lists of lists of events, and return the type of these. */
static int check_pairs(struct petsird *p, const struct yardl_type *t, const struct yardl_type **ret)
{
	for (int i = 0; i < 3; i++) {
		if (t->kind != YARDL_VECTOR)
			return err_set(p->in.err, ENOTSUP, "PETSIRD schema: the events of %s are not lists of lists of lists",
				       EVENT_BLOCK);
		t = t->of[0];
	}
	*ret = t;
	return petsird_check_fields(p, t, event);
}

int petsird_check_blocks(struct petsird *p)
{
	const struct yardl_type *t = p->block, *of = NULL;
	int at = t->kind == YARDL_UNION ? yardl_find(t, EVENT_BLOCK) : -1, rc;

	if (at < 0)
		return err_set(p->in.err, ENOTSUP, "PETSIRD schema: the time blocks have no alternative \"%s\"", EVENT_BLOCK);
	t = t->of[at];
	rc = petsird_check_fields(p, t, event_block);
	if (rc == 0)
		rc = petsird_check_fields(p, t->of[yardl_find(t, "timeInterval")], interval);
	if (rc == 0)
		rc = check_pairs(p, t->of[yardl_find(t, "promptEvents")], &of);
	if (rc == 0)
		rc = check_pairs(p, t->of[yardl_find(t, "delayedEvents")], &of);
	return rc;
}

void petsird_rewind(struct petsird *p)
{
	yardl_seek(&p->in, p->first_block);
	p->cursor = (struct petsird_cursor){0};
	p->counts = (struct petsird_counts){.gap = p->counts.gap};
	p->covered_to = 0;
	petsird_plain_forget(p);
}

const struct petsird_counts *petsird_counts(const struct petsird *p)
{
	return &p->counts;
}

/* ---- one event ---- */

static int read_detector(struct petsird *p, const struct yardl_type *t, size_t type, uint32_t *ret_detector, uint16_t *ret_energy)
{
	const struct petsird_modules *m = &p->header.type[type];
	int64_t bin = 0;
	int rc = yardl_read_integer(&p->in, t, &bin);

	if (rc < 0)
		return rc;
	if (bin < 0 || (uint64_t)bin >= m->modules * m->elements * m->energies)
		return yardl_fail(&p->in, EBADMSG, "detection bin %lld; module type %zu has %zu", (long long)bin, type,
				  m->modules * m->elements * m->energies);
	*ret_energy = (uint16_t)((uint64_t)bin % m->energies);
	*ret_detector = (uint32_t)(m->first + (uint64_t)bin / m->energies);
	return 0;
}

static int read_pair(struct petsird *p, const struct yardl_type *t, struct petsird_event *ret)
{
	uint64_t n = 0;
	int rc = yardl_read_list(&p->in, t, &n);

	if (rc == 0 && n != 2)
		rc = yardl_fail(&p->in, EBADMSG, "a coincidence of %llu detection bins", (unsigned long long)n);
	if (rc == 0)
		rc = read_detector(p, t->of[0], (size_t)p->cursor.row, &ret->detector[0], &ret->energy[0]);
	if (rc == 0)
		rc = read_detector(p, t->of[0], (size_t)p->cursor.column, &ret->detector[1], &ret->energy[1]);
	return rc;
}

static int read_tof(struct petsird *p, const struct yardl_type *t, struct petsird_event *ret)
{
	const struct petsird_tof *tof = petsird_tof_of(&p->header, (size_t)p->cursor.row, (size_t)p->cursor.column);
	int64_t k = 0;
	int rc = yardl_read_integer(&p->in, t, &k);

	if (rc == 0 && (k < 0 || (uint64_t)k >= tof->n))
		rc = yardl_fail(&p->in, EBADMSG, "TOF bin %lld of %zu", (long long)k, tof->n);
	ret->tof = (uint16_t)k;
	return rc;
}

static int read_event(struct petsird *p, struct petsird_event *ret)
{
	const struct yardl_type *t = p->cursor.event;
	struct petsird_event e = {.delayed = p->cursor.delayed, .time = p->cursor.time, .stop = p->cursor.stop};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < t->n; i++)
		rc = strcmp(t->names[i], "detectionBins") == 0 ? read_pair(p, t->of[i], &e)
		     : strcmp(t->names[i], "tofIdx") == 0      ? read_tof(p, t->of[i], &e)
							       : yardl_skip(&p->in, t->of[i]);
	if (rc == 0)
		*ret = e;
	return rc;
}

/* ---- many events ---- */

/* Read at least one event, at most `max`, of the list that is open. Plain ones may wait to be decoded. */
static int read_some(struct petsird *p, struct petsird_event *ret_events, size_t max, size_t *ret_n)
{
	struct petsird_cursor *c = &p->cursor;
	size_t n = c->plain ? petsird_plain_add(p, ret_events, max < c->events ? max : (size_t)c->events) : 0;
	int rc = 0;

	if (n == 0) {
		rc = read_event(p, &ret_events[0]);
		n = rc == 0;
	}
	c->events -= n;
	c->column += c->events == 0;
	*(c->delayed ? &p->counts.delayeds : &p->counts.prompts) += n;
	*ret_n = n;
	return rc;
}

/* Decode the plain events that wait. An invalid one is read again, alone, which finds out what is wrong. */
static int end_plain(struct petsird *p, int rc)
{
	struct petsird_event e;

	petsird_plain_decode(p);
	if (!petsird_plain_failed(p))
		return rc;
	petsird_plain_seek_failed(p);
	rc = read_event(p, &e);
	return rc < 0 ? rc : yardl_fail(&p->in, EBADMSG, "an event that is not valid");
}

/* ---- lists of events ---- */

/* Open the next list of events. Lists of pairs of types that do not exist are skipped and counted: the generator of petsird
 * repeats rows. */
static int open_list(struct petsird *p)
{
	struct petsird_cursor *c = &p->cursor;
	const struct yardl_type *list = c->pairs->of[0]->of[0];
	uint64_t n = 0;
	int rc = yardl_read_list(&p->in, list, &n);

	if (rc < 0)
		return rc;
	if (c->row < p->header.n_types && c->column < p->header.n_types) {
		c->events = n;
		c->event = list->of[0];
		c->plain = petsird_plain_type(list->of[0]);
		c->column += n == 0;
		return 0;
	}
	p->counts.surplus += n;
	for (uint64_t i = 0; rc == 0 && i < n; i++)
		rc = yardl_skip(&p->in, list->of[0]);
	c->column++;
	return rc;
}

/* Go on to the next list, row, or the end of the lists. */
static int next_list(struct petsird *p)
{
	struct petsird_cursor *c = &p->cursor;

	if (c->column < c->columns)
		return open_list(p);
	if (c->row + 1 < c->rows) {
		c->row++;
		c->column = 0;
		return yardl_read_list(&p->in, c->pairs->of[0], &c->columns);
	}
	c->pairs = NULL;
	return 0;
}

static int open_pairs(struct petsird *p, const struct yardl_type *t, bool delayed)
{
	struct petsird_cursor *c = &p->cursor;
	int rc = yardl_read_list(&p->in, t, &c->rows);

	c->pairs = rc == 0 && c->rows > 0 ? t : NULL;
	c->delayed = delayed;
	c->row = c->column = 0;
	c->columns = 0;
	if (rc == 0 && c->rows > 0)
		rc = yardl_read_list(&p->in, t->of[0], &c->columns);
	return rc;
}

/* ---- blocks ---- */

/* Read start and stop, ms. */
static int read_times(struct petsird *p, const struct yardl_type *t, int64_t ret[2])
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < t->n; i++)
		rc = strcmp(t->names[i], "start") == 0	? yardl_read_integer(&p->in, t->of[i], &ret[0])
		     : strcmp(t->names[i], "stop") == 0 ? yardl_read_integer(&p->in, t->of[i], &ret[1])
							: yardl_skip(&p->in, t->of[i]);
	if (rc == 0 && (ret[0] < 0 || ret[1] < ret[0] || ret[1] > UINT32_MAX))
		rc = yardl_fail(&p->in, EBADMSG, "a time block from %lld to %lld ms", (long long)ret[0], (long long)ret[1]);
	return rc;
}

static int add_gap(struct petsird *p, uint32_t start, uint32_t stop)
{
	struct petsird_counts *n = &p->counts;

	if (!list_grow(&n->gap, n->n_gaps, &p->gaps_max, sizeof(*n->gap)))
		return err_set(p->in.err, ENOMEM, "no memory for %zu gaps between event blocks", n->n_gaps + 1);
	n->gap[n->n_gaps][0] = start;
	n->gap[n->n_gaps++][1] = stop;
	return 0;
}

static int read_interval(struct petsird *p, const struct yardl_type *t)
{
	struct petsird_counts *n = &p->counts;
	int64_t value[2] = {0, 0};
	int rc = read_times(p, t, value);

	if (rc == 0 && n->event_blocks > 0 && (uint64_t)value[0] < p->cursor.time)
		rc = yardl_fail(&p->in, EBADMSG, "a time block that starts at %lld ms, before the one that it follows, at %lu ms",
				(long long)value[0], (unsigned long)p->cursor.time);
	if (rc == 0 && n->event_blocks > 0 && (uint64_t)value[0] > p->covered_to)
		rc = add_gap(p, (uint32_t)p->covered_to, (uint32_t)value[0]);
	if (rc < 0)
		return rc;
	p->cursor.time = (uint32_t)value[0];
	p->cursor.stop = (uint32_t)value[1];
	n->start = n->event_blocks == 0 || (uint32_t)value[0] < n->start ? (uint32_t)value[0] : n->start;
	n->stop = (uint32_t)value[1] > n->stop ? (uint32_t)value[1] : n->stop;
	n->longest = value[1] - value[0] > n->longest ? (uint32_t)(value[1] - value[0]) : n->longest;
	if ((uint64_t)value[1] > p->covered_to)
		n->covered += (uint64_t)value[1] - ((uint64_t)value[0] > p->covered_to ? (uint64_t)value[0] : p->covered_to);
	p->covered_to = n->stop;
	n->event_blocks++;
	return 0;
}

static int next_field(struct petsird *p)
{
	struct petsird_cursor *c = &p->cursor;
	const struct yardl_type *t = c->in->of[c->field];
	const char *name = c->in->names[c->field];

	c->field++;
	if (strcmp(name, "timeInterval") == 0)
		return read_interval(p, t);
	if (strcmp(name, "promptEvents") == 0)
		return open_pairs(p, t, false);
	if (strcmp(name, "delayedEvents") == 0)
		return open_pairs(p, t, true);
	return yardl_skip(&p->in, t);
}

static void count_block(struct petsird *p, const char *name)
{
	struct petsird_counts *n = &p->counts;
	bool begun = n->prompts > 0 || n->delayeds > 0;

	n->other_blocks++;
	n->bed_movements += begun && strcmp(name, "BedMovementTimeBlock") == 0;
	n->gantry_movements += begun && strcmp(name, "GantryMovementTimeBlock") == 0;
	n->singles += strcmp(name, "SinglesHistogramTimeBlock") == 0;
	n->alive_fractions += strcmp(name, "DeadTimeTimeBlock") == 0;
}

/* Read a block of an external signal, and collect its start if it is of the chosen one. */
static int read_signal_block(struct petsird *p, const struct yardl_type *t)
{
	int64_t value[2] = {0, 0}, id = -1;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < t->n; i++)
		rc = strcmp(t->names[i], "timeInterval") == 0 ? read_times(p, t->of[i], value)
		     : strcmp(t->names[i], "signalID") == 0   ? yardl_read_integer(&p->in, t->of[i], &id)
							      : yardl_skip(&p->in, t->of[i]);
	return rc < 0 || id != (int64_t)p->signal ? rc : pet_marks_add(p->marks, value[0], p->in.err);
}

static int next_block(struct petsird *p)
{
	struct petsird_cursor *c = &p->cursor;
	uint8_t index = 0;
	int rc;

	if (c->blocks == 0) {
		rc = yardl_read_count(&p->in, p->block->least, &c->blocks);
		c->ended = rc == 0 && c->blocks == 0;
		if (c->ended && yardl_left(&p->in) > 0)
			rc = yardl_fail(&p->in, EBADMSG, "%llu bytes behind the end of the data",
					(unsigned long long)yardl_left(&p->in));
		return rc;
	}
	rc = yardl_read_bytes(&p->in, &index, 1);
	if (rc == 0 && index >= p->block->n)
		rc = yardl_fail(&p->in, EBADMSG, "time block of kind %d; the schema has %zu kinds", index, p->block->n);
	if (rc < 0)
		return rc;
	c->blocks--;
	if (strcmp(p->block->names[index], EVENT_BLOCK) == 0) {
		c->in = p->block->of[index];
		c->field = 0;
		return 0;
	}
	count_block(p, p->block->names[index]);
	if (p->marks && strcmp(p->block->names[index], SIGNAL_BLOCK) == 0)
		return read_signal_block(p, p->block->of[index]);
	return yardl_skip(&p->in, p->block->of[index]);
}

/* Move the cursor on, towards the next event. */
static int advance_cursor(struct petsird *p)
{
	struct petsird_cursor *c = &p->cursor;

	if (c->pairs)
		return next_list(p);
	if (c->in && c->field < c->in->n)
		return next_field(p);
	c->in = NULL;
	return next_block(p);
}

int petsird_next(struct petsird *p, struct petsird_event *ret_events, size_t max, size_t *ret_n, struct err *err)
{
	struct petsird_cursor *c = &p->cursor;
	size_t n = 0;
	int rc = 0;

	p->in.err = err;
	while (rc == 0 && n < max && !c->ended && !petsird_plain_failed(p)) {
		size_t got = 0;

		rc = c->events > 0 ? read_some(p, ret_events + n, max - n, &got) : advance_cursor(p);
		n += got;
	}
	rc = end_plain(p, rc);
	if (rc == 0)
		*ret_n = n;
	return rc;
}

/* ---- marks ---- */

static const char *type_of_signal(enum pet_signal signal)
{
	static const char *const names[PET_SIGNALS] = {"", "ecgTrigger", "respTrigger", "otherMotionTrigger", "externalSync"};

	return names[signal];
}

/* Find the signal in the header, and check that its blocks can be read. */
static int choose_signal(struct petsird *p, enum pet_signal signal)
{
	const struct petsird_exam *e = &p->header.exam;
	const char *type = type_of_signal(signal);
	int at = yardl_find(p->block, SIGNAL_BLOCK), n = 0, rc;

	if (e->all_signals > e->n_signals)
		return err_set(p->in.err, ENOTSUP, "time marks: the file has %llu external signals; supported: at most %d",
			       (unsigned long long)e->all_signals, PETSIRD_SIGNALS_MAX);
	for (size_t i = 0; i < e->n_signals; i++)
		if (!strcmp(e->signal[i].type, type)) {
			p->signal = e->signal[i].id;
			n++;
		}
	if (n != 1 || at < 0)
		return err_set(p->in.err, ENOTSUP, "time marks: the file has %d signals of type \"%s\"; it must have one", n,
			       type);
	rc = petsird_check_fields(p, p->block->of[at], signal_block);
	if (rc == 0)
		rc = petsird_check_fields(p, p->block->of[at]->of[yardl_find(p->block->of[at], "timeInterval")], interval);
	return rc;
}

/* Make times relative to the first event block, and leave out marks outside of the event blocks. */
static uint64_t cut_marks(struct pet_marks *m, const struct petsird_counts *n)
{
	size_t kept = 0, all = m->n;

	for (size_t i = 0; i < all; i++)
		if (m->ms[i] >= n->start && m->ms[i] <= n->stop)
			m->ms[kept++] = m->ms[i] - n->start;
	m->n = kept;
	return all - kept;
}

int petsird_marks(struct petsird *p, enum pet_signal signal, struct pet_marks *ret, uint64_t *ret_outside, struct err *err)
{
	struct petsird_event *events = malloc(PIECE * sizeof(*events));
	struct pet_marks marks = {0};
	size_t n = 1;
	int rc = events ? 0 : err_set(err, ENOMEM, "no memory to read events");

	p->in.err = err;
	if (rc == 0)
		rc = choose_signal(p, signal);
	petsird_rewind(p);
	p->marks = &marks;
	while (rc == 0 && n > 0)
		rc = petsird_next(p, events, PIECE, &n, err);
	p->marks = NULL;
	free(events);
	if (rc == 0) {
		*ret_outside = cut_marks(&marks, &p->counts);
		*ret = marks;
	} else {
		pet_marks_clear(&marks);
	}
	petsird_rewind(p);
	return rc;
}
