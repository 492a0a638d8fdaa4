/* Private to the CUDA device's transaxial paths (kernels/paths.h): what the forward and the back kernels share.
 *
 * Where a ray is in z: planes of one group lie an even number of slices apart, so in a step they all have the same split between an
 * even and an odd slice. With the ray's height at the step's high end, less half a slice,
 *
 *   zs = z + slope t,   b = round(zs),   upper = min(step, (zs - b) inv + rise)   is the length in slice b, the rest in slice b - 1,
 *
 * (kernels/paths.h; inv = mm of path per slice, rise = inv / 2). A level ray has inv = 0 and a rise without end. Joseph: t in the
 * step's middle, z half a slice higher, inv = step: upper / step is then the share of slice b in the interpolation.
 * Even and odd slices are kept apart: with h = b >> 1 the even one of the two is number h of the even ones, the odd one number
 * h - 1 + (b & 1) of the odd ones, and the next plane of the group takes the next of both.
 */
#ifndef TOMONODE_KERNELS_CUDA_PATHS_CUH
#define TOMONODE_KERNELS_CUDA_PATHS_CUH

#include "kernels/cuda.cuh"
#include "kernels/planes.h"

#define PATHS_PLANES 4 /* planes that a thread of the forward kernel owns */
#define PATHS_PAIRS 24 /* slices of each parity that a thread of the back kernel holds; a deeper volume takes several rounds */

/* Planes of one group that are two slices apart: plane, plane + stride, ... */
struct path_lane {
	int plane, stride, n;
	int base;  /* slices, even */
	float z;   /* of the first plane's ray in its middle, less half a slice, above base; slices */
	double rise; /* struct scan_plane, slices instead of mm */
};

struct cuda_paths {
	struct path *path;	/* device: n_views * n_v */
	struct path_step *step; /* device */
	struct path_lane *lane; /* device: at most PATHS_PLANES planes each */
	struct path_lane *group; /* device: all planes of a parity */
	int n_lanes, n_groups;
	int *group_at; /* device: n_groups + 1: where each group's padded bins begin in shared memory */
	int padded;	/* floats of all of them */
	float *inv_w;	/* device: n_v; 1 / sqrt(ring_radius^2 - r^2), 1/mm; 0 where there is no ray */
	int half, pitch; /* slices of each parity; floats of a row of one parity, padding included */
	bool leaves;	 /* some ray passes through the grid's lower or upper face */
	bool apart;	 /* planes are no even number of slices apart: every plane is a group of its own */
};

/* The ray's numbers in one path. */
struct path_ray {
	float slope; /* slices per mm of path */
	float z, inv, rise;
	bool high; /* the high end is the step's end */
	float stretch; /* own length per length of path */
};

static inline __device__ struct path_ray path_ray_of(const struct path_lane &lane, float inv_w, bool joseph, float step, float slice)
{
	struct path_ray r;
	float slope = (float)(lane.rise * inv_w);

	r.slope = slope;
	r.z = lane.z;
	r.high = slope >= 0;
	r.inv = joseph ? step : slope != 0 ? 1 / fabsf(slope) : 0;
	r.rise = joseph ? 0.5f * step : slope != 0 ? 0.5f * r.inv : 1e30f;
	r.stretch = sqrtf(1 + slope * slope * slice * slice);
	return r;
}

/* Split of a step of length len: *h, *odd: numbers of the slices; the weights of the even and of the odd one. */
static inline __device__ void path_split(const struct path_ray &r, float t, float len, int *h, int *par, float *even, float *odd)
{
	const float magic = 12582912; /* 1.5 2^23: adding it rounds to whole numbers, which are then the low bits */
	float zs = fmaf(r.slope, t, r.z), m = zs + magic, upper, lower;
	int b = __float_as_int(m) - 0x4b400000;

	upper = fminf(len, fmaf(zs - (m - magic), r.inv, r.rise));
	lower = len - upper;
	*h = b >> 1;
	*par = b & 1;
	*even = *par ? lower : upper;
	*odd = *par ? upper : lower;
}

/* cuda_paths.cu */
size_t cuda_paths_bytes(const struct projection_spec *spec);
size_t cuda_paths_scratch(const struct projection_spec *spec);
int cuda_paths_create(struct projection *a, const struct projection_spec *spec, struct err *err);
void cuda_paths_free(struct cuda_paths *p);

/* cuda_paths_forward.cu, cuda_paths_back.cu */
int cuda_paths_forward(struct projection *a, const float *x, bool add, float *y, struct err *err);
int cuda_paths_back(struct projection *a, const float *y, bool add, float *x, struct err *err);

#endif
