/* SPDX-License-Identifier: Apache-2.0 */
#include "node/jobs/node_facts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "kernels/clock.h"
#include "node/base/json_get.h"
#include "node/base/plural.h"
#include "node/base/process_state.h"
#include "node/store/json_fields.h"
#include "node/store/node_file.h"
#include "node/store/orphans.h"
#include "node/store/spool.h"

/* ---- node.json ---- */

#define FIELD(type, member) JSON_FIELD_OF(struct type, #member, member)

static const struct json_field process_fields[] = {FIELD(node_process, role), FIELD(node_process, pid),
						   FIELD(node_process, stopped), FIELD(node_process, silent)};
static const struct json_field certificate_fields[] = {FIELD(node_certificate, whose),	  FIELD(node_certificate, file),
						       FIELD(node_certificate, listener), FIELD(node_certificate, crl),
						       FIELD(node_certificate, from),	  FIELD(node_certificate, until),
						       FIELD(node_certificate, unusable)};
static const struct json_field unresolved_fields[] = {FIELD(node_unresolved, destination), FIELD(node_unresolved, host),
						      FIELD(node_unresolved, reason)};
static const struct json_field association_fields[] = {FIELD(node_association, last), FIELD(node_association, count),
						       FIELD(node_association, calling), FIELD(node_association, host),
						       FIELD(node_association, reason)};
static const struct json_field cluster_fields[] = {
	FIELD(node_cluster, local),    FIELD(node_cluster, used),    FIELD(node_cluster, state),
	FIELD(node_cluster, text),     FIELD(node_cluster, pending), FIELD(node_cluster, running),
	FIELD(node_cluster, idle),     FIELD(node_cluster, busy),    FIELD(node_cluster, submitted),
	FIELD(node_cluster, requeued), FIELD(node_cluster, started), FIELD(node_cluster, queued_seconds)};
static const struct json_field device_fields[] = {FIELD(node_device, name), FIELD(node_device, reason),
						  FIELD(node_device, disabled), JSON_FIELD_OF(struct node_device, "seat", pilot)};
static const struct json_field manager_fields[] = {FIELD(manager_facts, receiver),
						   FIELD(manager_facts, file_limit),
						   FIELD(manager_facts, receiver_fault),
						   FIELD(manager_facts, receiver_limit),
						   FIELD(manager_facts, receiver_full),
						   FIELD(manager_facts, incoming),
						   FIELD(manager_facts, results),
						   FIELD(manager_facts, audit),
						   JSON_FIELD_OF(struct manager_facts, "journal", journal_damage),
						   FIELD(manager_facts, journal_unchecked),
						   FIELD(manager_facts, journal_replaced),
						   FIELD(manager_facts, journal_error),
						   FIELD(manager_facts, case_unread),
						   FIELD(manager_facts, reload),
						   FIELD(manager_facts, page),
						   FIELD(manager_facts, pilots_unheard),
						   FIELD(manager_facts, pilot_refused),
						   FIELD(manager_facts, alerts_fault)};
static const struct json_field problem_fields[] = {FIELD(node_problem, id), FIELD(node_problem, critical),
						   FIELD(node_problem, text), FIELD(node_problem, remedy)};

#define WRITE_LIST(fields, list, n) json_fields_write_list(JSON_FIELDS(fields), (list), sizeof((list)[0]), (n))
#define READ_LIST(fields, array, list)                                                                                           \
	json_fields_read_list(JSON_FIELDS(fields), (array), (list), sizeof((list)[0]), sizeof(list) / sizeof((list)[0]))

json_t *node_associations_json(const struct manager_facts *m)
{
	return WRITE_LIST(association_fields, m->associations, m->n_associations);
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
	return json_fields_write(JSON_FIELDS(cluster_fields), c);
}

json_t *manager_facts_json(const struct manager_facts *m)
{
	json_t *object = json_fields_write(JSON_FIELDS(manager_fields), m);

	json_object_update_new(object, json_pack("{s:o, s:o, s:o, s:o, s:o}", "processes",
						 WRITE_LIST(process_fields, m->processes, m->n_processes), "certificates",
						 WRITE_LIST(certificate_fields, m->certificates, m->n_certificates), "unresolved",
						 WRITE_LIST(unresolved_fields, m->unresolved, m->n_unresolved), "associations",
						 node_associations_json(m), "cluster", node_cluster_json(&m->cluster)));
	return object;
}

void manager_facts_read(const json_t *report, struct manager_facts *ret)
{
	const json_t *devices = json_object_get(report, "devices");

	memset(ret, 0, sizeof(*ret));
	json_fields_read(JSON_FIELDS(manager_fields), report, ret);
	ret->n_devices = READ_LIST(device_fields, devices, ret->devices);
	for (size_t i = 0; i < ret->n_devices; i++) {
		const char *state = json_get_text(json_array_get(devices, i), "state");

		ret->devices[i].connected = ret->devices[i].pilot && (!strcmp(state, "ready") || !strcmp(state, "busy"));
	}
	ret->n_processes = READ_LIST(process_fields, json_object_get(report, "processes"), ret->processes);
	ret->n_certificates = READ_LIST(certificate_fields, json_object_get(report, "certificates"), ret->certificates);
	ret->n_unresolved = READ_LIST(unresolved_fields, json_object_get(report, "unresolved"), ret->unresolved);
	ret->n_associations = READ_LIST(association_fields, json_object_get(report, "associations"), ret->associations);
	json_fields_read(JSON_FIELDS(cluster_fields), json_object_get(report, "cluster"), &ret->cluster);
}

json_t *node_problem_json(const struct node_problem *p)
{
	return json_fields_write(JSON_FIELDS(problem_fields), p);
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
	for (size_t i = 0; i < jobs->n_open; i++) {
		const struct job_view *v = jobs->open[i];

		facts->attention += node_facts_job_needs_attention(v);
		facts->ready += v->state == JOB_READY;
		facts->no_space += (v->state == JOB_READY || v->state == JOB_RUNNING) && v->space_tries >= NODE_SPACE_TRIES;
	}
}
