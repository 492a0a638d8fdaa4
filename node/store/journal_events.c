/* SPDX-License-Identifier: Apache-2.0 */
/* journal_events.c - classifications and events: append them in transactions, iterate over them, and count them. */
#include <errno.h>
#include <jansson.h>
#include <stddef.h>
#include <string.h>

#include "node/store/journal_internal.h"

/* Of senders that wait in turn, later instances may have a classification already. */
#define FIRST_WAITING "(SELECT COALESCE(MIN(instance), 9223372036854775807) FROM waiting)"

static int insert_event(struct journal *j, int64_t job, enum job_event event, int64_t instance, const char *detail, double now,
			struct err *err)
{
	sqlite3_stmt *s = journal_stmt(j, JOURNAL_ADD_EVENT, err);

	if (!s)
		return -EIO;
	sqlite3_bind_double(s, 1, now);
	sqlite3_bind_int64(s, 2, job);
	journal_bind(s, 3, job_event_name(event));
	sqlite3_bind_int64(s, 4, instance);
	journal_bind(s, 5, detail);
	return journal_step(j, s, "append an event", NULL, NULL, err);
}

static int insert_classification(struct journal *j, int64_t instance, enum classification kind, int64_t job, const char *detail,
				 double now, struct err *err)
{
	sqlite3_stmt *s = journal_stmt(j, JOURNAL_CLASSIFY, err);

	if (!s)
		return -EIO;
	sqlite3_bind_int64(s, 1, instance);
	sqlite3_bind_int(s, 2, (int)kind);
	sqlite3_bind_int64(s, 3, job);
	journal_bind(s, 4, detail);
	sqlite3_bind_double(s, 5, now);
	return journal_step(j, s, "add a classification", NULL, NULL, err);
}

/* Apply the event of a row to the cached state. */
static void replay_event(struct journal_state_cache *cached, sqlite3_stmt *s)
{
	enum job_event event;

	cached->seq = sqlite3_column_int64(s, 0);
	if (job_event_parse((const char *)sqlite3_column_text(s, 1), &event) < 0)
		cached->state = JOB_IMPOSSIBLE;
	else
		cached->state = job_next(cached->state, event);
}

/* Replay the events after the cached one. 1: done; 0: the cached event was deleted, so that the cached state is not valid. */
static int replay_rest(struct journal *j, struct journal_state_cache *cached, struct err *err)
{
	sqlite3_stmt *s = journal_stmt(j, JOURNAL_JOB_EVENTS, err);
	bool found = cached->seq == 0;
	int rc, ret = 1;

	if (!s)
		return -EIO;
	sqlite3_bind_int64(s, 1, cached->job);
	sqlite3_bind_int64(s, 2, cached->seq);
	while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
		if (!found && sqlite3_column_int64(s, 0) != cached->seq)
			break;
		if (found)
			replay_event(cached, s);
		found = true;
	}
	if (rc != SQLITE_DONE && rc != SQLITE_ROW)
		ret = journal_fail(j, rc, "replay a job", err);
	else if (!found)
		ret = 0;
	sqlite3_reset(s);
	return ret;
}

/* Events are only appended, so the replay starts at the cached state: a job of n
 * events needs n steps in all, not n * n. If the cached event was deleted (journal_delete_case), all events are replayed. */
int journal_job_state(struct journal *j, int64_t job, enum job_state *ret_state, struct err *err)
{
	struct journal_state_cache *kept = &j->state_cache[(uint64_t)job % JOURNAL_STATE_CACHE_SIZE], cached = *kept;
	int ret;

	if (cached.job != job)
		cached = (struct journal_state_cache){.job = job, .state = JOB_NONE};
	ret = replay_rest(j, &cached, err);
	if (ret == 0) {
		cached = (struct journal_state_cache){.job = job, .state = JOB_NONE};
		ret = replay_rest(j, &cached, err);
	}
	if (ret < 0)
		return ret;
	*kept = cached;
	*ret_state = cached.state;
	return 0;
}

/* Inside a transaction: check that the job's state allows the event; ESTALE: it does not. */
static int check_fits(struct journal *j, int64_t job, enum job_event event, struct err *err)
{
	enum job_state state;
	int ret = journal_job_state(j, job, &state, err);

	if (ret < 0)
		return ret;
	if (state == JOB_NONE)
		return err_set(err, ENOENT, "no job %lld", (long long)job);
	if (job_next(state, event) == JOB_IMPOSSIBLE)
		return err_set(err, ESTALE, "job %lld is %s: event '%s' is not allowed in this state", (long long)job,
			       job_state_name(state), job_event_name(event));
	return 0;
}

/* Inside a transaction, after check_fits(), which has read the job's last event. */
static int check_unchanged(const struct journal *j, int64_t job, int64_t seen, struct err *err)
{
	if (j->state_cache[(uint64_t)job % JOURNAL_STATE_CACHE_SIZE].seq <= seen)
		return 0;
	return err_set(err, ESTALE, "job %lld has changed meanwhile", (long long)job);
}

/* Inside a transaction: record the objects of a result. */
static int insert_result(struct journal *j, int64_t job, const char *detail, struct err *err)
{
	sqlite3_stmt *add = journal_stmt(j, JOURNAL_ADD_RESULT, err);

	if (!add)
		return -EIO;
	journal_bind(add, 1, detail);
	sqlite3_bind_int64(add, 2, job);
	return journal_step(j, add, "record the objects of a result", NULL, NULL, err);
}

int journal_append_if_unchanged(struct journal *j, int64_t job, int64_t seen, enum job_event event, const char *detail,
				double now, struct err *err)
{
	int ret = journal_execute(j, JOURNAL_BEGIN, "begin", err);

	if (ret < 0)
		return ret;
	ret = check_fits(j, job, event, err);
	if (ret == 0)
		ret = check_unchanged(j, job, seen, err);
	if (ret == 0)
		ret = insert_event(j, job, event, 0, detail, now, err);
	if (ret == 0 && event == EVENT_RECONSTRUCTED)
		ret = insert_result(j, job, detail, err);
	return journal_end_transaction(j, ret, err);
}

/* Inside a transaction, after `complete`: append a `companion` event, with the detail of the classification. */
static int insert_companion(struct journal *j, int64_t job, int64_t instance, double now, struct err *err)
{
	sqlite3_stmt *removed = journal_stmt(j, JOURNAL_IS_REMOVED, err);
	sqlite3_stmt *add = removed ? journal_stmt(j, JOURNAL_ADD_COMPANION, err) : NULL;
	int ret;

	if (!add)
		return -EIO;
	sqlite3_bind_int64(removed, 1, instance);
	ret = journal_step(j, removed, "look for a removed instance", NULL, NULL, err);
	if (ret > 0)
		return err_set(err, ESTALE, "instance %lld was removed meanwhile", (long long)instance);
	if (ret < 0)
		return ret;
	sqlite3_bind_double(add, 1, now);
	sqlite3_bind_int64(add, 2, job);
	sqlite3_bind_int64(add, 3, instance);
	return journal_step(j, add, "join an instance", NULL, NULL, err);
}

int journal_append_complete(struct journal *j, int64_t job, int64_t seen, const char *detail, const int64_t *companions, size_t n,
			    double now, struct err *err)
{
	int ret = journal_execute(j, JOURNAL_BEGIN, "begin", err);

	if (ret < 0)
		return ret;
	ret = check_fits(j, job, EVENT_COMPLETE, err);
	if (ret == 0)
		ret = check_unchanged(j, job, seen, err);
	if (ret == 0)
		ret = insert_event(j, job, EVENT_COMPLETE, 0, detail, now, err);
	for (size_t i = 0; ret == 0 && i < n; i++)
		ret = insert_companion(j, job, companions[i], now, err);
	return journal_end_transaction(j, ret, err);
}

int journal_append(struct journal *j, int64_t job, enum job_event event, const char *detail, double now, struct err *err)
{
	return journal_append_if_unchanged(j, job, INT64_MAX, event, detail, now, err);
}

int journal_classify(struct journal *j, int64_t instance, enum classification kind, int64_t job, const char *detail, double now,
		     struct err *err)
{
	int ret = journal_execute(j, JOURNAL_BEGIN, "begin", err);

	if (ret < 0)
		return ret;
	ret = insert_classification(j, instance, kind, job, detail, now, err);
	if (ret == 0 && kind == CLASSIFIED_MEMBER) {
		ret = check_fits(j, job, EVENT_INSTANCE, err);
		if (ret == 0)
			ret = insert_event(j, job, EVENT_INSTANCE, instance, detail, now, err);
	}
	return journal_end_transaction(j, ret, err);
}

/* Inside a transaction: append the `opened` event, whose seq becomes the job's number. */
static int insert_job(struct journal *j, const char *detail, double now, int64_t *ret_job, struct err *err)
{
	sqlite3_stmt *s;
	int64_t seq;
	int ret = insert_event(j, 0, EVENT_OPENED, 0, detail, now, err);

	if (ret < 0)
		return ret;
	seq = sqlite3_last_insert_rowid(j->db);
	s = journal_stmt(j, JOURNAL_SET_OWN_JOB, err);
	if (!s)
		return -EIO;
	sqlite3_bind_int64(s, 1, seq);
	ret = journal_step(j, s, "number a job", NULL, NULL, err);
	if (ret == 0)
		*ret_job = seq;
	return ret;
}

int journal_open_job(struct journal *j, const char *detail, double now, int64_t *ret_job, struct err *err)
{
	int64_t job = 0;
	int ret = journal_execute(j, JOURNAL_BEGIN, "begin", err);

	if (ret < 0)
		return ret;
	ret = journal_end_transaction(j, insert_job(j, detail, now, &job, err), err);
	if (ret == 0)
		*ret_job = job;
	return ret;
}

/* Inside a transaction: open a job with all instances of `of`. */
static int insert_job_with_members(struct journal *j, int64_t of, const char *detail, double now, int64_t *ret_job,
				   struct err *err)
{
	enum job_state state;
	sqlite3_stmt *s;
	int ret = journal_job_state(j, of, &state, err);

	if (ret == 0 && state == JOB_CLEANED)
		ret = err_set(err, ESTALE, "job %lld is cleaned: its images were removed, and cannot be used again",
			      (long long)of);
	if (ret == 0)
		ret = insert_job(j, detail, now, ret_job, err);
	if (ret < 0)
		return ret;
	s = journal_stmt(j, JOURNAL_COPY_MEMBERS, err);
	if (!s)
		return -EIO;
	sqlite3_bind_double(s, 1, now);
	sqlite3_bind_int64(s, 2, *ret_job);
	sqlite3_bind_int64(s, 3, of);
	return journal_step(j, s, "copy the members", NULL, NULL, err);
}

int journal_open_revision(struct journal *j, int64_t of, int64_t instance, const char *classification, const char *detail,
			  double now, int64_t *ret_job, struct err *err)
{
	int64_t job = 0;
	int ret = journal_execute(j, JOURNAL_BEGIN, "begin", err);

	if (ret < 0)
		return ret;
	ret = insert_job_with_members(j, of, detail, now, &job, err);
	if (ret == 0)
		ret = insert_classification(j, instance, CLASSIFIED_MEMBER, job, classification, now, err);
	if (ret == 0)
		ret = insert_event(j, job, EVENT_INSTANCE, instance, classification, now, err);
	ret = journal_end_transaction(j, ret, err);
	if (ret == 0)
		*ret_job = job;
	return ret;
}

/* Inside a transaction: check the number of a job's instances. ESTALE: it has another one. */
static int check_members(struct journal *j, int64_t job, long instances, struct err *err)
{
	sqlite3_stmt *s = journal_stmt(j, JOURNAL_COUNT_MEMBERS, err);
	int64_t n = 0;
	int ret;

	if (!s)
		return -EIO;
	sqlite3_bind_int64(s, 1, job);
	ret = journal_step(j, s, "count the members", journal_read_int64, &n, err);
	if (ret >= 0 && n != instances)
		return err_set(err, ESTALE, "job %lld has %lld instances, not %ld", (long long)job, (long long)n, instances);
	return ret < 0 ? ret : 0;
}

/* Inside a transaction: ESTALE: retention removed an instance of the job, which it shares with a cleaned one. */
static int check_kept(struct journal *j, int64_t job, struct err *err)
{
	sqlite3_stmt *s = journal_stmt(j, JOURNAL_FIND_REMOVED_MEMBER, err);
	int ret;

	if (!s)
		return -EIO;
	sqlite3_bind_int64(s, 1, job);
	ret = journal_step(j, s, "look for removed members", NULL, NULL, err);
	return ret == 1 ? err_set(err, ESTALE, "images of job %lld were removed by retention", (long long)job) : ret;
}

int journal_open_result(struct journal *j, int64_t of, long instances, const char *detail, double now, int64_t *ret_job,
			struct err *err)
{
	int64_t job = 0;
	int ret = journal_execute(j, JOURNAL_BEGIN, "begin", err);

	if (ret < 0)
		return ret;
	ret = check_members(j, of, instances, err);
	if (ret == 0)
		ret = check_kept(j, of, err);
	if (ret == 0)
		ret = insert_job_with_members(j, of, detail, now, &job, err);
	ret = journal_end_transaction(j, ret, err);
	if (ret == 0)
		*ret_job = job;
	return ret;
}

/* Inside a transaction: make instances members of a job that is opened in place of `of`. What `of` has belongs to it, too, also
 * what was not selected: sent again, it is no new case. */
static int select_members(struct journal *j, int64_t job, int64_t of, const int64_t *instances, size_t n, double now,
			  struct err *err)
{
	sqlite3_stmt *add = journal_stmt(j, JOURNAL_SELECT_MEMBER, err);
	sqlite3_stmt *classify = add ? journal_stmt(j, JOURNAL_SELECT_CLASSIFICATION, err) : NULL;
	int ret = classify ? 0 : -EIO;

	for (size_t i = 0; ret == 0 && i < n; i++) {
		sqlite3_bind_double(add, 1, now);
		sqlite3_bind_int64(add, 2, job);
		sqlite3_bind_int64(add, 3, of);
		sqlite3_bind_int64(add, 4, instances[i]);
		ret = journal_step(j, add, "select a member", NULL, NULL, err);
	}
	if (ret < 0)
		return ret;
	sqlite3_bind_int64(classify, 1, job);
	sqlite3_bind_int64(classify, 2, of);
	return journal_step(j, classify, "classify the members", NULL, NULL, err);
}

/* Inside a transaction: cancel a job, unless it is cancelled, if the caller has read its last event. */
static int cancel_unchanged(struct journal *j, int64_t job, int64_t seen, const char *detail, double now, struct err *err)
{
	enum job_state state;
	int ret = journal_job_state(j, job, &state, err);

	if (ret == 0 && state != JOB_CANCELLED)
		ret = check_fits(j, job, EVENT_CANCEL, err);
	if (ret == 0)
		ret = check_unchanged(j, job, seen, err);
	return ret < 0 || state == JOB_CANCELLED ? ret : insert_event(j, job, EVENT_CANCEL, 0, detail, now, err);
}

int journal_open_selection(struct journal *j, int64_t of, int64_t seen, const int64_t *instances, size_t n, const char *detail,
			   const char *cancel, double now, int64_t *ret_job, struct err *err)
{
	int64_t job = 0;
	int ret = journal_execute(j, JOURNAL_BEGIN, "begin", err);

	if (ret < 0)
		return ret;
	ret = cancel_unchanged(j, of, seen, cancel, now, err);
	if (ret == 0)
		ret = insert_job(j, detail, now, &job, err);
	if (ret == 0)
		ret = select_members(j, job, of, instances, n, now, err);
	if (ret == 0)
		ret = check_members(j, job, (long)n, err);
	if (ret == 0)
		ret = check_kept(j, job, err);
	ret = journal_end_transaction(j, ret, err);
	if (ret == 0)
		*ret_job = job;
	return ret;
}

int journal_append_cleaned(struct journal *j, int64_t job, int64_t seen, const char *detail, double now, struct err *err)
{
	sqlite3_stmt *since, *remove;
	int ret = journal_execute(j, JOURNAL_BEGIN, "begin", err);

	if (ret < 0)
		return ret;
	since = journal_stmt(j, JOURNAL_SHARED_SINCE, err);
	remove = journal_stmt(j, JOURNAL_REMOVE_MEMBERS, err);
	ret = since && remove ? check_fits(j, job, EVENT_CLEANED, err) : -EIO;
	if (ret == 0) {
		sqlite3_bind_int64(since, 1, job);
		sqlite3_bind_int64(since, 2, seen);
		ret = journal_step(j, since, "look for later events", NULL, NULL, err);
		if (ret > 0)
			ret = err_set(err, ESTALE, "job %lld, or one that shares images with it, has changed meanwhile",
				      (long long)job);
	}
	if (ret == 0) {
		sqlite3_bind_int64(remove, 1, job);
		sqlite3_bind_double(remove, 2, now);
		ret = journal_step(j, remove, "remove the instances of a job", NULL, NULL, err);
	}
	if (ret == 0)
		ret = insert_event(j, job, EVENT_CLEANED, 0, detail, now, err);
	return journal_end_transaction(j, ret, err);
}

/* Return true if the detail has this transaction, and its destination. */
static bool has_transaction(const char *detail, const char *transaction, char *ret_destination, size_t size)
{
	json_t *all = json_loads(detail ? detail : "", 0, NULL);
	const char *is = json_string_value(json_object_get(all, "transaction"));
	const char *destination = json_string_value(json_object_get(all, "destination"));
	bool found = is && destination && !strcmp(is, transaction) && strlen(destination) < size;

	if (found)
		strcpy(ret_destination, destination);
	json_decref(all);
	return found;
}

int journal_find_transaction(struct journal *j, const char *transaction, int64_t *ret_job, char *ret_destination, size_t size,
			     struct err *err)
{
	sqlite3_stmt *s = journal_stmt(j, JOURNAL_FIND_TRANSACTION, err);
	int rc = SQLITE_DONE, ret = 0;

	if (!s)
		return -EIO;
	journal_bind(s, 1, transaction);
	while (ret == 0 && (rc = sqlite3_step(s)) == SQLITE_ROW) {
		int64_t job = sqlite3_column_int64(s, 0);

		if (!has_transaction((const char *)sqlite3_column_text(s, 1), transaction, ret_destination, size))
			continue;
		*ret_job = job;
		ret = 1;
	}
	if (ret == 0 && rc != SQLITE_DONE)
		ret = journal_fail(j, rc, "look for a transaction", err);
	sqlite3_reset(s);
	sqlite3_clear_bindings(s);
	return ret;
}

/* ---- iteration ---- */

/* Call each() for every row of a statement with one or two parameters until it returns non-zero. */
static int walk_rows(struct journal *j, const char *what, const char *doing, int64_t first, int64_t second,
		     int (*each)(void *ctx, sqlite3_stmt *s), void *ctx, struct err *err)
{
	sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(j->db, what, -1, &s, NULL), ret = 0;

	if (rc != SQLITE_OK)
		return journal_fail(j, rc, doing, err);
	sqlite3_bind_int64(s, 1, first);
	if (sqlite3_bind_parameter_count(s) > 1)
		sqlite3_bind_int64(s, 2, second);
	while (ret == 0 && (rc = sqlite3_step(s)) == SQLITE_ROW)
		ret = each(ctx, s);
	if (ret == 0 && rc != SQLITE_DONE)
		ret = journal_fail(j, rc, doing, err);
	sqlite3_finalize(s);
	return ret < 0 ? ret : 0;
}

struct event_reader {
	int (*each)(void *ctx, const struct event_row *row);
	void *ctx;
};

static int read_event(void *ctx, sqlite3_stmt *s)
{
	const struct event_reader *r = ctx;
	char *detail = (char *)sqlite3_column_text(s, 5);
	struct event_row row = {.seq = sqlite3_column_int64(s, 0),
				.time = sqlite3_column_double(s, 1),
				.job = sqlite3_column_int64(s, 2),
				.instance = sqlite3_column_int64(s, 4),
				.detail = detail ? detail : (char *)""};

	row.known = sqlite3_column_type(s, 2) == SQLITE_INTEGER &&
		    job_event_parse((const char *)sqlite3_column_text(s, 3), &row.event) == 0;
	return r->each(r->ctx, &row);
}

int journal_replay(struct journal *j, int64_t job, int64_t after, int (*each)(void *ctx, const struct event_row *row), void *ctx,
		   struct err *err)
{
	struct event_reader reader = {each, ctx};

	return walk_rows(j,
			 job ? "SELECT seq, time, job, name, instance, detail FROM event WHERE job=?2 AND seq>?1 ORDER BY seq"
			     : "SELECT seq, time, job, name, instance, detail FROM event WHERE seq>?1 ORDER BY seq",
			 "replay", after, job, read_event, &reader, err);
}

struct instance_reader {
	int (*each)(void *ctx, const struct instance_row *row, const char *detail);
	void *ctx;
};

static int read_instance(void *ctx, sqlite3_stmt *s)
{
	const struct instance_reader *r = ctx;
	const char *detail = (const char *)sqlite3_column_text(s, 11);
	struct instance_row row;

	journal_read_instance(&row, s);
	row.companion = sqlite3_column_count(s) > 12 && sqlite3_column_int(s, 12);
	return r->each(r->ctx, &row, detail ? detail : "");
}

static int walk_instances(struct journal *j, const char *what, int64_t key, int max,
			  int (*each)(void *ctx, const struct instance_row *row, const char *detail), void *ctx, struct err *err)
{
	struct instance_reader reader = {each, ctx};

	return walk_rows(j, what, "walk the instances", key, max, read_instance, &reader, err);
}

int journal_each_member(struct journal *j, int64_t job,
			int (*each)(void *ctx, const struct instance_row *row, const char *detail), void *ctx, struct err *err)
{
	return walk_instances(j,
			      "SELECT " JOURNAL_COLUMNS ", e.detail, e.name='companion' FROM event e JOIN instance i ON"
			      " i.id=e.instance WHERE e.job=?1 AND (e.name='instance' OR e.name='companion' AND e.seq>"
			      "(SELECT MAX(seq) FROM event WHERE job=?1 AND name='complete')) AND ?2"
			      " ORDER BY e.name='companion', e.seq",
			      job, 1, each, ctx, err);
}

int journal_each_classified(struct journal *j, enum classification kind, int max,
			    int (*each)(void *ctx, const struct instance_row *row, const char *detail), void *ctx,
			    struct err *err)
{
	return walk_instances(j,
			      "SELECT " JOURNAL_COLUMNS ", f.detail FROM classification f JOIN instance i ON i.id=f.instance"
			      " WHERE f.kind=?1 AND f.kind<>1 AND" JOURNAL_NOT_REMOVED " ORDER BY f.instance DESC LIMIT ?2",
			      kind, max, each, ctx, err);
}

struct newer_reader {
	int (*each)(void *ctx, const struct instance_row *row, const char *detail, int64_t member);
	void *ctx;
};

static int read_newer(void *ctx, sqlite3_stmt *s)
{
	const struct newer_reader *r = ctx;
	const char *detail = (const char *)sqlite3_column_text(s, 11);
	struct instance_row row;

	journal_read_instance(&row, s);
	return r->each(r->ctx, &row, detail ? detail : "", sqlite3_column_int64(s, 12));
}

int journal_each_newer(struct journal *j, int64_t job,
		       int (*each)(void *ctx, const struct instance_row *row, const char *detail, int64_t member), void *ctx,
		       struct err *err)
{
	struct newer_reader reader = {each, ctx};

	/* 4: a conflict, journal.h */
	return walk_rows(
		j,
		"SELECT " JOURNAL_COLUMNS ", f.detail, m.id FROM event e JOIN instance m ON m.id=e.instance"
		" JOIN instance i ON i.sop_instance=m.sop_instance AND i.id>m.id JOIN classification f ON f.instance=i.id"
		" WHERE e.job=?1 AND e.name='instance' AND f.kind=4 AND" JOURNAL_NOT_REMOVED " AND ?2 ORDER BY i.id",
		"look for newer instances", job, 1, read_newer, &reader, err);
}

int journal_each_unassigned(struct journal *j, double until, int max,
			    int (*each)(void *ctx, const struct instance_row *row, const char *detail), void *ctx,
			    struct err *err)
{
	/* 1: a member of a case, journal.h */
	return walk_instances(j,
			      "SELECT " JOURNAL_COLUMNS ", f.detail FROM classification f JOIN instance i ON i.id=f.instance"
			      " WHERE f.kind<>1 AND f.kind<>5 AND f.time<=?1 AND" JOURNAL_NOT_REMOVED " ORDER BY i.id LIMIT ?2",
			      (int64_t)until, max, each, ctx, err);
}

/* 5: a companion. The other conditions are those of the indexes. */
int journal_each_companion(struct journal *j, int64_t after,
			   int (*each)(void *ctx, const struct instance_row *row, const char *detail), void *ctx, struct err *err)
{
	return walk_instances(j,
			      "SELECT " JOURNAL_COLUMNS ", f.detail FROM classification f JOIN instance i ON i.id=f.instance"
			      " WHERE f.kind=5 AND f.kind<>1 AND f.instance>?1 AND f.instance<" FIRST_WAITING
			      " AND" JOURNAL_NOT_REMOVED " AND ?2 ORDER BY f.instance",
			      after, 1, each, ctx, err);
}

int journal_each_unused_companion(struct journal *j, double until, int max,
				  int (*each)(void *ctx, const struct instance_row *row, const char *detail), void *ctx,
				  struct err *err)
{
	return walk_instances(j,
			      "SELECT " JOURNAL_COLUMNS ", f.detail FROM classification f JOIN instance i ON i.id=f.instance"
			      " WHERE f.kind=5 AND f.kind<>1 AND f.time<=?1 AND" JOURNAL_NOT_REMOVED
			      " AND NOT EXISTS (SELECT 1 FROM event m WHERE m.name='companion' AND m.instance=f.instance AND NOT"
			      " EXISTS (SELECT 1 FROM event c WHERE c.job=m.job AND c.name='cleaned'))"
			      " ORDER BY i.id LIMIT ?2",
			      (int64_t)until, max, each, ctx, err);
}

int journal_each_indexed(struct journal *j, int64_t after, int max,
			 int (*each)(void *ctx, const struct instance_row *row, const char *detail), void *ctx, struct err *err)
{
	return walk_instances(j,
			      "SELECT " JOURNAL_COLUMNS ", f.detail FROM classification f JOIN instance i ON i.id=f.instance"
			      " WHERE f.instance>?1 AND f.instance<" FIRST_WAITING " ORDER BY f.instance LIMIT ?2",
			      after, max, each, ctx, err);
}

static void read_last(void *ctx, sqlite3_stmt *s)
{
	int64_t *last = ctx;

	last[0] = sqlite3_column_int64(s, 0);
	last[1] = sqlite3_column_int64(s, 1);
}

int journal_last_rows(struct journal *j, int64_t *ret_instance, int64_t *ret_event, struct err *err)
{
	sqlite3_stmt *s = journal_stmt(j, JOURNAL_LAST, err);
	int64_t last[2] = {0};
	int ret = s ? journal_step(j, s, "look for the end", read_last, last, err) : -EIO;

	if (ret < 0)
		return ret;
	*ret_instance = last[0];
	*ret_event = last[1];
	return 0;
}

/* ---- totals, for metrics: rows are numbered in order, so a total is updated by adding the rows after the last one counted ----
 */

static int add_instances(void *ctx, sqlite3_stmt *s)
{
	struct journal_totals *t = ctx;

	t->instances += (uint64_t)sqlite3_column_int64(s, 0);
	t->bytes += (uint64_t)sqlite3_column_int64(s, 1);
	if (sqlite3_column_int64(s, 2) > t->last_instance)
		t->last_instance = sqlite3_column_int64(s, 2);
	return 0;
}

static int add_classified(void *ctx, sqlite3_stmt *s)
{
	struct journal_totals *t = ctx;
	int64_t kind = sqlite3_column_int64(s, 0);

	if (kind > 0 && kind <= CLASSIFIED_COMPANION)
		t->classified[kind] += (uint64_t)sqlite3_column_int64(s, 1);
	if (sqlite3_column_int64(s, 2) > t->last_classified)
		t->last_classified = sqlite3_column_int64(s, 2);
	return 0;
}

int journal_add_totals(struct journal *j, struct journal_totals *totals, struct err *err)
{
	struct journal_totals sum = *totals;
	int ret = walk_rows(j, "SELECT COUNT(*), TOTAL(bytes), MAX(id) FROM instance WHERE id>?1", "add up", sum.last_instance, 0,
			    add_instances, &sum, err);

	if (ret == 0)
		ret = walk_rows(
			j,
			"SELECT kind, COUNT(*), MAX(instance) FROM classification WHERE instance>?1 AND instance<" FIRST_WAITING
			" GROUP BY kind",
			"add up", sum.last_classified, 0, add_classified, &sum, err);
	if (ret == 0)
		*totals = sum;
	return ret;
}

struct sender_reader {
	int (*each)(void *ctx, const struct journal_sender *row);
	void *ctx;
	int64_t last;
};

static int read_sender(void *ctx, sqlite3_stmt *s)
{
	struct sender_reader *r = ctx;
	const char *calling = (const char *)sqlite3_column_text(s, 0), *host = (const char *)sqlite3_column_text(s, 1);
	struct journal_sender row = {.calling = calling ? calling : "",
				     .host = host ? host : "",
				     .last = sqlite3_column_double(s, 2),
				     .instances = (uint64_t)sqlite3_column_int64(s, 3)};

	r->last = sqlite3_column_int64(s, 4);
	return r->each(r->ctx, &row);
}

int journal_each_sender(struct journal *j, int64_t *after, int (*each)(void *ctx, const struct journal_sender *row), void *ctx,
			struct err *err)
{
	struct sender_reader reader = {each, ctx, *after};
	/* SQLite: the columns beside the only MAX() are those of its row */
	int ret = walk_rows(
		j,
		"SELECT calling, host, received, COUNT(*), MAX(id) FROM instance WHERE id>?1 GROUP BY calling ORDER BY MAX(id)",
		"list the senders", *after, 0, read_sender, &reader, err);

	if (ret == 0)
		*after = reader.last;
	return ret;
}
