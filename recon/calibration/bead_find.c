/* SPDX-License-Identifier: Apache-2.0 */
/* bead_find.c - the search that recon/calibration/bead_find.h describes. Means of squares come from sums over all rows and
 * columns before a bin, so that they cost the same for every size. */
#include "recon/calibration/bead_find.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "kernels/order.h"

#define CONTRAST_LEAST 8.0 /* of a candidate */
#define HEIGHT_PART                                                                                                              \
	0.3 /* least height relative to that of the tenth highest bead: fainter spots are no beads of this phantom               \
	     */
#define RANK 10
#define MARGIN 2.5 /* bins beyond the bead's radius in which its blurred edge is */
#define RING 1.8   /* outer radius of the ring, in units of the inner radius */
#define ROUNDS_MAX 20
#define SETTLED 1e-4 /* bins */
#define NOISE_SAMPLES 20000
#define MAD_SIGMA 1.4826 /* sigma of a normal distribution / median of absolute deviations */

struct search {
	const struct bead_picture *p;
	size_t width;
	double *sum; /* [n_v + 1][n_u + 1]: sum over the bins above and left */
	int *count;  /* the same, of bins with data */
	int half;    /* half side of a square */
	int away;    /* distance from the middle of the square to those around it */
	double radius, noise;
	struct bead_spot *spots;
	size_t n, size;
};

static int sum_up(struct search *s, struct err *err)
{
	const struct bead_picture *p = s->p;

	s->width = (size_t)p->n_u + 1;
	s->sum = calloc(s->width * ((size_t)p->n_v + 1), sizeof(*s->sum));
	s->count = calloc(s->width * ((size_t)p->n_v + 1), sizeof(*s->count));
	if (!s->sum || !s->count)
		return err_set(err, ENOMEM, "beads: no memory for %d x %d bins", p->n_u, p->n_v);
	for (int v = 0; v < p->n_v; v++) {
		double row = 0;
		int n = 0;

		for (int u = 0; u < p->n_u; u++) {
			float value = p->value[(size_t)v * (size_t)p->n_u + (size_t)u];
			size_t at = ((size_t)v + 1) * s->width + (size_t)u + 1;

			row += isnan(value) ? 0 : (double)value;
			n += !isnan(value);
			s->sum[at] = s->sum[at - s->width] + row;
			s->count[at] = s->count[at - s->width] + n;
		}
	}
	if (s->count[s->width * (size_t)p->n_v + (size_t)p->n_u] == 0)
		return err_set(err, ENODATA, "beads: the projection has no value");
	return 0;
}

/* Return the mean of a square; NaN: a part of it is outside the picture or has no data. */
static double square_mean(const struct search *s, int u, int v)
{
	int u0 = u - s->half, v0 = v - s->half, side = 2 * s->half + 1;
	size_t a, b;

	if (u0 < 0 || v0 < 0 || u0 + side > s->p->n_u || v0 + side > s->p->n_v)
		return NAN;
	a = (size_t)v0 * s->width + (size_t)u0;
	b = a + (size_t)side * s->width;
	if (s->count[b + (size_t)side] - s->count[b] - s->count[a + (size_t)side] + s->count[a] != side * side)
		return NAN;
	return (s->sum[b + (size_t)side] - s->sum[b] - s->sum[a + (size_t)side] + s->sum[a]) / (side * side);
}

/* Return how far a square is above the highest one around it; NaN: one of them has no mean. */
static double height_at(const struct search *s, int u, int v)
{
	static const double way[8][2] = {{1, 0}, {-1, 0}, {0, 1}, {0, -1}, {0.7, 0.7}, {-0.7, 0.7}, {0.7, -0.7}, {-0.7, -0.7}};
	double inside = square_mean(s, u, v), highest = -INFINITY;

	for (int i = 0; i < 8; i++) {
		double mean = square_mean(s, u + (int)lround(way[i][0] * s->away), v + (int)lround(way[i][1] * s->away));

		if (isnan(mean))
			return NAN;
		highest = fmax(highest, mean);
	}
	return inside - highest;
}

/* Estimate the noise of a difference of two squares, from samples all over the picture. */
static int measure_noise(struct search *s, struct err *err)
{
	size_t bins = (size_t)s->p->n_u * (size_t)s->p->n_v, step = bins / NOISE_SAMPLES + 1, n = 0;
	double *difference = malloc((bins / step + 1) * sizeof(*difference));

	if (!difference)
		return err_set(err, ENOMEM, "beads: no memory for %zu samples", bins / step + 1);
	for (size_t i = 0; i < bins; i += step) {
		int u = (int)(i % (size_t)s->p->n_u), v = (int)(i / (size_t)s->p->n_u);
		double d = fabs(square_mean(s, u, v) - square_mean(s, u, v + s->away));

		if (!isnan(d))
			difference[n++] = d;
	}
	if (n > 0)
		qsort(difference, n, sizeof(*difference), order_doubles);
	s->noise = n > 0 ? MAD_SIGMA * difference[n / 2] : 0;
	free(difference);
	return n ? 0 : err_set(err, ENODATA, "beads: the projection is too small for beads of %d bins", 2 * s->half + 1);
}

static int add_spot(struct search *s, const struct bead_spot *spot, struct err *err)
{
	if (s->n == s->size) {
		size_t size = s->size ? 2 * s->size : 256;
		struct bead_spot *more = size <= 64 * BEAD_SPOTS_MAX ? realloc(s->spots, size * sizeof(*more)) : NULL;

		if (!more)
			return err_set(err, ERANGE, "beads: more than %d spots in a projection are no beads", BEAD_SPOTS_MAX);
		s->spots = more;
		s->size = size;
	}
	s->spots[s->n++] = *spot;
	return 0;
}

/* Of the spots within a diameter of each other, keep the highest one. */
static int add_highest(struct search *s, const struct bead_spot *spot, struct err *err)
{
	for (size_t i = s->n; i-- > 0;) {
		struct bead_spot *other = &s->spots[i];

		if (spot->at[1] - other->at[1] > 4 * s->radius) /* spots come row by row */
			break;
		if (hypot(spot->at[0] - other->at[0], spot->at[1] - other->at[1]) > 2 * s->radius)
			continue;
		if (spot->height > other->height)
			*other = *spot;
		return 0;
	}
	return add_spot(s, spot, err);
}

static int find_candidates(struct search *s, struct err *err)
{
	int rc = 0;

	for (int v = 0; rc == 0 && v < s->p->n_v; v++)
		for (int u = 0; rc == 0 && u < s->p->n_u; u++) {
			double inside = square_mean(s, u, v), height;

			if (!(inside - square_mean(s, u + s->away, v) >
			      CONTRAST_LEAST * s->noise)) /* quick: most bins end here */
				continue;
			height = height_at(s, u, v);
			if (height > CONTRAST_LEAST * s->noise && height > 0)
				rc = add_highest(s, &(struct bead_spot){{u, v}, height, height / fmax(s->noise, 1e-30)}, err);
		}
	return rc;
}

struct plane { /* value = q[0] + q[1] u + q[2] v, relative to a middle */
	double q[3];
};

/* Fit a plane to the ring around a position: moments of u and v vanish nearly, but not at fractions of a bin. */
static bool fit_plane(const struct search *s, const double at[2], double inner, struct plane *ret)
{
	double a[3][4] = {{0}}, outer = RING * inner;

	for (int v = (int)ceil(at[1] - outer); v <= (int)floor(at[1] + outer); v++)
		for (int u = (int)ceil(at[0] - outer); u <= (int)floor(at[0] + outer); u++) {
			double g[3] = {1, u - at[0], v - at[1]}, r = hypot(g[1], g[2]), value;

			if (r <= inner || r > outer)
				continue;
			if (u < 0 || v < 0 || u >= s->p->n_u || v >= s->p->n_v)
				return false;
			value = (double)s->p->value[(size_t)v * (size_t)s->p->n_u + (size_t)u];
			for (int i = 0; i < 3; i++) {
				for (int k = 0; k < 3; k++)
					a[i][k] += g[i] * g[k];
				a[i][3] += g[i] * value;
			}
		}
	for (int c = 0; c < 3; c++)
		for (int r = 0; r < 3; r++)
			for (int k = 3; r != c && k >= c; k--)
				a[r][k] -= a[c][k] * a[r][c] / a[c][c];
	for (int c = 0; c < 3; c++)
		ret->q[c] = a[c][3] / a[c][c];
	return isfinite(ret->q[0] + ret->q[1] + ret->q[2]);
}

/* Move a position to the centroid of the values above the plane. The window's edge is soft over one bin, so that the centroid
 * does not jump when the window moves. */
static bool move_to_centroid(const struct search *s, const struct plane *plane, double reach, double at[2])
{
	double sum = 0, moment[2] = {0};

	for (int v = (int)ceil(at[1] - reach); v <= (int)floor(at[1] + reach); v++)
		for (int u = (int)ceil(at[0] - reach); u <= (int)floor(at[0] + reach); u++) {
			double x = u - at[0], y = v - at[1], weight = fmin(fmax(reach - hypot(x, y), 0), 1);
			double value = (double)s->p->value[(size_t)v * (size_t)s->p->n_u + (size_t)u];

			value = weight * (value - plane->q[0] - plane->q[1] * x - plane->q[2] * y);
			sum += value;
			moment[0] += value * x;
			moment[1] += value * y;
		}
	if (!(sum > 0))
		return false;
	at[0] += moment[0] / sum;
	at[1] += moment[1] / sum;
	return isfinite(at[0]) && isfinite(at[1]);
}

/* Refine a position. false: the ring is not inside the picture, or the window wanders away. */
static bool refine_spot(const struct search *s, struct bead_spot *spot)
{
	double begun[2] = {spot->at[0], spot->at[1]}, inner = s->radius + MARGIN;

	for (int round = 0; round < ROUNDS_MAX; round++) {
		double before[2] = {spot->at[0], spot->at[1]};
		struct plane plane;

		if (!fit_plane(s, spot->at, inner, &plane) || !move_to_centroid(s, &plane, inner, spot->at) ||
		    hypot(spot->at[0] - begun[0], spot->at[1] - begun[1]) > s->radius + 1)
			return false;
		if (hypot(spot->at[0] - before[0], spot->at[1] - before[1]) < SETTLED)
			break;
	}
	return true;
}

static int highest_first(const void *a, const void *b)
{
	const struct bead_spot *p = a, *q = b;

	return (p->height < q->height) - (p->height > q->height);
}

/* Refine the spots, and drop those that are none or much fainter than the others. */
static void finish_spots(struct search *s)
{
	size_t kept = 0;
	double least;

	if (s->n == 0)
		return;
	qsort(s->spots, s->n, sizeof(*s->spots), highest_first);
	least = HEIGHT_PART * s->spots[s->n > RANK ? RANK - 1 : s->n / 2].height;
	for (size_t i = 0; i < s->n; i++)
		if (s->spots[i].height >= least && refine_spot(s, &s->spots[i]))
			s->spots[kept++] = s->spots[i];
	s->n = kept;
}

int bead_find(const struct bead_picture *picture, double diameter, struct bead_spot **ret_spots, size_t *ret_n, struct err *err)
{
	struct search s = {.p = picture, .radius = diameter / 2};
	int rc;

	if (!(diameter >= 3 && diameter <= 200))
		return err_set(err, EINVAL, "beads: a diameter of %g bins; allowed: 3 to 200", diameter);
	s.half = (int)fmax(floor(0.6 * s.radius), 1);
	s.away = (int)ceil(s.radius + s.half + MARGIN);
	rc = sum_up(&s, err);
	if (rc == 0)
		rc = measure_noise(&s, err);
	if (rc == 0)
		rc = find_candidates(&s, err);
	if (rc == 0)
		finish_spots(&s);
	if (rc == 0 && s.n == 0)
		rc = err_set(err, ENODATA, "beads: no bead of %.1f bins in a projection", diameter);
	if (rc == 0 && s.n > BEAD_SPOTS_MAX)
		rc = err_set(err, ERANGE, "beads: more than %d spots in a projection are no beads", BEAD_SPOTS_MAX);
	free(s.sum);
	free(s.count);
	if (rc < 0) {
		free(s.spots);
		return rc;
	}
	*ret_spots = s.spots;
	*ret_n = s.n;
	return 0;
}
