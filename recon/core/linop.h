/* SPDX-License-Identifier: Apache-2.0 */
/* Linear operators y = A x between vectors of one device. Algorithms know the physics only through them.
 *
 * - Entries of A are lengths in mm; x and y are float32 vectors of the operator's device, x (u) fastest.
 * - An operator is immutable, but uses its device's working memory; so only the thread that owns the device may use it.
 * - adjoint() is the exact transpose of apply(); linop_adjoint_gap() measures the difference, and tests require at most 1e-5. */
#ifndef TOMONODE_RECON_LINOP_H
#define TOMONODE_RECON_LINOP_H

#include <stdbool.h>

#include "kernels/device.h"

struct linop {
	size_t n_in, n_out;
	struct device *dev; /* borrowed; x and y are in its memory */
	int (*apply)(const struct linop *op, const struct buf *x, struct buf *ret_y, struct err *err);	 /* y = A x */
	int (*apply_add)(const struct linop *op, const struct buf *x, struct buf *y, struct err *err);	 /* y += A x */
	int (*adjoint)(const struct linop *op, const struct buf *y, struct buf *ret_x, struct err *err); /* x = A'y */
	int (*adjoint_add)(const struct linop *op, const struct buf *y, struct buf *x, struct err *err); /* x += A'y */

	/* The passes of a sub-iteration, as in kernels/device.h: pair buffers have 2 n_out floats. */
	int (*make_pair)(const struct linop *op, const struct rule *rule, const struct buf *y, const struct buf *p,
			 const struct buf *row, struct buf *ret_pair, struct err *err);
	int (*adjoint_sums)(const struct linop *op, const struct buf *pair, bool add, struct buf *num, struct buf *den,
			    struct err *err);
	/* The fused passes. An operator has all of them, or none (NULL). */
	int (*apply_pair)(const struct linop *op, const struct rule *rule, const struct buf *x, const struct buf *y,
			  const struct buf *row, struct buf *ret_pair, struct err *err);
	int (*adjoint_update)(const struct linop *op, const struct rule *rule, const struct buf *pair, struct buf *x,
			      struct err *err);
	int (*sub_iterate)(const struct linop *op, const struct rule *rule, const struct buf *y, const struct buf *row,
			   struct buf *work, struct buf *x, struct err *err);
	/* Mark the support from the masks, see mark() in kernels/device.h; NULL: not supported. */
	int (*mark)(const struct linop *op, struct buf *x, struct err *err);
	void (*destroy)(struct linop *op);
};

static inline bool linop_fused(const struct linop *op)
{
	return op->apply_pair && op->adjoint_update && op->sub_iterate;
}

int linop_sensitivity(const struct linop *op, struct buf *ret_sens, struct err *err); /* A'1 */

/* Return |<A x, y> - <x, A'y>| / |<A x, y>| for random x and y, uniform in 0..1; a negative value on error. */
double linop_adjoint_gap(const struct linop *op, unsigned seed, struct err *err);

struct linop *linop_free(struct linop *op); /* accepts NULL; returns NULL */

#endif
