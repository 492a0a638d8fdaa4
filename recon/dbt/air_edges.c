/* SPDX-License-Identifier: Apache-2.0 */
/* air_edges.c - find straight edges parallel to the sides of the detector: the shadow of a collimator at the far side and at both
 * ends along the chest wall, and the edge of a compression paddle at the far side.
 *
 * A line is a row or a column of cells, counted from a side. At the edge of a shadow most cells of a line are darker than
 * those a few lines further inside, in air and behind the object alike; no edge of a breast is like that. All lines outside of it
 * are as dark. At the edge of a paddle most cells are brighter than those further inside, by the same amount. */
#include <math.h>

#include "recon/dbt/air_internal.h"

#define PENUMBRA 3.0	    /* mm, width of an edge */
#define FAR_MOST 0.75	    /* of the detector that a shadow covers from the far side */
#define END_MOST 0.45	    /* and from each end */
#define SHADOW_STEP 0.5	    /* least step of the logarithm at a shadow */
#define SHADOW_SHARE 0.6    /* of the cells of a line: the others may be in the shadow of another side */
#define SAMPLED 8	    /* one in so many cells is compared first */
#define PADDLE_DIFFERS 0.02 /* of the step of a cell from that of the line, or three times the noise */
#define PADDLE_SHARE 0.65   /* of the cells of a line: the others may be those of the object */
#define PADDLE_DEPTH 0.5    /* of the detector, from the far side to the edge of a paddle */
#define PADDLE_NOISE 0.75   /* largest noise (three deviations) of a cell's step, relative to the step */
#define BESIDE_MOST 0.3	    /* steps beside the edge of a paddle, relative to that at the edge */

enum side { SIDE_FAR, SIDE_FIRST, SIDE_LAST };

struct lines {
	const struct cells *c;
	enum side side;
	int n, length, away; /* lines, cells in a line, lines across an edge */
};

static struct lines lines_of(const struct cells *c, enum side side)
{
	bool far = side == SIDE_FAR;

	return (struct lines){.c = c,
			      .side = side,
			      .n = far ? c->n_u : c->n_v,
			      .length = far ? c->n_v : c->n_u,
			      .away = (int)ceil(PENUMBRA / c->size[far ? 0 : 1])};
}

static struct cell *cell_of(const struct lines *l, int line, int k)
{
	int i = l->side == SIDE_FAR ? l->n - 1 - line : k, j = l->side == SIDE_FIRST  ? line
							       : l->side == SIDE_LAST ? l->n - 1 - line
										      : k;

	return l->c->cell + (size_t)j * (size_t)l->c->n_u + i;
}

/* Return whether most cells of a line are darker by the step of a shadow than those of another line. */
static bool is_darker(const struct lines *l, int line, int than, int every)
{
	int n = 0, darker = 0;

	for (int k = every / 2; k < l->length; k += every) {
		const struct cell *a = cell_of(l, line, k), *b = cell_of(l, than, k);

		if (a->kind == CELL_DATA && b->kind == CELL_DATA) {
			n++;
			darker += (double)(b->log - a->log) > SHADOW_STEP;
		}
	}
	return 2 * n * every > l->length && darker >= SHADOW_SHARE * n;
}

static bool is_edge(const struct lines *l, int line)
{
	return is_darker(l, line, line + l->away, SAMPLED) && is_darker(l, line, line + l->away, 1);
}

/* Return the number of lines that a shadow covers; 0: there is none. */
static int shadow_lines(const struct lines *l)
{
	int most = (int)((l->side == SIDE_FAR ? FAR_MOST : END_MOST) * l->n) - l->away, edge = 0, inside;

	while (edge < most && !is_edge(l, edge))
		edge++;
	if (edge >= most)
		return 0;
	while (edge + 1 < most && is_edge(l, edge + 1))
		edge++;
	inside = edge + l->away;
	for (int line = 0; line < edge; line++)
		if (cell_of(l, line, l->length / 2)->kind != CELL_EMPTY && !is_darker(l, line, inside, 1))
			return 0;
	return inside + 1;
}

static void clear_lines(struct cells *c, const struct lines *l, int n)
{
	for (int line = 0; line < n; line++)
		for (int k = 0; k < l->length; k++) {
			struct cell *a = cell_of(l, line, k);

			c->n_data -= a->kind != CELL_EMPTY;
			a->kind = CELL_EMPTY;
		}
}

struct prep_shadow air_remove_shadow(struct cells *c)
{
	int n[3] = {0, 0, 0};

	for (int k = 0; k < 6; k++) { /* twice, because each shadow is a part of the lines of the others */
		enum side side = (enum side)(k % 3);
		struct lines l = lines_of(c, side);
		int found = n[side] ? 0 : shadow_lines(&l);

		clear_lines(c, &l, found);
		n[side] += found;
	}
	return (struct prep_shadow){n[SIDE_FAR] * c->bins_u, n[SIDE_FIRST] * c->bins_v, n[SIDE_LAST] * c->bins_v};
}

/* Return the middle step from a line to the one `away` further inside. *ret_common: true if most cells have it. */
static double line_step(const struct lines *l, int line, int away, int every, bool *ret_common)
{
	float *steps = l->c->sorted;
	size_t n = 0, alike = 0;
	double noise, middle;

	*ret_common = false;
	for (int k = every / 2; k < l->length; k += every) {
		const struct cell *a = cell_of(l, line, k), *b = cell_of(l, line + away, k);

		if (a->kind == CELL_DATA && b->kind == CELL_DATA)
			steps[n++] = a->log - b->log;
	}
	if (2 * n * (size_t)every < (size_t)l->length)
		return 0;
	middle = air_median(steps, n);
	noise = 3 * M_SQRT2 * air_cell_noise(l->c, (double)cell_of(l, line + away, l->length / 2)->log);
	for (size_t k = 0; k < n; k++)
		alike += fabs((double)steps[k] - middle) <= fmax(PADDLE_DIFFERS, noise);
	*ret_common = (double)alike >= PADDLE_SHARE * (double)n && noise < PADDLE_NOISE * middle;
	return middle;
}

/* Return whether the edge of a paddle is between a line and the next one: a step with hardly any on both sides of it, over half
 * of the distance, so that the object may begin close to the edge. */
static bool is_paddle(const struct lines *l, int line, double least, int every)
{
	bool common;
	int half = (l->away + 1) / 2;
	double step = line_step(l, line, l->away, every, &common), outside, inside;

	if (!common || step < least || step > AIR_PADDLE_MOST)
		return false;
	outside = line_step(l, line - half, half, every, &common);
	inside = line_step(l, line + l->away, half, every, &common);
	return fmax(fabs(outside), fabs(inside)) < BESIDE_MOST * step;
}

bool air_has_paddle_edge(const struct cells *c, double thickness)
{
	struct lines l = lines_of(c, SIDE_FAR);
	double least = AIR_LOG_ERROR * thickness;
	bool found = false;

	for (int line = (l.away + 1) / 2; !found && line < (int)(PADDLE_DEPTH * l.n) - 2 * l.away; line++)
		found = is_paddle(&l, line, least, SAMPLED) && is_paddle(&l, line, least, 1);
	return found;
}
