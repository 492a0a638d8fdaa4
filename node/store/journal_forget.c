/* SPDX-License-Identifier: Apache-2.0 */
/* journal_delete_case.c - the only functions that delete rows: those of a case of which all jobs were cleaned long ago, and those
 * of unassigned instances (ignored, refused, conflict) that were removed long ago.
 *
 * - All rows of a case are deleted in one transaction, in which each job is replayed again: a reader sees all rows of a job or
 * none, and if another process has appended an event to one of the jobs meanwhile, no row is deleted.
 * - An instance's row is deleted with the last job that it is a member of, and only if retention has removed its file; its
 *   classification is deleted with it, because an instance without one would wait for the indexer. Numbers are not used again
 * (AUTOINCREMENT).
 * - A companion is deleted like an unassigned instance, when the events of all jobs that had it are deleted.
 * - The index classification_unassigned contains only the classifications of unassigned instances.
 */
#include <errno.h>

#include "node/store/journal_internal.h"

/* ?1: the job. Selects its members; works only while its events exist. */
#define MEMBERS "(SELECT instance FROM event WHERE job=?1 AND name='instance')"
#define GONE " AND NOT EXISTS (SELECT 1 FROM instance i WHERE i.id=instance)"

static const char *const case_steps[] = {
	"DELETE FROM instance WHERE id IN " MEMBERS " AND id IN (SELECT r.instance FROM removal r)",
	"DELETE FROM classification WHERE instance IN " MEMBERS GONE,
	"DELETE FROM removal WHERE instance IN " MEMBERS GONE,
	"DELETE FROM damage WHERE instance IN " MEMBERS GONE,
	"DELETE FROM result WHERE job=?1",
	"DELETE FROM job_key WHERE job=?1",
	"DELETE FROM event WHERE job=?1",
};

/* ?1: the instance. */
static const char *const unassigned_steps[] = {
	"DELETE FROM instance WHERE id=?1",
	"DELETE FROM classification WHERE instance=?1",
	"DELETE FROM removal WHERE instance=?1",
	"DELETE FROM damage WHERE instance=?1",
};
#define COUNT(steps) (sizeof(steps) / sizeof((steps)[0]))

static int run_for_each(struct journal *j, const char *what, const int64_t *ids, size_t n, struct err *err)
{
	sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(j->db, what, -1, &s, NULL), ret = 0;

	for (size_t i = 0; rc == SQLITE_OK && i < n; i++) {
		sqlite3_bind_int64(s, 1, ids[i]);
		rc = sqlite3_step(s) == SQLITE_DONE ? sqlite3_reset(s) : sqlite3_errcode(j->db);
	}
	if (rc != SQLITE_OK)
		ret = journal_fail(j, rc, "forget", err);
	sqlite3_finalize(s);
	return ret;
}

/* Execute each step for all ids before the next step: revisions share instances, so the instances of all jobs must be deleted
 * before the events of any job. */
static int run_steps(struct journal *j, const char *const *steps, size_t n_steps, const int64_t *ids, size_t n, struct err *err)
{
	int ret = 0;

	for (size_t k = 0; ret == 0 && k < n_steps; k++)
		ret = run_for_each(j, steps[k], ids, n, err);
	return ret;
}

int journal_delete_case(struct journal *j, const int64_t *jobs, size_t n, struct err *err)
{
	int ret = journal_execute(j, JOURNAL_BEGIN, "begin", err, NO_VALUES);

	for (size_t i = 0; ret == 0 && i < n; i++) {
		enum job_state state;

		ret = journal_job_state(j, jobs[i], &state, err);
		if (ret == 0 && state != JOB_CLEANED)
			ret = err_set(err, ESTALE, "job %lld is %s, not cleaned: its rows are not deleted", (long long)jobs[i],
				      job_state_name(state));
	}
	if (ret == 0)
		ret = run_steps(j, case_steps, COUNT(case_steps), jobs, n, err);
	return journal_end_transaction(j, ret, err);
}

/* List the unassigned instances that were removed before the time `before`, at most `max`. Return their number. */
static int list_gone(struct journal *j, double before, int64_t *ret_ids, int max, struct err *err)
{
	sqlite3_stmt *s = NULL;
	int n = 0, rc = sqlite3_prepare_v2(j->db,
					   "SELECT f.instance FROM classification f JOIN removal r ON r.instance=f.instance"
					   " WHERE f.kind<>1 AND r.time<?1 AND NOT EXISTS (SELECT 1 FROM event m"
					   " WHERE m.name='companion' AND m.instance=f.instance)"
					   " ORDER BY f.time, f.instance LIMIT ?2",
					   -1, &s, NULL);

	if (rc == SQLITE_OK) {
		sqlite3_bind_double(s, 1, before);
		sqlite3_bind_int(s, 2, max);
	}
	while (rc == SQLITE_OK || rc == SQLITE_ROW) {
		rc = sqlite3_step(s);
		if (rc == SQLITE_ROW && n < max)
			ret_ids[n++] = sqlite3_column_int64(s, 0);
	}
	if (rc != SQLITE_DONE)
		n = journal_fail(j, rc, "look for unassigned instances", err);
	sqlite3_finalize(s);
	return n;
}

int journal_delete_unassigned(struct journal *j, double before, struct err *err)
{
	int64_t ids[JOURNAL_UNASSIGNED_MAX];
	int n = 0, ret = journal_execute(j, JOURNAL_BEGIN, "begin", err, NO_VALUES);

	if (ret < 0)
		return ret;
	n = ret = list_gone(j, before, ids, JOURNAL_UNASSIGNED_MAX, err);
	if (n > 0 && j->settles) /* the counters keep what is deleted; those of a case were recorded when it settled */
		ret = journal_record_totals(j, err);
	if (n > 0 && ret >= 0)
		ret = run_steps(j, unassigned_steps, COUNT(unassigned_steps), ids, (size_t)n, err);
	ret = journal_end_transaction(j, ret < 0 ? ret : 0, err);
	return ret < 0 ? ret : n;
}
