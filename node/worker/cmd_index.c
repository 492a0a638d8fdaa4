/* SPDX-License-Identifier: Apache-2.0 */
/* tomonode index: find the case of each new instance. It parses untrusted data, so it is a separate process: a header that
 * crashes it affects nothing else, and the node leaves that instance unassigned.
 *
 * - The instances of a sender are processed in order of arrival, those of several senders in turns (node/worker/turns.h), with
 * one classification and one transaction each. A header that takes longer than INDEX_CPU_SECONDS ends this process, and the node
 *   leaves its instance unassigned. After a crash the next process begins with the other senders (node/store/index_mark.h).
 * - An instance joins the newest job of its case while that job accepts instances; later it opens a revision with all of them.
 * - A CT image is a companion if a protocol of the configuration needs a CT series (node/jobs/companion.h): it opens no job, and
 *   the manager joins it to cases, unless it is no slice (a localizer): that is only counted.
 * - If a UID is received again: equal bytes, or equal values in another transfer syntax, are ignored; another content is left
 *   unassigned (node/jobs/case_selection.h uses it); neither changes a job. But what belongs to a cancelled case begins a new
 * one.
 * - It reads the events of the cases that get instances, not those of all.
 * - It waits a moment after the last instance, so that an exam that is arriving does not start one process per image.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "dicom/pixels/content.h"
#include "kernels/clock.h"
#include "node/audit/audit.h"
#include "node/base/exit_code.h"
#include "node/base/log.h"
#include "node/jobs/case_routing.h"
#include "node/jobs/patients.h"
#include "node/process/work_process.h"
#include "node/reconstruct/case_facts.h"
#include "node/store/event.h"
#include "node/store/index_mark.h"
#include "node/worker/cmd_worker.h"
#include "node/worker/turns.h"

#define LINGER_SECONDS 2.0
#define LINGER_STEP_US 4000
#define WATCHDOG_SECONDS 60 /* s; longest time to read one header, also of a slow disk: then SIGALRM ends this process */
#define ROWS_AT_ONCE 32
#define JOIN_TRIES 8 /* attempts to add an instance: the job may be started between reading it and appending to it */

struct indexer {
	struct work_process process;
	struct jobs jobs;
	struct turns *turns;
	int64_t last; /* id of the last instance that was added to the turns */
	int mark_fd;
	uint8_t patient_key[PATIENT_KEY_BYTES];
};

/* If there is an audit trail (node/audit/audit_trail.c), add study and patient to the detail. f NULL: not known. */
static json_t *with_subject(json_t *detail, const struct case_facts *f)
{
	if (detail && f && audit_is_on()) {
		json_object_set_new(detail, "study", event_json_text(f->study));
		json_object_set_new(detail, "patient", event_json_text(f->patient));
	}
	return detail;
}

/* Leave an instance unassigned, with the reason in journal and log. more: further members of the detail, released; or NULL. */
static int store_unassigned_with(struct indexer *x, const struct instance_row *row, const struct case_facts *f,
				 enum classification kind, const char *reason, json_t *more, struct err *err)
{
	static const char *const names[] = {[CLASSIFIED_IGNORED] = "instance-ignored",
					    [CLASSIFIED_REFUSED] = "instance-refused",
					    [CLASSIFIED_CONFLICT] = "instance-conflict"};
	json_t *facts = json_pack("{s:I, s:o, s:o}", "instance", (json_int_t)row->id, "sop", event_json_text(row->sop_instance),
				  "reason", event_json_text(reason));
	char *detail;
	int ret;

	if (facts && more)
		json_object_update(facts, more);
	json_decref(more);
	detail = event_json_dump(with_subject(facts, f));
	ret = detail ? journal_classify(x->process.journal, row->id, kind, 0, detail, clock_wall(), err)
		     : err_set(err, ENOMEM, "no memory for a classification");

	free(detail);
	if (ret == 0)
		log_event(kind == CLASSIFIED_IGNORED ? LOG_NOTICE : LOG_WARNING, names[kind],
			  "instance=%lld sop=%s file=%s calling=%s reason=%s", (long long)row->id, log_quote(row->sop_instance),
			  row->file, log_quote(row->calling), log_quote(reason));
	return ret;
}

static int store_unassigned(struct indexer *x, const struct instance_row *row, const struct case_facts *f,
			    enum classification kind, const char *reason, struct err *err)
{
	return store_unassigned_with(x, row, f, kind, reason, NULL, err);
}

/* Add what tells the exposure of an image from others, if its header has any of it. */
static void add_exposure(json_t *detail, const struct exposure_facts *exposure)
{
	json_t *list = json_array();
	bool any = false;

	for (size_t k = 0; k < EXPOSURE_ATTRIBUTES; k++) {
		any = any || exposure->value[k][0];
		json_array_append_new(list, event_json_text(exposure->value[k]));
	}
	if (any)
		json_object_set(detail, "exposure", list);
	json_decref(list);
}

/* What jobs read about a member; NULL: no memory. */
static json_t *member_facts(const struct indexer *x, const struct instance_row *row, const struct case_facts *f)
{
	long usual = case_usual_number(f, x->process.config);
	char identity[PATIENTS_IDENTITY_SIZE];
	json_t *detail;

	patients_format(&f->identity, x->patient_key, identity);
	detail = json_pack("{s:I, s:o, s:f, s:I, s:I, s:o, s:s}", "instance", (json_int_t)row->id, "sop",
			   event_json_text(f->sop_instance), "received", row->received, "expected", (json_int_t)f->expected,
			   "frames", (json_int_t)f->frames, "angle", isfinite(f->angle) ? json_real(f->angle) : json_null(),
			   "identity", identity);
	if (detail && f->lacks[0])
		json_object_set_new(detail, "lacks", json_string(f->lacks));
	if (detail && f->number > 0)
		json_object_set_new(detail, "number", json_integer((json_int_t)f->number));
	if (detail)
		add_exposure(detail, &f->exposure);
	if (detail && usual > 0)
		json_object_set_new(detail, "usual", json_integer((json_int_t)usual));
	if (detail && f->kind->needs_ct)
		json_object_update_new(detail, json_pack("{s:s, s:f, s:b}", "frame", f->frame_of_reference, "acquired",
							 f->acquired, "attenuation", f->attenuation));
	return detail;
}

static void make_key(const struct case_facts *f, char *ret_key, size_t size)
{
	case_key(f, ret_key, size);
	for (char *c = ret_key; *c; c++) /* as event_json_text() writes it, so that the key is found again */
		if ((unsigned char)*c < 0x20 || (unsigned char)*c > 0x7e)
			*c = '?';
}

/* What node/jobs/companion.c reads. */
static int add_companion(struct indexer *x, const struct instance_row *row, const struct case_facts *f, struct err *err)
{
	char identity[PATIENTS_IDENTITY_SIZE], *detail;
	int ret;

	patients_format(&f->identity, x->patient_key, identity);
	detail = event_json_dump(with_subject(json_pack("{s:I, s:s, s:s, s:s, s:I, s:f, s:s, s:b, s:s, s:o}", "instance",
							(json_int_t)row->id, "study", f->study, "series", f->series, "frame",
							f->frame_of_reference, "expected", (json_int_t)f->expected, "acquired",
							f->acquired, "identity", identity, "slice", f->ct == CT_SLICE, "part",
							ct_part_word(f->ct_part), "values", event_json_text(f->ct_values)),
					      f));
	ret = detail ? journal_classify(x->process.journal, row->id, CLASSIFIED_COMPANION, 0, detail, clock_wall(), err)
		     : err_set(err, ENOMEM, "no memory for a classification");
	free(detail);
	if (ret == 0)
		log_event(LOG_DEBUG, "instance-companion", "instance=%lld series=%s", (long long)row->id, f->series);
	return ret;
}

/* A revision takes the routes of the case that it revises, whatever its later images say. begins: it is none. */
static json_t *routing_json(const struct case_facts *f, const struct job_view *before)
{
	return before && before->routing ? json_loads(before->routing, 0, NULL) : case_routing_json(&f->route);
}

static char *opening_detail(const struct instance_row *row, const struct case_facts *f, const char *key,
			    const struct job_view *before, bool begins)
{
	return event_json_dump(json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:I, s:I, s:b, s:i, s:o}", "key",
					 event_json_text(key), "kind", f->kind->name, "calling", event_json_text(row->calling),
					 "study", event_json_text(f->study), "accession", event_json_text(f->accession), "series",
					 event_json_text(f->series), "laterality", event_json_text(f->laterality), "view",
					 event_json_text(f->view), "revision", before ? before->revision + 1 : 1, "revision_of",
					 (json_int_t)(before ? before->id : 0), "newer_of",
					 (json_int_t)(begins   ? before->id
						      : before ? before->newer_of
							       : 0),
					 "again", begins || (before && before->again), "priority", before ? before->priority : 0,
					 "routing", routing_json(f, begins ? NULL : before)));
}

/* Does an instance begin a case anew, because the case of this key is cancelled and has its UID? 1: it does; 0: not. */
static int begins_anew(struct indexer *x, const struct instance_row *row, const struct job_view *v, struct err *err)
{
	return v && v->state == JOB_CANCELLED ? journal_has_member(x->process.journal, v->id, row->sop_instance, err) : 0;
}

#define JOBS_KEPT 256 /* cases whose events are kept in memory, so that of an open case each is read once */

/* Find the newest job of a case, as it is now; NULL: none. 0, or the journal failed. */
static int find_latest(struct indexer *x, const char *key, const struct job_view **ret_job, struct err *err)
{
	int64_t id = 0;
	int ret = journal_find_latest(x->process.journal, key, &id, err);

	*ret_job = NULL;
	if (ret <= 0)
		return ret;
	if (x->jobs.n >= JOBS_KEPT && !jobs_find(&x->jobs, id))
		jobs_clear(&x->jobs);
	ret = jobs_refresh_one(&x->jobs, x->process.journal, id, err);
	*ret_job = ret == 0 ? jobs_find(&x->jobs, id) : NULL;
	return ret;
}

/* Find the job of an instance, or open one, and add the instance. 1: done; 0: the job changed meanwhile, try again. */
static int join_job(struct indexer *x, const struct instance_row *row, const struct case_facts *f, const char *key,
		    const char *member, struct err *err)
{
	struct journal *j = x->process.journal;
	const struct job_view *v;
	char *opening = NULL;
	int64_t job = 0;
	int begins, ret = find_latest(x, key, &v, err);

	if (ret < 0)
		return ret;
	begins = ret = begins_anew(x, row, v, err);
	if (ret < 0)
		return ret;
	if (v && !begins && job_next(v->state, EVENT_INSTANCE) != JOB_IMPOSSIBLE) {
		job = v->id;
		ret = journal_classify(j, row->id, CLASSIFIED_MEMBER, job, member, clock_wall(), err);
		goto out;
	}
	opening = opening_detail(row, f, key, v, begins);
	if (!opening) {
		ret = err_set(err, ENOMEM, "no memory for a job");
		goto out;
	}
	/* Open a new job without the earlier instances if retention removed them or if the earlier job is quarantined. */
	if (v && !begins && v->state != JOB_CLEANED && v->state != JOB_IMPOSSIBLE) {
		ret = journal_open_revision(j, v->id, row->id, member, opening, clock_wall(), &job, err);
		if (ret == 0)
			log_event(LOG_WARNING, "job-revision", "job=%lld of=%lld state=%s reason=%s", (long long)job,
				  (long long)v->id, job_state_name(v->state),
				  log_quote("an instance was received after the reconstruction had started"));
		goto out;
	}
	ret = journal_open_job(j, opening, clock_wall(), &job, err);
	if (ret == 0) {
		log_event(LOG_INFO, "job-opened", "job=%lld kind=%s calling=%s", (long long)job, f->kind->name,
			  log_quote(row->calling));
		ret = journal_classify(j, row->id, CLASSIFIED_MEMBER, job, member, clock_wall(), err);
	}
out:
	free(opening);
	if (ret == -ESTALE)
		return 0;
	if (ret == 0)
		log_event(LOG_DEBUG, "instance-joined", "job=%lld instance=%lld", (long long)job, (long long)row->id);
	return ret == 0 ? 1 : ret;
}

static int add_member(struct indexer *x, const struct instance_row *row, const struct case_facts *f, struct err *err)
{
	char key[6 * DICOM_UID_SIZE], *member = event_json_dump(with_subject(member_facts(x, row, f), f));
	int ret = 0;

	if (!member)
		return err_set(err, ENOMEM, "no memory for a classification");
	make_key(f, key, sizeof(key));
	for (int i = 0; ret == 0 && i < JOIN_TRIES; i++)
		ret = join_job(x, row, f, key, member, err);
	free(member);
	if (ret == 0)
		return err_set(err, EAGAIN, "instance %lld cannot be added: its job changed at every attempt",
			       (long long)row->id);
	return ret < 0 ? ret : 0;
}

static bool may_pass(int code)
{
	return code == ENOMEM || code == EMFILE || code == ENFILE || code == EINTR || code == EAGAIN;
}

/* End this process by a signal after these times; 0: no limit. */
static void limit_time(unsigned seconds, time_t cpu_seconds)
{
	struct itimerval cpu = {.it_value.tv_sec = cpu_seconds};

	setitimer(ITIMER_PROF, &cpu, NULL);
	alarm(seconds);
}

/* Is it of a cancelled case, and not yet in the case that the sender began after it? 1: it is; 0: not. */
static int is_new_again(struct indexer *x, const struct instance_row *row, const struct case_facts *f, struct err *err)
{
	char key[6 * DICOM_UID_SIZE];
	const struct job_view *v;
	int ret = journal_is_given_up(x->process.journal, row->sop_instance, err);

	if (ret <= 0)
		return ret;
	make_key(f, key, sizeof(key));
	ret = find_latest(x, key, &v, err);
	if (ret < 0)
		return ret;
	ret = v && v->state != JOB_CANCELLED ? journal_has_member(x->process.journal, v->id, row->sop_instance, err) : 0;
	return ret < 0 ? ret : !ret;
}

/* Classify an instance whose UID a member has: the same object again, or other content. */
static int index_again(struct indexer *x, const struct instance_row *row, const struct case_facts *f,
		       const struct instance_row *earlier, bool companion, struct err *err)
{
	const char *spool = x->process.config->node.spool;
	enum dicom_content content = DICOM_CONTENT_DIFFERS;
	char older[400], newer[400], key[6 * DICOM_UID_SIZE], where[340] = "it cannot be compared", reason[900];
	json_t *more = NULL;

	if (!strcmp(earlier->digest, row->digest))
		return store_unassigned(x, row, f, CLASSIFIED_IGNORED, "the same object, sent again", err);
	snprintf(older, sizeof(older), "%s/%s", spool, earlier->file);
	snprintf(newer, sizeof(newer), "%s/%s", spool, row->file);
	limit_time(WATCHDOG_SECONDS, 3 * (time_t)INDEX_CPU_SECONDS);
	if (dicom_compare_content(older, newer, INDEX_CPU_SECONDS, &content, where, sizeof(where), NULL) < 0)
		content = DICOM_CONTENT_DIFFERS;
	limit_time(0, 0);
	if (content == DICOM_CONTENT_SAME)
		return store_unassigned(x, row, f, CLASSIFIED_IGNORED, "the same object in another transfer syntax, sent again",
					err);
	snprintf(reason, sizeof(reason),
		 "the UID is that of instance %lld (%s), but the content differs (%s): the node uses the earlier instance",
		 (long long)earlier->id, earlier->file, where);
	if (!companion) {
		make_key(f, key, sizeof(key));
		more = member_facts(x, row, f);
		if (more)
			json_object_update_new(more, json_pack("{s:o, s:b}", "key", event_json_text(key), "repairs",
							       content == DICOM_CONTENT_REPAIRS));
	}
	return store_unassigned_with(x, row, f, CLASSIFIED_CONFLICT, reason, more, err);
}

/* Classify one instance. 0: done; 1: its file cannot be read now; negative: the journal failed. */
static int index_one(struct indexer *x, const struct instance_row *row, struct err *err)
{
	struct case_facts f = {0};
	struct instance_row earlier;
	char path[400], reason[600];
	bool companion;
	int again, ret;

	if (snprintf(path, sizeof(path), "%s/%s", x->process.config->node.spool, row->file) >= (int)sizeof(path))
		return store_unassigned(x, row, NULL, CLASSIFIED_REFUSED, "the path of its file is too long", err);
	limit_time(WATCHDOG_SECONDS, INDEX_CPU_SECONDS);
	ret = case_read_facts(path, &f, err);
	limit_time(0, 0);
	if (ret < 0 && may_pass(-ret))
		return 1;
	if (ret < 0) {
		snprintf(reason, sizeof(reason), "%s", err->msg);
		return store_unassigned(x, row, NULL, CLASSIFIED_REFUSED, reason, err);
	}
	if (strcmp(f.sop_instance, row->sop_instance)) {
		snprintf(reason, sizeof(reason),
			 "the data set's SOP Instance UID is '%s', but that of the C-STORE request was '%s'", f.sop_instance,
			 row->sop_instance);
		return store_unassigned(x, row, &f, CLASSIFIED_REFUSED, reason, err);
	}
	companion = f.ct != CT_NO_SLICE && kind_any_needs_ct(x->process.config);
	if (!companion && (f.refused || !f.kind))
		return store_unassigned(x, row, &f, f.refused ? CLASSIFIED_REFUSED : CLASSIFIED_IGNORED, f.reason, err);
	ret = journal_find_member(x->process.journal, row->sop_instance, row->id, &earlier, err);
	again = ret;
	if (again > 0 && !companion)
		ret = is_new_again(x, row, &f, err);
	if (ret < 0)
		return ret;
	if (again > 0 && (companion || ret == 0))
		return index_again(x, row, &f, &earlier, companion, err);
	return companion ? add_companion(x, row, &f, err) : add_member(x, row, &f, err);
}

/* Add the instances that have arrived to the turns. */
static int collect_instances(struct indexer *x, struct err *err)
{
	struct instance_row rows[ROWS_AT_ONCE];
	int n, ret = 0;

	do {
		n = journal_list_unindexed(x->process.journal, x->last, rows, ROWS_AT_ONCE, err);
		for (int i = 0; ret == 0 && i < n; i++) {
			ret = turns_add(x->turns, rows[i].calling, rows[i].host, rows[i].id, err);
			x->last = rows[i].id;
		}
	} while (ret == 0 && n == ROWS_AT_ONCE);
	return n < 0 ? n : ret;
}

/* Read the row of the instance whose turn it is. 1: read; 0: none waits; negative: the journal failed. */
static int next_instance(struct indexer *x, struct instance_row *ret_row, struct err *err)
{
	int n = collect_instances(x, err);
	int64_t id;

	while (n >= 0 && (id = turns_next(x->turns)) > 0) {
		n = journal_list_unindexed(x->process.journal, id - 1, ret_row, 1, err);
		if (n == 1 && ret_row->id == id)
			return 1;
		turns_done(x->turns, 0); /* it has a classification already */
	}
	return n < 0 ? n : 0;
}

static void mark_instance(struct indexer *x, const struct instance_row *row)
{
	struct index_mark m = {.instance = row ? row->id : 0};

	if (row) {
		snprintf(m.calling, sizeof(m.calling), "%s", row->calling);
		snprintf(m.host, sizeof(m.host), "%s", row->host);
	}
	index_mark_write(x->mark_fd, &m);
}

/* Classify all instances, until none has arrived for a while. */
static int index_all(struct indexer *x)
{
	struct err err = {0};
	struct instance_row row;
	double idle_since = clock_seconds(), began;
	int ret;

	while ((ret = next_instance(x, &row, &err)) >= 0) {
		if (ret == 0) {
			if (clock_seconds() - idle_since > LINGER_SECONDS)
				return CODE_OK;
			usleep(LINGER_STEP_US);
			continue;
		}
		began = clock_seconds();
		mark_instance(x, &row);
		ret = index_one(x, &row, &err);
		if (ret < 0)
			break;
		if (ret > 0) {
			log_event(LOG_ERR, "index-failed", "instance=%lld reason=%s", (long long)row.id, log_quote(err.msg));
			return CODE_INPUT;
		}
		mark_instance(x, NULL);
		work_process_notify(&x->process);
		idle_since = clock_seconds();
		turns_done(x->turns, idle_since - began);
	}
	log_event(LOG_CRIT, "journal-error", "reason=%s", log_quote(err.msg));
	return CODE_FAILED;
}

/* Create the turns. The sender of the instance at which the indexer before this one died has used as much as a header may. */
static int begin_turns(struct indexer *x, struct err *err)
{
	const char *spool = x->process.config->node.spool;
	struct index_mark died;
	int ret;

	index_mark_read(spool, &died);
	x->mark_fd = index_mark_open(spool, NULL); /* negative: without it the node takes the oldest instance that waits */
	ret = turns_create(&x->turns, err);
	if (ret == 0 && died.instance > 0)
		ret = turns_charge(x->turns, died.calling, died.host, INDEX_CPU_SECONDS, err);
	return ret;
}

int cmd_index(int argc, char **argv)
{
	struct indexer x = {.mark_fd = -1};
	struct err err = {0};
	int code = CODE_OK;

	if (!work_process_begin(&x.process, "index", "-c FILE", 0, argc, argv, &code))
		return code;
	code = CODE_FAILED;
	if (patient_key_read(x.process.config->node.spool, x.patient_key, &err) < 0)
		log_event(LOG_ERR, "patient-key-unreadable", "reason=%s", log_quote(err.msg));
	else if (begin_turns(&x, &err) < 0)
		log_event(LOG_ERR, "index-failed", "reason=%s", log_quote(err.msg));
	else if (work_process_enter_sandbox(&x.process, SANDBOX_INDEX, NULL) == 0)
		code = index_all(&x);
	turns_free(x.turns);
	if (x.mark_fd >= 0)
		close(x.mark_fd);
	jobs_clear(&x.jobs);
	work_process_end(&x.process);
	return code;
}
