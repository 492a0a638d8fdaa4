/* SPDX-License-Identifier: Apache-2.0 */
/* What the audit trail makes of the journal: transfers, deliveries, where it goes on after a start; a trail that is off. */
#include "node/audit/audit_trail.h"
#include "tests/node/audit/audit_fixture.h"
#include "tests/test.h"

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

/* job 0: unassigned. */
static void add_patient(struct place *p, int64_t job, const char *association, const char *study, const char *patient,
			double received)
{
	static int serial;
	struct instance_row row = {.received = received};
	char detail[200];

	snprintf(row.sop_class, sizeof(row.sop_class), "1.2.3");
	snprintf(row.sop_instance, sizeof(row.sop_instance), "1.%d", serial);
	snprintf(row.association, sizeof(row.association), "%s", association);
	snprintf(row.calling, sizeof(row.calling), "MOD");
	snprintf(row.host, sizeof(row.host), "10.0.0.7");
	snprintf(row.file, sizeof(row.file), "instances/%d.dcm", serial++);
	assert_int_equal(journal_add_instance(p->journal, &row, NULL), 0);
	snprintf(detail, sizeof(detail), "{\"received\":%f,\"study\":\"%s\",\"patient\":\"%s\"}", received, study, patient);
	assert_int_equal(
		journal_classify(p->journal, row.id, job ? CLASSIFIED_MEMBER : CLASSIFIED_IGNORED, job, detail, received, NULL),
		0);
}

static void add_instance(struct place *p, const char *association, const char *study, double received)
{
	char patient[16];

	snprintf(patient, sizeof(patient), "P%s", study);
	add_patient(p, 0, association, study, patient, received);
}

/* What the file has, since the last time. */
static const char *reported(struct place *p)
{
	static char text[65536];
	static off_t seen;
	struct stat st;
	ssize_t n;
	int fd;

	audit_flush(1000);
	fd = open(p->file, O_RDONLY);
	if (fd < 0)
		return strcpy(text, "");
	if (fstat(fd, &st) == 0 && st.st_size < seen)
		seen = 0;
	n = pread(fd, text, sizeof(text) - 1, seen);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	unlink(p->file);
	return text;
}

static double step(struct place *p, struct audit_trail *t, double now)
{
	assert_int_equal(jobs_refresh(&p->jobs, p->journal, 0, NULL), 0);
	return audit_trail_step(t, p->journal, &p->jobs, p->config, now, false);
}

TEST(one_message_an_association, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	struct audit_trail *t = NULL;
	const char *text;

	audit_start(&p->config->node, AUDIT_QUEUED, "serve");
	add_instance(p, "old", "1", 500); /* before there was a trail: not reported */
	assert_int_equal(audit_trail_open(p->dir, p->journal, &t, NULL), 0);
	for (int i = 0; i < 10; i++)
		add_instance(p, i % 2 ? "a" : "b", "7", 1000 + i);
	assert_true(step(p, t, 1010) == 1008 + 3);
	assert_string_equal(reported(p), "");
	step(p, t, 1011.5);
	text = reported(p);
	assert_int_equal(count(text, "<AuditMessage>"), 1); /* that of b: its last one came at 1008 */
	assert_int_equal(count(text, "UID=\"1.2.3\" NumberOfInstances=\"5\""), 1);
	assert_non_null(strstr(text, "ParticipantObjectID=\"P7\""));
	assert_non_null(strstr(text, "AETITLES=MOD"));
	/* Killed here, the other one is reported by the next; b perhaps again, never less than once. */
	audit_trail_close(t);
	assert_int_equal(audit_trail_open(p->dir, p->journal, &t, NULL), 0);
	step(p, t, 1020);
	assert_in_range(count(reported(p), "<AuditMessage>"), 1, 2);
	/* Now all is told. */
	audit_trail_close(t);
	assert_int_equal(audit_trail_open(p->dir, p->journal, &t, NULL), 0);
	assert_true(step(p, t, 2000) == 0);
	assert_string_equal(reported(p), "");
	audit_trail_close(t);
}

TEST(long_and_last_ones, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	struct audit_trail *t = NULL;

	audit_start(&p->config->node, AUDIT_QUEUED, "serve");
	assert_int_equal(audit_trail_open(p->dir, p->journal, &t, NULL), 0);
	for (int i = 0; i < 400; i++) {
		add_instance(p, "slow", "7", 1000 + 2 * i);
		step(p, t, 1000 + 2 * i);
	}
	assert_int_equal(count(reported(p), "<AuditMessage>"), 1); /* after ten minutes */
	/* A clock that was set back holds up nothing. */
	step(p, t, 500);
	assert_int_equal(count(reported(p), "<AuditMessage>"), 1);
	/* The node ends: what is open is told. */
	add_instance(p, "x", "7", 3000);
	audit_trail_step(t, p->journal, &p->jobs, p->config, 3000, true);
	assert_int_equal(count(reported(p), "<AuditMessage>"), 1);
	audit_trail_close(t);
}

static void append_event(struct place *p, int64_t job, enum job_event event, const char *detail, double now)
{
	struct err err = {0};

	assert_done(journal_append(p->journal, job, event, detail, now, &err), &err);
}

TEST(deliveries, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	struct audit_trail *t = NULL;
	struct instance_row row = {.received = 1000, .file = "instances/d.dcm", .sop_instance = "1.99"};
	const char *text;
	int64_t job = 0;

	audit_start(&p->config->node, AUDIT_QUEUED, "serve");
	assert_int_equal(journal_open_job(p->journal, "{\"key\":\"k\",\"kind\":\"dbt\",\"calling\":\"M\"}", 1000, &job, NULL), 0);
	assert_int_equal(journal_add_instance(p->journal, &row, NULL), 0);
	assert_int_equal(journal_classify(p->journal, row.id, CLASSIFIED_MEMBER, job,
					  "{\"received\":1000,\"study\":\"7.7\",\"patient\":\"P<7>\"}", 1000, NULL),
			 0);
	assert_int_equal(audit_trail_open(p->dir, p->journal, &t, NULL), 0);
	append_event(p, job, EVENT_COMPLETE, "{\"protocol\":\"p\",\"destinations\":[\"pacs\"]}", 1000);
	append_event(p, job, EVENT_STARTED, "{}", 1000);
	append_event(p, job, EVENT_RECONSTRUCTED, "{\"file\":\"outbox/1/x.dcm\",\"sop_instance\":\"1.5\",\"sop_class\":\"1.2\"}",
		     1000);
	append_event(p, job, EVENT_SEND_FAILED, "{\"destination\":\"pacs\",\"reason\":\"down\",\"next\":1}", 1000);
	append_event(p, job, EVENT_SEND_FAILED, "{\"destination\":\"pacs\",\"reason\":\"down\",\"next\":1}", 1000);
	append_event(p, job, EVENT_SENT, "{\"destination\":\"pacs\",\"status\":\"0000\",\"sop_instance\":\"1.5\"}", 1000);
	step(p, t, 1001);
	text = reported(p);
	assert_int_equal(count(text, "EventOutcomeIndicator=\"4\""), 2); /* each attempt that failed, at once */
	assert_int_equal(count(text, "<EventOutcomeDescription>down<"), 2);
	step(p, t, 1004);
	text = reported(p);
	assert_int_equal(count(text, "EventOutcomeIndicator=\"0\""), 1);
	assert_non_null(strstr(text, "AETITLES=ORTHANC"));
	assert_non_null(strstr(text, "ParticipantObjectID=\"7.7\""));
	assert_non_null(strstr(text, "ParticipantObjectID=\"P&lt;7&gt;\""));
	assert_non_null(strstr(text, "UID=\"1.2\" NumberOfInstances=\"1\""));
	audit_trail_close(t);
}

/* Patients A, B, A of one study and association: a message for each, with the number of its instances. A person then states that
 * they are one patient: one message with both. */
TEST(patients_in_turns, .setup = setup, .teardown = teardown)
{
	static const char *const patients[] = {"A1", "B2", "A1"};
	struct place *p = *state;
	struct audit_trail *t = NULL;
	const char *text;
	int64_t job = 0;

	audit_start(&p->config->node, AUDIT_QUEUED, "serve");
	assert_int_equal(audit_trail_open(p->dir, p->journal, &t, NULL), 0);
	assert_int_equal(journal_open_job(p->journal, "{\"key\":\"k\",\"kind\":\"dbt\",\"calling\":\"M\"}", 1000, &job, NULL), 0);
	for (int i = 0; i < 3; i++)
		add_patient(p, job, "a", "7", patients[i], 1000 + i);
	step(p, t, 1010);
	text = reported(p);
	assert_int_equal(count(text, "<AuditMessage>"), 2);
	assert_int_equal(count(text, "ParticipantObjectID=\"A1\""), 1);
	assert_int_equal(count(text, "ParticipantObjectID=\"B2\""), 1);
	assert_int_equal(count(text, "NumberOfInstances=\"2\""), 1);
	assert_int_equal(count(text, "NumberOfInstances=\"1\""), 1);
	assert_int_equal(strstr(text, "NumberOfInstances=\"2\"") < strstr(text, "NumberOfInstances=\"1\""),
			 strstr(text, "ParticipantObjectID=\"A1\"") < strstr(text, "ParticipantObjectID=\"B2\""));
	append_event(p, job, EVENT_HELD, "{\"reason\":\"patients\",\"patients\":true}", 1010);
	append_event(p, job, EVENT_RETRY, "{\"same_patient\":true,\"by\":\"doctor\"}", 1011);
	step(p, t, 1012);
	text = reported(p);
	assert_int_equal(count(text, "<AuditMessage>"), 1);
	assert_int_equal(count(text, "ParticipantObjectID=\"A1\""), 1);
	assert_int_equal(count(text, "ParticipantObjectID=\"B2\""), 1);
	assert_int_equal(count(text, "NumberOfInstances=\"2\""), 1);
	assert_int_equal(count(text, "NumberOfInstances=\"1\""), 1);
	audit_trail_close(t);
}

/* A case goes to a pilot, which fails; then to a worker of this node, which fails, too; then to another pilot. */
TEST(pilots, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	struct audit_trail *t = NULL;
	const char *text;
	int64_t job = 0;

	audit_start(&p->config->node, AUDIT_QUEUED, "serve");
	assert_int_equal(journal_open_job(p->journal, "{\"key\":\"k\",\"kind\":\"dbt\",\"calling\":\"M\"}", 1000, &job, NULL), 0);
	for (int i = 0; i < 3; i++)
		add_patient(p, job, "a", "7", i < 2 ? "A1" : "B2", 1000);
	assert_int_equal(audit_trail_open(p->dir, p->journal, &t, NULL), 0);
	step(p, t, 2000);
	reported(p);
	append_event(p, job, EVENT_COMPLETE, "{\"protocol\":\"p\",\"destinations\":[\"pacs\"]}", 2000);
	append_event(p, job, EVENT_STARTED, "{\"device\":\"cuda:0\",\"pilot\":\"gpu<1>\"}", 2000);
	append_event(p, job, EVENT_CRASHED, "{\"reason\":\"died\",\"next\":1}", 2001);
	append_event(p, job, EVENT_STARTED, "{\"device\":\"cpu\"}", 2002);
	append_event(p, job, EVENT_CRASHED, "{\"reason\":\"died\",\"next\":1}", 2003);
	step(p, t, 2004);
	text = reported(p);
	assert_int_equal(count(text, "<AuditMessage>"), 1);
	assert_int_equal(count(text, "Begin Transferring DICOM Instances"), 1);
	assert_int_equal(count(text, "UserID=\"gpu&lt;1&gt;\""), 1);
	assert_int_equal(count(text, "ParticipantObjectID=\"A1\""), 1);
	assert_int_equal(count(text, "ParticipantObjectID=\"B2\""), 1);
	assert_int_equal(count(text, "NumberOfInstances=\"2\""), 1);
	append_event(p, job, EVENT_STARTED, "{\"device\":\"cuda:0\",\"pilot\":\"gpu2\"}", 2005);
	append_event(p, job, EVENT_RECONSTRUCTED, "{\"file\":\"outbox/1/x.dcm\",\"sop_instance\":\"1.5\",\"sop_class\":\"1.2\"}",
		     2006);
	step(p, t, 2007);
	text = reported(p);
	assert_int_equal(count(text, "<AuditMessage>"), 2);
	assert_int_equal(count(text, "originalText=\"DICOM Instances Transferred\""), 1);
	assert_int_equal(count(text, "UserID=\"gpu2\""), 2);
	text = strstr(text, "originalText=\"DICOM Instances Transferred\"");
	assert_non_null(strstr(text, "UID=\"1.2\" NumberOfInstances=\"1\""));
	assert_true(strstr(text, "Source Role ID") > strstr(text, "UserID=\"gpu2\""));
	assert_true(strstr(text, "AETITLES=") > strstr(text, "Source Role ID")); /* this node is the destination */
	audit_trail_close(t);
}

/* Retention has taken the newest objects with their case: what was sent since then is told all the same. */
TEST(position_beyond_the_last_object, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	struct audit_trail *t = NULL;
	char position[128];
	int64_t job = 0;
	FILE *f;

	audit_start(&p->config->node, AUDIT_QUEUED, "serve");
	assert_int_equal(journal_open_job(p->journal, "{\"key\":\"k\",\"kind\":\"dbt\",\"calling\":\"M\"}", 1000, &job, NULL), 0);
	append_event(p, job, EVENT_COMPLETE, "{\"protocol\":\"p\",\"destinations\":[\"pacs\"]}", 1000);
	append_event(p, job, EVENT_STARTED, "{}", 1000);
	append_event(p, job, EVENT_RECONSTRUCTED, "{\"file\":\"outbox/1/x.dcm\",\"sop_instance\":\"1.5\",\"sop_class\":\"1.2\"}",
		     1000);
	append_event(p, job, EVENT_SENT, "{\"destination\":\"pacs\",\"status\":\"0000\",\"sop_instance\":\"1.5\"}", 1000);
	snprintf(position, sizeof(position), "%s/audit/position", p->dir);
	f = fopen(position, "we");
	assert_non_null(f);
	fprintf(f, "instance 500 event 1\n");
	assert_int_equal(fclose(f), 0);
	assert_int_equal(audit_trail_open(p->dir, p->journal, &t, NULL), 0);
	step(p, t, 1010);
	assert_int_equal(count(reported(p), "<AuditMessage>"), 1);
	audit_trail_close(t);
}

/* A pipe that nobody reads stands where the file should: the lines wait, and we do not. */
TEST(a_pipe_for_a_file, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;

	audit_start(&p->config->node, AUDIT_QUEUED, "serve");
	assert_int_equal(mkfifo(p->file, 0600), 0);
	audit_application_activity(true);
	assert_true(audit_flush(1000) > 1000);
	assert_true(audit_queue_has_lines(p->dir));
	assert_int_equal(unlink(p->file), 0);
	assert_true(audit_flush(2000) == 0);
	assert_int_equal(count(reported(p), "<AuditMessage>"), 1);
}

TEST(switched_off, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	struct audit_trail *t = NULL;
	struct node_conf off = p->config->node;
	char position[128];

	audit_start(&p->config->node, AUDIT_QUEUED, "serve");
	assert_int_equal(audit_trail_open(p->dir, p->journal, &t, NULL), 0);
	t = audit_trail_close(t);
	snprintf(position, sizeof(position), "%s/audit/position", p->dir);
	assert_int_equal(access(position, F_OK), 0);
	off.audit = AUDIT_NONE;
	audit_start(&off, AUDIT_QUEUED, "serve");
	audit_application_activity(true);
	assert_int_equal(audit_trail_open(p->dir, p->journal, &t, NULL), 0);
	add_instance(p, "a", "7", 1000);
	assert_true(step(p, t, 2000) == 0);
	assert_int_equal(access(position, F_OK), -1);
	t = audit_trail_close(t);
	/* On again: from now on. */
	audit_start(&p->config->node, AUDIT_QUEUED, "serve");
	assert_int_equal(audit_trail_open(p->dir, p->journal, &t, NULL), 0);
	step(p, t, 2000);
	assert_string_equal(reported(p), "");
	audit_trail_close(t);
}
