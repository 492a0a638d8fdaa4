/* SPDX-License-Identifier: Apache-2.0 */
/* The weights of time of flight. C11, C++17 and CUDA C++.
 *
 * An annihilation at t (mm along the ray in three dimensions from its middle, positive towards the end with positive t) is
 * measured at a position with normal distribution of standard deviation sigma around t. The distribution is cut off at TOF_CUT
 * sigma and normalised. The weight of TOF bin k for the point t is the part of the distribution inside the bin:
 *
 *   w_k(t) = C((edge_k+1 - t) / sigma) - C((edge_k - t) / sigma),   edge_k = (k - n/2) width
 *
 * The sum over all bins is S(t) = C((edge_n - t) / sigma) - C((edge_0 - t) / sigma): 1 far from the outer edges. A single bin of
 * width n width has the weight S(t), so the sensitivity image of data whose factors do not depend on the TOF bin is that of a
 * scan with this one bin.
 *
 * The entry of the system matrix for a bin (ray, k) and a voxel is the entry without time of flight times w_k(t) of the middle of
 * the ray's path through the voxel's column. PROJECTION_PATHS and PROJECTION_EXACT: the step of kernels/paths.h (all slices of
 * one step have the same weight); PROJECTION_JOSEPH: the sample. A step at t on the transaxial path is at t sqrt(1 + slope^2) on
 * the ray: the weights of a step are the same for all planes of equal rise. */
#ifndef TOMONODE_KERNELS_TOF_H
#define TOMONODE_KERNELS_TOF_H

#include "kernels/geometry.h"

#define TOF_MOST 4096		    /* largest number of bins */
#define TOF_CUT 4.0		    /* sigma */
#define TOF_MASS 0.9999366575163338 /* of a normal distribution inside +- TOF_CUT sigma: erf(4 / sqrt(2)) */
#define TOF_ROOT_HALF 0.70710678118654752440
#define TOF_ROOT_TWO_PI 2.50662827463100050242
#define TOF_MM_PER_PS 0.149896229	      /* half the speed of light: mm along the ray per ps of the time difference */
#define TOF_FWHM_PER_SIGMA 2.3548200450309493 /* 2 sqrt(2 ln 2) */

/* Return C(x): the normal distribution function, cut off at +- TOF_CUT and normalised. */
static inline TOMONODE_HD double tof_cumulative(double x)
{
	return x <= -TOF_CUT ? 0 : x >= TOF_CUT ? 1 : 0.5 + 0.5 / TOF_MASS * erf(x * TOF_ROOT_HALF);
}

/* As tof_cumulative(), in single precision: within 4e-7. The error function: Abramowitz & Stegun 1964, 7.1.26. */
static inline TOMONODE_HD float tof_cumulative_float(float x)
{
#ifdef __CUDA_ARCH__
	float z = fabsf(x) * (float)TOF_ROOT_HALF, t = __fdividef(1, 1 + 0.3275911f * z), e = __expf(-z * z), tail;
#else
	float z = fabsf(x) * (float)TOF_ROOT_HALF, t = 1 / (1 + 0.3275911f * z), e = expf(-z * z), tail;
#endif

	tail = t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
	tail = (float)(0.5 / TOF_MASS) * (1 - tail * e);
	return x <= (float)-TOF_CUT ? 0 : x >= (float)TOF_CUT ? 1 : x < 0 ? 0.5f - tail : 0.5f + tail;
}

/* Return the lower edge of TOF bin k, mm along the ray; k = n: the upper edge of the last bin. */
static inline TOMONODE_HD double tof_edge(const struct scan_tof *tof, int k)
{
	return (k - 0.5 * tof->n) * tof->width;
}

/* Return w_k(t). */
static inline TOMONODE_HD double tof_weight(const struct scan_tof *tof, int k, double t)
{
	return tof_cumulative((tof_edge(tof, k + 1) - t) / tof->sigma) - tof_cumulative((tof_edge(tof, k) - t) / tof->sigma);
}

/* Return the integral of C from -infinity to x. */
static inline TOMONODE_HD double tof_cumulative_integral(double x)
{
	double tail;

	if (x <= -TOF_CUT || x >= TOF_CUT)
		return x <= 0 ? 0 : x;
	/* the integral of erf(x / sqrt(2)) is x erf(x / sqrt(2)) + sqrt(2 / pi) exp(-x^2 / 2) */
	tail = exp(-0.5 * x * x) - exp(-0.5 * TOF_CUT * TOF_CUT);
	return 0.5 * x + (0.5 * x * erf(x * TOF_ROOT_HALF) + tail / TOF_ROOT_TWO_PI) / TOF_MASS;
}

/* Return the integral of w_k from t0 to t1, mm. */
static inline TOMONODE_HD double tof_weight_integral(const struct scan_tof *tof, int k, double t0, double t1)
{
	double lower = tof_edge(tof, k), upper = tof_edge(tof, k + 1), s = tof->sigma;

	double sum = s * (tof_cumulative_integral((upper - t0) / s) - tof_cumulative_integral((upper - t1) / s) -
			  tof_cumulative_integral((lower - t0) / s) + tof_cumulative_integral((lower - t1) / s));

	return sum > 0 ? sum : 0; /* rounding can make it negative far from the bin */
}

/* Compute the bins [*ret_first, *ret_end) whose weight at t may be above 0. */
static inline TOMONODE_HD void tof_bins(const struct scan_tof *tof, double t, int *ret_first, int *ret_end)
{
	double low = (t - TOF_CUT * tof->sigma) / tof->width + 0.5 * tof->n;
	double high = (t + TOF_CUT * tof->sigma) / tof->width + 0.5 * tof->n;

	*ret_first = low > 0 ? (low < tof->n ? (int)low : tof->n) : 0;
	*ret_end = high < tof->n ? (high > 0 ? (int)high + 1 : 0) : tof->n;
}

/* Return the largest number of bins that have a weight at one point. */
static inline TOMONODE_HD int tof_bins_most(const struct scan_tof *tof)
{
	double most = 2 * TOF_CUT * tof->sigma / tof->width + 2;

	return most < tof->n ? (int)most : tof->n;
}

#endif
