/* The audit trail's parts: texts of strangers in XML, the queue (order, cuts, damage, several writers), transfers out of the
 * journal. What the messages look like as a whole is tests/system/test_audit.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "node/audit.h"
#include "node/audit_queue.h"
#include "node/audit_trail.h"
#include "node/log.h"
#include "node/spool.h"

#define HEAD 20

struct place {
	char dir[64], file[96], queue[96], journal_path[96];
	struct config *config;
	struct journal *journal;
	struct jobs jobs;
};

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));
	struct err err = {0};
	char text[400];

	log_start(LOG_TO_NOWHERE, 0, LOG_ERR, "test");
	strcpy(p->dir, "/tmp/test_audit.XXXXXX");
	if (!mkdtemp(p->dir))
		return -1;
	snprintf(p->file, sizeof(p->file), "%s/audit.log", p->dir);
	snprintf(p->queue, sizeof(p->queue), "%s/audit/queue", p->dir);
	snprintf(p->journal_path, sizeof(p->journal_path), "%s/journal.db", p->dir);
	snprintf(text, sizeof(text), "node = { spool = \"%s\"; audit = \"file\"; audit_file = \"%s\"; };\n", p->dir, p->file);
	if (config_parse(text, "test", NULL, NULL, &p->config, &err) < 0 || spool_prepare(p->dir, &err) < 0 ||
	    journal_open(p->journal_path, &p->journal, &err) < 0)
		return -1;
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct place *p = *state;
	struct node_conf none = {.audit = AUDIT_NONE};
	char command[128];

	audit_start(&none, AUDIT_QUEUED, "test");
	journal_close(p->journal);
	jobs_clear(&p->jobs);
	config_free(p->config);
	snprintf(command, sizeof(command), "rm -rf '%s'", p->dir);
	free(p);
	return system(command);
}

/* ---- messages ---- */

static char *message_with(const char *text)
{
	struct audit_party party = {.user = text, .aet = text, .name = text, .host = text, .role = &audit_role_source};
	struct audit_study study = {.study = text, .patient = text, .n_classes = 1};
	struct audit_message m = {.event = &audit_code_alert,
				  .action = 'E',
				  .outcome = AUDIT_MINOR,
				  .reason = text,
				  .time = 86400.25,
				  .site = text,
				  .source = text,
				  .parties = &party,
				  .n_parties = 1,
				  .studies = &study,
				  .n_studies = 1,
				  .alert = text};
	struct err err = {0};
	char *xml = NULL;

	snprintf(study.classes[0].uid, sizeof(study.classes[0].uid), "%s", text);
	assert_int_equal(audit_message_write(&m, &xml, &err), 0);
	return xml;
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

static void texts_of_strangers(void **state)
{
	static const struct {
		const char *text, *written;
	} cases[] = {
		{"plain", "plain"},
		{"<A&\"'>", "&lt;A&amp;&quot;&apos;&gt;"},
		{"a\nb\tc\r\x1b\x7f", "a\\x0ab\\x09c\\x0d\\x1b\\x7f"},
		{"M\xc3\xbcller", "M\xc3\xbcller"},	      /* UTF-8 stays */
		{"M\xfcller", "M\\xfcller"},		      /* Latin-1 */
		{"\xc0\xbc", "\\xc0\\xbc"},		      /* an overlong '<' */
		{"\xed\xa0\x80", "\\xed\\xa0\\x80"},	      /* a surrogate */
		{"\xef\xbf\xbe", "\\xef\\xbf\\xbe"},	      /* U+FFFE */
		{"\xc2\x85", "\\xc2\\x85"},		      /* a control character of Latin-1 */
		{"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},     /* beyond 16 bits */
		{"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"}, /* beyond Unicode */
		{"\xe2\x82", "\\xe2\\x82"},		      /* cut short */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *xml = message_with(cases[i].text), want[100];

		snprintf(want, sizeof(want), "UserID=\"%s\"", cases[i].written);
		if (!strstr(xml, want))
			fail_msg("case %zu: no %s in %s", i, want, xml);
		assert_int_equal(count(xml, "<ParticipantObjectIdentification "), 3);
		for (const char *c = xml; *c; c++)
			assert_true((unsigned char)*c >= ' ' && *c != '\x7f');
		free(xml);
	}
}

static void every_byte_stays_in_its_place(void **state)
{
	char *plain = message_with("x");
	size_t elements = count(plain, "<"), quotes = count(plain, "\"");

	(void)state;
	free(plain);
	for (int a = 1; a < 256; a++) {
		char text[] = {(char)a, (char)(a * 7 % 255 + 1), (char)a, '\0'}, *xml = message_with(text);

		assert_int_equal(count(xml, "<"), elements);
		assert_int_equal(count(xml, "\""), quotes);
		assert_null(strchr(xml, '\n'));
		free(xml);
	}
}

static void a_message_has_an_end(void **state)
{
	static char text[100000];
	char *xml;

	(void)state;
	memset(text, '&', sizeof(text) - 1);
	xml = message_with(text);
	assert_in_range(strlen(xml), 1000, 64000);
	free(xml);
	xml = message_with("");
	assert_non_null(strstr(xml, "UserID=\"unknown\""));
	assert_non_null(strstr(xml, "ParticipantObjectID=\"unknown\""));
	assert_non_null(strstr(xml, "EventDateTime=\"1970-01-02T00:00:00.250Z\""));
	free(xml);
}

static void classes_are_counted(void **state)
{
	struct audit_study s = {0};
	char uid[16];

	(void)state;
	for (int i = 0; i < 20; i++) {
		snprintf(uid, sizeof(uid), "1.2.%d", i);
		audit_study_count(&s, uid, 2);
	}
	audit_study_count(&s, "1.2.0", 1);
	assert_int_equal(s.n_classes, AUDIT_CLASSES_MAX);
	assert_int_equal(s.classes[0].instances, 3);
	assert_int_equal(s.classes[AUDIT_CLASSES_MAX - 1].instances, 2 * (20 - AUDIT_CLASSES_MAX + 1)); /* none is lost */
}

static void frames(void **state)
{
	char *frame = log_audit_frame(LOG_LOCAL3, LOG_WARNING, 1e9 + 0.5, "serve", "<x/>"), want[200], host[64] = "";

	(void)state;
	gethostname(host, sizeof(host) - 1);
	snprintf(want, sizeof(want), "<156>1 2001-09-09T01:46:40.500Z %s tomonode-serve %ld DICOM+RFC3881 - \xef\xbb\xbf<x/>",
		 host, (long)getpid());
	assert_string_equal(frame, want);
	free(frame);
	assert_null(log_audit_frame(LOG_LOCAL3, LOG_WARNING, 1e300, "serve", "<x/>"));
	assert_int_equal(log_audit_send("/nonexistent/log", "x", 1), -ENOENT);
}

/* ---- the queue ---- */

struct taken {
	char text[4096];
	int refuse_at, code, calls;
};

static int take(void *ctx, const char *line, size_t n)
{
	struct taken *t = ctx;

	if (++t->calls == t->refuse_at)
		return t->code;
	strncat(t->text, line, n);
	strcat(t->text, "|");
	return 0;
}

static void append(struct place *p, const char *line)
{
	struct err err = {0};

	if (audit_queue_append(p->dir, line, strlen(line), AUDIT_QUEUE_MAX, &err) < 0)
		fail_msg("%s", err.msg);
}

static int drain(struct place *p, struct taken *t, size_t *ret_sent, size_t *ret_dropped)
{
	struct err err = {0};

	t->calls = 0;
	t->text[0] = '\0';
	return audit_queue_drain(p->dir, take, t, ret_sent, ret_dropped, &err);
}

static void order_is_kept(void **state)
{
	struct place *p = *state;
	struct taken t = {.refuse_at = 2, .code = -ECONNREFUSED};
	size_t sent, dropped;

	assert_false(audit_queue_waiting(p->dir));
	assert_int_equal(drain(p, &t, &sent, &dropped), 0);
	append(p, "<1>a");
	append(p, "<2>b");
	append(p, "<3>c");
	assert_true(audit_queue_waiting(p->dir));
	assert_int_equal(drain(p, &t, &sent, &dropped), -ECONNREFUSED);
	assert_string_equal(t.text, "<1>a|");
	assert_int_equal(sent, 1);
	append(p, "<4>d");
	t.refuse_at = 0;
	assert_int_equal(drain(p, &t, &sent, &dropped), 0);
	assert_string_equal(t.text, "<2>b|<3>c|<4>d|");
	assert_int_equal(sent, 3);
	assert_false(audit_queue_waiting(p->dir));
	/* One that syslog will never take does not hold up the others. */
	append(p, "<1>a");
	append(p, "<2>b");
	t = (struct taken){.refuse_at = 1, .code = -EMSGSIZE};
	assert_int_equal(drain(p, &t, &sent, &dropped), 0);
	assert_string_equal(t.text, "<2>b|");
	assert_true(sent == 1 && dropped == 1);
}

/* Write `text` at `at` of the queue's file, or at its end (-1). */
static void scribble(struct place *p, off_t at, const char *text)
{
	int fd = open(p->queue, O_WRONLY);

	assert_true(fd >= 0);
	assert_true(lseek(fd, at < 0 ? 0 : at, at < 0 ? SEEK_END : SEEK_SET) >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void damage_is_passed_over(void **state)
{
	struct place *p = *state;
	struct taken t = {0};
	size_t sent, dropped;

	/* A line that was cut short, then whole ones. */
	append(p, "<1>a");
	scribble(p, -1, "<2>cut sh");
	append(p, "<3>c");
	assert_int_equal(drain(p, &t, &sent, &dropped), 0);
	assert_non_null(strstr(t.text, "<1>a|"));
	assert_non_null(strstr(t.text, "<3>c|"));
	/* One at the end. */
	append(p, "<1>a");
	scribble(p, -1, "garbage");
	assert_int_equal(drain(p, &t, &sent, &dropped), 0);
	assert_string_equal(t.text, "<1>a|");
	assert_int_equal(dropped, 1);
	assert_false(audit_queue_waiting(p->dir));
	/* A head that is none: all again, never nothing. */
	append(p, "<1>a");
	append(p, "<2>b");
	scribble(p, 0, "9999999999999999999\n");
	assert_int_equal(drain(p, &t, &sent, &dropped), 0);
	assert_string_equal(t.text, "<1>a|<2>b|");
	append(p, "<1>a");
	scribble(p, 0, "zzz");
	assert_int_equal(drain(p, &t, &sent, &dropped), 0);
	assert_string_equal(t.text, "<1>a|");
	/* No line at all: it ends. */
	assert_int_equal(truncate(p->queue, 300000), 0);
	assert_int_equal(drain(p, &t, &sent, &dropped), 0);
	assert_int_equal(sent, 0);
	assert_false(audit_queue_waiting(p->dir));
}

static void the_queue_is_bounded(void **state)
{
	struct place *p = *state;
	struct taken t = {0};
	struct err err = {0};
	struct stat st;
	static char line[70000];
	size_t sent, dropped;

	append(p, "<1>a");
	memset(line, 'x', sizeof(line) - 1);
	assert_int_equal(audit_queue_append(p->dir, line, strlen(line), AUDIT_QUEUE_MAX, &err), -EFBIG);
	assert_int_equal(truncate(p->queue, (off_t)AUDIT_QUEUE_MAX), 0);
	assert_int_equal(audit_queue_append(p->dir, "<2>b", 4, AUDIT_QUEUE_MAX, &err), -EFBIG);
	/* Strangers fill half of it, the rest is for what peers do. */
	assert_int_equal(truncate(p->queue, (off_t)AUDIT_QUEUE_STRANGERS), 0);
	audit_start(&p->config->node, AUDIT_QUEUED, "test");
	audit_refused(&(struct audit_peer){"WHO", "10.0.0.1"}, false, "who is that?"); /* to the file instead */
	assert_int_equal(stat(p->queue, &st), 0);
	assert_int_equal(st.st_size, AUDIT_QUEUE_STRANGERS);
	audit_application(false);
	assert_int_equal(stat(p->queue, &st), 0);
	assert_true(st.st_size > (off_t)AUDIT_QUEUE_STRANGERS);
	assert_int_equal(truncate(p->queue, HEAD + 5), 0);
	assert_int_equal(drain(p, &t, &sent, &dropped), 0);
	assert_string_equal(t.text, "<1>a|");
}

static void many_writers(void **state)
{
	struct place *p = *state;
	struct taken t = {0};
	size_t sent, dropped, total = 0;
	int status;

	for (int w = 0; w < 4; w++)
		if (fork() == 0) {
			for (int i = 0; i < 100; i++)
				if (audit_queue_append(p->dir, "<1>line", 7, AUDIT_QUEUE_MAX, NULL) < 0)
					_exit(1);
			_exit(0);
		}
	for (int i = 0; i < 20; i++) { /* while they write */
		assert_int_equal(drain(p, &t, &sent, &dropped), 0);
		assert_int_equal(dropped, 0);
		total += sent;
	}
	for (int w = 0; w < 4; w++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	while (audit_queue_waiting(p->dir)) {
		assert_int_equal(drain(p, &t, &sent, &dropped), 0);
		total += sent;
	}
	assert_int_equal(total, 400);
}

/* ---- transfers ---- */

static void add_instance(struct place *p, const char *association, const char *study, double received)
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
	snprintf(detail, sizeof(detail), "{\"study\":\"%s\",\"patient\":\"P%s\"}", study, study);
	assert_int_equal(journal_add_finding(p->journal, row.id, FINDING_IGNORED, 0, detail, received, NULL), 0);
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

static void one_message_an_association(void **state)
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

static void long_and_last_ones(void **state)
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

	if (journal_append(p->journal, job, event, detail, now, &err) < 0)
		fail_msg("%s", err.msg);
}

static void deliveries(void **state)
{
	struct place *p = *state;
	struct audit_trail *t = NULL;
	struct instance_row row = {.received = 1000, .file = "instances/d.dcm", .sop_instance = "1.99"};
	const char *text;
	int64_t job = 0;

	audit_start(&p->config->node, AUDIT_QUEUED, "serve");
	assert_int_equal(journal_open_job(p->journal, "{\"key\":\"k\",\"kind\":\"dbt\",\"calling\":\"M\"}", 1000, &job, NULL), 0);
	assert_int_equal(journal_add_instance(p->journal, &row, NULL), 0);
	assert_int_equal(journal_add_finding(p->journal, row.id, FINDING_MEMBER, job,
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

/* Retention has taken the newest objects with their case: what was sent since then is told all the same. */
static void position_beyond_the_last_object(void **state)
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
static void a_pipe_for_a_file(void **state)
{
	struct place *p = *state;

	audit_start(&p->config->node, AUDIT_QUEUED, "serve");
	assert_int_equal(mkfifo(p->file, 0600), 0);
	audit_application(true);
	assert_true(audit_flush(1000) > 1000);
	assert_true(audit_queue_waiting(p->dir));
	assert_int_equal(unlink(p->file), 0);
	assert_true(audit_flush(2000) == 0);
	assert_int_equal(count(reported(p), "<AuditMessage>"), 1);
}

static void switched_off(void **state)
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
	audit_application(true);
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

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_of_strangers),
		cmocka_unit_test(every_byte_stays_in_its_place),
		cmocka_unit_test(a_message_has_an_end),
		cmocka_unit_test(classes_are_counted),
		cmocka_unit_test(frames),
		T(order_is_kept),
		T(damage_is_passed_over),
		T(the_queue_is_bounded),
		T(many_writers),
		T(one_message_an_association),
		T(long_and_last_ones),
		T(deliveries),
		T(position_beyond_the_last_object),
		T(a_pipe_for_a_file),
		T(switched_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
