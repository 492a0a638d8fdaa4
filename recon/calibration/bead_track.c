/* SPDX-License-Identifier: Apache-2.0 */
/* bead_track.c - connect spots to tracks; see recon/calibration/bead_track.h. */
#include "recon/calibration/bead_track.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RADIANS (3.14159265358979323846 / 180)
#define HEIGHT_MAX 200	/* mm */
#define HEIGHT_STEP 0.5 /* mm */
#define TOLERANCE 1.5	/* mm on the detector: errors of the start geometry */
#define VIEWS_PART 0.5	/* least part of the views that show a bead */
#define TRACKS_LEAST 3
#define RMS_MAX 1.0 /* mm on the detector: a track with larger residuals is no bead */

struct tracker {
	const struct bead_views *views;
	const double *system;
	const struct bead_spots *spots;
	double angle[4096]; /* about the axis, of each view */
	int centre;	    /* view nearest to 0 degrees */
};

/* Project a spot of the central view back to a height. */
static void back_project(const struct tracker *t, const double at[2], double height, double ret[3])
{
	const double *s = t->system;
	double b = t->angle[t->centre] * RADIANS, pitch = t->views->pitch;
	double source[3] = {s[SYSTEM_SOURCE_X], s[SYSTEM_SOURCE_Y] + s[SYSTEM_SOURCE_AXIS] * sin(b),
			    s[SYSTEM_AXIS_HEIGHT] + s[SYSTEM_SOURCE_AXIS] * cos(b)};
	double foot[2] = {(at[0] + 0.5) * pitch, (at[1] + 0.5 - t->views->n_v / 2.0) * pitch};
	double part = (source[2] - height) / source[2];

	for (int a = 0; a < 2; a++)
		ret[a] = source[a] + (foot[a] - source[a]) * part;
	ret[2] = height;
}

/* Return the spot of a view that is nearest to where a point projects, -1: none within the tolerance. */
static int nearest_spot(const struct tracker *t, int view, const double point[3], double *ret_distance)
{
	double at[2], best = TOLERANCE / t->views->pitch;
	int found = -1;

	bead_project(t->system, t->views, t->angle[view], point, at);
	for (size_t i = 0; i < t->spots[view].n; i++) {
		const struct bead_spot *s = &t->spots[view].spots[i];
		double d = fmax(fabs(s->at[0] - at[0]), fabs(s->at[1] - at[1]));

		if (d < best) {
			best = d;
			found = (int)i;
		}
	}
	*ret_distance = best;
	return found;
}

/* Count the views that show a bead at a point; ret_score: that number, less the distances as a fraction below 1. */
static int count_views(const struct tracker *t, const double point[3], double *ret_score)
{
	double sum = 0, distance;
	int n = 0;

	for (int v = 0; v < t->views->n_views; v++)
		if (nearest_spot(t, v, point, &distance) >= 0) {
			n++;
			sum += distance * t->views->pitch / TOLERANCE;
		}
	*ret_score = n - sum / (t->views->n_views + 1);
	return n;
}

/* Find the height of the bead that a spot of the central view shows. Returns the number of views that show it. */
static int find_height(const struct tracker *t, const double at[2], double *ret_height)
{
	double best = -INFINITY, score, point[3];
	int views = 0;

	for (double height = -HEIGHT_MAX; height <= HEIGHT_MAX; height += HEIGHT_STEP) {
		int n;

		back_project(t, at, height, point);
		n = count_views(t, point, &score);
		if (score > best) {
			best = score;
			views = n;
			*ret_height = height;
		}
	}
	return views;
}

/* Write the points of a track, as of bead 0; used[view][spot] counts the tracks that use a spot. */
static int list_points(const struct tracker *t, const double point[3], struct bead_point *ret, int **used)
{
	double distance;
	int n = 0;

	for (int v = 0; v < t->views->n_views; v++) {
		int spot = nearest_spot(t, v, point, &distance);

		if (spot < 0)
			continue;
		used[v][spot]++;
		ret[n++] = (struct bead_point){0, v, {t->spots[v].spots[spot].at[0], t->spots[v].spots[spot].at[1]}};
	}
	return n;
}

/* Fit a bead's position with the start geometry; false: its points belong to no bead. */
static bool fit_track(const struct tracker *t, const struct bead_point *points, int n, double height, struct bead_track *ret)
{
	double at[3] = {0, 0, height};
	struct bead_fit_input in = {.views = *t->views,
				    .phantom = {.knowledge = BEADS_UNKNOWN, .n_beads = 1, .at = (const double(*)[3])at},
				    .n_points = n,
				    .points = points};
	struct bead_fit fit;

	memcpy(in.start, t->system, sizeof(in.start));
	memcpy(in.lo, t->system, sizeof(in.lo));
	memcpy(in.hi, t->system, sizeof(in.hi));
	if (bead_fit_run(&in, &fit, NULL) < 0)
		return false;
	*ret = (struct bead_track){{fit.bead[0][0], fit.bead[0][1], fit.bead[0][2]}, fit.rms, n};
	bead_fit_clear(&fit);
	return ret->rms * t->views->pitch <= RMS_MAX;
}

static void make_tracker(struct tracker *t)
{
	for (int v = 0; v < t->views->n_views; v++) {
		t->angle[v] = bead_source_angle(t->system, t->views, v);
		if (fabs(t->angle[v]) < fabs(t->angle[t->centre]))
			t->centre = v;
	}
}

/* Decide the sign: most beads are above the detector with the right one. */
static int find_sign(const struct tracker *t)
{
	int above = 0;
	double height;

	for (size_t i = 0; i < t->spots[t->centre].n; i++)
		if (find_height(t, t->spots[t->centre].spots[i].at, &height) >= VIEWS_PART * t->views->n_views)
			above += height > 0 ? 1 : -1;
	return above < 0 ? -1 : 1;
}

static int find_tracks(const struct tracker *t, struct bead_tracks *ret, int **used)
{
	int points = 0;

	for (size_t i = 0; i < t->spots[t->centre].n; i++) {
		struct bead_point *own = ret->points + points;
		double height, point[3];
		int n;

		if (find_height(t, t->spots[t->centre].spots[i].at, &height) < VIEWS_PART * t->views->n_views)
			continue;
		back_project(t, t->spots[t->centre].spots[i].at, height, point);
		n = list_points(t, point, own, used);
		if (!fit_track(t, own, n, height, &ret->tracks[ret->n]))
			continue;
		for (int k = 0; k < n; k++)
			own[k].bead = ret->n;
		ret->n++;
		points += n;
	}
	return points;
}

/* Return true if a point's spot is used by this track only. */
static bool is_alone(const struct tracker *t, const struct bead_point *p, int *const *used)
{
	for (size_t i = 0; i < t->spots[p->view].n; i++)
		if (t->spots[p->view].spots[i].at[0] == p->at[0] && t->spots[p->view].spots[i].at[1] == p->at[1])
			return used[p->view][i] == 1;
	return false;
}

/* Drop points that two tracks share, and then tracks with too few points. */
static void drop_shared(const struct tracker *t, struct bead_tracks *ret, int n_points, int *const *used, int *number)
{
	int kept = 0;

	for (int i = 0; i < n_points; i++)
		if (is_alone(t, &ret->points[i], used))
			ret->points[kept++] = ret->points[i];
		else
			ret->tracks[ret->points[i].bead].n_points--;
	n_points = kept;
	kept = 0;
	for (int i = 0; i < ret->n; i++) {
		number[i] = ret->tracks[i].n_points >= VIEWS_PART * t->views->n_views ? kept : -1;
		if (number[i] >= 0)
			ret->tracks[kept++] = ret->tracks[i];
	}
	ret->n = kept;
	ret->n_points = 0;
	for (int i = 0; i < n_points; i++)
		if (number[ret->points[i].bead] >= 0) {
			ret->points[ret->n_points] = ret->points[i];
			ret->points[ret->n_points++].bead = number[ret->points[i].bead];
		}
}

static int track_spots(const struct tracker *t, struct bead_tracks *ret, struct err *err)
{
	size_t n = t->spots[t->centre].n + 1, views = (size_t)t->views->n_views;
	int **used = calloc(views, sizeof(*used)), *number = calloc(n, sizeof(*number)), rc = 0;

	ret->tracks = calloc(n, sizeof(*ret->tracks));
	ret->points = calloc(n * views, sizeof(*ret->points));
	if (!used || !number || !ret->tracks || !ret->points)
		rc = err_set(err, ENOMEM, "beads: no memory for %zu tracks", n);
	for (size_t v = 0; rc == 0 && v < views; v++) {
		used[v] = calloc(t->spots[v].n + 1, sizeof(*used[v]));
		if (!used[v])
			rc = err_set(err, ENOMEM, "beads: no memory for %zu spots", t->spots[v].n);
	}
	if (rc == 0)
		drop_shared(t, ret, find_tracks(t, ret, used), used, number);
	for (size_t v = 0; used && v < views; v++)
		free(used[v]);
	free(used);
	free(number);
	return rc;
}

int bead_tracks_make(const struct bead_views *views, const double system[SYSTEM_PARAMETERS], const struct bead_spots *spots,
		     struct bead_tracks *ret, struct err *err)
{
	struct bead_views turned = *views;
	struct tracker t = {.views = &turned, .system = system, .spots = spots};
	struct bead_tracks tracks = {.sign = 1};
	int rc;

	if (views->n_views < 2 || views->n_views > (int)(sizeof(t.angle) / sizeof(t.angle[0])))
		return err_set(err, EINVAL, "beads: %d views; allowed: 2 to %zu", views->n_views,
			       sizeof(t.angle) / sizeof(t.angle[0]));
	make_tracker(&t);
	tracks.sign = find_sign(&t);
	turned.sign *= tracks.sign;
	make_tracker(&t);
	rc = track_spots(&t, &tracks, err);
	if (rc == 0 && tracks.n < TRACKS_LEAST)
		rc = err_set(err, ENODATA, "beads: %d %s seen in at least half of the %d views; allowed: %d or more", tracks.n,
			     tracks.n == 1 ? "is" : "are", views->n_views, TRACKS_LEAST);
	if (rc < 0)
		bead_tracks_clear(&tracks);
	else
		*ret = tracks;
	return rc;
}

void bead_tracks_clear(struct bead_tracks *tracks)
{
	free(tracks->tracks);
	free(tracks->points);
	*tracks = (struct bead_tracks){0};
}

void bead_tracks_layers(const struct bead_tracks *tracks, double support, const double *height, int n, int *ret_layer)
{
	for (int i = 0; i < tracks->n; i++) {
		double z = tracks->tracks[i].at[2] - support, best = INFINITY, second = INFINITY;

		ret_layer[i] = -1;
		for (int k = 0; k < n; k++) {
			double d = fabs(z - height[k]);

			second = fmin(second, fmax(d, best));
			if (d < best) {
				best = d;
				ret_layer[i] = k;
			}
		}
		if (best > BEAD_MATCH_DEPTH || best > 0.6 * second)
			ret_layer[i] = -1;
	}
}
