/* journal_unassigned.c - how instances are forgotten that belonged to no job (ignored, refused, another content under a UID that
 * is there) and were removed long ago. Of those that belong to jobs see journal_forget.c.
 *
 * An instance and its classification go together, so that none is ever without a classification that had one: what has none waits
 * for the indexer. The index classification_unassigned holds these classifications alone.
 */
#include <stddef.h>

#include "node/store/journal_internal.h"

/* The numbers of those that were removed before then: at most `max`; answers how many. */
static int list_gone(struct journal *j, double before, int64_t *ret_ids, int max, struct err *err)
{
	sqlite3_stmt *s = NULL;
	int n = 0, rc = sqlite3_prepare_v2(j->db,
					   "SELECT f.instance FROM classification f JOIN removal r ON r.instance=f.instance"
					   " WHERE f.kind<>1 AND r.time<?1 ORDER BY f.time, f.instance LIMIT ?2",
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
		n = journal_fail(j, rc, "look for what belonged to no case", err);
	sqlite3_finalize(s);
	return n;
}

static int run_for_each(struct journal *j, const char *what, const int64_t *ids, int n, struct err *err)
{
	sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(j->db, what, -1, &s, NULL), ret = 0;

	for (int i = 0; rc == SQLITE_OK && i < n; i++) {
		sqlite3_bind_int64(s, 1, ids[i]);
		rc = sqlite3_step(s) == SQLITE_DONE ? sqlite3_reset(s) : sqlite3_errcode(j->db);
	}
	if (rc != SQLITE_OK)
		ret = journal_fail(j, rc, "forget what belonged to no case", err);
	sqlite3_finalize(s);
	return ret;
}

int journal_forget_unassigned(struct journal *j, double before, struct err *err)
{
	static const char *const steps[] = {"DELETE FROM instance WHERE id=?1", "DELETE FROM classification WHERE instance=?1",
					    "DELETE FROM removal WHERE instance=?1", "DELETE FROM damage WHERE instance=?1"};
	int64_t ids[JOURNAL_UNASSIGNED_MAX];
	int n = 0, ret = journal_execute(j, JOURNAL_BEGIN, "begin", err);

	if (ret < 0)
		return ret;
	n = ret = list_gone(j, before, ids, JOURNAL_UNASSIGNED_MAX, err);
	for (size_t k = 0; ret >= 0 && n > 0 && k < sizeof(steps) / sizeof(steps[0]); k++)
		ret = run_for_each(j, steps[k], ids, n, err);
	ret = journal_end_transaction(j, ret < 0 ? ret : 0, err);
	return ret < 0 ? ret : n;
}
