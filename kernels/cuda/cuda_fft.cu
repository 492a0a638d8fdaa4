/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_fft.cu - convolve rows by Fourier transforms on the CUDA device. Rows are padded with zeros to N = 2^LOG2N >= 2 n - 1. One
 * complex transform filters two rows, as real and imaginary part: the kernel is even, so its transform H is real. H is computed
 * in double from the cosine sum.
 *
 * A block has FFT_VALUES values, or one pair of rows if that is longer, in shared memory. Stockham's transform, radix 4: stage by
 * stage, in order, s = 1, 4, 16, ...: butterfly t reads t + {0, 1, 2, 3} N / 4 and writes 4 (t - q) + q + {0, 1, 2, 3} s, q = t
 * mod s (Van Loan 1992, section 1.7); last, for an odd LOG2N, a stage of radix 2. A stage is read before it is written. The
 * inverse is the conjugate of the transform of the conjugate, divided by N. */
#include <errno.h>

#include "kernels/cuda/cuda.cuh"

#define FFT_LOG2_MIN 8
#define FFT_LOG2_MAX 14
#define FFT_VALUES 4096
#define BUTTERFLIES 4 /* of a thread in a stage */

struct fft_job {
	const float *y;
	float *ret;
	const float2 *turn;    /* exp(-2 pi i k / N), N elements */
	const float *response; /* H / N, N elements */
	size_t n_outer, n_inner, pairs;
	int n;
};

static __global__ void __launch_bounds__(CUDA_THREADS) turn_kernel(int n, double2 *turn, float2 *ret_turn)
{
	const int k = (int)cuda_index();
	double c, s;

	if (k >= n)
		return;
	sincospi(-2.0 * k / n, &s, &c);
	turn[k] = make_double2(c, s);
	ret_turn[k] = make_float2((float)c, (float)s);
}

/* H of an even kernel of n samples: h(0) + 2 sum of h(j) cos(2 pi j m / N). */
static __global__ void __launch_bounds__(CUDA_THREADS)
	response_kernel(const float *kernel, int n, int n_fft, const double2 *turn, float *ret)
{
	const int m = (int)cuda_index();
	double sum = 0;

	if (m >= n_fft)
		return;
	for (int j = 1; j < n; j++)
		sum += kernel[j] * turn[((size_t)j * m) & (size_t)(n_fft - 1)].x;
	ret[m] = (float)((kernel[0] + 2 * sum) / n_fft);
}

static __device__ __forceinline__ float2 complex_product(float2 a, float2 b)
{
	return make_float2(fmaf(a.x, b.x, -a.y * b.y), fmaf(a.x, b.y, a.y * b.x));
}

static __device__ __forceinline__ float2 complex_sum(float2 a, float2 b)
{
	return make_float2(a.x + b.x, a.y + b.y);
}

static __device__ __forceinline__ float2 complex_difference(float2 a, float2 b)
{
	return make_float2(a.x - b.x, a.y - b.y);
}

/* The index of value i of a pair in shared memory: rows of N values, one apart, so that the values i of adjacent pairs are in
 * different banks. */
template <int LOG2N> static __device__ __forceinline__ int at_of(int pair, int i)
{
	return pair * ((1 << LOG2N) + 1) + i;
}

template <int LOG2N, int THREADS> static __device__ void transform_row(float2 *x, const float2 *__restrict__ turn)
{
	constexpr int N = 1 << LOG2N, QUARTER = N / 4;
	constexpr int UNROLL = LOG2N > 12 ? 1 : LOG2N; /* with more threads there are too few registers */

#pragma unroll UNROLL
	for (int log2s = 0; log2s + 2 <= LOG2N; log2s += 2) {
		const int s = 1 << log2s;
		float2 a[BUTTERFLIES][4];

		__syncthreads();
#pragma unroll
		for (int b = 0; b < BUTTERFLIES; b++) {
			const int g = threadIdx.x + b * THREADS, pair = g / QUARTER, t = g % QUARTER;

#pragma unroll
			for (int r = 0; r < 4; r++)
				a[b][r] = x[at_of<LOG2N>(pair, t + r * QUARTER)];
		}
		__syncthreads();
#pragma unroll
		for (int b = 0; b < BUTTERFLIES; b++) {
			const int g = threadIdx.x + b * THREADS, pair = g / QUARTER, t = g % QUARTER, q = t & (s - 1), ps = t - q;
			const float2 even = complex_sum(a[b][0], a[b][2]), odd = complex_difference(a[b][0], a[b][2]),
				     sum = complex_sum(a[b][1], a[b][3]);
			const float2 gap = complex_difference(a[b][1], a[b][3]), turned = make_float2(-gap.y, gap.x); /* i gap */
			const int to = 4 * ps + q;

			x[at_of<LOG2N>(pair, to)] = complex_sum(even, sum);
			x[at_of<LOG2N>(pair, to + s)] = complex_product(__ldg(turn + ps), complex_difference(odd, turned));
			x[at_of<LOG2N>(pair, to + 2 * s)] = complex_product(__ldg(turn + 2 * ps), complex_difference(even, sum));
			x[at_of<LOG2N>(pair, to + 3 * s)] = complex_product(__ldg(turn + 3 * ps), complex_sum(odd, turned));
		}
	}
	if constexpr (LOG2N % 2) {
		__syncthreads();
#pragma unroll
		for (int b = 0; b < 2 * BUTTERFLIES; b++) {
			const int g = threadIdx.x + b * THREADS, pair = g / (N / 2), t = g % (N / 2);
			const float2 low = x[at_of<LOG2N>(pair, t)], high = x[at_of<LOG2N>(pair, t + N / 2)];

			x[at_of<LOG2N>(pair, t)] = complex_sum(low, high);
			x[at_of<LOG2N>(pair, t + N / 2)] = complex_difference(low, high);
		}
	}
	__syncthreads();
}

/* Where the two rows of a pair begin: two slices of a row or, with one slice, two rows. */
struct pair_rows {
	size_t first, second;
	bool any, two;
};

static __device__ struct pair_rows rows_of(const struct fft_job &job, size_t pair)
{
	const size_t per_row = (job.n_inner + 1) / 2, row = (size_t)job.n * job.n_inner;
	struct pair_rows rows;

	rows.any = pair < job.pairs;
	if (job.n_inner > 1) {
		const size_t k = pair % per_row * 2;

		rows.first = pair / per_row * row + k;
		rows.second = rows.first + 1;
		rows.two = rows.any && k + 1 < job.n_inner;
	} else {
		rows.first = 2 * pair * row;
		rows.second = rows.first + row;
		rows.two = rows.any && 2 * pair + 1 < job.n_outer;
	}
	return rows;
}

template <int LOG2N, int THREADS>
static __global__ void __launch_bounds__(THREADS, 1) convolve_kernel(const __grid_constant__ struct fft_job job)
{
	constexpr int N = 1 << LOG2N, PAIRS = BUTTERFLIES * THREADS * 4 / N;
	extern __shared__ float2 x[];
	__shared__ struct pair_rows rows[PAIRS];
	const bool slices = job.n_inner > 1;

	if (threadIdx.x < PAIRS)
		rows[threadIdx.x] = rows_of(job, (size_t)blockIdx.x * PAIRS + threadIdx.x);
	__syncthreads();
	for (int e = threadIdx.x; e < PAIRS * N; e += THREADS) { /* adjacent threads read adjacent values */
		const int pair = slices ? e % PAIRS : e / N, j = slices ? e / PAIRS : e % N;
		float2 value = make_float2(0, 0);

		if (rows[pair].any && j < job.n) {
			value.x = __ldg(job.y + rows[pair].first + (size_t)j * job.n_inner);
			value.y = rows[pair].two ? __ldg(job.y + rows[pair].second + (size_t)j * job.n_inner) : 0;
		}
		x[at_of<LOG2N>(pair, j)] = value;
	}
	transform_row<LOG2N, THREADS>(x, job.turn);
	for (int e = threadIdx.x; e < PAIRS * N; e += THREADS) {
		const int at = at_of<LOG2N>(e / N, e % N);
		const float h = __ldg(job.response + e % N);

		x[at] = make_float2(x[at].x * h, -x[at].y * h);
	}
	transform_row<LOG2N, THREADS>(x, job.turn);
	for (int e = threadIdx.x; e < PAIRS * job.n; e += THREADS) {
		const int pair = slices ? e % PAIRS : e / job.n, i = slices ? e / PAIRS : e % job.n;
		const float2 value = x[at_of<LOG2N>(pair, i)];

		if (rows[pair].any)
			job.ret[rows[pair].first + (size_t)i * job.n_inner] = value.x;
		if (rows[pair].two)
			job.ret[rows[pair].second + (size_t)i * job.n_inner] = -value.y;
	}
}

template <int LOG2N> static int launch_fft(const struct device *dev, const struct fft_job &job, struct err *err)
{
	constexpr int THREADS = (1 << LOG2N) > FFT_VALUES ? (1 << LOG2N) / (4 * BUTTERFLIES) : FFT_VALUES / (4 * BUTTERFLIES);
	constexpr int PAIRS = BUTTERFLIES * THREADS * 4 >> LOG2N;
	const int bytes = PAIRS * ((1 << LOG2N) + 1) * (int)sizeof(float2);
	const size_t blocks = (job.pairs + PAIRS - 1) / PAIRS;
	int r = cuda_check(
		cudaFuncSetAttribute(convolve_kernel<LOG2N, THREADS>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), dev,
		"transforms", err);

	if (r < 0)
		return r;
	convolve_kernel<LOG2N, THREADS><<<(unsigned)blocks, THREADS, (size_t)bytes, cuda_state(dev)->stream>>>(job);
	return cuda_check(cudaGetLastError(), dev, "transforms", err);
}

static int log2_of(int n)
{
	int log2 = FFT_LOG2_MIN;

	while (log2 <= FFT_LOG2_MAX && (1 << log2) < 2 * n - 1)
		log2++;
	return log2;
}

bool cuda_transforms(const struct device *dev, int n)
{
	(void)dev;
	return n >= 1 && n <= 1 << FFT_LOG2_MAX && log2_of(n) <= FFT_LOG2_MAX;
}

static int launch_of(int log2, const struct device *dev, const struct fft_job &job, struct err *err)
{
	switch (log2) {
	case 8:
		return launch_fft<8>(dev, job, err);
	case 9:
		return launch_fft<9>(dev, job, err);
	case 10:
		return launch_fft<10>(dev, job, err);
	case 11:
		return launch_fft<11>(dev, job, err);
	case 12:
		return launch_fft<12>(dev, job, err);
	case 13:
		return launch_fft<13>(dev, job, err);
	default:
		return launch_fft<14>(dev, job, err);
	}
}

int cuda_convolve_fft(const struct buf *y, size_t n_outer, int n, size_t n_inner, const float *kernel, struct buf *ret,
		      struct err *err)
{
	const struct device *dev = y->dev;
	cudaStream_t stream = cuda_state(dev)->stream;
	const int log2 = log2_of(n);
	const size_t n_fft = (size_t)1 << log2;
	struct fft_job job = {};
	char *mem = NULL;
	double2 *turn;
	float2 *narrow;
	float *response, *kernel_there;
	int r;

	r = cuda_check(cudaMallocAsync((void **)&mem,
				       n_fft * (sizeof(double2) + sizeof(float2) + sizeof(float)) + (size_t)n * sizeof(float),
				       stream),
		       dev, "transforms", err);
	if (r < 0)
		return r;
	turn = (double2 *)mem;
	narrow = (float2 *)(turn + n_fft);
	response = (float *)(narrow + n_fft);
	kernel_there = response + n_fft;
	r = cuda_check(cudaMemcpyAsync(kernel_there, kernel, (size_t)n * sizeof(float), cudaMemcpyHostToDevice, stream), dev,
		       "transforms", err);
	if (r == 0) {
		turn_kernel<<<cuda_blocks(n_fft), CUDA_THREADS, 0, stream>>>((int)n_fft, turn, narrow);
		response_kernel<<<cuda_blocks(n_fft), CUDA_THREADS, 0, stream>>>(kernel_there, n, (int)n_fft, turn, response);
		r = cuda_check(cudaGetLastError(), dev, "transforms", err);
	}
	job.y = y->mem;
	job.ret = ret->mem;
	job.turn = narrow;
	job.response = response;
	job.n_outer = n_outer;
	job.n_inner = n_inner;
	job.pairs = n_inner > 1 ? n_outer * ((n_inner + 1) / 2) : (n_outer + 1) / 2;
	job.n = n;
	if (r == 0)
		r = launch_of(log2, dev, job, err);
	cudaFreeAsync(mem, stream);
	return r;
}
