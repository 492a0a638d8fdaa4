/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_scatter.cu - single scatter simulation on the CUDA device. For each batch of points: a thread per leg; with time of flight
 * a thread per sample of a profile; then the sums of the pairs.
 * - Without time of flight a warp computes a pair, its lanes take the points, and their sums are added in a fixed order.
 * - With time of flight a block computes some pairs, with a thread for each of their TOF bins. The weights of some points are
 *   computed once and shared; neighbouring threads read neighbouring samples of a profile.
 * Sums over a batch are float, the sum of the batches is double. */
#include "kernels/cuda/cuda.cuh"

#include <errno.h>

#define WARP 32

struct scatter_job {
	struct scatter_model model;
	const float *activity, *mu, *weight;
	const float (*points)[4];
	const float (*detectors)[6];
	const int (*pairs)[2];
	const float (*angles)[2];
	float *leg, *bins, *ret;
	float2 *profile; /* pair_at(): a sample and the next one */
	double *sum;	 /* [TOF bin][pair] */
	size_t first, n_pairs;
	int n; /* points of this batch */
	int block_pairs /* TOF: pairs of a block */, block_bins /* its TOF bins of a pair */;
};

static __device__ size_t leg_field(const struct scatter_job &job)
{
	return (size_t)job.model.n_detectors * SCATTER_BATCH;
}

static __global__ void __launch_bounds__(CUDA_THREADS) leg_kernel(const __grid_constant__ struct scatter_job job)
{
	const size_t i = cuda_index(), field = leg_field(job);
	const int p = (int)(i % SCATTER_BATCH);

	if (i >= field || p >= job.n)
		return;
	scatter_leg(&job.model, job.activity, job.mu, job.points[job.first + p], job.detectors[i / SCATTER_BATCH], job.leg + i,
		    field, job.bins ? job.bins + i * job.model.n_bins : NULL);
}

/* Return the position in a profile of slot `slot` of a row; -1 is before the first. */
static __device__ int pair_at(const struct scatter_model &m, int phase, int slot)
{
	return phase * (m.n_slots + 1) + slot + 1;
}

static __global__ void __launch_bounds__(CUDA_THREADS) profile_kernel(const __grid_constant__ struct scatter_job job)
{
	const size_t i = cuda_index(), leg = i / job.model.n_samples;
	const int sample = (int)(i % job.model.n_samples);

	if (leg >= leg_field(job) || (int)(leg % SCATTER_BATCH) >= job.n)
		return;
	const float value = scatter_sample(&job.model, job.weight, job.bins + leg * job.model.n_bins, sample);
	const int phases = job.model.phases, phase = sample % phases, slot = sample / phases + 1;
	float2 *profile = job.profile + leg * scatter_profile_pairs(&job.model);

	profile[pair_at(job.model, phase, slot)].x = value;
	profile[phase > 0 ? pair_at(job.model, phase - 1, slot) : pair_at(job.model, phases - 1, slot - 1)].y = value;
}

static __global__ void __launch_bounds__(CUDA_THREADS) pair_kernel(const __grid_constant__ struct scatter_job job)
{
	const size_t pair = cuda_index() / WARP, field = leg_field(job);
	const int lane = threadIdx.x % WARP;
	const float *a, *b;
	float sum = 0;

	if (pair >= job.n_pairs)
		return;
	a = job.leg + (size_t)job.pairs[pair][0] * SCATTER_BATCH;
	b = job.leg + (size_t)job.pairs[pair][1] * SCATTER_BATCH;
	for (int p = lane; p < job.n; p += WARP) {
		float cosine = scatter_cosine(a + p, b + p, field), weight[2];

		if (cosine <= job.model.cosine_least)
			continue;
		scatter_weights(a + p, b + p, field, job.points[job.first + p][3], cosine, job.angles, weight);
		sum += weight[0] * a[LEG_ACTIVITY * field + p] + weight[1] * b[LEG_ACTIVITY * field + p];
	}
	for (int distance = WARP / 2; distance > 0; distance /= 2)
		sum += __shfl_xor_sync(0xffffffffu, sum, distance);
	if (lane == 0)
		job.sum[pair] += sum;
}

/* A point's part in the sum of a pair. */
struct __align__(16) part
{
	float weight[4];     /* of a sample and the next one, on both legs */
	int low[2], slot[2]; /* offset of the profile's row, and its slot of TOF bin 0 */
};

/* Samples before slot 0 and from the last slot on are 0. */
static __device__ float2 profile_at(const struct scatter_model &m, const float2 *profile, int low, int slot)
{
	return __ldg(profile + low + min(max(slot, -1), m.n_slots - 1));
}

static __global__ void __launch_bounds__(CUDA_THREADS) tof_kernel(const __grid_constant__ struct scatter_job job)
{
	__shared__ struct part parts[CUDA_THREADS];
	const struct scatter_model &m = job.model;
	const size_t field = leg_field(job), size = scatter_profile_pairs(&m);
	const int chunk = CUDA_THREADS / job.block_pairs; /* points whose weights are in memory at a time */
	const int mine = threadIdx.x / job.block_bins, k = (int)blockIdx.y * job.block_bins + (int)threadIdx.x % job.block_bins;
	const size_t first_pair = (size_t)blockIdx.x * job.block_pairs, pair = first_pair + mine;
	const bool works = mine < job.block_pairs && pair < job.n_pairs && k < m.tof.n;
	const size_t at_a = works ? (size_t)job.pairs[pair][0] * SCATTER_BATCH : 0;
	const size_t at_b = works ? (size_t)job.pairs[pair][1] * SCATTER_BATCH : 0;
	float sum = 0;

	for (int begin = 0; begin < job.n; begin += chunk) {
		const int of = threadIdx.x / chunk, p = begin + (int)threadIdx.x % chunk;

		__syncthreads();
		if (of < job.block_pairs) {
			struct part part = {};

			if (first_pair + of < job.n_pairs && p < job.n) {
				const int *ends = job.pairs[first_pair + of];
				const float *a = job.leg + (size_t)ends[0] * SCATTER_BATCH + p;
				const float *b = job.leg + (size_t)ends[1] * SCATTER_BATCH + p;
				const float cosine = scatter_cosine(a, b, field);

				if (cosine > m.cosine_least) {
					const float length[2] = {a[LEG_LENGTH * field], b[LEG_LENGTH * field]};
					float weight[2];

					scatter_weights(a, b, field, job.points[job.first + p][3], cosine, job.angles, weight);
					for (int side = 0; side < 2; side++) {
						struct scatter_shift s = scatter_shift(&m, length[side], length[1 - side]);

						part.low[side] = pair_at(m, s.phase, 0);
						part.slot[side] = s.slot;
						part.weight[2 * side] = weight[side] * (1 - s.f);
						part.weight[2 * side + 1] = weight[side] * s.f;
					}
				}
			}
			parts[threadIdx.x] = part;
		}
		__syncthreads();
		if (!works)
			continue;
		for (int i = 0; i < chunk && begin + i < job.n; i++) {
			const struct part part = parts[mine * chunk + i];

			if (part.weight[0] == 0 && part.weight[2] == 0) /* f < 1: then all are */
				continue;
			const float2 on_a = profile_at(m, job.profile + (at_a + begin + i) * size, part.low[0], part.slot[0] + k),
				     on_b = profile_at(m, job.profile + (at_b + begin + i) * size, part.low[1],
						       part.slot[1] + m.tof.n - 1 - k);

			sum += part.weight[0] * on_a.x + part.weight[1] * on_a.y;
			sum += part.weight[2] * on_b.x + part.weight[3] * on_b.y;
		}
	}
	if (works)
		job.sum[(size_t)k * job.n_pairs + pair] += sum;
}

static __global__ void __launch_bounds__(CUDA_THREADS) result_kernel(const __grid_constant__ struct scatter_job job, size_t n)
{
	const size_t i = cuda_index(), pair = i % job.n_pairs;

	if (i < n)
		job.ret[i] = (float)(job.sum[i] *
				     scatter_pair_factor(job.detectors[job.pairs[pair][0]], job.detectors[job.pairs[pair][1]]));
}

#define WHAT "single scatter"
#define TABLES 9

/* Memory of one call; all of it is released when the call ends. */
struct memory {
	struct device *dev;
	cudaStream_t stream;
	void *table[TABLES];
	int n;
};

/* Allocate memory and copy `from` to it; from NULL: fill it with zeros. */
static int table_new(struct memory *memory, size_t bytes, const void *from, void *ret, struct err *err)
{
	void *mem = NULL;
	cudaError_t code = cudaMallocAsync(&mem, bytes, memory->stream);

	if (code == cudaErrorMemoryAllocation) {
		cudaGetLastError(); /* clear the error; it is not a sticky one, so the device remains usable */
		return err_set(err, ENOMEM, "%s: single scatter: cannot allocate %zu bytes", memory->dev->name, bytes);
	}
	if (code != cudaSuccess)
		return cuda_check(code, memory->dev, WHAT, err);
	memory->table[memory->n++] = mem;
	*(void **)ret = mem;
	code = from ? cudaMemcpyAsync(mem, from, bytes, cudaMemcpyHostToDevice, memory->stream)
		    : cudaMemsetAsync(mem, 0, bytes, memory->stream);
	return cuda_check(code, memory->dev, WHAT, err);
}

static int make_tables(struct memory *memory, const struct scatter_spec *spec, struct scatter_job *job, struct err *err)
{
	const struct scatter_model *m = &job->model;
	const size_t legs = (size_t)m->n_detectors * SCATTER_BATCH, tof = m->tof.n > 0 ? (size_t)m->tof.n : 1;
	float weight[2 * SCATTER_REACH_MOST + 2];
	int r = table_new(memory, spec->n_points * sizeof(*spec->points), spec->points, &job->points, err);

	r = r < 0 ? r
		  : table_new(memory, (size_t)spec->n_detectors * sizeof(*spec->detectors), spec->detectors, &job->detectors,
			      err);
	r = r < 0 ? r : table_new(memory, spec->n_pairs * sizeof(*spec->pairs), spec->pairs, &job->pairs, err);
	r = r < 0 ? r : table_new(memory, (SCATTER_ANGLES + 1) * sizeof(*spec->angles), spec->angles, &job->angles, err);
	r = r < 0 ? r : table_new(memory, spec->n_pairs * tof * sizeof(double), NULL, &job->sum, err);
	r = r < 0 ? r : table_new(memory, LEG_FIELDS * legs * sizeof(float), NULL, &job->leg, err);
	if (r < 0 || m->tof.n == 0)
		return r;
	scatter_blur(m, weight);
	r = table_new(memory, (size_t)scatter_taps(m) * sizeof(float), weight, &job->weight, err);
	r = r < 0 ? r : table_new(memory, legs * (size_t)m->n_bins * sizeof(float), NULL, &job->bins, err);
	r = r < 0 ? r : table_new(memory, legs * scatter_profile_pairs(m) * sizeof(*job->profile), NULL, &job->profile, err);
	return r < 0 ? r : cuda_check(cudaStreamSynchronize(memory->stream), memory->dev, WHAT, err); /* for `weight` */
}

static int check_launch(const struct memory *memory, struct err *err)
{
	return cuda_check(cudaGetLastError(), memory->dev, WHAT, err);
}

static int run_batch(const struct memory *memory, struct scatter_job *job, struct err *err)
{
	const struct scatter_model *m = &job->model;
	const size_t legs = (size_t)m->n_detectors * SCATTER_BATCH;
	const bool tof = m->tof.n > 0;
	int r = 0;

	if (tof)
		r = cuda_check(cudaMemsetAsync(job->bins, 0, legs * (size_t)m->n_bins * sizeof(float), memory->stream),
			       memory->dev, WHAT, err);
	if (r == 0) {
		leg_kernel<<<cuda_blocks(legs), CUDA_THREADS, 0, memory->stream>>>(*job);
		r = check_launch(memory, err);
	}
	if (r < 0)
		return r;
	if (!tof) {
		pair_kernel<<<cuda_blocks(job->n_pairs * WARP), CUDA_THREADS, 0, memory->stream>>>(*job);
		return check_launch(memory, err);
	}
	profile_kernel<<<cuda_blocks(legs * (size_t)m->n_samples), CUDA_THREADS, 0, memory->stream>>>(*job);
	r = check_launch(memory, err);
	if (r == 0) {
		dim3 blocks((unsigned)((job->n_pairs + job->block_pairs - 1) / job->block_pairs),
			    (unsigned)((m->tof.n + job->block_bins - 1) / job->block_bins));

		tof_kernel<<<blocks, CUDA_THREADS, 0, memory->stream>>>(*job);
		r = check_launch(memory, err);
	}
	return r;
}

int cuda_scatter_pairs(const struct scatter_spec *spec, const struct buf *activity, const struct buf *mu, struct buf *ret,
		       struct err *err)
{
	struct memory memory = {activity->dev, cuda_state(activity->dev)->stream, {}, 0};
	struct scatter_job job = {};
	int r = device_check_scatter(spec, activity, mu, ret, &job.model, err);

	r = r < 0 ? r : cuda_check(cudaSetDevice(activity->dev->index), activity->dev, WHAT, err);
	if (r < 0)
		return r;
	job.activity = activity->mem;
	job.mu = mu->mem;
	job.ret = ret->mem;
	job.n_pairs = spec->n_pairs;
	job.block_bins = job.model.tof.n < 1 ? 1 : job.model.tof.n < CUDA_THREADS ? job.model.tof.n : CUDA_THREADS;
	job.block_pairs = CUDA_THREADS / job.block_bins;
	r = make_tables(&memory, spec, &job, err);
	for (; r == 0 && job.first < spec->n_points; job.first += SCATTER_BATCH) {
		if (spec->stop && spec->stop(spec->ctx, (double)job.first / (double)spec->n_points)) {
			r = err_set(err, ECANCELED, "cancelled while scatter was simulated");
			break;
		}
		job.n = spec->n_points - job.first < SCATTER_BATCH ? (int)(spec->n_points - job.first) : SCATTER_BATCH;
		r = run_batch(&memory, &job, err);
	}
	if (r == 0) {
		result_kernel<<<cuda_blocks(ret->n), CUDA_THREADS, 0, memory.stream>>>(job, ret->n);
		r = check_launch(&memory, err);
	}
	for (int i = 0; i < memory.n; i++)
		cudaFreeAsync(memory.table[i], memory.stream);
	if (r == 0) /* the caller may free what `spec` points to */
		r = cuda_check(cudaStreamSynchronize(memory.stream), memory.dev, WHAT, err);
	return r;
}
