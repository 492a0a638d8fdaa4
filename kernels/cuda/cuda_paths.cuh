/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the CUDA device: the tables of the transaxial paths (kernels/paths.h), and the functions that use them. */
#ifndef TOMONODE_KERNELS_CUDA_PATHS_CUH
#define TOMONODE_KERNELS_CUDA_PATHS_CUH

#include "kernels/cuda/cuda.cuh"
#include "kernels/planes.h"

#define PATHS_PLANES 4 /* planes per thread */

/* Planes of one group that are two slices apart: plane, plane + stride, ... */
struct path_lane {
	int plane, stride, n;
	int base;    /* slice index, even */
	float z;     /* height of the first plane's ray at its middle, minus one half (PATHS), relative to base; slices */
	double rise; /* see struct scan_plane, but in slices */
};

struct cuda_tof;

struct cuda_paths {
	struct path *path;	/* device memory: n_views * n_v */
	struct path_step *step; /* device memory */
	struct path_lane *lane; /* device memory: at most PATHS_PLANES planes each */
	int n_lanes;
	float *inv_w;	      /* device memory, n_v: 1 / sqrt(ring_radius^2 - r^2), 1/mm; 0: no ray */
	double steepest;      /* largest slope of a ray, slices per mm of path */
	bool leaves;	      /* some ray passes through the grid's lower or upper face */
	struct cuda_tof *tof; /* cuda_tof.cu; NULL: no time of flight */
};

/* The rays of a group's planes in one path: the first one's height at t is zs = z + slope t. */
struct path_ray {
	float slope, z; /* slope: slices per mm of path; z: height at the start of the path, in slices, from
			 * the lowest slice of the lane; 1/2 less for PROJECTION_PATHS */
	float stretch;	/* length of the ray per length of path */
};

static inline __device__ struct path_ray path_ray_of(const struct path_lane &lane, float inv_w, float slice)
{
	struct path_ray r;

	r.slope = (float)(lane.rise * inv_w);
	r.z = lane.z;
	r.stretch = sqrtf(1 + r.slope * r.slope * slice * slice);
	return r;
}

/* cuda_paths.cu */
size_t cuda_paths_bytes(const struct projection_spec *spec);
size_t cuda_paths_scratch(const struct projection_spec *spec);
int cuda_paths_create(struct projection *a, const struct projection_spec *spec, struct err *err);
void cuda_paths_free(struct cuda_paths *p);
int cuda_paths_forward(struct projection *a, const float *x, bool add, float *y, struct err *err);
int cuda_paths_back(struct projection *a, const float *y, bool add, float *x, struct err *err);

/* Sums of a backprojection as 64-bit integers, so that their order does not change the result. One unit is
 * *largest * bound / 2^62. bound: largest possible sum for bins of value 1, so that no sum overflows. */
struct cuda_fixed {
	unsigned long long *sums;
	const float *largest; /* the largest |y| */
	double bound;
};

/* cuda_paths_forward.cu, cuda_paths_back.cu. fixed: used in place of x, or NULL. The pass adds to x. */
int cuda_paths_rays_forward(struct projection *a, const float *x, bool add, float *y, struct err *err);
int cuda_paths_rays_back(struct projection *a, const float *y, const struct cuda_fixed *fixed, float *x, struct err *err);

/* cuda_tof.cu: with time of flight; arguments as above. bytes(): device memory in addition to the paths. create(): ENOTSUP: too
 * many TOF bins contribute to one point. On error *ret is NULL or must be freed. */
size_t cuda_tof_bytes(const struct projection_spec *spec);
int cuda_tof_create(struct projection *a, const struct projection_spec *spec, struct cuda_tof **ret, struct err *err);
void cuda_tof_free(struct cuda_tof *t); /* accepts NULL */
int cuda_tof_forward(struct projection *a, const float *x, bool add, float *y, struct err *err);
int cuda_tof_back(struct projection *a, const float *y, const struct cuda_fixed *fixed, float *x, struct err *err);

struct cuda_rows; /* cuda_line_rows.cu */

/* cuda_lines.cu: stacks of 2-D parallel beams (kernels/lines.h); arguments as of cuda_paths_*() and cuda_paths_rays_*() */
size_t cuda_lines_bytes(const struct device *dev, const struct projection_spec *spec);
size_t cuda_lines_scratch(const struct device *dev, const struct projection_spec *spec);
int cuda_lines_create(struct projection *a, const struct projection_spec *spec, struct err *err);
void cuda_lines_free(struct cuda_lines *l);
const struct cuda_rows *cuda_lines_rows(const struct cuda_lines *l); /* NULL: it has a table; else use cuda_line_rows_back() */
int cuda_lines_forward(struct projection *a, const float *x, bool add, float *y, struct err *err);
int cuda_lines_back(struct projection *a, const float *y, const struct cuda_fixed *fixed, float *x, struct err *err);

/* cuda_line_rows.cu: stacks without a table. create(): the caller frees *ret, after an error too. The projection of a single
 * slice uses the device's scratch. */
size_t cuda_line_rows_bytes(const struct projection_spec *spec);
size_t cuda_line_rows_scratch(const struct projection_spec *spec);
int cuda_line_rows_create(struct projection *a, const struct projection_spec *spec, struct cuda_rows **ret, struct err *err);
void cuda_line_rows_free(struct cuda_rows *rows); /* accepts NULL */
int cuda_line_rows_forward(struct projection *a, const struct cuda_rows *rows, const float *x, bool add, float *y,
			   struct err *err);
/* cuda_line_rows_back.cu */
int cuda_line_rows_back(struct projection *a, const struct cuda_rows *rows, const float *y, bool add, float *x, struct err *err);

/* cuda_line_rows_sweep.cu: one slice; spec.sweeps. Uses the device's scratch. */
int cuda_line_rows_sweep(struct projection *a, const struct cuda_rows *rows, float relaxation, const float *y, float *x,
			 struct err *err);

/* A barrier of all blocks of a cooperative launch, in two steps: a block arrives, and waits until all have arrived as often.
 * Writes before the first step are visible to all blocks after the second. arrived: in global memory, 0 at the start; target: the
 * number of arrivals times that of blocks. */
static __device__ __forceinline__ void cuda_blocks_arrive(unsigned *arrived)
{
	__syncthreads();
	if (threadIdx.x == 0) {
		__threadfence();
		atomicAdd(arrived, 1);
	}
}

static __device__ __forceinline__ void cuda_blocks_wait(const unsigned *arrived, unsigned target)
{
	if (threadIdx.x == 0) {
		unsigned n;

		do {
			asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(n) : "l"(arrived) : "memory");
		} while ((int)(n - target) < 0);
	}
	__syncthreads();
}

#endif
