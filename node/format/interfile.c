/* SPDX-License-Identifier: Apache-2.0 */
/* interfile.c - the table of the kinds of Interfile headers, and a check of the byte order of stored values. */
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

static uint64_t load_integer(const uint8_t *p, int bytes, bool big_endian)
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

/* ---- byte order ---- */

#define SAMPLE 1000000	  /* values that are looked at */
#define SAMPLE_LEAST 16	  /* that are not 0 */
#define FLOAT_LEAST 1e-25 /* sizes of floats that occur */
#define FLOAT_MOST 1e25
#define FLOAT_USUAL_LEAST 0x1p-40 /* of counts and factors */
#define FLOAT_USUAL_MOST 0x1p40
#define FLOAT_PLAIN 0x1p8 /* 1 / this to this: factors that are powers of two, which look like integers in the other order */
#define SMALL_INTEGER 0x1p23

static const char *order_name(const struct interfile *f, int other)
{
	return f->big_endian != (bool)other ? "BIGENDIAN" : "LITTLEENDIAN";
}

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

static void read_value(const struct interfile *f, const uint8_t *p, struct interfile_sample *r)
{
	uint64_t first = ((uint64_t)1 << 8 * (f->bytes - 1)) - 1, value = load_integer(p, f->bytes, f->big_endian);

	if (value == 0 || (f->number == INTERFILE_FLOAT && as_number(value, f->number, f->bytes) == 0)) /* -0 */
		return;
	r->there++;
	for (int other = 0; other < 2; other++) {
		uint64_t bits = load_integer(p, f->bytes, f->big_endian != (bool)other);
		double v, integer;

		if (is_strange(f, bits) && r->strange[other]++ == 0 && !other)
			r->example = as_number(bits, f->number, f->bytes);
		if (f->bytes < 4)
			continue;
		v = fabs(as_number(bits, INTERFILE_FLOAT, f->bytes));
		r->usual[other] += v >= FLOAT_USUAL_LEAST && v <= FLOAT_USUAL_MOST;
		r->mantissa[other] += (bits & first) != 0;
		r->plain += !other && v * FLOAT_PLAIN >= 1 && v <= FLOAT_PLAIN;
		integer = fabs(as_number(load_integer(p, f->bytes, f->big_endian == (bool)other), INTERFILE_SIGNED, f->bytes));
		r->small[!other] += integer < SMALL_INTEGER && isfinite(v); /* not NaN in the other order */
	}
}

/* Refuse the number format if the values make sense only in the other one. Floats have a narrow range of exponents, which
 * integers have only if their first or last byte is nearly constant; integers of counts are denormal floats. Return 0 if it may
 * be right.
 */
static int check_number(const struct interfile *f, const struct interfile_sample *r, struct err *err)
{
	bool is_float = f->number == INTERFILE_FLOAT;
	double all = 0.98 * (double)r->there, most = 0.2 * (double)r->there;
	bool as_float[2];
	int order = -1;

	for (int other = 0; other < 2; other++)
		as_float[other] = (double)r->usual[other] >= all && (double)r->mantissa[other] >= most;
	for (int other = 1; other >= 0; other--)
		if (is_float ? (double)r->small[other] >= all && !as_float[0] && !as_float[1] && (double)r->plain < all
			     : as_float[other])
			order = other;
	if (order < 0)
		return 0;
	return err_set(
		err, EBADMSG,
		"number format := %s: the values are no %ss: read as %ss of %d bytes in the order %s, they are usual ones: "
		"the key should be number format := %s%s%s",
		is_float			? "float"
		: f->number == INTERFILE_SIGNED ? "signed integer"
						: "unsigned integer",
		is_float ? "float" : "integer", is_float ? "integer" : "float", f->bytes, order_name(f, order),
		is_float ? "signed integer" : "float", order ? ", with imagedata byte order := " : "",
		order ? order_name(f, order) : "");
}

static int refuse_order(const struct interfile *f, double percent, double example, struct err *err)
{
	const char *now = order_name(f, 0), *other = order_name(f, 1);
	const char *what = f->number == INTERFILE_FLOAT ? "are no numbers that occur" : "are multiples of 256";

	if (f->order_stated)
		return err_set(
			err, EBADMSG,
			"imagedata byte order := %s: %.3g %% of the values that are not 0 %s, such as %g, and it is not so in "
			"the other order: the key should be %s",
			now, percent, what, example, other);
	return err_set(
		err, EBADMSG,
		"the header has no \"imagedata byte order\", and in the order %s, which is then assumed, %.3g %% of the "
		"values that are not 0 %s, such as %g, and it is not so in the other order: add imagedata byte order := %s",
		now, percent, what, example, other);
}

void interfile_sample_add(const struct interfile *f, const uint8_t *bytes, size_t first, size_t n, struct interfile_sample *o)
{
	size_t planes, values, step;

	interfile_shape(f, &planes, &values);
	step = (planes * values / SAMPLE + 1) | 1; /* odd: sizes of axes are often powers of 2 */
	for (size_t i = (first + step - 1) / step * step; f->bytes > 1 && i < first + n; i += step)
		read_value(f, bytes + (i - first) * (size_t)f->bytes, o);
}

int interfile_sample_check(const struct interfile *f, const struct interfile_sample *o, struct err *err)
{
	double most = f->number == INTERFILE_FLOAT ? 0.05 : 0.95;
	int rc;

	if (o->there < SAMPLE_LEAST)
		return 0;
	rc = check_number(f, o, err);
	if (rc < 0 || (double)o->strange[0] <= most * (double)o->there || o->strange[1] * 10 >= o->strange[0])
		return rc;
	return refuse_order(f, 100 * (double)o->strange[0] / (double)o->there, o->example, err);
}

int interfile_check_order(const struct interfile *f, const uint8_t *bytes, struct err *err)
{
	struct interfile_sample o = {0};
	size_t planes, values;

	interfile_shape(f, &planes, &values);
	interfile_sample_add(f, bytes + f->offset, 0, planes * values, &o);
	return interfile_sample_check(f, &o, err);
}
