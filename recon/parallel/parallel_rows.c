/* SPDX-License-Identifier: Apache-2.0 */
/* parallel_rows.c - ART: Kaczmarz' method, ray by ray, starting at 0. The device determines the order of rays within a view
 * (kernels/device.h, row_sweep()), the plan that of the views. The method is linear in the data and keeps negative values unless
 * the protocol has non_negative. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "kernels/clock.h"
#include "recon/parallel/parallel_internal.h"

struct parallel_rows {
	struct buf gap;	     /* A x - y */
	struct buf positive; /* with non_negative: 1 where x is positive, else 0 */
};

int parallel_rows_open(struct parallel_session *s, struct err *err)
{
	struct projection_spec spec = parallel_spec(s->p, s->work, s->scan, &s->grid, 0, s->s->n_angles);
	struct session_memory *m = &s->memory;

	if (session_array(m, 1, sizeof(*s->rows), (void **)&s->rows, err) < 0)
		return m->rc;
	session_alloc(m, s->y.n, &s->rows->gap, err);
	if (s->p->non_negative)
		session_alloc(m, s->x.n, &s->rows->positive, err);
	return m->rc < 0 ? m->rc : s->dev->ops->projection_create(s->dev, &spec, &s->a, err);
}

static int cut_negative(struct parallel_session *s, struct err *err)
{
	const struct device_ops *v = s->dev->ops;
	struct buf *positive = &s->rows->positive;
	int r = v->copy(&s->x, positive, err);

	if (r == 0)
		r = v->threshold(positive, 0, 1, err);
	return r < 0 ? r : v->multiply(&s->x, positive, &s->x, err);
}

static int sum_gap(struct parallel_session *s, struct err *err)
{
	const struct device_ops *v = s->dev->ops;
	struct buf *gap = &s->rows->gap;
	double left = 0, all = 0;
	int r = v->forward(s->a, &s->x, false, gap, err);

	if (r == 0)
		r = v->axpy(-1, &s->y, gap, err);
	if (r == 0)
		r = v->dot(gap, gap, &left, err);
	if (r == 0)
		r = v->dot(&s->y, &s->y, &all, err);
	s->sum_gap += left;
	s->sum_data += all;
	return r;
}

int parallel_rows_run(struct parallel_session *s, struct err *err)
{
	const struct device_ops *v = s->dev->ops;
	double begin = clock_seconds();
	bool has_gaps;
	int r;

	parallel_bins_in(s, NULL, NULL, s->host);
	has_gaps = parallel_gaps_in(s, NAN, s->host);
	r = v->upload(&s->y, s->host, err);
	if (r == 0)
		r = v->fill(&s->x, 0, err);
	for (int i = 0; r == 0 && i < s->plan->iterations; i++) {
		r = v->row_sweep(s->a, (float)s->p->relaxation, &s->y, &s->x, err);
		if (r == 0 && s->p->non_negative)
			r = cut_negative(s, err);
		if (r == 0 && !parallel_continues(s, (double)(i + 1) / s->plan->iterations))
			r = err_set(err, ECANCELED, "reconstruction cancelled after %d of %d sweeps", i + 1, s->plan->iterations);
	}
	if (r == 0 && has_gaps) {
		parallel_bins_in(s, NULL, NULL, s->host);
		r = v->upload(&s->y, s->host, err);
	}
	if (r == 0)
		r = sum_gap(s, err); /* waits for the device */
	s->seconds_iterate += clock_seconds() - begin;
	return r;
}
