/* MetaImage volumes: a text header (.mhd) and a file of elements beside it. Read: three axes, one unsigned integer of 8 or 16
 * bits an element, plain or compressed (zlib or gzip), of either byte order, axes not turned. Everything else is refused by name.
 *
 * Nothing is taken on trust: sizes are limited before memory is asked for, the data file must lie beside the header and hold
 * exactly the elements that the header promises.
 */
#ifndef TOMONODE_NODE_MHD_H
#define TOMONODE_NODE_MHD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"

#define MHD_HEADER_MAX 65536 /* bytes */
#define MHD_SIDE_MAX 4096    /* elements along an axis */
#define MHD_COUNT_MAX ((size_t)1 << 31)

struct mhd {
	int n[3];	   /* x fastest */
	double h[3];	   /* mm */
	int element_bytes; /* 1, 2 */
	bool most_significant_first;
	bool compressed;
	char data[256]; /* name of the file of elements, in the folder of the header */
};

/* A header in memory; `name` stands for the file in messages. EBADMSG: it contradicts itself or is none; ENOTSUP: it is of a kind
 * that is not read. */
int mhd_parse(const char *text, size_t size, const char *name, struct mhd *ret_header, struct err *err);

/* The header out of a file. */
int mhd_open(const char *path, struct mhd *ret_header, struct err *err);

/* All elements, in blocks in the order of the array: take() gets elements at .. at + n - 1. It stops the reading by an answer
 * below 0, which is given back. `path` is that of the header. */
int mhd_read(const char *path, const struct mhd *header,
	     int (*take)(void *ctx, size_t at, const uint16_t *elements, size_t n, struct err *err), void *ctx, struct err *err);

#endif
