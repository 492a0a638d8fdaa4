/* SPDX-License-Identifier: Apache-2.0 */
/* The iteration of every algorithm: apply a rule (kernels/rules.h) subset by subset.
 *
 *   p = A_s x;   (q, d) = rule_bin(y_s, p, l_s);   x = rule_voxel(x, A_s'q, A_s'd)
 * If A_s'd depends only on the subset (rule_keeps_den()), the caller may compute it once and keep it. Then pairs (q, d) are not
 * used, a subset may be divided into parts whose A'q are added, and bins may have factors m and a background b:
 *
 *   p = A x;   q = rule_data_bin(y, p, l, m, b);   num = A'q;   x = rule_voxel(x, num - gradient of the penalty, den)
 * Without kept den, a penalty changes both sums: prior_sums() of kernels/device.h.
 * iterate_run(): the volume is in the device's memory; the data are there too, or they are loaded part by part.
 * iterate_stream_run() (recon/core/iterate_stream.h): the volume is in host memory. A voxel that is 0 stays 0. */
#ifndef TOMONODE_RECON_ITERATE_H
#define TOMONODE_RECON_ITERATE_H

#include "recon/core/linop.h"
#include "recon/core/monitor.h"
#include "recon/core/session.h"

/* A part of the bins of a subset whose den is kept. Buffers whose mem is NULL: row: the rule does not use it; mult: all factors m
 * are 1; add: all b are 0. */
struct iterate_part {
	const struct linop *op;
	struct buf y, row, mult, add;
};

struct iterate_subset {
	const struct linop *op; /* borrowed; all subsets have the same device and volume */
	struct buf y;		/* data; in op, the rows of bins that are not used are zero */
	struct buf row;		/* lengths of the rays, mm; mem NULL if the rule does not use them */
	struct buf away;	/* added to p, of an operator without fused passes; mem NULL: nothing. Where it and y are so large
				 * that nothing passes, the transmission model leaves the bin out */
	/* subsets with kept den: used in place of the members above; n_parts = 0: den is not kept */
	struct iterate_part *part;
	size_t n_parts;
	struct buf den; /* A_s'd; for EM A_s'm, the subset's sensitivity */
};

struct iterate_conf {
	struct rule rule;
	int iterations;		   /* passes over all subsets */
	const struct prior *prior; /* the penalty divided by the number of subsets; NULL: no penalty */
	const struct grid *grid;   /* of the volume; needed with a prior */
	/* the members below: only for subsets with kept den */
	int (*load)(void *ctx, struct iterate_part *part, struct err *err); /* called before each use of a part: loads its missing
									       data and its subset's den; NULL: all are present */
	void *ctx;
	double relaxation;	 /* the step of pass n is rule.step / (1 + relaxation n) */
	const struct buf *scale; /* EM_RELAXED: x + step x (num - den) / scale, the same for all subsets; NULL: divide by den */
};

/* Working memory on the device. Used are: pair by every operator; p by operators without fused passes; num and den by these, and
 * with a prior; p and num with subsets whose den is kept. */
struct iterate_work {
	struct buf pair, p, num, den;
};

/* Return the number of floats that iterate_work_alloc() allocates: 2 largest_n_out, plus largest_n_out if an operator has no
 * fused passes, plus 2 n_in if an operator has no fused passes or with a prior. */
size_t iterate_work_size(size_t n_in, size_t largest_n_out, bool fused, bool prior);
/* Allocate it in the memory of a session, with which it is freed. */
int iterate_work_alloc(struct session_memory *m, size_t n_in, size_t largest_n_out, bool fused, bool prior,
		       struct iterate_work *ret_work, struct err *err);
/* For subsets with kept den: allocate largest_n_out + n_in floats. */
int iterate_work_alloc_kept(struct session_memory *m, size_t n_in, size_t largest_n_out, struct iterate_work *ret_work,
			    struct err *err);

/* Run all iterations. x: the start image, then the result. Allocates nothing. ECANCELED: the monitor has cancelled; x is then the
 * result of the last complete update. */
int iterate_run(const struct iterate_conf *conf, const struct iterate_subset *subset, size_t n_subsets, struct iterate_work *work,
		struct buf *x, const struct monitor *monitor, struct err *err);

/* Check the rule and the number of iterations. EINVAL: the message says what is wrong. */
int iterate_check(const struct iterate_conf *conf, struct err *err);

#endif
