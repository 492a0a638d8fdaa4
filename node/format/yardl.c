/* SPDX-License-Identifier: Apache-2.0 */
/* yardl.c - read values of yardl's binary format through one buffer. */
#include "node/format/yardl_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/base/folder.h"

#define MAGIC "yardl"
#define VERSION 1
#define VARINT_MAX 10 /* bytes of 64 bits */

int yardl_fail(struct yardl_in *in, int code, const char *fmt, ...)
{
	char text[400];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return err_set(in->err, code, "byte %llu: %s", (unsigned long long)yardl_position(in), text);
}

uint64_t yardl_position(const struct yardl_in *in)
{
	return in->base + in->at;
}

uint64_t yardl_left(const struct yardl_in *in)
{
	return in->size - yardl_position(in);
}

int yardl_open(const char *path, struct yardl_in *ret, struct err *err)
{
	struct yardl_in in = {.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
	struct stat st;
	int rc = 0;

	if (in.fd < 0)
		return err_set(err, folder_input_code(errno), "cannot open %s: %s", path, strerror(errno));
	if (fstat(in.fd, &st) < 0 || !S_ISREG(st.st_mode))
		rc = err_set(err, EBADMSG, "%s is not a regular file", path);
	in.size = rc == 0 ? (uint64_t)st.st_size : 0;
	in.buffer = rc == 0 ? calloc(1, (in.size < YARDL_BUFFER ? (size_t)in.size : YARDL_BUFFER) + YARDL_SPARE) : NULL;
	if (rc == 0 && !in.buffer)
		rc = err_set(err, ENOMEM, "no memory to read %s", path);
	if (rc < 0) {
		close(in.fd);
		return rc;
	}
	*ret = in;
	return 0;
}

void yardl_close(struct yardl_in *in)
{
	if (in->buffer)
		close(in->fd);
	free(in->buffer);
	*in = (struct yardl_in){.fd = -1};
}

static void leave_buffer(struct yardl_in *in)
{
	if (in->leave)
		in->leave(in->ctx);
}

int yardl_seek(struct yardl_in *in, uint64_t position)
{
	leave_buffer(in);
	in->base = position;
	in->at = in->end = 0;
	return 0;
}

/* Have at least n bytes in the buffer, n <= YARDL_BUFFER, or as many as the file has. */
static int fill_buffer(struct yardl_in *in, size_t n)
{
	leave_buffer(in);
	memmove(in->buffer, in->buffer + in->at, in->end - in->at);
	in->base += in->at;
	in->end -= in->at;
	in->at = 0;
	while (in->end < n) {
		uint64_t left = in->size - in->base - in->end;
		size_t want = left < YARDL_BUFFER - in->end ? (size_t)left : YARDL_BUFFER - in->end;
		ssize_t got = want ? pread(in->fd, in->buffer + in->end, want, (off_t)(in->base + in->end)) : 0;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return yardl_fail(in, errno, "cannot read: %s", strerror(errno));
		if (got == 0)
			return yardl_fail(in, EBADMSG, "the file ends within a value");
		in->end += (size_t)got;
	}
	return 0;
}

int yardl_read_bytes(struct yardl_in *in, void *ret, size_t n)
{
	uint8_t *to = ret;

	while (n > 0) {
		size_t part = n < YARDL_BUFFER ? n : YARDL_BUFFER;
		int rc = in->end - in->at < part ? fill_buffer(in, part) : 0;

		if (rc < 0)
			return rc;
		memcpy(to, in->buffer + in->at, part);
		in->at += part;
		to += part;
		n -= part;
	}
	return 0;
}

static int skip_bytes(struct yardl_in *in, uint64_t n)
{
	if (n > yardl_left(in))
		return yardl_fail(in, EBADMSG, "the file ends within a value of %llu bytes", (unsigned long long)n);
	if (n <= in->end - in->at) {
		in->at += (size_t)n;
		return 0;
	}
	return yardl_seek(in, yardl_position(in) + n);
}

/* Decode LEB128 of up to 64 bits. */
static int read_varint(struct yardl_in *in, uint64_t *ret)
{
	uint64_t value = 0;

	for (int i = 0; i < VARINT_MAX; i++) {
		int rc = in->at == in->end ? fill_buffer(in, 1) : 0;
		uint8_t byte;

		if (rc < 0)
			return rc;
		byte = in->buffer[in->at++];
		if (i == VARINT_MAX - 1 && byte > 1)
			break;
		value |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (byte < 0x80) {
			*ret = value;
			return 0;
		}
	}
	return yardl_fail(in, EBADMSG, "an integer of more than 64 bits");
}

static int read_unsigned(struct yardl_in *in, int bits, uint64_t *ret)
{
	uint64_t value = 0;
	int rc = read_varint(in, &value);

	if (rc == 0 && bits < 64 && value >> bits)
		rc = yardl_fail(in, EBADMSG, "%llu does not fit into %d bits", (unsigned long long)value, bits);
	if (rc == 0)
		*ret = value;
	return rc;
}

static int read_signed(struct yardl_in *in, int bits, int64_t *ret)
{
	uint64_t value = 0;
	int rc = read_unsigned(in, bits, &value);

	if (rc == 0) /* zigzag: 0, -1, 1, -2, 2 ... */
		*ret = (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
	return rc;
}

int yardl_read_count(struct yardl_in *in, uint64_t least, uint64_t *ret)
{
	uint64_t n = 0;
	int rc = read_varint(in, &n);

	if (rc == 0 && n > yardl_left(in) / least)
		rc = yardl_fail(in, EBADMSG,
				"%llu items of at least %llu bytes; the file has %llu more bytes: it is cut off or damaged",
				(unsigned long long)n, (unsigned long long)least, (unsigned long long)yardl_left(in));
	if (rc == 0)
		*ret = n;
	return rc;
}

static int read_byte(struct yardl_in *in, uint8_t *ret)
{
	return yardl_read_bytes(in, ret, 1);
}

static int wrong_type(struct yardl_in *in, const struct yardl_type *t, const char *needed)
{
	return yardl_fail(in, ENOTSUP, "the schema has a value of type \"%.60s\" where %s is needed", t->name, needed);
}

int yardl_read_text(struct yardl_in *in, const struct yardl_type *t, char *ret, size_t size)
{
	uint64_t n = 0;
	size_t kept;
	int rc = t->kind == YARDL_STRING ? yardl_read_count(in, 1, &n) : wrong_type(in, t, "a string");

	kept = n < size - 1 ? (size_t)n : size - 1;
	if (rc == 0)
		rc = yardl_read_bytes(in, ret, kept);
	if (rc == 0)
		rc = skip_bytes(in, n - kept);
	if (rc < 0)
		return rc;
	ret[kept] = '\0';
	err_clean(ret);
	return 0;
}

int yardl_read_float(struct yardl_in *in, const struct yardl_type *t, double *ret)
{
	uint8_t bytes[8];
	float single;
	int rc = t->kind == YARDL_FIXED && strncmp(t->name, "float", 5) == 0 ? 0 : wrong_type(in, t, "a floating point number");

	if (rc == 0)
		rc = yardl_read_bytes(in, bytes, (size_t)t->least);
	if (rc < 0)
		return rc;
	if (t->least == sizeof(single)) {
		memcpy(&single, bytes, sizeof(single));
		*ret = (double)single;
	} else {
		memcpy(ret, bytes, sizeof(*ret));
	}
	return 0;
}

int yardl_read_integer(struct yardl_in *in, const struct yardl_type *t, int64_t *ret)
{
	uint64_t value = 0;
	uint8_t byte = 0;
	int rc;

	if (t->kind == YARDL_SIGNED)
		return read_signed(in, t->bits, ret);
	if (t->kind == YARDL_BYTE) {
		rc = read_byte(in, &byte);
		value = byte;
	} else if (t->kind == YARDL_UNSIGNED) {
		rc = read_unsigned(in, t->bits, &value);
	} else {
		rc = wrong_type(in, t, "an integer");
	}
	if (rc == 0 && value > INT64_MAX)
		rc = yardl_fail(in, EBADMSG, "%llu is too large", (unsigned long long)value);
	if (rc == 0)
		*ret = (int64_t)value;
	return rc;
}

/* Read the sizes that precede an array, and check that the file can have so many elements. */
static int read_sizes(struct yardl_in *in, int rank, uint64_t least, uint64_t *ret_size)
{
	uint64_t elements = 1, most = yardl_left(in) / least;

	for (int i = 0; i < rank; i++) {
		int rc = read_unsigned(in, 64, &ret_size[i]);

		if (rc < 0)
			return rc;
		if (ret_size[i] > 0 && elements > most / ret_size[i])
			return yardl_fail(in, EBADMSG, "an array larger than the file: size %d is %llu", i + 1,
					  (unsigned long long)ret_size[i]);
		elements *= ret_size[i] > 0 ? ret_size[i] : 1; /* sizes behind a size of 0 are limited, too */
	}
	return 0;
}

int yardl_read_shape(struct yardl_in *in, const struct yardl_type *t, int *ret_rank, uint64_t *ret_size)
{
	uint64_t rank = 1;
	int rc;

	if (t->kind != YARDL_VECTOR && t->kind != YARDL_ARRAY)
		return wrong_type(in, t, "a list");
	if (t->kind == YARDL_VECTOR && t->length == YARDL_OPEN) {
		rc = yardl_read_count(in, t->of[0]->least, &ret_size[0]);
	} else if (t->length != YARDL_OPEN) {
		bool plane = t->kind == YARDL_ARRAY && t->size[1] > 0;

		rank = plane ? 2 : 1;
		ret_size[0] = plane ? t->size[0] : (uint64_t)t->length;
		ret_size[1] = plane ? t->size[1] : 0;
		rc = t->least > yardl_left(in) ? yardl_fail(in, EBADMSG, "the file ends within a list of fixed length") : 0;
	} else {
		rank = (uint64_t)t->rank;
		rc = t->rank == YARDL_OPEN ? read_unsigned(in, 64, &rank) : 0;
		if (rc == 0 && rank > YARDL_RANK_MAX)
			rc = yardl_fail(in, ENOTSUP, "an array of %llu dimensions", (unsigned long long)rank);
		if (rc == 0)
			rc = read_sizes(in, (int)rank, t->of[0]->least, ret_size);
	}
	if (rc == 0)
		*ret_rank = (int)rank;
	return rc;
}

int yardl_read_list(struct yardl_in *in, const struct yardl_type *t, uint64_t *ret_n)
{
	uint64_t size[YARDL_RANK_MAX] = {0};
	int rank = 0, rc = yardl_read_shape(in, t, &rank, size);

	if (rc == 0 && rank != 1)
		rc = yardl_fail(in, ENOTSUP, "an array of %d dimensions where a list is needed", rank);
	if (rc == 0)
		*ret_n = size[0];
	return rc;
}

int yardl_read_choice(struct yardl_in *in, const struct yardl_type *t, const struct yardl_type **ret)
{
	uint8_t index = 0;
	int rc;

	if (t->kind != YARDL_UNION) {
		*ret = t;
		return 0;
	}
	rc = read_byte(in, &index);
	if (rc == 0 && index >= t->n)
		rc = yardl_fail(in, EBADMSG, "alternative %d of a union that has %zu", index, t->n);
	if (rc == 0)
		*ret = t->of[index]->kind == YARDL_NULL ? NULL : t->of[index];
	return rc;
}

/* ---- values that are not needed ---- */

static int skip_items(struct yardl_in *in, const struct yardl_type *t)
{
	uint64_t size[YARDL_RANK_MAX] = {0}, n = 1;
	int rank = 0, rc = yardl_read_shape(in, t, &rank, size);

	for (int i = 0; i < rank; i++)
		n *= size[i]; /* yardl_read_shape() has compared the product with the file */
	if (rc == 0 && (t->of[0]->kind == YARDL_FIXED || t->of[0]->kind == YARDL_BYTE))
		return skip_bytes(in, n * t->of[0]->least);
	for (uint64_t i = 0; rc == 0 && i < n; i++)
		rc = yardl_skip(in, t->of[0]);
	return rc;
}

static int skip_map(struct yardl_in *in, const struct yardl_type *t)
{
	uint64_t n = 0;
	int rc = yardl_read_count(in, t->of[0]->least, &n);

	for (uint64_t i = 0; rc == 0 && i < n; i++) {
		rc = yardl_skip(in, t->of[0]);
		rc = rc == 0 ? yardl_skip(in, t->of[1]) : rc;
	}
	return rc;
}

static int skip_union(struct yardl_in *in, const struct yardl_type *t)
{
	const struct yardl_type *of = NULL;
	int rc = yardl_read_choice(in, t, &of);

	return rc == 0 && of ? yardl_skip(in, of) : rc;
}

static int skip_record(struct yardl_in *in, const struct yardl_type *t)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < t->n; i++)
		rc = yardl_skip(in, t->of[i]);
	return rc;
}

int yardl_skip(struct yardl_in *in, const struct yardl_type *t)
{
	uint64_t n = 0;
	int rc = 0;

	switch (t->kind) {
	case YARDL_NULL:
		break;
	case YARDL_BYTE:
	case YARDL_FIXED:
		rc = skip_bytes(in, t->least);
		break;
	case YARDL_UNSIGNED:
	case YARDL_SIGNED:
		rc = read_unsigned(in, t->bits, &n);
		break;
	case YARDL_STRING:
		rc = yardl_read_count(in, 1, &n);
		rc = rc == 0 ? skip_bytes(in, n) : rc;
		break;
	case YARDL_RECORD:
		rc = skip_record(in, t);
		break;
	case YARDL_UNION:
		rc = skip_union(in, t);
		break;
	case YARDL_VECTOR:
	case YARDL_ARRAY:
		rc = skip_items(in, t);
		break;
	case YARDL_MAP:
		rc = skip_map(in, t);
		break;
	}
	return rc;
}

/* ---- the start of a file ---- */

int yardl_read_start(struct yardl_in *in, char **ret_text, size_t *ret_size)
{
	uint8_t head[9];
	uint64_t n = 0;
	char *text;
	int rc = yardl_left(in) < sizeof(head) ? 0 : yardl_read_bytes(in, head, sizeof(head));

	if (rc < 0)
		return rc;
	if (in->size < sizeof(head) || memcmp(head, MAGIC, strlen(MAGIC)) != 0)
		return err_set(in->err, EBADMSG, "not a yardl file: it does not start with \"" MAGIC "\"");
	if (head[5] != VERSION || head[6] || head[7] || head[8])
		return err_set(in->err, ENOTSUP, "yardl format version %d.%d.%d.%d; supported: %d.0.0.0", head[5], head[6],
			       head[7], head[8], VERSION);
	rc = yardl_read_count(in, 1, &n);
	if (rc == 0 && n > YARDL_SCHEMA_MAX)
		rc = yardl_fail(in, ENOTSUP, "a schema of %llu bytes; supported: up to %zu", (unsigned long long)n,
				YARDL_SCHEMA_MAX);
	text = rc == 0 ? malloc((size_t)n + 1) : NULL;
	if (rc == 0)
		rc = text ? yardl_read_bytes(in, text, (size_t)n) : err_set(in->err, ENOMEM, "no memory for the schema");
	if (rc < 0) {
		free(text);
		return rc;
	}
	text[n] = '\0';
	*ret_text = text;
	*ret_size = (size_t)n;
	return 0;
}
