/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_line_rows_back.cu - the adjoint of the projection without a table (kernels/line_rows.h): each pixel adds, for every view,
 * the rays that meet it.
 *
 * - A thread has WIDE slices of a pixel (cuda_pixels.cuh). Positions: the corner of a tile in double, the rest relative to it in
 *   float.
 * - A second kernel adds what this leaves out, ray by ray in double: pixels at the edge of the field of view; with JOSEPH, the
 *   outermost pixels of the rows, where a ray counts or not (kernels/paths.h); with PATHS, views nearly along an axis, where a
 * ray changes the pixel within so small a part of a row that float does not resolve it: with the projection's own weights. */
#include "kernels/cuda/cuda_line_rows.cuh"
#include "kernels/cuda/cuda_pixels.cuh"

#define LEAST_SLOPE (1.0 / 256)
#define SAFETY 1e-4 /* pixels: so close to a pixel's edge a ray counts as one that may meet it */

/* How the rays of a view cross the pixels of a tile, in the order of ascending positions along the rows of pixels. */
struct tile_rays {
	float at;	/* distance from ray 0 to the lower face of the tile's first pixel, pixels */
	float along[2]; /* what a pixel further along x and y adds to it */
	float pitch, per_pixel, reach, inverse, length;
	int first, turn; /* ray i is the radial bin first + turn i */
	int rays;	 /* as many adjacent rays can meet a pixel; 0: the view is left out */
	int cross;	 /* the axis along the rows of pixels */
};

/* Is the view left to the second kernel? */
static __device__ bool is_steep(const struct row_view &w)
{
	return w.model == PROJECTION_PATHS && fabs(w.along) < LEAST_SLOPE;
}

static __device__ struct tile_rays tile_rays_of(const struct rows_job &job, int view, int x, int y)
{
	const struct row_view w = job.rays[view];
	const bool joseph = w.model == PROJECTION_JOSEPH, falling = w.pitch < 0;
	const double pitch = fabs(w.pitch), reach = (joseph ? 1 : fabs(w.along)) + SAFETY;
	const double start = w.start + (falling ? w.pitch * (job.scan.n_v - 1) : 0);
	const int k = w.lead ? y : x, i = w.lead ? x : y;
	const double at = i - (start + w.slope * k), base = fmax(fmin(floor((at - reach) / pitch), 1e9), -1e9);
	struct tile_rays t;

	t.at = (float)(at - base * pitch);
	t.along[1 - w.lead] = 1;
	t.along[w.lead] = (float)-w.slope;
	t.pitch = (float)pitch;
	t.per_pixel = (float)(1 / pitch);
	t.inverse = w.inverse;
	t.reach = (float)reach;
	t.length = w.length;
	t.first = falling ? job.scan.n_v - 1 - (int)base : (int)base;
	t.turn = falling ? -1 : 1;
	t.rays = is_steep(w) ? 0 : (int)ceil((1 + reach + SAFETY) / pitch);
	t.cross = 1 - w.lead;
	return t;
}

/* The radial bins that may meet pixel i of row k: [*ret_from, *ret_to). */
static __device__ void bins_near(const struct row_view &w, int n_v, int i, int k, int *ret_from, int *ret_to)
{
	const double low = w.start + w.slope * k, reach = w.model == PROJECTION_JOSEPH ? 1 : fabs(w.along);
	const double p = (i - reach - low) / w.pitch, o = (i + 1 - low) / w.pitch;

	*ret_from = (int)fmin(fmax(fmin(p, o) - 1, 0.0), (double)n_v);
	*ret_to = (int)fmax(fmin(fmax(p, o) + 2, (double)n_v), 0.0);
}

template <int WIDE> static __device__ __forceinline__ void add_bins(float w, const float *y, float sum[WIDE])
{
	if constexpr (WIDE == 4) {
		const float4 v = __ldg((const float4 *)y);

		sum[0] = fmaf(w, v.x, sum[0]);
		sum[1] = fmaf(w, v.y, sum[1]);
		sum[2] = fmaf(w, v.z, sum[2]);
		sum[3] = fmaf(w, v.w, sum[3]);
	} else {
		sum[0] = fmaf(w, __ldg(y), sum[0]);
	}
}

/* Add the rays of a view that meet pixel (x, y), each computed in double. bins: those of the view. */
template <int WIDE>
static __device__ __noinline__ void add_in_double(const struct rows_job &job, int view, int x, int y, const float *bins,
						  float sum[WIDE])
{
	const struct row_view w = job.rays[view];
	const int k = w.lead ? y : x, i = w.lead ? x : y;
	int from, to;

	bins_near(w, job.scan.n_v, i, k, &from, &to);
	for (int v = from; v < to; v++) {
		const struct row_range range = row_range_of(&w, &job.scan, job.views + view, v, &job.grid);
		float weight[2];
		int first;

		if (range.begin < range.end && row_entries(&w, &range, job.scan.radius[v], k, &first, weight) && i >= first &&
		    i <= first + 1)
			add_bins<WIDE>(i == first ? weight[0] : weight[1], bins + (size_t)v * job.scan.n_u, sum);
	}
}

/* The same with the weights of the projection, for rays whose row is whole. */
template <int WIDE>
static __device__ __noinline__ void add_as_projected(const struct rows_job &job, int view, int x, int y, const float *bins,
						     float sum[WIDE])
{
	const struct row_view w = job.rays[view];
	const int k = w.lead ? y : x, i = w.lead ? x : y;
	const long long slope = __double2ll_rn(w.slope * ROWS_UNIT);
	int from, to;

	bins_near(w, job.scan.n_v, i, k, &from, &to);
	for (int v = max(from, job.first_ray); v < min(to, job.first_ray + job.n_rays); v++) {
		const long long at = __double2ll_rn(row_low(&w, job.scan.radius[v]) * ROWS_UNIT) + k * slope;
		const float place = __uint_as_float(0x3f800000u | ((unsigned)at >> 9));
		const float part = fminf(1, fmaf(-place, w.inverse, 2 * w.inverse));
		const int first = (int)(at >> 32);

		if (first == i || first + 1 == i)
			add_bins<WIDE>(w.length * (first == i ? part : 1 - part), bins + (size_t)v * job.scan.n_u, sum);
	}
}

enum place {
	PLACE_INSIDE, /* all rays that meet it are in the field of view there */
	PLACE_EDGE,
	PLACE_OUTSIDE, /* no ray meets it */
};

static __device__ enum place place_of(const struct rows_job &job, bool joseph, int x, int y)
{
	const struct grid &g = job.grid;
	const double margin = joseph ? 1.5 : 0.5;
	const double at_x = fabs(g.lo[0] + (x + 0.5) * g.h[0]), at_y = fabs(g.lo[1] + (y + 0.5) * g.h[1]);
	const double half_x = margin * g.h[0], half_y = margin * g.h[1];

	if (hypot(fmax(at_x - half_x, 0.0), fmax(at_y - half_y, 0.0)) > job.scan.fov_radius)
		return PLACE_OUTSIDE;
	return hypot(at_x + half_x, at_y + half_y) > job.scan.fov_radius ? PLACE_EDGE : PLACE_INSIDE;
}

/* Is pixel (x, y) the outermost of its row, in views whose rows run along the axis `cross`? */
static __device__ bool is_outermost(const struct grid &g, int cross, int x, int y)
{
	const int i = cross == 0 ? x : y;

	return i == 0 || i == g.n[cross] - 1;
}

template <int WIDE, bool JOSEPH>
static __global__ void __launch_bounds__(PIXELS_THREADS, 5)
	back_rows_kernel(const __grid_constant__ struct rows_job job, const struct pixel_tiles tiles)
{
	__shared__ struct tile_rays tile[PIXELS_VIEWS];
	const struct tile_pixel p = tile_pixel_of(tiles);
	const int x = p.x0 + p.dx, y = p.y0 + p.dy;
	const bool on = x < job.grid.n[0] && y < job.grid.n[1] && p.z < job.scan.n_u;
	const bool here = on && place_of(job, JOSEPH, x, y) == PLACE_INSIDE;
	const bool left[2] = {JOSEPH && is_outermost(job.grid, 0, x, y), JOSEPH && is_outermost(job.grid, 1, x, y)};
	const float dx = (float)p.dx, dy = (float)p.dy;
	const unsigned bin_step = (unsigned)job.scan.n_u * sizeof(float), n_rays = here ? (unsigned)job.n_rays : 0;
	const size_t view_step = (size_t)job.scan.n_v * bin_step;
	const char *bins = (const char *)(job.y + (on ? p.z : 0));
	float sum[WIDE] = {};

	for (int begin = 0; begin < job.n_views; begin += PIXELS_VIEWS) {
		const int n = min(PIXELS_VIEWS, job.n_views - begin);

		__syncthreads();
		if (threadIdx.x < n)
			tile[threadIdx.x] = tile_rays_of(job, begin + (int)threadIdx.x, p.x0, p.y0);
		__syncthreads();
		for (int k = 0; k < n; k++, bins += view_step) {
			const struct tile_rays &t = tile[k];
			const unsigned count = left[t.cross] ? 0 : n_rays;
			float at = fmaf(dx, t.along[0], fmaf(dy, t.along[1], t.at));
			const float low = pixels_floor((at - t.reach) * t.per_pixel);
			int v = t.first - job.first_ray + t.turn * (pixels_whole(low) + 1);

			at = fmaf(PIXELS_MAGIC - low - 1, t.pitch, at);
#pragma unroll 2
			for (int ray = 0; ray < t.rays; ray++, v += t.turn, at -= t.pitch) {
				const float w =
					JOSEPH ? fmaxf(1 - fabsf(at), 0)
					       : __saturatef(fmaf(at, t.inverse, t.inverse)) - __saturatef(at * t.inverse);

				if ((unsigned)v < count)
					add_bins<WIDE>(w * t.length,
						       (const float *)(bins + (size_t)(unsigned)(v + job.first_ray) * bin_step),
						       sum);
			}
		}
	}
	if (on)
		put_slices<WIDE>(job.ret + ((size_t)y * job.grid.n[0] + x) * job.column, p.z, job.scan.n_u, job.column, sum,
				 job.add);
}

/* Add what back_rows_kernel() leaves out. */
template <int WIDE, bool JOSEPH>
static __global__ void __launch_bounds__(PIXELS_THREADS)
	back_rest_kernel(const __grid_constant__ struct rows_job job, const struct pixel_tiles tiles)
{
	const struct tile_pixel p = tile_pixel_of(tiles);
	const int x = p.x0 + p.dx, y = p.y0 + p.dy;
	const bool on = x < job.grid.n[0] && y < job.grid.n[1] && p.z < job.scan.n_u;
	const enum place place = on ? place_of(job, JOSEPH, x, y) : PLACE_OUTSIDE;
	const size_t view_size = (size_t)job.scan.n_v * job.scan.n_u;
	float *to = job.ret + ((size_t)y * job.grid.n[0] + x) * job.column + p.z;
	float sum[WIDE] = {};

	if (place == PLACE_OUTSIDE ||
	    (JOSEPH && place == PLACE_INSIDE && !is_outermost(job.grid, 0, x, y) && !is_outermost(job.grid, 1, x, y)))
		return;
	for (int view = 0; view < job.n_views; view++) {
		const struct row_view &w = job.rays[view];
		const float *bins = job.y + view * view_size + p.z;

		if (place == PLACE_EDGE || (JOSEPH && is_outermost(job.grid, 1 - w.lead, x, y)))
			add_in_double<WIDE>(job, view, x, y, bins, sum);
		else if (is_steep(w))
			add_as_projected<WIDE>(job, view, x, y, bins, sum);
	}
#pragma unroll
	for (int c = 0; c < WIDE; c++)
		to[c] += sum[c];
}

template <int WIDE, bool JOSEPH>
static void launch_back(const struct projection *a, const struct rows_job &job, struct pixel_tiles tiles)
{
	const dim3 blocks = pixel_tiles_blocks(tiles, &job.grid, job.scan.n_u);
	cudaStream_t stream = cuda_state(a->dev)->stream;

	back_rows_kernel<WIDE, JOSEPH><<<blocks, PIXELS_THREADS, 0, stream>>>(job, tiles);
	back_rest_kernel<WIDE, JOSEPH><<<blocks, PIXELS_THREADS, 0, stream>>>(job, tiles);
}

template <int WIDE> static void launch_model(const struct projection *a, const struct rows_job &job, struct pixel_tiles tiles)
{
	if (a->model == PROJECTION_JOSEPH)
		launch_back<WIDE, true>(a, job, tiles);
	else
		launch_back<WIDE, false>(a, job, tiles);
}

int cuda_line_rows_back(struct projection *a, const struct cuda_rows *rows, const float *y, bool add, float *x, struct err *err)
{
	const struct pixel_tiles tiles = pixel_tiles_of(a->scan.n_u);
	struct rows_job job = cuda_rows_job(a, rows);

	job.y = y;
	job.ret = x;
	job.add = add;
	if (tiles.wide == 4)
		launch_model<4>(a, job, tiles);
	else
		launch_model<1>(a, job, tiles);
	return cuda_check(cudaGetLastError(), a->dev, "back, without a table", err);
}
