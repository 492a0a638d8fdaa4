/* SPDX-License-Identifier: Apache-2.0 */
/* interfile.c - the table of the kinds of Interfile headers; conversion of stored values, and a check of their byte order. */
#include <assert.h>
#include <errno.h>
#include <math.h>
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

/* ---- byte order ---- */

#define SAMPLE 1000000	  /* values that are looked at */
#define SAMPLE_LEAST 16	  /* that are not 0 */
#define FLOAT_LEAST 1e-25 /* sizes of floats that occur */
#define FLOAT_MOST 1e25

/* Is it a value that does not occur in this byte order? Small floats become denormal or infinite numbers, small integers
 * multiples of 256. */
static bool is_strange(const struct interfile *f, uint64_t bits)
{
	double v;

	if (f->number != INTERFILE_FLOAT)
		return (bits & 0xff) == 0;
	v = fabs(as_number(bits, f->number, f->bytes));
	return !(v == 0 || (v >= FLOAT_LEAST && v <= FLOAT_MOST)); /* also NaN */
}

static int refuse_order(const struct interfile *f, double percent, double example, struct err *err)
{
	const char *now = f->big_endian ? "BIGENDIAN" : "LITTLEENDIAN", *other = f->big_endian ? "LITTLEENDIAN" : "BIGENDIAN";
	const char *what = f->number == INTERFILE_FLOAT ? "are no numbers that occur" : "are multiples of 256";

	if (f->order_stated)
		return err_set(
			err, EBADMSG,
			"imagedata byte order := %s: %.3g %% of the values that are not 0 %s, such as %g, and it is not so in "
			"the other order: the key should be %s",
			now, percent, what, example, other);
	return err_set(err, EBADMSG,
		       "the header has no \"imagedata byte order\", and in the order %s, which is then assumed, %.3g %% of the "
		       "values that "
		       "are not 0 %s, such as %g, and it is not so in the other order: add imagedata byte order := %s",
		       now, percent, what, example, other);
}

int interfile_check_order(const struct interfile *f, const uint8_t *bytes, struct err *err)
{
	size_t planes, values, there = 0, strange = 0, other = 0, step;
	double example = 0, most = f->number == INTERFILE_FLOAT ? 0.05 : 0.95;

	interfile_shape(f, &planes, &values);
	step = (planes * values / SAMPLE + 1) | 1; /* odd: sizes of axes are often powers of 2 */
	for (size_t i = 0; f->bytes > 1 && i < planes * values; i += step) {
		const uint8_t *p = bytes + f->offset + i * (size_t)f->bytes;
		uint64_t bits = load(p, f->bytes, f->big_endian);

		if (bits == 0)
			continue;
		there++;
		other += is_strange(f, load(p, f->bytes, !f->big_endian));
		if (is_strange(f, bits) && strange++ == 0)
			example = as_number(bits, f->number, f->bytes);
	}
	if (there < SAMPLE_LEAST || (double)strange <= most * (double)there || other * 10 >= strange)
		return 0;
	return refuse_order(f, 100 * (double)strange / (double)there, example, err);
}
