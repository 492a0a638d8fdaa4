/* SPDX-License-Identifier: Apache-2.0 */
/* The cells of recon/dbt/air.h, for air.c and air_field.c. Private to them. */
#ifndef TOMONODE_RECON_AIR_INTERNAL_H
#define TOMONODE_RECON_AIR_INTERNAL_H

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

struct cells {
	int n_u, n_v, bins_u, bins_v;
	double size[2]; /* of a cell, mm */
	double half[2]; /* half of the detector, mm */
	struct cell *cell;
	float *sorted;
	int *work;
	size_t n_data; /* cells with data or over range */
	double gain;   /* variance of a bin / mean */
};

static inline size_t air_count_cells(const struct cells *c)
{
	return (size_t)c->n_u * (size_t)c->n_v;
}

/* Return whether two neighbouring cells differ by more than noise explains. */
bool air_is_step(const struct cell *a, const struct cell *b);
/* Return the relative standard deviation of the mean of a cell at an intensity of exp(log). */
double air_cell_noise(const struct cells *c, double log);
/* Return whether a cell of the region has no neighbour with data outside of it. */
bool air_is_inside(const struct cells *c, int i, int j);
/* Return the value that would be at `place` if the n values were sorted; changes their order. */
double air_select(float *values, size_t n, size_t place);
/* Divide the cells by an open field. */
void air_divide(struct cells *c, const struct open_field *field);
/* Put the neighbours of cells of the region that `is_like` them into the region. c->work has the `waiting` cells to begin with.
 */
void air_flood(struct cells *c, int waiting, bool (*is_like)(const struct cell *from, const struct cell *to, const void *ctx),
	       const void *ctx);

/* air_field.c: measure how the air varies over the detector. Uses region and plateau of the cells, and clears them. */
void air_field_measure(struct cells *c, double thickness, struct air_field *ret);

#endif
