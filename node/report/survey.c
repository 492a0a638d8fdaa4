/* SPDX-License-Identifier: Apache-2.0 */
/* survey.c - see node/report/survey.h. Slices are read twice: for the range and all other figures, then for the histogram. */
#include "node/report/survey.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/order.h"
#include "node/tools/series_window.h"

#define CELL_TOMO 1.0  /* mm */
#define CELL 2.0       /* mm */
#define CELLS_MAX 1024 /* along a side */
#define TIE 1e-3       /* contrasts that differ by less are equal */

static const int distances[] = {2, 4, 8};
#define DISTANCES (int)(sizeof(distances) / sizeof(distances[0]))
#define DIRECTIONS 32

/* The largest contrast of a slice. */
struct detail {
	int at[2];
	double contrast; /* 0: none */
};

/* Cells of one slice. */
struct cells {
	int step[2], n[2]; /* voxels of a cell; number of cells */
	int reach;	   /* largest radius, cells */
	float *value;
};

static int cells_make(const struct image_series *s, double reach, struct cells *c, struct err *err)
{
	double side = s->tomo ? CELL_TOMO : CELL;

	for (int a = 0; a < 2; a++) {
		double step = fmax(round(side / s->spacing[a]), ceil((double)s->n[a] / CELLS_MAX));

		c->step[a] = (int)fmin(fmax(step, 1), s->n[a]);
		c->n[a] = s->n[a] / c->step[a];
	}
	c->reach = (int)fmin(reach / (c->step[0] * s->spacing[0]) + 0.5, CELLS_MAX);
	c->value = malloc((size_t)c->n[0] * (size_t)c->n[1] * sizeof(*c->value));
	return c->value ? 0 : err_set(err, ENOMEM, "no memory for %d x %d cells", c->n[0], c->n[1]);
}

static void cells_fill(struct cells *c, const float *values, int columns)
{
	for (int j = 0; j < c->n[1]; j++)
		for (int i = 0; i < c->n[0]; i++) {
			double sum = 0;

			for (int y = j * c->step[1]; y < (j + 1) * c->step[1]; y++)
				for (int x = i * c->step[0]; x < (i + 1) * c->step[0]; x++)
					sum += values[(size_t)y * (size_t)columns + (size_t)x];
			c->value[(size_t)j * (size_t)c->n[0] + (size_t)i] = (float)(sum / c->step[0] / c->step[1]);
		}
}

/* Compute the contrast of a cell against those at these offsets; all are within the slice. */
static double contrast_at(const float *at, const ptrdiff_t offsets[DIRECTIONS])
{
	double first = (double)*at - at[offsets[0]], least = fabs(first);

	for (int m = 0; m < DIRECTIONS; m++) {
		double difference = (double)*at - at[offsets[m]];

		if (!(difference * first > 0))
			return 0;
		least = fmin(least, fabs(difference));
	}
	return copysign(least, first);
}

/* Find the largest contrast of a slice. */
static void look_at_slice(const struct cells *c, struct detail *ret)
{
	*ret = (struct detail){0};
	for (int k = 0; k < DISTANCES && (k == 0 || distances[k] <= c->reach); k++) {
		ptrdiff_t offsets[DIRECTIONS];
		int d = distances[k];

		for (int m = 0; m < DIRECTIONS; m++)
			offsets[m] = lround(d * cos(2 * M_PI * m / DIRECTIONS)) +
				     lround(d * sin(2 * M_PI * m / DIRECTIONS)) * (ptrdiff_t)c->n[0];
		for (int j = d; j < c->n[1] - d; j++)
			for (int i = d; i < c->n[0] - d; i++) {
				double found = contrast_at(c->value + (size_t)j * (size_t)c->n[0] + (size_t)i, offsets);

				if (fabs(found) > fabs(ret->contrast))
					*ret = (struct detail){{i * c->step[0] + c->step[0] / 2, j * c->step[1] + c->step[1] / 2},
							       found};
			}
	}
}

double survey_noise(const float *values, const int n[2], double above, float *sample)
{
	size_t all = (size_t)n[0] * (size_t)n[1], step = all / (SURVEY_SAMPLE - 1) + 1, found = 0;

	for (size_t i = 1; i < all; i += step)
		if (i % (size_t)n[0] > 0 && values[i] > above && values[i - 1] > above)
			sample[found++] = fabsf(values[i] - values[i - 1]);
	if (found == 0)
		return NAN;
	qsort(sample, found, sizeof(*sample), order_floats);
	return 1.4826 / sqrt(2) * sample[found / 2];
}

/* Compute mean and standard deviation of a slice, and update the range. Return false if a value is not finite. */
static bool add_slice(const float *values, size_t n, int k, struct survey *v)
{
	double sum = 0, squares = 0, mean;
	float lo = values[0], hi = values[0];

	for (size_t i = 0; i < n; i++) {
		sum += values[i];
		lo = values[i] < lo ? values[i] : lo;
		hi = values[i] > hi ? values[i] : hi;
	}
	mean = sum / (double)n;
	for (size_t i = 0; i < n; i++)
		squares += (values[i] - mean) * (values[i] - mean);
	v->slice_mean[k] = mean;
	v->slice_sd[k] = sqrt(squares / (double)n);
	v->lo = k == 0 ? lo : fmin(v->lo, lo);
	v->hi = k == 0 ? hi : fmax(v->hi, hi);
	return isfinite(squares) && isfinite(lo) && isfinite(hi);
}

/* Compute the mean of each image, and choose the one that is displayed. */
static int choose_image(const struct image_series *s, struct survey *v, struct err *err)
{
	size_t n = (size_t)s->n[0] * (size_t)s->n[1];
	const float *values;

	for (int image = 0; s->n_images > 1 && image < s->n_images; image++) {
		double sum = 0;

		for (int k = 0; k < s->n[2]; k++) {
			int rc = image_series_slice(s, image, k, &values, err);

			if (rc < 0)
				return rc;
			for (size_t i = 0; i < n; i++)
				sum += values[i];
		}
		v->image_mean[image] = sum / ((double)n * s->n[2]);
		if (v->image_mean[image] > v->image_mean[v->image])
			v->image = image;
	}
	return 0;
}

static void count_values(const float *values, size_t n, struct survey *v)
{
	double scale = v->hi > v->lo ? (SURVEY_BINS - 1e-6) / (v->hi - v->lo) : 0;

	for (size_t i = 0; i < n; i++)
		v->count[(int)((values[i] - v->lo) * scale)]++;
}

static void total_slices(const struct image_series *s, struct survey *v)
{
	double sum = 0, squares = 0;

	for (int k = 0; k < s->n[2]; k++) {
		sum += v->slice_mean[k];
		squares += v->slice_sd[k] * v->slice_sd[k] + v->slice_mean[k] * v->slice_mean[k];
	}
	v->mean = sum / s->n[2];
	v->sd = sqrt(fmax(squares / s->n[2] - v->mean * v->mean, 0));
	if (s->n_images == 1)
		v->image_mean[0] = v->mean;
}

/* Return the median noise of the slices that have one; 0: none has. sorted: memory. */
static double median_noise(const struct image_series *s, const struct survey *v, double *sorted)
{
	size_t n = 0;

	for (int k = 0; k < s->n[2]; k++)
		if (v->slice_noise[k] > 0)
			sorted[n++] = v->slice_noise[k];
	qsort(sorted, n, sizeof(*sorted), order_doubles);
	return n ? sorted[n / 2] : 0;
}

/* Choose among the details of all slices. */
static void choose_detail(const struct image_series *s, const struct detail *details, double *memory, struct survey *v)
{
	double usual = median_noise(s, v, memory), middle = (s->n[2] - 1) / 2.0, best = 0;

	for (int k = 0; k < s->n[2]; k++) {
		double noise = usual > 0 ? fmax(usual, v->slice_noise[k]) : 1, found = fabs(details[k].contrast) / noise;
		bool nearer = best > 0 && fabs(k - middle) < fabs(v->at[2] - middle);

		if (!(found > 0) || !(found > best * (nearer ? 1 - TIE : 1 + TIE)))
			continue;
		best = found;
		v->contrast = details[k].contrast;
		v->at[0] = details[k].at[0];
		v->at[1] = details[k].at[1];
		v->at[2] = k;
	}
}

#define FAR 8 /* cells: the largest of the distances; the region of a contrast ends within its circle */

/* Is a cell of a slice beyond half of the contrast? */
static bool is_beyond(const struct survey *v, double level, double value)
{
	return v->contrast > 0 ? value > level : value < level;
}

/* Move the column and row of a detail to the middle of the connected cells of its slice that are beyond half of its contrast.
 * ret_cell: the index of the cell there. */
static double centre_in_slice(const struct cells *c, struct survey *v, size_t *ret_cell)
{
	bool in[2 * FAR + 1][2 * FAR + 1] = {{false}}, grew = true;
	int x0 = v->at[0] / c->step[0] - FAR, y0 = v->at[1] / c->step[1] - FAR, n = 0, sum[2] = {0}, cell[2];
	double level = (double)c->value[(size_t)(y0 + FAR) * (size_t)c->n[0] + (size_t)(x0 + FAR)] - v->contrast / 2;

	in[FAR][FAR] = true;
	while (grew) {
		grew = false;
		for (int y = 0; y <= 2 * FAR; y++)
			for (int x = 0; x <= 2 * FAR; x++) {
				bool beside = (y > 0 && in[y - 1][x]) || (y < 2 * FAR && in[y + 1][x]) ||
					      (x > 0 && in[y][x - 1]) || (x < 2 * FAR && in[y][x + 1]);

				if (in[y][x] || !beside || x0 + x < 0 || x0 + x >= c->n[0] || y0 + y < 0 || y0 + y >= c->n[1] ||
				    !is_beyond(v, level, (double)c->value[(size_t)(y0 + y) * (size_t)c->n[0] + (size_t)(x0 + x)]))
					continue;
				in[y][x] = grew = true;
			}
	}
	for (int y = 0; y <= 2 * FAR; y++)
		for (int x = 0; x <= 2 * FAR; x++) {
			n += in[y][x];
			sum[0] += in[y][x] * x;
			sum[1] += in[y][x] * y;
		}
	for (int a = 0; a < 2; a++)
		cell[a] = (int)lround((double)sum[a] / n);
	if (!in[cell[1]][cell[0]]) /* a crescent */
		cell[0] = cell[1] = FAR;
	cell[0] += x0;
	cell[1] += y0;
	for (int a = 0; a < 2; a++)
		v->at[a] = cell[a] * c->step[a] + c->step[a] / 2;
	*ret_cell = (size_t)cell[1] * (size_t)c->n[0] + (size_t)cell[0];
	return level;
}

/* The largest contrast may be at the rim of what stands out, by noise or ringing: move its place to the middle, so that planes
 * pass through it. A detail that is longer along the axis than across keeps its slice. */
static int centre_detail(const struct image_series *s, struct cells *c, struct survey *v, struct err *err)
{
	int first = v->at[2], end[2] = {first, first}, most = (int)ceil(FAR * c->step[0] * s->spacing[0] / s->spacing[2]);
	const float *values;
	double level = 0;
	size_t cell = 0;
	int rc = isfinite(v->contrast) ? image_series_slice(s, v->image, first, &values, err) : -ENODATA;

	if (rc < 0)
		return rc == -ENODATA ? 0 : rc;
	cells_fill(c, values, s->n[0]);
	level = centre_in_slice(c, v, &cell);
	for (int way = 0; way < 2; way++)
		for (int k = first + 2 * way - 1; k >= 0 && k < s->n[2]; k += 2 * way - 1) {
			rc = image_series_slice(s, v->image, k, &values, err);
			if (rc < 0)
				return rc;
			cells_fill(c, values, s->n[0]);
			if (!is_beyond(v, level, (double)c->value[cell]))
				break;
			if (abs(k - first) > most)
				return 0;
			end[way] = k;
		}
	v->at[2] = (end[0] + end[1]) / 2;
	return 0;
}

/* Memory for the survey. */
struct room {
	struct cells cells;
	struct detail *details; /* [slice] */
	double *sorted;		/* [slice] */
	float *sample;
};

static int read_all(const struct image_series *s, struct room *room, struct survey *v, struct err *err)
{
	size_t n = (size_t)s->n[0] * (size_t)s->n[1];
	const float *values;
	int rc = choose_image(s, v, err);

	for (int k = 0; rc == 0 && k < s->n[2]; k++) {
		rc = image_series_slice(s, v->image, k, &values, err);
		if (rc == 0 && !add_slice(values, n, k, v))
			rc = err_set(err, EBADMSG, "slice %d has a value that is not finite", k + 1);
		if (rc < 0)
			break;
		v->slice_noise[k] = survey_noise(values, s->n, v->slice_mean[k], room->sample);
		cells_fill(&room->cells, values, s->n[0]);
		look_at_slice(&room->cells, &room->details[k]);
	}
	for (int k = 0; rc == 0 && k < s->n[2]; k++) {
		rc = image_series_slice(s, v->image, k, &values, err);
		if (rc == 0)
			count_values(values, n, v);
	}
	if (rc < 0)
		return rc;
	choose_detail(s, room->details, room->sorted, v);
	total_slices(s, v);
	return centre_detail(s, &room->cells, v, err);
}

int survey_make(const struct image_series *s, double reach, struct survey *ret_survey, struct err *err)
{
	struct survey v = {.contrast = NAN, .at = {s->n[0] / 2, s->n[1] / 2, s->n[2] / 2}};
	struct room room = {.sample = malloc(SURVEY_SAMPLE * sizeof(*room.sample))};
	int rc;

	v.slice_mean = calloc((size_t)s->n[2], sizeof(double));
	v.slice_sd = calloc((size_t)s->n[2], sizeof(double));
	v.slice_noise = calloc((size_t)s->n[2], sizeof(double));
	v.image_mean = calloc((size_t)s->n_images, sizeof(double));
	room.details = calloc((size_t)s->n[2], sizeof(*room.details));
	room.sorted = calloc((size_t)s->n[2], sizeof(double));
	if (!room.sample || !room.details || !room.sorted || !v.slice_mean || !v.slice_sd || !v.slice_noise || !v.image_mean)
		rc = err_set(err, ENOMEM, "no memory for the figures of %d slices", s->n[2]);
	else
		rc = cells_make(s, reach, &room.cells, err);
	if (rc == 0)
		rc = read_all(s, &room, &v, err);
	free(room.cells.value);
	free(room.details);
	free(room.sorted);
	free(room.sample);
	if (rc < 0)
		survey_clear(&v);
	else
		*ret_survey = v;
	return rc;
}

void survey_clear(struct survey *v)
{
	free(v->slice_mean);
	free(v->slice_sd);
	free(v->slice_noise);
	free(v->image_mean);
	*v = (struct survey){0};
}

double survey_quantile(const struct survey *v, double fraction)
{
	uint64_t all = 0, below = 0;
	int i = 0;

	for (int b = 0; b < SURVEY_BINS; b++)
		all += v->count[b];
	while (i < SURVEY_BINS - 1 && (double)(below + v->count[i]) < fraction * (double)all)
		below += v->count[i++];
	return v->lo + (v->hi - v->lo) * (i + 1) / SURVEY_BINS;
}

double survey_object_level(const struct image_series *s, const struct survey *v)
{
	double air = strcmp(s->units, "HU") ? 0 : -1000, width = (v->hi - v->lo) / SURVEY_BINS, all = 0, below = 0;

	if ((s->tomo && s->tomo->padding >= 0) || !(v->hi > v->lo))
		return -INFINITY;
	for (int b = 0; b < SURVEY_BINS; b++) {
		all += (double)v->count[b];
		below += v->lo + (b + 1) * width <= v->mean ? (double)v->count[b] : 0;
	}
	return air + (survey_quantile(v, (1 + below / all) / 2) - air) / 2;
}

int survey_window(const struct image_series *s, const struct survey *v, struct picture_levels *ret_window,
		  const char **ret_source, struct err *err)
{
	struct picture_levels w = {0};
	int rc = 0;

	if (isfinite(s->window[0]) && s->window[1] > s->window[0]) {
		w = (struct picture_levels){s->window[0], s->window[1], false};
		*ret_source = "the window of the object";
	} else if (!s->ct && !s->tomo) {
		w.inverse = true;
		*ret_source = "from 0 to " SERIES_WINDOW_TEXT "; high values are dark";
		rc = series_window_top(s, v->image, &w.hi, err);
	} else {
		w = (struct picture_levels){survey_quantile(v, 0.02), survey_quantile(v, 0.998), false};
		*ret_source = "without the lowest 2 % and the highest 0.2 % of the voxels";
	}
	if (!(w.hi > w.lo))
		w.hi = w.lo + fmax(fabs(w.lo), 1) * 1e-3;
	*ret_window = w;
	return rc;
}
