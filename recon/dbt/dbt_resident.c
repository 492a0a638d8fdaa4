/* SPDX-License-Identifier: Apache-2.0 */
/* dbt_resident.c - a session with volume and views on the device. */
#include "recon/dbt/dbt_internal.h"

static int open_subsets(struct dbt_session *s, struct err *err)
{
	struct session_memory *m = &s->memory;
	size_t n = (size_t)s->layout.views.n_subsets;

	session_array(m, n, sizeof(*s->masks), (void **)&s->masks, err);
	session_array(m, n, sizeof(struct linop *), (void **)&s->ops, err);
	session_array(m, n, sizeof(*s->subsets), (void **)&s->subsets, err);
	for (int i = 0; m->rc == 0 && i < s->layout.views.n_subsets; i++) {
		int first = s->layout.views.first[i], n_views = s->layout.views.first[i + 1] - first;
		size_t at = (size_t)first * s->view_bins, bins = (size_t)n_views * s->view_bins;
		struct grid grid;
		struct projection_spec spec =
			dbt_layout_spec(&s->layout, s->p, s->plan, first, n_views, 0, s->plan->grid.n[2], &grid);

		s->masks[i] = buf_part(&s->mask, at, bins);
		spec.mask = &s->masks[i];
		session_projector(m, &spec, &s->ops[i], err);
		s->subsets[i] = (struct iterate_subset){.op = s->ops[i], .y = buf_part(&s->y, at, bins)};
		if (s->row.mem)
			s->subsets[i].row = buf_part(&s->row, at, bins);
	}
	if (m->rc == 0) {
		struct grid grid;
		struct projection_spec spec = dbt_layout_spec_of_marks(&s->layout, s->p, s->plan, &grid);

		spec.mask = &s->mask;
		session_projector(m, &spec, &s->all_views, err);
	}
	return m->rc;
}

int dbt_resident_open(struct dbt_session *s, struct err *err)
{
	struct session_memory *m = &s->memory;
	size_t voxels = grid_size(&s->plan->grid), bins = s->view_bins * (size_t)s->plan->n_views;

	session_alloc(m, voxels, &s->x, err);
	session_alloc(m, bins, &s->y, err);
	session_alloc(m, bins, &s->mask, err);
	session_alloc(m, dbt_stored_floats(&s->plan->grid), &s->stored, err);
	if (rule_needs_length(s->conf.rule.kind))
		session_alloc(m, bins, &s->row, err);
	if (dbt_has_shape(s->p))
		session_alloc(m, (size_t)s->plan->grid.n[0] * (size_t)s->plan->grid.n[1], &s->columns, err);
	for (int i = 0; i < DBT_STAGING_BUFFERS && i < s->plan->n_views; i++) {
		session_host(m, s->view_bins * sizeof(float), (void **)&s->staging[i].line, err);
		session_host(m, s->view_bins * sizeof(float), (void **)&s->staging[i].valid, err);
	}
	iterate_work_alloc(m, voxels, (size_t)s->layout.views.largest_subset * s->view_bins, s->p->projector == PROJECTION_SLICES,
			   dbt_has_prior(s->p), &s->work, err);
	return m->rc < 0 ? m->rc : open_subsets(s, err);
}

/* Set x to `start` in the support: voxels that a ray crosses and no view shows as air; to 0 elsewhere. */
static int make_support(struct dbt_session *s, float start, struct err *err)
{
	int r = s->dev->ops->fill(&s->x, 0, err);

	if (r == 0)
		r = s->all_views->mark(s->all_views, &s->x, err);
	return r < 0 ? r : s->dev->ops->threshold(&s->x, 0, start, err);
}

/* Compute the length of each ray in the support or, for filtered backprojection, set it to 1. */
static int make_rows(struct dbt_session *s, float start, struct err *err)
{
	const struct device_ops *v = s->dev->ops;
	int r = 0;

	if (!s->row.mem)
		return 0;
	if (dbt_needs_ones(s->p))
		return v->fill(&s->row, 1, err);
	for (int i = 0; r == 0 && i < s->layout.views.n_subsets; i++)
		r = s->ops[i]->apply(s->ops[i], &s->x, &s->subsets[i].row, err);
	return r < 0 ? r : v->axpy(1 / start - 1, &s->row, &s->row, err); /* row / start */
}

/* Compute sums for a check of the data: sum(A x) = sum(y) over the bins with support holds after every MLEM iteration. Overwrites
 * the memory of the pairs (q, d). */
static int sum_up(struct dbt_session *s, struct dbt_report *report, struct err *err)
{
	const struct device_ops *v = s->dev->ops;
	struct buf p = buf_part(&s->work.pair, 0, s->y.n);
	int r = s->ops[0]->apply(s->ops[0], &s->x, &p, err);

	if (r == 0)
		r = v->sum(&p, &report->sum_model, err);
	if (r == 0)
		r = v->threshold(&p, s->conf.rule.bin_floor, 1, err);
	return r < 0 ? r : v->dot(&s->y, &p, &report->sum_data, err);
}

int dbt_resident_run(struct dbt_session *s, float start, const struct monitor *monitor, struct dbt_report *report,
		     struct err *err)
{
	int r = make_support(s, start, err);

	if (r == 0)
		r = make_rows(s, start, err);
	if (r == 0)
		r = dbt_shape_apply(s, err);
	if (r == 0)
		r = iterate_run(&s->conf, s->subsets, (size_t)s->layout.views.n_subsets, &s->work, &s->x, monitor, err);
	if (r == 0 && s->conf.rule.kind == RULE_EM && s->layout.views.n_subsets == 1 && !s->conf.rule.weighted)
		r = sum_up(s, report, err);
	return r < 0 ? r : s->dev->ops->wait(s->dev, QUEUE_WORK, err);
}
