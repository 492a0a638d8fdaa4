/* SPDX-License-Identifier: Apache-2.0 */
#include "node/base/digest_stream.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/list_grow.h"

#define THREAD_FROM ((size_t)1 << 20) /* bytes of a run that is worth a thread */

struct piece {
	unsigned char hash[DIGEST_BYTES];
	bool stale; /* written over since */
};

struct digest_stream {
	struct digest *digest; /* of the last piece, which is not complete */
	struct piece *pieces;
	size_t n, capacity; /* pieces: complete ones, and the last one if `open` */
	bool open;
	uint64_t at; /* bytes so far */
	bool failed; /* no memory for a piece: the file is read at the end */
	/* the run that the thread hashes */
	const unsigned char *bytes;
	size_t left;
	bool has_thread, stop;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
};

struct digest_stream *digest_stream_create(void)
{
	struct digest_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	s->digest = digest_create();
	return s->digest ? s : digest_stream_free(s);
}

struct digest_stream *digest_stream_free(struct digest_stream *s)
{
	if (!s)
		return NULL;
	if (s->has_thread) {
		pthread_mutex_lock(&s->lock);
		s->stop = true;
		pthread_cond_broadcast(&s->changed);
		pthread_mutex_unlock(&s->lock);
		pthread_join(s->thread, NULL);
	}
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	digest_free(s->digest);
	free(s->pieces);
	free(s);
	return NULL;
}

/* ---- hashing ---- */

static bool open_piece(struct digest_stream *s)
{
	if (!list_grow(&s->pieces, s->n, &s->capacity, sizeof(*s->pieces)))
		return false;
	s->pieces[s->n++] = (struct piece){.stale = false};
	s->open = true;
	digest_begin(s->digest);
	return true;
}

static void close_piece(struct digest_stream *s)
{
	if (s->open)
		digest_end_bytes(s->digest, s->pieces[s->n - 1].hash);
	s->open = false;
}

static void hash_bytes(struct digest_stream *s, const unsigned char *bytes, size_t left)
{
	while (left > 0 && !s->failed) {
		uint64_t room = DIGEST_PIECE - s->at % DIGEST_PIECE;
		size_t n = left < room ? left : (size_t)room;

		if (!s->open && !open_piece(s)) {
			s->failed = true;
			break;
		}
		digest_add(s->digest, bytes, n);
		s->at += n;
		bytes += n;
		left -= n;
		if (n == room)
			close_piece(s);
	}
}

static void *hash_runs(void *arg)
{
	struct digest_stream *s = arg;

	pthread_mutex_lock(&s->lock);
	for (;;) {
		while (!s->stop && s->left == 0)
			pthread_cond_wait(&s->changed, &s->lock);
		if (s->stop)
			break;
		pthread_mutex_unlock(&s->lock);
		hash_bytes(s, s->bytes, s->left);
		pthread_mutex_lock(&s->lock);
		s->left = 0;
		pthread_cond_broadcast(&s->changed);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static void mark_stale(struct digest_stream *s, uint64_t at, size_t n)
{
	for (uint64_t i = at / DIGEST_PIECE; i < s->n && i * DIGEST_PIECE < at + n; i++)
		s->pieces[i].stale = true;
}

void digest_stream_wait(struct digest_stream *s)
{
	if (!s->has_thread)
		return;
	pthread_mutex_lock(&s->lock);
	while (s->left > 0)
		pthread_cond_wait(&s->changed, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

void digest_stream_add(struct digest_stream *s, uint64_t at, const void *bytes, size_t n)
{
	size_t again;

	digest_stream_wait(s);
	if (at < s->at) {
		again = n < s->at - at ? n : (size_t)(s->at - at);
		mark_stale(s, at, again);
		if (again == n)
			return;
		at += again;
		bytes = (const unsigned char *)bytes + again;
		n -= again;
	}
	s->failed = s->failed || at > s->at;
	if (n >= THREAD_FROM && !s->has_thread)
		s->has_thread = pthread_create(&s->thread, NULL, hash_runs, s) == 0;
	if (n < THREAD_FROM || !s->has_thread) {
		hash_bytes(s, bytes, n);
		return;
	}
	pthread_mutex_lock(&s->lock);
	s->bytes = bytes;
	s->left = n;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

/* ---- the end ---- */

static int read_all(const char *path, char ret_hex[DIGEST_SIZE], struct err *err)
{
	int code = 0, ret = digest_files(&path, 1, 0, (char(*)[DIGEST_SIZE])ret_hex, &code, err);

	return ret == 0 && code ? err_set(err, code, "%s", strerror(code)) : ret;
}

int digest_stream_end(struct digest_stream *s, const char *path, char ret_hex[DIGEST_SIZE], struct err *err)
{
	int ret = 0;

	digest_stream_wait(s);
	if (s->n == 0 && !s->failed) /* an empty file has one piece */
		s->failed = !open_piece(s);
	close_piece(s);
	if (s->failed)
		return read_all(path, ret_hex, err);
	for (size_t i = 0; ret == 0 && i < s->n; i++)
		if (s->pieces[i].stale)
			ret = digest_piece(path, i * DIGEST_PIECE, s->pieces[i].hash);
	if (ret < 0)
		return err_set(err, -ret, "%s", strerror(-ret));
	digest_begin(s->digest);
	for (size_t i = 0; i < s->n; i++)
		digest_add(s->digest, s->pieces[i].hash, DIGEST_BYTES);
	digest_end(s->digest, ret_hex);
	return 0;
}
