/* SPDX-License-Identifier: Apache-2.0 */
/* The journal as a file: a death in the middle of a write, damage, another version, its mode. */
#include "tests/node/store/journal_fixture.h"
#include "tests/test.h"

#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>

/* What a process reports as appended is there, wherever kill -9 meets it. */
TEST(killed_while_writing, .setup = setup, .teardown = teardown)
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

TEST(damaged_row_is_marked, .setup = setup, .teardown = teardown)
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
	assert_error(journal_append(j, bad, EVENT_RETRY, "{}", 3, &err), &err, ESTALE, "quarantined");
	assert_int_equal(journal_append(j, good, EVENT_STARTED, "{}", 3, NULL), 0);
	journal_close(j);
}

TEST(newer_schema_is_named, .setup = setup, .teardown = teardown)
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

TEST(not_a_journal, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	struct journal *j = NULL;
	struct err err = {0};
	int fd = open(p->path, O_WRONLY | O_CREAT, 0600);

	for (int i = 0; i < 200; i++)
		assert_int_equal(write(fd, "this is not a database. ", 24), 24);
	close(fd);
	assert_error(journal_open(p->path, &j, &err), &err, EBADMSG, p->path);
	assert_null(j);
	unlink(p->path);
	assert_true(journal_open("/nonexistent/journal.db", &j, &err) == -ENOENT);
}

/* Its version may be that of a journal, be none, or one of a later time. */
TEST(database_of_another_program, .setup = setup, .teardown = teardown)
{
	static const char *const versions[] = {"", "PRAGMA user_version=1;", "PRAGMA user_version=54;"};
	struct place *p = *state;

	for (int i = 0; i < 3; i++) {
		struct journal *j = NULL;
		struct err err = {0};
		sqlite3 *db = NULL;
		char sql[100];

		snprintf(sql, sizeof(sql), "CREATE TABLE moz_places(id INTEGER); %s", versions[i]);
		assert_int_equal(sqlite3_open(p->path, &db), SQLITE_OK);
		assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
		assert_error(journal_open(p->path, &j, &err), &err, EBADMSG, "the database of another program");
		assert_error(journal_open_reader(p->path, &j, &err), &err, EBADMSG, "the database of another program");
		assert_null(j);
		assert_int_equal(sqlite3_exec(db, "CREATE TABLE event(a)", NULL, NULL, NULL), SQLITE_OK); /* none was made */
		snprintf(sql, sizeof(sql), "%s-wal", p->path);
		assert_int_equal(access(sql, F_OK), -1);
		sqlite3_close(db);
		unlink(p->path);
	}
}

TEST(private_and_versioned, .setup = setup, .teardown = teardown)
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

static int reads_to_fail;

static ssize_t read_or_fail(int fd, void *ret, size_t n, off_t at)
{
	if (reads_to_fail <= 0)
		return pread(fd, ret, n, at);
	reads_to_fail--;
	errno = EIO;
	return -1;
}

/* A disk that fails once has damaged nothing; one that goes on to fail is told apart from damage. */
TEST(a_read_error_is_no_damage, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	struct journal *j = open_journal(p);
	sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
	struct err err = {0};
	FILE *f;

	for (int i = 0; i < 100; i++) {
		char uid[65];

		snprintf(uid, sizeof(uid), "1.%d", i);
		add(j, uid, "aa");
	}
	journal_close(j);
	assert_int_equal(vfs->xSetSystemCall(vfs, "pread64", (sqlite3_syscall_ptr)read_or_fail), SQLITE_OK);
	for (int failing = 1; failing <= 3; failing++) {
		j = open_journal(p);
		reads_to_fail = failing;
		assert_int_equal(journal_check(j, NULL, NULL, &err), 0);
		assert_int_equal(reads_to_fail, 0);
		journal_close(j);
	}
	j = open_journal(p);
	reads_to_fail = 1 << 30;
	assert_error(journal_check(j, NULL, NULL, &err), &err, EIO, "journal.db");
	reads_to_fail = 0;
	journal_close(j);
	vfs->xSetSystemCall(vfs, "pread64", NULL);
	f = fopen(p->path, "r+b");
	assert_non_null(f);
	for (int page = 1; page < 6; page++) {
		fseek(f, page * 4096, SEEK_SET);
		fwrite("ZZZZZZZZ", 1, 8, f); /* the kind of the page and its cells */
	}
	fclose(f);
	j = open_journal(p);
	assert_error(journal_check(j, NULL, NULL, &err), &err, EBADMSG, "journal.db");
	journal_close(j);
}
