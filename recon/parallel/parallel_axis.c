/* SPDX-License-Identifier: Apache-2.0 */
/* parallel_axis.c - where is the axis of rotation?
 *
 * A view and the one from the opposite side are mirror images about the axis: p(angle + 180 degrees, x) = p(angle, 2 d - x) if the
 * axis is at x = d. Along x their Fourier transforms are P(w) and exp(-2 i w d) conj P(w), so that U + exp(-2 i w d) V should
 * vanish. There are two forms of U and V:
 *
 * - Pairs: both sides were measured (an arc of more than 180 degrees): U is one view, V the mirrored other one, negative.
 * - Wedge: of half a turn the other half is its mirror image. In the Fourier transform of a whole turn, over angle (harmonic k) and
 *   x, an object of radius R has nothing where |k| > R |w| (Rattey and Lindgren 1981); a wrong axis makes a seam at 180 degrees,
 *   which is there. Vo et al. 2014 (10.1364/OE.22.019078) search the axis so, one transform for each d. U is the measured half, V
 *   the other one, of the cells (k, w).
 *
 * How well U and V agree depends on the cell: where the wedge is, they do not, and where there is noise only, nothing does. So cells
 * are sorted into blocks of neighbouring waves and, of the wedge, of one class of velocity k / w (the tangential place of what is
 * seen there). In a block U and V are complex normal variables with one variance S of what they share and one N of what they do not.
 * Their sum and difference are independent, so that the likelihood of d, with the best S and N of each block, is
 *
 *	-log L(d) = sum over blocks of n log (E(d) (2 E0 - E(d)) / E0^2),   E(d) = sum of |U + exp(-2 i w d) V|^2,   E0: of |U|^2 + |V|^2,
 *
 * without blocks in which E > E0 (S = 0). Cells weigh as in the delay of two signals by their coherence (Knapp and Carter 1976,
 * 10.1109/TASSP.1976.1162830): nothing says beforehand where the wedge ends or which waves are noise. The axis is at its minimum.
 *
 * Views are differentiated along x, so that a thick object that leaves the field has little at its ends, and tapered to 0 about the
 * axis that is tried, in a window that both sides fill. So first windows everywhere, on coarse data; then the window of the deepest
 * minimum on fine data, and the mean with narrower ones, because what leaves a window moves the minimum of the wedge.
 *
 * The standard deviation is that of the zero of the curve's derivative from the spread of its terms (White 1980, Econometrica 48,
 * 817), and at least what other windows change. Where steep edges leave the field, the ends of a window may look like the object: a
 * minimum that moves with its window is not the axis. Slices are judged alone; the axis of a stage that leans is a line through them.
 * The centres of mass (parallel_consistency.c) know the axis of an object inside the field: where both are known and agree, the
 * result is their mean. */
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
#define FOLLOW 10	  /* windows, one about the minimum of the other, at most */
#define FOLLOWED 0.7	  /* of the way of a window that the minimum may go with it: more is the window's own, not the object's */
#define DEPTH_LEAST 6.0	  /* nats: less is noise */
#define APART 3.0	  /* samples: minima nearer than this are one */
#define AMBIGUOUS 0.5	  /* depth of another minimum, in that of the deepest */
#define SPREAD_SIGMAS 1.5 /* what other windows change, in standard deviations */
#define SEAM_SIGMA 1.3	  /* real one of the seam, in that of its terms: measured, the terms of a seam are few */
#define SEAM_LEAST 0.06	  /* samples: what a single edge at the seam may move all windows by */
#define PAIRS_LEAST 0.03  /* bins: what sampled edges, and views between those of the other side, may move pairs by */
#define KNOWN_BINS 0.5	  /* an axis is known if KNOWN_SIGMAS standard deviations are not more */
#define KNOWN_SIGMAS 3.0
#define LEAN_SIGMAS 5.0
#define AGREE_SIGMAS 3.0

#define SLICES 25
#define SLICES_LOOKED 100 /* at most, for an object */
#define VIEWS_LOOKED 16	  /* of a slice */
#define FILLED 0.1	  /* variance of the bins of a slice with an object, in the largest of all slices */
#define NARROWS 2
static const double narrows[NARROWS] = {0.85, 0.7}; /* of the window */

/* How much of the data is used: a few slices, and more if these do not say it. */
static const struct axis_effort coarse[] = {{128, 1024, 64, 64, 4}, {128, 1024, 64, 64, 16}};
static const struct axis_effort fine[] = {{1024, 1024, 128, 256, 5}, {1024, 1024, 128, 256, SLICES}};
#define EFFORTS 2

struct minimum {
	double at, sigma; /* samples, relative to the middle */
	double depth;	  /* of the curve there, below its median, nats */
};

/* ---- the curve ---- */

/* Upper ends of the velocities of a class of cells, samples a radian, in the half window. */
static const double velocities[] = {0.8, 1.1, 1.4, 1.8, 2.3, 3, 4, 6, 10, INFINITY};
#define CLASSES (int)(sizeof(velocities) / sizeof(velocities[0]))
#define BANDS_MOST 48
#define BAND_LEAST 3   /* waves */
#define BAND_RATIO 1.3 /* of the waves at its ends, if there are more */
#define FLOOR 1e-4     /* of the energy of a block: what interpolation leaves of a perfect scan */

/* Return the class of a cell. */
static int find_class(const struct axis_cells *c, bool wedge, int row, int wave)
{
	double v = fabs(row - 0.5 * (c->n - 1)) / (c->wave[wave] * c->half);
	int i = 0;

	while (wedge && v > velocities[i])
		i++;
	return i;
}

/* Blocks of cells, which have one expected energy: a class and a band of waves. */
struct blocks {
	int n_bands, band[BANDS_MOST + 1];			 /* their first waves, and the end */
	double n[CLASSES][BANDS_MOST], sum[CLASSES][BANDS_MOST]; /* cells, and energy of U and V */
	double *product;					 /* [CLASSES][2][n_waves]: of U* V */
	double weight[CLASSES][BANDS_MOST];			 /* of a cell */
};

static void clear_blocks(const struct axis_cells *c, struct blocks *b)
{
	int at = 0;

	for (b->n_bands = 0; at < c->n_waves && b->n_bands < BANDS_MOST; b->n_bands++) {
		int next = (int)fmax(at + BAND_LEAST, BAND_RATIO * at);

		b->band[b->n_bands] = at;
		at = next + BAND_LEAST > c->n_waves ? c->n_waves : next;
	}
	b->band[b->n_bands] = c->n_waves;
	for (int i = 0; i < CLASSES; i++)
		for (int k = 0; k < b->n_bands; k++)
			b->n[i][k] = b->sum[i][k] = 0;
	for (int i = 0; i < CLASSES * 2 * c->n_waves; i++)
		b->product[i] = 0;
}

/* Add the cells of a window. */
static void add_cells(const struct axis_cells *c, bool wedge, struct blocks *b)
{
	for (int k = 0; k < c->n; k++)
		for (int band = 0; band < b->n_bands; band++)
			for (int w = b->band[band]; w < b->band[band + 1]; w++) {
				size_t i = (size_t)k * (size_t)c->n_waves + (size_t)w;
				double u[2] = {c->u[0][i], c->u[1][i]}, v[2] = {c->v[0][i], c->v[1][i]};
				int class = find_class(c, wedge, k, w);
				double *re = b->product + (size_t)(2 * class) * (size_t)c->n_waves + w;

				b->n[class][band]++;
				b->sum[class][band] += u[0] * u[0] + u[1] * u[1] + v[0] * v[0] + v[1] * v[1];
				re[0] += u[0] * v[0] + u[1] * v[1];
				re[c->n_waves] += u[0] * v[1] - u[1] * v[0];
			}
}

#define CURVE (2 * REACH * STEPS + 1)

/* Energy of a block at d. */
static double block_energy(const struct axis_cells *c, const struct blocks *b, int class, int band, const double *turn)
{
	const double *re = b->product + (size_t)(2 * class) * (size_t)c->n_waves, *im = re + c->n_waves;
	double e = (1 + FLOOR) * b->sum[class][band];

	for (int w = b->band[band]; w < b->band[band + 1]; w++)
		e += 2 * (re[w] * turn[2 * w] + im[w] * turn[2 * w + 1]);
	return e;
}

static void make_turn(const struct axis_cells *c, double d, double *turn)
{
	for (int w = 0; w < c->n_waves; w++) {
		turn[2 * w] = cos(2 * c->wave[w] * d);
		turn[2 * w + 1] = sin(2 * c->wave[w] * d);
	}
}

/* What a block with the energy e adds to the curve; its slope: the same of a change of e. */
static double block_gain(const struct blocks *b, int class, int band, double e)
{
	double sum = b->sum[class][band];

	return e >= sum ? 0 : b->n[class][band] * log(e / sum * (2 - e / sum));
}

static double block_slope(const struct blocks *b, int class, int band, double e)
{
	double sum = b->sum[class][band];

	return e >= sum ? 0 : b->n[class][band] * (1 / e - 1 / (2 * sum - e));
}

/* The curve: minus the logarithm of the likelihood of d, if the cells of each block have one variance. */
static double curve_at(const struct axis_cells *c, const struct blocks *b, double d, double *turn)
{
	double ret = 0;

	make_turn(c, d, turn);
	for (int i = 0; i < CLASSES; i++)
		for (int k = 0; k < b->n_bands; k++)
			if (b->n[i][k] > 0 && b->sum[i][k] > 0)
				ret += block_gain(b, i, k, block_energy(c, b, i, k, turn));
	return ret;
}

/* How many neighbouring cells say the same: the window is a part of the field, and each half a part of the turn. */
static double cells_alike(const struct axis_cells *c, bool wedge)
{
	return (wedge ? 2 : 1) * fmax(1, M_PI / c->wave[0] / (0.8 * c->half));
}

/* Find the least of the curve about the window's middle; false: it is at an end. */
static bool find_least(const struct axis_cells *c, const struct blocks *b, bool wedge, double *turn, struct minimum *ret)
{
	double e[CURVE], sorted[CURVE];
	int least = 0;

	for (int i = 0; i < CURVE; i++) {
		sorted[i] = e[i] = curve_at(c, b, c->centre + (i - CURVE / 2) * STEP, turn);
		least = e[i] < e[least] ? i : least;
	}
	if (least == 0 || least == CURVE - 1)
		return false;
	ret->depth = (parallel_median(sorted, CURVE) - e[least]) / cells_alike(c, wedge);
	ret->at = c->centre + (least - CURVE / 2) * STEP +
		  STEP / 2 * (e[least - 1] - e[least + 1]) / (e[least - 1] - 2 * e[least] + e[least + 1]);
	return isfinite(ret->at) && isfinite(ret->depth);
}

/* Standard deviation of the zero of the curve's derivative, from the spread of its terms. Neighbouring cells are not independent:
 * of groups of neighbouring waves, or of the classes, whichever differ more. turn: working memory. */
static double find_sigma(const struct axis_cells *c, struct blocks *b, bool wedge, double *turn, double d)
{
	const int group = (int)ceil(2 * M_PI / c->wave[0] / (0.8 * c->half)), rows = wedge ? (c->n + 1) / 2 : 1;
	double squares = 0, curvature = 0, of_class[CLASSES] = {0}, of_classes = 0;

	make_turn(c, d, turn);
	for (int i = 0; i < CLASSES; i++)
		for (int k = 0; k < b->n_bands; k++)
			b->weight[i][k] =
				b->n[i][k] > 0 && b->sum[i][k] > 0 ? block_slope(b, i, k, block_energy(c, b, i, k, turn)) : 0;
	for (int first = 0; first < c->n; first += rows)
		for (int from = 0, band = 0; from < c->n_waves; from += group) {
			double sum = 0;

			for (int w = from; w < from + group && w < c->n_waves; w++) {
				double wave = 2 * c->wave[w];

				while (w >= b->band[band + 1])
					band++;
				for (int k = first; k < first + rows && k < c->n; k++) {
					size_t i = (size_t)k * (size_t)c->n_waves + (size_t)w;
					int class = find_class(c, wedge, k, w);
					double weight = b->weight[class][band];
					double re = weight * (c->u[0][i] * c->v[0][i] + c->u[1][i] * c->v[1][i]);
					double im = weight * (c->u[0][i] * c->v[1][i] - c->u[1][i] * c->v[0][i]);
					double score = 2 * wave * (im * turn[2 * w] - re * turn[2 * w + 1]);

					sum += score;
					of_class[class] += score;
					curvature -= 2 * wave * wave * (re * turn[2 * w] + im * turn[2 * w + 1]);
				}
			}
			squares += sum * sum;
		}
	for (int i = 0; wedge && i < CLASSES; i++)
		of_classes += of_class[i] * of_class[i];
	return curvature > 0 ? sqrt(fmax(squares, of_classes)) / curvature : INFINITY;
}

/* ---- search ---- */

struct search {
	const struct parallel_scan *s;
	const float *lines;
	struct axis_views views;
	struct axis_cells cells;
	struct blocks blocks;
	double *turn; /* [2 n_waves] */
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
	ret->turn = malloc((2 + 2 * (size_t)CLASSES) * (size_t)ret->cells.n_waves * sizeof(*ret->turn));
	ret->blocks.product = ret->turn ? ret->turn + 2 * ret->cells.n_waves : NULL;
	return ret->turn ? 0 : err_set(err, ENOMEM, "no memory for the axis: %d waves", ret->cells.n_waves);
}

static void search_close(struct search *f)
{
	axis_views_free(&f->views);
	axis_cells_free(&f->cells);
	free(f->turn);
}

/* Variance of the bins of a slice in a few views. */
static double slice_variance(const struct parallel_scan *s, const float *lines, int slice)
{
	double ret = 0;

	for (int i = 0; i < VIEWS_LOOKED; i++) {
		long view = ((long)2 * i + 1) * s->n_angles / (2 * VIEWS_LOOKED);
		const float *line = lines + ((size_t)slice * (size_t)s->n_angles + (size_t)view) * (size_t)s->n_radial;
		double sum = 0, squares = 0;

		for (int t = 0; t < s->n_radial; t++) {
			sum += (double)line[t] / s->n_radial;
			squares += (double)line[t] * (double)line[t] / s->n_radial;
		}
		ret += squares - sum * sum;
	}
	return ret;
}

/* Choose at most `most` slices that show something, evenly over the stack; return their number. */
static int choose_slices(const struct parallel_scan *s, const float *lines, int most, int *ret_slice)
{
	const int looked = s->n_slices < SLICES_LOOKED ? s->n_slices : SLICES_LOOKED;
	int slice[SLICES_LOOKED], n = 0, taken;
	double variance[SLICES_LOOKED], largest = 0;

	for (int i = 0; i < looked; i++) {
		variance[i] = slice_variance(s, lines, (int)(((long)2 * i + 1) * s->n_slices / (2 * looked)));
		largest = fmax(largest, variance[i]);
	}
	for (int i = 0; i < looked; i++)
		if (variance[i] >= FILLED * largest)
			slice[n++] = (int)(((long)2 * i + 1) * s->n_slices / (2 * looked));
	taken = n < most ? n : most;
	for (int i = 0; i < taken; i++)
		ret_slice[i] = slice[(2 * i + 1) * n / (2 * taken)];
	return taken;
}

/* Find the window with the deepest minimum on the sum of some slices, and the depth of the next one apart from it. Both depths are
 * 0 before. */
static void search_windows(struct search *f, const int *slice, int n, struct minimum *ret, double *ret_second)
{
	double least = (f->views.n_pairs ? OVERLAP_PAIRS : OVERLAP_WEDGE) * f->views.width, far = 0.5 * f->views.width - least;
	const int windows = (int)(far / REACH);

	for (int i = -windows; i <= windows; i++) {
		struct minimum here;

		clear_blocks(&f->cells, &f->blocks);
		for (int k = 0; k < n; k++) {
			if (n > 1 || i == -windows)
				axis_views_read(f->s, f->lines, slice[k], &f->views);
			axis_cells_fill(&f->views, i * REACH, 1, &f->cells);
			add_cells(&f->cells, !f->views.n_pairs, &f->blocks);
		}
		if (!find_least(&f->cells, &f->blocks, !f->views.n_pairs, f->turn, &here))
			continue;
		if (fabs(here.at - ret->at) >= APART)
			*ret_second = fmax(*ret_second, fmin(here.depth, ret->depth));
		if (here.depth > ret->depth)
			*ret = here;
	}
}

/* Find the axis of the slice near `at`, in samples, in the window about it. */
static bool search_window(struct search *f, double at, double part, struct minimum *ret)
{
	const bool wedge = !f->views.n_pairs;

	axis_cells_fill(&f->views, at, part, &f->cells);
	clear_blocks(&f->cells, &f->blocks);
	add_cells(&f->cells, wedge, &f->blocks);
	if (!find_least(&f->cells, &f->blocks, wedge, f->turn, ret) || ret->depth < DEPTH_LEAST)
		return false;
	ret->sigma = find_sigma(&f->cells, &f->blocks, wedge, f->turn, ret->at);
	return isfinite(ret->sigma);
}

/* The mean of windows of several widths: what leaves them moves each minimum in its own way. Their standard deviations are those
 * of few terms, so that half of a weight is the same for all. */
static void join_windows(const struct minimum *each, int n, struct minimum *ret)
{
	double sum = 0, at = 0, variance = 0, spread = 0;

	for (int i = 0; i < n; i++)
		variance += each[i].sigma * each[i].sigma / n;
	for (int i = 0; i < n; i++) {
		double g = 1 / (each[i].sigma * each[i].sigma + variance);

		sum += g;
		at += g * each[i].at;
	}
	ret->at = at / sum;
	for (int i = 0; i < n; i++)
		spread = fmax(spread, fabs(each[i].at - ret->at));
	ret->sigma = SEAM_SIGMA * fmax(SEAM_LEAST, fmax(sqrt(variance), spread / SPREAD_SIGMAS));
}

/* Does the minimum stay where it is if the window is moved by a sample to either side? */
static bool keeps_place(struct search *f, double at)
{
	struct minimum side[2];

	return search_window(f, at - 1, 1, &side[0]) && search_window(f, at + 1, 1, &side[1]) &&
	       fabs(side[1].at - side[0].at) <= FOLLOWED * 2;
}

/* Find the axis of one slice near `at`; the window follows it, because what leaves it on one side only moves the minimum. */
static bool search_slice(struct search *f, int slice, double at, struct minimum *ret)
{
	struct minimum each[1 + NARROWS];
	int n = 1;

	axis_views_read(f->s, f->lines, slice, &f->views);
	for (int i = 0; i < FOLLOW; i++) {
		if (!search_window(f, at, 1, ret))
			return false;
		if (fabs(ret->at - at) < STEP)
			break;
		at = ret->at;
	}
	if (!keeps_place(f, ret->at))
		return false;
	each[0] = *ret;
	for (int i = 0; i < NARROWS; i++) {
		if (!search_window(f, ret->at, narrows[i], &each[n++]))
			return false;
	}
	if (f->views.n_pairs == 0)
		join_windows(each, n, ret);
	for (int i = 1; i < n && f->views.n_pairs > 0; i++)
		ret->sigma = fmax(ret->sigma, fabs(each[i].at - each[0].at) / SPREAD_SIGMAS);
	return true;
}

/* A line through the axes of slices, weighted by their variances. */
static void fit_slices(const struct minimum *each, const double *at, int n, double *ret_middle, double *ret_slope,
		       double *ret_sigma, double *ret_slope_sigma)
{
	double w = 0, x = 0, y = 0, xx = 0, xy = 0, rest = 0;

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
	rest = n > 2 ? rest / (n - 2) : n > 1 ? rest : 1;
	*ret_sigma = sqrt(fmax(1, rest) / w + fmax(0, 1 - rest) * (n - 1) / w); /* what all slices share does not average out */
	*ret_slope_sigma = n > 2 && xx > 0 ? sqrt(fmax(1, rest) / xx) : INFINITY;
}

static bool is_known(const struct parallel_scan *s, double sigma)
{
	return KNOWN_SIGMAS * sigma <= KNOWN_BINS * s->bin;
}

/* Refine the axis of the coarse search (bins) slice by slice. */
static bool search_slices(struct search *f, const int *slice, int n, double bins, struct parallel_axis *ret)
{
	struct minimum each[SLICES];
	double at[SLICES], middle, slope, sigma, slope_sigma, factor = f->views.factor;
	int found = 0;

	for (int i = 0; i < n; i++)
		if (search_slice(f, slice[i], (bins - f->views.middle) / factor, &each[found]))
			at[found++] = slice[i] - 0.5 * (f->s->n_slices - 1);
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
static int search_axis(const struct parallel_scan *s, const float *lines, int effort, struct parallel_axis *ret, struct err *err)
{
	struct search f;
	struct minimum best = {0};
	double second = 0, bins;
	int r = search_open(s, lines, &coarse[effort], &f, err), slice[SLICES];

	if (r == 0)
		search_windows(&f, slice, choose_slices(s, lines, coarse[effort].slices, slice), &best, &second);
	if (r < 0 || best.depth < DEPTH_LEAST) {
		ret->reason = PARALLEL_AXIS_NOISE;
		search_close(&f);
		return r;
	}
	bins = best.at * f.views.factor + f.views.middle;
	ret->by = f.views.n_pairs ? PARALLEL_AXIS_PAIRS : PARALLEL_AXIS_SEAM;
	search_close(&f);
	if (second > AMBIGUOUS * best.depth) {
		ret->reason = PARALLEL_AXIS_AMBIGUOUS;
		return 0;
	}
	r = search_open(s, lines, &fine[effort], &f, err);
	if (r == 0 && !search_slices(&f, slice, choose_slices(s, lines, fine[effort].slices, slice), bins, ret))
		ret->reason = PARALLEL_AXIS_NOISE;
	else if (r == 0)
		ret->reason = is_known(s, ret->sigma) ? PARALLEL_AXIS_KNOWN : PARALLEL_AXIS_UNCERTAIN;
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

/* Join the axis of the search with that of the centres of mass: the mean of both, if they agree. Else one of them has an error
 * that it does not know of; that of the search remains, which needs less of the data, with half of the difference. */
static void join_mass(const struct parallel_scan *s, const struct parallel_consistency *c, struct parallel_axis *a)
{
	struct parallel_axis mass = {
		.by = PARALLEL_AXIS_MASS, .offset = s->offset - c->axis_error, .sigma = hypot(c->axis_sigma, c->axis_doubt)};
	double apart = mass.offset - a->offset, all = a->sigma * a->sigma + mass.sigma * mass.sigma;

	if (!c->known || !c->agree || c->axes_differ)
		return;
	if (a->reason != PARALLEL_AXIS_KNOWN && a->reason != PARALLEL_AXIS_UNCERTAIN) {
		if (is_known(s, mass.sigma))
			*a = mass;
		return;
	}
	if (apart * apart <= AGREE_SIGMAS * AGREE_SIGMAS * all) {
		a->offset += apart * a->sigma * a->sigma / all;
		a->by = mass.sigma < a->sigma ? mass.by : a->by;
		a->sigma = fmax(a->sigma * mass.sigma / sqrt(all), fabs(apart) / (2 * AGREE_SIGMAS));
	} else
		a->sigma = fmax(a->sigma, fabs(apart) / 2);
	if (c->stretched) /* which moves the seam as well */
		a->sigma = fmax(a->sigma, mass.sigma);
	a->reason = is_known(s, a->sigma) ? PARALLEL_AXIS_KNOWN : PARALLEL_AXIS_UNCERTAIN;
}

int parallel_find_axis(const struct parallel_scan *s, const float *lines, const struct parallel_consistency *c,
		       struct parallel_axis *ret, struct err *err)
{
	bool covered = false;
	int r = 0;

	*ret = (struct parallel_axis){.reason = PARALLEL_AXIS_FEW};
	if (s->n_angles >= VIEWS_LEAST && s->n_radial >= BINS_LEAST) {
		r = covers_half_turn(s, &covered, err);
		ret->reason = covered ? PARALLEL_AXIS_NOISE : PARALLEL_AXIS_ARC;
		for (int i = 0; i < EFFORTS && r == 0 && covered && ret->reason != PARALLEL_AXIS_KNOWN; i++)
			if (i == 0 || s->n_slices > coarse[0].slices)
				r = search_axis(s, lines, i, ret, err);
	}
	if (r == 0)
		join_mass(s, c, ret);
	if (ret->by == PARALLEL_AXIS_PAIRS)
		ret->sigma = fmax(ret->sigma, PAIRS_LEAST * s->bin);
	return r;
}
