/* SPDX-License-Identifier: Apache-2.0 */
/* Patients' names for the page: whose are asked for, what is kept, and that nothing is left open. This program is the process
 * that reads them, too: the name of job N is "name N"; it dies at job 13, and at one file. */
#include <poll.h>
#include <sqlite3.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "node/jobs/jobs_settled.h"
#include "node/status/status.h"
#include "node/status/status_internal.h"
#include "node/status/status_names.h"
#include "tests/failing_calls.h"
#include "tests/node/serve/schedule_fixture.h"

#define DEADLY 13
#define DEADLY_FILE "instances/deadly.dcm"

/* tomonode names --ipc FD -c FILE */
static int read_names(char **words)
{
	int fd = (int)strtol(words[1], NULL, 10);
	struct status_name_request q;

	while (recv(fd, &q, sizeof(q), 0) == (ssize_t)sizeof(q)) {
		struct status_name one = {.job = q.job};

		if (q.job == DEADLY || !strcmp(q.file, DEADLY_FILE))
			return 1;
		snprintf(one.name, sizeof(one.name), "name %lld of %s", (long long)q.job, q.file);
		if (send(fd, &one, sizeof(one), MSG_NOSIGNAL) < 0)
			return 1;
	}
	return 0;
}

/* Receive until the process has ended. */
static void receive_all(struct status_names *names)
{
	while (names->fd >= 0) {
		poll(&(struct pollfd){.fd = names->fd, .events = POLLIN}, 1, -1);
		status_names_receive(names);
	}
}

static void add_jobs(struct stage *t, struct status *s, int n)
{
	for (int i = 0; i < n; i++)
		add_job(t, "pet", 1, 1);
	schedule_step(&t->s, NOW);
	s->jobs = t->s.jobs; /* borrowed */
	s->journal = t->s.journal;
	s->config = t->s.config;
}

TEST(names_of_all_jobs, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	static struct status s;
	struct status_names names;
	int descriptors, asked = 0;

	status_names_begin(&names);
	add_jobs(t, &s, 20);
	assert_int_equal(status_names_unread(&names, &s), 20);
	descriptors = test_descriptors();
	while (status_names_unread(&names, &s) > 0) { /* the process dies once: the other names are asked for again */
		status_names_request(&names, &s);
		status_names_request(&names, &s); /* nothing happens while it runs */
		receive_all(&names);
		assert_int_equal(test_descriptors(), descriptors);
		assert_true(asked++ < 20);
	}
	for (size_t i = 0; i < s.jobs.n; i++) {
		int64_t job = s.jobs.list[i]->id;
		const struct status_name *one = status_names_find(&names, job);
		char expected[40];

		assert_non_null(one);
		snprintf(expected, sizeof(expected), "name %lld of instances/", (long long)job);
		assert_int_equal(strncmp(one->name, expected, strlen(expected)) == 0, job != DEADLY);
	}
	assert_null(status_names_find(&names, 999999));
	status_names_end(&names);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no process is left */
}

static void read_all(struct status_names *names, const struct status *s)
{
	status_names_request(names, s);
	assert_true(names->fd >= 0);
	receive_all(names);
	assert_int_equal(status_names_unread(names, s), 0);
}

/* The patient is that of the first image, and of another one as soon as a person chose it for the result, whether or not it can
 * be read. */
TEST(patient_of_the_result, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	static struct status s;
	struct status_names names;
	const struct job_view *v;
	char file[128];

	status_names_begin(&names);
	add_jobs(t, &s, 1);
	v = s.jobs.list[0];
	read_all(&names, &s);
	assert_non_null(strstr(status_names_of(&names, v)->name, " of instances/"));
	snprintf(file, sizeof(file), "%s", status_names_of(&names, v)->file);
	for (int readable = 1; readable >= 0; readable--) {
		append(t, v->id, EVENT_HELD, "{\"reason\":\"x\",\"patients\":true}");
		append(t, v->id, EVENT_RETRY,
		       readable ? "{\"reason\":\"x\",\"same_patient\":true,\"header\":\"instances/chosen.dcm\"}"
				: "{\"reason\":\"x\",\"same_patient\":true,\"header\":\"" DEADLY_FILE "\"}");
		schedule_step(&t->s, NOW);
		s.jobs = t->s.jobs;
		assert_null(status_names_of(&names, v)); /* not the one of before */
		assert_int_equal(status_names_unread(&names, &s), 1);
		read_all(&names, &s);
		assert_string_equal(status_names_of(&names, v)->file, readable ? "instances/chosen.dcm" : DEADLY_FILE);
		assert_string_not_equal(status_names_of(&names, v)->file, file);
		assert_string_equal(status_names_of(&names, v)->name, readable ? "name 1 of instances/chosen.dcm" : "");
	}
	status_names_end(&names);
}

static bool finds(const struct status *s, const char *text, size_t n)
{
	struct status_filter f = {0};
	struct html h = {0};
	char found[40];
	bool is;

	snprintf(f.text, sizeof(f.text), "%s", text);
	snprintf(found, sizeof(found), ">%zu of ", n);
	status_write_cases(&h, s, &f);
	is = h.text && strstr(h.text, found);
	free(h.text);
	return is;
}

/* Settled cases are found by their patients without being read, but for those on the page; by none of before a person chose. */
TEST(patients_of_settled_cases, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	static struct status s;
	struct err err = {0};

	configure_as(t, "", "status = { port = 8080; show_patient = true; };");
	status_names_begin(&s.names);
	add_jobs(t, &s, 60);
	while (status_names_unread(&s.names, &s) > 0) {
		status_names_request(&s.names, &s);
		receive_all(&s.names);
	}
	append(t, 60, EVENT_HELD, "{\"reason\":\"x\",\"patients\":true}");
	append(t, 60, EVENT_RETRY, "{\"reason\":\"x\",\"same_patient\":true,\"header\":\"instances/chosen.dcm\"}");
	append(t, 60, EVENT_COMPLETE, "{\"protocol\":\"p\",\"destinations\":[]}");
	for (int64_t job = 1; job <= 60; job++) {
		append(t, job, EVENT_STARTED, "{}");
		append(t, job, EVENT_RECONSTRUCTED, MADE);
		append(t, job, EVENT_DELIVERED, "{}");
	}
	assert_done(jobs_refresh(&t->s.jobs, t->s.journal, 0, &err), &err);
	jobs_observe_clock(&t->s.jobs, NOW);
	assert_done(jobs_record_settled(&t->s.jobs, t->s.journal, NOW, &err), &err);
	jobs_forget_settled(&t->s.jobs, 0);
	s.jobs = t->s.jobs;
	s.config = t->config;
	assert_true(finds(&s, "name", 58) && /* not the one that could not be read */ finds(&s, "name 59", 1) &&
		    finds(&s, "name 60", 0));
	assert_int_equal(s.jobs.n, 50); /* a page of them */
	assert_int_equal(status_names_unread(&s.names, &s), 1);
	t->s.jobs = s.jobs;
	read_all(&s.names, &s);
	assert_true(finds(&s, "name 60 of instances/chosen", 1));
	t->s.jobs = s.jobs;
	status_names_end(&s.names);
}

/* The names that are kept are those that are asked for: of the newest cases, open or settled. Others would be read again for ever. */
TEST(old_open_case, .setup = setup, .teardown = teardown)
{
	static const char cases[] =
		"WITH RECURSIVE i(n) AS (SELECT 2 UNION ALL SELECT n+1 FROM i WHERE n<=8192), e(name, detail) AS"
		" (VALUES('opened', '{\"key\":\"k\"}'), ('cancel', '{}'), ('cleaned', '{}'))"
		"INSERT INTO event(time, job, name, detail) SELECT 1, n, name, detail FROM i, e";
	struct stage *t = *state;
	static struct status s;
	struct err err = {0};
	sqlite3 *db;

	status_names_begin(&s.names);
	add_jobs(t, &s, 1);
	assert_int_equal(sqlite3_open(t->path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, cases, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	assert_done(jobs_refresh(&t->s.jobs, t->s.journal, 0, &err), &err);
	jobs_observe_clock(&t->s.jobs, NOW);
	assert_done(jobs_record_settled(&t->s.jobs, t->s.journal, NOW, &err), &err);
	jobs_forget_settled(&t->s.jobs, 0);
	s.jobs = t->s.jobs;
	assert_int_equal(s.jobs.n, 1);
	assert_int_equal(status_names_unread(&s.names, &s), 0);
	assert_done(journal_delete_case(t->s.journal, (int64_t[]){2}, 1, &err), &err);
	assert_int_equal(status_names_unread(&s.names, &s), 1); /* now it is one of the newest */
	status_names_end(&s.names);
}

/* Add a case whose images name these patients, and let it be held. */
static const struct job_view *hold_case(struct stage *t, struct status *s, const char *key, const char *patients)
{
	const uint8_t with[PATIENT_KEY_BYTES] = {1};
	char detail[400], text[PATIENTS_IDENTITY_SIZE];
	int64_t job = 0, image;

	snprintf(detail, sizeof(detail), "{\"key\":\"%s|%s|pet\",\"kind\":\"pet\",\"calling\":\"MOD\"}", key, key);
	assert_int_equal(journal_open_job(t->s.journal, detail, NOW, &job, NULL), 0);
	for (const char *p = patients; *p; p++) {
		struct patient_identity who = {.digest = {(uint64_t)*p}};

		snprintf(text, sizeof(text), "1.%lld.%d", (long long)job, (int)(p - patients));
		image = add_instance(t, text);
		patients_format(&who, with, text);
		snprintf(detail, sizeof(detail),
			 "{\"instance\":%lld,\"received\":%f,\"expected\":%zu,\"frames\":1,\"identity\":\"%s\"}",
			 (long long)image, NOW, strlen(patients), text);
		assert_int_equal(journal_classify(t->s.journal, image, CLASSIFIED_MEMBER, job, detail, NOW, NULL), 0);
	}
	schedule_step(&t->s, NOW);
	*s = (struct status){.jobs = t->s.jobs,
			     .journal = t->s.journal,
			     .config = t->s.config,
			     .names = s->names,
			     .person = {.role = STATUS_ROLE_ADMINISTER}};
	assert_true(jobs_find(&s->jobs, job)->patients_differ);
	return jobs_find(&s->jobs, job);
}

static bool asks(const struct status *s, const struct job_view *v, const char *text)
{
	struct html h = {0};
	bool found;

	status_page_buttons(&h, s, v, &(struct exposures){.n = 0}, "0");
	found = h.text && strstr(h.text, text);
	free(h.text);
	return found;
}

/* The question names every patient of the case, that of the result first, and has no button before it can. */
TEST(question_of_the_same_patient, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	static struct status s;
	struct patients_named named;
	const struct job_view *v;
	char text[300];

	status_names_begin(&s.names);
	t->config->status.show_patient = true;
	v = hold_case(t, &s, "1", "ABAC");
	assert_true(patients_named(s.journal, &s.jobs, v, &named));
	assert_true(named.n == 3 && !named.more && named.list[0].received == NOW);
	assert_true(asks(&s, v, "The headers are being read.") && !asks(&s, v, "/same-patient\""));
	read_all(&s.names, &s);
	assert_true(asks(&s, v, "/same-patient\"") && asks(&s, v, "The headers name 3 different patients."));
	for (size_t i = 0; i < named.n; i++) {
		snprintf(text, sizeof(text), " of %s</bdi>", named.list[i].file);
		assert_true(asks(&s, v, text));
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(named.list[i].file, named.list[k].file);
	}
	snprintf(text, sizeof(text), "The result will say: <bdi>name %d of %s</bdi>", -PATIENTS_NAMED_MAX * (int)v->id,
		 named.list[0].file);
	assert_true(asks(&s, v, text));
	/* That header is the one which the statement chooses. */
	json_t *detail = NULL;

	assert_int_equal(patients_statement(s.journal, v, NULL, false, "here", "me", &detail, NULL), 0);
	assert_string_equal(json_string_value(json_object_get(detail, "header")), named.list[0].file);
	json_decref(detail);
	t->config->status.show_patient = false;
	assert_true(asks(&s, v, "/same-patient\"") && asks(&s, v, "The headers name 3 different patients.") &&
		    !asks(&s, v, "name -") && asks(&s, v, "Names are not shown"));
	/* More than have a place; the last one has one. */
	v = hold_case(t, &s, "2", "ABCDEFGHIJ");
	assert_true(patients_named(s.journal, &s.jobs, v, &named));
	assert_true(named.n == PATIENTS_NAMED_MAX && named.more && asks(&s, v, "more than 8 different patients"));
	assert_int_equal(patients_statement(s.journal, v, NULL, false, "here", "me", &detail, NULL), 0);
	assert_string_equal(json_string_value(json_object_get(detail, "header")), named.list[0].file);
	json_decref(detail);
	/* Of another case of the study. */
	hold_case(t, &s, "3", "AB");
	v = hold_case(t, &s, "3", "C");
	assert_true(patients_named(s.journal, &s.jobs, v, &named) && named.n == 3);
	status_names_end(&s.names);
}

/* Each look-up gives its descriptors back. */
TEST(many_look_ups, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	static struct status s;
	int descriptors;

	add_jobs(t, &s, 1);
	descriptors = test_descriptors();
	for (int i = 0; i < 10; i++) {
		struct status_names names;

		status_names_begin(&names);
		status_names_request(&names, &s);
		assert_true(names.fd >= 0);
		if (i % 2) /* the page ends while the process runs */
			receive_all(&names);
		status_names_end(&names);
		assert_int_equal(test_descriptors(), descriptors);
	}
}

/* No more than its room are asked for at once, the newest first. */
TEST(number_of_requests, .setup = setup, .teardown = teardown)
{
	struct stage *t = *state;
	static struct status s;
	struct status_names names;

	status_names_begin(&names);
	add_jobs(t, &s, STATUS_NAMES_PENDING_MAX + 3);
	status_names_request(&names, &s);
	assert_int_equal(names.n_pending, STATUS_NAMES_PENDING_MAX);
	assert_int_equal(names.pending[0].job, s.jobs.list[s.jobs.n - 1]->id);
	status_names_end(&names);
	s.journal = NULL; /* cannot be read now */
	status_names_request(&names, &s);
	assert_int_equal(names.fd, -1);
}

/* ---- replies of any kind ---- */

/* A process that only waits, and a socket by which the test replies for it. */
static int fake_process(struct status_names *names)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	names->fd = pair[0];
	names->until = INFINITY;
	names->pid = fork();
	assert_true(names->pid >= 0);
	if (names->pid == 0) {
		close(pair[0]);
		close(pair[1]);
		for (;;)
			pause();
	}
	return pair[1];
}

static void reply(int fd, int64_t job, const char *name)
{
	struct status_name one = {.job = job};

	snprintf(one.name, sizeof(one.name), "%s", name);
	assert_int_equal(send(fd, &one, sizeof(one), 0), sizeof(one));
}

TEST(replies_that_nobody_asked_for)
{
	struct status_names names;
	struct status_name open;
	int fd;

	status_names_begin(&names);
	fd = fake_process(&names);
	names.pending[0].job = 7;
	names.pending[1].job = 9;
	names.n_pending = 2;
	reply(fd, 8, "other");
	reply(fd, 0, "none");
	reply(fd, 9, "nine");
	reply(fd, 9, "again");
	memset(&open, 'x', sizeof(open)); /* texts without an end */
	open.job = 7;
	assert_int_equal(send(fd, &open, sizeof(open), 0), sizeof(open));
	status_names_receive(&names);
	assert_int_equal(names.n, 2);
	assert_string_equal(status_names_find(&names, 9)->name, "nine");
	assert_int_equal(strlen(status_names_find(&names, 7)->name), sizeof(open.name) - 1);
	assert_int_equal(strlen(status_names_find(&names, 7)->id), sizeof(open.id) - 1);
	assert_true(names.fd >= 0);
	assert_int_equal(send(fd, "short", 5, 0), 5); /* a reply of another size ends it */
	status_names_receive(&names);
	assert_int_equal(names.fd, -1);
	close(fd);
	status_names_end(&names);
}

/* A process that is late is killed. */
TEST(late_process)
{
	struct status_names names;
	int fd;

	status_names_begin(&names);
	fd = fake_process(&names);
	names.pending[0].job = 7;
	names.n_pending = 1;
	status_names_receive(&names);
	assert_true(names.fd >= 0);
	names.until = 0;
	status_names_receive(&names);
	assert_int_equal(names.fd, -1);
	assert_string_equal(status_names_find(&names, 7)->name, ""); /* its job is not asked for again */
	close(fd);
	status_names_end(&names);
}

/* As many names as are kept, in any order; one more, and the oldest goes. */
TEST(number_of_names)
{
	struct status_names names;
	int64_t job = 0;

	status_names_begin(&names);
	while (job < STATUS_NAMES_MAX + 1) {
		int fd = fake_process(&names);

		names.n_pending = 0;
		while (names.n_pending < STATUS_NAMES_PENDING_MAX && job < STATUS_NAMES_MAX + 1)
			names.pending[names.n_pending++].job = ++job;
		for (size_t i = names.n_pending; i-- > 0;) { /* the newest first */
			reply(fd, names.pending[i].job, "x");
			status_names_receive(&names);
		}
		close(fd);
		receive_all(&names);
		assert_int_equal(names.n, job < STATUS_NAMES_MAX ? job : STATUS_NAMES_MAX);
	}
	assert_int_equal(names.n, STATUS_NAMES_MAX);
	for (size_t i = 1; i < names.n; i++)
		assert_true(names.list[i].job > names.list[i - 1].job);
	assert_null(status_names_find(&names, 1));
	assert_non_null(status_names_find(&names, 2));
	assert_non_null(status_names_find(&names, STATUS_NAMES_MAX + 1));
	status_names_end(&names);
}

TESTS_COMMAND("names", 4, read_names);
