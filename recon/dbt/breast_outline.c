/* SPDX-License-Identifier: Apache-2.0 */
/* breast_outline.c - the outline of the breast on a plane: line integrals, inside, distance to the skin, place along the skin. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "recon/dbt/breast_shape_internal.h"
#include "recon/dbt/skin_distance.h"

#define STEP 1.0	   /* mm between points */
#define TISSUE 0.06	   /* least line integral of tissue: 1.3 mm of fat at 20 keV; noise of a cell is far below */
#define AIR_SHARE 0.03	   /* least share of air; its level is this percentile of the points */
#define BEYOND 60	   /* points added beyond the chest wall, where the breast continues */
#define CHEST_GAP 20	   /* points at the chest wall that central projections may not see */
#define SEEN_LEAST 0.7	   /* least part of the outline that is skin, not the edge of the data */
#define INSIDE_LEAST 400.0 /* mm^2 */

/* Return the value of a projection at a place given in bins, or a negative number where it has no data. */
static float cell_at(const struct view_cells *c, const float *mean, const double foot[2])
{
	double u = (foot[0] + 0.5) / c->bins_u - 0.5, v = (foot[1] + 0.5) / c->bins_v - 0.5;
	int i, j;
	float a, b, p, q;

	if (!(u >= -0.5 && u <= c->n_u - 0.5 && v >= -0.5 && v <= c->n_v - 0.5))
		return -1;
	u = fmin(fmax(u, 0), c->n_u - 1);
	v = fmin(fmax(v, 0), c->n_v - 1);
	i = (int)fmin(floor(u), c->n_u > 1 ? c->n_u - 2 : 0);
	j = (int)fmin(floor(v), c->n_v > 1 ? c->n_v - 2 : 0);
	a = (float)(u - i);
	b = (float)(v - j);
	mean += (size_t)j * (size_t)c->n_u + (size_t)i;
	i = c->n_u > 1;
	j = c->n_v > 1 ? c->n_u : 0;
	if (mean[0] < 0 || mean[i] < 0 || mean[j] < 0 || mean[i + j] < 0)
		return -1;
	p = mean[0] + a * (mean[i] - mean[0]);
	q = mean[j] + a * (mean[i + j] - mean[j]);
	return p + b * (q - p);
}

/* Compute where the rays of a view through the points of a row meet the detector: along a row parallel to it, equal steps. Return
 * false if they do not. */
static bool feet_of_row(const struct shape_views *v, int view, const struct shape_outline *o, int row, double first[2],
			double step[2])
{
	const struct scan_view *from = &v->scan->views[view];
	const double point[3] = {o->lo[0], o->lo[1] + row * o->step, o->z},
		     last[3] = {o->lo[0] + (o->n[0] - 1) * o->step, point[1], o->z};

	if (!scan_foot(v->scan, from, point, first) || !scan_foot(v->scan, from, last, step))
		return false;
	for (int c = 0; c < 2; c++)
		step[c] = (step[c] - first[c]) / (o->n[0] - 1);
	return true;
}

/* Compute the mean over the central views of the line integrals through the points of a row, times the cosine of the ray's angle
 * to z; negative: no data. The detectors of central views are about parallel to the plane, so that their places are at equal
 * steps to within a fraction of a cell. */
static void average_row(const struct shape_views *v, const struct shape_outline *o, int row, float *line)
{
	double y = o->lo[1] + row * o->step, first[CENTRAL_MOST][2], step[CENTRAL_MOST][2];
	bool seen[CENTRAL_MOST];

	for (int k = 0; k < v->n_central; k++)
		seen[k] = feet_of_row(v, v->central[k], o, row, first[k], step[k]);
	for (int i = 0; i < o->n[0]; i++) {
		double x = o->lo[0] + i * o->step, sum = 0;
		int n = 0;

		for (int k = 0; k < v->n_central; k++) {
			const double *src = v->scan->views[v->central[k]].src, d[3] = {x - src[0], y - src[1], src[2] - o->z};
			const double foot[2] = {first[k][0] + i * step[k][0], first[k][1] + i * step[k][1]};
			float value = seen[k] ? cell_at(v->cells, shape_view(v, v->central[k]), foot) : -1;

			if (value < 0)
				continue;
			sum += (double)value * d[2] / sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
			n++;
		}
		line[i] = n ? (float)(sum / n) : -1;
	}
	for (int i = 0; i < o->n[0] && i < CHEST_GAP; i++)
		if (line[i] >= 0) {
			while (i-- > 0)
				line[i] = line[i + 1];
			break;
		}
}

/* Subtract the level of the air, to within 0.001. Return the share of the points with data that show air. */
static double subtract_air(struct shape_outline *o)
{
	enum { CLASSES = 400 }; /* of 0.001 */
	size_t n = (size_t)o->n[0] * (size_t)o->n[1], have = 0, air = 0, below = 0, hist[CLASSES] = {0};
	int level = 0;

	for (size_t i = 0; i < n; i++) {
		have += o->line[i] >= 0;
		if (o->line[i] >= 0 && o->line[i] < 0.001f * CLASSES)
			hist[(int)(o->line[i] * 1000)]++;
	}
	while (level < CLASSES && (double)(below += hist[level]) <= AIR_SHARE * (double)have)
		level++;
	o->air = level < CLASSES ? 0.001 * level : 0;
	for (size_t i = 0; i < n; i++) {
		bool data = o->line[i] >= 0, tissue = data && o->line[i] > (float)(o->air + TISSUE);

		o->kind[i] = tissue ? POINT_INSIDE : data ? POINT_AIR : POINT_NO_DATA;
		o->line[i] = data ? fmaxf(0, o->line[i] - (float)o->air) : 0;
		air += data && !tissue;
	}
	return have > 0 ? (double)air / (double)have : 0;
}

/* Replace the points of `from` that are connected with start (4 neighbours) by `to`; return their number. */
static size_t flood_region(const struct shape_outline *o, unsigned char *kind, size_t start, unsigned char from, unsigned char to,
			   int *stack)
{
	size_t waiting = 0, n = 0;

	kind[start] = to;
	stack[waiting++] = (int)start;
	while (waiting > 0) {
		int at = stack[--waiting], i = at % o->n[0], j = at / o->n[0];
		const int next[4] = {i > 0 ? at - 1 : -1, i < o->n[0] - 1 ? at + 1 : -1, j > 0 ? at - o->n[0] : -1,
				     j < o->n[1] - 1 ? at + o->n[0] : -1};

		n++;
		for (int k = 0; k < 4; k++)
			if (next[k] >= 0 && kind[next[k]] == from) {
				kind[next[k]] = to;
				stack[waiting++] = next[k];
			}
	}
	return n;
}

/* Return whether a point is at an end of the data, except that at the chest wall. */
static bool is_at_edge(const struct shape_outline *o, size_t at)
{
	size_t n = (size_t)o->n[0], i = at % n, j = at / n;

	return i == n - 1 || j == 0 || j == (size_t)o->n[1] - 1 || o->kind[at + 1] == POINT_NO_DATA ||
	       o->kind[at - n] == POINT_NO_DATA || o->kind[at + n] == POINT_NO_DATA ||
	       (i > 0 && o->kind[at - 1] == POINT_NO_DATA);
}

/* Keep the largest region of tissue, without its holes. Return its number of points. */
static size_t keep_breast(struct shape_outline *o, int *stack)
{
	enum { SEEN = 100, BREAST, OUTSIDE };
	size_t n = (size_t)o->n[0] * (size_t)o->n[1], most = 0, size, inside = 0;
	size_t at = n;

	for (size_t i = 0; i < n; i++)
		if (o->kind[i] == POINT_INSIDE && (size = flood_region(o, o->kind, i, POINT_INSIDE, SEEN, stack)) > most) {
			most = size;
			at = i;
		}
	if (at == n)
		return 0;
	flood_region(o, o->kind, at, SEEN, BREAST, stack);
	for (size_t i = 0; i < n; i++) /* what is smaller is air beside the breast, or in it */
		o->kind[i] = o->kind[i] == SEEN ? POINT_AIR : o->kind[i];
	for (size_t i = 0; i < n; i++)
		if (o->kind[i] == POINT_AIR && is_at_edge(o, i))
			flood_region(o, o->kind, i, POINT_AIR, OUTSIDE, stack);
	for (size_t i = 0; i < n; i++) {
		o->kind[i] = o->kind[i] == OUTSIDE ? POINT_AIR : o->kind[i] == POINT_NO_DATA ? POINT_NO_DATA : POINT_INSIDE;
		inside += o->kind[i] == POINT_INSIDE;
	}
	return inside;
}

/* Return the part of the outline that is skin: the rest is where the data end, at the far side of the breast or in its middle. */
static double skin_part(const struct shape_outline *o)
{
	size_t skin = 0, cut = 0;

	for (int j = 1; j < o->n[1] - 1; j++)
		for (int i = 1; i < o->n[0]; i++) {
			const unsigned char *k = o->kind + (size_t)j * (size_t)o->n[0] + i;

			if (*k != POINT_INSIDE)
				continue;
			skin += k[-1] == POINT_AIR || k[-o->n[0]] == POINT_AIR || k[o->n[0]] == POINT_AIR ||
				(i < o->n[0] - 1 && k[1] == POINT_AIR);
			cut += k[-1] == POINT_NO_DATA || k[-o->n[0]] == POINT_NO_DATA || k[o->n[0]] == POINT_NO_DATA ||
			       i == o->n[0] - 1 || k[1] == POINT_NO_DATA;
		}
	return skin > 0 ? (double)skin / (double)(skin + cut) : 0;
}

/* Find the point about which the skin is divided into sectors: at the middle of the chest wall, in the breast. Return false if
 * the breast does not reach the chest wall. */
static bool find_middle(const struct shape_outline *o, double ret[2])
{
	double sum = 0;
	int n = 0, deep = 0;

	for (int j = 0; j < o->n[1]; j++) {
		const unsigned char *kind = o->kind + (size_t)j * (size_t)o->n[0];

		if (kind[0] == POINT_INSIDE) {
			sum += j;
			n++;
		}
		for (int i = deep; i < o->n[0]; i++)
			deep = kind[i] == POINT_INSIDE ? i : deep;
	}
	ret[0] = 0.3 * deep;
	ret[1] = n ? sum / n : 0;
	return n > 0;
}

/* Return false if there is no outline: the reason says why. work: an integer for each point. */
static bool find_breast(struct shape_outline *o, int *work, double ret_middle[2], char *reason, size_t size)
{
	double air = subtract_air(o), part, area;

	if (air < AIR_SHARE) {
		snprintf(reason, size, "the projections show only %.1f %% of air, less than %.0f %%", 100 * air, 100 * AIR_SHARE);
		return false;
	}
	area = (double)keep_breast(o, work) * o->step * o->step;
	if (area < INSIDE_LEAST) {
		snprintf(reason, size, "tissue covers %.0f mm^2, less than %.0f", area, INSIDE_LEAST);
		return false;
	}
	if (!find_middle(o, ret_middle)) {
		snprintf(reason, size, "the object of %.0f mm^2 does not reach the chest wall", area);
		return false;
	}
	part = skin_part(o);
	if (part < SEEN_LEAST)
		snprintf(reason, size,
			 "only %.0f %% of the outline is skin, less than %.0f %%: the field of view cuts the breast", 100 * part,
			 100 * SEEN_LEAST);
	return part >= SEEN_LEAST;
}

/* Compute the distances to the skin, and its sectors. The first column goes on beyond the chest wall. */
static int measure_skin(const struct shape_outline *o, const double middle[2], struct err *err)
{
	const int n[2] = {o->n[0] + BEYOND, o->n[1]};
	const double h[2] = {o->step, o->step};
	size_t wide = (size_t)n[0], points = wide * (size_t)n[1];
	float *distance = malloc(points * (sizeof(*distance) + sizeof(int) + 1));
	int *nearest = (int *)(distance + points), rc;
	unsigned char *air = (unsigned char *)(nearest + points);

	if (!distance)
		return err_set(err, ENOMEM, "breast shape: no memory for %d x %d points", n[0], n[1]);
	for (size_t i = 0; i < points; i++) {
		size_t q = i % wide, column = q < BEYOND ? 0 : q - BEYOND;

		air[i] = o->kind[i / wide * (size_t)o->n[0] + column] == POINT_AIR;
	}
	rc = skin_distance(n, h, air, distance, nearest, err);
	for (size_t i = 0; rc == 0 && i < (size_t)o->n[0] * (size_t)o->n[1]; i++) {
		size_t at = i / (size_t)o->n[0] * wide + i % (size_t)o->n[0] + BEYOND;
		double angle;

		o->distance[i] = INFINITY;
		if (o->kind[i] != POINT_INSIDE || nearest[at] < 0)
			continue;
		/* the skin is half a step before the nearest air */
		o->distance[i] = distance[at] - 0.5f * (float)o->step;
		angle = atan2(nearest[at] / n[0] - middle[1], nearest[at] % n[0] - BEYOND - middle[0]);
		o->sector[i] = (float)((angle + M_PI) / (2 * M_PI) * SHAPE_SECTORS);
	}
	free(distance);
	return rc;
}

int shape_outline_make(const struct shape_views *v, const struct grid *grid, double z, struct shape_outline *ret,
		       char *ret_reason, size_t size, struct err *err)
{
	struct shape_outline o = {.step = STEP, .z = z};
	double middle[2];
	size_t n;
	int *work, rc = 0;

	ret_reason[0] = '\0';
	for (int c = 0; c < 2; c++) {
		o.n[c] = (int)fmax(2, ceil(grid->n[c] * grid->h[c] / STEP));
		o.lo[c] = grid->lo[c] + 0.5 * (grid->n[c] * grid->h[c] - (o.n[c] - 1) * STEP);
	}
	n = (size_t)o.n[0] * (size_t)o.n[1];
	o.line = malloc(n * (3 * sizeof(float) + 1));
	work = malloc(n * sizeof(*work));
	if (!o.line || !work) {
		free(o.line);
		free(work);
		return err_set(err, ENOMEM, "breast shape: no memory for %d x %d points", o.n[0], o.n[1]);
	}
	o.distance = o.line + n;
	o.sector = o.distance + n;
	o.kind = (unsigned char *)(o.sector + n);
#pragma omp parallel for schedule(static)
	for (int j = 0; j < o.n[1]; j++)
		average_row(v, &o, j, o.line + (size_t)j * (size_t)o.n[0]);
	if (find_breast(&o, work, middle, ret_reason, size))
		rc = measure_skin(&o, middle, err);
	free(work);
	*ret = o;
	return rc;
}

void shape_outline_release(struct shape_outline *o)
{
	free(o->line);
	*o = (struct shape_outline){0};
}
