/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8, one character at a time. */
#ifndef TOMONODE_KERNELS_UTF8_H
#define TOMONODE_KERNELS_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Decode the first character of a terminated text. Return its length, 1 to 4 bytes. 0: the bytes are not well-formed (Unicode,
 * table 3-7: no overlong forms, surrogates, or values above U+10FFFF); *ret_code is then unchanged. */
size_t utf8_decode(const char *text, uint32_t *ret_code);

#endif
