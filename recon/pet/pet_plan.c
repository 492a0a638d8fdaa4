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

#include "recon/core/plan.h"
#include "recon/pet/pet_internal.h"

#define MATRIX_DEFAULT 256
#define MATRIX_MAX 4096
#define SLICES_MAX 4096
#define FOV_DEFAULT 350.0 /* mm */
#define FOV_OF_RING 0.98  /* fraction of the radius where rays end; at 1 the outermost rays would have no length */
#define FWHM_MAX 50.0	  /* mm */

/* The inputs of a plan; borrowed. */
struct plan_request {
	const struct pet_protocol *p;
	const struct pet_layout *l;
	struct device *dev;
	int roles;
};

static int check_fwhm(const char *key, double fwhm, struct err *err)
{
	return fwhm == 0 || (fwhm > 0 && fwhm <= FWHM_MAX) ? 0 : plan_refuse(err, key, fwhm, "0 (none) to 50 mm");
}

bool pet_supports(enum algorithm a)
{
	const struct algorithm_info *i = algorithm_info(a);

	return i->filtered || (i->update != UPDATE_RAYS && (i->rule == RULE_EM || i->rule == RULE_EM_RELAXED));
}

static int check_em(const struct pet_protocol *p, const struct michelogram *m, struct err *err)
{
	const struct algorithm_info *a = algorithm_info(p->algorithm);
	int r;

	if (p->iterations < 1 || p->iterations > 1000)
		return plan_refuse(err, "iterations", p->iterations, "1 to 1000");
	if (p->projector != PROJECTION_PATHS && p->projector != PROJECTION_JOSEPH && p->projector != PROJECTION_EXACT)
		return plan_refuse(err, "projector", p->projector, "paths, joseph, exact");
	if (a->update == UPDATE_SUBSETS && (p->subsets < 1 || p->subsets > m->n_angles))
		return err_set(err, EINVAL, "subsets=%d; allowed: 1 to %d, the number of angles", p->subsets, m->n_angles);
	r = pet_em_check(p, err);
	if (r < 0)
		return r;
	return check_fwhm("psf", p->psf, err);
}

static int check_protocol(const struct pet_protocol *p, const struct michelogram *m, struct err *err)
{
	bool fbp = algorithm_info(p->algorithm)->filtered;
	int r;

	if (!pet_supports(p->algorithm))
		return algorithm_refuse(p->algorithm, pet_supports, err);
	if (!fbp && (r = check_em(p, m, err)) < 0)
		return r;
	if (fbp && (r = pet_fbp_check(p, err)) < 0)
		return r;
	if (p->matrix != 0 && (p->matrix < 2 || p->matrix > MATRIX_MAX))
		return plan_refuse(err, "matrix", p->matrix, "0 (256), 2 to 4096");
	if (!(p->voxel == 0 || (p->voxel >= 0.1 && p->voxel <= 100))) /* false for NaN too */
		return plan_refuse(err, "voxel", p->voxel, "0 (field of view / matrix), 0.1 to 100 mm");
	if (!(p->slice == 0 || (p->slice >= 0.1 && p->slice <= 100)))
		return plan_refuse(err, "slice", p->slice, "0 (half of the ring spacing), 0.1 to 100 mm");
	return check_fwhm("postfilter", p->postfilter, err);
}

static int lay_out(const struct pet_protocol *p, const struct michelogram *m, struct pet_plan *plan, struct err *err)
{
	const struct pet_scanner *s = &m->scanner;
	double ring = s->radius + s->interaction_depth, most = FOV_OF_RING * ring, slices;
	double largest = fmax(michelogram_radius(m, m->n_radial - 1), -michelogram_radius(m, 0)), length;
	struct grid *g = &plan->grid;

	plan->fov_radius = p->fov_radius;
	if (p->fov_radius == 0)
		plan->fov_radius = fmin(fmin(largest > 0 ? largest : most, FOV_DEFAULT), most);
	if (!(plan->fov_radius > 0 && plan->fov_radius <= most))
		return err_set(err, EINVAL, "fov_radius=%g mm; allowed: more than 0, up to %g (0.98 of %g, where the rays end)",
			       p->fov_radius, most, ring);
	g->z_fastest = true;
	g->n[0] = g->n[1] = p->matrix ? p->matrix : MATRIX_DEFAULT;
	g->h[0] = g->h[1] = p->voxel > 0 ? p->voxel : 2 * plan->fov_radius / g->n[0];
	g->h[2] = p->slice > 0 ? p->slice : s->ring_spacing / 2;
	length = (2 * s->rings - 1) * s->ring_spacing / 2;
	slices = ceil(length / g->h[2] * (1 - 1e-9));
	if (!(slices >= 1 && slices <= SLICES_MAX))
		return err_set(err, EINVAL, "slice=%g mm: %g slices over %g mm; allowed: 1 to %d", g->h[2], slices, length,
			       SLICES_MAX);
	g->n[2] = (int)slices;
	if (algorithm_info(p->algorithm)->filtered && g->h[2] < s->ring_spacing / 2 * (1 - 1e-6))
		return err_set(err, EINVAL, "slice=%g mm; fbp computes a plane every %g mm; slices cannot be thinner", g->h[2],
			       s->ring_spacing / 2);
	for (int c = 0; c < 3; c++)
		g->lo[c] = -0.5 * g->n[c] * g->h[c];
	return 0;
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
		.gradient = a->rule == RULE_EM_RELAXED && p->prior_weight > 0,
		.psf = p->psf > 0,
	};
}

/* Compute the plan's bytes for groups of `views` angles; 0: all on the device. */
static int count(const struct plan_request *q, int views, bool keep, struct pet_plan *plan, struct err *err)
{
	const struct scan *scan = pet_layout_scan(q->l, q->p), *rays = q->l->scan;
	size_t voxels = grid_size(&plan->grid), view = scan_view_size(scan), tables = 0, scratch = 0, volumes;
	bool fbp = algorithm_info(q->p->algorithm)->filtered, all = keep || views == 0;
	int *first = malloc(((size_t)scan->n_views + 1) * sizeof(*first)), n, largest = 0;
	struct pet_volumes v = pet_volumes_of(q->p, q->l->n_subsets, views > 0);

	if (!first)
		return err_set(err, ENOMEM, "plan: cannot allocate %d angles", scan->n_views);
	n = pet_layout_groups(q->l, views, first);
	for (int i = 0; i < n; i++) {
		struct projection_spec spec = pet_layout_spec(q->l, q->p, &plan->grid, first[i], first[i + 1] - first[i]);
		size_t bytes = q->dev->ops->projection_bytes(q->dev, &spec), shared = q->dev->ops->scratch_bytes(q->dev, &spec);

		tables = all ? tables + bytes : bytes > tables ? bytes : tables;
		scratch = shared > scratch ? shared : scratch;
		largest = spec.n_views > largest ? spec.n_views : largest;
	}
	free(first);
	volumes = 1 + (size_t)(v.em + v.den + v.scale + v.gradient + (v.psf ? PSF_WORK_VOLUMES : 0) + (v.spare ? 2 : 0));
	plan->group_views = views;
	plan->keep_tables = all;
	plan->bytes_volume = volumes * voxels * sizeof(float);
	/* FBP: direct planes; EM: the data that were put, and a group's line integrals */
	plan->bytes_data =
		fbp ? view * (size_t)largest * sizeof(float)
		    : view * sizeof(float) * ((size_t)q->roles * (size_t)(views ? 2 * largest : scan->n_views) + (size_t)largest);
	plan->bytes_projection = tables + scratch;
	plan->bytes_scratch = scratch;
	plan->bytes_total = plan->bytes_volume + plan->bytes_data + plan->bytes_projection;
	plan->bytes_host = sizeof(float) * ((size_t)q->roles * scan_view_size(rays) * (size_t)rays->n_views + voxels +
					    (fbp ? view * (size_t)scan->n_views : voxels * (size_t)q->l->n_subsets));
	return 0;
}

static struct plan_bytes bytes_of(const struct pet_plan *p)
{
	return (struct plan_bytes){p->bytes_total, p->bytes_volume, p->bytes_data, p->bytes_projection};
}

/* Divide each subset into 1, 2, 3, 4, 6, 8, 12 ... groups, down to groups of one angle, until the plan fits. */
static int fit(const struct plan_request *q, size_t limit, struct pet_plan *plan, struct err *err)
{
	struct pet_plan whole = *plan;
	int largest = q->l->largest_subset, r = 0;

	for (int keep = 1; keep >= 0; keep--)
		for (int groups = q->l->n_subsets > 1 ? 1 : 2, step = 1, views = 0; r == 0 && views != 1; groups += step) {
			views = (largest + groups - 1) / groups;
			r = count(q, views, keep, plan, err);
			if (r == 0 && plan->bytes_total <= limit)
				return 0;
			step = groups >= 4 * step ? 2 * step : step;
		}
	if (r < 0)
		return r;
	return plan_refuse_bytes(bytes_of(&whole), bytes_of(plan), "one angle", q->dev, limit, err);
}

int pet_plan(const struct pet_protocol *p, const struct michelogram *m, bool with_factors, bool with_background,
	     struct device *dev, struct pet_plan *ret_plan, struct err *err)
{
	struct pet_plan plan = {.iterations = algorithm_info(p->algorithm)->filtered ? 1 : p->iterations};
	struct pet_layout l = {0};
	struct plan_request q = {p, &l, dev, 1 + with_factors + with_background};
	size_t limit = plan_limit(dev, p->memory_limit);
	int r = michelogram_check(m, err);

	if (r == 0)
		r = check_protocol(p, m, err);
	if (r == 0)
		r = lay_out(p, m, &plan, err);
	if (r == 0)
		r = pet_layout_make(p, m, plan.fov_radius, &l, err);
	if (r < 0)
		return r;
	plan.subsets = l.n_subsets;
	r = count(&q, 0, true, &plan, err);
	if (r == 0 && limit > 0 && plan.bytes_total > limit)
		r = fit(&q, limit, &plan, err);
	if (r == 0)
		r = plan_threads(dev, plan.bytes_total, plan.bytes_scratch, &plan.bytes_threads, err);
	pet_layout_release(&l);
	if (r == 0)
		*ret_plan = plan;
	return r;
}
