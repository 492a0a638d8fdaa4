/* Private to the CUDA device: its state, its projections, and the functions of its files.
 *
 * - Everything runs on one stream per device; calls return when their work is queued, and those that give a number or host data
 * wait.
 * - Every launch is followed by a look at the last error; the sentence names the kernel. 64-bit indices throughout.
 * - Positions are computed in double: at column 3584 a float has only 2e-4 of a voxel left. Values and sums of few taps are
 * float.
 */
#ifndef TOMONODE_KERNELS_CUDA_CUH
#define TOMONODE_KERNELS_CUDA_CUH

#include <cuda_runtime.h>

#include "kernels/device.h"
#include "kernels/ray_walk.h"
#include "kernels/slice_map.h"

#define CUDA_THREADS 256
#define CUDA_PARTIALS 1024 /* blocks of a reduction; their sums are added on the host in a fixed order */

struct cuda_state {
	cudaStream_t stream;
	double *partial;      /* device: CUDA_PARTIALS */
	double *host_partial; /* pinned: CUDA_PARTIALS */
	void *scratch;	      /* device memory that all projections share; grows when one is created */
	size_t scratch_bytes;
};

struct projection {
	struct device *dev;
	enum projection_model model;
	struct scan scan; /* the host's; scan.views is not used on the device */
	struct grid grid;
	int n_views;
	const float *mask; /* device; NULL: every bin counts */
	bool deterministic;
	struct scan_view *views; /* device: n_views */
	struct slice_map *maps;	 /* device: n_views * n_z; SLICES only */
};

static inline struct cuda_state *cuda_state(const struct device *dev)
{
	return (struct cuda_state *)dev->state;
}

/* 0, or the error with `what` in its sentence. ENOMEM for lack of memory, EIO else. */
int cuda_check(cudaError_t code, const struct device *dev, const char *what, struct err *err);

/* Blocks of CUDA_THREADS for n items, at most the hardware's limit; kernels stride over the rest. */
static inline unsigned cuda_blocks(size_t n)
{
	size_t blocks = (n + CUDA_THREADS - 1) / CUDA_THREADS;

	return (unsigned)(blocks < 1 ? 1 : blocks > 0x7fffffff ? 0x7fffffff : blocks);
}

static inline __device__ size_t cuda_index(void)
{
	return (size_t)blockIdx.x * blockDim.x + threadIdx.x;
}

/* cuda_vector.cu */
int cuda_fill(struct buf *x, float value, struct err *err);
int cuda_copy(const struct buf *x, struct buf *ret, struct err *err);
int cuda_multiply(const struct buf *x, const struct buf *y, struct buf *ret, struct err *err);
int cuda_axpy(float a, const struct buf *x, struct buf *y, struct err *err);
int cuda_ratio(const struct buf *y, const struct buf *p, float floor, struct buf *ret, struct err *err);
int cuda_update(struct buf *x, const struct buf *c, const struct buf *sens, float floor, struct err *err);
int cuda_sum(const struct buf *x, double *ret, struct err *err);
int cuda_dot(const struct buf *x, const struct buf *y, double *ret, struct err *err);
int cuda_log_likelihood(const struct buf *y, const struct buf *p, float floor, double *ret, struct err *err);

/* cuda_projection.cu */
size_t cuda_projection_bytes(struct device *dev, const struct projection_spec *spec);
size_t cuda_scratch_bytes(struct device *dev, const struct projection_spec *spec);
int cuda_projection_create(struct device *dev, const struct projection_spec *spec, struct projection **ret, struct err *err);
void cuda_projection_free(struct projection *a);
int cuda_forward(struct projection *a, const struct buf *x, struct buf *ret_y, struct err *err);
int cuda_adjoint(struct projection *a, const struct buf *y, struct buf *ret_x, struct err *err);
bool cuda_fused(const struct projection *a);
int cuda_forward_ratio(struct projection *a, const struct buf *x, const struct buf *y, float floor, struct buf *ret_p,
		       struct err *err);
int cuda_back_update(struct projection *a, const struct buf *p, float floor, struct buf *x, struct err *err);

/* cuda_exact.cu: the ray walk. fixed: room for grid_size() 64-bit sums and one float, for the bitwise repeatable scatter; NULL:
 * atomics. */
int cuda_exact_forward(struct projection *a, const float *x, float *y, struct err *err);
int cuda_exact_adjoint(struct projection *a, const float *y, float *x, void *fixed, struct err *err);

/* cuda_slices.cu. weighted: room for float2 per bin of the projection. y NULL: no ratio; update: x is changed in place. */
int cuda_slices_forward(struct projection *a, const float *x, const float *y, float floor, float *out, struct err *err);
int cuda_slices_back(struct projection *a, const float *p, float floor, bool update, float *x, float2 *weighted, struct err *err);

#endif
