/* SPDX-License-Identifier: Apache-2.0 */
/* interfile.c - the table of the kinds of Interfile headers, and the conversion of stored values. */
#include <assert.h>
#include <string.h>

#include "node/format/interfile_internal.h"

static const struct interfile_type *const types[INTERFILE_KIND_COUNT] = {
#define X(constant, name) [INTERFILE_##constant] = &interfile_##name,
	INTERFILE_KINDS(X)
#undef X
};

const struct interfile_type *interfile_type(enum interfile_kind kind)
{
	return types[kind];
}

void interfile_clear(struct interfile *f)
{
	if (types[f->kind] && types[f->kind]->clear)
		types[f->kind]->clear(f);
}

void interfile_shape(const struct interfile *f, size_t *ret_planes, size_t *ret_values)
{
	types[f->kind]->shape(f, ret_planes, ret_values);
}

uint64_t interfile_bytes(const struct interfile *f)
{
	size_t planes, values;

	interfile_shape(f, &planes, &values);
	return (uint64_t)f->bytes * planes * values; /* the parser limits the sides: the product is below 2^64 */
}

void interfile_extent(const struct interfile *f, char *ret_text, size_t size)
{
	types[f->kind]->extent(f, ret_text, size);
}

void interfile_plane(const struct interfile *f, const uint8_t *bytes, size_t plane, float *ret_values)
{
	types[f->kind]->plane(f, bytes + f->offset, plane, ret_values);
}

/* ---- values ---- */

static uint64_t load(const uint8_t *p, int bytes, bool big_endian)
{
	uint64_t v = 0;

	for (int i = 0; i < bytes; i++)
		v = v << 8 | p[big_endian ? i : bytes - 1 - i];
	return v;
}

static double as_number(uint64_t v, enum interfile_number number, int bytes)
{
	double d;
	float s;
	uint32_t low = (uint32_t)v;
	int unused = 64 - 8 * bytes;

	switch (number) {
	case INTERFILE_SIGNED:
		return (double)((int64_t)(v << unused) >> unused);
	case INTERFILE_UNSIGNED:
		return (double)v;
	default:
		break;
	}
	if (bytes == 8) {
		memcpy(&d, &v, sizeof(d));
		return d;
	}
	memcpy(&s, &low, sizeof(s));
	return (double)s;
}

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "interfile_convert() copies floats of little-endian files");

void interfile_convert(const struct interfile *f, const uint8_t *p, size_t n, float *ret)
{
	bool plain = f->number == INTERFILE_FLOAT && f->bytes == 4 && !f->big_endian && f->scale == 1;

	if (plain) {
		memcpy(ret, p, n * sizeof(*ret));
		return;
	}
	for (size_t i = 0; i < n; i++)
		ret[i] = (float)(as_number(load(p + i * (size_t)f->bytes, f->bytes, f->big_endian), f->number, f->bytes) *
				 f->scale);
}
