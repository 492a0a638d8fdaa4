/* SPDX-License-Identifier: Apache-2.0 */
/* test_store.c - storage SCU and SCP against each other: objects stored and refused, rejected associations, full disks,
 * memory. */
#include "tests/dicom/network/store_fixture.h"
#include "tests/test.h"

#define META 500 /* bytes; larger than a meta header of tomonode */

/* ---- files to send ---- */

static const char *sop_instance = "1.2.3.4"; /* of the files */

static size_t put_element(uint8_t *p, uint16_t element, const char *vr, const char *value)
{
	size_t n = strlen(value), even = n + (n & 1);

	p[0] = 2;
	p[1] = 0;
	p[2] = (uint8_t)element;
	p[3] = (uint8_t)(element >> 8);
	p[4] = (uint8_t)vr[0];
	p[5] = (uint8_t)vr[1];
	p[6] = (uint8_t)even;
	p[7] = (uint8_t)(even >> 8);
	memcpy(p + 8, value, n);
	if (n & 1)
		p[8 + n] = 0;
	return 8 + even;
}

/* Write a data set: (0008,0016), (0008,0018), then a private OB element of `size` bytes in a pattern of period 251. */
static size_t data_set(uint8_t **ret, const char *sop_class, size_t size)
{
	uint8_t *d = calloc(1, size + 200);
	size_t n = 0, second;

	assert_non_null(d);
	second = n = put_element(d, 0x0016, "UI", sop_class);
	n += put_element(d + n, 0x0018, "UI", sop_instance);
	d[0] = d[second] = 8; /* the group */
	memcpy(d + n, "\x11\x00\x10\x10OB\0\0", 8);
	for (int i = 0; i < 4; i++)
		d[n + 8 + (size_t)i] = (uint8_t)(size >> (8 * i));
	n += 12;
	for (size_t i = 0; i < size; i++)
		d[n + i] = (uint8_t)(i % 251);
	*ret = d;
	return n + size;
}

struct sent {
	char path[160];
	size_t data_bytes;
	uint32_t sum;
};

static struct sent make_file(const char *name, const char *sop_class, const char *ts, size_t size)
{
	uint8_t head[1024] = {0}, *d;
	struct sent s;
	size_t at = 132, n;
	FILE *f;

	memcpy(head + 128, "DICM", 4);
	at += put_element(head + at, 0x0002, "UI", sop_class);
	at += put_element(head + at, 0x0003, "UI", sop_instance);
	at += put_element(head + at, 0x0010, "UI", ts);
	n = data_set(&d, sop_class, size);
	snprintf(s.path, sizeof(s.path), "%s/%s", folder, name);
	f = fopen(s.path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(head, 1, at, f), at);
	assert_int_equal(fwrite(d, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
	s.data_bytes = n;
	s.sum = add_up(0, d, n);
	free(d);
	return s;
}

static struct scu *connect_to(struct server s, const struct scu_context *contexts, size_t n, int max_pdu)
{
	struct scu_peer peer = {.host = "127.0.0.1",
				.port = s.port,
				.called = "TEST",
				.calling = "SENDER",
				.max_pdu = max_pdu,
				.connect_timeout = 5,
				.acse_timeout = 10,
				.dimse_timeout = 10};
	struct err err = {0};
	struct scu *scu = NULL;

	assert_done(scu_open(&peer, contexts, n, &scu, &err), &err);
	return scu;
}

/* Check that the data set of the stored file equals the sent one, and that the meta header has its UIDs. */
static void check_stored(const struct sent *s, const char *sop_class, const char *ts)
{
	struct stat st;
	uint8_t head[META], *d = malloc(s->data_bytes);
	int fd = open(seen->file, O_RDONLY);
	off_t at;

	assert_non_null(d);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, seen->bytes);
	at = st.st_size - (off_t)s->data_bytes;
	assert_in_range(at, 200, META);
	assert_int_equal(pread(fd, d, s->data_bytes, at), s->data_bytes);
	assert_int_equal(add_up(0, d, s->data_bytes), s->sum);
	assert_int_equal(seen->sum, s->sum);
	assert_int_equal(seen->data_bytes, s->data_bytes);
	assert_int_equal(pread(fd, head, (size_t)at, 0), at);
	assert_memory_equal(head + 128, "DICM", 4);
	/* (0002,0000) is the number of bytes between it and the data set. */
	assert_int_equal(head[140] | head[141] << 8, at - 144);
	assert_non_null(memmem(head, (size_t)at, sop_class, strlen(sop_class)));
	assert_non_null(memmem(head, (size_t)at, ts, strlen(ts)));
	assert_non_null(memmem(head, (size_t)at, "SENDER", 6));
	close(fd);
	free(d);
	if (!strcmp(ts, EXPLICIT)) {
		struct dicom_file *file = NULL;
		struct err err = {0};

		assert_done(dicom_open(seen->file, &file, &err), &err);
		dicom_close(file);
	}
}

/* ---- tests ---- */

/* Send one object over an association of its own: it is acknowledged, and stored as it is. */
static void store_alone(const struct sent *s, const char *ts, int max_pdu)
{
	struct scu_context context = {.sop_class = CLASS_MG};
	struct server server = start(10);
	uint16_t status = 0xffff;
	struct scu *scu;

	snprintf(context.transfer_syntax, sizeof(context.transfer_syntax), "%s", ts);
	scu = connect_to(server, &context, 1, max_pdu);
	assert_int_equal(scu_store(scu, s->path, &status, NULL), 0);
	assert_int_equal(status, STORE_SUCCESS);
	scu_close(scu);
	finish(server);
	check_stored(s, CLASS_MG, ts);
}

TEST(echo_and_stores)
{
	static const size_t sizes[] = {2, 1000, 131060 - 62, 131060, 131062, 300000, 524240, 524242, 5000000};
	struct scu_context contexts[] = {{CLASS_MG, EXPLICIT}, {CLASS_MG, EXPLICIT}, {CLASS_PRIVATE, IMPLICIT}};
	struct server server = start(10);
	struct scu *scu = connect_to(server, contexts, 3, 131072);
	struct err err = {0};
	uint16_t status;

	assert_int_equal(scu_echo(scu, &err), 0);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct sent s = make_file("a.dcm", CLASS_MG, EXPLICIT, sizes[i]);

		status = 0xffff;
		assert_int_equal(scu_store(scu, s.path, &status, &err), 0);
		assert_int_equal(status, STORE_SUCCESS);
		assert_int_equal(seen->stored, i + 1);
		check_stored(&s, CLASS_MG, EXPLICIT);
		assert_string_equal(seen->object.sop_instance, "1.2.3.4");
		assert_string_equal(seen->object.calling, "SENDER");
		assert_string_equal(seen->object.host, "127.0.0.1");
	}
	assert_int_equal(scu_echo(scu, &err), 0);
	scu_close(scu);
	finish(server);
	assert_int_equal(seen->rc, 0);
	assert_true(seen->echoes == 2 && seen->n_refused == 0);
	assert_int_equal(seen->over, 1);
	assert_int_equal(seen->released, 1);
	assert_int_equal(seen->begun, seen->ended);
}

/* The longest UID is sent, received and stored as it is. */
TEST(uid_of_64_characters)
{
	static const char longest[] = "1.234567890123456789012345678901234567890123456789012345678901.3";
	struct sent s;

	assert_int_equal(strlen(longest), 64);
	sop_instance = longest;
	s = make_file("a.dcm", CLASS_MG, EXPLICIT, 1000);
	sop_instance = "1.2.3.4";
	store_alone(&s, EXPLICIT, 131072);
	assert_string_equal(seen->object.sop_instance, longest);
}

TEST(small_pdus)
{
	struct sent s = make_file("a.dcm", CLASS_MG, JPEG_LOSSLESS, 1000000);

	store_alone(&s, JPEG_LOSSLESS, 4096);
}

/* A peer that accepts only small PDUs: pieces of many PDUs. The sizes of the objects are around that of a PDU and of a piece. */
TEST(peers_of_small_pdus)
{
	static const int most[] = {4096, 5000, 16384};

	for (size_t i = 0; i < sizeof(most) / sizeof(most[0]); i++) {
		size_t pdu = (size_t)most[i] - 12;
		const size_t sizes[] = {2, pdu - 2, pdu, pdu + 2, 31 * pdu, 32 * pdu, 64 * pdu, 64 * pdu + 2, 1000000};

		for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
			struct sent s = make_file("a.dcm", CLASS_MG, EXPLICIT, sizes[k]);

			seen->max_pdu = most[i];
			store_alone(&s, EXPLICIT, 131072);
		}
	}
	seen->max_pdu = 0;
}

TEST(private_class_is_taken_others_are_not)
{
	struct scu_context contexts[] = {
		{CLASS_PRIVATE, EXPLICIT}, {CLASS_FIND, EXPLICIT}, {CLASS_MG, JPEG_2000}, {CLASS_PRIVATE, JPEG_2000}};
	struct sent a = make_file("a.dcm", CLASS_PRIVATE, EXPLICIT, 100), b = make_file("b.dcm", CLASS_FIND, EXPLICIT, 100),
		    c = make_file("c.dcm", CLASS_MG, JPEG_2000, 100);
	struct server server = start(10);
	struct scu *scu = connect_to(server, contexts, 4, 131072);
	struct err err = {0};
	uint16_t status = 0xffff;

	assert_error(scu_store(scu, b.path, &status, &err), &err, ENOTSUP, CLASS_FIND);
	assert_error(scu_store(scu, c.path, &status, &err), &err, ENOTSUP, JPEG_2000);
	assert_int_equal(status, 0xffff);
	/* After a refused context the association continues. */
	assert_int_equal(scu_store(scu, a.path, &status, &err), 0);
	assert_int_equal(status, STORE_SUCCESS);
	scu_close(scu);
	finish(server);
	assert_int_equal(seen->begun, 1);
	/* Reported: a class that is not served, and one in an unknown syntax; not one that was accepted in another context. */
	assert_int_equal(seen->n_refused, 2);
	assert_string_equal(seen->refused, CLASS_FIND " (this class is not supported); " CLASS_MG
						      " (none of its transfer syntaxes is supported: " JPEG_2000 ")");
}

/* Offsets at which the simulated disk is full: coarse steps, finer ones toward the end, each of the last 64 bytes. */
static size_t next_limit(size_t limit, size_t total)
{
	size_t left = total - limit;

	if (limit < 600)
		return limit + 97;
	if (left > 5000)
		return left - 5000 < 38011 ? total - 5000 : limit + 38011;
	if (left > 64)
		return left - 64 < 509 ? total - 64 : limit + 509;
	return limit + 1;
}

/* The disk is full at each of these offsets: the status is A700, nothing hangs, no file remains, and the association continues.
 */
TEST(full_disk_at_every_offset)
{
	struct scu_context contexts[] = {{CLASS_MG, EXPLICIT}};
	struct sent s = make_file("a.dcm", CLASS_MG, EXPLICIT, 400000);
	size_t total;
	struct server server = start(10);
	struct scu *scu = connect_to(server, contexts, 1, 16384);
	uint16_t status = 0;
	int tried = 0;

	assert_int_equal(scu_store(scu, s.path, &status, NULL), 0);
	assert_int_equal(status, STORE_SUCCESS);
	total = seen->bytes;
	scu_close(scu);
	finish(server);
	for (size_t limit = 1; limit < total; limit = next_limit(limit, total)) {
		struct err err = {0};

		server = start_limited(10, limit);
		scu = connect_to(server, contexts, 1, 16384);
		status = 0xffff;
		if (scu_store(scu, s.path, &status, &err) < 0)
			fail_msg("limit %zu of %zu: %s", limit, total, err.msg);
		assert_int_equal(status, STORE_OUT_OF_RESOURCES);
		assert_int_equal(scu_echo(scu, &err), 0);
		scu_close(scu);
		finish(server);
		assert_int_equal(seen->rc, 0);
		assert_int_equal(seen->write_error, EFBIG);
		assert_int_equal(seen->stored, 0);
		assert_int_equal(seen->ended, 1);
		assert_int_equal(access(seen->file, F_OK), -1);
		tried++;
	}
	assert_true(tried > 60);
	server = start_limited(10, total); /* exactly enough space */
	scu = connect_to(server, contexts, 1, 16384);
	assert_int_equal(scu_store(scu, s.path, &status, NULL), 0);
	assert_int_equal(status, STORE_SUCCESS);
	scu_close(scu);
	finish(server);
	check_stored(&s, CLASS_MG, EXPLICIT);
}

/* A write that fails once within the object, and succeeds again, leaves a hole: it is never acknowledged. */
TEST(failure_in_the_middle_is_kept)
{
	struct scu_context contexts[] = {{CLASS_MG, EXPLICIT}};
	struct sent s = make_file("a.dcm", CLASS_MG, EXPLICIT, 5000000);
	struct server server = start(10);
	struct scu *scu = connect_to(server, contexts, 1, 16384);
	uint16_t status = 0;

	seen->fail_at = 1000000;
	assert_int_equal(scu_store(scu, s.path, &status, NULL), 0);
	assert_int_equal(seen->fail_at, 0); /* it did fail */
	assert_int_equal(status, STORE_OUT_OF_RESOURCES);
	assert_int_equal(seen->write_error, ENOSPC);
	assert_int_equal(seen->stored, 0);
	/* The next object of the association is not affected. */
	assert_int_equal(scu_store(scu, s.path, &status, NULL), 0);
	assert_int_equal(status, STORE_SUCCESS);
	scu_close(scu);
	finish(server);
	check_stored(&s, CLASS_MG, EXPLICIT);
}

TEST(handler_refuses)
{
	struct scu_context contexts[] = {{CLASS_MG, EXPLICIT}};
	struct sent s = make_file("a.dcm", CLASS_MG, EXPLICIT, 700000);
	struct server server;
	struct scu *scu;
	uint16_t status = 0;

	seen->refuse = STORE_OUT_OF_RESOURCES;
	server = start(10);
	scu = connect_to(server, contexts, 1, 131072);
	assert_int_equal(scu_store(scu, s.path, &status, NULL), 0);
	assert_int_equal(status, STORE_OUT_OF_RESOURCES);
	assert_int_equal(seen->ended, 0);
	seen->refuse = 0;
	assert_int_equal(scu_store(scu, s.path, &status, NULL), 0);
	assert_int_equal(status, STORE_SUCCESS);
	scu_close(scu);
	finish(server);
}

TEST(rejections)
{
	static const struct {
		enum scp_admission admission;
		int code;
		const char *words;
	} cases[] = {{SCP_REJECT_CALLED, -EACCES, "that is not its AE title"},
		     {SCP_REJECT_CALLING, -EACCES, "it does not know our AE title"},
		     {SCP_REJECT_BUSY, -EBUSY, "for now: it has too many associations"}};

	for (size_t i = 0; i < 3; i++) {
		struct scu_peer peer = {"127.0.0.1", 0, "TEST", "SENDER", 131072, 5, 10, 10};
		struct server server;
		struct scu *scu = NULL;
		struct err err = {0};

		seen->admission = cases[i].admission;
		server = start(10);
		peer.port = server.port;
		assert_int_equal(scu_open(&peer, NULL, 0, &scu, &err), cases[i].code);
		assert_null(scu);
		assert_non_null(strstr(err.msg, cases[i].words));
		finish(server);
		assert_int_equal(seen->rc, cases[i].code);
		assert_non_null(strstr(seen->err, "is not wanted"));
		assert_int_equal(seen->over, 0);
	}
	seen->admission = SCP_ADMIT;
}

TEST(unreachable_peers)
{
	struct scu_peer peer = {"127.0.0.1", 1, "TEST", "SENDER", 131072, 1, 1, 1};
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(a);
	struct scu *scu = NULL;
	struct err err = {0};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
	peer.port = ntohs(a.sin_port); /* the port is bound, but not listening */
	assert_error(scu_open(&peer, NULL, 0, &scu, &err), &err, ECONNREFUSED, "Connection refused");
	assert_int_equal(listen(fd, 1), 0); /* now connecting succeeds, but there is no response */
	assert_int_equal(scu_open(&peer, NULL, 0, &scu, &err), -ETIMEDOUT);
	close(fd);
	peer.host = "no-such-host.invalid";
	assert_error(scu_open(&peer, NULL, 0, &scu, &err), &err, EHOSTUNREACH, "no-such-host.invalid");
	assert_null(scu);
}

/* Each limit on both sides: what is within is tried, and nobody listens. */
TEST(limits_of_a_peer)
{
	static const struct {
		struct scu_peer peer;
		const char *refused; /* NULL: it is tried */
	} cases[] = {
		{{"127.0.0.1", 1, "SIXTEEN_LETTERS_", "SIXTEEN_LETTERS_", 4096, 1, 1, 1}, NULL},
		{{"127.0.0.1", 1, "T", "S", 131072, 1, 1, 1}, NULL},
		{{"127.0.0.1", 65535, "TEST", "SENDER", 4096, 1, 1, 1}, NULL},
		{{"127.0.0.1", 1, "SEVENTEEN_LETTERS", "SENDER", 4096, 1, 1, 1}, "AE titles have 1 to 16"},
		{{"127.0.0.1", 1, "TEST", "SEVENTEEN_LETTERS", 4096, 1, 1, 1}, "AE titles have 1 to 16"},
		{{"127.0.0.1", 1, "", "SENDER", 4096, 1, 1, 1}, "AE titles have 1 to 16"},
		{{"127.0.0.1", 1, "TEST", "", 4096, 1, 1, 1}, "AE titles have 1 to 16"},
		{{"127.0.0.1", 1, "TE\tST", "SENDER", 4096, 1, 1, 1}, "AE titles have 1 to 16"},
		{{"127.0.0.1", 1, "TE\\ST", "SENDER", 4096, 1, 1, 1}, "AE titles have 1 to 16"},
		{{"127.0.0.1", 1, "    ", "SENDER", 4096, 1, 1, 1}, "AE titles have 1 to 16"},
		{{"127.0.0.1", 0, "TEST", "SENDER", 4096, 1, 1, 1}, "port 0"},
		{{"127.0.0.1", -1, "TEST", "SENDER", 4096, 1, 1, 1}, "port -1"},
		{{"127.0.0.1", 65536, "TEST", "SENDER", 4096, 1, 1, 1}, "port 65536"},
		{{"127.0.0.1", 1, "TEST", "SENDER", 4095, 1, 1, 1}, "maximum PDU 4095"},
		{{"127.0.0.1", 1, "TEST", "SENDER", 131073, 1, 1, 1}, "maximum PDU 131073"},
		{{"127.0.0.1", 1, "TEST", "SENDER", 4096, 0, 1, 1}, "timeouts of 0, 1 and 1"},
		{{"127.0.0.1", 1, "TEST", "SENDER", 4096, 1, 0, 1}, "timeouts of 1, 0 and 1"},
		{{"127.0.0.1", 1, "TEST", "SENDER", 4096, 1, 1, 0}, "timeouts of 1, 1 and 0"},
	};
	struct scu *scu = NULL;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = {0};
		int rc = scu_open(&cases[i].peer, NULL, 0, &scu, &err);

		if (cases[i].refused)
			assert_error(rc, &err, EINVAL, cases[i].refused);
		else
			assert_int_equal(rc, -ECONNREFUSED);
	}
	assert_null(scu);
}

/* The same of an association that is accepted. */
TEST(limits_of_a_listener)
{
	static const struct {
		int fd;
		struct scp_conf conf;
		int code;
		const char *words;
	} cases[] = {
		{0, {NULL, "peer", 4096, 1, 1}, EBADF, "descriptor 0"},
		{-1, {NULL, "peer", 4096, 1, 1}, EBADF, "descriptor -1"},
		{99, {NULL, "peer", 4095, 1, 1}, EINVAL, "maximum PDU 4095, allowed 4096..131072"},
		{99, {NULL, "peer", 131073, 1, 1}, EINVAL, "maximum PDU 131073"},
		{99, {NULL, "peer", 4096, 0, 1}, EINVAL, "timeouts 0 and 1 s"},
		{99, {NULL, "peer", 131072, 1, 0}, EINVAL, "timeouts 1 and 0 s"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = {0};

		assert_error(scp_associate(cases[i].fd, &cases[i].conf, NULL, &err), &err, cases[i].code, cases[i].words);
	}
}

TEST(an_ipv6_peer)
{
	struct scu_peer peer = {"::1", 0, "TEST", "SENDER", 131072, 5, 10, 10};
	struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct scu *scu = NULL;
	struct err err = {0};
	struct server server;
	int fd = socket(AF_INET6, SOCK_STREAM, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
		close(fd);
		skip_because("no IPv6");
	}
	peer.port = port_of(fd);
	assert_error(scu_open(&peer, NULL, 0, &scu, &err), &err, ECONNREFUSED, "TEST at [::1]:");
	assert_int_equal(listen(fd, 1), 0);
	server = start_on(fd, 10, 0);
	assert_done(scu_open(&peer, NULL, 0, &scu, &err), &err);
	assert_int_equal(scu_echo(scu, &err), 0);
	scu_close(scu);
	finish(server);
	assert_int_equal(seen->released, 1);
}

TEST(bad_files_are_refused_before_sending)
{
	enum { BEFORE = -9999 };
	static const struct {
		off_t end; /* of the file; 0 and less: from its own end; BEFORE: that of the meta header */
		off_t at;  /* of the bytes that are changed; the first element is at 132 */
		const char *bytes;
		size_t n;
		const char *says;
	} rows[] = {
		{-1, 0, "", 0, "the data set has an odd length of 10"},
		{1, 0, "", 0, "not a DICOM Part 10 file"},
		{140, 0, "", 0, "a.dcm: element (0002,0002) is not a UID"},
		{BEFORE, 0, "", 0, "no data set after the meta header"},
		{0, 138, "\x41", 1, "element (0002,0002) is not a UID"}, /* of 65 bytes */
		{0, 134, "\x01", 1, "the meta header lacks SOP class"},
		{0, 136, "OB\0\0\1\0\x10\0", 8, "element (0002,0002) declares 1048577 bytes"},
		{0, 136, "OB\0\0\0\0\x10\0", 8, "element (0002,0002) is not a UID"},
	};
	struct scu_context contexts[] = {{CLASS_MG, EXPLICIT}};
	struct server server = start(10);
	struct scu *scu = connect_to(server, contexts, 1, 131072);
	struct err err = {0};
	struct stat st;
	uint16_t status = 0xffff;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sent s = make_file("a.dcm", CLASS_MG, EXPLICIT, 1000);
		int fd = open(s.path, O_WRONLY);

		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(pwrite(fd, rows[i].bytes, rows[i].n, rows[i].at), rows[i].n);
		assert_int_equal(ftruncate(fd, rows[i].end > 0	       ? rows[i].end
					       : rows[i].end == BEFORE ? st.st_size - (off_t)s.data_bytes
								       : st.st_size + rows[i].end),
				 0);
		close(fd);
		assert_error(scu_store(scu, s.path, &status, &err), &err, EBADMSG, rows[i].says);
	}
	assert_int_equal(scu_store(scu, "/nonexistent", &status, &err), -ENOENT);
	assert_int_equal(status, 0xffff);
	assert_int_equal(scu_echo(scu, &err), 0);
	scu_close(scu);
	finish(server);
	assert_int_equal(seen->begun, 0);
}

/* Write an object of `size` zeros as a sparse file, without memory of this size. */
static struct sent make_big_file(const char *name, uint32_t size)
{
	struct sent s = make_file(name, CLASS_MG, EXPLICIT, 2);
	uint8_t length[4];
	struct stat st;
	int fd = open(s.path, O_WRONLY);

	for (int i = 0; i < 4; i++)
		length[i] = (uint8_t)(size >> (8 * i));
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(pwrite(fd, length, 4, st.st_size - 6), 4);
	assert_int_equal(ftruncate(fd, st.st_size - 2 + (off_t)size), 0);
	close(fd);
	s.data_bytes += size - 2;
	return s;
}

/* Limit of the growth of a process while it handles an object of any size; more with a sanitizer, which needs memory itself. */
#if defined(__has_feature) /* clang */
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GROWTH_KIB 131072
#else
#define GROWTH_KIB 8192
#endif

TEST(memory_stays_small)
{
	struct scu_context contexts[] = {{CLASS_MG, EXPLICIT}};
	struct sent s = make_big_file("big.dcm", (test_tier() == 2 ? 300u : 64u) << 20); /* much more than may be used */
	struct server server = start(30);
	struct scu *scu = connect_to(server, contexts, 1, 131072);
	struct rusage before, after;
	uint16_t status = 0xffff;

	getrusage(RUSAGE_SELF, &before);
	assert_int_equal(scu_store(scu, s.path, &status, NULL), 0);
	getrusage(RUSAGE_SELF, &after);
	assert_int_equal(status, STORE_SUCCESS);
	assert_int_equal(seen->data_bytes, s.data_bytes);
	scu_close(scu);
	finish(server);
	assert_true(after.ru_maxrss - before.ru_maxrss < GROWTH_KIB);
	assert_true(seen->peak_rss - seen->rss_at_start < GROWTH_KIB);
}

TESTS_SETUP(set_up, tear_down);
