/* SPDX-License-Identifier: Apache-2.0 */
/* metal_places.c - from the shadows of all views to objects.
 *
 * Every shadow that meets all limits proposes places on its ray, one for each height; the views vote for them. The best place is
 * moved to the point that is nearest to the rays of its shadows (weighted least squares), and takes the shadows there. */
#include <math.h>
#include <string.h>

#include "recon/dbt/metal.h"

#define NEAR 1.0   /* mm on the detector: a shadow's middle may be this far from a place's, or its bins reach it */
#define HEIGHT 0.5 /* mm between proposed places */
#define VIEWS_LEAST 3
#define SHARE_LEAST 0.6 /* of the views that have the place on the detector */
#define ROUNDS 8
#define SINGULAR 1e-9

struct places {
	const struct scan *scan;
	const struct grid *grid;
	struct metal_view *views;
};

/* Compute the foot of a place in a view, in bins. Return false if it is not on the detector. */
static bool find_foot(const struct places *p, int view, const double at[3], double ret[2])
{
	return scan_foot(p->scan, &p->scan->views[view], at, ret) && ret[0] >= -0.5 && ret[0] < p->scan->n_u - 0.5 &&
	       ret[1] >= -0.5 && ret[1] < p->scan->n_v - 0.5;
}

static double distance_of(const struct places *p, const struct metal_shadow *m, const double foot[2])
{
	return hypot((m->at[0] - foot[0]) * p->scan->h[0], (m->at[1] - foot[1]) * p->scan->h[1]);
}

bool metal_is_alone(const struct scan *scan, int view, const struct metal_shadow *m, const struct metal_object *o)
{
	double foot[2] = {INFINITY, INFINITY};

	scan_foot(scan, &scan->views[view], o->at, foot);
	return hypot((m->at[0] - foot[0]) * scan->h[0], (m->at[1] - foot[1]) * scan->h[1]) <= METAL_ALONE;
}

/* Return the nearest shadow of a view that belongs to no object; NULL: none within NEAR. */
static struct metal_shadow *nearest_shadow(const struct places *p, int view, const double foot[2], bool sure,
					   double *ret_distance)
{
	struct metal_view *v = &p->views[view];
	struct metal_shadow *best = NULL;

	*ret_distance = NEAR;
	for (int i = 0; i < v->n; i++) {
		double distance = distance_of(p, &v->shadow[i], foot);

		if (!v->shadow[i].taken && (v->shadow[i].sure || !sure) && distance <= *ret_distance) {
			*ret_distance = distance;
			best = &v->shadow[i];
		}
	}
	return best;
}

/* Compute the point of a shadow's ray at a height. */
static void point_at(const struct places *p, int view, const struct metal_shadow *m, double z, double ret[3])
{
	const struct scan_view *from = &p->scan->views[view];
	double on[3], part;

	scan_bin_at(p->scan, from, m->at[0], m->at[1], on);
	part = (z - from->src[2]) / (on[2] - from->src[2]);
	for (int c = 0; c < 3; c++)
		ret[c] = from->src[c] + part * (on[c] - from->src[c]);
}

/* Return the votes for a place: the views with a shadow there, and a little less for distant ones. */
static double count_votes(const struct places *p, const double at[3])
{
	double votes = 0;

	for (int i = 0; i < p->scan->n_views; i++) {
		double foot[2], distance;

		if (p->views[i].n > 0 && find_foot(p, i, at, foot) && nearest_shadow(p, i, foot, true, &distance))
			votes += 1 - distance / NEAR / (2 * p->scan->n_views);
	}
	return votes;
}

/* Find the place with the most votes of all views; return the shadow that proposes it, or NULL: none has enough. */
static struct metal_shadow *propose_place(const struct places *p, double ret[3])
{
	struct metal_shadow *best = NULL;
	double most = VIEWS_LEAST - 0.5, top = p->grid->n[2] * p->grid->h[2];
	for (int i = 0; i < p->scan->n_views; i++)
		for (int k = 0; k < p->views[i].n; k++)
			for (double z = HEIGHT / 2; !p->views[i].shadow[k].taken && p->views[i].shadow[k].sure && z < top;
			     z += HEIGHT) {
				double at[3], votes;

				point_at(p, i, &p->views[i].shadow[k], p->grid->lo[2] + z, at);
				votes = count_votes(p, at);
				if (votes > most) {
					most = votes;
					memcpy(ret, at, sizeof(at));
					best = &p->views[i].shadow[k];
				}
			}
	return best;
}

/* Find the shadow of a place in a view: the nearest one, else one that covers its foot and may be that of another object, too. */
static int shadow_of(const struct places *p, int view, const double at[3], bool *ret_seen)
{
	const struct metal_view *v = &p->views[view];
	const struct metal_shadow *nearest;
	double foot[2], distance;

	*ret_seen = find_foot(p, view, at, foot);
	if (!*ret_seen)
		return -1;
	nearest = nearest_shadow(p, view, foot, false, &distance);
	if (nearest)
		return (int)(nearest - v->shadow);
	for (int i = 0; i < v->n; i++)
		for (size_t b = 0; b < v->shadow[i].n; b++)
			if (v->shadow[i].bin[b].u == (int)lround(foot[0]) && v->shadow[i].bin[b].v == (int)lround(foot[1]))
				return i;
	return -1;
}

bool metal_solve(double m[3][4])
{
	for (int i = 0; i < 3; i++) {
		double pivot = m[i][i];

		if (!(pivot > SINGULAR))
			return false;
		for (int c = i; c < 4; c++)
			m[i][c] /= pivot;
		for (int r = 0; r < 3; r++)
			for (int c = 3; r != i && c >= i; c--)
				m[r][c] -= m[r][i] * m[i][c];
	}
	return true;
}

/* Move a place to the point nearest to the rays of its shadows: the sum of w (I - d d') (x - source) over the views is 0. The weight w
 * of a shadow is small where it is far from the place, because it is also that of another object. */
static void move_place(const struct places *p, const signed char *of, double at[3])
{
	double m[3][4] = {{0}};

	for (int i = 0; i < p->scan->n_views; i++) {
		const double *src = p->scan->views[i].src;
		double d[3], foot[2], length, away;

		if (of[i] < 0 || !find_foot(p, i, at, foot))
			continue;
		away = distance_of(p, &p->views[i].shadow[of[i]], foot) / METAL_ALONE;
		point_at(p, i, &p->views[i].shadow[of[i]], p->grid->lo[2], d);
		for (int c = 0; c < 3; c++)
			d[c] -= src[c];
		length = sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
		for (int r = 0; r < 3; r++)
			for (int c = 0; c < 3; c++) {
				double part = ((r == c) - d[r] * d[c] / (length * length)) / (1 + away * away);

				m[r][c] += part;
				m[r][3] += part * src[c];
			}
	}
	metal_solve(m); /* the rays are not parallel */
	for (int c = 0; c < 3; c++)
		at[c] = m[c][3];
}

/* Take the shadows of a place as an object. Return false if it is none: too few views show it, or it stops too little. */
static bool take_object(const struct places *p, signed char *of, struct metal_object *o)
{
	int n = 0;

	for (int round = 0; round < ROUNDS; round++) {
		n = o->of = 0;
		for (int i = 0; i < p->scan->n_views; i++) {
			bool seen;

			of[i] = (signed char)shadow_of(p, i, o->at, &seen);
			o->of += seen;
			n += of[i] >= 0;
		}
		if (n < VIEWS_LEAST)
			return false;
		move_place(p, of, o->at);
	}
	o->views = n;
	o->mu = 0;
	for (int i = 0; i < p->scan->n_views; i++)
		if (of[i] >= 0)
			o->mu += p->views[i].shadow[of[i]].rise / p->views[i].shadow[of[i]].width / n;
	return n >= SHARE_LEAST * o->of && o->mu >= METAL_MU && o->at[2] > p->grid->lo[2] &&
	       o->at[2] < p->grid->lo[2] + p->grid->n[2] * p->grid->h[2];
}

void metal_locate(const struct scan *scan, const struct grid *grid, struct metal_view *views, signed char *ret_of,
		  struct metal_report *ret_report)
{
	struct places p = {scan, grid, views};
	struct metal_report report = {.asked = true};
	struct metal_shadow *from;
	struct metal_object o;

	while (report.n < METAL_OBJECTS_MOST && (from = propose_place(&p, o.at))) {
		signed char *of = ret_of + (size_t)report.n * (size_t)scan->n_views;
		bool found = take_object(&p, of, &o);

		from->taken = true; /* so that each round ends */
		for (int i = 0; i < scan->n_views; i++)
			if (of[i] >= 0)
				views[i].shadow[of[i]].taken = true;
		if (found)
			report.object[report.n++] = o;
	}
	*ret_report = report;
}
