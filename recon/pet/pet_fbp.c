/* SPDX-License-Identifier: Apache-2.0 */
/* pet_fbp.c - quick look: single-slice rebinning, then 2-D filtered backprojection of each direct plane.
 *
 * - Rebinning (Daube-Witherspoon & Muehllehner 1987): a plane is added to the direct plane at its middle. For each bin there,
 *   sum(y - b) / sum(m sec), where sec is the length of the oblique ray over that of its transaxial projection: the mean of the
 *   corrected line integrals, each weighted with its detected fraction. Gaps between radial bins with data are filled linearly;
 *   outside the first and the last bin with data the value is 0.
 * - TOF bins are added first; factors with a TOF axis are replaced by their mean.
 * - Data that are not arc-corrected are interpolated linearly to equal radial distances.
 * - Ramp and Hann window (recon/core/ramp.h), 0 beyond the ends; times pi / angles, the step of the integral over the angle. So
 *   the unit is that of the other algorithms: counts per mm.
 *
 * The device does the backprojection: linear between bins, not an adjoint. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "recon/core/ramp.h"
#include "recon/pet/pet_internal.h"

/* Inputs that all threads share, read-only. */
struct rebinning {
	const struct pet_session *s;
	const struct ramp *ramp;
	int *to;     /* the scan's plane u is added to direct plane to[u] */
	float *rise; /* its rise squared, mm^2 */
};

/* Working memory of one thread. */
struct rebin_scratch {
	float *rows;	      /* n_direct rows with the radial bins of the scan */
	float *fine;	      /* n_direct rows at equal radial distances */
	float *data, *weight; /* n_direct each */
	float *sums;	      /* sums over TOF bins: a row of the scan's planes for each role */
	void *work;
};

static void scratch_release(struct rebin_scratch *b)
{
	free(b->rows);
	free(b->fine);
	free(b->data);
	free(b->weight);
	free(b->sums);
	free(b->work);
}

static bool scratch_alloc(const struct rebinning *r, struct rebin_scratch *b)
{
	const struct pet_layout *l = &r->s->layout;
	size_t n = (size_t)l->direct.n_u;

	b->rows = malloc(n * (size_t)l->scan->n_v * sizeof(float));
	b->fine = malloc(n * (size_t)l->direct.n_v * sizeof(float));
	b->data = malloc(n * sizeof(float));
	b->weight = malloc(n * sizeof(float));
	b->sums = malloc(3 * (size_t)l->scan->n_u * sizeof(float));
	b->work = malloc(ramp_work(r->ramp));
	return b->rows && b->fine && b->data && b->weight && b->sums && b->work;
}

/* Return the bins of a role of one radial bin of one angle, the sum over the TOF bins of each plane; of factors their mean. sums:
 * used with time of flight, n_u floats. NULL: the session does not have the role. */
static const float *sum_tof(const struct pet_session *s, enum pet_role role, int view, int v, float *sums)
{
	size_t row = pet_row(s, role), n_u = (size_t)s->n_planes, at = (size_t)view * pet_view(s, role) + (size_t)v * row;
	const float *bins = s->has[role] ? s->host[role] + at : NULL;
	float share = role == PET_FACTORS ? (float)n_u / (float)row : 1;

	if (!bins || row == n_u)
		return bins;
	memcpy(sums, bins, n_u * sizeof(*sums));
	for (size_t k = n_u; k < row; k += n_u)
		for (size_t u = 0; u < n_u; u++)
			sums[u] += bins[k + u];
	for (size_t u = 0; u < n_u; u++)
		sums[u] *= share;
	return sums;
}

/* Rebin one radial bin of one angle: add all planes to direct planes. */
static void rebin_row(const struct rebinning *r, int view, int v, struct rebin_scratch *b)
{
	const struct pet_session *s = r->s;
	const struct scan *scan = s->layout.scan;
	const float *y = sum_tof(s, PET_DATA, view, v, b->sums), *m = sum_tof(s, PET_FACTORS, view, v, b->sums + scan->n_u),
		    *add = sum_tof(s, PET_BACKGROUND, view, v, b->sums + 2 * (size_t)scan->n_u);
	size_t n_v = (size_t)scan->n_v;
	int n_direct = s->layout.direct.n_u;
	double left = scan->ring_radius * scan->ring_radius - scan->radius[v] * scan->radius[v];
	float slope = left > 0 ? (float)(1 / left) : 0;

	memset(b->data, 0, (size_t)n_direct * sizeof(float));
	memset(b->weight, 0, (size_t)n_direct * sizeof(float));
	for (int u = 0; u < scan->n_u && left > 0; u++) {
		float counted = m ? m[u] : 1;

		if (!(counted > 0))
			continue;
		b->data[r->to[u]] += add ? y[u] - add[u] : y[u];
		b->weight[r->to[u]] += counted * sqrtf(1 + r->rise[u] * slope);
	}
	for (int k = 0; k < n_direct; k++)
		b->rows[(size_t)k * n_v + (size_t)v] = b->weight[k] > 0 ? b->data[k] / b->weight[k] : NAN;
}

/* Fill gaps (NaN) linearly between neighbours with data; set the ends without data to 0. */
static void bridge_gaps(float *row, int n)
{
	int last = -1;

	for (int v = 0; v < n; v++) {
		if (isnan(row[v]))
			continue;
		for (int g = last + 1; g < v; g++)
			row[g] = last < 0 ? 0 : row[last] + (row[v] - row[last]) * (float)(g - last) / (float)(v - last);
		last = v;
	}
	for (int g = last + 1; g < n; g++)
		row[g] = 0;
}

/* Interpolate to equal radial distances. */
static void arc_correct(const struct pet_layout *l, const float *row, float *ret_row)
{
	const double *r = l->scan->radius;
	int n = l->scan->n_v, t = 0;

	for (int v = 0; v < l->direct.n_v; v++) {
		double at = l->direct_radius[v], f;

		while (t < n - 2 && r[t + 1] <= at)
			t++;
		f = n > 1 ? (at - r[t]) / (r[t + 1] - r[t]) : 0;
		f = f < 0 ? 0 : f > 1 ? 1 : f;
		ret_row[v] = (float)(n > 1 ? (1 - f) * row[t] + f * row[t + 1] : row[t]);
	}
}

static void rebin_view(const struct rebinning *r, int view, struct rebin_scratch *b)
{
	const struct pet_session *s = r->s;
	const struct pet_layout *l = &s->layout;
	size_t n_direct = (size_t)l->direct.n_u, n_v = (size_t)l->scan->n_v, n_fine = (size_t)l->direct.n_v;
	float *to = s->direct + (size_t)view * n_direct * n_fine, step = (float)(M_PI / l->scan->n_views);

	for (size_t v = 0; v < n_v; v++)
		rebin_row(r, view, (int)v, b);
	for (size_t k = 0; k < n_direct; k++) {
		bridge_gaps(b->rows + k * n_v, (int)n_v);
		if (s->m->arc_corrected)
			memcpy(b->fine + k * n_fine, b->rows + k * n_v, n_v * sizeof(float));
		else
			arc_correct(l, b->rows + k * n_v, b->fine + k * n_fine);
	}
	for (size_t k = 0; k < n_direct; k += 2)
		ramp_rows(r->ramp, b->fine + k * n_fine, k + 1 < n_direct ? b->fine + (k + 1) * n_fine : NULL, b->work);
	for (size_t v = 0; v < n_fine; v++)
		for (size_t k = 0; k < n_direct; k++)
			to[v * n_direct + k] = b->fine[k * n_fine + v] * step;
}

/* Find, for each plane, the direct plane at its middle, and its rise. */
static void find_planes(const struct pet_session *s, struct rebinning *r)
{
	const struct pet_layout *l = &s->layout;
	double pitch = s->m->scanner.ring_spacing / 2;

	for (int u = 0; u < l->scan->n_u; u++) {
		const struct scan_plane *p = &l->scan->planes[u];

		r->to[u] = (int)lround((p->z - l->direct_planes[0].z) / pitch);
		r->rise[u] = (float)(p->rise * p->rise);
	}
}

static int make_direct(struct pet_session *s, struct err *err)
{
	const struct pet_layout *l = &s->layout;
	size_t n_u = (size_t)l->scan->n_u;
	struct rebinning r = {.s = s};
	struct ramp *ramp = NULL;
	bool failed = false;
	int error = ramp_create(RAMP_HANN, s->p->filter_cut, l->direct_pitch, l->direct.n_v, &ramp, err);

	if (error < 0)
		return error;
	r.ramp = ramp;
	r.to = malloc(n_u * sizeof(*r.to));
	r.rise = malloc(n_u * sizeof(*r.rise));
	if (!r.to || !r.rise) {
		error = err_set(err, ENOMEM, "fbp: cannot allocate %zu planes", n_u);
		goto out;
	}
	find_planes(s, &r);
#pragma omp parallel
	{
		struct rebin_scratch b = {0};

		if (!scratch_alloc(&r, &b)) {
#pragma omp atomic write
			failed = true;
		}
#pragma omp barrier
		if (!failed) {
#pragma omp for schedule(dynamic)
			for (int view = 0; view < l->scan->n_views; view++)
				rebin_view(&r, view, &b);
		}
		scratch_release(&b);
	}
	if (failed)
		error = err_set(err, ENOMEM, "fbp: no memory to rebin %d radial bins of %d direct planes", l->scan->n_v,
				l->direct.n_u);
out:
	free(r.to);
	free(r.rise);
	ramp_free(ramp);
	return error;
}

int pet_fbp_open(struct pet_session *s, struct err *err)
{
	struct session_memory *m = &s->memory;
	size_t bins = scan_view_size(&s->layout.direct);
	int n_views = s->layout.scan->n_views;

	session_host(m, bins * (size_t)n_views * sizeof(float), (void **)&s->direct, err);
	if (session_array(m, (size_t)n_views + 1, sizeof(*s->part_first), (void **)&s->part_first, err) < 0)
		return m->rc;
	s->n_parts = pet_layout_groups(&s->layout, s->plan->group_views, s->part_first);
	/* groups have nearly equal size: the largest is the mean, rounded up */
	session_alloc(m, bins * (size_t)((n_views + s->n_parts - 1) / s->n_parts), &s->data[0][PET_DATA], err);
	for (int i = 0; s->p->postfilter > 0 && i < 2; i++)
		session_alloc(m, grid_size(&s->plan->grid), &s->spare[i], err);
	return m->rc;
}

static int back_group(struct pet_session *s, int i, struct err *err)
{
	const struct device_ops *v = s->dev->ops;
	int first = s->part_first[i], n_views = s->part_first[i + 1] - first;
	struct projection_spec spec = pet_layout_spec(&s->layout, s->p, &s->plan->grid, first, n_views);
	size_t bins = scan_view_size(&s->layout.direct);
	struct buf y = buf_part(&s->data[0][PET_DATA], 0, (size_t)n_views * bins);
	struct projection *a = NULL;
	int r = v->upload(&y, s->direct + (size_t)first * bins, err);

	if (r == 0)
		r = v->projection_create(s->dev, &spec, &a, err);
	if (r == 0)
		r = v->back_interpolated(a, &y, i > 0, &s->x, err);
	if (r == 0)
		r = v->wait(s->dev, QUEUE_WORK, err);
	v->projection_free(a);
	return r;
}

int pet_fbp_run(struct pet_session *s, const struct monitor *monitor, struct err *err)
{
	int r = make_direct(s, err);

	for (int i = 0; r == 0 && i < s->n_parts; i++) {
		if (monitor_cancelled(monitor))
			return err_set(err, ECANCELED, "reconstruction cancelled after %d of %d groups of angles", i, s->n_parts);
		r = back_group(s, i, err);
		if (r == 0)
			monitor_progress(monitor, "reconstruct", (double)(i + 1) / s->n_parts);
	}
	return r;
}
