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

/* Read n bytes of a role from `first` on, from whichever chunks have them. */
static int read_chunks(const struct sinogram *s, const struct sinogram_part *part, uint64_t first, uint64_t n, uint8_t *bytes,
		       struct follower *f, struct err *err)
{
	uint64_t begin = 0, at = first; /* of the chunk; of what is read next */
	int rc = 0;

	for (size_t c = 0; rc == 0 && c < part->n_chunks && at < first + n; c++) {
		const struct dicom_file *file = s->files[part->file[c]];
		uint32_t tag = sinogram_tag(part->block[c], SINOGRAM_CHUNK);
		uint64_t size = 0, end;

		if (!dicom_bulk_size(file, tag, &size)) /* checked when the acquisition was opened */
			size = 0;
		end = begin + size < first + n ? begin + size : first + n; /* the last chunk is padded to an even size */
		while (rc == 0 && at < end) {
			size_t piece = end - at < PIECE ? (size_t)(end - at) : PIECE;

			rc = dicom_bulk_read(file, tag, at - begin, bytes + (at - first), piece, err);
			at += piece;
			if (rc == 0)
				signal_ready(f, at - first, false);
		}
		begin += size;
	}
	return rc;
}

/* Read n bytes from `first` on, and add them to a hash. */
static int read_hashed(const struct sinogram *s, const struct sinogram_part *part, uint64_t first, uint64_t n, uint8_t *bytes,
		       struct dicom_digest *digest, struct err *err)
{
	struct follower f = {
		.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER, .bytes = bytes, .digest = digest};
	bool alone = pthread_create(&f.thread, NULL, hash_chunks, &f) != 0; /* no second thread: hash after reading */
	int rc = read_chunks(s, part, first, n, bytes, &f, err);

	signal_ready(&f, f.ready, true);
	if (alone)
		hash_chunks(&f);
	else
		pthread_join(f.thread, NULL);
	return rc;
}

/* End a hash, and compare it with that of the objects. */
static int check_hash(const struct sinogram_part *part, struct dicom_digest *digest, struct err *err)
{
	char found[65];

	dicom_digest_hex(digest, found);
	if (strcmp(found, part->sha256) != 0)
		return err_set(err, EBADMSG, "the data's SHA-256 is %s, but %s in the objects", found, part->sha256);
	return 0;
}

int sinogram_read_objects(const struct sinogram *s, enum sinogram_role role, uint8_t **ret_bytes, struct err *err)
{
	const struct sinogram_part *part = &s->part[role];
	struct dicom_digest *digest = dicom_digest_new();
	uint8_t *bytes = malloc(part->bytes);
	int rc;

	if (!bytes || !digest)
		rc = err_set(err, ENOMEM, "no memory for %llu bytes", (unsigned long long)part->bytes);
	else if ((rc = read_hashed(s, part, 0, part->bytes, bytes, digest, err)) == 0)
		rc = check_hash(part, digest, err);
	if (rc == 0 && part->header.kind != INTERFILE_NONE) /* struct pet_opening: raw */
		rc = interfile_check_order(&part->header, bytes, err);
	if (rc == 0)
		rc = sinogram_check_axes(&part->header, bytes, err);
	dicom_digest_free(digest);
	if (rc < 0)
		free(bytes);
	else
		*ret_bytes = bytes;
	return rc;
}

/* Read group after group of planes, and use them. *used: the error of use(), after which the rest is read for its hash. */
static int read_groups(const struct sinogram *s, const struct sinogram_part *part, const struct sinogram_planes *use,
		       uint8_t *bytes, struct dicom_digest *digest, struct interfile_sample *order, int *used,
		       struct err *ret_used, struct err *err)
{
	const struct interfile *h = &part->header;
	size_t planes, values;
	uint64_t size, n;
	int rc = 0;

	interfile_shape(h, &planes, &values);
	size = (uint64_t)values * (uint64_t)h->bytes;
	for (uint64_t at = 0; rc == 0 && at < h->offset; at += n) { /* only for the hash */
		n = h->offset - at < use->group * size ? h->offset - at : use->group * size;
		rc = read_hashed(s, part, at, n, bytes, digest, err);
	}
	for (size_t first = 0; rc == 0 && first < planes; first += use->group) {
		n = planes - first < use->group ? planes - first : use->group;
		rc = read_hashed(s, part, h->offset + first * size, n * size, bytes, digest, err);
		if (rc == 0)
			interfile_sample_add(h, bytes, first * values, n * values, order);
		if (rc == 0 && *used == 0)
			*used = use->use(use->ctx, bytes, first, n, ret_used);
	}
	return rc;
}

int sinogram_read_planes(const struct sinogram *s, enum sinogram_role role, const struct sinogram_planes *use, struct err *err)
{
	const struct sinogram_part *part = &s->part[role];
	struct dicom_digest *digest = dicom_digest_new();
	struct interfile_sample order = {0};
	struct err why = {0};
	size_t planes, values;
	uint8_t *bytes;
	int used = 0, rc;

	interfile_shape(&part->header, &planes, &values);
	bytes = malloc(use->group * values * (size_t)part->header.bytes);
	if (!bytes || !digest)
		rc = err_set(err, ENOMEM, "no memory for %zu of %zu planes", use->group, planes);
	else if ((rc = read_groups(s, part, use, bytes, digest, &order, &used, &why, err)) == 0 &&
		 (rc = check_hash(part, digest, err)) == 0)
		rc = interfile_sample_check(&part->header, &order, err);
	dicom_digest_free(digest);
	free(bytes);
	if (rc < 0)
		err_prefix(err, "%s", sinogram_role_name(role));
	else if (used < 0 && err)
		*err = why;
	return rc < 0 ? rc : used;
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
