/* SPDX-License-Identifier: Apache-2.0 */
/* store_stow.c - destinations of kind stow: a STOW-RS user agent (PS3.18 section 10.5), one instance in each request.
 *
 * One instance in a request, because the outcome of each is then known for certain: a server may stop at the first part that it
 * does not understand, without a word about the following ones, and after a lost answer only one object is in doubt. The
 * connection is kept, so the cost is one round trip for an object, as with C-STORE. The file is read while it is sent; no object
 * is in memory as a whole. Objects are sent in the transfer syntax of their file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/deliver/destination.h"
#include "node/deliver/stow_answer.h"
#include "node/web/http_client.h"

#define ANSWER_MAX ((size_t)1 << 20) /* an answer about one instance has about 1 kB */
#define RATE_LEAST 65536.0	     /* bytes/s: a slower transfer ends, so that no server holds a delivery for days */

struct stow {
	struct http_client *client;
	double timeout, connect_timeout; /* s */
	bool answered;
};

/* A multipart body of one part: `head`, the file, `tail`. */
struct part {
	char boundary[48], head[128], tail[64];
	size_t n_head, n_tail;
	int fd;
	uint64_t size; /* of the file */
};

static void describe_service(const struct destination_conf *d, char *ret, size_t size)
{
	snprintf(ret, size, "STOW-RS to %s%s", d->url, d->credentials[0] ? ", with credentials" : "");
}

static double longest_wait(const struct destination_conf *d)
{
	return d->answer_timeout;
}

static void close_client(void *session)
{
	struct stow *s = session;

	if (!s)
		return;
	http_client_close(s->client);
	free(s);
}

/* Does not connect. */
static int open_client(const struct config *config, const struct destination_conf *d, const struct scu_context *contexts,
		       size_t n, void **ret_session, struct err *err)
{
	struct scu_peer peer = destination_peer(config, d);
	const struct http_target target = {
		.url = d->url,
		.authorities = peer.tls.authorities,
		.crl = peer.tls.crl,
		.certificate = peer.tls.certificate,
		.key = peer.tls.key,
		.credentials = d->credentials,
		.connect_timeout = d->connect_timeout,
		.idle_timeout = d->answer_timeout,
		.answer_max = ANSWER_MAX,
	};
	struct stow *s = calloc(1, sizeof(*s));
	int ret;

	(void)contexts;
	(void)n;
	if (!s)
		return err_set(err, ENOMEM, "no memory for a request to %s", d->host);
	s->timeout = d->answer_timeout;
	s->connect_timeout = d->connect_timeout;
	ret = http_client_open(&target, &s->client, err);
	if (ret < 0)
		close_client(s);
	else
		*ret_session = s;
	return ret;
}

/* Open the file, and write what surrounds it. The boundary is random: no file contains it. */
static int begin_part(struct part *p, const char *path, struct err *err)
{
	uint64_t random[2];
	struct stat st;

	*p = (struct part){.fd = -1};
	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return err_set(err, EIO, "no random numbers: %s", strerror(errno));
	p->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (p->fd < 0 || fstat(p->fd, &st) < 0)
		return err_set(err, errno, "cannot open %s: %s", path, strerror(errno));
	p->size = (uint64_t)st.st_size;
	snprintf(p->boundary, sizeof(p->boundary), "tomonode-%016llx%016llx", (unsigned long long)random[0],
		 (unsigned long long)random[1]);
	p->n_head = (size_t)snprintf(p->head, sizeof(p->head), "--%s\r\nContent-Type: application/dicom\r\n\r\n", p->boundary);
	p->n_tail = (size_t)snprintf(p->tail, sizeof(p->tail), "\r\n--%s--\r\n", p->boundary);
	return 0;
}

/* See struct http_body. */
static ssize_t read_part(void *context, uint64_t at, void *ret_bytes, size_t n)
{
	const struct part *p = context;
	const char *text = at < p->n_head ? p->head + at : NULL;
	size_t left = text ? p->n_head - (size_t)at : 0;
	ssize_t got;

	if (!text && at - p->n_head < p->size) {
		if (n > p->size - (at - p->n_head)) /* the file may have grown */
			n = (size_t)(p->size - (at - p->n_head));
		do
			got = pread(p->fd, ret_bytes, n, (off_t)(at - p->n_head));
		while (got < 0 && errno == EINTR);
		return got < 0 ? -errno : got;
	}
	if (!text) {
		text = p->tail + (at - p->n_head - p->size);
		left = p->n_tail - (size_t)(at - p->n_head - p->size);
	}
	n = n < left ? n : left;
	memcpy(ret_bytes, text, n);
	return (ssize_t)n;
}

/* Send the file, and wait for the answer. */
static int post_object(struct stow *s, const char *path, const char *sop_instance, struct store_result *ret_result,
		       struct err *err)
{
	char type[160];
	const char *const headers[] = {type, "Accept: application/dicom+json", NULL};
	struct http_answer answer;
	struct http_body body = {.read = read_part};
	struct http_request request = {.path = "/studies", .headers = headers, .body = &body};
	struct part part;
	int ret = begin_part(&part, path, err);

	if (ret < 0)
		goto out;
	snprintf(type, sizeof(type), "Content-Type: multipart/related; type=\"application/dicom\"; boundary=%s", part.boundary);
	body.context = &part;
	body.size = part.n_head + part.size + part.n_tail;
	request.total_timeout = s->connect_timeout + 2 * s->timeout + (double)body.size / RATE_LEAST;
	ret = http_client_send(s->client, &request, &answer, err);
	if (ret < 0)
		goto out;
	stow_classify(&(struct stow_answer){answer.status, answer.content_type, answer.body, answer.size}, sop_instance,
		      ret_result);
	ret_result->failure.wait = answer.retry_after;
out:
	if (part.fd >= 0)
		close(part.fd);
	return ret;
}

/* If nothing was answered to the first object, the service is down. */
static void stow_object(void *session, const char *path, const char *sop_instance, struct store_result *ret)
{
	struct stow *s = session;
	struct err err = {0};

	if (post_object(s, path, sop_instance, ret, &err) < 0) {
		*ret = (struct store_result){
			.outcome = DELIVER_TRANSIENT,
			.failure = {.down = !s->answered && err.code != EIO, .rejected = deliver_needs_operator(err.code)},
			.code = err.code};
		snprintf(ret->reason, sizeof(ret->reason), "%s", err.msg);
		return;
	}
	s->answered = true;
}

const struct destination_kind_actions destination_stow = {
	.verb = "STOW-RS",
	.describe = describe_service,
	.longest_wait = longest_wait,
	.open = open_client,
	.store = stow_object,
	.close = close_client,
	.role = SANDBOX_DELIVER,
};
