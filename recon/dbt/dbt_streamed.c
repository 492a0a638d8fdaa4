/* SPDX-License-Identifier: Apache-2.0 */
/* dbt_streamed.c - a session whose volume is copied through the device in slabs (recon/core/iterate_stream.h); views and volume
 * are in host memory. */
#include <errno.h>
#include <stdlib.h>

#include "recon/dbt/dbt_internal.h"

static int slabs_of(int slices, int slab)
{
	return (slices + slab - 1) / slab;
}

/* Return the number of mask buffers on the device; consecutive groups use different ones. */
static int mask_colours(int n_groups)
{
	return n_groups == 1 ? 1 : n_groups % 2 == 0 ? 2 : 3;
}

static int colour_of(int group, int n_groups)
{
	return group == n_groups - 1 && mask_colours(n_groups) == 3 ? 2 : group % 2;
}

static bool is_grouped(const struct dbt_layout *l, int n_groups)
{
	return n_groups > l->views.n_subsets;
}

static int largest_group(const int *first, int n_groups)
{
	int n = 0;

	for (int g = 0; g < n_groups; g++)
		n = first[g + 1] - first[g] > n ? first[g + 1] - first[g] : n;
	return n;
}

int dbt_streamed_count(const struct dbt_protocol *p, const struct dbt_plan *plan, const struct dbt_layout *l, struct device *dev,
		       int slices, int views, size_t limit, struct plan_bytes *ret_bytes, struct err *err)
{
	int *first = malloc(((size_t)plan->n_views + 1) * sizeof(*first));
	int n_groups, n_slabs = slabs_of(plan->grid.n[2], slices);
	size_t slice = (size_t)plan->grid.n[0] * (size_t)plan->grid.n[1], view = (size_t)plan->n_u * (size_t)plan->n_v;
	size_t volume = grid_size(&plan->grid), bins, bytes;
	bool rows = rule_needs_length(dbt_iterate_conf(p).rule.kind), grouped;
	struct plan_bytes b = {.volumes = 3 * (size_t)slices * slice * sizeof(float)};

	if (!first)
		return err_set(err, ENOMEM, "plan: cannot allocate %d views", plan->n_views);
	n_groups = dbt_layout_groups(l, views, first);
	grouped = is_grouped(l, n_groups);
	bins = (size_t)largest_group(first, n_groups) * view;
	bytes = (iterate_stream_size((size_t)slices * slice, bins, rows, grouped, p->projector == PROJECTION_SLICES,
				     dbt_has_prior(p) ? slice : 0) +
		 (size_t)mask_colours(n_groups) * bins) *
		sizeof(float);
	b.data = bytes - b.volumes;
	for (int g = 0; (limit == 0 || bytes <= limit) && g < n_groups; g++)
		for (int i = 0; i < n_slabs; i++) {
			int k = i * slices, n = plan->grid.n[2] - k < slices ? plan->grid.n[2] - k : slices;
			struct grid grid;
			struct projection_spec spec = dbt_layout_spec(l, p, plan, first[g], first[g + 1] - first[g], k, n, &grid);

			plan_count(&b, dev, &spec);
		}
	free(first);
	b.host = (volume * (grouped ? 3 : 1) + view * (size_t)plan->n_views * (rows ? 3 : 2) + 2 * slice) * sizeof(float) +
		 dbt_shape_host_bytes(p, plan) + dbt_cells_host_bytes(p, plan, l->scan);
	plan_sum(&b, dev);
	*ret_bytes = b;
	return 0;
}

static void open_device(struct dbt_session *s, size_t slab, size_t bins, bool grouped, int colours, struct err *err)
{
	struct iterate_stream *t = &s->stream;
	struct session_memory *m = &s->memory;
	bool fused = s->p->projector == PROJECTION_SLICES;

	for (int i = 0; i < 3; i++) {
		session_alloc(m, slab + 2 * t->halo, &t->slab[i], err);
		if (grouped || ((!fused || t->halo > 0) && i == 0)) {
			session_alloc(m, slab, &t->slab_num[i], err);
			session_alloc(m, slab, &t->slab_den[i], err);
		} else { /* sums that are not transferred use the same buffer for all slabs */
			t->slab_num[i] = t->slab_num[0];
			t->slab_den[i] = t->slab_den[0];
		}
	}
	session_alloc(m, bins, &t->y, err);
	session_alloc(m, bins, &t->p, err);
	session_alloc(m, 2 * bins, &t->pair, err);
	session_alloc(m, bins * (size_t)colours, &s->stream_mask, err);
	if (rule_needs_length(s->conf.rule.kind))
		session_alloc(m, bins, &t->row, err);
}

static void open_host(struct dbt_session *s, bool grouped, struct err *err)
{
	struct session_memory *m = &s->memory;
	size_t volume = grid_size(&s->plan->grid) * sizeof(float), data = s->view_bins * (size_t)s->plan->n_views * sizeof(float);

	session_host(m, volume, (void **)&s->stream.x, err);
	session_host(m, data, (void **)&s->host_y, err);
	session_host(m, data, (void **)&s->host_valid, err);
	if (rule_needs_length(s->conf.rule.kind))
		session_host(m, data, (void **)&s->host_row, err);
	if (grouped) {
		session_host(m, volume, (void **)&s->stream.num, err);
		session_host(m, volume, (void **)&s->stream.den, err);
	}
}

static bool begins_subset(const struct dbt_layout *l, int view)
{
	for (int s = 0; s <= l->views.n_subsets; s++)
		if (l->views.first[s] == view)
			return true;
	return false;
}

static void open_group(struct dbt_session *s, int g, int first, int end, size_t bins_max, struct err *err)
{
	struct iterate_stream *t = &s->stream;
	size_t at = (size_t)first * s->view_bins, bins = (size_t)(end - first) * s->view_bins;
	struct iterate_group *group = &s->groups[g];
	int slab = s->plan->slab_slices;

	*group = (struct iterate_group){
		.op = s->slab_ops + (size_t)g * (size_t)t->n_slabs,
		.bins = bins,
		.y = s->host_y + at,
		.valid = s->host_valid + at,
		.row = s->host_row ? s->host_row + at : NULL,
		.mask = buf_part(&s->stream_mask, (size_t)colour_of(g, t->n_groups) * bins_max, bins),
		.first = begins_subset(&s->layout, first),
		.last = begins_subset(&s->layout, end),
	};
	for (int i = 0; i < t->n_slabs; i++) {
		int n = s->plan->grid.n[2] - i * slab < slab ? s->plan->grid.n[2] - i * slab : slab;
		struct grid grid;
		struct projection_spec spec = dbt_layout_spec(&s->layout, s->p, s->plan, first, end - first, i * slab, n, &grid);

		spec.mask = &group->mask;
		session_projector(&s->memory, &spec, &s->slab_ops[(size_t)g * (size_t)t->n_slabs + (size_t)i], err);
	}
}

int dbt_streamed_open(struct dbt_session *s, struct err *err)
{
	struct iterate_stream *t = &s->stream;
	struct session_memory *m = &s->memory;
	const struct dbt_plan *plan = s->plan;
	size_t slice = (size_t)plan->grid.n[0] * (size_t)plan->grid.n[1], bins;
	bool grouped;
	int *first;

	if (session_array(m, (size_t)plan->n_views + 1, sizeof(*first), (void **)&first, err) < 0)
		return m->rc;
	t->dev = s->dev;
	t->halo = dbt_has_prior(s->p) ? slice : 0;
	t->n_slabs = slabs_of(plan->grid.n[2], plan->slab_slices);
	t->n_groups = dbt_layout_groups(&s->layout, plan->group_views, first);
	grouped = is_grouped(&s->layout, t->n_groups);
	bins = (size_t)largest_group(first, t->n_groups) * s->view_bins;
	session_array(m, (size_t)t->n_groups, sizeof(*s->groups), (void **)&s->groups, err);
	session_array(m, (size_t)t->n_groups * (size_t)t->n_slabs, sizeof(struct linop *), (void **)&s->slab_ops, err);
	session_array(m, (size_t)t->n_slabs, sizeof(*s->slab_at), (void **)&s->slab_at, err);
	session_array(m, (size_t)t->n_slabs, sizeof(*s->slab_n), (void **)&s->slab_n, err);
	open_device(s, (size_t)plan->slab_slices * slice, bins, grouped, mask_colours(t->n_groups), err);
	open_host(s, grouped, err);
	for (int g = 0; m->rc == 0 && g < t->n_groups; g++)
		open_group(s, g, first[g], first[g + 1], bins, err);
	for (int i = 0; m->rc == 0 && i < t->n_slabs; i++) {
		int k = i * plan->slab_slices,
		    n = plan->grid.n[2] - k < plan->slab_slices ? plan->grid.n[2] - k : plan->slab_slices;

		s->slab_at[i] = (size_t)k * slice;
		s->slab_n[i] = (size_t)n * slice;
	}
	t->group = s->groups;
	t->slab_at = s->slab_at;
	t->slab_n = s->slab_n;
	return m->rc;
}

int dbt_streamed_run(struct dbt_session *s, float start, const struct monitor *monitor, struct err *err)
{
	bool wants = rule_needs_length(s->conf.rule.kind), ones = dbt_needs_ones(s->p);
	int r = iterate_stream_begin(&s->stream, start, wants && !ones, wants && ones, monitor, err);

	if (r == 0)
		r = dbt_shape_apply(s, err);
	return r < 0 ? r : iterate_stream_run(&s->stream, &s->conf, monitor, err);
}
