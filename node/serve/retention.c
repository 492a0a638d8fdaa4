/* SPDX-License-Identifier: Apache-2.0 */
#include "node/serve/retention.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/audit/audit_trail.h"
#include "node/base/folder.h"
#include "node/base/list_grow.h"
#include "node/base/log.h"
#include "node/jobs/jobs_settled.h"
#include "node/store/event.h"
#include "node/store/orphans.h"

#define DAY 86400.0
#define CLEANED_MAX 1000 /* jobs per call */
#define ROUNDED 1.0	 /* s, more than the rounding of a difference of times: retention_may_clean() decides */

bool retention_is_delivered(const struct job_view *v)
{
	return v->state == JOB_DELIVERED && v->n_sends > 0;
}

/* Return true if the job needs no more work: it was delivered or cancelled. */
static bool is_done(const struct job_view *v)
{
	return retention_is_delivered(v) || v->state == JOB_CANCELLED;
}

/* Return true if another case of the study may still need the CT images of v. */
static bool may_need_companions(const struct job_view *v, const struct job_view *other)
{
	return v->companions > 0 && v->study[0] && !strcmp(v->study, other->study) &&
	       (other->state == JOB_COLLECTING || other->state == JOB_HELD || other->state == JOB_READY);
}

/* Return when the last job of v's case was done, s since the epoch; negative: one is not done. Jobs of a case share instances. */
static double case_done(const struct jobs *jobs, const struct job_view *v)
{
	double done = job_view_done(v);

	if (!is_done(v))
		return -1;
	/* A job whose `opened` event is damaged may belong to this case. Such a job is open. */
	for (size_t i = 0; i < jobs->n_open; i++)
		if (may_need_companions(v, jobs->open[i]) || !jobs->open[i]->key[0])
			return -1;
	for (const struct job_view *other = jobs_of_study(jobs, v->key); other; other = jobs_before_in_study(other)) {
		if (other->state == JOB_CLEANED || strcmp(other->key, v->key) != 0)
			continue;
		if (!is_done(other) || (v->state == JOB_CANCELLED && retention_is_delivered(other)))
			return -1;
		if (job_view_done(other) > done)
			done = job_view_done(other);
	}
	return done;
}

bool retention_may_clean(const struct jobs *jobs, const struct job_view *v, const struct retention_rule *rule, double now)
{
	int days = v->state == JOB_CANCELLED ? rule->unassigned_days : rule->days;
	bool old = days > 0 && now - job_view_done(v) >= days * DAY; /* the case was done then, or later */
	double done = old ? case_done(jobs, v) : -1;

	return done >= 0 && now - done >= days * DAY;
}

struct members {
	size_t n, capacity;
	struct member {
		char file[128];
		bool companion;
	} * list;
};

static int add_member(void *ctx, const struct instance_row *row, const char *detail)
{
	struct members *m = ctx;

	(void)detail;
	if (!list_grow(&m->list, m->n, &m->capacity, sizeof(*m->list)))
		return -ENOMEM;
	snprintf(m->list[m->n].file, sizeof(m->list[m->n].file), "%s", row->file);
	m->list[m->n].companion = row->companion;
	m->n++;
	return 0;
}

/* Append `cleaned`, then remove the files. ret_freed: bytes of the removed files, also on failure. */
static int clean_files(struct journal *j, const struct job_view *v, int64_t seen, const char *spool, const char *why, double now,
		       uint64_t *ret_freed, struct err *err)
{
	struct members m = {0};
	char path[500];
	char uid[AUDIT_ID_SIZE], patient[AUDIT_ID_SIZE];
	struct audit_study study = {0};
	int ret = journal_each_member(j, v->id, add_member, &m, err);

	if (ret == 0)
		ret = event_append_cleaned(j, v->id, seen, json_pack("{s:I, s:s}", "instances", (json_int_t)m.n, "why", why), now,
					   err);
	for (size_t i = 0; ret == 0 && i < m.n; i++)
		if (!strncmp(m.list[i].file, "instances/", 10) && !strchr(m.list[i].file + 10, '/')) {
			uint64_t bytes;

			if (m.list[i].companion && journal_has_file(j, m.list[i].file, NULL) != 0)
				continue; /* another case uses it */
			snprintf(path, sizeof(path), "%s/%s", spool, m.list[i].file);
			bytes = folder_bytes(path);
			if (unlink(path) == 0)
				*ret_freed += bytes;
			else if (errno != ENOENT)
				ret = err_set(err, errno, "cannot remove %s: %s", path, strerror(errno));
		}
	if (ret == 0)
		ret = folder_path(spool, "outbox", v->id, path, sizeof(path), err);
	if (ret == 0) {
		uint64_t bytes = folder_bytes(path);

		ret = folder_remove(path, err);
		*ret_freed += ret == 0 ? bytes : 0;
	}
	if (ret == 0 && audit_is_on()) {
		audit_trail_study(j, v->id, v->header, &study, uid, patient);
		audit_removed(&study);
	}
	free(m.list);
	return ret;
}

/* Remove the files of one job. 0: done, or they stay because another job that may be of its exam cannot be read; ESTALE: the job
 * changed and may need its files; other errors: the journal or the disk failed. */
static int clean_job(struct journal *j, const struct jobs *jobs, const struct job_view *v, const char *spool, const char *why,
		     double now, uint64_t *ret_freed)
{
	struct err err = {0};
	bool whole = jobs_whole(jobs, v, &err) == 0;
	int ret = whole ? clean_files(j, v, jobs->last_seq, spool, why, now, ret_freed, &err) : 0;

	if (!whole || (ret < 0 && ret != -ESTALE))
		log_event(LOG_ERR, "retention-failed", "job=%lld reason=%s", (long long)v->id, log_quote(err.msg));
	return ret;
}

/* Append the jobs that were done at `until` or before. false: they cannot be found. */
static bool find_done(const struct jobs *jobs, enum job_state state, double until, struct jobs_numbers *ret)
{
	struct err err = {0};
	bool found = jobs_in_state(jobs, state, until, ret, &err) == 0;

	if (!found)
		log_event(LOG_ERR, "retention-failed", "reason=%s", log_quote(err.msg));
	return found;
}

bool retention_clean(struct journal *j, const struct jobs *jobs, const char *spool, const struct retention_rule *rule, double now)
{
	struct jobs_numbers list = {0};
	uint64_t freed = 0;
	bool all = true, failed = rule->unassigned_days > 0 && !find_done(jobs, JOB_CANCELLED, now, &list);
	size_t cleaned = 0;

	failed = failed || (rule->days > 0 && !find_done(jobs, JOB_DELIVERED, now - rule->days * DAY + ROUNDED, &list));
	/* This view is not refreshed in the loop: after one job of a case is cleaned, the others are still `delivered` in it and
	 * are cleaned, too. */
	for (size_t i = 0; !failed && i < list.n && cleaned < CLEANED_MAX; i++) {
		const struct job_view *v = jobs_find(jobs, list.list[i]);
		const char *why = v && v->state == JOB_CANCELLED ? "cancelled" : "age";
		bool may = v && retention_may_clean(jobs, v, rule, now);
		int ret = may ? clean_job(j, jobs, v, spool, why, now, &freed) : 0;

		failed = ret < 0 && ret != -ESTALE;
		all = all && (failed || ret == 0);
		cleaned += may;
	}
	free(list.list);
	return all && cleaned < CLEANED_MAX;
}

void retention_clean_orphans(const char *spool, int days, double now)
{
	struct err err = {0};
	int removed = orphans_remove_old(spool, days > 0 ? days : ORPHANS_DAYS, now, &err);

	if (removed < 0)
		log_event(LOG_ERR, "retention-failed", "reason=%s", log_quote(err.msg));
	else if (removed > 0)
		log_event(LOG_WARNING, "orphans-removed", "images=%d", removed);
}

/* ---- by space ---- */

uint64_t retention_used_bytes(const char *spool)
{
	static const char *const folders[] = {"instances", ORPHANS_FOLDER, "outbox"};
	char path[400];
	uint64_t used = 0;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (snprintf(path, sizeof(path), "%s/%s", spool, folders[i]) < (int)sizeof(path))
			used += folder_bytes(path);
	return used;
}

/* Clean all delivered jobs of a case that v was the last of: they share images. false: the journal or the disk failed. */
static bool clean_case(struct journal *j, const struct jobs *jobs, const struct job_view *v, const char *spool, double now,
		       uint64_t *ret_freed)
{
	for (const struct job_view *o = jobs_of_study(jobs, v->key); o; o = jobs_before_in_study(o)) {
		int ret = retention_is_delivered(o) && !strcmp(o->key, v->key)
				  ? clean_job(j, jobs, o, spool, "space", now, ret_freed)
				  : 0;

		if (ret < 0 && ret != -ESTALE)
			return false;
	}
	return true;
}

uint64_t retention_clean_space(struct journal *j, const struct jobs *jobs, const char *spool, uint64_t space, double now)
{
	uint64_t used = retention_used_bytes(spool), freed;
	struct jobs_numbers list = {0};
	bool failed;

	if (used <= space)
		return 0;
	failed = !find_done(jobs, JOB_DELIVERED, HUGE_VAL, &list);
	/* The jobs are in the order in which they were done: the last one of a case decides when the case is removed. */
	for (size_t i = 0; !failed && i < list.n && used > space; i++) {
		const struct job_view *v = jobs_find(jobs, list.list[i]);

		if (!v || !retention_is_delivered(v) || case_done(jobs, v) != job_view_done(v))
			continue;
		freed = 0;
		failed = !clean_case(j, jobs, v, spool, now, &freed);
		used -= freed < used ? freed : used;
	}
	free(list.list);
	return used > space ? used - space : 0;
}

bool retention_never_sends(const struct job_view *v)
{
	return v->state == JOB_COLLECTING || v->state == JOB_HELD || v->state == JOB_FAILED || v->state == JOB_CANCELLED ||
	       v->state == JOB_CLEANED;
}

/* Return the job of a folder of the outbox; NULL: the folder is left unchanged, for the journal has no such job, or it is delivered
 * and keeps its result. There may be as many of these as cases that retention has not cleaned: they are not read. */
static const struct job_view *owner_of(const struct jobs *jobs, const char *name)
{
	char *end;
	long long id;

	if (name[0] < '1' || name[0] > '9')
		return NULL;
	errno = 0;
	id = strtoll(name, &end, 10);
	return errno || *end || jobs_is_recorded_delivered(jobs, id) ? NULL : jobs_find(jobs, id);
}

static void remove_outbox(const char *spool, int64_t job)
{
	struct err err = {0};
	char path[400];

	if (folder_path(spool, "outbox", job, path, sizeof(path), &err) == 0 && access(path, F_OK) < 0 && errno == ENOENT)
		return;
	if (err.code || folder_remove(path, &err) < 0)
		log_event(LOG_WARNING, "outbox-not-removed", "job=%lld reason=%s", (long long)job, log_quote(err.msg));
	else
		log_event(LOG_INFO, "outbox-removed", "job=%lld", (long long)job);
}

void retention_clean_changed_outboxes(struct jobs *jobs, const char *spool, bool (*busy)(void *ctx, int64_t job), void *ctx)
{
	for (size_t i = 0; i < jobs->n_open; i++) {
		struct job_view *v = jobs->open[i];

		if (v->outbox_seq == v->seq || !retention_never_sends(v) || busy(ctx, v->id))
			continue;
		remove_outbox(spool, v->id);
		v->outbox_seq = v->seq;
	}
}

void retention_clean_outbox(const struct jobs *jobs, const char *spool, bool (*busy)(void *ctx, int64_t job), void *ctx)
{
	char path[400];
	struct dirent *e;
	DIR *dir;

	if (snprintf(path, sizeof(path), "%s/outbox", spool) >= (int)sizeof(path))
		return;
	dir = opendir(path);
	if (!dir)
		return; /* the outbox is created with the spool; a process that needs it reports the error */
	while ((e = readdir(dir))) {
		const struct job_view *v = owner_of(jobs, e->d_name);

		if (v && retention_never_sends(v) && !busy(ctx, v->id))
			remove_outbox(spool, v->id);
	}
	closedir(dir);
}
