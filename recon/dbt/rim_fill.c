/* SPDX-License-Identifier: Apache-2.0 */
/* rim_fill.c - see recon/dbt/rim_fill.h. Everything is decided on cells of about 0.35 mm, at least one pixel: their means over 1 mm
 * are smooth, and the distance to the skin is still exact to a fraction of a mm. */
#include "recon/dbt/rim_fill.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/order.h"
#include "recon/dbt/skin_distance.h"

#define CELL 0.35	/* mm */
#define SMOOTH 1.0	/* mm: side of the square over which cells are averaged */
#define DEEP 25.0	/* mm: rims are thinner than this, or half of the largest distance to the skin */
#define LEVEL_SIDE 5.0	/* mm */
#define LEVEL_PART 0.25 /* quantile of the deep means: a fourth of a breast is fat from plate to plate */
#define LEVELS_LEAST 16 /* deep means for a level */
#define SECTORS 72
#define SECTORS_LEAST 9 /* with a profile, to fill a rim: 45 degrees */
#define END 45.0	/* mm: the largest distance with a median */
#define CLASS 0.5	/* mm: distances with one median, at least CLASS_CELLS cells */
#define CLASS_CELLS 1.5
#define CLASSES 90	 /* END / CLASS */
#define PROFILE_LEAST 15 /* mm: distances with a median, for a profile */
#define VALUES_LEAST 8	 /* for a median */
#define SMOOTH_PASSES 8	 /* of (1 2 1) / 4 along the distance: 1 mm (standard deviation); */
#define SMOOTH_FROM 6	 /* nearer to the skin, where it is steep, only one pass */
#define SECTOR_SIGMA 1.5 /* smoothing along the skin, sectors */
#define ADD_SIDE 3.0	 /* mm: of the squares over which what is added is smoothed, */
#define ADD_FROM 2.0f	 /* mm from the skin: not at all, */
#define ADD_FULLY 6.0f	 /* mm: fully */
#define FADE 10.0	 /* mm: over which it ends before END */
#define SOFT 1.0	 /* mm: what is added rises from 0 at the skin over this distance, so that the skin line is not jagged */

typedef float profile_table[SECTORS][CLASSES];

struct cells {
	int n[2], bins; /* bins: pixels along x and y of a cell; the last ones may have fewer */
	double h[2];	/* mm */
	double width;	/* of a class of distances, mm */
	float *mean, *smooth, *distance, *add;
	unsigned char *air;
	int *nearest, *work;
	double middle[2]; /* the point around which sectors are counted, cells */
	void *memory;
};

static size_t count_cells(const struct cells *c)
{
	return (size_t)c->n[0] * (size_t)c->n[1];
}

static int cells_make(const struct grid *grid, struct cells *ret, struct err *err)
{
	struct cells c = {.bins = (int)fmax(1, lround(CELL / fmin(grid->h[0], grid->h[1])))};
	size_t n;
	float *f;

	for (int i = 0; i < 2; i++) {
		c.n[i] = (grid->n[i] + c.bins - 1) / c.bins;
		c.h[i] = c.bins * grid->h[i];
	}
	c.width = fmax(CLASS, CLASS_CELLS * fmax(c.h[0], c.h[1]));
	n = count_cells(&c);
	c.memory = malloc(n * (4 * sizeof(float) + 2 * sizeof(int) + 1));
	if (!c.memory)
		return err_set(err, ENOMEM, "rim of the synthetic view: no memory for %d x %d cells", c.n[0], c.n[1]);
	f = c.memory;
	c.mean = f;
	c.smooth = f + n;
	c.distance = f + 2 * n;
	c.add = f + 3 * n;
	c.nearest = (int *)(f + 4 * n);
	c.work = c.nearest + n;
	c.air = (unsigned char *)(c.work + n);
	*ret = c;
	return 0;
}

/* Average the image over the cells. */
static void average_cells(const struct cells *c, const struct grid *grid, const float *image)
{
#pragma omp parallel for schedule(static)
	for (int y = 0; y < c->n[1]; y++)
		for (int x = 0; x < c->n[0]; x++) {
			int x0 = x * c->bins, y0 = y * c->bins, x1 = order_smaller(x0 + c->bins, grid->n[0]),
			    y1 = order_smaller(y0 + c->bins, grid->n[1]);
			double sum = 0;

			for (int j = y0; j < y1; j++)
				for (int i = x0; i < x1; i++)
					sum += image[(size_t)j * (size_t)grid->n[0] + (size_t)i];
			c->mean[(size_t)y * (size_t)c->n[0] + (size_t)x] = (float)(sum / ((double)(x1 - x0) * (y1 - y0)));
		}
}

/* Return the mean of the cells at most `reach` away from one, as far as they are in the image. */
static float mean_around(const struct cells *c, int x, int y, const int reach[2])
{
	int x0 = order_larger(x - reach[0], 0), x1 = order_smaller(x + reach[0], c->n[0] - 1), y0 = order_larger(y - reach[1], 0),
	    y1 = order_smaller(y + reach[1], c->n[1] - 1);
	double sum = 0;

	for (int j = y0; j <= y1; j++)
		for (int i = x0; i <= x1; i++)
			sum += c->mean[(size_t)j * (size_t)c->n[0] + (size_t)i];
	return (float)(sum / ((double)(x1 - x0 + 1) * (y1 - y0 + 1)));
}

static void reach_of(const struct cells *c, double side, int ret[2])
{
	for (int i = 0; i < 2; i++)
		ret[i] = (int)fmax(0, lround((side / c->h[i] - 1) / 2));
}

/* Average over a square around each cell, as far as it is in the image: along x, then along y. work: a value for each cell. */
static void average_squares(const struct cells *c, const int reach[2], const float *from, float *work, float *ret)
{
#pragma omp parallel for schedule(static)
	for (int y = 0; y < c->n[1]; y++) {
		const float *row = from + (size_t)y * (size_t)c->n[0];

		for (int x = 0; x < c->n[0]; x++) {
			int x0 = order_larger(x - reach[0], 0), x1 = order_smaller(x + reach[0], c->n[0] - 1);
			float sum = 0;

			for (int i = x0; i <= x1; i++)
				sum += row[i];
			work[(size_t)y * (size_t)c->n[0] + (size_t)x] = sum / (float)(x1 - x0 + 1);
		}
	}
#pragma omp parallel for schedule(static)
	for (int y = 0; y < c->n[1]; y++) {
		int y0 = order_larger(y - reach[1], 0), y1 = order_smaller(y + reach[1], c->n[1] - 1);
		float *row = ret + (size_t)y * (size_t)c->n[0];

		for (int x = 0; x < c->n[0]; x++)
			row[x] = 0;
		for (int j = y0; j <= y1; j++)
			for (int x = 0; x < c->n[0]; x++)
				row[x] += work[(size_t)j * (size_t)c->n[0] + (size_t)x];
		for (int x = 0; x < c->n[0]; x++)
			row[x] /= (float)(y1 - y0 + 1);
	}
}

/* Change distances to those from the skin line, which is half a cell nearer than the centre of the air. */
static void shift_to_skin(const struct cells *c)
{
	float half = (float)((c->h[0] + c->h[1]) / 4);

	for (size_t i = 0; i < count_cells(c); i++)
		c->distance[i] = c->distance[i] > half ? c->distance[i] - half : 0;
}

/* ---- the level L ---- */

static int compare_floats(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

/* Return L; 0: too few values. */
static double find_level(const struct cells *c, struct err *err, int *rc)
{
	int reach[2], step[2];
	float deepest = 0, *values;
	double level = 0;
	size_t n = 0;

	reach_of(c, LEVEL_SIDE, reach);
	for (int i = 0; i < 2; i++)
		step[i] = 2 * reach[i] + 1;
	for (size_t i = 0; i < count_cells(c); i++)
		deepest = fmaxf(deepest, c->distance[i]);
	values = malloc(((size_t)(c->n[0] / step[0]) + 1) * ((size_t)(c->n[1] / step[1]) + 1) * sizeof(*values));
	if (!values) {
		*rc = err_set(err, ENOMEM, "rim of the synthetic view: no memory for its level");
		return 0;
	}
	for (int y = reach[1]; y < c->n[1]; y += step[1])
		for (int x = reach[0]; x < c->n[0]; x += step[0])
			if (c->distance[(size_t)y * (size_t)c->n[0] + (size_t)x] > fmin(DEEP, 0.5 * (double)deepest))
				values[n++] = mean_around(c, x, y, reach);
	if (n >= LEVELS_LEAST) {
		qsort(values, n, sizeof(*values), compare_floats);
		level = values[(size_t)(LEVEL_PART * (double)n)];
	}
	free(values);
	return level;
}

/* ---- T / H by sector and distance ---- */

/* Find the point around which sectors are counted: at the middle of the breast's chest wall, inside by 0.3 of its length. */
static void find_middle(struct cells *c)
{
	double sum = 0;
	int count = 0, most = 0;

	for (int y = 0; y < c->n[1]; y++) {
		const unsigned char *air = c->air + (size_t)y * (size_t)c->n[0];

		if (!air[0]) {
			sum += y;
			count++;
		}
		for (int x = most + 1; x < c->n[0]; x++)
			most = air[x] ? most : x;
	}
	c->middle[0] = 0.3 * most;
	c->middle[1] = count ? sum / count : c->n[1] / 2.0;
}

/* Return the sector of the skin that is nearest to a cell: 0 <= sector < SECTORS. */
static double sector_of(const struct cells *c, size_t i)
{
	int skin = c->nearest[i];
	double angle = atan2((skin / c->n[0] - c->middle[1]) * c->h[1], (skin % c->n[0] - c->middle[0]) * c->h[0]);

	return fmin((angle / M_PI + 1) * (SECTORS / 2.0), SECTORS - 1e-6);
}

/* Return the class of a cell's sector and distance; -1: it has none. */
static int class_of(const struct cells *c, size_t i)
{
	bool has = !c->air[i] && c->distance[i] < (float)END;

	return has ? (int)sector_of(c, i) * CLASSES + order_smaller((int)(c->distance[i] / c->width), CLASSES - 1) : -1;
}

/* Write the medians by sector and class; NAN: too few values. */
static int find_medians(const struct cells *c, profile_table t, struct err *err)
{
	size_t n = count_cells(c), *end = calloc((size_t)SECTORS * CLASSES + 1, sizeof(*end));
	float *values = malloc(n * sizeof(*values));

	if (!end || !values) {
		free(end);
		free(values);
		return err_set(err, ENOMEM, "rim of the synthetic view: no memory for its profiles");
	}
#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < n; i++)
		c->work[i] = class_of(c, i);
	for (size_t i = 0; i < n; i++)
		if (c->work[i] >= 0)
			end[c->work[i] + 1]++;
	for (int k = 0; k < SECTORS * CLASSES; k++)
		end[k + 1] += end[k];
	for (size_t i = 0; i < n; i++) /* afterwards end[k] is the end of class k */
		if (c->work[i] >= 0)
			values[end[c->work[i]]++] = c->smooth[i];
#pragma omp parallel for schedule(dynamic, 64)
	for (int k = 0; k < SECTORS * CLASSES; k++) {
		size_t from = k > 0 ? end[k - 1] : 0, count = end[k] - from;

		if (count >= VALUES_LEAST)
			qsort(values + from, count, sizeof(*values), compare_floats);
		t[k / CLASSES][k % CLASSES] = count >= VALUES_LEAST ? values[from + count / 2] : NAN;
	}
	free(end);
	free(values);
	return 0;
}

/* Make of medians along d the part T / H: smooth, from 0 at the skin on never decreasing, at most 1. false: no profile. */
static bool make_profile(float m[CLASSES], double width, double level)
{
	float last = 0, before;
	int found = 0;

	for (int k = 0; k < CLASSES; k++) {
		found += isfinite(m[k]) != 0;
		m[k] = isfinite(m[k]) ? m[k] : k > 0 ? m[k - 1] : 0;
	}
	for (int pass = 0; pass < SMOOTH_PASSES; pass++) {
		int first = pass == 0 ? 1 : SMOOTH_FROM;

		before = m[first - 1];
		for (int k = first; k < CLASSES - 1; k++) {
			float here = m[k];

			m[k] = (before + 2 * here + m[k + 1]) / 4;
			before = here;
		}
	}
	for (int k = 0; k < CLASSES; k++) {
		last = fmaxf(last, m[k] / (float)level);
		m[k] = fminf(last, 1);
	}
	return found * width >= PROFILE_LEAST;
}

/* Smooth along the skin; sectors without a profile have no weight. */
static void smooth_sectors(profile_table t, const bool good[SECTORS], profile_table ret)
{
	int reach = (int)(3 * SECTOR_SIGMA);

	for (int s = 0; s < SECTORS; s++)
		for (int k = 0; k < CLASSES; k++) {
			double sum = 0, weight = 0;

			for (int d = -reach; d <= reach; d++) {
				int other = (s + d + SECTORS) % SECTORS;
				double w = good[other] ? exp(-d * d / (2 * SECTOR_SIGMA * SECTOR_SIGMA)) : 0;

				sum += w * (double)t[other][k];
				weight += w;
			}
			ret[s][k] = weight > 0 ? (float)(sum / weight) : NAN;
		}
}

/* Let sectors without a value have that of the nearest one which has it. */
static void extend_sectors(profile_table t)
{
	bool has[SECTORS];

	for (int s = 0; s < SECTORS; s++)
		has[s] = isfinite(t[s][0]);
	for (int s = 0; s < SECTORS; s++)
		for (int d = 1; !has[s] && d <= SECTORS / 2; d++) {
			int other = has[(s + d) % SECTORS] ? (s + d) % SECTORS : (s - d + SECTORS) % SECTORS;

			if (has[other]) {
				memcpy(t[s], t[other], sizeof(t[s]));
				break;
			}
		}
}

/* Estimate T / H. *ret_sectors: those with a profile. */
static int find_parts(const struct cells *c, double level, profile_table ret, int *ret_sectors, struct err *err)
{
	profile_table *medians = malloc(sizeof(*medians));
	bool good[SECTORS];
	int rc = medians ? find_medians(c, *medians, err) : err_set(err, ENOMEM, "rim of the synthetic view: out of memory");

	*ret_sectors = 0;
	if (rc == 0) {
		for (int s = 0; s < SECTORS; s++) {
			good[s] = make_profile((*medians)[s], c->width, level);
			*ret_sectors += good[s];
		}
		smooth_sectors(*medians, good, ret);
		extend_sectors(ret);
	}
	free(medians);
	return rc;
}

/* Interpolate the table; around the breast it is cyclic. */
static float part_at(profile_table t, double sector, double class)
{
	double at = sector - 0.5 + SECTORS, depth = fmin(fmax(class - 0.5, 0), CLASSES - 1.001);
	int s = (int)at, k = (int)depth;
	double a = at - s, b = depth - k;
	const float *p = t[s % SECTORS] + k, *q = t[(s + 1) % SECTORS] + k;

	return (float)((1 - a) * ((1 - b) * (double)p[0] + b * (double)p[1]) + a * ((1 - b) * (double)q[0] + b * (double)q[1]));
}

/* ---- adding ---- */

static void estimate_add(const struct cells *c, double level, profile_table t)
{
#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < count_cells(c); i++) {
		double d = c->distance[i], soft = fmin(d / SOFT, 1) * fmin((END - d) / FADE, 1);

		c->add[i] = c->air[i] || !(soft > 0)
				    ? 0
				    : (float)(level * soft * (1 - (double)part_at(t, sector_of(c, i), d / c->width)));
	}
}

/* Smooth what is added, for the nearest skin of neighbours may be far apart. Overwrites the means and the smooth ones. */
static void smooth_add(const struct cells *c)
{
	int reach[2];

	reach_of(c, ADD_SIDE, reach);
	for (int pass = 0; pass < 2; pass++) {
		average_squares(c, reach, c->add, c->smooth, c->mean);
#pragma omp parallel for schedule(static)
		for (size_t i = 0; i < count_cells(c); i++) {
			float weight = fminf(fmaxf((c->distance[i] - ADD_FROM) / (ADD_FULLY - ADD_FROM), 0), 1);

			c->add[i] += weight * (c->mean[i] - c->add[i]);
		}
	}
}

/* Interpolate what is added to a row between the centres of the cells. */
static void add_row(const struct cells *c, const struct grid *grid, int j, float *row)
{
	double at_y = fmin(fmax((j + 0.5) / c->bins - 0.5, 0), c->n[1] - 1);
	int y = (int)at_y, y1 = order_smaller(y + 1, c->n[1] - 1);
	const float *p = c->add + (size_t)y * (size_t)c->n[0], *q = c->add + (size_t)y1 * (size_t)c->n[0];
	float b = (float)(at_y - y);

	for (int i = 0; i < grid->n[0]; i++) {
		double at_x = fmin(fmax((i + 0.5) / c->bins - 0.5, 0), c->n[0] - 1);
		int x = (int)at_x, x1 = order_smaller(x + 1, c->n[0] - 1);
		float a = (float)(at_x - x);

		row[i] += (1 - b) * ((1 - a) * p[x] + a * p[x1]) + b * ((1 - a) * q[x] + a * q[x1]);
	}
}

static void add_image(const struct cells *c, const struct grid *grid, float *image)
{
#pragma omp parallel for schedule(static)
	for (int j = 0; j < grid->n[1]; j++)
		add_row(c, grid, j, image + (size_t)j * (size_t)grid->n[0]);
}

static int fill_image(struct cells *c, const struct grid *grid, float *image, struct rim_fill_report *r, struct err *err)
{
	profile_table *parts;
	double mean;
	int reach[2], rc;

	average_cells(c, grid, image);
	reach_of(c, SMOOTH, reach);
	average_squares(c, reach, c->mean, c->add, c->smooth);
	mean = skin_air(c->n, c->smooth, c->work, c->air);
	rc = skin_distance(c->n, c->h, c->air, c->distance, c->nearest, err);
	if (rc < 0)
		return rc;
	if (!isfinite(c->distance[0]) || !(mean > 0)) {
		snprintf(r->reason, sizeof(r->reason), "%s", mean > 0 ? "the image shows no skin" : "the image is empty");
		return 0;
	}
	shift_to_skin(c);
	r->level = find_level(c, err, &rc);
	if (rc == 0 && !(r->level > 0))
		snprintf(r->reason, sizeof(r->reason), "the breast is too small to have a level inside its rim");
	if (rc < 0 || r->reason[0])
		return rc;
	parts = malloc(sizeof(*parts));
	if (!parts)
		return err_set(err, ENOMEM, "rim of the synthetic view: out of memory");
	find_middle(c);
	rc = find_parts(c, r->level, *parts, &r->sectors, err);
	r->used = rc == 0 && r->sectors >= SECTORS_LEAST;
	if (r->used) {
		estimate_add(c, r->level, *parts);
		smooth_add(c);
		add_image(c, grid, image);
	} else if (rc == 0) {
		snprintf(r->reason, sizeof(r->reason), "only %d of %d sectors along the skin have a profile; at least %d",
			 r->sectors, SECTORS, SECTORS_LEAST);
	}
	free(parts);
	return rc;
}

int rim_fill(const struct grid *grid, float *image, struct rim_fill_report *ret, struct err *err)
{
	struct rim_fill_report report = {0};
	struct cells c;
	int rc;

	for (int i = 0; i < 2; i++)
		if (grid->n[i] <= 0 || !(grid->h[i] > 0))
			return err_set(err, EINVAL, "rim of the synthetic view: grid axis %d: n=%d, spacing=%g mm", i, grid->n[i],
				       grid->h[i]);
	rc = cells_make(grid, &c, err);
	if (rc < 0)
		return rc;
	rc = fill_image(&c, grid, image, &report, err);
	free(c.memory);
	if (rc == 0 && ret)
		*ret = report;
	return rc;
}
