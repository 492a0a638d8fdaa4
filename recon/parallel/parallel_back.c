/* SPDX-License-Identifier: Apache-2.0 */
/* parallel_back.c - backprojection and filtered backprojection.
 *
 *   f(x, y) = sum over views of w F(x cos theta + y sin theta),   F = h * g (FBP), or g (BP);   w: parallel_weights()
 *
 * w is applied before the filter, which has the same result; so are the shares of bins whose rays one side alone measured
 * (parallel_shares()). A filtered row has negative ends that continue beyond the data. The
 * image beyond the outermost measured rays is only correct with them, so rows are padded with zeros as far as the image extends
 * (parallel_padded_scan()). There are two ways to apply the same sampled kernel (recon/core/ramp.h): transforms of zero-padded
 * rows, two rows per transform, O(N log N), on the device or, if it has none, on the host with a thread for each pair; or a sum
 * on the device, O(N^2). The device does the backprojection: linear between bins, 0 beyond the first and the last one, not an
 * adjoint. */
#include <errno.h>
#include <stdlib.h>

#include "kernels/clock.h"
#include "recon/core/ramp.h"
#include "recon/parallel/parallel_internal.h"

#define BLOCK 16 /* slices: a cache line */

struct parallel_back {
	struct ramp *ramp; /* NULL: BP */
	struct buf filtered;
	double *weight; /* one per angle */
	double *share;	/* one per bin of the caller; NULL: all are 1 */
};

static enum ramp_filter ramp_of(enum parallel_filter filter)
{
	switch (filter) {
	case PARALLEL_SHEPP_LOGAN:
		return RAMP_SHEPP_LOGAN;
	case PARALLEL_COSINE:
		return RAMP_COSINE;
	case PARALLEL_HANN:
		return RAMP_HANN;
	default:
		return RAMP_PLAIN;
	}
}

bool parallel_back_filters(const struct parallel_protocol *p, const struct device *dev, int n_radial)
{
	return algorithm_info(p->algorithm)->filtered &&
	       (p->route == PARALLEL_CONVOLUTION || dev->ops->transforms(dev, n_radial));
}

int parallel_back_open(struct parallel_session *s, struct err *err)
{
	struct projection_spec spec = parallel_spec(s->p, s->work, s->scan, &s->grid, 0, s->s->n_angles);
	bool filter = algorithm_info(s->p->algorithm)->filtered;
	struct session_memory *m = &s->memory;
	struct parallel_scan caller = *s->s;
	int r;

	caller.n_radial -= 2 * s->pad;
	if (session_array(m, 1, sizeof(*s->back), (void **)&s->back, err) < 0)
		return m->rc;
	session_array(m, (size_t)s->s->n_angles, sizeof(*s->back->weight), (void **)&s->back->weight, err);
	if (parallel_back_filters(s->p, s->dev, s->s->n_radial))
		session_alloc(m, s->y.n, &s->back->filtered, err);
	session_array(m, (size_t)caller.n_radial, sizeof(*s->back->share), (void **)&s->back->share, err);
	r = m->rc < 0 ? m->rc : parallel_weights(s->s, s->back->weight, err);
	if (r == 0 && !parallel_shares(&caller, s->back->share))
		s->back->share = NULL;
	if (r == 0 && filter)
		r = ramp_create(ramp_of(s->p->filter), s->p->filter_cut, s->s->bin, s->s->n_radial, &s->back->ramp, err);
	return r < 0 ? r : s->dev->ops->projection_create(s->dev, &spec, &s->a, err);
}

void parallel_back_release(struct parallel_session *s)
{
	if (s->back)
		ramp_free(s->back->ramp);
	s->back = NULL;
}

/* Copy a row times the weight of its view, with zeros before and after it. */
static void fetch_row(const struct parallel_session *s, int view, int slice, float *ret_row)
{
	size_t pad = (size_t)s->pad, n_v = (size_t)s->s->n_radial - 2 * pad;
	const float *from = parallel_row(s, s->lines, slice, view);
	float w = (float)s->back->weight[s->views.order[view]];

	for (size_t i = 0; i < pad; i++)
		ret_row[i] = ret_row[pad + n_v + i] = 0;
	for (size_t i = 0; i < n_v; i++)
		ret_row[pad + i] = w * from[i];
	for (size_t i = 0; s->back->share && i < n_v; i++)
		ret_row[pad + i] *= (float)s->back->share[i];
}

/* Filter a single slice: rows of bins are rows of data; two views per transform. */
static void filter_views(const struct parallel_session *s, int view, void *work)
{
	size_t n_v = (size_t)s->s->n_radial;
	float *a = s->host + (size_t)view * n_v, *b = view + 1 < s->s->n_angles ? a + n_v : NULL;

	fetch_row(s, view, 0, a);
	if (b)
		fetch_row(s, view + 1, 0, b);
	ramp_rows(s->back->ramp, a, b, work);
}

/* Filter a block of slices of one view; two slices per transform. */
static void filter_slices(const struct parallel_session *s, int view, int first, float *rows, void *work)
{
	size_t n_v = (size_t)s->s->n_radial, n_u = (size_t)s->n;
	int n = s->n - first < BLOCK ? s->n - first : BLOCK;
	float *to = s->host + (size_t)view * n_v * n_u + first;

	for (int k = 0; k < n; k++)
		fetch_row(s, view, first + k, rows + (size_t)k * n_v);
	for (int k = 0; k < n; k += 2)
		ramp_rows(s->back->ramp, rows + (size_t)k * n_v, k + 1 < n ? rows + (size_t)(k + 1) * n_v : NULL, work);
	for (size_t i = 0; i < n_v; i++)
		for (int k = 0; k < n; k++)
			to[i * n_u + (size_t)k] = rows[(size_t)k * n_v + i];
}

static int filter_rows(const struct parallel_session *s, struct err *err)
{
	size_t room = s->n > 1 ? BLOCK * (size_t)s->s->n_radial : 0;
	bool failed = false;

#pragma omp parallel
	{
		float *rows = malloc((room ? room : 1) * sizeof(*rows));
		void *work = malloc(ramp_work(s->back->ramp));

		if (!rows || !work) {
#pragma omp atomic write
			failed = true;
		}
#pragma omp barrier
		if (!failed && s->n == 1) {
#pragma omp for schedule(static)
			for (int view = 0; view < s->s->n_angles; view += 2)
				filter_views(s, view, work);
		} else if (!failed) {
#pragma omp for collapse(2) schedule(static)
			for (int view = 0; view < s->s->n_angles; view++)
				for (int first = 0; first < s->n; first += BLOCK)
					filter_slices(s, view, first, rows, work);
		}
		free(rows);
		free(work);
	}
	return failed ? err_set(err, ENOMEM, "fbp: no memory to filter rows of %d bins", s->s->n_radial) : 0;
}

int parallel_back_run(struct parallel_session *s, struct err *err)
{
	const struct device_ops *v = s->dev->ops;
	bool convolve = parallel_back_filters(s->p, s->dev, s->s->n_radial);
	double begin = clock_seconds(), filtered;
	const struct buf *y = &s->y;
	int r = 0;

	if (s->back->ramp && !convolve)
		r = filter_rows(s, err);
	else
		parallel_bins_in(s, s->back->weight, s->back->share, s->host);
	if (r == 0)
		r = v->upload(&s->y, s->host, err);
	if (r == 0 && convolve) {
		y = &s->back->filtered;
		r = v->convolve(&s->y, (size_t)s->s->n_angles, s->s->n_radial, (size_t)s->n, ramp_kernel(s->back->ramp),
				s->p->route == PARALLEL_FOURIER, &s->back->filtered, err);
		if (r == 0)
			r = v->wait(s->dev, QUEUE_WORK, err);
	}
	filtered = clock_seconds();
	if (r == 0)
		r = v->back_interpolated(s->a, y, false, &s->x, err);
	if (r == 0)
		r = v->wait(s->dev, QUEUE_WORK, err);
	s->seconds_filter += filtered - begin;
	s->seconds_iterate += clock_seconds() - filtered;
	return r;
}
