/* SPDX-License-Identifier: Apache-2.0 */
/* Survey a volume for its report: statistics of its values and slices, the window in which it is displayed, the detail with the
 * largest contrast.
 *
 * Noise of a slice: 1.4826 / sqrt(2) times the median difference between neighbouring columns, where both are above the mean of
 * the slice, so that air does not count.
 *
 * Largest contrast: the voxels of a slice are averaged over cells of about 1 mm (tomosynthesis) or 2 mm (PET, CT). The contrast
 * of a cell is the difference between its value and those of the 16 cells on a circle with a radius of 2, 4 or 8 cells: the
 * smallest of the differences, if all have the same sign, else 0. So an edge, or a line, has none. In each slice the cell with
 * the largest contrast is taken; of all slices the one in which this is largest in relation to the noise of the slice, or to the
 * median noise of all slices where that is more; of about equal ones (1 in 1000) the one next to the middle. Its place is the
 * middle of the connected cells of this slice that are beyond half of the contrast, and, along the axis, of the slices in which
 * the cell there is; if these are too many, the slice stays. */
#ifndef TOMONODE_NODE_SURVEY_H
#define TOMONODE_NODE_SURVEY_H

#include <stdint.h>

#include "node/format/picture.h"
#include "node/tools/image_series.h"

#define SURVEY_BINS 256

struct survey {
	int image;	     /* the one of several images that is displayed: that with the largest mean */
	double lo, hi;	     /* smallest and largest value of this image */
	double mean, sd;     /* of this image */
	int at[3];	     /* column, row, slice of the detail with the largest contrast; of the middle if there is none */
	double contrast;     /* negative: darker than its surroundings; NaN: no contrast */
	double *slice_mean;  /* [slice] */
	double *slice_sd;    /* [slice] */
	double *slice_noise; /* [slice]; NaN: no two neighbours above the mean */
	double *image_mean;  /* [image] */
	uint64_t count[SURVEY_BINS]; /* of values in equal parts of lo .. hi */
};

/* Read all slices and survey them. reach: largest radius of the circles for the contrast, mm. EBADMSG: a value is not finite. */
int survey_make(const struct image_series *s, double reach, struct survey *ret_survey, struct err *err);
void survey_clear(struct survey *v);

/* Return the value below which this fraction of all values is, to the width of a bin. */
double survey_quantile(const struct survey *v, double fraction);

/* Return the noise of a slice, see above, of neighbours that are both above a value; NaN: there are none. sample:
 * [SURVEY_SAMPLE], overwritten. */
#define SURVEY_SAMPLE 100001
double survey_noise(const float *values, const int n[2], double above, float *sample);
/* Return the value that tells the object from air: half of the median of the values above the mean, of Hounsfield units half way
 * from -1000 to it; -infinity if all values are of the object: those of a tomosynthesis with padding, which is air, and of an
 * image without contrast. */
double survey_object_level(const struct image_series *s, const struct survey *v);

/* Choose the window in which a series is displayed: that of the objects; of PET from 0 to what node/tools/series_window.h finds,
 * high values dark; of others without window that of most voxels. hi > lo. *ret_source: where it is from, a constant text. */
int survey_window(const struct image_series *s, const struct survey *v, struct picture_levels *ret_window,
		  const char **ret_source, struct err *err);

#endif
