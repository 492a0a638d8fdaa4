/* SPDX-License-Identifier: Apache-2.0 */
/* status.c - read the state of journal, spool and disk; see node/status/status.h. */
#include "node/status/status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "node/base/log.h"
#include "node/jobs/delivery_queue.h"
#include "node/jobs/job_report.h"
#include "node/result/thumbnail.h"
#include "node/store/node_file.h"
#include "node/store/orphans.h"

void status_begin(struct status *s, const struct config *config)
{
	*s = (struct status){.config = config};
	status_names_begin(&s->names);
}

/* Clear everything that was read from the journal; the next update reads it from the first row. */
static void forget(struct status *s)
{
	s->journal = journal_close(s->journal);
	jobs_clear(&s->jobs);
	memset(&s->metrics, 0, sizeof(s->metrics));
	memset(&s->totals, 0, sizeof(s->totals));
}

static void list_clear(struct status_list *l)
{
	free(l->list);
	*l = (struct status_list){0};
}

static void forget_look(struct status *s)
{
	list_clear(&s->attention);
	list_clear(&s->work);
	list_clear(&s->done);
	json_decref(s->node);
	json_decref(s->unassigned);
	s->node = s->unassigned = NULL;
	memset(s->by_state, 0, sizeof(s->by_state));
	memset(s->destinations, 0, sizeof(s->destinations));
	s->n_destinations = s->n_problems = 0;
	s->unindexed = 0;
}

void status_end(struct status *s)
{
	forget_look(s);
	forget(s);
	status_names_end(&s->names);
}

static void problem(struct status *s, bool critical, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static void problem(struct status *s, bool critical, const char *fmt, ...)
{
	struct status_problem *p;
	va_list ap;

	if (s->n_problems == STATUS_PROBLEMS)
		return;
	p = &s->problems[s->n_problems++];
	p->critical = critical;
	va_start(ap, fmt);
	vsnprintf(p->text, sizeof(p->text), fmt, ap);
	va_end(ap);
}

/* ---- the journal ---- */

static int apply(void *ctx, const struct event_row *row)
{
	struct status *s = ctx;
	int ret = jobs_apply(&s->jobs, row);
	const struct job_view *v = ret == 0 ? jobs_find(&s->jobs, row->job) : NULL;

	if (v)
		metrics_count(&s->metrics, v, row);
	return ret;
}

#define FORGET_MAX 16 /* maximum number of jobs checked per update */

/* Remove the jobs whose rows were deleted from the journal (node/jobs/journal_retention.h) from the view. */
static int forget_history(struct status *s, double now, struct err *err)
{
	const double age = s->config->node.journal_retention_days * 86400.0;
	size_t looked = 0, i = 0;
	int ret = 0;

	while (age > 0 && ret == 0 && i < s->jobs.n && looked < FORGET_MAX) {
		const struct job_view *v = s->jobs.list[i++];
		struct jobs one = {0};

		if (v->state != JOB_CLEANED || now - v->changed < age)
			continue;
		looked++;
		ret = jobs_refresh(&one, s->journal, v->id, err);
		if (ret == 0 && !jobs_find(&one, v->id)) {
			jobs_remove(&s->jobs, v->id);
			i--; /* list[i] is now the next job */
		}
		jobs_clear(&one);
	}
	return ret;
}

static int read_journal(struct status *s, double now, struct err *err)
{
	json_t *unassigned;
	char path[300];
	int ret = 0;

	snprintf(path, sizeof(path), "%s/journal.db", s->config->node.spool);
	if (!s->journal)
		ret = journal_open_reader(path, &s->journal, err);
	if (ret == 0)
		ret = journal_replay(s->journal, 0, s->jobs.last_seq, apply, s, err);
	if (ret == 0)
		ret = forget_history(s, now, err);
	if (ret == 0)
		ret = journal_add_totals(s->journal, &s->totals, err);
	if (ret == 0)
		ret = journal_count_unindexed(s->journal, &s->unindexed, err);
	if (ret == 0) {
		unassigned = job_report_unassigned(s->journal, STATUS_UNASSIGNED_READ, err);
		s->unassigned = unassigned ? job_report_unassigned_groups(unassigned) : NULL;
		json_decref(unassigned);
		ret = s->unassigned ? 0 : -EIO;
	}
	return ret;
}

/* ---- lists of cases ---- */

enum group { GROUP_ATTENTION, GROUP_WORK, GROUP_DONE };

static enum group group_of(const struct job_view *v)
{
	switch (v->state) {
	case JOB_HELD:
	case JOB_FAILED:
	case JOB_DEAD_LETTER:
	case JOB_IMPOSSIBLE:
		return GROUP_ATTENTION;
	case JOB_DELIVERED:
	case JOB_CANCELLED:
	case JOB_CLEANED:
		return GROUP_DONE;
	default:
		return GROUP_WORK;
	}
}

static int newest_first(const void *a, const void *b)
{
	const struct job_view *x = *(const struct job_view *const *)a, *y = *(const struct job_view *const *)b;

	if (x->changed != y->changed)
		return x->changed < y->changed ? 1 : -1;
	return (x->id < y->id) - (x->id > y->id);
}

/* Order: the states nearest to the end first; waiting jobs in the order in which they start. */
static int work_order(const void *a, const void *b)
{
	static const int rank[STATUS_STATES] = {
		[JOB_RUNNING] = 0, [JOB_RECONSTRUCTED] = 1, [JOB_STORED] = 2, [JOB_READY] = 3, [JOB_COLLECTING] = 4};
	const struct job_view *x = *(const struct job_view *const *)a, *y = *(const struct job_view *const *)b;

	if (rank[x->state] != rank[y->state])
		return rank[x->state] - rank[y->state];
	if (x->state == JOB_READY && x->priority != y->priority)
		return y->priority - x->priority;
	if (x->state == JOB_READY && x->completed_seq != y->completed_seq)
		return x->completed_seq < y->completed_seq ? -1 : 1;
	return newest_first(a, b);
}

static void fill_list(struct status *s, struct status_list *l, enum group group, size_t max)
{
	for (size_t i = 0; i < s->jobs.n; i++)
		l->all += group_of(s->jobs.list[i]) == group;
	l->list = calloc(l->all ? l->all : 1, sizeof(l->list[0]));
	if (!l->list) {
		problem(s, false, "Out of memory for the list of cases.");
		return;
	}
	for (size_t i = 0; i < s->jobs.n; i++)
		if (group_of(s->jobs.list[i]) == group)
			l->list[l->n++] = s->jobs.list[i];
	qsort(l->list, l->n, sizeof(l->list[0]), group == GROUP_WORK ? work_order : newest_first);
	if (l->n > max)
		l->n = max;
}

/* ---- destinations ---- */

static struct status_destination *destination(struct status *s, const char *name)
{
	struct status_destination *d;

	for (size_t i = 0; i < s->n_destinations; i++)
		if (!strcmp(s->destinations[i].name, name))
			return &s->destinations[i];
	if (s->n_destinations == STATUS_DESTINATIONS)
		return NULL;
	d = &s->destinations[s->n_destinations++];
	snprintf(d->name, sizeof(d->name), "%s", name);
	d->conf = config_destination(s->config, name);
	return d;
}

static void update_send(struct status *s, const struct job_view *v, const struct job_send *send)
{
	bool due = send->state == SEND_DUE && v->state == JOB_RECONSTRUCTED && job_send_is_active(send);
	struct status_destination *d;

	if (!due && !config_destination(s->config, send->destination))
		return; /* a destination of an earlier configuration that no case waits for */
	d = destination(s, send->destination);
	if (!d)
		return;
	d->waiting += due;
	d->refused += send->state == SEND_REFUSED && v->state == JOB_DEAD_LETTER && job_send_is_active(send);
	if (send->state == SEND_DONE && send->time > d->last_sent)
		d->last_sent = send->time;
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

static void update_destinations(struct status *s)
{
	for (size_t i = 0; i < s->config->n_destinations; i++)
		destination(s, s->config->destinations[i].name);
	for (size_t i = 0; i < s->jobs.n; i++)
		for (size_t k = 0; k < s->jobs.list[i]->n_sends; k++)
			update_send(s, s->jobs.list[i], &s->jobs.list[i]->sends[k]);
	for (size_t i = 0; i < s->n_destinations; i++) {
		struct status_destination *d = &s->destinations[i];

		d->down = d->waiting > 0 && d->last_failed > 0 && d->last_failed >= d->last_sent;
		if (d->down)
			problem(s, false, "Results cannot be sent to %s: %s. %zu %s for it; the node tries again automatically.",
				d->name, d->reason[0] ? d->reason : "no answer", d->waiting,
				d->waiting == 1 ? "case waits" : "cases wait");
	}
}

/* ---- the node itself ---- */

static void update_disk(struct status *s)
{
	struct statvfs v;

	s->disk_free = s->disk_size = 0;
	if (statvfs(s->config->node.spool, &v) < 0) {
		problem(s, true, "The spool's disk cannot be read: %s.", strerror(errno));
		return;
	}
	s->disk_free = (uint64_t)v.f_bavail * v.f_frsize;
	s->disk_size = (uint64_t)v.f_blocks * v.f_frsize;
	if (s->disk_free < s->config->node.reserve)
		problem(s, true,
			"The disk is full: %.1f GB are free, %.1f GB must stay free. New images are refused until there is "
			"space.",
			(double)s->disk_free / 1e9, (double)s->config->node.reserve / 1e9);
	else if (s->disk_free / 2 < s->config->node.reserve)
		problem(s, false, "The disk is nearly full: %.1f GB are free; below %.1f GB new images are refused.",
			(double)s->disk_free / 1e9, (double)s->config->node.reserve / 1e9);
}

static void update_node(struct status *s)
{
	const json_t *slots, *slot;
	size_t i, out = 0;

	s->node = node_file_read(s->config->node.spool);
	if (!s->node)
		return; /* the page has just started */
	if (json_is_false(json_object_get(s->node, "receiver")))
		problem(s, true, "The receiver does not run: the node accepts no images. It is restarted automatically.");
	slots = json_object_get(s->node, "devices");
	json_array_foreach(slots, i, slot)
	{
		const char *name = json_string_value(json_object_get(slot, "name"));
		const char *reason = json_string_value(json_object_get(slot, "reason"));

		if (!json_is_true(json_object_get(slot, "disabled")))
			continue;
		out++;
		problem(s, false, "Device %s is disabled: %s.", name ? name : "?",
			reason && reason[0] ? reason : "no reason given");
	}
	if (out > 0 && out == json_array_size(slots))
		problem(s, true, "No device can reconstruct: cases wait.");
}

static void update_spool(struct status *s)
{
	char warning[OPERATOR_WARNING_SIZE];

	if (operator_warning_journal(json_string_value(json_object_get(s->node, "journal")), warning))
		problem(s, true, "%s", warning);
	s->orphans = orphans_count(s->config->node.spool);
	if (operator_warning_orphans(s->config->node.spool, s->orphans, warning))
		problem(s, false, "%s", warning);
}

static void update_cases(struct status *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->jobs.n; i++)
		s->by_state[s->jobs.list[i]->state]++;
	fill_list(s, &s->attention, GROUP_ATTENTION, STATUS_ATTENTION_MAX);
	fill_list(s, &s->work, GROUP_WORK, STATUS_WORK_MAX);
	fill_list(s, &s->done, GROUP_DONE, STATUS_DONE_MAX);
	n = s->attention.all;
	if (n > 0)
		problem(s, false, n == 1 ? "%zu case needs attention, see below." : "%zu cases need attention, see below.", n);
}

void status_update(struct status *s, double now)
{
	struct err err = {0};

	forget_look(s);
	s->now = now;
	if (read_journal(s, now, &err) < 0) {
		problem(s, err.code != ENOENT, "The journal cannot be read: %s.", err.msg);
		forget(s);
		json_decref(s->unassigned);
		s->unassigned = NULL;
	}
	delivery_queue_update(&s->jobs);
	update_disk(s);
	update_node(s);
	update_spool(s);
	update_destinations(s);
	update_cases(s);
	if (s->config->status.show_patient)
		status_names_request(&s->names, s);
}

bool status_is_healthy(const struct status *s)
{
	for (size_t i = 0; i < s->n_problems; i++)
		if (s->problems[i].critical)
			return false;
	return true;
}

bool status_progress(const struct status *s, int64_t job, char ret_stage[64], double *ret_fraction)
{
	json_t *status = job_report_progress(s->config->node.spool, job);
	const char *stage;
	bool known;

	stage = json_string_value(json_object_get(status, "stage"));
	known = stage && json_is_number(json_object_get(status, "fraction"));
	if (known) {
		double fraction = json_number_value(json_object_get(status, "fraction"));

		snprintf(ret_stage, 64, "%s", stage);
		*ret_fraction = fraction > 0 ? fraction < 1 ? fraction : 1 : 0;
	}
	json_decref(status);
	return known;
}

bool status_has_thumbnail(const struct status *s, const struct job_view *v)
{
	char path[400];

	return s->config->status.thumbnails && v->n_objects > 0 &&
	       thumbnail_path(s->config->node.spool, v->id, path, sizeof(path)) == 0 && access(path, R_OK) == 0;
}
