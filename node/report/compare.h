/* SPDX-License-Identifier: Apache-2.0 */
/* Compare two results with the same voxels: figures, and a page with their slices and the difference beside each other. */
#ifndef TOMONODE_NODE_COMPARE_H
#define TOMONODE_NODE_COMPARE_H

#include "node/base/html.h"
#include "node/format/picture.h"
#include "node/tools/image_series.h"

/* All figures but `voxels`, `equal` and those of air are of the object: the voxels where the mean of A and B is above `level`, of a
 * tomosynthesis with padding those that have a value in both. */
struct comparison {
	double level;			 /* survey_object_level(), the mean of both; -infinity: no value is air */
	double mean[2], sd[2], noise[2]; /* of A and B; noise: median of that of the slices (survey.h), NaN: unknown */
	double bias, rms;		 /* mean and root mean square of B - A */
	double air_bias, air_rms;	 /* the same of the other voxels; 0: there are none */
	double correlation;		 /* of the values of A and B; NaN: one of them is constant */
	double largest;			 /* B - A where it is farthest from 0 */
	int at[3], image;		 /* column, row, slice and time frame or gate of it */
	uint64_t voxels, object, equal;	 /* in all images; of the object; with the same value in both, of all */
	struct picture_levels window;	 /* in which both are displayed: that of A */
	char place[400]; /* sentence with both positions of the first voxel where they are not the same; "": they are */
};

/* Compare all voxels of all images. Values of padding of a tomosynthesis count as 0. EBADMSG: another number, size or direction of
 * voxels, another unit, or in one frame of reference another place by more than half a voxel; the text has both. */
int comparison_make(const struct image_series *const of[2], struct comparison *ret, struct err *err);
/* Write which voxels are the object: "that are not padding", "where the mean of A and B is above 1200 Bq/ml". */
void comparison_object_text(const struct image_series *s, const struct comparison *c, char *ret, size_t size);
/* Write the page. names: what A and B are called; changes: sentences, ended by NULL, of how they were made differently. */
int comparison_page(const struct image_series *const of[2], const struct comparison *c, const char *const names[2],
		    const char *const *changes, struct html *h, struct err *err);

#endif
