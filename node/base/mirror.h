/* SPDX-License-Identifier: Apache-2.0 */
/* Reverse the order of the values of a row of pixels, in place. */
#ifndef TOMONODE_NODE_MIRROR_H
#define TOMONODE_NODE_MIRROR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Reverse the order of the four values of a word. */
static inline uint64_t mirror_word(uint64_t w)
{
	w = w >> 32 | w << 32;
	return (w >> 16 & 0x0000ffff0000ffffu) | (w & 0x0000ffff0000ffffu) << 16;
}

static inline void mirror_values(uint16_t *values, size_t n)
{
	uint16_t *a = values, *b = values + n;

	for (; b - a >= 8; a += 4) { /* four values from either end */
		uint64_t first, last;

		b -= 4;
		memcpy(&first, a, sizeof(first));
		memcpy(&last, b, sizeof(last));
		first = mirror_word(first);
		last = mirror_word(last);
		memcpy(a, &last, sizeof(last));
		memcpy(b, &first, sizeof(first));
	}
	while (b - a >= 2) {
		uint16_t value = *a;

		*a++ = *--b;
		*b = value;
	}
}

#endif
