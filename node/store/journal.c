/* SPDX-License-Identifier: Apache-2.0 */
/* journal.c - the append-only record of instances and job events.
 *
 * - A function that appends returns after the row is on disk (WAL, synchronous=FULL: one fsync per commit).
 * - The state of a job is never stored, but computed by replay: see job_next() in job.c.
 * - An event is appended only if the job's state allows it: the job is replayed inside the writing transaction (only events since
 * the last replay by this process, see journal_job_state()), and SQLite permits one writer at a time, so that an undamaged
 * journal has no impossible event. If one is found, its job is quarantined and the node continues.
 * - Statements that append are prepared once per connection; functions that iterate (replay, members) prepare a new statement at
 * each call, so that a callback may append.
 * - The WAL and its index file remain when the last connection closes, because sandboxed processes may open these files but not
 * create them (node/sandbox/sandbox_files.c).
 * - The file has mode 0600, is opened with O_CLOEXEC (by SQLite), and must not be used across a fork.
 */
#include "node/store/journal_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SCHEMA_VERSION 1
#define BUSY_MS 20000	    /* longest wait for a lock: a commit is one fsync, but a checkpoint on a slow disk may last seconds */
#define READER_BUSY_MS 2000 /* in WAL mode a reader waits only for a recovery */
#define GROW_BYTES (1 << 20) /* bytes by which the file grows at a time, so that few commits need new disk space */

/* The condition that the detail of an `opened` event has a key and is not of a further result. */
#define FIRST_OF_CASE(detail_)                                                                                                   \
	" json_valid(" detail_ ") AND json_type(" detail_ ", '$.key')='text' AND IFNULL(json_extract(" detail_                   \
	", '$.result_of'), 0)=0"

static const char schema[] =
	"CREATE TABLE instance(id INTEGER PRIMARY KEY AUTOINCREMENT, received REAL NOT NULL, sop_class TEXT NOT NULL,"
	" sop_instance TEXT NOT NULL, transfer_syntax TEXT NOT NULL, calling TEXT NOT NULL, host TEXT NOT NULL, association TEXT "
	"NOT NULL,"
	" file TEXT NOT NULL UNIQUE, bytes INTEGER NOT NULL, digest TEXT NOT NULL);"
	"CREATE INDEX instance_uid ON instance(sop_instance);"
	"CREATE TABLE classification(instance INTEGER PRIMARY KEY, kind INTEGER NOT NULL, job INTEGER NOT NULL, detail TEXT NOT "
	"NULL, "
	"time REAL NOT NULL);"
	"CREATE TABLE event(seq INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, job INTEGER NOT NULL, name TEXT NOT NULL,"
	" instance INTEGER NOT NULL DEFAULT 0, detail TEXT NOT NULL);"
	"CREATE INDEX event_job ON event(job, seq);"
	"CREATE TABLE removal(instance INTEGER PRIMARY KEY, time REAL NOT NULL);"
	/* the instances without a classification */
	"CREATE TABLE waiting(instance INTEGER PRIMARY KEY);"
	"CREATE TRIGGER instance_added AFTER INSERT ON instance BEGIN INSERT INTO waiting VALUES(NEW.id); END;"
	"CREATE TRIGGER instance_classified AFTER INSERT ON classification BEGIN DELETE FROM waiting WHERE "
	"instance=NEW.instance; "
	"END;"
	"CREATE TRIGGER instance_forgotten AFTER DELETE ON instance BEGIN DELETE FROM waiting WHERE instance=OLD.id; END;"
	"PRAGMA user_version=1;";

/* The first jobs of cases that job_key lacks. An earlier version, to which a site may have gone back for a while, adds none: those
 * after the last one in the table are looked at. */
#define JOBS_WITHOUT_KEY                                                                                                         \
	" FROM event e WHERE e.job>(SELECT IFNULL(MAX(job), 0) FROM job_key) AND e.name='opened' AND" FIRST_OF_CASE("e.detail")

/* The Study Instance UID in an `opened` event: the first part of the key of its case. */
#define KEY(event_) "json_extract(" event_ ".detail, '$.key')"
#define STUDY(event_) "substr(" KEY(event_) ", 1, instr(" KEY(event_) "||'|', '|')-1)"

static const char *const sql[N_JOURNAL_QUERIES] = {
	[JOURNAL_BEGIN] = "BEGIN IMMEDIATE",
	[JOURNAL_COMMIT] = "COMMIT",
	[JOURNAL_ROLLBACK] = "ROLLBACK",
	[JOURNAL_ADD_INSTANCE] =
		"INSERT INTO instance(received, sop_class, sop_instance, transfer_syntax, calling, host, association, "
		"file, bytes, digest)"
		" VALUES(?,?,?,?,?,?,?,?,?,?)",
	[JOURNAL_HAS_INSTANCE] =
		"SELECT " JOURNAL_COLUMNS " FROM instance i WHERE i.sop_instance=? AND i.digest=? AND" JOURNAL_NOT_REMOVED
		" ORDER BY" JOURNAL_IGNORED ", i.id LIMIT 1",
	/* 1 if one instance is found, and it is ignored */
	[JOURNAL_IS_IGNORED] = "SELECT COUNT(*)=1 AND TOTAL(" JOURNAL_IGNORED ")=1 FROM instance i WHERE i.sop_instance=? AND"
			       " i.digest=? AND" JOURNAL_NOT_REMOVED,
	[JOURNAL_UNINDEXED] = "SELECT " JOURNAL_COLUMNS
			      " FROM waiting w JOIN instance i ON i.id=w.instance WHERE w.instance>? ORDER BY w.instance LIMIT ?",
	[JOURNAL_COUNT_UNINDEXED] = "SELECT COUNT(*) FROM waiting",
	[JOURNAL_CLASSIFY] = "INSERT INTO classification(instance, kind, job, detail, time) VALUES(?,?,?,?,?)",
	[JOURNAL_ADD_EVENT] = "INSERT INTO event(time, job, name, instance, detail) VALUES(?,?,?,?,?)",
	/* the next number, also where the case with the last one was deleted. Earlier versions numbered a job by the row of its
	   `opened` event: in a journal of theirs with deleted rows, every row may have been such a number. */
	[JOURNAL_NUMBER_JOB] = "INSERT INTO job_number SELECT 1+MAX(IFNULL((SELECT MAX(job) FROM event), 0),"
			       " IFNULL((SELECT MAX(job) FROM job_number), 0),"
			       " CASE WHEN EXISTS (SELECT 1 FROM job_number) THEN 0 ELSE IFNULL((SELECT seq FROM sqlite_sequence"
			       " WHERE name='event' AND seq>(SELECT COUNT(*) FROM event)), 0) END)",
	[JOURNAL_FORGET_NUMBERS] = "DELETE FROM job_number WHERE job<?",
	[JOURNAL_JOB_EVENTS] = "SELECT seq, name FROM event WHERE job=? AND seq>=? ORDER BY seq",
	[JOURNAL_COPY_MEMBERS] = "INSERT INTO event(time, job, name, instance, detail)"
				 " SELECT ?, ?, name, instance, detail FROM event WHERE job=? AND name='instance' ORDER BY seq",
	[JOURNAL_FIND_REMOVED_MEMBER] = "SELECT 1 FROM event e JOIN removal r ON r.instance=e.instance"
					" WHERE e.job=? AND e.name='instance' LIMIT 1",
	[JOURNAL_COUNT_MEMBERS] = "SELECT COUNT(*) FROM event WHERE job=? AND name='instance'",
	[JOURNAL_FIND_MEMBER] =
		"SELECT " JOURNAL_COLUMNS " FROM instance i JOIN classification f ON f.instance=i.id WHERE i.sop_instance=? AND "
		"i.id<>? AND f.kind IN (1, 5) AND" JOURNAL_NOT_REMOVED " ORDER BY i.id DESC LIMIT 1",
	[JOURNAL_HAS_MEMBER] = "SELECT 1 FROM event e JOIN instance i ON i.id=e.instance WHERE e.job=?2 AND e.name='instance'"
			       " AND i.sop_instance=?1 LIMIT 1",
	/* an instance of ?1 without another one of its UID in ?2 */
	[JOURNAL_LACKS_MEMBER] =
		"SELECT 1 FROM event e JOIN instance i ON i.id=e.instance WHERE e.job=?1 AND e.name='instance' AND i.sop_instance NOT IN"
		" (SELECT n.sop_instance FROM event f JOIN instance n ON n.id=f.instance WHERE f.job=?2 AND f.name='instance'"
		" AND f.instance NOT IN (SELECT instance FROM event WHERE job=?1 AND name='instance')) LIMIT 1",
	/* ?1: time, ?2: the new job, ?3: the job before it, ?4: a member of that or a conflict */
	[JOURNAL_SELECT_MEMBER] = "INSERT INTO event(time, job, name, instance, detail) SELECT ?1, ?2, 'instance', f.instance,"
				  " COALESCE((SELECT e.detail FROM event e WHERE e.job=?3 AND e.name='instance' AND "
				  "e.instance=f.instance), f.detail)"
				  " FROM classification f WHERE f.instance=?4 AND f.kind IN (1, 4)",
	/* ?1: the new job, ?2: the job before it */
	[JOURNAL_SELECT_CLASSIFICATION] = "UPDATE classification SET kind=1, job=?1 WHERE instance IN"
					  " (SELECT instance FROM event WHERE job IN (?1, ?2) AND name='instance')",
	[JOURNAL_FIND_JOB_OF] =
		"SELECT f.job FROM instance i JOIN classification f ON f.instance=i.id WHERE i.sop_instance=? AND "
		"f.kind=1 ORDER BY i.id DESC LIMIT 1",
	/* instr() instead of JSON functions, which would fail at a damaged row. The index event_commit_requested contains only
	   these rows. */
	[JOURNAL_FIND_TRANSACTION] =
		"SELECT job, detail FROM event WHERE name='commit-requested' AND instr(detail, ?)>0 ORDER BY seq DESC",
	[JOURNAL_REMOVE] = "INSERT OR IGNORE INTO removal(instance, time) VALUES(?,?)",
	/* a companion: unless another job that is not cleaned has it */
	[JOURNAL_REMOVE_MEMBERS] =
		"INSERT OR IGNORE INTO removal(instance, time) SELECT e.instance, ?2 FROM event e WHERE e.job=?1 AND"
		" (e.name='instance' OR e.name='companion' AND NOT" JOURNAL_USED_COMPANION("e.instance") ")",
	[JOURNAL_ADD_COMPANION] = "INSERT INTO event(time, job, name, instance, detail)"
				  " SELECT ?1, ?2, 'companion', f.instance, f.detail FROM classification f WHERE f.instance=?3",
	[JOURNAL_IS_REMOVED] = "SELECT 1 FROM removal WHERE instance=?",
	[JOURNAL_SHARED_SINCE] =
		"SELECT 1 FROM event e WHERE e.seq>?2 AND (e.job=?1 OR e.name IN ('opened', 'retry') AND EXISTS("
		" SELECT 1 FROM event m JOIN event o ON o.job=e.job AND o.name='instance' AND o.instance=m.instance"
		" WHERE m.job=?1 AND m.name='instance')) LIMIT 1",
	[JOURNAL_NAMES_FILE] = "SELECT 1 FROM instance i WHERE i.file=? AND" JOURNAL_NOT_REMOVED,
	[JOURNAL_REMOVED_FILE] = "SELECT 1 FROM instance i WHERE i.file=? AND NOT" JOURNAL_NOT_REMOVED,
	[JOURNAL_LAST] = "SELECT COALESCE((SELECT MIN(instance)-1 FROM waiting), (SELECT MAX(instance) FROM classification), 0), "
			 "COALESCE((SELECT MAX(seq) FROM event), 0)",
	/* ?1: the detail of a `reconstructed` event, ?2: the job */
	[JOURNAL_ADD_RESULT] =
		"INSERT OR IGNORE INTO result(sop_instance, job) SELECT json_extract(o.value, '$.sop_instance'), ?2"
		" FROM json_each(CASE WHEN json_valid(?1) THEN ?1 ELSE '{}' END, '$.objects') o",
	/* ?1: the UID, ?2: the job */
	[JOURNAL_FIND_RESULT] = "SELECT r.job FROM result r JOIN event o ON o.job=r.job AND o.name='opened'"
				" JOIN event m ON m.job=?2 AND m.name='opened' WHERE r.sop_instance=?1"
				" AND json_valid(o.detail) AND json_valid(m.detail) AND " STUDY("o") "<>" STUDY("m") " LIMIT 1",
	[JOURNAL_ADD_KEYS] = "INSERT OR IGNORE INTO job_key SELECT " KEY("e") ", e.job" JOBS_WITHOUT_KEY,
	[JOURNAL_LATEST_OF_KEY] = "SELECT job FROM job_key WHERE key=? ORDER BY job DESC LIMIT 1",
	/* ?2: JOURNAL_SETTLED_VERSION */
	[JOURNAL_FIND_SETTLED] = SETTLED_ROWS "job=?1 AND version=?2 AND mark=" SETTLED_MARK,
	[JOURNAL_LAST_OF_JOB] = "SELECT IFNULL(MAX(seq), 0) FROM event WHERE job=?",
	/* ?3: JOURNAL_SETTLED_VERSION */
	[JOURNAL_SETTLE] = "INSERT OR REPLACE INTO settled_job(version, " SETTLED_COLUMNS ", mark)"
			   " VALUES(?3,?1,?2,?4,?5,?6,?7,?8,?9,?10,?11,?12, settled_mark(?1,?2,?4,?5,?6,?7,?8,?9,?10,?11,?12))",
	[JOURNAL_SETTLE_OPEN] = "DELETE FROM open_job WHERE job=?",
	[JOURNAL_SETTLE_COUNTED] = "INSERT OR REPLACE INTO counted(job, seq) VALUES(?,?)",
	/* the clock was ahead when they were done */
	[JOURNAL_SETTLED_CLOCK] =
		"UPDATE settled_job SET done=?1, mark=settled_mark(job, seq, state, study, series, ?1, patient, opened, finished,"
		" warnings, words) WHERE state IN (?2, ?3) AND done>?1",
	/* ?1: time, ?2: JOURNAL_SETTLED_VERSION, ?3: delivered, ?4: cleaned, ?5: SETTLED_WARNED */
	[JOURNAL_SUM_SETTLED] =
		"SELECT (SELECT COUNT(*) FROM settled_job WHERE state=?3 AND version=?2),"
		" (SELECT COUNT(*) FROM settled_job WHERE state=?4 AND version=?2),"
		" (SELECT COUNT(*) FROM settled_job WHERE warnings>0 AND warnings=?5 AND version=?2),"
		" (SELECT COUNT(*) FROM settled_job WHERE warnings>0 AND warnings=?5 AND version=?2 AND finished>?1),"
		" (SELECT COUNT(*) FROM (SELECT DISTINCT study FROM settled_job WHERE version=?2))",
	[JOURNAL_FIND_COUNTED] = "SELECT seq FROM counted WHERE job=?",
	[JOURNAL_SET_COUNTER] = "INSERT INTO counter(name, n) VALUES(?1, ?2) ON CONFLICT(name) DO UPDATE SET n=?2 WHERE n<>?2",
	/* Some at a time, because they are sorted in memory. SQLite: the columns beside the only MAX() are those of its row. */
	[JOURNAL_COUNT_SENDERS] =
		"INSERT INTO sender SELECT calling, host, received, COUNT(*), MAX(id) FROM (SELECT * FROM instance WHERE id>"
		"(SELECT IFNULL(MAX(id), 0) FROM sender) ORDER BY id LIMIT 10000) WHERE 1 GROUP BY calling ON CONFLICT(calling) DO UPDATE SET host=excluded.host,"
		" last=excluded.last, instances=instances+excluded.instances, id=excluded.id",
	[JOURNAL_REACHED] =
		"INSERT INTO reached(destination, reached, sent) VALUES(?1, ?2, ?3) ON CONFLICT(destination) DO UPDATE SET"
		" reached=MAX(reached, ?2), sent=MAX(sent, ?3)",
	[JOURNAL_DATA_VERSION] = "PRAGMA data_version",
};

static int sqlite_errno(sqlite3 *db, int rc)
{
	int os = sqlite3_system_errno(db);

	switch (rc & 0xff) {
	case SQLITE_FULL:
		return ENOSPC;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return EBUSY;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return EBADMSG;
	case SQLITE_NOMEM:
		return ENOMEM;
	case SQLITE_READONLY:
		return EROFS;
	case SQLITE_CONSTRAINT:
		return EEXIST;
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return EPERM;
	default: /* a file that cannot be opened: EPERM, because EACCES means that a peer refused and has its own exit code */
		return os == EACCES ? EPERM : os > 0 ? os : EIO;
	}
}

int journal_fail(struct journal *j, int rc, const char *doing, struct err *err)
{
	return err_set(err, sqlite_errno(j->db, rc), "journal %s: %s: %s", j->path, doing, sqlite3_errmsg(j->db));
}

/* Return a cached statement, ready to bind; NULL: it cannot be prepared. */
sqlite3_stmt *journal_stmt(struct journal *j, enum journal_query q, struct err *err)
{
	int rc;

	if (!j->stmt[q]) {
		rc = sqlite3_prepare_v3(j->db, sql[q], -1, SQLITE_PREPARE_PERSISTENT, &j->stmt[q], NULL);
		if (rc != SQLITE_OK) {
			journal_fail(j, rc, "prepare", err);
			return NULL;
		}
	}
	return j->stmt[q];
}

/* Step a bound statement once and reset it. 1: there was a row, for which read_row() was called; 0: none; negative: error. */
int journal_step(struct journal *j, sqlite3_stmt *s, const char *doing, void (*read_row)(void *ctx, sqlite3_stmt *s), void *ctx,
		 struct err *err)
{
	int rc = sqlite3_step(s), ret;

	if (rc == SQLITE_ROW && read_row)
		read_row(ctx, s);
	ret = rc == SQLITE_ROW ? 1 : rc == SQLITE_DONE ? 0 : journal_fail(j, rc, doing, err);
	sqlite3_reset(s);
	sqlite3_clear_bindings(s);
	return ret;
}

void journal_bind_values(sqlite3_stmt *s, const struct journal_value *values, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int at = (int)i + 1;

		if (values[i].type == JOURNAL_NUMBER)
			sqlite3_bind_int64(s, at, values[i].number);
		else if (values[i].type == JOURNAL_REAL)
			sqlite3_bind_double(s, at, values[i].real);
		else
			sqlite3_bind_text(s, at, values[i].text ? values[i].text : "", -1, SQLITE_STATIC);
	}
}

int journal_read(struct journal *j, enum journal_query q, const char *doing, void (*read_row)(void *ctx, sqlite3_stmt *s),
		 void *ctx, struct err *err, const struct journal_value *values, size_t n)
{
	sqlite3_stmt *s = journal_stmt(j, q, err);

	if (!s)
		return -EIO;
	journal_bind_values(s, values, n);
	return journal_step(j, s, doing, read_row, ctx, err);
}

int journal_execute(struct journal *j, enum journal_query q, const char *doing, struct err *err,
		    const struct journal_value *values, size_t n)
{
	return journal_read(j, q, doing, NULL, NULL, err, values, n);
}

int journal_look_begin(struct journal *j, struct err *err)
{
	int rc = sqlite3_exec(j->db, "BEGIN", NULL, NULL, NULL);

	return rc == SQLITE_OK ? 0 : journal_fail(j, rc, "begin", err);
}

void journal_look_end(struct journal *j)
{
	if (!sqlite3_get_autocommit(j->db))
		(void)sqlite3_exec(j->db, "COMMIT", NULL, NULL, NULL);
}

/* End a transaction: commit if ret is not negative, else roll back. */
int journal_end_transaction(struct journal *j, int ret, struct err *err)
{
	if (ret >= 0) {
		int rc = journal_execute(j, JOURNAL_COMMIT, "commit", err, NO_VALUES);

		if (rc >= 0)
			return ret;
		ret = rc;
	}
	if (!sqlite3_get_autocommit(j->db))
		journal_execute(j, JOURNAL_ROLLBACK, "rollback", NULL, NO_VALUES);
	memset(j->state_cache, 0, sizeof(j->state_cache)); /* the cache may include rows that were rolled back and whose numbers
							      will be used again */
	return ret;
}

static void copy_column(sqlite3_stmt *s, int at, char *ret, size_t size)
{
	const unsigned char *value = sqlite3_column_text(s, at);

	snprintf(ret, size, "%s", value ? (const char *)value : "");
}

void journal_read_instance(void *ctx, sqlite3_stmt *s)
{
	struct instance_row *row = ctx;

	memset(row, 0, sizeof(*row));
	row->id = sqlite3_column_int64(s, 0);
	row->received = sqlite3_column_double(s, 1);
	copy_column(s, 2, row->sop_class, sizeof(row->sop_class));
	copy_column(s, 3, row->sop_instance, sizeof(row->sop_instance));
	copy_column(s, 4, row->transfer_syntax, sizeof(row->transfer_syntax));
	copy_column(s, 5, row->calling, sizeof(row->calling));
	copy_column(s, 6, row->host, sizeof(row->host));
	copy_column(s, 7, row->association, sizeof(row->association));
	copy_column(s, 8, row->file, sizeof(row->file));
	row->bytes = (uint64_t)sqlite3_column_int64(s, 9);
	copy_column(s, 10, row->digest, sizeof(row->digest));
}

void journal_read_int64(void *ctx, sqlite3_stmt *s)
{
	*(int64_t *)ctx = sqlite3_column_int64(s, 0);
}

/* ---- open, close ---- */

int journal_query_int(struct journal *j, const char *query, int64_t *ret_value, struct err *err)
{
	sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(j->db, query, -1, &s, NULL), ret = 0;

	if (rc == SQLITE_OK)
		rc = sqlite3_step(s);
	if (rc == SQLITE_ROW)
		*ret_value = sqlite3_column_int64(s, 0);
	else
		ret = journal_fail(j, rc, "it cannot be read", err);
	sqlite3_finalize(s);
	return ret;
}

/* Read the version of the schema, 0: an empty file, and refuse a database of another program, whose version means nothing.
 * Another process may create the tables meanwhile, all at once with the version: they are counted first. */
static int read_version(struct journal *j, int64_t *ret_version, struct err *err)
{
	int64_t all = 0, own = 0;
	int ret = journal_query_int(j, "SELECT COUNT(*) FROM sqlite_master", &all, err);

	if (ret == 0)
		ret = journal_query_int(j, "PRAGMA user_version", ret_version, err);
	if (ret == 0)
		ret = journal_query_int(
			j,
			"SELECT COUNT(*) FROM (SELECT name FROM pragma_table_info('instance') WHERE name IN "
			"('sop_instance', 'digest') UNION ALL SELECT name FROM pragma_table_info('event') WHERE name IN "
			"('job', 'detail'))",
			&own, err);
	if (ret == 0 && own < 4 && (all > 0 || *ret_version != 0))
		ret = err_set(
			err, EBADMSG,
			"journal %s is the database of another program, without the tables of a journal: move it away, or set "
			"another node.spool",
			j->path);
	return ret;
}

/* Switch to WAL mode, with repeated attempts: SQLite does not always call the busy handler here, and several processes may open a
 * new journal at the same time. */
static int set_wal(struct journal *j, struct err *err)
{
	int rc = SQLITE_BUSY;

	for (int tries = 0; tries < BUSY_MS / 10; tries++) {
		rc = sqlite3_exec(j->db, "PRAGMA journal_mode=WAL", NULL, NULL, NULL);
		if ((rc & 0xff) != SQLITE_BUSY)
			break;
		usleep(10000);
	}
	return rc == SQLITE_OK ? 0 : journal_fail(j, rc, "journal_mode=WAL", err);
}

int journal_open_reader(const char *path, struct journal **ret_journal, struct err *err)
{
	struct journal *j = calloc(1, sizeof(*j));
	int64_t version = 0;
	int rc, ret;

	if (!j)
		return err_set(err, ENOMEM, "no memory for the journal");
	snprintf(j->path, sizeof(j->path), "%s", path);
	if (access(path, R_OK) < 0) {
		ret = err_set(err, errno, "journal %s: %s", path, strerror(errno));
		goto fail;
	}
	rc = sqlite3_open_v2(path, &j->db, SQLITE_OPEN_READONLY, NULL);
	if (rc != SQLITE_OK) {
		ret = j->db ? journal_fail(j, rc, "open", err) : err_set(err, ENOMEM, "no memory for the journal");
		goto fail;
	}
	sqlite3_extended_result_codes(j->db, 1);
	sqlite3_busy_timeout(j->db, READER_BUSY_MS);
	rc = sqlite3_exec(j->db,
			  "PRAGMA query_only=ON; PRAGMA temp_store=MEMORY; PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON",
			  NULL, NULL, NULL);
	ret = rc == SQLITE_OK ? read_version(j, &version, err) : journal_fail(j, rc, "settings", err);
	if (ret == 0 && version != SCHEMA_VERSION)
		ret = err_set(err, version ? EPROTONOSUPPORT : ENOENT, "journal %s has schema %lld; this tomonode reads %d",
			      j->path, (long long)version, SCHEMA_VERSION);
	if (ret < 0)
		goto fail;
	journal_settled_open(j, false);
	*ret_journal = j;
	return 0;
fail:
	journal_close(j);
	return ret;
}

static int prepare_schema(struct journal *j, struct err *err)
{
	int64_t version = 0;
	int rc, ret = read_version(j, &version, err);

	if (ret < 0 || version == SCHEMA_VERSION)
		return ret;
	if (version > SCHEMA_VERSION)
		return err_set(err, EPROTONOSUPPORT,
			       "journal %s has schema %lld, written by a newer tomonode; this one reads up to %d", j->path,
			       (long long)version, SCHEMA_VERSION);
	ret = journal_execute(j, JOURNAL_BEGIN, "begin", err, NO_VALUES);
	if (ret < 0)
		return ret;
	ret = journal_query_int(j, "PRAGMA user_version", &version, err); /* another process may have created the tables */
	if (ret == 0 && version == 0) {
		rc = sqlite3_exec(j->db, schema, NULL, NULL, NULL);
		if (rc != SQLITE_OK)
			ret = journal_fail(j, rc, "create the tables", err);
	}
	return journal_end_transaction(j, ret, err);
}

/* Add the keys that an earlier version did not. If that fails, the next job that is opened adds them. */
static void add_missing_keys(struct journal *j)
{
	int64_t missing = 0;

	if (journal_query_int(j, "SELECT EXISTS(SELECT 1" JOBS_WITHOUT_KEY ")", &missing, NULL) == 0 && missing)
		(void)journal_execute(j, JOURNAL_ADD_KEYS, "add keys of cases", NULL, NO_VALUES);
}

int journal_open(const char *path, struct journal **ret_journal, struct err *err)
{
	struct journal *j = calloc(1, sizeof(*j));
	int fd, rc, ret, step = GROW_BYTES, persist = 1;
	int64_t version;

	if (!j)
		return err_set(err, ENOMEM, "no memory for the journal");
	snprintf(j->path, sizeof(j->path), "%s", path);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC,
		  0600); /* SQLite itself would use the umask; it copies this mode to WAL and index file */
	if (fd < 0) {
		ret = err_set(err, errno == EACCES ? EPERM : errno, "journal %s: %s", path, strerror(errno));
		goto fail;
	}
	close(fd);
	rc = sqlite3_open_v2(path, &j->db, SQLITE_OPEN_READWRITE, NULL);
	if (rc != SQLITE_OK) {
		ret = j->db ? journal_fail(j, rc, "open", err) : err_set(err, ENOMEM, "no memory for the journal");
		goto fail;
	}
	sqlite3_extended_result_codes(j->db, 1);
	sqlite3_busy_timeout(j->db, BUSY_MS);
	sqlite3_file_control(j->db, "main", SQLITE_FCNTL_CHUNK_SIZE, &step);
	sqlite3_file_control(j->db, "main", SQLITE_FCNTL_PERSIST_WAL, &persist);
	ret = read_version(j, &version, err);
	if (ret != -EBADMSG) /* another program's file stays as it is; of what passes, prepare_schema() is told again */
		ret = set_wal(j, err);
	if (ret < 0)
		goto fail;
	/* temp_store: a process in the sandbox cannot create the file that a large statement would need */
	rc = sqlite3_exec(
		j->db, "PRAGMA synchronous=FULL; PRAGMA temp_store=MEMORY; PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON",
		NULL, NULL, NULL);
	ret = rc == SQLITE_OK ? prepare_schema(j, err) : journal_fail(j, rc, "settings", err);
	if (ret < 0)
		goto fail;
	/* Journals of earlier versions lack them. Ignore a failure (full disk): an index only saves time, and a missing table is
	   reported by the first function that needs it. */
	(void)sqlite3_exec(j->db,
			   "CREATE INDEX IF NOT EXISTS event_commit_requested ON event(seq) WHERE name='commit-requested';"
			   "CREATE INDEX IF NOT EXISTS classification_unassigned ON classification(time) WHERE kind<>1;"
			   "CREATE INDEX IF NOT EXISTS classification_kind ON classification(kind, instance) WHERE kind<>1;"
			   "CREATE INDEX IF NOT EXISTS event_companion ON event(instance) WHERE name='companion';"
			   "CREATE TABLE IF NOT EXISTS damage(instance INTEGER PRIMARY KEY, time REAL NOT NULL);"
			   "CREATE TABLE IF NOT EXISTS job_number(job INTEGER PRIMARY KEY);"
			   "CREATE TABLE IF NOT EXISTS result(sop_instance TEXT, job INTEGER, PRIMARY KEY(sop_instance, job)) "
			   "WITHOUT ROWID;"
			   "CREATE INDEX IF NOT EXISTS result_job ON result(job);"
			   "CREATE TABLE IF NOT EXISTS job_key(key TEXT, job INTEGER, PRIMARY KEY(key, job)) WITHOUT ROWID;"
			   "CREATE INDEX IF NOT EXISTS job_key_job ON job_key(job);",
			   NULL, NULL, NULL);
	add_missing_keys(j);
	journal_settled_open(j, true);
	*ret_journal = j;
	return 0;
fail:
	journal_close(j);
	return ret;
}

struct journal *journal_close(struct journal *j)
{
	if (!j)
		return NULL;
	for (size_t q = 0; q < N_JOURNAL_QUERIES; q++)
		sqlite3_finalize(j->stmt[q]);
	/* The last connection that closes truncates the WAL, so that it cannot be applied to a journal that is restored from a
	 * backup. */
	sqlite3_exec(j->db, "PRAGMA journal_size_limit=0", NULL, NULL, NULL);
	sqlite3_close(j->db);
	free(j);
	return NULL;
}

/* ---- instances ---- */

int journal_add_instance(struct journal *j, struct instance_row *row, struct err *err)
{
	/* outside a transaction a single INSERT is its own transaction */
	int ret = journal_execute(j, JOURNAL_ADD_INSTANCE, "add instance", err,
				  VALUES(REAL(row->received), TEXT(row->sop_class), TEXT(row->sop_instance),
					 TEXT(row->transfer_syntax), TEXT(row->calling), TEXT(row->host), TEXT(row->association),
					 TEXT(row->file), NUMBER((int64_t)row->bytes), TEXT(row->digest)));

	if (ret < 0)
		return ret;
	row->id = sqlite3_last_insert_rowid(j->db);
	return 0;
}

int journal_has_instance(struct journal *j, const char *sop_instance, const char *digest, struct instance_row *ret_row,
			 struct err *err)
{
	return journal_read(j, JOURNAL_HAS_INSTANCE, "look for an instance", ret_row ? journal_read_instance : NULL, ret_row, err,
			    VALUES(TEXT(sop_instance), TEXT(digest)));
}

int journal_is_ignored(struct journal *j, const char *sop_instance, const char *digest, struct err *err)
{
	int64_t is = 0;
	int ret = journal_read(j, JOURNAL_IS_IGNORED, "look for an ignored instance", journal_read_int64, &is, err,
			       VALUES(TEXT(sop_instance), TEXT(digest)));

	return ret < 0 ? ret : is != 0;
}

int journal_list_unindexed(struct journal *j, int64_t after, struct instance_row *ret_rows, int max, struct err *err)
{
	sqlite3_stmt *s = journal_stmt(j, JOURNAL_UNINDEXED, err);
	int rc = SQLITE_DONE, n = 0;

	if (!s)
		return -EIO;
	journal_bind_values(s, VALUES(NUMBER(after), NUMBER(max)));
	while (n < max && (rc = sqlite3_step(s)) == SQLITE_ROW)
		journal_read_instance(&ret_rows[n++], s);
	if (n < max && rc != SQLITE_DONE)
		n = journal_fail(j, rc, "look for new instances", err);
	sqlite3_reset(s);
	return n;
}

int journal_count_unindexed(struct journal *j, uint64_t *ret_n, struct err *err)
{
	int64_t n = 0;
	int ret = journal_read(j, JOURNAL_COUNT_UNINDEXED, "count the new instances", journal_read_int64, &n, err, NO_VALUES);

	if (ret < 0)
		return ret;
	*ret_n = (uint64_t)n;
	return 0;
}

int journal_find_member(struct journal *j, const char *sop_instance, int64_t besides, struct instance_row *ret_row,
			struct err *err)
{
	return journal_read(j, JOURNAL_FIND_MEMBER, "look for a member", journal_read_instance, ret_row, err,
			    VALUES(TEXT(sop_instance), NUMBER(besides)));
}

int journal_find_job_of(struct journal *j, const char *sop_instance, int64_t *ret_job, struct err *err)
{
	return journal_read(j, JOURNAL_FIND_JOB_OF, "look for the job of an instance", journal_read_int64, ret_job, err,
			    VALUES(TEXT(sop_instance)));
}

int journal_find_latest(struct journal *j, const char *key, int64_t *ret_job, struct err *err)
{
	return journal_read(j, JOURNAL_LATEST_OF_KEY, "look for a case", journal_read_int64, ret_job, err, VALUES(TEXT(key)));
}

int journal_find_result(struct journal *j, const char *sop_instance, int64_t job, int64_t *ret_job, struct err *err)
{
	return journal_read(j, JOURNAL_FIND_RESULT, "look for a result", journal_read_int64, ret_job, err,
			    VALUES(TEXT(sop_instance), NUMBER(job)));
}

int journal_is_given_up(struct journal *j, const char *sop_instance, struct err *err)
{
	enum job_state state = JOB_NONE;
	int64_t job = 0;
	int ret = journal_find_job_of(j, sop_instance, &job, err);

	if (ret > 0)
		ret = journal_job_state(j, job, &state, err);
	return ret < 0 ? ret : state == JOB_CANCELLED;
}

int journal_has_member(struct journal *j, int64_t job, const char *sop_instance, struct err *err)
{
	return journal_read(j, JOURNAL_HAS_MEMBER, "look for a member", NULL, NULL, err, VALUES(TEXT(sop_instance), NUMBER(job)));
}

int journal_is_sent_again(struct journal *j, int64_t of, int64_t job, struct err *err)
{
	int ret = journal_read(j, JOURNAL_LACKS_MEMBER, "look for images sent again", NULL, NULL, err,
			       VALUES(NUMBER(of), NUMBER(job)));

	return ret < 0 ? ret : !ret;
}

int journal_remove_instance(struct journal *j, int64_t instance, double now, struct err *err)
{
	return journal_execute(j, JOURNAL_REMOVE, "remove an instance", err, VALUES(NUMBER(instance), REAL(now)));
}

int journal_has_file(struct journal *j, const char *file, struct err *err)
{
	return journal_execute(j, JOURNAL_NAMES_FILE, "look for a file", err, VALUES(TEXT(file)));
}

int journal_has_removed_file(struct journal *j, const char *file, struct err *err)
{
	return journal_execute(j, JOURNAL_REMOVED_FILE, "look for a removed file", err, VALUES(TEXT(file)));
}

/* ---- the file itself ---- */

/* A page that could not be read is listed among what is damaged, with SQLite's code. */
static bool is_read_error(const char *problem)
{
	static const char before[] = "error code=";
	const char *code = strstr(problem, before);

	return code && (atoi(code + strlen(before)) & 0xff) == SQLITE_IOERR;
}

static int check_once(struct journal *j, void (*report)(void *ctx, const char *problem), void *ctx, bool *ret_unread,
		      struct err *err)
{
	sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(j->db, "PRAGMA quick_check(20)", -1, &s, NULL), n = 0;

	*ret_unread = false;
	if (rc != SQLITE_OK)
		return journal_fail(j, rc, "check", err);
	while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
		const char *problem = (const char *)sqlite3_column_text(s, 0);

		if (problem && strcmp(problem, "ok")) {
			n++;
			*ret_unread = *ret_unread || is_read_error(problem);
			if (report)
				report(ctx, problem);
		}
	}
	if (rc != SQLITE_DONE)
		n = journal_fail(j, rc, "check", err);
	sqlite3_finalize(s);
	return n;
}

/* What the first look finds is looked at again without the pages in memory: an error of the disk that passes is no damage. After
 * one, SQLite calls what it still cannot read "malformed". */
int journal_check(struct journal *j, void (*report)(void *ctx, const char *problem), void *ctx, struct err *err)
{
	bool unread, again;
	int n = check_once(j, NULL, NULL, &unread, err);

	if (n == 0)
		return 0;
	sqlite3_db_release_memory(j->db);
	n = check_once(j, unread ? NULL : report, ctx, &again, err);
	return n != 0 && unread ? err_set(err, EIO, "journal %s: check: it cannot be read", j->path) : n;
}

/* Allocate disk blocks for the journal before it needs them.
 *
 * A commit writes to the write-ahead log. SQLite overwrites that file from its beginning after each checkpoint and truncates it
 * only when the last connection closes, so that blocks once allocated for it stay allocated while the node runs. They
 * are allocated beyond the end of the file (FALLOC_FL_KEEP_SIZE), which SQLite does not notice. If the disk is full, a checkpoint
 * that must extend the database file fails and is tried again at the next commit; until then rows are written to the reserved
 * log: at 4 KiB a page and about 3 pages a commit, 16 MiB suffice for 700 commits after the 1000 pages at which checkpoints
 * begin.
 */
int journal_reserve(struct journal *j, uint64_t bytes, struct err *err)
{
	char path[sizeof(j->path) + 8];
	int fd, ret = 0;

	snprintf(path, sizeof(path), "%s-wal", j->path);
	fd = open(path, O_WRONLY | O_CLOEXEC); /* SQLite has no POSIX locks on this file, which close() would release */
	if (fd < 0)
		return err_set(err, errno, "journal %s: %s", path, strerror(errno));
	if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes) < 0)
		ret = err_set(err, errno, "journal %s: %llu bytes cannot be reserved: %s", path, (unsigned long long)bytes,
			      strerror(errno));
	close(fd);
	return ret;
}

int64_t journal_data_version(struct journal *j)
{
	int64_t version = -1;

	journal_read(j, JOURNAL_DATA_VERSION, "data_version", journal_read_int64, &version, NULL, NO_VALUES);
	return version;
}
