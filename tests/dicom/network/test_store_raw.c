/* SPDX-License-Identifier: Apache-2.0 */
/* test_store_raw.c - the storage SCP against peers that disconnect, are silent, slow or hostile, or use another protocol: bytes
 * on a socket. */
#include "tests/dicom/network/raw_fixture.h"
#include "tests/dicom/network/store_fixture.h"
#include "tests/test.h"

static int raw_connect(struct server s)
{
	struct sockaddr_in a = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)s.port)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

/* An A-ASSOCIATE-RQ for two contexts, MG in Explicit (1) and in Implicit VR Little Endian (3) (PS3.8 9.3.2). */
static size_t association_request(uint8_t *p)
{
	static const uint8_t max_length[] = {0x51, 0, 0, 4, 0, 0, 0x40, 0};
	static const char *const syntaxes[] = {EXPLICIT, IMPLICIT};
	size_t n = 74;

	memset(p, 0, 74);
	p[0] = 1;
	p[7] = 1;
	memcpy(p + 10, "TEST            SENDER          ", 32);
	n += put_item(p + n, 0x10, "1.2.840.10008.3.1.1.1", 21);
	for (int i = 0; i < 2; i++) {
		uint8_t context[300] = {(uint8_t)(2 * i + 1), 0, 0, 0};
		size_t c = 4;

		c += put_item(context + c, 0x30, CLASS_MG, strlen(CLASS_MG));
		c += put_item(context + c, 0x40, syntaxes[i], strlen(syntaxes[i]));
		n += put_item(p + n, 0x20, context, c);
	}
	n += put_item(p + n, 0x50, max_length, sizeof(max_length));
	p[4] = (uint8_t)((n - 6) >> 8);
	p[5] = (uint8_t)(n - 6);
	return n;
}

static size_t store_command(uint8_t *p)
{
	static const uint8_t rest[] = {0, 0, 0, 1, 2, 0,    0, 0, 1, 0, 0,   0,	  0x10, 1,   2,	  0,   0,   0, 1,
				       0, 0, 0, 0, 7, 2,    0, 0, 0, 0, 0,   0,	  0,	0,   8,	  2,   0,   0, 0,
				       1, 0, 0, 0, 0, 0x10, 8, 0, 0, 0, '1', '.', '2',	'.', '3', '.', '4', 0};
	size_t uid = strlen(CLASS_MG) + 1, n = 12;

	memset(p, 0, 200);
	memcpy(p + n, "\0\0\2\0\0\0\0\0", 8);
	p[4 + 0] = 4;
	p[n + 4] = (uint8_t)uid;
	memcpy(p + n + 8, CLASS_MG, uid - 1);
	n += 8 + uid;
	memcpy(p + n, rest, sizeof(rest));
	n += sizeof(rest);
	p[8] = (uint8_t)(n - 12);
	return n;
}

/* Close the connection when the SCP has ended the association, for which it would wait. */
static void close_after_abort(int fd)
{
	int type;

	do
		type = read_pdu(fd, 20);
	while (type > 0 && type != 7);
	close(fd);
}

/* Open an association and begin to send an object: C-STORE-RQ and the first part of the data set. */
static int raw_begin(struct server s)
{
	uint8_t p[2000], c[300], piece[500];
	int fd = raw_connect(s);
	size_t n = association_request(p);

	memset(piece, 7, sizeof(piece));
	send_all(fd, p, n);
	assert_int_equal(read_pdu(fd, 5), 2); /* A-ASSOCIATE-AC */
	n = store_command(c);
	n = put_pdu(p, 3, c, n);
	send_all(fd, p, n);
	n = put_pdu(p, 0, piece, sizeof(piece));
	send_all(fd, p, n);
	return fd;
}

TEST(raw_object_is_stored)
{
	struct server server = start(5);
	uint8_t p[600], last[500];
	int fd = raw_begin(server);
	size_t n;

	memset(last, 7, sizeof(last));
	n = put_pdu(p, 2, last, sizeof(last));
	send_all(fd, p, n);
	assert_int_equal(read_pdu(fd, 5), 4); /* the response */
	assert_int_equal(seen->stored, 1);
	assert_int_equal(seen->data_bytes, 1000);
	close(fd);
	finish(server);
	assert_int_equal(seen->rc, -ECONNRESET);
	assert_int_equal(seen->released, 0);
}

TEST(empty_object_is_not_understood)
{
	struct server server = start(5);
	uint8_t p[600], c[300];
	int fd = raw_connect(server);
	size_t n = association_request(p);

	send_all(fd, p, n);
	assert_int_equal(read_pdu(fd, 5), 2);
	n = store_command(c);
	n = put_pdu(p, 3, c, n);
	send_all(fd, p, n);
	n = put_pdu(p, 2, "", 0);
	send_all(fd, p, n);
	assert_int_equal(read_pdu(fd, 5), 4);
	assert_int_equal(seen->write_error, EBADMSG);
	close(fd);
	finish(server);
}

/* An object of another class than that of its presentation context is refused, and its bytes are not stored. */
TEST(another_class_is_refused)
{
	struct server server = start(5);
	uint8_t p[600], c[300], last[500] = {7};
	int fd = raw_connect(server);
	size_t n = association_request(p);

	send_all(fd, p, n);
	assert_int_equal(read_pdu(fd, 5), 2);
	n = store_command(c);
	c[20 + strlen(CLASS_MG) - 1] = '3';
	n = put_pdu(p, 3, c, n);
	send_all(fd, p, n);
	n = put_pdu(p, 2, last, sizeof(last));
	send_all(fd, p, n);
	assert_int_equal(read_pdu(fd, 5), 4); /* the response */
	assert_int_equal(seen->begun, 0);
	close(fd);
	finish(server);
	assert_int_equal(seen->stored, 0);
}

/* A data set in another accepted context than that of its command: its transfer syntax would be taken for the other one. */
TEST(another_context_is_refused)
{
	struct server server = start(5);
	uint8_t p[600], c[300], last[500] = {7};
	int fd = raw_connect(server);
	size_t n = association_request(p);

	send_all(fd, p, n);
	assert_int_equal(read_pdu(fd, 5), 2);
	n = store_command(c);
	n = put_pdu(p, 3, c, n);
	send_all(fd, p, n);
	n = put_pdu(p, 2, last, sizeof(last));
	p[10] = 3;
	send_all(fd, p, n);
	close_after_abort(fd);
	finish(server);
	assert_true(seen->rc < 0);
	assert_int_equal(seen->stored, 0);
}

TEST(peer_is_cut_within_an_object)
{
	struct server server = start(5);
	int fd = raw_begin(server);

	close(fd);
	finish(server);
	assert_int_equal(seen->rc, -ECONNRESET); /* at once, not after the timeout */
	assert_int_equal(seen->ended, 1);
	assert_int_equal(seen->write_error, ECONNRESET);
	assert_int_equal(seen->stored, 0);
	assert_int_equal(access(seen->file, F_OK), -1);
}

TEST(silent_peer_is_dropped)
{
	struct server server = start(1);
	int fd = raw_begin(server);

	finish(server); /* the peer keeps its connection open and sends nothing more */
	assert_int_equal(seen->rc, -ETIMEDOUT);
	assert_int_equal(seen->write_error, ECONNRESET);
	close(fd);

	server = start(1); /* a peer that never sends anything is closed, too */
	fd = raw_connect(server);
	finish(server);
	assert_int_equal(seen->rc, -ETIMEDOUT);
	close(fd);
}

/* A peer that sends a PDU one byte at a time is closed after the timeout of a PDU, long before the PDU is complete. */
TEST(dribbling_peer_is_dropped)
{
	enum { BYTES = 200 };
	static const uint8_t head[12] = {4, 0, 0, 0, 0x10, 6, 0, 0, 0x10, 2, 1, 0};
	int status;

	for (int request = 0; request < 2; request++) {
		struct server server = start(1);
		uint8_t p[600];
		int fd = request ? raw_connect(server) : raw_begin(server);
		size_t i;

		if (request)
			association_request(p);
		for (i = 0; i < BYTES && waitpid(server.pid, &status, WNOHANG) == 0; i++) {
			if (send(fd, request ? p + i : head + (i < 12 ? i : 11), 1, MSG_NOSIGNAL) != 1)
				break;
			nanosleep(&(struct timespec){.tv_nsec = 100 * 1000 * 1000}, NULL);
		}
		waitpid(server.pid, &status, 0);
		assert_true(i < BYTES);
		assert_int_equal(seen->rc, -ETIMEDOUT);
		assert_int_equal(seen->stored, 0);
		close(fd);
	}
}

TEST(other_protocols_are_named)
{
	static const struct {
		const char *bytes;
		size_t n;
		int rc;
		const char *words;
	} cases[] = {{"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11, -EPROTONOSUPPORT, "TLS"},
		     {"GET / HTTP/1.0\r\n\r\n", 18, -EPROTO, "does not use DICOM"},
		     {"", 0, -ENODATA, "without sending anything"},
		     {"\x01\x00\xff\xff\xff\xff", 6, -EPROTO, "association request"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct server server = start(2);
		int fd = raw_connect(server);

		if (cases[i].n)
			send_all(fd, (const uint8_t *)cases[i].bytes, cases[i].n);
		else
			shutdown(fd, SHUT_WR);
		finish(server);
		close(fd);
		assert_int_equal(seen->rc, cases[i].rc);
		if (!strstr(seen->err, cases[i].words))
			fail_msg("'%s' does not say '%s'", seen->err, cases[i].words);
		assert_int_equal(seen->begun, 0);
	}
}

/* PDVs with wrong lengths, PDUs longer than negotiated, commands in the wrong place: the association ends with a reason and
 * without a crash. */
TEST(broken_messages)
{
	uint8_t p[2000], zero[600] = {0};
	size_t n;

	for (int kind = 0; kind < 7; kind++) {
		struct server server = start(2);
		int fd = raw_begin(server);

		n = put_pdu(p, 2, zero, 500);
		switch (kind) {
		case 0: /* longer than its PDU */
			p[6] = 0x7f;
			break;
		case 1: /* shorter than its head */
			p[9] = 1;
			p[8] = 0;
			break;
		case 2: /* the PDU is longer than the SCP has announced to accept */
			p[3] = 0x40;
			break;
		case 3: /* a context that was not accepted */
			p[10] = 99;
			break;
		case 4: /* a command where data are expected */
			p[11] = 3;
			break;
		case 5: /* one byte longer than its PDU, which the byte after the PDU completes */
			p[9]++;
			p[n++] = 0;
			break;
		case 6: /* another accepted context than that of the command */
			p[10] = 3;
			break;
		}
		send_all(fd, p, n);
		close_after_abort(fd);
		finish(server);
		assert_true(seen->rc < 0);
		assert_true(seen->err[0] != '\0');
		assert_int_equal(seen->stored, 0);
		assert_int_equal(seen->begun, seen->ended);
		if (kind == 5 && !strstr(seen->err, "longer than its PDU"))
			fail_msg("'%s' does not name the length", seen->err);
	}
}

/* A command without an end: the SCP ends the association instead of storing it in memory without a limit. */
TEST(endless_command)
{
	static const uint8_t element[] = {0, 0, 0, 2, 0, 0, 0, 0x40}; /* (0000,0200) of a gigabyte */
	uint8_t p[9000], piece[8000] = {0};
	struct server server = start(20);
	int fd = raw_connect(server);
	size_t n = association_request(p), sent = 0;

	send_all(fd, p, n);
	assert_int_equal(read_pdu(fd, 20), 2);
	memcpy(piece, element, sizeof(element));
	for (; sent < (64u << 20); sent += sizeof(piece)) {
		n = put_pdu(p, 1, piece, sizeof(piece)); /* a fragment of a command, not the last one */
		if (send(fd, p, n, MSG_NOSIGNAL) != (ssize_t)n)
			break;
		memset(piece, 0, sizeof(element));
	}
	finish(server);
	close(fd);
	assert_int_equal(seen->rc, -EPROTO);
	if (!strstr(seen->err, "a command is longer than 1 MiB"))
		fail_msg("%s", seen->err);
	assert_true(sent < (64u << 20));
}

TESTS_SETUP(set_up, tear_down);
