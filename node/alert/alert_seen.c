/* SPDX-License-Identifier: Apache-2.0 */
#include "node/alert/alert_seen.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/list_grow.h"
#include "node/jobs/node_facts.h"
#include "node/store/job.h"

static struct alert_seen *add_seen(struct alert_list *l, struct err *err)
{
	if (!list_grow(&l->list, l->n, &l->capacity, sizeof(*l->list))) {
		err_set(err, ENOMEM, "no memory for %zu alerts", l->n + 1);
		return NULL;
	}
	memset(&l->list[l->n], 0, sizeof(l->list[0]));
	return &l->list[l->n++];
}

/* "cases" is told case by case; that the webhook fails cannot be told by it. */
static bool is_told(const struct node_problem *p)
{
	return strcmp(p->id, "cases") != 0 && strcmp(p->id, "alerts") != 0;
}

static int add_problem(struct alert_list *l, const struct node_problem *p, struct err *err)
{
	struct alert_seen *s = add_seen(l, err);

	if (!s)
		return -ENOMEM;
	snprintf(s->key, sizeof(s->key), "%s:%s", p->id, p->subject);
	s->id = p->id;
	s->critical = p->critical;
	s->text = p->text;
	s->remedy = p->remedy;
	if (!strcmp(p->id, "commitment-late")) { /* these texts have what the peer answered, which may be anything */
		s->text = NULL;
		snprintf(s->own, sizeof(s->own), "Storage is not confirmed by %.60s: the node asks again automatically.",
			 p->subject);
	} else if (!strcmp(p->id, "destination-down")) {
		s->text = NULL;
		snprintf(s->own, sizeof(s->own), "Results cannot be sent to %.60s: they wait, and are tried again automatically.",
			 p->subject);
	}
	return 0;
}

static int add_case(struct alert_list *l, const struct job_view *v, struct err *err)
{
	struct alert_seen *s = add_seen(l, err);
	const char *state = job_state_name(v->state);

	if (!s)
		return -ENOMEM;
	snprintf(s->key, sizeof(s->key), "%s:%lld", state, (long long)v->id);
	s->id = state;
	s->job = v->id;
	s->critical = v->state != JOB_HELD;
	s->remedy = "tomonode show gives the reason and what to do.";
	snprintf(s->own, sizeof(s->own), "Case %lld (%s) %s.", (long long)v->id, v->kind,
		 v->state == JOB_HELD	       ? "is held"
		 : v->state == JOB_FAILED      ? "has failed"
		 : v->state == JOB_DEAD_LETTER ? "was refused by a destination"
					       : "is quarantined: its events contradict each other");
	return 0;
}

static int keep_case(struct alert_list *l, const struct alert_item *i, struct err *err)
{
	struct alert_seen *s = add_seen(l, err);

	if (!s)
		return -ENOMEM;
	snprintf(s->key, sizeof(s->key), "%s", i->key);
	s->id = i->id;
	s->job = i->job;
	s->critical = i->critical;
	s->remedy = i->remedy;
	snprintf(s->own, sizeof(s->own), "%.150s", i->text);
	return 0;
}

int alert_list_fill(struct alert_list *l, const struct node_problems *problems, const struct jobs *jobs,
		    const struct alerts *before, struct err *err)
{
	int ret = 0;

	l->n = 0;
	for (size_t i = 0; ret == 0 && i < problems->n; i++)
		if (is_told(&problems->list[i]))
			ret = add_problem(l, &problems->list[i], err);
	for (size_t i = 0; ret == 0 && jobs && i < jobs->n_open; i++)
		if (node_facts_job_needs_attention(jobs->open[i]))
			ret = add_case(l, jobs->open[i], err);
	for (size_t i = 0; ret == 0 && !jobs && i < before->n; i++)
		if (before->items[i].job && before->items[i].ended == 0)
			ret = keep_case(l, &before->items[i], err);
	return ret;
}

void alert_list_clear(struct alert_list *l)
{
	free(l->list);
	*l = (struct alert_list){0};
}
