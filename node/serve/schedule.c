/* SPDX-License-Identifier: Apache-2.0 */
#include "node/serve/schedule.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/base/exit_code.h"
#include "node/base/folder.h"
#include "node/base/json_get.h"
#include "node/base/log.h"
#include "node/config/kind.h"
#include "node/jobs/case_results.h"
#include "node/jobs/case_selection.h"
#include "node/jobs/jobs_settled.h"
#include "node/jobs/journal_retention.h"
#include "node/jobs/patients.h"
#include "node/serve/retention.h"
#include "node/serve/schedule_internal.h"
#include "node/store/event.h"
#include "node/store/index_mark.h"
#include "node/store/spool.h"

#define JOURNAL_WAIT 2.0    /* s until the next attempt to write the journal after a failure */
#define UNREAD_SECONDS 30.0 /* s for which it is said that a case cannot be read, after the last attempt */
#define INDEX_WAIT 1.0	    /* s until the indexer is started again after a failure */
#define INDEX_SIGNALS_MAX                                                                                                        \
	2 /* crashes of the indexer at one instance after which it is left unassigned; one may be for lack of memory */
#define INDEX_FAILURES_MAX 10	      /* the same number if it could not read the instance for another reason */
#define ARRIVING_LOOK 1.0	      /* s between two checks while an object is arriving */
#define CHANGED_LOOK 0.1	      /* s until a job is decided again that another process has changed */
#define CLEAN_EVERY 600.0	      /* s between two runs of retention by age */
#define RECORD_EVERY 60.0	      /* s between two records of settled jobs: a start reads those that are not recorded */
#define SPACE_EVERY 30.0	      /* s between two runs of retention by space */
#define JOURNAL_RESERVE (16ull << 20) /* see journal_reserve() */
#define STEP_LONGEST 60		      /* s */

void schedule_wake_at(struct schedule *s, double when)
{
	if (when < s->next)
		s->next = when;
}

void schedule_wake_on_clock(struct schedule *s, double deadline, double now)
{
	schedule_wake_at(s, now + (deadline - s->clock));
}

bool schedule_is_before(struct schedule *s, double until, double longest, double now)
{
	if (until <= now || until - now > longest + STEP_LONGEST)
		return false;
	schedule_wake_at(s, until);
	return true;
}

static void journal_error(struct schedule *s, const struct err *err, double now)
{
	if (s->retry_at < s->clock) /* log once per waiting time, not at each attempt */
		log_event(LOG_CRIT, "journal-error", "reason=%s", log_quote(err->msg));
	s->retry_at = s->clock + JOURNAL_WAIT;
	schedule_wake_on_clock(s, s->retry_at, now);
}

static int refresh_jobs(struct schedule *s, double now)
{
	struct err err = {0};
	size_t quarantined = 0;
	int ret;

	if (!s->journal)
		return -EIO;
	ret = s->jobs.journal || s->jobs.n > 0 ? 0 : jobs_begin(&s->jobs, s->journal, now, &err);
	if (ret == 0)
		ret = jobs_refresh(&s->jobs, s->journal, 0, &err);
	if (ret < 0) {
		journal_error(s, &err, now);
		return ret;
	}
	jobs_observe_clock(&s->jobs, now);
	for (size_t i = 0; i < s->jobs.n_open; i++) {
		const struct job_view *v = s->jobs.open[i];

		if (v->state == JOB_IMPOSSIBLE && ++quarantined > s->quarantined)
			log_event(LOG_ALERT, "job-quarantined", "job=%lld reason=%s", (long long)v->id, log_quote(v->reason));
	}
	s->quarantined = quarantined;
	return 0;
}

/* A case waits, because another one that may be of its exam cannot be read. The others go on. */
static void note_unread(struct schedule *s, const struct job_view *v, const struct err *err, double now)
{
	if (!schedule_unread_case(s)[0])
		log_event(LOG_CRIT, "case-unreadable", "job=%lld reason=%s", (long long)v->id, log_quote(err->msg));
	snprintf(s->unread, sizeof(s->unread), "%.299s", err->msg);
	s->unread_at = s->clock;
	schedule_wake_on_clock(s, s->clock + JOURNAL_WAIT, now);
}

/* An action of several events failed for a reason that is not ESTALE. */
static void action_failed(struct schedule *s, const struct job_view *v, const struct err *err, double now)
{
	struct err why = {0};

	if (jobs_whole(&s->jobs, v, &why) < 0)
		note_unread(s, v, &why, now);
	else
		journal_error(s, err, now);
}

const char *schedule_unread_case(const struct schedule *s)
{
	return s->unread[0] && s->clock - s->unread_at < UNREAD_SECONDS ? s->unread : "";
}

/* Append an event if the job has none after `seen`; `complete` with n companions. */
static bool append_event(struct schedule *s, const struct job_view *v, int64_t seen, enum job_event event, json_t *detail,
			 const int64_t *companions, size_t n, double now)
{
	struct err err = {0};
	int64_t before;
	int ret;

	if (!s->journal) {
		json_decref(detail);
		return false;
	}
	before = s->jobs.last_seq;
	ret = jobs_whole(&s->jobs, v, &err); /* what was decided, was decided without a job that could not be read */
	if (ret < 0) {
		json_decref(detail);
		note_unread(s, v, &err, now);
		return false;
	}
	ret = n > 0 ? event_append_complete(s->journal, v->id, seen, detail, companions, n, now, &err)
		    : event_append_if_unchanged(s->journal, v->id, seen, event, detail, now, &err);
	if (ret == -ESTALE && n > 0)
		companions_clear(&s->companions); /* perhaps retention has removed one */
	if (ret < 0 && ret != -ESTALE) {
		journal_error(s, &err, now);
		return false;
	}
	if (refresh_jobs(s, now) < 0)
		return false;
	if (ret == -ESTALE && s->jobs.last_seq > before)
		schedule_wake_at(s, now + CHANGED_LOOK);
	return ret == 0;
}

bool schedule_append_event(struct schedule *s, const struct job_view *v, enum job_event event, json_t *detail, double now)
{
	return append_event(s, v, INT64_MAX, event, detail, NULL, 0, now);
}

bool schedule_decide(struct schedule *s, const struct job_view *v, enum job_event event, json_t *detail, double now)
{
	return append_event(s, v, s->jobs.last_seq, event, detail, NULL, 0, now);
}

bool schedule_decide_complete(struct schedule *s, const struct job_view *v, json_t *detail, const int64_t *companions, size_t n,
			      double now)
{
	return append_event(s, v, s->jobs.last_seq, EVENT_COMPLETE, detail, companions, n, now);
}

json_t *schedule_reason(const char *reason)
{
	return json_pack("{s:o}", "reason", event_json_text(reason));
}

/* ---- collecting ---- */

bool schedule_is_receiving(struct schedule *s)
{
	uint64_t incoming;
	char path[300];

	snprintf(path, sizeof(path), "%s/incoming", s->config->node.spool);
	incoming = folder_fingerprint(path);
	if (incoming != s->incoming) {
		s->incoming = incoming;
		s->incoming_since = s->clock;
	}
	return incoming != 0 && s->clock - s->incoming_since < s->config->node.quiet_time;
}

/* Return true if an object is being received or waits for the indexer: a quiet time must not end then. */
static bool still_arriving(struct schedule *s)
{
	struct instance_row row;

	return journal_list_unindexed(s->journal, 0, &row, 1, NULL) != 0 || schedule_is_receiving(s);
}

/* Hold a case whose headers, or those of it and of another case of its study, do not name one patient; false: they do. */
static bool hold_patients(struct schedule *s, const struct job_view *v, double now, bool *ret_changed)
{
	struct patient_conflict conflict;
	const struct job_view *other;
	char reason[320];

	if (!patients_conflict(&s->jobs, v, &conflict, &other))
		return false;
	patients_reason(s->journal, v, &conflict, other, reason, sizeof(reason));
	*ret_changed = schedule_decide(s, v, EVENT_HELD,
				       json_pack("{s:o, s:b, s:I, s:I, s:I}", "reason", event_json_text(reason), "patients", 1,
						 "other", (json_int_t)(other ? other->id : 0), "instances",
						 (json_int_t)v->members.instances, "expected", (json_int_t)v->members.expected),
				       now);
	return true;
}

/* Return true if the protocol of a further result, with its settings, needs a CT series. */
static bool needs_ct(const struct schedule *s, const struct job_view *v)
{
	const struct protocol_conf *protocol = config_protocol(s->config, v->other.protocol);
	struct protocol_conf *copy = protocol ? malloc(sizeof(*copy)) : NULL;
	bool needs;

	if (!copy)
		return false; /* not in the configuration: complete_result() holds it */
	*copy = *protocol;
	needs = other_result_apply(copy, v->other.settings, NULL) == 0 && kind_needs_ct(copy);
	free(copy);
	return needs;
}

/* A further result of a case that was complete: its first job decided that. */
static bool complete_result(struct schedule *s, const struct job_view *v, double now)
{
	struct err err = {0};
	json_t *detail;
	bool changed;

	if (case_results_is_replaced(&s->jobs, v))
		return false; /* advance_job() cancels it */
	detail = case_results_complete(s->journal, s->config, v, &err);
	if (!detail && (err.code == ENOKEY || err.code == EBADMSG))
		return schedule_decide(s, v, EVENT_HELD, schedule_reason(err.msg), now);
	if (!detail) {
		journal_error(s, &err, now);
		return false;
	}
	if (!json_get_bool(detail, "same_patient") && hold_patients(s, v, now, &changed)) {
		json_decref(detail);
		return changed;
	}
	return schedule_complete_with_ct(s, v, needs_ct(s, v), detail, now);
}

/* Hold a case whose images are of more than one sweep, however many they are, so that those that still come belong to it; false:
 * they are of one. */
static bool hold_sweeps(struct schedule *s, const struct job_view *v, double now, bool *ret_changed)
{
	struct exposures sweeps;
	char reason[600];

	if (case_sweeps_find(s->journal, v, true, &sweeps, NULL) <= 0)
		return false;
	exposures_refusal(&sweeps, false, reason, sizeof(reason));
	*ret_changed = schedule_decide(s, v, EVENT_HELD, schedule_reason(reason), now);
	return true;
}

/* Of a case with too many images: add which sweeps they are of. */
static void name_sweeps(struct schedule *s, const struct job_view *v, char *reason, size_t size)
{
	struct exposures sweeps;
	size_t at = strlen(reason);

	if (case_sweeps_find(s->journal, v, false, &sweeps, NULL) > 0 && at + 2 < size) {
		memcpy(reason + at, "; ", 3);
		exposures_text(&sweeps, reason + at + 2, size - at - 2);
	}
}

static bool collect_job(struct schedule *s, const struct job_view *v, double now)
{
	struct assemble_decision answer;
	char reason[320];
	bool changed;

	if (v->other.of > 0)
		return complete_result(s, v, now);
	assemble_decide(&v->members, now, s->config->node.quiet_time, &answer);
	if (answer.verdict == ASSEMBLE_WAIT) {
		schedule_wake_at(s, answer.again);
		return false;
	}
	if (answer.after_quiet && still_arriving(s)) {
		schedule_wake_at(s, now + ARRIVING_LOOK);
		return false;
	}
	if (hold_patients(s, v, now, &changed))
		return changed;
	if (answer.verdict == ASSEMBLE_COMPLETE)
		return hold_sweeps(s, v, now, &changed) ? changed : schedule_complete(s, v, answer.reason, now);
	jobs_frames_text(&s->jobs, v, reason, sizeof(reason));
	snprintf(reason + strlen(reason), sizeof(reason) - strlen(reason), "%s", answer.reason);
	name_sweeps(s, v, reason, sizeof(reason));
	return schedule_decide(s, v, EVENT_HELD,
			       json_pack("{s:o, s:I, s:I}", "reason", event_json_text(reason), "instances",
					 (json_int_t)v->members.instances, "expected", (json_int_t)v->members.expected),
			       now);
}

/* Continue a case that is held because of damaged files when all of them have been received again. */
static bool retry_repaired(struct schedule *s, const struct job_view *v, double now)
{
	if (v->damaged == 0 || journal_count_damaged(s->journal, v->id, NULL) != 0)
		return false;
	return schedule_decide(
		s, v, EVENT_RETRY,
		json_pack("{s:s, s:b}", "reason", "the damaged images were received again", "as_is", v->members.as_is), now);
}

/* May newer objects of a held case be found that were not there at the last look? A new conflict, or an event of the case or of
 * another one of its study, can bring them. */
static bool may_have_newer(const struct schedule *s, const struct job_view *v)
{
	if (!s->look_newer || s->newer_since == 0)
		return s->look_newer;
	for (const struct job_view *o = jobs_of_study(&s->jobs, v->key); o; o = jobs_before_in_study(o))
		if (o->seq > s->newer_since)
			return true;
	return v->seq > s->newer_since;
}

/* Continue a case that is held because of the patient of another one, when that was replaced. */
static bool retry_patients(struct schedule *s, const struct job_view *v, double now)
{
	struct patient_conflict conflict;
	const struct job_view *other;

	if (!v->patients_differ || !v->patients_other || !may_have_newer(s, v) ||
	    patients_conflict(&s->jobs, v, &conflict, &other))
		return false;
	return schedule_decide(
		s, v, EVENT_RETRY,
		json_pack("{s:s, s:b}", "reason", "the case that names another patient was replaced", "as_is", v->members.as_is),
		now);
}

/* Replace images that cannot be read in a held case by newer objects that can. Looked at after each new conflict and event, when
 * nothing arrives: the sender may send several. */
static bool replace_unreadable(struct schedule *s, const struct job_view *v, double now)
{
	struct err err = {0};
	int64_t job = 0;
	long n;

	if (!may_have_newer(s, v) || case_newer_obstacle(&s->jobs, v))
		return false;
	n = case_newer_count(s->journal, v, true, &err);
	if (n > 0 && still_arriving(s)) {
		s->newer_instance = 0; /* look again */
		schedule_wake_at(s, now + ARRIVING_LOOK);
		return false;
	}
	if (n > 0)
		n = case_newer_open(s->journal, &s->jobs, v, "", NULL, now, &job, &err);
	if (n < 0 && n != -ESTALE) {
		s->newer_instance = 0;
		action_failed(s, v, &err, now);
	}
	return job > 0 && refresh_jobs(s, now) == 0;
}

/* ---- the indexer ---- */

/* The indexer needs the key, and may not write it. */
static int make_patient_key(struct schedule *s, struct err *err)
{
	int64_t instance = 0, event = 0;
	bool created;
	int ret = patient_key_create(s->config->node.spool, &created, err);

	if (ret == 0 && created && journal_last_rows(s->journal, &instance, &event, NULL) == 0 && instance > 0)
		log_event(LOG_WARNING, "patient-key-created", "reason=%s",
			  log_quote("the key was lost: patients of instances received before are not compared with later ones"));
	return ret;
}

static void index_new(struct schedule *s, double now)
{
	static const struct process p = {.role = PROCESS_INDEX};
	const char *args[] = {"index", s->config_path ? "-c" : NULL, s->config_path, NULL};
	struct instance_row row;
	struct err err = {0};
	int n;

	if (s->stopping || process_table_find(&s->processes, PROCESS_INDEX, 0, NULL))
		return;
	n = journal_list_unindexed(s->journal, 0, &row, 1, &err);
	if (n < 0)
		journal_error(s, &err, now);
	if (n <= 0)
		return;
	if (s->index_not_before > s->clock) {
		schedule_wake_on_clock(s, s->index_not_before, now);
		return;
	}
	if (make_patient_key(s, &err) < 0 || process_table_spawn(&s->processes, &p, args, s->clock, &err) < 0) {
		log_event(LOG_ERR, "index-not-started", "reason=%s", log_quote(err.msg));
		s->index_not_before = s->clock + INDEX_WAIT;
		schedule_wake_on_clock(s, s->index_not_before, now);
	}
}

/* Read the instance at which the indexer ended: the one that it has marked, otherwise the oldest one that waits. */
static int index_stuck_at(struct schedule *s, struct instance_row *ret_row, struct err *err)
{
	struct index_mark mark;
	int n;

	index_mark_read(s->config->node.spool, &mark);
	n = mark.instance > 0 ? journal_list_unindexed(s->journal, mark.instance - 1, ret_row, 1, err) : 0;
	return n == 1 && ret_row->id == mark.instance ? 1 : journal_list_unindexed(s->journal, 0, ret_row, 1, err);
}

/* Return the number of failures at one instance after which it becomes unassigned. */
static int index_tries_allowed(int status)
{
	if (!WIFSIGNALED(status))
		return INDEX_FAILURES_MAX;
	if (WTERMSIG(status) == SIGPROF)
		return 1;
	/* SIGKILL is sent by the kernel, mostly for lack of memory, and need not be caused by the instance. */
	return WTERMSIG(status) == SIGKILL ? INDEX_FAILURES_MAX : INDEX_SIGNALS_MAX;
}

static void index_reason(int status, int tries, char *ret_text, size_t size)
{
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF)
		snprintf(ret_text, size, "reading its header took more than %d s of processor time", INDEX_CPU_SECONDS);
	else if (WIFSIGNALED(status))
		snprintf(ret_text, size, "the header could not be read: the parser died with signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else
		snprintf(ret_text, size, "the header could not be read in %d attempts", tries);
}

static void index_ended(struct schedule *s, int status, bool stopped, double now)
{
	struct instance_row row;
	struct err err = {0};
	bool signalled = WIFSIGNALED(status);
	char how[120], reason[200];
	json_t *detail;
	char *text;

	if (stopped || (WIFEXITED(status) && WEXITSTATUS(status) == CODE_OK) || index_stuck_at(s, &row, &err) != 1) {
		s->index_stuck = 0;
		return;
	}
	if (!signalled || WTERMSIG(status) != SIGPROF)
		s->index_not_before = s->clock + INDEX_WAIT;
	process_describe(status, how, sizeof(how));
	log_event(LOG_ERR, "index-ended", "instance=%lld file=%s how=%s", (long long)row.id, row.file, log_quote(how));
	if (!signalled && WEXITSTATUS(status) != CODE_INPUT)
		return; /* the cause is the journal or the configuration, not this instance */
	s->index_tries = s->index_stuck == row.id ? s->index_tries + 1 : 1;
	s->index_stuck = row.id;
	if (s->index_tries < index_tries_allowed(status))
		return;
	index_reason(status, s->index_tries, reason, sizeof(reason));
	detail = json_pack("{s:I, s:o, s:o}", "instance", (json_int_t)row.id, "sop", event_json_text(row.sop_instance), "reason",
			   event_json_text(reason));
	text = event_json_dump(detail);
	if (!text || journal_classify(s->journal, row.id, CLASSIFIED_REFUSED, 0, text, now, &err) < 0)
		journal_error(s, &err, now);
	else
		log_event(LOG_WARNING, "instance-refused", "instance=%lld sop=%s file=%s reason=%s", (long long)row.id,
			  row.sop_instance, row.file, log_quote(reason));
	free(text);
}

/* ---- one step ---- */

/* Stop the processes of a cancelled job. */
static void stop_work(struct schedule *s, int64_t job)
{
	static const enum process_role roles[] = {PROCESS_WORKER, PROCESS_DELIVER, PROCESS_COMMIT};

	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
		struct process *p = process_table_find(&s->processes, roles[i], job, NULL);

		if (p && p->seat)
			schedule_cancel_seat(s, p);
		else if (p)
			process_stop(p, s->clock, SCHEDULE_CANCEL_GRACE);
	}
}

/* Open the jobs of the further results of a case that was started, and cancel one that a newer one replaces. true: the journal
 * changed. */
static bool open_further(struct schedule *s, const struct job_view *v, double now)
{
	struct job_view *view = jobs_find(&s->jobs, v->id);
	int64_t id = v->id;
	struct err err = {0};
	int ret;

	if (case_results_is_replaced(&s->jobs, v))
		return schedule_decide(s, v, EVENT_CANCEL, schedule_reason("replaced: another image of the case was received"),
				       now);
	if (!v->further || v->further_open || v->started_seq < v->completed_seq || v->state == JOB_CANCELLED ||
	    v->state == JOB_CLEANED || v->state == JOB_IMPOSSIBLE || !s->journal)
		return false;
	ret = case_results_open_next(s->journal, &s->jobs, v, now, &err);
	if (ret < 0 && ret != -ESTALE)
		action_failed(s, v, &err, now);
	view->further_open = ret == 0;
	if (ret == 0)
		return false;
	schedule_wake_at(s, now + CHANGED_LOOK);
	if (ret < 0 || refresh_jobs(s, now) < 0)
		return false;
	log_event(LOG_INFO, "job-opened", "job=%lld result_of=%lld", (long long)s->jobs.list[s->jobs.n - 1]->id, (long long)id);
	return true;
}

/* Do the next thing that is due for a job. true: the job changed, call again. */
static bool advance_job(struct schedule *s, const struct job_view *v, double now)
{
	if (open_further(s, v, now))
		return true;
	switch (v->state) {
	case JOB_COLLECTING:
		stop_work(s, v->id); /* it was cancelled and retried between two steps */
		return collect_job(s, v, now);
	case JOB_HELD:
		return retry_repaired(s, v, now) || retry_patients(s, v, now) || replace_unreadable(s, v, now) ||
		       schedule_retry_with_ct(s, v, now);
	case JOB_READY:
		return schedule_fail_crashed_job(s, v, now); /* otherwise schedule_slots_step() starts it */
	case JOB_RUNNING:
		if (process_table_find(&s->processes, PROCESS_WORKER, v->id, NULL))
			return false;
		if (v->pilot[0] && schedule_pilot_may_return(s, v, now))
			return false;
		if (v->pilot[0]) {
			schedule_pilot_gone(s, v, "the connection to its pilot was lost", now);
			return true;
		}
		return schedule_append_event(s, v, EVENT_INTERRUPTED,
					     schedule_reason("its worker no longer runs: the node ended during the run"), now);
	case JOB_RECONSTRUCTED:
	case JOB_STORED:
		return schedule_deliver(s, v, now);
	case JOB_CANCELLED:
		stop_work(s, v->id);
		return false;
	default:
		return false;
	}
}

static bool has_process(void *ctx, int64_t job)
{
	struct process_table *all = ctx;

	return process_table_find(all, PROCESS_WORKER, job, NULL) || process_table_find(all, PROCESS_DELIVER, job, NULL) ||
	       process_table_find(all, PROCESS_COMMIT, job, NULL);
}

/* Reserve disk space for the journal: at most a quarter of the free space. If the file system cannot preallocate, do not raise an
 * alarm: the journal then depends on node.reserve alone. */
static void reserve_journal(struct schedule *s)
{
	uint64_t bytes = spool_free_bytes(s->config->node.spool) / 4;
	struct err err = {0};

	if (bytes > JOURNAL_RESERVE)
		bytes = JOURNAL_RESERVE;
	if (bytes == 0 || bytes <= s->journal_reserved)
		return;
	if (journal_reserve(s->journal, bytes, &err) < 0) {
		log_event(LOG_NOTICE, "journal-not-reserved", "bytes=%llu reason=%s", (unsigned long long)bytes,
			  log_quote(err.msg));
		bytes = JOURNAL_RESERVE; /* once */
	}
	s->journal_reserved = bytes;
}

static void clean_space(struct schedule *s, double now)
{
	const struct node_conf *node = &s->config->node;
	uint64_t over;

	reserve_journal(s);
	if (node->retention_space == 0)
		return;
	over = retention_clean_space(s->journal, &s->jobs, node->spool, node->retention_space, now);
	if (over > 0 && !s->space_short)
		log_event(LOG_WARNING, "retention-space-exceeded", "over=%llu space=%llu reason=%s", (unsigned long long)over,
			  (unsigned long long)node->retention_space,
			  log_quote("the remaining cases are not delivered and are therefore not removed"));
	s->space_short = over > 0;
}

/* Record settled jobs in the journal, so that a start need not read them. */
static void record_settled(struct schedule *s, double now)
{
	if (s->journal) /* what cannot be recorded now, as on a full disk, stays in memory */
		(void)jobs_record_settled(&s->jobs, s->journal, now, NULL);
	s->record_at = s->clock + RECORD_EVERY;
}

static void clean_spool(struct schedule *s, double now)
{
	const struct node_conf *node = &s->config->node;
	const struct retention_rule rule = {node->retention_days, node->retention_unassigned_days};
	bool due = s->clean_at <= s->clock, space_due = s->space_at <= s->clock, all = true;

	if (s->record_at <= s->clock)
		record_settled(s, now);
	if (due && (rule.days > 0 || rule.unassigned_days > 0))
		all = retention_clean(s->journal, &s->jobs, node->spool, &rule, now);
	if (space_due)
		clean_space(s, now);
	if (due)
		retention_clean_outbox(&s->jobs, node->spool, has_process, &s->processes);
	retention_clean_changed_outboxes(&s->jobs, node->spool, has_process, &s->processes);
	if (due)
		s->clean_at = s->clock + (all ? CLEAN_EVERY : 1);
	if (due)
		retention_clean_orphans(node->spool, node->retention_unassigned_days, now);
	if (due && node->retention_days > 0 &&
	    retention_clean_companions(s->journal, &s->jobs, node->spool, node->retention_days, now) == RETENTION_UNASSIGNED_MAX)
		s->clean_at = s->clock + 1;
	if (due && node->retention_unassigned_days > 0 &&
	    retention_clean_unassigned(s->journal, node->spool, node->retention_unassigned_days, now) == RETENTION_UNASSIGNED_MAX)
		s->clean_at = s->clock + 1; /* there may be more */
	if (due && journal_retention_delete_unassigned(s->journal, node->journal_retention_days, now) == JOURNAL_UNASSIGNED_MAX)
		s->clean_at = s->clock + 1;
	if (due && journal_retention_compact(s->journal, &s->jobs, node->spool, node->journal_retention_days, now) ==
			   JOURNAL_RETENTION_CASES_MAX)
		s->clean_at = s->clock + 1; /* there may be more */
	if (space_due)
		s->space_at = s->clock + SPACE_EVERY;
	if (node->retention_days > 0 || node->retention_unassigned_days > 0)
		schedule_wake_on_clock(s, s->clean_at, now);
	if (node->retention_space > 0)
		schedule_wake_on_clock(s, s->space_at, now);
}

static int keep_id(void *ctx, const struct instance_row *row, const char *detail)
{
	(void)detail;
	*(int64_t *)ctx = row->id;
	return 1;
}

/* Has a conflict or an event come since the last step? If no conflict has, only cases with new events are looked at. The indexer
 * takes the senders in turn: what was not classified at the last look is behind newer_instance, whatever was classified since. */
static bool has_news(struct schedule *s)
{
	int64_t instance = s->newer_instance, event = s->newer_event, conflict = 0, last;
	bool conflicts = journal_last_rows(s->journal, &s->newer_instance, &last, NULL) < 0 ||
			 journal_each_classified(s->journal, CLASSIFIED_CONFLICT, 1, keep_id, &conflict, NULL) < 0 ||
			 conflict > instance;

	s->newer_since = conflicts ? 0 : event;
	s->newer_event = s->jobs.last_seq; /* not `last`: what the jobs do not have yet is news in the next step */
	return conflicts || s->newer_event != event;
}

void schedule_step(struct schedule *s, double now)
{
	s->next = now + 3600;
	jobs_forget_settled(&s->jobs, JOBS_SETTLED_KEPT); /* nothing points to a job between two steps */
	schedule_read_workers(s, now);
	if (refresh_jobs(s, now) < 0)
		return;
	if (s->retry_at > s->clock) {
		schedule_wake_on_clock(s, s->retry_at, now);
		return;
	}
	index_new(s, now);
	s->look_newer = has_news(s);
	schedule_queues_update(s, now);
	for (const struct job_view *v = jobs_next_open(&s->jobs, 0); v; v = jobs_next_open(&s->jobs, v->id))
		for (int rounds = 0; rounds < 8 && advance_job(s, v, now); rounds++)
			;
	schedule_queues_run(s, now);
	schedule_slots_step(s, now);
	schedule_watch(s, now);
	if (!s->stopping)
		clean_spool(s, now);
}

void schedule_process_ended(struct schedule *s, const struct process *p, int status, double now)
{
	int ret = refresh_jobs(s, now);
	struct job_view *v = jobs_find(&s->jobs, p->job);

	if (v)
		v->outbox_seq = 0; /* the outbox that the process used may be removed now */
	if (p->role == PROCESS_WORKER)
		schedule_worker_ended(s, p, status, now); /* also while stopping, to free its slot */
	if (ret < 0)
		return; /* the next start continues from the states of the jobs: a running job without a worker starts again */
	if (p->role == PROCESS_DELIVER || p->role == PROCESS_COMMIT)
		schedule_delivery_ended(s, p, status, now);
	else if (p->role == PROCESS_INDEX)
		index_ended(s, status, p->kill_at > 0 && !p->hung, now);
}

void schedule_interrupt(struct schedule *s, double now)
{
	if (refresh_jobs(s, now) < 0)
		return;
	for (const struct job_view *v = jobs_next_open(&s->jobs, 0); v; v = jobs_next_open(&s->jobs, v->id))
		if (v->state == JOB_RUNNING && !(v->pilot[0] && s->config->cluster.port > 0))
			schedule_append_event(s, v, EVENT_INTERRUPTED, schedule_reason("the node was asked to stop"), now);
	record_settled(s, now);
}
