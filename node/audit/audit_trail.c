/* SPDX-License-Identifier: Apache-2.0 */
/* audit_trail.c - groups of transferred instances, kept in memory from the first row of a group to its message.
 *
 * - A group is all instances of one association and study, or of one job, destination and outcome.
 * - The stored position is before the oldest row of every group that is not reported yet, so that after a crash the rows that
 *   were only in memory are read again.
 * - Study and patient are in the detail of the instances' classifications ("study", "patient"), written by the indexer.
 * - A case that is given to a pilot ("Begin Transferring") and its result are reported at once: each is one event.
 */
#include "node/audit/audit_trail.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/base/json_get.h"
#include "node/base/list_grow.h"
#include "node/base/log.h"

#define QUIET 3.0     /* s without a new row after which a group is reported */
#define LONGEST 600.0 /* s after which a group is reported in any case */
#define ROWS 1000     /* maximum number of instances read in one step */
#define OBJECTS_SEARCHED_MAX 64

struct group {
	bool sent;  /* true: sent by this node; false: received */
	bool whole; /* complete: a failed attempt, to which no row is added */
	char key[CONFIG_NAME_SIZE + 64 + AUDIT_ID_SIZE];
	char peer[17], host[64], uid[AUDIT_ID_SIZE], patient[AUDIT_ID_SIZE], reason[320];
	int64_t job, first_row; /* id of an instance, or seq of an event */
	double began, last;
	enum audit_outcome outcome;
	struct audit_study study;
};

struct audit_trail {
	char path[300];
	int64_t instance, event;	   /* read so far */
	int64_t kept_instance, kept_event; /* on disk */
	struct group *groups;
	size_t n, capacity;
	/* valid during audit_trail_step(): */
	struct journal *journal;
	const struct jobs *jobs;
	const struct config *config;
};

/* ---- the position ---- */

static bool read_position(struct audit_trail *t)
{
	long long instance, event;
	FILE *f = fopen(t->path, "re");
	bool good = f && fscanf(f, "instance %lld event %lld\n", &instance, &event) == 2 && instance >= 0 && event >= 0;

	if (f)
		fclose(f);
	if (good) {
		t->instance = instance;
		t->event = event;
	}
	return good;
}

static int write_position(struct audit_trail *t, int64_t instance, int64_t event, struct err *err)
{
	char part[sizeof(t->path) + 8], text[80];
	int n, fd, rc = 0;

	if (instance == t->kept_instance && event == t->kept_event)
		return 0;
	snprintf(part, sizeof(part), "%s.part", t->path);
	n = snprintf(text, sizeof(text), "instance %lld event %lld\n", (long long)instance, (long long)event);
	fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	errno = fd < 0 ? errno : 0;
	if (fd < 0 || write(fd, text, (size_t)n) != n)
		rc = err_set(err, errno ? errno : ENOSPC, "cannot write %s: %s", part, strerror(errno ? errno : ENOSPC));
	if (fd >= 0)
		close(fd);
	if (rc == 0 && rename(part, t->path) < 0)
		rc = err_set(err, errno, "cannot rename %s: %s", part, strerror(errno));
	if (rc == 0) {
		t->kept_instance = instance;
		t->kept_event = event;
	}
	return rc;
}

int audit_trail_open(const char *spool, struct journal *j, struct audit_trail **ret_trail, struct err *err)
{
	struct audit_trail *t = calloc(1, sizeof(*t));
	int64_t instance = 0, event = 0;
	bool known;
	int rc;

	if (!t)
		return err_set(err, ENOMEM, "no memory for the audit trail");
	t->kept_instance = t->kept_event = -1;
	snprintf(t->path, sizeof(t->path), "%s/audit/position", spool);
	rc = journal_last_rows(j, &instance, &event, err);
	if (rc < 0)
		goto out;
	if (!audit_is_on()) {
		unlink(t->path);
		goto out;
	}
	/* If the journal ends before the position, its last cases were deleted, or it is another journal. Correct the two
	   numbers independently: rows after the other one are still to be reported. */
	known = read_position(t);
	if (!known || t->instance > instance)
		t->instance = instance;
	if (!known || t->event > event)
		t->event = event;
	rc = write_position(t, t->instance, t->event, err);
out:
	if (rc < 0)
		audit_trail_close(t);
	else
		*ret_trail = t;
	return rc;
}

struct audit_trail *audit_trail_close(struct audit_trail *t)
{
	if (t)
		free(t->groups);
	free(t);
	return NULL;
}

/* ---- groups ---- */

static struct group *find_group(struct audit_trail *t, bool sent, const char *key, int64_t row, double time)
{
	struct group *g;

	for (size_t i = 0; i < t->n; i++)
		if (t->groups[i].sent == sent && !t->groups[i].whole && !strcmp(t->groups[i].key, key)) {
			t->groups[i].last = time;
			return &t->groups[i];
		}
	if (!list_grow(&t->groups, t->n, &t->capacity, sizeof(*t->groups)))
		return NULL;
	g = &t->groups[t->n++];
	memset(g, 0, sizeof(*g));
	g->sent = sent;
	snprintf(g->key, sizeof(g->key), "%s", key);
	g->first_row = row;
	g->began = g->last = time;
	return g;
}

static int add_instance(void *ctx, const struct instance_row *row, const char *text)
{
	struct audit_trail *t = ctx;
	json_t *detail = json_loads(text, 0, NULL);
	const char *study = json_get_text(detail, "study");
	char key[sizeof(((struct group *)0)->key)];
	struct group *g;

	snprintf(key, sizeof(key), "%.39s %.64s %.64s", row->association, study, json_get_text(detail, "patient"));
	g = find_group(t, false, key, row->id, row->received);
	if (g) {
		snprintf(g->peer, sizeof(g->peer), "%s", row->calling);
		snprintf(g->host, sizeof(g->host), "%s", row->host);
		snprintf(g->uid, sizeof(g->uid), "%s", study);
		snprintf(g->patient, sizeof(g->patient), "%s", json_get_text(detail, "patient"));
		audit_study_count(&g->study, row->sop_class, 1);
		t->instance = row->id;
	}
	json_decref(detail);
	return g ? 0 : -ENOMEM;
}

/* Return the SOP class of an object of a job. In a result of more than OBJECTS_SEARCHED_MAX objects all have the class of the
 * first one. */
static const char *class_of(const struct job_view *v, const char *sop_instance)
{
	if (!v || v->n_objects == 0)
		return "";
	if (v->n_objects <= OBJECTS_SEARCHED_MAX)
		for (size_t i = 0; i < v->n_objects; i++)
			if (!strcmp(v->objects[i].sop_instance, sop_instance))
				return v->objects[i].sop_class;
	return v->objects[0].sop_class;
}

static void count_objects(struct group *g, const struct job_view *v, const json_t *detail)
{
	const json_t *list = json_object_get(detail, "sop_instances"), *one;
	const char *uid = json_get_text(detail, "sop_instance");
	size_t i;

	json_array_foreach(list, i, one)
		audit_study_count(&g->study, class_of(v, json_string_value(one) ? json_string_value(one) : ""), 1);
	if (uid[0])
		audit_study_count(&g->study, class_of(v, uid), 1);
	else if (!list && v) /* the event applies to all objects that were due */
		for (i = 0; i < v->n_objects; i++)
			audit_study_count(&g->study, v->objects[i].sop_class, 1);
}

#define PATIENTS_MAX 8 /* different ones in one message */

struct patients {
	char study[AUDIT_ID_SIZE], id[PATIENTS_MAX][AUDIT_ID_SIZE];
	struct audit_study studies[PATIENTS_MAX];
	size_t n;
};

static int add_patient(void *ctx, const struct instance_row *row, const char *text)
{
	struct patients *all = ctx;
	json_t *detail = json_loads(text, 0, NULL);
	const char *id = json_get_text(detail, "patient");
	size_t i = 0;

	snprintf(all->study, sizeof(all->study), "%s", json_get_text(detail, "study"));
	while (i < all->n && strcmp(all->id[i], id) != 0)
		i++;
	if (i == all->n && i < PATIENTS_MAX) {
		snprintf(all->id[i], sizeof(all->id[i]), "%s", id);
		all->studies[i] = (struct audit_study){.study = all->study, .patient = all->id[i]};
		all->n++;
	}
	if (i < PATIENTS_MAX)
		audit_study_count(&all->studies[i], row->sop_class, 1);
	json_decref(detail);
	return 0;
}

/* A person stated that all instances of a job are of one patient, or a person with a name retried or cancelled the job. */
static void report_person(const struct audit_trail *t, const struct event_row *row)
{
	json_t *detail = json_loads(row->detail, 0, NULL);
	bool same = json_get_bool(detail, "same_patient");
	const char *by = json_get_text(detail, "by");
	struct patients all = {.n = 0};

	if (same || by[0])
		journal_each_member(t->journal, row->job, add_patient, &all, NULL);
	if (same)
		audit_same_patient(by, row->time, all.studies, all.n);
	else if (by[0])
		audit_case_changed(by, row->time, all.studies, all.n);
	json_decref(detail);
}

/* A person requested that the images of a job are reconstructed again, or others in their place: the event opens the new job,
 * whose members are copied after it, so those of the first job are reported. */
static void report_redo(const struct audit_trail *t, const struct event_row *row)
{
	json_t *detail = json_loads(row->detail, 0, NULL);
	int64_t of = json_get_integer(detail, "redo_of");
	struct patients all = {.n = 0};

	if (of == 0 && json_get_text(detail, "by")[0])
		of = json_get_integer(detail, "revision_of");
	if (of > 0) {
		journal_each_member(t->journal, of, add_patient, &all, NULL);
		audit_redo(json_get_text(detail, "by"), row->time, all.studies, all.n);
	}
	json_decref(detail);
}

struct attempt {
	int64_t before;
	char pilot[64];
};

static int find_pilot(void *ctx, const struct event_row *row)
{
	struct attempt *a = ctx;
	json_t *detail = row->known && row->event == EVENT_STARTED ? json_loads(row->detail, 0, NULL) : NULL;

	if (detail)
		snprintf(a->pilot, sizeof(a->pilot), "%s", json_get_text(detail, "pilot"));
	json_decref(detail);
	return row->seq >= a->before;
}

/* The attempt to which an event belongs. Its pilot: ""; a worker of this node. */
static struct attempt attempt_of(const struct audit_trail *t, const struct event_row *row)
{
	struct attempt a = {.before = row->seq};

	journal_replay(t->journal, row->job, 0, find_pilot, &a, NULL);
	return a;
}

/* A case was given to a pilot: its images leave this machine, or are read in the spool from another one. */
static void report_case(const struct audit_trail *t, const struct event_row *row)
{
	struct attempt a = attempt_of(t, row);
	struct patients all = {.n = 0};

	if (!a.pilot[0])
		return;
	journal_each_member(t->journal, row->job, add_patient, &all, NULL);
	audit_begin_transfer(&(struct audit_peer){.pilot = a.pilot}, row->time, all.studies, all.n);
}

/* The result of a case came from a pilot. */
static void report_result(const struct audit_trail *t, const struct event_row *row)
{
	struct attempt a = attempt_of(t, row);
	const struct job_view *v = jobs_find(t->jobs, row->job);
	struct audit_transfer transfer = {.from.pilot = a.pilot, .time = row->time};
	char uid[AUDIT_ID_SIZE], patient[AUDIT_ID_SIZE];
	struct audit_study study = {0};

	if (!a.pilot[0])
		return;
	audit_trail_study(t->journal, row->job, v ? v->header : NULL, &study, uid, patient);
	for (size_t i = 0; v && i < v->n_objects; i++)
		audit_study_count(&study, v->objects[i].sop_class, 1);
	audit_transferred(&transfer, &study);
}

static void report_event(const struct audit_trail *t, const struct event_row *row)
{
	if (row->known && (row->event == EVENT_RETRY || row->event == EVENT_CANCEL))
		report_person(t, row);
	else if (row->known && row->event == EVENT_OPENED)
		report_redo(t, row);
	else if (row->known && row->event == EVENT_STARTED)
		report_case(t, row);
	else if (row->known && row->event == EVENT_RECONSTRUCTED)
		report_result(t, row);
}

static int add_event(void *ctx, const struct event_row *row)
{
	struct audit_trail *t = ctx;
	bool sent = row->known && row->event == EVENT_SENT;
	bool failed = row->known && row->event == EVENT_SEND_FAILED, refused = row->known && row->event == EVENT_SEND_REFUSED;
	char key[sizeof(((struct group *)0)->key)];
	const char *destination;
	json_t *detail;
	struct group *g;

	if (!sent && !failed && !refused) {
		report_event(t, row);
		t->event = row->seq;
		return 0;
	}
	detail = json_loads(row->detail, 0, NULL);
	if (json_get_bool(detail, "unconfigured")) { /* no connection was attempted */
		t->event = row->seq;
		json_decref(detail);
		return 0;
	}
	destination = json_get_text(detail, "destination");
	snprintf(key, sizeof(key), "%lld %d %.63s", (long long)row->job, (int)row->event, destination);
	g = find_group(t, true, key, row->seq, row->time);
	if (g) {
		const struct destination_conf *d = config_destination(t->config, destination);

		g->job = row->job;
		g->whole = failed;
		g->outcome = sent ? AUDIT_SUCCESS : failed ? AUDIT_MINOR : AUDIT_SERIOUS;
		snprintf(g->peer, sizeof(g->peer), "%s", d ? d->aet : "");
		snprintf(g->host, sizeof(g->host), "%s", d ? d->host : "");
		if (!sent)
			snprintf(g->reason, sizeof(g->reason), "%s%s%.280s", json_get_text(detail, "status"),
				 json_get_text(detail, "status")[0] ? " " : "", json_get_text(detail, "reason"));
		count_objects(g, jobs_find(t->jobs, row->job), detail);
		t->event = row->seq;
	}
	json_decref(detail);
	return g ? 0 : -ENOMEM;
}

/* ---- reports ---- */

struct found {
	char *uid, *patient;
	const char *header;
};

static int find_member(void *ctx, const struct instance_row *row, const char *text)
{
	struct found *found = ctx;
	bool wanted = !found->header || !strcmp(found->header, row->file);
	json_t *detail = wanted || !found->uid[0] ? json_loads(text, 0, NULL) : NULL;

	if (detail) {
		snprintf(found->uid, AUDIT_ID_SIZE, "%s", json_get_text(detail, "study"));
		snprintf(found->patient, AUDIT_ID_SIZE, "%s", json_get_text(detail, "patient"));
	}
	json_decref(detail);
	return wanted;
}

void audit_trail_study(struct journal *j, int64_t job, const char *header, struct audit_study *ret_study,
		       char ret_uid[AUDIT_ID_SIZE], char ret_patient[AUDIT_ID_SIZE])
{
	struct found found = {ret_uid, ret_patient, header};

	ret_uid[0] = ret_patient[0] = '\0';
	journal_each_member(j, job, find_member, &found, NULL); /* if this fails, study and patient are "" (unknown) */
	ret_study->study = ret_uid;
	ret_study->patient = ret_patient;
}

static const char *header_of(const struct jobs *jobs, int64_t job)
{
	const struct job_view *v = jobs_find(jobs, job);

	return v ? v->header : NULL;
}

static void report_group(struct audit_trail *t, struct group *g)
{
	struct audit_peer peer = {.aet = g->peer, .host = g->host};
	struct audit_transfer transfer = {.time = g->last, .outcome = g->outcome, .reason = g->reason};

	if (g->sent) {
		audit_trail_study(t->journal, g->job, header_of(t->jobs, g->job), &g->study, g->uid, g->patient);
		transfer.to = peer;
	} else {
		g->study.study = g->uid;
		g->study.patient = g->patient;
		transfer.from = peer;
	}
	audit_transferred(&transfer, &g->study);
}

/* Return true if the group is to be reported now. One with times in the future is: the clock was set back. */
static bool is_due(const struct group *g, double now)
{
	return g->whole || now >= g->last + QUIET || now >= g->began + LONGEST || now < g->began - QUIET;
}

double audit_trail_step(struct audit_trail *t, struct journal *j, const struct jobs *jobs, const struct config *config,
			double now, bool last)
{
	struct err err = {0};
	int64_t instance, event;
	double next = 0;
	int rc;

	if (!audit_is_on())
		return 0;
	t->journal = j;
	t->jobs = jobs;
	t->config = config;
	instance = t->instance;
	rc = journal_each_indexed(j, t->instance, ROWS, add_instance, t, &err);
	if (rc == 0)
		rc = journal_replay(j, 0, t->event, add_event, t, &err);
	if (rc == 0 && t->instance - instance >= ROWS)
		next = now; /* there may be more */
	instance = t->instance;
	event = t->event;
	for (size_t i = 0; i < t->n;) {
		struct group *g = &t->groups[i];

		if (last || is_due(g, now)) {
			report_group(t, g);
			*g = t->groups[--t->n];
			continue;
		}
		if (g->sent && g->first_row - 1 < event)
			event = g->first_row - 1;
		if (!g->sent && g->first_row - 1 < instance)
			instance = g->first_row - 1;
		if (next == 0 || fmin(g->last + QUIET, g->began + LONGEST) < next)
			next = fmin(g->last + QUIET, g->began + LONGEST);
		i++;
	}
	if (rc == 0)
		rc = write_position(t, instance, event, &err);
	if (rc < 0)
		log_event(LOG_ERR, "audit-trail", "reason=%s", log_quote(err.code ? err.msg : strerror(-rc)));
	return next;
}
