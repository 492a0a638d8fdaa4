/* SPDX-License-Identifier: Apache-2.0 */
/* journal_settled.c - which jobs a start must read, and what is asked about the others.
 *
 * - Each job with events is in the table `open_job` or in `settled_job`. Triggers move it to `open_job` with each row of `event` that
 *   is written, changed or deleted, in the same transaction, also when an earlier version of the program writes it.
 * - Only journal_settle() moves a job to `settled_job`, and only if its last event is the one that the caller has read. So a row of
 *   `settled_job` is about all events of its job. It holds nothing that the events do not: a job that has none costs a replay.
 * - A job that is in neither table would be lost: the manager looks for such jobs at its start (journal_open_unlisted()).
 * - A journal that lacks one of these tables or triggers gets all of them anew, with all jobs in `open_job`. Where that fails (full
 *   disk, a reader), all jobs count as open.
 */
#include "node/store/journal_internal.h"

#define OBJECTS 9
static const char objects[] =
	"SELECT COUNT(*) FROM sqlite_master WHERE name IN ('open_job', 'settled_job', 'settled_study', 'settled_series',"
	" 'settled_done', 'reached', 'event_opens', 'event_reopens', 'event_leaves')";

static const char tables[] =
	"DROP TABLE IF EXISTS open_job; DROP TABLE IF EXISTS settled_job; DROP TABLE IF EXISTS reached;"
	"DROP TRIGGER IF EXISTS event_opens; DROP TRIGGER IF EXISTS event_reopens; DROP TRIGGER IF EXISTS event_leaves;"
	"CREATE TABLE open_job(job INTEGER PRIMARY KEY);"
	"CREATE TABLE settled_job(job INTEGER PRIMARY KEY, seq INTEGER NOT NULL, version INTEGER NOT NULL, state INTEGER NOT NULL,"
	" study INTEGER NOT NULL, series INTEGER NOT NULL, done REAL NOT NULL);"
	"CREATE INDEX settled_study ON settled_job(study);"
	"CREATE INDEX settled_series ON settled_job(series);"
	"CREATE INDEX settled_done ON settled_job(state, done);"
	"CREATE TABLE reached(destination TEXT PRIMARY KEY, reached REAL NOT NULL, sent REAL NOT NULL) WITHOUT ROWID;"
	"CREATE TRIGGER event_opens AFTER INSERT ON event BEGIN DELETE FROM settled_job WHERE job=NEW.job;"
	" INSERT OR IGNORE INTO open_job SELECT NEW.job WHERE typeof(NEW.job)='integer'; END;"
	"CREATE TRIGGER event_reopens AFTER UPDATE ON event BEGIN DELETE FROM settled_job WHERE job IN (OLD.job, NEW.job);"
	" INSERT OR IGNORE INTO open_job SELECT NEW.job WHERE typeof(NEW.job)='integer'; END;"
	"CREATE TRIGGER event_leaves AFTER DELETE ON event BEGIN DELETE FROM settled_job WHERE job=OLD.job;"
	" DELETE FROM open_job WHERE job=OLD.job; INSERT OR IGNORE INTO open_job SELECT job FROM event WHERE job=OLD.job LIMIT 1; END;"
	"INSERT INTO open_job SELECT DISTINCT job FROM event WHERE typeof(job)='integer';";

static int count_objects(struct journal *j)
{
	int64_t n = 0;

	return journal_query_int(j, objects, &n, NULL) == 0 ? (int)n : -1;
}

void journal_settled_open(struct journal *j, bool write)
{
	j->settles = count_objects(j) == OBJECTS;
	if (j->settles || !write || journal_execute(j, JOURNAL_BEGIN, "begin", NULL, NO_VALUES) < 0)
		return;
	/* another process may have made them meanwhile */
	j->settles = count_objects(j) == OBJECTS || sqlite3_exec(j->db, tables, NULL, NULL, NULL) == SQLITE_OK;
	j->settles = journal_end_transaction(j, j->settles ? 0 : -1, NULL) == 0;
}

void journal_open_unlisted(struct journal *j)
{
	static const char unlisted[] =
		"WITH RECURSIVE each(job) AS (SELECT MIN(job) FROM event UNION ALL"
		" SELECT (SELECT MIN(job) FROM event WHERE job>each.job) FROM each WHERE job IS NOT NULL)"
		"INSERT OR IGNORE INTO open_job SELECT job FROM each WHERE typeof(job)='integer' AND NOT EXISTS"
		" (SELECT 1 FROM open_job o WHERE o.job=each.job) AND NOT EXISTS"
		" (SELECT 1 FROM settled_job s WHERE s.job=each.job AND s.seq="
		" (SELECT MAX(seq) FROM event e WHERE e.job=each.job))";

	if (j->settles) /* where that fails, as on a full disk, the next start tries again */
		(void)sqlite3_exec(j->db, unlisted, NULL, NULL, NULL);
}

static void read_settled(void *ctx, sqlite3_stmt *s)
{
	struct settled_row *row = ctx;

	*row = (struct settled_row){.job = sqlite3_column_int64(s, 0),
				    .seq = sqlite3_column_int64(s, 1),
				    .state = (enum job_state)sqlite3_column_int(s, 2),
				    .study = (uint64_t)sqlite3_column_int64(s, 3),
				    .series = (uint64_t)sqlite3_column_int64(s, 4),
				    .done = sqlite3_column_double(s, 5)};
}

int journal_find_settled(struct journal *j, int64_t job, struct settled_row *ret_row, struct err *err)
{
	return !j->settles ? 0
			   : journal_read(j, JOURNAL_FIND_SETTLED, "look for a settled job", read_settled, ret_row, err,
					  VALUES(NUMBER(job), NUMBER(JOURNAL_SETTLED_VERSION)));
}

struct job_reader {
	int (*each)(void *ctx, int64_t job);
	void *ctx;
};

static int read_job(void *ctx, sqlite3_stmt *s)
{
	const struct job_reader *r = ctx;

	return r->each(r->ctx, sqlite3_column_int64(s, 0));
}

static int walk_jobs(struct journal *j, const char *what, const struct journal_value *values, size_t n,
		     int (*each)(void *ctx, int64_t job), void *ctx, struct err *err)
{
	struct job_reader reader = {each, ctx};

	return journal_walk(j, what, "list jobs", values, n, read_job, &reader, err);
}

int journal_each_open(struct journal *j, int64_t after, int max, int (*each)(void *ctx, int64_t job), void *ctx, struct err *err)
{
	return walk_jobs(
		j,
		j->settles ? "SELECT job FROM open_job WHERE job>?1 UNION ALL SELECT job FROM settled_job WHERE job>?1 AND"
			     " version<>?3 ORDER BY job LIMIT ?2"
			   : "SELECT DISTINCT job FROM event WHERE job>?1 AND typeof(job)='integer' AND ?3 ORDER BY job LIMIT ?2",
		VALUES(NUMBER(after), NUMBER(max), NUMBER(JOURNAL_SETTLED_VERSION)), each, ctx, err);
}

int journal_each_settled_of(struct journal *j, enum settled_relation relation, uint64_t hash, int (*each)(void *ctx, int64_t job),
			    void *ctx, struct err *err)
{
	if (!j->settles)
		return 0;
	return walk_jobs(j,
			 relation == SETTLED_STUDY ? "SELECT job FROM settled_job WHERE study=?1 AND version=?2"
						   : "SELECT job FROM settled_job WHERE series=?1 AND version=?2",
			 VALUES(NUMBER((int64_t)hash), NUMBER(JOURNAL_SETTLED_VERSION)), each, ctx, err);
}

struct settled_reader {
	int (*each)(void *ctx, const struct settled_row *row);
	void *ctx;
};

static int read_done(void *ctx, sqlite3_stmt *s)
{
	const struct settled_reader *r = ctx;
	struct settled_row row;

	read_settled(&row, s);
	return r->each(r->ctx, &row);
}

int journal_each_settled_done(struct journal *j, enum job_state state, double until,
			      int (*each)(void *ctx, const struct settled_row *row), void *ctx, struct err *err)
{
	struct settled_reader reader = {each, ctx};

	return !j->settles ? 0
			   : journal_walk(j, SETTLED_ROWS "state=?1 AND done<=?2 AND version=?3", "list jobs",
					  VALUES(NUMBER(state), REAL(until), NUMBER(JOURNAL_SETTLED_VERSION)), read_done, &reader,
					  err);
}

int journal_each_settled_newest(struct journal *j, int max, int (*each)(void *ctx, int64_t job), void *ctx, struct err *err)
{
	if (!j->settles)
		return 0;
	return walk_jobs(j, "SELECT job FROM settled_job WHERE version=?1 ORDER BY job DESC LIMIT ?2",
			 VALUES(NUMBER(JOURNAL_SETTLED_VERSION), NUMBER(max)), each, ctx, err);
}

int journal_count_settled(struct journal *j, uint64_t *ret_n, struct err *err)
{
	int64_t n = 0;
	int ret = j->settles ? journal_query_int(j, "SELECT COUNT(*) FROM settled_job", &n, err) : 0;

	*ret_n = (uint64_t)n;
	return ret;
}

/* ---- record ---- */

static int settle_one(struct journal *j, const struct settled_row *row, struct err *err)
{
	int64_t last = 0;
	int ret = journal_read(j, JOURNAL_LAST_OF_JOB, "look for the last event", journal_read_int64, &last, err,
			       VALUES(NUMBER(row->job)));

	if (ret < 0 || last != row->seq)
		return ret < 0 ? ret : 0; /* it has changed: it stays open */
	ret = journal_execute(j, JOURNAL_SETTLE, "record a settled job", err,
			      VALUES(NUMBER(row->job), NUMBER(row->seq), NUMBER(JOURNAL_SETTLED_VERSION), NUMBER(row->state),
				     NUMBER((int64_t)row->study), NUMBER((int64_t)row->series), REAL(row->done)));
	return ret < 0 ? ret : journal_execute(j, JOURNAL_SETTLE_OPEN, "record a settled job", err, VALUES(NUMBER(row->job)));
}

int journal_settle(struct journal *j, const struct settled_row *rows, size_t n, const struct reached_row *reached,
		   size_t n_reached, double now, struct err *err)
{
	int ret;

	if (!j->settles)
		return 0;
	ret = journal_execute(j, JOURNAL_BEGIN, "begin", err, NO_VALUES);
	for (size_t i = 0; ret == 0 && i < n; i++)
		ret = settle_one(j, &rows[i], err);
	for (size_t i = 0; ret == 0 && i < n_reached; i++)
		ret = journal_execute(j, JOURNAL_REACHED, "record a destination", err,
				      VALUES(TEXT(reached[i].destination), REAL(reached[i].reached), REAL(reached[i].sent)));
	if (ret == 0)
		ret = journal_execute(j, JOURNAL_SETTLED_CLOCK, "set the times of settled jobs", err,
				      VALUES(REAL(now), NUMBER(JOB_DELIVERED), NUMBER(JOB_CLEANED)));
	ret = journal_end_transaction(j, ret, err);
	return ret < 0 ? ret : 1;
}

struct reached_reader {
	int (*each)(void *ctx, const struct reached_row *row);
	void *ctx;
};

static int read_reached(void *ctx, sqlite3_stmt *s)
{
	const struct reached_reader *r = ctx;
	const char *name = (const char *)sqlite3_column_text(s, 0);
	struct reached_row row = {name ? name : "", sqlite3_column_double(s, 1), sqlite3_column_double(s, 2)};

	return r->each(r->ctx, &row);
}

int journal_each_reached(struct journal *j, int (*each)(void *ctx, const struct reached_row *row), void *ctx, struct err *err)
{
	struct reached_reader reader = {each, ctx};

	return !j->settles ? 0
			   : journal_walk(j, "SELECT destination, reached, sent FROM reached", "list destinations", NO_VALUES,
					  read_reached, &reader, err);
}
