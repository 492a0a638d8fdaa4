/* SPDX-License-Identifier: Apache-2.0 */
/* air_plateau.c - find the plateau of air in the cells of a projection; see air.h for the criteria.
 *
 * - A cell is flat if it differs from the next cells along u and v by no more than noise. The level is the highest mode in the
 *   histogram of the logarithms of flat cells, then the median of the cells that belong to it.
 * - Connection is tested by flooding from the last cells of each row that have data, through cells that are about as bright as
 *   the level. Where a row ends over range, this is its air, and the row begins no region. */
#include <math.h>
#include <stdint.h>

#include "recon/dbt/air_internal.h"

#define CLASS 0.02	  /* width of a class of the histogram of logarithms */
#define CLASSES 560	  /* ln(65536) / CLASS, and some more */
#define MODE_SHARE 0.0025 /* share of flat cells in three classes that makes a mode */
#define WIDTH_LEAST 0.03  /* half of the least width of a plateau, in the logarithm */
#define BAND 0.3	  /* range below the plateau in which there must be a gap: 6 mm of tissue */
#define BAND_CLASSES 15	  /* BAND / CLASS */
#define GAP_MOST 0.4	  /* largest number of cells in the gap, three classes, relative to those of the plateau */
#define FLAT_LEAST 0.8	  /* least share of flat cells inside a plateau */
#define VALLEY_MOST 0.25  /* largest number of cells between two levels, three classes, relative to those of the second one */
#define GROUP_PAIRS 64	  /* pairs of bins with which a variance is estimated */
#define GROUPS_LEAST 16
#define EVEN_LEAST 0.1	 /* least ratio of the quartiles of the variances of the object, if they are those of counting */
#define STEPS_LEAST 20.0 /* least variance of the object, stored values^2: above that of rounding and of structures */
#define CLIPPED_MOST 0.1 /* variance / intensity of a clipped plateau relative to that of the object */
#define DARK_CELLS 3	 /* the darkest cells that are ignored */

/* ---- the level ---- */

static size_t three_classes(const size_t *hist, int k)
{
	return hist[k] + (k > 0 ? hist[k - 1] : 0) + (k + 1 < CLASSES ? hist[k + 1] : 0);
}

/* Return the median of the flat cells within `width` of `log`. */
static double level_near(struct cells *c, double log, double width)
{
	size_t n = 0;

	for (size_t i = 0; i < air_count_cells(c); i++)
		if (c->cell[i].flat && fabs((double)c->cell[i].log - log) <= width)
			c->sorted[n++] = c->cell[i].log;
	return n > 0 ? air_median(c->sorted, n) : log;
}

static double width_of(const struct cells *c, double log)
{
	return fmax(WIDTH_LEAST, 4 * air_cell_noise(c, log));
}

/* Return the class of a logarithm; below 0, as a slope of the open field can make it, it is the first one. */
static int class_of(double log)
{
	return log > 0 ? air_smaller((int)(log / CLASS), CLASSES - 1) : 0;
}

bool air_find_mode(struct cells *c, double *ret_log)
{
	size_t hist[CLASSES] = {0}, least = (size_t)fmax(MODE_SHARE * (double)c->n_data, CELLS_LEAST);
	int k = CLASSES - 1;
	double log;

	for (size_t i = 0; i < air_count_cells(c); i++)
		if (c->cell[i].flat)
			hist[class_of((double)c->cell[i].log)]++;
	while (k > 0 && three_classes(hist, k) < least)
		k--;
	if (k == 0)
		return false;
	while (k > 1 && three_classes(hist, k - 1) > three_classes(hist, k))
		k--;
	log = (k + 0.5) * CLASS;
	log = level_near(c, log, 1.5 * CLASS);
	*ret_log = level_near(c, log, width_of(c, log));
	return true;
}

/* ---- the region ---- */

static bool is_bright(const struct cell *a, double log, double width)
{
	return a->kind == CELL_DATA && (double)a->log >= log - width;
}

/* Begin at one bright cell near the end of each row; *ret_over: number of rows that end over range. */
static int seed_region(struct cells *c, double log, double width, int *ret_over)
{
	int depth = (int)ceil(SEED_DEPTH / c->size[0]), waiting = 0, over = 0;

	for (int j = 0; j < c->n_v; j++) {
		struct cell *row = c->cell + (size_t)j * (size_t)c->n_u;
		int i = c->n_u - 1;

		while (i >= 0 && row[i].kind == CELL_EMPTY)
			i--;
		over += i >= 0 && row[i].kind == CELL_OVER;
		for (int end = i - depth; i >= 0 && i > end && row[i].kind == CELL_DATA && !row[i].region; i--)
			if (is_bright(&row[i], log, width)) {
				row[i].region = 1;
				c->work[waiting++] = j * c->n_u + i;
				break;
			}
	}
	*ret_over = over;
	return waiting;
}

struct bright {
	double log, width;
};

static bool is_as_bright(const struct cell *from, const struct cell *to, const void *ctx)
{
	const struct bright *b = ctx;

	(void)from;
	return is_bright(to, b->log, b->width);
}

/* Mark the region; return false if most rows that could begin it end over range. */
static bool flood_region(struct cells *c, double log, double width)
{
	const struct bright bright = {log, width};
	int over, begun = seed_region(c, log, width, &over);

	air_flood(c, begun, is_as_bright, &bright);
	return over <= begun;
}

struct counts {
	size_t plateau, inside, flat, elsewhere;
	size_t band[BAND_CLASSES]; /* cells outside the region, by class below the level */
};

static struct counts count_region(struct cells *c, double log, double width)
{
	struct counts n = {0};

	for (int j = 0; j < c->n_v; j++) {
		bool left = false, here = air_has_outside(c, 0, j), right;

		for (int i = 0; i < c->n_u; i++, left = here, here = right) {
			struct cell *a = c->cell + (size_t)j * (size_t)c->n_u + i;
			double dark = log - (double)a->log;
			int below = dark >= 0 ? (int)(dark / CLASS) : -1;
			bool plateau = a->region && a->kind == CELL_DATA && fabs((double)a->log - log) <= width;

			right = i + 1 < c->n_u && air_has_outside(c, i + 1, j);
			a->plateau = plateau && !(left | here | right); /* air_is_inside() */
			n.plateau += plateau;
			n.inside += a->plateau;
			n.elsewhere += a->kind == CELL_DATA && !a->region && fabs((double)a->log - log) <= width;
			n.flat += a->plateau && a->flat;
			if (a->kind == CELL_DATA && !a->region && below >= 0 && below < BAND_CLASSES)
				n.band[below]++;
		}
	}
	return n;
}

/* Return the number of cells in the emptiest three classes below the flooded levels. */
static size_t gap_cells(const struct counts *n, double flood_width)
{
	int first = (int)ceil(flood_width / CLASS);
	size_t least = first + 2 < BAND_CLASSES ? SIZE_MAX : 0;

	for (int k = first; k + 2 < BAND_CLASSES; k++) {
		size_t cells = n->band[k] + n->band[k + 1] + n->band[k + 2];

		least = cells < least ? cells : least;
	}
	return least;
}

/* ---- two levels ---- */

/* Count the flat cells by class below the level; the first class begins at the level's lower edge. */
static void count_below(const struct cells *c, double log, double width, size_t hist[BAND_CLASSES])
{
	for (size_t i = 0; i < air_count_cells(c); i++) {
		double dark = log - width - (double)c->cell[i].log;

		if (c->cell[i].flat && dark >= 0 && dark < BAND_CLASSES * CLASS)
			hist[(int)(dark / CLASS)]++;
	}
}

/* Return the least number of cells in a class. */
static size_t least_of(const size_t *hist, int from, int end)
{
	size_t least = SIZE_MAX;

	for (int k = from; k < end; k++)
		least = hist[k] < least ? hist[k] : least;
	return least;
}

/* Return whether there is a second level up to AIR_PADDLE_MOST below the first, with few cells on both sides of it. */
static bool has_second_level(const struct cells *c, double log, double width)
{
	size_t hist[BAND_CLASSES] = {0};
	double least = fmax(AIR_SHARE_LEAST * (double)c->n_data, CELLS_LEAST);
	bool found = false;

	count_below(c, log, width, hist);
	for (int k = 2; width + (k + 1) * CLASS < AIR_PADDLE_MOST && k + 3 < BAND_CLASSES; k++) {
		double n = (double)(hist[k - 1] + hist[k] + hist[k + 1]), few = VALLEY_MOST * n / 3;

		found = found || (n >= least && hist[k] >= hist[k - 1] && hist[k] >= hist[k + 1] &&
				  (double)least_of(hist, 0, k - 1) <= few && (double)least_of(hist, k + 2, BAND_CLASSES) <= few);
	}
	return found;
}

/* ---- noise ---- */

/* Estimate the variance / intensity of groups of cells of the plateau, or of those outside the region; return their number. The
 * median of each group leaves out edges. *ret_mean: mean intensity. */
static size_t group_variances(struct cells *c, bool plateau, double *ret_mean)
{
	int pairs = c->bins_u * ((c->bins_v + 1) / 2), size = (GROUP_PAIRS + pairs - 1) / pairs, in_group = 0;
	float group[GROUP_PAIRS];
	size_t n = 0, used = 0;
	double mean = 0;

	for (size_t i = 0; i < air_count_cells(c); i++) {
		const struct cell *a = &c->cell[i];

		if (a->kind != CELL_DATA || !(a->variance >= 0) || (plateau ? !a->plateau : a->region))
			continue;
		mean += (double)a->mean;
		used++;
		group[in_group++] = a->variance;
		if (in_group == size) {
			c->sorted[n++] = (float)air_median(group, (size_t)size);
			in_group = 0;
		}
	}
	*ret_mean = used > 0 ? mean / (double)used : 0;
	return n;
}

double air_plateau_gain(struct cells *c, bool *ret_clipped)
{
	double mean, quarter, middle, gain = 0;
	size_t n = group_variances(c, true, &mean);

	*ret_clipped = false;
	if (n < GROUPS_LEAST)
		return -1;
	gain = air_median(c->sorted, n);
	n = group_variances(c, false, &mean);
	if (n < GROUPS_LEAST)
		return gain;
	quarter = air_select(c->sorted, n, n / 4);
	middle = air_median(c->sorted, n);
	*ret_clipped = quarter * mean >= STEPS_LEAST && quarter >= EVEN_LEAST * air_select(c->sorted, n, 3 * n / 4) &&
		       gain < CLIPPED_MOST * middle;
	return gain;
}

/* ---- the decision ---- */

/* Return the logarithm of the darkest cell but DARK_CELLS. */
static double find_dark(const struct cells *c)
{
	float darkest[DARK_CELLS + 1]; /* ascending */
	int n = 0;

	for (size_t i = 0; i < air_count_cells(c); i++) {
		float log = c->cell[i].log;
		int k;

		if (c->cell[i].kind != CELL_DATA || (n > DARK_CELLS && log >= darkest[DARK_CELLS]))
			continue;
		n += n <= DARK_CELLS;
		for (k = n - 1; k > 0 && darkest[k - 1] > log; k--)
			darkest[k] = darkest[k - 1];
		darkest[k] = log;
	}
	return n > 0 ? (double)darkest[n - 1] : 0;
}

/* Return the median of the plateau's cells, of those away from its edge if there are enough, and their mean position. */
static double plateau_level(struct cells *c, double log, double width, bool inside, double ret_at[2])
{
	double sum[2] = {0, 0};
	size_t n = 0;

	for (size_t i = 0; i < air_count_cells(c); i++) {
		const struct cell *a = &c->cell[i];

		if (inside ? a->plateau : a->region && a->kind == CELL_DATA && fabs((double)a->log - log) <= width) {
			sum[0] += (double)(i % (size_t)c->n_u) + 0.5;
			sum[1] += (double)(i / (size_t)c->n_u) + 0.5;
			c->sorted[n++] = a->log;
		}
	}
	for (int k = 0; k < 2; k++)
		ret_at[k] = n > 0 ? sum[k] / (double)n * c->size[k] - c->half[k] : 0;
	return air_median(c->sorted, n);
}

enum air_verdict air_judge_plateau(struct cells *c, double thickness, double *log, struct air *air)
{
	double width = width_of(c, *log), flood_width = fmax(BAND / 6, 1.5 * width);
	bool ends = flood_region(c, *log, flood_width);
	struct counts n = count_region(c, *log, width);

	air->share = (double)n.plateau / (double)c->n_data;
	air->contrast = *log - find_dark(c);
	if (n.plateau < CELLS_LEAST || n.elsewhere > n.plateau || air->share < AIR_SHARE_LEAST ||
	    (double)n.flat < FLAT_LEAST * (double)n.inside)
		return AIR_NO_PLATEAU;
	if ((double)gap_cells(&n, flood_width) > GAP_MOST * (double)n.plateau)
		return AIR_NO_EDGE;
	if (air->contrast < AIR_MU_LEAST * thickness)
		return AIR_NO_CONTRAST;
	*log = plateau_level(c, *log, width, n.inside >= CELLS_LEAST, air->at);
	if (!ends)
		return AIR_NO_PLATEAU;
	return has_second_level(c, *log, width) || air_has_paddle_edge(c, thickness) ? AIR_TWO_LEVELS : AIR_FOUND;
}
