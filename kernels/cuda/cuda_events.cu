/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_events.cu - the matrix of list mode (kernels/events.h) on the CUDA device.
 *
 * A thread computes an event; the threads of a warp pass through the same planes at the same time. If the events are sorted, they
 * then read the same lines of memory and their additions meet in the same sectors. The two voxels of a sample that are above each
 * other are added with one instruction if they are in the same quad of floats. The table of TOF weights is in shared memory, each
 * value with the difference to the next one.
 *
 * Bitwise repeatable sums: the ratios are stored, the largest one found, and all terms added in 64-bit fixed-point numbers.
 *
 * Sorting is a counting sort by cells; the order inside a cell is that in which threads happen to come. */
#include "kernels/cuda/cuda.cuh"
#include "kernels/events.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#define LIST_THREADS 256
#define LIST_BLOCKS 4 /* per multiprocessor; each loops over the events */
#define SCAN_THREADS 1024

struct events {
	struct device *dev;
	struct events_model model;
	struct event_cells cells;
	const float *detectors; /* of the caller */
	size_t batch;
	bool deterministic;
	int blocks;
	float2 *table; /* EVENTS_TOF_STEPS + 1 */
	/* events_sort(): */
	int4 *sorted;
	unsigned *cell, *count;
	/* deterministic: */
	float *q, *largest;
	unsigned long long *sums;
};

struct list_job {
	struct events_model model;
	const float *detectors;
	const float2 *table;
	const int4 *events;
	size_t n;
	const float *x;
	float *to;	/* back, ratio: the volume */
	const float *q; /* back */
	float *y;	/* forward: a_e x */
	bool quotient;	/* forward: the ratio instead of a_e x */
	float floor;
	unsigned long long *sums; /* back: in place of `to` */
	const float *largest;
	double bound; /* of sums: no sum exceeds this times *largest */
};

enum list_pass { LIST_FORWARD, LIST_BACK, LIST_RATIO };

/* A line and the floats from one voxel to the next. */
struct list_line {
	struct event_line l;
	int main, u, v, next_u, next_v, n_u, n_v;
	bool ends;
};

static __device__ __forceinline__ struct event load_event(const int4 *from)
{
	int4 bits = __ldg(from);
	struct event e;

	e.detector[0] = bits.x;
	e.detector[1] = bits.y;
	e.tof = bits.z;
	e.add = __int_as_float(bits.w);
	return e;
}

static __device__ __forceinline__ void set_strides(const struct grid &g, struct list_line *line)
{
	const int axis = line->l.axis, column = (int)grid_column(&g), row = g.n[0] * column;

	line->main = axis == 0 ? column : axis == 1 ? row : 1;
	line->u = axis == 0 ? row : column;
	line->v = axis == 2 ? row : 1;
	line->n_u = axis == 0 ? g.n[1] : g.n[0];
	line->n_v = axis == 2 ? g.n[1] : g.n[2];
	line->next_u = line->n_u > 1 ? line->u : 0;
	line->next_v = line->n_v > 1 ? line->v : 0;
	line->ends = axis != 2;
}

/* A sample: index of its first voxel; weights as in struct cpu_event_samples. */
struct list_sample {
	int at;
	float u0, u1, v0, v1;
};

static __device__ __forceinline__ struct list_sample sample_of(const struct events_model &model, const float2 *table,
							       const struct list_line &line, int j, float at)
{
	struct list_sample s;
	float w = line.l.length, t;
	int u, v, i;

	if (model.tof.n > 0) {
		t = (fabsf(fmaf(at, line.l.by, line.l.from)) - model.tof_from) * model.tof_scale;
		t = fminf(fmaxf(t, 0.0f), (float)EVENTS_TOF_STEPS);
		t -= event_whole(t, &i);
		w *= fmaf(t, table[i].y, table[i].x);
	}
	event_pair(fmaf(at, line.l.step[0], line.l.at[0]), line.l.base[0], line.n_u, false, &u, &s.u0, &s.u1);
	event_pair(fmaf(at, line.l.step[1], line.l.at[1]), line.l.base[1], line.n_v, line.ends, &v, &s.v0, &s.v1);
	s.u0 *= w;
	s.u1 *= w;
	s.at = (line.l.first + j) * line.main + u * line.u + v * line.v;
	return s;
}

static __device__ __forceinline__ float value_of(const float *x, const struct list_line &line, const struct list_sample &s)
{
	const float *at = x + s.at, *right = at + line.next_u;

	return fmaf(s.u0, fmaf(s.v0, __ldg(at), s.v1 * __ldg(at + line.next_v)),
		    s.u1 * fmaf(s.v0, __ldg(right), s.v1 * __ldg(right + line.next_v)));
}

/* x[at] += a, x[at + next] += b; `column`: next is 1 or 0, and quads of a column begin at multiples of 4. */
static __device__ __forceinline__ void add_pair(float *x, int at, int next, float a, float b, bool column)
{
#if __CUDA_ARCH__ >= 900
	const int r = at & 3;

	if (column && r < 3) {
		atomicAdd((float4 *)(x + at - r), make_float4(r == 0 ? a : 0,
							      r == 0   ? b
							      : r == 1 ? a
								       : 0,
							      r == 1   ? b
							      : r == 2 ? a
								       : 0,
							      r == 2 ? b : 0));
		return;
	}
#endif
	atomicAdd(x + at, a);
	if (b != 0)
		atomicAdd(x + at + next, b);
}

static __device__ __forceinline__ void add_fixed(unsigned long long *sums, int at, double value)
{
	atomicAdd(sums + at, (unsigned long long)__double2ll_rn(value));
}

template <bool FIXED>
static __device__ __forceinline__ void add_sample(const struct list_job &job, const struct list_line &line,
						  const struct list_sample &s, float q, double scale)
{
	const float a = q * s.u0, b = q * s.u1;

	if (FIXED) {
		add_fixed(job.sums, s.at, (double)(a * s.v0) * scale);
		add_fixed(job.sums, s.at + line.next_v, (double)(a * s.v1) * scale);
		add_fixed(job.sums, s.at + line.next_u, (double)(b * s.v0) * scale);
		add_fixed(job.sums, s.at + line.next_u + line.next_v, (double)(b * s.v1) * scale);
		return;
	}
	if (a != 0)
		add_pair(job.to, s.at, line.next_v, a * s.v0, a * s.v1, line.ends);
	if (b != 0)
		add_pair(job.to, s.at + line.next_u, line.next_v, b * s.v0, b * s.v1, line.ends);
}

template <int PASS, bool FIXED>
static __device__ __forceinline__ void do_event(const struct list_job &job, const float2 *table, size_t i, double scale)
{
	struct event e = {};
	struct list_line line;
	float sum = 0, q, at; /* at: number of the sample */
	int first, end;

	line.l.n = 0;
	if (i < job.n) {
		e = load_event(job.events + i);
		if (!event_line_make(&job.model, &e, job.detectors, &line.l))
			line.l.n = 0;
	}
	if (line.l.n == 0)
		line.l.axis = line.l.first = 0;
	set_strides(job.model.grid, &line);
	first = __reduce_min_sync(0xffffffff, line.l.n ? line.l.first : INT_MAX);
	end = __reduce_max_sync(0xffffffff, line.l.n ? line.l.first + line.l.n : 0);
	if (PASS != LIST_BACK) {
		at = (float)(first - line.l.first);
		for (int j = first - line.l.first; j < end - line.l.first; j++, at += 1)
			if ((unsigned)j < (unsigned)line.l.n)
				sum += value_of(job.x, line, sample_of(job.model, table, line, j, at));
		q = event_ratio(sum + e.add, job.floor);
	}
	if (PASS == LIST_FORWARD) {
		if (i < job.n)
			job.y[i] = job.quotient ? q : sum;
		return;
	}
	if (PASS == LIST_BACK)
		q = i < job.n ? job.q[i] : 0;
	at = (float)(first - line.l.first);
	for (int j = first - line.l.first; j < end - line.l.first; j++, at += 1)
		if ((unsigned)j < (unsigned)line.l.n)
			add_sample<FIXED>(job, line, sample_of(job.model, table, line, j, at), q, scale);
}

template <int PASS, bool FIXED>
static __global__ void __launch_bounds__(LIST_THREADS, LIST_BLOCKS) list_kernel(const __grid_constant__ struct list_job job)
{
	__shared__ float2 table[EVENTS_TOF_STEPS + 1];
	const double scale = FIXED && *job.largest > 0 ? 0x1p62 / ((double)*job.largest * job.bound) : 0;

	if (job.model.tof.n > 0)
		for (int i = threadIdx.x; i <= EVENTS_TOF_STEPS; i += LIST_THREADS)
			table[i] = job.table[i];
	__syncthreads();
	for (size_t at = (size_t)blockIdx.x * LIST_THREADS; at < job.n; at += (size_t)gridDim.x * LIST_THREADS)
		do_event<PASS, FIXED>(job, table, at + threadIdx.x, scale);
}

/* Find the largest |q|: the bits of non-negative floats are in the order of the numbers. */
static __global__ void __launch_bounds__(CUDA_THREADS) list_largest_kernel(const float *q, size_t n, int *largest)
{
	int bits = 0;

	for (size_t i = cuda_index(); i < n; i += (size_t)gridDim.x * blockDim.x)
		bits = max(bits, __float_as_int(fabsf(q[i])));
	atomicMax(largest, bits);
}

static __global__ void __launch_bounds__(CUDA_THREADS)
	list_unfix_kernel(const long long *sums, size_t n, const float *largest, double bound, float *x)
{
	size_t i = cuda_index();

	if (i < n)
		x[i] += (float)((double)sums[i] * ((double)*largest * bound * 0x1p-62));
}

static __global__ void __launch_bounds__(CUDA_THREADS)
	list_cells_kernel(const __grid_constant__ struct list_job job, const __grid_constant__ struct event_cells cells,
			  unsigned *cell, unsigned *count)
{
	size_t i = cuda_index();
	struct event_line line;
	struct event e;

	if (i >= job.n)
		return;
	e = load_event(job.events + i);
	cell[i] = event_line_make(&job.model, &e, job.detectors, &line) ? (unsigned)event_cell(&cells, &line)
									: (unsigned)cells.first[3] - 1;
	atomicAdd(count + cell[i], 1);
}

/* Return the sum over the lanes up to this one. */
static __device__ __forceinline__ unsigned scan_warp(unsigned value)
{
	for (int step = 1; step < 32; step *= 2) {
		unsigned other = __shfl_up_sync(0xffffffff, value, step);

		value += (threadIdx.x & 31) >= (unsigned)step ? other : 0;
	}
	return value;
}

/* Replace counts by the sums of those before them; one block. */
static __global__ void __launch_bounds__(SCAN_THREADS) list_scan_kernel(unsigned *count, int n)
{
	__shared__ unsigned warp_sum[32], carry;

	if (threadIdx.x == 0)
		carry = 0;
	for (int at = 0; at < n; at += SCAN_THREADS) {
		const int i = at + (int)threadIdx.x;
		unsigned here = i < n ? count[i] : 0, sum = scan_warp(here);

		if ((threadIdx.x & 31) == 31)
			warp_sum[threadIdx.x / 32] = sum;
		__syncthreads();
		if (threadIdx.x < 32)
			warp_sum[threadIdx.x] = scan_warp(warp_sum[threadIdx.x]);
		__syncthreads();
		sum += carry + (threadIdx.x >= 32 ? warp_sum[threadIdx.x / 32 - 1] : 0);
		if (i < n)
			count[i] = sum - here;
		__syncthreads();
		if (threadIdx.x == SCAN_THREADS - 1)
			carry = sum;
		__syncthreads();
	}
}

static __global__ void __launch_bounds__(CUDA_THREADS)
	list_move_kernel(const int4 *events, size_t n, const unsigned *cell, unsigned *count, int4 *sorted)
{
	size_t i = cuda_index();

	if (i < n)
		sorted[atomicAdd(count + cell[i], 1)] = events[i];
}

static size_t cells_of(const struct events_spec *spec)
{
	struct event_cells cells;

	event_cells_make(spec->grid, &cells);
	return (size_t)cells.first[3] + 1;
}

size_t cuda_list_bytes(struct device *dev, const struct events_spec *spec)
{
	size_t fixed = spec->batch * sizeof(float) + sizeof(float) + grid_size(spec->grid) * sizeof(long long);

	(void)dev;
	return (EVENTS_TOF_STEPS + 1) * sizeof(float2) + spec->batch * (sizeof(int4) + sizeof(unsigned)) +
	       cells_of(spec) * sizeof(unsigned) + (spec->deterministic ? fixed : 0);
}

static int allocate(struct events *a, size_t bytes, void **ret, struct err *err)
{
	return cuda_check(cudaMalloc(ret, bytes), a->dev, "list mode", err);
}

static int make_table(struct events *a, const struct events_spec *spec, struct err *err)
{
	static const size_t bytes = (EVENTS_TOF_STEPS + 1) * sizeof(float2);
	float weight[EVENTS_TOF_TABLE];
	float2 table[EVENTS_TOF_STEPS + 1];
	int r = allocate(a, bytes, (void **)&a->table, err);

	events_model_make(spec->grid, spec->fov_radius, &spec->tof, (int)(spec->detectors->n / 3), &a->model, weight);
	for (int i = 0; i <= EVENTS_TOF_STEPS; i++)
		table[i] = make_float2(weight[i], weight[i + 1] - weight[i]);
	return r < 0 ? r : cuda_check(cudaMemcpy(a->table, table, bytes, cudaMemcpyHostToDevice), a->dev, "list mode", err);
}

static int check_spec(const struct device *dev, const struct events_spec *spec, struct err *err)
{
	if (!spec->grid->z_fastest || grid_size(spec->grid) > INT_MAX)
		return err_set(err, EINVAL, "%s: list mode needs a volume with z fastest, of less than 2^31 floats", dev->name);
	if (!(spec->fov_radius > 0))
		return err_set(err, EINVAL, "%s: list mode with a field of view of %g mm", dev->name, spec->fov_radius);
	if (spec->detectors->n % 3 != 0 || spec->detectors->n / 3 > INT_MAX)
		return err_set(err, EINVAL, "%s: list mode with %zu coordinates of detectors", dev->name, spec->detectors->n);
	if (spec->batch == 0 || spec->batch > INT_MAX)
		return err_set(err, EINVAL, "%s: list mode with batches of %zu events; allowed: 1 to 2^31 - 1", dev->name,
			       spec->batch);
	return cuda_check(cudaSetDevice(dev->index), dev, "cudaSetDevice", err);
}

int cuda_list_create(struct device *dev, const struct events_spec *spec, struct events **ret, struct err *err)
{
	struct events *a;
	int processors = 1, r = check_spec(dev, spec, err);

	if (r < 0)
		return r;
	a = (struct events *)calloc(1, sizeof(*a));
	if (!a)
		return err_set(err, ENOMEM, "%s: list mode: out of memory", dev->name);
	a->dev = dev;
	a->detectors = spec->detectors->mem;
	a->batch = spec->batch;
	a->deterministic = spec->deterministic;
	event_cells_make(spec->grid, &a->cells);
	r = make_table(a, spec, err);
	if (r == 0)
		r = cuda_check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, dev->index), dev, "list mode",
			       err);
	a->blocks = processors * LIST_BLOCKS;
	if (r == 0)
		r = allocate(a, spec->batch * sizeof(int4), (void **)&a->sorted, err);
	if (r == 0)
		r = allocate(a, spec->batch * sizeof(unsigned), (void **)&a->cell, err);
	if (r == 0)
		r = allocate(a, cells_of(spec) * sizeof(unsigned), (void **)&a->count, err);
	if (r == 0 && spec->deterministic)
		r = allocate(a, spec->batch * sizeof(float), (void **)&a->q, err);
	if (r == 0 && spec->deterministic)
		r = allocate(a, sizeof(float), (void **)&a->largest, err);
	if (r == 0 && spec->deterministic)
		r = allocate(a, grid_size(spec->grid) * sizeof(long long), (void **)&a->sums, err);
	if (r < 0)
		cuda_list_free(a);
	else
		*ret = a;
	return r;
}

void cuda_list_free(struct events *a)
{
	if (!a)
		return;
	cudaSetDevice(a->dev->index);
	cudaFree(a->table);
	cudaFree(a->sorted);
	cudaFree(a->cell);
	cudaFree(a->count);
	cudaFree(a->q);
	cudaFree(a->largest);
	cudaFree(a->sums);
	free(a);
}

static struct list_job job_of(const struct events *a, const struct buf *events)
{
	struct list_job job = {};

	job.model = a->model;
	job.detectors = a->detectors;
	job.table = a->table;
	job.events = (const int4 *)events->mem;
	job.n = events->n / EVENT_FLOATS;
	return job;
}

int cuda_list_sort(struct events *a, struct buf *events, struct err *err)
{
	struct list_job job = job_of(a, events);
	cudaStream_t stream = cuda_state(a->dev)->stream;
	int n_cells = a->cells.first[3] + 1, r;

	if (events->n % EVENT_FLOATS != 0 || job.n > a->batch)
		return err_set(err, EINVAL, "list mode: sort %zu floats of events; allowed: %zu events", events->n, a->batch);
	if (job.n == 0)
		return 0;
	r = cuda_check(cudaMemsetAsync(a->count, 0, (size_t)n_cells * sizeof(*a->count), stream), a->dev, "list mode sort", err);
	if (r < 0)
		return r;
	list_cells_kernel<<<cuda_blocks(job.n), CUDA_THREADS, 0, stream>>>(job, a->cells, a->cell, a->count);
	list_scan_kernel<<<1, SCAN_THREADS, 0, stream>>>(a->count, n_cells);
	list_move_kernel<<<cuda_blocks(job.n), CUDA_THREADS, 0, stream>>>(job.events, job.n, a->cell, a->count, a->sorted);
	r = cuda_check(cudaGetLastError(), a->dev, "list mode sort", err);
	return r < 0 ? r
		     : cuda_check(cudaMemcpyAsync(events->mem, a->sorted, job.n * sizeof(int4), cudaMemcpyDeviceToDevice, stream),
				  a->dev, "list mode sort", err);
}

static int check_sizes(const struct events *a, const struct buf *events, const struct buf *y, const struct buf *x,
		       struct err *err)
{
	if (events->n % EVENT_FLOATS != 0 || (y && y->n != events->n / EVENT_FLOATS))
		return err_set(err, EINVAL, "list mode: %zu values for events of %zu floats", y ? y->n : 0, events->n);
	if (x->n != grid_size(&a->model.grid))
		return err_set(err, EINVAL, "list mode: the volume has %zu floats, but the grid has %zu voxels", x->n,
			       grid_size(&a->model.grid));
	return cuda_check(cudaSetDevice(a->dev->index), a->dev, "cudaSetDevice", err);
}

template <int PASS, bool FIXED> static int launch(struct events *a, const struct list_job &job, struct err *err)
{
	size_t blocks = (job.n + LIST_THREADS - 1) / LIST_THREADS;

	if (job.n == 0)
		return 0;
	list_kernel<PASS, FIXED><<<(unsigned)(blocks < (size_t)a->blocks ? blocks : (size_t)a->blocks), LIST_THREADS, 0,
				   cuda_state(a->dev)->stream>>>(job);
	return cuda_check(cudaGetLastError(), a->dev, "list mode", err);
}

int cuda_list_forward(struct events *a, const struct buf *events, const struct buf *x, struct buf *ret_y, struct err *err)
{
	struct list_job job = job_of(a, events);
	int r = check_sizes(a, events, ret_y, x, err);

	job.x = x->mem;
	job.y = ret_y->mem;
	return r < 0 ? r : launch<LIST_FORWARD, false>(a, job, err);
}

/* x += A'q in fixed-point numbers; at most a->batch events. */
static int back_fixed(struct events *a, struct list_job job, const float *q, struct err *err)
{
	const struct grid *g = &a->model.grid;
	cudaStream_t stream = cuda_state(a->dev)->stream;
	size_t n_x = grid_size(g);
	int r;

	job.q = q;
	job.sums = a->sums;
	job.largest = a->largest;
	/* at most two samples of an event have a weight for one voxel, each of at most the length of a diagonal */
	job.bound = 2 * (double)job.n * sqrt(g->h[0] * g->h[0] + g->h[1] * g->h[1] + g->h[2] * g->h[2]);
	if ((r = cuda_check(cudaMemsetAsync(a->sums, 0, n_x * sizeof(*a->sums), stream), a->dev, "list mode", err)) < 0 ||
	    (r = cuda_check(cudaMemsetAsync(a->largest, 0, sizeof(float), stream), a->dev, "list mode", err)) < 0)
		return r;
	list_largest_kernel<<<CUDA_PARTIALS, CUDA_THREADS, 0, stream>>>(q, job.n, (int *)a->largest);
	r = launch<LIST_BACK, true>(a, job, err);
	if (r < 0)
		return r;
	list_unfix_kernel<<<cuda_blocks(n_x), CUDA_THREADS, 0, stream>>>((const long long *)a->sums, n_x, a->largest, job.bound,
									 job.to);
	return cuda_check(cudaGetLastError(), a->dev, "list mode", err);
}

/* Return the job for the part of the events from `at` on that fits into a batch. */
static struct list_job part_of(const struct events *a, const struct list_job *job, size_t at)
{
	struct list_job part = *job;

	part.events += at;
	part.n = job->n - at < a->batch ? job->n - at : a->batch;
	return part;
}

int cuda_list_back(struct events *a, const struct buf *events, const struct buf *q, struct buf *x, struct err *err)
{
	struct list_job job = job_of(a, events);
	int r = check_sizes(a, events, q, x, err);

	job.q = q->mem;
	job.to = x->mem;
	if (r < 0 || !a->deterministic)
		return r < 0 ? r : launch<LIST_BACK, false>(a, job, err);
	for (size_t at = 0; r == 0 && at < job.n; at += a->batch)
		r = back_fixed(a, part_of(a, &job, at), q->mem + at, err);
	return r;
}

int cuda_list_ratio(struct events *a, const struct buf *events, float floor, const struct buf *x, struct buf *sum,
		    struct err *err)
{
	struct list_job job = job_of(a, events);
	int r = check_sizes(a, events, NULL, x, err);

	if (r == 0)
		r = check_sizes(a, events, NULL, sum, err);
	job.floor = floor;
	job.x = x->mem;
	job.to = sum->mem;
	if (r < 0 || !a->deterministic)
		return r < 0 ? r : launch<LIST_RATIO, false>(a, job, err);
	for (size_t at = 0; r == 0 && at < job.n; at += a->batch) {
		struct list_job part = part_of(a, &job, at);

		part.y = a->q;
		part.quotient = true;
		r = launch<LIST_FORWARD, false>(a, part, err);
		if (r == 0)
			r = back_fixed(a, part, a->q, err);
	}
	return r;
}
