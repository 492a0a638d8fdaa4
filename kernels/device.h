/* Devices: where vectors live and operators run. One table of functions per kind; a table with an empty slot is refused.
 *
 * - A `struct buf` is float32 memory of one device. Algorithms hand it around, never look inside.
 * - A `struct projection` is a prepared system matrix A (rows: bins, columns: voxels, entries in mm). Everything it needs is
 *   allocated when it is created; forward() and adjoint() allocate nothing.
 * - Rows whose mask is 0 are zero rows: forward gives 0 there, adjoint ignores the bin.
 * - A device and its objects belong to one thread at a time; the device threads inside itself.
 */
#ifndef TOMONODE_KERNELS_DEVICE_H
#define TOMONODE_KERNELS_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/err.h"
#include "kernels/geometry.h"

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
};

struct projection_spec {
	enum projection_model model;
	const struct scan *scan; /* borrowed, must outlive the projection */
	int first, n_views;	 /* the views [first, first + n_views) of the scan: a subset is contiguous */
	const struct grid *grid; /* copied */
	const struct buf *mask;	 /* n_views * n_v * n_u of 0 or 1, borrowed; NULL: every bin counts */
	int tile[2];	    /* unit of work: bins along u and v (forward), voxel columns along x and y (back); 0: the whole */
	bool deterministic; /* bitwise the same result in every run */
};

struct device_ops {
	const char *kind; /* "cpu", "cuda" */
	void (*destroy)(struct device *dev);

	/* memory; alloc leaves the content undefined */
	int (*alloc)(struct device *dev, size_t n, struct buf *ret_buf, struct err *err);
	void (*release)(struct buf *b);
	int (*upload)(struct buf *dst, const float *src, struct err *err);   /* dst->n floats */
	int (*download)(const struct buf *src, float *dst, struct err *err); /* src->n floats */

	/* vectors of equal length; ret may be an input */
	int (*fill)(struct buf *x, float value, struct err *err);
	int (*copy)(const struct buf *x, struct buf *ret, struct err *err);
	int (*multiply)(const struct buf *x, const struct buf *y, struct buf *ret, struct err *err);
	int (*axpy)(float a, const struct buf *x, struct buf *y, struct err *err); /* y += a x */
	int (*ratio)(const struct buf *y, const struct buf *p, float floor, struct buf *ret,
		     struct err *err); /* p > floor ? y/p : 0 */
	int (*update)(struct buf *x, const struct buf *c, const struct buf *sens, float floor,
		      struct err *err); /* sens > floor ? x c/sens : x */
	int (*sum)(const struct buf *x, double *ret, struct err *err);
	int (*dot)(const struct buf *x, const struct buf *y, double *ret, struct err *err);
	int (*log_likelihood)(const struct buf *y, const struct buf *p, float floor, double *ret,
			      struct err *err); /* sum over p > floor of y ln p - p */

	/* The system matrix. projection_bytes: what this projection alone allocates; scratch_bytes: working memory that all
	 * projections of the device share, so that the largest counts once. */
	size_t (*projection_bytes)(struct device *dev, const struct projection_spec *spec);
	size_t (*scratch_bytes)(struct device *dev, const struct projection_spec *spec);
	int (*projection_create)(struct device *dev, const struct projection_spec *spec, struct projection **ret,
				 struct err *err);
	void (*projection_free)(struct projection *a);
	int (*forward)(struct projection *a, const struct buf *x, struct buf *ret_y, struct err *err); /* y = A x */
	int (*adjoint)(struct projection *a, const struct buf *y, struct buf *ret_x, struct err *err); /* x = A'y */

	/* Fused passes. fused() tells whether this projection has them; where it says no, the plain ones serve.
	 * forward_ratio: p = (A x > floor) ? y / (A x) : 0.   back_update: x = (A'1 > floor) ? x * A'p / A'1 : x, no temporary
	 * volumes. */
	bool (*fused)(const struct projection *a);
	int (*forward_ratio)(struct projection *a, const struct buf *x, const struct buf *y, float floor, struct buf *ret_p,
			     struct err *err);
	int (*back_update)(struct projection *a, const struct buf *p, float floor, struct buf *x, struct err *err);
};

struct device {
	const struct device_ops *ops;
	char name[96]; /* "cpu (2 threads, avx512f)", "cuda:0 (NVIDIA H200)": for logs and provenance */
	size_t memory; /* bytes it has, 0 when unknown */
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
