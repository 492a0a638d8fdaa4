/* Expectation maximisation: MLEM (one subset; Shepp & Vardi 1982) and OSEM (Hudson & Larkin 1994).
 *
 *   x <- x / (A_s'1) * A_s'(y_s / (A_s x)),   subset after subset, iteration after iteration
 *
 * A bin with A_s x <= floor gives no ratio (it is skipped, not divided); a voxel with A_s'1 <= floor keeps its value. x stays >=
 * 0.
 */
#ifndef TOMONODE_RECON_EM_H
#define TOMONODE_RECON_EM_H

#include "recon/linop.h"
#include "recon/monitor.h"

struct em_subset {
	const struct linop *op; /* borrowed; all subsets have the same device and volume */
	struct buf y;		/* >= 0; bins that do not count have zero rows in op */
};

struct em_conf {
	int iterations;
	float floor; /* of A x (no unit) and of A'1 (mm), > 0 */
};

/* Floats that em_run allocates on the device, besides what is passed in. */
size_t em_work_size(size_t n_in, size_t largest_n_out, bool fused);

/* x: the starting volume, > 0, and the result. ECANCELED when the monitor says so (x is then between two updates).
 * Where every operator has the fused passes they are used. Nothing is allocated once the first iteration has begun. */
int em_run(const struct em_conf *conf, const struct em_subset *subset, size_t n_subsets, struct buf *x,
	   const struct monitor *monitor, struct err *err);

#endif
