/* projector.c - hands a linear operator's calls to the device's projection. */
#include "recon/projector.h"

#include <errno.h>
#include <stdlib.h>

struct projector {
	struct linop op; /* first */
	struct projection *a;
};

static struct projection *projection_of(const struct linop *op)
{
	return ((const struct projector *)op)->a;
}

static int projector_apply(const struct linop *op, const struct buf *x, struct buf *ret_y, struct err *err)
{
	return op->dev->ops->forward(projection_of(op), x, ret_y, err);
}

static int projector_adjoint(const struct linop *op, const struct buf *y, struct buf *ret_x, struct err *err)
{
	return op->dev->ops->adjoint(projection_of(op), y, ret_x, err);
}

static int projector_apply_ratio(const struct linop *op, const struct buf *x, const struct buf *y, float floor, struct buf *ret_p,
				 struct err *err)
{
	return op->dev->ops->forward_ratio(projection_of(op), x, y, floor, ret_p, err);
}

static int projector_adjoint_update(const struct linop *op, const struct buf *p, float floor, struct buf *x, struct err *err)
{
	return op->dev->ops->back_update(projection_of(op), p, floor, x, err);
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
		.adjoint = projector_adjoint,
		.destroy = projector_destroy,
	};
	if (dev->ops->fused(p->a)) {
		p->op.apply_ratio = projector_apply_ratio;
		p->op.adjoint_update = projector_adjoint_update;
	}
	*ret_op = &p->op;
	return 0;
}
