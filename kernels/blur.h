/* SPDX-License-Identifier: Apache-2.0 */
/* The weights of a Gaussian convolution kernel. C11, C++17 and CUDA C++. */
#ifndef TOMONODE_KERNELS_BLUR_H
#define TOMONODE_KERNELS_BLUR_H

#include <math.h>

#define BLUR_CUT 4.0 /* the kernel ends at this distance, in sigma */

/* Compute weights 0..reach of a symmetric kernel that is cut off at BLUR_CUT sigma and normalised to the sum 1. sigma, h: width
 * and voxel pitch, mm; n: size of ret_weight, floats; weights beyond n are dropped. Return reach, at most n - 1. For sigma = 0,
 * reach is 0 and the only weight is 1. */
static inline int blur_weights(double sigma, double h, int n, float *ret_weight)
{
	double width = sigma / h, sum = 1;
	int reach = (int)fmin(floor(BLUR_CUT * width), 1e6);

	for (int i = 1; i <= reach; i++)
		sum += 2 * exp(-0.5 * (i / width) * (i / width));
	for (int i = 0; i <= reach && i < n; i++)
		ret_weight[i] = (float)(i ? exp(-0.5 * (i / width) * (i / width)) / sum : 1 / sum);
	return reach < n ? reach : n - 1;
}

#endif
