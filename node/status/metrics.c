/* SPDX-License-Identifier: Apache-2.0 */
#include "node/status/metrics.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

const double metrics_bounds[METRICS_BUCKETS] = {0.5, 1, 2, 5, 10, 30, 60, 300, 1800};

/* Add a time; if the clock was set back in between, it counts as 0. */
static void add_time(struct metrics_times *t, double from, double to)
{
	double seconds = to > from ? to - from : 0;
	size_t i = 0;

	if (from <= 0)
		return;
	while (i < METRICS_BUCKETS && seconds > metrics_bounds[i])
		i++;
	t->bucket[i]++;
	t->count++;
	t->sum += seconds;
}

static struct metrics_deliveries *find_destination(struct metrics *m, const char *name)
{
	struct metrics_deliveries *d;

	for (size_t i = 0; i < m->n_destinations; i++)
		if (!strcmp(m->destinations[i].name, name))
			return &m->destinations[i];
	if (m->n_destinations == METRICS_DESTINATIONS)
		return NULL;
	d = &m->destinations[m->n_destinations++];
	snprintf(d->name, sizeof(d->name), "%s", name);
	return d;
}

static void count_delivery(struct metrics *m, const struct event_row *row)
{
	json_t *detail = json_loads(row->detail, 0, NULL);
	const char *name = json_string_value(json_object_get(detail, "destination"));
	const json_t *objects = json_object_get(detail, "sop_instances");
	struct metrics_deliveries *d = name ? find_destination(m, name) : NULL;
	size_t n = json_is_array(objects) ? json_array_size(objects) : 1;

	if (d && row->event == EVENT_SENT)
		d->sent += n;
	else if (d && row->event == EVENT_SEND_REFUSED)
		d->refused += n;
	else if (d)
		d->failed++;
	json_decref(detail);
}

void metrics_count(struct metrics *m, const struct job_view *v, const struct event_row *row)
{
	if (!row->known || (unsigned)row->event >= METRICS_EVENTS)
		return;
	m->events[row->event]++;
	if (v->state == JOB_IMPOSSIBLE)
		return;
	switch (row->event) {
	case EVENT_STARTED:
		if (v->attempts == 1)
			add_time(&m->wait, v->completed, row->time);
		break;
	case EVENT_RECONSTRUCTED:
		add_time(&m->reconstruction, v->started, row->time);
		break;
	case EVENT_DELIVERED:
		add_time(&m->delivery, v->reconstructed, row->time);
		add_time(&m->all, v->members.last, row->time);
		break;
	case EVENT_SENT:
	case EVENT_SEND_REFUSED:
	case EVENT_SEND_FAILED:
		count_delivery(m, row);
		break;
	default:
		break;
	}
}
