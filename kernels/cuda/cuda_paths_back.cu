/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_paths_back.cu - PROJECTION_PATHS and PROJECTION_JOSEPH, the transpose of cuda_paths_forward.cu: a block for each path. In
 * turn, each thread adds the bins of a few planes to the tables of a few chunks (cuda_paths_rays.cuh); then each warp computes
 * the voxels' sums of a chunk, from its last step to its first, and adds them to the volume.
 *
 * The tables are integers: what one event adds, another one subtracts without any rest (JOSEPH: but for some tens of units, since
 * its three products with a bin are rounded one by one); the order of additions does not change the result; and shared memory has
 * atomics for them. One unit is 2^-30 of the sum of the path's |bins| (JOSEPH: a few times as
 * much), so no voxel's sum exceeds 32 bits; those in the tables may, but they are correct modulo 2^32. The volume is added to
 * with atomics of floats or, for bitwise repeatable results, in 64-bit fixed-point sums. */
#include "kernels/cuda/cuda_paths_rays.cuh"

#define RANGE 0x1p30f	/* units */
#define FINEST 0x1p126f /* largest number of units in 1 */

/* Add the bins of the lane's planes to the tables of a chunk. bin: in units; 0 for planes that the lane does not have */
template <bool JOSEPH, bool LEAVES>
static __device__ __forceinline__ void add_chunk(const struct rays_job &job, const struct lane_chunk &c, int base,
						 const float *bin, const struct chunk &to)
{
	int *table = (int *)to.table + base, all[PATHS_PLANES];

#pragma unroll
	for (int j = 0; j < PATHS_PLANES; j++)
		all[j] = __float2int_rn(c.factor * bin[j]);
	const int s = pass_faces<JOSEPH>(c, to.steps, [&](int k, int m, float part) {
		int *row = table + (k * job.row + m), *next = row + job.row;

		part *= c.factor;
#pragma unroll
		for (int j = 0; j < PATHS_PLANES; j++) {
			const int at = place_of<LEAVES>(job, base + m, j), second = __float2int_rn(part * bin[j]);

			atomicAdd(row + at, all[j] - second);
			atomicAdd(next + at, second);
		}
	});
	const float upper = c.z - (float)s + 0.5f;
	int *ends = (int *)to.sum + (base + s), *rises = (int *)to.rise + (base + s);

#pragma unroll
	for (int j = 0; j < PATHS_PLANES; j++) {
		const int at = place_of<LEAVES>(job, base + s, j), below = place_of<LEAVES>(job, base + s - 1, j) - 1,
			  whole_bin = __float2int_rn(bin[j]);

		if (JOSEPH) {
			const int share = __float2int_rn(upper * bin[j]), rise = __float2int_rn(c.slope * bin[j]);

			atomicAdd(ends + at, share);
			atomicAdd(rises + at, rise);
			atomicAdd(ends + below, whole_bin - share);
			atomicAdd(rises + below, -rise);
		} else {
			atomicAdd(ends + at, whole_bin);
		}
	}
}

/* Set a chunk's rows to 0; one warp. */
static __device__ __forceinline__ void clear_chunk(const struct rays_job &job, const struct chunk &c)
{
#pragma unroll 4
	for (int i = threadIdx.x % 32; i < (CHUNK + 3) * job.row / 4; i += 32)
		((int4 *)c.sum)[i] = make_int4(0, 0, 0, 0);
}

/* Add to the voxels of a pair of slices; `at`: see struct chunk_step. If the upper one is not in the volume, it is padding. */
template <bool FIXED>
static __device__ __forceinline__ void add_pair(const struct rays_job &job, size_t at, float even, float odd, double scale)
{
	if (FIXED) {
		unsigned long long *to = (unsigned long long *)((char *)job.fixed + 2 * at);

		atomicAdd(to, (unsigned long long)__double2ll_rn((double)even * scale));
		atomicAdd(to + 1, (unsigned long long)__double2ll_rn((double)odd * scale));
		return;
	}
	float *to = (float *)((char *)job.ret_x + at);

#if __CUDA_ARCH__ >= 900
	atomicAdd((float2 *)to, make_float2(even, odd));
#else
	atomicAdd(to, even);
	atomicAdd(to + 1, odd);
#endif
}

/* Add the voxels' sums of a chunk of n steps to the volume, those of a section; one warp. unit: what 1 in the table is. */
template <bool JOSEPH, bool FIXED>
static __device__ __forceinline__ void bring_home(const struct rays_job &job, size_t neighbour, int n, int window, int section,
						  const struct chunk &from, float unit, double scale)
{
	const int lane = threadIdx.x % 32, at = min(section * SECTION + lane, job.row / 2 - 1), z = 2 * (window + at - FIRST);
	const bool mine = lane >= FIRST && lane < FIRST + SECTION && at < job.window + FIRST && z < job.nz;
	const float odd_unit = z + 1 < job.nz ? unit : 0;
	const float *row = from.table + n * job.row + 2 * at;
	const uint2 rise = ((const uint2 *)from.rise)[at];
	uint2 sum = ((const uint2 *)from.sum)[at], slope = {-rise.x, -rise.y}; /* slope: change from a step to the one before */

	if (JOSEPH)
		sum = make_uint2(sum.x + n * rise.x, sum.y + n * rise.y);
#pragma unroll 4
	for (int k = n - 1; k >= 0; k--, row -= job.row) {
		const struct chunk_step step = from.steps->step[k];
		const uint2 t = *(const uint2 *)row;
		const unsigned below = __shfl_up_sync(ALL, t.y, 1), above = JOSEPH ? __shfl_down_sync(ALL, t.x, 1) : 0;
		const size_t voxel = step.at + (size_t)z * sizeof(float);

		if (JOSEPH) {
			slope = make_uint2(slope.x + 2 * t.x - below - t.y, slope.y + 2 * t.y - t.x - above);
			sum = make_uint2(sum.x + slope.x, sum.y + slope.y);
		} else {
			sum = make_uint2(sum.x + t.x - below, sum.y + t.y - t.x);
		}
		const float even = unit * (float)(int)sum.x, odd = odd_unit * (float)(int)sum.y;

		if (mine) {
			if (JOSEPH)
				add_pair<FIXED>(job, voxel, step.rest * even, step.rest * odd, scale);
			add_pair<FIXED>(job, voxel + neighbour, step.part * even, step.part * odd, scale);
		}
	}
}

/* Return in x the sum of v over the threads of the block, in a fixed order; in y the largest w. */
static __device__ __forceinline__ float2 reduce_block(float v, float w)
{
	__shared__ float2 of_warp[RAYS_THREADS / 32];
	float2 all = {0, 0};

#pragma unroll
	for (int d = 16; d > 0; d /= 2) {
		v += __shfl_xor_sync(ALL, v, d);
		w = fmaxf(w, __shfl_xor_sync(ALL, w, d));
	}
	if (threadIdx.x % 32 == 0)
		of_warp[threadIdx.x / 32] = make_float2(v, w);
	__syncthreads();
#pragma unroll 1
	for (int i = 0; i < blockDim.x / 32; i++)
		all = make_float2(all.x + of_warp[i].x, fmaxf(all.y, of_warp[i].y));
	return all;
}

template <bool JOSEPH, bool LEAVES, bool FIXED>
static __global__ void __launch_bounds__(RAYS_THREADS, RAYS_BLOCKS) back_kernel(const __grid_constant__ struct rays_job job)
{
	extern __shared__ __align__(16) char shared[];
	const int lane_at = blockIdx.y * blockDim.x + threadIdx.x, warp = threadIdx.x / 32, warps = blockDim.x / 32;
	const struct path path = job.path[blockIdx.x];
	const double scale = FIXED ? 0x1p62 / ((double)*job.largest * job.bound) : 0;
	const size_t neighbour =
		JOSEPH ? (size_t)((ptrdiff_t)path.neighbour * job.column * (ptrdiff_t)sizeof(float)) : 0; /* bytes */
	struct path_lane lane = {};
	struct path_ray ray = {};
	float bin[PATHS_PLANES] = {}, inv = 0, sum = 0, units, unit;
	float2 all;

	if (path.n == 0)
		return;
	if (lane_at < job.n_lanes) {
		lane = job.lane[lane_at];
		ray = path_ray_of(lane, job.inv_w[blockIdx.x % job.n_v], job.slice);
		inv = inverse_of<JOSEPH>(ray, path);
	}
#pragma unroll
	for (int j = 0; j < PATHS_PLANES; j++)
		if (j < lane.n) {
			bin[j] = job.y[(size_t)blockIdx.x * job.n_u + lane.plane + j * lane.stride] * ray.stretch;
			sum += fabsf(bin[j]);
		}
	all = reduce_block(sum, JOSEPH ? fabsf(ray.slope * path.dt) : 0);
	if (all.x == 0)
		return;
	units = RANGE / (all.x * (JOSEPH ? (float)job.steps * all.y + 1.5f : 1)); /* JOSEPH: weights are up to that */
	units = units > FINEST ? FINEST : units;
	unit = (JOSEPH ? fabsf(path.dt) : 1) / units;
#pragma unroll
	for (int j = 0; j < PATHS_PLANES; j++)
		bin[j] *= units;
	for (int window = 0; 2 * window < job.nz; window += job.window)
		for (int k0 = 0; k0 < path.n; k0 += job.chunks * job.steps) {
			const int n = min(job.chunks, (path.n - k0 + job.steps - 1) / job.steps);

			if (job.sections > 1) /* if not, a warp clears the tables that it has read */
				__syncthreads();
			for (int i = warp; i < n; i += warps) {
				const struct chunk c = chunk_at(job, shared, i);

				load_steps<JOSEPH>(job, path, k0 + i * job.steps, c.steps);
				clear_chunk(job, c);
			}
			__syncthreads();
			for (int i = 0; lane.n && i < n; i++) {
				const struct chunk c = chunk_at(job, shared, i);

				add_chunk<JOSEPH, LEAVES>(job,
							  lane_chunk_of<JOSEPH>(job, ray, inv, path, k0 + i * job.steps, c.steps),
							  base_of(lane, window), bin, c);
			}
			__syncthreads();
			for (int i = warp; i < n * job.sections; i += warps) {
				const int at = job.sections > 1 ? i / job.sections : i;

				bring_home<JOSEPH, FIXED>(job, neighbour, min(job.steps, path.n - (k0 + at * job.steps)), window,
							  i - at * job.sections, chunk_at(job, shared, at), unit, scale);
			}
		}
}

template <bool JOSEPH, bool LEAVES> static int launch_back(struct projection *a, const struct rays_job &job, struct err *err)
{
	return rays_launch(a, job.fixed ? back_kernel<JOSEPH, LEAVES, true> : back_kernel<JOSEPH, LEAVES, false>, job,
			   "paths back", err);
}

int cuda_paths_rays_back(struct projection *a, const float *y, const struct cuda_fixed *fixed, float *x, struct err *err)
{
	struct rays_job job = rays_job_of(a);

	job.y = y;
	job.ret_x = x;
	if (fixed) {
		job.fixed = fixed->sums;
		job.largest = fixed->largest;
		job.bound = fixed->bound;
	}
	if (a->model == PROJECTION_JOSEPH)
		return rays_leave(a) ? launch_back<true, true>(a, job, err) : launch_back<true, false>(a, job, err);
	return rays_leave(a) ? launch_back<false, true>(a, job, err) : launch_back<false, false>(a, job, err);
}
