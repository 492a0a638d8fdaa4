/* SPDX-License-Identifier: Apache-2.0 */
#include "node/deliver/stow.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/deliver/destination.h"
#include "node/web/http_client.h"

#define ANSWER_MAX ((size_t)1 << 20) /* an answer about one instance has about 1 kB */
#define RATE_LEAST 65536.0	     /* bytes/s: a slower transfer ends, so that no server holds a delivery for days */

struct stow {
	struct http_client *client;
	double timeout, connect_timeout; /* s */
	double retry_after;
};

/* A multipart body of one part: `head`, the file, `tail`. */
struct part {
	char boundary[48], head[128], tail[64];
	size_t n_head, n_tail;
	int fd;
	uint64_t size; /* of the file */
};

int stow_open(const struct config *config, const struct destination_conf *d, struct stow **ret_stow, struct err *err)
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

	if (!s)
		return err_set(err, ENOMEM, "no memory for a request to %s", d->host);
	s->timeout = d->answer_timeout;
	s->connect_timeout = d->connect_timeout;
	ret = http_client_open(&target, &s->client, err);
	if (ret < 0)
		stow_close(s);
	else
		*ret_stow = s;
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

int stow_store(struct stow *s, const char *path, const char *sop_instance, struct stow_result *ret_result, struct err *err)
{
	char type[160];
	const char *const headers[] = {type, "Accept: application/dicom+json", NULL};
	struct http_answer answer;
	struct http_body body = {.read = read_part};
	struct http_request request = {.path = "/studies", .headers = headers, .body = &body};
	struct part part;
	int ret = begin_part(&part, path, err);

	s->retry_after = 0;
	if (ret < 0)
		goto out;
	snprintf(type, sizeof(type), "Content-Type: multipart/related; type=\"application/dicom\"; boundary=%s", part.boundary);
	body.context = &part;
	body.size = part.n_head + part.size + part.n_tail;
	request.total_timeout = s->connect_timeout + 2 * s->timeout + (double)body.size / RATE_LEAST;
	ret = http_client_send(s->client, &request, &answer, err);
	if (ret < 0)
		goto out;
	s->retry_after = answer.retry_after;
	stow_classify(&(struct stow_answer){answer.status, answer.content_type, answer.body, answer.size}, sop_instance,
		      ret_result);
out:
	if (part.fd >= 0)
		close(part.fd);
	return ret;
}

double stow_retry_after(const struct stow *s)
{
	return s->retry_after;
}

void stow_close(struct stow *s)
{
	if (!s)
		return;
	http_client_close(s->client);
	free(s);
}
