/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the CUDA device: code shared by kernels with one thread per float of a volume. */
#ifndef TOMONODE_KERNELS_CUDA_VOLUME_CUH
#define TOMONODE_KERNELS_CUDA_VOLUME_CUH

#include <errno.h>

#include "kernels/cuda/cuda.cuh"

struct voxel {
	int at[3];
	bool padding;
};

static __device__ __forceinline__ struct voxel voxel_of(const struct grid &g, size_t i)
{
	struct voxel v;
	size_t column = g.z_fastest ? grid_column(&g) : 1, plane = (size_t)g.n[0] * g.n[1];

	if (g.z_fastest) {
		v.at[2] = (int)(i % column);
		v.at[0] = (int)(i / column % g.n[0]);
		v.at[1] = (int)(i / column / g.n[0]);
	} else {
		v.at[2] = (int)(i / plane);
		v.at[0] = (int)(i % plane % g.n[0]);
		v.at[1] = (int)(i % plane / g.n[0]);
	}
	v.padding = v.at[2] >= g.n[2];
	return v;
}

static inline int check_volume(const char *what, const struct buf *x, const struct grid *g, struct err *err)
{
	if (x->n != grid_size(g))
		return err_set(err, EINVAL, "%s: %s: volume of %zu floats for a grid of %zu voxels", x->dev->name, what, x->n,
			       grid_size(g));
	return 0;
}

#endif
