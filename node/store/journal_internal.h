/* SPDX-License-Identifier: Apache-2.0 */
/* Functions shared by the journal's files and private to them: journal.c (database file, statements, instances),
 * journal_events.c (classifications, events), journal_walk.c (reading of many rows, totals), journal_settled.c (which jobs are settled),
 * journal_damage.c and journal_forget.c. */
#ifndef TOMONODE_NODE_JOURNAL_INTERNAL_H
#define TOMONODE_NODE_JOURNAL_INTERNAL_H

#include <sqlite3.h>

#include "node/store/journal.h"

/* Columns of table `instance i` for journal_read_instance(); and the condition that retention has not removed the instance. */
#define JOURNAL_COLUMNS                                                                                                          \
	"i.id, i.received, i.sop_class, i.sop_instance, i.transfer_syntax, i.calling, i.host, i.association, i.file, i.bytes, "  \
	"i.digest"
#define JOURNAL_NOT_REMOVED " NOT EXISTS (SELECT 1 FROM removal r WHERE r.instance=i.id)"
/* The condition that the instance is ignored (CLASSIFIED_IGNORED). */
#define JOURNAL_IGNORED " EXISTS (SELECT 1 FROM classification f WHERE f.instance=i.id AND f.kind=2)"
/* The condition that a job other than ?1 that is not cleaned has this companion. The index event_companion has these rows. */
#define JOURNAL_USED_COMPANION(instance_)                                                                                        \
	" EXISTS (SELECT 1 FROM event m WHERE m.name='companion' AND m.instance=" instance_ " AND m.job<>?1 AND NOT EXISTS"      \
	" (SELECT 1 FROM event c WHERE c.job=m.job AND c.name='cleaned'))"

/* The columns of struct settled_row; the digest of a row of them. */
#define SETTLED_COLUMNS "job, seq, state, study, series, done, patient, opened, finished, warnings, words"
#define SETTLED_ROWS "SELECT " SETTLED_COLUMNS " FROM settled_job WHERE "
#define SETTLED_MARK "settled_mark(" SETTLED_COLUMNS ")"

/* Statements that are prepared once per connection. */
enum journal_query {
	JOURNAL_BEGIN,
	JOURNAL_COMMIT,
	JOURNAL_ROLLBACK,
	JOURNAL_ADD_INSTANCE,
	JOURNAL_HAS_INSTANCE,
	JOURNAL_IS_IGNORED,
	JOURNAL_UNINDEXED,
	JOURNAL_COUNT_UNINDEXED,
	JOURNAL_CLASSIFY,
	JOURNAL_ADD_EVENT,
	JOURNAL_NUMBER_JOB,
	JOURNAL_FORGET_NUMBERS,
	JOURNAL_JOB_EVENTS,
	JOURNAL_COPY_MEMBERS,
	JOURNAL_COUNT_MEMBERS,
	JOURNAL_FIND_REMOVED_MEMBER,
	JOURNAL_FIND_MEMBER,
	JOURNAL_HAS_MEMBER,
	JOURNAL_LACKS_MEMBER,
	JOURNAL_SELECT_MEMBER,
	JOURNAL_SELECT_CLASSIFICATION,
	JOURNAL_FIND_JOB_OF,
	JOURNAL_FIND_TRANSACTION,
	JOURNAL_REMOVE,
	JOURNAL_REMOVE_MEMBERS,
	JOURNAL_IS_REMOVED,
	JOURNAL_ADD_COMPANION,
	JOURNAL_SHARED_SINCE,
	JOURNAL_NAMES_FILE,
	JOURNAL_REMOVED_FILE,
	JOURNAL_LAST,
	JOURNAL_ADD_RESULT,
	JOURNAL_FIND_RESULT,
	JOURNAL_ADD_KEYS,
	JOURNAL_LATEST_OF_KEY,
	JOURNAL_FIND_SETTLED,
	JOURNAL_LAST_OF_JOB,
	JOURNAL_SETTLE,
	JOURNAL_SETTLE_OPEN,
	JOURNAL_SETTLE_COUNTED,
	JOURNAL_SETTLED_CLOCK,
	JOURNAL_SUM_SETTLED,
	JOURNAL_FIND_COUNTED,
	JOURNAL_SET_COUNTER,
	JOURNAL_COUNT_SENDERS,
	JOURNAL_REACHED,
	JOURNAL_DATA_VERSION,
	N_JOURNAL_QUERIES,
};

/* Cached result of a replay: the state of a job after its committed event `seq`. */
struct journal_state_cache {
	int64_t job, seq; /* job 0: the entry is empty */
	enum job_state state;
};
#define JOURNAL_STATE_CACHE_SIZE 64 /* entries; the index of a job is its number modulo this */

struct journal {
	sqlite3 *db;
	char path[400];
	bool settles; /* it has the tables of settled jobs: journal_settled.c */
	sqlite3_stmt *stmt[N_JOURNAL_QUERIES];
	struct journal_state_cache state_cache[JOURNAL_STATE_CACHE_SIZE];
};

/* Set err from SQLite's result code rc; return the negative errno value. doing: the failed action, for the text of the error. */
int journal_fail(struct journal *j, int rc, const char *doing, struct err *err);
/* Return a cached statement, ready to bind; NULL: it cannot be prepared, and err is set. */
sqlite3_stmt *journal_stmt(struct journal *j, enum journal_query q, struct err *err);
/* Step a bound statement once and reset it. 1: there was a row, and read_row() was called for it; 0: none; negative: error. */
int journal_step(struct journal *j, sqlite3_stmt *s, const char *doing, void (*read_row)(void *ctx, sqlite3_stmt *s), void *ctx,
		 struct err *err);
/* The value of a parameter. A text must stay valid until the statement is stepped. */
struct journal_value {
	enum { JOURNAL_NUMBER, JOURNAL_REAL, JOURNAL_TEXT } type;
	int64_t number;
	double real;
	const char *text;
};
#define NUMBER(value) ((struct journal_value){.type = JOURNAL_NUMBER, .number = (value)})
#define REAL(value) ((struct journal_value){.type = JOURNAL_REAL, .real = (value)})
#define TEXT(value) ((struct journal_value){.type = JOURNAL_TEXT, .text = (value)})
/* The values of ?1, ?2, ... as the last two arguments of the functions below. */
#define VALUES(...)                                                                                                              \
	(const struct journal_value[]){__VA_ARGS__},                                                                             \
		sizeof((const struct journal_value[]){__VA_ARGS__}) / sizeof(struct journal_value)
#define NO_VALUES NULL, 0
void journal_bind_values(sqlite3_stmt *s, const struct journal_value *values, size_t n);
/* Bind the values of a cached statement and step it as journal_step(). */
int journal_read(struct journal *j, enum journal_query q, const char *doing, void (*read_row)(void *ctx, sqlite3_stmt *s),
		 void *ctx, struct err *err, const struct journal_value *values, size_t n);
/* The same, without reading a row. */
int journal_execute(struct journal *j, enum journal_query q, const char *doing, struct err *err,
		    const struct journal_value *values, size_t n);
/* Call each() for every row of a statement until it returns non-zero. The statement is prepared at each call, so that each() may append. */
int journal_walk(struct journal *j, const char *what, const char *doing, const struct journal_value *values, size_t n,
		 int (*each)(void *ctx, sqlite3_stmt *s), void *ctx, struct err *err);
/* Read the only column of the only row of a statement. */
int journal_query_int(struct journal *j, const char *query, int64_t *ret_value, struct err *err);
/* In a transaction: bring the totals and senders of the journal up to date. */
int journal_record_totals(struct journal *j, struct err *err);
/* Set j->settles. write: make the tables of settled jobs if one is missing. */
void journal_settled_open(struct journal *j, bool write);
/* End a transaction: commit if ret is not negative, else roll back. Returns ret or the error of the commit. */
int journal_end_transaction(struct journal *j, int ret, struct err *err);
/* Read the only column of a row into ctx, an int64_t. */
void journal_read_int64(void *ctx, sqlite3_stmt *s);
/* Read a row of JOURNAL_COLUMNS into ctx, a struct instance_row. */
void journal_read_instance(void *ctx, sqlite3_stmt *s);

#endif
