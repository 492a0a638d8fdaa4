/* SPDX-License-Identifier: Apache-2.0 */
/* Several results of one case: jobs are opened for them, once, and they run one after the other on one worker. */
#include <sqlite3.h>

#include "tests/node/serve/schedule_fixture.h"
#include "tests/test.h"

#include "node/jobs/case_results.h"
#include "node/jobs/patients.h"
#include "node/serve/schedule_internal.h"

#define COMPLETE_WITH(further)                                                                                                   \
	"{\"why\":\"1 of 1\",\"protocol\":\"dbt-osem\",\"destinations\":[\"pacs\"],\"further\":[" further "]}"
#define FBP "{\"route\":\"second\",\"protocol\":\"dbt-fbp\",\"destinations\":[\"research\",\"pacs\"]}"
#define UNKNOWN "{\"route\":\"third\",\"protocol\":\"none\",\"destinations\":[\"pacs\"]}"

static void end(struct stage *t, int fd, int64_t job, enum job_event event, const char *detail)
{
	append(t, job, event, detail);
	assert_true(worker_ipc_send(fd, WORKER_DONE, job, 1, NULL, true));
	step(t, job, NOW);
}

static const struct job_view *last(const struct stage *t)
{
	return t->s.jobs.list[t->s.jobs.n - 1];
}

static void begin(struct stage *t, int a[2], int b[2])
{
	slots_configure(&t->s.slots, "cuda:0, cuda:1", t->s.clock);
	add_worker(t, 0, a);
	add_worker(t, 1, b);
	t->s.stopping = false;
}

static void finish(struct stage *t, int a[2], int b[2])
{
	t->s.stopping = true;
	for (int i = 0; i < 2; i++) {
		close(a[i]);
		close(b[i]);
	}
}

/* The first of two results is being made: the other one is opened. */
static void start_first(struct stage *t, int64_t first)
{
	append(t, first, EVENT_COMPLETE, COMPLETE_WITH(FBP));
	append(t, first, EVENT_STARTED, "{}");
	step(t, first, NOW);
}

TEST(results_run_after_each_other, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t first = add_job(t, "dbt", 2, 2), second;
	bool keep = false;
	int a[2], b[2];

	append(t, first, EVENT_COMPLETE, COMPLETE_WITH(FBP));
	assert_int_equal(step(t, first, NOW)->state, JOB_READY);
	assert_int_equal(t->s.jobs.n, 1); /* its instances may still change */
	begin(t, a, b);
	step(t, first, NOW);
	assert_int_equal(given(a[1], &keep), first);
	assert_true(keep);
	step(t, first, NOW);
	assert_int_equal(t->s.jobs.n, 2);
	second = last(t)->id;
	assert_true(last(t)->state == JOB_READY && last(t)->other.number == 2 && last(t)->other.of == first);
	assert_true(last(t)->members.instances == 2 && last(t)->n_sends == 2);
	assert_string_equal(last(t)->protocol, "dbt-fbp");
	assert_string_equal(last(t)->sends[0].destination, "research");
	/* The other worker is idle, but would read the images again. */
	assert_int_equal(given(b[1], &keep), 0);
	assert_int_equal(schedule_count_waiting(&t->s, NOW), 0);
	/* The failure of the first does not stop the second, which goes to the worker that has the images. */
	end(t, a[1], first, EVENT_FAILED, "{\"reason\":\"too large\"}");
	assert_int_equal(given(b[1], &keep), 0);
	assert_int_equal(given(a[1], &keep), second);
	assert_false(keep);
	end(t, a[1], second, EVENT_FAILED, "{\"reason\":\"too large\"}");
	/* A retry of the first does not make the second again. */
	append(t, first, EVENT_RETRY, "{\"reason\":\"x\"}");
	append(t, first, EVENT_COMPLETE, COMPLETE_WITH(FBP));
	step(t, first, NOW);
	assert_int_equal(given(a[1], &keep) + given(b[1], &keep), first);
	step(t, first, NOW);
	assert_int_equal(t->s.jobs.n, 2);
	finish(t, a, b);
}

TEST(opened_once_whatever_stops_the_node, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t first = add_job(t, "dbt", 1, 1);

	append(t, first, EVENT_COMPLETE, COMPLETE_WITH(FBP "," UNKNOWN));
	append(t, first, EVENT_STARTED, "{}");
	for (int i = 0; i < 3; i++) { /* as after a restart: only the journal is known */
		for (int k = 0; k < 3; k++)
			step(t, first, NOW);
		assert_int_equal(t->s.jobs.n, 3);
		jobs_clear(&t->s.jobs);
	}
	step(t, first, NOW);
	/* A protocol that is not in the configuration holds its result only. */
	assert_int_equal(last(t)->state, JOB_HELD);
	assert_non_null(strstr(last(t)->reason, "protocol 'none' is not in the configuration; allowed for cases of kind dbt: "));
	assert_int_equal(t->s.jobs.list[1]->state, JOB_READY);
	assert_true(t->s.jobs.list[1]->other.number == 2 && last(t)->other.number == 3);
}

TEST(cancelled_before_it_was_started, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t first = add_job(t, "dbt", 1, 1);

	append(t, first, EVENT_COMPLETE, COMPLETE_WITH(FBP));
	append(t, first, EVENT_CANCEL, "{\"reason\":\"x\"}");
	step(t, first, NOW);
	assert_int_equal(t->s.jobs.n, 1);
}

/* An image that arrives late: the newer result of the other protocol replaces one that was not started, and follows one that was.
 */
TEST(a_revision_has_its_own_results, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t first = add_job(t, "dbt", 1, 1), old, revision = 0, image;
	char member[200];

	start_first(t, first);
	old = last(t)->id;
	for (int round = 1; round <= 2; round++) {
		image = add_instance(t, round == 1 ? "1.7.1" : "1.7.2");
		snprintf(member, sizeof(member), "{\"instance\":%lld,\"received\":%f,\"expected\":1,\"frames\":1}",
			 (long long)image, NOW);
		assert_int_equal(journal_open_revision(t->s.journal, revision ? revision : first, image, member,
						       "{\"key\":\"dbt\",\"kind\":\"dbt\",\"calling\":\"MOD\",\"revision\":2}",
						       NOW, &revision, NULL),
				 0);
		append(t, revision, EVENT_COMPLETE, COMPLETE_WITH(FBP));
		append(t, revision, EVENT_STARTED, "{}");
		step(t, revision, NOW);
		step(t, revision, NOW);
		assert_true(last(t)->other.of == revision && last(t)->revision_of == old);
		assert_int_equal(last(t)->members.instances, 1 + round);
		assert_int_equal(jobs_find(&t->s.jobs, old)->state, round == 1 ? JOB_CANCELLED : JOB_FAILED);
		assert_int_equal(last(t)->state, JOB_READY);
		old = last(t)->id;
		append(t, old, EVENT_FAILED, "{\"reason\":\"too large\"}");
	}
	assert_int_equal(journal_find_latest(t->s.journal, "dbt", &old, NULL), 1); /* not one of the further results */
	assert_int_equal(old, revision);
}

/* A retry completes a further result with what it was opened for. */
TEST(retried_result, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t first = add_job(t, "dbt", 1, 1), second;

	start_first(t, first);
	second = last(t)->id;
	append(t, second, EVENT_STARTED, "{}");
	append(t, second, EVENT_FAILED, "{\"reason\":\"too large\"}");
	append(t, second, EVENT_RETRY, "{\"reason\":\"x\"}");
	assert_int_equal(step(t, second, NOW)->state, JOB_READY);
	assert_string_equal(last(t)->protocol, "dbt-fbp");
	assert_string_equal(last(t)->sends[0].destination, "research");
}

static void execute(const struct stage *t, const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(t->path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

/* A case whose exam cannot be read opens no further result; that is no error of the journal, for which all cases would wait. */
TEST(further_result_of_an_unreadable_exam, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t first = add_job(t, "dbt", 1, 1);

	execute(t, "ALTER TABLE settled_job RENAME COLUMN study TO broken");
	start_first(t, first);
	assert_int_equal(last(t)->id, first);
	assert_string_not_equal(schedule_unread_case(&t->s), "");
	assert_true(t->s.retry_at <= t->s.clock);
	execute(t, "ALTER TABLE settled_job RENAME COLUMN broken TO study");
	step(t, first, NOW);
	assert_int_not_equal(last(t)->id, first);
}

static int64_t redo(struct stage *t, int64_t job, const char *protocol, const char *setting, int expected)
{
	const char *settings[] = {setting};
	const struct redo_request request = {protocol, settings, setting ? 1 : 0, "in a test", "user ann"};
	struct err err = {0};
	int64_t made = 0;

	step(t, job, NOW);
	assert_int_equal(redo_open(t->s.journal, &t->s.jobs, t->config, jobs_find(&t->s.jobs, job), &request, NOW, &made, &err),
			 expected);
	return made;
}

TEST(redo_needs_images_and_a_protocol, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t job = add_job(t, "dbt", 1, 1), made;
	const struct redo_request again = {"dbt-fbp", NULL, 0, "in a test", "user ann"};
	struct job_view recorded;
	const struct job_view *v;
	struct err err = {0};
	json_t *detail;

	append(t, job, EVENT_COMPLETE, COMPLETE_WITH(""));
	append(t, job, EVENT_STARTED, "{}");
	append(t, job, EVENT_RECONSTRUCTED, MADE);
	append(t, job, EVENT_SENT, "{\"destination\":\"pacs\",\"status\":\"0000\",\"sop_instance\":\"1.5\"}");
	append(t, job, EVENT_DELIVERED, "{}");
	redo(t, add_job(t, "dbt", 1, 2), NULL, NULL, -ESTALE); /* incomplete */
	redo(t, job, "none", NULL, -EINVAL);
	redo(t, job, "pet-osem", NULL, -EINVAL);
	redo(t, job, NULL, "voxel=-1", -EINVAL);
	redo(t, job, NULL, "no such key=1", -EINVAL);
	redo(t, job, "dbt-fbp", "iterations=7", -EINVAL); /* no effect */
	redo(t, job, "dbt-fbp", "slab_step=2", -EINVAL);  /* without slab_thickness */
	made = redo(t, job, "dbt-fbp", "voxel=2", 0);
	v = step(t, made, NOW);
	assert_int_equal(v->state, JOB_READY);
	assert_true(v->other.redo_of == job && v->other.of == job && v->other.number == 2);
	assert_string_equal(v->other.settings, "[\"voxel=2\"]");
	/* One that an earlier version recorded with a key without effect is made again as it was. */
	recorded = *v;
	recorded.other.settings = (char[]){"[\"iterations=7\"]"};
	detail = case_results_complete(t->s.journal, t->config, &recorded, &err);
	assert_non_null(detail);
	json_decref(detail);
	/* A job of the case, maybe with that number, cannot be read: nothing is decided about it, and it is said. */
	v = jobs_find(&t->s.jobs, made);
	t->s.jobs.n_lost = 1;
	t->s.jobs.lost[0] = (struct jobs_lost){.id = 9, .study = v->study_link.hash, .why = {.code = EIO, .msg = "x"}};
	assert_int_equal(redo_open(t->s.journal, &t->s.jobs, t->config, jobs_find(&t->s.jobs, job), &again, NOW, &made, &err),
			 -EIO);
	assert_string_equal(schedule_unread_case(&t->s), "");
	assert_false(schedule_append_event(&t->s, v, EVENT_PRIORITY, json_pack("{s:i}", "priority", 1), NOW));
	assert_string_equal(schedule_unread_case(&t->s), "case 9: x");
	t->s.jobs.lost[0].study++; /* of another exam */
	assert_true(schedule_append_event(&t->s, v, EVENT_PRIORITY, json_pack("{s:i}", "priority", 1), NOW));
	t->s.clock += 60;
	assert_string_equal(schedule_unread_case(&t->s), "");
	/* The images were removed after the person had looked. */
	append(t, job, EVENT_CLEANED, "{}");
	redo(t, job, NULL, NULL, -ESTALE);
}

/* Two headers, two patients; a person states that it is one, and which header counts. */
TEST(a_statement_holds_for_all_results, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	char detail[400], text[PATIENTS_IDENTITY_SIZE];
	const uint8_t key[PATIENT_KEY_BYTES] = {1};
	int64_t first = 0, result;

	assert_int_equal(
		journal_open_job(t->s.journal, "{\"key\":\"1|2|dbt\",\"kind\":\"dbt\",\"calling\":\"MOD\"}", NOW, &first, NULL),
		0);
	for (int i = 0; i < 2; i++) {
		struct patient_identity who = {0};
		int64_t image = add_instance(t, i ? "1.2.3.1" : "1.2.3.0");

		for (int a = 0; a < PATIENT_ATTRIBUTES; a++)
			who.digest[a] = (uint64_t)(10 * (i + 1) + a);
		patients_format(&who, key, text);
		snprintf(detail, sizeof(detail),
			 "{\"instance\":%lld,\"received\":%f,\"expected\":2,\"frames\":1,\"identity\":\"%s\"}", (long long)image,
			 NOW, text);
		assert_int_equal(journal_classify(t->s.journal, image, CLASSIFIED_MEMBER, first, detail, NOW, NULL), 0);
	}
	assert_true(step(t, first, NOW)->patients_differ);
	append(t, first, EVENT_RETRY, "{\"reason\":\"x\",\"same_patient\":true,\"header\":\"instances/0.dcm\"}");
	start_first(t, first);
	step(t, first, NOW);
	result = last(t)->id;
	assert_true(result != first && last(t)->state == JOB_READY && last(t)->same_patient > 0);
	assert_string_equal(last(t)->header, "instances/0.dcm");
	/* The first one, retried, is not compared with its own result. */
	append(t, first, EVENT_STARTED, "{}");
	append(t, first, EVENT_FAILED, "{\"reason\":\"x\"}");
	append(t, first, EVENT_RETRY, "{\"reason\":\"x\"}");
	assert_int_equal(step(t, first, NOW)->state, JOB_READY);
	/* What a person states about the result itself counts more. */
	append(t, result, EVENT_STARTED, "{}");
	append(t, result, EVENT_HELD, "{\"reason\":\"x\",\"patients\":true}");
	append(t, result, EVENT_RETRY, "{\"reason\":\"x\",\"same_patient\":true,\"header\":\"instances/1.dcm\"}");
	assert_int_equal(step(t, result, NOW)->state, JOB_READY);
	assert_string_equal(jobs_find(&t->s.jobs, result)->header, "instances/1.dcm");
}

/* A new start opens nothing again for an earlier revision of a case, and cancels no result of the newest one. */
TEST(a_restart_after_a_revision, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t first = add_job(t, "dbt", 1, 1), revision = 0, image;
	char member[200];

	start_first(t, first);
	append(t, last(t)->id, EVENT_FAILED, "{\"reason\":\"too large\"}");
	image = add_instance(t, "1.7.1");
	snprintf(member, sizeof(member), "{\"instance\":%lld,\"received\":%f,\"expected\":1,\"frames\":1}", (long long)image,
		 NOW);
	assert_int_equal(journal_open_revision(t->s.journal, first, image, member,
					       "{\"key\":\"dbt\",\"kind\":\"dbt\",\"calling\":\"MOD\",\"revision\":2}", NOW,
					       &revision, NULL),
			 0);
	append(t, revision, EVENT_COMPLETE, COMPLETE_WITH(FBP));
	append(t, revision, EVENT_STARTED, "{}");
	for (int i = 0; i < 4; i++) {
		for (int k = 0; k < 3; k++)
			step(t, revision, NOW);
		assert_int_equal(t->s.jobs.n, 4);
		assert_true(last(t)->state == JOB_READY && last(t)->other.of == revision && last(t)->other.number == 2);
		jobs_clear(&t->s.jobs);
	}
}

/* Images that retention has removed for another job of the case cannot be used again. */
TEST(redo_of_shared_images_that_were_removed, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	int64_t first = add_job(t, "dbt", 1, 1), second;

	start_first(t, first);
	second = last(t)->id;
	append(t, second, EVENT_FAILED, "{\"reason\":\"too large\"}");
	append(t, first, EVENT_STARTED, "{}");
	append(t, first, EVENT_RECONSTRUCTED, MADE);
	append(t, first, EVENT_SENT, "{\"destination\":\"pacs\",\"status\":\"0000\",\"sop_instance\":\"1.5\"}");
	append(t, first, EVENT_DELIVERED, "{}");
	redo(t, second, NULL, "voxel=2", 0);
	redo(t, second, NULL, "voxel=2", -ESTALE); /* asked twice */
	assert_int_equal(journal_append_cleaned(t->s.journal, first, INT64_MAX, "{}", NOW, NULL), 0);
	redo(t, second, NULL, "voxel=3", -ESTALE);
}
