/* SPDX-License-Identifier: Apache-2.0 */
/* psf.c - an operator applied to a volume blurred with a Gaussian. */
#include "recon/core/psf.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "kernels/blur.h"

#define D (PSF_WORK_VOLUMES - 1) /* index of the volume that holds D */

struct psf {
	struct linop op; /* first member */
	struct linop *a; /* owned */
	struct grid grid;
	double sigma[3]; /* mm */
	struct buf work[PSF_WORK_VOLUMES];
};

static struct psf *psf_of(const struct linop *op)
{
	return (struct psf *)op;
}

static int psf_blur(struct psf *p, const struct buf *x, struct buf *ret, struct err *err)
{
	return p->op.dev->ops->blur(x, &p->grid, p->sigma, &p->work[1], ret, err);
}

/* Compute D times the blurred volume into work[0]. */
static int psf_spread(struct psf *p, const struct buf *x, struct err *err)
{
	int r = psf_blur(p, x, &p->work[0], err);

	return r < 0 ? r : p->op.dev->ops->multiply(&p->work[0], &p->work[D], &p->work[0], err);
}

static int psf_apply(const struct linop *op, const struct buf *x, struct buf *ret_y, struct err *err)
{
	struct psf *p = psf_of(op);
	int r = psf_spread(p, x, err);

	return r < 0 ? r : p->a->apply(p->a, &p->work[0], ret_y, err);
}

static int psf_apply_add(const struct linop *op, const struct buf *x, struct buf *y, struct err *err)
{
	struct psf *p = psf_of(op);
	int r = psf_spread(p, x, err);

	return r < 0 ? r : p->a->apply_add(p->a, &p->work[0], y, err);
}

static int psf_adjoint(const struct linop *op, const struct buf *y, struct buf *ret_x, struct err *err)
{
	struct psf *p = psf_of(op);
	int r = p->a->adjoint(p->a, y, &p->work[0], err);

	if (r == 0)
		r = op->dev->ops->multiply(&p->work[0], &p->work[D], &p->work[0], err);
	return r < 0 ? r : psf_blur(p, &p->work[0], ret_x, err);
}

static int psf_adjoint_add(const struct linop *op, const struct buf *y, struct buf *x, struct err *err)
{
	struct psf *p = psf_of(op);
	int r = psf_adjoint(op, y, &p->work[2], err);

	return r < 0 ? r : op->dev->ops->axpy(1, &p->work[2], x, err);
}

static int psf_make_pair(const struct linop *op, const struct rule *rule, const struct buf *y, const struct buf *p,
			 const struct buf *row, struct buf *ret_pair, struct err *err)
{
	struct psf *psf = psf_of(op);

	return psf->a->make_pair(psf->a, rule, y, p, row, ret_pair, err);
}

static int psf_adjoint_sums(const struct linop *op, const struct buf *pair, bool add, struct buf *num, struct buf *den,
			    struct err *err)
{
	(void)op, (void)pair, (void)add, (void)num, (void)den;
	return err_set(err, ENOTSUP, "resolution model: sums of pairs are not supported");
}

static void psf_destroy(struct linop *op)
{
	linop_free(psf_of(op)->a);
	free(op);
}

static int make_weights(const struct grid *grid, double fwhm, struct buf *ret_d, struct err *err)
{
	size_t n = grid_size(grid), n_z = (size_t)grid->n[2], column = grid_column(grid);
	float *host = calloc(n + 2 * n_z, sizeof(*host)), *weight = host + n, *slice = weight + n_z;
	int reach, r;

	if (!host)
		return err_set(err, ENOMEM, "resolution model: cannot allocate %zu voxels", n);
	reach = blur_weights(fwhm / PSF_FWHM_PER_SIGMA, grid->h[2], grid->n[2], weight);
	for (int k = 0; k < grid->n[2]; k++)
		slice[k] = (float)(1 / psf_inside(weight, reach, grid->n[2], k));
	for (size_t i = 0; i < n; i++) { /* padding stays 0 */
		size_t k = grid->z_fastest ? i % column : i / grid_step(grid, 2);

		host[i] = k < n_z ? slice[k] : 0;
	}
	r = ret_d->dev->ops->upload(ret_d, host, err);
	free(host);
	return r;
}

int psf_work_alloc(struct session_memory *m, const struct grid *grid, double fwhm, struct buf ret_work[PSF_WORK_VOLUMES],
		   struct err *err)
{
	for (int i = 0; i < PSF_WORK_VOLUMES; i++)
		session_alloc(m, grid_size(grid), &ret_work[i], err);
	return m->rc < 0 ? m->rc : make_weights(grid, fwhm, &ret_work[D], err);
}

int psf_create(struct linop *a, const struct grid *grid, double fwhm, const struct buf work[PSF_WORK_VOLUMES],
	       struct linop **ret_op, struct err *err)
{
	struct psf *p;

	if (!(fwhm > 0) || !isfinite(fwhm))
		return err_set(err, EINVAL, "resolution model: FWHM of %g mm; allowed: above 0", fwhm);
	if (a->n_in != grid_size(grid))
		return err_set(err, EINVAL, "resolution model: the operator has %zu voxels, but the grid has %zu", a->n_in,
			       grid_size(grid));
	for (int i = 0; i < PSF_WORK_VOLUMES; i++)
		if (work[i].dev != a->dev || work[i].n != a->n_in)
			return err_set(err, EINVAL,
				       "resolution model: a work volume has %zu floats, but the volume has %zu voxels", work[i].n,
				       a->n_in);
	p = calloc(1, sizeof(*p));
	if (!p)
		return err_set(err, ENOMEM, "resolution model: out of memory");
	p->a = a;
	p->grid = *grid;
	for (int c = 0; c < 3; c++)
		p->sigma[c] = fwhm / PSF_FWHM_PER_SIGMA;
	for (int i = 0; i < PSF_WORK_VOLUMES; i++)
		p->work[i] = work[i];
	p->op = (struct linop){
		.n_in = a->n_in,
		.n_out = a->n_out,
		.dev = a->dev,
		.apply = psf_apply,
		.apply_add = psf_apply_add,
		.adjoint = psf_adjoint,
		.adjoint_add = psf_adjoint_add,
		.make_pair = psf_make_pair,
		.adjoint_sums = psf_adjoint_sums,
		.destroy = psf_destroy,
	};
	*ret_op = &p->op;
	return 0;
}
