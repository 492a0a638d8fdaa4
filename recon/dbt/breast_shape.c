/* SPDX-License-Identifier: Apache-2.0 */
/* breast_shape.c - the views that show the shape, and the start image. */
#include "recon/dbt/breast_shape.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recon/dbt/breast_shape_internal.h"

#define CENTRAL 8.0 /* degrees: angle of central views at most */
#define MARGIN 2.0  /* mm at the full thickness, above and below */
#define FULL 0.98f  /* (T / H)^2 from which the full thickness is reached */
#define BLUR 6
#define BLUR_FROM 2.5f /* mm: the neighbours of these points are inside */

const double breast_shape_depths[BREAST_SHAPE_DEPTHS] = {2, 5, 10};

static double view_angle(const struct scan *scan, int view)
{
	return atan2(scan->views[view].src[1], scan->views[view].src[2]) * 180 / M_PI;
}

/* Sort the views by angle, and choose the central ones. */
static int choose_views(const struct scan *scan, const struct view_cells *cells, const float *mean, struct shape_views *ret,
			struct err *err)
{
	int n = scan->n_views, first = 0, last = n - 1, step;
	struct shape_views v = {.scan = scan, .cells = cells, .mean = mean, .by_angle = malloc(2 * (size_t)n * sizeof(int))};

	if (!v.by_angle)
		return err_set(err, ENOMEM, "breast shape: no memory for %d views", n);
	for (int i = 0; i < n; i++) {
		int k = i;

		for (; k > 0 && view_angle(scan, v.by_angle[k - 1]) > view_angle(scan, i); k--)
			v.by_angle[k] = v.by_angle[k - 1];
		v.by_angle[k] = i;
	}
	v.arc = view_angle(scan, v.by_angle[n - 1]) - view_angle(scan, v.by_angle[0]);
	while (last - first > 2) {
		double a = fabs(view_angle(scan, v.by_angle[first])), b = fabs(view_angle(scan, v.by_angle[last]));

		if (fmax(a, b) <= CENTRAL)
			break;
		first += a >= b;
		last -= a < b;
	}
	v.central = v.by_angle + n;
	step = (last - first) / CENTRAL_MOST + 1;
	for (int i = first + (last - first) % step / 2; i <= last; i += step)
		v.central[v.n_central++] = v.by_angle[i];
	*ret = v;
	return 0;
}

/* Blur the square by (1 2 1) / 4 along x and y, BLUR times, from some mm inside the skin on: distances are those to whole points, and
 * slices near the plates would have a scalloped outline. work: as large as the square. */
static void blur_square(const struct shape_outline *o, float *square, float *work)
{
	size_t n = (size_t)o->n[0];

	for (int k = 0; k < BLUR; k++) {
		memcpy(work, square, n * (size_t)o->n[1] * sizeof(*work));
#pragma omp parallel for schedule(static)
		for (int j = 1; j < o->n[1] - 1; j++)
			for (size_t i = 0; i < n - 1; i++) {
				size_t at = (size_t)j * n + i, left = i > 0 ? at - 1 : at;
				float sum[3];

				if (!(o->distance[at] > BLUR_FROM && o->distance[at] < SHAPE_CLASSES))
					continue;
				for (int v = 0; v < 3; v++)
					sum[v] = work[left + v * n - n] + 2 * work[at + v * n - n] + work[at + 1 + v * n - n];
				square[at] = (sum[0] + 2 * sum[1] + sum[2]) / 16;
			}
	}
}

/* Give points beside the skin the negative mean of their neighbours inside, so that the square is 0 at the skin line. */
static void mirror_skin(const struct shape_outline *o, float *square)
{
	for (int j = 0; j < o->n[1]; j++)
		for (int i = 0; i < o->n[0]; i++) {
			size_t at = (size_t)j * (size_t)o->n[0] + (size_t)i;
			float sum = 0;
			int n = 0;

			if (o->kind[at] == POINT_INSIDE)
				continue;
			for (int v = j > 0 ? j - 1 : 0; v <= j + 1 && v < o->n[1]; v++)
				for (int u = i > 0 ? i - 1 : 0; u <= i + 1 && u < o->n[0]; u++) {
					size_t near = (size_t)v * (size_t)o->n[0] + (size_t)u;

					if (o->kind[near] == POINT_INSIDE) {
						sum += square[near];
						n++;
					}
				}
			square[at] = n ? -sum / (float)n : -1;
		}
}

/* Find where the breast ends along y at the chest wall, mm, as far as the plane shows. */
static void find_sides(const struct shape_outline *o, double ret[2])
{
	int first = -1, last = 0;

	for (int j = 0; j < o->n[1]; j++)
		if (o->kind[(size_t)j * (size_t)o->n[0]] == POINT_INSIDE) {
			first = first < 0 ? j : first;
			last = j;
		}
	ret[0] = o->lo[1] + (first - 0.5) * o->step;
	ret[1] = o->lo[1] + (last + 0.5) * o->step;
}

/* Find the shape inside an outline. */
static int find_inside(const struct shape_views *v, const struct shape_outline *o, const struct grid *grid,
		       struct breast_shape *ret, struct err *err)
{
	size_t n = (size_t)o->n[0] * (size_t)o->n[1];
	struct shape_finding w = {.views = v, .o = o, .bottom = grid->lo[2], .thickness = grid->n[2] * grid->h[2]};
	int rc;

	w.square = malloc(2 * n * sizeof(*w.square));
	if (!w.square)
		return err_set(err, ENOMEM, "breast shape: no memory for %zu points", n);
	w.line = w.square + n;
	find_sides(o, w.side);
	rc = shape_thickness_find(&w, &ret->report, err);
	if (rc == 0)
		rc = shape_height_find(&w, &ret->report, err);
	if (rc == 0) {
		blur_square(o, w.square, w.line);
		mirror_skin(o, w.square);
		memcpy(ret->n, o->n, sizeof(ret->n));
		memcpy(ret->lo, o->lo, sizeof(ret->lo));
		memcpy(ret->side, w.side, sizeof(ret->side));
		ret->step = o->step;
		ret->thickness = w.thickness;
		ret->middle = w.bottom + w.thickness / 2;
		ret->square = w.square;
		ret->report.used = true;
	} else {
		free(w.square);
	}
	return rc;
}

int breast_shape_find(const struct scan *scan, const struct view_cells *cells, const float *mean, const struct grid *grid,
		      struct breast_shape *ret, struct err *err)
{
	struct breast_shape shape = {.report.asked = true};
	struct shape_outline o = {.n = {0}};
	struct shape_views v;
	int rc;

	if (scan->kind != SCAN_DBT)
		return err_set(err, EINVAL, "breast shape: scan of kind %d, not tomosynthesis", (int)scan->kind);
	rc = choose_views(scan, cells, mean, &v, err);
	if (rc < 0)
		return rc;
	rc = shape_outline_make(&v, grid, grid->lo[2] + grid->n[2] * grid->h[2] / 2, &o, shape.report.reason,
				sizeof(shape.report.reason), err);
	if (rc == 0 && !shape.report.reason[0])
		rc = find_inside(&v, &o, grid, &shape, err);
	shape_outline_release(&o);
	free(v.by_angle);
	if (rc < 0)
		return rc;
	*ret = shape;
	return 0;
}

void breast_shape_release(struct breast_shape *s)
{
	free(s->square);
	*s = (struct breast_shape){.report = s->report};
}

/* Return the point along x from which on both rows j and j + 1 are far from the skin: -1. */
static int end_of_rows(const struct breast_shape *s, int j)
{
	const float *row = s->square + (size_t)j * (size_t)s->n[0];
	int end = s->n[0];

	while (end > 0 && row[end - 1] == -1 && row[s->n[0] + end - 1] == -1)
		end--;
	return end;
}

/* Distance of a surface from the middle of the plates, where the rim's middle is nearer to this surface by `height`. With a margin
 * that grows with the thickness: an outline near the plates that is too narrow loses skin, and one at mid-height too wide darkens the
 * nipple. Between FULL and 1, the column grows to the value that reaches both plates. */
static float column_of(const struct breast_shape *s, double square, double height)
{
	double part = fmax(square, 0), full = fmin(fmax((square - (double)FULL) / (1 - (double)FULL), 0), 1);
	double half = s->thickness * sqrt(part) / 2 + MARGIN * part + height + fabs(height) * full;

	return (float)(half / BREAST_SHAPE_SOFT + 0.5 + 0.5 * full);
}

void breast_shape_columns(const struct breast_shape *s, const struct grid *grid, bool upper, float *ret_columns)
{
	const struct shape_outline plane = {.n = {s->n[0], s->n[1]}, .lo = {s->lo[0], s->lo[1]}, .step = s->step};

#pragma omp parallel for schedule(static)
	for (int j = 0; j < grid->n[1]; j++) {
		double y = grid->lo[1] + (j + 0.5) * grid->h[1], along = (y - s->side[0]) / (s->side[1] - s->side[0]), height;
		float *row = ret_columns + (size_t)j * (size_t)grid->n[0], v = (float)((y - s->lo[1]) / s->step), beside;
		int end = end_of_rows(s, v > 0 ? (v < (float)(s->n[1] - 2) ? (int)v : s->n[1] - 2) : 0);

		along = fmin(fmax(along, 0), 1);
		height = s->report.height[0] + along * (s->report.height[1] - s->report.height[0]);
		height = upper ? height : -height;
		beside = column_of(s, -1, height);
		for (int i = 0; i < grid->n[0]; i++) {
			float u = (float)((grid->lo[0] + (i + 0.5) * grid->h[0] - s->lo[0]) / s->step);

			row[i] = u >= (float)end ? beside
						 : column_of(s, (double)shape_interpolate(&plane, s->square, u, v), height);
		}
	}
}

float breast_shape_away(const struct breast_shape *s, const struct grid *grid, int slice, bool *ret_upper)
{
	double z = grid->lo[2] + (slice + 0.5) * grid->h[2] - s->middle;

	*ret_upper = z > 0;
	return (float)(fabs(z) / BREAST_SHAPE_SOFT);
}

void breast_shape_text(const struct breast_shape_report *r, char *ret_text, size_t size)
{
	ret_text[0] = '\0';
	if (r->asked && !r->used)
		snprintf(ret_text, size, "Uniform start image: %s.", r->reason);
	else if (r->asked)
		snprintf(
			ret_text, size,
			"Start image of the breast's shape: rim %.0f mm (%.0f to %.0f), its middle %s%.1f and %.1f mm, fit %.1f %%.",
			r->width, r->width_least, r->width_most, r->height_seen ? "at " : "not seen, at ", r->height[0],
			r->height[1], 100 * r->error);
}
