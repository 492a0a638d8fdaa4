/* SPDX-License-Identifier: Apache-2.0 */
/* schedule_companion.c - the CT series of a case whose attenuation correction is made from one (node/jobs/companion.h).
 *
 * - A case that is complete but for it has a `waits` event with the sentence and the end of the wait, so that a restart does not
 *   prolong it; a new one if the sentence changes. The event `complete` joins the series.
 * - After that end the case is held. It continues when a series has come, or when a person requests it without one (as is).
 * - The choice is made as if objects were indexed when they arrive: it waits for those of the study's senders that came before
 *   the moment at which it falls, for at most node.ct_wait (or node.quiet_time, if longer). The traffic of others delays no case.
 *   A CT series of a sender who was not known then continues the case that was held meanwhile.
 * - Another result of the case that the routes ask for has the series of its first job. One that a person requests has the series
 *   that is the best one then.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/list_grow.h"
#include "node/base/log.h"
#include "node/serve/schedule_internal.h"
#include "node/store/event.h"

#define ROWS_AT_ONCE 32

/* Return true if an object of a sender of the study that came until `moment` waits for the indexer, or if the journal cannot be
 * read. */
static bool waits_for_indexer(struct schedule *s, const struct job_view *v, double moment)
{
	struct instance_row rows[ROWS_AT_ONCE];
	int64_t last = 0;
	int n;

	do {
		n = journal_list_unindexed(s->journal, last, rows, ROWS_AT_ONCE, NULL);
		for (int i = 0; i < n; i++) {
			last = rows[i].id;
			if (rows[i].received <= moment && (!strcmp(rows[i].calling, v->calling) ||
							   companions_have_sender(&s->companions, v->study, rows[i].calling)))
				return true;
		}
	} while (n == ROWS_AT_ONCE);
	return n < 0;
}

/* Return true if objects may follow that arrived before the decision falls. */
static bool may_follow(struct schedule *s, const struct job_view *v, const struct companion_decision *answer, double until,
		       double now)
{
	double quiet = s->config->node.quiet_time, moment = until;

	if (answer->verdict == COMPANION_WAIT)
		return false;
	if (answer->verdict == COMPANION_JOIN)
		moment = fmin(answer->series->last + quiet, now);
	else if (now < until + quiet && schedule_is_receiving(s))
		return true;
	return now < moment + fmax(quiet, s->config->node.ct_wait) && waits_for_indexer(s, v, moment);
}

/* Decide about the series of a case. false: the journal cannot be read now. */
static bool decide_series(struct schedule *s, const struct job_view *v, bool as_is, double now,
			  struct companion_decision *ret_answer)
{
	double wait = s->config->node.ct_wait;
	struct companion_need need = {.study = v->study,
				      .frame = v->frame,
				      .acquired = v->acquired,
				      .patients = &v->patients,
				      .patients_key = v->patients_key,
				      .wait = wait,
				      .until = now + wait};
	double until;
	struct err err = {0};

	if (companions_refresh(&s->companions, s->journal, &err) < 0) {
		log_event(LOG_ERR, "journal-error", "reason=%s", log_quote(err.msg));
		return false;
	}
	companions_clamp_time(&s->companions, now);
	if (v->waits_until > 0 && v->waits_until < need.until) /* a later one was written before the clock was set back */
		need.until = v->waits_until;
	until = need.until;
	if (v->lacks_companion || as_is) { /* the wait is over; one that is arriving is used */
		need.until = now;
		until = fmin(v->changed, now);
	}
	companion_decide(&s->companions, &need, now, s->config->node.quiet_time, ret_answer);
	if (may_follow(s, v, ret_answer, fmin(until, now), now)) {
		ret_answer->verdict = COMPANION_WAIT;
		ret_answer->again = now + 1;
		ret_answer->text[0] = '\0';
	}
	return true;
}

/* The images of a CT series that a job has. */
struct images {
	int64_t *list;
	size_t n, capacity;
};

static int add_image(void *ctx, const struct instance_row *row, const char *detail)
{
	struct images *all = ctx;

	(void)detail;
	if (!row->companion)
		return 0;
	if (!list_grow(&all->list, all->n, &all->capacity, sizeof(*all->list)))
		return -1;
	all->list[all->n++] = row->id;
	return 0;
}

static int compare_ids(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Return true if the job has the images that were chosen, and no others. Where memory or the journal fail: false. */
static bool has_images_of(struct schedule *s, const struct job_view *v, const struct companion_decision *answer)
{
	struct images all = {0};
	size_t n = 0;
	int64_t *chosen = companion_instances(answer, &n);
	bool same = chosen && v->companions == (long)n && journal_each_member(s->journal, v->id, add_image, &all, NULL) == 0 &&
		    all.n == n;

	if (same && n > 0) {
		qsort(all.list, n, sizeof(all.list[0]), compare_ids);
		qsort(chosen, n, sizeof(chosen[0]), compare_ids);
		same = !memcmp(all.list, chosen, n * sizeof(all.list[0]));
	}
	free(chosen);
	free(all.list);
	return same;
}

static bool complete_with(struct schedule *s, const struct job_view *v, const struct companion_decision *answer, json_t *detail,
			  double now)
{
	size_t n = 0;
	int64_t *chosen = companion_instances(answer, &n);
	bool changed = chosen && schedule_decide_complete(s, v, json_incref(detail), chosen, n, now);

	json_decref(detail);
	free(chosen);
	return changed;
}

/* Another result of the routes: the images that its first job has. */
static bool complete_as_first(struct schedule *s, const struct job_view *v, const struct job_view *first, json_t *detail,
			      double now)
{
	struct images all = {0};
	bool changed = false;

	if (journal_each_member(s->journal, first->id, add_image, &all, NULL) == 0) {
		json_object_set_new(detail, "companion", event_json_text(first->companion_text ? first->companion_text : ""));
		changed = schedule_decide_complete(s, v, json_incref(detail), all.list, all.n, now);
	}
	json_decref(detail);
	free(all.list);
	return changed;
}

static bool complete_without(struct schedule *s, const struct job_view *v, json_t *detail, double now)
{
	json_object_set_new(detail, "companion", json_string("without a CT series, at a person's request"));
	return schedule_decide(s, v, EVENT_COMPLETE, detail, now);
}

/* Write for what the case waits, unless that is written already. */
static bool wait_for(struct schedule *s, const struct job_view *v, const struct companion_decision *answer, double now)
{
	double until = v->waits_until > 0 ? v->waits_until : fmax(now + s->config->node.ct_wait, answer->again);
	char reason[sizeof(v->reason)];

	schedule_wake_at(s, answer->again);
	snprintf(reason, sizeof(reason), "%.*s", (int)sizeof(reason) - 1, answer->text);
	if (!reason[0] || (v->waits_until > 0 && !strcmp(v->reason, reason)))
		return false;
	return schedule_decide(s, v, EVENT_WAITS, json_pack("{s:o, s:f}", "reason", event_json_text(reason), "until", until),
			       now);
}

static json_t *lack_detail(const struct job_view *v, const char *text)
{
	char reason[sizeof(v->reason)];

	snprintf(reason, sizeof(reason), "%.*s", (int)sizeof(reason) - 1, text);
	return json_pack("{s:o, s:b, s:I, s:I}", "reason", event_json_text(reason), "lacks_companion", 1, "instances",
			 (json_int_t)v->members.instances, "expected", (json_int_t)v->members.expected);
}

/* A result that is made again says if its series is not that of the earlier one. */
static void say_if_other(struct schedule *s, const struct job_view *v, struct companion_decision *answer)
{
	const struct job_view *earlier = v->other.redo_of > 0 ? jobs_find(&s->jobs, v->other.redo_of) : NULL;
	size_t n = strlen(answer->text);

	if (earlier && earlier->companions == 0)
		snprintf(answer->text + n, sizeof(answer->text) - n, "; the earlier result was made without one");
	else if (earlier && !has_images_of(s, earlier, answer))
		snprintf(answer->text + n, sizeof(answer->text) - n, "; the earlier result was made with other images");
}

bool schedule_complete_with_ct(struct schedule *s, const struct job_view *v, bool needed, json_t *detail, double now)
{
	const struct job_view *first = v->other.of > 0 && v->other.redo_of == 0 ? jobs_find(&s->jobs, v->other.of) : NULL;
	bool as_is = json_is_true(
		json_object_get(detail, "as_is")); /* of an earlier result of a redo: a series is used if there is one */
	struct companion_decision answer;

	if (!needed || v->attenuated || !detail)
		return schedule_decide(s, v, EVENT_COMPLETE, detail, now);
	if (v->members.as_is) /* requested for this job: also without a series that cannot be used */
		return complete_without(s, v, detail, now);
	if (first && (first->companions > 0 || first->members.as_is))
		return complete_as_first(s, v, first, detail, now);
	if (!decide_series(s, v, as_is, now, &answer)) {
		json_decref(detail);
		return false;
	}
	if (answer.verdict == COMPANION_JOIN) {
		say_if_other(s, v, &answer);
		json_object_set_new(detail, "companion", event_json_text(answer.text));
		return complete_with(s, v, &answer, detail, now);
	}
	if (as_is && answer.verdict == COMPANION_LACKS)
		return complete_without(s, v, detail, now);
	json_decref(detail);
	if (answer.verdict == COMPANION_WAIT)
		return wait_for(s, v, &answer, now);
	return schedule_decide(s, v, EVENT_HELD, lack_detail(v, answer.text), now);
}

/* Return true for a held case whose series may have been what it was held for: a slice is missing. Another result of the routes
 * would get the images of its first job again. */
static bool may_have_more(const struct job_view *v)
{
	return v->companions > 0 && (v->other.of == 0 || v->other.redo_of > 0);
}

bool schedule_retry_with_ct(struct schedule *s, const struct job_view *v, double now)
{
	struct companion_decision answer;
	char reason[sizeof(v->reason)];

	if ((!v->lacks_companion && !may_have_more(v)) || !decide_series(s, v, false, now, &answer))
		return false;
	if (answer.verdict == COMPANION_WAIT) {
		schedule_wake_at(s, answer.again);
		return false;
	}
	snprintf(reason, sizeof(reason), "%.*s", (int)sizeof(reason) - 1, answer.text);
	if (answer.verdict == COMPANION_LACKS && (!v->lacks_companion || !strcmp(reason, v->reason)))
		return false;
	if (!v->lacks_companion && answer.verdict == COMPANION_JOIN && has_images_of(s, v, &answer))
		return false;
	return schedule_decide(
		s, v, EVENT_RETRY,
		json_pack("{s:s, s:b, s:f}", "reason",
			  answer.verdict == COMPANION_JOIN ? "the CT series was received" : "another CT series was received",
			  "as_is", v->members.as_is, "until", now),
		now);
}
