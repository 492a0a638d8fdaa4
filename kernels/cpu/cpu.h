/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the CPU device and the poison device, which wraps it: state, projections, and the functions of its files.
 * - Each value of a result is computed by one thread; the order of its additions depends neither on the number of threads nor on
 *   the tiles. So every mode is bitwise repeatable, and `deterministic` has no effect.
 * - Rows are processed in blocks of CPU_BLOCK results. A block starts at a multiple of CPU_BLOCK in the whole row, even if the
 *   tile starts elsewhere. */
#ifndef TOMONODE_KERNELS_CPU_H
#define TOMONODE_KERNELS_CPU_H

#ifdef _OPENMP
#include <omp.h>
#endif

#include "kernels/device.h"
#include "kernels/slice_map.h"

#define CPU_BLOCK 16	  /* one AVX-512 vector of floats; two of AVX2 */
#define CPU_BACK_VIEW 16  /* floats of a thread's scratch for the data that it stores per view */
#define CPU_BACK_STRIP 16 /* ... and per strip of a view */

#ifdef _OPENMP
#define cpu_thread() omp_get_thread_num()
#define cpu_team() omp_get_num_threads()
#else
#define cpu_thread() 0
#define cpu_team() 1
#endif

/* Positions of the inputs of CPU_BLOCK results. Forward: result l is at input position base + (f + scale l). Back: the bins that
 * touch voxel l start at base + ceil(f + l / scale); bin base + b is at position s + scale b of the block. */
struct cpu_block {
	int base;
	float f, s;
};

struct cpu_path_loops;
struct cpu_line_loops;
struct cpu_event_loops;

/* The inner loops, one table per instruction set. Input rows are padded with zeros; index 0 is at row[at]. */
struct cpu_rows {
	const char *name;
	/* acc[l] += linear interpolation of row, for n blocks of results */
	void (*resample)(float *acc, const float *row, const struct cpu_block *block, int n, float scale);
	/* out = sum over t < taps of w[t] * (row t of r); taps >= 1 */
	void (*combine)(float *out, const float *r, size_t stride, const float *w, int taps, int n);
	/* exact adjoint of resample: num[l] += sum of weight * q over the bins that touch voxel l (with `first`: = instead of
	 * +=); the same for den from d unless d is NULL */
	void (*gather)(float *num, float *den, const float *q, const float *d, const struct cpu_block *block, int n, bool first,
		       float scale, int taps);
	/* Multiply by ray lengths: length = sqrt(len_u + len_v) where the mask is above 0, else 0. lengths(): q = from_q *
	 * length, d = from_d * length (d may be NULL). finish(): out = acc * length, or with `add` out += acc * length. */
	void (*lengths)(float *q, float *d, const float *from_q, const float *from_d, const float *mask, const float *len_u,
			float len_v, int n);
	void (*finish)(float *out, const float *acc, bool add, const float *mask, const float *len_u, float len_v, int n);
	/* The formulas of kernels/rules.h, with one loop per rule. Pairs are 0 where the mask is not above 0; p and row are not
	 * read if the rule does not use them. */
	void (*pairs)(const struct rule *rule, const float *y, const float *p, const float *row, const float *mask, float *q,
		      float *d, int n);
	/* q = rule_data_bin(); p may be q; row, mult and add may be NULL */
	void (*bins)(const struct rule *rule, const float *y, const float *p, const float *row, const float *mult,
		     const float *add, float *q, int n);
	void (*voxels)(const struct rule *rule, const float *num, const float *den, float *x, int n);
	const struct cpu_path_loops *paths;   /* see kernels/cpu/cpu_paths.h */
	const struct cpu_line_loops *lines;   /* see kernels/cpu/cpu_lines.h */
	const struct cpu_event_loops *events; /* see kernels/cpu/cpu_events.h */
};

const struct cpu_rows *cpu_rows_best(void);
const struct cpu_rows *cpu_rows_at(int index); /* tables that this processor can run, slowest first; NULL after the last */
extern const struct cpu_rows cpu_rows_avx512;

struct cpu_host; /* a block of host memory */

struct cpu_state {
	int threads;
	const struct cpu_rows *rows;
	bool poison;	/* fill new scratch memory with NaN */
	float *scratch; /* shared by all projections, threads * per_thread floats */
	size_t scratch_floats;
	struct cpu_host *host; /* list of all blocks, used and free */
};

/* Indices first <= i < end. */
struct cpu_span {
	int first, end;
};

/* One slice in one view, or in one strip of it, for the slice-by-slice operator. */
struct cpu_slice {
	struct slice_map map;
	struct cpu_span bins;		 /* bins along u that touch a voxel of the slice */
	struct cpu_span voxels;		 /* voxels along x that a bin touches */
	const struct cpu_block *forward; /* blocks_u elements */
	const struct cpu_block *back;	 /* blocks_x elements */
	int taps;			 /* largest number of bins along u that touch a voxel */
};

/* Return the floats of a thread's scratch for one slice with its own blocks. */
static inline size_t cpu_slice_floats(int blocks)
{
	size_t bytes = sizeof(struct cpu_slice) + (size_t)blocks * sizeof(struct cpu_block);

	return (bytes / sizeof(float) + CPU_BLOCK) / CPU_BLOCK * CPU_BLOCK;
}

/* Return the floats of a thread's scratch for n spans. */
static inline size_t cpu_span_floats(int n)
{
	return ((size_t)n * sizeof(struct cpu_span) / sizeof(float) + CPU_BLOCK - 1) / CPU_BLOCK * CPU_BLOCK;
}

struct cpu_paths; /* defined in cpu_paths.c */
struct cpu_lines; /* defined in cpu_lines.c */

struct projection {
	struct device *dev;
	enum projection_model model;
	int strip_rows; /* rows of a strip of bins (kernels/slice_map.h); n_v: the detector stands still */
	const struct scan *scan;
	int first, n_views;
	struct grid grid;
	struct buf mask;    /* mem is NULL: use every bin */
	int tile_u, tile_v; /* forward: bins per tile */
	int tile_x, tile_y; /* back: voxel columns per tile */
	double sampling;    /* SAMPLED: distance of points, mm */
	bool stack;	    /* uses lines (kernels/lines.h) */
	bool by_rows;	    /* a stack of one slice, without a table (kernels/line_rows.h) */
	int strips;	    /* SLICES: largest number of strips that a tile of the back pass touches in one slice of a view */
	struct cpu_paths *paths; /* PATHS and JOSEPH, else NULL */
	struct cpu_lines *lines; /* stacks with PATHS, JOSEPH or SAMPLED, else NULL */
	/* the members below: PROJECTION_SLICES only */
	int blocks_u, blocks_x;
	int pad_u, pad_x;	      /* zeros on either side of a row of bins and of a row of voxels, floats */
	int footprint_u, footprint_v; /* largest number of bins along u and v onto which a tile of the back pass projects (its
					 footprint) */
	size_t thread_floats;	      /* scratch of one thread, floats */
	struct cpu_slice *slice;      /* n_views * n_z elements; with strips NULL: each thread computes its own */
	struct cpu_block *block;      /* storage of the blocks that the slices point to */
	float *len_u, *len_v; /* n_views rows of n_u and of n_v floats: see slice_length_u(); with strips len_v is followed by
				 n_views rows of n_v floats, slice_stretch() */
};

/* Arguments of a back pass: num = A'q and den = A'd, or an update of x without storing them. */
struct cpu_back {
	const float *q, *d; /* n_out floats each; d NULL: only q is projected back, of the bins that the mask allows */
	float *num, *den;   /* den: only with d */
	bool add;	    /* add to num and den */
	const struct rule *rule;
	float *x; /* if not NULL: the rule updates x, and num and den are not used */
};

/* Arguments of a forward pass: y = A x, or a pair. */
struct cpu_forward {
	const float *x;
	float *out; /* y; NULL if there is a rule */
	bool add;   /* add to y */
	const struct rule *rule;
	const float *y, *row;
	float *q, *d;
};

static inline struct cpu_state *cpu_state(const struct device *dev)
{
	return dev->state;
}

static inline int cpu_min(int a, int b)
{
	return a < b ? a : b;
}

static inline int cpu_max(int a, int b)
{
	return a > b ? a : b;
}

/* device_cpu.c */
int cpu_open(const char *kind, const struct device_ops *ops, struct cpu_state *state, int threads, struct device **ret_dev,
	     struct err *err);
extern const struct device_ops device_cpu_ops;
void cpu_state_clear(struct cpu_state *state); /* free the state's memory */
void *
cpu_memory(size_t bytes); /* allocate memory aligned to a cache line, or to huge pages if it is large; release with free() */
int cpu_scratch(struct device *dev, size_t thread_floats, struct err *err);

/* cpu_vector.c */
int cpu_fill(struct buf *x, float value, struct err *err);
int cpu_copy(const struct buf *x, struct buf *ret, struct err *err);
int cpu_permute(struct device *dev, const struct strides *s, const float *from, float *to, struct err *err);
int cpu_multiply(const struct buf *x, const struct buf *y, struct buf *ret, struct err *err);
int cpu_axpy(float a, const struct buf *x, struct buf *y, struct err *err);
int cpu_threshold(struct buf *x, float at, float value, struct err *err);
int cpu_shape(const struct buf *columns, float away, float least, struct buf *x, struct err *err);
int cpu_sum(const struct buf *x, double *ret, struct err *err);
int cpu_dot(const struct buf *x, const struct buf *y, double *ret, struct err *err);
int cpu_tally(const struct buf *x, float offset, float step, size_t stride, uint64_t bins[65536], struct tally *ret_tally,
	      struct err *err);
int cpu_store(const struct buf *x, const struct stored_form *form, struct buf *ret_values, struct err *err);
int cpu_log_likelihood(const struct buf *y, const struct buf *p, float floor, double *ret, struct err *err);

/* cpu_rules.c */
int cpu_rule_check(const struct rule *rule, struct err *err);
int cpu_rule_bins(const struct rule *rule, const struct buf *y, const struct buf *p, const struct buf *row,
		  const struct buf *mult, const struct buf *add, struct buf *ret_q, struct err *err);
int cpu_rule_voxels(const struct rule *rule, const struct buf *num, const struct buf *den, struct buf *x, struct err *err);
void cpu_rule_pairs(struct projection *a, const struct rule *rule, const float *y, const float *p, const float *row,
		    float *pair); /* pairs of all bins; p and row are NULL if the rule does not use them */
void cpu_rule_weigh(struct projection *a, const struct rule *rule, float *pair); /* if rule->weighted: rule_weigh() */

/* cpu_projection.c */
size_t cpu_projection_bytes(struct device *dev, const struct projection_spec *spec);
size_t cpu_scratch_bytes(struct device *dev, const struct projection_spec *spec);
int cpu_projection_create(struct device *dev, const struct projection_spec *spec, struct projection **ret, struct err *err);
void cpu_projection_free(struct projection *a);
int cpu_forward(struct projection *a, const struct buf *x, bool add, struct buf *y, struct err *err);
int cpu_adjoint(struct projection *a, const struct buf *y, bool add, struct buf *x, struct err *err);
int cpu_make_pair(struct projection *a, const struct rule *rule, const struct buf *y, const struct buf *p, const struct buf *row,
		  struct buf *ret_pair, struct err *err);
int cpu_back_sums(struct projection *a, const struct buf *pair, bool add, struct buf *num, struct buf *den, struct err *err);
bool cpu_fused(const struct projection *a);
int cpu_forward_pair(struct projection *a, const struct rule *rule, const struct buf *x, const struct buf *y,
		     const struct buf *row, struct buf *ret_pair, struct err *err);
int cpu_back_update(struct projection *a, const struct rule *rule, const struct buf *pair, struct buf *x, struct err *err);
int cpu_sub_iterate(struct projection *a, const struct rule *rule, const struct buf *y, const struct buf *row, struct buf *work,
		    struct buf *x, struct err *err);

/* cpu_paths.c: PROJECTION_PATHS and PROJECTION_JOSEPH */
size_t cpu_paths_table_bytes(const struct projection *a);    /* upper bound of what cpu_paths_create() allocates, bytes */
size_t cpu_paths_scratch(const struct projection *a);	     /* scratch of each thread, floats */
int cpu_paths_create(struct projection *a, struct err *err); /* sets a->paths */
void cpu_paths_free(struct cpu_paths *p);
void cpu_paths_forward(struct projection *a, const struct cpu_forward *f); /* without rules */
void cpu_paths_back(struct projection *a, const struct cpu_back *b);	   /* q only, without rules */

/* cpu_convolve.c */
int cpu_convolve(const struct buf *y, size_t n_outer, int n, size_t n_inner, const float *kernel, bool transforms,
		 struct buf *ret, struct err *err);
bool cpu_transforms(const struct device *dev, int n);

/* cpu_step_rate.c */
int cpu_step_rate(struct device *dev, double *ret_per_s, struct err *err);

/* cpu_interpolated.c */
int cpu_back_interpolated(struct projection *a, const struct buf *y, bool add, struct buf *x, struct err *err);

/* cpu_lines.c: stacks of 2-D parallel beams */
size_t cpu_lines_bytes(const struct projection *a);	     /* upper bound of what cpu_lines_create() allocates, bytes */
int cpu_lines_create(struct projection *a, struct err *err); /* sets a->lines */
void cpu_lines_free(struct cpu_lines *l);
void cpu_lines_forward(struct projection *a, const struct cpu_forward *f); /* without rules */
void cpu_lines_back(struct projection *a, const struct cpu_back *b);	   /* q only, without rules */

/* cpu_lines_interpolated.c: back_interpolated() for geometries with lines_fit() and at least two radial bins; needs no
 * a->lines */
int cpu_lines_interpolated(struct projection *a, const float *y, bool add, float *x, struct err *err);
int cpu_row_sweep(struct projection *a, float relaxation, const struct buf *y, struct buf *x, struct err *err);

/* cpu_volume.c */
int cpu_blur(const struct buf *x, const struct grid *grid, const double sigma[3], struct buf *work, struct buf *ret,
	     struct err *err);
int cpu_prior_sums(const struct prior *prior, const struct buf *x, const struct grid *grid, const int halo[2], bool ratio,
		   struct buf *num, struct buf *den, struct err *err);

/* cpu_events.c; cpu_events_sort.c */
size_t cpu_events_bytes(struct device *dev, const struct events_spec *spec);
int cpu_events_create(struct device *dev, const struct events_spec *spec, struct events **ret, struct err *err);
void cpu_events_free(struct events *a);
int cpu_events_sort(struct events *a, struct buf *events, struct err *err);
int cpu_events_forward(struct events *a, const struct buf *events, const struct buf *x, struct buf *ret_y, struct err *err);
int cpu_events_back(struct events *a, const struct buf *events, const struct buf *q, struct buf *x, struct err *err);
int cpu_events_ratio(struct events *a, const struct buf *events, float floor, const struct buf *x, struct buf *sum,
		     struct err *err);
const struct buf *cpu_events_detectors(const struct events *a);

/* cpu_scatter.c */
int cpu_scatter_pairs(const struct scatter_spec *spec, const struct buf *activity, const struct buf *mu, struct buf *ret,
		      struct err *err);

/* cpu_mark.c */
int cpu_mark(struct projection *a, struct buf *x, struct err *err);

/* cpu_exact.c; no rules */
void cpu_exact_forward(struct projection *a, const struct cpu_forward *f);
void cpu_exact_back(struct projection *a, const struct cpu_back *b);

/* cpu_slices.c */
void cpu_slices_forward(struct projection *a, const struct cpu_forward *f);
void cpu_slices_back(struct projection *a, const struct cpu_back *b);

/* cpu_slices_tables.c */
void cpu_slices_shape(struct projection *a); /* set the sizes of tiles, padding, footprint and scratch; allocates nothing */
size_t cpu_slices_bytes(const struct projection *a); /* bytes of the tables; call cpu_slices_shape() first */
int cpu_slices_tables(struct projection *a, struct err *err);
struct cpu_span cpu_footprint(const struct slice_map *map, int axis, int first, int end,
			      int n); /* return the bins, from 0 to n - 1, that touch the voxels [first, end): their footprint */
static inline bool cpu_has_strips(const struct projection *a)
{
	return a->strip_rows < a->scan->n_v;
}

/* Return slice_stretch() of the rows of a view, or NULL: it is 1. */
static inline float *cpu_stretch(const struct projection *a, int view)
{
	return cpu_has_strips(a) ? a->len_v + (size_t)(a->n_views + view) * (size_t)a->scan->n_v : NULL;
}

/* Return the map of slice k in a strip of a view, numbered from 0. */
static inline struct slice_map cpu_strip_map(const struct projection *a, int view, int k, int strip)
{
	return slice_map_strip(a->scan, &a->scan->views[a->first + view], &a->grid, k, strip * a->strip_rows, a->strip_rows);
}

struct cpu_tile { /* voxel columns */
	int x0, x1, y0, y1;
};
/* Return the rows of bins that may touch the rows of voxels [y0, y1) in slice k; only with strips. */
struct cpu_span cpu_strip_rows(const struct projection *a, int view, int k, int y0, int y1);
/* Find the bins that touch a tile in any slice of a view: its footprint. */
void cpu_tile_footprint(const struct projection *a, int view, const struct cpu_tile *t, struct cpu_span *ret_u,
			struct cpu_span *ret_v);
/* Compute *s from its map: blocks [f0, f1) of bins into `forward` and [b0, b1) of voxels into `back`, which have blocks_u and
 * blocks_x elements. */
void cpu_slice_make(const struct projection *a, struct cpu_slice *s, struct cpu_block *forward, int f0, int f1,
		    struct cpu_block *back, int b0, int b1);

#endif
