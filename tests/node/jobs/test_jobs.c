/* SPDX-License-Identifier: Apache-2.0 */
/* The view of all jobs: what replay makes of events, good and damaged; the stage table. */
#include "node/jobs/delivery_queue.h"
#include "node/jobs/job_report.h"
#include "node/serve/retention.h"
#include "node/status/status_text.h"
#include "tests/node/jobs/jobs_fixture.h"
#include "tests/test.h"

TEST(a_result_with_warnings_is_shown_as_one)
{
	struct jobs jobs GOES(jobs_clear) = {0};
	struct job_view *v;
	const char *word;
	json_t *view, *list;

	for (int warned = 1; warned >= 0; warned--) { /* the second attempt has none */
		v = warned ? reconstructed(&jobs, 7) : apply(&jobs, 7, EVENT_STARTED, "{}");
		if (warned)
			apply(&jobs, 7, EVENT_RESULT_LOST, "{\"reason\":\"gone\"}"), apply(&jobs, 7, EVENT_STARTED, "{}");
		apply(&jobs, 7, EVENT_RECONSTRUCTED,
		      warned ? "{\"file\":\"outbox/1/"
			       "x.dcm\",\"sop_instance\":\"1.5\",\"sop_class\":\"1.2\",\"warnings\":\"Only 9. 2 of them are thin.\"}"
			     : MADE("1.5"));
		assert_int_equal(v->warnings != NULL, warned);
		view = job_report_common(v, NULL);
		list = json_object_get(view, "warnings");
		assert_int_equal(json_is_true(json_object_get(view, "warned")), warned);
		assert_int_equal(json_array_size(list), warned ? 2 : 0);
		if (warned)
			assert_string_equal(json_string_value(json_array_get(list, 1)), "2 of them are thin.");
		json_decref(view);
		assert_false(job_view_is_warned(v)); /* not delivered yet */
		v->state = JOB_DELIVERED;
		assert_int_equal(job_view_is_warned(v), warned);
		assert_int_equal(status_text_state(v, &word), warned ? TONE_WARN : TONE_GOOD);
		assert_string_equal(word, warned ? "Delivered, with warnings" : "Delivered");
		v->state = JOB_READY;
	}
	/* What is true of every result of a device makes no case yellow; another sentence beside it does. */
	for (int more = 0; more < 2; more++) {
		apply(&jobs, 7, EVENT_STARTED, "{}");
		v = apply(
			&jobs, 7, EVENT_RECONSTRUCTED,
			more ? "{\"file\":\"a\",\"sop_instance\":\"1.5\",\"warnings\":\"Geometry from literature: x. Only 9 came.\"}"
			     : "{\"file\":\"a\",\"sop_instance\":\"1.5\",\"warnings\":\"Geometry from literature: x.\"}");
		v->state = JOB_DELIVERED;
		assert_non_null(v->warnings);
		assert_int_equal(job_view_is_warned(v), more);
		assert_int_equal(status_text_state(v, &word), more ? TONE_WARN : TONE_GOOD);
		v->state = JOB_READY;
	}
}

TEST(a_whole_life)
{
	struct jobs jobs GOES(jobs_clear) = {0};
	struct job_view *v = reconstructed(&jobs, 7);

	assert_int_equal(v->state, JOB_RECONSTRUCTED);
	assert_string_equal(v->protocol, "dbt-osem");
	assert_int_equal(v->members.instances, 1);
	assert_int_equal(v->members.frames, 25);
	assert_true(v->members.last == 900.5);
	assert_int_equal(v->n_sends, 2);
	assert_int_equal(v->n_objects, 1);
	assert_string_equal(v->objects[0].file, "outbox/1/x.dcm");
	apply(&jobs, 7, EVENT_SEND_FAILED, "{\"destination\":\"pacs\",\"status\":\"\",\"reason\":\"refused\",\"next\":1060}");
	assert_int_equal(job_view_find_send(v, "pacs")->failures, 1);
	assert_true(job_view_find_send(v, "pacs")->next == 1060);
	apply(&jobs, 7, EVENT_SENT, "{\"destination\":\"pacs\",\"status\":\"0000\"}");
	apply(&jobs, 7, EVENT_SEND_REFUSED, "{\"destination\":\"ws\",\"status\":\"0122\",\"reason\":\"no such class\"}");
	assert_int_equal(job_view_count_sends(v, SEND_DUE), 0);
	assert_int_equal(job_view_count_sends(v, SEND_REFUSED), 1);
	apply(&jobs, 7, EVENT_DEAD_LETTER, "{\"reason\":\"refused by ws\"}");
	assert_int_equal(v->state, JOB_DEAD_LETTER);
	/* Retry: only who refused is asked again. */
	apply(&jobs, 7, EVENT_RETRY, "{}");
	assert_int_equal(v->state, JOB_RECONSTRUCTED);
	assert_int_equal(job_view_find_send(v, "pacs")->state, SEND_DONE);
	assert_int_equal(job_view_find_send(v, "ws")->state, SEND_DUE);
	assert_string_equal(v->reason, "");
}

/* A case that waits for a CT series, is held without one, and gets one. */
TEST(ct_series)
{
	struct jobs jobs GOES(jobs_clear) = {0};
	struct job_view *v = apply(&jobs, 7, EVENT_OPENED, "{\"key\":\"k\"}");

	apply(&jobs, 7, EVENT_INSTANCE, "{\"received\":900,\"frame\":\"1.2\",\"acquired\":70.5,\"attenuation\":false}");
	apply(&jobs, 7, EVENT_INSTANCE, "{\"received\":901,\"frame\":\"1.2\",\"acquired\":60.5,\"attenuation\":false}");
	assert_string_equal(v->frame, "1.2");
	assert_true(v->acquired == 60.5 && !v->attenuated);
	apply(&jobs, 7, EVENT_WAITS, "{\"reason\":\"waits\",\"until\":3000}");
	assert_int_equal(v->state, JOB_COLLECTING);
	assert_true(v->waits_until == 3000);
	assert_string_equal(v->reason, "waits");
	apply(&jobs, 7, EVENT_HELD, "{\"reason\":\"none came\",\"lacks_companion\":true}");
	assert_true(v->lacks_companion && v->waits_until == 0);
	apply(&jobs, 7, EVENT_RETRY, "{\"until\":3100}");
	assert_true(!v->lacks_companion && v->waits_until == 3100);
	apply(&jobs, 7, EVENT_COMPLETE, "{\"protocol\":\"p\",\"destinations\":[],\"companion\":\"CT series 1.5\"}");
	apply(&jobs, 7, EVENT_COMPANION, "{}");
	apply(&jobs, 7, EVENT_COMPANION, "{}");
	assert_int_equal(v->state, JOB_READY);
	assert_int_equal(v->companions, 2);
	assert_int_equal(v->members.instances, 2);
	assert_string_equal(v->companion_text, "CT series 1.5");
	assert_true(v->waits_until == 0);
	apply(&jobs, 7, EVENT_INSTANCE, "{\"received\":902,\"frame\":\"1.9\",\"attenuation\":true}");
	assert_true(v->attenuated && v->acquired == 60.5);
	assert_string_equal(v->frame, "1.2");
	apply(&jobs, 7, EVENT_COMPLETE, "{\"protocol\":\"p\",\"destinations\":[]}");
	assert_int_equal(v->companions, 0); /* those before do not count */
	assert_null(v->companion_text);
}

/* A failure that is reported for a transaction that is not the open one changes nothing. */
TEST(failure_of_an_old_transaction)
{
	struct jobs jobs GOES(jobs_clear) = {0};
	struct job_view *v = reconstructed(&jobs, 7);
	const struct job_send *pacs = job_view_find_send(v, "pacs");

	apply(&jobs, 7, EVENT_SENT, "{\"destination\":\"pacs\",\"commit\":true}");
	apply(&jobs, 7, EVENT_COMMIT_REQUESTED, "{\"destination\":\"pacs\",\"transaction\":\"1.2.1\"}");
	apply(&jobs, 7, EVENT_COMMIT_REQUESTED, "{\"destination\":\"pacs\",\"transaction\":\"1.2.2\"}");
	apply(&jobs, 7, EVENT_COMMIT_ACCEPTED, "{\"destination\":\"pacs\",\"transaction\":\"1.2.2\",\"until\":2000}");
	apply(&jobs, 7, EVENT_COMMIT_FAILED, "{\"destination\":\"pacs\",\"transaction\":\"1.2.1\",\"next\":1500}");
	assert_int_equal(pacs->state, SEND_STORED);
	assert_string_equal(pacs->transaction, "1.2.2");
	assert_int_equal(pacs->commit_tries, 0);
	apply(&jobs, 7, EVENT_COMMIT_FAILED, "{\"destination\":\"pacs\",\"transaction\":\"1.2.2\",\"next\":1500}");
	assert_int_equal(pacs->state, SEND_DUE);
	assert_string_equal(pacs->transaction, "");
	assert_int_equal(pacs->commit_tries, 1);
}

/* A report that never came is no refusal. */
TEST(missing_commitment)
{
	static const struct {
		const char *more; /* of the event, as node/deliver/commit.c and cmd_commit.c write it */
		bool unanswered;
	} rows[] = {{"\"attempt\":2,\"status\":\"\"", true},
		    {"\"attempt\":2,\"status\":\"\",\"sop_instances\":[\"1.5\"]", false}, /* a report says so */
		    {"\"status\":\"0122\"", false}};					  /* the request was refused */
	const char *word;
	char detail[200];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct jobs jobs GOES(jobs_clear) = {0};
		struct job_view *v = reconstructed(&jobs, 7);

		apply(&jobs, 7, EVENT_SENT, "{\"destination\":\"ws\"}");
		apply(&jobs, 7, EVENT_SENT, "{\"destination\":\"pacs\",\"commit\":true}");
		snprintf(detail, sizeof(detail), "{\"destination\":\"pacs\",\"transaction\":\"1.2\",%s}", rows[i].more);
		apply(&jobs, 7, EVENT_COMMIT_REFUSED, detail);
		apply(&jobs, 7, EVENT_DEAD_LETTER, "{}");
		assert_int_equal(job_send_is_unanswered(job_view_find_send(v, "pacs")), rows[i].unanswered);
		assert_int_equal(status_text_state(v, &word), TONE_BAD);
		assert_string_equal(word, rows[i].unanswered ? "Not committed" : "Refused");
	}
}

/* A destination that has the very object is not sent it again; another object it does not have. */
TEST(sent_is_kept_over_a_retry)
{
	struct jobs jobs GOES(jobs_clear) = {0};
	struct job_view *v = reconstructed(&jobs, 7);

	apply(&jobs, 7, EVENT_SENT, "{\"destination\":\"pacs\"}");
	apply(&jobs, 7, EVENT_CANCEL, "{}");
	apply(&jobs, 7, EVENT_RETRY, "{}");
	apply(&jobs, 7, EVENT_COMPLETE, COMPLETE);
	apply(&jobs, 7, EVENT_STARTED, "{}");
	apply(&jobs, 7, EVENT_RECONSTRUCTED, MADE("1.5"));
	assert_int_equal(job_view_find_send(v, "pacs")->state, SEND_DONE);
	assert_int_equal(job_view_find_send(v, "ws")->state, SEND_DUE);
	/* The result was damaged: made again, as often as it may crash. */
	assert_int_equal(v->crashes, 0);
	apply(&jobs, 7, EVENT_RESULT_LOST, "{\"reason\":\"lost\"}");
	assert_int_equal(v->state, JOB_READY);
	assert_int_equal(v->crashes, 1);
	assert_string_equal(v->reason, "lost");
	assert_true(v->not_before == 0);
	apply(&jobs, 7, EVENT_STARTED, "{}");
	apply(&jobs, 7, EVENT_RECONSTRUCTED,
	      "{\"file\":\"outbox/1/x.dcm\",\"sop_instance\":\"1.6\",\"objects\":[{\"file\":\"outbox/1/x.dcm\","
	      "\"sop_instance\":\"1.6\",\"digest\":\"00ff\"},{\"file\":\"outbox/1/y.dcm\",\"sop_instance\":\"1.7\"}]}");
	assert_int_equal(job_view_find_send(v, "pacs")->state, SEND_DUE);
	assert_string_equal(v->objects[0].digest, "00ff");
	assert_string_equal(v->objects[1].digest, "");
}

#define SEVERAL(a, b, c)                                                                                                         \
	"{\"file\":\"outbox/1/a.dcm\",\"sop_instance\":\"" a "\",\"sop_class\":\"1.2\",\"objects\":["                            \
	"{\"file\":\"outbox/1/a.dcm\",\"sop_instance\":\"" a "\",\"sop_class\":\"1.2\",\"series\":\"9\"},"                       \
	"{\"file\":\"outbox/1/b.dcm\",\"sop_instance\":\"" b "\",\"sop_class\":\"1.2\"},"                                        \
	"{\"file\":\"outbox/1/c.dcm\",\"sop_instance\":\"" c "\",\"sop_class\":\"1.3\"}]}"
#define SENT(to, uid) "{\"destination\":\"" to "\",\"sop_instance\":\"" uid "\",\"status\":\"0000\"}"

static void start_again(struct jobs *jobs, int64_t job, const char *made)
{
	apply(jobs, job, EVENT_RETRY, "{}");
	apply(jobs, job, EVENT_COMPLETE, COMPLETE);
	apply(jobs, job, EVENT_STARTED, "{}");
	apply(jobs, job, EVENT_RECONSTRUCTED, made);
}

/* Each object of a result is accepted, refused and resumed for itself; a destination is done when it has all. */
TEST(several_objects)
{
	struct jobs jobs GOES(jobs_clear) = {0};
	struct job_send *pacs, *ws;
	struct job_view *v;

	apply(&jobs, 7, EVENT_OPENED, OPENED);
	apply(&jobs, 7, EVENT_COMPLETE, COMPLETE);
	apply(&jobs, 7, EVENT_STARTED, "{}");
	v = apply(&jobs, 7, EVENT_RECONSTRUCTED, SEVERAL("1.5", "1.6", "1.7"));
	pacs = job_view_find_send(v, "pacs");
	ws = job_view_find_send(v, "ws");
	assert_int_equal(v->n_objects, 3);
	assert_string_equal(v->objects[0].series, "9");
	assert_string_equal(v->objects[2].file, "outbox/1/c.dcm");
	assert_string_equal(v->objects[2].sop_class, "1.3");
	apply(&jobs, 7, EVENT_SENT, SENT("pacs", "1.5"));
	assert_int_equal(pacs->state, SEND_DUE);
	assert_true(pacs->objects[0] == SEND_DONE && pacs->objects[1] == SEND_DUE && pacs->objects[2] == SEND_DUE);
	assert_true(job_view_is_due(v, 0)); /* by ws */
	apply(&jobs, 7, EVENT_SENT, SENT("ws", "1.5"));
	assert_false(job_view_is_due(v, 0));
	apply(&jobs, 7, EVENT_SEND_FAILED, "{\"destination\":\"pacs\",\"reason\":\"timeout\",\"next\":1060}");
	assert_true(pacs->objects[0] == SEND_DONE && pacs->objects[1] == SEND_DUE && pacs->state == SEND_DUE);
	/* refused: this one, while the others are still due */
	apply(&jobs, 7, EVENT_SEND_REFUSED, "{\"destination\":\"pacs\",\"sop_instance\":\"1.6\",\"status\":\"0122\"}");
	assert_true(pacs->objects[1] == SEND_REFUSED && pacs->state == SEND_DUE);
	apply(&jobs, 7, EVENT_SENT, SENT("pacs", "1.7"));
	assert_int_equal(pacs->state, SEND_REFUSED);
	assert_string_equal(pacs->status, "0122"); /* of the object that it refused, not of the one that it stored afterwards */
	/* one that no object has any more changes nothing */
	apply(&jobs, 7, EVENT_SENT, SENT("ws", "1.99"));
	assert_true(ws->objects[1] == SEND_DUE && ws->objects[2] == SEND_DUE);
	/* without a UID: all that is due */
	apply(&jobs, 7, EVENT_SEND_REFUSED, "{\"destination\":\"ws\",\"reason\":\"given up\"}");
	assert_true(ws->objects[0] == SEND_DONE && ws->objects[1] == SEND_REFUSED && ws->objects[2] == SEND_REFUSED);
	assert_int_equal(job_view_count_sends(v, SEND_REFUSED), 2);
	/* retry: what was refused alone */
	apply(&jobs, 7, EVENT_DEAD_LETTER, "{}");
	apply(&jobs, 7, EVENT_RETRY, "{}");
	assert_true(pacs->state == SEND_DUE && pacs->objects[0] == SEND_DONE && pacs->objects[1] == SEND_DUE &&
		    pacs->objects[2] == SEND_DONE);
	assert_null(pacs->refusal);
	/* made again: what is the same object is not sent again, in whatever order they come */
	apply(&jobs, 7, EVENT_CANCEL, "{}");
	start_again(&jobs, 7, SEVERAL("1.7", "1.5", "1.8"));
	pacs = job_view_find_send(v, "pacs");
	assert_true(pacs->objects[0] == SEND_DONE && pacs->objects[1] == SEND_DONE && pacs->objects[2] == SEND_DUE);
	assert_int_equal(pacs->state, SEND_DUE);
	/* one object alone again: there already */
	apply(&jobs, 7, EVENT_CANCEL, "{}");
	start_again(&jobs, 7, MADE("1.5"));
	assert_int_equal(v->n_objects, 1);
	assert_int_equal(job_view_find_send(v, "pacs")->state, SEND_DONE);
	assert_int_equal(job_view_find_send(v, "ws")->state, SEND_DONE);
}

/* A series of hundreds of objects: answers come in lists, and what is there stays there over a retry in another order. */
TEST(many_objects)
{
	enum { N = 500 };
	static char made[N * 120], sent[N * 12 + 200];
	struct jobs jobs GOES(jobs_clear) = {0};
	struct job_view *v = reconstructed(&jobs, 7);
	struct job_send *pacs;
	size_t n = 0;

	apply(&jobs, 7, EVENT_CANCEL, "{}");
	n = (size_t)snprintf(made, sizeof(made), "{\"objects\":[");
	for (int i = 0; i < N; i++)
		n += (size_t)snprintf(
			made + n, sizeof(made) - n,
			"%s{\"file\":\"outbox/7/%d.dcm\",\"sop_instance\":\"1.%d\",\"sop_class\":\"1.2\",\"series\":\"9.9\"}",
			i ? "," : "", i, i);
	snprintf(made + n, sizeof(made) - n, "]}");
	start_again(&jobs, 7, made);
	assert_int_equal(v->state, JOB_RECONSTRUCTED);
	assert_int_equal(v->n_objects, N);
	assert_string_equal(v->objects[499].file, "outbox/7/499.dcm");
	assert_string_equal(v->objects[499].series, "9.9");
	assert_ptr_equal(v->objects[499].series, v->objects[0].series);
	n = (size_t)snprintf(sent, sizeof(sent), "{\"destination\":\"pacs\",\"status\":\"0000\",\"sop_instances\":[");
	for (int i = 0; i < N - 1; i++)
		n += (size_t)snprintf(sent + n, sizeof(sent) - n, "%s\"1.%d\"", i ? "," : "", i);
	snprintf(sent + n, sizeof(sent) - n, "]}");
	apply(&jobs, 7, EVENT_SENT, sent);
	pacs = job_view_find_send(v, "pacs");
	assert_int_equal(pacs->state, SEND_DUE);
	assert_true(pacs->objects[498] == SEND_DONE && pacs->objects[499] == SEND_DUE);
	assert_true(job_view_is_due(v, 499) && job_view_is_due(v, 0)); /* the other destination has none */
	apply(&jobs, 7, EVENT_SENT, "{\"destination\":\"ws\"}");
	assert_false(job_view_is_due(v, 0));
	assert_true(job_view_is_due(v, 499));
	apply(&jobs, 7, EVENT_SEND_REFUSED, "{\"destination\":\"pacs\",\"sop_instances\":[\"1.499\",\"1.0\"]}");
	assert_int_equal(pacs->state, SEND_REFUSED);
	assert_true(pacs->objects[0] == SEND_DONE); /* what was stored stays stored */
	/* made again without the first: the others are known by their UIDs */
	apply(&jobs, 7, EVENT_CANCEL, "{}");
	start_again(&jobs, 7, SEVERAL("1.3", "1.499", "1.700"));
	pacs = job_view_find_send(v, "pacs");
	assert_int_equal(v->n_objects, 3);
	assert_true(pacs->objects[0] == SEND_DONE && pacs->objects[1] == SEND_DUE && pacs->objects[2] == SEND_DUE);
	assert_int_equal(job_view_find_send(v, "ws")->objects[1], SEND_DONE);
	assert_int_equal(apply(&jobs, 7, EVENT_SENT, "{\"destination\":\"pacs\",\"sop_instances\":[1]}")->state, JOB_IMPOSSIBLE);
}

TEST(damaged_objects)
{
	static const char *const bad[] = {
		"{\"objects\":[]}",
		"{\"objects\":7}",
		"{\"file\":\"outbox/1/a.dcm\",\"sop_instance\":\"1.5\",\"objects\":[{}]}",
		"{\"objects\":[{\"file\":\"outbox/../a.dcm\",\"sop_instance\":\"1.5\"}]}",
		"{\"objects\":[1,2,3,4,5,6,7,8,9]}",
		"{}",
	};
	struct jobs jobs GOES(jobs_clear) = {0};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int64_t job = 10 + (int64_t)i;

		apply(&jobs, job, EVENT_OPENED, OPENED);
		apply(&jobs, job, EVENT_COMPLETE, COMPLETE);
		apply(&jobs, job, EVENT_STARTED, "{}");
		assert_int_equal(apply(&jobs, job, EVENT_RECONSTRUCTED, bad[i])->state, JOB_IMPOSSIBLE);
	}
}

TEST(attempts_are_counted)
{
	struct jobs jobs GOES(jobs_clear) = {0};
	struct job_view *v;

	apply(&jobs, 7, EVENT_OPENED, OPENED);
	v = apply(&jobs, 7, EVENT_COMPLETE, COMPLETE);
	apply(&jobs, 7, EVENT_STARTED, "{}");
	apply(&jobs, 7, EVENT_CRASHED, "{\"reason\":\"signal 11\",\"next\":1002}");
	assert_int_equal(v->crashes, 1);
	assert_true(v->not_before == 1002);
	apply(&jobs, 7, EVENT_STARTED, "{}");
	apply(&jobs, 7, EVENT_INTERRUPTED, "{\"reason\":\"told to stop\"}");
	assert_int_equal(v->crashes, 1); /* not counted as a failure */
	assert_int_equal(v->attempts, 2);
	assert_int_equal(v->space_tries, 0);
	for (int i = 1; i <= 2; i++) {
		apply(&jobs, 7, EVENT_STARTED, "{}");
		apply(&jobs, 7, EVENT_INTERRUPTED, "{\"reason\":\"full\",\"space\":true,\"next\":1010}");
		assert_int_equal(v->space_tries, i);
	}
	apply(&jobs, 7, EVENT_RETRY, "{}");
	assert_int_equal(v->space_tries, 0);
	apply(&jobs, 7, EVENT_STARTED, "{}");
	apply(&jobs, 7, EVENT_INTERRUPTED, "{\"reason\":\"full\",\"space\":true,\"next\":1010}");
	apply(&jobs, 7, EVENT_FAILED, "{\"reason\":\"given up\"}");
	apply(&jobs, 7, EVENT_RETRY, "{\"as_is\":true}");
	assert_int_equal(v->crashes, 0);
	assert_true(v->members.as_is);
	/* Another instance arrives before the next attempt: those of the case without it do not count. */
	apply(&jobs, 7, EVENT_COMPLETE, COMPLETE);
	apply(&jobs, 7, EVENT_STARTED, "{}");
	apply(&jobs, 7, EVENT_CRASHED, "{\"reason\":\"signal 11\",\"next\":1002}");
	apply(&jobs, 7, EVENT_INSTANCE, INSTANCE);
	apply(&jobs, 7, EVENT_COMPLETE, COMPLETE);
	assert_int_equal(v->attempts, 0);
	assert_int_equal(v->crashes, 0);
	assert_true(v->not_before == 0);
}

/* What is damaged quarantines its own job; its neighbours go on. */
TEST(damage)
{
	static const struct {
		enum job_event event;
		const char *detail;
		const char *reason;
	} bad[] = {
		{EVENT_SENT, "{}", "'sent' is not allowed in state 'collecting'"},
		{EVENT_INSTANCE, "{\"instance\":", "detail of event 'instance'"},
		{EVENT_INSTANCE, "", "detail of event 'instance'"},
		{EVENT_INSTANCE, "[1]", "detail of event 'instance'"},
		{EVENT_INSTANCE, "{\"instance\":1}", "detail of event 'instance'"},
		{EVENT_INSTANCE, "{\"a\":1,\"a\":2}", "detail of event 'instance'"},
		{EVENT_COMPLETE, "{\"protocol\":\"p\"}", "detail of event 'complete'"},
		{EVENT_COMPLETE, "{\"destinations\":[]}", "detail of event 'complete'"},
		{EVENT_COMPLETE, "{\"protocol\":\"p\",\"destinations\":[7]}", "detail of event 'complete'"},
		{EVENT_COMPLETE, "{\"protocol\":\"p\",\"destinations\":[1,2,3,4,5,6,7,8,9]}", "detail of event 'complete'"},
	};
	struct jobs jobs GOES(jobs_clear) = {0};
	struct event_row unknown = {.job = 500, .time = 1, .known = false, .detail = (char *)"{}"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct job_view *v;

		apply(&jobs, 10 + (int64_t)i, EVENT_OPENED, OPENED);
		v = apply(&jobs, 10 + (int64_t)i, bad[i].event, bad[i].detail);
		assert_int_equal(v->state, JOB_IMPOSSIBLE);
		assert_non_null(strstr(v->reason, bad[i].reason));
		apply(&jobs, 10 + (int64_t)i, EVENT_CANCEL, "{}"); /* changes nothing, and not the reason */
		assert_int_equal(v->state, JOB_IMPOSSIBLE);
		assert_non_null(strstr(v->reason, bad[i].reason));
	}
	unknown.seq = ++fixture_seq;
	assert_int_equal(jobs_apply(&jobs, &unknown), 0);
	assert_int_equal(jobs_find(&jobs, 500)->state, JOB_IMPOSSIBLE);
	assert_int_equal(reconstructed(&jobs, 600)->state, JOB_RECONSTRUCTED);
	/* Its result must stay in the spool. */
	apply(&jobs, 600, EVENT_CRASHED, "{}");
	apply(&jobs, 600, EVENT_STARTED, "{}");
	apply(&jobs, 600, EVENT_RECONSTRUCTED, "{\"file\":\"outbox/../../etc/passwd\",\"sop_instance\":\"1.5\"}");
	assert_int_equal(jobs_find(&jobs, 600)->state, JOB_IMPOSSIBLE);
}

/* A route without destinations is done at once, and never safe to remove. */
TEST(never_sent_is_never_safe)
{
	struct jobs jobs GOES(jobs_clear) = {0};
	struct job_view *v;

	apply(&jobs, 7, EVENT_OPENED, OPENED);
	apply(&jobs, 7, EVENT_COMPLETE, "{\"protocol\":\"p\",\"destinations\":[]}");
	apply(&jobs, 7, EVENT_STARTED, "{}");
	apply(&jobs, 7, EVENT_RECONSTRUCTED, MADE("1.5"));
	v = apply(&jobs, 7, EVENT_DELIVERED, "{}");
	assert_false(retention_is_delivered(v));
}

static size_t count_of_case(const struct jobs *jobs, const char *key)
{
	size_t n = 0;

	for (const struct job_view *v = jobs_of_study(jobs, key); v; v = jobs_before_in_study(v))
		n += !strcmp(v->key, key);
	return n;
}

TEST(found_by_id_and_key)
{
	struct jobs jobs GOES(jobs_clear) = {0};

	for (int64_t id = 100; id > 0; id--) /* also in an order that replay never gives */
		apply(&jobs, id, EVENT_OPENED, id % 2 ? OPENED : "{\"key\":\"other\"}");
	for (int64_t id = 1; id <= 100; id++)
		assert_int_equal(jobs_find(&jobs, id)->id, id);
	assert_null(jobs_find(&jobs, 101));
	assert_int_equal(count_of_case(&jobs, "a|b"), 50);
	assert_int_equal(count_of_case(&jobs, "other"), 50);
	assert_null(jobs_of_study(&jobs, "none"));
	assert_string_equal(jobs_of_series(&jobs, "another|b")->key, "a|b");
	for (int64_t id = 1; id <= 99; id += 2)
		jobs_remove(&jobs, id);
	assert_int_equal(count_of_case(&jobs, "a|b"), 0);
	assert_null(jobs_of_series(&jobs, "a|b"));
	assert_int_equal(count_of_case(&jobs, "other"), 50);
}

#define CASES 3000

static void deliver_case(struct jobs *jobs, int64_t job)
{
	reconstructed(jobs, job);
	apply_at(jobs, job, EVENT_SENT, "{\"destination\":\"pacs\",\"status\":\"0000\"}", 1000 + (double)job);
	apply(jobs, job, EVENT_SENT, "{\"destination\":\"ws\",\"status\":\"0000\"}");
	apply(jobs, job, EVENT_DELIVERED, "{}");
}

/* What the node goes through at each wake-up are the cases that are not over. What it knows of a destination stays. */
TEST(over_is_not_looked_at)
{
	struct jobs jobs GOES(jobs_clear) = {0};

	for (int64_t job = 1; job <= CASES; job++) {
		deliver_case(&jobs, job);
		jobs_observe_clock(&jobs, 1e6);
		assert_int_equal(jobs.n_open, 0);
	}
	assert_int_equal(jobs.n, CASES);
	assert_true(delivery_queue_reached(&jobs, "pacs", 1e6) == 1000 + CASES);
	assert_true(delivery_queue_reached(&jobs, "pacs", 1010.5) == 1010); /* the clock was set back */
	assert_true(delivery_queue_reached(&jobs, "none", 1e6) == 0);
	apply(&jobs, CASES + 1, EVENT_OPENED, OPENED);
	jobs_observe_clock(&jobs, 1e6);
	assert_int_equal(jobs.n_open, 1);
	assert_int_equal(jobs_next_open(&jobs, 0)->id, CASES + 1);
	assert_null(jobs_next_open(&jobs, CASES + 1));
	apply(&jobs, 5, EVENT_CLEANED, "{}"); /* it changes once more */
	assert_int_equal(jobs_next_open(&jobs, 0)->id, 5);
	jobs_observe_clock(&jobs, 1e6);
	assert_int_equal(jobs_next_open(&jobs, 0)->id, CASES + 1);
}

/* A case that is over stays in the list while a further result of it has no job, and what is over is seen when the clock is
 * right again. */
TEST(over_and_still_open)
{
	struct jobs jobs GOES(jobs_clear) = {0};
	struct job_view *v;

	apply(&jobs, 1, EVENT_OPENED, OPENED);
	apply(&jobs, 1, EVENT_COMPLETE, "{\"protocol\":\"p\",\"destinations\":[\"pacs\"],\"further\":[{\"protocol\":\"q\"}]}");
	apply(&jobs, 1, EVENT_STARTED, "{}");
	apply(&jobs, 1, EVENT_RECONSTRUCTED, MADE("1.5"));
	apply(&jobs, 1, EVENT_SENT, "{\"destination\":\"pacs\"}");
	v = apply_at(&jobs, 1, EVENT_DELIVERED, "{}", 5000);
	jobs_observe_clock(&jobs, 5000);
	assert_int_equal(jobs.n_open, 1);
	v->further_open = true;
	jobs_observe_clock(&jobs, 5001);
	assert_int_equal(jobs.n_open, 0);
	assert_true(v->seen == 5000);
	jobs_observe_clock(&jobs, 3000);
	assert_true(v->seen == 3000);
}

static double sum_stages(const json_t *stages, size_t *ret_n)
{
	double sum = 0;

	*ret_n = json_array_size(stages);
	for (size_t i = 0; i < *ret_n; i++) {
		const json_t *one = json_array_get(stages, i);

		if (strcmp(json_string_value(json_object_get(one, "stage")), "receive"))
			sum += json_real_value(json_object_get(one, "seconds"));
	}
	return sum;
}

/* `show` and the page of a case write dozens of equal events as one line, also those of the images of a CT series. */
TEST(events_that_repeat_are_one_line)
{
	static const char *const names[] = {"opened",	 "instance",  "instance", "companion",
					    "companion", "companion", "started",  "instance"};
	static const size_t runs[] = {1, 0, 2, 0, 0, 3, 1, 1};
	json_t *events = json_array();

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		json_array_append_new(events, json_pack("{s:s}", "event", names[i]));
	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++)
		assert_int_equal(job_report_run(events, i), runs[i]);
	json_decref(events);
}

/* An object that awaits its commitment was sent: as the page counts it. */
TEST(stored_objects_are_counted_as_sent)
{
	json_t *show = json_pack("{s:{s:[{s:s, s:s, s:[s, s, s, s, s, s, s, s, s]}]}}", "job", "destinations", "name", "pacs",
				 "state", "stored", "objects", "sent", "stored", "stored", "stored", "stored", "stored", "stored",
				 "stored", "due");
	char text[2000];
	FILE *to = tmpfile();
	size_t n;

	assert_true(show && to);
	job_report_print_show(to, show);
	rewind(to);
	n = fread(text, 1, sizeof(text) - 1, to);
	text[n] = '\0';
	assert_non_null(strstr(text, "(8 of 9 objects sent)"));
	fclose(to);
	json_decref(show);
}

/* From the last C-STORE to the destination: the stages leave no gap. */
TEST(stages_add_up)
{
	json_t *view = json_pack("{s:i, s:f, s:f}", "instances", 25, "first_received", 90.0, "last_received", 100.0), *stages,
	       *none;
	json_t *events =
		json_pack("[{s:s,s:f},{s:s,s:f},{s:s,s:f,s:{s:{s:f,s:f,s:f,s:f,s:f,s:f}}},{s:s,s:f},{s:s,s:f}]", "event",
			  "complete", "time", 100.5, "event", "started", "time", 101.0, "event", "reconstructed", "time", 110.0,
			  "detail", "seconds", "open", 0.5, "read", 1.0, "prepare", 0.8, "reconstruct", 5.0, "write", 1.0,
			  "total", 8.0, "event", "sent", "time", 112.0, "event", "delivered", "time", 112.25);
	size_t n;

	assert_non_null(events);
	stages = job_report_stages(view, events);
	assert_true(sum_stages(stages, &n) > 12.2499 && sum_stages(stages, &n) < 12.2501);
	assert_int_equal(n, 12);
	/* The parts take 8.3 s within 8.0: some ran side by side. */
	assert_string_equal(json_string_value(json_object_get(json_array_get(stages, 5), "stage")), "prepare");
	assert_true(json_real_value(json_object_get(json_array_get(stages, 5), "seconds")) > 0.8 * 8.0 / 8.3 - 1e-4);
	assert_true(json_real_value(json_object_get(json_array_get(stages, 5), "seconds")) < 0.8 * 8.0 / 8.3 + 1e-4);
	json_decref(stages);
	while (json_array_size(events) > 1)
		json_array_remove(events, json_array_size(events) - 1);
	stages = job_report_stages(view, events);
	assert_int_equal(json_array_size(stages), 2); /* receive, assemble: the rest is not over */
	json_decref(stages);
	none = json_array();
	stages = job_report_stages(view, none);
	assert_int_equal(json_array_size(stages), 1);
	json_decref(stages);
	json_decref(none);
	json_decref(view);
	json_decref(events);
}
