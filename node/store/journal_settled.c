/* SPDX-License-Identifier: Apache-2.0 */
/* journal_settled.c - which jobs a start must read, and what is asked about the others.
 *
 * - Each job with events is in the table `open_job` or in `settled_job`. Triggers move it to `open_job` with each row of `event` that
 *   is written, changed or deleted, in the same transaction, also when an earlier version of the program writes it.
 * - Only journal_settle_job() moves a job to `settled_job`, and only if its last event is the one that the caller has read. So a row of
 *   `settled_job` is about all events of its job. It holds nothing that the events do not: a job that has none costs a replay.
 * - Each row has a digest of its columns. One whose digest is wrong counts as none: a replay of one job costs less than a decision on
 *   wrong data, and a sample would not find a single wrong row.
 * - A job that is in neither table would be lost: the manager looks for such jobs, and for wrong rows, at its start
 *   (journal_open_unlisted()).
 * - Counters of events are in `counter`, once per event: `counted` says until which event of each job they go. A job's events are
 *   counted when it settles, in that transaction, and stay counted when its rows are deleted. So a process that shows counters adds
 *   those of the open jobs to them. An earlier version of the program changes neither table.
 * - A journal that lacks one of these tables or triggers gets all of them anew, with all jobs in `open_job`; the counters only if one
 *   of their tables is missing. Where that fails (full disk, a reader), all jobs count as open.
 */
#include "node/store/journal_internal.h"

#define N_SETTLED 12
static const char count_settled[] =
	"SELECT COUNT(*) FROM sqlite_master WHERE name IN ('open_job', 'settled_study', 'settled_series',"
	" 'settled_done', 'settled_finished', 'settled_warned', 'settled_patient', 'reached', 'event_opens', 'event_reopens',"
	" 'event_leaves') OR name='settled_job' AND sql LIKE '%mark%'";

static const char settled[] =
	"DROP TABLE IF EXISTS open_job; DROP TABLE IF EXISTS settled_job; DROP TABLE IF EXISTS reached;"
	"DROP TRIGGER IF EXISTS event_opens; DROP TRIGGER IF EXISTS event_reopens; DROP TRIGGER IF EXISTS event_leaves;"
	"CREATE TABLE open_job(job INTEGER PRIMARY KEY);"
	/* the columns without a default are those that an earlier version writes */
	"CREATE TABLE settled_job(job INTEGER PRIMARY KEY, seq INTEGER NOT NULL, version INTEGER NOT NULL, state INTEGER NOT NULL,"
	" study INTEGER NOT NULL, series INTEGER NOT NULL, done REAL NOT NULL, patient INTEGER NOT NULL DEFAULT 0,"
	" opened REAL NOT NULL DEFAULT 0, finished REAL NOT NULL DEFAULT 0, warnings INTEGER NOT NULL DEFAULT 0,"
	" words TEXT NOT NULL DEFAULT '', mark INTEGER NOT NULL DEFAULT 0);"
	"CREATE INDEX settled_study ON settled_job(study, version);"
	"CREATE INDEX settled_series ON settled_job(series);"
	"CREATE INDEX settled_done ON settled_job(state, done, version);"
	"CREATE INDEX settled_finished ON settled_job(finished);"
	"CREATE INDEX settled_warned ON settled_job(finished, warnings, version) WHERE warnings>0;"
	"CREATE INDEX settled_patient ON settled_job(patient) WHERE patient<>0;"
	"CREATE TABLE reached(destination TEXT PRIMARY KEY, reached REAL NOT NULL, sent REAL NOT NULL) WITHOUT ROWID;"
	"CREATE TRIGGER event_opens AFTER INSERT ON event BEGIN DELETE FROM settled_job WHERE job=NEW.job;"
	" INSERT OR IGNORE INTO open_job SELECT NEW.job WHERE typeof(NEW.job)='integer'; END;"
	"CREATE TRIGGER event_reopens AFTER UPDATE ON event BEGIN DELETE FROM settled_job WHERE job IN (OLD.job, NEW.job);"
	" INSERT OR IGNORE INTO open_job SELECT NEW.job WHERE typeof(NEW.job)='integer'; END;"
	"CREATE TRIGGER event_leaves AFTER DELETE ON event BEGIN DELETE FROM settled_job WHERE job=OLD.job;"
	" DELETE FROM open_job WHERE job=OLD.job; INSERT OR IGNORE INTO open_job SELECT job FROM event WHERE job=OLD.job LIMIT 1; END;"
	"INSERT INTO open_job SELECT DISTINCT job FROM event WHERE typeof(job)='integer';";

#define N_COUNTERS 4
static const char count_counters[] =
	"SELECT COUNT(*) FROM sqlite_master WHERE name IN ('counter', 'counted', 'sender', 'event_forgotten')";

static const char counters[] =
	"DROP TABLE IF EXISTS counter; DROP TABLE IF EXISTS counted; DROP TABLE IF EXISTS sender;"
	"DROP TRIGGER IF EXISTS event_forgotten;"
	"CREATE TABLE counter(name TEXT PRIMARY KEY, n REAL NOT NULL) WITHOUT ROWID;"
	"CREATE TABLE counted(job INTEGER PRIMARY KEY, seq INTEGER NOT NULL);"
	"CREATE TABLE sender(calling TEXT PRIMARY KEY, host TEXT NOT NULL, last REAL NOT NULL, instances INTEGER NOT NULL,"
	" id INTEGER NOT NULL) WITHOUT ROWID;"
	"CREATE TRIGGER event_forgotten AFTER DELETE ON event WHEN OLD.name='opened' BEGIN DELETE FROM counted WHERE job=OLD.job; END;";

/* The digest of the arguments, in their order: 64-bit FNV-1a. */
static void settled_mark(sqlite3_context *context, int n, sqlite3_value **values)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (int i = 0; i < n; i++) {
		const unsigned char *bytes;
		int64_t number = sqlite3_value_int64(values[i]);
		double real = sqlite3_value_double(values[i]);
		size_t size = sizeof(number);

		switch (sqlite3_value_type(values[i])) {
		case SQLITE_INTEGER:
			bytes = (const unsigned char *)&number;
			break;
		case SQLITE_FLOAT:
			bytes = (const unsigned char *)&real;
			break;
		default:
			bytes = sqlite3_value_text(values[i]);
			size = bytes ? (size_t)sqlite3_value_bytes(values[i]) : 0;
		}
		for (size_t k = 0; k < size; k++)
			hash = (hash ^ bytes[k]) * 0x100000001b3;
		hash = (hash ^ 0xff) * 0x100000001b3; /* their limits count */
	}
	sqlite3_result_int64(context, (int64_t)hash);
}

static bool has_tables(struct journal *j)
{
	int64_t of_settled = 0, of_counters = 0;

	return journal_query_int(j, count_settled, &of_settled, NULL) == 0 &&
	       journal_query_int(j, count_counters, &of_counters, NULL) == 0 && of_settled == N_SETTLED &&
	       of_counters == N_COUNTERS;
}

/* What is counted must be settled anew with its counters; what is settled may be made again beside them. */
static bool make_tables(struct journal *j)
{
	int64_t n = 0;

	if (has_tables(j)) /* another process has made them meanwhile */
		return true;
	return journal_query_int(j, count_counters, &n, NULL) == 0 &&
	       (n == N_COUNTERS || sqlite3_exec(j->db, counters, NULL, NULL, NULL) == SQLITE_OK) &&
	       sqlite3_exec(j->db, settled, NULL, NULL, NULL) == SQLITE_OK && has_tables(j);
}

void journal_settled_open(struct journal *j, bool write)
{
	int rc = sqlite3_create_function(j->db, "settled_mark", -1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, settled_mark, NULL,
					 NULL);

	j->settles = rc == SQLITE_OK && has_tables(j);
	if (rc != SQLITE_OK || j->settles || !write || journal_execute(j, JOURNAL_BEGIN, "begin", NULL, NO_VALUES) < 0)
		return;
	j->settles = make_tables(j);
	j->settles = journal_end_transaction(j, j->settles ? 0 : -1, NULL) == 0;
}

void journal_open_unlisted(struct journal *j)
{
	static const char unlisted[] =
		"WITH RECURSIVE each(job) AS (SELECT MIN(job) FROM event UNION ALL"
		" SELECT (SELECT MIN(job) FROM event WHERE job>each.job) FROM each WHERE job IS NOT NULL)"
		"INSERT OR IGNORE INTO open_job SELECT job FROM each WHERE typeof(job)='integer' AND NOT EXISTS"
		" (SELECT 1 FROM open_job o WHERE o.job=each.job) AND NOT EXISTS"
		" (SELECT 1 FROM settled_job s WHERE s.job=each.job AND s.mark=" SETTLED_MARK " AND s.seq="
		" (SELECT MAX(seq) FROM event e WHERE e.job=each.job));"
		"DELETE FROM settled_job WHERE job IN (SELECT job FROM open_job)";

	if (j->settles) /* where that fails, as on a full disk, the next start tries again */
		(void)sqlite3_exec(j->db, unlisted, NULL, NULL, NULL);
}

static void read_settled(void *ctx, sqlite3_stmt *s)
{
	const char *words = (const char *)sqlite3_column_text(s, 10);

	*(struct settled_row *)ctx = (struct settled_row){.job = sqlite3_column_int64(s, 0),
							  .seq = sqlite3_column_int64(s, 1),
							  .state = (enum job_state)sqlite3_column_int(s, 2),
							  .study = (uint64_t)sqlite3_column_int64(s, 3),
							  .series = (uint64_t)sqlite3_column_int64(s, 4),
							  .done = sqlite3_column_double(s, 5),
							  .patient = (uint64_t)sqlite3_column_int64(s, 6),
							  .opened = sqlite3_column_double(s, 7),
							  .finished = sqlite3_column_double(s, 8),
							  .warnings = (enum settled_warnings)sqlite3_column_int(s, 9),
							  .words = words};
}

static void read_found(void *ctx, sqlite3_stmt *s)
{
	read_settled(ctx, s);
	((struct settled_row *)ctx)->words = ""; /* valid in the statement only */
}

int journal_find_settled(struct journal *j, int64_t job, struct settled_row *ret_row, struct err *err)
{
	return !j->settles ? 0
			   : journal_read(j, JOURNAL_FIND_SETTLED, "look for a settled job", read_found, ret_row, err,
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
	static const char *const what[] = {
		[SETTLED_STUDY] = "SELECT job FROM settled_job WHERE study=?1 AND version=?2",
		[SETTLED_SERIES] = "SELECT job FROM settled_job WHERE series=?1 AND version=?2",
		[SETTLED_PATIENT] =
			"SELECT job FROM settled_job WHERE patient=?1 AND patient<>0 AND version=?2 ORDER BY job DESC LIMIT 240",
	};

	return !j->settles ? 0
			   : walk_jobs(j, what[relation], VALUES(NUMBER((int64_t)hash), NUMBER(JOURNAL_SETTLED_VERSION)), each,
				       ctx, err);
}

struct settled_reader {
	int (*each)(void *ctx, const struct settled_row *row);
	void *ctx;
};

static int read_row(void *ctx, sqlite3_stmt *s)
{
	const struct settled_reader *r = ctx;
	struct settled_row row;

	read_settled(&row, s);
	return r->each(r->ctx, &row);
}

static int walk_settled(struct journal *j, const char *what, const struct journal_value *values, size_t n,
			int (*each)(void *ctx, const struct settled_row *row), void *ctx, struct err *err)
{
	struct settled_reader reader = {each, ctx};

	return !j->settles ? 0 : journal_walk(j, what, "list jobs", values, n, read_row, &reader, err);
}

int journal_each_settled_done(struct journal *j, enum job_state state, double until,
			      int (*each)(void *ctx, const struct settled_row *row), void *ctx, struct err *err)
{
	return walk_settled(j, SETTLED_ROWS "state=?1 AND done<=?2 AND version=?3",
			    VALUES(NUMBER(state), REAL(until), NUMBER(JOURNAL_SETTLED_VERSION)), each, ctx, err);
}

int journal_each_settled(struct journal *j, enum settled_order order, int (*each)(void *ctx, const struct settled_row *row),
			 void *ctx, struct err *err)
{
	static const char *const what[] = {
		[SETTLED_BY_STUDY] =
			"SELECT job, 0, 0, study, 0, 0, 0, 0, 0, 0, NULL FROM settled_job WHERE version=?1 ORDER BY study",
		[SETTLED_BY_JOB] = SETTLED_ROWS "version=?1 ORDER BY job DESC",
		[SETTLED_BY_END] = SETTLED_ROWS "version=?1 ORDER BY finished DESC",
		[SETTLED_WITH_WARNINGS] = SETTLED_ROWS "warnings>0 AND version=?1 ORDER BY finished DESC",
	};

	return walk_settled(j, what[order], VALUES(NUMBER(JOURNAL_SETTLED_VERSION)), each, ctx, err);
}

int journal_each_result_job(struct journal *j, const char *sop_instance, int (*each)(void *ctx, int64_t job), void *ctx,
			    struct err *err)
{
	return walk_jobs(j, "SELECT job FROM result WHERE sop_instance=?1", VALUES(TEXT(sop_instance)), each, ctx, err);
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

static void read_sums(void *ctx, sqlite3_stmt *s)
{
	*(struct settled_sums *)ctx = (struct settled_sums){.delivered = (uint64_t)sqlite3_column_int64(s, 0),
							    .cleaned = (uint64_t)sqlite3_column_int64(s, 1),
							    .warned = (uint64_t)sqlite3_column_int64(s, 2),
							    .warned_since = (uint64_t)sqlite3_column_int64(s, 3),
							    .studies = (uint64_t)sqlite3_column_int64(s, 4)};
}

int journal_sum_settled(struct journal *j, double since, struct settled_sums *ret, struct err *err)
{
	int rc;

	*ret = (struct settled_sums){0};
	rc = !j->settles ? 0
			 : journal_read(j, JOURNAL_SUM_SETTLED, "count the settled jobs", read_sums, ret, err,
					VALUES(REAL(since), NUMBER(JOURNAL_SETTLED_VERSION), NUMBER(JOB_DELIVERED),
					       NUMBER(JOB_CLEANED), NUMBER(SETTLED_WARNED)));
	return rc < 0 ? rc : 0;
}

/* ---- record ---- */

int journal_settle_begin(struct journal *j, struct err *err)
{
	int ret = j->settles ? journal_execute(j, JOURNAL_BEGIN, "begin", err, NO_VALUES) : 0;

	return ret < 0 ? ret : j->settles;
}

int journal_settle_job(struct journal *j, const struct settled_row *row, int64_t *ret_counted, struct err *err)
{
	int64_t last = 0;
	int ret = journal_read(j, JOURNAL_LAST_OF_JOB, "look for the last event", journal_read_int64, &last, err,
			       VALUES(NUMBER(row->job)));

	if (ret < 0 || last != row->seq)
		return ret < 0 ? ret : 0; /* it has changed: it stays open */
	ret = journal_find_counted(j, row->job, ret_counted, err);
	if (ret == 0)
		ret = journal_execute(j, JOURNAL_SETTLE, "record a settled job", err,
				      VALUES(NUMBER(row->job), NUMBER(row->seq), NUMBER(JOURNAL_SETTLED_VERSION),
					     NUMBER(row->state), NUMBER((int64_t)row->study), NUMBER((int64_t)row->series),
					     REAL(row->done), NUMBER((int64_t)row->patient), REAL(row->opened),
					     REAL(row->finished), NUMBER(row->warnings), TEXT(row->words)));
	if (ret == 0)
		ret = journal_execute(j, JOURNAL_SETTLE_OPEN, "record a settled job", err, VALUES(NUMBER(row->job)));
	if (ret == 0)
		ret = journal_execute(j, JOURNAL_SETTLE_COUNTED, "record what is counted", err,
				      VALUES(NUMBER(row->job), NUMBER(row->seq)));
	return ret < 0 ? ret : 1;
}

int journal_settle_reached(struct journal *j, const struct reached_row *row, struct err *err)
{
	return journal_execute(j, JOURNAL_REACHED, "record a destination", err,
			       VALUES(TEXT(row->destination), REAL(row->reached), REAL(row->sent)));
}

int journal_settle_end(struct journal *j, int ret, double now, struct err *err)
{
	bool recorded = ret > 0;

	if (ret >= 0)
		ret = journal_execute(j, JOURNAL_SETTLED_CLOCK, "set the times of settled jobs", err,
				      VALUES(REAL(now), NUMBER(JOB_DELIVERED), NUMBER(JOB_CLEANED)));
	if (ret >= 0 && recorded)
		ret = journal_record_totals(j, err);
	ret = journal_end_transaction(j, ret, err);
	return ret < 0 ? ret : 0;
}

/* ---- counters ---- */

int journal_find_counted(struct journal *j, int64_t job, int64_t *ret_seq, struct err *err)
{
	int ret = 0;

	*ret_seq = 0;
	if (j->settles)
		ret = journal_read(j, JOURNAL_FIND_COUNTED, "look for what is counted", journal_read_int64, ret_seq, err,
				   VALUES(NUMBER(job)));
	return ret < 0 ? ret : 0;
}

struct counter_reader {
	int (*each)(void *ctx, const char *name, double n);
	void *ctx;
};

static int read_counter(void *ctx, sqlite3_stmt *s)
{
	const struct counter_reader *r = ctx;
	const char *name = (const char *)sqlite3_column_text(s, 0);

	return name ? r->each(r->ctx, name, sqlite3_column_double(s, 1)) : 0;
}

int journal_each_counter(struct journal *j, int (*each)(void *ctx, const char *name, double n), void *ctx, struct err *err)
{
	struct counter_reader reader = {each, ctx};

	return !j->settles ? 0
			   : journal_walk(j, "SELECT name, n FROM counter", "read the counters", NO_VALUES, read_counter, &reader,
					  err);
}

int journal_set_counter(struct journal *j, const char *name, double n, struct err *err)
{
	return journal_execute(j, JOURNAL_SET_COUNTER, "set a counter", err, VALUES(TEXT(name), REAL(n)));
}

/* ---- what settled jobs say about destinations ---- */

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
