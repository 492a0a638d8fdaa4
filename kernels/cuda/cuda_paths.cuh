/* Private to the CUDA device: the tables of the transaxial paths (kernels/paths.h), and who works with them. */
#ifndef TOMONODE_KERNELS_CUDA_PATHS_CUH
#define TOMONODE_KERNELS_CUDA_PATHS_CUH

#include "kernels/cuda/cuda.cuh"
#include "kernels/planes.h"

#define PATHS_GROUPS 64 /* groups that a warp of the event kernels has at hand */
#define PATHS_PLANES 4	/* planes that a thread of the forward kernel owns */
#define PATHS_PAIRS 24	/* slices of each parity that a thread of the back kernel holds; a deeper volume takes several rounds */

/* Planes of one group that are two slices apart: plane, plane + stride, ... */
struct path_lane {
	int plane, stride, n;
	int base;    /* slices, even */
	float z;     /* of the first plane's ray in its middle, less half a slice, above base; slices */
	double rise; /* struct scan_plane, slices instead of mm */
};

struct cuda_paths {
	struct path *path;	 /* device: n_views * n_v */
	struct path_step *step;	 /* device */
	struct path_lane *lane;	 /* device: at most PATHS_PLANES planes each */
	struct path_lane *group; /* device: all planes of a parity */
	int n_lanes, n_groups;
	int *group_at;	 /* device: n_groups + 1: where each group's padded bins begin in shared memory */
	int n_bins;	 /* the most bins of PATHS_GROUPS groups from a multiple of it on, in whole quads */
	int padded;	 /* floats of all of them */
	float *inv_w;	 /* device: n_v; 1 / sqrt(ring_radius^2 - r^2), 1/mm; 0 where there is no ray */
	int half, pitch; /* slices of each parity; floats of a row of one parity, padding included */
	bool leaves;	 /* some ray passes through the grid's lower or upper face */
	bool apart;	 /* planes are no even number of slices apart: every plane is a group of its own */
};

/* A group's numbers in one path: zs = z + slope t. */
struct path_ray {
	float slope, z; /* slices per mm of path; slices above the lane's base, less one half (PATHS) */
	float stretch;	/* own length per length of path */
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

/* Where a bitwise repeatable back pass adds: 64-bit sums in steps of *largest * bound / 2^62.
 * No sum is above *largest * bound. */
struct cuda_fixed {
	unsigned long long *sums;
	const float *largest; /* of |y| */
	double bound;
};

/* cuda_paths_events.cu: PROJECTION_PATHS. fixed: instead of x, or NULL; x is added to. */
int cuda_events_forward(struct projection *a, const float *x, bool add, float *y, struct err *err);
int cuda_events_back(struct projection *a, const float *y, const struct cuda_fixed *fixed, float *x, struct err *err);

/* cuda_lines.cu: stacks of 2-D parallel beams (kernels/lines.h), likewise */
size_t cuda_lines_bytes(const struct device *dev, const struct projection_spec *spec);
size_t cuda_lines_scratch(const struct projection_spec *spec);
int cuda_lines_create(struct projection *a, const struct projection_spec *spec, struct err *err);
void cuda_lines_free(struct cuda_lines *l);
int cuda_lines_forward(struct projection *a, const float *x, bool add, float *y, struct err *err);
int cuda_lines_back(struct projection *a, const float *y, const struct cuda_fixed *fixed, float *x, struct err *err);

/* cuda_joseph.cu: PROJECTION_JOSEPH, likewise */
int cuda_joseph_forward(struct projection *a, const float *x, bool add, float *y, struct err *err);
int cuda_joseph_back(struct projection *a, const float *y, const struct cuda_fixed *fixed, float *x, struct err *err);

#endif
