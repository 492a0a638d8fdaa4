/* SPDX-License-Identifier: Apache-2.0 */
/* packed_file.c - see node/format/packed_file.h. */
#include "node/format/packed_file.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#define BLOCK 262144 /* bytes */
#define LEVEL 6	     /* of compression: zlib's default */

struct packed_file {
	struct atomic_file *file; /* NULL: count only */
	enum packing packing;
	uint64_t stored; /* bytes */
	z_stream z;
	unsigned char out[BLOCK];
};

int packed_file_open(struct atomic_file *file, enum packing packing, struct packed_file **ret_file, struct err *err)
{
	struct packed_file *p = calloc(1, sizeof(*p));
	int window = packing == PACKING_GZIP ? MAX_WBITS + 16 : MAX_WBITS; /* plus 16: a gzip header */

	if (!p || (packing != PACKING_NONE && deflateInit2(&p->z, LEVEL, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY) != Z_OK)) {
		free(p);
		return err_set(err, ENOMEM, "no memory to compress a file");
	}
	p->file = file;
	p->packing = packing;
	*ret_file = p;
	return 0;
}

static int store_bytes(struct packed_file *p, const void *bytes, size_t n, struct err *err)
{
	p->stored += n;
	return p->file && n > 0 ? atomic_file_write(p->file, bytes, n, err) : 0;
}

/* Compress what zlib's input has. */
static int compress_input(struct packed_file *p, int flush, struct err *err)
{
	int rc = 0;

	do {
		p->z.next_out = p->out;
		p->z.avail_out = sizeof(p->out);
		if (deflate(&p->z, flush) == Z_STREAM_ERROR)
			return err_set(err, EIO, "zlib cannot compress the values");
		rc = store_bytes(p, p->out, sizeof(p->out) - p->z.avail_out, err);
	} while (rc == 0 && p->z.avail_out == 0);
	return rc;
}

int packed_file_write(struct packed_file *p, const void *bytes, size_t n, struct err *err)
{
	const unsigned char *at = bytes;
	int rc = 0;

	if (p->packing == PACKING_NONE)
		return store_bytes(p, bytes, n, err);
	while (rc == 0 && n > 0) {
		size_t part = n < BLOCK ? n : BLOCK;

		p->z.next_in = (unsigned char *)at; /* zlib only reads it */
		p->z.avail_in = (uInt)part;
		rc = compress_input(p, Z_NO_FLUSH, err);
		at += part;
		n -= part;
	}
	return rc;
}

int packed_file_finish(struct packed_file *p, uint64_t *ret_bytes, struct err *err)
{
	int rc = p->packing == PACKING_NONE ? 0 : compress_input(p, Z_FINISH, err);

	if (rc == 0 && ret_bytes)
		*ret_bytes = p->stored;
	return rc;
}

void packed_file_free(struct packed_file *p)
{
	if (p && p->packing != PACKING_NONE)
		deflateEnd(&p->z);
	free(p);
}
