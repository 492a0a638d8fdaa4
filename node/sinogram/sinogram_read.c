/* SPDX-License-Identifier: Apache-2.0 */
/* sinogram_read.c - read the data of a role from the chunks of its objects. One thread reads, another hashes the bytes while they
 * are in the cache: hashing takes about as long as reading. Planes are used while the next ones are read. The size was checked when
 * the acquisition was opened, so that the memory is not larger than the files.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "dicom/core/bulk.h"
#include "node/sinogram/hash_thread.h"
#include "node/sinogram/pet_source.h"
#include "node/sinogram/sinogram_internal.h"

#define PIECE ((size_t)1 << 20) /* bytes per read, small enough for a cache */

/* Read n bytes of a role from `first` on, from whichever chunks have them, and hash them. */
static int read_hashed(const struct sinogram *s, const struct sinogram_part *part, uint64_t first, uint64_t n, uint8_t *bytes,
		       struct hash_thread *hash, struct err *err)
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
			if (rc == 0)
				hash_thread_add(hash, bytes + (at - first), piece);
			at += piece;
		}
		begin += size;
	}
	hash_thread_leave(hash, bytes, n);
	return rc;
}

/* End a hash, and compare it with that of the objects. */
static int check_hash(const struct sinogram_part *part, struct hash_thread *hash, struct err *err)
{
	char found[65];

	hash_thread_hex(hash, found);
	if (strcmp(found, part->sha256) != 0)
		return err_set(err, EBADMSG, "the data's SHA-256 is %s, but %s in the objects", found, part->sha256);
	return 0;
}

int sinogram_read_objects(const struct sinogram *s, enum sinogram_role role, uint8_t **ret_bytes, struct err *err)
{
	const struct sinogram_part *part = &s->part[role];
	struct hash_thread *hash = hash_thread_create();
	uint8_t *bytes = malloc(part->bytes);
	int rc;

	if (!bytes || !hash)
		rc = err_set(err, ENOMEM, "no memory for %llu bytes", (unsigned long long)part->bytes);
	else if ((rc = read_hashed(s, part, 0, part->bytes, bytes, hash, err)) == 0)
		rc = check_hash(part, hash, err);
	if (rc == 0 && part->header.kind != INTERFILE_NONE) /* struct pet_opening: raw */
		rc = interfile_check_order(&part->header, bytes, err);
	if (rc == 0)
		rc = sinogram_check_axes(&part->header, bytes, err);
	hash_thread_free(hash);
	if (rc < 0)
		free(bytes);
	else
		*ret_bytes = bytes;
	return rc;
}

/* A group of planes that is read by a thread, while the one before it is used. */
struct group {
	const struct sinogram *s;
	const struct sinogram_part *part;
	struct hash_thread *hash; /* one for all groups, which are read in turn */
	uint8_t *bytes;
	size_t first, n, values; /* planes; values of each */
	pthread_t thread;
	bool apart; /* the thread was started */
	int rc;
	struct err err;
};

static void *read_group(void *ctx)
{
	struct group *g = ctx;
	const struct interfile *h = &g->part->header;
	uint64_t size = (uint64_t)g->values * (uint64_t)h->bytes;

	g->rc = read_hashed(g->s, g->part, h->offset + g->first * size, g->n * size, g->bytes, g->hash, &g->err);
	return NULL;
}

/* Begin to read the group from plane `first` on, which ends before plane `end`. */
static void begin_group(struct group *g, size_t first, size_t most, size_t end)
{
	g->first = first;
	g->n = end - first < most ? end - first : most;
	g->rc = 0;
	g->apart = g->n > 0 && pthread_create(&g->thread, NULL, read_group, g) == 0;
}

static int end_group(struct group *g, struct err *err)
{
	if (g->apart)
		pthread_join(g->thread, NULL);
	else if (g->n > 0)
		read_group(g);
	if (g->rc < 0 && err)
		*err = g->err;
	return g->rc;
}

/* Read what is before the first plane, for the hash; bytes: for `size` of them. */
static int read_offset(const struct group *g, size_t size, struct err *err)
{
	uint64_t offset = g->part->header.offset, n;
	int rc = 0;

	for (uint64_t at = 0; rc == 0 && at < offset; at += n) {
		n = offset - at < size ? offset - at : size;
		rc = read_hashed(g->s, g->part, at, n, g->bytes, g->hash, err);
	}
	return rc;
}

/* Use group after group of planes. *used: the error of use(), after which the rest is read for its hash. */
static int use_groups(struct group g[2], const struct sinogram_planes *use, size_t planes, struct interfile_sample *order,
		      int *used, struct err *ret_used, struct err *err)
{
	const struct interfile *h = &g[0].part->header;
	size_t values = g[0].values;
	int rc = read_offset(&g[0], use->group * values * (size_t)h->bytes, err);

	if (rc < 0)
		return rc;
	begin_group(&g[0], 0, use->group, planes);
	for (int i = 0; rc == 0 && g[i].n > 0; i = !i) {
		rc = end_group(&g[i], err);
		if (rc < 0)
			break;
		begin_group(&g[!i], g[i].first + g[i].n, use->group, planes);
		interfile_sample_add(h, g[i].bytes, g[i].first * values, g[i].n * values, order);
		if (*used == 0)
			*used = use->use(use->ctx, g[i].bytes, g[i].first, g[i].n, ret_used);
	}
	return rc;
}

int sinogram_read_planes(const struct sinogram *s, enum sinogram_role role, const struct sinogram_planes *use, struct err *err)
{
	const struct sinogram_part *part = &s->part[role];
	struct hash_thread *hash = hash_thread_create();
	struct interfile_sample order = {0};
	struct err why = {0};
	struct group groups[2];
	size_t planes, values, size;
	int used = 0, rc;

	interfile_shape(&part->header, &planes, &values);
	size = use->group * values * (size_t)part->header.bytes;
	for (int i = 0; i < 2; i++)
		groups[i] = (struct group){.s = s, .part = part, .hash = hash, .bytes = malloc(size), .values = values};
	if (!groups[0].bytes || !groups[1].bytes || !hash)
		rc = err_set(err, ENOMEM, "no memory for twice %zu of %zu planes", use->group, planes);
	else if ((rc = use_groups(groups, use, planes, &order, &used, &why, err)) == 0 && (rc = check_hash(part, hash, err)) == 0)
		rc = interfile_sample_check(&part->header, &order, err);
	hash_thread_free(hash);
	free(groups[0].bytes);
	free(groups[1].bytes);
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
