/* SPDX-License-Identifier: Apache-2.0 */
/* digest.c - XXH3-128 digests of buffers, of the rest of a file, and of whole files in pieces.
 *
 * - Files are read with read() into a buffer that fits the cache; they are not mapped, because a bad sector or a file that is
 *   truncated meanwhile must be an error, not a signal.
 * - The digest of a file in pieces can be computed by several threads, so that it takes little time even for a large result.
 */
#include "node/base/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h> /* the same functions, with the widest vectors that the processor has */
#endif

#include "node/base/thread_pool.h"

#define BUFFER (256u << 10)

struct digest {
	XXH3_state_t *state;
};

static void to_hex(XXH128_hash_t hash, char ret_hex[DIGEST_SIZE])
{
	XXH128_canonical_t c;

	XXH128_canonicalFromHash(&c, hash);
	for (size_t i = 0; i < sizeof(c.digest); i++)
		snprintf(ret_hex + 2 * i, 3, "%02x", c.digest[i]);
}

struct digest *digest_create(void)
{
	struct digest *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->state = XXH3_createState();
	if (!d->state)
		return digest_free(d);
	digest_begin(d);
	return d;
}

struct digest *digest_free(struct digest *d)
{
	if (!d)
		return NULL;
	XXH3_freeState(d->state);
	free(d);
	return NULL;
}

void digest_begin(struct digest *d)
{
	XXH3_128bits_reset(d->state);
}

void digest_add(struct digest *d, const void *bytes, size_t n)
{
	XXH3_128bits_update(d->state, bytes, n);
}

void digest_end(const struct digest *d, char ret_hex[DIGEST_SIZE])
{
	to_hex(XXH3_128bits_digest(d->state), ret_hex);
}

void digest_end_bytes(const struct digest *d, unsigned char ret_hash[DIGEST_BYTES])
{
	XXH128_canonical_t c;

	XXH128_canonicalFromHash(&c, XXH3_128bits_digest(d->state));
	memcpy(ret_hash, c.digest, DIGEST_BYTES);
}

/* Add at most `most` bytes of the file, or all up to its end. Returns 0 or the negative errno. */
static int add_file(struct digest *d, int fd, uint64_t most, bool (*stopped)(void *ctx), void *ctx)
{
	unsigned char *buffer = malloc(BUFFER);
	int ret = buffer ? 0 : -ENOMEM;

	while (ret == 0 && most > 0) {
		ssize_t n = read(fd, buffer, most < BUFFER ? (size_t)most : BUFFER);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			ret = -errno;
		if (n <= 0)
			break;
		digest_add(d, buffer, (size_t)n);
		most -= (uint64_t)n;
		if (stopped && stopped(ctx))
			ret = -ECANCELED;
	}
	free(buffer);
	return ret;
}

int digest_rest(int fd, bool (*stopped)(void *ctx), void *ctx, char ret_hex[DIGEST_SIZE], struct err *err)
{
	struct digest *d = digest_create();
	int ret;

	if (!d)
		return err_set(err, ENOMEM, "no memory for a digest");
	ret = add_file(d, fd, UINT64_MAX, stopped, ctx);
	if (ret == 0)
		digest_end(d, ret_hex);
	digest_free(d);
	return ret < 0 ? err_set(err, -ret, "%s", ret == -ECANCELED ? "cancelled" : strerror(-ret)) : 0;
}

bool digest_error_is_transient(int code)
{
	return code == ENOMEM || code == EMFILE || code == ENFILE || code == EACCES || code == EPERM || code == ECANCELED;
}

/* ---- whole files in pieces ---- */

struct piece {
	size_t file;
	uint64_t at;
	int code; /* errno; 0: the piece was read */
	unsigned char hash[DIGEST_BYTES];
};

struct pieces {
	const char *const *paths;
	struct piece *list;
	size_t n;
};

int digest_piece(const char *path, uint64_t at, unsigned char ret_hash[DIGEST_BYTES])
{
	struct digest *d = digest_create();
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret = 0;

	if (!d || fd < 0)
		ret = d ? -errno : -ENOMEM;
	else if (lseek(fd, (off_t)at, SEEK_SET) < 0)
		ret = -errno;
	if (ret == 0)
		ret = add_file(d, fd, DIGEST_PIECE, NULL, NULL);
	if (ret == 0)
		digest_end_bytes(d, ret_hash);
	if (fd >= 0)
		close(fd);
	digest_free(d);
	return ret;
}

static void do_piece(void *ctx, size_t part)
{
	struct pieces *p = ctx;
	struct piece *piece = &p->list[part];

	piece->code = -digest_piece(p->paths[piece->file], piece->at, piece->hash);
}

/* Divide a file into pieces. An empty file gets one piece, so that it differs from an unreadable file, which has none. */
static int add_pieces(struct pieces *p, size_t file, uint64_t size, struct err *err)
{
	size_t more = size ? (size_t)((size - 1) / DIGEST_PIECE) + 1 : 1;
	struct piece *list = realloc(p->list, (p->n + more) * sizeof(list[0]));

	if (!list)
		return err_set(err, ENOMEM, "no memory for the digest of a file of %llu bytes", (unsigned long long)size);
	p->list = list;
	for (size_t i = 0; i < more; i++)
		p->list[p->n++] = (struct piece){.file = file, .at = i * DIGEST_PIECE};
	return 0;
}

static int list_pieces(struct pieces *p, size_t n, int *ret_code, struct err *err)
{
	int ret = 0;

	for (size_t i = 0; ret == 0 && i < n; i++) {
		struct stat st;

		ret_code[i] = stat(p->paths[i], &st) < 0 ? errno : 0;
		if (ret_code[i] == 0)
			ret = add_pieces(p, i, (uint64_t)st.st_size, err);
	}
	return ret;
}

int digest_files(const char *const *paths, size_t n, int threads, char (*ret_hex)[DIGEST_SIZE], int *ret_code, struct err *err)
{
	struct pieces p = {.paths = paths};
	struct thread_pool *pool = NULL;
	struct digest *d = digest_create();
	int ret = d ? list_pieces(&p, n, ret_code, err) : err_set(err, ENOMEM, "no memory for a digest");

	if (ret == 0)
		ret = thread_pool_create(p.n < 2 ? 1 : threads, &pool, err);
	if (ret < 0)
		goto out;
	thread_pool_run(pool, p.n, do_piece, &p);
	for (size_t i = 0, at = 0; i < n; i++) {
		ret_hex[i][0] = '\0';
		digest_begin(d);
		for (; at < p.n && p.list[at].file == i; at++) {
			if (p.list[at].code && ret_code[i] == 0)
				ret_code[i] = p.list[at].code;
			digest_add(d, p.list[at].hash, DIGEST_BYTES);
		}
		if (ret_code[i] == 0)
			digest_end(d, ret_hex[i]);
	}
out:
	thread_pool_free(pool);
	free(p.list);
	digest_free(d);
	return ret;
}
