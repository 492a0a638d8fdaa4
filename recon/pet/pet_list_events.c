/* SPDX-License-Identifier: Apache-2.0 */
/* pet_list_events.c - the events of list mode: read, check, divide into subsets, transfer, sort; and one pass over a subset.
 *
 * Resident: the events of subset 0, then those of subset 1, ... are in one buffer, each subset in batches that are sorted once.
 * Streamed: each pass reads all events from the reader and keeps those of the subset; while a batch is computed, the next is
 * read. The batches are the same in both cases. */
#include <errno.h>
#include <math.h>

#include "recon/pet/pet_list_internal.h"

static int check_event(const struct pet_list_session *s, size_t i, const struct event *e, struct err *err)
{
	const struct pet_list *l = s->list;

	if ((size_t)e->detector[0] >= l->n_detectors || (size_t)e->detector[1] >= l->n_detectors ||
	    e->detector[0] == e->detector[1])
		return err_set(err, EINVAL, "list mode: event %zu of detectors %d and %d; there are %zu", i, e->detector[0],
			       e->detector[1], l->n_detectors);
	if (l->tof.n > 0 && (e->tof < 0 || e->tof >= l->tof.n))
		return err_set(err, EINVAL, "list mode: event %zu in TOF bin %d; there are %d", i, e->tof, l->tof.n);
	if (!(e->add >= 0 && e->add < INFINITY) || (e->add > 0 && !l->with_background))
		return err_set(err, EINVAL, "list mode: event %zu with a background of %g%s", i, (double)e->add,
			       l->with_background ? "" : ", in data without background");
	return 0;
}

/* Read the next chunk of at most `most` events, the first of which is number `first`; check them and multiply their background by
 * the unit. *ret_n: 0 at the end. */
static int read_chunk(struct pet_list_session *s, size_t first, size_t *ret_n, struct err *err)
{
	const struct pet_list_reader *from = &s->list->events;
	size_t n = 0;
	int r = from->read(from->ctx, s->chunk, PET_LIST_CHUNK, &n, err);

	if (r == 0 && n > s->list->n_events - first)
		r = err_set(err, EINVAL, "list mode: more than the announced %zu events", s->list->n_events);
	if (r == 0 && n == 0 && first < s->list->n_events)
		r = err_set(err, EINVAL, "list mode: only %zu of the announced %zu events", first, s->list->n_events);
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = check_event(s, first + i, &s->chunk[i], err);
		s->chunk[i].add *= (float)s->unit;
	}
	*ret_n = n;
	return r;
}

/* Copy the events of a subset from a chunk, whose first event is number `first`. Return their number. */
static size_t pick_events(const struct pet_list_session *s, size_t first, size_t n, int subset, struct event *to)
{
	size_t m = (size_t)s->plan->subsets, k = 0;

	for (size_t i = ((size_t)subset + m - first % m) % m; i < n; i += m)
		to[k++] = s->chunk[i];
	return k;
}

/* Transfer a chunk to the places of its subsets. staging[0] has room for a chunk; see pet_list_open(). */
static int place_chunk(struct pet_list_session *s, size_t first, size_t n, struct err *err)
{
	const struct device_ops *v = s->dev->ops;
	struct event *to = s->staging[0];
	int r = v->wait(s->dev, QUEUE_UP, err);

	for (int subset = 0; r == 0 && subset < s->plan->subsets; subset++) {
		size_t m = (size_t)s->plan->subsets, before, count = pick_events(s, first, n, subset, to), at;
		struct buf part;

		pet_list_subset(s, subset, &before);
		at = before + (first + m - 1 - (size_t)subset) / m; /* events of the subset that precede `first` */
		part = buf_part(&s->resident, at * EVENT_FLOATS, count * EVENT_FLOATS);
		if (count)
			r = v->upload_begin(&part, (const float *)(const void *)to, err);
		to += count;
	}
	return r;
}

/* Call each() for the batches of a subset. */
static int each_batch(struct pet_list_session *s, int subset,
		      int (*each)(struct pet_list_session *s, struct buf *events, float floor, struct err *err), float floor,
		      struct err *err)
{
	size_t before, n = pet_list_subset(s, subset, &before);
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i += s->plan->batch) {
		size_t count = n - i < s->plan->batch ? n - i : s->plan->batch;
		struct buf part = buf_part(&s->resident, (before + i) * EVENT_FLOATS, count * EVENT_FLOATS);

		r = each(s, &part, floor, err);
	}
	return r;
}

static int sort_batch(struct pet_list_session *s, struct buf *events, float floor, struct err *err)
{
	(void)floor;
	return s->dev->ops->events_sort(s->events, events, err);
}

static int compute_batch(struct pet_list_session *s, struct buf *events, float floor, struct err *err)
{
	return s->dev->ops->events_ratio(s->events, events, floor, s->psf ? &s->seen : &s->x, &s->num, err);
}

int pet_list_load(struct pet_list_session *s, const struct monitor *monitor, struct err *err)
{
	size_t first = 0, n = 1;
	int r = s->plan->resident ? s->list->events.rewind(s->list->events.ctx, err) : 0;

	while (s->plan->resident && r == 0 && n > 0) {
		r = monitor_cancelled(monitor) ? err_set(err, ECANCELED, "list mode: cancelled after reading %zu events", first)
					       : read_chunk(s, first, &n, err);
		if (r == 0)
			r = place_chunk(s, first, n, err);
		first += n;
		monitor_progress(monitor, "read", (double)first / (double)s->list->n_events);
	}
	if (r == 0)
		r = s->dev->ops->order(s->dev, QUEUE_UP, QUEUE_WORK, err);
	for (int subset = 0; s->plan->resident && r == 0 && subset < s->plan->subsets; subset++)
		r = each_batch(s, subset, sort_batch, 0, err);
	return r < 0 ? r : s->dev->ops->wait(s->dev, QUEUE_WORK, err);
}

/* Transfer, sort and compute the batch of n events in a slot. The next transfer, into the other slot, waits for the work queued
 * before this batch, which uses that slot. */
static int compute_slot(struct pet_list_session *s, int slot, size_t n, float floor, struct err *err)
{
	const struct device_ops *v = s->dev->ops;
	struct buf events = buf_part(&s->slot[slot], 0, n * EVENT_FLOATS);
	int r = v->upload_begin(&events, (const float *)(const void *)s->staging[slot], err);

	if (r == 0)
		r = v->order(s->dev, QUEUE_UP, QUEUE_WORK, err);
	if (r == 0)
		r = v->order(s->dev, QUEUE_WORK, QUEUE_UP, err);
	if (r == 0)
		r = sort_batch(s, &events, floor, err);
	return r < 0 ? r : compute_batch(s, &events, floor, err);
}

/* Read all events, collect those of a subset in batches, compute each full batch. */
static int stream_events(struct pet_list_session *s, int subset, float floor, const struct monitor *monitor, struct err *err)
{
	size_t first = 0, n = 1, filled = 0, batch = s->plan->batch;
	int slot = 0, r = s->list->events.rewind(s->list->events.ctx, err);

	if (r == 0)
		r = s->dev->ops->order(s->dev, QUEUE_WORK, QUEUE_UP, err);
	while (r == 0 && n > 0) {
		size_t m = (size_t)s->plan->subsets, i;

		r = monitor_cancelled(monitor) ? err_set(err, ECANCELED, "list mode: cancelled after reading %zu events", first)
					       : read_chunk(s, first, &n, err);
		for (i = ((size_t)subset + m - first % m) % m; r == 0 && i < n; i += m) {
			s->staging[slot][filled++] = s->chunk[i];
			if (filled < batch)
				continue;
			r = compute_slot(s, slot, filled, floor, err);
			slot = 1 - slot;
			filled = 0;
			if (r == 0) /* the memory of this slot is free again */
				r = s->dev->ops->wait(s->dev, QUEUE_UP, err);
		}
		first += n;
	}
	if (r == 0 && filled)
		r = compute_slot(s, slot, filled, floor, err);
	return r < 0 ? r : s->dev->ops->wait(s->dev, QUEUE_UP, err);
}

int pet_list_pass(struct pet_list_session *s, int subset, float floor, const struct monitor *monitor, struct err *err)
{
	return s->plan->resident ? each_batch(s, subset, compute_batch, floor, err)
				 : stream_events(s, subset, floor, monitor, err);
}
