/* SPDX-License-Identifier: Apache-2.0 */
/* simulate_field.c - what makes the intensity of the open beam differ from one value: distance and direction of the source, the
 * heel effect, exposures that vary; and how much of the detector shows air. Uses no code of the reconstruction
 * (recon/dbt/open_field.h).
 *
 * Heel effect: electrons strike the anode toward the chest wall, at ANODE_ANGLE to its surface. A ray that leaves at the angle e
 * toward the nipple crosses depth / sin(ANODE_ANGLE - e) of the anode. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "node/simulate/simulate.h"

#define ANODE_ANGLE (26 * M_PI / 180) /* effective: with the tilt of the tube; the largest e must be below it */
#define SHARE_CELLS 60		      /* bins across the detector with which air is counted */
#define SHARE_STEPS 24
#define SCALE_MOST 6.0
#define NO_AIR 1.1 /* factor for no air, also not between the rays with which air is counted */

/* Return cos theta / r^2 of a bin. */
static double bin_fluence(const struct scan *scan, const struct scan_view *view, int u, int v)
{
	double a[3], b[3], on_u[3], on_v[3], n[3], along = 0, r2 = 0, area = 0;

	scan_ray(scan, view, u, v, a, b);
	scan_bin_at(scan, view, u + 1, v, on_u);
	scan_bin_at(scan, view, u, v + 1, on_v);
	for (int c = 0; c < 3; c++) {
		int d = (c + 1) % 3, e = (c + 2) % 3;

		n[c] = (on_u[d] - b[d]) * (on_v[e] - b[e]) - (on_u[e] - b[e]) * (on_v[d] - b[d]);
		along += n[c] * (a[c] - b[c]);
		r2 += (a[c] - b[c]) * (a[c] - b[c]);
		area += n[c] * n[c];
	}
	return fabs(along) / sqrt(area) / (r2 * sqrt(r2));
}

static double anode_path(double e)
{
	return 1 / sin(ANODE_ANGLE - e) - 1 / sin(ANODE_ANGLE);
}

/* Return the transmission of the anode, which turns with the tube in the plane of y and z. */
static double heel_transmission(const struct simulation *s, const struct scan_view *view, int u, int v)
{
	const struct profile_conf *p = s->o.profile;
	double a[3], b[3], down[2] = {p->source_y - view->src[1], p->axis_height - view->src[2]}, along, far;

	scan_ray(s->scan, view, u, v, a, b);
	along = ((b[1] - a[1]) * down[0] + (b[2] - a[2]) * down[1]) / hypot(down[0], down[1]);
	far = atan((s->n_u * s->pitch - p->source_x) / (p->axis_height + p->source_axis));
	return pow(1 - s->o.heel / 100, anode_path(atan2(b[0] - a[0], along)) / anode_path(far));
}

/* Return the intensity of the open beam at a bin relative to that of the view's exposure. */
static double open_factor(const struct simulation *s, int view, int u, int v)
{
	const struct scan_view *at = &s->scan->views[view];
	double factor = 1;

	if (s->o.open_distance)
		factor *= bin_fluence(s->scan, at, u, v) / bin_fluence(s->rest, &s->rest->views[0], u, v);
	if (s->o.heel > 0)
		factor *= heel_transmission(s, at, u, v);
	return factor;
}

double simulate_open_largest(const struct simulation *s)
{
	double largest = 0;

	for (int i = 0; i < s->o.views; i++)
		for (int k = 0; k < 49; k++)
			largest = fmax(largest, s->exposure[i] * open_factor(s, i, (s->n_u - 1) * (k % 7) / 6,
									     (s->n_v - 1) * (k / 7) / 6));
	return largest;
}

void simulate_open_field(const struct simulation *s, int view, float *line)
{
	if (!s->o.open_distance && !(s->o.heel > 0))
		return;
	for (int v = 0; v < s->n_v; v++)
		for (int u = 0; u < s->n_u; u++)
			line[(size_t)v * (size_t)s->n_u + (size_t)u] -= (float)log(open_factor(s, view, u, v));
}

/* ---- how much air ---- */

/* Stretch bodies along x and y by `scale`, and move the other shapes with them. */
static void stretch_bodies(struct phantom *p, double scale)
{
	for (size_t i = 0; i < p->n; i++)
		for (int c = 0; c < 2; c++) {
			p->shapes[i].c[c] *= scale;
			if (p->shapes[i].role == ROLE_BODY)
				p->shapes[i].r[c] *= scale;
		}
}

/* Compute the share of bins of all views whose rays meet no shape. */
static int count_air(const struct phantom *p, const struct scan *scan, float *line, double *ret_share, struct err *err)
{
	size_t n = scan_view_size(scan), air = 0;
	int rc = 0;

	for (int view = 0; rc == 0 && view < scan->n_views; view++) {
		rc = phantom_project(p, scan, view, line, err);
		for (size_t i = 0; rc == 0 && i < n; i++)
			air += !(line[i] > 0);
	}
	*ret_share = (double)air / (double)n / scan->n_views;
	return rc;
}

static int find_scale(struct phantom *p, const struct scan *scan, double share, float *line, struct err *err)
{
	double lo = 0.2, hi = SCALE_MOST, found;
	int rc = 0;

	for (int i = 0; rc == 0 && i < SHARE_STEPS; i++) {
		double scale = (lo + hi) / 2;

		stretch_bodies(p, scale);
		rc = count_air(p, scan, line, &found, err);
		stretch_bodies(p, 1 / scale);
		if (found > share)
			lo = scale;
		else
			hi = scale;
	}
	stretch_bodies(p, share > 0 ? hi : NO_AIR * hi);
	return rc;
}

int simulate_stretch(struct simulation *s, struct err *err)
{
	int bin = (s->n_u < s->n_v ? s->n_u : s->n_v) / SHARE_CELLS;
	struct scan *coarse = NULL;
	float *line;
	int rc;

	if (!(s->o.air >= 0))
		return 0;
	rc = scan_create_binned(s->scan, bin > 1 ? bin : 1, NULL, &coarse, err);
	if (rc < 0)
		return rc;
	line = malloc(scan_view_size(coarse) * sizeof(*line));
	rc = line ? find_scale(s->phantom, coarse, s->o.air / 100, line, err) : err_set(err, ENOMEM, "no memory for a view");
	free(line);
	scan_free(coarse);
	return rc;
}
