/* SPDX-License-Identifier: Apache-2.0 */
/* api_sessions.c - the sessions of the four kinds of scan for api_recon.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "recon/api/api_sessions.h"

#define PLANES 32 /* copied at a time */

static int alloc_floats(size_t n, float **ret, struct err *err)
{
	*ret = malloc(n * sizeof(**ret));
	return *ret ? 0 : err_set(err, ENOMEM, "reconstruction: no memory for %zu floats", n);
}

static int set_plan(struct tn_recon *r, const struct grid *grid, int iterations, int subsets, const struct plan_bytes *bytes,
		    bool streamed)
{
	r->grid = *grid;
	r->info = (struct tn_recon_info){.iterations = iterations,
					 .subsets = subsets,
					 .bytes_device = bytes->total + bytes->threads,
					 .bytes_host = bytes->host,
					 .streamed = streamed};
	return 0;
}

/* ---- PET ---- */

static void set_pet_grid(struct tn_recon *r, const struct grid *g)
{
	struct pet_protocol *p = &r->p.pet;

	if (g) {
		p->matrix = g->n[0];
		p->voxel = g->h[0];
		p->slice = g->h[2];
	}
	if (p->fov_radius == 0)
		p->fov_radius = r->s->fov_radius;
}

static int open_pet(struct tn_recon *r, const struct grid *g, struct err *err)
{
	enum pet_factors factors = r->roles & 1u << TN_FACTORS ? PET_FACTORS_SHARED : PET_FACTORS_NONE;
	bool background = r->roles & 1u << TN_BACKGROUND;
	struct pet_plan *plan = &r->pet_plan;
	int rc;

	set_pet_grid(r, g);
	rc = pet_plan(&r->p.pet, &r->s->m, factors, background, r->d->dev, plan, err);
	if (rc == 0)
		rc = pet_open(&r->p.pet, plan, &r->s->m, factors, background, r->d->dev, NULL, &r->pet, err);
	if (rc < 0)
		return rc;
	return set_plan(r, &plan->grid, plan->iterations, plan->subsets, &plan->bytes, plan->group_views > 0);
}

/* Pass planes [first, first + n) of a TOF bin, whose number is k. */
static int put_planes(struct tn_recon *r, enum pet_role role, const struct api_array *a, const struct api_order *o, int k,
		      int first, int n, float *work, struct err *err)
{
	int last = o->ndim - 3;
	int64_t shape[3] = {n, o->shape[last + 1], o->shape[last + 2]};
	struct api_array part = {.data = a->data + first * a->strides[last] + (last > 0 ? k * a->strides[0] : 0),
				 .on_device = a->on_device};
	struct api_order planes;
	int rc;

	api_order_c(3, shape, &planes);
	memcpy(part.strides, a->strides + last, 3 * sizeof(part.strides[0]));
	rc = api_array_copy(r->d, &part, &planes, NULL, work, false, err);
	return rc < 0 ? rc : pet_put(r->pet, role, k * (int)o->shape[last] + first, n, work, err);
}

static int put_pet(struct tn_recon *r, enum tn_role role, const struct api_array *a, const struct api_order *o, struct err *err)
{
	static const enum pet_role roles[] = {0, PET_DATA, PET_FACTORS, PET_BACKGROUND};
	int last = o->ndim - 3, bins = last > 0 ? (int)o->shape[0] : 1, all = (int)o->shape[last];
	size_t plane = (size_t)o->shape[last + 1] * (size_t)o->shape[last + 2];
	float *work;
	int rc = alloc_floats(PLANES * plane, &work, err);

	for (int k = 0; rc == 0 && k < bins; k++)
		for (int p = 0; rc == 0 && p < all; p += PLANES)
			rc = put_planes(r, roles[role], a, o, k, p, all - p < PLANES ? all - p : PLANES, work, err);
	free(work);
	return rc;
}

static int run_pet(struct tn_recon *r, const struct monitor *monitor, struct tn_report *ret, struct err *err)
{
	struct pet_report report = {0};
	int rc = pet_run(r->pet, monitor, &report, err);

	ret->seconds_setup = report.seconds_setup;
	ret->seconds_run = report.seconds_sensitivity + report.seconds_iterate + report.seconds_filter;
	ret->counts = report.counts;
	return rc;
}

static int read_pet(struct tn_recon *r, int first, int n, float *ret_slices, struct err *err)
{
	return pet_read_slices(r->pet, first, n, ret_slices, err);
}

const struct api_session_ops api_session_pet = {
	1 << TN_DATA | 1 << TN_FACTORS | 1 << TN_BACKGROUND, 1 << TN_DATA, open_pet, put_pet, run_pet, read_pet};

/* ---- lists ---- */

static int rewind_lines(void *ctx, struct err *err)
{
	(void)err;
	((struct tn_recon *)ctx)->at = 0;
	return 0;
}

static int read_lines(void *ctx, struct event *ret, size_t most, size_t *ret_n, struct err *err)
{
	struct tn_recon *r = ctx;
	size_t left = r->s->n_lines - r->at, n = left < most ? left : most;

	(void)err;
	memcpy(ret, r->s->lines + r->at, n * sizeof(*ret));
	r->at += n;
	*ret_n = n;
	return 0;
}

/* The sensitivity is the caller's: no LORs. */
static int read_none(void *ctx, struct event *ret, size_t most, size_t *ret_n, struct err *err)
{
	(void)ctx, (void)ret, (void)most, (void)err;
	*ret_n = 0;
	return 0;
}

static int open_lines(struct tn_recon *r, const struct grid *g, struct err *err)
{
	struct pet_plan *plan = &r->pet_plan;
	int rc;

	set_pet_grid(r, g);
	if (r->p.pet.slice == 0)
		return err_set(err, EINVAL, "key 'slice_spacing': needed for lines, or a grid");
	r->list = (struct pet_list){
		.detectors = r->s->points,
		.n_detectors = r->s->n_points,
		.tof = r->s->tof,
		.events = {r, rewind_lines, read_lines},
		.n_events = r->s->n_lines,
		.with_background = r->s->with_add,
		.background = r->s->background,
		.lors = {r, rewind_lines, read_none},
		.n_lors = 1,
		.slice = r->p.pet.slice,
	};
	rc = pet_list_plan(&r->p.pet, &r->list, r->d->dev, plan, err);
	if (rc == 0)
		rc = pet_list_open(&r->p.pet, plan, &r->list, r->d->dev, &r->events, err);
	if (rc == 0 && !(r->sensitivity.values = calloc(grid_size(&plan->grid), sizeof(float))))
		rc = err_set(err, ENOMEM, "reconstruction: no memory for the sensitivity");
	if (rc < 0)
		return rc;
	pet_list_share_sensitivity(r->events, &r->sensitivity);
	return set_plan(r, &plan->grid, plan->iterations, plan->subsets, &plan->bytes, !plan->resident);
}

static int put_lines(struct tn_recon *r, enum tn_role role, const struct api_array *a, const struct api_order *o, struct err *err)
{
	int64_t strides[STRIDES_MAX] = {0};
	int rc;

	(void)role; /* the sensitivity */
	for (int c = 0; c < 3; c++)
		strides[c] = (int64_t)grid_step(&r->grid, 2 - c);
	rc = api_array_copy(r->d, a, o, strides, r->sensitivity.values, false, err);
	for (size_t i = 0; rc == 0 && i < grid_size(&r->grid); i++)
		if (!(r->sensitivity.values[i] >= 0 && r->sensitivity.values[i] < INFINITY))
			return err_set(err, EINVAL, "sensitivity: a voxel is %g", (double)r->sensitivity.values[i]);
	r->sensitivity.computed = rc == 0;
	return rc;
}

static int run_lines(struct tn_recon *r, const struct monitor *monitor, struct tn_report *ret, struct err *err)
{
	struct pet_report report = {0};
	int rc = pet_list_run(r->events, monitor, &report, err);

	ret->seconds_setup = report.seconds_sensitivity + report.seconds_read;
	ret->seconds_run = report.seconds_iterate + report.seconds_filter;
	ret->counts = report.counts;
	return rc;
}

static int read_events(struct tn_recon *r, int first, int n, float *ret_slices, struct err *err)
{
	return pet_list_read_slices(r->events, first, n, ret_slices, err);
}

const struct api_session_ops api_session_lines = {1 << TN_SENSITIVITY, 1 << TN_SENSITIVITY, open_lines,
						  put_lines,	       run_lines,	    read_events};

/* ---- views ---- */

static int open_views(struct tn_recon *r, const struct grid *g, struct err *err)
{
	struct dbt_protocol *p = &r->p.dbt;
	struct dbt_plan *plan = &r->dbt_plan;
	int rc;

	if (g) {
		p->voxel = g->h[0];
		p->slice_spacing = g->h[2];
		r->p.support = g->lo[2];
		r->p.thickness = g->n[2] * g->h[2];
	}
	if (r->p.thickness == 0)
		return err_set(err, EINVAL, "key 'thickness': needed, or a grid");
	rc = dbt_plan(p, r->s->views, r->p.support, r->p.thickness, r->d->dev, plan, err);
	if (rc == 0)
		rc = dbt_open(p, plan, r->s->views, r->d->dev, &r->dbt, err);
	if (rc < 0)
		return rc;
	return set_plan(r, &plan->grid, p->iterations, plan->subsets, &plan->bytes,
			plan->slab_slices < plan->grid.n[2] || plan->group_views > 0);
}

static int pass_views(struct tn_recon *r, struct err *err)
{
	size_t bins = (size_t)r->s->shape[1] * (size_t)r->s->shape[2];
	float *line, *valid;
	int rc = 0;

	for (int i = 0; rc == 0 && i < r->s->shape[0]; i++) {
		rc = dbt_view_begin(r->dbt, i, &line, &valid, err);
		if (rc < 0)
			break;
		memcpy(line, r->data + (size_t)i * bins, bins * sizeof(*line));
		for (size_t k = 0; k < bins; k++)
			valid[k] = r->valid ? r->valid[(size_t)i * bins + k] : 1;
		rc = dbt_view_end(r->dbt, i, err);
	}
	free(r->data);
	free(r->valid);
	r->data = r->valid = NULL;
	return rc;
}

/* A view is passed with its validity: the role that comes first waits for the other. */
static int put_views(struct tn_recon *r, enum tn_role role, const struct api_array *a, const struct api_order *o, struct err *err)
{
	float **to = role == TN_DATA ? &r->data : &r->valid;
	int rc = alloc_floats(o->floats, to, err);

	if (rc == 0)
		rc = api_array_copy(r->d, a, o, NULL, *to, false, err);
	return rc < 0 || (r->put | 1u << role) != r->roles ? rc : pass_views(r, err);
}

static int run_views(struct tn_recon *r, const struct monitor *monitor, struct tn_report *ret, struct err *err)
{
	struct dbt_report report = {0};
	int rc = dbt_run(r->dbt, monitor, &report, err);

	ret->seconds_setup = report.seconds_setup;
	ret->seconds_run = report.seconds_iterate;
	return rc;
}

static int read_views(struct tn_recon *r, int first, int n, float *ret_slices, struct err *err)
{
	return dbt_read_slices(r->dbt, first, n, ret_slices, err);
}

const struct api_session_ops api_session_views = {
	1 << TN_DATA | 1 << TN_VALID, 1 << TN_DATA, open_views, put_views, run_views, read_views};

/* ---- parallel beams ---- */

static int open_parallel(struct tn_recon *r, const struct grid *g, struct err *err)
{
	struct parallel_protocol *p = &r->p.parallel;
	struct parallel_plan *plan = &r->parallel_plan;
	int rc;

	if (g) {
		p->matrix = g->n[0];
		p->pixel = g->h[0];
	}
	rc = parallel_plan(p, &r->s->parallel, r->d->dev, plan, err);
	if (rc < 0)
		return rc;
	return set_plan(r, &plan->grid, plan->iterations, plan->subsets, &plan->bytes, plan->part_slices < plan->grid.n[2]);
}

static int put_parallel(struct tn_recon *r, enum tn_role role, const struct api_array *a, const struct api_order *o,
			struct err *err)
{
	int rc = alloc_floats(o->floats, &r->data, err);

	(void)role; /* the data */
	return rc < 0 ? rc : api_array_copy(r->d, a, o, NULL, r->data, false, err);
}

static int run_parallel(struct tn_recon *r, const struct monitor *monitor, struct tn_report *ret, struct err *err)
{
	struct parallel_report report = {0};
	int rc = alloc_floats(r->volume.floats, &r->image, err);

	if (rc == 0)
		rc = parallel_reconstruct(&r->p.parallel, &r->parallel_plan, &r->s->parallel, r->d->dev, r->data, monitor,
					  r->image, &report, err);
	ret->seconds_setup = report.seconds_setup;
	ret->seconds_run = report.seconds_filter + report.seconds_iterate;
	ret->residual = report.residual;
	return rc;
}

static int read_parallel(struct tn_recon *r, int first, int n, float *ret_slices, struct err *err)
{
	size_t slice = (size_t)r->grid.n[0] * (size_t)r->grid.n[1];

	(void)err;
	memcpy(ret_slices, r->image + (size_t)first * slice, (size_t)n * slice * sizeof(*ret_slices));
	return 0;
}

const struct api_session_ops api_session_parallel = {1 << TN_DATA, 1 << TN_DATA, open_parallel,
						     put_parallel, run_parallel, read_parallel};
