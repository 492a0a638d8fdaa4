/* SPDX-License-Identifier: Apache-2.0 */
#include "node/jobs/journal_retention.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/base/list_grow.h"
#include "node/base/log.h"
#include "node/jobs/jobs_settled.h"

#define DAY 86400.0

static bool of_case(const struct job_view *v, const struct job_view *other)
{
	return !strcmp(v->key, other->key);
}

bool journal_retention_may_delete(const struct jobs *jobs, const struct job_view *v, int days, double now)
{
	if (days <= 0 || !v->key[0] || v->state != JOB_CLEANED || now - v->changed < days * DAY)
		return false;
	for (const struct job_view *o = jobs_of_study(jobs, v->key); o; o = jobs_before_in_study(o))
		if (of_case(v, o) && (o->state != JOB_CLEANED || now - o->changed < days * DAY))
			return false;
	return true;
}

/* Return true if the job still has a folder in the spool. Only the journal relates its files to the case, so the rows must stay.
 */
static bool has_folder(const char *spool, int64_t job)
{
	static const char *const in[] = {"outbox", "work"};
	char path[400];

	for (size_t i = 0; i < sizeof(in) / sizeof(in[0]); i++)
		if (snprintf(path, sizeof(path), "%s/%s/%lld", spool, in[i], (long long)job) >= (int)sizeof(path) ||
		    access(path, F_OK) == 0 || errno != ENOENT)
			return true;
	return false;
}

/* Return the ids of all jobs of the case; NULL: no memory. */
static int64_t *jobs_of_case(const struct jobs *jobs, const struct job_view *v, size_t *ret_n)
{
	int64_t *ids = NULL;
	size_t n = 0, room = 0;

	for (const struct job_view *o = jobs_of_study(jobs, v->key); o; o = jobs_before_in_study(o)) {
		if (!of_case(v, o))
			continue;
		if (!list_grow(&ids, n, &room, sizeof(ids[0]))) {
			free(ids);
			ids = NULL;
			break;
		}
		ids[n++] = o->id;
	}
	*ret_n = n;
	return ids;
}

/* Delete the rows of a case. 1: deleted; 0: not possible now; negative: the journal failed. */
static int forget_case(struct journal *j, struct jobs *jobs, const struct job_view *v, const char *spool, size_t *ret_jobs)
{
	struct err err = {0};
	size_t n;
	int64_t *ids = jobs_of_case(jobs, v, &n);
	bool left = false;
	int ret = 0;

	for (size_t i = 0; ids && i < n; i++)
		left = left || has_folder(spool, ids[i]);
	if (ids && !left && jobs_whole(jobs, v, &err) == 0) {
		ret = journal_delete_case(j, ids, n, &err);
		for (size_t i = 0; ret == 0 && i < n; i++)
			jobs_remove(jobs, ids[i]);
		if (ret == 0)
			*ret_jobs += n;
		if (ret < 0 && ret != -ESTALE)
			log_event(LOG_ERR, "journal-not-compacted", "reason=%s", log_quote(err.msg));
		ret = ret == 0 ? 1 : ret == -ESTALE ? 0 : ret;
	}
	free(ids);
	return ret;
}

size_t journal_retention_compact(struct journal *j, struct jobs *jobs, const char *spool, int days, double now)
{
	struct jobs_numbers all = {0};
	struct err err = {0};
	size_t cases = 0, forgotten = 0;
	int ret = days > 0 ? jobs_in_state(jobs, JOB_CLEANED, now - days * DAY + 1, &all, &err) : 0;

	if (ret < 0)
		log_event(LOG_ERR, "journal-not-compacted", "reason=%s", log_quote(err.msg));
	for (size_t i = 0; ret >= 0 && i < all.n && cases < JOURNAL_RETENTION_CASES_MAX; i++) {
		const struct job_view *v = jobs_find(jobs, all.list[i]);

		ret = v && journal_retention_may_delete(jobs, v, days, now) ? forget_case(j, jobs, v, spool, &forgotten) : 0;
		cases += ret > 0;
	}
	free(all.list);
	if (cases > 0)
		log_event(LOG_INFO, "journal-compacted", "cases=%zu jobs=%zu", cases, forgotten);
	return cases;
}

size_t journal_retention_delete_unassigned(struct journal *j, int days, double now)
{
	struct err err = {0};
	int n = days > 0 ? journal_delete_unassigned(j, now - days * DAY, &err) : 0;

	if (n < 0)
		log_event(LOG_ERR, "journal-not-compacted", "reason=%s", log_quote(err.msg));
	if (n > 0)
		log_event(LOG_INFO, "journal-compacted", "instances=%d", n);
	return n > 0 ? (size_t)n : 0;
}
