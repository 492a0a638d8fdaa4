/* SPDX-License-Identifier: Apache-2.0 */
/* Write grey pictures with 8 or 16 bits and the size of a pixel as PNG (pHYs), which libpng's simplified interface cannot do: it
 * writes no size, and 16 bits only as linear light. */
#ifndef TOMONODE_NODE_PNG_WRITE_H
#define TOMONODE_NODE_PNG_WRITE_H

#include <stdint.h>

#include "kernels/err.h"

#define PNG_SIDE_MAX 16384 /* largest width and height */

/* Replace the file `path` atomically. grey: width * height values, rows from the top, at most 2^bits - 1; bits: 8 or 16; mm: size
 * of a pixel. EFBIG: a side is longer than PNG_SIDE_MAX. */
int png_write(const char *path, int width, int height, int bits, double mm, const uint16_t *grey, struct err *err);

#endif
