/* SPDX-License-Identifier: Apache-2.0 */
/* bead.c - the algorithm that recon/dbt/bead.h describes. */
#include "recon/dbt/bead.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/order.h"
#include "recon/core/figures.h"

#define ROUNDS_MAX 20
#define SETTLED 1e-5	 /* mm */
#define REACH_MORE 0.6	 /* mm added to the radius for centroids: voxel size and blur of the reconstruction */
#define SLICES_NEAR 1.6	 /* slices on either side of the middle that are used for the line */
#define HEIGHT_LEAST 0.1 /* least height of a slice that is used, relative to the highest */
#define FIT_SLICES                                                                                                               \
	3 /* slices on either side of the profile's maximum used for the fit; further away the profile is not Gaussian */

struct line {
	double at[3], slope[2];
};

/* Compute x and y of the line at a depth. */
static void line_at(const struct line *l, double depth, double ret[2])
{
	for (int a = 0; a < 2; a++)
		ret[a] = l->at[a] + l->slope[a] * (depth - l->at[2]);
}

/* Return the median of a slice; NaN: the slice has no image in the window. scratch: n[0] * n[1] floats. */
static double slice_median(const struct bead_window *w, int slice, float *scratch)
{
	size_t n = (size_t)w->n[0] * (size_t)w->n[1], used = 0;
	const float *values = w->values + (size_t)slice * n;

	for (size_t i = 0; i < n; i++)
		if (!isnan(values[i]))
			scratch[used++] = values[i];
	if (!used)
		return NAN;
	qsort(scratch, used, sizeof(*scratch), order_floats);
	return (scratch[(used - 1) / 2] + scratch[used / 2]) / 2;
}

struct centroid {
	double height, x[2]; /* height: sum of weight times value above the median */
	double mean;	     /* weighted mean of all values relative to the median; NaN: no weight */
};

/* Compute the centroid around a point of a slice, with a Gaussian weight of this sigma up to twice `reach`. */
static struct centroid centroid_about(const struct bead_window *w, int slice, double median, const double about[2], double sigma,
				      double reach)
{
	const float *values = w->values + (size_t)slice * (size_t)w->n[0] * (size_t)w->n[1];
	struct centroid c = {0};
	double weights = 0, sum = 0;
	int first[2], end[2];

	for (int a = 0; a < 2; a++) {
		first[a] = (int)fmin(fmax(ceil((about[a] - 2 * reach) / w->h[a]), 0), w->n[a]);
		end[a] = (int)fmin(fmax(floor((about[a] + 2 * reach) / w->h[a]) + 1, 0), w->n[a]);
	}
	for (int j = first[1]; j < end[1]; j++)
		for (int i = first[0]; i < end[0]; i++) {
			double x = i * w->h[0], y = j * w->h[1];
			double square = (x - about[0]) * (x - about[0]) + (y - about[1]) * (y - about[1]);
			double rise = values[(size_t)j * (size_t)w->n[0] + (size_t)i] - median;
			double weight = exp(-square / (2 * sigma * sigma));

			if (isnan(rise) || square > 4 * reach * reach)
				continue;
			weights += weight;
			sum += weight * rise;
			rise = fmax(rise, 0) * weight;
			c.height += rise;
			c.x[0] += rise * x;
			c.x[1] += rise * y;
		}
	for (int a = 0; a < 2; a++)
		c.x[a] /= c.height; /* not used if the height is 0 */
	c.mean = weights > 0 ? sum / weights : NAN;
	return c;
}

/* Fit the line through the centroids of the slices near its middle; false: no slice has a height. */
static bool fit_line(const struct bead_window *w, const double *median, double radius, double spacing, struct line *line)
{
	double reach = radius + REACH_MORE, highest = 0, weight = 0, depth = 0, x[2] = {0}, square = 0, product[2] = {0};

	for (int pass = 0; pass < 3; pass++) /* pass 0: find the largest height; 1: means; 2: moments about the means */
		for (int k = 0; k < w->n[2]; k++) {
			double about[2];
			struct centroid c;

			if (!(fabs(w->depth[k] - line->at[2]) <= SLICES_NEAR * spacing))
				continue;
			line_at(line, w->depth[k], about);
			c = centroid_about(w, k, median[k], about, reach / 1.5, reach);
			if (pass == 0)
				highest = fmax(highest, c.height);
			if (pass == 0 || !(c.height > HEIGHT_LEAST * highest))
				continue;
			if (pass == 1) {
				weight += c.height;
				depth += c.height * w->depth[k];
				x[0] += c.height * c.x[0];
				x[1] += c.height * c.x[1];
				continue;
			}
			square += c.height * (w->depth[k] - depth / weight) * (w->depth[k] - depth / weight);
			for (int a = 0; a < 2; a++)
				product[a] += c.height * (w->depth[k] - depth / weight) * (c.x[a] - x[a] / weight);
		}
	if (!(weight > 0))
		return false;
	for (int a = 0; a < 2; a++) {
		line->slope[a] = square > 0 ? product[a] / square : 0;
		line->at[a] = x[a] / weight;
	}
	line->at[2] = depth / weight;
	return true;
}

/* Compute the profile along the line and fit its depth; the width is NaN if no Gaussian fits. */
static double fit_depth(const struct bead_window *w, const double *median, double radius, double spacing, const struct line *line,
			double *ret_profile, double *ret_fwhm)
{
	int top = -1, first, end;
	struct figure_peak peak;

	for (int k = 0; k < w->n[2]; k++) {
		double about[2];

		line_at(line, w->depth[k], about);
		ret_profile[k] = centroid_about(w, k, median[k], about, radius, 2 * radius).mean;
		if (fabs(w->depth[k] - line->at[2]) <= 2 * SLICES_NEAR * spacing && !isnan(ret_profile[k]) &&
		    (top < 0 || ret_profile[k] > ret_profile[top]))
			top = k;
	}
	*ret_fwhm = NAN;
	if (top < 0)
		return line->at[2];
	for (first = top; first > 0 && top - first < FIT_SLICES && !isnan(ret_profile[first - 1]); first--)
		;
	for (end = top + 1; end < w->n[2] && end - top <= FIT_SLICES && !isnan(ret_profile[end]); end++)
		;
	if (figure_fit_peak(w->depth + first, ret_profile + first, (size_t)(end - first), &peak, NULL) < 0)
		return w->depth[top];
	*ret_fwhm = figure_fwhm(&peak);
	return peak.centre;
}

int bead_locate(const struct bead_window *w, const int top[3], double radius, struct bead *ret_bead, double *ret_profile,
		struct err *err)
{
	size_t n = (size_t)w->n[0] * (size_t)w->n[1];
	double *median = calloc((size_t)w->n[2], sizeof(*median)), fwhm = NAN;
	float *scratch = malloc(n * sizeof(*scratch));
	struct line line = {.at = {top[0] * w->h[0], top[1] * w->h[1], w->depth[top[2]]}};
	double spacing = w->n[2] > 1 ? (w->depth[w->n[2] - 1] - w->depth[0]) / (w->n[2] - 1) : 1;
	int rc = 0;

	if (!median || !scratch) {
		rc = err_set(err, ENOMEM, "no memory for a window of %zu voxels per slice", n);
		goto out;
	}
	for (int k = 0; k < w->n[2]; k++)
		median[k] = slice_median(w, k, scratch);
	for (int round = 0; round < ROUNDS_MAX; round++) {
		double before[3], now[2], depth;

		memcpy(before, line.at, sizeof(before));
		if (!fit_line(w, median, radius, spacing, &line)) {
			rc = err_set(err, ENODATA,
				     "bead: no voxel near the bead (depth %.1f mm) is above the median of its slice", before[2]);
			goto out;
		}
		depth = fit_depth(w, median, radius, spacing, &line, ret_profile, &fwhm);
		line_at(&line, depth, now);
		memcpy(line.at, (double[3]){now[0], now[1], depth}, sizeof(line.at));
		if (fabs(now[0] - before[0]) < SETTLED && fabs(now[1] - before[1]) < SETTLED && fabs(depth - before[2]) < SETTLED)
			break;
	}
	*ret_bead =
		(struct bead){.at = {line.at[0], line.at[1], line.at[2]}, .slope = {line.slope[0], line.slope[1]}, .fwhm = fwhm};
out:
	free(median);
	free(scratch);
	return rc;
}
