/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_vector.cu - vectors on the CUDA device. Sums are added in double, in the same order in every run. */
#include "kernels/cuda/cuda.cuh"

#include <errno.h>

#include "kernels/shape.h"
#include "kernels/steps.h"

template <class F> static __global__ void each_kernel(size_t n, F f)
{
	for (size_t i = cuda_index(); i < n; i += (size_t)gridDim.x * blockDim.x)
		f(i);
}

template <class F> static int launch_each(const struct buf *b, const char *what, struct err *err, F f)
{
	int r = cuda_check(cudaSetDevice(b->dev->index), b->dev, what, err);

	if (r < 0 || b->n == 0)
		return r;
	each_kernel<<<cuda_blocks(b->n), CUDA_THREADS, 0, cuda_state(b->dev)->stream>>>(b->n, f);
	return cuda_check(cudaGetLastError(), b->dev, what, err);
}

#define MAP_VALUES 4 /* of a thread: so many loads are on the way that memory is busy */

template <class F> static __global__ void __launch_bounds__(CUDA_THREADS) map_kernel(size_t n, float *to, F f)
{
	const size_t first = (size_t)blockIdx.x * MAP_VALUES * CUDA_THREADS + threadIdx.x;
	float value[MAP_VALUES];

#pragma unroll
	for (int k = 0; k < MAP_VALUES; k++)
		if (first + k * CUDA_THREADS < n)
			value[k] = f(first + k * CUDA_THREADS);
#pragma unroll
	for (int k = 0; k < MAP_VALUES; k++)
		if (first + k * CUDA_THREADS < n)
			to[first + k * CUDA_THREADS] = value[k];
}

/* ret[i] = f(i), where f may read element i of ret, but no other one. */
template <class F> static int launch_map(const struct buf *ret, const char *what, struct err *err, F f)
{
	const size_t blocks = (ret->n + MAP_VALUES * CUDA_THREADS - 1) / (MAP_VALUES * CUDA_THREADS);
	int r = cuda_check(cudaSetDevice(ret->dev->index), ret->dev, what, err);

	if (r < 0 || ret->n == 0)
		return r;
	map_kernel<<<(unsigned)blocks, CUDA_THREADS, 0, cuda_state(ret->dev)->stream>>>(ret->n, ret->mem, f);
	return cuda_check(cudaGetLastError(), ret->dev, what, err);
}

template <class F> static __global__ void reduce_kernel(size_t n, double *partial, F f)
{
	__shared__ double sum[CUDA_THREADS];
	double s = 0;

	for (size_t i = cuda_index(); i < n; i += (size_t)gridDim.x * blockDim.x)
		s += f(i);
	sum[threadIdx.x] = s;
	__syncthreads();
	for (unsigned half = CUDA_THREADS / 2; half > 0; half /= 2) {
		if (threadIdx.x < half)
			sum[threadIdx.x] += sum[threadIdx.x + half];
		__syncthreads();
	}
	if (threadIdx.x == 0)
		partial[blockIdx.x] = sum[0];
}

template <class F> static int reduce_vector(const struct buf *b, const char *what, double *ret, struct err *err, F f)
{
	struct cuda_state *state = cuda_state(b->dev);
	double s = 0;
	int r = cuda_check(cudaSetDevice(b->dev->index), b->dev, what, err);

	if (r < 0)
		return r;
	reduce_kernel<<<CUDA_PARTIALS, CUDA_THREADS, 0, state->stream>>>(b->n, state->partial, f);
	if ((r = cuda_check(cudaGetLastError(), b->dev, what, err)) < 0 ||
	    (r = cuda_check(cudaMemcpyAsync(state->host_partial, state->partial, CUDA_PARTIALS * sizeof(double),
					    cudaMemcpyDeviceToHost, state->stream),
			    b->dev, what, err)) < 0 ||
	    (r = cuda_check(cudaStreamSynchronize(state->stream), b->dev, what, err)) < 0)
		return r;
	for (int i = 0; i < CUDA_PARTIALS; i++)
		s += state->host_partial[i];
	*ret = s;
	return 0;
}

int cuda_fill(struct buf *x, float value, struct err *err)
{
	return launch_map(x, "fill", err, [=] __device__(size_t) { return value; });
}

int cuda_copy(const struct buf *x, struct buf *ret, struct err *err)
{
	if (buf_same_size("copy", x, ret, err) < 0)
		return -EINVAL;
	return cuda_check(
		cudaMemcpyAsync(ret->mem, x->mem, x->n * sizeof(float), cudaMemcpyDeviceToDevice, cuda_state(x->dev)->stream),
		x->dev, "copy", err);
}

int cuda_permute(struct device *dev, const struct strides *s, const float *from, float *to, struct err *err)
{
	const struct strides r = strides_simple(s);
	struct buf all = {dev, to, strides_count(&r)};

	return launch_each(&all, "permute", err, [=] __device__(size_t i) {
		int64_t at_from, at_to;

		strides_place(&r, i, &at_from, &at_to);
		to[at_to] = from[at_from];
	});
}

int cuda_multiply(const struct buf *x, const struct buf *y, struct buf *ret, struct err *err)
{
	const float *a = x->mem, *b = y->mem;

	if (buf_same_size("multiply", x, y, err) < 0 || buf_same_size("multiply", x, ret, err) < 0)
		return -EINVAL;
	return launch_map(ret, "multiply", err, [=] __device__(size_t i) { return a[i] * b[i]; });
}

int cuda_axpy(float s, const struct buf *x, struct buf *y, struct err *err)
{
	const float *a = x->mem, *b = y->mem;

	if (buf_same_size("axpy", x, y, err) < 0)
		return -EINVAL;
	return launch_map(y, "axpy", err, [=] __device__(size_t i) { return b[i] + s * a[i]; });
}

int cuda_threshold(struct buf *x, float at, float value, struct err *err)
{
	const float *a = x->mem;

	return launch_map(x, "threshold", err, [=] __device__(size_t i) { return a[i] > at ? value : 0.0f; });
}

int cuda_shape(const struct buf *columns, float away, float least, struct buf *x, struct err *err)
{
	const float *a = columns->mem, *b = x->mem;

	if (buf_same_size("shape", columns, x, err) < 0)
		return -EINVAL;
	return launch_map(x, "shape", err, [=] __device__(size_t i) { return b[i] * shape_weight(a[i], away, least); });
}

int cuda_rule_bins(const struct rule *rule, const struct buf *y, const struct buf *p, const struct buf *row,
		   const struct buf *mult, const struct buf *add, struct buf *ret_q, struct err *err)
{
	const float *data = y->mem, *line = p->mem, *length = row ? row->mem : NULL, *m = mult ? mult->mem : NULL,
		    *b = add ? add->mem : NULL;
	const struct rule r = *rule;

	if (y->n != ret_q->n || p->n != ret_q->n || (row && row->n != ret_q->n) || (mult && mult->n != ret_q->n) ||
	    (add && add->n != ret_q->n) || (rule_needs_length(r.kind) && !row))
		return err_set(err, EINVAL,
			       "%s: rule_bins: vectors do not have the length of %zu bins, or the row lengths are missing",
			       y->dev->name, ret_q->n);
	return launch_map(ret_q, "rule_bins", err, [=] __device__(size_t i) {
		return rule_data_bin(&r, data[i], line[i], length ? length[i] : 0, m ? m[i] : 1, b ? b[i] : 0);
	});
}

int cuda_rule_voxels(const struct rule *rule, const struct buf *num, const struct buf *den, struct buf *x, struct err *err)
{
	const float *p = num->mem, *q = den->mem, *a = x->mem;
	const struct rule r = *rule;

	if (buf_same_size("rule_voxels", num, x, err) < 0 || buf_same_size("rule_voxels", den, x, err) < 0)
		return -EINVAL;
	return launch_map(x, "rule_voxels", err, [=] __device__(size_t i) { return rule_voxel(&r, a[i], p[i], q[i]); });
}

int cuda_sum(const struct buf *x, double *ret, struct err *err)
{
	const float *a = x->mem;

	return reduce_vector(x, "sum", ret, err, [=] __device__(size_t i) { return (double)a[i]; });
}

int cuda_dot(const struct buf *x, const struct buf *y, double *ret, struct err *err)
{
	const float *a = x->mem, *b = y->mem;

	if (buf_same_size("dot", x, y, err) < 0)
		return -EINVAL;
	return reduce_vector(x, "dot", ret, err, [=] __device__(size_t i) { return (double)a[i] * b[i]; });
}

int cuda_log_likelihood(const struct buf *y, const struct buf *p, float floor, double *ret, struct err *err)
{
	const float *a = y->mem, *b = p->mem;

	if (buf_same_size("log_likelihood", y, p, err) < 0)
		return -EINVAL;
	return reduce_vector(y, "log_likelihood", ret, err,
			     [=] __device__(size_t i) { return b[i] > floor ? rule_log_likelihood(a[i], b[i]) : 0.0; });
}

/* The counts are added as double, which is exact below 2^53. */
int cuda_tally(const struct buf *x, float offset, float step, size_t stride, uint64_t bins[65536], struct tally *ret_tally,
	       struct err *err)
{
	struct cuda_state *state = cuda_state(x->dev);
	unsigned long long *counts = (unsigned long long *)state->histogram;
	const float *a = x->mem;
	double below = 0, above = 0, bad = 0;
	struct buf sampled = {x->dev, x->mem, stride ? (x->n + stride - 1) / stride : 0};
	int r;

	if (stride == 0 || !(step > 0) || !isfinite(step) || !isfinite(offset))
		return err_set(err, EINVAL, "tally: stride=%zu, step=%g, offset=%g is not possible", stride, (double)step,
			       (double)offset);
	r = cuda_check(cudaMemsetAsync(counts, 0, CUDA_STEPS * sizeof(*counts), state->stream), x->dev, "tally", err);

	if (r < 0 ||
	    (r = launch_each(&sampled, "tally", err,
			     [=] __device__(size_t i) {
				     float s = steps_of(a[i * stride], offset, step);

				     if (isfinite(s))
					     atomicAdd(counts + (int)steps_limited(s), 1ull);
			     })) < 0 ||
	    (r = reduce_vector(
		     x, "tally", &below, err,
		     [=] __device__(size_t i) { return isfinite(a[i]) && steps_of(a[i], offset, step) < 0 ? 1.0 : 0.0; })) < 0 ||
	    (r = reduce_vector(x, "tally", &above, err,
			       [=] __device__(size_t i) {
				       return isfinite(a[i]) && steps_of(a[i], offset, step) > STEPS_TOP ? 1.0 : 0.0;
			       })) < 0 ||
	    (r = reduce_vector(x, "tally", &bad, err, [=] __device__(size_t i) { return isfinite(a[i]) ? 0.0 : 1.0; })) < 0 ||
	    (r = cuda_check(cudaMemcpyAsync(state->host_histogram, counts, CUDA_STEPS * sizeof(*counts), cudaMemcpyDeviceToHost,
					    state->stream),
			    x->dev, "tally", err)) < 0 ||
	    (r = cuda_check(cudaStreamSynchronize(state->stream), x->dev, "tally", err)) < 0)
		return r;
	for (int i = 0; i < CUDA_STEPS; i++)
		bins[i] += state->host_histogram[i];
	*ret_tally = {(size_t)below, (size_t)above, (size_t)bad};
	return 0;
}

/* One thread converts one value; a block, a part of a stored row. */
static __global__ void store_kernel(const float *x, struct stored_form form, uint16_t *values)
{
	size_t row = blockIdx.y, column = cuda_index();

	if (column < form.columns) {
		size_t from = stored_row_at(&form, row) + (form.turn_columns ? form.columns - 1 - column : column);

		values[row * form.columns + column] = stored_voxel(&form, x[from]);
	}
}

int cuda_store(const struct buf *x, const struct stored_form *form, struct buf *ret_values, struct err *err)
{
	int r = device_check_store(x, form, ret_values, err);

	if (r < 0 || (r = cuda_check(cudaSetDevice(x->dev->index), x->dev, "store", err)) < 0)
		return r;
	store_kernel<<<dim3(cuda_blocks(form->columns), (unsigned)form->rows), CUDA_THREADS, 0, cuda_state(x->dev)->stream>>>(
		(const float *)x->mem, *form, (uint16_t *)ret_values->mem);
	return cuda_check(cudaGetLastError(), x->dev, "store", err);
}
