/* SPDX-License-Identifier: Apache-2.0 */
/* Read files of yardl's binary format by the schema that each contains (PETSIRD: node/format/petsird.h).
 *
 * The file is "yardl", int32 1, the schema (JSON) as a string, then the steps of the protocol. Encoding: unsigned integers
 * LEB128; signed integers, enumerations, dates and times zigzag LEB128; bool and 8-bit integers one byte; floats as in memory,
 * little endian; a string: number of bytes and UTF-8; a union (optional values, too): one byte, the index of the alternative; a
 * vector: number of items unless its length is fixed; an array: its sizes unless they are fixed, after its rank if that is open;
 * in C order. A stream: number of items and items, repeatedly, until the number is 0.
 *
 * A file is untrusted. The schema is compiled to a tree of at most YARDL_TYPES_MAX types, YARDL_DEPTH_MAX deep: a type that
 * contains itself is refused. A number of items is compared with the bytes that are left in the file, each item having at least
 * the bytes that its type needs, before anything is allocated or repeated. A buffer of fixed size is the only copy of the data.
 *
 * Functions return 0 or a negative errno value with the reason in `in->err`: EBADMSG (invalid or truncated), ENOTSUP (a type that
 * is not supported). */
#ifndef TOMONODE_NODE_YARDL_INTERNAL_H
#define TOMONODE_NODE_YARDL_INTERNAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"

#define YARDL_SCHEMA_MAX ((size_t)1 << 20) /* bytes */
#define YARDL_TYPES_MAX 8192
#define YARDL_DEPTH_MAX 64
#define YARDL_RANK_MAX 8
#define YARDL_BUFFER ((size_t)1 << 20)
#define YARDL_SPARE 16	/* bytes behind the buffer that may be read, whatever they are */
#define YARDL_OPEN (-1) /* length of a vector, rank of an array: in the file */

enum yardl_kind {
	YARDL_NULL, /* only as an alternative of a union */
	YARDL_BYTE, /* bool, 8-bit integers */
	YARDL_UNSIGNED,
	YARDL_SIGNED,
	YARDL_FIXED, /* floating point: `least` bytes */
	YARDL_STRING,
	YARDL_RECORD,
	YARDL_UNION,
	YARDL_VECTOR,
	YARDL_ARRAY,
	YARDL_MAP, /* of[0]: keys, of[1]: values */
};

struct yardl_type {
	enum yardl_kind kind;
	const char *name;	      /* of its definition, or of the primitive type; "": none. Part of the schema */
	int bits;		      /* of integers */
	uint64_t least;		      /* smallest number of bytes of a value */
	size_t n;		      /* fields, alternatives; 1 of vectors and arrays */
	const struct yardl_type **of; /* their types */
	const char **names;	      /* names of the fields, tags of the alternatives; may be "" */
	int64_t length;		      /* of a vector: items; of an array of fixed sizes: elements; else YARDL_OPEN */
	int rank;		      /* of an array: how many sizes precede it, 0 if they are fixed, or YARDL_OPEN */
	uint64_t size[2];	      /* fixed sizes of an array of up to two dimensions */
};

struct yardl_schema {
	json_t *root;
	struct yardl_type *types; /* YARDL_TYPES_MAX, stable */
	size_t n_types;
};

/* Compile the schema; the types of the steps are found by yardl_step(). */
int yardl_schema_parse(const char *text, size_t size, struct yardl_schema *ret, struct err *err);
void yardl_schema_clear(struct yardl_schema *s);
/* Compile the type of step `index` of the protocol and check its name. stream: the step must be a stream, and *ret is the type of
 * its items. */
int yardl_step(struct yardl_schema *s, const char *protocol, size_t index, const char *name, bool stream,
	       const struct yardl_type **ret, struct err *err);
/* Return the index of a record's field or of a union's alternative; -1: none. */
int yardl_find(const struct yardl_type *t, const char *name);
/* Return the symbol of a value of an enumeration; NULL: t is none, or has no such value. */
const char *yardl_symbol(const struct yardl_schema *s, const struct yardl_type *t, int64_t value);

struct yardl_in {
	int fd;
	uint64_t size; /* of the file */
	uint64_t base; /* position of buffer[0] in the file */
	size_t at, end;
	uint8_t *buffer;	  /* YARDL_BUFFER bytes, or those of a smaller file */
	void (*leave)(void *ctx); /* called before these bytes are replaced; NULL: nothing */
	void *ctx;
	struct err *err; /* set by the caller before each use */
};

int yardl_open(const char *path, struct yardl_in *ret, struct err *err); /* a regular file */
void yardl_close(struct yardl_in *in);
int yardl_seek(struct yardl_in *in, uint64_t position);
uint64_t yardl_position(const struct yardl_in *in);
uint64_t yardl_left(const struct yardl_in *in); /* bytes up to the end of the file */
/* Set the error "byte N: ..." with the position in the file. */
int yardl_fail(struct yardl_in *in, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Read "yardl", the version and the schema. The caller frees *ret_text. */
int yardl_read_start(struct yardl_in *in, char **ret_text, size_t *ret_size);
int yardl_read_bytes(struct yardl_in *in, void *ret, size_t n);
/* Read a number of items that have at least `least` bytes each. */
int yardl_read_count(struct yardl_in *in, uint64_t least, uint64_t *ret);
/* A string: stores what fits into `size` bytes, terminated and cleaned (err_clean()). */
int yardl_read_text(struct yardl_in *in, const struct yardl_type *t, char *ret, size_t size);
int yardl_read_float(struct yardl_in *in, const struct yardl_type *t, double *ret);    /* a FIXED of 4 or 8 bytes */
int yardl_read_integer(struct yardl_in *in, const struct yardl_type *t, int64_t *ret); /* an integer of any kind, enumerations */
/* Read the sizes of a vector (rank 1) or an array. Its elements follow, of type t->of[0]. ret_size: YARDL_RANK_MAX. */
int yardl_read_shape(struct yardl_in *in, const struct yardl_type *t, int *ret_rank, uint64_t *ret_size);
/* The same for a list: a vector or an array of one dimension. */
int yardl_read_list(struct yardl_in *in, const struct yardl_type *t, uint64_t *ret_n);
/* If t is a union, read which alternative follows: *ret is its type, or NULL for null. Else *ret is t. */
int yardl_read_choice(struct yardl_in *in, const struct yardl_type *t, const struct yardl_type **ret);
int yardl_skip(struct yardl_in *in, const struct yardl_type *t);

#endif
