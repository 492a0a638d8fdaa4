/* SPDX-License-Identifier: Apache-2.0 */
/* Files over a link: as sent, continued where they ended, and refused where they do not fit. */
#include <signal.h>
#include <sys/socket.h>

#include "node/cluster/transfer.h"
#include "tests/test.h"

#define FILES 3

static const int64_t sizes[FILES] = {2500000, 0, 17};

struct place {
	char folder[64], to[80];
	struct link *node, *pilot;
};

static int from_path(void *ctx, size_t i, char *ret_path, size_t size, int64_t *ret_bytes, struct err *err)
{
	const struct place *p = ctx;

	(void)err;
	snprintf(ret_path, size, "%s/%zu", p->folder, i);
	*ret_bytes = sizes[i];
	return 0;
}

static int to_path(void *ctx, size_t i, char *ret_path, size_t size, int64_t *ret_bytes, struct err *err)
{
	const struct place *p = ctx;

	(void)err;
	snprintf(ret_path, size, "%s/%zu", p->to, i);
	*ret_bytes = sizes[i];
	return 0;
}

static void write_file(const char *path, int64_t n)
{
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	for (int64_t i = 0; i < n; i++)
		putc((int)(i * 7 >> 3 & 255), f);
	fclose(f);
}

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));
	char secret[PILOT_SECRET_SIZE], path[100];
	struct err err = {0};
	int fd[2], node = 0, pilot = 0;

	signal(SIGPIPE, SIG_IGN);
	test_folder(p->folder, sizeof(p->folder));
	snprintf(p->to, sizeof(p->to), "%s/to", p->folder);
	assert_int_equal(mkdir(p->to, 0700), 0);
	assert_int_equal(pilot_secret_create(p->folder, "d1", secret, &err), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	assert_int_equal(link_open_node(fd[0], p->folder, NULL, &p->node, &err), 0);
	assert_int_equal(link_open_pilot(fd[1], &(struct link_pilot){"d1", secret, NULL}, 1, NULL, &p->pilot, &err), 0);
	for (int i = 0; i < 20 && (node != 1 || pilot != 1); i++) {
		pilot = link_handshake(p->pilot, &err);
		node = link_handshake(p->node, &err);
	}
	assert_true(node == 1 && pilot == 1);
	for (size_t i = 0; i < FILES; i++) {
		snprintf(path, sizeof(path), "%s/%zu", p->folder, i);
		write_file(path, sizes[i]);
	}
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct place *p = *state;

	link_close(p->node);
	link_close(p->pilot);
	free(p);
	return 0;
}

/* Move everything; return the bytes of data that went over the link. */
static int64_t transfer(struct place *p, const int64_t *offsets)
{
	struct transfer_out out = {.n = FILES, .offsets = offsets, .file = from_path, .ctx = p, .fd = -1};
	struct transfer_in in = {.fd = -1};
	struct wire_message m;
	const void *bytes;
	struct err err = {0};
	int64_t moved = 0;
	int done = 0, got = 1;
	size_t n;

	while (done == 0 || got == 1 || link_queued(p->node) > 0) {
		if (done == 0)
			done = transfer_out_step(&out, p->node, &err);
		assert_true(done >= 0 && link_flush(p->node, &err) == 0);
		got = link_receive(p->pilot, &m, &bytes, &n, &err);
		assert_true(got >= 0);
		if (got == 1 && m.kind == WIRE_FILE) {
			char path[200];
			int64_t size;

			to_path(p, (size_t)m.index, path, sizeof(path), &size, &err);
			assert_true(transfer_in_begin(&in, path, m.offset, size, &err) >= 0);
		} else if (got == 1) {
			assert_true(transfer_in_data(&in, bytes, n, true, &err) >= 0);
			moved += (int64_t)n;
		}
	}
	transfer_out_end(&out);
	transfer_in_end(&in);
	return moved;
}

static void check_files(const struct place *p)
{
	for (size_t i = 0; i < FILES; i++) {
		char command[300];

		snprintf(command, sizeof(command), "cmp -s %s/%zu %s/%zu", p->folder, i, p->to, i);
		if (sizes[i] > 0)
			assert_int_equal(system(command), 0);
	}
}

TEST(test_resume, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	int64_t *offsets;
	struct err err = {0};
	size_t missing;
	char path[100];

	assert_int_equal(transfer_have(to_path, p, FILES, "", &offsets, &missing, &err), 0);
	assert_true(missing == 2 && offsets[0] == 0);
	assert_int_equal(transfer(p, offsets), sizes[0] + sizes[2]);
	check_files(p);
	free(offsets);
	assert_int_equal(transfer_have(to_path, p, FILES, "", &offsets, &missing, &err), 0);
	assert_true(missing == 0 && offsets[0] == sizes[0]);
	assert_int_equal(transfer(p, offsets), 0);
	free(offsets);
	/* Cut: only the rest is sent. Longer than it may be: all of it. */
	snprintf(path, sizeof(path), "%s/0", p->to);
	assert_int_equal(truncate(path, 1234567), 0);
	snprintf(path, sizeof(path), "%s/2", p->to);
	write_file(path, 99);
	assert_int_equal(transfer_have(to_path, p, FILES, "", &offsets, &missing, &err), 0);
	assert_true(missing == 2 && offsets[0] == 1234567 && offsets[2] == 0);
	assert_int_equal(transfer(p, offsets), sizes[0] - 1234567 + sizes[2]);
	check_files(p);
	free(offsets);
}

TEST(test_refused, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	const int64_t none[FILES] = {0};
	struct transfer_out out = {.n = FILES, .offsets = none, .file = from_path, .ctx = p, .fd = -1};
	struct transfer_in in = {.fd = -1};
	struct err err = {0};
	char path[100];
	int ret = 0;

	assert_int_equal(transfer_in_data(&in, "a", 1, false, &err), -EBADMSG);
	snprintf(path, sizeof(path), "%s/0", p->to);
	assert_int_equal(transfer_in_begin(&in, path, 5, 10, &err), -EBADMSG);
	assert_int_equal(transfer_in_begin(&in, path, 0, 10, &err), 0);
	assert_int_equal(transfer_in_data(&in, "abcd", 4, false, &err), 0);
	assert_int_equal(transfer_in_data(&in, "efghijk", 7, false, &err), -EBADMSG);
	assert_int_equal(transfer_in_data(&in, "efghij", 6, false, &err), 1);
	assert_int_equal(transfer_in_data(&in, "k", 1, false, &err), -EBADMSG);
	/* One that has all its bytes is complete at once, also one without any. */
	assert_int_equal(transfer_in_begin(&in, path, 10, 10, &err), 1);
	assert_int_equal(transfer_in_data(&in, "k", 1, false, &err), -EBADMSG);
	snprintf(path, sizeof(path), "%s/1", p->to);
	assert_int_equal(transfer_in_begin(&in, path, 0, 0, &err), 1);
	assert_int_equal(in.fd, -1);
	/* A file that is shorter than recorded. */
	snprintf(path, sizeof(path), "%s/0", p->folder);
	assert_int_equal(truncate(path, 1000), 0);
	while (ret == 0)
		ret = transfer_out_step(&out, p->node, &err);
	assert_int_equal(ret, -EBADMSG);
	assert_non_null(strstr(err.msg, "too short"));
	transfer_out_end(&out);
}
