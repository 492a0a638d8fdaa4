/* SPDX-License-Identifier: Apache-2.0 */
/* journal_events.c - classifications and events: append them in transactions. */
#include <errno.h>
#include <jansson.h>
#include <stddef.h>
#include <string.h>

#include "node/store/journal_internal.h"

static int insert_event(struct journal *j, int64_t job, enum job_event event, int64_t instance, const char *detail, double now,
			struct err *err)
{
	return journal_execute(j, JOURNAL_ADD_EVENT, "append an event", err,
			       VALUES(REAL(now), NUMBER(job), TEXT(job_event_name(event)), NUMBER(instance), TEXT(detail)));
}

static int insert_classification(struct journal *j, int64_t instance, enum classification kind, int64_t job, const char *detail,
				 double now, struct err *err)
{
	return journal_execute(j, JOURNAL_CLASSIFY, "add a classification", err,
			       VALUES(NUMBER(instance), NUMBER(kind), NUMBER(job), TEXT(detail), REAL(now)));
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
	journal_bind_values(s, VALUES(NUMBER(cached->job), NUMBER(cached->seq)));
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

int journal_append_if_unchanged(struct journal *j, int64_t job, int64_t seen, enum job_event event, const char *detail,
				double now, struct err *err)
{
	int ret = journal_execute(j, JOURNAL_BEGIN, "begin", err, NO_VALUES);

	if (ret == 0)
		ret = check_fits(j, job, event, err);
	if (ret == 0)
		ret = check_unchanged(j, job, seen, err);
	if (ret == 0)
		ret = insert_event(j, job, event, 0, detail, now, err);
	if (ret == 0 && event == EVENT_RECONSTRUCTED)
		ret = journal_execute(j, JOURNAL_ADD_RESULT, "record the objects of a result", err,
				      VALUES(TEXT(detail), NUMBER(job)));
	return journal_end_transaction(j, ret, err);
}

/* Inside a transaction, after `complete`: append a `companion` event, with the detail of the classification. */
static int insert_companion(struct journal *j, int64_t job, int64_t instance, double now, struct err *err)
{
	int ret = journal_execute(j, JOURNAL_IS_REMOVED, "look for a removed instance", err, VALUES(NUMBER(instance)));

	if (ret > 0)
		return err_set(err, ESTALE, "instance %lld was removed meanwhile", (long long)instance);
	return ret < 0 ? ret
		       : journal_execute(j, JOURNAL_ADD_COMPANION, "join an instance", err,
					 VALUES(REAL(now), NUMBER(job), NUMBER(instance)));
}

int journal_append_complete(struct journal *j, int64_t job, int64_t seen, const char *detail, const int64_t *companions, size_t n,
			    double now, struct err *err)
{
	int ret = journal_execute(j, JOURNAL_BEGIN, "begin", err, NO_VALUES);

	if (ret == 0)
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
	int ret = journal_execute(j, JOURNAL_BEGIN, "begin", err, NO_VALUES);

	if (ret == 0)
		ret = insert_classification(j, instance, kind, job, detail, now, err);
	if (ret == 0 && kind == CLASSIFIED_MEMBER) {
		ret = check_fits(j, job, EVENT_INSTANCE, err);
		if (ret == 0)
			ret = insert_event(j, job, EVENT_INSTANCE, instance, detail, now, err);
	}
	return journal_end_transaction(j, ret, err);
}

/* Inside a transaction: append the `opened` event of a new job. Jobs are numbered 1, 2, 3; no number is used again. */
static int insert_job(struct journal *j, const char *detail, double now, int64_t *ret_job, struct err *err)
{
	int ret = journal_execute(j, JOURNAL_NUMBER_JOB, "number a job", err, NO_VALUES);
	int64_t job = sqlite3_last_insert_rowid(j->db);

	if (ret == 0)
		ret = journal_execute(j, JOURNAL_FORGET_NUMBERS, "number a job", err, VALUES(NUMBER(job)));
	if (ret == 0)
		ret = insert_event(j, job, EVENT_OPENED, 0, detail, now, err);
	if (ret == 0)
		ret = journal_execute(j, JOURNAL_ADD_KEYS, "add the key of a case", err, NO_VALUES);
	if (ret == 0)
		*ret_job = job;
	return ret;
}

int journal_open_job(struct journal *j, const char *detail, double now, int64_t *ret_job, struct err *err)
{
	int64_t job = 0;
	int ret = journal_execute(j, JOURNAL_BEGIN, "begin", err, NO_VALUES);

	if (ret == 0)
		ret = insert_job(j, detail, now, &job, err);
	ret = journal_end_transaction(j, ret, err);
	if (ret == 0)
		*ret_job = job;
	return ret;
}

/* Inside a transaction: open a job with all instances of `of`. */
static int insert_job_with_members(struct journal *j, int64_t of, const char *detail, double now, int64_t *ret_job,
				   struct err *err)
{
	enum job_state state;
	int ret = journal_job_state(j, of, &state, err);

	if (ret == 0 && state == JOB_CLEANED)
		ret = err_set(err, ESTALE, "job %lld is cleaned: its images were removed, and cannot be used again",
			      (long long)of);
	if (ret == 0)
		ret = insert_job(j, detail, now, ret_job, err);
	return ret < 0 ? ret
		       : journal_execute(j, JOURNAL_COPY_MEMBERS, "copy the members", err,
					 VALUES(REAL(now), NUMBER(*ret_job), NUMBER(of)));
}

int journal_open_revision(struct journal *j, int64_t of, int64_t instance, const char *classification, const char *detail,
			  double now, int64_t *ret_job, struct err *err)
{
	int64_t job = 0;
	int ret = journal_execute(j, JOURNAL_BEGIN, "begin", err, NO_VALUES);

	if (ret == 0)
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
	int64_t n = 0;
	int ret = journal_read(j, JOURNAL_COUNT_MEMBERS, "count the members", journal_read_int64, &n, err, VALUES(NUMBER(job)));

	if (ret >= 0 && n != instances)
		return err_set(err, ESTALE, "job %lld has %lld instances, not %ld", (long long)job, (long long)n, instances);
	return ret < 0 ? ret : 0;
}

/* Inside a transaction: ESTALE: retention removed an instance of the job, which it shares with a cleaned one. */
static int check_kept(struct journal *j, int64_t job, struct err *err)
{
	int ret = journal_execute(j, JOURNAL_FIND_REMOVED_MEMBER, "look for removed members", err, VALUES(NUMBER(job)));

	return ret == 1 ? err_set(err, ESTALE, "images of job %lld were removed by retention", (long long)job) : ret;
}

int journal_open_result(struct journal *j, int64_t of, long instances, const char *detail, double now, int64_t *ret_job,
			struct err *err)
{
	int64_t job = 0;
	int ret = journal_execute(j, JOURNAL_BEGIN, "begin", err, NO_VALUES);

	if (ret == 0)
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
	int ret = 0;

	for (size_t i = 0; ret == 0 && i < n; i++)
		ret = journal_execute(j, JOURNAL_SELECT_MEMBER, "select a member", err,
				      VALUES(REAL(now), NUMBER(job), NUMBER(of), NUMBER(instances[i])));
	return ret < 0 ? ret
		       : journal_execute(j, JOURNAL_SELECT_CLASSIFICATION, "classify the members", err,
					 VALUES(NUMBER(job), NUMBER(of)));
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
	int ret = journal_execute(j, JOURNAL_BEGIN, "begin", err, NO_VALUES);

	if (ret == 0)
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
	int ret = journal_execute(j, JOURNAL_BEGIN, "begin", err, NO_VALUES);

	if (ret == 0)
		ret = check_fits(j, job, EVENT_CLEANED, err);
	if (ret == 0)
		ret = journal_execute(j, JOURNAL_SHARED_SINCE, "look for later events", err, VALUES(NUMBER(job), NUMBER(seen)));
	if (ret > 0)
		ret = err_set(err, ESTALE, "job %lld, or one that shares images with it, has changed meanwhile", (long long)job);
	if (ret == 0)
		ret = journal_execute(j, JOURNAL_REMOVE_MEMBERS, "remove the instances of a job", err,
				      VALUES(NUMBER(job), REAL(now)));
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
	journal_bind_values(s, VALUES(TEXT(transaction)));
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
