/* cpu_volume.c - passes over a volume that look at neighbours. */
#include "kernels/cpu.h"

#include <errno.h>

int cpu_blur(const struct buf *x, const struct grid *grid, const double sigma[3], struct buf *work, struct buf *ret,
	     struct err *err)
{
	(void)x;
	(void)grid;
	(void)sigma;
	(void)work;
	(void)ret;
	return err_set(err, ENOTSUP, "blur");
}

int cpu_prior_gradient(const struct prior *prior, const struct buf *x, const struct grid *grid, struct buf *ret, struct err *err)
{
	(void)prior;
	(void)x;
	(void)grid;
	(void)ret;
	return err_set(err, ENOTSUP, "prior");
}

int cpu_back_interpolated(struct projection *a, const struct buf *y, bool add, struct buf *x, struct err *err)
{
	(void)a;
	(void)y;
	(void)add;
	(void)x;
	return err_set(err, ENOTSUP, "back_interpolated");
}
