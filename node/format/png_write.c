/* SPDX-License-Identifier: Apache-2.0 */
/* png_write.c - see node/format/png_write.h. A PNG is a signature and chunks: length, name, data, CRC of name and data
 * (https://www.w3.org/TR/png-3). Rows are stored without a filter. */
#include "node/format/png_write.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "node/base/atomic_file.h"

static void put32(unsigned char *at, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		at[i] = (unsigned char)(v >> (24 - 8 * i));
}

static int put_chunk(struct atomic_file *f, const char *name, const unsigned char *data, size_t n, struct err *err)
{
	unsigned char head[8], tail[4];
	uLong crc;
	int rc;

	put32(head, (uint32_t)n);
	memcpy(head + 4, name, 4);
	crc = crc32(crc32(0, NULL, 0), head + 4, 4);
	if (n > 0)
		crc = crc32(crc, data, (uInt)n);
	put32(tail, (uint32_t)crc);
	rc = atomic_file_write(f, head, sizeof(head), err);
	if (rc == 0 && n > 0)
		rc = atomic_file_write(f, data, n, err);
	return rc == 0 ? atomic_file_write(f, tail, sizeof(tail), err) : rc;
}

/* Compress the rows; each begins with the number of its filter, 0. */
static int pack_rows(int width, int height, int bits, const uint16_t *grey, unsigned char **ret, size_t *ret_n, struct err *err)
{
	size_t row = 1 + (size_t)width * (size_t)(bits / 8), n = row * (size_t)height;
	uLongf packed_n = compressBound(n);
	unsigned char *rows = calloc(1, n), *packed = malloc(packed_n);

	if (!rows || !packed) {
		free(rows);
		free(packed);
		return err_set(err, ENOMEM, "no memory for a picture of %d x %d", width, height);
	}
	for (int y = 0; y < height; y++) {
		unsigned char *at = rows + (size_t)y * row + 1;

		for (int x = 0; x < width; x++) {
			uint16_t v = grey[(size_t)y * (size_t)width + (size_t)x];

			if (bits == 16)
				*at++ = (unsigned char)(v >> 8);
			*at++ = (unsigned char)v;
		}
	}
	if (compress2(packed, &packed_n, rows, n, Z_DEFAULT_COMPRESSION) != Z_OK) {
		free(rows);
		free(packed);
		return err_set(err, EIO, "a picture of %d x %d cannot be compressed", width, height);
	}
	free(rows);
	*ret = packed;
	*ret_n = packed_n;
	return 0;
}

static int put_picture(struct atomic_file *f, int width, int height, int bits, double mm, const unsigned char *packed, size_t n,
		       struct err *err)
{
	unsigned char header[13] = {0}, size[9] = {0};
	int rc = atomic_file_write(f, "\x89PNG\r\n\x1a\n", 8, err);

	put32(header, (uint32_t)width);
	put32(header + 4, (uint32_t)height);
	header[8] = (unsigned char)bits;	  /* colour type 0, grey; deflate; no interlace */
	put32(size, (uint32_t)lround(1000 / mm)); /* pixels per metre, both directions */
	put32(size + 4, (uint32_t)lround(1000 / mm));
	size[8] = 1; /* the unit is the metre */
	if (rc == 0)
		rc = put_chunk(f, "IHDR", header, sizeof(header), err);
	if (rc == 0)
		rc = put_chunk(f, "pHYs", size, sizeof(size), err);
	if (rc == 0)
		rc = put_chunk(f, "IDAT", packed, n, err);
	return rc == 0 ? put_chunk(f, "IEND", NULL, 0, err) : rc;
}

int png_write(const char *path, int width, int height, int bits, double mm, const uint16_t *grey, struct err *err)
{
	struct atomic_file *f = NULL;
	unsigned char *packed = NULL;
	size_t n = 0;
	int rc;

	if (width > PNG_SIDE_MAX || height > PNG_SIDE_MAX)
		return err_set(err, EFBIG, "a picture of %d x %d pixels; allowed: sides up to %d", width, height, PNG_SIDE_MAX);
	rc = pack_rows(width, height, bits, grey, &packed, &n, err);
	if (rc == 0)
		rc = atomic_file_open(path, &f, err);
	if (rc == 0) {
		rc = put_picture(f, width, height, bits, mm, packed, n, err);
		if (rc == 0)
			rc = atomic_file_close(f, err);
		else
			atomic_file_abort(f);
	}
	free(packed);
	return rc;
}
