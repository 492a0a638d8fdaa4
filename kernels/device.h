/* Devices: where vectors live and operators run. One table of functions per kind; a table with an empty slot is refused.
 *
 * - A `struct buf` is float32 memory of one device. Algorithms hand it around, never look inside.
 * - A `struct projection` is a prepared system matrix A (rows: bins, columns: voxels, entries in mm). Everything it needs is
 *   allocated when it is created; forward() and adjoint() allocate nothing.
 * - Rows whose mask is not above 0 are zero rows: forward gives 0 there, adjoint ignores the bin.
 * - Work is queued and done in order on QUEUE_WORK; functions that give a number or host data wait for it. Transfers that overlap
 *   with work have queues of their own: see order().
 * - A device and its objects belong to one thread at a time; the device threads inside itself.
 */
#ifndef TOMONODE_KERNELS_DEVICE_H
#define TOMONODE_KERNELS_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"
#include "kernels/geometry.h"
#include "kernels/prior.h"
#include "kernels/rules.h"

#ifdef __cplusplus
extern "C" {
#endif

struct device;
struct projection; /* each device has its own */

struct buf {
	struct device *dev;
	float *mem; /* an address of the device */
	size_t n;   /* floats */
};

enum projection_model {
	PROJECTION_EXACT = 1, /* ray walk, Siddon lengths: the reference */
	PROJECTION_SLICES,    /* SCAN_DBT only: bilinear in each slice times the ray's length in it; exact adjoint by gathering */
	PROJECTION_PATHS,   /* SCAN_PARALLEL and z_fastest only: the entries of PROJECTION_EXACT, the transaxial path of one angle
			       and radius walked once for all planes (kernels/paths.h); exact adjoint */
	PROJECTION_JOSEPH,  /* the same with Joseph's weights (1982): linear between pixels and between slices; exact adjoint */
	PROJECTION_SAMPLED, /* stacks alone (kernels/lines.h): bilinear at points every `sampling` mm along the ray; exact adjoint
			     */
};

struct projection_spec {
	enum projection_model model;
	const struct scan *scan; /* borrowed, must outlive the projection */
	int first, n_views;	 /* the views [first, first + n_views) of the scan: a subset is contiguous */
	const struct grid *grid; /* copied */
	const struct buf *mask;	 /* n_views * n_v * n_u, borrowed: 1 counts; 0 no data; -1 does not count either, and shows air
				    (see  mark()); NULL: every bin counts */
	int tile[2];	    /* unit of work: bins along u and v (forward), voxel columns along x and y (back); 0: the whole */
	bool deterministic; /* bitwise the same result in every run */
	double sampling;    /* SAMPLED: mm, > 0 */
	bool sweeps;	    /* row_sweep() will be called */
};

enum device_queue {
	QUEUE_WORK = 0, /* everything but the two below */
	QUEUE_UP,	/* upload_begin() */
	QUEUE_DOWN,	/* download_begin() */
};

/* What tally() counts beside the histogram. */
struct tally {
	size_t below, above; /* values that lie outside 0..65535 steps after rounding */
	size_t bad;	     /* NaN and inf */
};

struct device_ops {
	const char *kind; /* "cpu", "cuda" */
	void (*destroy)(struct device *dev);

	/* memory; alloc leaves the content undefined */
	int (*alloc)(struct device *dev, size_t n, struct buf *ret_buf, struct err *err);
	void (*release)(struct buf *b);
	int (*upload)(struct buf *dst, const float *src, struct err *err);   /* dst->n floats */
	int (*download)(const struct buf *src, float *dst, struct err *err); /* src->n floats */

	/* Host memory that transfers at full speed (pinned, where that means something). Content undefined. The device keeps what
	 * is freed for the next host_alloc() and gives it back when it is closed. */
	int (*host_alloc)(struct device *dev, size_t bytes, void **ret, struct err *err);
	void (*host_free)(struct device *dev, void *memory); /* takes NULL; what transfers to or from it is waited for */
	/* Transfers that overlap with work: src and dst, from host_alloc(), are left alone until wait(). */
	int (*upload_begin)(struct buf *dst, const float *src, struct err *err);
	int (*download_begin)(const struct buf *src, float *dst, struct err *err);
	/* What is queued on `after` from now on starts when all that is on `before` now has ended; wait()
	 * lets the caller wait. */
	int (*order)(struct device *dev, enum device_queue before, enum device_queue after, struct err *err);
	int (*wait)(struct device *dev, enum device_queue queue, struct err *err);

	/* vectors of equal length; ret may be an input */
	int (*fill)(struct buf *x, float value, struct err *err);
	int (*copy)(const struct buf *x, struct buf *ret, struct err *err);
	int (*multiply)(const struct buf *x, const struct buf *y, struct buf *ret, struct err *err);
	int (*axpy)(float a, const struct buf *x, struct buf *y, struct err *err); /* y += a x */
	int (*threshold)(struct buf *x, float at, float value, struct err *err);   /* x > at ? value : 0 */
	int (*rule_voxels)(const struct rule *rule, const struct buf *num, const struct buf *den, struct buf *x,
			   struct err *err); /* x = rule_voxel(x, num, den) */
	/* Convolution of a volume with a Gaussian, separable, kernels cut at 4 sigma and then normalised; 0 outside the grid, so
	 * it is its own adjoint. sigma: mm per axis, 0: that axis stays. x, work and ret are different buffers of the grid's
	 * size. */
	int (*blur)(const struct buf *x, const struct grid *grid, const double sigma[3], struct buf *work, struct buf *ret,
		    struct err *err);
	/* Rows of n values convolved with a symmetric kernel: ret[o][i][k] = sum over j of kernel[|i - j|] y[o][j][k], o <
	 * n_outer, k < n_inner, i, j < n; kernel: n floats on the host, copied. ret is not y. */
	int (*convolve)(const struct buf *y, size_t n_outer, int n, size_t n_inner, const float *kernel, struct buf *ret,
			struct err *err);
	/* ret = gradient of the penalty at x (kernels/prior.h); 0 where x is exactly 0. ret is not x. */
	int (*prior_gradient)(const struct prior *prior, const struct buf *x, const struct grid *grid, struct buf *ret,
			      struct err *err);
	int (*sum)(const struct buf *x, double *ret, struct err *err);
	int (*dot)(const struct buf *x, const struct buf *y, double *ret, struct err *err);
	/* Histogram of every stride-th value that is finite, in steps: bins[steps_of(x, offset, step)] (kernels/steps.h) is
	 * counted up, limited to 0..65535; the counts in ret_tally are over all values, each in one of them at most. */
	int (*tally)(const struct buf *x, float offset, float step, size_t stride, uint64_t bins[65536], struct tally *ret_tally,
		     struct err *err);
	int (*log_likelihood)(const struct buf *y, const struct buf *p, float floor, double *ret,
			      struct err *err); /* sum over p > floor of y ln p - p */

	/* Steps a second that the device can make at most, measured now, in some ten milliseconds. A step is what every projector
	 * makes of every voxel and ray at least: the linear interpolation between two neighbours, sum += w0 y[i] + w1 y[i + 1], y
	 * in the memory nearest to the arithmetic (level-1 cache, shared memory). A limit for benchmarks to be compared with. */
	int (*step_rate)(struct device *dev, double *ret_per_s, struct err *err);

	/* The system matrix. projection_bytes: what this projection alone allocates; scratch_bytes: working memory that all
	 * projections of the device share, so that the largest counts once. */
	size_t (*projection_bytes)(struct device *dev, const struct projection_spec *spec);
	size_t (*scratch_bytes)(struct device *dev, const struct projection_spec *spec);
	int (*projection_create)(struct device *dev, const struct projection_spec *spec, struct projection **ret,
				 struct err *err);
	void (*projection_free)(struct projection *a);
	int (*forward)(struct projection *a, const struct buf *x, bool add, struct buf *y,
		       struct err *err); /* y = A x, y += A x */
	int (*adjoint)(struct projection *a, const struct buf *y, bool add, struct buf *x,
		       struct err *err); /* x = A'y, x += A'y */
	/* SCAN_PARALLEL with planes of no rise: each voxel's sum over the views of y, linear between radial bins (which are
	 * equidistant) at the projection of the voxel's middle, from the plane whose z lies in the voxel's slice (their mean,
	 * where several do); 0 outside the field of view. The second half of filtered backprojection: voxel-driven, not the
	 * adjoint. */
	int (*back_interpolated)(struct projection *a, const struct buf *y, bool add, struct buf *x, struct err *err);

	/* A sweep of Kaczmarz' method (Gordon, Bender & Herman 1970) over all rays of a stack (kernels/lines.h), each slice for
	 * itself: x += relaxation (y_i - <a_i, x>) / |a_i|^2 a_i for ray i = view by view, in each view the radial bins 0, s, 2 s
	 * ..., then 1, s + 1, ...: s is so large that the rays of a pass share no pixel, so that a pass may be done at once and
	 * is still exact (lines_stride()). A projection with `sweeps`. */
	int (*row_sweep)(struct projection *a, float relaxation, const struct buf *y, struct buf *x, struct err *err);

	/* A sub-iteration whose den = A'd depends on the subset alone and is kept: q = rule_data_bin(), any model, p may be
	 * ret_q; mult, add and row may be NULL. Bins without a ray must come out as 0 from adjoint() whatever q is. */
	int (*rule_bins)(const struct rule *rule, const struct buf *y, const struct buf *p, const struct buf *row,
			 const struct buf *mult, const struct buf *add, struct buf *ret_q, struct err *err);

	/* A sub-iteration (kernels/rules.h). A pair buffer has 2 floats per bin; what lies where in it is the projection's own.
	 * y: data >= 0; p = A x; row: length of each ray, NULL where the rule does not want it. Masked bins make pairs of 0.
	 *   make_pair    from line integrals: pair = rule_bin(y, p, row)
	 *   back_sums    num = A'q, den = A'd, or with `add` num += A'q, den += A'd
	 * PROJECTION_PATHS and PROJECTION_JOSEPH answer ENOTSUP: their den is always kept.
	 * And fused, without a vector of line integrals or sums, where fused() says so:
	 *   forward_pair  pair = rule_bin(y, A x, row)       (x is not looked at where the rule wants no line)
	 *   back_update   x = rule_voxel(x, A'q, A'd) */
	int (*make_pair)(struct projection *a, const struct rule *rule, const struct buf *y, const struct buf *p,
			 const struct buf *row, struct buf *ret_pair, struct err *err);
	int (*back_sums)(struct projection *a, const struct buf *pair, bool add, struct buf *num, struct buf *den,
			 struct err *err);
	bool (*fused)(const struct projection *a);
	int (*forward_pair)(struct projection *a, const struct rule *rule, const struct buf *x, const struct buf *y,
			    const struct buf *row, struct buf *ret_pair, struct err *err);
	int (*back_update)(struct projection *a, const struct rule *rule, const struct buf *pair, struct buf *x, struct err *err);

	/* What the views tell about each voxel (SCAN_DBT; either model): x = -1 where the bin nearest to the voxel's centre shows
	 * air (mask < 0); else, unless x is < 0, x = 1 where a bin that counts lies within a voxel of it (slice_weight() > 0);
	 * else x stays. From x = 0 and over all projections it makes the support. */
	int (*mark)(struct projection *a, struct buf *x, struct err *err);
};

struct device {
	const struct device_ops *ops;
	char name[96]; /* "cpu (2 threads, avx512f)", "cuda:0 (NVIDIA H200)": for logs and provenance */
	size_t memory; /* bytes that it had free when it was opened (CUDA), that the machine has (CPU); 0 when unknown */
	int index;     /* cuda:N */
	void *state;   /* the device's own */
};

/* `spec`: "cpu", "cpu:THREADS", "cuda", "cuda:N" or "auto" (a CUDA device where there is one, else the CPU; device->name says
 * which). A build without CUDA answers ENODEV and says so. Ownership passes to the caller. */
int device_open(const char *spec, struct device **ret_dev, struct err *err);
struct device *device_close(struct device *dev); /* takes NULL, returns NULL */

/* Every CPU and CUDA device that can be opened, as text, one call per device; for `tomonode devices`. */
int device_list(void (*each)(void *ctx, const char *spec, const char *name, size_t memory), void *ctx);

/* Refuses a table with an empty slot; every device_xxx_open calls it. */
int device_check(const struct device_ops *ops, struct err *err);

/* The makers behind device_open; the CUDA one is a stub that answers ENODEV in a build without CUDA. */
int device_cpu_open(int threads, struct device **ret_dev, struct err *err);
int device_cuda_open(int index, struct device **ret_dev, struct err *err);
int device_cuda_count(void);

/* A CPU device for tests: fresh memory is NaN, freed memory too; a freed buffer that is used again and writing past the end of
 * one are answered with EFAULT. device_poison_check() looks at all memory there is or was; device_close() aborts where it would
 * complain. */
int device_poison_open(int threads, struct device **ret_dev, struct err *err);
int device_poison_check(struct device *dev, struct err *err);

/* n floats starting at `at` of b, sharing its memory; not to be released. */
struct buf buf_part(const struct buf *b, size_t at, size_t n);
void buf_release(struct buf *b); /* takes an empty one; leaves it empty */

#ifdef __cplusplus
}
#endif
#endif
