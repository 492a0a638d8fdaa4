/* SPDX-License-Identifier: Apache-2.0 */
/* metal_specks.c - keep calcifications that the shadow of an object covers.
 *
 * Drawn on the plane through the object, its shadow looks the same in all views. A speck above or below the object moves through it
 * from view to view: 1 mm of height is up to 0.9 mm of way over 50 degrees. So the median over the views is the object, and the
 * residual of a view is noise, or a speck. Residuals are levelled along the object, because its edges fall on bins in another way in
 * each view. For each point above and below the object, the mean residual on the rays through it, weighted by 1 / spread^2 (the mean
 * square over the views), is that of a speck if it exceeds SURE times its standard deviation. Around its feet the residuals stay in
 * the projections, up to PART_MOST times their mean: if it was none, little noise stays. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/order.h"
#include "recon/dbt/metal.h"

#define SURE 3.0
#define LEAST 0.04	  /* line integral of a speck, at least */
#define SPREAD_LEAST 0.03 /* line integral: errors of interpolation */
#define SPREAD_MOST 0.25  /* where it is larger, as at the ends of an object along z, a speck cannot be told from the object */
#define COVERED 0.3	  /* least share of the views; a speck that fewer ones cover is in the image, from the others */
#define NEAREST 0.75	  /* mm of height from the object; nearer ones do not move, and the object is put back there */
#define HIGHEST 10.0	  /* mm of height */
#define STEP 0.5	  /* mm of height */
#define BESIDE 1.0	  /* mm along the object to either side, of which the level is the median */
#define PART_MOST 2	  /* of the mean residual of a speck that a bin keeps at most */
#define VIEWS_LEAST 5

/* The shadow of the object alone in a view. */
struct covered {
	const struct scan_view *view;
	struct metal_shadow *shadow;
	struct metal_image image; /* excess, then residuals, per mm of height; nan where there is no shadow */
	float *most;		  /* residual of each bin of the image that stays at most; 0: no speck is there */
};

struct cover {
	const struct scan *scan;
	double z; /* of the object */
	int n_views;
	struct covered *view;
	double lo[2], step; /* points of the plane, mm */
	int n[2], n_points;
	float *model, *spread; /* at each point: excess of the object; mean square of the residuals */
	float *mean[3];	       /* at the points of three heights; 0: no speck */
};

/* Compute where the ray of a view to a point crosses the plane. */
static void cross_plane(const struct cover *c, const struct covered *v, const double at[3], double ret[3])
{
	const double *src = v->view->src;
	double part = (c->z - src[2]) / (at[2] - src[2]);

	for (int k = 0; k < 3; k++)
		ret[k] = src[k] + part * (at[k] - src[k]);
}

/* Compute where the ray to a bin of the image crosses the plane. */
static void cross_bin(const struct cover *c, const struct covered *v, int bin, double ret[3])
{
	double at[3];

	scan_bin_at(c->scan, v->view, v->image.lo[0] + bin % v->image.n[0], v->image.lo[1] + bin / v->image.n[0], at);
	cross_plane(c, v, at, ret);
}

/* Return the length of a view's ray to a place per mm of height. */
static float slant_at(const struct covered *v, const double at[3])
{
	const double *src = v->view->src;
	double d[3] = {at[0] - src[0], at[1] - src[1], src[2] - at[2]};

	return (float)(sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]) / d[2]);
}

static float image_at(const struct cover *c, const struct covered *v, const double at[3])
{
	double foot[2];

	return scan_foot(c->scan, v->view, at, foot) ? metal_image_at(&v->image, foot) : NAN;
}

static void place_point(const struct cover *c, int p, double z, double ret[3])
{
	ret[0] = c->lo[0] + p % c->n[0] * c->step;
	ret[1] = c->lo[1] + (double)(p / c->n[0]) * c->step;
	ret[2] = z;
}

/* Return the value at a place on the plane, between its points. */
static float value_at(const struct cover *c, const float *value, const double at[3])
{
	double x = fmin(fmax((at[0] - c->lo[0]) / c->step, 0), c->n[0] - 1.001),
	       y = fmin(fmax((at[1] - c->lo[1]) / c->step, 0), c->n[1] - 1.001);
	int i = (int)x, j = (int)y;
	float a = (float)(x - i), b = (float)(y - j), sum = 0;

	for (int k = 0; k < 4; k++)
		sum += value[(j + k / 2) * c->n[0] + i + k % 2] * (k % 2 ? a : 1 - a) * (k / 2 ? b : 1 - b);
	return sum;
}

static float median_of(float *value, int n)
{
	qsort(value, (size_t)n, sizeof(*value), order_floats);
	return n > 0 ? value[n / 2] : 0;
}

/* Compute the excess of the object at each point. column: room for n_views. */
static void find_model(const struct cover *c, float *column)
{
	for (int p = 0; p < c->n_points; p++) {
		double at[3];

		place_point(c, p, c->z, at);
		for (int i = 0; i < c->n_views; i++) {
			float e = image_at(c, &c->view[i], at);

			column[i] = isnan(e) ? 0 : e;
		}
		c->model[p] = median_of(column, c->n_views);
	}
}

/* Subtract the object from the image of a view, then the median along it. */
static int find_residuals(const struct cover *c, struct covered *v, struct err *err)
{
	const int *n = v->image.n, bins = n[0] * n[1], along = c->n[1] >= c->n[0] ? 1 : 0, step = along ? n[0] : 1;
	int reach = (int)(BESIDE / c->scan->h[along]);
	float *levelled = malloc(((size_t)bins + 2 * (size_t)reach + 1) * sizeof(*levelled)), *column = levelled + bins;

	if (!levelled)
		return err_set(err, ENOMEM, "metal: no memory for a shadow of %d bins", bins);
	for (int b = 0; b < bins; b++) {
		double on[3];

		cross_bin(c, v, b, on);
		v->image.value[b] -= value_at(c, c->model, on);
	}
	for (int b = 0; b < bins; b++) {
		int place = along ? b / n[0] : b % n[0], found = 0;

		for (int j = -reach; j <= reach; j++)
			if (place + j >= 0 && place + j < n[along] && !isnan(v->image.value[b + j * step]))
				column[found++] = v->image.value[b + j * step];
		levelled[b] = v->image.value[b] - median_of(column, found);
	}
	memcpy(v->image.value, levelled, (size_t)bins * sizeof(*levelled));
	free(levelled);
	return 0;
}

static void find_spread(const struct cover *c)
{
	for (int p = 0; p < c->n_points; p++) {
		float sum = 0, n = 0;
		double at[3];

		place_point(c, p, c->z, at);
		for (int i = 0; i < c->n_views; i++) {
			float e = image_at(c, &c->view[i], at);

			sum += isnan(e) ? 0 : e * e;
			n += !isnan(e);
		}
		c->spread[p] = fmaxf(n > 0 ? sum / n : 0, SPREAD_LEAST * SPREAD_LEAST);
	}
}

/* Return the mean residual on the rays through a place; 0: it is not that of a speck. */
static float mean_residual(const struct cover *c, const double at[3])
{
	double sum = 0, weight = 0;
	int n = 0;

	for (int i = 0; i < c->n_views; i++) {
		float e = image_at(c, &c->view[i], at), spread;
		double on[3];

		cross_plane(c, &c->view[i], at, on);
		spread = value_at(c, c->spread, on);
		if (isnan(e) || spread > SPREAD_MOST * SPREAD_MOST)
			continue;
		sum += (double)(e / spread);
		weight += 1 / (double)spread;
		n++;
	}
	return n >= COVERED * c->scan->n_views && sum >= LEAST * weight && sum >= SURE * sqrt(weight) ? (float)(sum / weight) : 0;
}

/* Let the residuals of the bins around the feet of a speck stay. */
static void mark_speck(const struct cover *c, const double at[3], float mean)
{
	for (int i = 0; i < c->n_views; i++) {
		const struct covered *v = &c->view[i];
		double foot[2];

		if (!scan_foot(c->scan, v->view, at, foot))
			continue;
		for (int k = 0; k < 9; k++) {
			int bin[2] = {(int)lround(foot[0]) + k % 3 - 1 - v->image.lo[0],
				      (int)lround(foot[1]) + k / 3 - 1 - v->image.lo[1]};

			if (bin[0] >= 0 && bin[0] < v->image.n[0] && bin[1] >= 0 && bin[1] < v->image.n[1]) {
				float *most = &v->most[bin[1] * v->image.n[0] + bin[0]];

				*most = fmaxf(*most, PART_MOST * mean);
			}
		}
	}
}

/* Find specks above and below the object: of the points of a height those that exceed the same points STEP above and below. */
static void find_specks(const struct cover *c)
{
	int steps = (int)(2 * HIGHEST / STEP);

	for (int k = 0; k <= steps; k++)
		for (int p = 0; p < c->n_points; p++) {
			double z = c->z - HIGHEST + k * STEP, at[3];

			place_point(c, p, z, at);
			c->mean[k % 3][p] = fabs(z - c->z) >= NEAREST ? mean_residual(c, at) : 0;
			at[2] -= STEP;
			if (k >= 2 && c->mean[(k + 2) % 3][p] > fmaxf(c->mean[k % 3][p], c->mean[(k + 1) % 3][p]))
				mark_speck(c, at, c->mean[(k + 2) % 3][p]);
		}
}

/* Take the residuals of specks out of the excess. */
static void keep_residuals(const struct cover *c, const struct covered *v)
{
	for (size_t i = 0; i < v->shadow->n; i++) {
		struct metal_bin *bin = &v->shadow->bin[i];
		int b = (bin->v - v->image.lo[1]) * v->image.n[0] + bin->u - v->image.lo[0];
		double on[3];

		cross_bin(c, v, b, on);
		bin->excess -= fminf(fmaxf(v->image.value[b], 0), v->most[b]) * slant_at(v, on);
	}
}

static void cover_close(struct cover *c)
{
	for (int i = 0; i < c->n_views; i++) {
		free(c->view[i].image.value);
		free(c->view[i].most);
	}
	free(c->view);
	free(c->model);
}

static int add_view(struct cover *c, int view, struct metal_shadow *m, struct err *err)
{
	struct covered *v = &c->view[c->n_views++];
	size_t bins;

	v->view = &c->scan->views[view];
	v->shadow = m;
	if (metal_image_create(m, false, NAN, &v->image, err) < 0)
		return -ENOMEM;
	bins = (size_t)v->image.n[0] * (size_t)v->image.n[1];
	v->most = calloc(bins, sizeof(*v->most));
	if (!v->most)
		return err_set(err, ENOMEM, "metal: no memory for a shadow of %zu bins", bins);
	for (size_t b = 0; b < bins; b++) {
		double on[3];

		cross_bin(c, v, (int)b, on);
		v->image.value[b] /= slant_at(v, on);
	}
	return 0;
}

/* Place the points of the plane over the shadows. */
static int place_plane(struct cover *c, struct err *err)
{
	double hi[2] = {-INFINITY, -INFINITY};
	size_t points;

	c->step = fmin(c->scan->h[0], c->scan->h[1]);
	c->lo[0] = c->lo[1] = INFINITY;
	for (int i = 0; i < c->n_views; i++)
		for (int b = 0; b < c->view[i].image.n[0] * c->view[i].image.n[1]; b++) {
			double on[3];

			cross_bin(c, &c->view[i], b, on);
			for (int a = 0; a < 2; a++) {
				c->lo[a] = fmin(c->lo[a], on[a] - c->step);
				hi[a] = fmax(hi[a], on[a] + c->step);
			}
		}
	for (int a = 0; a < 2; a++)
		c->n[a] = (int)ceil((hi[a] - c->lo[a]) / c->step) + 1;
	c->n_points = c->n[0] * c->n[1];
	points = (size_t)c->n_points;
	c->model = calloc(5 * points, sizeof(*c->model));
	if (!c->model)
		return err_set(err, ENOMEM, "metal: no memory for %zu points", points);
	c->spread = c->model + points;
	for (int k = 0; k < 3; k++)
		c->mean[k] = c->spread + (size_t)(k + 1) * points;
	return 0;
}

static int keep_specks_of(const struct scan *scan, struct metal_view *views, const signed char *of, const struct metal_object *o,
			  float *column, struct err *err)
{
	struct cover c = {.scan = scan, .z = o->at[2], .view = calloc((size_t)scan->n_views, sizeof(*c.view))};
	int r = c.view ? 0 : err_set(err, ENOMEM, "metal: no memory for %d views", scan->n_views);

	for (int i = 0; r == 0 && i < scan->n_views; i++)
		if (of[i] >= 0 && metal_is_alone(scan, i, &views[i].shadow[of[i]], o))
			r = add_view(&c, i, &views[i].shadow[of[i]], err);
	if (r == 0 && c.n_views >= VIEWS_LEAST)
		r = place_plane(&c, err);
	if (r == 0 && c.model) {
		find_model(&c, column);
		for (int i = 0; r == 0 && i < c.n_views; i++)
			r = find_residuals(&c, &c.view[i], err);
		find_spread(&c);
		find_specks(&c);
		for (int i = 0; i < c.n_views; i++)
			keep_residuals(&c, &c.view[i]);
	}
	cover_close(&c);
	return r;
}

int metal_keep_specks(const struct scan *scan, struct metal_view *views, const signed char *of, const struct metal_report *report,
		      struct err *err)
{
	float *column = malloc((size_t)scan->n_views * sizeof(*column));
	int r = column ? 0 : err_set(err, ENOMEM, "metal: no memory for %d views", scan->n_views);

	for (int o = 0; r == 0 && o < report->n; o++)
		r = keep_specks_of(scan, views, of + (size_t)o * (size_t)scan->n_views, &report->object[o], column, err);
	free(column);
	return r;
}
