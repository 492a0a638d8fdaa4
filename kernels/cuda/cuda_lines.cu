/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_lines.cu - stacks of 2-D parallel beams (kernels/lines.h) on the CUDA device. A warp processes a line. For several slices,
 * each lane processes a slice, and all lanes use the same entry at a time; for a single slice, each lane processes other entries,
 * and the sums of the lanes are added. The back pass adds with atomics or, for bitwise repeatable results, in 64-bit fixed-point
 * sums.
 *
 * A sweep is a sequence of passes, each of which needs the results of the previous one. It is a single launch whose blocks are all
 * resident on the device and synchronise at the end of each pass. Within a pass no two lines share a pixel. Data that another
 * multiprocessor may have written are read past the level-1 cache. Of a stack a block processes a line of 32 slices, and its warps
 * divide the line's entries, because a pass has too few lines to hide the latency of memory. The level-2 cache limits it then:
 * 300 x 300 pixels of 128 slices on an H200 are read and written at 4.8 TB/s. */
#include <errno.h>

#include "kernels/cuda/cuda_paths.cuh"
#include "kernels/line_rows.h"

/* All entries are kept if they fit into 1 / KEPT_PART of the device's memory; else they are computed again in each pass, for as
 * many views at a time as fit into 1 / BATCH_PART of it. With smaller batches some multiprocessors would have no work. */
#define KEPT_PART 8
#define BATCH_PART 16
#define LINE_WARPS 8
#define SWEEP_WARPS 16
#define SWEEP_GROUPS 64 /* of 32 slices, at a time */
#define TEAM_WARPS 8	/* of a ray of a stack */
#define ALL 0xffffffffu

struct cuda_lines {
	struct cuda_rows *rows; /* without a table (cuda_line_rows.cu); NULL: with a table */
	struct line *line;	/* device memory, n_views * n_v; `at` is relative to the batch's first entry */
	struct line_entry *entry;
	unsigned *arrived; /* device memory, SWEEP_GROUPS elements */
	double sampling;
	int batch;	 /* views per batch */
	int table_first; /* first view of the batch in memory; -1: none */
	int stride;
};

static struct lines_table table_of(const struct device *dev, const struct projection_spec *spec)
{
	return lines_table(spec->model, spec->scan, spec->first, spec->n_views, spec->grid, dev->memory / KEPT_PART,
			   dev->memory / BATCH_PART);
}

static void place_entries(const struct projection_spec *spec, int batch, struct line *line)
{
	const struct scan *s = spec->scan;
	size_t n = 0, i = 0;

	for (int view = 0; view < spec->n_views; view++) {
		if (view % batch == 0)
			n = 0;
		for (int v = 0; v < s->n_v; v++, i++) {
			line[i].at = n;
			n += (size_t)line_bound(spec->model, s, s->views + spec->first + view, v, spec->grid);
		}
	}
}

/* A sweep uses the table, which is faster as long as it can be kept (300 x 300 pixels from 300 angles: 2.4 ms, without 5.2), and
 * for several slices always. */
static bool by_rows(const struct device *dev, const struct projection_spec *spec)
{
	if (!line_rows_fit(spec))
		return false;
	return !spec->sweeps || (spec->scan->n_u == 1 && table_of(dev, spec).batch < spec->n_views);
}

size_t cuda_lines_bytes(const struct device *dev, const struct projection_spec *spec)
{
	if (by_rows(dev, spec))
		return cuda_line_rows_bytes(spec);
	return table_of(dev, spec).entries * sizeof(struct line_entry) +
	       (size_t)spec->n_views * ((size_t)spec->scan->n_v * sizeof(struct line) + sizeof(struct scan_view)) +
	       (size_t)spec->scan->n_u * sizeof(struct scan_plane) + (size_t)spec->scan->n_v * sizeof(double);
}

size_t cuda_lines_scratch(const struct device *dev, const struct projection_spec *spec)
{
	if (by_rows(dev, spec))
		return cuda_line_rows_scratch(spec);
	return spec->deterministic ? grid_size(spec->grid) * sizeof(long long) + sizeof(float) : 0;
}

static __global__ void __launch_bounds__(CUDA_THREADS)
	make_kernel(enum projection_model model, struct scan scan, const struct scan_view *views, struct grid grid, int n_views,
		    double sampling, struct line *line, struct line_entry *entry)
{
	size_t i = cuda_index();
	int view = (int)(i / scan.n_v), v = (int)(i % scan.n_v);

	if (view < n_views)
		line_make(model, &scan, views + view, v, &grid, sampling, entry + line[i].at, line + i);
}

/* Compute the entries of the views from `first` on. *ret_n: number of views. */
static int make_batch(const struct projection *a, int first, int *ret_n, struct err *err)
{
	struct cuda_lines *l = a->lines;
	const int n = a->n_views - first < l->batch ? a->n_views - first : l->batch;
	const size_t lines = (size_t)n * (size_t)a->scan.n_v;

	*ret_n = n;
	if (l->table_first == first)
		return 0;
	make_kernel<<<cuda_blocks(lines), CUDA_THREADS, 0, cuda_state(a->dev)->stream>>>(
		a->model, a->scan, a->views + first, a->grid, n, l->sampling, l->line + (size_t)first * (size_t)a->scan.n_v,
		l->entry);
	l->table_first = first;
	return cuda_check(cudaGetLastError(), a->dev, "making lines", err);
}

int cuda_lines_create(struct projection *a, const struct projection_spec *spec, struct err *err)
{
	size_t n = (size_t)spec->n_views * (size_t)spec->scan->n_v;
	cudaStream_t stream = cuda_state(a->dev)->stream;
	struct lines_table table;
	struct cuda_lines *l;
	struct line *line;
	int r, n_views;

	a->lines = (struct cuda_lines *)calloc(1, sizeof(*a->lines));
	if (by_rows(a->dev, spec) && a->lines)
		return cuda_line_rows_create(a, spec, &a->lines->rows, err);
	table = table_of(a->dev, spec);
	line = (struct line *)calloc(n, sizeof(*line));
	if (!line || !a->lines) {
		r = err_set(err, ENOMEM, "%s: out of memory for %zu lines", a->dev->name, n);
		goto out;
	}
	l = a->lines;
	l->stride = lines_stride(spec->model, spec->scan, spec->grid);
	l->sampling = spec->sampling;
	l->batch = table.batch;
	l->table_first = -1;
	place_entries(spec, table.batch, line);
	if ((r = cuda_check(cudaMalloc((void **)&l->line, n * sizeof(*line)), a->dev, "lines", err)) < 0 ||
	    (r = cuda_check(cudaMalloc((void **)&l->entry, (table.entries ? table.entries : 1) * sizeof(*l->entry)), a->dev,
			    "entries of lines", err)) < 0 ||
	    (r = cuda_check(cudaMalloc((void **)&l->arrived, SWEEP_GROUPS * sizeof(*l->arrived)), a->dev, "lines", err)) < 0 ||
	    (r = cuda_check(cudaMemcpyAsync(l->line, line, n * sizeof(*line), cudaMemcpyHostToDevice, stream), a->dev, "lines",
			    err)) < 0)
		goto out;
	r = make_batch(a, 0, &n_views, err);
	if (r == 0) /* the host memory is freed */
		r = cuda_check(cudaStreamSynchronize(stream), a->dev, "making lines", err);
out:
	free(line);
	return r;
}

const struct cuda_rows *cuda_lines_rows(const struct cuda_lines *l)
{
	return l->rows;
}

void cuda_lines_free(struct cuda_lines *l)
{
	if (!l)
		return;
	cuda_line_rows_free(l->rows);
	cudaFree(l->line);
	cudaFree(l->entry);
	cudaFree(l->arrived);
	free(l);
}

struct line_job {
	const struct line *line;
	const struct line_entry *entry;
	const float *x, *y;
	float *ret;
	unsigned long long *fixed; /* back: used in place of ret */
	const float *largest;
	double bound;
	size_t n_lines;
	int n_u, column;
	bool add;
};

static __device__ __forceinline__ float warp_sum(float sum)
{
#pragma unroll
	for (int d = 16; d > 0; d /= 2)
		sum += __shfl_xor_sync(ALL, sum, d);
	return sum;
}

/* Return the sum of weight times x over a line's entries, in this lane's slice u; for a single slice, the sum over the entries of
 * all lanes. */
template <bool STACK>
static __device__ __forceinline__ float line_sum(const struct line_entry *entry, int n, const float *x, int u, int column,
						 int lane)
{
	float sum = 0;

	if constexpr (STACK) {
#pragma unroll 8
		for (int k = 0; k < n; k++)
			sum = fmaf(entry[k].weight, __ldcg(x + (size_t)entry[k].column * column + u), sum);
	} else {
#pragma unroll 4
		for (int k = lane; k < n; k += 32)
			sum = fmaf(entry[k].weight, __ldcg(x + (size_t)entry[k].column * column), sum);
		sum = warp_sum(sum);
	}
	return sum;
}

template <bool STACK> static __global__ void __launch_bounds__(32 * LINE_WARPS) forward_kernel(const struct line_job job)
{
	const size_t at = (size_t)blockIdx.x * LINE_WARPS + threadIdx.x / 32;
	const int lane = threadIdx.x % 32, u = STACK ? blockIdx.y * 32 + lane : 0;
	struct line line;
	float sum, *y;

	if (at >= job.n_lines)
		return;
	line = job.line[at];
	sum = u < job.n_u ? line_sum<STACK>(job.entry + line.at, line.n, job.x, u, job.column, lane) : 0;
	y = job.ret + at * job.n_u + u;
	if (u < job.n_u && (STACK || lane == 0))
		*y = job.add ? *y + sum : sum;
}

template <bool STACK> static __global__ void __launch_bounds__(32 * LINE_WARPS) back_kernel(const struct line_job job)
{
	const size_t at = (size_t)blockIdx.x * LINE_WARPS + threadIdx.x / 32;
	const int lane = threadIdx.x % 32, u = STACK ? blockIdx.y * 32 + lane : 0;
	const double scale = job.fixed ? 0x1p62 / ((double)*job.largest * job.bound) : 0;
	struct line line;
	float y;

	if (at >= job.n_lines || u >= job.n_u)
		return;
	line = job.line[at];
	y = job.y[at * job.n_u + u];
	for (int k = STACK ? 0 : lane; k < line.n; k += STACK ? 1 : 32) {
		struct line_entry e = job.entry[line.at + k];
		size_t to = (size_t)e.column * job.column + u;

		if (job.fixed)
			atomicAdd(job.fixed + to, (unsigned long long)__double2ll_rn((double)e.weight * y * scale));
		else
			atomicAdd(job.ret + to, e.weight * y);
	}
}

/* Prepare the job of the views from `first` on; *ret_bin: index of their first bin. */
static int fill_job(const struct projection *a, int first, struct line_job *job, int *ret_n, size_t *ret_bin, struct err *err)
{
	const size_t lines_before = (size_t)first * (size_t)a->scan.n_v;
	int r = make_batch(a, first, ret_n, err);

	job->line = a->lines->line + lines_before;
	job->entry = a->lines->entry;
	job->n_lines = (size_t)*ret_n * (size_t)a->scan.n_v;
	job->n_u = a->scan.n_u;
	job->column = (int)lines_column(&a->grid);
	*ret_bin = lines_before * (size_t)a->scan.n_u;
	return r;
}

static dim3 blocks_of(const struct line_job *job)
{
	return dim3((unsigned)((job->n_lines + LINE_WARPS - 1) / LINE_WARPS), (unsigned)((job->n_u + 31) / 32));
}

int cuda_lines_forward(struct projection *a, const float *x, bool add, float *y, struct err *err)
{
	cudaStream_t stream = cuda_state(a->dev)->stream;
	int r = 0;

	if (a->lines->rows)
		return cuda_line_rows_forward(a, a->lines->rows, x, add, y, err);
	for (int first = 0, n; r == 0 && first < a->n_views; first += n) {
		struct line_job job = {};
		size_t bin;

		r = fill_job(a, first, &job, &n, &bin, err);
		job.x = x;
		job.ret = y + bin;
		job.add = add;
		if (r < 0)
			break;
		if (job.n_u > 1)
			forward_kernel<true><<<blocks_of(&job), 32 * LINE_WARPS, 0, stream>>>(job);
		else
			forward_kernel<false><<<blocks_of(&job), 32 * LINE_WARPS, 0, stream>>>(job);
		r = cuda_check(cudaGetLastError(), a->dev, "lines forward", err);
	}
	return r;
}

int cuda_lines_back(struct projection *a, const float *y, const struct cuda_fixed *fixed, float *x, struct err *err)
{
	cudaStream_t stream = cuda_state(a->dev)->stream;
	int r = 0;

	for (int first = 0, n; r == 0 && first < a->n_views; first += n) {
		struct line_job job = {};
		size_t bin;

		r = fill_job(a, first, &job, &n, &bin, err);
		job.y = y + bin;
		job.ret = x;
		if (fixed) {
			job.fixed = fixed->sums;
			job.largest = fixed->largest;
			job.bound = fixed->bound;
		}
		if (r < 0)
			break;
		if (job.n_u > 1)
			back_kernel<true><<<blocks_of(&job), 32 * LINE_WARPS, 0, stream>>>(job);
		else
			back_kernel<false><<<blocks_of(&job), 32 * LINE_WARPS, 0, stream>>>(job);
		r = cuda_check(cudaGetLastError(), a->dev, "lines back", err);
	}
	return r;
}

struct sweep_job {
	const struct line *line;
	const struct line_entry *entry;
	const float *y;
	float *x;
	float relaxation;
	int n_views, n_v, stride, n_u, column, first_slice;
	unsigned *arrived; /* for each group of slices: count of blocks that have reached the end of a pass, over all passes */
};

/* Number of entries that a lane holds in registers. All their pixels are read before any is written. */
#define LOADED 16

struct loaded_entries {
	int column[LOADED];
	float weight[LOADED], x[LOADED];
};

/* Load entries from index k0 on. Those beyond the end of the line get weight 0 and the column of the first entry. */
static __device__ __forceinline__ void load_entries(const struct sweep_job &job, const struct line &line, int k0, int lane,
						    struct loaded_entries *h)
{
#pragma unroll
	for (int i = 0; i < LOADED; i++) {
		int k = k0 + 32 * i + lane;
		struct line_entry e = job.entry[line.at + (k < line.n ? k : 0)];

		h->column[i] = e.column;
		h->weight[i] = k < line.n ? e.weight : 0;
	}
}

static __device__ __forceinline__ float loaded_sum(const struct sweep_job &job, struct loaded_entries *h)
{
	float sum = 0;

#pragma unroll
	for (int i = 0; i < LOADED; i++)
		h->x[i] = __ldcg(job.x + (size_t)h->column[i] * job.column);
#pragma unroll
	for (int i = 0; i < LOADED; i++)
		sum = fmaf(h->weight[i], h->x[i], sum);
	return sum;
}

static __device__ __forceinline__ void loaded_add(const struct sweep_job &job, float step, const struct loaded_entries *h)
{
#pragma unroll
	for (int i = 0; i < LOADED; i++)
		if (h->weight[i] != 0)
			__stcg(job.x + (size_t)h->column[i] * job.column, fmaf(step, h->weight[i], h->x[i]));
}

static __device__ __forceinline__ float step_of(const struct sweep_job &job, const struct line &line, float y, float sum)
{
	return line.norm > 0 && !isnan(y) ? job.relaxation * (y - sum) / line.norm : 0;
}

/* Process one ray of a single slice. `first`: its first entries, already loaded. */
static __device__ __forceinline__ void sweep_ray(const struct sweep_job &job, const struct line &line, float y, int lane,
						 struct loaded_entries *first)
{
	const int batch = 32 * LOADED;
	struct loaded_entries more;
	float sum, step;

	if (line.n == 0)
		return;
	sum = loaded_sum(job, first);
	for (int k = batch; k < line.n; k += batch) {
		load_entries(job, line, k, lane, &more);
		sum += loaded_sum(job, &more);
	}
	step = step_of(job, line, y, warp_sum(sum));
	loaded_add(job, step, first);
	for (int k = batch; k < line.n; k += batch) {
		load_entries(job, line, k, lane, &more);
		loaded_sum(job, &more);
		loaded_add(job, step, &more);
	}
}

/* Return the first line of a warp, or of a block, in a pass. */
static __device__ __forceinline__ struct line line_of_pass(const struct sweep_job &job, int pass, int ray)
{
	const int v = pass % job.stride + ray * job.stride;
	struct line none = {};

	return pass < job.n_views * job.stride && v < job.n_v ? job.line[(size_t)(pass / job.stride) * job.n_v + v] : none;
}

/* Compute a sweep of a single slice. Lines do not depend on the results of passes. So, to hide the latency, a warp loads the
 * first entries of its line of the next pass before the barrier, and the struct line itself one pass earlier. */
static __global__ void __launch_bounds__(32 * SWEEP_WARPS) sweep_kernel(const struct sweep_job job)
{
	const int in_block = blockDim.x / 32, warps = gridDim.x * in_block, lane = threadIdx.x % 32;
	const int warp = (int)blockIdx.x * in_block + threadIdx.x / 32, passes = job.n_views * job.stride;
	struct line line = line_of_pass(job, 0, warp), next = line_of_pass(job, 1, warp);
	struct loaded_entries held = {};
	float y = 0;

	if (line.n) {
		load_entries(job, line, 0, lane, &held);
		y = job.y[warp * job.stride];
	}
	for (int pass = 0; pass < passes; pass++) {
		const int view = pass / job.stride, first = pass % job.stride + warp * job.stride;
		const size_t then = (size_t)((pass + 1) / job.stride) * job.n_v + (pass + 1) % job.stride + warp * job.stride;

		sweep_ray(job, line, y, lane, &held);
		for (int v = first + warps * job.stride; v < job.n_v; v += warps * job.stride) {
			const size_t at = (size_t)view * job.n_v + v;

			line = job.line[at];
			if (line.n)
				load_entries(job, line, 0, lane, &held);
			sweep_ray(job, line, job.y[at], lane, &held);
		}
		line = next;
		next = line_of_pass(job, pass + 2, warp);
		if (line.n) {
			load_entries(job, line, 0, lane, &held);
			y = job.y[then];
		}
		cuda_blocks_arrive(job.arrived);
		cuda_blocks_wait(job.arrived, (unsigned)(pass + 1) * gridDim.x);
	}
}

/* A part of a line's entries, of one warp; the first KEPT of them are in shared memory, padded with weight 0. */
struct team_part {
	const struct line_entry *entry;
	int n;
};

template <int KEPT>
static __device__ __forceinline__ struct team_part load_part(const struct sweep_job &job, const struct line &line, int warp,
							     int lane, struct line_entry *kept)
{
	const int share = (line.n + TEAM_WARPS - 1) / TEAM_WARPS, from = warp * share;
	const struct team_part part = {job.entry + line.at + from, max(0, min(share, line.n - from))};

	for (int k = lane; k < KEPT; k += 32)
		kept[k] = k < part.n ? part.entry[k] : line_entry{0, 0};
	__syncwarp();
	return part;
}

/* Process one ray of 32 slices with the warps of a block: each has a part of its entries, each lane a slice. x: the image of a
 * lane's slice. */
template <int KEPT>
static __device__ __forceinline__ void sweep_ray_of_stack(const struct sweep_job &job, const struct line &line, float y, float *x,
							  const struct team_part &part, const struct line_entry *kept,
							  float (*sums)[32])
{
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
	float held[KEPT], sum = 0, step;

	if (line.n == 0)
		return;
#pragma unroll
	for (int b = 0; b < KEPT; b += LOADED)
		if (b < part.n) {
#pragma unroll
			for (int k = b; k < b + LOADED; k++)
				held[k] = __ldcg(x + (size_t)kept[k].column * job.column);
		}
#pragma unroll
	for (int b = 0; b < KEPT; b += LOADED)
		if (b < part.n) {
#pragma unroll
			for (int k = b; k < b + LOADED; k++)
				sum = fmaf(kept[k].weight, held[k], sum);
		}
#pragma unroll 8
	for (int k = KEPT; k < part.n; k++)
		sum = fmaf(part.entry[k].weight, __ldcg(x + (size_t)part.entry[k].column * job.column), sum);
	sums[warp][lane] = sum;
	__syncthreads();
	sum = 0;
#pragma unroll
	for (int w = 0; w < TEAM_WARPS; w++)
		sum += sums[w][lane];
	step = step_of(job, line, y, sum);
#pragma unroll
	for (int k = 0; k < KEPT; k++)
		if (kept[k].weight != 0)
			__stcg(x + (size_t)kept[k].column * job.column, fmaf(step, kept[k].weight, held[k]));
#pragma unroll 4
	for (int k = KEPT; k < part.n; k++) {
		float *at = x + (size_t)part.entry[k].column * job.column, value = fmaf(step, part.entry[k].weight, __ldcg(at));

		if (job.first_slice + (int)blockIdx.y * 32 + lane < job.n_u) /* the others have the last slice, too */
			__stcg(at, value);
	}
}

/* Compute a sweep of groups of 32 slices. A block processes a ray of a group at a time. What it needs for the next pass, but the
 * pixels, is loaded between its arrival at the barrier and the end of the pass. */
template <int KEPT>
static __global__ void __launch_bounds__(32 * TEAM_WARPS, KEPT > 48 ? 2 : 3) stack_sweep_kernel(const struct sweep_job job)
{
	__shared__ struct line_entry kept[TEAM_WARPS][KEPT];
	__shared__ float sums[TEAM_WARPS][32];
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, team = blockIdx.x, passes = job.n_views * job.stride;
	const int u = min(job.first_slice + (int)blockIdx.y * 32 + lane, job.n_u - 1);
	float *x = job.x + u;
	struct line line = line_of_pass(job, 0, team), next = line_of_pass(job, 1, team);
	struct team_part part = load_part<KEPT>(job, line, warp, lane, kept[warp]);
	float y = line.n ? job.y[(size_t)team * job.stride * job.n_u + u] : 0;

	for (int pass = 0; pass < passes; pass++) {
		const int view = pass / job.stride, first = pass % job.stride + team * job.stride;
		const size_t then = (size_t)((pass + 1) / job.stride) * job.n_v + (pass + 1) % job.stride + team * job.stride;

		sweep_ray_of_stack<KEPT>(job, line, y, x, part, kept[warp], sums);
		for (int v = first + (int)gridDim.x * job.stride; v < job.n_v; v += (int)gridDim.x * job.stride) {
			const size_t at = (size_t)view * job.n_v + v;

			__syncthreads();
			line = job.line[at];
			part = load_part<KEPT>(job, line, warp, lane, kept[warp]);
			sweep_ray_of_stack<KEPT>(job, line, job.y[at * job.n_u + u], x, part, kept[warp], sums);
		}
		cuda_blocks_arrive(job.arrived + blockIdx.y);
		line = next;
		next = line_of_pass(job, pass + 2, team);
		part = load_part<KEPT>(job, line, warp, lane, kept[warp]);
		y = line.n ? job.y[then * job.n_u + u] : 0;
		cuda_blocks_wait(job.arrived + blockIdx.y, (unsigned)(pass + 1) * gridDim.x);
	}
}

static int start_sweep(struct projection *a, const void *kernel, dim3 blocks, int warps, struct sweep_job job, struct err *err)
{
	cudaStream_t stream = cuda_state(a->dev)->stream;
	void *arguments[] = {&job};
	int r = cuda_check(cudaMemsetAsync(job.arrived, 0, SWEEP_GROUPS * sizeof(*job.arrived), stream), a->dev, "sweep", err);

	return r < 0 ? r
		     : cuda_check(cudaLaunchCooperativeKernel(kernel, blocks, dim3(32u * (unsigned)warps), arguments, 0, stream),
				  a->dev, "sweep", err);
}

/* Launch the sweep: as many blocks as the rays of a pass need, but not more than can be resident at the same time. Of a stack, as
 * many groups of 32 slices at a time as the level-2 cache holds, at least one. */
static int launch_sweep(struct projection *a, struct sweep_job job, struct err *err)
{
	const int rays = (job.n_v + job.stride - 1) / job.stride, groups = (job.n_u + 31) / 32;
	const bool wide = a->grid.n[0] > 48 * TEAM_WARPS || a->grid.n[1] > 48 * TEAM_WARPS; /* entries of a usual ray */
	const void *kernel = !wide ? (const void *)stack_sweep_kernel<48> : (const void *)stack_sweep_kernel<96>;
	const size_t group_bytes = (size_t)a->grid.n[0] * (size_t)a->grid.n[1] * 32 * sizeof(float);
	int processors = 0, cache = 0, resident = 1, most, together, r;

	r = cuda_check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, a->dev->index), a->dev, "sweep", err);
	if (r == 0 && job.n_u == 1) {
		const int blocks = processors < rays ? processors : rays, warps = (rays + blocks - 1) / blocks;

		return start_sweep(a, (const void *)sweep_kernel, dim3((unsigned)blocks),
				   warps < SWEEP_WARPS ? warps : SWEEP_WARPS, job, err);
	}
	if (r == 0)
		r = cuda_check(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, a->dev->index), a->dev, "sweep", err);
	if (r == 0)
		r = cuda_check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, 32 * TEAM_WARPS, 0), a->dev,
			       "sweep", err);
	most = resident * processors < SWEEP_GROUPS ? resident * processors : SWEEP_GROUPS; /* each needs a block */
	together = (int)((size_t)cache / group_bytes);
	together = together < 1 ? 1 : together < most ? together : most;
	for (int first = 0; r == 0 && first < groups; first += together) {
		const int now = groups - first < together ? groups - first : together, share = resident * processors / now;

		job.first_slice = 32 * first;
		r = start_sweep(a, kernel, dim3((unsigned)(share < rays ? share : rays), (unsigned)now), TEAM_WARPS, job, err);
	}
	return r;
}

int cuda_row_sweep(struct projection *a, float relaxation, const struct buf *y, struct buf *x, struct err *err)
{
	struct sweep_job job = {};
	int r;

	if (!a->lines)
		return err_set(err, ENOTSUP, "%s: row_sweep: the scan is not a stack of parallel beams", a->dev->name);
	if (y->n != (size_t)a->n_views * scan_view_size(&a->scan) || x->n != grid_size(&a->grid))
		return err_set(
			err, EINVAL,
			"%s: row_sweep: the vectors have %zu and %zu floats, but the scan has %zu bins and the grid %zu voxels",
			a->dev->name, y->n, x->n, (size_t)a->n_views * scan_view_size(&a->scan), grid_size(&a->grid));
	if (!(relaxation > 0 && relaxation < 2))
		return err_set(err, EINVAL, "%s: row_sweep: relaxation %g; allowed: between 0 and 2", a->dev->name,
			       (double)relaxation);
	if ((r = cuda_check(cudaSetDevice(a->dev->index), a->dev, "row_sweep", err)) < 0)
		return r;
	if (a->lines->rows)
		return cuda_line_rows_sweep(a, a->lines->rows, relaxation, y->mem, x->mem, err);
	job.entry = a->lines->entry;
	job.x = x->mem;
	job.relaxation = relaxation;
	job.arrived = a->lines->arrived;
	job.n_v = a->scan.n_v;
	job.stride = a->lines->stride;
	job.n_u = a->scan.n_u;
	job.column = (int)lines_column(&a->grid);
	for (int first = 0, n; r == 0 && first < a->n_views; first += n) {
		const size_t lines_before = (size_t)first * (size_t)a->scan.n_v;

		r = make_batch(a, first, &n, err);
		job.line = a->lines->line + lines_before;
		job.y = y->mem + lines_before * (size_t)a->scan.n_u;
		job.n_views = n;
		if (r == 0)
			r = launch_sweep(a, job, err);
	}
	return r;
}
