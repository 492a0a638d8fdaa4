/* SPDX-License-Identifier: Apache-2.0 */
/* dbt_plan.c - determine grid, binning, subsets and memory before anything is allocated.
 *
 * bytes.total is the sum of all that a session allocates on the device; the CPU device may round vectors up by a page. */
#include "recon/dbt/dbt_internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "recon/dbt/dbt_keys.h"

#define THICKNESS_MAX 300.0 /* mm: no breast or phantom is thicker */
#define SUPPORT_MAX 500.0   /* mm */
#define VOXEL_MAX 5.0	    /* mm */
#define VOXEL_LEAST 0.9	    /* of a bin, which is about this wide at mid-height: rays pass beside smaller voxels of a slice */
#define VOXELS_MAX 65535    /* voxels along an axis, at most */
#define TILE_U 88	    /* tile size of the seed thesis, used if a plan without tiles does not fit */
#define TILE_V 56

static const struct key keys[] = {DBT_KEYS(dbt_protocol, )};
static const struct plan_range wider[] = {{"edge_taper", 0, 100}, {NULL}};

static int check_protocol(const struct dbt_protocol *p, const struct scan *detector, struct err *err)
{
	enum rule_kind rule = dbt_iterate_conf(p).rule.kind;
	int r;

	if (!dbt_supports(p->algorithm))
		return algorithm_refuse(p->algorithm, dbt_supports, err);
	r = plan_check(p, keys, sizeof(keys) / sizeof(keys[0]), wider, (size_t)detector->n_views, "projections", err);
	if (r < 0)
		return r;
	if (p->normalise_rows && algorithm_info(p->algorithm)->rule != RULE_EM)
		return err_set(err, EINVAL, "normalise_rows=true; allowed only with osem and mlem");
	if (dbt_has_prior(p) && rule != RULE_EM && rule != RULE_TRANSMISSION)
		return err_set(err, EINVAL,
			       "prior_weight=%g; allowed only with osem, mlem (without normalise_rows), ostr and mltr",
			       p->prior_weight);
	for (int c = 0; c < 2; c++)
		if (p->tile[c] < 0 || p->tile[c] > 65535)
			return err_set(err, EINVAL, "tile=%dx%d; allowed: 0 (untiled) to 65535 bins", p->tile[0], p->tile[1]);
	return 0;
}

/* Return the number of voxels that cover a length; rounding errors of the division do not add one. */
static double count_voxels(double length, double step)
{
	return ceil(length / step * (1 - 1e-9));
}

static int lay_out(const struct dbt_protocol *p, const struct scan *detector, double support, double thickness, double voxel,
		   struct dbt_plan *plan, struct err *err)
{
	struct grid *g = &plan->grid;
	double n[3], coarse = fmax(detector->h[0], detector->h[1]), merged;

	for (int c = 0; c < 2; c++) {
		g->h[c] = voxel >= VOXEL_LEAST * coarse ? voxel : detector->h[c];
		n[c] = count_voxels((c ? detector->n_v : detector->n_u) * detector->h[c], g->h[c]);
	}
	g->h[2] = p->slice_spacing;
	n[2] = count_voxels(thickness, g->h[2]);
	for (int c = 0; c < 3; c++) {
		if (!(n[c] >= 1 && n[c] <= VOXELS_MAX))
			return err_set(err, EINVAL, "voxel=%g slice_spacing=%g: %g voxels along axis %d; allowed: 1 to %d",
				       p->voxel, p->slice_spacing, n[c], c, VOXELS_MAX);
		g->n[c] = (int)n[c];
	}
	g->lo[0] = detector->lo[0];
	g->lo[1] = detector->lo[1] + 0.5 * (detector->n_v * detector->h[1] - g->n[1] * g->h[1]);
	g->lo[2] = support;
	merged = fmax(1, floor(g->h[0] * (1 + 1e-6) / coarse));
	if (!(merged <= detector->n_u && merged <= detector->n_v)) /* check the range before converting to int */
		return err_set(err, EINVAL, "voxel=%g mm is larger than the detector", g->h[0]);
	plan->bin = (int)merged;
	plan->n_u = detector->n_u / plan->bin;
	plan->n_v = detector->n_v / plan->bin;
	plan->n_views = detector->n_views;
	return 0;
}

/* The inputs of a plan; borrowed. */
struct request {
	const struct dbt_protocol *p;
	const struct scan *detector;
	double support, thickness;
	struct device *dev;
	size_t limit;
	struct dbt_layout l;
	struct dbt_plan *plan;
};

/* Count the bytes of a plan with the whole volume and all views on the device. */
static void count_resident(const struct request *q, const struct dbt_layout *l, struct dbt_plan *plan)
{
	const struct dbt_protocol *p = q->p;
	size_t view = (size_t)plan->n_u * (size_t)plan->n_v, n_views = (size_t)plan->n_views, voxels = grid_size(&plan->grid);
	size_t slice = (size_t)plan->grid.n[0] * (size_t)plan->grid.n[1];
	size_t staged = n_views < DBT_STAGING_BUFFERS ? n_views : DBT_STAGING_BUFFERS;
	bool rows = rule_needs_length(dbt_iterate_conf(p).rule.kind);
	struct plan_bytes b = {
		.volumes = voxels * sizeof(float),
		/* line integrals, mask and, if the rule needs them, row lengths (sums of the rows of A) */
		.data = (rows ? 3 : 2) * view * n_views * sizeof(float),
		.tables = (iterate_work_size(voxels, (size_t)q->l.views.largest_subset * view, p->projector == PROJECTION_SLICES,
					     dbt_has_prior(p)) +
			   dbt_stored_floats(&plan->grid) + (dbt_has_shape(p) ? slice : 0)) *
			  sizeof(float),
		.host = (2 * staged * view + 2 * slice) * sizeof(float) + dbt_shape_host_bytes(p, plan) +
			dbt_cells_host_bytes(p, plan, l->scan),
	};
	struct projection_spec marks;
	struct grid all;

	for (int s = 0; s < l->views.n_subsets; s++) {
		struct grid grid;
		struct projection_spec spec = dbt_layout_spec(
			l, p, plan, l->views.first[s], l->views.first[s + 1] - l->views.first[s], 0, plan->grid.n[2], &grid);

		plan_count(&b, q->dev, &spec);
	}
	marks = dbt_layout_spec_of_marks(l, p, plan, &all);
	plan_count(&b, q->dev, &marks);
	plan_sum(&b, q->dev);
	plan->slab_slices = plan->grid.n[2];
	plan->group_views = 0;
	plan->bytes = b;
}

/* Return whether A'd is the same in all updates, and there are several. With edge_taper views may weight their bins, and then the
 * device does not keep it. */
static bool updates_repeat(const struct dbt_protocol *p)
{
	bool one = algorithm_info(p->algorithm)->update != UPDATE_SUBSETS || p->subsets == 1;

	return one && p->iterations > 1 && dbt_iterate_conf(p).rule.kind == RULE_EM && p->projector == PROJECTION_SLICES &&
	       !dbt_has_prior(p) && p->edge_taper == 0;
}

/* Return whether a plan fits with its further threads. */
static bool fits_with_threads(const struct request *q, const struct dbt_plan *plan)
{
	return (q->limit == 0 || plan->bytes.total + plan->bytes.threads <= q->limit) &&
	       plan_fits(&plan->bytes, q->dev, q->limit, true, 0);
}

/* Use the tiles if they need less memory. Whether the volume stays on the device is decided without the further threads; the
 * image has the same bits with and without tiles, so the choice between these may count them. */
static void choose_tiles(const struct dbt_plan *tiled, size_t limit, struct dbt_plan *plan)
{
	bool either = plan->bytes.total <= limit && tiled->bytes.total <= limit;
	size_t with = tiled->bytes.total + (either ? tiled->bytes.threads : 0);
	size_t without = plan->bytes.total + (either ? plan->bytes.threads : 0);

	if (with < without)
		*plan = *tiled;
}

/* Plan with the whole volume on the device: untiled and with A'd kept, if that fits. */
static void plan_whole(const struct request *q)
{
	struct dbt_plan *plan = q->plan, tiled;

	plan->keep_den = updates_repeat(q->p);
	memcpy(plan->tile, q->p->tile, sizeof(plan->tile));
	count_resident(q, &q->l, plan);
	if (plan->keep_den && !fits_with_threads(q, plan)) { /* not worth tiles or slabs */
		plan->keep_den = false;
		count_resident(q, &q->l, plan);
	}
	if (fits_with_threads(q, plan) || plan->tile[0] != 0 || plan->tile[1] != 0)
		return;
	tiled = *plan;
	tiled.tile[0] = TILE_U;
	tiled.tile[1] = TILE_V;
	count_resident(q, &q->l, &tiled);
	choose_tiles(&tiled, q->limit, plan);
}

/* Choice 0: the whole volume on the device. Then slabs, with the largest groups of views first, and with each the fewest slabs, of
 * nearly equal size. The tables of many slabs may need more memory than fewer, larger slabs, so all numbers are choices. */
static int count_choice(void *ctx, int choice, struct err *err)
{
	struct request *q = ctx;
	struct dbt_plan *plan = q->plan;
	int n = plan->grid.n[2], slabs = 1 + (choice ? choice - 1 : 0) % n, slices = (n + slabs - 1) / slabs;

	if (choice == 0) {
		plan_whole(q);
		return 0;
	}
	plan->slab_slices = slices;
	plan->group_views = q->l.views.largest_subset - (choice - 1) / n;
	if (choice > 1 && slabs > 1 && slices == (n + slabs - 2) / (slabs - 1)) /* as the choice before, which did not fit */
		return 0;
	return dbt_streamed_count(q->p, plan, &q->l, q->dev, slices, plan->group_views, q->limit, &plan->bytes, err);
}

/* Find voxels 2, 4, ... times as large whose plan fits; say in an error which, or that none fits. */
static void advise_voxel(const struct request *q, struct err *err)
{
	size_t at = err ? strlen(err->msg) : 0, room = err ? sizeof(err->msg) - at : 0;
	const struct dbt_plan *plan = q->plan;

	for (double voxel = 2 * plan->grid.h[0]; err && voxel <= VOXEL_MAX; voxel *= 2) {
		struct dbt_plan other = {.tile = {plan->tile[0], plan->tile[1]}};
		struct dbt_layout l;

		if (lay_out(q->p, q->detector, q->support, q->thickness, voxel, &other, NULL) < 0 ||
		    dbt_layout_make(q->p, &other, q->detector, &l, NULL) < 0)
			break;
		count_resident(q, &l, &other);
		dbt_layout_release(&l);
		if (other.bytes.total <= q->limit) {
			snprintf(err->msg + at, room, "; voxel=%g would need %.1f MB", voxel, plan_megabytes(other.bytes.total));
			return;
		}
	}
	if (err)
		snprintf(err->msg + at, room, "; no voxel size up to %g mm fits", VOXEL_MAX);
}

static int fit_memory(struct request *q, struct err *err)
{
	struct dbt_plan *plan = q->plan;
	struct plan_choices choices = {.least = "one slice of one view", .count = count_choice, .ctx = q, .bytes = &plan->bytes};
	int r = dbt_layout_make(q->p, plan, q->detector, &q->l, err);

	if (r < 0)
		return r;
	plan->subsets = q->l.views.n_subsets;
	choices.n = 1 + q->l.views.largest_subset * plan->grid.n[2];
	r = plan_fit(&choices, q->dev, q->p->memory_limit, err);
	if (r == -ENOMEM && q->limit > 0 && plan->bytes.total > q->limit)
		advise_voxel(q, err);
	dbt_layout_release(&q->l);
	return r;
}

/* Check that the volume is between detector and source in every view, and that the projector supports the detector's pose. */
static int check_views(const struct dbt_protocol *p, const struct scan *detector, const struct grid *g, struct err *err)
{
	double bottom = g->lo[2], top = bottom + g->n[2] * g->h[2];

	for (int i = 0; i < detector->n_views; i++) {
		const struct scan_view *view = &detector->views[i];
		double highest = scan_detector_top(detector, view);

		if (!(view->src[2] > top))
			return err_set(err, EINVAL,
				       "plan: the volume ends %g mm above the detector, but the source of projection %d "
				       "is at %g mm",
				       top, i, view->src[2]);
		if (!(bottom >= highest))
			return err_set(
				err, EINVAL,
				"plan: the volume begins at z = %g mm, but in projection %d the detector reaches up to %g mm",
				bottom, i, highest);
		if (p->projector == PROJECTION_SLICES && !scan_view_is_level(view))
			return err_set(err, EINVAL,
				       "plan: in projection %d the columns of the detector are not parallel to x, which only "
				       "projector=exact supports",
				       i);
	}
	return 0;
}

int dbt_plan(const struct dbt_protocol *p, const struct scan *detector, double support, double thickness, struct device *dev,
	     struct dbt_plan *ret_plan, struct err *err)
{
	struct dbt_plan plan = {0};
	struct request q = {p, detector, support, thickness, dev, plan_limit(dev, p->memory_limit), .plan = &plan};
	int r = check_protocol(p, detector, err);

	if (r < 0)
		return r;
	if (detector->kind != SCAN_DBT)
		return err_set(err, EINVAL, "plan: scan of kind %d is not tomosynthesis", (int)detector->kind);
	if (!(thickness > 0 && thickness <= THICKNESS_MAX))
		return err_set(err, EINVAL, "thickness=%g mm of the compressed breast; allowed: more than 0, at most %g",
			       thickness, THICKNESS_MAX);
	if (!(support >= 0 && support <= SUPPORT_MAX))
		return err_set(err, EINVAL, "support=%g mm above the detector; allowed: 0 to %g", support, SUPPORT_MAX);
	r = lay_out(p, detector, support, thickness, p->voxel, &plan, err);
	if (r == 0)
		r = check_views(p, detector, &plan.grid, err);
	if (r == 0)
		r = fit_memory(&q, err);
	if (r < 0)
		return r;
	*ret_plan = plan;
	return 0;
}
