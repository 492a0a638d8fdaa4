/* UTF-8, one character at a time. */
#ifndef TOMONODE_KERNELS_UTF8_H
#define TOMONODE_KERNELS_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Decode the character at the beginning of a terminated text. Returns its length, 1 to 4 bytes. 0: the bytes are not well-formed
 * (Unicode, table 3-7: overlong forms, surrogates and values above U+10FFFF are not); *ret_code is then left alone. */
size_t utf8_decode(const char *text, uint32_t *ret_code);

#endif
