/* SPDX-License-Identifier: Apache-2.0 */
/* scan.c - create and check scans. A scan and its views are one allocation. */
#include "recon/core/scan.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define BINS_MAX 65535
#define VIEWS_MAX 4096
#define ANGLE_MAX 90.0	    /* degrees; a source at the detector's height has no rays through it */
#define ANGLE_DISTINCT 0.01 /* degrees */
#define AXIS_FAR 10000.0    /* mm */
#define RATIO_MAX 2.0	    /* turns of the detector per turn of the source */
#define RADIANS (3.14159265358979323846 / 180)

struct owned_scan {
	struct scan scan; /* first member: the pointer that the caller holds */
	struct scan_view views[];
};

struct scan *scan_new_views(const struct scan *like, int n_views, struct scan_view **ret_views, struct err *err)
{
	struct owned_scan *s = malloc(sizeof(*s) + (size_t)n_views * sizeof(s->views[0]));

	if (!s) {
		err_set(err, ENOMEM, "scan: cannot allocate %d views", n_views);
		return NULL;
	}
	s->scan = *like;
	s->scan.n_views = n_views;
	s->scan.views = s->views;
	*ret_views = s->views;
	return &s->scan;
}

struct owned_parallel {
	struct scan scan; /* first member: the pointer that the caller holds */
	double rest[];	  /* views, planes and radii consist of doubles only */
};

struct scan *scan_new_parallel(const struct scan *like, struct scan_view **ret_views, struct scan_plane **ret_planes,
			       double **ret_radius)
{
	size_t views = (size_t)like->n_views * sizeof(struct scan_view), planes = (size_t)like->n_u * sizeof(struct scan_plane);
	struct owned_parallel *s = malloc(sizeof(*s) + views + planes + (size_t)like->n_v * sizeof(double));

	if (!s)
		return NULL;
	*ret_views = (struct scan_view *)(void *)s->rest;
	*ret_planes = (struct scan_plane *)(void *)(*ret_views + like->n_views);
	*ret_radius = (double *)(void *)(*ret_planes + like->n_u);
	s->scan = *like;
	s->scan.kind = SCAN_PARALLEL;
	s->scan.views = *ret_views;
	s->scan.planes = *ret_planes;
	s->scan.radius = *ret_radius;
	return &s->scan;
}

static int check_geometry(const struct dbt_geometry *g, struct err *err)
{
	if (g->n_u <= 0 || g->n_u > BINS_MAX || g->n_v <= 0 || g->n_v > BINS_MAX)
		return err_set(err, EINVAL, "scan: detector of %d x %d bins; allowed: 1 to %d", g->n_u, g->n_v, BINS_MAX);
	if (!(g->pitch > 0) || !isfinite(g->pitch)) /* !(x > 0) also refuses NaN */
		return err_set(err, EINVAL, "scan: bin pitch %g mm; allowed: above 0", g->pitch);
	if (!isfinite(g->axis_height) || fabs(g->axis_height) > AXIS_FAR)
		return err_set(err, EINVAL, "scan: the rotation axis is %g mm above the detector; allowed: -%g to %g",
			       g->axis_height, AXIS_FAR, AXIS_FAR);
	if (!(g->source_axis > 0) || !isfinite(g->source_axis))
		return err_set(err, EINVAL, "scan: distance of the source from the rotation axis is %g mm; allowed: above 0",
			       g->source_axis);
	if (!isfinite(g->source_x) || !isfinite(g->source_y))
		return err_set(err, EINVAL, "scan: source at x = %g mm, axis at y = %g mm; both must be finite numbers",
			       g->source_x, g->source_y);
	if (!isfinite(g->window_x) || !isfinite(g->window_y))
		return err_set(err, EINVAL, "scan: window of the detector at x = %g mm, y = %g mm; both must be finite numbers",
			       g->window_x, g->window_y);
	if (!(fabs(g->detector_ratio) <= RATIO_MAX))
		return err_set(err, EINVAL, "scan: the detector turns by %g of the source's angle; allowed: -%g to %g",
			       g->detector_ratio, RATIO_MAX, RATIO_MAX);
	if (!isfinite(g->detector_axis_y) || !isfinite(g->detector_axis_height))
		return err_set(err, EINVAL, "scan: the detector turns around y = %g, z = %g mm, which are not finite numbers",
			       g->detector_axis_y, g->detector_axis_height);
	if (g->n_views < 2)
		return err_set(err, EINVAL, "scan: %d projection%s; tomosynthesis needs at least 2", g->n_views,
			       g->n_views == 1 ? "" : "s");
	if (g->n_views > VIEWS_MAX)
		return err_set(err, EINVAL, "scan: %d projections; allowed: 2 to %d", g->n_views, VIEWS_MAX);
	for (int i = 0; i < g->n_views; i++) {
		if (!(fabs(g->angle[i]) < ANGLE_MAX))
			return err_set(err, EINVAL, "scan: projection %d: angle %g degrees; allowed: between -%g and %g", i,
				       g->angle[i], ANGLE_MAX, ANGLE_MAX);
		for (int j = 0; j < i; j++)
			if (fabs(g->angle[i] - g->angle[j]) < ANGLE_DISTINCT)
				return err_set(err, EINVAL, "scan: projections %d and %d have the same angle, %g degrees", j, i,
					       g->angle[i]);
	}
	return 0;
}

/* Return the pose of a detector that is turned by `turn`, radians. */
static struct scan_pose turned_pose(const struct dbt_geometry *g, double turn)
{
	double c = cos(turn), s = sin(turn), first = (0.5 - 0.5 * g->n_v) * g->pitch + g->window_y - g->detector_axis_y;

	return (struct scan_pose){
		.origin = {0.5 * g->pitch + g->window_x, g->detector_axis_y + first * c - g->detector_axis_height * s,
			   g->detector_axis_height - first * s - g->detector_axis_height * c},
		.step_u = {g->pitch, 0, 0},
		.step_v = {0, g->pitch * c, -g->pitch * s},
	};
}

/* Compute the view from the angle of the source. */
static struct scan_view turned_view(const struct dbt_geometry *g, double angle)
{
	struct scan_view view = {
		.src = {g->source_x, g->source_y + g->source_axis * sin(angle), g->axis_height + g->source_axis * cos(angle)},
		.posed = g->detector_ratio != 0,
	};

	if (view.posed)
		view.pose = turned_pose(g, g->detector_ratio * angle);
	return view;
}

double scan_detector_top(const struct scan *scan, const struct scan_view *view)
{
	double top = -HUGE_VAL, at[3];

	for (int corner = 0; corner < 4; corner++) {
		scan_bin_at(scan, view, corner & 1 ? scan->n_u - 0.5 : -0.5, corner & 2 ? scan->n_v - 0.5 : -0.5, at);
		top = fmax(top, at[2]);
	}
	return top;
}

static int make_view(const struct dbt_geometry *g, const struct scan *scan, int i, struct scan_view *ret_view, struct err *err)
{
	struct scan_view view;
	int r = 0;

	if (g->matrix)
		r = scan_view_from_matrix(g->matrix[i], g->n_u, g->n_v, g->pitch,
					  g->level_bins > 0 ? g->level_bins : SCAN_LEVEL_BINS, &view, err);
	else
		view = turned_view(g, g->angle[i] * RADIANS);
	if (r < 0)
		return r;
	if (!(view.src[2] > scan_detector_top(scan, &view)))
		return err_set(err, EINVAL, "scan: projection %d: the source, at z = %g mm, is not above the whole detector", i,
			       view.src[2]);
	*ret_view = view;
	return 0;
}

int scan_create_dbt(const struct dbt_geometry *g, struct scan **ret_scan, struct err *err)
{
	struct scan like = {.kind = SCAN_DBT}, *scan;
	struct scan_view *views;
	int r = check_geometry(g, err);

	if (r < 0)
		return r;
	like.n_u = g->n_u;
	like.n_v = g->n_v;
	like.h[0] = like.h[1] = g->pitch;
	like.lo[0] = g->window_x;
	like.lo[1] = g->window_y - 0.5 * g->n_v * g->pitch;
	scan = scan_new_views(&like, g->n_views, &views, err);
	if (!scan)
		return -ENOMEM;
	for (int i = 0; r == 0 && i < g->n_views; i++)
		r = make_view(g, scan, i, &views[i], err);
	if (r < 0) {
		scan_free(scan);
		return r;
	}
	*ret_scan = scan;
	return 0;
}

double scan_angle_turned(double seen, double axis_height, double source_axis)
{
	return seen + asin(fmin(fmax(axis_height / source_axis * sin(seen * RADIANS), -1), 1)) / RADIANS;
}

double scan_angle_seen(double turned, double axis_height, double source_axis)
{
	return atan2(source_axis * sin(turned * RADIANS), axis_height + source_axis * cos(turned * RADIANS)) / RADIANS;
}

/* Return the view with `bin` x `bin` bins merged. */
static struct scan_view merged_view(const struct scan_view *view, int bin)
{
	struct scan_view merged = *view;
	struct scan_pose *p = &merged.pose;

	for (int c = 0; view->posed && bin > 1 && c < 3; c++) {
		p->origin[c] += 0.5 * (bin - 1) * (p->step_u[c] + p->step_v[c]);
		p->step_u[c] *= bin;
		p->step_v[c] *= bin;
	}
	return merged;
}

int scan_create_binned(const struct scan *scan, int bin, const int *order, struct scan **ret_scan, struct err *err)
{
	struct scan like = *scan, *binned;
	struct scan_view *views;

	if (scan->kind != SCAN_DBT)
		return err_set(err, EINVAL, "scan: bins can only be merged for a flat detector");
	if (bin < 1 || bin > scan->n_u || bin > scan->n_v)
		return err_set(err, EINVAL, "scan: cannot merge %d x %d bins of a detector of %d x %d", bin, bin, scan->n_u,
			       scan->n_v);
	for (int i = 0; order && i < scan->n_views; i++)
		if (order[i] < 0 || order[i] >= scan->n_views)
			return err_set(err, EINVAL, "scan: the order contains projection %d, but there are only %d", order[i],
				       scan->n_views);
	like.n_u /= bin;
	like.n_v /= bin;
	like.h[0] *= bin;
	like.h[1] *= bin;
	binned = scan_new_views(&like, scan->n_views, &views, err);
	if (!binned)
		return -ENOMEM;
	for (int i = 0; i < scan->n_views; i++)
		views[i] = merged_view(&scan->views[order ? order[i] : i], bin);
	*ret_scan = binned;
	return 0;
}

void scan_turn(double degrees, double ret_turn[2])
{
	double quarter = rint(degrees / 90), rest = (degrees - 90 * quarter) * RADIANS;
	double c = cos(rest), s = sin(rest);

	switch (((int)quarter % 4 + 4) % 4) {
	case 0:
		ret_turn[0] = c, ret_turn[1] = s;
		break;
	case 1:
		ret_turn[0] = -s, ret_turn[1] = c;
		break;
	case 2:
		ret_turn[0] = -c, ret_turn[1] = -s;
		break;
	default:
		ret_turn[0] = s, ret_turn[1] = -c;
	}
}

struct scan *scan_free(struct scan *scan)
{
	free(scan); /* scan is the first member of the allocation */
	return NULL;
}
