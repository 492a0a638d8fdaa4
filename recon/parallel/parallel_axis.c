/* SPDX-License-Identifier: Apache-2.0 */
/* parallel_axis.c - where is the axis of rotation?
 *
 * A view and the one from the opposite side are mirror images about the axis: p(angle + 180 degrees, x) = p(angle, 2 d - x) if the
 * axis is at x = d. Along x their Fourier transforms are P(w) and exp(-2 i w d) conj P(w), so that the energy of what should
 * vanish,
 *
 *	E(d) = sum of g |U + exp(-2 i w d) V|^2,
 *
 * is a curve of d that costs one sum over w for each d; the axis is at its minimum. There are two forms of U and V:
 *
 * - Pairs: both sides were measured (an arc of more than 180 degrees): U is one view, V the mirrored other one, negative.
 * - Wedge: of half a turn the other half is its mirror image. In the Fourier transform of a whole turn, over angle (harmonic k) and
 *   x, an object of radius R has nothing where |k| > R |w| (Rattey and Lindgren 1981); a wrong axis makes a seam at 180 degrees,
 *   which is there. Vo et al. 2014 (10.1364/OE.22.019078) search the axis so, one transform for each d. U is the measured half, V
 *   the other one, for the cells (k, w) outside of twice that wedge: twice, because what leaves the field moves faster.
 *
 * Views are differentiated along x, so that a thick object that leaves the field has little at its ends, and tapered to 0 about the
 * axis that is tried, in a window that both sides fill. So first windows everywhere, on coarse data; then the window of the deepest
 * minimum on fine data.
 *
 * The standard deviation is that of the zero of E'(d) from the spread of its terms (White 1980, Econometrica 48, 817), and at
 * least what other weights g change. Slices are judged alone; the axis of a stage that leans is a line through them. Where noise
 * hides the seam, the centres of mass (parallel_consistency.c) know the axis of an object inside the field. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "recon/parallel/parallel_axis_internal.h"

#define BINS_LEAST 32
#define VIEWS_LEAST 32
#define ARC_LEAST 0.97	     /* of half a turn */
#define OVERLAP_PAIRS 0.0625 /* half width of the smallest window, in the width of the field */
#define OVERLAP_WEDGE 0.25   /* the wedge sees the seam only */
#define REACH 4		     /* samples: half width of a search about the middle of a window */
#define STEPS 20	     /* of a search, in a sample */
#define STEP (1.0 / STEPS)
#define FOLLOW 3
#define DEPTH_MOST 0.985  /* least E, in the median of its curve: more is noise */
#define APART 3.0	  /* samples: minima nearer than this are one */
#define AMBIGUOUS 0.5	  /* depth of another minimum, in that of the deepest */
#define WEIGHTS_ALIKE 2.5 /* standard deviation, in the least of all weights: others are not compared */
#define SPREAD_SIGMAS 1.5 /* what other weights change, in standard deviations */
#define KNOWN_BINS 0.5	  /* an axis is known if KNOWN_SIGMAS standard deviations are not more */
#define KNOWN_SIGMAS 3.0
#define LEAN_SIGMAS 5.0

#define SLICES 5
#define NARROWS 2
static const double narrows[NARROWS] = {0.85, 0.7}; /* of the window: what leaves the field moves the minimum of the wedge */

/* How much of the data is used. */
static const struct axis_effort coarse = {128, 1024, 64, 64, 4}, fine = {1024, 1024, 128, 256, SLICES};

/* Weights of the cells: w^power, and harmonics above margin R w + first have k^-fall, others 0. */
struct weights {
	double power, margin, first, fall;
	bool compared; /* with the others; its minimum is never the result */
};

#define WEIGHTS 4
static const struct weights of_wedge[WEIGHTS] = {
	{-0.5, 2, 12, 1, false}, {-1, 2, 8, 0, false}, {-1.5, 2, 12, 2, false}, {-0.5, AXIS_MARGIN_LEAST, 12, 1, true}};
static const struct weights of_pairs[WEIGHTS] = {
	{-1, 0, 0, 0, false}, {-2, 0, 0, 0, false}, {0, 0, 0, 0, false}, {-0.5, 0, 0, 0, false}};

struct minimum {
	double at, sigma; /* samples, relative to the middle */
	double depth;	  /* E there, in the median of the curve */
};

/* ---- the curve ---- */

/* Weight of a harmonic or pair, and the first wave of those that have none. */
static double row_weight(const struct weights *g, const struct axis_cells *c, bool wedge, int row, int *ret_end)
{
	double k = abs(row - c->n / 2), end = (k - g->first) / (g->margin * c->half) / c->wave[0];

	*ret_end = !wedge || end > c->n_waves ? c->n_waves : end > 0 ? (int)end : 0;
	return wedge ? pow(k + 1, -g->fall) : 1;
}

static void find_wave_weights(const struct weights *g, const struct axis_cells *c, double *ret)
{
	for (int w = 0; w < c->n_waves; w++)
		ret[w] = pow(c->wave[w], g->power);
}

/* E(d) = ret_sum + 2 Re of the sum of ret_product exp(-2 i w d), ret_product: [2][n_waves]; all are added to. */
static void add_curve(const struct weights *g, const struct axis_cells *c, bool wedge, double *work, double *ret_sum,
		      double *ret_product)
{
	double *re = ret_product, *im = ret_product + c->n_waves;

	find_wave_weights(g, c, work);
	for (int k = 0; k < c->n; k++) {
		const size_t row = (size_t)k * (size_t)c->n_waves;
		const double *a = c->u[0] + row, *b = c->u[1] + row, *p = c->v[0] + row, *q = c->v[1] + row;
		int end;
		double weight = row_weight(g, c, wedge, k, &end);

		for (int w = 0; w < end; w++) {
			double here = weight * work[w];

			*ret_sum += here * (a[w] * a[w] + b[w] * b[w] + p[w] * p[w] + q[w] * q[w]);
			re[w] += here * (a[w] * p[w] + b[w] * q[w]);
			im[w] += here * (a[w] * q[w] - b[w] * p[w]);
		}
	}
}

#define CURVE (2 * REACH * STEPS + 1)

/* Find the least of the curve about the window's middle; false: it is at an end. */
static bool find_least(const struct axis_cells *c, double sum, const double *product, struct minimum *ret)
{
	double e[CURVE], sorted[CURVE];
	int least = 0;

	for (int i = 0; i < CURVE; i++) {
		double d = c->centre + (i - CURVE / 2) * STEP;

		e[i] = sum;
		for (int w = 0; w < c->n_waves; w++)
			e[i] += 2 * (product[w] * cos(2 * c->wave[w] * d) + product[c->n_waves + w] * sin(2 * c->wave[w] * d));
		sorted[i] = e[i];
		least = e[i] < e[least] ? i : least;
	}
	if (least == 0 || least == CURVE - 1)
		return false;
	ret->depth = e[least] / parallel_median(sorted, CURVE);
	ret->at = c->centre + (least - CURVE / 2) * STEP +
		  STEP / 2 * (e[least - 1] - e[least + 1]) / (e[least - 1] - 2 * e[least] + e[least + 1]);
	return isfinite(ret->at) && isfinite(ret->depth);
}

/* Standard deviation of the zero of E'. Neighbouring waves of a window are not independent, so twice the variance. */
static double find_sigma(const struct weights *g, const struct axis_cells *c, bool wedge, double *work, double d)
{
	double squares = 0, curvature = 0;

	find_wave_weights(g, c, work);
	for (int w = 0; w < c->n_waves; w++) {
		double wave = 2 * c->wave[w], turn[2] = {cos(wave * d), sin(wave * d)};

		for (int k = 0; k < c->n; k++) {
			size_t i = (size_t)k * (size_t)c->n_waves + (size_t)w;
			int end;
			double weight = row_weight(g, c, wedge, k, &end) * work[w], re, im;

			if (w >= end)
				continue;
			re = weight * (c->u[0][i] * c->v[0][i] + c->u[1][i] * c->v[1][i]);
			im = weight * (c->u[0][i] * c->v[1][i] - c->u[1][i] * c->v[0][i]);
			squares += pow(2 * wave * (im * turn[0] - re * turn[1]), 2);
			curvature -= 2 * wave * wave * (re * turn[0] + im * turn[1]);
		}
	}
	return curvature > 0 ? sqrt(2 * squares) / curvature : INFINITY;
}

/* ---- search ---- */

struct search {
	const struct parallel_scan *s;
	const float *lines;
	struct axis_views views;
	struct axis_cells cells;
	double *product, *work; /* [2][n_waves], [n_waves] */
};

static int search_open(const struct parallel_scan *s, const float *lines, const struct axis_effort *e, struct search *ret,
		       struct err *err)
{
	int r;

	*ret = (struct search){.s = s, .lines = lines};
	r = axis_views_make(s, e, &ret->views, err);
	if (r == 0)
		r = axis_cells_make(&ret->views, &ret->cells, err);
	if (r < 0)
		return r;
	ret->product = malloc(3 * (size_t)ret->cells.n_waves * sizeof(*ret->product));
	ret->work = ret->product ? ret->product + 2 * ret->cells.n_waves : NULL;
	return ret->product ? 0 : err_set(err, ENOMEM, "no memory for the axis: %d waves", ret->cells.n_waves);
}

static void search_close(struct search *f)
{
	axis_views_free(&f->views);
	axis_cells_free(&f->cells);
	free(f->product);
}

static const struct weights *search_weights(const struct search *f)
{
	return f->views.n_pairs ? of_pairs : of_wedge;
}

static void clear_product(struct search *f)
{
	for (int w = 0; w < 2 * f->cells.n_waves; w++)
		f->product[w] = 0;
}

/* Number of slices that an effort looks at, and one of them. */
static int count_slices(const struct search *f, const struct axis_effort *e)
{
	return f->s->n_slices < e->slices ? f->s->n_slices : e->slices;
}

static int slice_of(const struct search *f, int n, int i)
{
	return (int)(((long)2 * i + 1) * f->s->n_slices / (2 * n));
}

/* Find the window with the deepest minimum on the sum of some slices, and the depth of the next one apart from it. Both depths are
 * 1 before. */
static void search_windows(struct search *f, struct minimum *ret, double *ret_second)
{
	const int n = count_slices(f, &coarse);
	double least = (f->views.n_pairs ? OVERLAP_PAIRS : OVERLAP_WEDGE) * f->views.width, far = 0.5 * f->views.width - least;
	const int windows = (int)(far / REACH);

	for (int i = -windows; i <= windows; i++) {
		struct minimum here;
		double sum = 0;

		clear_product(f);
		for (int k = 0; k < n; k++) {
			if (n > 1 || i == -windows)
				axis_views_read(f->s, f->lines, slice_of(f, n, k), &f->views);
			axis_cells_fill(&f->views, i * REACH, 1, &f->cells);
			add_curve(search_weights(f), &f->cells, !f->views.n_pairs, f->work, &sum, f->product);
		}
		if (!find_least(&f->cells, sum, f->product, &here))
			continue;
		if (fabs(here.at - ret->at) >= APART)
			*ret_second = fmin(*ret_second, fmax(here.depth, ret->depth));
		if (here.depth < ret->depth)
			*ret = here;
	}
}

/* Find the axis of the slice near `at`, in samples, in the window about it: the weights with the least standard deviation; others of about that must
 * agree. */
static bool search_window(struct search *f, double at, double part, struct minimum *ret)
{
	const struct weights *g = search_weights(f);
	const bool wedge = !f->views.n_pairs;
	struct minimum each[WEIGHTS];
	double spread = 0;
	int best = -1;

	axis_cells_fill(&f->views, at, part, &f->cells);
	for (int i = 0; i < WEIGHTS; i++) {
		double sum = 0;

		each[i] = (struct minimum){.sigma = INFINITY, .depth = 1};
		clear_product(f);
		add_curve(&g[i], &f->cells, wedge, f->work, &sum, f->product);
		if (find_least(&f->cells, sum, f->product, &each[i]))
			each[i].sigma = find_sigma(&g[i], &f->cells, wedge, f->work, each[i].at);
		if (!g[i].compared && isfinite(each[i].sigma) && (best < 0 || each[i].sigma < each[best].sigma))
			best = i;
	}
	for (int i = 0; best >= 0 && i < WEIGHTS; i++)
		if (each[i].sigma <= WEIGHTS_ALIKE * each[best].sigma)
			spread = fmax(spread, fabs(each[i].at - each[best].at));
	if (best < 0 || each[best].depth > DEPTH_MOST)
		return false;
	*ret = each[best];
	ret->sigma = fmax(ret->sigma, spread / SPREAD_SIGMAS);
	return true;
}

/* Find the axis of one slice near `at`; the window follows it, because what leaves it on one side only moves the minimum. */
static bool search_slice(struct search *f, int slice, double at, struct minimum *ret)
{
	struct minimum narrow;

	axis_views_read(f->s, f->lines, slice, &f->views);
	for (int i = 0; i < FOLLOW; i++) {
		if (!search_window(f, at, 1, ret))
			return false;
		if (fabs(ret->at - at) < STEP)
			break;
		at = ret->at;
	}
	for (int i = 0; f->views.n_pairs == 0 && i < NARROWS; i++) {
		if (!search_window(f, ret->at, narrows[i], &narrow))
			return false;
		ret->sigma = fmax(ret->sigma, fabs(narrow.at - ret->at) / SPREAD_SIGMAS);
	}
	return true;
}

/* A line through the axes of slices, weighted by their variances. */
static void fit_slices(const struct minimum *each, const double *at, int n, double *ret_middle, double *ret_slope,
		       double *ret_sigma, double *ret_slope_sigma)
{
	double w = 0, x = 0, y = 0, xx = 0, xy = 0, rest = 0, inflate;

	for (int i = 0; i < n; i++) {
		double g = 1 / (each[i].sigma * each[i].sigma);

		w += g;
		x += g * at[i];
		y += g * each[i].at;
	}
	for (int i = 0; i < n; i++) {
		double g = 1 / (each[i].sigma * each[i].sigma);

		xx += g * pow(at[i] - x / w, 2);
		xy += g * (at[i] - x / w) * each[i].at;
	}
	*ret_slope = n > 2 && xx > 0 ? xy / xx : 0;
	*ret_middle = y / w - *ret_slope * x / w;
	for (int i = 0; i < n; i++)
		rest += pow((each[i].at - *ret_middle - *ret_slope * at[i]) / each[i].sigma, 2);
	inflate = sqrt(fmax(1, n > 2 ? rest / (n - 2) : rest));
	*ret_sigma = inflate / sqrt(w);
	*ret_slope_sigma = n > 2 && xx > 0 ? inflate / sqrt(xx) : INFINITY;
}

/* Refine the axis of the coarse search (bins) slice by slice. */
static bool search_slices(struct search *f, double bins, struct parallel_axis *ret)
{
	struct minimum each[SLICES];
	double at[SLICES], middle, slope, sigma, slope_sigma, factor = f->views.factor;
	const int n = count_slices(f, &fine);
	int found = 0;

	for (int i = 0; i < n; i++) {
		int slice = slice_of(f, n, i);

		if (!search_slice(f, slice, (bins - f->views.middle) / factor, &each[found]))
			continue;
		at[found++] = slice - 0.5 * (f->s->n_slices - 1);
	}
	if (2 * found < n || found == 0)
		return false;
	fit_slices(each, at, found, &middle, &slope, &sigma, &slope_sigma);
	ret->offset = -(middle * factor + f->views.middle) * f->s->bin;
	ret->sigma = sigma * factor * f->s->bin;
	if (fabs(slope) > LEAN_SIGMAS * slope_sigma)
		ret->lean = atan(slope * factor * f->s->bin / f->s->slice) * 180 / M_PI;
	return true;
}

/* Search it in the data. */
static int search_axis(const struct parallel_scan *s, const float *lines, struct parallel_axis *ret, struct err *err)
{
	struct search f;
	struct minimum best = {.depth = 1};
	double second = 1, bins;
	int r = search_open(s, lines, &coarse, &f, err);

	if (r == 0)
		search_windows(&f, &best, &second);
	if (r < 0 || best.depth > DEPTH_MOST) {
		ret->reason = PARALLEL_AXIS_NOISE;
		search_close(&f);
		return r;
	}
	bins = best.at * f.views.factor + f.views.middle;
	ret->by = f.views.n_pairs ? PARALLEL_AXIS_PAIRS : PARALLEL_AXIS_SEAM;
	search_close(&f);
	if (1 - second > AMBIGUOUS * (1 - best.depth)) {
		ret->reason = PARALLEL_AXIS_AMBIGUOUS;
		return 0;
	}
	r = search_open(s, lines, &fine, &f, err);
	if (r == 0 && !search_slices(&f, bins, ret))
		ret->reason = PARALLEL_AXIS_NOISE;
	else if (r == 0 && KNOWN_SIGMAS * ret->sigma > KNOWN_BINS * s->bin)
		ret->reason = PARALLEL_AXIS_UNCERTAIN;
	search_close(&f);
	return r;
}

/* The arc that the views cover: of half a turn, the largest gap between directions is missing. */
static int covers_half_turn(const struct parallel_scan *s, bool *ret, struct err *err)
{
	double *weight = malloc((size_t)s->n_angles * sizeof(*weight)), sum = 0;
	int r = weight ? parallel_weights(s, weight, err) : err_set(err, ENOMEM, "no memory for %d angles", s->n_angles);

	for (int a = 0; r == 0 && a < s->n_angles; a++)
		sum += weight[a];
	*ret = sum >= ARC_LEAST * M_PI;
	free(weight);
	return r;
}

int parallel_find_axis(const struct parallel_scan *s, const float *lines, const struct parallel_consistency *c,
		       struct parallel_axis *ret, struct err *err)
{
	bool covered = false;
	double sigma;
	int r = 0;

	*ret = (struct parallel_axis){.reason = PARALLEL_AXIS_FEW};
	if (s->n_angles >= VIEWS_LEAST && s->n_radial >= BINS_LEAST) {
		r = covers_half_turn(s, &covered, err);
		ret->reason = covered ? PARALLEL_AXIS_KNOWN : PARALLEL_AXIS_ARC;
		if (r == 0 && covered)
			r = search_axis(s, lines, ret, err);
	}
	if (r < 0 || ret->reason == PARALLEL_AXIS_KNOWN)
		return r;
	sigma = hypot(c->axis_sigma, c->axis_doubt);
	if (c->known && c->agree && !c->axes_differ && KNOWN_SIGMAS * sigma <= KNOWN_BINS * s->bin)
		*ret = (struct parallel_axis){.by = PARALLEL_AXIS_MASS, .offset = s->offset - c->axis_error, .sigma = sigma};
	return 0;
}
