/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_paths_forward.cu - PROJECTION_PATHS and PROJECTION_JOSEPH: a block for each path. In turn, its warps compute the tables of
 * a few chunks (cuda_paths_rays.cuh), a warp those of some slices and a lane those of a pair; then each thread adds up a few
 * planes of a group. */
#include "kernels/cuda/cuda_paths_rays.cuh"

#define AHEAD 4 /* steps whose voxels are loaded together */

/* The sums of a pair of slices: x is the even one. */
struct pair_sums {
	float2 t;	/* T */
	float2 slope;	/* JOSEPH: change of T from step to step */
	float2 x, rise; /* sums of x and (JOSEPH) of k x */
};

/* Add step k, of length `part` (PATHS). below, above: the voxels below and above the pair */
template <bool JOSEPH>
static __device__ __forceinline__ void add_step(struct pair_sums &s, float2 x, float below, float above, float part, float k)
{
	if (JOSEPH) {
		s.slope.x += 2 * x.x - (below + x.y);
		s.slope.y += 2 * x.y - (x.x + above);
		s.t = make_float2(s.t.x + s.slope.x, s.t.y + s.slope.y);
		s.x = make_float2(s.x.x + x.x, s.x.y + x.y);
		s.rise = make_float2(fmaf(k, x.x, s.rise.x), fmaf(k, x.y, s.rise.y));
	} else {
		s.t = make_float2(fmaf(part, x.x - x.y, s.t.x), fmaf(part, x.y - above, s.t.y));
		s.x = make_float2(fmaf(part, x.x, s.x.x), fmaf(part, x.y, s.x.y));
	}
}

/* Store a pair in shared memory with one instruction; if the compiler makes two of it, they have bank conflicts. */
static __device__ __forceinline__ void store_pair(float *to, float2 a)
{
	*(double *)to = __hiloint2double(__float_as_int(a.y), __float_as_int(a.x));
}

/* Compute the table of a chunk of n steps, for the pairs of a section; one warp. */
template <bool JOSEPH>
static __device__ __forceinline__ void make_section(const struct rays_job &job, const struct path &path, int n, int window,
						    int section, const struct chunk &ret)
{
	const int lane = threadIdx.x % 32, at = section * SECTION + lane, pair = at - FIRST, z = 2 * (window + pair);
	const bool has_even = pair >= 0 && pair < job.window && z < job.nz, has_odd = has_even && z + 1 < job.nz;
	const bool mine =
		(lane >= FIRST || section == 0) && (lane < FIRST + SECTION || at >= job.window + FIRST) && 2 * at < job.row;
	const ptrdiff_t neighbour = (ptrdiff_t)path.neighbour * job.column * (ptrdiff_t)sizeof(float);
	const char *x = (const char *)(job.x + (has_even ? z : 0));
	float *to = ret.table + 2 * at;
	struct pair_sums s = {};

	if (mine)
		store_pair(to, s.t);
	for (int k0 = 0; k0 < n; k0 += AHEAD) {
		struct chunk_step step[AHEAD];
		float2 c[AHEAD], d[AHEAD];

#pragma unroll
		for (int i = 0; i < AHEAD; i++) {
			step[i] = ret.steps->step[k0 + i];
			c[i] = __ldg((const float2 *)(x + step[i].at));
			if (JOSEPH)
				d[i] = __ldg((const float2 *)(x + step[i].at + neighbour));
		}
#pragma unroll
		for (int i = 0; i < AHEAD; i++) {
			if (JOSEPH)
				c[i] = make_float2(fmaf(step[i].part, d[i].x, step[i].rest * c[i].x),
						   fmaf(step[i].part, d[i].y, step[i].rest * c[i].y));
			c[i] = make_float2(has_even ? c[i].x : 0, has_odd ? c[i].y : 0);
		}
#pragma unroll
		for (int i = 0; i < AHEAD; i++) {
			const float above = __shfl_down_sync(ALL, c[i].x, 1), below = JOSEPH ? __shfl_up_sync(ALL, c[i].y, 1) : 0;

			add_step<JOSEPH>(s, c[i], below, above, step[i].part, (float)(k0 + i));
			to += job.row;
			if (mine)
				store_pair(to, s.t);
		}
	}
	if (mine) {
		((float2 *)ret.sum)[at] = s.x;
		if (JOSEPH)
			((float2 *)ret.rise)[at] = s.rise;
	}
}

/* Add the chunk to the sums of the lane's planes. */
template <bool JOSEPH, bool LEAVES>
static __device__ __forceinline__ void add_chunk(const struct rays_job &job, const struct lane_chunk &c, int base,
						 const struct chunk &from, float *sum)
{
	const float *table = from.table + base;
	const int s = pass_faces<JOSEPH>(c, from.steps, [&](int k, int m, float part) {
		const float *row = table + (k * job.row + m), *next = row + job.row;
		const float second = part * c.factor, first = c.factor - second;

#pragma unroll
		for (int j = 0; j < PATHS_PLANES; j++) {
			const int at = place_of<LEAVES>(job, base + m, j);

			sum[j] = fmaf(first, row[at], fmaf(second, next[at], sum[j]));
		}
	});
	const float upper = c.z - (float)s + 0.5f, *ends = from.sum + (base + s), *rises = from.rise + (base + s);

#pragma unroll
	for (int j = 0; j < PATHS_PLANES; j++) {
		const int at = place_of<LEAVES>(job, base + s, j), below = place_of<LEAVES>(job, base + s - 1, j) - 1;

		if (JOSEPH)
			sum[j] += fmaf(upper, ends[at], c.slope * rises[at]) +
				  fmaf(1 - upper, ends[below], -c.slope * rises[below]);
		else
			sum[j] += ends[at];
	}
}

template <bool JOSEPH, bool LEAVES>
static __global__ void __launch_bounds__(RAYS_THREADS, RAYS_BLOCKS) forward_kernel(const __grid_constant__ struct rays_job job)
{
	extern __shared__ __align__(16) char shared[];
	const int lane_at = blockIdx.y * blockDim.x + threadIdx.x, warp = threadIdx.x / 32, warps = blockDim.x / 32;
	const struct path path = job.path[blockIdx.x];
	struct path_lane lane = {};
	struct path_ray ray = {};
	float sum[PATHS_PLANES] = {}, inv = 0;

	if (lane_at < job.n_lanes) {
		lane = job.lane[lane_at];
		ray = path_ray_of(lane, job.inv_w[blockIdx.x % job.n_v], job.slice);
		inv = inverse_of<JOSEPH>(ray, path);
	}
	for (int window = 0; 2 * window < job.nz; window += job.window)
		for (int k0 = 0; k0 < path.n; k0 += job.chunks * job.steps) {
			const int n = min(job.chunks, (path.n - k0 + job.steps - 1) / job.steps);

			__syncthreads(); /* all threads have read the last tables */
			for (int i = warp; i < n; i += warps)
				load_steps<JOSEPH>(job, path, k0 + i * job.steps, chunk_at(job, shared, i).steps);
			if (job.sections > 1) /* if not, each warp has loaded the steps of its sections */
				__syncthreads();
			for (int i = warp; i < n * job.sections; i += warps) {
				const int at = job.sections > 1 ? i / job.sections : i;

				make_section<JOSEPH>(job, path, min(job.steps, path.n - (k0 + at * job.steps)), window,
						     i - at * job.sections, chunk_at(job, shared, at));
			}
			__syncthreads();
			for (int i = 0; lane.n && i < n; i++) {
				const struct chunk c = chunk_at(job, shared, i);

				add_chunk<JOSEPH, LEAVES>(job,
							  lane_chunk_of<JOSEPH>(job, ray, inv, path, k0 + i * job.steps, c.steps),
							  base_of(lane, window), c, sum);
			}
		}
#pragma unroll
	for (int j = 0; j < PATHS_PLANES; j++)
		if (j < lane.n) {
			float *y = job.ret_y + (size_t)blockIdx.x * job.n_u + lane.plane + j * lane.stride;

			*y = (job.add ? *y : 0) + sum[j] * (ray.stretch * (JOSEPH ? fabsf(path.dt) : 1));
		}
}

template <bool JOSEPH> static int launch_forward(struct projection *a, const struct rays_job &job, struct err *err)
{
	return rays_launch(a, rays_leave(a) ? forward_kernel<JOSEPH, true> : forward_kernel<JOSEPH, false>, job, "paths forward",
			   err);
}

int cuda_paths_rays_forward(struct projection *a, const float *x, bool add, float *y, struct err *err)
{
	struct rays_job job = rays_job_of(a);

	job.x = x;
	job.ret_y = y;
	job.add = add;
	return a->model == PROJECTION_JOSEPH ? launch_forward<true>(a, job, err) : launch_forward<false>(a, job, err);
}
