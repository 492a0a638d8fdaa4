/* SPDX-License-Identifier: Apache-2.0 */
/* Split an Interfile header into lines of key and value. Private to node/format/interfile*.c and their test. */
#ifndef TOMONODE_NODE_INTERFILE_LINES_H
#define TOMONODE_NODE_INTERFILE_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/err.h"

struct interfile_line {
	int number;	  /* line number in the text, from 1 */
	const char *name; /* the key as written */
	const char *key;  /* the normalised form: lower case, without spaces, tabs, '_', '!', the '%' at its beginning and
			     the index */
	int index;	  /* number in brackets after the key; 0: none */
	const char *value;
	bool looked_for; /* interfile_line_find() was asked for this key, with any index */
};

struct interfile_asked; /* the keys that interfile_line_find() was asked for */
struct interfile_lines {
	size_t n;
	struct interfile_line *line;
	char *memory;		       /* holds all texts; owned */
	struct interfile_asked *asked; /* owned */
};

/* Split the text. Text after "end of interfile" is ignored. EBADMSG: a line is invalid; the text names it. */
int interfile_lines_read(const char *text, size_t size, struct interfile_lines *ret, struct err *err);
void interfile_lines_clear(struct interfile_lines *l);

/* All functions below find the line of a key. key: in the normalised form (see struct interfile_line). They return 1: found; 0:
 * no such line, or it has no value; -EBADMSG: there are two with different values, or the value is not allowed. index 1 also
 * finds a key without an index. */
int interfile_line_find(const struct interfile_lines *l, const char *key, int index, const struct interfile_line **ret_line,
			struct err *err);
/* Read at most n_max numbers, "{1, 2, 3}" or a single one, each between lo and hi. */
int interfile_line_numbers(const struct interfile_lines *l, const char *key, int index, double lo, double hi, int n_max,
			   double *ret, int *ret_n, struct err *err);
int interfile_line_number(const struct interfile_lines *l, const char *key, int index, double lo, double hi, double *ret,
			  struct err *err);
int interfile_line_int(const struct interfile_lines *l, const char *key, int index, int lo, int hi, int *ret, struct err *err);
/* Read a length and return it in mm. The key ends in "(cm)" or "(mm)", as documents write it; a header may have the other unit, or
 * both if they give the same length. */
int interfile_line_length(const struct interfile_lines *l, const char *key, int index, double lo, double hi, double *ret_mm,
			  struct err *err);

/* Find the line whose key is a misspelt `name`, a key as people write it, among those that nobody has looked for. NULL: none. */
const struct interfile_line *interfile_line_misspelt(const struct interfile_lines *l, const char *name);
/* Find a line that nobody has looked for, whose key has no other words than `name`, in any order: "Ring distance" for "Distance
 * between rings". NULL: none, or the key of `name` is there, in any unit. */
const struct interfile_line *interfile_line_reworded(const struct interfile_lines *l, const char *name);
/* Return EBADMSG for a missing key, with its misspelt line. */
int interfile_line_missing(const struct interfile_lines *l, const char *name, struct err *err);
/* Refuse a line that nobody has looked for if another unit in parentheses, or none, is all that its key differs in from one that
 * was looked for and is not there. EBADMSG: the text has the line and the key with the right unit. */
int interfile_line_check_units(const struct interfile_lines *l, struct err *err);
/* Return EBADMSG for two keys that give the same quantity with different values. */
int interfile_line_refuse_two(const struct interfile_line *a, const struct interfile_line *b, struct err *err);

/* Convert a value to the normalised form of keys, for comparison: "Short Float" becomes "shortfloat". */
void interfile_normalise(const char *value, char *ret, size_t size);

#endif
