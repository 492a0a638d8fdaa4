/* SPDX-License-Identifier: Apache-2.0 */
#include "node/jobs/node_facts.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "kernels/clock.h"
#include "node/base/json_get.h"
#include "node/base/plural.h"
#include "node/base/process_state.h"
#include "node/store/event.h"
#include "node/store/node_file.h"
#include "node/store/orphans.h"
#include "node/store/spool.h"

/* ---- node.json ---- */

#define COPY(member, object, key) json_get_copy((object), (key), (member), sizeof(member))

static json_t *processes_json(const struct manager_facts *m)
{
	json_t *list = json_array();

	for (size_t i = 0; i < m->n_processes; i++)
		json_array_append_new(list, json_pack("{s:s, s:I, s:b, s:f}", "role", m->processes[i].role, "pid",
						      (json_int_t)m->processes[i].pid, "stopped", m->processes[i].stopped,
						      "silent", m->processes[i].silent));
	return list;
}

static json_t *certificates_json(const struct manager_facts *m)
{
	json_t *list = json_array();

	for (size_t i = 0; i < m->n_certificates; i++) {
		const struct node_certificate *c = &m->certificates[i];

		json_array_append_new(list,
				      json_pack("{s:o, s:o, s:b, s:b, s:f, s:f, s:o}", "whose", event_json_text(c->whose), "file",
						event_json_text(c->file), "listener", c->listener, "crl", c->crl, "from", c->from,
						"until", c->until, "unusable", event_json_text(c->unusable)));
	}
	return list;
}

static json_t *unresolved_json(const struct manager_facts *m)
{
	json_t *list = json_array();

	for (size_t i = 0; i < m->n_unresolved; i++)
		json_array_append_new(list,
				      json_pack("{s:o, s:o, s:o}", "destination", event_json_text(m->unresolved[i].destination),
						"host", event_json_text(m->unresolved[i].host), "reason",
						event_json_text(m->unresolved[i].reason)));
	return list;
}

json_t *node_associations_json(const struct manager_facts *m)
{
	json_t *list = json_array();

	for (size_t i = 0; i < m->n_associations; i++) {
		const struct node_association *a = &m->associations[i];

		json_array_append_new(list, json_pack("{s:f, s:I, s:o, s:o, s:o}", "last", floor(a->last), "count",
						      (json_int_t)a->count, "calling", event_json_text(a->calling), "host",
						      event_json_text(a->host), "reason", event_json_text(a->reason)));
	}
	return list;
}

void node_cluster_text(const struct node_cluster *c, char *ret, size_t size)
{
	int n = snprintf(ret, size,
			 "Slurm: %d pilot%s idle, %d busy, %d starting, %d in the queue; %llu job%s submitted, %llu requeued",
			 c->idle, plural(c->idle), c->busy, c->running - c->idle - c->busy, c->pending,
			 (unsigned long long)c->submitted, plural((long long)c->submitted), (unsigned long long)c->requeued);

	if (c->started > 0 && n > 0 && (size_t)n < size)
		snprintf(ret + n, size - (size_t)n, "; mean wait in the queue %.0f s", c->queued_seconds / (double)c->started);
}

json_t *node_cluster_json(const struct node_cluster *c)
{
	return json_pack("{s:b, s:b, s:o, s:o, s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:f}", "local", c->local, "used", c->used,
			 "state", event_json_text(c->state), "text", event_json_text(c->text), "pending", c->pending, "running",
			 c->running, "idle", c->idle, "busy", c->busy, "submitted", (json_int_t)c->submitted, "requeued",
			 (json_int_t)c->requeued, "started", (json_int_t)c->started, "queued_seconds", c->queued_seconds);
}

json_t *manager_facts_json(const struct manager_facts *m)
{
	return json_pack(
		"{s:b, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"receiver", m->receiver, "file_limit", (json_int_t)m->file_limit, "receiver_fault",
		event_json_text(m->receiver_fault), "receiver_limit", event_json_text(m->receiver_limit), "receiver_full",
		event_json_text(m->receiver_full), "incoming", event_json_text(m->incoming), "results",
		event_json_text(m->results), "audit", event_json_text(m->audit), "journal", event_json_text(m->journal_damage),
		"journal_replaced", m->journal_replaced, "journal_error", event_json_text(m->journal_error), "processes",
		processes_json(m), "certificates", certificates_json(m), "unresolved", unresolved_json(m), "reload",
		event_json_text(m->reload), "page", event_json_text(m->page), "associations", node_associations_json(m),
		"cluster", node_cluster_json(&m->cluster), "pilots_unheard", event_json_text(m->pilots_unheard), "pilot_refused",
		event_json_text(m->pilot_refused), "alerts_fault", event_json_text(m->alerts_fault));
}

static void read_devices(const json_t *list, struct manager_facts *m)
{
	const json_t *one;
	char state[16];
	size_t i;

	json_array_foreach(list, i, one)
	{
		struct node_device *d = &m->devices[m->n_devices];

		if (m->n_devices == NODE_DEVICES_MAX)
			break;
		COPY(d->name, one, "name");
		COPY(d->reason, one, "reason");
		d->disabled = json_get_bool(one, "disabled");
		d->pilot = json_get_bool(one, "seat");
		COPY(state, one, "state");
		d->connected = d->pilot && (!strcmp(state, "ready") || !strcmp(state, "busy"));
		m->n_devices++;
	}
}

static void read_processes(const json_t *list, struct manager_facts *m)
{
	const json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		struct node_process *p = &m->processes[m->n_processes];

		if (m->n_processes == NODE_PROCESSES_MAX)
			break;
		COPY(p->role, one, "role");
		p->pid = json_get_integer(one, "pid");
		p->stopped = json_get_bool(one, "stopped");
		p->silent = json_get_number(one, "silent");
		m->n_processes++;
	}
}

static void read_certificates(const json_t *list, struct manager_facts *m)
{
	const json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		struct node_certificate *c = &m->certificates[m->n_certificates];

		if (m->n_certificates == NODE_CERTIFICATES_MAX)
			break;
		COPY(c->whose, one, "whose");
		COPY(c->file, one, "file");
		COPY(c->unusable, one, "unusable");
		c->listener = json_get_bool(one, "listener");
		c->crl = json_get_bool(one, "crl");
		c->from = json_get_number(one, "from");
		c->until = json_get_number(one, "until");
		m->n_certificates++;
	}
}

static void read_unresolved(const json_t *list, struct manager_facts *m)
{
	const json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		struct node_unresolved *u = &m->unresolved[m->n_unresolved];

		if (m->n_unresolved == DESTINATION_STATES_MAX)
			break;
		COPY(u->destination, one, "destination");
		COPY(u->host, one, "host");
		COPY(u->reason, one, "reason");
		m->n_unresolved++;
	}
}

static void read_associations(const json_t *list, struct manager_facts *m)
{
	const json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		struct node_association *a = &m->associations[m->n_associations];

		if (m->n_associations == NODE_ASSOCIATIONS_MAX)
			break;
		a->last = json_get_number(one, "last");
		a->count = json_get_integer(one, "count");
		COPY(a->calling, one, "calling");
		COPY(a->host, one, "host");
		COPY(a->reason, one, "reason");
		m->n_associations++;
	}
}

static void read_cluster(const json_t *one, struct node_cluster *c)
{
	c->local = json_get_bool(one, "local");
	c->used = json_get_bool(one, "used");
	COPY(c->state, one, "state");
	COPY(c->text, one, "text");
	c->pending = (int)json_get_integer(one, "pending");
	c->running = (int)json_get_integer(one, "running");
	c->idle = (int)json_get_integer(one, "idle");
	c->busy = (int)json_get_integer(one, "busy");
	c->submitted = (uint64_t)json_get_integer(one, "submitted");
	c->requeued = (uint64_t)json_get_integer(one, "requeued");
	c->started = (uint64_t)json_get_integer(one, "started");
	c->queued_seconds = json_get_number(one, "queued_seconds");
}

void manager_facts_read(const json_t *report, struct manager_facts *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->receiver = json_get_bool(report, "receiver");
	ret->journal_replaced = json_get_bool(report, "journal_replaced");
	ret->file_limit = json_get_integer(report, "file_limit");
	COPY(ret->receiver_fault, report, "receiver_fault");
	COPY(ret->receiver_limit, report, "receiver_limit");
	COPY(ret->receiver_full, report, "receiver_full");
	COPY(ret->reload, report, "reload");
	COPY(ret->page, report, "page");
	COPY(ret->incoming, report, "incoming");
	COPY(ret->results, report, "results");
	COPY(ret->audit, report, "audit");
	COPY(ret->journal_damage, report, "journal");
	COPY(ret->journal_error, report, "journal_error");
	COPY(ret->pilots_unheard, report, "pilots_unheard");
	COPY(ret->pilot_refused, report, "pilot_refused");
	COPY(ret->alerts_fault, report, "alerts_fault");
	read_devices(json_object_get(report, "devices"), ret);
	read_processes(json_object_get(report, "processes"), ret);
	read_certificates(json_object_get(report, "certificates"), ret);
	read_unresolved(json_object_get(report, "unresolved"), ret);
	read_associations(json_object_get(report, "associations"), ret);
	read_cluster(json_object_get(report, "cluster"), &ret->cluster);
}

json_t *node_problem_json(const struct node_problem *p)
{
	return json_pack("{s:s, s:b, s:o, s:o}", "id", p->id, "critical", p->critical, "text", event_json_text(p->text), "remedy",
			 event_json_text(p->remedy));
}

/* ---- spool, journal, jobs ---- */

static void read_disk(struct node_facts *f)
{
	struct statvfs v;

	if (statvfs(f->spool, &v) < 0) {
		snprintf(f->disk_error, sizeof(f->disk_error), "%s", strerror(errno));
		return;
	}
	if (v.f_flag & ST_RDONLY)
		snprintf(f->disk_error, sizeof(f->disk_error), "it is mounted read-only");
	f->no_inodes = v.f_files > 0 && v.f_favail == 0;
	f->disk_free = (uint64_t)v.f_bavail * v.f_frsize;
	f->disk_size = (uint64_t)v.f_blocks * v.f_frsize;
}

static void read_lock(struct node_facts *f)
{
	struct spool_holder holder;

	f->runs = spool_holder(f->spool, &holder);
	if (!f->runs)
		return;
	f->manager = holder.pid;
	f->manager_stopped = process_is_stopped(holder.pid);
	f->manager_silent = holder.alive > 0 ? clock_seconds() - holder.alive : 0;
	f->report_age = holder.alive - holder.reported;
}

void node_facts_of_spool(const struct config *config, double now, struct node_facts *ret)
{
	json_t *report;

	memset(ret, 0, sizeof(*ret));
	ret->now = now;
	ret->config = config;
	ret->reserve = config->node.reserve;
	snprintf(ret->spool, sizeof(ret->spool), "%s", config->node.spool);
	read_disk(ret);
	read_lock(ret);
	ret->orphans = orphans_count(ret->spool);
	report = node_file_read(ret->spool);
	ret->reported = report != NULL;
	if (report)
		manager_facts_read(report, &ret->from_manager);
	json_decref(report);
}

int node_facts_of_journal(struct journal *journal, struct node_facts *facts, struct err *err)
{
	struct instance_row oldest;
	int ret = journal_count_unindexed(journal, &facts->unindexed, err);
	int n = ret == 0 && facts->unindexed > 0 ? journal_list_unindexed(journal, 0, &oldest, 1, err) : 0;

	if (n > 0)
		facts->unindexed_for = facts->now - oldest.received;
	return n < 0 ? n : ret;
}

bool node_facts_job_needs_attention(const struct job_view *v)
{
	return v->state == JOB_HELD || v->state == JOB_FAILED || v->state == JOB_DEAD_LETTER || v->state == JOB_IMPOSSIBLE;
}

void node_facts_of_jobs(const struct config *config, const struct jobs *jobs, struct node_facts *facts)
{
	facts->n_destinations = destination_states(config, jobs, facts->destinations);
	facts->attention = facts->no_space = facts->ready = 0;
	for (size_t i = 0; i < jobs->n; i++) {
		const struct job_view *v = jobs->list[i];

		facts->attention += node_facts_job_needs_attention(v);
		facts->ready += v->state == JOB_READY;
		facts->no_space += (v->state == JOB_READY || v->state == JOB_RUNNING) && v->space_tries >= NODE_SPACE_TRIES;
	}
}
