/* SPDX-License-Identifier: Apache-2.0 */
/* air_field.c - measure how the air of a projection varies over the detector; see struct air_field.
 *
 * The region begins at the bright cells at the end of each row and grows to neighbours without a step, so that it may vary as
 * much as an open field does and stops at the edge of the object. A plane is fitted by least squares; cells that differ from it
 * by more than three standard deviations are left out, four times. */
#include <math.h>
#include <string.h>

#include "recon/dbt/air_internal.h"

#define TOP_SHARE 0.0025 /* share of the cells that are brighter than the level from which `BAND` counts */
#define ROUNDS 4
#define KEPT_LEAST 0.7	    /* share of the region that the plane must explain */
#define RESIDUAL_SHARE 0.25 /* rms relative to the variation that shows a variation */
#define RESIDUAL_MOST 0.006 /* rms of ln I0, or three times the noise */

struct plane {
	double n, at[2], log; /* number and means of the cells used */
	double spread[2][2];  /* covariance of their positions, mm^2 */
	double with_log[2];   /* covariance with the logarithm */
	double slope[2], rms;
};

static void place_of(const struct cells *c, size_t i, double ret[2])
{
	ret[0] = ((double)(i % (size_t)c->n_u) + 0.5) * c->size[0] - c->half[0];
	ret[1] = ((double)(i / (size_t)c->n_u) + 0.5) * c->size[1] - c->half[1];
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
static int begin(struct cells *c, double least)
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

/* Use the cells of the region that are not at its edge; return their number. */
static size_t use_inside(struct cells *c)
{
	size_t n = 0;

	for (int j = 0; j < c->n_v; j++)
		for (int i = 0; i < c->n_u; i++) {
			struct cell *a = c->cell + (size_t)j * (size_t)c->n_u + i;

			a->plateau = a->region && a->kind == CELL_DATA && air_is_inside(c, i, j);
			n += a->plateau;
		}
	return n;
}

static struct plane sum_up(const struct cells *c)
{
	struct plane p = {0};
	double x[2];

	for (size_t i = 0; i < air_count_cells(c); i++) {
		if (!c->cell[i].plateau)
			continue;
		place_of(c, i, x);
		p.n++;
		p.log += (double)c->cell[i].log;
		for (int a = 0; a < 2; a++) {
			p.at[a] += x[a];
			p.with_log[a] += x[a] * (double)c->cell[i].log;
			for (int b = 0; b < 2; b++)
				p.spread[a][b] += x[a] * x[b];
		}
	}
	p.log /= p.n;
	for (int a = 0; a < 2; a++)
		p.at[a] /= p.n;
	for (int a = 0; a < 2; a++) {
		p.with_log[a] = p.with_log[a] / p.n - p.at[a] * p.log;
		for (int b = 0; b < 2; b++)
			p.spread[a][b] = p.spread[a][b] / p.n - p.at[a] * p.at[b];
	}
	return p;
}

static double determinant(const struct plane *p)
{
	return p->spread[0][0] * p->spread[1][1] - p->spread[0][1] * p->spread[1][0];
}

/* Return d . spread^-1 d for a distance from the mean position; only along y: of its second part. */
static double leverage(const struct plane *p, const double d[2], bool both)
{
	if (!both)
		return d[1] * d[1] / p->spread[1][1];
	return (p->spread[1][1] * d[0] * d[0] - 2 * p->spread[0][1] * d[0] * d[1] + p->spread[0][0] * d[1] * d[1]) /
	       determinant(p);
}

static void solve(struct plane *p, bool both)
{
	double det = determinant(p);

	p->slope[0] = both ? (p->spread[1][1] * p->with_log[0] - p->spread[0][1] * p->with_log[1]) / det : 0;
	p->slope[1] = both ? (p->spread[0][0] * p->with_log[1] - p->spread[0][1] * p->with_log[0]) / det
			   : p->with_log[1] / p->spread[1][1];
}

static double residual(const struct cells *c, const struct plane *p, size_t i)
{
	double x[2];

	place_of(c, i, x);
	return (double)c->cell[i].log - p->log - p->slope[0] * (x[0] - p->at[0]) - p->slope[1] * (x[1] - p->at[1]);
}

/* Leave out the cells of the region that differ by more than noise from the plane. */
static void leave_out(struct cells *c, struct plane *p)
{
	double most, sum = 0;
	size_t n = 0;

	for (size_t i = 0; i < air_count_cells(c); i++)
		if (c->cell[i].plateau) {
			double r = residual(c, p, i);

			sum += r * r;
			c->sorted[n++] = (float)fabs(r);
		}
	p->rms = sqrt(sum / (double)n);
	most = fmax(3 * 1.4826 * air_select(c->sorted, n, n / 2), STEP_LEAST);
	for (size_t i = 0; i < air_count_cells(c); i++)
		c->cell[i].plateau = c->cell[i].plateau && fabs(residual(c, p, i)) <= most;
}

/* Fit the plane to the cells of the region; false: too few of them follow one. */
static bool fit(struct cells *c, bool both, struct plane *ret)
{
	size_t all = use_inside(c);
	struct plane p = {0};

	if ((double)all < fmax(CELLS_LEAST, AIR_SHARE_LEAST * (double)c->n_data))
		return false;
	for (int round = 0; round < ROUNDS; round++) {
		p = sum_up(c);
		if (!(p.n >= KEPT_LEAST * (double)all && p.spread[1][1] > 0 && (!both || determinant(&p) > 0)))
			return false;
		solve(&p, both);
		leave_out(c, &p);
	}
	*ret = p;
	return true;
}

/* Return whether the cells follow the plane. */
static bool is_plane(const struct cells *c, const struct plane *p)
{
	return p->rms <= fmax(RESIDUAL_MOST, 3 * air_cell_noise(c, p->log));
}

/* Find the corners of the cells with data. */
static void find_box(const struct cells *c, double ret_lo[2], double ret_hi[2])
{
	double x[2];

	for (int k = 0; k < 2; k++) {
		ret_lo[k] = c->half[k];
		ret_hi[k] = -c->half[k];
	}
	for (size_t i = 0; i < air_count_cells(c); i++) {
		if (c->cell[i].kind == CELL_EMPTY)
			continue;
		place_of(c, i, x);
		for (int k = 0; k < 2; k++) {
			ret_lo[k] = fmin(ret_lo[k], x[k]);
			ret_hi[k] = fmax(ret_hi[k], x[k]);
		}
	}
}

/* Return whether the plane is known well enough at all corners of the data, and the largest difference to the air there. */
static bool is_determined(const struct cells *c, const struct plane *p, bool both, double most, double *ret_variation)
{
	double lo[2], hi[2], error = 0, variation = 0;

	find_box(c, lo, hi);
	for (int k = 0; k < 4; k++) {
		double d[2] = {(k & 1 ? hi[0] : lo[0]) - p->at[0], (k & 2 ? hi[1] : lo[1]) - p->at[1]};

		error = fmax(error, AIR_FIELD_ERROR * sqrt(1 + leverage(p, d, both)));
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

	*ret = (struct air_field){0};
	air_flood(c, begin(c, least_log(c, thickness)), is_near, NULL);
	for (int both = 1; both >= 0 && !ret->along[1]; both--)
		if (fit(c, both, &p))
			use_plane(c, &p, both, thickness, ret);
	for (size_t i = 0; i < air_count_cells(c); i++)
		c->cell[i].region = c->cell[i].plateau = 0;
}
