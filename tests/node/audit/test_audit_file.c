/* SPDX-License-Identifier: Apache-2.0 */
/* Where audit messages lie: whole lines in a file whatever happens to the disk, and a queue that the node's user can use. */
#include <signal.h>
#include <sys/resource.h>

#include "node/audit/audit_file.h"
#include "node/audit/audit_queue.h"
#include "node/store/spool.h"
#include "tests/test.h"

struct place {
	char dir[64], file[96], queue[96];
};

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));
	struct err err = {0};

	test_folder(p->dir, sizeof(p->dir));
	snprintf(p->file, sizeof(p->file), "%s/audit.log", p->dir);
	snprintf(p->queue, sizeof(p->queue), "%s/audit/queue", p->dir);
	*state = p;
	return spool_prepare(p->dir, &err);
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static char *text_of(const char *path)
{
	static char text[4096];
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	return text;
}

static int append_within(const char *path, const char *line, rlim_t most)
{
	struct rlimit old, limit;
	int rc;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = old;
	limit.rlim_cur = most;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	rc = audit_file_append(path, line, strlen(line));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	return rc;
}

/* A disk that fills within a line: it is cut back, and the next one stands by itself. */
TEST(a_line_is_whole_or_not_there, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(append_within(p->file, "<1>first", RLIM_INFINITY), 0);
	assert_true(append_within(p->file, "<2>does not fit", 14) < 0);
	assert_string_equal(text_of(p->file), "<1>first\n");
	assert_int_equal(append_within(p->file, "<3>third", RLIM_INFINITY), 0);
	assert_string_equal(text_of(p->file), "<1>first\n<3>third\n");
	/* A process that died within a line. */
	assert_int_equal(truncate(p->file, 13), 0);
	assert_int_equal(append_within(p->file, "<4>fourth", RLIM_INFINITY), 0);
	assert_string_equal(text_of(p->file), "<1>first\n<3>t\n<4>fourth\n");
}

TEST(what_is_no_file, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	char pipe[128], text[32] = "";
	int fd;

	snprintf(pipe, sizeof(pipe), "%s/pipe", p->dir);
	assert_int_equal(mkfifo(pipe, 0600), 0);
	assert_int_equal(audit_file_append(pipe, "<1>a", 4), -ENXIO); /* nobody reads it */
	fd = open(pipe, O_RDONLY | O_NONBLOCK);
	assert_true(fd >= 0);
	assert_int_equal(audit_file_append(pipe, "<1>a", 4), 0);
	assert_int_equal(read(fd, text, sizeof(text)), 5);
	assert_string_equal(text, "<1>a\n");
	close(fd);
	assert_int_equal(audit_file_append(p->dir, "<1>a", 4), -EISDIR);
	assert_int_equal(audit_file_append("/nonexistent/audit.log", "<1>a", 4), -ENOENT);
}

/* As another user: what audit_queue_ready() says. */
static void ready_as(uid_t uid, const char *dir, char *ret_text, size_t size)
{
	struct err err = {0};

	assert_int_equal(seteuid(uid), 0);
	ret_text[0] = '\0';
	if (audit_queue_ready(dir, &err) < 0)
		snprintf(ret_text, size, "%d: %s", err.code, err.msg);
	assert_int_equal(seteuid(0), 0);
}

TEST(the_queue_is_a_file, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	struct err err = {0};

	assert_int_equal(symlink("/dev/null", p->queue), 0);
	assert_int_equal(audit_queue_ready(p->dir, &err), -ELOOP);
	assert_int_equal(unlink(p->queue), 0);
	assert_int_equal(mkfifo(p->queue, 0600), 0);
	assert_error(audit_queue_ready(p->dir, &err), &err, ENOTSUP, "it is not a regular file");
	assert_int_equal(unlink(p->queue), 0);
}

/* A command that root ran leaves what the node's user can write; what somebody else left is named before anything is lost. */
TEST(the_queue_belongs_to_the_node, .setup = setup, .teardown = teardown)
{
	const uid_t other = 65534;
	struct place *p = *state;
	char folder[96], text[600], want[200];
	struct err err = {0};
	struct stat st;

	if (geteuid() != 0)
		skip_because("only root may give a file to another user");
	snprintf(folder, sizeof(folder), "%s/audit", p->dir);
	assert_int_equal(chmod(p->dir, 0755), 0);
	assert_int_equal(chown(folder, other, other), 0);
	assert_int_equal(audit_queue_append(p->dir, "<1>a", 4, AUDIT_QUEUE_MAX, &err), 0);
	assert_int_equal(stat(p->queue, &st), 0);
	assert_int_equal(st.st_uid, other);
	ready_as(other, p->dir, text, sizeof(text));
	assert_string_equal(text, "");
	assert_int_equal(chown(p->queue, 0, 0), 0);
	ready_as(other, p->dir, text, sizeof(text));
	snprintf(want, sizeof(want),
		 "%d: audit queue %s: it belongs to user 0, but this process is of user 65534: run chown 65534 ", EACCES,
		 p->queue);
	if (strncmp(text, want, strlen(want)) != 0)
		fail_msg("%s", text);
}
