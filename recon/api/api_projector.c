/* SPDX-License-Identifier: Apache-2.0 */
/* api_projector.c - the system matrix of a scan and a volume: an operator, and the order of its volume and of its data. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "recon/api/api_internal.h"
#include "recon/core/projector.h"
#include "recon/core/psf.h"
#include "recon/core/scan.h"

#define VOXELS_MOST 65535

struct tn_projector {
	struct tn_device *d;
	struct tn_scan *s;
	struct grid grid;
	struct scan *rays; /* NULL: lines */
	struct linop *op;
	struct session_memory memory;
	struct buf psf[PSF_WORK_VOLUMES]; /* in it */
	struct api_order x, y;
	struct buf work_x, work_y; /* of arrays with other strides; allocated when they are needed */
};

int api_grid(const struct tn_grid *from, struct grid *ret, struct err *err)
{
	if (!from)
		return err_set(err, EINVAL, "grid: none given");
	*ret = (struct grid){0};
	for (int c = 0; c < 3; c++) {
		if (from->n[c] < 1 || from->n[c] > VOXELS_MOST || !(from->h[c] > 0 && from->h[c] < 1e5) ||
		    !(fabs(from->lo[c]) < 1e6))
			return err_set(err, EINVAL, "grid: %d voxels of %g mm from %g mm along %c; allowed: 1 to %d", from->n[c],
				       from->h[c], from->lo[c], 'x' + c, VOXELS_MOST);
		ret->n[c] = from->n[c];
		ret->h[c] = from->h[c];
		ret->lo[c] = from->lo[c];
	}
	return 0;
}

/* Models by kind of scan; 0: not possible. The first is the default. */
static const enum projection_model models[API_KINDS][TN_EXACT + 1] = {
	[API_PET] = {PROJECTION_JOSEPH, PROJECTION_PATHS, PROJECTION_JOSEPH, 0, 0, PROJECTION_EXACT},
	[API_LINES] = {PROJECTION_JOSEPH, 0, PROJECTION_JOSEPH, 0, 0, 0},
	[API_VIEWS] = {PROJECTION_SLICES, 0, 0, PROJECTION_SLICES, 0, PROJECTION_EXACT},
	[API_PARALLEL] = {PROJECTION_JOSEPH, PROJECTION_PATHS, PROJECTION_JOSEPH, 0, PROJECTION_SAMPLED, PROJECTION_EXACT},
};

static int view_axis(const struct tn_scan *s) /* the axis of the data that subsets divide */
{
	return s->kind == API_PET || s->kind == API_PARALLEL ? s->ndim - 2 : 0;
}

static int check_model(const struct tn_scan *s, struct tn_model *m, struct err *err)
{
	static const char *const names[] = {"default", "siddon", "joseph", "slices", "sampled", "exact"};
	static const char *const kinds[] = {"", "PET sinograms", "lines", "views", "parallel beams"};
	int64_t n = s->shape[view_axis(s)];

	if (m->kind < 0 || m->kind > TN_EXACT)
		return err_set(err, EINVAL, "model: kind %d; allowed: 0 to %d", m->kind, TN_EXACT);
	if (models[s->kind][m->kind] == 0)
		return err_set(err, EINVAL, "model: '%s' is not possible for %s", names[m->kind], kinds[s->kind]);
	if (m->step == 0 && m->first == 0)
		m->step = 1;
	if (m->step < 1 || m->first < 0 || m->first >= n)
		return err_set(err, EINVAL, "model: views from %d in steps of %d; there are %lld", m->first, m->step,
			       (long long)n);
	if (!(m->psf >= 0 && m->psf <= 50))
		return err_set(err, EINVAL, "model: psf of %g mm; allowed: 0 to 50", m->psf);
	if (!(m->sampling >= 0 && m->sampling <= 100))
		return err_set(err, EINVAL, "model: sampling of %g mm; allowed: 0 to 100", m->sampling);
	return 0;
}

/* Create an order of views: those of the subset first. */
static int make_order(const struct tn_model *m, int n, int **ret_order, struct err *err)
{
	int *order = malloc((size_t)n * sizeof(*order)), k = 0;

	if (!order)
		return err_set(err, ENOMEM, "projector: no memory for %d views", n);
	for (int i = m->first; i < n; i += m->step)
		order[k++] = i;
	for (int i = 0; i < n; i++)
		if (i < m->first || (i - m->first) % m->step)
			order[k++] = i;
	*ret_order = order;
	return 0;
}

/* The planes of the device are sorted in another way than those of the caller: the index. */
static int index_planes(struct tn_projector *a, const int *plane, struct err *err)
{
	size_t n = (size_t)a->rays->n_u;
	bool sorted = true;

	for (size_t u = 0; u < n; u++)
		sorted = sorted && plane[u] == (int)u;
	if (sorted)
		return 0;
	if (a->d->dev->ops->alloc(a->d->dev, n, &a->y.index, err) < 0)
		return -ENOMEM;
	a->y.axis = a->y.ndim - 3;
	return a->d->dev->ops->upload(&a->y.index, (const float *)(const void *)plane, err);
}

static int create_rays(struct tn_projector *a, const struct tn_model *m, struct err *err)
{
	struct projection_spec spec = {
		.model = models[a->s->kind][m->kind], .grid = &a->grid, .deterministic = m->deterministic != 0};
	int n = (int)a->s->shape[view_axis(a->s)], *order = NULL, *plane = NULL, r = make_order(m, n, &order, err);
	int64_t n_u, n_v, bins, radial = a->y.ndim - 1;

	if (r == 0)
		r = api_scan_rays(a->s, &a->grid, order, &a->rays, &plane, err);
	free(order);
	if (r < 0)
		return r;
	spec.scan = a->rays;
	spec.n_views = (n - m->first + m->step - 1) / m->step;
	spec.sampling = m->sampling > 0 ? m->sampling : 0.1 * fmin(a->grid.h[0], a->grid.h[1]);
	r = projector_create(a->d->dev, &spec, &a->op, err);
	n_u = a->rays->n_u, n_v = a->rays->n_v, bins = scan_ray_bins(a->rays);
	if (a->rays->kind == SCAN_PARALLEL) { /* [view][radial][TOF bin][plane] */
		a->y.strides[radial] = n_u * bins;
		a->y.strides[radial - 1] = n_u * bins * n_v;
		a->y.strides[radial - 2] = 1;
		a->y.strides[0] = a->y.ndim == 4 ? n_u : a->y.strides[0];
	}
	if (r == 0 && plane)
		r = index_planes(a, plane, err);
	free(plane);
	return r;
}

static int create_operator(struct tn_projector *a, const struct tn_model *m, struct err *err)
{
	const struct tn_scan *s = a->s;
	int64_t n[3] = {a->grid.n[2], a->grid.n[1], a->grid.n[0]}, shape[STRIDES_MAX];
	int views = view_axis(s), r;
	struct linop *op;

	memcpy(shape, s->shape, sizeof(shape));
	shape[views] = (shape[views] - m->first + m->step - 1) / m->step;
	a->grid.z_fastest = s->kind == API_PET || s->kind == API_LINES || (s->kind == API_PARALLEL && a->grid.n[2] > 1);
	api_order_c(3, n, &a->x);
	api_order_c(s->ndim, shape, &a->y);
	for (int c = 0; c < 3; c++)
		a->x.strides[c] = (int64_t)grid_step(&a->grid, 2 - c);
	a->x.floats = grid_size(&a->grid);
	if (s->kind == API_LINES)
		r = api_lines_create(a->d->dev, s, &a->grid, m->first, m->step, m->deterministic != 0, &a->op, &a->y.index, err);
	else
		r = create_rays(a, m, err);
	if (r < 0 || !(m->psf > 0))
		return r;
	r = psf_work_alloc(&a->memory, &a->grid, m->psf, a->psf, err);
	if (r == 0)
		r = psf_create(a->op, &a->grid, m->psf, a->psf, &op, err);
	if (r == 0)
		a->op = op;
	return r;
}

static void release_projector(struct tn_projector *a)
{
	linop_free(a->op);
	session_release(&a->memory);
	scan_free(a->rays);
	buf_release(&a->y.index);
	buf_release(&a->work_x);
	buf_release(&a->work_y);
}

int tn_projector_new(struct tn_device *d, struct tn_scan *s, const struct tn_grid *g, const struct tn_model *model,
		     struct tn_projector **ret, struct tn_err *e)
{
	struct tn_model m = {0};
	struct err *err = api_err(e);
	struct tn_projector *a = NULL;
	struct api_call call;
	struct grid grid;
	int r = model ? api_take(model, &m, sizeof(m), "tn_model", err) : 0;

	if (r == 0 && (!s || !ret))
		r = err_set(err, EINVAL, "projector: %s", s ? "no place for the result" : "no scan");
	if (r == 0)
		r = check_model(s, &m, err);
	if (r == 0)
		r = api_grid(g, &grid, err);
	if (r == 0)
		r = api_enter(d, &call, err);
	if (r < 0)
		return r;
	a = calloc(1, sizeof(*a));
	if (a) {
		a->d = d;
		a->s = s;
		a->grid = grid;
		a->memory.dev = d->dev;
	}
	r = a ? create_operator(a, &m, err) : err_set(err, ENOMEM, "projector: out of memory");
	if (r == 0) {
		api_device_keep(d);
		atomic_fetch_add(&s->users, 1);
		*ret = a;
	} else if (a) {
		release_projector(a);
		free(a);
	}
	api_leave(&call);
	return r;
}

void tn_projector_free(struct tn_projector *a)
{
	struct api_call call;

	if (!a || api_enter(a->d, &call, NULL) < 0)
		return;
	release_projector(a);
	api_leave(&call);
	tn_scan_free(a->s);
	tn_device_close(a->d);
	free(a);
}

static void write_layout(const struct api_order *o, struct tn_layout *ret)
{
	struct api_order c;

	api_order_c(o->ndim, o->shape, &c);
	c = o->index.mem ? c : *o; /* with an index every order is copied */
	ret->ndim = c.ndim;
	memcpy(ret->shape, c.shape, sizeof(ret->shape));
	memcpy(ret->strides, c.strides, sizeof(ret->strides));
	ret->floats = (int64_t)c.floats;
}

int tn_projector_info(const struct tn_projector *a, struct tn_projector_info *ret, struct tn_err *err)
{
	struct tn_projector_info info = {0};

	if (!a)
		return err_set(api_err(err), EINVAL, "projector: none given");
	write_layout(&a->x, &info.x);
	write_layout(&a->y, &info.y);
	info.bytes = sizeof(float) * (a->psf[0].n * PSF_WORK_VOLUMES + a->work_x.n + a->work_y.n + a->y.index.n);
	return api_give(&info, ret, sizeof(info), "tn_projector_info", api_err(err));
}

/* Apply the operator, or its adjoint, to `from`; the result is written, or added, to `to`. */
static int apply_operator(struct tn_projector *a, const struct tn_array *from, const struct tn_array *to, bool adjoint, bool add,
			  struct err *err)
{
	const struct api_order *o[2] = {adjoint ? &a->y : &a->x, adjoint ? &a->x : &a->y};
	struct buf *work[2] = {adjoint ? &a->work_y : &a->work_x, adjoint ? &a->work_x : &a->work_y}, used[2];
	int (*const apply[4])(const struct linop *, const struct buf *, struct buf *,
			      struct err *) = {a->op->apply, a->op->apply_add, a->op->adjoint, a->op->adjoint_add};
	struct api_array array[2];
	int r = api_array(a->d, from, o[0], adjoint ? "y" : "x", false, &array[0], err);

	if (r == 0)
		r = api_array(a->d, to, o[1], adjoint ? "x" : "y", true, &array[1], err);
	if (r == 0)
		r = api_array_begin(a->d, &array[0], o[0], true, work[0], &used[0], err);
	if (r == 0)
		r = api_array_begin(a->d, &array[1], o[1], add, work[1], &used[1], err);
	if (r == 0)
		r = apply[2 * adjoint + add](a->op, &used[0], &used[1], err);
	return r < 0 ? r : api_array_end(a->d, &array[1], o[1], work[1], &used[1], err);
}

static int call_operator(struct tn_projector *a, const struct tn_array *from, const struct tn_array *to, bool adjoint, int add,
			 struct tn_err *err)
{
	struct api_call call;
	int r = a ? api_enter(a->d, &call, api_err(err)) : err_set(api_err(err), EINVAL, "projector: none given");

	if (r < 0)
		return r;
	r = apply_operator(a, from, to, adjoint, add != 0, api_err(err));
	api_leave(&call);
	return r;
}

int tn_forward(struct tn_projector *a, const struct tn_array *x, const struct tn_array *y, int add, struct tn_err *err)
{
	return call_operator(a, x, y, false, add, err);
}

int tn_adjoint(struct tn_projector *a, const struct tn_array *y, const struct tn_array *x, int add, struct tn_err *err)
{
	return call_operator(a, y, x, true, add, err);
}
