/* journal_damage.c - instances whose files are not what was received: found by who read them, over when they came again.
 *
 * - The mark changes no job: the worker that sets it holds the job in an event of its own. It tells the receiver that the same
 *   object, sent again, is to take the file's place, and the manager when nothing of a held case is damaged any more.
 * - A mark too many costs nothing: the next reader takes it away, or sets it again.
 */
#include <stddef.h>

#include "node/store/journal_internal.h"

static void read_count(void *ctx, sqlite3_stmt *s)
{
	*(int64_t *)ctx = sqlite3_column_int64(s, 0);
}

/* One statement with parameters ?1 (a number) and perhaps ?2 (a time). */
static int run(struct journal *j, const char *what, int64_t number, double now, int64_t *ret_count, struct err *err)
{
	sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(j->db, what, -1, &s, NULL), ret;

	if (rc != SQLITE_OK)
		return journal_fail(j, rc, "damaged instances", err);
	sqlite3_bind_int64(s, 1, number);
	if (sqlite3_bind_parameter_count(s) > 1)
		sqlite3_bind_double(s, 2, now);
	ret = journal_step(j, s, "damaged instances", ret_count ? read_count : NULL, ret_count, err);
	sqlite3_finalize(s);
	return ret < 0 ? ret : 0;
}

int journal_mark_damaged(struct journal *j, int64_t instance, double now, struct err *err)
{
	return run(j, "INSERT OR IGNORE INTO damage(instance, time) VALUES(?1, ?2)", instance, now, NULL, err);
}

int journal_mark_intact(struct journal *j, int64_t instance, struct err *err)
{
	return run(j, "DELETE FROM damage WHERE instance=?1", instance, 0, NULL, err);
}

int journal_is_damaged(struct journal *j, int64_t instance, struct err *err)
{
	int64_t n = 0;
	int ret = run(j, "SELECT COUNT(*) FROM damage WHERE instance=?1", instance, 0, &n, err);

	return ret < 0 ? ret : n > 0;
}

int64_t journal_count_damaged(struct journal *j, int64_t job, struct err *err)
{
	int64_t n = 0;
	int ret = run(j,
		      "SELECT COUNT(*) FROM damage WHERE instance IN"
		      " (SELECT instance FROM event WHERE job=?1 AND name='instance')",
		      job, 0, &n, err);

	return ret < 0 ? ret : n;
}
