/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_projection.c - the CPU's system matrices: check their specification and call the operators. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/cpu_lines.h"
#include "kernels/line_rows.h"
#include "kernels/planes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Units of work of the exact operator if the caller does not set tile sizes. */
#define EXACT_BINS 32
#define EXACT_VOXELS 64

static bool by_paths(const struct projection *a)
{
	return !a->stack && (a->model == PROJECTION_PATHS || a->model == PROJECTION_JOSEPH);
}

static void describe_projection(struct device *dev, const struct projection_spec *spec, struct projection *a)
{
	*a = (struct projection){
		.dev = dev,
		.model = spec->model,
		.scan = spec->scan,
		.first = spec->first,
		.n_views = spec->n_views,
		.grid = *spec->grid,
		.tile_u = spec->tile[0],
		.tile_v = spec->tile[1],
		.tile_x = spec->tile[0],
		.tile_y = spec->tile[1],
		.sampling = spec->sampling,
		.stack = lines_needed(spec),
		.by_rows = spec->scan->n_u == 1 && line_rows_fit(spec) && !(spec->sweeps && cpu_lines_kept(spec)),
		.strip_rows = spec->scan->kind == SCAN_DBT ? slice_strip_rows(spec->scan) : spec->scan->n_v,
	};
	if (spec->mask)
		a->mask = *spec->mask;
	if (a->model == PROJECTION_SLICES) {
		cpu_slices_shape(a);
		return;
	}
	if (by_paths(a))
		a->thread_floats = cpu_paths_scratch(a);
	if (a->by_rows)
		a->thread_floats = cpu_line_rows_scratch(a);
	a->tile_u = cpu_min(a->tile_u ? a->tile_u : EXACT_BINS, a->scan->n_u);
	a->tile_v = cpu_min(a->tile_v ? a->tile_v : EXACT_BINS, a->scan->n_v);
	a->tile_x = cpu_min(a->tile_x ? a->tile_x : EXACT_VOXELS, a->grid.n[0]);
	a->tile_y = cpu_min(a->tile_y ? a->tile_y : EXACT_VOXELS, a->grid.n[1]);
}

static int check_spec(const struct projection_spec *spec, struct err *err)
{
	const struct scan *scan = spec->scan;
	const struct grid *g = spec->grid;

	if (spec->model < PROJECTION_EXACT || spec->model > PROJECTION_SAMPLED)
		return err_set(err, EINVAL, "projection: unknown model %d", (int)spec->model);
	for (int c = 0; c < 3; c++)
		if (g->n[c] <= 0 || !(g->h[c] > 0) || !isfinite(g->h[c]) ||
		    !isfinite(g->lo[c])) /* !(x > 0) is also true for NaN */
			return err_set(err, EINVAL, "projection: grid axis %d with %d voxels of %g mm from %g mm is not possible",
				       c, g->n[c], g->h[c], g->lo[c]);
	for (int c = 0; c < 2 && scan->kind == SCAN_DBT; c++)
		if (!(scan->h[c] > 0) || !isfinite(scan->h[c]) || !isfinite(scan->lo[c]))
			return err_set(err, EINVAL, "projection: bins along axis %d of %g mm from %g mm are not possible", c,
				       scan->h[c], scan->lo[c]);
	if (scan->n_u <= 0 || scan->n_v <= 0)
		return err_set(err, EINVAL, "projection: a detector of %d x %d bins is not possible", scan->n_u, scan->n_v);
	if (spec->first < 0 || spec->n_views <= 0 || spec->n_views > scan->n_views - spec->first)
		return err_set(err, EINVAL, "projection: views %d to %d are requested, but the scan has %d views", spec->first,
			       spec->first + spec->n_views - 1, scan->n_views);
	if (spec->tile[0] < 0 || spec->tile[1] < 0)
		return err_set(err, EINVAL, "projection: a tile of %d x %d is not possible; allowed: 0 or more", spec->tile[0],
			       spec->tile[1]);
	if (spec->mask && spec->mask->n != (size_t)spec->n_views * scan_view_size(scan))
		return err_set(err, EINVAL, "projection: the mask has %zu floats, but the views have %zu bins", spec->mask->n,
			       (size_t)spec->n_views * scan_view_size(scan));
	if (scan->kind == SCAN_PARALLEL)
		return planes_check(spec, err);
	if (scan->tof.n)
		return planes_check_tof(spec, err);
	if (spec->model > PROJECTION_SLICES)
		return err_set(err, EINVAL, "projection: model %d supports only parallel rays", (int)spec->model);
	for (int i = spec->first; i < spec->first + spec->n_views; i++) {
		const struct scan_view *w = &scan->views[i];

		if (!isfinite(w->src[0]) || !isfinite(w->src[1]) || !isfinite(w->src[2]) || !isfinite(w->shift[0]) ||
		    !isfinite(w->shift[1]))
			return err_set(err, EINVAL, "projection: view %d: source or detector shift is not a number", i);
		for (int c = 0; c < 3 && w->posed; c++)
			if (!isfinite(w->pose.origin[c] + w->pose.step_u[c] + w->pose.step_v[c]))
				return err_set(err, EINVAL, "projection: view %d: the pose of the detector is not a number", i);
		if (spec->model == PROJECTION_SLICES && (scan->kind != SCAN_DBT || !slice_map_valid(scan, w, g)))
			return err_set(err, EINVAL,
				       "projection: view %d: the slice-by-slice model needs the volume (z = %g to %g mm) between "
				       "detector and source (z = %g mm)",
				       i, g->lo[2], g->lo[2] + g->n[2] * g->h[2], w->src[2]);
	}
	return 0;
}

size_t cpu_projection_bytes(struct device *dev, const struct projection_spec *spec)
{
	struct projection a;

	if (check_spec(spec, NULL) < 0)
		return 0;
	describe_projection(dev, spec, &a);
	if (a.stack)
		return sizeof(a) + cpu_lines_bytes(&a);
	if (by_paths(&a))
		return sizeof(a) + cpu_paths_table_bytes(&a);
	return sizeof(a) + (a.model == PROJECTION_SLICES ? cpu_slices_bytes(&a) : 0);
}

size_t cpu_scratch_bytes(struct device *dev, const struct projection_spec *spec)
{
	struct projection a;

	if (check_spec(spec, NULL) < 0)
		return 0;
	describe_projection(dev, spec, &a);
	return a.thread_floats * sizeof(float);
}

int cpu_projection_create(struct device *dev, const struct projection_spec *spec, struct projection **ret, struct err *err)
{
	struct projection *a;
	int r = check_spec(spec, err);

	if (r < 0)
		return r;
	a = malloc(sizeof(*a));
	if (!a)
		return err_set(err, ENOMEM, "projection: out of memory");
	describe_projection(dev, spec, a);
	if (a->model == PROJECTION_SLICES) {
		r = cpu_slices_tables(a, err);
		if (r == 0)
			r = cpu_scratch(dev, a->thread_floats, err);
		if (r < 0) {
			cpu_projection_free(a);
			return r;
		}
	}
	if (a->stack || by_paths(a)) {
		r = a->stack ? cpu_lines_create(a, err) : cpu_paths_create(a, err);
		if (r < 0) {
			cpu_projection_free(a);
			return r;
		}
	}
	*ret = a;
	return 0;
}

void cpu_projection_free(struct projection *a)
{
	if (!a)
		return;
	cpu_paths_free(a->paths);
	cpu_lines_free(a->lines);
	free(a->slice);
	free(a->block);
	free(a->len_u);
	free(a->len_v);
	free(a);
}

static size_t count_bins(const struct projection *a)
{
	return (size_t)a->n_views * scan_view_size(a->scan);
}

static int volume_size(const struct projection *a, const char *what, const struct buf *x, struct err *err)
{
	if (x->n != grid_size(&a->grid))
		return err_set(err, EINVAL, "%s: the volume has %zu floats, but the grid has %zu voxels", what, x->n,
			       grid_size(&a->grid));
	return 0;
}

/* Check the length of y. `each`: floats per bin, 1, or 2 for pairs. */
static int bins_size(const struct projection *a, const char *what, const struct buf *y, size_t each, struct err *err)
{
	if (y->n != each * count_bins(a))
		return err_set(err, EINVAL, "%s: the projections have %zu floats, but there are %zu bins%s", what, y->n,
			       count_bins(a), each == 2 ? ", pairs" : "");
	return 0;
}

static void project_back(struct projection *a, const struct cpu_back *b)
{
	if (a->lines)
		cpu_lines_back(a, b);
	else if (a->paths)
		cpu_paths_back(a, b);
	else if (a->model == PROJECTION_SLICES)
		cpu_slices_back(a, b);
	else
		cpu_exact_back(a, b);
}

int cpu_forward(struct projection *a, const struct buf *x, bool add, struct buf *y, struct err *err)
{
	struct cpu_forward f = {.x = x->mem, .out = y->mem, .add = add};
	int r = volume_size(a, "forward", x, err);

	r = r < 0 ? r : bins_size(a, "forward", y, 1, err);
	if (r < 0)
		return r;
	if (a->lines)
		cpu_lines_forward(a, &f);
	else if (a->paths)
		cpu_paths_forward(a, &f);
	else if (a->model == PROJECTION_SLICES)
		cpu_slices_forward(a, &f);
	else
		cpu_exact_forward(a, &f);
	return 0;
}

int cpu_adjoint(struct projection *a, const struct buf *y, bool add, struct buf *x, struct err *err)
{
	struct cpu_back b = {.q = y->mem, .num = x->mem, .add = add};
	int r = volume_size(a, "adjoint", x, err);

	r = r < 0 ? r : bins_size(a, "adjoint", y, 1, err);
	if (r == 0)
		project_back(a, &b);
	return r;
}

/* The first half of a pair buffer holds all q, the second all d; the operator applies the lengths. */
int cpu_make_pair(struct projection *a, const struct rule *rule, const struct buf *y, const struct buf *p, const struct buf *row,
		  struct buf *ret_pair, struct err *err)
{
	bool line = rule_needs_line(rule->kind), length = rule_needs_length(rule->kind);
	int r = cpu_rule_check(rule, err);

	r = r < 0 ? r : bins_size(a, "make_pair", y, 1, err);
	r = r < 0 ? r : bins_size(a, "make_pair", ret_pair, 2, err);
	if (r == 0 && line)
		r = bins_size(a, "make_pair", p, 1, err);
	if (r == 0 && length)
		r = row ? bins_size(a, "make_pair", row, 1, err)
			: err_set(err, EINVAL, "make_pair: the rule needs the row lengths (row is NULL)");
	if (r == 0)
		cpu_rule_pairs(a, rule, y->mem, line ? p->mem : NULL, length ? row->mem : NULL, ret_pair->mem);
	if (r == 0)
		cpu_rule_weigh(a, rule, ret_pair->mem);
	return r;
}

int cpu_back_sums(struct projection *a, const struct buf *pair, bool add, struct buf *num, struct buf *den, struct err *err)
{
	struct cpu_back b = {.q = pair->mem, .d = pair->mem + count_bins(a), .num = num->mem, .den = den->mem, .add = add};
	int r = volume_size(a, "back_sums", num, err);

	r = r < 0 ? r : volume_size(a, "back_sums", den, err);
	r = r < 0 ? r : bins_size(a, "back_sums", pair, 2, err);
	if (r < 0)
		return r;
	if (a->paths || a->lines || a->scan->tof.n) {
		struct cpu_back first = {.q = b.q, .num = b.num, .add = add};

		project_back(a, &first);
		b = (struct cpu_back){.q = b.d, .num = b.den, .add = add};
	}
	project_back(a, &b);
	return 0;
}

bool cpu_fused(const struct projection *a)
{
	return a->model == PROJECTION_SLICES;
}

int cpu_forward_pair(struct projection *a, const struct rule *rule, const struct buf *x, const struct buf *y,
		     const struct buf *row, struct buf *ret_pair, struct err *err)
{
	bool length = rule_needs_length(rule->kind);
	struct cpu_forward f = {.x = x ? x->mem : NULL,
				.rule = rule,
				.y = y->mem,
				.row = length && row ? row->mem : NULL,
				.q = ret_pair->mem,
				.d = ret_pair->mem + count_bins(a)};
	int r;

	if (!cpu_fused(a))
		return err_set(err, ENOTSUP, "forward_pair: the exact projection has no fused passes");
	if (!rule_needs_line(rule->kind))
		return cpu_make_pair(a, rule, y, NULL, row, ret_pair, err);
	r = cpu_rule_check(rule, err);
	r = r < 0 ? r : volume_size(a, "forward_pair", x, err);
	r = r < 0 ? r : bins_size(a, "forward_pair", y, 1, err);
	r = r < 0 ? r : bins_size(a, "forward_pair", ret_pair, 2, err);
	if (r == 0 && length)
		r = row ? bins_size(a, "forward_pair", row, 1, err)
			: err_set(err, EINVAL, "forward_pair: the rule needs the row lengths (row is NULL)");
	if (r < 0)
		return r;
	cpu_slices_forward(a, &f);
	cpu_rule_weigh(a, rule, ret_pair->mem);
	return 0;
}

int cpu_back_update(struct projection *a, const struct rule *rule, const struct buf *pair, struct buf *x, struct err *err)
{
	struct cpu_back b = {.q = pair->mem, .d = pair->mem + count_bins(a), .rule = rule, .x = x->mem};
	int r = cpu_rule_check(rule, err);

	if (!cpu_fused(a))
		return err_set(err, ENOTSUP, "back_update: the exact projection has no fused passes");
	r = r < 0 ? r : volume_size(a, "back_update", x, err);
	r = r < 0 ? r : bins_size(a, "back_update", pair, 2, err);
	if (r == 0)
		cpu_slices_back(a, &b);
	return r;
}

int cpu_sub_iterate(struct projection *a, const struct rule *rule, const struct buf *y, const struct buf *row, struct buf *work,
		    struct buf *x, struct err *err)
{
	int r = cpu_forward_pair(a, rule, x, y, row, work, err);

	return r < 0 ? r : cpu_back_update(a, rule, work, x, err);
}
