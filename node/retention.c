#include "node/retention.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/event.h"
#include "node/folder.h"
#include "node/log.h"

#define DAY 86400.0

bool retention_may_clean(const struct jobs *jobs, const struct job_view *v, int days, double now)
{
	if (v->state != JOB_DELIVERED || v->n_sends == 0 || days <= 0)
		return false;
	for (size_t i = 0; i < jobs->n; i++) {
		const struct job_view *other = jobs->list[i];

		/* Revisions share instances; a job whose opening is damaged may be of any case. */
		if (strcmp(other->key, v->key) && other->key[0])
			continue;
		if (other->state == JOB_CLEANED)
			continue;
		if (other->state != JOB_DELIVERED || now - other->finished < days * DAY)
			return false;
	}
	return true;
}

struct members {
	size_t n, capacity;
	struct member {
		int64_t id;
		char file[128];
	} * list;
};

static int add_member(void *ctx, const struct instance_row *row, const char *detail)
{
	struct members *m = ctx;

	(void)detail;
	if (m->n == m->capacity) {
		size_t capacity = m->capacity ? 2 * m->capacity : 64;
		struct member *list = realloc(m->list, capacity * sizeof(list[0]));

		if (!list)
			return -ENOMEM;
		m->list = list;
		m->capacity = capacity;
	}
	m->list[m->n].id = row->id;
	snprintf(m->list[m->n].file, sizeof(m->list[m->n].file), "%s", row->file);
	m->n++;
	return 0;
}

static int clean(struct journal *j, const struct job_view *v, const char *spool, double now, struct err *err)
{
	struct members m = {0};
	char path[500];
	int ret = journal_members(j, v->id, add_member, &m, err);

	for (size_t i = 0; ret == 0 && i < m.n; i++)
		ret = journal_remove_instance(j, m.list[i].id, now, err);
	if (ret == 0)
		ret = event_append(j, v->id, EVENT_CLEANED, json_pack("{s:I}", "instances", (json_int_t)m.n), now, err);
	for (size_t i = 0; ret == 0 && i < m.n; i++)
		if (!strncmp(m.list[i].file, "instances/", 10) && !strchr(m.list[i].file + 10, '/')) {
			snprintf(path, sizeof(path), "%s/%s", spool, m.list[i].file);
			if (unlink(path) < 0 && errno != ENOENT)
				ret = err_set(err, errno, "cannot remove %s: %s", path, strerror(errno));
		}
	if (ret == 0)
		ret = folder_path(spool, "outbox", v->id, path, sizeof(path), err);
	if (ret == 0)
		ret = folder_remove(path, err);
	free(m.list);
	return ret;
}

void retention_clean(struct journal *j, const struct jobs *jobs, const char *spool, int days, double now)
{
	for (size_t i = 0; i < jobs->n; i++) {
		const struct job_view *v = jobs->list[i];
		struct err err = {0};

		if (!retention_may_clean(jobs, v, days, now))
			continue;
		/* The others of the case are still `delivered` in this view and may go too. */
		if (clean(j, v, spool, now, &err) < 0) {
			log_event(LOG_ERR, "retention-failed", "job=%lld reason=%s", (long long)v->id, log_quote(err.msg));
			return;
		}
	}
}

bool retention_outbox_idle(const struct job_view *v)
{
	return v->state == JOB_COLLECTING || v->state == JOB_HELD || v->state == JOB_FAILED || v->state == JOB_CANCELLED ||
	       v->state == JOB_CLEANED;
}

/* The job that a folder of the outbox belongs to; NULL: none that the journal knows, it stays. */
static const struct job_view *owner(const struct jobs *jobs, const char *name)
{
	char *end;
	long long id;

	if (name[0] < '1' || name[0] > '9')
		return NULL;
	errno = 0;
	id = strtoll(name, &end, 10);
	return errno || *end ? NULL : jobs_find(jobs, id);
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
		return; /* made with the spool; who needs it will say so */
	while ((e = readdir(dir))) {
		const struct job_view *v = owner(jobs, e->d_name);
		struct err err = {0};

		if (!v || !retention_outbox_idle(v) || busy(ctx, v->id))
			continue;
		if (folder_path(spool, "outbox", v->id, path, sizeof(path), &err) < 0 || folder_remove(path, &err) < 0)
			log_event(LOG_WARNING, "outbox-left", "job=%lld reason=%s", (long long)v->id, log_quote(err.msg));
		else
			log_event(LOG_INFO, "outbox-removed", "job=%lld", (long long)v->id);
	}
	closedir(dir);
}
