/* SPDX-License-Identifier: Apache-2.0 */
/* interfile_values.c - stored values as floats: a loop for each type and byte order, which the compiler vectorises. */
#include <assert.h>
#include <byteswap.h>
#include <string.h>

#include "node/format/interfile_internal.h"

typedef void convert_values(const uint8_t *restrict p, size_t n, double scale, float *restrict ret);

#define AS_IT_IS(word) (word)
/* word: an unsigned integer of the size of `type`; order: what brings its bytes into the order of this machine. */
#define CONVERTS(name, type, word, order)                                                                                        \
	static void name(const uint8_t *restrict p, size_t n, double scale, float *restrict ret)                                 \
	{                                                                                                                        \
		for (size_t i = 0; i < n; i++) {                                                                                 \
			word stored;                                                                                             \
			type value;                                                                                              \
                                                                                                                                 \
			memcpy(&stored, p + i * sizeof(stored), sizeof(stored));                                                 \
			stored = order(stored);                                                                                  \
			memcpy(&value, &stored, sizeof(value));                                                                  \
			ret[i] = (float)((double)value * scale);                                                                 \
		}                                                                                                                \
	}

CONVERTS(convert_signed1, int8_t, uint8_t, AS_IT_IS)
CONVERTS(convert_signed2, int16_t, uint16_t, AS_IT_IS)
CONVERTS(convert_signed4, int32_t, uint32_t, AS_IT_IS)
CONVERTS(convert_signed8, int64_t, uint64_t, AS_IT_IS)
CONVERTS(convert_unsigned1, uint8_t, uint8_t, AS_IT_IS)
CONVERTS(convert_unsigned2, uint16_t, uint16_t, AS_IT_IS)
CONVERTS(convert_unsigned4, uint32_t, uint32_t, AS_IT_IS)
CONVERTS(convert_unsigned8, uint64_t, uint64_t, AS_IT_IS)
CONVERTS(convert_float4, float, uint32_t, AS_IT_IS)
CONVERTS(convert_float8, double, uint64_t, AS_IT_IS)
CONVERTS(convert_swapped_signed2, int16_t, uint16_t, bswap_16)
CONVERTS(convert_swapped_signed4, int32_t, uint32_t, bswap_32)
CONVERTS(convert_swapped_signed8, int64_t, uint64_t, bswap_64)
CONVERTS(convert_swapped_unsigned2, uint16_t, uint16_t, bswap_16)
CONVERTS(convert_swapped_unsigned4, uint32_t, uint32_t, bswap_32)
CONVERTS(convert_swapped_unsigned8, uint64_t, uint64_t, bswap_64)
CONVERTS(convert_swapped_float4, float, uint32_t, bswap_32)
CONVERTS(convert_swapped_float8, double, uint64_t, bswap_64)

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are swapped if they are big-endian");

void interfile_convert(const struct interfile *f, const uint8_t *p, size_t n, float *ret)
{
	static convert_values *const converts[][9][2] = {
		/* [bytes][big-endian] */
		[INTERFILE_SIGNED] = {[1] = {convert_signed1, convert_signed1},
				      [2] = {convert_signed2, convert_swapped_signed2},
				      [4] = {convert_signed4, convert_swapped_signed4},
				      [8] = {convert_signed8, convert_swapped_signed8}},
		[INTERFILE_UNSIGNED] = {[1] = {convert_unsigned1, convert_unsigned1},
					[2] = {convert_unsigned2, convert_swapped_unsigned2},
					[4] = {convert_unsigned4, convert_swapped_unsigned4},
					[8] = {convert_unsigned8, convert_swapped_unsigned8}},
		[INTERFILE_FLOAT] =
			{[4] = {convert_float4, convert_swapped_float4}, [8] = {convert_float8, convert_swapped_float8}},
	};

	if (f->number == INTERFILE_FLOAT && f->bytes == 4 && !f->big_endian && f->scale == 1)
		memcpy(ret, p, n * sizeof(*ret));
	else
		converts[f->number][f->bytes][f->big_endian](p, n, f->scale, ret);
}
