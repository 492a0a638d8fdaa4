/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_events_beams.cu - list mode for sorted events: a block computes the events of a beam (kernels/events.h) plane by plane.
 *
 * In a plane, all lines of a beam are in a window of a few columns, which has all of z. The block has the windows of some planes
 * in shared memory: forward, values of the volume, copied while the planes before are computed; back, sums, added to the volume
 * with one instruction for four voxels when all events have added to them. So the atomic operations on global memory, which limit
 * a back projection of single events, are one for hundreds of events.
 *
 * Sums in shared memory are 32-bit fixed-point numbers, for which its atomic addition is one instruction. Events are added in
 * groups with values of similar size, so that the steps are small for all of a group: the largest |q| times length of a sample
 * and those down to 1/32 of it, then the next ones. The sum of these products is at most 2^30 steps, so no sum can overflow, and
 * a term is at most 2^22 steps, the largest one that fixed() can round. Small groups, values that are not finite, beams of few
 * events, lines along z and those that leave the window are computed one by one as if they were not sorted. */
#include "kernels/cuda/cuda_events_window.cuh"

#include <float.h>

/* Set lines[].sum to a_e x. */
template <bool TOF>
static __device__ __forceinline__ void beam_forward(const struct list_job &job, const float2 *table, const struct beam_window &w,
						    struct beam_line *lines, const struct beam_block &b, float *windows)
{
	float *here = windows, *ahead = windows + w.planes * columns_of(TOF) * w.stride;

	zero_windows<TOF>(w, windows);
	load_window<TOF>(w, b, job.x, b.first, here);
	for (int at = b.first; at < b.end; at += w.planes) {
		__pipeline_wait_prior(0);
		__syncthreads();
		if (at + w.planes < b.end)
			load_window<TOF>(w, b, job.x, at + w.planes, ahead);
		for_samples<TOF>(table, w, b, lines, at, [&](struct beam_line &l, const struct beam_sample &s, int place) {
			const float *p = here + place + s.at, *right = p + w.stride;

			l.sum = fmaf(s.u0, fmaf(s.v0, p[0], s.v1 * p[1]),
				     fmaf(s.u1, fmaf(s.v0, right[0], s.v1 * right[1]), l.sum));
		});
		float *swap = here;
		here = ahead;
		ahead = swap;
	}
	__syncthreads();
}

/* Add the sum of q a_e to the volume; q = lines[].sum step. */
template <bool TOF>
static __device__ __forceinline__ void beam_back(const struct list_job &job, const float2 *table, const struct beam_window &w,
						 struct beam_line *lines, const struct beam_block &b, float *windows, float step)
{
	float *here = windows, *before = windows + w.planes * columns_of(TOF) * w.stride;

	zero_windows<TOF>(w, windows);
	for (int at = b.first; at < b.end; at += w.planes) {
		if (at > b.first)
			flush_window<TOF>(w, b, job.to, at - w.planes, before, step);
		for_samples<TOF>(table, w, b, lines, at, [&](struct beam_line &l, const struct beam_sample &s, int place) {
			int *p = (int *)here + place + s.at, *right = p + w.stride;
			const float u0 = l.sum * s.u0, u1 = l.sum * s.u1;

			atomicAdd(p, nearest_whole(u0 * s.v0));
			atomicAdd(p + 1, nearest_whole(u0 * s.v1));
			atomicAdd(right, nearest_whole(u1 * s.v0));
			atomicAdd(right + 1, nearest_whole(u1 * s.v1));
		});
		__syncthreads();
		float *swap = here;
		here = before;
		before = swap;
	}
	flush_window<TOF>(w, b, job.to, b.first + (b.end - 1 - b.first) / w.planes * w.planes, before, step);
	__syncthreads();
}

static __device__ __forceinline__ float warp_sum(float v)
{
	for (int step = 16; step > 0; step /= 2)
		v += __shfl_xor_sync(0xffffffff, v, step);
	return v;
}

/* Return the number of bits that the block's threads have set. */
static __device__ __forceinline__ int count_of(unsigned bits)
{
	int count = 0;

#pragma unroll
	for (int k = 0; k < BEAM_EVENTS; k++)
		count += __syncthreads_count(bits >> k & 1);
	return count;
}

static __device__ __forceinline__ bool is_finite(float v)
{
	return fabsf(v) <= FLT_MAX;
}

/* Compute events whose bit in `which` is set, one by one. */
template <int PASS>
static __device__ __noinline__ void do_directly(const struct list_job &job, const float2 *table, size_t block_at, unsigned which)
{
	for (int k = 0; k < BEAM_EVENTS; k++) {
		const bool mine = which >> k & 1;

		if (__any_sync(0xffffffff, mine))
			do_event<PASS, false>(job, table, mine ? block_at + k * BEAM_THREADS + threadIdx.x : SIZE_MAX, 0);
	}
}

/* Return the scale of sums of the events whose bit is set in `group`. */
static __device__ __forceinline__ float scale_of(const struct beam_line *lines, struct beam_block &b, unsigned group)
{
	float sum = 0;

#pragma unroll
	for (int k = 0; k < BEAM_EVENTS; k++)
		sum += group >> k & 1 ? fabsf(lines[k].sum * lines[k].length) : 0;
	sum = warp_sum(sum);
	if ((threadIdx.x & 31) == 0)
		atomicAdd(&b.sum, sum);
	__syncthreads();
	/* The second limit is reached only if the sum overflows a float: it is at most BEAM_LIST times the largest value. */
	return fminf(fminf(fmaxf(0x1p30f / b.sum, 0x1p30f / BEAM_LIST / b.largest), 0x1p22f / b.largest), 0x1p96f);
}

/* Find the next group of the events whose bit is set in `left`: the largest |q| length and those near to it. */
static __device__ __forceinline__ unsigned next_group(const struct beam_line *lines, struct beam_block &b, unsigned left)
{
	float largest = 0;
	unsigned group = 0;

#pragma unroll
	for (int k = 0; k < BEAM_EVENTS; k++)
		largest = fmaxf(largest, left >> k & 1 ? fabsf(lines[k].sum * lines[k].length) : 0);
	if (threadIdx.x == 0)
		b.sum = b.largest = 0;
	__syncthreads();
	largest = __int_as_float(__reduce_max_sync(0xffffffff, __float_as_int(largest)));
	if ((threadIdx.x & 31) == 0)
		atomicMax((int *)&b.largest, __float_as_int(largest));
	__syncthreads();
#pragma unroll
	for (int k = 0; k < BEAM_EVENTS; k++)
		if (left >> k & 1 && fabsf(lines[k].sum * lines[k].length) >= ldexpf(b.largest, -BEAM_ORDERS))
			group |= 1u << k;
	return group;
}

static __device__ __forceinline__ float line_position(const struct beam_line &l, int plane)
{
	return (float)l.base[0] + fmaf((float)(plane - l.first), l.step[0], l.at[0]);
}

/* Return whether a line is in the window of a plane. */
template <bool TOF>
static __device__ __forceinline__ bool fits_plane(const struct beam_line &l, const struct event_beam &beam, int plane)
{
	const float column = line_position(l, plane) - (float)event_beam_at(&beam, plane);

	return column >= 0 && column < (float)(columns_of(TOF) - 1);
}

/* Return whether a line's samples are in the beam's windows. The distance from a window's first column is convex, and linear but
 * for the beam's plane. */
template <bool TOF> static __device__ __forceinline__ bool fits_line(const struct beam_line &l, const struct event_beam &beam)
{
	return fits_plane<TOF>(l, beam, l.first) && fits_plane<TOF>(l, beam, l.first + l.n - 1) &&
	       line_position(l, beam.plane) >= (float)beam.from - 1e-3f;
}

/* Make the lines of the events whose bit is set in `mine`; those of others have n = 0. Return the bits of those that do not fit.
 */
template <bool TOF>
static __device__ __forceinline__ unsigned make_lines(const struct list_job &job, const struct event_beam &beam, size_t block_at,
						      unsigned mine, struct beam_line *ret)
{
	unsigned direct = 0;

#pragma unroll
	for (int k = 0; k < BEAM_EVENTS; k++) {
		struct event_line l;
		struct event e;

		ret[k].n = ret[k].first = 0;
		ret[k].sum = 0;
		if (!(mine >> k & 1))
			continue;
		e = load_event(job.events + block_at + k * BEAM_THREADS + threadIdx.x);
		event_line_make(&job.model, &e, job.detectors, &l);
		for (int c = 0; c < 2; c++) {
			ret[k].at[c] = l.at[c];
			ret[k].step[c] = l.step[c];
			ret[k].base[c] = l.base[c];
		}
		ret[k].from = l.from * job.model.tof_scale;
		ret[k].by = l.by * job.model.tof_scale;
		ret[k].length = l.length;
		ret[k].first = l.first;
		ret[k].n = l.n;
		if (!fits_line<TOF>(ret[k], beam)) {
			direct |= 1u << k;
			ret[k].n = 0;
		}
	}
	return direct;
}

/* Set the planes of the warp's events and of the run's, and the columns of its windows. */
template <bool TOF>
static __device__ __forceinline__ void set_range(const struct beam_line *lines, const struct event_beam &beam,
						 struct beam_window &w, struct beam_block &b)
{
	int first = INT_MAX, end = 0;

#pragma unroll
	for (int k = 0; k < BEAM_EVENTS; k++)
		if (lines[k].n > 0) {
			first = min(first, lines[k].first);
			end = max(end, lines[k].first + lines[k].n);
		}
	w.first = __reduce_min_sync(0xffffffff, first);
	w.end = __reduce_max_sync(0xffffffff, end);
	if ((threadIdx.x & 31) == 0) {
		atomicMin(&b.first, w.first);
		atomicMax(&b.end, w.end);
	}
	__syncthreads();
	for (int plane = b.first + threadIdx.x; plane < b.end; plane += BEAM_THREADS)
		b.column[plane] = (short)max(-1, min(event_beam_at(&beam, plane), w.n_u + 1 - columns_of(TOF)));
	__syncthreads();
}

/* Set lines[].sum: after a forward pass to its result, else to q. */
template <int PASS>
static __device__ __forceinline__ void set_values(const struct list_job &job, size_t block_at, struct beam_line *lines)
{
#pragma unroll
	for (int k = 0; k < BEAM_EVENTS; k++) {
		const size_t i = block_at + k * BEAM_THREADS + threadIdx.x;

		if (lines[k].n == 0)
			continue;
		if (PASS == LIST_BACK)
			lines[k].sum = job.q[i];
		else if (PASS == LIST_RATIO || job.quotient)
			lines[k].sum = event_ratio(lines[k].sum + __int_as_float(__ldg(&job.events[i].w)), job.floor);
		if (PASS == LIST_FORWARD)
			job.y[i] = lines[k].sum;
	}
}

/* Add the sum of q a_e to the volume, q = lines[].sum. Return the bits of the events that must be computed directly. */
template <bool TOF>
static __device__ __forceinline__ unsigned back_in_groups(const struct list_job &job, const float2 *table,
							  const struct beam_window &w, struct beam_line *lines,
							  struct beam_block &b, float *windows)
{
	unsigned left = 0, group, direct = 0;
	int n[BEAM_EVENTS];
	float scale;

#pragma unroll
	for (int k = 0; k < BEAM_EVENTS; k++) {
		const float q = lines[k].sum * lines[k].length;

		n[k] = lines[k].n;
		left |= n[k] > 0 && q != 0 && is_finite(q) ? 1u << k : 0;
		direct |= n[k] > 0 && !is_finite(q) ? 1u << k : 0;
	}
	while (__syncthreads_or(left != 0)) {
		group = next_group(lines, b, left);
		left &= ~group;
		if (count_of(group) < BEAM_LEAST) {
			direct |= group;
			continue;
		}
		scale = scale_of(lines, b, group);
#pragma unroll
		for (int k = 0; k < BEAM_EVENTS; k++) {
			lines[k].n = group >> k & 1 ? n[k] : 0;
			lines[k].sum *= group >> k & 1 ? scale : 1;
		}
		beam_back<TOF>(job, table, w, lines, b, windows, 1 / scale);
	}
	return direct;
}

/* Compute the events of a run that fit, whose bit is set in `mine`; return the bits of those that do not. */
template <int PASS, bool TOF>
static __device__ __forceinline__ unsigned do_beam(const struct list_job &job, const struct event_beam &beam, const float2 *table,
						   struct beam_window w, struct beam_block &b, size_t block_at, unsigned mine,
						   float *windows)
{
	const struct grid &g = job.model.grid;
	struct beam_line lines[BEAM_EVENTS];
	unsigned direct = make_lines<TOF>(job, beam, block_at, mine, lines);

	if (!__syncthreads_or((mine & ~direct) != 0))
		return direct; /* without a line that fits there are no planes */
	w.n_u = beam.axis == 0 ? g.n[1] : g.n[0];
	w.last = (float)(w.n_u - 1);
	w.u = (int)grid_column(&g) * (beam.axis == 0 ? g.n[0] : 1);
	w.main = (int)grid_column(&g) * (beam.axis == 0 ? 1 : g.n[0]);
	set_range<TOF>(lines, beam, w, b);
	if (PASS != LIST_BACK)
		beam_forward<TOF>(job, table, w, lines, b, windows);
	set_values<PASS>(job, block_at, lines);
	if (PASS == LIST_FORWARD)
		return direct;
	return direct | back_in_groups<TOF>(job, table, w, lines, b, windows);
}

/* Compute the events of a run; `id`: its beam. */
template <int PASS, bool TOF>
static __device__ __forceinline__ void do_run(const struct list_job &job, const struct event_cells &cells, const float2 *table,
					      const struct beam_window &w, struct beam_block &b, size_t block_at, int id,
					      float *windows)
{
	unsigned mine = 0;

	if (threadIdx.x == 0) {
		b.first = INT_MAX;
		b.end = 0;
	}
#pragma unroll
	for (int k = 0; k < BEAM_EVENTS; k++)
		mine |= b.id[k * BEAM_THREADS + threadIdx.x] == id ? 1u << k : 0;
	if (id >= 0 && count_of(mine) >= BEAM_LEAST)
		mine = do_beam<PASS, TOF>(job, event_beam_make(&cells, id), table, w, b, block_at, mine, windows);
	do_directly<PASS>(job, table, block_at, mine);
}

/* Set b.id and return the number of runs; more than BEAM_RUNS: the events are not sorted. */
static __device__ __forceinline__ int find_runs(const struct list_job &job, const struct event_cells &cells, size_t block_at,
						struct beam_block &b)
{
	if (threadIdx.x == 0)
		b.n_runs = 0;
	for (int k = 0; k < BEAM_EVENTS; k++) {
		const size_t i = block_at + k * BEAM_THREADS + threadIdx.x;
		struct event_line l;
		struct event e;
		int id = -2;

		if (i < job.n) {
			e = load_event(job.events + i);
			id = event_line_make(&job.model, &e, job.detectors, &l) ? event_beam_of(&cells, event_cell(&cells, &l))
										: -1;
		}
		b.id[k * BEAM_THREADS + threadIdx.x] = id;
	}
	__syncthreads();
	for (int i = threadIdx.x; i < BEAM_LIST; i += BEAM_THREADS)
		if (b.id[i] >= -1 && (i == 0 || b.id[i] != b.id[i - 1])) {
			const int at = atomicAdd(&b.n_runs, 1);

			if (at < BEAM_RUNS)
				b.start[at] = i;
		}
	__syncthreads();
	return b.n_runs;
}

/* Mark the events of a run as computed. */
static __device__ __forceinline__ void end_run(struct beam_block &b, int id)
{
	__syncthreads();
	for (int i = threadIdx.x; i < BEAM_LIST; i += BEAM_THREADS)
		if (b.id[i] == id)
			b.id[i] = -2;
	__syncthreads();
}

template <int PASS, bool TOF>
static __global__ void __launch_bounds__(BEAM_THREADS, BEAM_BLOCKS)
	beam_kernel(const __grid_constant__ struct list_job job, const __grid_constant__ struct event_cells cells,
		    const __grid_constant__ struct beam_window shape)
{
	extern __shared__ float4 memory[];
	__shared__ struct beam_block b;
	float2 *table = (float2 *)memory;
	float *windows = (float *)(table + BEAM_TABLE);
	const size_t block_at = (size_t)blockIdx.x * BEAM_LIST;
	int runs;

	if (TOF)
		for (int i = threadIdx.x; i <= EVENTS_TOF_STEPS; i += BEAM_THREADS)
			table[i] = job.table[i];
	runs = find_runs(job, cells, block_at, b);
	if (runs > BEAM_RUNS)
		do_directly<PASS>(job, table, block_at, (1u << BEAM_EVENTS) - 1);
	else
		for (int run = 0; run < runs; run++) {
			const int id = b.id[b.start[run]];

			if (id == -2)
				continue;
			do_run<PASS, TOF>(job, cells, table, shape, b, block_at, id, windows);
			end_run(b, id);
		}
}

static int window_bytes(const struct beam_window *w, bool tof)
{
	return 2 * w->planes * columns_of(tof) * w->stride * (int)sizeof(float);
}

static struct beam_window window_of(const struct events_model *m)
{
	struct beam_window w = {};

	w.n_v = m->grid.n[2];
	w.stride = (int)grid_column(&m->grid) + 8;
	w.per_quad = (unsigned)((0x100000000u + w.stride / 4 - 3) / (w.stride / 4 - 2));
	w.tof_from = m->tof_from * m->tof_scale;
	return w;
}

/* Return the number of planes of a window, or 0: the device's shared memory is too small, or the volume too small or too large.
 */
int cuda_beam_planes(const struct device *dev, const struct events_model *m)
{
	struct beam_window w = window_of(m);
	int most = 0, planes;

	w.planes = 1;
	if (m->grid.n[0] > BEAM_LONGEST || m->grid.n[1] > BEAM_LONGEST || w.per_quad == 0 ||
	    cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, dev->index) != cudaSuccess)
		return 0;
	planes = (most - (int)sizeof(struct beam_block) - BEAM_TABLE * (int)sizeof(float2) - 1024) /
		 window_bytes(&w, m->tof.n > 0);
	return planes > BEAM_PLANES ? BEAM_PLANES : planes;
}

template <int PASS, bool TOF>
static int launch_beams(const struct device *dev, const struct list_job &job, const struct event_cells *cells, int planes,
			struct err *err)
{
	struct beam_window w = window_of(&job.model);
	int bytes, r;

	w.planes = planes;
	bytes = BEAM_TABLE * (int)sizeof(float2) + window_bytes(&w, TOF);
	r = cuda_check(cudaFuncSetAttribute(beam_kernel<PASS, TOF>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), dev,
		       "list mode", err);
	if (r < 0)
		return r;
	beam_kernel<PASS, TOF><<<(unsigned)((job.n + BEAM_LIST - 1) / BEAM_LIST), BEAM_THREADS, bytes, cuda_state(dev)->stream>>>(
		job, *cells, w);
	return cuda_check(cudaGetLastError(), dev, "list mode", err);
}

template <int PASS>
static int launch_pass(const struct device *dev, const struct list_job &job, const struct event_cells *cells, int planes,
		       struct err *err)
{
	return job.model.tof.n > 0 ? launch_beams<PASS, true>(dev, job, cells, planes, err)
				   : launch_beams<PASS, false>(dev, job, cells, planes, err);
}

int cuda_beams(const struct device *dev, const struct list_job *job, const struct event_cells *cells, int planes, int pass,
	       struct err *err)
{
	return pass == LIST_FORWARD ? launch_pass<LIST_FORWARD>(dev, *job, cells, planes, err)
	       : pass == LIST_BACK  ? launch_pass<LIST_BACK>(dev, *job, cells, planes, err)
				    : launch_pass<LIST_RATIO>(dev, *job, cells, planes, err);
}
