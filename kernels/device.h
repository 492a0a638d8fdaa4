/* SPDX-License-Identifier: Apache-2.0 */
/* Compute devices (a processor or a GPU): they store vectors and compute operators on them. Each kind of device (CPU, CUDA) has
 * one table of functions; device_check() rejects a table in which a function is missing.
 *
 * - A `struct buf` is float32 memory of one device. Algorithms pass it on but never access its content.
 * - A `struct projection` is a prepared system matrix A (rows: bins, columns: voxels, entries in mm). projection_create()
 *   allocates all that it needs; forward() and adjoint() allocate nothing.
 * - A bin whose mask value is not above 0 has a row of zeros in A: forward() writes 0 to the bin, adjoint() ignores it.
 * - A `struct events` is the matrix of list mode, with a row for each event. Its events are given with each call.
 * - Work is queued on QUEUE_WORK and runs in order; functions that return a number or host data wait for it. Transfers that
 *   overlap with work have their own queues: see order().
 * - Only one thread at a time may use a device and its objects; the device runs its own threads inside a call. */
#ifndef TOMONODE_KERNELS_DEVICE_H
#define TOMONODE_KERNELS_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"
#include "kernels/events.h"
#include "kernels/geometry.h"
#include "kernels/prior.h"
#include "kernels/rules.h"
#include "kernels/scatter.h"
#include "kernels/stored.h"
#include "kernels/strides.h"

#ifdef __cplusplus
extern "C" {
#endif

struct device;
struct projection; /* defined by each device */
struct events;	   /* defined by each device */

struct buf {
	struct device *dev;
	float *mem; /* address in the device's memory */
	size_t n;   /* length, floats */
};

enum projection_model {
	PROJECTION_EXACT = 1, /* ray walk with Siddon's lengths: the reference */
	PROJECTION_SLICES,    /* SCAN_DBT only: bilinear interpolation in each slice, times the ray's length in the slice; exact
				 adjoint, which computes each voxel from its bins (gathers) */
	PROJECTION_PATHS,     /* SCAN_PARALLEL with z_fastest only: the entries of PROJECTION_EXACT, but the transaxial path of an
				 angle and radius is computed once for all planes (kernels/paths.h); exact adjoint */
	PROJECTION_JOSEPH,    /* as PATHS with Joseph's weights (1982): linear between pixels and between slices; exact adjoint */
	PROJECTION_SAMPLED, /* stacks only (kernels/lines.h): bilinear interpolation at points every `sampling` mm along the ray;
			       exact adjoint */
};

struct projection_spec {
	enum projection_model model;
	const struct scan *scan; /* borrowed; must outlive the projection */
	int first, n_views;	 /* the views [first, first + n_views) of the scan; a subset is contiguous */
	const struct grid *grid; /* copied */
	const struct buf *mask;	 /* n_views * n_v * n_u floats, borrowed: 1: use the bin; 0: no data; -1: do not use the bin, its
				    ray passed through air only (see mark()); between 0 and 1: use the bin, with this weight if
				    rule.weighted; NULL: use every bin */
	int tile[2];	    /* unit of work: bins along u and v (forward), voxel columns along x and y (back); 0: no tiling */
	bool deterministic; /* every run gives bitwise the same result */
	double sampling;    /* SAMPLED: distance of the points, mm, > 0 */
	bool sweeps;	    /* prepare the projection for row_sweep() */
	bool keep_den; /* several updates with RULE_EM follow, and the mask remains as it is (voxels that are 0 need not): the
			  device may keep A'd, which needs memory for a volume */
};

/* List mode (kernels/events.h). */
struct events_spec {
	const struct grid *grid; /* copied; z_fastest, less than 2^31 floats */
	double fov_radius;	 /* mm */
	struct scan_tof tof;
	const struct buf *detectors; /* x, y, z of each detector, mm; borrowed */
	size_t batch;		     /* largest number of events of one call of events_sort() */
	bool deterministic;	     /* every run gives bitwise the same result */
};

enum device_queue {
	QUEUE_WORK = 0, /* all work except the transfers of the two queues below */
	QUEUE_UP,	/* used by upload_begin() */
	QUEUE_DOWN,	/* used by download_begin() */
};

/* Counts that tally() returns with the histogram. */
struct tally {
	size_t below, above; /* values below 0 and above 65535 steps, after rounding */
	size_t bad;	     /* NaN and inf values */
};

struct device_ops {
	const char *kind; /* "cpu", "cuda" */
	void (*destroy)(struct device *dev);

	/* Memory. alloc() leaves the content undefined. */
	int (*alloc)(struct device *dev, size_t n, struct buf *ret_buf, struct err *err);
	void (*release)(struct buf *b);
	int (*upload)(struct buf *dst, const float *src, struct err *err);   /* dst->n floats */
	int (*download)(const struct buf *src, float *dst, struct err *err); /* src->n floats */

	/* Host memory for fast transfers (pinned for CUDA), content undefined. The device keeps freed memory for the next
	 * host_alloc() and releases it when it is closed. */
	int (*host_alloc)(struct device *dev, size_t bytes, void **ret, struct err *err);
	void (*host_free)(struct device *dev, void *memory); /* accepts NULL; waits for transfers from or to the memory */
	/* Start a transfer that overlaps with work. src and dst come from host_alloc(); do not access them before wait(). */
	int (*upload_begin)(struct buf *dst, const float *src, struct err *err);
	int (*download_begin)(const struct buf *src, float *dst, struct err *err);
	/* order(): let work that is queued on `after` from now on start only when all work queued on `before` so far has ended.
	 * wait(): block the caller until the queue is empty. */
	int (*order)(struct device *dev, enum device_queue before, enum device_queue after, struct err *err);
	int (*wait)(struct device *dev, enum device_queue queue, struct err *err);

	/* Vectors of equal length; ret may be one of the inputs. */
	int (*fill)(struct buf *x, float value, struct err *err);
	int (*copy)(const struct buf *x, struct buf *ret, struct err *err);
	/* Copy an array from one order to another. from, to: addresses in the device's memory, also of memory that is not its own;
	 * the parts that are read and written do not overlap. */
	int (*permute)(struct device *dev, const struct strides *s, const float *from, float *to, struct err *err);
	int (*multiply)(const struct buf *x, const struct buf *y, struct buf *ret, struct err *err);
	int (*axpy)(float a, const struct buf *x, struct buf *y, struct err *err); /* y += a x */
	int (*threshold)(struct buf *x, float at, float value, struct err *err);   /* x > at ? value : 0 */
	int (*shape)(const struct buf *columns, float away, float least, struct buf *x,
		     struct err *err); /* x *= shape_weight(columns, away, least), kernels/shape.h */
	int (*rule_voxels)(const struct rule *rule, const struct buf *num, const struct buf *den, struct buf *x,
			   struct err *err); /* x = rule_voxel(x, num, den) */
	/* Convolve a volume with a separable Gaussian; each kernel is cut off at 4 sigma and then normalised. Outside the grid
	 * the volume counts as 0, so the operator is its own adjoint. sigma: mm per axis; 0 leaves that axis unchanged. x, work
	 * and ret are three different buffers of the grid's size. */
	int (*blur)(const struct buf *x, const struct grid *grid, const double sigma[3], struct buf *work, struct buf *ret,
		    struct err *err);
	/* Convolve rows of n values with a symmetric kernel: ret[o][i][k] = sum over j of kernel[|i - j|] y[o][j][k], o <
	 * n_outer, k < n_inner, i, j < n. kernel: n floats on the host, copied. ret must not be y. transforms: by Fourier
	 * transforms, O(n log n), else by sums, O(n^2); ENOTSUP: transforms(n) is false. */
	int (*convolve)(const struct buf *y, size_t n_outer, int n, size_t n_inner, const float *kernel, bool transforms,
			struct buf *ret, struct err *err);
	/* Return whether convolve() has transforms for rows of n values. */
	bool (*transforms)(const struct device *dev, int n);
	/* Add a penalty (kernels/prior.h) to the sums of a sub-iteration: num -= its gradient at x; and if den is not NULL, den
	 * += c, and with `ratio` (rule_is_ratio()) num += c. Voxels that are exactly 0 are unchanged. grid: the grid of num and
	 * den. halo: number of slices that x has in addition before the first and after the last slice of the grid, 0 or 1, as
	 * neighbours (not with z_fastest); NULL: none. num and den must not be x. */
	int (*prior_sums)(const struct prior *prior, const struct buf *x, const struct grid *grid, const int halo[2], bool ratio,
			  struct buf *num, struct buf *den, struct err *err);
	int (*sum)(const struct buf *x, double *ret, struct err *err);
	int (*dot)(const struct buf *x, const struct buf *y, double *ret, struct err *err);
	/* Compute a histogram of every stride-th value, if it is finite: increment bins[steps_of(x, offset, step)]
	 * (kernels/steps.h), with the index limited to 0..65535. Unlike the histogram, the counts in ret_tally cover all values;
	 * each value is counted in at most one of them. */
	int (*tally)(const struct buf *x, float offset, float step, size_t stride, uint64_t bins[65536], struct tally *ret_tally,
		     struct err *err);
	/* Convert an image to stored values (kernels/stored.h): x of columns * rows floats, x fastest; ret_values has room for as
	 * many uint16_t, which follow each other: (columns * rows + 1) / 2 floats. */
	int (*store)(const struct buf *x, const struct stored_form *form, struct buf *ret_values, struct err *err);
	int (*log_likelihood)(const struct buf *y, const struct buf *p, float floor, double *ret,
			      struct err *err); /* sum over p > floor of rule_log_likelihood(y, p) */

	/* Measure the largest number of steps per second that the device can compute; takes about ten milliseconds. A step is the
	 * smallest computation that any projector makes for one voxel and one ray: a linear interpolation between two neighbours,
	 * sum += w0 y[i] + w1 y[i + 1], with y in the fastest memory (level-1 cache, shared memory). Benchmarks compare their
	 * times with this limit. */
	int (*step_rate)(struct device *dev, double *ret_per_s, struct err *err);

	/* The system matrix. projection_bytes(): memory that this projection alone allocates, or slightly more. scratch_bytes():
	 * working memory of one of the device's threads, which all projections share; only the largest counts. Neither depends
	 * on the number of threads, so that no plan does. */
	size_t (*projection_bytes)(struct device *dev, const struct projection_spec *spec);
	size_t (*scratch_bytes)(struct device *dev, const struct projection_spec *spec);
	int (*projection_create)(struct device *dev, const struct projection_spec *spec, struct projection **ret,
				 struct err *err);
	void (*projection_free)(struct projection *a);
	int (*forward)(struct projection *a, const struct buf *x, bool add, struct buf *y,
		       struct err *err); /* y = A x, y += A x */
	int (*adjoint)(struct projection *a, const struct buf *y, bool add, struct buf *x,
		       struct err *err); /* x = A'y, x += A'y */
	/* The second half of filtered backprojection, for SCAN_PARALLEL with planes of rise 0: add up over the views, for each
	 * voxel, the value of y at the projection of the voxel's centre, linear between equidistant radial bins, from the plane
	 * whose z is in the voxel's slice (the mean if there are several planes). Voxels outside the field of view are 0. The sum
	 * is computed per voxel from interpolated values, so this is not the adjoint of forward(). */
	int (*back_interpolated)(struct projection *a, const struct buf *y, bool add, struct buf *x, struct err *err);

	/* Perform one sweep of Kaczmarz' method (Gordon, Bender & Herman 1970) over all rays of a stack (kernels/lines.h), each
	 * slice independently: x += relaxation (y_i - <a_i, x>) / |a_i|^2 a_i. Order of the rays i: view by view, in each view
	 * the radial bins 0, s, 2 s ..., then 1, s + 1, .... s (lines_stride()) is so large that the rays of one pass (k, k + s,
	 * k + 2 s ...) have no pixel in common; so they are computed in parallel with the same result as in sequence. A ray whose y is
	 * NaN is left out. Needs a projection created with `sweeps`. */
	int (*row_sweep)(struct projection *a, float relaxation, const struct buf *y, struct buf *x, struct err *err);

	/* Compute q = rule_data_bin() (kernels/rules.h) for each bin, with any model: for sub-iterations in which den = A'd
	 * depends only on the subset, so that the caller computes it once. p may be ret_q; mult, add and row may be NULL. For a
	 * bin without a ray, adjoint() must ignore the value of q. */
	int (*rule_bins)(const struct rule *rule, const struct buf *y, const struct buf *p, const struct buf *row,
			 const struct buf *mult, const struct buf *add, struct buf *ret_q, struct err *err);

	/* A sub-iteration (kernels/rules.h). A pair buffer holds q and d of every bin (2 floats per bin); their order is private
	 * to the device. y: data; p = A x; row: length of each ray, NULL if the rule does not use it. Masked bins give pairs
	 * of 0.
	 *   make_pair    from line integrals: pair = rule_bin(y, p, row)
	 *   back_sums    num = A'q, den = A'd, or with `add` num += A'q, den += A'd
	 * With transaxial paths and time of flight q and d are backprojected one after the other: where den can be computed once
	 * per subset, rule_bins() takes half the time. If fused() is true, two functions combine these steps and store neither
	 * line integrals nor sums:
	 *   forward_pair  pair = rule_bin(y, A x, row)       (does not read x if the rule does not use p)
	 *   back_update   x = rule_voxel(x, A'q, A'd)
	 *   sub_iterate   both at once; work: 2 floats per bin, whose values are undefined afterwards */
	int (*make_pair)(struct projection *a, const struct rule *rule, const struct buf *y, const struct buf *p,
			 const struct buf *row, struct buf *ret_pair, struct err *err);
	int (*back_sums)(struct projection *a, const struct buf *pair, bool add, struct buf *num, struct buf *den,
			 struct err *err);
	bool (*fused)(const struct projection *a);
	int (*forward_pair)(struct projection *a, const struct rule *rule, const struct buf *x, const struct buf *y,
			    const struct buf *row, struct buf *ret_pair, struct err *err);
	int (*back_update)(struct projection *a, const struct rule *rule, const struct buf *pair, struct buf *x, struct err *err);
	int (*sub_iterate)(struct projection *a, const struct rule *rule, const struct buf *y, const struct buf *row,
			   struct buf *work, struct buf *x, struct err *err);

	/* List mode. `events`: EVENT_FLOATS floats for each event. events_create() allocates all that it needs, events_bytes()
	 * at most; the other functions allocate nothing.
	 *   events_sort     sort events in place so that neighbours pass through the same voxels: the others are then faster
	 *   events_forward  y_e = a_e x
	 *   events_back     x += sum of q_e a_e
	 *   events_ratio    sum += sum of a_e / (a_e x + add_e), over the events whose divisor is above `floor`; sum must
	 *                  not be x */
	size_t (*events_bytes)(struct device *dev, const struct events_spec *spec);
	int (*events_create)(struct device *dev, const struct events_spec *spec, struct events **ret, struct err *err);
	void (*events_free)(struct events *a); /* accepts NULL */
	int (*events_sort)(struct events *a, struct buf *events, struct err *err);
	int (*events_forward)(struct events *a, const struct buf *events, const struct buf *x, struct buf *ret_y,
			      struct err *err);
	int (*events_back)(struct events *a, const struct buf *events, const struct buf *q, struct buf *x, struct err *err);
	int (*events_ratio)(struct events *a, const struct buf *events, float floor, const struct buf *x, struct buf *sum,
			    struct err *err);

	/* Simulate single scatter (kernels/scatter.h): ret[k n_pairs + i] is S of pair i and TOF bin k (without time of flight: k
	 * = 0). activity, mu (1/mm): grid_size() floats. Allocates and releases tables for SCATTER_BATCH points: LEG_FIELDS
	 * floats for each point and detector, with time of flight also its profile. Every run gives bitwise the same result. */
	int (*scatter_pairs)(const struct scatter_spec *spec, const struct buf *activity, const struct buf *mu, struct buf *ret,
			     struct err *err);

	/* Mark the support (the voxels to reconstruct) from the masks of the views (SCAN_DBT, EXACT or SLICES). For each voxel: x
	 * = -1 (air) if the bin nearest to its centre has mask < 0; else, unless x < 0, x = 1 if a bin with mask > 0 is within
	 * one voxel of it (slice_weight() > 0); else x is unchanged. The caller sets x = 0 and then calls mark() for every
	 * projection. */
	int (*mark)(struct projection *a, struct buf *x, struct err *err);
};

struct device {
	const struct device_ops *ops;
	char name[96];	    /* "cpu (2 threads, avx512f)", "cuda:0 (NVIDIA H200)": for logs and provenance */
	size_t memory;	    /* bytes: free when the device was opened (CUDA), installed in the machine (CPU); 0: unknown */
	size_t host_memory; /* bytes of main memory that this process may use (node/base/device_names.h); 0: no limit */
	int index;	    /* N of cuda:N */
	int threads;	    /* CPU: threads that have scratch_bytes() each; CUDA: 1 */
	void *state;	    /* private to the device */
};

/* Open a device. `spec`: "cpu", "cpu:THREADS", "cuda", "cuda:N" or "auto" (a CUDA device if there is one, else the CPU;
 * device->name tells which). The caller owns the device. ENODEV: no such device, or a build without CUDA. */
int device_open(const char *spec, struct device **ret_dev, struct err *err);
struct device *device_close(struct device *dev); /* accepts NULL; returns NULL */

/* Call `each` once for every CPU and CUDA device that can be opened; for `tomonode devices`. */
int device_list(void (*each)(void *ctx, const char *spec, const char *name, size_t memory), void *ctx);

/* Return EINVAL if a slot of the table is empty; every device_xxx_open() calls it. */
int device_check(const struct device_ops *ops, struct err *err);

/* Return EINVAL if these arguments of prior_sums() are invalid; every device's function calls it. */
int device_check_prior(const struct prior *p, const struct buf *x, const struct grid *g, const int halo[2], const struct buf *num,
		       const struct buf *den, struct err *err);

/* Return EINVAL if these arguments of store() are invalid; every device's function calls it. */
int device_check_store(const struct buf *x, const struct stored_form *form, const struct buf *ret_values, struct err *err);

/* Return EINVAL if these arguments of scatter_pairs() are invalid; every device's function calls it. */
int device_check_scatter(const struct scatter_spec *spec, const struct buf *activity, const struct buf *mu, const struct buf *ret,
			 struct scatter_model *ret_model, struct err *err);

/* The constructors that device_open() calls. In a build without CUDA the CUDA one is a stub that returns ENODEV. */
int device_cpu_open(int threads, struct device **ret_dev, struct err *err);
int device_cuda_open(int index, struct device **ret_dev, struct err *err);
int device_cuda_count(void);
/* For callers that use CUDA themselves, too: the current device of the calling thread, -1: none; make it that again; the stream
 * of QUEUE_WORK, NULL on another device. */
int device_cuda_current(void);
void device_cuda_make_current(int index);
void *device_cuda_stream(const struct device *dev);
size_t device_cuda_memory(int index); /* bytes of its memory in total, also used ones; 0: unknown. Does not open the device. */

/* A CPU device for tests that finds memory errors. New and freed memory holds NaN. An operation on a freed buffer, or one that
 * writes past the end of a buffer, returns EFAULT. device_poison_check() checks all memory, including freed memory;
 * device_close() aborts the process if that check fails. */
int device_poison_open(int threads, struct device **ret_dev, struct err *err);
int device_poison_check(struct device *dev, struct err *err);

/* Return a view of n floats of b from index `at`. It shares the memory of b; do not release it. */
struct buf buf_part(const struct buf *b, size_t at, size_t n);

/* For devices: -EINVAL if there is no such queue. */
int device_check_queue(const struct device *dev, enum device_queue queue, struct err *err);

/* -EINVAL if two vectors have different lengths; `what`: the operation, for the message. */
int buf_same_size(const char *what, const struct buf *x, const struct buf *y, struct err *err);
void buf_release(struct buf *b); /* accepts an empty buffer; leaves it empty */

#ifdef __cplusplus
}
#endif
#endif
