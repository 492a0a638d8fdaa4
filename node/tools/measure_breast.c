/* SPDX-License-Identifier: Apache-2.0 */
/* measure_breast.c - the mean along the normal to the skin in the middle slices, and with a truth that of each tissue.
 *
 * Skin: each middle slice is averaged over cells of about 0.35 mm, with x from the chest wall. Air is where the truth has none,
 * without a truth where the image is dark (recon/dbt/skin_distance.h). A cell belongs to a profile if the direction from its
 * nearest air is along x (nipple) or along y (side) within 25 degrees, and to the interior if it is deep enough.
 * Tissues: samples at about 1 mm that have the same true tissue 1 mm to either side along all axes and no detail within 1 mm. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "node/tools/measure_internal.h"
#include "recon/core/figures.h"
#include "recon/dbt/skin_distance.h"

#define CELL 0.35	  /* mm */
#define MIDDLE 0.1	  /* of the depth: slices this far from its middle */
#define ALONG 0.906	  /* cos 25 degrees */
#define CHEST 3.0	  /* mm from the chest wall that are in no profile */
#define HALF_BAND 0.5	  /* mm: reach of a distance */
#define INTERIOR 35.0	  /* mm from the skin, or */
#define INTERIOR_PART 0.6 /* of the largest distance, if that is less */
#define CELLS_LEAST 10	  /* of a mean */
#define PURE 1.0	  /* mm */
#define TISSUES_MAX 16
#define TISSUE_LEAST 10 /* samples */

static const double distances[] = {1, 2, 5, 10, 20, 35};
#define N_DISTANCES (sizeof distances / sizeof *distances)
static const char *const directions[] = {"nipple", "side"};

/* Means of the image and of the truth. */
struct pair {
	struct figure_sum value, truth;
};

struct tissue {
	const char *name; /* NULL: of shapes, known by its attenuation */
	double mu;
	struct pair sum;
	struct figure_sum error;
};

struct measure_breast {
	const struct tomo_object *t;
	const struct measure_list *list;
	/* skin */
	int axis, n[2], bins; /* axis of the image that is x: 0 columns, 1 rows */
	bool flipped;	      /* x runs against it */
	double h[2];
	float *mean, *distance;
	double *truth; /* of each cell */
	unsigned char *air;
	int *nearest, *work;
	struct pair band[2][N_DISTANCES], interior;
	/* tissues */
	struct tissue tissue[TISSUES_MAX];
	size_t n_tissues;
	bool truth_used;
};

static size_t count_cells(const struct measure_breast *b)
{
	return (size_t)b->n[0] * (size_t)b->n[1];
}

int measure_breast_begin(const struct tomo_object *t, const struct measure_list *list, struct measure_breast **ret,
			 struct err *err)
{
	struct measure_breast *b = calloc(1, sizeof(*b));
	const long size[2] = {t->info.columns, t->info.rows};
	size_t n;

	if (!b)
		return err_set(err, ENOMEM, "no memory for a profile of the skin");
	b->t = t;
	b->list = list;
	b->truth_used = list->known && !strcmp(t->units, "/mm");
	/* the nipple is in front: -y of the patient */
	b->axis = fabs(t->across[1]) >= fabs(t->down[1]) ? 0 : 1;
	b->flipped = (b->axis ? t->down : t->across)[1] > 0;
	b->bins = (int)fmax(1, lround(CELL / fmin(t->spacing[0], t->spacing[1])));
	for (int c = 0; c < 2; c++) {
		int from = c ? 1 - b->axis : b->axis;

		b->n[c] = (int)(size[from] / b->bins);
		b->h[c] = b->bins * t->spacing[from];
	}
	n = count_cells(b) + 1;
	b->mean = malloc(n * sizeof(*b->mean));
	b->distance = malloc(n * sizeof(*b->distance));
	b->truth = malloc(n * sizeof(*b->truth));
	b->air = malloc(n);
	b->nearest = malloc(n * sizeof(*b->nearest));
	b->work = malloc(n * sizeof(*b->work));
	*ret = b;
	return b->mean && b->distance && b->truth && b->air && b->nearest && b->work
		       ? 0
		       : err_set(err, ENOMEM, "no memory for a profile of the skin: %d x %d cells", b->n[0], b->n[1]);
}

void measure_breast_free(struct measure_breast *b)
{
	if (!b)
		return;
	free(b->mean);
	free(b->distance);
	free(b->truth);
	free(b->air);
	free(b->nearest);
	free(b->work);
	free(b);
}

/* ---- skin ---- */

/* Convert a place in cells (0: the first cell's beginning) to column and row, 0 at the centre of the first pixel. */
static void pixel_of(const struct measure_breast *b, double x, double y, double ret[2])
{
	long along = b->axis ? b->t->info.rows : b->t->info.columns;

	ret[b->axis] = b->flipped ? (double)along - 0.5 - x * b->bins : x * b->bins - 0.5;
	ret[1 - b->axis] = y * b->bins - 0.5;
}

static double cell_mean(const struct measure_breast *b, int x, int y, const float *values)
{
	double first[2], sum = 0;

	pixel_of(b, b->flipped ? x + 1 : x, y, first);
	for (int j = 0; j < b->bins; j++)
		for (int i = 0; i < b->bins; i++)
			sum += (double)values[(lround(first[1] + 0.5) + j) * b->t->info.columns + lround(first[0] + 0.5) + i];
	return sum / ((double)b->bins * b->bins);
}

/* Average a slice over the cells and mark the air. Return false if the image shows none. */
static bool fill_cells(struct measure_breast *b, long k, const float *values)
{
	for (int y = 0; y < b->n[1]; y++)
		for (int x = 0; x < b->n[0]; x++) {
			size_t i = (size_t)y * (size_t)b->n[0] + (size_t)x;
			double pixel[2], at[3];

			b->mean[i] = (float)cell_mean(b, x, y, values);
			b->truth[i] = NAN;
			if (!b->truth_used)
				continue;
			pixel_of(b, x + 0.5, y + 0.5, pixel);
			measure_place(b->t, b->list, pixel[0], pixel[1], b->t->depth[k], at);
			b->truth[i] = measure_true(b->list, at, NULL);
			b->air[i] = !(b->truth[i] > 0);
		}
	return b->truth_used || skin_air(b->n, b->mean, b->work, b->air) > 0;
}

static void pair_add(struct pair *p, double value, double truth)
{
	figure_add(&p->value, value);
	figure_add(&p->truth, truth);
}

/* Return false in a tissue of shapes inside the outer one, whose bias is not that of the rim. */
static bool is_outer(const struct measure_breast *b, size_t i)
{
	const struct shape *body = b->list->truth.shapes;

	return !b->truth_used || b->list->voxels || fabs(b->truth[i] - body->mu) <= 1e-9;
}

/* Return the direction to the skin at a cell: 0 along x (nipple), 1 along y (side), -1 another. It is that to the nearest air of the
 * cells around, on average, for the outline has steps. */
static int direction_at(const struct measure_breast *b, size_t i)
{
	int x = (int)(i % (size_t)b->n[0]), y = (int)(i / (size_t)b->n[0]);
	double sum[2] = {0}, length;

	for (int yy = y - 2; yy <= y + 2; yy++)
		for (int xx = x - 2; xx <= x + 2; xx++) {
			bool inside = xx >= 0 && xx < b->n[0] && yy >= 0 && yy < b->n[1];
			int nearest = inside ? b->nearest[(size_t)yy * (size_t)b->n[0] + (size_t)xx] : -1;

			if (nearest < 0)
				continue;
			sum[0] += (nearest % b->n[0] - xx) * b->h[0];
			sum[1] += (nearest / b->n[0] - yy) * b->h[1];
		}
	length = hypot(sum[0], sum[1]);
	return sum[0] >= ALONG * length ? 0 : fabs(sum[1]) >= ALONG * length ? 1 : -1;
}

/* Add a cell that is `d` mm from the skin to the profile of its direction. */
static void add_cell(struct measure_breast *b, size_t i, double d, double deep)
{
	double value = (double)b->mean[i];
	int direction = -2; /* not known yet */

	if (d >= deep)
		pair_add(&b->interior, value, b->truth[i]);
	for (size_t k = 0; direction != -1 && k < N_DISTANCES; k++) {
		if (!(fabs(d - distances[k]) <= HALF_BAND))
			continue;
		direction = direction_at(b, i);
		if (direction >= 0)
			pair_add(&b->band[direction][k], value, b->truth[i]);
	}
}

static int add_skin(struct measure_breast *b, long k, const float *values, struct err *err)
{
	double half = (b->h[0] + b->h[1]) / 4, most = 0, deep;
	int rc;

	if (b->n[0] < 1 || b->n[1] < 1 || !fill_cells(b, k, values))
		return 0;
	rc = skin_distance(b->n, b->h, b->air, b->distance, b->nearest, err);
	if (rc < 0 || b->nearest[0] < 0) /* no air: no skin */
		return rc;
	for (size_t i = 0; i < count_cells(b); i++)
		most = fmax(most, (double)b->distance[i]);
	deep = fmin(INTERIOR, INTERIOR_PART * most);
	for (size_t i = 0; i < count_cells(b); i++)
		if (!b->air[i] && is_outer(b, i) && (int)(i % (size_t)b->n[0]) * b->h[0] >= CHEST)
			add_cell(b, i, (double)b->distance[i] - half, deep);
	return 0;
}

/* Return the figures of a mean along the normal. */
static json_t *pair_json(const struct measure_breast *b, const char *name, double distance, const struct pair *p)
{
	bool enough = p->value.n >= CELLS_LEAST;
	double mean = enough ? p->value.mean : NAN;
	json_t *root = json_pack("{s:s, s:o, s:I, s:o, s:o}", "name", name, "distance_mm", measure_number(distance), "cells",
				 (json_int_t)p->value.n, "mean", measure_number(mean), "relative",
				 measure_number(mean / (b->truth_used ? p->truth.mean : b->interior.value.mean)));

	if (b->truth_used && enough)
		measure_put_truth(root, mean, p->truth.mean);
	return root;
}

json_t *measure_breast_skin(const struct measure_breast *b)
{
	json_t *list = json_array();
	char name[32];

	if (!(b->interior.value.n >= CELLS_LEAST && b->interior.value.mean > 0))
		return list;
	for (size_t way = 0; way < 2; way++)
		for (size_t k = 0; k < N_DISTANCES; k++) {
			snprintf(name, sizeof(name), "%s %g mm", directions[way], distances[k]);
			json_array_append_new(list, pair_json(b, name, distances[k], &b->band[way][k]));
		}
	json_array_append_new(list, pair_json(b, "interior", NAN, &b->interior));
	return list;
}

/* ---- tissues ---- */

static bool near_detail(const struct measure_list *list, const double at[3])
{
	for (size_t i = 0; i < list->truth.n; i++) {
		const struct shape *s = &list->truth.shapes[i];
		double q = 0;

		for (int c = 0; c < 3; c++)
			q += pow((at[c] - s->c[c]) / (s->r[c] + PURE), 2);
		if (s->role != ROLE_BODY && q < 1)
			return true;
	}
	return false;
}

/* Return the tissue around a place, added to the list at its first use; NULL: air, or not the same on all sides. */
static struct tissue *tissue_around(struct measure_breast *b, const double at[3])
{
	const char *name, *other;
	double mu = measure_true(b->list, at, &name);

	if (!(mu > 0) || near_detail(b->list, at))
		return NULL;
	for (int side = 0; side < 6; side++) {
		double beside[3] = {at[0], at[1], at[2]}, value;

		beside[side / 2] += side % 2 ? PURE : -PURE;
		value = measure_true(b->list, beside, &other);
		if (name ? other != name : fabs(value - mu) > 1e-9)
			return NULL;
	}
	for (size_t i = 0; i < b->n_tissues; i++)
		if (name ? b->tissue[i].name == name : fabs(b->tissue[i].mu - mu) <= 1e-9)
			return &b->tissue[i];
	if (b->n_tissues == TISSUES_MAX)
		return NULL;
	b->tissue[b->n_tissues].name = name;
	b->tissue[b->n_tissues].mu = mu;
	return &b->tissue[b->n_tissues++];
}

static void add_tissues(struct measure_breast *b, long k, const float *values)
{
	long step[2];

	for (int c = 0; c < 2; c++)
		step[c] = lround(fmax(1, 1 / b->t->spacing[c]));
	for (long row = step[1] / 2; row < b->t->info.rows; row += step[1])
		for (long column = step[0] / 2; column < b->t->info.columns; column += step[0]) {
			double at[3], value = (double)values[row * b->t->info.columns + column], truth;
			struct tissue *tissue;

			measure_place(b->t, b->list, (double)column, (double)row, b->t->depth[k], at);
			tissue = tissue_around(b, at);
			if (!tissue)
				continue;
			truth = measure_true(b->list, at, NULL);
			pair_add(&tissue->sum, value, truth);
			figure_add(&tissue->error, value - truth);
		}
}

json_t *measure_breast_tissues(const struct measure_breast *b)
{
	json_t *list = json_array();

	for (size_t i = 0; i < b->n_tissues; i++) {
		const struct tissue *s = &b->tissue[i];
		char name[32];
		json_t *root;

		if (s->error.n < TISSUE_LEAST)
			continue;
		snprintf(name, sizeof(name), "%g/mm", s->mu);
		root = json_pack("{s:s, s:I, s:f}", "name", s->name ? s->name : name, "samples", (json_int_t)s->error.n, "mean",
				 s->sum.value.mean);
		measure_put_truth(root, s->sum.value.mean, s->sum.truth.mean);
		json_object_set_new(root, "noise", measure_number(figure_sd(&s->error)));
		json_array_append_new(list, root);
	}
	return list;
}

int measure_breast_slice(struct measure_breast *b, long k, const float *values, struct err *err)
{
	const double *depth = b->t->depth;
	long last = b->t->info.frames - 1;
	bool middle = fabs(depth[k] - (depth[0] + depth[last]) / 2) <= MIDDLE * (depth[last] - depth[0]) + 1e-6;

	if (b->truth_used)
		add_tissues(b, k, values);
	return middle && (!b->truth_used || b->list->breast) ? add_skin(b, k, values, err) : 0;
}
