/* SPDX-License-Identifier: Apache-2.0 */
#include "node/jobs/destination_state.h"

#include <stdio.h>
#include <string.h>

struct states {
	const struct config *config;
	struct destination_state *list;
	size_t n;
};

/* Return the entry of a name, a new one if there is none; NULL: the list is full. */
static struct destination_state *find_entry(struct states *s, const char *name)
{
	struct destination_state *d;

	for (size_t i = 0; i < s->n; i++)
		if (!strcmp(s->list[i].name, name))
			return &s->list[i];
	if (s->n == DESTINATION_STATES_MAX)
		return NULL;
	d = &s->list[s->n++];
	*d = (struct destination_state){.conf = config_destination(s->config, name)};
	snprintf(d->name, sizeof(d->name), "%s", name);
	return d;
}

static void add_send(struct states *s, const struct job_view *v, const struct job_send *send)
{
	bool due = send->state == SEND_DUE && v->state == JOB_RECONSTRUCTED && job_send_is_active(send);
	struct destination_state *d;

	if (!due && !config_destination(s->config, send->destination))
		return; /* a destination of an earlier configuration that no case waits for */
	d = find_entry(s, send->destination);
	if (!d)
		return;
	d->waiting += due;
	if (send->state == SEND_STORED && job_send_is_active(send) &&
	    (send->failures >= DESTINATION_UNCONFIRMED || send->commit_tries > 0)) {
		d->unconfirmed++;
		snprintf(d->unconfirmed_reason, sizeof(d->unconfirmed_reason), "%s", send->reason);
	}
	d->refused += send->state == SEND_REFUSED && v->state == JOB_DEAD_LETTER && job_send_is_active(send);
	d->unanswered += v->state == JOB_DEAD_LETTER && job_send_is_active(send) && job_send_is_unanswered(send);
	if ((send->state == SEND_DONE || send->state == SEND_STORED) && send->sent > d->last_sent)
		d->last_sent = send->sent;
	if (!due || (send->failures == 0 && !send->unconfigured))
		return;
	if (d->next == 0 || send->next < d->next)
		d->next = send->next;
	if (send->failures > d->failures)
		d->failures = send->failures;
	if (send->time >= d->last_failed) {
		d->last_failed = send->time;
		snprintf(d->reason, sizeof(d->reason), "%s", send->reason);
	}
}

/* Settled jobs wait for no destination: what counts is when one of them got an object. */
static void add_settled(struct states *s, const struct jobs *jobs)
{
	for (size_t i = 0; i < s->n; i++)
		for (size_t k = 0; k < jobs->n_reached; k++)
			if (!strcmp(s->list[i].name, jobs->reached[k].destination) &&
			    jobs->reached[k].sent > s->list[i].last_sent)
				s->list[i].last_sent = jobs->reached[k].sent;
}

size_t destination_states(const struct config *config, const struct jobs *jobs,
			  struct destination_state ret_list[DESTINATION_STATES_MAX])
{
	struct states s = {config, ret_list, 0};

	for (size_t i = 0; i < config->n_destinations; i++)
		find_entry(&s, config->destinations[i].name);
	for (size_t i = 0; i < jobs->n_open; i++)
		for (size_t k = 0; k < jobs->open[i]->n_sends; k++)
			add_send(&s, jobs->open[i], &jobs->open[i]->sends[k]);
	add_settled(&s, jobs);
	for (size_t i = 0; i < s.n; i++)
		s.list[i].down =
			s.list[i].waiting > 0 && s.list[i].last_failed > 0 && s.list[i].last_failed >= s.list[i].last_sent;
	return s.n;
}
