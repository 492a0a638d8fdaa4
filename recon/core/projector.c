/* SPDX-License-Identifier: Apache-2.0 */
/* projector.c - a linear operator whose functions call the device's projection. */
#include "recon/core/projector.h"

#include <errno.h>
#include <stdlib.h>

struct projector {
	struct linop op; /* first member */
	struct projection *a;
};

static struct projection *projection_of(const struct linop *op)
{
	return ((const struct projector *)op)->a;
}

static int projector_apply(const struct linop *op, const struct buf *x, struct buf *ret_y, struct err *err)
{
	return op->dev->ops->forward(projection_of(op), x, false, ret_y, err);
}

static int projector_apply_add(const struct linop *op, const struct buf *x, struct buf *y, struct err *err)
{
	return op->dev->ops->forward(projection_of(op), x, true, y, err);
}

static int projector_adjoint(const struct linop *op, const struct buf *y, struct buf *ret_x, struct err *err)
{
	return op->dev->ops->adjoint(projection_of(op), y, false, ret_x, err);
}

static int projector_adjoint_add(const struct linop *op, const struct buf *y, struct buf *x, struct err *err)
{
	return op->dev->ops->adjoint(projection_of(op), y, true, x, err);
}

static int projector_make_pair(const struct linop *op, const struct rule *rule, const struct buf *y, const struct buf *p,
			       const struct buf *row, struct buf *ret_pair, struct err *err)
{
	return op->dev->ops->make_pair(projection_of(op), rule, y, p, row, ret_pair, err);
}

static int projector_adjoint_sums(const struct linop *op, const struct buf *pair, bool add, struct buf *num, struct buf *den,
				  struct err *err)
{
	return op->dev->ops->back_sums(projection_of(op), pair, add, num, den, err);
}

static int projector_apply_pair(const struct linop *op, const struct rule *rule, const struct buf *x, const struct buf *y,
				const struct buf *row, struct buf *ret_pair, struct err *err)
{
	return op->dev->ops->forward_pair(projection_of(op), rule, x, y, row, ret_pair, err);
}

static int projector_adjoint_update(const struct linop *op, const struct rule *rule, const struct buf *pair, struct buf *x,
				    struct err *err)
{
	return op->dev->ops->back_update(projection_of(op), rule, pair, x, err);
}

static int projector_sub_iterate(const struct linop *op, const struct rule *rule, const struct buf *y, const struct buf *row,
				 struct buf *work, struct buf *x, struct err *err)
{
	return op->dev->ops->sub_iterate(projection_of(op), rule, y, row, work, x, err);
}

static int projector_mark(const struct linop *op, struct buf *x, struct err *err)
{
	return op->dev->ops->mark(projection_of(op), x, err);
}

static void projector_destroy(struct linop *op)
{
	op->dev->ops->projection_free(projection_of(op));
	free(op);
}

int projector_create(struct device *dev, const struct projection_spec *spec, struct linop **ret_op, struct err *err)
{
	struct projector *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return err_set(err, ENOMEM, "projector: out of memory");
	r = dev->ops->projection_create(dev, spec, &p->a, err);
	if (r < 0) {
		free(p);
		return r;
	}
	p->op = (struct linop){
		.n_in = grid_size(spec->grid),
		.n_out = (size_t)spec->n_views * scan_view_size(spec->scan),
		.dev = dev,
		.apply = projector_apply,
		.apply_add = projector_apply_add,
		.adjoint = projector_adjoint,
		.adjoint_add = projector_adjoint_add,
		.make_pair = projector_make_pair,
		.adjoint_sums = projector_adjoint_sums,
		.mark = projector_mark,
		.destroy = projector_destroy,
	};
	if (dev->ops->fused(p->a)) {
		p->op.apply_pair = projector_apply_pair;
		p->op.adjoint_update = projector_adjoint_update;
		p->op.sub_iterate = projector_sub_iterate;
	}
	*ret_op = &p->op;
	return 0;
}
