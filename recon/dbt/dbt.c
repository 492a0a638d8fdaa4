/* SPDX-License-Identifier: Apache-2.0 */
/* dbt.c - a session from open to close: resident or streamed, as planned.
 *
 * dbt_open() allocates everything, on the device with the sizes in the plan. */
#include "recon/dbt/dbt.h"

#include <errno.h>
#include <stdlib.h>

#include "kernels/clock.h"
#include "recon/dbt/dbt_internal.h"
#include "recon/dbt/fbp_filter.h"

static int check_plan(const struct dbt_plan *plan, const struct scan *detector, struct err *err)
{
	if (plan->bin < 1 || plan->n_u != detector->n_u / plan->bin || plan->n_v != detector->n_v / plan->bin ||
	    plan->n_views != detector->n_views || plan->slab_slices < 1)
		return err_set(
			err, EINVAL,
			"reconstruction: the plan is for %d projections of %d x %d bins, the scan has %d of %d x %d (bin %d)",
			plan->n_views, plan->n_u, plan->n_v, detector->n_views, detector->n_u, detector->n_v, plan->bin);
	return 0;
}

int dbt_open(const struct dbt_protocol *p, const struct dbt_plan *plan, const struct scan *detector, struct device *dev,
	     struct dbt_session **ret_session, struct err *err)
{
	size_t slice = (size_t)plan->grid.n[0] * (size_t)plan->grid.n[1];
	struct dbt_session *s;
	int r = check_plan(plan, detector, err);

	if (r < 0)
		return r;
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(err, ENOMEM, "reconstruction: out of memory");
	*s = (struct dbt_session){
		.p = p,
		.plan = plan,
		.dev = dev,
		.memory = {dev},
		.conf = dbt_iterate_conf(p),
		.view_bins = (size_t)plan->n_u * (size_t)plan->n_v,
		.opened = clock_seconds(),
		.streamed = plan->slab_slices < plan->grid.n[2] || plan->group_views > 0,
		.in_transfer = -1,
	};
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	for (int i = 0; i < DBT_STAGING_BUFFERS; i++)
		s->staging[i].view = -1;
	session_array(&s->memory, (size_t)plan->n_views, sizeof(*s->view), (void **)&s->view, err);
	session_array(&s->memory, (size_t)plan->n_views, sizeof(*s->view_sums), (void **)&s->view_sums, err);
	r = session_array(&s->memory, (size_t)plan->n_views, sizeof(*s->ends), (void **)&s->ends, err);
	if (r == 0)
		r = dbt_layout_make(p, plan, detector, &s->layout, err);
	if (r == 0)
		r = dbt_shape_open(s, err);
	if (r == 0 && dbt_needs_cells(p))
		r = dbt_cells_open(s, err);
	if (r == 0)
		r = dbt_metal_open(s, err);
	if (r == 0)
		r = s->streamed ? dbt_streamed_open(s, err) : dbt_resident_open(s, err);
	for (int i = 0; r == 0 && i < 2; i++)
		r = session_host(&s->memory, slice * sizeof(float), (void **)&s->out[i], err);
	if (r < 0) {
		dbt_close(s);
		return r;
	}
	*ret_session = s;
	return 0;
}

struct dbt_session *dbt_close(struct dbt_session *s)
{
	if (!s)
		return NULL;
	session_drain(s->dev);
	dbt_metal_close(s);
	session_release(&s->memory);
	breast_shape_release(&s->shape);
	dbt_layout_release(&s->layout);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s);
	return NULL;
}

/* Return the value of the uniform starting volume. One update of EM does not depend on it (EM divides by A x and multiplies by
 * x). But a voxel outside the first views keeps the starting value while other voxels are already updated, and then affects rays
 * through both. So the value is about the expected attenuation: the typical line integral (mean weighted by itself, which
 * excludes air) divided by the height of the volume. */
static float starting_value(const struct dbt_session *s)
{
	const struct grid *g = &s->plan->grid;
	double y = 0, y2 = 0, start;

	for (int i = 0; i < s->plan->n_views; i++) {
		y += s->view_sums[i].y;
		y2 += s->view_sums[i].y2;
	}
	start = y > 0 ? y2 / y / (g->n[2] * g->h[2]) : 0;
	return start > 1e-6 ? (float)start : DBT_START_DEFAULT;
}

/* Scale the average over the views to the sum of filtered backprojection, slice by slice (recon/dbt/fbp_filter.h). */
static int scale_slices(struct dbt_session *s, struct err *err)
{
	const struct grid *g = &s->plan->grid;
	size_t slice = (size_t)g->n[0] * (size_t)g->n[1];
	int r = 0;

	for (int k = 0; r == 0 && k < g->n[2]; k++) {
		float scale = (float)fbp_slice_scale(s->layout.scan, g->lo[2] + (k + 0.5) * g->h[2]);

		if (s->streamed) {
			for (size_t i = 0; i < slice; i++)
				s->stream.x[(size_t)k * slice + i] *= scale;
		} else {
			struct buf part = buf_part(&s->x, (size_t)k * slice, slice);

			r = s->dev->ops->axpy(scale - 1, &part, &part, err);
		}
	}
	return r;
}

int dbt_run(struct dbt_session *s, const struct monitor *monitor, struct dbt_report *ret_report, struct err *err)
{
	struct dbt_report report = {0};
	double begin = clock_seconds();
	float start;
	int r = 0;

	pthread_mutex_lock(&s->lock);
	if (s->done)
		r = err_set(err, EINVAL, "reconstruction: dbt_run() was already called");
	else if (s->n_received != s->plan->n_views)
		r = err_set(err, EINVAL, "reconstruction: only %d of %d projections have been received", s->n_received,
			    s->plan->n_views);
	else
		s->done = true;
	pthread_mutex_unlock(&s->lock);
	if (r < 0)
		return r;
	for (int i = 0; i < s->plan->n_views; i++)
		s->conf.rule.weighted |= s->view_sums[i].cut;
	report.seconds_setup = begin - s->opened;
	if (s->metal)
		r = dbt_metal_replace(s, &report.metal, err);
	if (r < 0)
		return r;
	start = starting_value(s);
	if (dbt_has_prior(s->p)) {
		s->prior = dbt_layout_prior(&s->layout, s->p, s->plan, (double)start);
		s->conf.prior = &s->prior;
		s->conf.grid = &s->plan->grid;
	}
	r = dbt_shape_find(s, &report, err);
	if (r == 0 && !algorithm_info(s->p->algorithm)->filtered)
		r = dbt_scale_ends(s, err);
	if (r < 0)
		return r;
	r = s->streamed ? dbt_streamed_run(s, start, monitor, err) : dbt_resident_run(s, start, monitor, &report, err);
	if (r == 0 && algorithm_info(s->p->algorithm)->filtered)
		r = scale_slices(s, err);
	if (r == 0)
		r = dbt_metal_put_back(s, &report.metal, err);
	if (r == 0)
		r = s->dev->ops->wait(s->dev, QUEUE_WORK, err);
	if (r < 0)
		return r;
	s->result = true;
	report.seconds_iterate = clock_seconds() - begin;
	if (ret_report)
		*ret_report = report;
	return 0;
}
