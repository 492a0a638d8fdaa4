/* SPDX-License-Identifier: Apache-2.0 */
/* Write grey pictures, and read those that are used as phantoms: PNG (colours are converted to grey, transparent pixels to black)
 * and PGM (P2, P5). */
#ifndef TOMONODE_NODE_PICTURE_H
#define TOMONODE_NODE_PICTURE_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/err.h"

#define PICTURE_SIDE_MAX 8192 /* maximum width and height, pixels */

struct picture {
	int width, height;
	float *value; /* width * height values, rows from the top, 0 (black) to 1 (white); owned */
};

/* Values that are shown black and white; inverse: the other way round. */
struct picture_levels {
	double lo, hi;
	bool inverse;
};

/* Return the grey of a value: 0 to top, rounded; black for NaN. If hi is not above lo, values from hi on are white. */
unsigned picture_grey(const struct picture_levels *w, double value, unsigned top);
/* Convert n values to 8 bits; the caller frees *ret_grey. */
int picture_greys(const struct picture_levels *w, const float *values, size_t n, unsigned char **ret_grey, struct err *err);

bool picture_has_extension(const char *path); /* true: the name ends in .png or .pgm */
/* Read a picture. The size is checked before memory is allocated. EBADMSG: not a PNG or PGM file, too large, or damaged.
 */
int picture_read(const char *path, struct picture *ret_picture, struct err *err);
void picture_clear(struct picture *p);

/* Write an 8-bit grey PNG: PATH.part, renamed to PATH when it is complete. grey: width * height values, rows from the top. */
int picture_write(const char *path, int width, int height, const unsigned char *grey, struct err *err);
/* Make such a PNG in memory; the caller frees *ret_bytes. */
int picture_encode(int width, int height, const unsigned char *grey, unsigned char **ret_bytes, size_t *ret_size,
		   struct err *err);

#endif
