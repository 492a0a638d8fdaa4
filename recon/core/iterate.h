/* The iteration of every algorithm: a rule (kernels/rules.h) applied subset after subset.
 *
 *   p = A_s x;   (q, d) = rule_bin(y_s, p, l_s);   x = rule_voxel(x, A_s'q, A_s'd)
 *
 * Where A_s'd depends on the subset alone (rule_keeps_den()) it may be kept: then there are no pairs, the subset may come in
 * parts whose A'q add up, and bins may have factors and a background:
 *
 *   p = A x;   q = rule_data_bin(y, p, l, m, b);   num = A'q;   x = rule_voxel(x, num - gradient of the penalty, den)
 *
 * iterate_run: the volume on the device, the data too or brought part by part. iterate_stream (recon/core/iterate_stream.h): the
 * volume in host memory. A voxel that is 0 stays 0.
 */
#ifndef TOMONODE_RECON_ITERATE_H
#define TOMONODE_RECON_ITERATE_H

#include "recon/core/linop.h"
#include "recon/core/monitor.h"

/* Some of the bins of a subset whose den is kept. Memory that is NULL: row: the rule does not want it; m = 1; b = 0. */
struct iterate_part {
	const struct linop *op;
	struct buf y, row, mult, add;
};

struct iterate_subset {
	const struct linop *op; /* borrowed; all subsets have the same device and volume */
	struct buf y;		/* bins that do not count have zero rows in op */
	struct buf row;		/* lengths of the rays, mm; mem NULL where the rule does not want them */
	/* kept, instead of these; n_parts = 0: not kept */
	struct iterate_part *part;
	size_t n_parts;
	struct buf den; /* A_s'd; for EM A_s'm, the subset's sensitivity */
};

struct iterate_conf {
	struct rule rule;
	int iterations; /* passes over all subsets */
	/* kept subsets alone: */
	int (*load)(void *ctx, struct iterate_part *part, struct err *err); /* before each use of a part: brings what it lacks,
									       and its subset's den; NULL: all is there */
	void *ctx;
	double relaxation;	   /* the step of pass n is rule.step / (1 + relaxation n) */
	const struct prior *prior; /* of a subset: its part of the whole penalty; NULL: none */
	const struct grid *grid;   /* with a prior */
	const struct buf *scale;   /* EM_RELAXED: x + step x (num - den) / scale, the same for all subsets; NULL: den */
};

/* Working memory on the device: pair for any operator; p, num and den where one has no fused passes; p and num for kept subsets
 * and with a prior its gradient. */
struct iterate_work {
	struct buf pair, p, num, den, gradient;
};

/* Floats that iterate_work_alloc() takes: 2 largest_n_out, and largest_n_out + 2 n_in where not all passes are fused. */
size_t iterate_work_size(size_t n_in, size_t largest_n_out, bool fused);
int iterate_work_alloc(struct device *dev, size_t n_in, size_t largest_n_out, bool fused, struct iterate_work *ret_work,
		       struct err *err);
/* For kept subsets: largest_n_out + n_in floats, and n_in more with a prior. */
int iterate_work_alloc_kept(struct device *dev, size_t n_in, size_t largest_n_out, bool prior, struct iterate_work *ret_work,
			    struct err *err);
void iterate_work_release(struct iterate_work *w); /* an empty one is fine */

/* x: the start, and the result. Allocates nothing. ECANCELED when the monitor says so (x is then between two updates). */
int iterate_run(const struct iterate_conf *conf, const struct iterate_subset *subset, size_t n_subsets, struct iterate_work *work,
		struct buf *x, const struct monitor *monitor, struct err *err);

/* What is wrong with a rule or a number of iterations: EINVAL. */
int iterate_check(const struct iterate_conf *conf, struct err *err);

#endif
