/* SPDX-License-Identifier: Apache-2.0 */
/* journal_damage.c - marks for instances whose files differ from the received bytes: set by the process that finds the
 * difference, removed when the object is received again.
 *
 * - The mark does not change a job: the worker that sets it appends a separate event to hold the job. The mark tells the receiver
 *   to replace the file when the same object is sent again, and the manager when a held case no longer has a damaged file.
 * - An unneeded mark does no harm: the next reader of the file removes it, or sets it again.
 */
#include <stddef.h>

#include "node/store/journal_internal.h"

/* Execute one statement with parameter ?1 (a number) and, if it has one, ?2 (a time). */
static int run_statement(struct journal *j, const char *what, int64_t number, double now, int64_t *ret_count, struct err *err)
{
	sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(j->db, what, -1, &s, NULL), ret;

	if (rc != SQLITE_OK)
		return journal_fail(j, rc, "damaged instances", err);
	sqlite3_bind_int64(s, 1, number);
	if (sqlite3_bind_parameter_count(s) > 1)
		sqlite3_bind_double(s, 2, now);
	ret = journal_step(j, s, "damaged instances", ret_count ? journal_read_int64 : NULL, ret_count, err);
	sqlite3_finalize(s);
	return ret < 0 ? ret : 0;
}

int journal_mark_damaged(struct journal *j, int64_t instance, double now, struct err *err)
{
	return run_statement(j, "INSERT OR IGNORE INTO damage(instance, time) VALUES(?1, ?2)", instance, now, NULL, err);
}

int journal_mark_intact(struct journal *j, int64_t instance, struct err *err)
{
	return run_statement(j, "DELETE FROM damage WHERE instance=?1", instance, 0, NULL, err);
}

int journal_is_damaged(struct journal *j, int64_t instance, struct err *err)
{
	int64_t n = 0;
	int ret = run_statement(j, "SELECT COUNT(*) FROM damage WHERE instance=?1", instance, 0, &n, err);

	return ret < 0 ? ret : n > 0;
}

int64_t journal_count_damaged(struct journal *j, int64_t job, struct err *err)
{
	int64_t n = 0;
	int ret = run_statement(j,
				"SELECT COUNT(*) FROM damage WHERE instance IN"
				" (SELECT instance FROM event WHERE job=?1 AND name IN ('instance', 'companion'))",
				job, 0, &n, err);

	return ret < 0 ? ret : n;
}
