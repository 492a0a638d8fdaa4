/* SPDX-License-Identifier: Apache-2.0 */
/* Read grey pictures as phantoms: PNG (of any kind; colours become grey, transparent pixels black) and PGM (P2, P5). */
#ifndef TOMONODE_NODE_PICTURE_H
#define TOMONODE_NODE_PICTURE_H

#include <stdbool.h>

#include "kernels/err.h"

#define PICTURE_SIDE_MAX 8192

struct picture {
	int width, height;
	float *value; /* rows from the top, 0 (black) to 1 (white) */
};

bool picture_has_extension(const char *path); /* true: the name ends in .png or .pgm */
/* Read a picture. Memory is allocated only after its size is within PICTURE_SIDE_MAX. EBADMSG: not a PNG or PGM file, or damaged.
 */
int picture_read(const char *path, struct picture *ret_picture, struct err *err);
void picture_clear(struct picture *p);

#endif
