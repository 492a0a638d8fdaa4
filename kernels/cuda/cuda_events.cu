/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_events.cu - the matrix of list mode (kernels/events.h) on the CUDA device.
 *
 * Sorted events are computed by cuda_events_beams.cu. Here, for repeatable sums and where its windows do not fit: a thread
 * computes an event; the threads of a warp pass through the same planes at the same time. The two voxels of a sample that are
 * above each other are added with one instruction if they are in the same quad of floats. The table of TOF weights is in shared
 * memory, each value with the difference to the next one.
 *
 * Bitwise repeatable sums: the ratios are stored, the largest one found, and all terms added in 64-bit fixed-point numbers.
 *
 * Sorting is a counting sort by cells; the order inside a cell is that in which threads happen to come. */
#include "kernels/cuda/cuda_events.cuh"

#include <errno.h>
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
	int planes;    /* of cuda_beams(); 0: it is not used */
	float2 *table; /* EVENTS_TOF_STEPS + 1 */
	/* events_sort(): */
	int4 *sorted;
	unsigned *cell, *count;
	/* deterministic: */
	float *q, *largest;
	unsigned long long *sums;
};

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

static int allocate_memory(struct events *a, size_t bytes, void **ret, struct err *err)
{
	return cuda_check(cudaMalloc(ret, bytes), a->dev, "list mode", err);
}

static int make_table(struct events *a, const struct events_spec *spec, struct err *err)
{
	static const size_t bytes = (EVENTS_TOF_STEPS + 1) * sizeof(float2);
	float weight[EVENTS_TOF_TABLE];
	float2 table[EVENTS_TOF_STEPS + 1];
	int r = allocate_memory(a, bytes, (void **)&a->table, err);

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
	a->planes = spec->deterministic ? 0 : cuda_beam_planes(dev, &a->model);
	if (r == 0)
		r = allocate_memory(a, spec->batch * sizeof(int4), (void **)&a->sorted, err);
	if (r == 0)
		r = allocate_memory(a, spec->batch * sizeof(unsigned), (void **)&a->cell, err);
	if (r == 0)
		r = allocate_memory(a, cells_of(spec) * sizeof(unsigned), (void **)&a->count, err);
	if (r == 0 && spec->deterministic)
		r = allocate_memory(a, spec->batch * sizeof(float), (void **)&a->q, err);
	if (r == 0 && spec->deterministic)
		r = allocate_memory(a, sizeof(float), (void **)&a->largest, err);
	if (r == 0 && spec->deterministic)
		r = allocate_memory(a, grid_size(spec->grid) * sizeof(long long), (void **)&a->sums, err);
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

template <int PASS, bool FIXED> static int launch_list(struct events *a, const struct list_job &job, struct err *err)
{
	size_t blocks = (job.n + LIST_THREADS - 1) / LIST_THREADS;

	if (job.n == 0)
		return 0;
	if (!FIXED && a->planes > 0)
		return cuda_beams(a->dev, &job, &a->cells, a->planes, PASS, err);
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
	return r < 0 ? r : launch_list<LIST_FORWARD, false>(a, job, err);
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
	r = launch_list<LIST_BACK, true>(a, job, err);
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
		return r < 0 ? r : launch_list<LIST_BACK, false>(a, job, err);
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
		return r < 0 ? r : launch_list<LIST_RATIO, false>(a, job, err);
	for (size_t at = 0; r == 0 && at < job.n; at += a->batch) {
		struct list_job part = part_of(a, &job, at);

		part.y = a->q;
		part.quotient = true;
		r = launch_list<LIST_FORWARD, false>(a, part, err);
		if (r == 0)
			r = back_fixed(a, part, a->q, err);
	}
	return r;
}
