/* SPDX-License-Identifier: Apache-2.0 */
/* dbt_metal.c - metal in a session: its shadows are replaced in the projections, and it is put back into the volume.
 *
 * - Shadows are found when a view is received, and replaced when all views are there. The filter of filtered backprojection is
 *   linear: from a filtered view it subtracts what it made of the shadows.
 * - An object occupies the points at which nearly all of its shadows have lost at least half as much intensity as in their darkest
 *   bin: lost intensity is linear in the part of a bin that is covered, so this is the edge to a fraction of a bin. Along y, where
 *   the source moves, a long object leaves its height open. The variances of its shadows along y do not: from a slope s = dy / dz of
 *   the rays they are S_yy - 2 s S_yz + s^2 S_zz, S: its variances in space.
 * - Its attenuation, above that of the tissue, is such that it has the line integrals of its shadows. All of this is computed on
 *   the host, so it is the same on all devices. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "recon/dbt/dbt_internal.h"
#include "recon/dbt/fbp_filter.h"

#define SHARE 0.8			/* least share of the views that show an object */
#define MIDDLE 0.5f			/* of the largest loss */
static const int points[3] = {2, 2, 3}; /* along x, y and z in a voxel */
#define MARGIN 0.5			/* mm around an object */
#define RUN 64				/* bins of a row that are copied together */
#define HEIGHT 8.0			/* mm above and below the middle, at most */

int dbt_metal_open(struct dbt_session *s, struct err *err)
{
	size_t n = (size_t)s->plan->n_views;

	if (s->p->metal == DBT_METAL_OFF)
		return 0;
	session_array(&s->memory, n * METAL_OBJECTS_MOST, 1, (void **)&s->metal_of, err);
	return session_array(&s->memory, n, sizeof(*s->metal), (void **)&s->metal, err);
}

void dbt_metal_close(struct dbt_session *s)
{
	for (int i = 0; s->metal && i < s->plan->n_views; i++)
		metal_release(&s->metal[i]);
}

int dbt_metal_find(const struct dbt_session *s, int view, const float *line, const float *valid, struct err *err)
{
	struct metal_view *shadows = &s->metal[s->layout.views.place[view]];

	metal_release(shadows); /* those of a view that was withdrawn */
	return metal_find(s->layout.scan, &s->cells, dbt_cells_of(s, view), line, valid, shadows, err);
}

/* Subtract the excess of a shadow from the line integrals of its view, and from their sums. Its bins are in rows. */
static int replace_shadow(struct dbt_session *s, int view, const struct metal_shadow *m, struct err *err)
{
	struct dbt_view_sums *sums = &s->view_sums[view];
	int place = s->layout.views.place[view], r = 0;
	size_t n_u = (size_t)s->plan->n_u;

	for (size_t b = 0, n; r == 0 && b < m->n; b += n) {
		size_t at = (size_t)place * s->view_bins + (size_t)m->bin[b].v * n_u + (size_t)m->bin[b].u;
		float run[RUN];
		struct buf part;

		for (n = 1; b + n < m->n && n < RUN && m->bin[b + n].v == m->bin[b].v && m->bin[b + n].u == m->bin[b].u + (int)n;
		     n++)
			;
		part = s->streamed ? (struct buf){0} : buf_part(&s->y, at, n);
		if (s->streamed)
			memcpy(run, s->host_y + at, n * sizeof(*run));
		else
			r = s->dev->ops->download(&part, run, err);
		for (size_t i = 0; r == 0 && i < n; i++) {
			float beside = fmaxf(0, run[i] - m->bin[b + i].excess);

			sums->y += (double)beside - (double)run[i];
			sums->y2 += (double)beside * beside - (double)run[i] * run[i];
			run[i] = beside;
		}
		if (s->streamed)
			memcpy(s->host_y + at, run, n * sizeof(*run));
		else if (r == 0)
			r = s->dev->ops->upload(&part, run, err);
	}
	return r;
}

/* Subtract a view from a filtered one. */
static int subtract_view(struct dbt_session *s, int place, const float *line, struct err *err)
{
	size_t at = (size_t)place * s->view_bins;
	struct buf y, work;
	int r;

	for (size_t i = 0; s->streamed && i < s->view_bins; i++)
		s->host_y[at + i] -= line[i];
	if (s->streamed)
		return 0;
	y = buf_part(&s->y, at, s->view_bins);
	work = buf_part(&s->work.pair, 0, s->view_bins);
	r = s->dev->ops->upload(&work, line, err);
	return r < 0 ? r : s->dev->ops->axpy(-1, &work, &y, err);
}

/* Subtract what the filter made of the shadows of all objects in a view. */
static int replace_filtered(struct dbt_session *s, int place, const struct metal_report *report, struct err *err)
{
	float *line = calloc(2 * s->view_bins, sizeof(*line)), *valid = line + s->view_bins;
	bool any = false;
	int r = 0;

	if (!line)
		return err_set(err, ENOMEM, "metal: no memory for a view of %zu bins", s->view_bins);
	for (size_t i = 0; i < s->view_bins; i++)
		valid[i] = 1;
	for (int o = 0; o < report->n; o++) {
		signed char of = s->metal_of[o * s->plan->n_views + place];

		any = any || of >= 0;
		for (size_t b = 0; of >= 0 && b < s->metal[place].shadow[of].n; b++) {
			const struct metal_bin *bin = &s->metal[place].shadow[of].bin[b];

			line[(size_t)bin->v * (size_t)s->plan->n_u + (size_t)bin->u] = bin->excess;
		}
	}
	if (any)
		r = fbp_filter_view(s->layout.scan, place, s->p->filter, s->p->filter_cut, line, valid, err);
	if (any && r == 0)
		r = subtract_view(s, place, line, err);
	free(line);
	return r;
}

int dbt_metal_replace(struct dbt_session *s, struct metal_report *ret_report, struct err *err)
{
	int n_views = s->plan->n_views, r = 0;

	metal_locate(s->layout.scan, &s->plan->grid, s->metal, s->metal_of, ret_report);
	r = metal_keep_specks(s->layout.scan, s->metal, s->metal_of, ret_report, err);
	for (int view = 0; r == 0 && ret_report->n > 0 && view < n_views; view++) {
		int i = s->layout.views.place[view];

		if (algorithm_info(s->p->algorithm)->filtered) {
			r = replace_filtered(s, i, ret_report, err);
			continue;
		}
		for (int k = 0; r == 0 && k < s->metal[i].n; k++) { /* each once, also if it is of several objects */
			bool any = false;

			for (int o = 0; o < ret_report->n; o++)
				any = any || s->metal_of[o * n_views + i] == k;
			if (any)
				r = replace_shadow(s, view, &s->metal[i].shadow[k], err);
		}
	}
	return r;
}

/* ---- put back ---- */

/* A shadow of an object as an image: lost part of the intensity in each bin, 0 beside it. */
struct piece {
	const struct scan_view *view;
	struct metal_image loss;
	float middle;		       /* least loss in its middle */
	bool alone;		       /* not that of another object, too: its measures count */
	double width, slope, variance; /* in the plane of the object, mm; dy / dz; mm^2 along y */
	double line;		       /* attenuation times volume, mm^2 */
};

/* An object on its way into the volume. */
struct put {
	const struct dbt_session *s;
	const struct metal_object *object;
	struct piece *piece;
	int n_pieces;
	double reach[2];     /* of its shadows from their middles, along x and y, mm */
	double line;	     /* its attenuation times its volume, mm^2 */
	double rise, half;   /* its height above that of its middle, per mm of y, and half its thickness along z, mm */
	int first[3], n[3];  /* voxels */
	float *part, *slice; /* part of each voxel that it occupies; values of a slice */
};

static void put_clear(struct put *p)
{
	for (int i = 0; i < p->n_pieces; i++)
		free(p->piece[i].loss.value);
	free(p->piece);
	free(p->part);
}

/* Return the attenuation times the volume that a shadow stands for: the integral of its line integrals over the plane through the
 * object that is perpendicular to the ray. */
static double line_of(const struct dbt_session *s, const struct scan_view *view, const struct metal_shadow *m, const double at[3])
{
	const struct scan *scan = s->layout.scan;
	double on[3], u[3], v[3], to_object = 0, to_bin = 0, across;

	scan_bin_at(scan, view, m->at[0], m->at[1], on);
	scan_bin_at(scan, view, m->at[0] + 1, m->at[1], u);
	scan_bin_at(scan, view, m->at[0], m->at[1] + 1, v);
	for (int c = 0; c < 3; c++) {
		to_object += (at[c] - view->src[c]) * (at[c] - view->src[c]);
		to_bin += (on[c] - view->src[c]) * (on[c] - view->src[c]);
		u[c] -= on[c];
		v[c] -= on[c];
		on[c] -= view->src[c];
	}
	across = on[0] * (u[1] * v[2] - u[2] * v[1]) + on[1] * (u[2] * v[0] - u[0] * v[2]) + on[2] * (u[0] * v[1] - u[1] * v[0]);
	return m->sum * fabs(across) / sqrt(to_bin) * to_object / to_bin;
}

static void measure_piece(const struct put *p, struct piece *e, int place, const struct metal_shadow *m)
{
	const struct scan *scan = p->s->layout.scan;
	const double *at = p->object->at, beside[3] = {at[0], at[1] + 1, at[2]};
	double foot[2] = {0}, next[2] = {0}, per_mm;

	scan_foot(scan, e->view, at, foot);
	scan_foot(scan, e->view, beside, next);
	per_mm = next[1] - foot[1];
	e->slope = (e->view->src[1] - at[1]) / (e->view->src[2] - at[2]);
	e->width = m->width / (fabs(per_mm) * scan->h[1]);
	e->alone = metal_is_alone(scan, place, m, p->object);
	e->variance = m->spread / (per_mm * per_mm);
	e->line = line_of(p->s, e->view, m, at);
}

/* Take the mean of the lines, and fit the variances in space to those of the shadows. */
static void find_thickness(struct put *p)
{
	double m[3][4] = {{0}}, width = INFINITY, line[2] = {0}, n[2] = {0};

	for (int i = 0; i < p->n_pieces; i++) {
		const struct piece *e = &p->piece[i];
		const double term[4] = {1, -2 * e->slope, e->slope * e->slope, e->variance};

		width = fmin(width, e->width);
		line[e->alone] += e->line;
		n[e->alone]++;
		for (int r = 0; r < 3 && e->alone; r++)
			for (int c = 0; c < 4; c++)
				m[r][c] += term[r] * term[c];
	}
	p->line = n[1] > 0 ? line[1] / n[1] : line[0] / n[0];
	p->half = width / 2;
	p->rise = 0;
	if (!metal_solve(m))
		return;
	p->rise = m[0][3] > 0 ? m[1][3] / m[0][3] : 0;
	p->half = fmax(p->half, sqrt(5 * fmax(m[2][3] - p->rise * m[1][3], 0))); /* of an ellipsoid */
}

static int make_piece(struct put *p, int place, const struct metal_shadow *m, struct err *err)
{
	const struct scan *scan = p->s->layout.scan;
	struct piece *e = &p->piece[p->n_pieces];
	int r;

	*e = (struct piece){.view = &scan->views[place], .middle = MIDDLE * (float)(1 - exp(-m->rise))};
	for (size_t b = 0; b < m->n; b++) {
		p->reach[0] = fmax(p->reach[0], fabs(m->bin[b].u - m->at[0]) * scan->h[0]);
		p->reach[1] = fmax(p->reach[1], fabs(m->bin[b].v - m->at[1]) * scan->h[1]);
	}
	measure_piece(p, e, place, m);
	r = metal_image_create(m, true, 0, &e->loss, err);
	p->n_pieces += r == 0;
	return r;
}

/* Make the pieces of an object, and choose the voxels around it. */
static int put_open(struct put *p, const signed char *of, struct err *err)
{
	const struct dbt_session *s = p->s;
	const struct grid *g = &s->plan->grid;
	size_t slice;
	int r = 0;

	p->piece = calloc((size_t)p->object->views, sizeof(*p->piece));
	if (!p->piece)
		return err_set(err, ENOMEM, "metal: no memory for %d shadows", p->object->views);
	for (int i = 0; r == 0 && i < s->plan->n_views; i++)
		if (of[i] >= 0)
			r = make_piece(p, i, &s->metal[i].shadow[of[i]], err);
	if (r < 0)
		return r;
	find_thickness(p);
	for (int c = 0; c < 3; c++) {
		double reach = c < 2 ? p->reach[c] + MARGIN : HEIGHT, at = p->object->at[c] - g->lo[c];
		double first = fmin(fmax(floor((at - reach) / g->h[c]), 0), g->n[c]);

		p->first[c] = (int)first;
		p->n[c] = (int)(fmax(fmin(ceil((at + reach) / g->h[c]), g->n[c]), first) - first);
	}
	slice = (size_t)p->n[0] * (size_t)p->n[1];
	p->part = malloc(slice * ((size_t)p->n[2] + 1) * sizeof(*p->part));
	if (!p->part)
		return err_set(err, ENOMEM, "metal: no memory for %d x %d x %d voxels", p->n[0], p->n[1], p->n[2]);
	p->slice = p->part + slice * (size_t)p->n[2];
	return 0;
}

/* Return whether the object is at a point. */
static bool is_inside(const struct put *p, const double at[3])
{
	double above = at[2] - p->object->at[2] - p->rise * (at[1] - p->object->at[1]);
	int most = (int)((1 - SHARE) * p->n_pieces), outside = 0;

	if (!(fabs(above) <= p->half))
		return false;
	for (int i = 0; i < p->n_pieces && outside <= most; i++) {
		double foot[2];

		outside += !(scan_foot(p->s->layout.scan, p->piece[i].view, at, foot) &&
			     metal_image_at(&p->piece[i].loss, foot) >= p->piece[i].middle);
	}
	return outside <= most;
}

/* Compute the part of each voxel that the object occupies; return the sum. */
static double find_parts(const struct put *p)
{
	const struct grid *g = &p->s->plan->grid;
	int columns = p->n[0], rows = p->n[1] * p->n[2], n_points = points[0] * points[1] * points[2];
	double sum = 0;

#pragma omp parallel for schedule(dynamic, 8) reduction(+ : sum)
	for (int row = 0; row < rows; row++)
		for (int i = 0; i < columns; i++) {
			const int voxel[3] = {p->first[0] + i, p->first[1] + row % p->n[1], p->first[2] + row / p->n[1]};
			int inside = 0;

			for (int k = 0; k < n_points; k++) {
				const int point[3] = {k % points[0], k / points[0] % points[1], k / (points[0] * points[1])};
				double at[3];

				for (int c = 0; c < 3; c++)
					at[c] = g->lo[c] + (voxel[c] + (point[c] + 0.5) / points[c]) * g->h[c];
				inside += is_inside(p, at);
			}
			p->part[(size_t)row * (size_t)columns + (size_t)i] = (float)inside / (float)n_points;
			sum += inside; /* whole numbers: the same in any order */
		}
	return sum / n_points;
}

/* Copy the values around the object in a slice from the volume, or back. */
static int copy_slice(const struct put *p, int k, bool back, struct err *err)
{
	const struct dbt_session *s = p->s;
	const struct grid *g = &s->plan->grid;
	size_t columns = (size_t)p->n[0];
	int r = 0;

	for (int j = 0; r == 0 && j < p->n[1]; j++) {
		size_t at = (((size_t)(p->first[2] + k) * (size_t)g->n[1] + (size_t)(p->first[1] + j)) * (size_t)g->n[0]) +
			    (size_t)p->first[0];
		float *row = p->slice + (size_t)j * columns;
		struct buf part;

		if (s->streamed) {
			memcpy(back ? s->stream.x + at : row, back ? row : s->stream.x + at, columns * sizeof(*row));
			continue;
		}
		part = buf_part(&s->x, at, columns);
		r = back ? s->dev->ops->upload(&part, row, err) : s->dev->ops->download(&part, row, err);
	}
	return r;
}

static int put_object(const struct put *p, struct err *err)
{
	const struct grid *g = &p->s->plan->grid;
	size_t n = (size_t)p->n[0] * (size_t)p->n[1];
	double occupied = find_parts(p);
	float mu = occupied > 0 ? (float)(p->line / (occupied * g->h[0] * g->h[1] * g->h[2])) : 0;
	int r = 0;

	for (int k = 0; r == 0 && k < p->n[2]; k++) {
		const float *part = p->part + (size_t)k * n;
		size_t i = 0;

		while (i < n && part[i] == 0)
			i++;
		if (i == n)
			continue;
		r = copy_slice(p, k, false, err);
		for (; i < n; i++)
			p->slice[i] += part[i] * mu;
		if (r == 0)
			r = copy_slice(p, k, true, err);
	}
	return r;
}

int dbt_metal_put_back(struct dbt_session *s, const struct metal_report *report, struct err *err)
{
	int r = 0;

	for (int i = 0; r == 0 && i < report->n; i++) {
		struct put p = {.s = s, .object = &report->object[i]};

		r = put_open(&p, s->metal_of + (size_t)i * (size_t)s->plan->n_views, err);
		if (r == 0)
			r = put_object(&p, err);
		put_clear(&p);
	}
	return r;
}
