/* SPDX-License-Identifier: Apache-2.0 */
/* result_frames.c - a ring of frames that are acquired, submitted, encoded and written.
 *
 * - Slots are used in a fixed order, so that frames are written in the order of submission. The counters of struct frames satisfy
 * written <= encoding <= submitted <= acquired <= written + n_slots. An uncompressed frame counts as encoded when it is
 * submitted.
 * - Encoders finish in any order (slot->ready); the writer waits for the oldest frame.
 * - After the first error no further frame is written, because a file with a missing frame would be wrong.
 */
#include "node/result/result_frames.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "dicom/pixels/jpegls.h"

#define ENCODERS_MAX 16
#define SLOTS_PLAIN 3 /* one slot is filled, one waits, one is written */
#define SLOTS_MAX (ENCODERS_MAX + 2)

struct slot {
	uint16_t *values;
	void *code;	     /* the encoded frame; NULL: frames are not compressed */
	size_t code_size, n; /* allocated and used bytes of `code` */
	struct dicom_writer *writer;
	bool ready; /* the frame can be written */
};

struct frames {
	long columns, rows;
	int bits; /* to encode; 0: frames are not compressed */
	struct slot slots[SLOTS_MAX];
	size_t n_slots;
	/* Numbers of frames: acquired by the caller, submitted, begun by an encoder, written to a file. */
	size_t acquired, submitted, encoding, written;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t writer, encoders[ENCODERS_MAX];
	bool writing;
	int n_encoders;
	bool stop;
	int rc; /* error of the first failure */
	struct err err;
};

static void fail_frames(struct frames *f, int rc, const struct err *err)
{
	pthread_mutex_lock(&f->lock);
	if (!f->rc) {
		f->rc = rc;
		f->err = *err;
	}
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
}

/* Encode a frame. Most fit into the buffer of a plain frame; if noise makes one longer, its slot gets a buffer of the largest
 * possible size. */
static int encode_frame(struct frames *f, struct slot *s, struct err *err)
{
	int rc = jpegls_encode(s->values, f->columns, f->rows, f->bits, s->code, s->code_size, &s->n, err);
	size_t most = jpegls_bound(f->columns, f->rows);

	if (rc != -ENOBUFS || s->code_size >= most)
		return rc;
	free(s->code);
	s->code = malloc(most);
	s->code_size = s->code ? most : 0;
	if (!s->code)
		return err_set(err, ENOMEM, "no memory for an encoded frame");
	return jpegls_encode(s->values, f->columns, f->rows, f->bits, s->code, s->code_size, &s->n, err);
}

static void *encode_frames(void *arg)
{
	struct frames *f = arg;

	pthread_mutex_lock(&f->lock);
	for (;;) {
		struct err err = {0};
		struct slot *s;
		int rc;

		while (!f->stop && !f->rc && f->encoding == f->submitted)
			pthread_cond_wait(&f->changed, &f->lock);
		if (f->stop || f->rc)
			break;
		s = &f->slots[f->encoding++ % f->n_slots];
		pthread_mutex_unlock(&f->lock);
		rc = encode_frame(f, s, &err);
		if (rc < 0)
			fail_frames(f, rc, &err);
		pthread_mutex_lock(&f->lock);
		s->ready = rc >= 0;
		pthread_cond_broadcast(&f->changed);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

static void *write_frames(void *arg)
{
	struct frames *f = arg;

	pthread_mutex_lock(&f->lock);
	for (;;) {
		struct slot *s = &f->slots[f->written % f->n_slots];
		struct err err = {0};
		int rc;

		while (!f->stop && !f->rc && !(f->written < f->submitted && s->ready))
			pthread_cond_wait(&f->changed, &f->lock);
		if (f->stop || f->rc)
			break;
		pthread_mutex_unlock(&f->lock);
		rc = f->bits ? dicom_writer_fragment(s->writer, s->code, s->n, &err)
			     : dicom_writer_frame(s->writer, s->values, &err);
		if (rc < 0)
			fail_frames(f, rc, &err);
		pthread_mutex_lock(&f->lock);
		s->ready = false;
		f->written += rc >= 0;
		pthread_cond_broadcast(&f->changed);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

int frames_open(long columns, long rows, int bits, int encoders, struct frames **ret_frames, struct err *err)
{
	size_t n = (size_t)columns * (size_t)rows;
	struct frames *f = calloc(1, sizeof(*f));
	int rc = 0;

	if (!f)
		return err_set(err, ENOMEM, "no memory for a queue of frames");
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->changed, NULL);
	f->columns = columns;
	f->rows = rows;
	f->bits = bits;
	if (encoders < 1 || encoders > ENCODERS_MAX)
		encoders = encoders < 1 ? 1 : ENCODERS_MAX;
	f->n_slots = bits ? (size_t)encoders + 2 : SLOTS_PLAIN;
	for (size_t i = 0; i < f->n_slots; i++) {
		struct slot *s = &f->slots[i];

		s->values = malloc(n * sizeof(uint16_t));
		s->code_size = bits ? n * sizeof(uint16_t) + n / 8 + 4096 : 0;
		s->code = bits ? malloc(s->code_size) : NULL;
		if (!s->values || (bits && !s->code))
			rc = err_set(err, ENOMEM, "no memory for %zu frames of %ld x %ld", f->n_slots, columns, rows);
	}
	for (int i = 0; rc == 0 && bits && i < encoders; i++)
		f->n_encoders += !pthread_create(&f->encoders[f->n_encoders], NULL, encode_frames, f);
	f->writing = rc == 0 && !pthread_create(&f->writer, NULL, write_frames, f);
	if (rc == 0 && (!f->writing || (bits && f->n_encoders == 0)))
		rc = err_set(err, EAGAIN, "cannot start a thread to encode or write frames");
	if (rc < 0) {
		frames_close(f);
		return rc;
	}
	*ret_frames = f;
	return 0;
}

struct frames *frames_close(struct frames *f)
{
	if (!f)
		return NULL;
	pthread_mutex_lock(&f->lock);
	f->stop = true;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
	for (int i = 0; i < f->n_encoders; i++)
		pthread_join(f->encoders[i], NULL);
	if (f->writing)
		pthread_join(f->writer, NULL);
	for (size_t i = 0; i < f->n_slots; i++) {
		free(f->slots[i].values);
		free(f->slots[i].code);
	}
	pthread_cond_destroy(&f->changed);
	pthread_mutex_destroy(&f->lock);
	free(f);
	return NULL;
}

uint16_t *frames_acquire(struct frames *f)
{
	uint16_t *values = NULL;

	pthread_mutex_lock(&f->lock);
	while (!f->rc && f->acquired == f->written + f->n_slots)
		pthread_cond_wait(&f->changed, &f->lock);
	if (!f->rc)
		values = f->slots[f->acquired++ % f->n_slots].values;
	pthread_mutex_unlock(&f->lock);
	return values;
}

void frames_submit(struct frames *f, struct dicom_writer *writer)
{
	struct slot *s;

	pthread_mutex_lock(&f->lock);
	s = &f->slots[f->submitted++ % f->n_slots];
	s->writer = writer;
	s->ready = !f->bits;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
}

int frames_finish(struct frames *f, struct err *err)
{
	int rc;

	pthread_mutex_lock(&f->lock);
	while (!f->rc && f->written < f->submitted)
		pthread_cond_wait(&f->changed, &f->lock);
	rc = f->rc;
	if (rc && err)
		*err = f->err;
	pthread_mutex_unlock(&f->lock);
	return rc;
}
