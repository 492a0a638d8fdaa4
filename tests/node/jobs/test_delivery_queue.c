/* SPDX-License-Identifier: Apache-2.0 */
/* Who waits for a destination behind whom, and what people read of it. */
#include "node/jobs/delivery_queue.h"
#include "node/jobs/job_hint.h"
#include "node/jobs/job_report.h"
#include "node/status/status_text.h"
#include "tests/test.h"

static int64_t seq;

static struct job_view *apply(struct jobs *jobs, int64_t job, enum job_event event, const char *detail, double time)
{
	struct event_row row = {.seq = ++seq, .time = time, .job = job, .event = event, .known = true, .detail = (char *)detail};

	assert_int_equal(jobs_apply(jobs, &row), 0);
	return jobs_find(jobs, job);
}

static void made(struct jobs *jobs, int64_t job)
{
	static const struct {
		enum job_event event;
		const char *detail;
	} life[] = {{EVENT_OPENED, "{\"key\":\"k\",\"kind\":\"dbt\"}"},
		    {EVENT_COMPLETE, "{\"protocol\":\"p\",\"destinations\":[\"pacs\",\"ws\"]}"},
		    {EVENT_STARTED, "{}"},
		    {EVENT_RECONSTRUCTED, "{\"file\":\"outbox/1/x.dcm\",\"sop_instance\":\"1.5\"}"}};

	for (size_t i = 0; i < sizeof(life) / sizeof(life[0]); i++)
		apply(jobs, job, life[i].event, life[i].detail, 1000);
}

#define FAILED(next, down)                                                                                                       \
	"{\"destination\":\"pacs\",\"status\":\"\",\"reason\":\"Connection refused\",\"next\":" next ",\"down\":" down           \
	",\"alarm\":true}"

static const struct job_send *blocked_by(struct jobs *jobs, int64_t job, const char *destination)
{
	delivery_queue_update(jobs);
	return job_view_find_send(jobs_find(jobs, job), destination)->blocked_by;
}

TEST(waits_behind_the_one_that_tried)
{
	struct jobs jobs GOES(jobs_clear) = {0};

	for (int64_t job = 1; job <= 4; job++)
		made(&jobs, job);
	assert_null(blocked_by(&jobs, 2, "pacs"));
	apply(&jobs, 1, EVENT_SEND_FAILED, FAILED("2000", "true"), 1100);
	assert_ptr_equal(blocked_by(&jobs, 2, "pacs"), job_view_find_send(jobs_find(&jobs, 1), "pacs"));
	assert_null(blocked_by(&jobs, 1, "pacs")); /* it says itself */
	assert_null(blocked_by(&jobs, 2, "ws"));   /* another destination */
	/* Several tried: the last next attempt counts. One that failed itself has its own reason. */
	apply(&jobs, 3, EVENT_SEND_FAILED, FAILED("3000", "true"), 1200);
	assert_ptr_equal(blocked_by(&jobs, 2, "pacs"), job_view_find_send(jobs_find(&jobs, 3), "pacs"));
	assert_null(blocked_by(&jobs, 1, "pacs"));
	/* A person does not want to wait; what is sent, replaced or over does not. */
	apply(&jobs, 2, EVENT_RETRY, "{}", 1300);
	assert_null(blocked_by(&jobs, 2, "pacs"));
	apply(&jobs, 4, EVENT_SENT, "{\"destination\":\"pacs\"}", 1300);
	assert_null(blocked_by(&jobs, 4, "pacs"));
}

/* A failure within an association is that object's alone: nobody waits. */
TEST(a_failed_object_holds_nobody_up)
{
	struct jobs jobs GOES(jobs_clear) = {0};

	made(&jobs, 1);
	made(&jobs, 2);
	apply(&jobs, 1, EVENT_SEND_FAILED, FAILED("2000", "false"), 1100);
	assert_null(blocked_by(&jobs, 2, "pacs"));
	apply(&jobs, 1, EVENT_SEND_FAILED, FAILED("2000", "true"), 1200);
	assert_non_null(blocked_by(&jobs, 2, "pacs"));
	apply(&jobs, 1, EVENT_SENT, "{\"destination\":\"pacs\"}", 1300); /* it is back */
	assert_null(blocked_by(&jobs, 2, "pacs"));
}

/* A case that was sent after the failure shows that the destination responds. */
TEST(a_later_response_ends_the_waiting)
{
	struct jobs jobs GOES(jobs_clear) = {0};

	for (int64_t job = 1; job <= 3; job++)
		made(&jobs, job);
	apply(&jobs, 1, EVENT_SEND_FAILED, FAILED("2000", "true"), 1100);
	assert_non_null(blocked_by(&jobs, 2, "pacs"));
	apply(&jobs, 3, EVENT_SENT, "{\"destination\":\"ws\",\"status\":\"0000\"}", 1200);
	assert_non_null(blocked_by(&jobs, 2, "pacs"));
	apply(&jobs, 3, EVENT_SENT, "{\"destination\":\"pacs\",\"status\":\"0000\"}", 1200);
	assert_null(blocked_by(&jobs, 2, "pacs"));
	assert_true(delivery_queue_reached(&jobs, "pacs", 1300) == 1200);
	assert_true(delivery_queue_reached(&jobs, "pacs", 1199) == 0); /* the clock was set back */
	apply(&jobs, 1, EVENT_SEND_FAILED, FAILED("2000", "true"), 1300);
	assert_non_null(blocked_by(&jobs, 2, "pacs"));
}

TEST(what_people_read)
{
	const struct config config = {.n_destinations = 0};
	struct jobs jobs GOES(jobs_clear) = {0};
	struct job_view *v;
	const char *word;
	char text[600];
	FILE *to = tmpfile();
	json_t *view, *list;
	size_t n;

	made(&jobs, 1);
	made(&jobs, 2);
	apply(&jobs, 1, EVENT_SEND_FAILED, FAILED("2000", "true"), 1100);
	delivery_queue_update(&jobs);
	v = jobs_find(&jobs, 2);
	status_text_sentence(&config, v, 0, 1500, LANGUAGE_EN, text, sizeof(text));
	assert_non_null(strstr(text, "pacs has not been reached since "));
	assert_non_null(strstr(text, ": Connection refused. The next attempt is at "));
	assert_non_null(strstr(text, "It is being sent to ws."));
	assert_int_equal(status_text_state(v, &word), TONE_BAD); /* the alarm is everybody's */
	assert_string_equal(word, "Not sent yet");
	assert_non_null(strstr(job_hint(v, 0), "Nothing is lost"));

	view = job_report_view(v, NULL, "/nonexistent");
	list = json_pack("[o]", view);
	view = json_array_get(json_object_get(view, "destinations"), 0);
	assert_string_equal(json_string_value(json_object_get(json_object_get(view, "blocked_by"), "reason")),
			    "Connection refused");
	assert_true(json_number_value(json_object_get(json_object_get(view, "blocked_by"), "since")) == 1100);
	assert_true(json_number_value(json_object_get(json_object_get(view, "blocked_by"), "next")) == 2000);
	job_report_print_list(to, list, NULL, NULL);
	rewind(to);
	n = fread(text, 1, sizeof(text) - 1, to);
	text[n] = '\0';
	assert_non_null(strstr(text, "pacs: due (not reached since "));
	assert_non_null(strstr(text, ": Connection refused; next attempt "));
	assert_non_null(strstr(text, "), ws: due"));
	fclose(to);
	json_decref(list);
}
