/* SPDX-License-Identifier: Apache-2.0 */
/* Look at the slices of a result one by one, in the resolution of a page: values that a browser shows in any window, and a picture
 * of some slices side by side. Slices, their order and the window are those of the report (node/report/report.h).
 *
 * Slices are numbered from 1; those of the second image of a dynamic or gated series follow on those of the first. One slice is
 * decoded for each call; memory for one slice is kept. Not safe for threads. */
#ifndef TOMONODE_NODE_LOOK_H
#define TOMONODE_NODE_LOOK_H

#include "node/base/html.h"
#include "node/config/config.h"
#include "node/format/picture.h"
#include "node/tools/image_series.h"

#define LOOK_SIDE 1024	    /* length of the longer side of a slice at most, pixels */
#define LOOK_STRIP 16	    /* slices side by side at most */
#define LOOK_STRIP_SIDE 400 /* length of the longer side of each, pixels */

struct look {
	struct image_series *s;
	struct picture_levels window;
};

/* Open the result of which `file` is an object, among those in the folder. ENOENT: there is none; errors of
 * report_volume_open(). */
int look_open(const struct config *config, const char *folder, const char *file, struct look *ret_look, struct err *err);
void look_close(struct look *l);
long look_slices(const struct look *l); /* their number */
/* Index, from 0, of the slice that is picture k of `pictures` at equal distances. */
long look_slice_at(int k, int pictures, long total);

/* Append a slice to h: a line of JSON, whose length with its end is even, then width * height values of 16 bits, little-endian,
 * rows from the top. Value = lo + step * number. Members: width, height, lo, step; mm (width and height); slices (number of all),
 * slice, at (position, mm, along `axis` of the patient, or from the first slice if that is ""); black, white (the window), unit;
 * left, right, top, bottom (letters of the directions). ERANGE: there is no such slice. */
int look_slice(const struct look *l, long slice, struct html *h, struct err *err);
/* Append a PNG of up to LOOK_STRIP slices, each in a square of the picture's height. */
int look_strip(const struct look *l, struct html *h, struct err *err);

#endif
