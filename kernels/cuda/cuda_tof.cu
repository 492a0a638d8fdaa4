/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_tof.cu - PROJECTION_PATHS and PROJECTION_JOSEPH with time of flight. A block processes a path and up to TOF_WARPS warps of
 * planes; each lane of a warp has TOF_PLANES() planes. The steps are processed in ascending t, 2^TOF_LOG_STEPS at a time. A step
 * contributes to the TOF bins of a window (tof_bins()), which only moves upwards: a lane has the bins of its window in registers.
 * When the window moves, forward stores the bin that leaves it, back loads the one that enters.
 *
 * In a step the ray of a plane is in slice b and the slice below it (kernels/paths.h). Planes a whole number of slices apart have
 * the same lengths there, and all planes of one rise have the same weights: a block computes both once, in shared memory, for
 * each of its slots. Forward: the columns of the steps are in shared memory, with zeros below and above. Back: the contributions
 * to the volume are atomic additions or, for bitwise repeatable results, additions to 64-bit fixed-point sums. While the
 * planes of a warp are one slice apart and inside the volume (is_inside()), the lower contribution of a plane and the upper one
 * of the plane before it belong to the same voxel and are added at once, and the places of a lane's planes are 32 voxels apart
 * and need no check. Many planes for each lane pay because a step's weights are read once for all of them. */
#include "kernels/cuda/cuda_paths.cuh"

#include <errno.h>
#include <stdlib.h>

#include "kernels/cuda/cuda_tof_steps.cuh"

#define DISTANCE_TOL 1e-6 /* slices */

struct cuda_tof {
	struct tof_warp *warp; /* device memory */
	int n_warps, window;
	bool whole; /* all distances of planes are whole numbers of slices */
};

/* Steps that follow each other, for the planes of a slot. */
struct tof_steps {
	const struct tof_cell *cell, *end;
	const float4 *weight;
	const struct tof_step *step;
	const int *column;
	const float *row; /* forward */
};

static __device__ __forceinline__ struct tof_steps steps_of(const struct tof_shared &s, int window, int at, int n)
{
	return {s.cell + at, s.cell + at + n, (const float4 *)(s.weight + at * window), s.step, s.column, s.row + MARGIN};
}

/* Store the sums of a TOF bin. y: that of the lane's first plane in TOF bin 0. */
template <int W>
static __device__ __forceinline__ void store_bin(const struct tof_job &job, const struct tof_lane &l, float *y, int k,
						 const float (*sum)[W], int j)
{
	if (k >= job.n_tof)
		return;
	y += (size_t)k * job.n_u;
#pragma unroll
	for (int p = 0; p < TOF_PLANES(W); p++)
		if (has_plane(l, p))
			y[32 * p] = fmaf(sum[p][j], l.stretch, job.add ? y[32 * p] : 0);
}

/* Process steps for planes 0 to N - 1 of each lane. sum: bins of the window, whose first one is *at. INSIDE: is_inside(). */
template <int W, bool JOSEPH, bool WHOLE, int N, bool INSIDE>
static __device__ __forceinline__ void forward_steps(const struct tof_job &job, const struct tof_lane &l, float *y,
						     struct tof_steps s, float (*sum)[W], int *at)
{
	const int pitch = job.column + 2 * MARGIN, top = job.nz + 1;
	struct tof_cell c = *s.cell;
	struct tof_ray ray[N];

	if (!INSIDE)
#pragma unroll
		for (int p = 0; p < N; p++)
			ray[p] = ray_of_lane<JOSEPH>(job, job.warp[l.warp], l.lane, p);
	while (s.cell < s.end) {
		const int first = c.first;

#pragma unroll 1
		for (; *at < first; ++*at) {
			store_bin<W>(job, l, y, *at, sum, 0);
#pragma unroll
			for (int p = 0; p < N; p++) {
#pragma unroll
				for (int j = 0; j < W - 1; j++)
					sum[p][j] = sum[p][j + 1];
				sum[p][W - 1] = 0;
			}
		}
		do {						/* steps with the same window */
			const struct tof_cell next = *++s.cell; /* after the last step: not used */
			float4 w[W / 4];
			float value[N];

#pragma unroll
			for (int j = 0; j < W / 4; j++)
				w[j] = s.weight[j];
#pragma unroll
			for (int p = 0; p < N; p++) {
				float upper = c.upper, lower = c.lower;
				int b = c.slice;

				if (!WHOLE)
					b = split_step<JOSEPH>(ray[p], *s.step, &upper, &lower);
				b = INSIDE ? l.base + 32 * p + b : min(max(ray[p].base + b, -1), top);
				value[p] = fmaf(upper, s.row[b], lower * s.row[b - 1]);
			}
#pragma unroll
			for (int p = 0; p < N; p++)
#pragma unroll
				for (int j = 0; j < W; j += 4) {
					sum[p][j] = fmaf(w[j / 4].x, value[p], sum[p][j]);
					sum[p][j + 1] = fmaf(w[j / 4].y, value[p], sum[p][j + 1]);
					sum[p][j + 2] = fmaf(w[j / 4].z, value[p], sum[p][j + 2]);
					sum[p][j + 3] = fmaf(w[j / 4].w, value[p], sum[p][j + 3]);
				}
			c = next;
			s.weight += W / 4;
			s.step++;
			s.row += pitch;
		} while (s.cell < s.end && c.first == first);
	}
}

/* forward_steps() for as many planes as lane 0 has, at most N. */
template <int W, bool JOSEPH, bool WHOLE, int N, bool INSIDE>
static __device__ __forceinline__ void forward_some(const struct tof_job &job, const struct tof_lane &l, float *y,
						    const struct tof_steps &s, float (*sum)[W], int *at)
{
	if constexpr (N > 1)
		if (l.n <= 32 * ((N + 1) / 2))
			return forward_some<W, JOSEPH, WHOLE, (N + 1) / 2, INSIDE>(job, l, y, s, sum, at);
	forward_steps<W, JOSEPH, WHOLE, N, INSIDE>(job, l, y, s, sum, at);
}

template <int W, bool JOSEPH, bool WHOLE>
static __global__ void __launch_bounds__(32 * TOF_WARPS, W > 8 ? 1 : TOF_BLOCKS)
	forward_kernel(const __grid_constant__ struct tof_job job)
{
	extern __shared__ __align__(16) float memory[];
	constexpr int P = TOF_PLANES(W);
	const struct tof_shared s = shared_of<W>(memory, job.log_steps);
	const struct path path = job.path[blockIdx.x];
	const struct tof_lane l = lane_of<W, JOSEPH>(job, s);
	float *y = job.ret_y + (size_t)blockIdx.x * job.n_tof * job.n_u + l.plane;
	float sum[P][W] = {};
	int at = 0; /* first bin of the window */

	for (int k0 = 0; k0 < path.n; k0 += 1 << job.log_steps) {
		const int n = min(1 << job.log_steps, path.n - k0);
		const struct tof_steps steps = steps_of(s, W, l.slot << job.log_steps, n);

		next_steps<W, JOSEPH, false>(job, path, s, k0, n, l.slots);
		if (l.n == 0)
			continue;
		if (WHOLE && is_inside(l, steps.cell[0].slice, steps.end[-1].slice, -1, job.nz + 1))
			forward_some<W, JOSEPH, WHOLE, P, WHOLE>(job, l, y, steps, sum, &at);
		else
			forward_some<W, JOSEPH, WHOLE, P, false>(job, l, y, steps, sum, &at);
	}
#pragma unroll
	for (int j = 0; j < W; j++)
		store_bin<W>(job, l, y, at + j, sum, j);
	for (at += W; !job.add && at < job.n_tof; at++)
#pragma unroll
		for (int p = 0; p < P; p++)
			if (has_plane(l, p))
				y[(size_t)at * job.n_u + 32 * p] = 0;
}

template <bool FIXED>
static __device__ __forceinline__ void add_voxel(const struct tof_job &job, size_t at, int z, float value, double scale)
{
	if (value == 0 || (unsigned)z >= (unsigned)job.nz)
		return;
	if (FIXED)
		atomicAdd(job.fixed + at + z, (unsigned long long)__double2ll_rn((double)value * scale));
	else
		atomicAdd(job.ret_x + at + z, value);
}

/* Add the upper contributions of the lane's N planes to their slices b, the lower ones to the slices below. */
template <int N, bool FIXED>
static __device__ __forceinline__ void add_planes(const struct tof_job &job, int column, const int *b, float share,
						  const float *upper, const float *lower, double scale)
{
	const size_t at = (size_t)column * job.column;

#pragma unroll
	for (int p = 0; p < N; p++) {
		add_voxel<FIXED>(job, at, b[p], share * upper[p], scale);
		add_voxel<FIXED>(job, at, b[p] - 1, share * lower[p], scale);
	}
}

/* *x += value if it is not 0, without a branch. */
static __device__ __forceinline__ void add_nonzero(float *x, float value)
{
	asm volatile("{\n"
		     ".reg .pred p;\n"
		     "setp.neu.f32 p, %1, 0f00000000;\n"
		     "@p red.global.add.f32 [%0], %1;\n"
		     "}" ::"l"(x),
		     "f"(value)
		     : "memory");
}

/* The same for planes that is_inside() is true for: the slice below b of a plane is slice b of the plane before it, and both parts are added at
 * once. value: of the lane's planes; b: relative to the bases. All lanes of the warp call it. */
template <int N, bool FIXED>
static __device__ __forceinline__ void add_joined(const struct tof_job &job, const struct tof_lane &l, int column, int b,
						  float upper, float lower, const float *value, double scale)
{
	const size_t at = (size_t)column * job.column, first = at + (l.base + b);
	float next[N + 1];

#pragma unroll
	for (int p = 0; p < N; p++)
		next[p] = __shfl_sync(ALL, value[p], l.lane + 1); /* lane 31: that of lane 0 */
	next[N] = 0;
#pragma unroll
	for (int p = 0; p < N; p++) {
		const float sum = fmaf(lower, l.lane < 31 ? next[p] : next[p + 1], upper * value[p]);

		if (!FIXED)
			add_nonzero(job.ret_x + first + 32 * p, sum);
		else if (sum != 0)
			atomicAdd(job.fixed + first + 32 * p, (unsigned long long)__double2ll_rn((double)sum * scale));
	}
	if (l.lane == 0)
		add_voxel<FIXED>(job, at, l.base + b - 1, lower * value[0], scale);
}

/* Process steps [cell, end) for planes 0 to N - 1 of each lane; as forward_steps(). JOINED: is_inside(), of the
 * volume. */
template <int W, bool JOSEPH, bool WHOLE, bool FIXED, int N, bool JOINED>
static __device__ __forceinline__ void back_steps(const struct tof_job &job, const struct tof_lane &l, const float *y,
						  struct tof_steps s, int neighbour, double scale, float (*bin)[W], int *at)
{
	struct tof_cell c = *s.cell;
	struct tof_ray ray[N];

	if (!JOINED)
#pragma unroll
		for (int p = 0; p < N; p++)
			ray[p] = ray_of_lane<JOSEPH>(job, job.warp[l.warp], l.lane, p);
	while (s.cell < s.end) {
		const int first = c.first;

#pragma unroll 1
		for (; *at < first; ++*at)
#pragma unroll
			for (int p = 0; p < N; p++) {
#pragma unroll
				for (int j = 0; j < W - 1; j++)
					bin[p][j] = bin[p][j + 1];
				bin[p][W - 1] = has_plane(l, p) && *at + W < job.n_tof
							? y[(size_t)(*at + W) * job.n_u + 32 * p] * l.stretch
							: 0;
			}
		do {						/* steps with the same window */
			const struct tof_cell next = *++s.cell; /* after the last step: not used */
			const float share = JOSEPH ? s.step->share : 0;
			float4 w[W / 4];
			float value[N];

#pragma unroll
			for (int j = 0; j < W / 4; j++)
				w[j] = s.weight[j];
#pragma unroll
			for (int p = 0; p < N; p++) {
				value[p] = 0;
#pragma unroll
				for (int j = 0; j < W; j += 4)
					value[p] = fmaf(
						w[j / 4].x, bin[p][j],
						fmaf(w[j / 4].y, bin[p][j + 1],
						     fmaf(w[j / 4].z, bin[p][j + 2], fmaf(w[j / 4].w, bin[p][j + 3], value[p]))));
			}
			if (JOINED) {
				add_joined<N, FIXED>(job, l, *s.column, c.slice, (1 - share) * c.upper, (1 - share) * c.lower,
						     value, scale);
				if (JOSEPH)
					add_joined<N, FIXED>(job, l, *s.column + neighbour, c.slice, share * c.upper,
							     share * c.lower, value, scale);
			} else {
				float upper[N], lower[N];
				int b[N];

#pragma unroll
				for (int p = 0; p < N; p++) {
					b[p] = c.slice;
					upper[p] = c.upper;
					lower[p] = c.lower;
					if (!WHOLE)
						b[p] = split_step<JOSEPH>(ray[p], *s.step, &upper[p], &lower[p]);
					b[p] += ray[p].base;
					upper[p] *= value[p];
					lower[p] *= value[p];
				}
				add_planes<N, FIXED>(job, *s.column, b, 1 - share, upper, lower, scale);
				if (JOSEPH)
					add_planes<N, FIXED>(job, *s.column + neighbour, b, share, upper, lower, scale);
			}
			c = next;
			s.weight += W / 4;
			s.step++;
			s.column++;
		} while (s.cell < s.end && c.first == first);
	}
}

/* back_steps() for as many planes as lane 0 has, at most N. */
template <int W, bool JOSEPH, bool WHOLE, bool FIXED, int N, bool JOINED>
static __device__ __forceinline__ void back_some(const struct tof_job &job, const struct tof_lane &l, const float *y,
						 const struct tof_steps &s, int neighbour, double scale, float (*bin)[W], int *at)
{
	if constexpr (N > 1)
		if (l.n <= 32 * ((N + 1) / 2))
			return back_some<W, JOSEPH, WHOLE, FIXED, (N + 1) / 2, JOINED>(job, l, y, s, neighbour, scale, bin, at);
	back_steps<W, JOSEPH, WHOLE, FIXED, N, JOINED>(job, l, y, s, neighbour, scale, bin, at);
}

template <int W, bool JOSEPH, bool WHOLE, bool FIXED>
static __global__ void __launch_bounds__(32 * TOF_WARPS, W > 8 ? 1 : TOF_BLOCKS)
	back_kernel(const __grid_constant__ struct tof_job job)
{
	extern __shared__ __align__(16) float memory[];
	constexpr int P = TOF_PLANES(W);
	const struct tof_shared s = shared_of<W>(memory, job.log_steps);
	const struct path path = job.path[blockIdx.x];
	const struct tof_lane l = lane_of<W, JOSEPH>(job, s);
	const float *y = job.y + (size_t)blockIdx.x * job.n_tof * job.n_u + l.plane;
	const double scale = FIXED ? 0x1p62 / ((double)*job.largest * job.bound) : 0;
	float bin[P][W];
	int at = 0;

#pragma unroll
	for (int p = 0; p < P; p++)
#pragma unroll
		for (int j = 0; j < W; j++)
			bin[p][j] = has_plane(l, p) && j < job.n_tof ? y[(size_t)j * job.n_u + 32 * p] * l.stretch : 0;
	for (int k0 = 0; k0 < path.n; k0 += 1 << job.log_steps) {
		const int n = min(1 << job.log_steps, path.n - k0);
		const struct tof_steps steps = steps_of(s, W, l.slot << job.log_steps, n);

		next_steps<W, JOSEPH, true>(job, path, s, k0, n, l.slots);
		if (l.n == 0)
			continue;
		if (WHOLE && is_inside(l, steps.cell[0].slice, steps.end[-1].slice, 0, job.nz - 1))
			back_some<W, JOSEPH, WHOLE, FIXED, P, WHOLE>(job, l, y, steps, path.neighbour, scale, bin, &at);
		else
			back_some<W, JOSEPH, WHOLE, FIXED, P, false>(job, l, y, steps, path.neighbour, scale, bin, &at);
	}
}

/* ---- host ---- */

/* Return z, or the nearest multiple of 1/2 if it differs only by rounding, so that rounding does not decide which slice a plane
 * is in. */
static double snap_half(double z)
{
	double half = 0.5 * rint(2 * z);

	return fabs(z - half) < DISTANCE_TOL ? half : z;
}

/* Divide the groups of planes into warps; return their number. */
static int make_warps(const struct projection_spec *spec, const struct plane_group *group, int n_groups, int window,
		      struct tof_warp *ret, bool *ret_whole)
{
	const struct grid *g = spec->grid;
	int n = 0, slot = 0, most = 32 * TOF_PLANES(window);

	*ret_whole = true;
	for (int i = 0; i < n_groups; i++) {
		double pitch = group[i].pitch / g->h[2],
		       z = snap_half((group[i].z - g->lo[2]) / g->h[2] - (spec->model == PROJECTION_JOSEPH ? 0 : 0.5));
		bool whole = fabs(pitch - rint(pitch)) * group[i].n < DISTANCE_TOL;

		pitch = whole ? rint(pitch) : pitch;
		*ret_whole &= whole;
		for (int j = 0; j < group[i].n; j += most, n++) {
			ret[n].leads = n % TOF_WARPS == 0 || j == 0;
			slot = n % TOF_WARPS == 0 ? 0 : slot + ret[n].leads;
			ret[n].plane = group[i].first + j;
			ret[n].n = group[i].n - j < most ? group[i].n - j : most;
			ret[n].slot = slot;
			ret[n].pitch = pitch;
			ret[n].z = z + j * pitch;
			ret[n].rise = group[i].rise / g->h[2];
		}
	}
	return n;
}

static int window_of(const struct scan_tof *tof)
{
	int most = tof_bins_most(tof);

	return most <= 8 ? 8 : most <= 16 ? 16 : TOF_WINDOW_MOST;
}

size_t cuda_tof_bytes(const struct projection_spec *spec)
{
	return (size_t)spec->scan->n_u * sizeof(struct tof_warp); /* at most one warp per plane */
}

static int check_window(const struct projection *a, const struct scan_tof *tof, struct err *err)
{
	int most = tof_bins_most(tof);

	return most <= TOF_WINDOW_MOST ? 0
				       : err_set(err, ENOTSUP,
						 "%s: TOF bins of %g mm with a resolution of %g mm (standard deviation): %d bins "
						 "have a part in one point; allowed on this device: %d; add up TOF bins "
						 "(tof_mashing)",
						 a->dev->name, tof->width, tof->sigma, most, TOF_WINDOW_MOST);
}

int cuda_tof_create(struct projection *a, const struct projection_spec *spec, struct cuda_tof **ret, struct err *err)
{
	int n_groups = planes_group(spec->scan, NULL), r = check_window(a, &spec->scan->tof, err);
	struct plane_group *group = (struct plane_group *)calloc((size_t)n_groups, sizeof(*group));
	struct tof_warp *warp = (struct tof_warp *)calloc((size_t)spec->scan->n_u, sizeof(*warp));
	struct cuda_tof *t = (struct cuda_tof *)calloc(1, sizeof(*t));

	*ret = t;
	if (r == 0 && (!group || !warp || !t))
		r = err_set(err, ENOMEM, "%s: out of memory for %d planes", a->dev->name, spec->scan->n_u);
	if (r < 0)
		goto out;
	planes_group(spec->scan, group);
	t->window = window_of(&spec->scan->tof);
	t->n_warps = make_warps(spec, group, n_groups, t->window, warp, &t->whole);
	r = cuda_check(cudaMalloc((void **)&t->warp, (size_t)t->n_warps * sizeof(*warp)), a->dev, "planes with TOF", err);
	if (r == 0)
		r = cuda_check(cudaMemcpy(t->warp, warp, (size_t)t->n_warps * sizeof(*warp), cudaMemcpyHostToDevice), a->dev,
			       "planes with TOF", err);
out:
	free(group);
	free(warp);
	return r;
}

void cuda_tof_free(struct cuda_tof *t)
{
	if (!t)
		return;
	cudaFree(t->warp);
	free(t);
}

/* Return the logarithm of the number of steps in shared memory, so small that TOF_BLOCKS blocks fit on a multiprocessor. */
template <int W> static int log_steps_of(const struct projection *a, bool back, size_t *ret_bytes)
{
	const size_t row = back ? 0 : grid_column(&a->grid) + 2 * MARGIN;
	const size_t beyond = back ? 0 : 32 * (TOF_PLANES(W) / 2); /* read for planes that a lane does not have: forward_some() */

	for (int log = TOF_LOG_STEPS;; log--) {
		*ret_bytes = (shared_floats<W>(1 << log) + (row << log) + beyond) * sizeof(float);
		if (*ret_bytes <= 220 * 1024 / TOF_BLOCKS || log == 2)
			return log;
	}
}

template <int W, bool JOSEPH, bool WHOLE, bool BACK>
static int launch_tof(struct projection *a, struct tof_job *job, struct err *err)
{
	const void *kernel = !BACK	  ? (const void *)forward_kernel<W, JOSEPH, WHOLE>
			     : job->fixed ? (const void *)back_kernel<W, JOSEPH, WHOLE, true>
					  : (const void *)back_kernel<W, JOSEPH, WHOLE, false>;
	const char *what = BACK ? "TOF back" : "TOF forward";
	const dim3 blocks((unsigned)((size_t)a->n_views * (size_t)a->scan.n_v),
			  (unsigned)((job->n_warps + TOF_WARPS - 1) / TOF_WARPS));
	const unsigned threads = 32 * (unsigned)(job->n_warps < TOF_WARPS ? job->n_warps : TOF_WARPS);
	size_t bytes;
	void *arguments[] = {job};
	int r;

	job->log_steps = log_steps_of<W>(a, BACK, &bytes);
	r = cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes), a->dev, what, err);
	if (r < 0)
		return r;
	return cuda_check(cudaLaunchKernel(kernel, blocks, dim3(threads), arguments, bytes, cuda_state(a->dev)->stream), a->dev,
			  what, err);
}

template <int W, bool BACK> static int launch_model(struct projection *a, struct tof_job *job, struct err *err)
{
	if (a->paths->tof->whole)
		return a->model == PROJECTION_JOSEPH ? launch_tof<W, true, true, BACK>(a, job, err)
						     : launch_tof<W, false, true, BACK>(a, job, err);
	return a->model == PROJECTION_JOSEPH ? launch_tof<W, true, false, BACK>(a, job, err)
					     : launch_tof<W, false, false, BACK>(a, job, err);
}

template <bool BACK> static int launch_window(struct projection *a, struct tof_job *job, struct err *err)
{
	switch (a->paths->tof->window) {
	case 8:
		return launch_model<8, BACK>(a, job, err);
	case 16:
		return launch_model<16, BACK>(a, job, err);
	default:
		return launch_model<TOF_WINDOW_MOST, BACK>(a, job, err);
	}
}

static struct tof_job job_of(const struct projection *a)
{
	struct tof_job job = {};

	job.path = a->paths->path;
	job.step = a->paths->step;
	job.warp = a->paths->tof->warp;
	job.n_warps = a->paths->tof->n_warps;
	job.inv_w = a->paths->inv_w;
	job.slice = (float)a->grid.h[2];
	job.width = (float)a->scan.tof.width;
	job.sigma = (float)a->scan.tof.sigma;
	job.n_tof = a->scan.tof.n;
	job.n_u = a->scan.n_u;
	job.n_v = a->scan.n_v;
	job.nz = a->grid.n[2];
	job.column = (int)grid_column(&a->grid);
	return job;
}

int cuda_tof_forward(struct projection *a, const float *x, bool add, float *y, struct err *err)
{
	struct tof_job job = job_of(a);

	job.x = x;
	job.ret_y = y;
	job.add = add;
	return launch_window<false>(a, &job, err);
}

int cuda_tof_back(struct projection *a, const float *y, const struct cuda_fixed *fixed, float *x, struct err *err)
{
	struct tof_job job = job_of(a);

	job.y = y;
	job.ret_x = x;
	if (fixed) {
		job.fixed = fixed->sums;
		job.largest = fixed->largest;
		job.bound = fixed->bound;
	}
	return launch_window<true>(a, &job, err);
}
