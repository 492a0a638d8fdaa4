/* SPDX-License-Identifier: Apache-2.0 */
/* hash_thread.c - a digest computed by a thread: what waits for it is one range of memory, to which adjacent bytes are added. */
#include "node/sinogram/hash_thread.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "dicom/core/bulk.h"

struct hash_thread {
	struct dicom_digest *digest;
	pthread_t thread;
	bool apart; /* the thread was started; else its caller hashes */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	const uint8_t *at, *end; /* not yet hashed */
	bool stop;
};

static void *hash_ranges(void *ctx)
{
	struct hash_thread *h = ctx;

	pthread_mutex_lock(&h->lock);
	for (;;) {
		const uint8_t *at, *end;

		while (h->at == h->end && !h->stop)
			pthread_cond_wait(&h->changed, &h->lock);
		if (h->at == h->end)
			break;
		at = h->at;
		end = h->end;
		pthread_mutex_unlock(&h->lock);
		dicom_digest_add(h->digest, at, (size_t)(end - at));
		pthread_mutex_lock(&h->lock);
		h->at = end;
		pthread_cond_broadcast(&h->changed);
	}
	pthread_mutex_unlock(&h->lock);
	return NULL;
}

struct hash_thread *hash_thread_create(void)
{
	struct hash_thread *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->changed, NULL);
	h->digest = dicom_digest_new();
	if (!h->digest)
		return hash_thread_free(h);
	h->apart = pthread_create(&h->thread, NULL, hash_ranges, h) == 0;
	return h;
}

struct hash_thread *hash_thread_free(struct hash_thread *h)
{
	if (!h)
		return NULL;
	if (h->apart) {
		pthread_mutex_lock(&h->lock);
		h->stop = true;
		pthread_cond_broadcast(&h->changed);
		pthread_mutex_unlock(&h->lock);
		pthread_join(h->thread, NULL);
	}
	pthread_cond_destroy(&h->changed);
	pthread_mutex_destroy(&h->lock);
	dicom_digest_free(h->digest);
	free(h);
	return NULL;
}

/* Wait until all is hashed. The caller holds the lock. */
static void wait_for_all(struct hash_thread *h)
{
	while (h->at != h->end)
		pthread_cond_wait(&h->changed, &h->lock);
}

void hash_thread_add(struct hash_thread *h, const void *bytes, size_t n)
{
	const uint8_t *first = bytes;

	if (!h->apart) {
		dicom_digest_add(h->digest, bytes, n);
		return;
	}
	pthread_mutex_lock(&h->lock);
	if (first != h->end) {
		wait_for_all(h);
		h->at = first;
	}
	h->end = first + n;
	pthread_cond_broadcast(&h->changed);
	pthread_mutex_unlock(&h->lock);
}

void hash_thread_leave(struct hash_thread *h, const void *bytes, size_t n)
{
	const uint8_t *first = bytes;

	pthread_mutex_lock(&h->lock);
	if (h->at < first + n && first < h->end)
		wait_for_all(h);
	pthread_mutex_unlock(&h->lock);
}

void hash_thread_hex(struct hash_thread *h, char ret_hex[65])
{
	pthread_mutex_lock(&h->lock);
	wait_for_all(h);
	pthread_mutex_unlock(&h->lock);
	dicom_digest_hex(h->digest, ret_hex);
}
