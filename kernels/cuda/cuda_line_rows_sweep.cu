/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_line_rows_sweep.cu - a sweep of ART over one slice without a table (kernels/line_rows.h).
 *
 * - The order of rays is that of kernels/device.h: pass by pass, in each of which no two rays share a pixel. The sweep is a
 * single launch whose blocks are all resident and wait for each other at the end of each pass.
 * - SWEEP_LANES threads process a ray; each has up to SWEEP_ROWS of its rows, whose pixels it keeps in registers from the sum to
 * the update. A longer ray is read twice. What describes a ray is computed by one thread while the pass before ends.
 * - The image is in tiles of 4 x 2 pixels, a sector of the cache each: adjacent threads have adjacent rows of pixels, and mostly
 *   the same tile for two of them.
 * - Pixels are read through the level-1 cache, which the barrier's acquire operation invalidates. */
#include <errno.h>

#include "kernels/cuda/cuda_line_rows.cuh"

#define SWEEP_LANES 128
#define SWEEP_RAYS 8 /* of a block */
#define SWEEP_ROWS 16
#define TILE_FLOATS 8

struct sweep_job {
	struct rows_job rows;
	float *tiles;
	int tiles_x;
	const float *y;
	float relaxation;
	int stride;
	unsigned *arrived;
};

static __device__ __forceinline__ size_t tile_index(int tiles_x, int x, int y)
{
	return ((size_t)(y >> 1) * tiles_x + (x >> 2)) * TILE_FLOATS + ((y & 1) << 2) + (x & 3);
}

/* Copy an image into tiles, or back. One thread per pixel. */
static __global__ void __launch_bounds__(CUDA_THREADS)
	tiles_kernel(float *image, int column, int n_x, int n_y, int tiles_x, float *tiles, bool back)
{
	const size_t at = cuda_index();
	const int x = (int)(at % n_x), y = (int)(at / n_x);
	float *tile = tiles + tile_index(tiles_x, x, y);

	if (y >= n_y)
		return;
	if (back)
		image[at * column] = *tile;
	else
		*tile = image[at * column];
}

/* The row in which a ray enters or leaves the field of view. */
struct part_row {
	int row, first;
	float weight[2]; /* 0: no such pixel */
};

struct sweep_ray {
	int from, to; /* whole rows */
	int lead, width, n_parts;
	float inverse, length, y;
	long long low, slope;
	struct part_row part[2];
	bool any;
};

static __device__ void put_part(const struct row_view &w, const struct row_range &range, double radius, int row,
				struct sweep_ray *ray)
{
	struct part_row part = {row, 0, {0, 0}};

	if (row < 0 || row >= w.n || !row_entries(&w, &range, radius, row, &part.first, part.weight))
		return;
	part.weight[0] = part.first < 0 ? 0 : part.weight[0];
	part.weight[1] = part.first + 1 >= w.width ? 0 : part.weight[1];
	ray->part[ray->n_parts++] = part;
}

static __device__ struct sweep_ray ray_of(const struct sweep_job &job, int view, int v)
{
	struct sweep_ray ray = {};
	struct row_range range;
	struct row_view w;
	double radius;

	if (view >= job.rows.n_views || v >= job.rows.scan.n_v)
		return ray;
	w = job.rows.rays[view];
	radius = job.rows.scan.radius[v];
	range = row_range_of(&w, &job.rows.scan, job.rows.views + view, v, &job.rows.grid);
	ray.lead = w.lead;
	ray.width = w.width;
	ray.inverse = w.inverse;
	ray.length = w.length;
	ray.y = job.y[(size_t)view * job.rows.scan.n_v + v];
	ray.low = __double2ll_rn(row_low(&w, radius) * ROWS_UNIT);
	ray.slope = __double2ll_rn(w.slope * ROWS_UNIT);
	rows_of_ray(job.rows, w, range, ray.low, ray.slope, &ray.from, &ray.to);
	if (w.model == PROJECTION_PATHS && !job.rows.inside && range.begin < range.end) {
		const int before = (int)floor(range.begin), after = (int)floor(range.end);

		if (before < range.begin)
			put_part(w, range, radius, before, &ray);
		if (after < range.end && (after > before || before == range.begin))
			put_part(w, range, radius, after, &ray);
	}
	ray.any = ray.to > ray.from || ray.n_parts > 0;
	return ray;
}

/* The two pixels of a ray in a row, and their weights; 0: no such pixel. */
struct row_pixels {
	size_t at[2];
	float weight[2];
};

static __device__ __forceinline__ size_t pixel_of(const struct sweep_ray &ray, int tiles_x, int k, int i)
{
	return ray.lead ? tile_index(tiles_x, i, k) : tile_index(tiles_x, k, i);
}

template <bool JOSEPH>
static __device__ __forceinline__ struct row_pixels pixels_of(const struct sweep_ray &ray, int tiles_x, int k, long long at)
{
	const int first = (int)(at >> 32), next = first + 1;
	const float place = __uint_as_float(0x3f800000u | ((unsigned)at >> 9)); /* 1 + place in the pixel */
	const float part = __saturatef(fmaf(-place, ray.inverse, 2 * ray.inverse));
	const bool low = first >= 0, high = next < ray.width;
	struct row_pixels p;

	p.weight[0] = low ? JOSEPH && !high ? 1 : part : 0; /* beyond the outermost centre: that pixel alone (kernels/paths.h) */
	p.weight[1] = high ? JOSEPH && !low ? 1 : 1 - part : 0;
	p.at[0] = pixel_of(ray, tiles_x, k, low ? first : 0);
	p.at[1] = pixel_of(ray, tiles_x, k, high ? next : first);
	return p;
}

/* Add sum of weight times x, and of the squares of the weights, over all threads of a ray. */
static __device__ float2 sum_over_ray(float2 sum, int group, int lane)
{
	__shared__ float2 warp_sum[SWEEP_RAYS][SWEEP_LANES / 32];
	float2 all = make_float2(0, 0);

#pragma unroll
	for (int d = 16; d > 0; d /= 2) {
		sum.x += __shfl_xor_sync(0xffffffffu, sum.x, d);
		sum.y += __shfl_xor_sync(0xffffffffu, sum.y, d);
	}
	if (lane % 32 == 0)
		warp_sum[group][lane / 32] = sum;
	asm volatile("bar.sync %0, %1;" ::"r"(group + 1), "n"(SWEEP_LANES) : "memory");
#pragma unroll
	for (int i = 0; i < SWEEP_LANES / 32; i++) {
		all.x += warp_sum[group][i].x;
		all.y += warp_sum[group][i].y;
	}
	return all;
}

static __device__ __forceinline__ void add_pixels(const struct row_pixels &p, const float x[2], float2 *sum)
{
#pragma unroll
	for (int c = 0; c < 2; c++) {
		sum->x = fmaf(p.weight[c], x[c], sum->x);
		sum->y = fmaf(p.weight[c], p.weight[c], sum->y);
	}
}

/* A pixel of weight 0 may be one of another ray of the pass: it is neither read nor written. */
static __device__ __forceinline__ void load_pixels(const float *tiles, const struct row_pixels &p, float x[2])
{
#pragma unroll
	for (int c = 0; c < 2; c++)
		x[c] = p.weight[c] != 0 ? tiles[p.at[c]] : 0;
}

static __device__ __forceinline__ void store_pixels(float *tiles, const struct row_pixels &p, const float x[2], float step)
{
#pragma unroll
	for (int c = 0; c < 2; c++)
		if (p.weight[c] != 0)
			tiles[p.at[c]] = fmaf(step, p.weight[c], x[c]);
}

/* The part row of this thread, if any. */
static __device__ bool part_of(const struct sweep_ray &ray, int tiles_x, int lane, struct row_pixels *ret)
{
	if (lane >= ray.n_parts)
		return false;
	for (int c = 0; c < 2; c++) {
		ret->weight[c] = ray.part[lane].weight[c];
		ret->at[c] = ret->weight[c] != 0 ? pixel_of(ray, tiles_x, ray.part[lane].row, ray.part[lane].first + c) : 0;
	}
	return true;
}

/* Process one ray; all threads of its group call it. */
template <bool JOSEPH>
static __device__ void sweep_ray_update(const struct sweep_job &job, const struct sweep_ray &ray, int group, int lane)
{
	const long long stride = ray.slope * SWEEP_LANES;
	const int mine = ray.from + lane;
	struct row_pixels part;
	const bool has_part = part_of(ray, job.tiles_x, lane, &part);
	float x[SWEEP_ROWS][2], x_part[2];
	float2 sum = make_float2(0, 0);
	float step;

	if (!ray.any)
		return;
#pragma unroll
	for (int i = 0; i < SWEEP_ROWS; i++) {
		const int k = mine + i * SWEEP_LANES;

		if (k < ray.to) {
			const struct row_pixels p =
				pixels_of<JOSEPH>(ray, job.tiles_x, k, ray.low + mine * ray.slope + i * stride);

			load_pixels(job.tiles, p, x[i]);
		}
	}
#pragma unroll
	for (int i = 0; i < SWEEP_ROWS; i++) {
		const int k = mine + i * SWEEP_LANES;

		if (k < ray.to)
			add_pixels(pixels_of<JOSEPH>(ray, job.tiles_x, k, ray.low + mine * ray.slope + i * stride), x[i], &sum);
	}
	for (int k = mine + SWEEP_ROWS * SWEEP_LANES; k < ray.to; k += SWEEP_LANES) {
		const struct row_pixels p = pixels_of<JOSEPH>(ray, job.tiles_x, k, ray.low + k * ray.slope);
		float more[2];

		load_pixels(job.tiles, p, more);
		add_pixels(p, more, &sum);
	}
	sum = make_float2(sum.x * ray.length, sum.y * ray.length * ray.length);
	if (has_part) {
		load_pixels(job.tiles, part, x_part);
		add_pixels(part, x_part, &sum);
	}
	sum = sum_over_ray(sum, group, lane);
	step = sum.y > 0 && !isnan(ray.y) ? job.relaxation * (ray.y - sum.x) / sum.y : 0;
	if (has_part)
		store_pixels(job.tiles, part, x_part, step);
	step *= ray.length;
#pragma unroll
	for (int i = 0; i < SWEEP_ROWS; i++) {
		const int k = mine + i * SWEEP_LANES;

		if (k < ray.to)
			store_pixels(job.tiles, pixels_of<JOSEPH>(ray, job.tiles_x, k, ray.low + mine * ray.slope + i * stride),
				     x[i], step);
	}
	for (int k = mine + SWEEP_ROWS * SWEEP_LANES; k < ray.to; k += SWEEP_LANES) {
		const struct row_pixels p = pixels_of<JOSEPH>(ray, job.tiles_x, k, ray.low + k * ray.slope);
		float more[2];

		load_pixels(job.tiles, p, more);
		store_pixels(job.tiles, p, more, step);
	}
}

template <bool JOSEPH>
static __global__ void __launch_bounds__(SWEEP_RAYS *SWEEP_LANES, 1)
	sweep_rows_kernel(const __grid_constant__ struct sweep_job job)
{
	__shared__ struct sweep_ray rays[2][SWEEP_RAYS];
	const int group = threadIdx.x / SWEEP_LANES, lane = threadIdx.x % SWEEP_LANES, passes = job.rows.n_views * job.stride;
	const int together = (int)gridDim.x * SWEEP_RAYS, place = (int)blockIdx.x * SWEEP_RAYS + group;
	const int rays_of_pass = (job.rows.scan.n_v + job.stride - 1) / job.stride,
		  rounds = (rays_of_pass + together - 1) / together;
	unsigned slot = 0;

	if (lane == 0)
		rays[0][group] = ray_of(job, 0, place * job.stride);
	__syncthreads();
	for (int pass = 0; pass < passes; pass++) {
		for (int round = 0; round < rounds; round++, slot ^= 1) {
			const bool last = round + 1 == rounds;
			const int next = last ? pass + 1 : pass;

			sweep_ray_update<JOSEPH>(job, rays[slot][group], group, lane);
			if (last)
				cuda_blocks_arrive(job.arrived);
			if (lane == 0) /* meanwhile */
				rays[slot ^ 1][group] =
					ray_of(job, next / job.stride,
					       next % job.stride + ((last ? 0 : round + 1) * together + place) * job.stride);
			if (!last)
				__syncthreads();
		}
		cuda_blocks_wait(job.arrived, (unsigned)(pass + 1) * gridDim.x);
	}
}

int cuda_line_rows_sweep(struct projection *a, const struct cuda_rows *rows, float relaxation, const float *y, float *x,
			 struct err *err)
{
	const struct grid *g = &a->grid;
	const size_t pixels = (size_t)g->n[0] * (size_t)g->n[1];
	cudaStream_t stream = cuda_state(a->dev)->stream;
	struct sweep_job job = {};
	void *arguments[] = {&job};
	int processors = 0, blocks, r;

	job.rows = cuda_rows_job(a, rows);
	job.tiles = (float *)cuda_state(a->dev)->scratch;
	job.tiles_x = (g->n[0] + 3) / 4;
	job.y = y;
	job.relaxation = relaxation;
	job.stride = cuda_rows_stride(rows, &job.arrived);
	r = cuda_check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, a->dev->index), a->dev, "sweep", err);
	if (r == 0)
		r = cuda_check(cudaMemsetAsync(job.arrived, 0, sizeof(*job.arrived), stream), a->dev, "sweep", err);
	if (r < 0)
		return r;
	blocks = ((job.rows.scan.n_v + job.stride - 1) / job.stride + SWEEP_RAYS - 1) / SWEEP_RAYS;
	blocks = blocks < processors ? blocks : processors;
	tiles_kernel<<<cuda_blocks(pixels), CUDA_THREADS, 0, stream>>>(x, job.rows.column, g->n[0], g->n[1], job.tiles_x,
								       job.tiles, false);
	if ((r = cuda_check(cudaGetLastError(), a->dev, "sweep", err)) < 0)
		return r;
	r = cuda_check(cudaLaunchCooperativeKernel(a->model == PROJECTION_JOSEPH ? (const void *)sweep_rows_kernel<true>
										 : (const void *)sweep_rows_kernel<false>,
						   dim3((unsigned)blocks), dim3(SWEEP_RAYS * SWEEP_LANES), arguments, 0, stream),
		       a->dev, "sweep", err);
	if (r < 0)
		return r;
	tiles_kernel<<<cuda_blocks(pixels), CUDA_THREADS, 0, stream>>>(x, job.rows.column, g->n[0], g->n[1], job.tiles_x,
								       job.tiles, true);
	return cuda_check(cudaGetLastError(), a->dev, "sweep", err);
}
