/* An Interfile header as lines of key and value; node/format/interfile*.c and their test alone include it. */
#ifndef TOMONODE_NODE_INTERFILE_LINES_H
#define TOMONODE_NODE_INTERFILE_LINES_H

#include <stddef.h>

#include "kernels/err.h"

struct interfile;

struct interfile_line {
	int number;	  /* of the line in the text, from 1 */
	const char *name; /* the key as it stands there */
	const char *key;  /* lower case, without spaces, tabs, '_', '!' and the index */
	int index;	  /* in brackets behind the key; 0: none */
	const char *value;
};

struct interfile_lines {
	size_t n;
	struct interfile_line *line;
	char *memory; /* of all texts */
};

/* EBADMSG names the line. Nothing is read behind "end of interfile". */
int interfile_lines_read(const char *text, size_t size, struct interfile_lines *ret, struct err *err);
void interfile_lines_clear(struct interfile_lines *l);

/* All look-ups: 1: found; 0: not there, or without a value; EBADMSG: there twice with two values, or none of the allowed values.
 * Keys in their short form. Index 1 is also that of a key without an index. */
int interfile_line_find(const struct interfile_lines *l, const char *key, int index, const struct interfile_line **ret_line,
			struct err *err);
/* n_max numbers at most, "{1, 2, 3}" or a single one. */
int interfile_line_numbers(const struct interfile_lines *l, const char *key, int index, double lo, double hi, int n_max,
			   double *ret, int *ret_n, struct err *err);
int interfile_line_number(const struct interfile_lines *l, const char *key, int index, double lo, double hi, double *ret,
			  struct err *err);
int interfile_line_int(const struct interfile_lines *l, const char *key, int index, int lo, int hi, int *ret, struct err *err);
/* A length in mm: key with "(cm)" or "(mm)" behind it. */
int interfile_line_length(const struct interfile_lines *l, const char *key, int index, double lo, double hi, double *ret_mm,
			  struct err *err);

/* interfile_parallel.c: the keys of parallel beams; f has its numbers already. */
int interfile_read_parallel(const struct interfile_lines *l, struct interfile *f, struct err *err);

/* Value in the short form of keys, for comparison: "Short Float" is "shortfloat". */
void interfile_short(const char *value, char *ret, size_t size);

#endif
