/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of storage commitment, applied to the journal: of the open transaction, of an older one, and contradictory ones. */
#include "node/base/log.h"
#include "node/deliver/commit.h"
#include "tests/node/serve/schedule_fixture.h"
#include "tests/test.h"

#define TWO_OBJECTS                                                                                                              \
	"{\"objects\":[{\"file\":\"outbox/1/a.dcm\",\"sop_instance\":\"1.5\",\"sop_class\":\"1.2\"},"                            \
	"{\"file\":\"outbox/1/b.dcm\",\"sop_instance\":\"1.6\",\"sop_class\":\"1.2\"}]}"

/* The PACS is asked for commitment, and accepts the request. */
static void request(struct stage *t, int64_t job, const char *transaction)
{
	char detail[200];

	snprintf(detail, sizeof(detail), "{\"destination\":\"pacs\",\"transaction\":\"%s\",\"until\":9000}", transaction);
	append(t, job, EVENT_COMMIT_REQUESTED, detail);
	append(t, job, EVENT_COMMIT_ACCEPTED, detail);
	assert_int_equal(jobs_refresh(&t->s.jobs, t->s.journal, 0, NULL), 0);
}

/* A job whose two objects the PACS has stored, and whose commitment was requested. */
static struct job_send *stored(struct stage *t, const char *transaction, int64_t *ret_job)
{
	int64_t job = add_job(t, "dbt", 1, 1);

	step(t, job, NOW);
	append(t, job, EVENT_STARTED, "{}");
	append(t, job, EVENT_RECONSTRUCTED, TWO_OBJECTS);
	append(t, job, EVENT_SENT, "{\"destination\":\"pacs\",\"status\":\"0000\",\"commit\":true}");
	request(t, job, transaction);
	*ret_job = job;
	return job_view_find_send(jobs_find(&t->s.jobs, job), "pacs");
}

static uint16_t report(struct stage *t, const char *transaction, const struct commit_item *items, size_t n)
{
	struct commit_report r = {.items = (struct commit_item *)items, .n = n};
	uint16_t status;

	snprintf(r.transaction, sizeof(r.transaction), "%s", transaction);
	status = commit_apply_report(t->s.journal, t->config, &r, "ORTHANC", NOW);
	assert_int_equal(jobs_refresh(&t->s.jobs, t->s.journal, 0, NULL), 0);
	return status;
}

/* An object that is listed as committed and as failed counts as failed, in either order. */
TEST(in_both_lists_is_failed, .setup = setup, .teardown = teardown)
{
	static const struct commit_item orders[][3] = {{{"1.5", 0x0112}, {"1.6", 0}, {"1.5", 0}},
						       {{"1.5", 0}, {"1.6", 0}, {"1.5", 0x0112}}};
	static const char *const transactions[] = {"2.25.1", "2.25.2"};
	struct stage *t = *state;

	for (int i = 0; i < 2; i++) {
		int64_t job;
		struct job_send *send = stored(t, transactions[i], &job);

		assert_true(send->objects[0] == SEND_STORED && send->objects[1] == SEND_STORED);
		assert_int_equal(report(t, transactions[i], orders[i], 3), COMMIT_ACCEPTED);
		assert_true(send->objects[0] == SEND_DUE && send->objects[1] == SEND_DONE);
		assert_int_equal(send->commit_tries, 1);
		assert_non_null(strstr(send->reason, "1 of 2 objects, reason 0112"));
	}
}

/* The object that is committed is another one, if its class is. */
TEST(committed_with_another_class, .setup = setup, .teardown = teardown)
{
	static const struct commit_item items[] = {{"1.5", 0, "1.3"}, {"1.6", 0, "1.2"}};
	struct stage *t = *state;
	int64_t job;
	struct job_send *send = stored(t, "2.25.1", &job);

	assert_int_equal(report(t, "2.25.1", items, 2), COMMIT_ACCEPTED);
	assert_true(send->objects[0] == SEND_DUE && send->objects[1] == SEND_DONE);
	assert_non_null(strstr(send->reason, "1 of 2 objects, reason 0119"));
}

/* A failure in a report about an older transaction changes nothing; what it commits counts. */
TEST(failure_of_an_older_request, .setup = setup, .teardown = teardown)
{
	static const struct commit_item failed[] = {{"1.5", 0x0112}, {"1.6", 0x0112}}, half[] = {{"1.5", 0x0112}, {"1.6", 0}};
	struct stage *t = *state;
	int64_t job, last;
	struct job_send *send = stored(t, "2.25.1", &job);

	append(t, job, EVENT_COMMIT_REQUEST_FAILED, "{\"destination\":\"pacs\",\"transaction\":\"2.25.1\"}");
	request(t, job, "2.25.2");
	last = t->s.jobs.last_seq;
	assert_int_equal(report(t, "2.25.1", failed, 2), COMMIT_ACCEPTED);
	assert_int_equal(t->s.jobs.last_seq, last);
	assert_int_equal(report(t, "2.25.1", half, 2), COMMIT_ACCEPTED);
	assert_true(send->objects[0] == SEND_STORED && send->objects[1] == SEND_DONE);
	assert_string_equal(send->transaction, "2.25.2");
	assert_int_equal(report(t, "2.25.2", failed, 1), COMMIT_ACCEPTED);
	assert_true(send->objects[0] == SEND_DUE && send->objects[1] == SEND_DONE);
}

static char lines[16384];

/* Log n refused reports of one association, and its end; return the number of lines, which are in `lines`. */
static int refuse(unsigned long n)
{
	int pipes[2], saved = dup(STDERR_FILENO), count = 0;
	unsigned long refused = 0;
	ssize_t length;

	assert_int_equal(pipe(pipes), 0);
	dup2(pipes[1], STDERR_FILENO);
	log_start(LOG_TO_STDERR, LOG_DAEMON, LOG_INFO, "commit");
	for (unsigned long i = 0; i < n; i++)
		commit_log_refused(&refused, "job=1 destination=pacs", 0x0115, "no transaction");
	commit_log_refused_end(refused, "job=1 destination=pacs");
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(pipes[1]);
	length = read(pipes[0], lines, sizeof(lines) - 1);
	close(pipes[0]);
	lines[length > 0 ? length : 0] = '\0';
	for (const char *c = lines; *c; c++)
		count += *c == '\n';
	return count;
}

/* A peer that sends refused reports without end cannot fill the log. */
TEST(refused_reports_are_counted)
{
	assert_int_equal(refuse(0), 0);
	assert_int_equal(refuse(10), 10);
	assert_non_null(strstr(lines, "commitment-report-refused job=1 destination=pacs status=0115 reason=\"no transaction\""));
	assert_null(strstr(lines, "more="));
	assert_int_equal(refuse(1000), 11);
	assert_non_null(strstr(lines, "commitment-report-refused job=1 destination=pacs more=990\n"));
}
