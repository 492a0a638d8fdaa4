/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_line_rows.cu - parallel beams on the CUDA device without a table (kernels/line_rows.h): the views' rays, and the
 * projection of a single slice. cuda_line_rows_stack.cu projects several slices, cuda_line_rows_back.cu is the adjoint of both.
 *
 * - The projection of one slice reads prepared copies in the device's scratch: the image, and the image with x and y exchanged,
 *   with one more pixel at both ends of each row (0, or with JOSEPH the outermost value again), so that the two pixels of a ray
 * in a row can always be read.
 * - A warp has 32 adjacent rays of a view, a block the same rays of ROW_VIEWS adjacent views, which cross the same pixels. All
 *   lanes are in the same row of pixels at a time.
 * - All passes are sums in a fixed order: every run gives bitwise the same result. */
#include <errno.h>
#include <stdlib.h>

#include "kernels/cuda/cuda_line_rows.cuh"

#define ROW_VIEWS 8

/* Copy the image twice, with padding. One thread per pixel of the padded image of one of both. */
static __global__ void __launch_bounds__(CUDA_THREADS)
	pad_image_kernel(const float *x, int column, int n_x, int n_y, bool turned, bool rim, float *to)
{
	const size_t at = cuda_index();
	const int width = turned ? n_y : n_x, rows = turned ? n_x : n_y, i = (int)(at % (width + 2)) - 1,
		  k = (int)(at / (width + 2));
	const int near_by = min(max(i, 0), width - 1);

	if (k < rows)
		to[at] = i == near_by || rim ? x[(turned ? (size_t)near_by * n_x + k : (size_t)k * n_x + near_by) * column] : 0;
}

/* Return the sum of a ray in one row, in double. */
static __device__ float part_of_row(const struct row_view &w, const struct row_range &range, double radius, int k,
				    const float *image)
{
	float weight[2];
	int first;

	if (k < 0 || k >= w.n || !row_entries(&w, &range, radius, k, &first, weight))
		return 0;
	image += (size_t)k * (w.width + 2) + 1 + first;
	return weight[0] * (first >= 0 ? image[0] : 0) + weight[1] * (first + 1 < w.width ? image[1] : 0);
}

static __global__ void __launch_bounds__(32 * ROW_VIEWS) forward_rows_kernel(const __grid_constant__ struct rows_job job)
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
	low = __double2ll_rn(row_low(&w, job.scan.radius[ray]) * ROWS_UNIT);
	slope = __double2ll_rn(w.slope * ROWS_UNIT);
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
				const float place =
					__uint_as_float(0x3f800000u | ((unsigned)at >> 9)); /* 1 + place in the pixel */
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

/* Return the floats of both copies of a slice, by rows and by columns, with a voxel at either end of each. */
static size_t count_copied_floats(const struct grid *g)
{
	return (size_t)g->n[1] * (size_t)(g->n[0] + 2) + (size_t)g->n[0] * (size_t)(g->n[1] + 2);
}

/* The copies of a single slice. */
size_t cuda_line_rows_scratch(const struct projection_spec *spec)
{
	return spec->scan->n_u == 1 ? count_copied_floats(spec->grid) * sizeof(float) : 0;
}

size_t cuda_line_rows_bytes(const struct projection_spec *spec)
{
	return (size_t)spec->n_views * (sizeof(struct row_view) + sizeof(struct scan_view)) +
	       (size_t)spec->scan->n_u * sizeof(struct scan_plane) + (size_t)spec->scan->n_v * sizeof(double);
}

struct cuda_rows {
	struct row_view *rays; /* device memory: one per view */
	int first_ray, n_rays; /* the radial bins with a ray */
	int stride;	       /* lines_stride() */
	unsigned *arrived;     /* device memory; for sweeps, else NULL */
};

int cuda_line_rows_create(struct projection *a, const struct projection_spec *spec, struct cuda_rows **ret, struct err *err)
{
	const size_t bytes = (size_t)spec->n_views * sizeof(struct row_view);
	cudaStream_t stream = cuda_state(a->dev)->stream;
	struct row_view *rays = (struct row_view *)malloc(bytes);
	struct cuda_rows *rows = (struct cuda_rows *)calloc(1, sizeof(*rows));
	int r;

	*ret = rows; /* the caller frees it, after an error too */
	if (!rays || !rows) {
		free(rays);
		return err_set(err, ENOMEM, "%s: out of memory for %d views", a->dev->name, spec->n_views);
	}
	for (int view = 0; view < spec->n_views; view++)
		rays[view] = row_view_make(spec->model, spec->scan, spec->scan->views + spec->first + view, spec->grid);
	for (int v = 0; v < spec->scan->n_v; v++) /* the radii ascend, so the bins with a ray are adjacent */
		if (scan_reach(spec->scan, v) > 0) {
			rows->first_ray = rows->n_rays ? rows->first_ray : v;
			rows->n_rays++;
		}
	rows->stride = lines_stride(spec->model, spec->scan, spec->grid);
	r = cuda_check(cudaMalloc((void **)&rows->rays, bytes), a->dev, "rays", err);
	if (r == 0 && spec->sweeps)
		r = cuda_check(cudaMalloc((void **)&rows->arrived, sizeof(*rows->arrived)), a->dev, "rays", err);
	if (r == 0)
		r = cuda_check(cudaMemcpyAsync(rows->rays, rays, bytes, cudaMemcpyHostToDevice, stream), a->dev, "rays", err);
	if (r == 0) /* the host memory is freed */
		r = cuda_check(cudaStreamSynchronize(stream), a->dev, "rays", err);
	free(rays);
	return r;
}

void cuda_line_rows_free(struct cuda_rows *rows)
{
	if (!rows)
		return;
	cudaFree(rows->rays);
	cudaFree(rows->arrived);
	free(rows);
}

int cuda_rows_stride(const struct cuda_rows *rows, unsigned **ret_arrived)
{
	*ret_arrived = rows->arrived;
	return rows->stride;
}

struct rows_job cuda_rows_job(const struct projection *a, const struct cuda_rows *rows)
{
	const struct grid *g = &a->grid;
	const double x = fmax(fabs(g->lo[0]), fabs(g->lo[0] + g->n[0] * g->h[0]));
	const double y = fmax(fabs(g->lo[1]), fabs(g->lo[1] + g->n[1] * g->h[1]));
	struct rows_job job = {};

	job.scan = a->scan;
	job.grid = *g;
	job.views = a->views;
	job.rays = rows->rays;
	job.first_ray = rows->first_ray;
	job.n_rays = rows->n_rays;
	job.n_views = a->n_views;
	job.column = (int)lines_column(g);
	job.inside = hypot(x, y) <= a->scan.fov_radius;
	return job;
}

int cuda_line_rows_forward(struct projection *a, const struct cuda_rows *rows, const float *x, bool add, float *y,
			   struct err *err)
{
	const struct grid *g = &a->grid;
	const size_t straight = (size_t)g->n[1] * (size_t)(g->n[0] + 2), turned = (size_t)g->n[0] * (size_t)(g->n[1] + 2);
	const bool rim = a->model == PROJECTION_JOSEPH;
	cudaStream_t stream = cuda_state(a->dev)->stream;
	float *copy = (float *)cuda_state(a->dev)->scratch;
	struct rows_job job = cuda_rows_job(a, rows);
	int r;

	job.x = x;
	job.ret = y;
	job.add = add;
	if (a->scan.n_u > 1)
		return cuda_rows_forward_stack(a, job, err);
	pad_image_kernel<<<cuda_blocks(straight), CUDA_THREADS, 0, stream>>>(x, job.column, g->n[0], g->n[1], false, rim, copy);
	if ((r = cuda_check(cudaGetLastError(), a->dev, "copy of the image", err)) < 0)
		return r;
	pad_image_kernel<<<cuda_blocks(turned), CUDA_THREADS, 0, stream>>>(x, job.column, g->n[0], g->n[1], true, rim,
									   copy + straight);
	if ((r = cuda_check(cudaGetLastError(), a->dev, "copy of the image", err)) < 0)
		return r;
	job.image = copy;
	job.turned = copy + straight;
	forward_rows_kernel<<<dim3((unsigned)((a->scan.n_v + 31) / 32), (unsigned)((a->n_views + ROW_VIEWS - 1) / ROW_VIEWS)),
			      dim3(32, ROW_VIEWS), 0, stream>>>(job);
	return cuda_check(cudaGetLastError(), a->dev, "forward, one slice", err);
}
