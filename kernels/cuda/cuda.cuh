/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the CUDA device: state, projections, and the functions of its files.
 * - Work runs on one stream per device. Calls return as soon as their work is queued; only calls that return a number or host
 *   data wait until it is complete.
 * - Every launch is followed by a check of the last error; the message names the kernel. All indices have 64 bits.
 * - Positions are computed in double: at column 3584 a float resolves only 2e-4 of a voxel. Values and sums of few taps are
 *   float. */
#ifndef TOMONODE_KERNELS_CUDA_CUH
#define TOMONODE_KERNELS_CUDA_CUH

#include <cuda_runtime.h>

#include "kernels/device.h"
#include "kernels/ray_walk.h"
#include "kernels/slice_map.h"

#define CUDA_THREADS 256
#define CUDA_PARTIALS 1024 /* blocks of a reduction; their sums are added on the host in a fixed order */

#define CUDA_STEPS 65536
#define CUDA_QUEUES 3
#define CUDA_KEPT_MAX 32 /* largest number of host blocks kept for the next host_alloc() */

struct cuda_host_block {
	void *memory;
	size_t bytes;
	bool used;
};

struct cuda_state {
	cudaStream_t stream; /* QUEUE_WORK */
	cudaStream_t queue[CUDA_QUEUES];
	cudaEvent_t event;				/* used by order() */
	double *partial;				/* device: CUDA_PARTIALS */
	double *host_partial;				/* pinned: CUDA_PARTIALS */
	unsigned long long *histogram, *host_histogram; /* device, pinned: CUDA_STEPS */
	void *box_encoder;				/* cuda_box_encoder() */
	size_t shared_bytes;				/* shared memory that a block may have */
	void *scratch; /* device memory shared by all projections; grows when a projection is created */
	size_t scratch_bytes;
	struct cuda_host_block host[CUDA_KEPT_MAX];
};

/* How the results of a pass are divided: tiles of results, each computed by whole blocks of threads. */
struct cuda_tiling {
	int size[2];   /* results per tile along both axes */
	int tiles[2];  /* number of tiles */
	int blocks[2]; /* blocks per tile */
};

struct cuda_paths; /* kernels/cuda/cuda_paths.cuh */
struct cuda_lines; /* cuda_convolve.cu */
int cuda_convolve(const struct buf *y, size_t n_outer, int n, size_t n_inner, const float *kernel, bool transforms,
		  struct buf *ret, struct err *err);

/* cuda_fft.cu: convolve() with transforms; the arguments have been checked. */
bool cuda_transforms(const struct device *dev, int n);
int cuda_convolve_fft(const struct buf *y, size_t n_outer, int n, size_t n_inner, const float *kernel, struct buf *ret,
		      struct err *err);

/* cuda_box.cu: return the driver's function that describes arrays to the copy engine; NULL: the device copies no boxes, or the
 * program has no code for it that does. major: of its compute capability. */
void *cuda_box_encoder(int major);

/* cuda_step_rate.cu */
int cuda_step_rate(struct device *dev, double *ret_per_s, struct err *err);

/* cuda_lines.cu */

struct projection {
	struct device *dev;
	enum projection_model model;
	struct scan scan; /* scan.views is not used; planes and radius point to device memory */
	struct grid grid;
	int n_views;
	const float *mask; /* device memory; NULL: use every bin */
	bool deterministic;
	int tile[2];
	struct scan_view *views; /* device: n_views */
	struct slice_map *maps;	 /* device: n_views * strips * n_z */
	int strip_rows, strips;	 /* SCAN_DBT: rows of a strip (kernels/slice_map.h), n_v if the detector stands still; their
				    number */
	double scale_min[2], scale_max[2]; /* smallest and largest scale of all maps, along x and y; SLICES only */
	double bin_angle;		   /* SCAN_DBT: largest bin over smallest height of a source */
	unsigned char *full;		   /* device, SLICES: struct bin_planes */
	int box_rows, box_slices;	   /* SLICES: back_boxes_rows(), or of one view back_view_rows() */
	bool box_pairs;			   /* SLICES, several views: forward_boxes_pairs() */
	float *sums;			   /* device: A'd of RULE_EM, projection_spec.keep_den; NULL: not kept */
	bool sums_known;		   /* the first update has computed it */
	bool marks;			   /* SCAN_DBT: the maps are valid, so mark() can use them */
	struct cuda_paths *paths;	   /* PATHS and JOSEPH, except stacks */
	struct cuda_lines *lines;	   /* stacks of 2-D parallel beams, any model except EXACT */
	double largest_rise;		   /* SCAN_PARALLEL: planes_max_abs_rise() */
	double radial_first, radial_pitch; /* SCAN_PARALLEL with equidistant radial bins, mm */
	bool level, stack; /* SCAN_PARALLEL: all planes have rise 0; and plane u is in the middle of slice u, so the scan is a
			      stack (kernels/lines.h) */
};

static inline struct cuda_state *cuda_state(const struct device *dev)
{
	return (struct cuda_state *)dev->state;
}

/* Return 0, or the error with `what` in its message. ENOMEM: out of memory. EHWPOISON: any other error. Its cause is not the
 * data. CUDA mostly returns the same error for all later calls (a sticky error), so do not use the device any more. */
int cuda_check(cudaError_t code, const struct device *dev, const char *what, struct err *err);

/* Return the number of blocks of CUDA_THREADS for n items, at most the hardware's limit; kernels loop over the rest. */
static inline unsigned cuda_blocks(size_t n)
{
	size_t blocks = (n + CUDA_THREADS - 1) / CUDA_THREADS;

	return (unsigned)(blocks < 1 ? 1 : blocks > 0x7fffffff ? 0x7fffffff : blocks);
}

/* Return the square root within 1 ulp, without the slow path for extreme operands; below the normal numbers 0. */
static inline __device__ float cuda_sqrt(float x)
{
	float y;

	asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}

/* Return the length of a bin's ray in a slice, mm: h_z |source - bin| / source_z, see slice_length_u(). */
static inline __device__ float cuda_slice_length(const struct scan *scan, const struct scan_view *view, const struct grid *grid,
						 int u, int v)
{
	float dx = (float)(scan->lo[0] + view->shift[0] + (u + 0.5) * scan->h[0] - view->src[0]);
	float dy = (float)(scan->lo[1] + view->shift[1] + (v + 0.5) * scan->h[1] - view->src[1]), dz = (float)view->src[2];

	if (view->posed) {
		dx = (float)(view->pose.origin[0] + u * view->pose.step_u[0] - view->src[0]);
		dy = (float)(view->pose.origin[1] + v * view->pose.step_v[1] - view->src[1]);
		dz = (float)(view->src[2] - view->pose.origin[2] - v * view->pose.step_v[2]);
	}
	return __fdividef((float)grid->h[2] * cuda_sqrt(dx * dx + dy * dy + dz * dz), dz);
}

/* Return the rows of bins that may touch row j of voxels in slice k; posed views only. */
static inline __device__ void cuda_strip_rows(const struct scan_view *view, const struct grid *grid, int k, int j, int n_v,
					      int *ret_first, int *ret_end)
{
	*ret_first = (int)fmin(fmax(floor(slice_row_at(view, grid, k, j - 1)), 0.0), (double)n_v);
	*ret_end = (int)fmin(fmax(ceil(slice_row_at(view, grid, k, j + 1)) + 1, 0.0), (double)n_v);
}

static inline __device__ size_t cuda_index(void)
{
	return (size_t)blockIdx.x * blockDim.x + threadIdx.x;
}

/* cuda_vector.cu */
int cuda_fill(struct buf *x, float value, struct err *err);
int cuda_copy(const struct buf *x, struct buf *ret, struct err *err);
int cuda_permute(struct device *dev, const struct strides *s, const float *from, float *to, struct err *err);
int cuda_multiply(const struct buf *x, const struct buf *y, struct buf *ret, struct err *err);
int cuda_axpy(float a, const struct buf *x, struct buf *y, struct err *err);
int cuda_threshold(struct buf *x, float at, float value, struct err *err);
int cuda_shape(const struct buf *columns, float away, float least, struct buf *x, struct err *err);
int cuda_rule_voxels(const struct rule *rule, const struct buf *num, const struct buf *den, struct buf *x, struct err *err);
int cuda_tally(const struct buf *x, float offset, float step, size_t stride, uint64_t bins[65536], struct tally *ret_tally,
	       struct err *err);
int cuda_store(const struct buf *x, const struct stored_form *form, struct buf *ret_values, struct err *err);
int cuda_sum(const struct buf *x, double *ret, struct err *err);
int cuda_dot(const struct buf *x, const struct buf *y, double *ret, struct err *err);
int cuda_log_likelihood(const struct buf *y, const struct buf *p, float floor, double *ret, struct err *err);

/* cuda_lines.cu */
int cuda_row_sweep(struct projection *a, float relaxation, const struct buf *y, struct buf *x, struct err *err);

/* cuda_volume.cu */
int cuda_blur(const struct buf *x, const struct grid *grid, const double sigma[3], struct buf *work, struct buf *ret,
	      struct err *err);
int cuda_prior_sums(const struct prior *prior, const struct buf *x, const struct grid *grid, const int halo[2], bool ratio,
		    struct buf *num, struct buf *den, struct err *err);

/* cuda_interpolated.cu */
int cuda_back_interpolated(struct projection *a, const struct buf *y, bool add, struct buf *x, struct err *err);

/* cuda_vector.cu */
int cuda_rule_bins(const struct rule *rule, const struct buf *y, const struct buf *p, const struct buf *row,
		   const struct buf *mult, const struct buf *add, struct buf *ret_q, struct err *err);

/* cuda_projection.cu */
size_t cuda_projection_bytes(struct device *dev, const struct projection_spec *spec);
size_t cuda_scratch_bytes(struct device *dev, const struct projection_spec *spec);
int cuda_projection_create(struct device *dev, const struct projection_spec *spec, struct projection **ret, struct err *err);
void cuda_projection_free(struct projection *a);
int cuda_forward(struct projection *a, const struct buf *x, bool add, struct buf *y, struct err *err);
int cuda_adjoint(struct projection *a, const struct buf *y, bool add, struct buf *x, struct err *err);
int cuda_make_pair(struct projection *a, const struct rule *rule, const struct buf *y, const struct buf *p, const struct buf *row,
		   struct buf *ret_pair, struct err *err);
int cuda_back_sums(struct projection *a, const struct buf *pair, bool add, struct buf *num, struct buf *den, struct err *err);
bool cuda_fused(const struct projection *a);
int cuda_forward_pair(struct projection *a, const struct rule *rule, const struct buf *x, const struct buf *y,
		      const struct buf *row, struct buf *ret_pair, struct err *err);
int cuda_back_update(struct projection *a, const struct rule *rule, const struct buf *pair, struct buf *x, struct err *err);
int cuda_sub_iterate(struct projection *a, const struct rule *rule, const struct buf *y, const struct buf *row, struct buf *work,
		     struct buf *x, struct err *err);
int cuda_mark(struct projection *a, struct buf *x, struct err *err);

/* cuda_events.cu: list mode, events_*() of kernels/device.h */
size_t cuda_list_bytes(struct device *dev, const struct events_spec *spec);
int cuda_list_create(struct device *dev, const struct events_spec *spec, struct events **ret, struct err *err);
void cuda_list_free(struct events *a);
int cuda_list_sort(struct events *a, struct buf *events, struct err *err);
int cuda_list_forward(struct events *a, const struct buf *events, const struct buf *x, struct buf *ret_y, struct err *err);
int cuda_list_back(struct events *a, const struct buf *events, const struct buf *q, struct buf *x, struct err *err);
int cuda_list_ratio(struct events *a, const struct buf *events, float floor, const struct buf *x, struct buf *sum,
		    struct err *err);

/* cuda_scatter.cu */
int cuda_scatter_pairs(const struct scatter_spec *spec, const struct buf *activity, const struct buf *mu, struct buf *ret,
		       struct err *err);

/* The pair of bin i is stored in ((float2 *)pair)[i]. SLICES: both numbers times the ray's length in a slice, so that the back
 * pass needs only the weights of the voxel. EXACT: as the rule returns them. */

/* cuda_exact.cu: the ray walk. fixed: device memory for grid_size() 64-bit sums and one float, for bitwise repeatable results;
 * NULL: use atomic additions. */
int cuda_exact_forward(struct projection *a, const float *x, bool add, float *y, struct err *err);
int cuda_exact_adjoint(struct projection *a, const float *y, bool add, float *x, void *fixed, struct err *err);
int cuda_exact_sums(struct projection *a, const float2 *pair, bool add, float *num, float *den, void *fixed, struct err *err);

/* The pairs of RULE_EM in two planes: the back pass then mostly reads only q, because d of a bin that is used is the ray's
 * length, which is known. full: for each view, row of cells and cell (of BIN_CELL bins along u and 2^log2_rows along v) whether
 * all of its bins are used. */
#define BIN_CELL 32
#define BIN_CELL_ROWS_MIN 4
struct bin_planes {
	float *q, *d;
	unsigned char *full;
	int log2_rows, cells[2];
};

/* cuda_slices_forward.cu. rule NULL: write line integrals to out (n bins); else write pairs (2 n floats), or, if ret_planes is
 * not NULL, the planes that it then describes, in out and a->full. */
int cuda_slices_forward(struct projection *a, const struct rule *rule, const float *x, bool add, const float *y, const float *row,
			float *out, struct bin_planes *ret_planes, struct err *err);

/* cuda_slices_forward_boxes.cu: return whether the voxels of two views that follow each other fit one box. maps: of all views and
 * slices. */
bool forward_boxes_pairs(const struct slice_map *maps, int n_views, int nz, const struct scan *scan);

/* cuda_slices_back_boxes.cu: return the rows of the boxes of bins; 0: they would be too large. maps: of all views and slices. */
int back_boxes_rows(const struct device *dev, const struct slice_map *maps, int n_views, const struct grid *g);

/* cuda_slices_back_view.cu: the same for one view. ret_slices: slices of a block; not set if the result is 0. */
int back_view_rows(const struct device *dev, const struct slice_map *maps, const struct grid *g, int *ret_slices);

/* cuda_slices_back.cu */
int cuda_slices_adjoint(struct projection *a, const float *y, bool add, float *x, struct err *err);
int cuda_slices_sums(struct projection *a, const float2 *pair, bool add, float *num, float *den, struct err *err);
int cuda_slices_update(struct projection *a, const struct rule *rule, const float2 *pair, float *x, struct err *err);
bool cuda_slices_planes(const struct projection *a, const struct rule *rule); /* whether planes are possible */
int cuda_slices_update_planes(struct projection *a, const struct rule *rule, const struct bin_planes *planes, float *x,
			      struct err *err);

#endif
