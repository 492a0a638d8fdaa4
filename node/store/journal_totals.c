/* journal_totals.c - sums over the whole journal, for metrics. Rows are never removed and are numbered in order, so a sum is kept
 * by adding what lies behind the last row that is in it. */
#include <stddef.h>

#include "node/store/journal_internal.h"

/* Each row of a statement with one parameter. */
static int walk(struct journal *j, const char *what, int64_t after, void (*each)(void *ctx, sqlite3_stmt *s), void *ctx,
		struct err *err)
{
	sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(j->db, what, -1, &s, NULL), ret = 0;

	if (rc != SQLITE_OK)
		return journal_fail(j, rc, "add up", err);
	sqlite3_bind_int64(s, 1, after);
	while ((rc = sqlite3_step(s)) == SQLITE_ROW)
		each(ctx, s);
	if (rc != SQLITE_DONE)
		ret = journal_fail(j, rc, "add up", err);
	sqlite3_finalize(s);
	return ret;
}

static void add_instances(void *ctx, sqlite3_stmt *s)
{
	struct journal_totals *t = ctx;

	t->instances += (uint64_t)sqlite3_column_int64(s, 0);
	t->bytes += (uint64_t)sqlite3_column_int64(s, 1);
	if (sqlite3_column_int64(s, 2) > t->last_instance)
		t->last_instance = sqlite3_column_int64(s, 2);
}

static void add_classified(void *ctx, sqlite3_stmt *s)
{
	struct journal_totals *t = ctx;
	int64_t kind = sqlite3_column_int64(s, 0);

	if (kind > 0 && kind <= CLASSIFIED_CONFLICT)
		t->classified[kind] += (uint64_t)sqlite3_column_int64(s, 1);
	if (sqlite3_column_int64(s, 2) > t->last_classified)
		t->last_classified = sqlite3_column_int64(s, 2);
}

int journal_add_totals(struct journal *j, struct journal_totals *totals, struct err *err)
{
	struct journal_totals sum = *totals;
	int ret = walk(j, "SELECT COUNT(*), TOTAL(bytes), MAX(id) FROM instance WHERE id>?1", sum.last_instance, add_instances,
		       &sum, err);

	if (ret == 0)
		ret = walk(j, "SELECT kind, COUNT(*), MAX(instance) FROM classification WHERE instance>?1 GROUP BY kind",
			   sum.last_classified, add_classified, &sum, err);
	if (ret == 0)
		*totals = sum;
	return ret;
}

static void read_count(void *ctx, sqlite3_stmt *s)
{
	*(uint64_t *)ctx = (uint64_t)sqlite3_column_int64(s, 0);
}

int journal_count_unindexed(struct journal *j, uint64_t *ret_n, struct err *err)
{
	return walk(j, "SELECT COUNT(*) FROM instance WHERE id>(SELECT COALESCE(MAX(instance),0) FROM classification) AND ?1=0",
		    0, read_count, ret_n, err);
}
