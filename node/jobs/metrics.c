/* SPDX-License-Identifier: Apache-2.0 */
#include "node/jobs/metrics.h"

#include <jansson.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
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
	t->sum += ceil(1e6 * seconds);
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
		d->sent += (double)n;
	else if (d && row->event == EVENT_SEND_REFUSED)
		d->refused += (double)n;
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
		add_time(&m->all, v->members.recorded, row->time);
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

/* ---- in the journal ---- */

static const struct {
	const char *name;
	size_t at; /* in struct metrics */
} times[] = {{"wait", offsetof(struct metrics, wait)},
	     {"reconstruction", offsetof(struct metrics, reconstruction)},
	     {"delivery", offsetof(struct metrics, delivery)},
	     {"case", offsetof(struct metrics, all)}};
#define N_TIMES (sizeof(times) / sizeof(times[0]))
static const char *const outcomes[] = {"sent", "refused", "failed"};
#define N_OUTCOMES (sizeof(outcomes) / sizeof(outcomes[0]))

static double *number_of_time(struct metrics_times *t, const char *name)
{
	long i = strtol(name, NULL, 10);

	if (!strcmp(name, "count"))
		return &t->count;
	if (!strcmp(name, "sum"))
		return &t->sum;
	return i >= 0 && i <= METRICS_BUCKETS ? &t->bucket[i] : NULL;
}

static double *number_of_outcome(struct metrics_deliveries *d, size_t outcome)
{
	return outcome == 0 ? &d->sent : outcome == 1 ? &d->refused : &d->failed;
}

/* Return the number with this name in the journal, as "event/opened", "wait/count", "wait/3", "sent/pacs"; NULL: another name. */
static double *find_number(struct metrics *m, const char *name)
{
	const char *rest = strchr(name, '/');
	size_t n = rest ? (size_t)(rest++ - name) : 0;
	struct metrics_deliveries *d;
	enum job_event event;

	if (n == strlen("event") && !strncmp(name, "event", n))
		return job_event_parse(rest, &event) == 0 ? &m->events[event] : NULL;
	for (size_t i = 0; n > 0 && i < N_TIMES; i++)
		if (n == strlen(times[i].name) && !strncmp(name, times[i].name, n))
			return number_of_time((struct metrics_times *)((char *)m + times[i].at), rest);
	for (size_t i = 0; n > 0 && i < N_OUTCOMES; i++)
		if (n == strlen(outcomes[i]) && !strncmp(name, outcomes[i], n) && (d = find_destination(m, rest)))
			return number_of_outcome(d, i);
	return NULL;
}

static int read_number(void *ctx, const char *name, double n)
{
	double *number = find_number(ctx, name);

	if (number)
		*number = n;
	return 0;
}

int metrics_read(struct metrics *m, struct journal *j, struct err *err)
{
	memset(m, 0, sizeof(*m));
	return journal_each_counter(j, read_number, m, err);
}

static int record_number(struct metrics *m, struct journal *j, const char *word, const char *rest, struct err *err)
{
	char name[CONFIG_NAME_SIZE + 20];
	const double *number;

	snprintf(name, sizeof(name), "%s/%s", word, rest);
	number = find_number(m, name);
	return number && *number > 0 ? journal_set_counter(j, name, *number, err) : 0;
}

static int record_times(struct metrics *m, struct journal *j, const char *word, struct err *err)
{
	int ret = record_number(m, j, word, "count", err);
	char bucket[16];

	if (ret == 0)
		ret = record_number(m, j, word, "sum", err);
	for (int i = 0; ret == 0 && i <= METRICS_BUCKETS; i++) {
		snprintf(bucket, sizeof(bucket), "%d", i);
		ret = record_number(m, j, word, bucket, err);
	}
	return ret;
}

int metrics_record(struct metrics *m, struct journal *j, struct err *err)
{
	int ret = 0;

	for (int e = 0; ret == 0 && e <= EVENT_CLEANED; e++)
		ret = record_number(m, j, "event", job_event_name((enum job_event)e), err);
	for (size_t i = 0; ret == 0 && i < N_TIMES; i++)
		ret = record_times(m, j, times[i].name, err);
	for (size_t i = 0; ret == 0 && i < N_OUTCOMES * m->n_destinations; i++)
		ret = record_number(m, j, outcomes[i % N_OUTCOMES], m->destinations[i / N_OUTCOMES].name, err);
	return ret;
}
