/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz the storage SCP with arbitrary bytes from a peer: negotiation, commands, data sets, reports of storage commitment, all
 * ways to end. The input is everything that a peer sends before it closes its side of the connection. So the SCP never waits for
 * more bytes, and no timeout expires. The first byte selects the SCP's behaviour; then follow pieces, each a letter, a length (16
 * bits, little endian) and bytes:
 * - C: a P-DATA PDU of one fragment (context, control header, data) with corrected lengths;
 * - P: a PDU (type, body) with corrected length;
 * - any other letter: the bytes unchanged. If the pieces are malformed, the rest is sent as bytes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dicom/network/commit.h"
#include "dicom/network/store_scp.h"
#include "dicom/pixels/start.h"
#include "tests/fuzz/fuzz.h"

const char *__lsan_default_suppressions(void);

/* DCMTK 3.6.7 does not free lists of some rejected requests. In the node an association is a process, so this memory is freed
 * when the process ends. */
const char *__lsan_default_suppressions(void)
{
	return "leak:libdcmnet.so";
}

#define STREAM_MAX 65536 /* fits the socket's buffer */

enum { WRITE_FAILS = 1, REFUSED = 2, TURNED_AWAY = 4, FULL_DISK = 8 }; /* of the first byte */

struct peer {
	unsigned mode;
	int fd; /* file descriptor of the object that is being received; -1: none */
	unsigned begun, ended, over, admitted;
	uint64_t bytes;
};

static void is_text(const char *text, size_t size)
{
	must(memchr(text, '\0', size) != NULL, "a text without its end");
}

static enum scp_admission admit(void *ctx, const struct scp_request *request, char *why, size_t why_size)
{
	struct peer *p = ctx;

	must(strlen(request->calling) <= 16 && strlen(request->called) <= 16 && request->host[0], "names that cannot be");
	p->admitted++;
	if (!(p->mode & TURNED_AWAY))
		return SCP_ADMIT;
	snprintf(why, why_size, "no");
	return SCP_REJECT_CALLING;
}

static int begin(void *ctx, const struct scp_object *o, uint16_t *ret_status)
{
	struct peer *p = ctx;

	is_text(o->sop_class, sizeof(o->sop_class));
	is_text(o->sop_instance, sizeof(o->sop_instance));
	is_text(o->transfer_syntax, sizeof(o->transfer_syntax));
	must(o->sop_class[0] && o->sop_instance[strspn(o->sop_instance, "0123456789.")] == '\0', "a UID that is none");
	must(p->fd < 0, "an object within an object");
	*ret_status = STORE_OUT_OF_RESOURCES;
	if (p->mode & REFUSED)
		return -1;
	p->begun++;
	p->bytes = 0;
	p->fd = p->mode & FULL_DISK ? open("/dev/full", O_WRONLY | O_CLOEXEC) : memfd_create("object", MFD_CLOEXEC);
	must(p->fd >= 0, "no memory file");
	return p->fd;
}

static int data(void *ctx, const void *bytes, size_t n)
{
	struct peer *p = ctx;

	must(bytes != NULL && n > 0, "no bytes");
	p->bytes += n;
	return p->mode & WRITE_FAILS && p->bytes > 1000 ? ENOSPC : 0;
}

static uint16_t end(void *ctx, const struct scp_object *o, uint64_t bytes, int write_error)
{
	struct peer *p = ctx;
	char head[132] = "";
	struct stat st;

	(void)o;
	must(p->fd >= 0, "an end without a beginning");
	p->ended++;
	if (!write_error) {
		must(!(p->mode & FULL_DISK), "stored on a full disk");
		must(fstat(p->fd, &st) == 0 && (uint64_t)st.st_size == bytes && bytes > 132 + p->bytes,
		     "another length than written");
		must(pread(p->fd, head, sizeof(head), 0) == sizeof(head) && !memcmp(head + 128, "DICM", 4), "no DICOM file");
	}
	close(p->fd);
	p->fd = -1;
	return write_error ? STORE_OUT_OF_RESOURCES : STORE_SUCCESS;
}

static void over(void *ctx, bool released)
{
	(void)released;
	((struct peer *)ctx)->over++;
}

static uint16_t report(void *ctx, const struct commit_report *r)
{
	(void)ctx;
	is_text(r->transaction, sizeof(r->transaction));
	must(r->transaction[0] && r->n <= COMMIT_ITEMS_MAX, "a report that cannot be");
	for (size_t i = 0; i < r->n; i++)
		is_text(r->items[i].sop_instance, sizeof(r->items[i].sop_instance));
	return COMMIT_ACCEPTED;
}

/* ---- the peer's messages ---- */

struct stream {
	uint8_t bytes[STREAM_MAX];
	size_t n;
};

static void put(struct stream *s, const void *bytes, size_t n)
{
	if (n > STREAM_MAX - s->n)
		n = STREAM_MAX - s->n;
	memcpy(s->bytes + s->n, bytes, n);
	s->n += n;
}

static void put_length(struct stream *s, size_t n)
{
	const uint8_t length[] = {(uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};

	put(s, length, sizeof(length));
}

static void put_piece(struct stream *s, char kind, const uint8_t *p, size_t n)
{
	if (kind == 'C') {
		put(s, "\4", 2);
		put_length(s, n + 4);
		put_length(s, n);
		put(s, p, n);
	} else if (kind == 'P' && n > 0) {
		const uint8_t head[2] = {p[0], 0};

		put(s, head, sizeof(head));
		put_length(s, n - 1);
		put(s, p + 1, n - 1);
	} else {
		put(s, p, n);
	}
}

static void build(struct stream *s, const uint8_t *p, size_t n)
{
	s->n = 0;
	while (n >= 3) {
		size_t length = (size_t)p[1] | (size_t)p[2] << 8;

		if (length > n - 3)
			break;
		put_piece(s, (char)p[0], p + 3, length);
		p += 3 + length;
		n -= 3 + length;
	}
	put(s, p, n);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct err err = {0};

	(void)argc;
	(void)argv;
	must(dicom_start(&err) == 0, err.msg);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static struct stream said;
	struct peer peer = {.mode = size > 0 ? input[0] : 0, .fd = -1};
	const struct commit_handler commit = {.ctx = &peer, .report = report};
	const struct scp_handler handler = {
		.ctx = &peer, .admit = admit, .begin = begin, .data = data, .end = end, .ended = over, .commit = &commit};
	const struct scp_conf conf = {.host = "127.0.0.1", .max_pdu = 16384, .acse_timeout = 1, .dimse_timeout = 1};
	struct err err = {0};
	int ends[2], rc;

	if (size < 2)
		return 0;
	build(&said, input + 1, size - 1);
	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "no sockets");
	must(send(ends[1], said.bytes, said.n, MSG_DONTWAIT) == (ssize_t)said.n, "the socket's buffer is too small");
	shutdown(ends[1], SHUT_WR);
	rc = scp_associate(ends[0], &conf, &handler, &err);
	must(rc <= 0 && (rc == 0 || (err.code == -rc && err.msg[0])), "an answer that is none");
	must(peer.begun == peer.ended && peer.fd < 0, "an object without its end");
	must(peer.over <= 1 && peer.admitted <= 1, "an association that was two");
	close(ends[1]);
	return 0;
}
