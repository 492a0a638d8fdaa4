/* SPDX-License-Identifier: Apache-2.0 */
/* The cells of recon/dbt/air.h. Private to air.c and the files air_*.c. */
#ifndef TOMONODE_RECON_AIR_INTERNAL_H
#define TOMONODE_RECON_AIR_INTERNAL_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "recon/dbt/air.h"

#define SEED_DEPTH 5.0	 /* mm */
#define CELLS_LEAST 4	 /* least number of cells of a mode and of a plateau */
#define STEP_LEAST 0.003 /* cells of air differ by this much even without noise: gain, shading */

enum kind { CELL_EMPTY, CELL_OVER, CELL_DATA };

struct cell {
	float mean;	/* intensity, at least 1 */
	float log;	/* logarithm of the mean intensity */
	float step;	/* largest difference of the logarithms of neighbouring cells that noise explains */
	float variance; /* of a bin, divided by the mean */
	unsigned char kind, flat, region, plateau;
};

/* A cell of a fit. */
struct point {
	int at[2];	 /* index along u, v */
	float log, rest; /* of the cell; its distance from what was fitted */
};

struct cells {
	int n_u, n_v, bins_u, bins_v;
	double size[2]; /* of a cell, mm */
	double half[2]; /* half of the detector, mm */
	struct cell *cell;
	float *sorted; /* these three for as many cells */
	int *work;
	struct point *point;
	size_t n_data; /* cells with data or over range */
	double gain;   /* variance of a bin / mean */
};

static inline size_t air_count_cells(const struct cells *c)
{
	return (size_t)c->n_u * (size_t)c->n_v;
}

static inline int air_smaller(int a, int b)
{
	return a < b ? a : b;
}

static inline bool air_is_padding(const struct prep *p, int value)
{
	return p->has_padding && value >= p->padding_lo && value <= p->padding_hi;
}

/* Return whether two neighbouring cells differ by more than noise explains. */
static inline bool air_is_step(const struct cell *a, const struct cell *b)
{
	return b->kind == CELL_DATA && fabsf(a->log - b->log) > (a->step > b->step ? a->step : b->step);
}

/* Return whether one of the cells (i, j - 1) to (i, j + 1) has data and is outside of the region. */
static inline bool air_has_outside(const struct cells *c, int i, int j)
{
	const struct cell *a = c->cell + (size_t)j * (size_t)c->n_u + i, *above = j > 0 ? a - c->n_u : a,
			  *below = j < c->n_v - 1 ? a + c->n_u : a;

	return ((a->kind == CELL_DATA) & !a->region) | ((above->kind == CELL_DATA) & !above->region) |
	       ((below->kind == CELL_DATA) & !below->region);
}

/* Return whether a cell of the region has no neighbour with data outside of it. */
static inline bool air_is_inside(const struct cells *c, int i, int j)
{
	return !air_has_outside(c, i, j) && !(i > 0 && air_has_outside(c, i - 1, j)) &&
	       !(i < c->n_u - 1 && air_has_outside(c, i + 1, j));
}

/* Put the neighbours of cells of the region that `is_like` them into the region. c->work has the `waiting` cells to begin with.
 * Return the number of cells in the region. */
static inline size_t air_flood(struct cells *c, int waiting,
			       bool (*is_like)(const struct cell *from, const struct cell *to, const void *ctx), const void *ctx)
{
	size_t n = (size_t)waiting;

	while (waiting > 0) {
		int at = c->work[--waiting], i = at % c->n_u, j = at / c->n_u;
		const int next[4] = {i > 0 ? at - 1 : -1, i < c->n_u - 1 ? at + 1 : -1, j > 0 ? at - c->n_u : -1,
				     j < c->n_v - 1 ? at + c->n_u : -1};

		for (int k = 0; k < 4; k++)
			if (next[k] >= 0 && !c->cell[next[k]].region && is_like(&c->cell[at], &c->cell[next[k]], ctx)) {
				c->cell[next[k]].region = 1;
				c->work[waiting++] = next[k];
				n++;
			}
	}
	return n;
}

/* ---- air_cells.c ---- */

/* Make empty cells; the caller frees c->cell. */
int air_cells_make(const struct prep *p, const double pitch[2], struct cells *ret, struct err *err);
/* Fill them with the stored values of a projection. */
int air_cells_fill(const struct prep *p, int over_code, const uint16_t *raw, struct cells *c, struct err *err);
/* Measure c->gain. */
void air_measure_gain(struct cells *c);
/* Mark the flat cells, and set the largest steps that noise explains. */
void air_mark_flat(struct cells *c);
/* Return the relative standard deviation of a bin at an intensity of exp(log). */
double air_bin_noise(const struct cells *c, double log);
/* Return the relative standard deviation of the mean of a cell at an intensity of exp(log). */
double air_cell_noise(const struct cells *c, double log);
/* Divide the cells by an open field. */
void air_divide(struct cells *c, const struct open_field *field);

/* ---- air_select.c ---- */

/* Return the value that would be at `place` if the n values were sorted; changes their order. */
double air_select(float *values, size_t n, size_t place);
/* Return the value in the middle; 0: there is none. */
double air_median(float *values, size_t n);

/* ---- air_plateau.c ---- */

/* Find the highest mode of the flat cells; false: none. */
bool air_find_mode(struct cells *c, double *ret_log);
/* Decide about the plateau at *log, and refine *log. Sets contrast, share and at of `air`. */
enum air_verdict air_judge_plateau(struct cells *c, double thickness, double *log, struct air *air);

/* Return the variance of a bin / intensity in the plateau, after air_judge_plateau(); -1: too few cells. *ret_clipped: true if it
 * is far below that of the object, whose noise is that of counting. */
double air_plateau_gain(struct cells *c, bool *ret_clipped);

/* ---- air_edges.c ---- */

/* Empty the cells in the shadow of a collimator; return how many bins it covers. */
struct prep_shadow air_remove_shadow(struct cells *c);
/* Return whether a step along the far side is like the edge of a compression paddle, and would make the attenuation of an object
 * of this thickness wrong. Uses c->sorted. */
bool air_has_paddle_edge(const struct cells *c, double thickness);

/* ---- air_field.c ---- */

/* Measure how the air varies over the detector. Uses the region of the cells, and clears it. */
void air_field_measure(struct cells *c, double thickness, struct air_field *ret);

#endif
