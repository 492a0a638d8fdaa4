/* SPDX-License-Identifier: Apache-2.0 */
/* The window in which PET is displayed, from the values alone: from 0 to a value that few voxels of the object exceed, so that
 * hot details are not all white (or black).
 *
 * Voxels above the mean of the image are the object: the field of view is mostly air. The upper end is the largest 99.5th
 * percentile of them in any one slice: lesions are a small part of the body, but not of the slices that they are in. Slices with
 * fewer than 100 such voxels do not count. */
#ifndef TOMONODE_NODE_SERIES_WINDOW_H
#define TOMONODE_NODE_SERIES_WINDOW_H

#include "node/tools/image_series.h"

#define SERIES_WINDOW_TEXT "the value that 0.5 % of the object's voxels exceed in its hottest slice"

/* Find the upper end for an image of the series; 0: no value is above 0. */
int series_window_top(const struct image_series *s, int image, double *ret_top, struct err *err);

#endif
