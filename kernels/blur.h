/* The kernel of a Gaussian convolution. C11, C++17 and CUDA C++. */
#ifndef TOMONODE_KERNELS_BLUR_H
#define TOMONODE_KERNELS_BLUR_H

#include <math.h>

#define BLUR_CUT 4.0 /* sigma */

/* Weights 0..reach, the same on both sides, of a kernel that is cut at BLUR_CUT sigma and whose sum is then 1; h: distance of
 * voxels, n: how many there are (weights that reach further are not made), n floats of room. Returns the reach; sigma = 0: the
 * weight 1 alone. */
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
