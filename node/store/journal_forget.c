/* journal_forget.c - the one place where events are removed: those of a case whose every job was cleaned long ago.
 *
 * - All of the case in one transaction, in which each job is replayed once more: a reader sees a job whole or not at all, and
 *   what somebody did to one of them meanwhile keeps the case.
 * - An instance's row goes with the last job that names it, and only where retention has removed its file; with it its
 *   classification, so that no instance is ever without one that had one. Numbers are not given again (AUTOINCREMENT).
 */
#include <errno.h>

#include "node/store/journal_internal.h"

/* ?1: the job. Its members, before its events are gone. */
#define MEMBERS "(SELECT instance FROM event WHERE job=?1 AND name='instance')"
#define GONE " AND NOT EXISTS (SELECT 1 FROM instance i WHERE i.id=instance)"

static const char *const steps[] = {
	"DELETE FROM instance WHERE id IN " MEMBERS " AND id IN (SELECT r.instance FROM removal r)",
	"DELETE FROM classification WHERE instance IN " MEMBERS GONE,
	"DELETE FROM removal WHERE instance IN " MEMBERS GONE,
	"DELETE FROM damage WHERE instance IN " MEMBERS GONE,
	"DELETE FROM event WHERE job=?1",
};

static int run_step(struct journal *j, const char *what, int64_t job, struct err *err)
{
	sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(j->db, what, -1, &s, NULL), ret = 0;

	if (rc == SQLITE_OK) {
		sqlite3_bind_int64(s, 1, job);
		rc = sqlite3_step(s);
	}
	if (rc != SQLITE_DONE)
		ret = journal_fail(j, rc, "forget a case", err);
	sqlite3_finalize(s);
	return ret;
}

int journal_forget(struct journal *j, const int64_t *jobs, size_t n, struct err *err)
{
	int ret = journal_execute(j, JOURNAL_BEGIN, "begin", err);

	if (ret < 0)
		return ret;
	for (size_t i = 0; ret == 0 && i < n; i++) {
		enum job_state state;

		ret = journal_job_state(j, jobs[i], &state, err);
		if (ret == 0 && state != JOB_CLEANED)
			ret = err_set(err, ESTALE, "job %lld is %s: it cannot be forgotten", (long long)jobs[i],
				      job_state_name(state));
	}
	/* The instances of all jobs before the events of any: revisions share them. */
	for (size_t k = 0; ret == 0 && k < sizeof(steps) / sizeof(steps[0]); k++)
		for (size_t i = 0; ret == 0 && i < n; i++)
			ret = run_step(j, steps[k], jobs[i], err);
	return journal_end_transaction(j, ret, err);
}
