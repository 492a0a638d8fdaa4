/* The iteration of every algorithm: a rule (kernels/rules.h) applied subset after subset.
 *
 *   p = A_s x;   (q, d) = rule_bin(y_s, p, l_s);   x = rule_voxel(x, A_s'q, A_s'd)
 *
 * iterate_run: volume and data on the device. iterate_stream (recon/iterate_stream.h): in host memory. A voxel that is 0 stays 0.
 */
#ifndef TOMONODE_RECON_ITERATE_H
#define TOMONODE_RECON_ITERATE_H

#include "recon/linop.h"
#include "recon/monitor.h"

struct iterate_subset {
	const struct linop *op; /* borrowed; all subsets have the same device and volume */
	struct buf y;		/* bins that do not count have zero rows in op */
	struct buf row;		/* lengths of the rays, mm; mem NULL where the rule does not want them */
};

struct iterate_conf {
	struct rule rule;
	int iterations; /* passes over all subsets */
};

/* Working memory on the device: pair for any operator; p, num and den where one has no fused passes. */
struct iterate_work {
	struct buf pair, p, num, den;
};

/* Floats that iterate_work_alloc() takes: 2 largest_n_out, and largest_n_out + 2 n_in where not all passes are fused. */
size_t iterate_work_size(size_t n_in, size_t largest_n_out, bool fused);
int iterate_work_alloc(struct device *dev, size_t n_in, size_t largest_n_out, bool fused, struct iterate_work *ret_work,
		       struct err *err);
void iterate_work_release(struct iterate_work *w); /* an empty one is fine */

/* x: the start, and the result. Allocates nothing. ECANCELED when the monitor says so (x is then between two updates). */
int iterate_run(const struct iterate_conf *conf, const struct iterate_subset *subset, size_t n_subsets, struct iterate_work *work,
		struct buf *x, const struct monitor *monitor, struct err *err);

/* What is wrong with a rule or a number of iterations: EINVAL. */
int iterate_check(const struct iterate_conf *conf, struct err *err);

#endif
