/* SPDX-License-Identifier: Apache-2.0 */
/* The journal: append and replay, refusal of what does not fit, several writers at once, damage, a death in the middle of a
 * write. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "node/store/journal.h"

struct place {
	char dir[64], path[96];
};

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	strcpy(p->dir, "/tmp/test_journal.XXXXXX");
	if (!mkdtemp(p->dir))
		return -1;
	snprintf(p->path, sizeof(p->path), "%s/journal.db", p->dir);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct place *p = *state;
	static const char *const ends[] = {"", "-wal", "-shm"};
	char path[128];

	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s%s", p->path, ends[i]);
		unlink(path);
	}
	rmdir(p->dir);
	free(p);
	return 0;
}

static struct journal *open_journal(struct place *p)
{
	struct err err = {0};
	struct journal *j = NULL;

	if (journal_open(p->path, &j, &err) < 0)
		fail_msg("%s", err.msg);
	return j;
}

static struct instance_row instance(const char *uid, const char *digest)
{
	static int serial;
	struct instance_row row = {.received = 1000.25, .bytes = UINT64_C(5000000000)};

	strcpy(row.sop_class, "1.2.840.10008.5.1.4.1.1.1.2.1");
	snprintf(row.sop_instance, sizeof(row.sop_instance), "%s", uid);
	strcpy(row.transfer_syntax, "1.2.840.10008.1.2.1");
	strcpy(row.calling, "MODALITY");
	strcpy(row.host, "127.0.0.1");
	strcpy(row.association, "a-1");
	snprintf(row.file, sizeof(row.file), "instances/%d-%d.dcm", (int)getpid(), serial++);
	snprintf(row.digest, sizeof(row.digest), "%s", digest);
	return row;
}

static int64_t add(struct journal *j, const char *uid, const char *digest)
{
	struct instance_row row = instance(uid, digest);
	struct err err = {0};

	if (journal_add_instance(j, &row, &err) < 0)
		fail_msg("%s", err.msg);
	assert_true(row.id > 0);
	return row.id;
}

static int64_t open_job(struct journal *j)
{
	int64_t job = 0;

	assert_int_equal(journal_open_job(j, "{\"key\":\"k\"}", 1, &job, NULL), 0);
	assert_true(job > 0);
	return job;
}

struct trace {
	size_t n;
	struct event_row row[64];
	char detail[64][64];
};

static int collect(void *ctx, const struct event_row *row)
{
	struct trace *t = ctx;

	if (t->n < 64) {
		t->row[t->n] = *row;
		snprintf(t->detail[t->n], 64, "%s", row->detail);
	}
	t->n++;
	return 0;
}

static int collect_member(void *ctx, const struct instance_row *row, const char *detail)
{
	struct trace *t = ctx;

	t->row[t->n].instance = row->id;
	snprintf(t->detail[t->n++], 64, "%s", detail);
	return 0;
}

static void instances(void **state)
{
	struct journal *j = open_journal(*state);
	struct instance_row row, rows[3], sent;

	sent = instance("1.2.3", "aa");
	assert_int_equal(journal_add_instance(j, &sent, NULL), 0);
	assert_int_equal(journal_has_instance(j, "1.2.3", "aa", &row, NULL), 1);
	assert_memory_equal(&row, &sent, sizeof(row));
	assert_int_equal(journal_has_instance(j, "1.2.3", "bb", NULL, NULL), 0);
	assert_int_equal(journal_has_instance(j, "1.2.4", "aa", NULL, NULL), 0);
	assert_int_equal(journal_has_file(j, sent.file, NULL), 1);
	assert_int_equal(journal_has_file(j, "instances/other.dcm", NULL), 0);
	row = instance("1.2.5", "cc");
	strcpy(row.file, sent.file);
	assert_true(journal_add_instance(j, &row, NULL) < 0); /* one file, one instance */
	for (int i = 0; i < 4; i++)
		add(j, "1.2.9", "dd");
	assert_int_equal(journal_list_unindexed(j, 0, rows, 3, NULL), 3);
	assert_int_equal(rows[0].id, sent.id);
	assert_int_equal(journal_list_unindexed(j, rows[2].id, &row, 1, NULL), 1);
	assert_int_equal(row.id, rows[2].id + 1);
	assert_true(rows[1].id < rows[2].id);
	assert_int_equal(journal_remove_instance(j, sent.id, 5, NULL), 0);
	assert_int_equal(journal_remove_instance(j, sent.id, 6, NULL), 0); /* twice is once */
	assert_int_equal(journal_has_instance(j, "1.2.3", "aa", NULL, NULL), 0);
	assert_int_equal(journal_has_file(j, sent.file, NULL), 0);
	journal_close(j);
}

static int count_each(void *ctx, const struct instance_row *row, const char *detail)
{
	(void)row;
	(void)detail;
	++*(int *)ctx;
	return 0;
}

/* Senders take turns, so a later instance may be classified first: nothing waits twice or is passed over. */
static void classifications_in_any_order(void **state)
{
	struct journal *j = open_journal(*state);
	int64_t first = add(j, "1.1", "aa"), second = add(j, "1.2", "bb"), third = add(j, "1.1", "cc"), job = open_job(j);
	struct journal_totals totals = {0};
	struct instance_row rows[3];
	int64_t instance, event;
	uint64_t n_waiting;
	int n = 0;

	assert_int_equal(journal_classify(j, third, CLASSIFIED_MEMBER, job, "{}", 2, NULL), 0);
	assert_int_equal(journal_list_unindexed(j, 0, rows, 3, NULL), 2);
	assert_int_equal(rows[0].id, first);
	assert_int_equal(rows[1].id, second);
	assert_int_equal(journal_count_unindexed(j, &n_waiting, NULL), 0);
	assert_int_equal(n_waiting, 2);
	assert_int_equal(journal_each_indexed(j, 0, 10, count_each, &n, NULL), 0);
	assert_int_equal(n, 0); /* in order of arrival: only after those before it */
	assert_int_equal(journal_last_rows(j, &instance, &event, NULL), 0);
	assert_int_equal(instance, first - 1);
	assert_int_equal(journal_add_totals(j, &totals, NULL), 0);
	assert_int_equal(journal_find_member(j, "1.1", first, &rows[0], NULL), 1); /* the later one came first */
	assert_int_equal(rows[0].id, third);
	assert_int_equal(journal_classify(j, first, CLASSIFIED_CONFLICT, 0, "{}", 2, NULL), 0);
	assert_int_equal(journal_classify(j, second, CLASSIFIED_IGNORED, 0, "{}", 2, NULL), 0);
	assert_int_equal(journal_each_indexed(j, 0, 10, count_each, &n, NULL), 0);
	assert_int_equal(n, 3);
	assert_int_equal(journal_last_rows(j, &instance, &event, NULL), 0);
	assert_int_equal(instance, third);
	assert_int_equal(journal_add_totals(j, &totals, NULL), 0);
	assert_int_equal(totals.classified[CLASSIFIED_MEMBER], 1);
	assert_int_equal(totals.classified[CLASSIFIED_CONFLICT], 1);
	assert_int_equal(totals.classified[CLASSIFIED_IGNORED], 1);
	journal_close(j);
}

static void classifications(void **state)
{
	struct journal *j = open_journal(*state);
	int64_t first = add(j, "1.1", "aa"), second = add(j, "1.1", "bb"), job = open_job(j);
	struct instance_row row;
	struct trace t = {0};

	assert_int_equal(journal_classify(j, first, CLASSIFIED_MEMBER, job, "{\"n\":1}", 2, NULL), 0);
	assert_int_equal(journal_classify(j, first, CLASSIFIED_IGNORED, 0, "{}", 2, NULL), -EEXIST);
	assert_int_equal(journal_find_member(j, "1.1", second, &row, NULL), 1);
	assert_int_equal(row.id, first);
	assert_int_equal(journal_find_member(j, "1.1", first, &row, NULL), 0);
	assert_int_equal(journal_classify(j, second, CLASSIFIED_CONFLICT, 0, "{\"of\":1}", 2, NULL), 0);
	assert_int_equal(journal_list_unindexed(j, 0, &row, 1, NULL), 0);
	assert_int_equal(journal_each_member(j, job, collect_member, &t, NULL), 0);
	assert_int_equal(t.n, 1);
	assert_int_equal(t.row[0].instance, first);
	assert_string_equal(t.detail[0], "{\"n\":1}");
	t.n = 0;
	assert_int_equal(journal_each_classified(j, CLASSIFIED_CONFLICT, 10, collect_member, &t, NULL), 0);
	assert_int_equal(t.n, 1);
	assert_int_equal(t.row[0].instance, second);
	journal_close(j);
}

static void replay_after_reopen(void **state)
{
	struct journal *j = open_journal(*state);
	int64_t a = open_job(j), b = open_job(j);
	enum job_state s;
	struct trace t = {0};

	assert_int_equal(journal_append(j, a, EVENT_COMPLETE, "{\"protocol\":\"p\"}", 3.5, NULL), 0);
	assert_int_equal(journal_append(j, b, EVENT_HELD, "{\"reason\":\"r\"}", 4, NULL), 0);
	journal_close(j);
	j = open_journal(*state);
	assert_int_equal(journal_replay(j, 0, 0, collect, &t, NULL), 0);
	assert_int_equal(t.n, 4);
	assert_int_equal(t.row[2].event, EVENT_COMPLETE);
	assert_int_equal(t.row[2].job, a);
	assert_true(t.row[2].known && t.row[2].time == 3.5);
	assert_string_equal(t.detail[2], "{\"protocol\":\"p\"}");
	t.n = 0;
	assert_int_equal(journal_replay(j, b, 0, collect, &t, NULL), 0);
	assert_int_equal(t.n, 2);
	t.n = 0;
	assert_int_equal(journal_replay(j, 0, t.row[0].seq, collect, &t, NULL), 0);
	assert_int_equal(t.n, 2);
	assert_int_equal(journal_job_state(j, a, &s, NULL), 0);
	assert_int_equal(s, JOB_READY);
	assert_int_equal(journal_job_state(j, 99, &s, NULL), 0);
	assert_int_equal(s, JOB_NONE);
	journal_close(j);
}

static void what_does_not_fit_is_refused(void **state)
{
	struct journal *j = open_journal(*state);
	int64_t job = open_job(j), late = add(j, "1.7", "aa");
	struct err err = {0};
	struct instance_row row;
	struct trace t = {0};

	assert_int_equal(journal_append(j, job, EVENT_SENT, "{}", 2, &err), -ESTALE);
	assert_non_null(strstr(err.msg, "collecting"));
	assert_non_null(strstr(err.msg, "sent"));
	assert_int_equal(journal_append(j, 999, EVENT_CANCEL, "{}", 2, &err), -ENOENT);
	assert_int_equal(journal_append(j, job, EVENT_COMPLETE, "{}", 2, NULL), 0);
	assert_int_equal(journal_append(j, job, EVENT_STARTED, "{}", 2, NULL), 0);
	/* A member of a running job: neither the event nor the classification may remain. */
	assert_int_equal(journal_classify(j, late, CLASSIFIED_MEMBER, job, "{}", 2, &err), -ESTALE);
	assert_int_equal(journal_list_unindexed(j, 0, &row, 1, NULL), 1);
	assert_int_equal(journal_replay(j, 0, 0, collect, &t, NULL), 0);
	assert_int_equal(t.n, 3);
	journal_close(j);
}

/* An event that follows from a job is refused if another process has changed the job since it was read; not if it has changed
 * another job. */
static void decided_on_what_was_read(void **state)
{
	struct journal *j = open_journal(*state), *other = open_journal(*state);
	int64_t job = 0, second = 0, instance = 0, seen = 0;
	struct err err = {0};

	assert_int_equal(journal_open_job(j, "{}", 1, &job, NULL), 0);
	assert_int_equal(journal_last_rows(j, &instance, &seen, NULL), 0);
	assert_int_equal(journal_open_job(other, "{}", 2, &second, NULL), 0);
	assert_int_equal(journal_append_if_unchanged(j, job, seen, EVENT_PRIORITY, "{}", 3, NULL), 0);
	assert_int_equal(journal_append_if_unchanged(j, job, seen, EVENT_HELD, "{}", 4, &err), -ESTALE);
	assert_non_null(strstr(err.msg, "changed"));
	assert_int_equal(journal_last_rows(j, &instance, &seen, NULL), 0);
	assert_int_equal(journal_append(other, job, EVENT_PRIORITY, "{}", 5, NULL), 0);
	assert_int_equal(journal_append_if_unchanged(j, job, seen, EVENT_HELD, "{}", 6, NULL), -ESTALE);
	assert_int_equal(journal_last_rows(j, &instance, &seen, NULL), 0);
	assert_int_equal(journal_append_if_unchanged(j, job, seen, EVENT_HELD, "{}", 7, NULL), 0);
	journal_close(other);
	journal_close(j);
}

static void revision_takes_all(void **state)
{
	struct journal *j = open_journal(*state);
	int64_t a = add(j, "1.1", "aa"), b = add(j, "1.2", "bb"), late = add(j, "1.3", "cc"), job = open_job(j), revision = 0;
	struct trace t = {0};
	enum job_state s;

	assert_int_equal(journal_classify(j, a, CLASSIFIED_MEMBER, job, "{\"i\":1}", 2, NULL), 0);
	assert_int_equal(journal_classify(j, b, CLASSIFIED_MEMBER, job, "{\"i\":2}", 2, NULL), 0);
	assert_int_equal(journal_append(j, job, EVENT_COMPLETE, "{}", 2, NULL), 0);
	assert_int_equal(journal_append(j, job, EVENT_STARTED, "{}", 2, NULL), 0);
	assert_int_equal(journal_open_revision(j, job, late, "{\"i\":3}", "{\"key\":\"k\"}", 3, &revision, NULL), 0);
	assert_true(revision > job);
	assert_int_equal(journal_each_member(j, revision, collect_member, &t, NULL), 0);
	assert_int_equal(t.n, 3);
	assert_int_equal(t.row[0].instance, a);
	assert_int_equal(t.row[2].instance, late);
	assert_string_equal(t.detail[1], "{\"i\":2}");
	t.n = 0;
	assert_int_equal(journal_each_member(j, job, collect_member, &t, NULL), 0);
	assert_int_equal(t.n, 2);
	assert_int_equal(journal_job_state(j, revision, &s, NULL), 0);
	assert_int_equal(s, JOB_COLLECTING);
	/* The same instance a second time: nothing of the second revision remains. */
	assert_int_equal(journal_open_revision(j, job, late, "{}", "{}", 3, &revision, NULL), -EEXIST);
	t.n = 0;
	journal_replay(j, 0, 0, collect, &t, NULL);
	assert_int_equal(t.n, 9);
	/* A case whose images were removed cannot be revised: its revision would have members without files. */
	assert_int_equal(journal_append(j, job, EVENT_CANCEL, "{}", 4, NULL), 0);
	assert_int_equal(journal_append(j, job, EVENT_CLEANED, "{}", 5, NULL), 0);
	assert_int_equal(journal_open_revision(j, job, add(j, "1.9", "dd"), "{}", "{\"key\":\"k\"}", 6, &revision, NULL),
			 -ESTALE);
	journal_close(j);
}

/* Writers in processes of their own, opening a journal that is not there yet: each row must be there once. */
static void many_processes(void **state)
{
	struct place *p = *state;
	enum { WRITERS = 6, ROWS = 20 };
	pid_t pid[WRITERS];
	struct instance_row rows[WRITERS * ROWS + 1];
	struct journal *j;
	int status;

	for (int w = 0; w < WRITERS; w++) {
		pid[w] = fork();
		if (pid[w] == 0) {
			struct err err = {0};
			int64_t job;
			char uid[65];

			if (journal_open(p->path, &j, &err) < 0 || journal_open_job(j, "{}", 1, &job, &err) < 0)
				_exit(1);
			for (int i = 0; i < ROWS; i++) {
				struct instance_row row;

				snprintf(uid, sizeof(uid), "1.%d.%d", w, i);
				row = instance(uid, "dd");
				if (journal_add_instance(j, &row, &err) < 0 ||
				    journal_append(j, job, i % 2 ? EVENT_RETRY : EVENT_HELD, "{}", i, &err) < 0)
					_exit(2);
			}
			journal_close(j);
			_exit(0);
		}
	}
	for (int w = 0; w < WRITERS; w++) {
		assert_int_equal(waitpid(pid[w], &status, 0), pid[w]);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
	j = open_journal(p);
	assert_int_equal(journal_list_unindexed(j, 0, rows, WRITERS * ROWS + 1, NULL), WRITERS * ROWS);
	for (int w = 0; w < WRITERS; w++)
		for (int i = 0; i < ROWS; i++) {
			char uid[65];

			snprintf(uid, sizeof(uid), "1.%d.%d", w, i);
			assert_int_equal(journal_has_instance(j, uid, "dd", NULL, NULL), 1);
		}
	journal_close(j);
}

/* Two processes act on one job at the same moment: exactly one of cancel and started-from-ready wins,
 * the state always replays. */
static void racing_events(void **state)
{
	struct place *p = *state;
	struct journal *j = open_journal(p);
	enum { ROUNDS = 30 };
	int64_t job[ROUNDS];
	pid_t pid;
	int status;

	for (int i = 0; i < ROUNDS; i++) {
		job[i] = open_job(j);
		assert_int_equal(journal_append(j, job[i], EVENT_COMPLETE, "{}", 1, NULL), 0);
	}
	journal_close(j);
	pid = fork();
	j = open_journal(p);
	for (int i = 0; i < ROUNDS; i++) {
		int ret = journal_append(j, job[i], pid ? EVENT_FAILED : EVENT_INSTANCE, "{}", 2, NULL);

		if (pid == 0 && ret < 0 && ret != -ESTALE)
			_exit(1);
	}
	if (pid == 0) {
		journal_close(j);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	for (int i = 0; i < ROUNDS; i++) {
		enum job_state s;

		assert_int_equal(journal_job_state(j, job[i], &s, NULL), 0);
		assert_true(s == JOB_FAILED || s == JOB_COLLECTING);
	}
	journal_close(j);
}

/* What a process reports as appended is there, wherever kill -9 meets it. */
static void killed_while_writing(void **state)
{
	struct place *p = *state;

	for (int round = 0; round < 5; round++) {
		int pipes[2], n = 0, id;
		pid_t pid;
		struct journal *j;

		assert_int_equal(pipe(pipes), 0);
		pid = fork();
		if (pid == 0) {
			close(pipes[0]);
			if (journal_open(p->path, &j, NULL) < 0)
				_exit(1);
			for (int i = 0;; i++) {
				char uid[65];
				struct instance_row row;

				snprintf(uid, sizeof(uid), "9.%d.%d", round, i);
				row = instance(uid, "ee");
				if (journal_add_instance(j, &row, NULL) < 0)
					_exit(1);
				if (write(pipes[1], &i, sizeof(i)) != sizeof(i))
					_exit(1);
			}
		}
		close(pipes[1]);
		for (int i = 0; i < 20 + 7 * round; i++, n = id)
			assert_int_equal(read(pipes[0], &id, sizeof(id)), sizeof(id));
		kill(pid, SIGKILL);
		while (read(pipes[0], &id, sizeof(id)) == sizeof(id))
			n = id;
		close(pipes[0]);
		waitpid(pid, NULL, 0);
		j = open_journal(p);
		for (int i = 0; i <= n; i++) {
			char uid[65];

			snprintf(uid, sizeof(uid), "9.%d.%d", round, i);
			assert_int_equal(journal_has_instance(j, uid, "ee", NULL, NULL), 1);
		}
		assert_int_equal(journal_check(j, NULL, NULL, NULL), 0);
		journal_close(j);
	}
}

/* Change bytes in the closed file: the same length, so that SQLite's pages stay whole. */
static void damage(const char *path, const char *from, const char *to)
{
	FILE *f = fopen(path, "r+b");
	long size, done = 0;
	char *all;

	assert_non_null(f);
	assert_int_equal(strlen(from), strlen(to));
	fseek(f, 0, SEEK_END);
	size = ftell(f);
	all = malloc((size_t)size);
	rewind(f);
	assert_int_equal(fread(all, 1, (size_t)size, f), (size_t)size);
	for (long i = 0; i + (long)strlen(from) <= size; i++)
		if (!memcmp(all + i, from, strlen(from))) {
			memcpy(all + i, to, strlen(to));
			done++;
		}
	assert_true(done > 0);
	rewind(f);
	assert_int_equal(fwrite(all, 1, (size_t)size, f), (size_t)size);
	fclose(f);
	free(all);
}

static void damaged_row_is_marked(void **state)
{
	struct place *p = *state;
	struct journal *j = open_journal(p);
	int64_t bad = open_job(j), good;
	enum job_state s;
	struct trace t = {0};
	struct err err = {0};

	assert_int_equal(journal_append(j, bad, EVENT_CANCEL, "{}", 2, NULL), 0);
	good = open_job(j);
	assert_int_equal(journal_append(j, good, EVENT_COMPLETE, "{}", 2, NULL), 0);
	journal_close(j);
	damage(p->path, "cancel", "c\1ncel");
	j = open_journal(p);
	assert_int_equal(journal_replay(j, 0, 0, collect, &t, NULL), 0);
	assert_int_equal(t.n, 4);
	assert_false(t.row[1].known);
	assert_int_equal(t.row[1].job, bad);
	assert_true(t.row[3].known);
	assert_int_equal(journal_job_state(j, bad, &s, NULL), 0);
	assert_int_equal(s, JOB_IMPOSSIBLE);
	assert_int_equal(journal_append(j, bad, EVENT_RETRY, "{}", 3, &err), -ESTALE);
	assert_non_null(strstr(err.msg, "quarantined"));
	assert_int_equal(journal_append(j, good, EVENT_STARTED, "{}", 3, NULL), 0);
	journal_close(j);
}

static void newer_schema_is_named(void **state)
{
	struct place *p = *state;
	struct journal *j = open_journal(p);
	struct err err = {0};
	unsigned char version[4] = {0, 0, 0, 77};
	int fd;

	journal_close(j);
	fd = open(p->path, O_WRONLY);
	assert_int_equal(pwrite(fd, version, 4, 60), 4); /* the database header's user version, file format section 1.3 */
	close(fd);
	j = NULL;
	assert_int_equal(journal_open(p->path, &j, &err), -EPROTONOSUPPORT);
	assert_null(j);
	assert_non_null(strstr(err.msg, "77"));
}

static void not_a_journal(void **state)
{
	struct place *p = *state;
	struct journal *j = NULL;
	struct err err = {0};
	int fd = open(p->path, O_WRONLY | O_CREAT, 0600);

	for (int i = 0; i < 200; i++)
		assert_int_equal(write(fd, "this is not a database. ", 24), 24);
	close(fd);
	assert_int_equal(journal_open(p->path, &j, &err), -EBADMSG);
	assert_non_null(strstr(err.msg, p->path));
	assert_null(j);
	unlink(p->path);
	assert_true(journal_open("/nonexistent/journal.db", &j, &err) == -ENOENT);
}

static void private_and_versioned(void **state)
{
	struct place *p = *state;
	struct journal *a = open_journal(p), *b;
	struct stat st;
	int64_t before;

	assert_int_equal(stat(p->path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	b = open_journal(p);
	before = journal_data_version(a);
	assert_int_equal(journal_data_version(a), before);
	open_job(a);
	assert_int_equal(journal_data_version(a), before); /* its own writes do not count */
	open_job(b);
	assert_int_not_equal(journal_data_version(a), before);
	journal_close(a);
	journal_close(b);
	assert_null(journal_close(NULL));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(instances),
		T(classifications),
		T(classifications_in_any_order),
		T(replay_after_reopen),
		T(what_does_not_fit_is_refused),
		T(decided_on_what_was_read),
		T(revision_takes_all),
		T(many_processes),
		T(racing_events),
		T(killed_while_writing),
		T(damaged_row_is_marked),
		T(newer_schema_is_named),
		T(not_a_journal),
		T(private_and_versioned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
