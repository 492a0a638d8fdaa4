/* cuda_volume.cu - passes over a volume that look at neighbours. */
#include "kernels/cuda.cuh"

#include <errno.h>

int cuda_blur(const struct buf *x, const struct grid *, const double *, struct buf *, struct buf *, struct err *err)
{
	return err_set(err, ENOTSUP, "%s: blur", x->dev->name);
}

int cuda_prior_gradient(const struct prior *, const struct buf *x, const struct grid *, struct buf *, struct err *err)
{
	return err_set(err, ENOTSUP, "%s: prior", x->dev->name);
}

int cuda_back_interpolated(struct projection *a, const struct buf *, bool, struct buf *, struct err *err)
{
	return err_set(err, ENOTSUP, "%s: back_interpolated", a->dev->name);
}
