/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_line_rows.cu - a single slice of parallel beams on the CUDA device without a table (kernels/line_rows.h).
 *
 * - Both passes read prepared copies in the device's scratch: the image and the image with x and y exchanged, with one more pixel
 *   at both ends of each row (0, or with JOSEPH the outermost value again), so that the two pixels of a ray in a row can always be
 *   read; the bins of each view in the order of ascending positions, times the length of a row, 0 where there is no ray.
 * - Forward: a warp has 32 adjacent rays of a view, a block the same rays of ROW_VIEWS adjacent views, which cross the same pixels.
 *   All lanes are in the same row of pixels at a time. Positions are 64-bit integers in units of 2^-32 pixels: the upper half is the
 *   pixel, the lower half the place in it.
 * - Back: a thread has a pixel, and adds for each view the rays that meet it. Positions: the corner of a block in double, the rest
 *   relative to it in float. Pixels at the edge of the field of view or, with JOSEPH, at an end of their row, and views nearly along
 *   an axis, are computed ray by ray in double.
 * Both are sums in a fixed order: every run gives bitwise the same result. */
#include <errno.h>

#include "kernels/cuda/cuda_paths.cuh"
#include "kernels/line_rows.h"

#define ROW_VIEWS 8
#define TILE_X 32
#define TILE_Y 8
#define TILE_VIEWS 64	      /* views whose constants are in shared memory at a time */
#define PAD 32		      /* bins before and after those of a view */
#define UNIT 4294967296.0     /* 2^32 */
#define LEAST_SLOPE (1.0 / 256)
#define SAFETY 1e-4	      /* pixels: so close to a pixel's edge a ray counts as one that may meet it */

struct rows_job {
	struct scan scan;
	struct grid grid;
	const struct scan_view *views;
	const struct row_view *rays; /* one per view */
	const float *image, *turned; /* padded copies; rows of n[0] + 2 and of n[1] + 2 */
	const float *bins;	     /* padded copy, n_views x (n_v + 2 PAD) */
	float *ret;
	int n_views, column;
	bool add, inside; /* inside: the image is in the field of view */
};

/* Copy the image twice, with padding. One thread per pixel of the padded image of one of both. */
static __global__ void __launch_bounds__(CUDA_THREADS)
	pad_image_kernel(const float *x, int column, int n_x, int n_y, bool turned, bool rim, float *to)
{
	const size_t at = cuda_index();
	const int width = turned ? n_y : n_x, rows = turned ? n_x : n_y, i = (int)(at % (width + 2)) - 1, k = (int)(at / (width + 2));
	const int near_by = min(max(i, 0), width - 1);

	if (k < rows)
		to[at] = i == near_by || rim ? x[(turned ? (size_t)near_by * n_x + k : (size_t)k * n_x + near_by) * column] : 0;
}

/* The rows of a ray with whole entries: those in which pixels first and first + 1 are in the padded row. */
static __device__ void rows_of_ray(const struct rows_job &job, const struct row_view &w, const struct row_range &range, long long low,
				   long long slope, int *ret_from, int *ret_to)
{
	const bool joseph = w.model == PROJECTION_JOSEPH;
	const long long unit = 1ll << 32, least = joseph ? -(unit >> 1) : -unit, most = w.width * unit - (joseph ? unit >> 1 : 0);
	int from = job.inside && !joseph ? 0 : (int)ceil(range.begin), to = job.inside && !joseph ? w.n : (int)floor(range.end);

	if (!(range.begin < range.end)) {
		from = to = 0;
	} else if (slope == 0) {
		to = low >= least && low < most ? to : from;
	} else {
		const double a = (double)(least - low) / (double)slope, b = (double)(most - low) / (double)slope;

		from = max(from, (int)fmax(fmin(fmin(a, b) - 1, 1e9), -1e9));
		to = min(to, (int)fmax(fmin(fmax(a, b) + 2, 1e9), -1e9));
		while (from < to && !(low + from * slope >= least && low + from * slope < most))
			from++;
		while (to > from && !(low + (to - 1) * slope >= least && low + (to - 1) * slope < most))
			to--;
	}
	*ret_from = from;
	*ret_to = to > from ? to : from;
}

/* Return the sum of a ray in one row, in double. */
static __device__ float part_of_row(const struct row_view &w, const struct row_range &range, double radius, int k, const float *image)
{
	float weight[2];
	int first;

	if (k < 0 || k >= w.n || !row_entries(&w, &range, radius, k, &first, weight))
		return 0;
	image += (size_t)k * (w.width + 2) + 1 + first;
	return weight[0] * (first >= 0 ? image[0] : 0) + weight[1] * (first + 1 < w.width ? image[1] : 0);
}

static __global__ void __launch_bounds__(32 * ROW_VIEWS) forward_rows_kernel(const struct rows_job job)
{
	const int v = (int)blockIdx.x * 32 + threadIdx.x, view = (int)blockIdx.y * ROW_VIEWS + threadIdx.y;
	const bool on = v < job.scan.n_v;
	const int ray = on ? v : 0;
	struct row_view w;
	struct row_range range;
	const float *image;
	long long low, slope;
	int from, to, begin, end;
	float sum = 0;

	if (view >= job.n_views) /* the whole warp */
		return;
	w = job.rays[view];
	image = w.lead ? job.image : job.turned;
	range = row_range_of(&w, &job.scan, job.views + view, ray, &job.grid);
	low = __double2ll_rn(row_low(&w, job.scan.radius[ray]) * UNIT);
	slope = __double2ll_rn(w.slope * UNIT);
	rows_of_ray(job, w, range, low, slope, &from, &to);
	to = on ? to : from;
	begin = __reduce_min_sync(0xffffffffu, to > from ? from : 0x7fffffff);
	end = __reduce_max_sync(0xffffffffu, to > from ? to : 0);
	if (begin < end) {
		const float *row = image + (size_t)begin * (w.width + 2) + 1;
		long long at = low + begin * slope;

#pragma unroll 4
		for (int k = begin; k < end; k++) {
			if ((unsigned)(k - from) < (unsigned)(to - from)) {
				const float *x = row + (int)(at >> 32);
				const float place = __uint_as_float(0x3f800000u | ((unsigned)at >> 9)); /* 1 + place in the pixel */
				const float next = __ldg(x + 1), part = fminf(1, fmaf(-place, w.inverse, 2 * w.inverse));

				sum += fmaf(part, __ldg(x) - next, next);
			}
			row += w.width + 2;
			at += slope;
		}
	}
	sum *= w.length;
	if (w.model == PROJECTION_PATHS && !job.inside && on && range.begin < range.end) {
		const int before = (int)floor(range.begin), after = (int)floor(range.end);

		if (before < range.begin)
			sum += part_of_row(w, range, job.scan.radius[ray], before, image);
		if (after < range.end && (after > before || before == range.begin))
			sum += part_of_row(w, range, job.scan.radius[ray], after, image);
	}
	if (on) {
		float *to_bin = job.ret + (size_t)view * job.scan.n_v + v;

		*to_bin = job.add ? *to_bin + sum : sum;
	}
}

/* Copy the bins of each view, ascending along the rows of pixels, with padding. */
static __global__ void __launch_bounds__(CUDA_THREADS)
	pad_bins_kernel(const float *y, const struct row_view *rays, struct scan scan, int n_views, float *to)
{
	const size_t at = cuda_index();
	const int view = (int)(at / (scan.n_v + 2 * PAD)), u = (int)(at % (scan.n_v + 2 * PAD)) - PAD;

	if (view < n_views) {
		const int v = rays[view].pitch < 0 ? scan.n_v - 1 - u : u;
		const bool is_ray = u >= 0 && u < scan.n_v && scan_reach(&scan, v) > 0;

		to[at] = is_ray ? y[(size_t)view * scan.n_v + v] * rays[view].length : 0;
	}
}

/* How the rays of a view cross the pixels of a block: as struct cpu_tile_rays, but for the first bin. */
struct tile_rays {
	float at, slope, pitch, per_pixel, inverse, reach;
	int first, rays; /* first: bin of the copy that ray 1 is */
	int lead, one_by_one;
};

static __device__ struct tile_rays tile_rays_of(const struct rows_job &job, int view, int x, int y)
{
	const struct row_view w = job.rays[view];
	const double pitch = fabs(w.pitch), reach = (w.model == PROJECTION_JOSEPH ? 1 : fabs(w.along)) + SAFETY;
	const double start = w.start + (w.pitch < 0 ? w.pitch * (job.scan.n_v - 1) : 0);
	const int k = w.lead ? y : x, i = w.lead ? x : y;
	const double at = i - (start + w.slope * k), base = floor((at - reach) / pitch);
	struct tile_rays t;

	t.at = (float)(at - base * pitch);
	t.slope = (float)w.slope;
	t.pitch = (float)pitch;
	t.per_pixel = (float)(1 / pitch);
	t.inverse = w.inverse;
	t.reach = (float)reach;
	t.first = (int)fmax(fmin(base + 1, 1e9), -1e9);
	t.rays = (int)ceil((1 + reach + SAFETY) / pitch);
	t.lead = w.lead;
	t.one_by_one = w.model == PROJECTION_PATHS && fabs(w.along) < LEAST_SLOPE;
	return t;
}

/* Return the sum of a pixel over the rays of a view that meet it, in double. */
static __device__ double pixel_sum(const struct rows_job &job, int view, int x, int y)
{
	const struct row_view w = job.rays[view];
	const int k = w.lead ? y : x, i = w.lead ? x : y, n_v = job.scan.n_v;
	const double low = w.start + w.slope * k, reach = w.model == PROJECTION_JOSEPH ? 1 : fabs(w.along);
	const double p = (i - reach - low) / w.pitch, o = (i + 1 - low) / w.pitch;
	const int from = (int)fmin(fmax(fmin(p, o) - 1, 0.0), (double)n_v), to = (int)fmax(fmin(fmax(p, o) + 2, (double)n_v), 0.0);
	double sum = 0;

	for (int v = from; v < to; v++) {
		const struct row_range range = row_range_of(&w, &job.scan, job.views + view, v, &job.grid);
		const int u = w.pitch < 0 ? n_v - 1 - v : v;
		float weight[2];
		int first;

		if (range.begin < range.end && row_entries(&w, &range, job.scan.radius[v], k, &first, weight) && i >= first && i <= first + 1)
			sum += (double)((i == first ? weight[0] : weight[1]) / w.length) * job.bins[(size_t)view * (n_v + 2 * PAD) + PAD + u];
	}
	return sum;
}

/* 0: tiles compute the pixel, 1: ray by ray, 2: no ray meets it. As place_of() of the CPU device. */
static __device__ int place_of(const struct rows_job &job, bool joseph, int lead, int x, int y)
{
	const struct grid &g = job.grid;
	const int i = lead ? x : y, width = g.n[1 - lead];
	const double margin = joseph ? 1.5 : 0.5;
	const double at_x = fabs(g.lo[0] + (x + 0.5) * g.h[0]), at_y = fabs(g.lo[1] + (y + 0.5) * g.h[1]);
	const double half_x = margin * g.h[0], half_y = margin * g.h[1];

	if (hypot(fmax(at_x - half_x, 0.0), fmax(at_y - half_y, 0.0)) > job.scan.fov_radius)
		return 2;
	return (joseph && (i == 0 || i == width - 1)) || hypot(at_x + half_x, at_y + half_y) > job.scan.fov_radius;
}

static __global__ void __launch_bounds__(TILE_X * TILE_Y) back_rows_kernel(const struct rows_job job, enum projection_model model)
{
	__shared__ struct tile_rays tile[TILE_VIEWS];
	const int x0 = (int)blockIdx.x * TILE_X, y0 = (int)blockIdx.y * TILE_Y, x = x0 + threadIdx.x, y = y0 + threadIdx.y;
	const int thread = (int)(threadIdx.y * TILE_X + threadIdx.x), row = job.scan.n_v + 2 * PAD;
	const bool on = x < job.grid.n[0] && y < job.grid.n[1];
	int place[2] = {2, 2};
	double total = 0;

	for (int lead = 0; on && lead < 2; lead++)
		place[lead] = place_of(job, model == PROJECTION_JOSEPH, lead, x, y);
	for (int first = 0; first < job.n_views; first += TILE_VIEWS) {
		const int n = min(TILE_VIEWS, job.n_views - first);
		float sum = 0;

		__syncthreads();
		if (thread < n)
			tile[thread] = tile_rays_of(job, first + thread, x0, y0);
		__syncthreads();
		for (int k = 0; k < n; k++) {
			const struct tile_rays &t = tile[k];
			const int where = place[t.lead];
			float from;
			int ray;

			if (where == 2)
				continue;
			if (where == 1 || t.one_by_one) {
				total += pixel_sum(job, first + k, x, y);
				continue;
			}
			from = t.at + (float)(t.lead ? threadIdx.x : threadIdx.y) - t.slope * (float)(t.lead ? threadIdx.y : threadIdx.x);
			ray = (int)floorf((from - t.reach) * t.per_pixel);
			from -= (float)(ray + 1) * t.pitch;
			ray += t.first;
			for (int u = max(ray, -PAD); u < min(ray + t.rays, job.scan.n_v + PAD); u++)
				sum = fmaf(row_weight(from - (float)(u - ray) * t.pitch, t.inverse),
					   __ldg(job.bins + (size_t)(first + k) * row + PAD + u), sum);
		}
		total += sum;
	}
	if (on) {
		float *to = job.ret + ((size_t)y * job.grid.n[0] + x) * job.column;

		*to = (float)(job.add ? *to + total : total);
		for (int z = 1; !job.add && z < job.column; z++)
			to[z] = 0;
	}
}

static size_t image_floats(const struct grid *g)
{
	return (size_t)g->n[1] * (size_t)(g->n[0] + 2) + (size_t)g->n[0] * (size_t)(g->n[1] + 2);
}

static size_t bin_floats(const struct scan *s, int n_views)
{
	return (size_t)n_views * (size_t)(s->n_v + 2 * PAD);
}

size_t cuda_line_rows_scratch(const struct projection_spec *spec)
{
	const size_t image = image_floats(spec->grid), bins = bin_floats(spec->scan, spec->n_views);

	return (image > bins ? image : bins) * sizeof(float);
}

size_t cuda_line_rows_bytes(const struct projection_spec *spec)
{
	return (size_t)spec->n_views * (sizeof(struct row_view) + sizeof(struct scan_view)) + sizeof(struct scan_plane) +
	       (size_t)spec->scan->n_v * sizeof(double);
}

int cuda_line_rows_create(struct projection *a, const struct projection_spec *spec, struct row_view **ret, struct err *err)
{
	const size_t bytes = (size_t)spec->n_views * sizeof(struct row_view);
	cudaStream_t stream = cuda_state(a->dev)->stream;
	struct row_view *rays = (struct row_view *)malloc(bytes);
	int r;

	if (!rays)
		return err_set(err, ENOMEM, "%s: out of memory for %d views", a->dev->name, spec->n_views);
	for (int view = 0; view < spec->n_views; view++)
		rays[view] = row_view_make(spec->model, spec->scan, spec->scan->views + spec->first + view, spec->grid);
	r = cuda_check(cudaMalloc((void **)ret, bytes), a->dev, "rays", err);
	if (r == 0)
		r = cuda_check(cudaMemcpyAsync(*ret, rays, bytes, cudaMemcpyHostToDevice, stream), a->dev, "rays", err);
	if (r == 0) /* the host memory is freed */
		r = cuda_check(cudaStreamSynchronize(stream), a->dev, "rays", err);
	free(rays);
	return r;
}

static struct rows_job job_of(const struct projection *a, const struct row_view *rays)
{
	const struct grid *g = &a->grid;
	const double x = fmax(fabs(g->lo[0]), fabs(g->lo[0] + g->n[0] * g->h[0]));
	const double y = fmax(fabs(g->lo[1]), fabs(g->lo[1] + g->n[1] * g->h[1]));
	struct rows_job job = {};

	job.scan = a->scan;
	job.grid = *g;
	job.views = a->views;
	job.rays = rays;
	job.n_views = a->n_views;
	job.column = (int)lines_column(g);
	job.inside = hypot(x, y) <= a->scan.fov_radius;
	return job;
}

int cuda_line_rows_forward(struct projection *a, const struct row_view *rays, const float *x, bool add, float *y, struct err *err)
{
	const struct grid *g = &a->grid;
	const size_t straight = (size_t)g->n[1] * (size_t)(g->n[0] + 2), turned = (size_t)g->n[0] * (size_t)(g->n[1] + 2);
	const bool rim = a->model == PROJECTION_JOSEPH;
	cudaStream_t stream = cuda_state(a->dev)->stream;
	float *copy = (float *)cuda_state(a->dev)->scratch;
	struct rows_job job = job_of(a, rays);
	int r;

	pad_image_kernel<<<cuda_blocks(straight), CUDA_THREADS, 0, stream>>>(x, job.column, g->n[0], g->n[1], false, rim, copy);
	if ((r = cuda_check(cudaGetLastError(), a->dev, "copy of the image", err)) < 0)
		return r;
	pad_image_kernel<<<cuda_blocks(turned), CUDA_THREADS, 0, stream>>>(x, job.column, g->n[0], g->n[1], true, rim, copy + straight);
	if ((r = cuda_check(cudaGetLastError(), a->dev, "copy of the image", err)) < 0)
		return r;
	job.image = copy;
	job.turned = copy + straight;
	job.ret = y;
	job.add = add;
	forward_rows_kernel<<<dim3((unsigned)((a->scan.n_v + 31) / 32), (unsigned)((a->n_views + ROW_VIEWS - 1) / ROW_VIEWS)),
			      dim3(32, ROW_VIEWS), 0, stream>>>(job);
	return cuda_check(cudaGetLastError(), a->dev, "forward, one slice", err);
}

int cuda_line_rows_back(struct projection *a, const struct row_view *rays, const float *y, bool add, float *x, struct err *err)
{
	const struct grid *g = &a->grid;
	cudaStream_t stream = cuda_state(a->dev)->stream;
	float *copy = (float *)cuda_state(a->dev)->scratch;
	struct rows_job job = job_of(a, rays);
	int r;

	pad_bins_kernel<<<cuda_blocks(bin_floats(&a->scan, a->n_views)), CUDA_THREADS, 0, stream>>>(y, rays, a->scan, a->n_views, copy);
	if ((r = cuda_check(cudaGetLastError(), a->dev, "copy of the bins", err)) < 0)
		return r;
	job.bins = copy;
	job.ret = x;
	job.add = add;
	back_rows_kernel<<<dim3((unsigned)((g->n[0] + TILE_X - 1) / TILE_X), (unsigned)((g->n[1] + TILE_Y - 1) / TILE_Y)),
			   dim3(TILE_X, TILE_Y), 0, stream>>>(job, a->model);
	return cuda_check(cudaGetLastError(), a->dev, "back, one slice", err);
}
