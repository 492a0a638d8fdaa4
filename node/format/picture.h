/* Grey pictures as phantoms: PNG (of any kind; colours become grey, transparency black) and PGM (P2, P5). */
#ifndef TOMONODE_NODE_PICTURE_H
#define TOMONODE_NODE_PICTURE_H

#include <stdbool.h>

#include "kernels/err.h"

#define PICTURE_SIDE_MAX 8192

struct picture {
	int width, height;
	float *value; /* rows from the top, 0 (black) to 1 (white) */
};

bool picture_named(const char *path); /* by its ending: .png, .pgm */
/* EBADMSG: no such picture, or a broken one; nothing is allocated before its size is within PICTURE_SIDE_MAX. */
int picture_read(const char *path, struct picture *ret_picture, struct err *err);
void picture_clear(struct picture *p);

#endif
