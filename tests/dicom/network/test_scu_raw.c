/* SPDX-License-Identifier: Apache-2.0 */
/* test_scu_raw.c - the SCU against peers that reject, refuse, or respond what nobody asked for: bytes on a socket. */
#include "dicom/network/commit.h"
#include "tests/dicom/network/raw_fixture.h"
#include "tests/dicom/network/store_fixture.h"
#include "tests/test.h"

enum { RELEASE = 5, RELEASED = 6 };
enum { COMMAND = 3, DATA = 2 }; /* control of the last fragment: the peer answers after it */
enum { STORE_RSP = 0x8001, ECHO_RQ = 0x0030, ECHO_RSP = 0x8030, REPORT_RQ = 0x0100, ACTION_RSP = 0x8130 };

struct answer {
	uint8_t after; /* the control of what is answered; 0: the association request */
	uint8_t bytes[2000];
	size_t n, zeros; /* sent as data behind the bytes, the last one as the last fragment */
	bool more;	 /* the next answer is sent with it */
};

static struct answer answers[4];
static size_t n_answers;
static struct server server;
static struct scu *scu;
static struct err err;

static void send_zeros(int fd, size_t n)
{
	static const uint8_t zeros[65536];
	static uint8_t p[65536 + 12];

	for (size_t part; n > 0; n -= part) {
		part = n < sizeof(zeros) ? n : sizeof(zeros);
		part = put_pdu(p, part == n ? 2 : 0, zeros, part);
		p[10] = 3;
		if (send(fd, p, part, MSG_NOSIGNAL) != (ssize_t)part)
			return;
		part -= 12;
	}
}

/* The peer: send each answer when it is due, and end with the other side. */
static void answer_all(int listener, int timeout)
{
	static const uint8_t released[10] = {RELEASED, 0, 0, 0, 0, 4};
	int fd = accept(listener, NULL, NULL), type;
	uint8_t body[sizeof(seen->body)];
	size_t at = 0;

	while ((type = read_pdu_body(fd, timeout, body, sizeof(body))) > 0 && type != 7) {
		if (type == RELEASE && send(fd, released, sizeof(released), MSG_NOSIGNAL) < 0)
			break;
		if (type == 4) {
			uint32_t length = 4 + ((uint32_t)body[2] << 8 | body[3]);

			memcpy(seen->body, body, sizeof(body));
			seen->longest = length > seen->longest ? length : seen->longest;
		}
		if (at == n_answers || (type != 1 && type != 4) || answers[at].after != (type == 4 ? body[5] : 0))
			continue;
		do {
			if (send(fd, answers[at].bytes, answers[at].n, MSG_NOSIGNAL) < 0)
				break;
			send_zeros(fd, answers[at].zeros);
		} while (answers[at++].more);
	}
	close(fd);
}

static struct answer *next_answer(uint8_t after)
{
	struct answer *a = &answers[n_answers++];

	*a = (struct answer){.after = after};
	return a;
}

static void answer_pdu(uint8_t after, uint8_t type, const uint8_t rest[4])
{
	struct answer *a = next_answer(after);

	a->bytes[0] = type;
	a->bytes[5] = 4;
	memcpy(a->bytes + 6, rest, 4);
	a->n = 10;
}

/* Accept the contexts `echo` (1, for C-ECHO) and `other` (3) if their results are 0. max: largest PDU that the peer accepts. */
static void answer_accept(uint8_t echo, uint8_t other, uint32_t max)
{
	struct answer *a = next_answer(0);
	uint8_t *p = a->bytes, user[100];
	const uint8_t most[4] = {(uint8_t)(max >> 24), (uint8_t)(max >> 16), (uint8_t)(max >> 8), (uint8_t)max};
	size_t n = 74, u = put_item(user, 0x51, most, 4);

	p[0] = 2;
	p[7] = 1;
	memcpy(p + 10, "TEST            SENDER          ", 32);
	n += put_item(p + n, 0x10, "1.2.840.10008.3.1.1.1", 21);
	for (int i = 0; i < 2; i++) {
		uint8_t context[100] = {(uint8_t)(2 * i + 1), 0, i ? other : echo, 0};
		const char *syntax = i ? EXPLICIT : IMPLICIT;

		n += put_item(p + n, 0x21, context, 4 + put_item(context + 4, 0x40, syntax, strlen(syntax)));
	}
	u += put_item(user + u, 0x52, "1.2.3", 5);
	n += put_item(p + n, 0x50, user, u);
	p[4] = (uint8_t)((n - 6) >> 8);
	p[5] = (uint8_t)(n - 6);
	a->n = n;
}

static size_t put_value(uint8_t *p, unsigned element, const void *value, size_t n)
{
	const uint8_t head[8] = {0, 0, (uint8_t)element, (uint8_t)(element >> 8), (uint8_t)(n + (n & 1))};

	memcpy(p, head, 8);
	memcpy(p + 8, value, n);
	p[8 + n] = 0;
	return 8 + n + (n & 1);
}

static size_t put_number(uint8_t *p, unsigned element, unsigned value)
{
	return put_value(p, element, (const uint8_t[]){(uint8_t)value, (uint8_t)(value >> 8)}, 2);
}

/* Answer with a command in context 1 (C-ECHO) or 3. instance: "": none. Data follow if `has_data`. */
static struct answer *answer_command(uint8_t after, unsigned command, unsigned message, unsigned status, const char *instance,
				     bool has_data)
{
	struct answer *a = next_answer(after);
	bool request = !(command & 0x8000);
	uint8_t c[500];
	size_t n = 12;

	if (request)
		n += put_value(c + n, 0x0002, command == REPORT_RQ ? COMMIT_CLASS : CLASS_MG,
			       strlen(command == REPORT_RQ ? COMMIT_CLASS : CLASS_MG));
	n += put_number(c + n, 0x0100, command);
	n += put_number(c + n, request ? 0x0110 : 0x0120, message);
	n += put_number(c + n, 0x0800, has_data ? 1 : 0x0101);
	n += request ? 0 : put_number(c + n, 0x0900, status);
	n += instance[0] ? put_value(c + n, 0x1000, instance, strlen(instance)) : 0;
	n += command == REPORT_RQ ? put_number(c + n, 0x1002, 1) : 0;
	put_value(c, 0, (const uint8_t[]){(uint8_t)(n - 12), (uint8_t)((n - 12) >> 8), 0, 0}, 4);
	a->n = put_pdu(a->bytes, 3, c, n);
	a->bytes[10] = command == ECHO_RSP ? 1 : 3;
	return a;
}

static struct scu_context context = {CLASS_MG, EXPLICIT};

/* Open an association to a peer that gives the answers so far. */
static int open_raw(void)
{
	struct scu_peer peer = {"127.0.0.1", 0, "TEST", "SENDER", 131072, 5, 5, 5};

	server_runs = answer_all;
	server = start(20);
	peer.port = server.port;
	return scu_open(&peer, &context, 1, &scu, &err);
}

static void opened(void)
{
	if (open_raw() < 0)
		fail_msg("%s", err.msg);
}

static void ended(void)
{
	scu = scu_close(scu);
	finish(server);
	n_answers = 0;
}

/* What a peer may answer to the request of an association, other than an acceptance that can be used. */
TEST(refused_associations)
{
	static const struct {
		uint8_t type, rest[4]; /* PDU; of a rejection its result, source and reason */
		int code;
		const char *words;
	} rows[] = {
		{3, {0, 1, 1, 1}, EACCES, "rejected the association: the reason is not given"},
		{3, {0, 1, 1, 2}, EACCES, "rejected the association: it does not support the DICOM application context"},
		{3, {0, 1, 1, 3}, EACCES, "rejected the association: it does not know our AE title"},
		{3, {0, 1, 1, 7}, EACCES, "rejected the association: that is not its AE title"},
		{3, {0, 1, 2, 1}, EACCES, "rejected the association: the reason is not given"},
		{3, {0, 1, 2, 2}, EACCES, "rejected the association: it does not support the protocol version"},
		{3, {0, 2, 1, 3}, EBUSY, "rejected the association for now: it does not know our AE title"},
		{3, {0, 2, 3, 1}, EBUSY, "rejected the association for now: it is congested"},
		{3, {0, 2, 3, 2}, EBUSY, "rejected the association for now: it has too many associations"},
		{RELEASE, {0}, EPROTO, "responded to the association request with a PDU of type 0x05"},
		{RELEASED, {0}, EPROTO, "responded to the association request with a PDU of type 0x06"},
		{2, {0}, ENOTSUP, "accepted the association but none of the 3 proposed presentation contexts"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].type == 2)
			answer_accept(3, 4, 16384);
		else
			answer_pdu(0, rows[i].type, rows[i].rest);
		assert_error(open_raw(), &err, rows[i].code, rows[i].words);
		assert_null(scu);
		ended();
	}
}

/* Write an object, 1.2.3.4. */
static const char *object(void)
{
	static char path[100];
	uint8_t p[600] = {0}, *q = p + 132;
	const char *const uids[] = {CLASS_MG, "1.2.3.4", EXPLICIT};
	FILE *f;

	memcpy(p + 128, "DICM", 4);
	for (int i = 0; i < 3; i++) {
		size_t n = put_value(q, i == 2 ? 0x0010 : (unsigned)i + 2, uids[i], strlen(uids[i]));

		q[0] = 2;
		memcpy(q + 4, (const uint8_t[]){'U', 'I', (uint8_t)(n - 8), 0}, 4);
		q += n;
	}
	memcpy(q, "\x10\0\x10\0PN\2\0AB", 10);
	snprintf(path, sizeof(path), "%s/raw.dcm", folder);
	f = fopen(path, "wb");
	assert_int_equal(fwrite(p, 1, (size_t)(q - p) + 10, f), (size_t)(q - p) + 10);
	fclose(f);
	return path;
}

/* What a peer may respond to the C-STORE of 1.2.3.4, Message ID 1. After an error no call uses the association any more. */
TEST(responses_to_a_store)
{
	static const struct {
		unsigned command, message, status; /* command 0: a request to release */
		const char *instance;
		int code;
		const char *words;
	} rows[] = {
		{STORE_RSP, 1, 0, "1.2.3.4", 0, ""},
		{STORE_RSP, 1, 0xa700, "", 0, ""},
		{0, 0, 0, "", ECONNRESET, "requested to release the association instead of responding to C-STORE"},
		{ECHO_RQ, 1, 0, "", EPROTO, "responded to C-STORE with another message, command 0x0030"},
		{STORE_RSP, 2, 0, "1.2.3.4", EPROTO, "with Message ID 2, but the one that was sent has Message ID 1"},
		{STORE_RSP, 1, 0, "1.2.3.5", EPROTO, "the C-STORE of 1.2.3.4 with a response about the object 1.2.3.5"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct commit_handler none = {0};
		struct commit_object item = {CLASS_MG, "1.2.3.4"};
		uint16_t status = 0xffff;

		answer_accept(0, 0, 16384);
		if (rows[i].command)
			answer_command(DATA, rows[i].command, rows[i].message, rows[i].status, rows[i].instance, false);
		else
			answer_pdu(DATA, RELEASE, (const uint8_t[4]){0});
		opened();
		assert_true(scu_accepts(scu, &context));
		if (rows[i].code) {
			assert_error(scu_store(scu, object(), &status, &err), &err, rows[i].code, rows[i].words);
			assert_int_equal(status, 0xffff);
			assert_false(scu_accepts(scu, &context));
			assert_error(scu_store(scu, object(), &status, &err), &err, ENOTCONN, "the association has ended");
			assert_error(scu_echo(scu, &err), &err, ENOTCONN, "the association has ended");
			assert_error(scu_commit(scu, "2.25.7", &item, 1, &none, &status, &err), &err, ENOTCONN, "has ended");
			assert_error(scu_commit_wait(scu, 1, &none, &err), &err, ENOTCONN, "the association has ended");
		} else {
			assert_done(scu_store(scu, object(), &status, &err), &err);
			assert_int_equal(status, rows[i].status);
			assert_true(scu_accepts(scu, &context));
		}
		ended();
	}
}

/* A peer that accepts PDUs much smaller than usual gets no longer ones; of two bytes of data at least. */
TEST(peers_of_tiny_pdus)
{
	static const uint32_t most[] = {1, 12, 13, 14, 15, 20, 0};

	for (size_t i = 0; i < sizeof(most) / sizeof(most[0]); i++) {
		bool none = most[i] > 0 && most[i] < 14;
		uint16_t status = 0xffff;

		answer_accept(0, 0, most[i]);
		answer_command(DATA, STORE_RSP, 1, 0, "1.2.3.4", false);
		opened();
		if (none)
			assert_error(scu_store(scu, object(), &status, &err), &err, EPROTO, "accepts no data: PDUs of");
		else if (scu_store(scu, object(), &status, &err) < 0)
			fail_msg("%u: %s", most[i], err.msg);
		ended();
		assert_int_equal(status, none ? 0xffff : 0);
		assert_true(none ? seen->longest == 0 : most[i] == 0 || seen->longest <= most[i]);
	}
}

TEST(responses_to_an_echo)
{
	answer_accept(0, 0, 16384);
	answer_command(COMMAND, ECHO_RSP, 1, 0x0122, "", false);
	opened();
	assert_error(scu_echo(scu, &err), &err, EPROTO, "responded to C-ECHO with status 0122");
	assert_true(scu_accepts(scu, &context)); /* the association continues */
	ended();
	answer_accept(3, 0, 16384);
	opened();
	assert_error(scu_echo(scu, &err), &err, ENOTSUP, "accepted no presentation context for C-ECHO");
	assert_true(scu_accepts(scu, &context));
	ended();
}

/* ---- storage commitment ---- */

struct reports {
	int n, n_refused;
	uint16_t status; /* of the refused one */
	char why[200];
};

static uint16_t on_report(void *ctx, const struct commit_report *report)
{
	struct reports *r = ctx;

	assert_string_equal(report->transaction, "2.25.7");
	r->n++;
	return COMMIT_ACCEPTED;
}

static void on_refused(void *ctx, uint16_t status, const char *why)
{
	struct reports *r = ctx;

	r->n_refused++;
	r->status = status;
	snprintf(r->why, sizeof(r->why), "%s", why);
}

static int request(size_t n, struct reports *r)
{
	const struct commit_handler handler = {r, on_report, on_refused};
	struct commit_object *objects = calloc(n + 1, sizeof(*objects));
	uint16_t status = 0xffff;
	int rc;

	assert_non_null(objects);
	for (size_t i = 0; i < n; i++)
		objects[i] = (struct commit_object){CLASS_MG, "1.2.3.4"};
	rc = scu_commit(scu, "2.25.7", objects, n, &handler, &status, &err);
	free(objects);
	assert_int_equal(status, rc < 0 ? 0xffff : 0);
	return rc;
}

/* Let data follow an answer: the Transaction UID, and a value of zeros so that there are `size` bytes. */
static void add_data(struct answer *a, size_t size)
{
	uint8_t data[26] = {8, 0, 0x95, 0x11, 'U', 'I', 6, 0, '2', '.', '2', '5', '.', '7', 0x42, 0, 0x11, 0, 'O', 'B'};
	size_t zeros = size - sizeof(data);

	for (int i = 0; i < 4; i++)
		data[22 + i] = (uint8_t)(zeros >> (8 * i));
	a->n += put_pdu(a->bytes + a->n, 0, data, sizeof(data));
	a->bytes[a->n - sizeof(data) - 2] = 3;
	a->zeros = zeros;
}

TEST(objects_of_a_request)
{
	struct reports r = {0};

	context = (struct scu_context){COMMIT_CLASS, EXPLICIT};
	answer_accept(0, 0, 16384);
	add_data(answer_command(DATA, ACTION_RSP, 1, 0, "", true), 1000); /* an action reply, which is dropped */
	answer_command(DATA, ACTION_RSP, 2, 0, "", false);
	answer_command(DATA, ACTION_RSP, 7, 0, "", false);
	opened();
	assert_error(request(0, &r), &err, EINVAL, "storage commitment of 0 objects; allowed: 1 to 16384");
	assert_error(request(16385, &r), &err, EINVAL, "storage commitment of 16385 objects");
	for (size_t n = 1; n <= COMMIT_ITEMS_MAX; n += COMMIT_ITEMS_MAX - 1)
		if (request(n, &r) < 0)
			fail_msg("%zu: %s", n, err.msg);
	assert_error(request(1, &r), &err, EPROTO, "answered Message ID 3 of N-ACTION with Message ID 7");
	assert_error(request(1, &r), &err, ENOTCONN, "the association has ended");
	ended();
	answer_accept(0, 3, 16384);
	opened();
	assert_error(request(1, &r), &err, ENOTSUP, "accepted no presentation context for storage commitment");
	ended();
	assert_int_equal(r.n + r.n_refused, 0);
}

/* What arrives while a report is awaited. */
TEST(in_place_of_a_report)
{
	static const struct {
		unsigned command; /* 0: a request to release */
		size_t size;	  /* of the report, bytes */
		int rc;
		uint16_t refused; /* status in the response */
		const char *words;
	} rows[] = {
		{ECHO_RQ, 0, -EPROTO, 0, "sent command 0x0030 where a report of storage commitment was expected"},
		{0, 0, -ECONNRESET, 0, "released the association"},
		{REPORT_RQ, COMMIT_BYTES_MAX, 1, 0, ""},
		{REPORT_RQ, COMMIT_BYTES_MAX + 2, 1, COMMIT_TOO_LARGE, "it has more than 4194304 bytes"},
	};

	context = (struct scu_context){COMMIT_CLASS, EXPLICIT};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct reports r = {0};
		const struct commit_handler handler = {&r, on_report, on_refused};
		const uint8_t status[] = {0, 0, 0, 9, 2, 0, 0, 0, (uint8_t)rows[i].refused, (uint8_t)(rows[i].refused >> 8)};
		int rc;

		answer_accept(0, 0, 16384);
		answer_command(DATA, ACTION_RSP, 1, 0, "", false)->more = true;
		if (rows[i].size)
			add_data(answer_command(0, rows[i].command, 1, 0, COMMIT_INSTANCE, true), rows[i].size);
		else if (rows[i].command)
			answer_command(0, rows[i].command, 1, 0, "", false);
		else
			answer_pdu(0, RELEASE, (const uint8_t[4]){0});
		opened();
		assert_int_equal(request(1, &r), 0);
		rc = scu_commit_wait(scu, 5, &handler, &err);
		assert_int_equal(rc, rows[i].rc);
		if (!strstr(rc < 0 ? err.msg : r.why, rows[i].words))
			fail_msg("'%s' does not say '%s'", rc < 0 ? err.msg : r.why, rows[i].words);
		if (rc < 0)
			assert_error(scu_commit_wait(scu, 1, &handler, &err), &err, ENOTCONN, "the association has ended");
		ended();
		assert_int_equal(r.n, rc > 0 && !rows[i].refused);
		assert_int_equal(r.status, rows[i].refused);
		assert_int_equal(r.n_refused, rows[i].refused != 0);
		if (rc > 0)
			assert_non_null(memmem(seen->body, sizeof(seen->body), status, sizeof(status)));
	}
}

TESTS_SETUP(set_up, tear_down);
