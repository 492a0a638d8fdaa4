/* SPDX-License-Identifier: Apache-2.0 */
/* pet_list_sensitivity.c - the sensitivity image: the sum over all LORs of m S(t) a, by sinograms or LOR by LOR. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "recon/core/scan.h"
#include "recon/pet/pet_list_internal.h"

/* The radial bins of the michelogram that a scan has: first, first + step ... */
struct part {
	const struct scan *scan;
	const int *plane;
	int first, step;
};

/* Write the factors of a plane and angle; those of neighbouring radial bins are n_u apart. */
static void copy_row(const struct pet_list *l, const struct part *part, int plane, int angle, float *ret)
{
	size_t n_v = (size_t)part->scan->n_v, n_u = (size_t)part->scan->n_u, n_radial = (size_t)l->michelogram->n_radial;
	const float *row =
		l->factors ? l->factors + ((size_t)plane * (size_t)part->scan->n_views + (size_t)angle) * n_radial : NULL;

	if (!row && l->factor_row) {
		l->factor_row(l->factor_ctx, plane, angle, part->first, part->step, ret, n_u);
		return;
	}
	for (size_t v = 0; v < n_v; v++)
		ret[v * n_u] = row ? row[(size_t)part->first + v * (size_t)part->step] : 1;
}

/* Write the factors of some views in the order of the scan's bins. */
static void copy_factors(const struct pet_list *l, const struct part *part, const struct projection_spec *spec, float *ret_bins)
{
	size_t n_u = (size_t)part->scan->n_u, view = (size_t)part->scan->n_v * n_u;

#pragma omp parallel for schedule(dynamic)
	for (int i = 0; i < spec->n_views; i++)
		for (size_t u = 0; u < n_u; u++)
			copy_row(l, part, part->plane[u], spec->first + i, ret_bins + (size_t)i * view + u);
}

static int check_factors(const struct pet_list *l, struct err *err)
{
	size_t n = michelogram_bins(l->michelogram);

	for (size_t i = 0; l->factors && i < n; i++)
		if (!(l->factors[i] >= 0 && l->factors[i] < INFINITY))
			return err_set(err, EINVAL, "list mode: factor %zu of %zu is %g", i, n, (double)l->factors[i]);
	return 0;
}

static int add_views(struct pet_list_session *s, const struct projection_spec *spec, const struct part *part, float *bins,
		     struct err *err)
{
	const struct device_ops *v = s->dev->ops;
	struct projection *a = NULL;
	struct buf q = {0};
	int r = v->projection_create(s->dev, spec, &a, err);

	if (r == 0)
		r = v->alloc(s->dev, (size_t)spec->n_views * scan_view_size(spec->scan), &q, err);
	copy_factors(s->list, part, spec, bins);
	if (r == 0)
		r = v->upload(&q, bins, err);
	if (r == 0)
		r = v->adjoint(a, &q, true, &s->den, err);
	if (r == 0)
		r = v->wait(s->dev, QUEUE_WORK, err);
	buf_release(&q);
	if (a)
		v->projection_free(a);
	return r;
}

/* Add the rays of a part of the michelogram. */
static int add_part(struct pet_list_session *s, int first, const struct monitor *monitor, struct err *err)
{
	int parts = pet_list_parts(s->list), view = 0, *plane = NULL, r;
	struct scan *scan = NULL;
	struct part part;
	float *bins = NULL;

	r = pet_list_scan(s->list, s->plan->fov_radius, first, &scan, &plane, err);
	if (r < 0)
		return r;
	part = (struct part){scan, plane, first, parts};
	bins = malloc((size_t)pet_list_projection(s->p, scan, &s->plan->grid, 0).n_views * scan_view_size(scan) * sizeof(*bins));
	if (!bins)
		r = err_set(err, ENOMEM, "list mode: no memory for the factors of a part of %d angles", scan->n_views);
	while (r == 0 && view < scan->n_views) {
		struct projection_spec spec = pet_list_projection(s->p, scan, &s->plan->grid, view);

		r = monitor_cancelled(monitor) ? err_set(err, ECANCELED, "list mode: cancelled in the sensitivity")
					       : add_views(s, &spec, &part, bins, err);
		view += spec.n_views;
		monitor_progress(monitor, "sensitivity", (first + (double)view / scan->n_views) / parts);
	}
	free(bins);
	scan_free(scan);
	free(plane);
	return r;
}

static int by_sinograms(struct pet_list_session *s, const struct monitor *monitor, struct err *err)
{
	int r = check_factors(s->list, err);

	for (int first = 0; r == 0 && first < pet_list_parts(s->list); first++)
		r = add_part(s, first, monitor, err);
	return r;
}

/* Read a batch of LORs, and their factors into staging_weight. */
static int read_lors(struct pet_list_session *s, size_t *ret_n, struct err *err)
{
	const struct pet_list_reader *from = &s->list->lors;
	size_t n = 0, got = 1;
	int r = 0;

	while (r == 0 && got > 0 && n < s->plan->batch) {
		r = from->read(from->ctx, s->staging[0] + n, s->plan->batch - n, &got, err);
		n += r == 0 ? got : 0;
	}
	for (size_t i = 0; r == 0 && i < n; i++) {
		struct event *e = &s->staging[0][i];

		if ((size_t)e->detector[0] >= s->list->n_detectors || (size_t)e->detector[1] >= s->list->n_detectors ||
		    e->detector[0] == e->detector[1] || !(e->add >= 0 && e->add < INFINITY))
			return err_set(err, EINVAL, "list mode: a LOR of detectors %d and %d of %zu with factor %g",
				       e->detector[0], e->detector[1], s->list->n_detectors, (double)e->add);
		e->tof = 0;
		s->staging_weight[i] = e->add * (float)(s->list->lors_scale > 0 ? s->list->lors_scale : 1);
	}
	*ret_n = n;
	return r;
}

static int by_lors(struct pet_list_session *s, const struct monitor *monitor, size_t *ret_lors, struct err *err)
{
	const struct device_ops *v = s->dev->ops;
	struct events_spec spec = pet_list_spec(s->p, s->list, s->plan, true, &s->detectors);
	struct events *a = NULL;
	size_t n = 1;
	int r = v->events_create(s->dev, &spec, &a, err);

	if (r == 0)
		r = s->list->lors.rewind(s->list->lors.ctx, err);
	while (r == 0 && n > 0) {
		struct buf events, weight;

		r = monitor_cancelled(monitor) ? err_set(err, ECANCELED, "list mode: cancelled in the sensitivity")
					       : read_lors(s, &n, err);
		if (r < 0 || n == 0)
			break;
		events = buf_part(&s->slot[0], 0, n * EVENT_FLOATS);
		weight = buf_part(&s->weight, 0, n);
		if ((r = v->upload(&events, (const float *)(const void *)s->staging[0], err)) == 0 &&
		    (r = v->upload(&weight, s->staging_weight, err)) == 0)
			r = v->events_back(a, &events, &weight, &s->den, err);
		*ret_lors += n;
		if (s->list->n_lors)
			monitor_progress(monitor, "sensitivity", fmin(1, (double)*ret_lors / (double)s->list->n_lors));
	}
	if (r == 0)
		r = v->wait(s->dev, QUEUE_WORK, err);
	v->events_free(a);
	return r;
}

void pet_list_share_sensitivity(struct pet_list_session *s, struct pet_list_sensitivity_image *image)
{
	s->shared = image;
}

/* Compute S into den. */
static int compute_sensitivity(struct pet_list_session *s, const struct monitor *monitor, size_t *ret_lors, struct err *err)
{
	int r = s->dev->ops->fill(&s->den, 0, err);

	if (r == 0)
		r = s->list->lors.read ? by_lors(s, monitor, ret_lors, err) : by_sinograms(s, monitor, err);
	if (r == 0 && s->psf)
		r = s->psf->adjoint(s->psf, &s->den, &s->den, err);
	return r;
}

int pet_list_sensitivity(struct pet_list_session *s, const struct monitor *monitor, size_t *ret_lors, struct err *err)
{
	struct pet_list_sensitivity_image *shared = s->shared;
	int r;

	*ret_lors = 0;
	if (shared && shared->computed)
		return s->dev->ops->upload(&s->den, shared->values, err);
	r = compute_sensitivity(s, monitor, ret_lors, err);
	if (r == 0 && shared)
		r = s->dev->ops->download(&s->den, shared->values, err);
	if (r == 0 && shared)
		shared->computed = true;
	return r;
}
