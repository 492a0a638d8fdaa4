/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_read.c - read the data of a role from the chunks of its objects. One thread reads, another hashes the bytes while they
 * are in the cache: hashing takes about as long as reading. The size was checked when the acquisition was opened, so that the
 * memory is not larger than the files.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "dicom/core/bulk.h"
#include "node/sinogram/pet_source.h"
#include "node/sinogram/sinogram_internal.h"

#define PIECE ((size_t)1 << 20) /* bytes per read, small enough for a cache */

struct follower {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t more;
	const uint8_t *bytes;
	uint64_t ready; /* number of bytes read so far */
	bool end;	/* reading has ended */
	struct dicom_digest *digest;
};

static void *hash_chunks(void *ctx)
{
	struct follower *f = ctx;
	uint64_t done = 0, ready;
	bool end;

	do {
		pthread_mutex_lock(&f->lock);
		while (f->ready == done && !f->end)
			pthread_cond_wait(&f->more, &f->lock);
		ready = f->ready;
		end = f->end;
		pthread_mutex_unlock(&f->lock);
		dicom_digest_add(f->digest, f->bytes + done, ready - done);
		done = ready;
	} while (!end);
	return NULL;
}

static void signal_ready(struct follower *f, uint64_t ready, bool end)
{
	pthread_mutex_lock(&f->lock);
	f->ready = ready;
	f->end = end;
	pthread_cond_signal(&f->more);
	pthread_mutex_unlock(&f->lock);
}

static int read_chunks(const struct sinogram *s, const struct sinogram_part *part, uint8_t *bytes, struct follower *f,
		       uint64_t *ret_n, struct err *err)
{
	uint64_t at = 0;
	int rc = 0;

	for (size_t c = 0; rc == 0 && c < part->n_chunks; c++) {
		const struct dicom_file *file = s->files[part->file[c]];
		uint32_t tag = sinogram_tag(part->block[c], SINOGRAM_CHUNK);
		uint64_t n = 0;

		if (!dicom_bulk_size(file, tag, &n)) /* checked when the acquisition was opened */
			n = 0;
		if (n > part->bytes - at) /* the last chunk is padded to an even size */
			n = part->bytes - at;
		for (uint64_t in = 0; rc == 0 && in < n;) {
			size_t piece = n - in < PIECE ? (size_t)(n - in) : PIECE;

			rc = dicom_bulk_read(file, tag, in, bytes + at, piece, err);
			in += piece;
			at += piece;
			if (rc == 0)
				signal_ready(f, at, false);
		}
	}
	*ret_n = at;
	return rc;
}

/* Read the bytes and compute their hash. */
static int read_hashed(const struct sinogram *s, const struct sinogram_part *part, uint8_t *bytes, char ret_hash[65],
		       struct err *err)
{
	struct follower f = {.lock = PTHREAD_MUTEX_INITIALIZER,
			     .more = PTHREAD_COND_INITIALIZER,
			     .bytes = bytes,
			     .digest = dicom_digest_new()};
	uint64_t n = 0;
	bool alone;
	int rc;

	if (!f.digest)
		return err_set(err, ENOMEM, "no memory for a digest");
	alone = pthread_create(&f.thread, NULL, hash_chunks, &f) != 0; /* no second thread: hash after reading */
	rc = read_chunks(s, part, bytes, &f, &n, err);
	signal_ready(&f, rc == 0 ? n : f.ready, true);
	if (alone)
		hash_chunks(&f);
	else
		pthread_join(f.thread, NULL);
	dicom_digest_hex(f.digest, ret_hash);
	dicom_digest_free(f.digest);
	return rc;
}

int sinogram_read_objects(const struct sinogram *s, enum sinogram_role role, uint8_t **ret_bytes, struct err *err)
{
	const struct sinogram_part *part = &s->part[role];
	uint8_t *bytes = malloc(part->bytes);
	char found[65];
	int rc;

	if (!bytes)
		return err_set(err, ENOMEM, "no memory for %llu bytes", (unsigned long long)part->bytes);
	rc = read_hashed(s, part, bytes, found, err);
	if (rc == 0 && strcmp(found, part->sha256) != 0)
		rc = err_set(err, EBADMSG, "the data's SHA-256 is %s, but %s in the objects", found, part->sha256);
	if (rc == 0 && part->header.kind != INTERFILE_NONE) /* struct pet_opening: raw */
		rc = interfile_check_order(&part->header, bytes, err);
	if (rc == 0)
		rc = sinogram_check_axes(&part->header, bytes, err);
	if (rc < 0)
		free(bytes);
	else
		*ret_bytes = bytes;
	return rc;
}

int sinogram_read(const struct sinogram *s, enum sinogram_role role, uint8_t **ret_bytes, struct err *err)
{
	int rc;

	if (!s->part[role].present || !s->source->read)
		return err_set(err, EINVAL, "the acquisition has no objects of role %s", sinogram_role_name(role));
	rc = s->source->read(s, role, ret_bytes, err);
	if (rc < 0)
		err_prefix(err, "%s", sinogram_role_name(role));
	return rc;
}
