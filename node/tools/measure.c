/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c - collect the data for all figures in one pass over the slices: sums over regions, windows around points. */
#include "node/tools/measure.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "node/tools/measure_internal.h"
#include "recon/core/figures.h"
#include "recon/dbt/bead.h"

#define ROI_PART 0.7  /* fraction of a region's half axes */
#define RING_FROM 2.0 /* beginning of the ring around a region, mm */
#define RING_TO 6.0
#define CLEAR_OF 1.0	 /* distance between the background and another detail, mm */
#define WINDOW 3.0	 /* half width of the window around a point, for profiles, mm */
#define SEARCH 1.5	 /* radius of the search for a point in a slice, mm */
#define SEARCH_DEPTH 5.0 /* mm */
#define PIXELS_LEAST 10	 /* smallest number of pixels of a background, or of a true mean */
#define EDGE_BINS 60	 /* of the distance from an edge, at most, */
#define EDGE_STEP 0.1	 /* mm each, at least EDGE_PART of a pixel */
#define EDGE_PART 0.25
#define EDGE_LEAST 20 /* bins, so that a profile has both levels */
#define FAR_APART 5.0 /* points closer than this give no distance, mm */

struct pixel {
	int column, row;
};

/* Data that are collected for one item. */
struct kept {
	const struct measure_item *item;
	long slice; /* the slice nearest to the item */
	/* region */
	struct pixel *inside, *around;
	size_t n_inside, n_around;
	struct figure_sum *in, *out; /* per slice */
	double truth[2];	     /* true means of inside and around; NaN: not known */
	struct figure_sum *edge[2];  /* of an ellipsoid of the truth, in its slice: by the distance from its edge along x and y */
	double edge_step;	     /* mm */
	int edge_bins;
	/* point: a window of all slices */
	int column, row, half[2];
	float *window;
	/* results of a point */
	double place[3], width[3], peak, level, noise; /* column, row, depth; mm */
	bool sharp;				       /* it has an MTF50: its size is known, and nothing else is around it */
	double mtf50[2];			       /* along columns and rows, 1/mm */
	double *spread;				       /* height above the background in each slice */
	bool found;
};

static long nearest_slice(const struct tomo_object *t, double depth)
{
	long best = 0;

	for (long k = 1; k < t->info.frames; k++)
		if (fabs(t->depth[k] - depth) < fabs(t->depth[best] - depth))
			best = k;
	return best;
}

/* Return the tissue at a point, ignoring details. */
static double tissue_at(const struct phantom *truth, const double at[3])
{
	double mu = 0;

	for (size_t i = 0; i < truth->n; i++) {
		struct phantom one = {.n = 1, .shapes = &truth->shapes[i]};

		if (truth->shapes[i].role == ROLE_BODY)
			mu += phantom_value(&one, at);
	}
	return mu;
}

/* Return true if the projection of another detail along z is close to the pixel. */
static bool near_another(const struct tomo_object *t, const struct measure_list *list, const struct measure_item *self,
			 int column, int row)
{
	for (size_t i = 0; i < list->n; i++) {
		const struct measure_item *other = &list->items[i];
		double x = (column - other->at[0]) * t->spacing[0] / (other->radius[0] + CLEAR_OF);
		double y = (row - other->at[1]) * t->spacing[1] / (other->radius[1] + CLEAR_OF);

		if (other != self && x * x + y * y < 1)
			return true;
	}
	return false;
}

static bool is_background(const struct tomo_object *t, const struct measure_list *list, const struct measure_item *item,
			  int column, int row, double own_tissue)
{
	double dx = (column - item->at[0]) * t->spacing[0], dy = (row - item->at[1]) * t->spacing[1], at[3];
	double from = hypot(dx / (item->radius[0] + RING_FROM), dy / (item->radius[1] + RING_FROM));
	double to = hypot(dx / (item->radius[0] + RING_TO), dy / (item->radius[1] + RING_TO));

	if (item->has_background)
		return hypot((column - item->background[0]) * t->spacing[0], (row - item->background[1]) * t->spacing[1]) <=
		       item->background[2];
	if (from < 1 || to > 1 || near_another(t, list, item, column, row))
		return false;
	if (!item->in_truth)
		return true;
	measure_place(t, list, column, row, item->at[2], at);
	return fabs(tissue_at(&list->truth, at) - own_tissue) < 1e-9;
}

static int add_pixel(struct pixel **list, size_t *n, int column, int row, struct err *err)
{
	if ((*n & (*n - 1)) == 0) { /* n is a power of two: the array is full */
		struct pixel *more = realloc(*list, (*n ? 2 * *n : 64) * sizeof(*more));

		if (!more)
			return err_set(err, ENOMEM, "no memory for %zu pixels", 2 * *n);
		*list = more;
	}
	(*list)[(*n)++] = (struct pixel){column, row};
	return 0;
}

static int outline_detail(const struct tomo_object *t, const struct measure_list *list, struct kept *k, struct err *err)
{
	const struct measure_item *item = k->item;
	double reach[2] = {item->radius[0] + RING_TO, item->radius[1] + RING_TO}, own = tissue_at(&list->truth, item->center);
	int lo[2], hi[2], r = 0;

	for (int c = 0; c < 2; c++) {
		double at = item->at[c], far = reach[c] / t->spacing[c];
		double first = item->has_background ? fmin(at - far, item->background[c] - item->background[2] / t->spacing[c])
						    : at - far;
		double last = item->has_background ? fmax(at + far, item->background[c] + item->background[2] / t->spacing[c])
						   : at + far;

		lo[c] = (int)fmax(0, ceil(first));
		hi[c] = (int)fmin((double)(c ? t->info.rows : t->info.columns) - 1, floor(last));
	}
	for (int row = lo[1]; r == 0 && row <= hi[1]; row++)
		for (int column = lo[0]; r == 0 && column <= hi[0]; column++) {
			double x = (column - item->at[0]) * t->spacing[0] / (ROI_PART * item->radius[0]);
			double y = (row - item->at[1]) * t->spacing[1] / (ROI_PART * item->radius[1]);

			if (x * x + y * y <= 1)
				r = add_pixel(&k->inside, &k->n_inside, column, row, err);
			else if (is_background(t, list, item, column, row, own))
				r = add_pixel(&k->around, &k->n_around, column, row, err);
		}
	return r;
}

/* Return the true mean over pixels of the item's slice. */
static double true_mean(const struct tomo_object *t, const struct measure_list *list, const struct pixel *pixels, size_t n,
			long slice)
{
	double sum = 0, at[3];

	for (size_t i = 0; i < n; i++) {
		measure_place(t, list, pixels[i].column, pixels[i].row, t->depth[slice], at);
		sum += measure_true(list, at, NULL);
	}
	return list->known && !strcmp(t->units, "/mm") && n >= PIXELS_LEAST ? sum / (double)n : NAN;
}

/* Prepare the profile of the edge of an ellipsoid, if it is large enough; the profile does not reach its middle. */
static int prepare_edge(const struct tomo_object *t, struct kept *k, struct err *err)
{
	double pixel = fmax(t->spacing[0], t->spacing[1]), least = fmin(k->item->radius[0], k->item->radius[1]);

	k->edge_step = fmax(EDGE_STEP, EDGE_PART * pixel);
	k->edge_bins = 2 * (int)fmin(EDGE_BINS / 2, (least - 2 * pixel) / k->edge_step);
	if (!k->sharp || k->edge_bins < EDGE_LEAST)
		return 0;
	for (int c = 0; c < 2; c++)
		k->edge[c] = calloc((size_t)k->edge_bins, sizeof(*k->edge[c]));
	return k->edge[0] && k->edge[1] ? 0 : err_set(err, ENOMEM, "no memory for an edge of %d bins", k->edge_bins);
}

static int prepare_item(const struct tomo_object *t, const struct measure_list *list, struct kept *k, struct err *err)
{
	size_t frames = (size_t)t->info.frames;
	int r;

	k->slice = nearest_slice(t, k->item->at[2]);
	k->sharp = list->known && !list->voxels && k->item->in_truth;
	if (!(k->item->at[0] > -0.5 && k->item->at[0] < (double)t->info.columns - 0.5 && k->item->at[1] > -0.5 &&
	      k->item->at[1] < (double)t->info.rows - 0.5))
		return err_set(err, EBADMSG, "%s is outside the image: column %.1f of %ld, row %.1f of %ld", k->item->name,
			       k->item->at[0], t->info.columns, k->item->at[1], t->info.rows);
	k->spread = calloc(frames, sizeof(*k->spread));
	if (!k->spread)
		return err_set(err, ENOMEM, "no memory for a profile of %zu slices", frames);
	if (!k->item->point) {
		k->in = calloc(frames, sizeof(*k->in));
		k->out = calloc(frames, sizeof(*k->out));
		if (!k->in || !k->out)
			return err_set(err, ENOMEM, "no memory for %zu slices", frames);
		r = outline_detail(t, list, k, err);
		if (r < 0)
			return r;
		r = prepare_edge(t, k, err);
		if (r < 0)
			return r;
		k->truth[0] = true_mean(t, list, k->inside, k->n_inside, k->slice);
		k->truth[1] = true_mean(t, list, k->around, k->n_around, k->slice);
		return 0;
	}
	k->column = (int)lround(k->item->at[0]);
	k->row = (int)lround(k->item->at[1]);
	for (int c = 0; c < 2; c++)
		k->half[c] = (int)ceil((WINDOW + SEARCH) / t->spacing[c]) + 1;
	k->window = calloc(frames * (size_t)(2 * k->half[0] + 1) * (size_t)(2 * k->half[1] + 1), sizeof(*k->window));
	return k->window ? 0 : err_set(err, ENOMEM, "no memory for a window of %zu slices", frames);
}

static float *window_at(const struct kept *k, long slice, int dx, int dy)
{
	size_t wide = (size_t)(2 * k->half[0] + 1), high = (size_t)(2 * k->half[1] + 1);

	return k->window + ((size_t)slice * high + (size_t)(dy + k->half[1])) * wide + (size_t)(dx + k->half[0]);
}

/* Add the pixels around an ellipsoid, those within 45 degrees of an axis, to the profile of its edge along that axis. */
static void add_edge(const struct tomo_object *t, struct kept *k, const float *values)
{
	const double *at = k->item->at, *r = k->item->radius;
	double reach = k->edge_bins / 2 * k->edge_step;

	for (long row = 0; row < t->info.rows; row++)
		for (long column = 0; column < t->info.columns; column++) {
			double x = ((double)column - at[0]) * t->spacing[0], y = ((double)row - at[1]) * t->spacing[1];
			double from = hypot(x, y), away = from - from / hypot(x / r[0], y / r[1]);

			if (from > 0 && fabs(away) < reach)
				figure_add(&k->edge[fabs(y) > fabs(x)][(int)((away + reach) / k->edge_step)],
					   (double)values[row * t->info.columns + column]);
		}
}

/* Return MTF50 of an edge: the derivative of its profile is the line spread. */
static double edge_mtf50(const struct kept *k, int axis)
{
	double x[EDGE_BINS - 1], v[EDGE_BINS - 1];

	for (int i = 0; i < k->edge_bins - 1; i++) {
		const struct figure_sum *s = &k->edge[axis][i];

		x[i] = i * k->edge_step;
		v[i] = s[0].n && s[1].n ? s[0].mean - s[1].mean : NAN;
	}
	return figure_mtf50(x, v, (size_t)k->edge_bins - 1, 0);
}

static void measure_slice(const struct tomo_object *t, struct kept *k, long slice, const float *values)
{
	size_t columns = (size_t)t->info.columns;

	if (k->edge[0] && slice == k->slice)
		add_edge(t, k, values);
	for (size_t i = 0; i < k->n_inside; i++)
		figure_add(&k->in[slice], values[(size_t)k->inside[i].row * columns + (size_t)k->inside[i].column]);
	for (size_t i = 0; i < k->n_around; i++)
		figure_add(&k->out[slice], values[(size_t)k->around[i].row * columns + (size_t)k->around[i].column]);
	for (int dy = -k->half[1]; k->window && dy <= k->half[1]; dy++)
		for (int dx = -k->half[0]; dx <= k->half[0]; dx++) {
			long column = k->column + dx, row = k->row + dy;
			bool inside = column >= 0 && column < t->info.columns && row >= 0 && row < t->info.rows;

			*window_at(k, slice, dx, dy) = inside ? values[(size_t)row * columns + (size_t)column] : NAN;
		}
}

/* Collect samples through (dx, dy, slice) along columns (0) or rows (1), without those outside the image; return their number. */
static size_t sample_profile(const struct tomo_object *t, const struct kept *k, const int top[2], long slice, int axis, double *x,
			     double *v)
{
	size_t n = 0;

	for (int d = -(int)(WINDOW / t->spacing[axis]); d <= (int)(WINDOW / t->spacing[axis]); d++) {
		int dx = axis == 0 ? top[0] + d : top[0], dy = axis == 1 ? top[1] + d : top[1];
		float value = *window_at(k, slice, dx, dy);

		if (isnan(value))
			continue;
		x[n] = (axis == 0 ? k->column + dx : k->row + dy) * t->spacing[axis];
		v[n++] = value;
	}
	return n;
}

/* Compute noise and level at the rim of the window in a slice: farther than WINDOW / 2 from the point. */
static void measure_rim(const struct tomo_object *t, struct kept *k, const int top[2], long slice)
{
	struct figure_sum sum = {0};

	for (int dy = -k->half[1]; dy <= k->half[1]; dy++)
		for (int dx = -k->half[0]; dx <= k->half[0]; dx++) {
			float value = *window_at(k, slice, dx, dy);

			if (!isnan(value) && hypot((dx - top[0]) * t->spacing[0], (dy - top[1]) * t->spacing[1]) > WINDOW / 2)
				figure_add(&sum, value);
		}
	k->level = sum.mean;
	k->noise = figure_sd(&sum);
}

/* Return the width of the profile through the highest voxel along columns (0) or rows (1); NaN: a Gaussian cannot be fitted. */
static double width_in_plane(const struct tomo_object *t, const struct kept *k, const int top[2], long slice, int axis, double *x,
			     double *v)
{
	struct figure_peak p;
	size_t n = sample_profile(t, k, top, slice, axis, x, v);

	return figure_fit_peak(x, v, n, &p, NULL) < 0 ? NAN : figure_fwhm(&p);
}

/* Compute MTF50 along columns (0) or rows (1) from the bead's line spread: sums across the axis, above the level around. */
static double sharpness_in_plane(const struct tomo_object *t, const struct kept *k, const int top[2], long slice, int axis,
				 double *x, double *v)
{
	int reach = (int)(WINDOW / t->spacing[axis]), across = (int)(WINDOW / 2 / t->spacing[1 - axis]), n = 0;

	for (int d = -reach; d <= reach; d++) {
		double sum = 0;

		for (int e = -across; e <= across; e++)
			sum += (double)*window_at(k, slice, top[0] + (axis ? e : d), top[1] + (axis ? d : e)) - k->level;
		x[n] = d * t->spacing[axis];
		v[n++] = sum;
	}
	return figure_mtf50(x, v, (size_t)n, k->item->radius[axis]);
}

/* Determine position and width in depth from the profile over depth (recon/dbt/bead.h). */
static int locate_depth(const struct tomo_object *t, struct kept *k, const int top[2], long slice, struct err *err)
{
	struct bead_window w = {.n = {2 * k->half[0] + 1, 2 * k->half[1] + 1, (int)t->info.frames},
				.h = {t->spacing[0], t->spacing[1]},
				.depth = t->depth,
				.values = k->window};
	int from[3] = {top[0] + k->half[0], top[1] + k->half[1], (int)slice}, r;
	struct bead bead;

	r = bead_locate(&w, from, k->item->radius[0], &bead, k->spread, err);
	if (r == -ENODATA) {
		k->found = false;
		return 0;
	}
	if (r < 0)
		return r;
	k->place[0] = k->column - k->half[0] + bead.at[0] / t->spacing[0];
	k->place[1] = k->row - k->half[1] + bead.at[1] / t->spacing[1];
	k->place[2] = bead.at[2];
	k->width[2] = bead.fwhm;
	return 0;
}

static int find_point(const struct tomo_object *t, struct kept *k, struct err *err)
{
	int reach[2] = {(int)(SEARCH / t->spacing[0]), (int)(SEARCH / t->spacing[1])}, top[2] = {0, 0};
	size_t most = (size_t)t->info.frames + 2 * (size_t)(WINDOW / fmin(t->spacing[0], t->spacing[1])) + 8;
	double *x = malloc(most * sizeof(*x)), *v = malloc(most * sizeof(*v)), best = -INFINITY;
	long slice = k->slice;
	int r;

	if (!x || !v) {
		free(x);
		free(v);
		return err_set(err, ENOMEM, "no memory for a profile");
	}
	for (long s = 0; s < t->info.frames; s++)
		for (int dy = -reach[1]; fabs(t->depth[s] - k->item->at[2]) <= SEARCH_DEPTH && dy <= reach[1]; dy++)
			for (int dx = -reach[0]; dx <= reach[0]; dx++)
				if (*window_at(k, s, dx, dy) > best) { /* false for NaN */
					best = *window_at(k, s, dx, dy);
					top[0] = dx;
					top[1] = dy;
					slice = s;
				}
	k->found = isfinite(best);
	k->peak = best;
	for (int axis = 0; axis < 2 && k->found; axis++) {
		k->width[axis] = width_in_plane(t, k, top, slice, axis, x, v);
		k->found = !isnan(k->width[axis]);
	}
	r = k->found ? locate_depth(t, k, top, slice, err) : 0;
	measure_rim(t, k, top, slice);
	for (int axis = 0; axis < 2 && k->found && k->sharp; axis++)
		k->mtf50[axis] = sharpness_in_plane(t, k, top, slice, axis, x, v);
	free(x);
	free(v);
	return r;
}

json_t *measure_number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

void measure_put_truth(json_t *root, double mean, double truth)
{
	json_object_set_new(root, "true", measure_number(truth));
	json_object_set_new(root, "bias", measure_number(mean - truth));
	json_object_set_new(root, "bias_percent", measure_number(100 * (mean - truth) / truth));
}

static json_t *three_json(double a, double b, double c)
{
	json_t *array = json_array();

	json_array_append_new(array, measure_number(a));
	json_array_append_new(array, measure_number(b));
	json_array_append_new(array, measure_number(c));
	return array;
}

/* Compute the artefact spread function, and its width, from m_F - m_B in each slice; z0 is the slice `focus`. It covers the
 * slices on either side for which the values are known. */
static void put_asf(json_t *root, const struct tomo_object *t, const double *difference, long focus)
{
	double *asf = calloc((size_t)t->info.frames, sizeof(*asf)), width = NAN;
	long first = focus, end = focus + 1;
	json_t *curve = json_array();

	while (first > 0 && isfinite(difference[first - 1]))
		first--;
	while (end < t->info.frames && isfinite(difference[end]))
		end++;
	for (long s = first; asf && s < end; s++) {
		asf[s] = fabs(difference[s]) / fabs(difference[focus]);
		json_array_append_new(curve,
				      json_pack("[o, o]", measure_number(t->depth[s] - t->depth[focus]), measure_number(asf[s])));
	}
	if (asf)
		width = figure_half_width(t->depth + first, asf + first, (size_t)(end - first), (size_t)(focus - first));
	json_object_set_new(root, "asf_fwhm_mm", measure_number(width));
	json_object_set_new(root, "asf", curve);
	free(asf);
}

static json_t *region_json(const struct tomo_object *t, const struct kept *k)
{
	const struct figure_sum *in = &k->in[k->slice], *out = &k->out[k->slice];
	double difference = in->mean - out->mean, sd = figure_sd(out);
	json_t *root = json_pack("{s:s, s:o, s:I, s:f, s:f, s:I, s:f, s:f, s:I}", "name", k->item->name, "at",
				 three_json(k->item->at[0], k->item->at[1], k->item->at[2]), "slice", (json_int_t)k->slice,
				 "mean", in->mean, "sd", figure_sd(in), "pixels", (json_int_t)in->n, "background", out->mean,
				 "background_sd", sd, "background_pixels", (json_int_t)out->n);

	json_object_set_new(root, "cnr", measure_number(difference / sd));
	json_object_set_new(root, "contrast", measure_number(difference / out->mean));
	json_object_set_new(root, "cv", measure_number(sd / out->mean));
	if (isfinite(k->truth[0])) {
		measure_put_truth(root, in->mean, k->truth[0]);
		json_object_set_new(root, "true_background", measure_number(k->truth[1]));
		json_object_set_new(root, "true_contrast", measure_number((k->truth[0] - k->truth[1]) / k->truth[1]));
	}
	if (k->edge[0])
		json_object_set_new(root, "mtf50_per_mm",
				    json_pack("[o, o]", measure_number(edge_mtf50(k, 0)), measure_number(edge_mtf50(k, 1))));
	for (long s = 0; s < t->info.frames; s++)
		k->spread[s] = k->in[s].mean - k->out[s].mean;
	put_asf(root, t, k->spread, k->slice);
	return root;
}

static json_t *point_json(const struct tomo_object *t, const struct kept *k)
{
	json_t *root = json_pack("{s:s, s:b, s:o}", "name", k->item->name, "found", k->found, "expected",
				 three_json(k->item->at[0], k->item->at[1], k->item->at[2]));

	if (!k->found)
		return root;
	json_object_set_new(root, "at", three_json(k->place[0], k->place[1], k->place[2]));
	json_object_set_new(root, "error_mm",
			    three_json((k->place[0] - k->item->at[0]) * t->spacing[0],
				       (k->place[1] - k->item->at[1]) * t->spacing[1], k->place[2] - k->item->at[2]));
	json_object_set_new(root, "fwhm_mm", three_json(k->width[0], k->width[1], k->width[2]));
	if (k->sharp)
		json_object_set_new(root, "mtf50_per_mm",
				    json_pack("[o, o]", measure_number(k->mtf50[0]), measure_number(k->mtf50[1])));
	json_object_set_new(root, "peak", measure_number(k->peak));
	json_object_set_new(root, "background", measure_number(k->level));
	json_object_set_new(root, "snr", measure_number((k->peak - k->level) / k->noise));
	json_object_set_new(root, "contrast", measure_number((k->peak - k->level) / k->level));
	put_asf(root, t, k->spread, nearest_slice(t, k->place[2]));
	return root;
}

struct distance {
	double truth, measured;
};

/* Return the distance between two points, over the first `axes` of columns, rows and depth. */
static struct distance distance_between(const struct tomo_object *t, const struct kept *a, const struct kept *b, int axes)
{
	const double unit[3] = {t->spacing[0], t->spacing[1], 1};
	struct distance d = {0};

	for (int c = 0; c < axes; c++) {
		double truth = (a->item->at[c] - b->item->at[c]) * unit[c], measured = (a->place[c] - b->place[c]) * unit[c];

		d.truth += truth * truth;
		d.measured += measured * measured;
	}
	return (struct distance){sqrt(d.truth), sqrt(d.measured)};
}

static json_t *distance_json(const char *from, const char *to, struct distance d)
{
	json_t *root = json_object();

	if (from)
		json_object_set_new(root, "from", json_string(from));
	if (to)
		json_object_set_new(root, "to", json_string(to));
	json_object_set_new(root, "truth_mm", measure_number(d.truth));
	json_object_set_new(root, "measured_mm", measure_number(d.measured));
	json_object_set_new(root, "error_percent", measure_number(100 * (d.measured - d.truth) / d.truth));
	return root;
}

static json_t *distances_json(const struct tomo_object *t, const struct kept *kept, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		for (size_t j = i + 1; j < n; j++) {
			const struct kept *a = &kept[i], *b = &kept[j];
			struct distance d, plane;
			json_t *one;

			if (!a->item->point || !b->item->point || !a->found || !b->found)
				continue;
			d = distance_between(t, a, b, 3);
			if (!(d.truth >= FAR_APART))
				continue;
			plane = distance_between(t, a, b, 2);
			if (!a->item->in_truth ||
			    !b->item->in_truth) /* the position given by the caller is not the true position */
				d.truth = plane.truth = NAN;
			one = distance_json(a->item->name, b->item->name, d);
			json_object_set_new(one, "in_plane", distance_json(NULL, NULL, plane));
			json_array_append_new(list, one);
		}
	return list;
}

static json_t *object_json(const struct tomo_object *t)
{
	return json_pack("{s:s, s:s, s:[I, I, I], s:[f, f], s:f, s:s}", "sop_instance", t->sop_instance, "frame_of_reference",
			 t->frame_of_reference, "size", (json_int_t)t->info.columns, (json_int_t)t->info.rows,
			 (json_int_t)t->info.frames, "spacing_mm", t->spacing[0], t->spacing[1], "depth_mm",
			 t->depth[t->info.frames - 1] - t->depth[0], "units", t->units);
}

int measure_run(struct tomo_object *object, const struct measure_list *list, json_t **ret_result, struct err *err)
{
	struct kept *kept = calloc(list->n + 1, sizeof(*kept));
	float *slice = malloc((size_t)object->info.rows * (size_t)object->info.columns * sizeof(*slice));
	json_t *regions = json_array(), *points = json_array();
	struct measure_breast *breast = NULL;
	int r = kept && slice ? 0 : err_set(err, ENOMEM, "no memory for a slice");

	for (size_t i = 0; r == 0 && i < list->n; i++) {
		kept[i].item = &list->items[i];
		r = prepare_item(object, list, &kept[i], err);
	}
	r = r == 0 ? measure_breast_begin(object, list, &breast, err) : r;
	for (long k = 0; r == 0 && k < object->info.frames; k++) {
		r = tomo_object_slice(object, k, slice, err);
		r = r == 0 ? measure_breast_slice(breast, k, slice, err) : r;
		for (size_t i = 0; r == 0 && i < list->n; i++)
			measure_slice(object, &kept[i], k, slice);
	}
	for (size_t i = 0; r == 0 && i < list->n; i++) {
		if (kept[i].item->point) {
			r = find_point(object, &kept[i], err);
			json_array_append_new(points, point_json(object, &kept[i]));
		} else if (kept[i].n_inside > 0 && kept[i].n_around >= PIXELS_LEAST) {
			json_array_append_new(regions, region_json(object, &kept[i]));
		} else {
			json_array_append_new(regions, json_pack("{s:s, s:s}", "name", kept[i].item->name, "left_out",
								 kept[i].n_inside ? "too few background pixels of the same tissue"
										  : "smaller than a pixel"));
		}
	}
	if (r == 0)
		*ret_result = json_pack("{s:b, s:o, s:O, s:O, s:o, s:o, s:o}", "ok", true, "object", object_json(object),
					"regions", regions, "points", points, "distances", distances_json(object, kept, list->n),
					"skin", measure_breast_skin(breast), "tissues", measure_breast_tissues(breast));
	measure_breast_free(breast);
	json_decref(regions);
	json_decref(points);
	for (size_t i = 0; kept && i < list->n; i++) {
		free(kept[i].inside);
		free(kept[i].around);
		free(kept[i].in);
		free(kept[i].out);
		free(kept[i].edge[0]);
		free(kept[i].edge[1]);
		free(kept[i].window);
		free(kept[i].spread);
	}
	free(kept);
	free(slice);
	return r;
}
