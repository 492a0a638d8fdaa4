/* SPDX-License-Identifier: Apache-2.0 */
/* pet_plan.c - determine grid, subsets and memory before anything is allocated.
 *
 * bytes_total is the sum of all that a session allocates on the device; the CPU device may round vectors up by a page. If that
 * exceeds the limit, data stay in host memory and are transferred in groups of angles, two of them on the device: the current one
 * and the next. First choice: the largest groups that fit together with the tables of all groups; if not even single angles fit,
 * tables are computed again for each use. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "recon/pet/pet_internal.h"

#define MATRIX_DEFAULT 256
#define SLICES_MAX 4096
#define FOV_DEFAULT 350.0 /* mm */
#define FOV_OF_RING 0.98  /* fraction of the radius where rays end; at 1 the outermost rays would have no length */

/* The inputs of a plan; borrowed. */
struct plan_request {
	const struct pet_protocol *p;
	const struct pet_layout *l;
	struct device *dev;
	enum pet_factors factors;
	bool background;
};

bool pet_supports(enum algorithm a)
{
	const struct algorithm_info *i = algorithm_info(a);

	return i->filtered || (i->update != UPDATE_RAYS && (i->rule == RULE_EM || i->rule == RULE_EM_RELAXED));
}

#define KEY(member) PLAN_PARAMETER(pet_protocol, member)
static const struct plan_range ranges[] = {
	{KEY(iterations), PLAN_ITERATES, 1, 1000},
	{KEY(projector), PLAN_ITERATES | PET_BY_BINS,
	 .choices = 1 << PROJECTION_PATHS | 1 << PROJECTION_JOSEPH | 1 << PROJECTION_EXACT, .words = "paths, joseph, exact"},
	{KEY(subsets), PLAN_SUBSETS | PET_BY_BINS, 1, .of = "angles"},
	{KEY(subsets), PLAN_SUBSETS | PET_BY_EVENTS, 1, .of = "events"},
	{KEY(prior_weight), PLAN_RELAXED, .highest = 1e6},
	{KEY(prior_gamma), PLAN_RELAXED, .highest = 1e6},
	{KEY(relaxation), PLAN_RELAXED, .highest = 1e6},
	{KEY(psf), PLAN_ITERATES, .highest = 50, .zero = "none", .unit = " mm"},
	{KEY(filter_cut), PLAN_FILTERED, .highest = 1, .above = true},
	{KEY(matrix), 0, 2, 4096, .zero = "256"},
	{KEY(voxel), 0, 0.1, 100, .zero = "field of view / matrix", .unit = " mm"},
	{KEY(slice), 0, 0.1, 100, .zero = "half of the ring spacing", .unit = " mm"},
	{KEY(postfilter), .highest = 50, .zero = "none", .unit = " mm"},
	{NULL},
};

int pet_check_protocol(const struct pet_protocol *p, bool (*supports)(enum algorithm a), unsigned by, size_t count,
		       struct err *err)
{
	if (!supports(p->algorithm))
		return algorithm_refuse(p->algorithm, supports, err);
	return plan_check(p, ranges, plan_conditions(p->algorithm) | by, count, err);
}

int pet_plan_grid(const struct pet_protocol *p, const struct pet_extent *c, struct grid *ret_grid, double *ret_fov_radius,
		  struct err *err)
{
	double most = FOV_OF_RING * c->ring, fov = p->fov_radius, slices;
	struct grid g = {.z_fastest = true};

	if (fov == 0)
		fov = fmin(fmin(c->radius > 0 ? c->radius : most, FOV_DEFAULT), most);
	if (!(fov > 0 && fov <= most))
		return err_set(err, EINVAL, "fov_radius=%g mm; allowed: more than 0, up to %g (0.98 of %g, where the rays end)",
			       fov, most, c->ring);
	g.n[0] = g.n[1] = p->matrix ? p->matrix : MATRIX_DEFAULT;
	g.h[0] = g.h[1] = p->voxel > 0 ? p->voxel : 2 * fov / g.n[0];
	g.h[2] = p->slice > 0 ? p->slice : c->slice;
	slices = ceil(c->length / g.h[2] * (1 - 1e-9));
	if (!(slices >= 1 && slices <= SLICES_MAX))
		return err_set(err, EINVAL, "slice=%g mm: %g slices over %g mm; allowed: 1 to %d", g.h[2], slices, c->length,
			       SLICES_MAX);
	g.n[2] = (int)slices;
	for (int i = 0; i < 3; i++)
		g.lo[i] = -0.5 * g.n[i] * g.h[i];
	*ret_grid = g;
	*ret_fov_radius = fov;
	return 0;
}

static int lay_out(const struct pet_protocol *p, const struct michelogram *m, struct pet_plan *plan, struct err *err)
{
	const struct pet_scanner *s = &m->scanner;
	struct pet_extent c = {
		.ring = s->radius + s->interaction_depth,
		.radius = fmax(michelogram_radius(m, m->n_radial - 1), -michelogram_radius(m, 0)),
		.length = (2 * s->rings - 1) * s->ring_spacing / 2,
		.slice = s->ring_spacing / 2,
	};
	int r = pet_plan_grid(p, &c, &plan->grid, &plan->fov_radius, err);

	if (r == 0 && algorithm_info(p->algorithm)->filtered && plan->grid.h[2] < s->ring_spacing / 2 * (1 - 1e-6))
		return err_set(err, EINVAL, "slice=%g mm; fbp computes a plane every %g mm; slices cannot be thinner",
			       plan->grid.h[2], s->ring_spacing / 2);
	return r;
}

struct pet_volumes pet_volumes_of(const struct pet_protocol *p, int n_subsets, bool streamed)
{
	const struct algorithm_info *a = algorithm_info(p->algorithm);

	if (a->filtered)
		return (struct pet_volumes){.spare = p->postfilter > 0};
	return (struct pet_volumes){
		.em = true,
		.den = streamed ? 1 : n_subsets,
		.scale = a->rule == RULE_EM_RELAXED,
		.psf = p->psf > 0,
	};
}

/* Bytes of the tables of operators, working memory of one thread, and views of the largest group. */
struct table_bytes {
	size_t tables, scratch;
	int largest;
};

static size_t larger_of(size_t a, size_t b)
{
	return a > b ? a : b;
}

static size_t spec_bytes(struct device *dev, const struct projection_spec *spec, size_t *scratch)
{
	*scratch = larger_of(dev->ops->scratch_bytes(dev, spec), *scratch);
	return dev->ops->projection_bytes(dev, spec);
}

/* Return the bytes of the largest operator that computes a piece of the sensitivity of a group; see pet_layout_piece(). */
static size_t sensitivity_bytes(const struct plan_request *q, struct projection_spec spec, size_t *scratch)
{
	int piece = pet_layout_piece(spec.n_views), end = spec.first + spec.n_views;
	size_t bytes = 0;

	spec.scan = pet_layout_sensitivity_scan(q->l, q->factors);
	for (; spec.first < end; spec.first += piece) {
		spec.n_views = end - spec.first < piece ? end - spec.first : piece;
		bytes = larger_of(spec_bytes(q->dev, &spec, scratch), bytes);
	}
	return bytes;
}

/* Count over n groups. all: the tables of all groups exist at the same time. With time of flight, the operators of the
 * sensitivity exist one at a time in addition; if tables are computed for each use, no other exists then. */
static struct table_bytes count_tables(const struct plan_request *q, const struct grid *grid, const int *first, int n, bool all)
{
	bool tof = q->l->scan->tof.n > 0 && !algorithm_info(q->p->algorithm)->filtered;
	struct table_bytes t = {0};
	size_t sensitivity = 0;

	for (int i = 0; i < n; i++) {
		struct projection_spec spec = pet_layout_spec(q->l, q->p, grid, first[i], first[i + 1] - first[i]);
		size_t bytes = spec_bytes(q->dev, &spec, &t.scratch);

		t.tables = all ? t.tables + bytes : larger_of(bytes, t.tables);
		t.largest = spec.n_views > t.largest ? spec.n_views : t.largest;
		if (tof)
			sensitivity = larger_of(sensitivity_bytes(q, spec, &t.scratch), sensitivity);
	}
	t.tables = all ? t.tables + sensitivity : larger_of(sensitivity, t.tables);
	return t;
}

/* Return the number of bins of a view of all roles: on the host, or on the device. */
static size_t role_bins(const struct plan_request *q, bool device)
{
	size_t view = scan_view_size(q->l->scan), shared = scan_view_size(&q->l->wide);
	size_t factors = q->factors == PET_FACTORS_NONE ? 0 : q->factors == PET_FACTORS_TOF ? view : shared;

	if (device && !pet_layout_loads(q->l, PET_FACTORS))
		factors = 0;
	return (q->background ? 2 : 1) * view + factors;
}

/* Compute the plan's bytes for groups of `views` angles; 0: all on the device. */
static int count_bytes(const struct plan_request *q, int views, bool keep, struct pet_plan *plan, struct err *err)
{
	const struct scan *scan = pet_layout_scan(q->l, q->p), *rays = q->l->scan;
	size_t voxels = grid_size(&plan->grid), view = scan_view_size(scan), volumes, n_views = (size_t)scan->n_views, largest;
	bool fbp = algorithm_info(q->p->algorithm)->filtered;
	int *first = malloc((n_views + 1) * sizeof(*first)), n;
	struct pet_volumes v = pet_volumes_of(q->p, q->l->n_subsets, views > 0);
	struct table_bytes t;

	if (!first)
		return err_set(err, ENOMEM, "plan: cannot allocate %d angles", scan->n_views);
	n = pet_layout_groups(q->l, views, first);
	plan->group_views = views;
	plan->keep_tables = keep || views == 0;
	t = count_tables(q, &plan->grid, first, n, plan->keep_tables);
	free(first);
	largest = (size_t)t.largest;
	volumes = 1 + (size_t)(v.em + v.den + v.scale + (v.psf ? PSF_WORK_VOLUMES : 0) + (v.spare ? 2 : 0));
	plan->bytes_volume = volumes * voxels * sizeof(float);
	/* FBP: direct planes; EM: the data on the device, and a group's line integrals */
	plan->bytes_data = sizeof(float) * view * largest;
	if (!fbp)
		plan->bytes_data += sizeof(float) * role_bins(q, true) * (views ? 2 * largest : n_views);
	plan->bytes_projection = t.tables + t.scratch;
	plan->bytes_scratch = t.scratch;
	plan->bytes_total = plan->bytes_volume + plan->bytes_data + plan->bytes_projection;
	plan->bytes_host = sizeof(float) * (role_bins(q, false) * (size_t)rays->n_views + voxels +
					    (fbp ? view * n_views : voxels * (size_t)q->l->n_subsets));
	return 0;
}

static struct plan_bytes bytes_of(const struct pet_plan *p)
{
	return (struct plan_bytes){p->bytes_total, p->bytes_volume, p->bytes_data, p->bytes_projection};
}

/* What a plan may use. */
struct allowed {
	size_t limit; /* on the device; 0: any number of bytes */
	bool host;    /* also check plan_fits_host() */
};

static bool is_allowed(const struct allowed *a, const struct plan_request *q, const struct pet_plan *plan)
{
	return (a->limit == 0 || plan->bytes_total <= a->limit) &&
	       (!a->host || plan_fits_host(q->dev, plan->bytes_total, plan->bytes_scratch, plan->bytes_host + q->p->host_beside));
}

/* Divide each subset into 1, 2, 3, 4, 6, 8, 12 ... groups, down to groups of one angle, until the plan is allowed. Return 1 if
 * one is, 0 if none is; *plan is then the last one. */
static int divide_subsets(const struct plan_request *q, const struct allowed *a, struct pet_plan *plan, struct err *err)
{
	int largest = q->l->largest_subset, r = 0;

	for (int keep = 1; keep >= 0; keep--)
		for (int groups = q->l->n_subsets > 1 ? 1 : 2, step = 1, views = 0; r == 0 && views != 1; groups += step) {
			views = (largest + groups - 1) / groups;
			r = count_bytes(q, views, keep, plan, err);
			if (r == 0 && is_allowed(a, q, plan))
				return 1;
			step = groups >= 4 * step ? 2 * step : step;
		}
	return r;
}

/* Find a plan that is allowed. If none fits into host memory, one that fits on the device: the caller refuses it. */
static int fit_groups(const struct plan_request *q, size_t limit, struct pet_plan *plan, struct err *err)
{
	struct allowed a = {limit, true}, without_host = {limit, false};
	struct pet_plan whole = *plan;
	int r;

	if (is_allowed(&a, q, plan))
		return 0;
	r = divide_subsets(q, &a, plan, err);
	if (r == 0 && is_allowed(&without_host, q, &whole)) {
		*plan = whole;
		return 0;
	}
	if (r == 0)
		r = divide_subsets(q, &without_host, plan, err);
	if (r == 0)
		return plan_refuse_bytes(bytes_of(&whole), bytes_of(plan), "one angle", q->dev, limit, err);
	return r < 0 ? r : 0;
}

int pet_plan(const struct pet_protocol *p, const struct michelogram *m, enum pet_factors factors, bool with_background,
	     struct device *dev, struct pet_plan *ret_plan, struct err *err)
{
	struct pet_plan plan = {.iterations = algorithm_info(p->algorithm)->filtered ? 1 : p->iterations};
	struct pet_layout l = {0};
	struct plan_request q = {p, &l, dev, factors, with_background};
	int r = michelogram_check(m, err);

	if (r == 0 && factors == PET_FACTORS_TOF && m->tof.n == 0)
		r = err_set(err, EINVAL, "sinogram: factors for each TOF bin, but data without time of flight");
	if (r == 0)
		r = pet_check_protocol(p, pet_supports, PET_BY_BINS, (size_t)m->n_angles, err);
	if (r == 0)
		r = lay_out(p, m, &plan, err);
	if (r == 0)
		r = pet_layout_make(p, m, plan.fov_radius, &l, err);
	if (r < 0)
		return r;
	plan.subsets = l.n_subsets;
	r = count_bytes(&q, 0, true, &plan, err);
	if (r == 0)
		r = fit_groups(&q, plan_limit(dev, p->memory_limit), &plan, err);
	if (r == 0)
		r = plan_threads(dev, plan.bytes_total, plan.bytes_scratch, &plan.bytes_threads, err);
	pet_layout_release(&l);
	if (r == 0)
		*ret_plan = plan;
	return r;
}
