/* SPDX-License-Identifier: Apache-2.0 */
/* dbt_plan.c - determine grid, binning, subsets and memory before anything is allocated.
 *
 * bytes_total is the sum of all that a session allocates on the device; the CPU device may round vectors up by a page. */
#include "recon/dbt/dbt_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "recon/core/plan.h"

#define THICKNESS_MAX 300.0 /* mm: no breast or phantom is thicker */
#define SUPPORT_MAX 500.0   /* mm */
#define VOXEL_MAX 5.0	    /* mm */
#define VOXELS_MAX 65535    /* voxels along an axis, at most */
#define TILE_U 88	    /* tile size of the seed thesis, used if a plan without tiles does not fit */
#define TILE_V 56

#define PRIOR (PLAN_OWN << 0)

#define KEY(member) PLAN_PARAMETER(dbt_protocol, member)
static const struct plan_range ranges[] = {
	{KEY(relaxation), PLAN_SART, .highest = 2, .above = true, .below = true},
	{KEY(prior_weight), .highest = 1e6},
	{KEY(prior), PRIOR, .choices = 1 << PRIOR_RELATIVE | 1 << PRIOR_QUADRATIC, .words = "relative, quadratic"},
	{KEY(prior_gamma), PRIOR, .highest = 1e6},
	{KEY(prior_across), PRIOR, .highest = 1},
	{KEY(filter), PLAN_FILTERED, .choices = 1 << DBT_FILTER_RAMP | 1 << DBT_FILTER_HANN, .words = "ramp, hann"},
	{KEY(filter_cut), PLAN_FILTERED, .highest = 1, .above = true},
	{KEY(projector), .choices = 1 << PROJECTION_SLICES | 1 << PROJECTION_EXACT, .words = "slices, exact"},
	{KEY(iterations), PLAN_ITERATES, 1, 1000},
	{KEY(subsets), PLAN_SUBSETS, .zero = "one per projection", .of = "projections"},
	{KEY(edge_taper), .highest = 100, .unit = " mm"},
	{KEY(voxel), 0, 0.02, VOXEL_MAX, .zero = "the detector's pitch", .unit = " mm"},
	{KEY(slice_spacing), 0, 0.1, 20, .unit = " mm"},
	{NULL},
};

static int check_protocol(const struct dbt_protocol *p, const struct scan *detector, struct err *err)
{
	enum rule_kind rule = dbt_iterate_conf(p).rule.kind;
	int r;

	if (!dbt_supports(p->algorithm))
		return algorithm_refuse(p->algorithm, dbt_supports, err);
	r = plan_check(p, ranges, plan_conditions(p->algorithm) | (dbt_has_prior(p) ? PRIOR : 0), (size_t)detector->n_views, err);
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
	double n[3], coarse, merged;

	for (int c = 0; c < 2; c++) {
		g->h[c] = voxel > 0 ? voxel : detector->h[c];
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
	coarse = detector->h[0] > detector->h[1] ? detector->h[0] : detector->h[1];
	merged = fmax(1, floor(g->h[0] * (1 + 1e-6) / coarse));
	if (!(merged <= detector->n_u && merged <= detector->n_v)) /* check the range before converting to int */
		return err_set(err, EINVAL, "voxel=%g mm is larger than the detector", g->h[0]);
	plan->bin = (int)merged;
	plan->n_u = detector->n_u / plan->bin;
	plan->n_v = detector->n_v / plan->bin;
	plan->n_views = detector->n_views;
	return 0;
}

static int add_bytes(const struct dbt_protocol *p, const struct scan *detector, struct device *dev, struct dbt_plan *plan,
		     struct err *err)
{
	size_t voxels = grid_size(&plan->grid), view = (size_t)plan->n_u * (size_t)plan->n_v, tables = 0, scratch = 0;
	struct iterate_conf rule = dbt_iterate_conf(p);
	struct dbt_layout l;
	int largest = 0, r = dbt_layout_make(p, plan, detector, &l, err);

	if (r < 0)
		return r;
	plan->subsets = l.n_subsets;
	for (int s = 0; s < l.n_subsets; s++) {
		struct grid grid;
		struct projection_spec spec =
			dbt_layout_spec(&l, p, plan, l.first[s], l.first[s + 1] - l.first[s], 0, plan->grid.n[2], &grid);
		size_t shared = dev->ops->scratch_bytes(dev, &spec);

		tables += dev->ops->projection_bytes(dev, &spec);
		scratch = shared > scratch ? shared : scratch;
		largest = spec.n_views > largest ? spec.n_views : largest;
	}
	dbt_layout_release(&l);
	plan->slab_slices = plan->grid.n[2];
	plan->group_views = 0;
	plan->bytes_volume = voxels * sizeof(float);
	/* line integrals, mask and, if the rule needs them, row lengths (sums of the rows of A) */
	plan->bytes_projections = (rule_needs_length(rule.rule.kind) ? 3 : 2) * view * (size_t)plan->n_views * sizeof(float);
	plan->bytes_work =
		iterate_work_size(voxels, (size_t)largest * view, p->projector == PROJECTION_SLICES, dbt_has_prior(p)) *
			sizeof(float) +
		tables + scratch + dbt_stored_floats(&plan->grid) * sizeof(float);
	plan->bytes_scratch = scratch;
	plan->bytes_threads = plan_further_threads(dev, scratch);
	plan->bytes_total = plan->bytes_volume + plan->bytes_projections + plan->bytes_work;
	plan->bytes_host = (2 * (size_t)(plan->n_views < DBT_STAGING_BUFFERS ? plan->n_views : DBT_STAGING_BUFFERS) * view +
			    2 * (size_t)plan->grid.n[0] * (size_t)plan->grid.n[1]) *
			   sizeof(float);
	return 0;
}

/* Memory that a plan may use. */
struct allowed {
	size_t limit; /* on the device */
	bool host;    /* also check plan_fits_host() */
};

static bool is_allowed(const struct allowed *a, const struct device *dev, size_t total, size_t scratch, size_t host)
{
	return total <= a->limit && (!a->host || plan_fits_host(dev, total, scratch, host));
}

/* Find the smallest number of slabs, of nearly equal size, that fits with groups of `views` views. Return the slices of a slab;
 * 0: no number fits. The tables of many slabs may need more memory than fewer, larger slabs, so all numbers are tested. */
static int fit_slabs(const struct dbt_protocol *p, const struct dbt_layout *l, struct device *dev, const struct allowed *a,
		     int views, const struct dbt_plan *plan)
{
	int n = plan->grid.n[2], before = n + 1;
	struct dbt_streamed_size size = {0};

	for (int slabs = 1; slabs <= n; slabs++) {
		int slices = (n + slabs - 1) / slabs;

		if (slices < before) {
			size_t bytes = dbt_streamed_bytes(p, plan, l, dev, slices, views, a->limit, &size);

			if (is_allowed(a, dev, bytes, size.scratch, size.host))
				return slices;
		}
		before = slices;
	}
	return 0;
}

/* Plan a volume in slabs: with the largest groups of views that fit, then with the fewest slabs. Return false if one view and one
 * slice do not fit. */
static bool plan_stream(const struct dbt_protocol *p, const struct dbt_layout *l, struct device *dev, const struct allowed *a,
			struct dbt_plan *plan)
{
	struct dbt_streamed_size size = {0};
	size_t bytes;
	int views = 0, slices = 0;

	for (int s = 0; s < l->n_subsets; s++)
		views = l->first[s + 1] - l->first[s] > views ? l->first[s + 1] - l->first[s] : views;
	for (; views > 0; views--)
		if ((slices = fit_slabs(p, l, dev, a, views, plan)) > 0)
			break;
	if (slices == 0)
		return false;
	bytes = dbt_streamed_bytes(p, plan, l, dev, slices, views, a->limit, &size);
	plan->slab_slices = slices;
	plan->group_views = views;
	plan->bytes_volume = 3 * (size_t)slices * (size_t)plan->grid.n[0] * (size_t)plan->grid.n[1] * sizeof(float);
	plan->bytes_work = size.tables;
	plan->bytes_scratch = size.scratch;
	plan->bytes_projections = bytes - plan->bytes_volume - size.tables;
	plan->bytes_total = bytes;
	plan->bytes_host = size.host;
	return true;
}

/* Try plans with voxels 2, 4, ... times as large; return the first size that fits, mm; 0: no size fits. */
static double fitting_voxel(const struct dbt_protocol *p, const struct scan *detector, double support, double thickness,
			    struct device *dev, const struct dbt_plan *plan, size_t limit, size_t *ret_bytes)
{
	for (double voxel = 2 * plan->grid.h[0]; voxel <= VOXEL_MAX; voxel *= 2) {
		struct dbt_plan other = {.tile = {plan->tile[0], plan->tile[1]}};

		if (lay_out(p, detector, support, thickness, voxel, &other, NULL) < 0 ||
		    add_bytes(p, detector, dev, &other, NULL) < 0)
			return 0;
		if (other.bytes_total <= limit) {
			*ret_bytes = other.bytes_total;
			return voxel;
		}
	}
	return 0;
}

/* Return whether A'd is the same in all updates, and there are several. With edge_taper views may weight their bins, and then the
 * device does not keep it. */
static bool updates_repeat(const struct dbt_protocol *p)
{
	bool one = algorithm_info(p->algorithm)->update != UPDATE_SUBSETS || p->subsets == 1;

	return one && p->iterations > 1 && dbt_iterate_conf(p).rule.kind == RULE_EM && p->projector == PROJECTION_SLICES &&
	       !dbt_has_prior(p) && p->edge_taper == 0;
}

/* Use the tiles if they need less memory. Whether the volume stays on the device is decided without the further threads; the
 * image has the same bits with and without tiles, so the choice between these may count them. */
static void choose_tiles(const struct dbt_plan *tiled, size_t limit, struct dbt_plan *plan)
{
	bool either = plan->bytes_total <= limit && tiled->bytes_total <= limit;
	size_t with = tiled->bytes_total + (either ? tiled->bytes_threads : 0);
	size_t without = plan->bytes_total + (either ? plan->bytes_threads : 0);

	if (with < without)
		*plan = *tiled;
}

static int check_memory(const struct dbt_protocol *p, const struct scan *detector, double support, double thickness,
			struct device *dev, struct dbt_plan *plan, struct err *err)
{
	size_t limit = plan_limit(dev, p->memory_limit), fits = 0;
	struct allowed a = {limit, true}, without_host = {limit, false};
	struct dbt_layout l;
	double voxel;
	bool fits_device;
	int r;

	if (limit == 0 || (plan->bytes_total + plan->bytes_threads <= limit &&
			   is_allowed(&a, dev, plan->bytes_total, plan->bytes_scratch, plan->bytes_host)))
		return 0;
	if (plan->keep_den) { /* not worth tiles or slabs */
		plan->keep_den = false;
		r = add_bytes(p, detector, dev, plan, err);
		return r < 0 ? r : check_memory(p, detector, support, thickness, dev, plan, err);
	}
	if (plan->tile[0] == 0 && plan->tile[1] == 0) {
		struct dbt_plan tiled = *plan;

		tiled.tile[0] = TILE_U;
		tiled.tile[1] = TILE_V;
		r = add_bytes(p, detector, dev, &tiled, err);
		if (r < 0)
			return r;
		choose_tiles(&tiled, limit, plan);
	}
	if (is_allowed(&a, dev, plan->bytes_total, plan->bytes_scratch, plan->bytes_host))
		return 0;
	r = dbt_layout_make(p, plan, detector, &l, err);
	if (r < 0)
		return r;
	fits_device =
		plan_stream(p, &l, dev, &a, plan) || plan->bytes_total <= limit || plan_stream(p, &l, dev, &without_host, plan);
	dbt_layout_release(&l);
	if (fits_device) /* the caller refuses a plan whose memory on the host does not fit */
		return 0;
	voxel = fitting_voxel(p, detector, support, thickness, dev, plan, limit, &fits);
	if (voxel > 0)
		return err_set(err, ENOMEM,
			       "the plan needs %.1f MB on %s (volume %.1f, projections %.1f, work %.1f), the limit is %.1f MB "
			       "(%s); voxel=%g would need %.1f MB",
			       plan_megabytes(plan->bytes_total), dev->ops->kind, plan_megabytes(plan->bytes_volume),
			       plan_megabytes(plan->bytes_projections), plan_megabytes(plan->bytes_work), plan_megabytes(limit),
			       plan_limit_name(dev, limit), voxel, plan_megabytes(fits));
	return err_set(err, ENOMEM,
		       "the plan needs %.1f MB on %s (volume %.1f, projections %.1f, work %.1f), the limit is %.1f MB (%s); no "
		       "voxel size up to 5 mm fits",
		       plan_megabytes(plan->bytes_total), dev->ops->kind, plan_megabytes(plan->bytes_volume),
		       plan_megabytes(plan->bytes_projections), plan_megabytes(plan->bytes_work), plan_megabytes(limit),
		       plan_limit_name(dev, limit));
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
	struct dbt_plan plan = {.tile = {p->tile[0], p->tile[1]}};
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
	plan.keep_den = updates_repeat(p);
	if (r == 0)
		r = add_bytes(p, detector, dev, &plan, err);
	if (r == 0)
		r = check_memory(p, detector, support, thickness, dev, &plan, err);
	if (r == 0)
		r = plan_threads(dev, plan.bytes_total, plan.bytes_scratch, &plan.bytes_threads, err);
	if (r < 0)
		return r;
	*ret_plan = plan;
	return 0;
}
