/* SPDX-License-Identifier: Apache-2.0 */
/* Functions for the kinds of Interfile headers (struct interfile_type). Private to node/format/interfile*.c. */
#ifndef TOMONODE_NODE_INTERFILE_INTERNAL_H
#define TOMONODE_NODE_INTERFILE_INTERNAL_H

#include "node/format/interfile.h"
#include "node/format/interfile_lines.h"

#define INTERFILE_SIDE_MAX 65535
#define INTERFILE_TINY 1e-9
#define INTERFILE_LENGTH_MAX 20000.0 /* mm */

/* ---- reading: interfile_parse.c ---- */

struct interfile_parser {
	struct interfile_lines lines;
	struct interfile *f; /* number format, byte order and study are already set when interfile_type.read() is called */
	struct err *err;
};

/* Read a value in normalised form. 1: found; 0: missing, *ret is ""; EBADMSG as interfile_line_find(). */
int interfile_word(const struct interfile_parser *p, const char *key, int index, char *ret, size_t size,
		   const struct interfile_line **ret_line);
/* Read "matrix size [k]", which must be present. EBADMSG: it is missing, or not an integer from 1 to `most`. */
int interfile_side(struct interfile_parser *p, int k, int most, int *ret);
/* Read the unit of line integrals: a word that is valid in DICOM (LO) and in a header. */
int interfile_unit(struct interfile_parser *p);
/* Return the error `code` for a value that is not one of `allowed`; the text names the line, the key and the value. */
int interfile_unsupported(const struct interfile_parser *p, const struct interfile_line *line, int code, const char *allowed);
/* Return EBADMSG for a missing key. */
int interfile_missing(const struct interfile_parser *p, const char *key);

/* ---- keys of manufacturers: interfile_vendor.c ---- */

/* ENOTSUP: a key that begins with '%' is not known to be without effect on the data; the text names line, key and value. */
int interfile_vendor_check(const struct interfile_lines *l, struct err *err);

/* ---- converting: interfile.c ---- */

/* Convert n stored values to floats. */
void interfile_convert(const struct interfile *f, const uint8_t *p, size_t n, float *ret);

/* ---- writing: interfile_write.c ---- */

struct interfile_writer {
	char *text;
	size_t n, size;
	bool full; /* the text did not fit into `size` */
};

void interfile_put(struct interfile_writer *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Write a number with as many digits as are needed to read the same double again. */
void interfile_put_digits(struct interfile_writer *w, double v);
void interfile_put_number(struct interfile_writer *w, const char *key, double v); /* "key := v" and a line end */

#endif
