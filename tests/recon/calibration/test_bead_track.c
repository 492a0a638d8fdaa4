/* SPDX-License-Identifier: Apache-2.0 */
/* Tracks of beads over the views, and their match with a phantom: a start geometry with errors, missing and additional spots,
 * wrong signs, mirrored images. */
#include "recon/calibration/bead_track.h"
#include "tests/test.h"

#define BEADS 12
#define VIEWS 9
#define CLUTTER 3

static const double start[SYSTEM_PARAMETERS] = {40, 620, 0, 0, 0, 22, 0, 0, 0};
static const double truth[SYSTEM_PARAMETERS] = {46, 612, 3, 2, 0.2, 20, 0, 0, 0};
static const double at[BEADS][3] = {{-60, -80, 5},  {-50, 20, 5},  {-15, 85, 5}, {10, -40, 5}, {40, 45, 5},   {60, -70, 5},
				    {-55, -30, 55}, {-35, 75, 55}, {0, -85, 55}, {20, 10, 55}, {45, -20, 55}, {62, 80, 55}};

struct exam {
	double angle[VIEWS];
	struct bead_spot spot[VIEWS][BEADS + CLUTTER];
	struct bead_spots spots[VIEWS];
	struct bead_views views;
};

/* Compute where a bead is: the phantom is turned by 170 degrees. */
static void true_place(int bead, double ret[3])
{
	double c = cos(170 * M_PI / 180), s = sin(170 * M_PI / 180);

	ret[0] = 100 + c * at[bead][0] - s * at[bead][1];
	ret[1] = s * at[bead][0] + c * at[bead][1];
	ret[2] = truth[SYSTEM_SUPPORT] + at[bead][2];
}

/* Project the beads in the order of their numbers; every view lacks one and has spots of other things. */
static void make(struct exam *e, int sign, bool mirrored)
{
	*e = (struct exam){
		.views = {
			.n_u = 2394, .n_v = 2850, .pitch = 0.1, .n_views = VIEWS, .sign = sign, .definition = ANGLE_ABOUT_AXIS}};
	for (int v = 0; v < VIEWS; v++)
		e->angle[v] = -12.5 + v * 25.0 / (VIEWS - 1);
	e->views.angle = e->angle;
	for (int v = 0; v < VIEWS; v++) {
		e->spots[v].spots = e->spot[v];
		for (int b = 0; b < BEADS + CLUTTER; b++) {
			double p[3];
			double *to = e->spot[v][e->spots[v].n].at;

			true_place(b % BEADS, p);
			bead_project(truth, &e->views, bead_source_angle(truth, &e->views, v), p, to);
			if (b >= BEADS) { /* moves against the beads */
				to[0] += 70 + 60 * v;
				to[1] += 110 - 90 * v;
			}
			if (mirrored)
				to[1] = e->views.n_v - 1 - to[1];
			e->spots[v].n += b != v || v == VIEWS / 2;
		}
	}
	e->views.sign = 1;
}

static void check_match(int sign, bool mirrored)
{
	struct bead_tracks tracks GOES(bead_tracks_clear) = {0};
	int bead[BEADS + CLUTTER];
	bool seen_mirrored;
	struct exam e;

	make(&e, sign, mirrored);
	assert_int_equal(bead_tracks_make(&e.views, start, e.spots, &tracks, NULL), 0);
	assert_int_equal(tracks.sign, mirrored ? -sign : sign);
	assert_int_equal(tracks.n, BEADS);
	assert_int_equal(tracks.n_points, BEADS * VIEWS - (VIEWS - 1));
	assert_int_equal(bead_tracks_match(&tracks, at, BEADS, bead, &seen_mirrored, NULL), 0);
	assert_int_equal(seen_mirrored, mirrored);
	for (int i = 0; i < tracks.n; i++)
		assert_int_equal(bead[i], i);
}

TEST(match)
{
	check_match(1, false);
	check_match(-1, false);
	check_match(1, true);
	check_match(-1, true);
}

TEST(assign_layers)
{
	static const double heights[] = {5, 55};
	struct bead_tracks tracks GOES(bead_tracks_clear) = {0};
	int layer[BEADS + CLUTTER];
	struct exam e;

	make(&e, 1, false);
	assert_int_equal(bead_tracks_make(&e.views, start, e.spots, &tracks, NULL), 0);
	bead_tracks_layers(&tracks, start[SYSTEM_SUPPORT], heights, 2, layer);
	for (int i = 0; i < tracks.n; i++)
		assert_int_equal(layer[i], i < BEADS / 2 ? 0 : 1);
	tracks.tracks[0].at[2] = 22 + 30;
	tracks.tracks[1].at[2] = 22 + 90;
	bead_tracks_layers(&tracks, start[SYSTEM_SUPPORT], heights, 2, layer);
	assert_int_equal(layer[0], -1);
	assert_int_equal(layer[1], -1);
}

/* Two beads on one ray of a view: its only spot there belongs to neither. */
TEST(shared_spot)
{
	const int view = 7;
	struct bead_tracks tracks GOES(bead_tracks_clear) = {0};
	struct exam e;
	double low[3], high[3], was[2], b, source[3];
	int points[BEADS + CLUTTER] = {0};

	make(&e, 1, false);
	b = bead_source_angle(truth, &e.views, view) * M_PI / 180;
	source[0] = truth[SYSTEM_SOURCE_X];
	source[1] = truth[SYSTEM_SOURCE_Y] + truth[SYSTEM_SOURCE_AXIS] * sin(b);
	source[2] = truth[SYSTEM_AXIS_HEIGHT] + truth[SYSTEM_SOURCE_AXIS] * cos(b);
	true_place(0, low);
	for (int i = 0; i < 3; i++)
		high[i] = low[i] + (source[i] - low[i]) * 50 / (source[2] - low[2]);
	true_place(1, low); /* bead 1 moves there */
	for (int v = 0; v < VIEWS; v++)
		for (size_t i = 0; i < e.spots[v].n; i++) {
			bead_project(truth, &e.views, bead_source_angle(truth, &e.views, v), low, was);
			if (e.spot[v][i].at[0] != was[0])
				continue;
			bead_project(truth, &e.views, bead_source_angle(truth, &e.views, v), high, e.spot[v][i].at);
			if (v == view) /* this view shows both as one spot */
				e.spot[v][i] = e.spot[v][--e.spots[v].n];
		}
	assert_int_equal(bead_tracks_make(&e.views, start, e.spots, &tracks, NULL), 0);
	assert_int_equal(tracks.n, BEADS);
	for (int i = 0; i < tracks.n_points; i++)
		points[tracks.points[i].bead] += tracks.points[i].view == view;
	assert_int_equal(points[0], 0);
	assert_int_equal(points[1], 0);
	assert_int_equal(points[2], 1);
}

TEST(refused)
{
	static const double other[4][3] = {{0, 0, 5}, {0, 33, 5}, {47, 0, 55}, {11, 90, 55}};
	struct bead_tracks tracks;
	int bead[BEADS + CLUTTER];
	double similar[BEADS][3];
	bool mirrored;
	struct exam e;
	struct err err;

	make(&e, 1, false);
	assert_int_equal(bead_tracks_make(&e.views, start, e.spots, &tracks, &err), 0);
	assert_error(bead_tracks_match(&tracks, other, 2, bead, &mirrored, &err), &err, ENODATA,
		     "of 12 beads of the exam fit the 2 positions");
	for (int i = 0; i < BEADS; i++) /* a phantom of which four beads match by accident */
		for (int a = 0; a < 3; a++)
			similar[i][a] = at[i][a] + (i % 3 && a < 2 ? 11 + 7 * i * (a - 0.5) : 0);
	assert_int_equal(bead_tracks_match(&tracks, (const double(*)[3])similar, BEADS, bead, &mirrored, &err), -ENODATA);
	bead_tracks_clear(&tracks);
	for (int v = 0; v < VIEWS; v++)
		e.spots[v].n = 2;
	assert_error(bead_tracks_make(&e.views, start, e.spots, &tracks, &err), &err, ENODATA, "allowed: 3 or more");
	e.views.n_views = 1;
	assert_int_equal(bead_tracks_make(&e.views, start, e.spots, &tracks, &err), -EINVAL);
}
