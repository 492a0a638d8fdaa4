/* SPDX-License-Identifier: Apache-2.0 */
/* air_field.c - measure how the air of a projection varies over the detector; see struct air_field.
 *
 * The region begins at the bright cells at the end of each row and grows to neighbours without a step, so that it may vary as
 * much as an open field does and stops at the edge of the object. A plane is fitted by least squares; cells that differ from it
 * by more than three standard deviations are left out, four times. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "recon/dbt/air_internal.h"

#define TOP_SHARE 0.0025 /* share of the cells that are brighter than the level from which `BAND` counts */
#define ROUNDS 4
#define LISTED 16384	    /* cells in a fit; more of them do not make it better, because their errors are alike */
#define KEPT_LEAST 0.7	    /* share of the region that the plane must explain */
#define RESIDUAL_SHARE 0.25 /* rms relative to the variation that shows a variation */
#define RESIDUAL_MOST 0.006 /* rms of ln I0, or three times the noise */

struct plane {
	double n, at[2], log; /* number and means of the cells used */
	double spread[2][2];  /* covariance of their positions, mm^2 */
	double with_log[2];   /* covariance with the logarithm */
	double slope[2], rms;
};

static double place_of(const struct cells *c, int axis, int cell)
{
	return ((double)cell + 0.5) * c->size[axis] - c->half[axis];
}

static bool is_near(const struct cell *from, const struct cell *to, const void *ctx)
{
	(void)ctx;
	return to->kind == CELL_DATA && !air_is_step(from, to);
}

/* Return the logarithm above which a cell at the end of a row may be air. */
static double least_log(struct cells *c, double thickness)
{
	double band = fmin(fmax(AIR_MU_LEAST * thickness / 2, 0.1), 0.6);
	size_t n = 0;

	for (size_t i = 0; i < air_count_cells(c); i++)
		if (c->cell[i].kind == CELL_DATA)
			c->sorted[n++] = c->cell[i].log;
	return n > 0 ? air_select(c->sorted, n, (size_t)((1 - TOP_SHARE) * (double)(n - 1))) - band : 0;
}

/* Begin at the last cell with data of each row that is bright. */
static int begin_region(struct cells *c, double least)
{
	int waiting = 0;

	for (int j = 0; j < c->n_v; j++) {
		struct cell *row = c->cell + (size_t)j * (size_t)c->n_u;
		int i = c->n_u - 1;

		while (i >= 0 && row[i].kind == CELL_EMPTY)
			i--;
		if (i >= 0 && row[i].kind == CELL_DATA && (double)row[i].log >= least) {
			row[i].region = 1;
			c->work[waiting++] = j * c->n_u + i;
		}
	}
	return waiting;
}

/* List cells of the region that are not at its edge: each of a small region, about LISTED of a large one, evenly. Return their
 * number. */
static size_t list_inside(struct cells *c, size_t region)
{
	size_t n = 0, every = 1 + region / LISTED, seen = 0;

	for (int j = 0; j < c->n_v; j++)
		for (int i = 0; i < c->n_u; i++) {
			const struct cell *a = c->cell + (size_t)j * (size_t)c->n_u + i;

			if (a->region && a->kind == CELL_DATA && ++seen == every) {
				seen = 0;
				c->point[n] = (struct point){.at = {i, j}, .log = a->log};
				n += air_is_inside(c, i, j);
			}
		}
	return n;
}

/* Sums over the cells of a list, by their indices. */
struct sums {
	int64_t at[2], squares[2], product;
	double log, with_log[2];
};

static struct sums add_up(const struct point *point, size_t n)
{
	struct sums s = {0};

	for (size_t k = 0; k < n; k++) {
		int64_t i = point[k].at[0], j = point[k].at[1];
		double log = (double)point[k].log;

		s.at[0] += i;
		s.at[1] += j;
		s.squares[0] += i * i;
		s.squares[1] += j * j;
		s.product += i * j;
		s.log += log;
		s.with_log[0] += (double)i * log;
		s.with_log[1] += (double)j * log;
	}
	return s;
}

static struct plane sum_moments(const struct cells *c, size_t n)
{
	struct sums s = add_up(c->point, n);
	struct plane p = {.n = (double)n, .log = s.log / (double)n};
	double mean[2];

	for (int a = 0; a < 2; a++) {
		mean[a] = (double)s.at[a] / p.n;
		p.at[a] = (mean[a] + 0.5) * c->size[a] - c->half[a];
		p.spread[a][a] = ((double)s.squares[a] / p.n - mean[a] * mean[a]) * c->size[a] * c->size[a];
		p.with_log[a] = (s.with_log[a] / p.n - mean[a] * p.log) * c->size[a];
	}
	p.spread[0][1] = p.spread[1][0] = ((double)s.product / p.n - mean[0] * mean[1]) * c->size[0] * c->size[1];
	return p;
}

static double spread_determinant(const struct plane *p)
{
	return p->spread[0][0] * p->spread[1][1] - p->spread[0][1] * p->spread[1][0];
}

/* Return d . spread^-1 d for a distance from the mean position; only along y: of its second part. */
static double point_leverage(const struct plane *p, const double d[2], bool both)
{
	if (!both)
		return d[1] * d[1] / p->spread[1][1];
	return (p->spread[1][1] * d[0] * d[0] - 2 * p->spread[0][1] * d[0] * d[1] + p->spread[0][0] * d[1] * d[1]) /
	       spread_determinant(p);
}

static void solve_plane(struct plane *p, bool both)
{
	double det = spread_determinant(p);

	p->slope[0] = both ? (p->spread[1][1] * p->with_log[0] - p->spread[0][1] * p->with_log[1]) / det : 0;
	p->slope[1] = both ? (p->spread[0][0] * p->with_log[1] - p->spread[0][1] * p->with_log[0]) / det
			   : p->with_log[1] / p->spread[1][1];
}

/* Compute the distances of the cells of a list from the plane; return their rms. */
static double compare_cells(struct cells *c, size_t n, const struct plane *p)
{
	double per[2] = {p->slope[0] * c->size[0], p->slope[1] * c->size[1]}, sum = 0;
	double first = p->log + p->slope[0] * (place_of(c, 0, 0) - p->at[0]) + p->slope[1] * (place_of(c, 1, 0) - p->at[1]);

	for (size_t k = 0; k < n; k++) {
		struct point *a = &c->point[k];
		double r = (double)a->log - first - per[0] * a->at[0] - per[1] * a->at[1];

		sum += r * r;
		a->rest = c->sorted[k] = (float)fabs(r);
	}
	return sqrt(sum / (double)n);
}

/* Leave out the cells of the list that differ by more than noise from the plane; return the number of the others. */
static size_t leave_out(struct cells *c, size_t n, struct plane *p)
{
	float most;
	size_t kept = 0;

	p->rms = compare_cells(c, n, p);
	most = (float)fmax(3 * 1.4826 * air_median(c->sorted, n), STEP_LEAST);
	for (size_t k = 0; k < n; k++) {
		struct point a = c->point[k];

		c->point[kept] = a;
		kept += a.rest <= most;
	}
	return kept;
}

/* Fit the plane to the cells of the region; false: too few of them follow one. */
static bool fit_plane(struct cells *c, size_t region, bool both, struct plane *ret)
{
	size_t all = list_inside(c, region), n = all, every = 1 + region / LISTED;
	struct plane p = {0};

	if ((double)(all * every) < fmax(CELLS_LEAST, AIR_SHARE_LEAST * (double)c->n_data))
		return false;
	for (int round = 0; round < ROUNDS; round++) {
		p = sum_moments(c, n);
		if (!(p.n >= KEPT_LEAST * (double)all && p.spread[1][1] > 0 && (!both || spread_determinant(&p) > 0)))
			return false;
		solve_plane(&p, both);
		n = leave_out(c, n, &p);
	}
	*ret = p;
	return true;
}

/* Return whether the cells follow the plane. */
static bool is_plane(const struct cells *c, const struct plane *p)
{
	return p->rms <= fmax(RESIDUAL_MOST, 3 * air_cell_noise(c, p->log));
}

/* Find the corners of the cells with data; there are some. */
static void find_box(const struct cells *c, double ret_lo[2], double ret_hi[2])
{
	int lo[2] = {c->n_u, c->n_v}, hi[2] = {-1, -1};

	for (int j = 0; j < c->n_v; j++) {
		const struct cell *row = c->cell + (size_t)j * (size_t)c->n_u;
		int first = 0, last = c->n_u - 1;

		while (first < c->n_u && row[first].kind == CELL_EMPTY)
			first++;
		while (last >= first && row[last].kind == CELL_EMPTY)
			last--;
		if (last < first)
			continue;
		lo[0] = air_smaller(lo[0], first);
		hi[0] = -air_smaller(-hi[0], -last);
		lo[1] = air_smaller(lo[1], j);
		hi[1] = j;
	}
	for (int k = 0; k < 2; k++) {
		ret_lo[k] = place_of(c, k, lo[k]);
		ret_hi[k] = place_of(c, k, hi[k]);
	}
}

/* Return whether the plane is known well enough at all corners of the data, and the largest difference to the air there. */
static bool is_determined(const struct cells *c, const struct plane *p, bool both, double most, double *ret_variation)
{
	double lo[2], hi[2], error = 0, variation = 0;

	find_box(c, lo, hi);
	for (int k = 0; k < 4; k++) {
		double d[2] = {(k & 1 ? hi[0] : lo[0]) - p->at[0], (k & 2 ? hi[1] : lo[1]) - p->at[1]};

		error = fmax(error, AIR_FIELD_ERROR * sqrt(1 + point_leverage(p, d, both)));
		variation = fmax(variation, fabs(p->slope[0] * d[0] + p->slope[1] * d[1]));
	}
	*ret_variation = variation;
	return error <= most;
}

/* Use the plane as far as it is determined. */
static void use_plane(const struct cells *c, const struct plane *p, bool both, double thickness, struct air_field *ret)
{
	double variation;

	ret->level = exp(p->log);
	if (!is_determined(c, p, both, AIR_LOG_ERROR * thickness, &variation))
		return;
	ret->variation = p->rms < RESIDUAL_SHARE * variation || is_plane(c, p) ? fmax(variation, ret->variation) : ret->variation;
	if (!is_plane(c, p))
		return;
	ret->along[0] = both;
	ret->along[1] = true;
	memcpy(ret->slope, p->slope, sizeof(p->slope));
}

void air_field_measure(struct cells *c, double thickness, struct air_field *ret)
{
	struct plane p;
	size_t region;

	*ret = (struct air_field){0};
	region = air_flood(c, begin_region(c, least_log(c, thickness)), is_near, NULL);
	for (int both = 1; both >= 0 && !ret->along[1]; both--)
		if (fit_plane(c, region, both, &p))
			use_plane(c, &p, both, thickness, ret);
	for (size_t i = 0; i < air_count_cells(c); i++)
		c->cell[i].region = 0;
}
