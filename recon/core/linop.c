/* SPDX-License-Identifier: Apache-2.0 */
/* linop.c - functions for every operator: sensitivity, adjoint test, release. */
#include "recon/core/linop.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

int linop_sensitivity(const struct linop *op, struct buf *ret_sens, struct err *err)
{
	const struct device_ops *v = op->dev->ops;
	struct buf ones = {0};
	int r = v->alloc(op->dev, op->n_out, &ones, err);

	if (r < 0)
		return r;
	r = v->fill(&ones, 1, err);
	if (r == 0)
		r = op->adjoint(op, &ones, ret_sens, err);
	buf_release(&ones);
	return r;
}

/* xorshift64*: Marsaglia 2003, Vigna 2016. */
static float uniform_number(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (float)((*state * 2685821657736338717u) >> 40) / (1 << 24);
}

static int random_vector(const struct linop *op, size_t n, uint64_t *state, struct buf *ret_buf, struct err *err)
{
	float *host = malloc((n ? n : 1) * sizeof(float));
	int r;

	if (!host)
		return err_set(err, ENOMEM, "adjoint test: cannot allocate %zu floats", n);
	for (size_t i = 0; i < n; i++)
		host[i] = uniform_number(state);
	r = op->dev->ops->alloc(op->dev, n, ret_buf, err);
	if (r == 0)
		r = op->dev->ops->upload(ret_buf, host, err);
	free(host);
	return r;
}

double linop_adjoint_gap(const struct linop *op, unsigned seed, struct err *err)
{
	const struct device_ops *v = op->dev->ops;
	uint64_t state = 0x9e3779b97f4a7c15u ^ ((uint64_t)seed << 20);
	struct buf x = {0}, y = {0}, ax = {0}, aty = {0};
	double forward = 0, back = 0, gap = -1;

	if (random_vector(op, op->n_in, &state, &x, err) < 0 || random_vector(op, op->n_out, &state, &y, err) < 0 ||
	    v->alloc(op->dev, op->n_out, &ax, err) < 0 || v->alloc(op->dev, op->n_in, &aty, err) < 0)
		goto out;
	if (op->apply(op, &x, &ax, err) < 0 || op->adjoint(op, &y, &aty, err) < 0)
		goto out;
	if (v->dot(&ax, &y, &forward, err) < 0 || v->dot(&x, &aty, &back, err) < 0)
		goto out;
	/* Both are sums of non-negative terms: no cancellation hides a difference. */
	gap = forward == back ? 0 : fabs(forward - back) / fabs(forward);
	if (!(gap >= 0)) {
		err_set(err, EDOM, "adjoint test: <Ax,y> = %g, <x,A'y> = %g", forward, back);
		gap = -1;
	}
out:
	buf_release(&x);
	buf_release(&y);
	buf_release(&ax);
	buf_release(&aty);
	return gap;
}

struct linop *linop_free(struct linop *op)
{
	if (op)
		op->destroy(op);
	return NULL;
}
