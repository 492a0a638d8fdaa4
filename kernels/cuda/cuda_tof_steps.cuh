/* SPDX-License-Identifier: Apache-2.0 */
/* Private to cuda_tof.cu: what a block of threads prepares for its next steps of a path with time of flight: windows of TOF bins,
 * weights and slices for each rise (cells), and the columns of voxels (rows). */
#ifndef TOMONODE_KERNELS_CUDA_TOF_STEPS_CUH
#define TOMONODE_KERNELS_CUDA_TOF_STEPS_CUH

#include "kernels/cuda/cuda_paths.cuh"
#include "kernels/tof.h"

#define TOF_WARPS 7  /* warps of a block */
#define TOF_BLOCKS 4 /* blocks of a multiprocessor */
#define TOF_LOG_STEPS 5
#define TOF_WINDOW_MOST 32
#define TOF_PLANES(window) ((window) > 8 ? 1 : 5) /* planes of a lane, 32 planes apart: their weights are the same */
#define MARGIN 4 /* zeros before and after a column in shared memory; 2 are needed, 4 keep it aligned */
#define ALL 0xffffffffu
#define MAGIC 12582912.0f /* 1.5 2^23: adding it rounds to an integer, which is then in the low bits */

/* Up to 32 TOF_PLANES() planes of equal rise and equal distance. */
struct tof_warp {
	int plane, n;
	int slot;   /* index of the warp's slot in its block: warps of one slot have the same rise, and the same z but for whole
		       slices */
	bool leads; /* the first warp of its slot in the block */
	double z, pitch; /* height of the first plane's ray at its middle (PATHS: minus one half), distance of planes; slices */
	double rise;	 /* slices */
};

struct tof_job {
	const struct path *path;
	const struct path_step *step;
	const struct tof_warp *warp;
	const float *inv_w;
	const float *x, *y; /* forward, back: the input */
	float *ret_x, *ret_y;
	unsigned long long *fixed; /* back: used in place of ret_x */
	const float *largest;
	double bound;		   /* fixed: no sum exceeds this times *largest */
	float slice, width, sigma; /* mm */
	int n_warps, n_tof, n_u, n_v, nz, column;
	int log_steps; /* 2^log_steps steps are processed together */
	bool add;
};

/* The rays of a lane: height zs = slope t + z in slices above `base`. */
struct tof_ray {
	int base;
	float slope, z, inv, half;
};

/* A step of a path. */
struct __align__(16) tof_step
{
	float low, high; /* PATHS: beginning and end of the step; JOSEPH: its middle, twice; mm */
	float length;
	float share; /* JOSEPH: weight of the second column */
};

/* A step for the planes of a slot. */
struct __align__(16) tof_cell
{
	int first;	    /* first TOF bin of the window */
	int slice;	    /* upper slice of the ray, relative to its base */
	float upper, lower; /* length of the ray in that slice and in the one below, without stretch */
};

/* Shared memory of a block. Cells and weights of step k of slot i are at (i << log_steps) + k. */
struct tof_shared {
	float *weight;	       /* [slot][step][window] */
	struct tof_cell *cell; /* [slot][step] */
	struct tof_step *step; /* [step] */
	struct tof_ray *ray;   /* [slot]: of its first plane; cells do not use the base */
	float *stretch;	       /* [slot] */
	int *column;	       /* [step] */
	float *row;	       /* [step][MARGIN + column + MARGIN] */
};

template <int W> static __host__ __device__ size_t shared_floats(int steps)
{
	size_t each = TOF_WARPS * (W + sizeof(struct tof_cell) / 4) + sizeof(struct tof_step) / 4 + 1;

	return ((size_t)steps * each + TOF_WARPS * (1 + sizeof(struct tof_ray) / 4) + 3) / 4 * 4;
}

template <int W> static __device__ __forceinline__ struct tof_shared shared_of(float *memory, int log_steps)
{
	struct tof_shared s;

	s.weight = memory; /* the first three are aligned to 16 bytes */
	s.cell = (struct tof_cell *)(s.weight + (TOF_WARPS * W << log_steps));
	s.step = (struct tof_step *)(s.cell + (TOF_WARPS << log_steps));
	s.ray = (struct tof_ray *)(s.step + (1 << log_steps));
	s.stretch = (float *)(s.ray + TOF_WARPS);
	s.column = (int *)(s.stretch + TOF_WARPS);
	s.row = memory + shared_floats<W>(1 << log_steps);
	return s;
}

template <bool JOSEPH> static __device__ __forceinline__ struct tof_ray ray_of(const struct tof_warp &warp, double z, float inv_w)
{
	struct tof_ray r;

	r.slope = (float)(warp.rise * inv_w);
	r.base = (int)floor(z);
	r.z = (float)(z - floor(z));
	if (!JOSEPH && r.slope == 0) { /* the ray is in one slice */
		r.base = (int)floor(z + 0.5);
		r.z = 0;
	}
	r.inv = r.slope != 0 ? 1 / fabsf(r.slope) : 0;
	r.half = r.slope != 0 ? 0.5f * r.inv : 1e30f;
	return r;
}

/* Compute the upper slice of a ray in a step relative to its base, and the lengths in it and in the slice below. */
template <bool JOSEPH>
static __device__ __forceinline__ int split_step(const struct tof_ray &r, const struct tof_step &s, float *upper, float *lower)
{
	float zs = fmaf(r.slope, r.slope < 0 ? s.low : s.high, r.z), m = zs + MAGIC, above = zs - (m - MAGIC);

	*upper = JOSEPH ? s.length * (above + 0.5f) : fminf(s.length, fmaf(above, r.inv, r.half));
	*lower = s.length - *upper;
	return __float_as_int(m) - 0x4b400000;
}

/* Read step k in ascending t; its number in the path is k, or counted from the end if t falls. */
template <bool JOSEPH>
static __device__ __forceinline__ struct tof_step step_of(const struct path_step *step, const struct path &path, int k,
							  int *ret_column)
{
	int i = JOSEPH && path.dt < 0 ? path.n - 1 - k : k;
	struct path_step from = step[i];
	struct tof_step s;

	*ret_column = from.column;
	s.share = JOSEPH ? from.t : 0;
	s.high = JOSEPH ? fmaf((float)i, path.dt, path.t) : from.t;
	s.low = JOSEPH ? s.high : k ? step[k - 1].t : path.t;
	s.length = JOSEPH ? fabsf(path.dt) : s.high - s.low;
	return s;
}

/* Compute windows, slices and weights of n steps for every slot. The upper edge of a window is beyond the cut-off. */
template <int W, bool JOSEPH>
static __device__ __forceinline__ void make_cells(const struct tof_job &job, const struct tof_shared &s, int n, int slots)
{
	const float inv_sigma = 1 / job.sigma, inv_width = 1 / job.width, half = 0.5f * (float)job.n_tof;
	const float pitch = job.width * inv_sigma;

	for (int at = threadIdx.x; at < slots << job.log_steps; at += blockDim.x) {
		const int slot = at >> job.log_steps, k = at & ((1 << job.log_steps) - 1);
		const struct tof_step step = s.step[k];
		const float t = 0.5f * (step.low + step.high) * s.stretch[slot];
		const float low = (t - (float)TOF_CUT * job.sigma) * inv_width + half;
		struct tof_cell cell;
		float edge, before;

		if (k >= n)
			continue;
		cell.first = low > 0 ? (int)fminf(low, (float)job.n_tof) : 0;
		cell.slice = split_step<JOSEPH>(s.ray[slot], step, &cell.upper, &cell.lower);
		s.cell[at] = cell;
		edge = (((float)cell.first - half) * job.width - t) * inv_sigma;
		before = tof_cumulative_float(edge);
#pragma unroll
		for (int j = 0; j < W; j += 4) {
			float w[4];

#pragma unroll
			for (int i = 0; i < 4; i++) {
				float after = j + i < W - 1 ? tof_cumulative_float(fmaf((float)(j + i + 1), pitch, edge)) : 1;

				w[i] = cell.first + j + i < job.n_tof ? after - before : 0;
				before = after;
			}
			*(float4 *)(s.weight + at * W + j) = make_float4(w[0], w[1], w[2], w[3]);
		}
	}
}

/* Copy the columns of n steps into shared memory (JOSEPH: interpolated between the two columns), zeros around them. */
template <bool JOSEPH>
static __device__ __forceinline__ void load_rows(const struct tof_job &job, const struct path &path, const struct tof_shared &s,
						 int n)
{
	const int pitch = job.column + 2 * MARGIN, warps = blockDim.x / 32;

	for (int k = threadIdx.x / 32; k < n; k += warps) {
		const float *from = job.x + (size_t)s.column[k] * job.column,
			    *other = from + (ptrdiff_t)path.neighbour * job.column;
		const float w = s.step[k].share, u = 1 - w;

		for (int i = 4 * (threadIdx.x % 32); i < pitch; i += 128) {
			const int z = i - MARGIN;
			float4 a = make_float4(0, 0, 0, 0);

			if (z >= 0 && z < job.column) {
				a = __ldg((const float4 *)(from + z));
				if (JOSEPH) {
					float4 b = __ldg((const float4 *)(other + z));

					a = make_float4(fmaf(w, b.x, u * a.x), fmaf(w, b.y, u * a.y), fmaf(w, b.z, u * a.z),
							fmaf(w, b.w, u * a.w));
				}
				a.y = z + 1 < job.nz ? a.y : 0; /* the padding is not read */
				a.z = z + 2 < job.nz ? a.z : 0;
				a.w = z + 3 < job.nz ? a.w : 0;
			}
			*(float4 *)(s.row + k * pitch + i) = a;
		}
	}
}

/* The planes of this thread, and what all warps of the block share. */
struct tof_lane {
	float stretch;
	int warp;  /* number of the warp's planes in job.warp */
	int plane; /* the lane's first plane */
	int lane, slot, slots;
	int n;			   /* planes of the warp; 0: it has none */
	bool joined;		   /* they are one slice apart */
	int base, lowest, highest; /* bases of the rays: of the lane's first plane; of all planes of the warp */
};

/* Return whether the lane has a plane number p. */
static __device__ __forceinline__ bool has_plane(const struct tof_lane &l, int p)
{
	return l.lane + 32 * p < l.n;
}

/* Return the ray of the lane's plane number p; if it has none, that of the warp's last plane. */
template <bool JOSEPH>
static __device__ __forceinline__ struct tof_ray ray_of_lane(const struct tof_job &job, const struct tof_warp &warp, int lane,
							     int p)
{
	return ray_of<JOSEPH>(warp, warp.z + min(lane + 32 * p, warp.n - 1) * warp.pitch, job.inv_w[blockIdx.x % job.n_v]);
}

/* Return whether planes are joined and their upper slices are from `least` to `most` in steps of which the first and the last have
 * these slices, relative to the bases. */
static __device__ __forceinline__ bool is_inside(const struct tof_lane &l, int first, int last, int least, int most)
{
	return l.joined && l.lowest + min(first, last) >= least && l.highest + max(first, last) <= most;
}

template <int W, bool JOSEPH>
static __device__ __forceinline__ struct tof_lane lane_of(const struct tof_job &job, const struct tof_shared &s)
{
	const int first = blockIdx.y * TOF_WARPS, last = min(first + TOF_WARPS, job.n_warps) - 1, at = first + threadIdx.x / 32;
	struct tof_lane l = {};

	l.lane = threadIdx.x % 32;
	l.slots = job.warp[last].slot + 1;
	if (at <= last) {
		const struct tof_warp warp = job.warp[at];
		const struct tof_ray ray = ray_of_lane<JOSEPH>(job, warp, l.lane, 0);
		const int end = ray_of_lane<JOSEPH>(job, warp, warp.n - 1, 0).base;

		l.stretch = sqrtf(1 + ray.slope * ray.slope * job.slice * job.slice);
		l.warp = at;
		l.plane = warp.plane + l.lane;
		l.slot = warp.slot;
		l.n = warp.n;
		l.joined = warp.pitch == 1;
		l.base = ray.base;
		l.lowest = __shfl_sync(ALL, ray.base, 0);
		l.highest = max(l.lowest, end);
		if (warp.leads && l.lane == 0) {
			s.ray[l.slot] = ray;
			s.stretch[l.slot] = l.stretch;
		}
	}
	return l;
}

/* Prepare the next n steps for all threads. */
template <int W, bool JOSEPH, bool BACK>
static __device__ __forceinline__ void next_steps(const struct tof_job &job, const struct path &path, const struct tof_shared &s,
						  int k0, int n, int slots)
{
	__syncthreads(); /* all threads have finished the last steps */
	if (threadIdx.x < n)
		s.step[threadIdx.x] = step_of<JOSEPH>(job.step + path.at, path, k0 + threadIdx.x, s.column + threadIdx.x);
	__syncthreads();
	make_cells<W, JOSEPH>(job, s, n, slots);
	if (!BACK)
		load_rows<JOSEPH>(job, path, s, n);
	__syncthreads();
}

#endif
