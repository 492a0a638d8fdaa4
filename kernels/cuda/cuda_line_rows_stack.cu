/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_line_rows_stack.cu - the projection of a stack of slices without a table (kernels/line_rows.h).
 *
 * A lane has four slices of a ray, LANES lanes a ray, a warp 32 / LANES adjacent rays of a view. A block has STACK_WARPS such
 * warps in each of STACK_VIEWS adjacent views. All its rays cross the same pixels, and all its lanes are in the same row of
 * pixels at a time, so most pixels are read from the level-1 cache. The blocks of the next slices start after those of all rays,
 * so the part of the image in use fits into the level-2 cache. */
#include "kernels/cuda/cuda_line_rows.cuh"

#define STACK_WARPS 2
#define STACK_VIEWS 8

static __device__ __forceinline__ float4 sum_of(float4 sum, float w, float4 x)
{
	return make_float4(fmaf(w, x.x, sum.x), fmaf(w, x.y, sum.y), fmaf(w, x.z, sum.z), fmaf(w, x.w, sum.w));
}

/* Add a ray's sum in one row, in which the ray may begin or end. */
static __device__ float4 add_part(float4 sum, const struct row_view &w, const struct row_range &range, double radius, int k,
				  const char *image, size_t row_step, size_t step)
{
	float weight[2];
	int first;

	if (k < 0 || k >= w.n || !row_entries(&w, &range, radius, k, &first, weight))
		return sum;
	image += (size_t)k * row_step;
	if (first >= 0)
		sum = sum_of(sum, weight[0], __ldg((const float4 *)(image + (size_t)first * step)));
	if (first + 1 < w.width)
		sum = sum_of(sum, weight[1], __ldg((const float4 *)(image + (size_t)(first + 1) * step)));
	return sum;
}

/* Write the sums of slices z .. z + 3, as far as they exist. */
static __device__ void write_sums(float *to, float4 sum, int n, bool add)
{
	const float value[4] = {sum.x, sum.y, sum.z, sum.w};

#pragma unroll
	for (int c = 0; c < 4; c++)
		if (c < n)
			to[c] = add ? to[c] + value[c] : value[c];
}

struct row_walk {
	const char *row; /* pixel 0 of this row */
	long long at;	 /* position of the ray */
};

static __device__ __forceinline__ void walk_on(struct row_walk *walk, size_t row_step, long long slope)
{
	walk->row += row_step;
	walk->at += slope;
}

/* Add a row. EDGE: the ray may be outside of the pixels; with JOSEPH it then has the outermost pixel twice, else only the one
 * that exists. */
template <bool JOSEPH, bool EDGE>
static __device__ __forceinline__ float4 add_row(float4 sum, const struct row_view &w, const struct row_walk &walk, unsigned step)
{
	const int first = (int)(walk.at >> 32);
	const float place = __uint_as_float(0x3f800000u | ((unsigned)walk.at >> 9)); /* 1 + place in the pixel */
	float part = __saturatef(fmaf(-place, w.inverse, 2 * w.inverse)), rest = 1 - part;
	const char *low = walk.row + (size_t)(unsigned)(EDGE ? max(first, 0) : first) * step, *high = low + step;

	if (EDGE) {
		const int next = min(first + 1, w.width - 1);

		high = walk.row + (size_t)(unsigned)next * step;
		if (!JOSEPH) {
			part = first < 0 ? 0 : part;
			rest = next == first ? 0 : rest;
		}
	}
	return sum_of(sum_of(sum, part, __ldg((const float4 *)low)), rest, __ldg((const float4 *)high));
}

/* The rows of [from, to) in which both pixels of a ray exist. */
static __device__ void plain_rows(const struct row_view &w, int from, int to, long long low, long long slope, int *ret_from,
				  int *ret_to)
{
	const long long most = ((long long)(w.width - 1) << 32) - 1;

	if (slope == 0) {
		to = low >= 0 && low <= most ? to : from;
	} else {
		const double a = (double)-low / (double)slope, b = (double)(most - low) / (double)slope;

		from = max(from, (int)fmax(fmin(fmin(a, b) + 2, 1e9), -1e9));
		to = min(to, (int)fmax(fmin(fmax(a, b) - 1, 1e9), -1e9));
	}
	*ret_from = from;
	*ret_to = max(to, from);
}

template <int LANES, bool JOSEPH>
static __global__ void __launch_bounds__(32 * STACK_WARPS * STACK_VIEWS, 2)
	forward_stack_kernel(const __grid_constant__ struct rows_job job)
{
	const int lane = threadIdx.x, z = ((int)blockIdx.z * LANES + lane % LANES) * 4;
	const int v = ((int)blockIdx.x * STACK_WARPS + threadIdx.y) * (32 / LANES) + lane / LANES;
	const int view = (int)blockIdx.y * STACK_VIEWS + threadIdx.z;
	const bool on = v < job.scan.n_v && z < job.scan.n_u; /* else the lane only keeps step with the others */
	const int ray = min(v, job.scan.n_v - 1);
	struct row_view w;
	struct row_range range;
	const char *image = (const char *)(job.x + (z < job.scan.n_u ? z : 0));
	size_t row_step;
	unsigned step; /* from pixel to pixel of a row, bytes */
	long long low, slope;
	int from, to, begin, end, plain_from, plain_to;
	float4 sum = make_float4(0, 0, 0, 0);

	if (view >= job.n_views) /* the whole warp */
		return;
	w = job.rays[view];
	step = (unsigned)job.column * sizeof(float) * (w.lead ? 1u : (unsigned)job.grid.n[0]);
	row_step = (size_t)job.column * sizeof(float) * (w.lead ? (size_t)job.grid.n[0] : 1);
	range = row_range_of(&w, &job.scan, job.views + view, ray, &job.grid);
	low = __double2ll_rn(row_low(&w, job.scan.radius[ray]) * ROWS_UNIT);
	slope = __double2ll_rn(w.slope * ROWS_UNIT);
	rows_of_ray(job, w, range, low, slope, &from, &to);
	begin = __reduce_min_sync(0xffffffffu, to > from ? from : 0x7fffffff);
	end = __reduce_max_sync(0xffffffffu, to > from ? to : 0);
	plain_rows(w, from, to, low, slope, &plain_from, &plain_to);
	plain_from = __reduce_max_sync(0xffffffffu, plain_from);
	plain_to = max(__reduce_min_sync(0xffffffffu, plain_to), plain_from);
	if (begin < end) {
		struct row_walk at = {image + (size_t)begin * row_step, low + begin * slope};

		plain_from = min(max(plain_from, begin), end);
		plain_to = min(max(plain_to, plain_from), end);
		for (int k = begin; k < plain_from; k++, walk_on(&at, row_step, slope))
			if ((unsigned)(k - from) < (unsigned)(to - from))
				sum = add_row<JOSEPH, true>(sum, w, at, step);
#pragma unroll 4
		for (int k = plain_from; k < plain_to; k++, walk_on(&at, row_step, slope))
			sum = add_row<JOSEPH, false>(sum, w, at, step);
		for (int k = plain_to; k < end; k++, walk_on(&at, row_step, slope))
			if ((unsigned)(k - from) < (unsigned)(to - from))
				sum = add_row<JOSEPH, true>(sum, w, at, step);
	}
	sum = make_float4(sum.x * w.length, sum.y * w.length, sum.z * w.length, sum.w * w.length);
	if (!JOSEPH && !job.inside && on && range.begin < range.end) {
		const int before = (int)floor(range.begin), after = (int)floor(range.end);
		const double radius = job.scan.radius[ray];

		if (before < range.begin)
			sum = add_part(sum, w, range, radius, before, image, row_step, step);
		if (after < range.end && (after > before || before == range.begin))
			sum = add_part(sum, w, range, radius, after, image, row_step, step);
	}
	if (on)
		write_sums(job.ret + ((size_t)view * job.scan.n_v + v) * job.scan.n_u + z, sum, job.scan.n_u - z, job.add);
}

template <int LANES> static void launch_stack(const struct projection *a, const struct rows_job &job)
{
	const int rays = STACK_WARPS * 32 / LANES;
	const dim3 blocks((unsigned)((job.scan.n_v + rays - 1) / rays), (unsigned)((job.n_views + STACK_VIEWS - 1) / STACK_VIEWS),
			  (unsigned)((job.scan.n_u + 4 * LANES - 1) / (4 * LANES)));
	const dim3 threads(32, STACK_WARPS, STACK_VIEWS);

	if (a->model == PROJECTION_JOSEPH)
		forward_stack_kernel<LANES, true><<<blocks, threads, 0, cuda_state(a->dev)->stream>>>(job);
	else
		forward_stack_kernel<LANES, false><<<blocks, threads, 0, cuda_state(a->dev)->stream>>>(job);
}

int cuda_rows_forward_stack(struct projection *a, struct rows_job job, struct err *err)
{
	if (job.scan.n_u > 16)
		launch_stack<8>(a, job);
	else if (job.scan.n_u > 8)
		launch_stack<4>(a, job);
	else
		launch_stack<2>(a, job);
	return cuda_check(cudaGetLastError(), a->dev, "forward, stack", err);
}
