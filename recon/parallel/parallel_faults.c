/* SPDX-License-Identifier: Apache-2.0 */
/* parallel_faults.c - which slices have a fault that the rest has not?
 *
 * - Views that contradict each other or the angles, by each slice alone (parallel_consistency.c).
 * - An axis of rotation (the constant of the centres of mass) that is not that of the rest: farther from the median of the slices
 *   than a bin, than noise and fit of the slice and the spread of the others explain. The axis of a stage that leans is no exception.
 * - Bins or views in reverse order, and multiples of the line integrals: each slice is compared with the one before it, as it is
 *   and reversed. An object changes little from slice to slice, so that a slice that is more like the one before it if it is
 *   reversed is the beginning or the end of reversed slices; the order of most slices is the right one. An object whose centre
 *   moves from one side to the other does not turn between two slices. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/order.h"
#include "recon/parallel/parallel_internal.h"

#define AXIS_BINS 1.0	 /* smallest error of an axis: it doubles edges */
#define AXIS_SIGMAS 5.0	 /* of the slice */
#define AXIS_SPREADS 8.0 /* median deviations of all slices */
#define AXIS_LEAST 3	 /* slices */
#define VIEWS_ENOUGH 128 /* of each slice are compared */
#define TURN_LESS 0.05	 /* reversed, of the squared difference of two slices as they are */
#define TURN_MOST 0.03	 /* of the square of the slice */
#define TURN_TYPICAL 2.0 /* of the usual squared difference: an object that changes there differs more */
#define TURN_NONE 2.0	 /* as they are, of the squared difference in the best order: another order may be better by chance */
#define SCALE_SHAPE 0.01 /* of the square of the slice: what its multiple leaves */
#define SCALE_APART 0.04 /* of a multiple from a whole number, or from one of its inverse */
#define SCALE_ALIKE 0.1	 /* levels of the rest */

enum { BINS = 1, VIEWS = 2, TURNS = 4, UNLIKE = -1 }; /* sums of BINS and VIEWS: which order is reversed */

/* Sums of two slices: of their squares and products, of their squared differences by what is reversed. */
struct pair {
	double xx, xy, yy, apart[TURNS];
};

static const float *view_of(const struct parallel_scan *s, const float *lines, int slice, int view)
{
	return lines + ((size_t)slice * (size_t)s->n_angles + (size_t)view) * (size_t)s->n_radial;
}

static struct pair compare(const struct parallel_scan *s, const float *lines, int k)
{
	const int n = s->n_radial, half = (s->n_angles + 1) / 2,
		  step = s->n_angles > VIEWS_ENOUGH ? s->n_angles / VIEWS_ENOUGH : 1;
	double xx = 0, xy = 0, yy = 0, apart[TURNS] = {0};

#pragma omp parallel for schedule(static) reduction(+ : xx, xy, yy, apart)
	for (int i = 0; i < 2 * half; i += 2 * step)
		for (int side = 0; side < 2; side++) {
			int a = side ? s->n_angles - 1 - i / 2 : i / 2;
			const float *here = view_of(s, lines, k, a), *before = view_of(s, lines, k - 1, a);
			const float *turned = view_of(s, lines, k - 1, s->n_angles - 1 - a);

			for (int t = 0; t < n; t++) {
				double x = (double)here[t], y = (double)before[t];

				xx += x * x;
				xy += x * y;
				yy += y * y;
				apart[0] += (x - y) * (x - y);
				apart[BINS] += pow(x - (double)before[n - 1 - t], 2);
				apart[VIEWS] += pow(x - (double)turned[t], 2);
				apart[BINS + VIEWS] += pow(x - (double)turned[n - 1 - t], 2);
			}
		}
	return (struct pair){xx, xy, yy, {apart[0], apart[1], apart[2], apart[3]}};
}

/* Return the order in which the two slices are most alike. */
static int find_best(const struct pair *p)
{
	int best = 0;

	for (int i = 1; i < TURNS; i++)
		if (p->apart[i] < p->apart[best])
			best = i;
	return best;
}

/* Return the squared difference of the slices in an order, in their squares; 0: they are empty. */
static double relative(const struct pair *p, int order)
{
	double most = fmax(p->xx, p->yy);

	return most > 0 ? p->apart[order] / most : 0;
}

/* Return which order is reversed between the two slices; UNLIKE: they are too different. usual: squared difference of neighbouring
 * slices. */
static int find_turn(const struct pair *p, double usual)
{
	int best = find_best(p);
	double rest = relative(p, best);

	if (p->apart[best] < TURN_LESS * p->apart[0] && rest < TURN_MOST && rest <= TURN_TYPICAL * usual)
		return best;
	return p->apart[0] <= TURN_NONE * p->apart[best] ? 0 : UNLIKE;
}

/* Is it 2, 3 ... or a half, a third ...? */
static bool is_multiple(double scale)
{
	double of = scale < 1 ? 1 / scale : scale, whole = floor(of + 0.5);

	return whole >= 2 && fabs(of - whole) <= SCALE_APART * whole;
}

/* Return by which number the line integrals are multiplied between the two slices; UNLIKE: the shape is another. */
static double find_scale(const struct pair *p)
{
	double scale = p->yy > 0 ? p->xy / p->yy : 0;

	return scale > 0 && p->xx - scale * p->xy <= SCALE_SHAPE * p->xx ? scale : UNLIKE;
}

static bool is_same(const struct parallel_scan *s, const float *lines, int k)
{
	const size_t size = (size_t)s->n_angles * (size_t)s->n_radial * sizeof(*lines);

	return !memcmp(view_of(s, lines, k, 0), view_of(s, lines, k - 1, 0), size);
}

static void mark(unsigned char *fault, int k, enum parallel_fault what)
{
	if (fault[k] == PARALLEL_GOOD)
		fault[k] = (unsigned char)what;
}

/* Mark slices by what they say alone, if most say something else. */
static void mark_alone(int n, const struct parallel_consistency *each, unsigned char *fault)
{
	int known = 0, bad = 0;

	for (int k = 0; k < n; k++) {
		known += each[k].known || each[k].n_odd > 0;
		bad += each[k].n_odd > 0 || !each[k].agree;
	}
	for (int k = 0; k < n && n > 2 && 2 * bad <= known; k++) {
		if (each[k].n_odd > 0)
			mark(fault, k, PARALLEL_ODD_VIEW);
		else if (!each[k].agree)
			mark(fault, k, PARALLEL_ANGLES);
	}
}

/* Return the end of the slices from `first` of which each is like the one before it. */
static int end_of(int n, const double *value, int first)
{
	int end = first + 1;

	while (end < n && value[end] != UNLIKE)
		end++;
	return end;
}

/* Mark slices whose bins or views have another order than those of most; turn: of each slice after the one before it. */
static void mark_turned(int n, const double *turn, unsigned char *fault)
{
	static const enum parallel_fault faults[TURNS] = {PARALLEL_GOOD, PARALLEL_BINS_REVERSED, PARALLEL_VIEWS_REVERSED,
							  PARALLEL_BOTH_REVERSED};

	for (int first = 0, end; first < n; first = end) {
		int count[TURNS] = {0}, most = 0, now = 0;

		end = end_of(n, turn, first);
		for (int k = first; k < end; k++) {
			now = k > first ? now ^ (int)turn[k] : 0;
			count[now]++;
		}
		for (int i = 1; i < TURNS; i++)
			if (count[i] > count[most])
				most = i;
		for (int k = first; k < end && 2 * count[most] > end - first; k++) {
			now = k > first ? now ^ (int)turn[k] : most;
			mark(fault, k, faults[now]);
		}
	}
}

/* Mark slices that are multiples of most of the others; scale: of each slice, in the one before it. */
static void mark_scaled(int n, const double *scale, double *work, unsigned char *fault, double *ret_value)
{
	for (int first = 0, end; first < n; first = end) {
		double middle, level = 1;
		int alike = 0;

		end = end_of(n, scale, first);
		for (int k = first; k < end; k++)
			work[k - first] = level *= k > first ? scale[k] : 1;
		middle = parallel_median(work, end - first);
		for (int k = 0; k < end - first; k++)
			alike += fabs(work[k] / middle - 1) <= SCALE_ALIKE;
		level = 1 / middle;
		for (int k = first; k < end && 2 * alike > end - first; k++) {
			level *= k > first ? scale[k] : 1;
			if (!is_multiple(level) || (level < 1 && (k == first || k == end - 1))) /* the end of an object */
				continue;
			mark(fault, k, PARALLEL_SCALED);
			ret_value[k] = level;
		}
	}
}

/* Mark slices that are copies, unless most are: of an object that is the same in all slices, without noise. */
static void mark_copies(int n, const bool *same, unsigned char *fault)
{
	int copies = 0;

	for (int k = 1; k < n; k++)
		copies += same[k];
	for (int k = 1; k < n && 2 * copies <= n - 1; k++)
		if (same[k])
			mark(fault, k, PARALLEL_COPY);
}

static void mark_axis(const struct parallel_scan *s, const struct parallel_consistency *each, double *work, unsigned char *fault,
		      double *ret_value)
{
	double middle, spread;
	int n = 0, m = 0;

	for (int k = 0; k < s->n_slices; k++)
		if (!fault[k] && each[k].known && each[k].agree)
			work[n++] = each[k].axis_error;
	if (n < AXIS_LEAST)
		return;
	middle = parallel_median(work, n);
	for (int i = 0; i < n; i++)
		work[i] = fabs(work[i] - middle);
	spread = parallel_median(work, n);
	for (int k = 0; k < s->n_slices; k++) {
		double apart = each[k].axis_error - middle, least = fmax(AXIS_BINS * s->bin, AXIS_SPREADS * spread);

		least = fmax(least, fmax(each[k].centre_limit, AXIS_SIGMAS * each[k].axis_sigma));
		if (fault[k] || !each[k].known || !each[k].agree || fabs(apart) <= least)
			continue;
		mark(fault, k, PARALLEL_AXIS);
		ret_value[k] = apart;
		m++;
	}
	for (int k = 0; k < s->n_slices && 2 * m > n; k++)
		if (fault[k] == PARALLEL_AXIS)
			fault[k] = PARALLEL_GOOD;
}

struct work {
	struct pair *pair;	/* of each slice and the one before; [0] is not used */
	double *turn, *scale;	/* [n_slices], to the slice before; UNLIKE: they cannot be compared */
	double *value, *sorted; /* [n_slices] */
	bool *same;
};

static void find(const struct parallel_scan *s, const float *lines, const struct parallel_consistency *each, struct work *w,
		 unsigned char *fault)
{
	const int n = s->n_slices;
	double usual;

	for (int k = 1; k < n; k++) {
		w->pair[k] = compare(s, lines, k);
		w->sorted[k - 1] = relative(&w->pair[k], find_best(&w->pair[k]));
	}
	qsort(w->sorted, (size_t)(n - 1), sizeof(double), order_doubles);
	usual = n > 2 ? w->sorted[(n - 2) / 2] : 0; /* the lower one of two */
	for (int k = 1; k < n; k++) {
		const struct pair *p = &w->pair[k];

		w->turn[k] = find_turn(p, usual);
		w->scale[k] = find_scale(p);
		w->same[k] = p->apart[0] == 0 && p->xx > 0 && each[k].noisy_air && is_same(s, lines, k);
	}
	mark_alone(n, each, fault);
	mark_turned(n, w->turn, fault);
	mark_scaled(n, w->scale, w->sorted, fault, w->value);
	mark_copies(n, w->same, fault);
	mark_axis(s, each, w->sorted, fault, w->value);
}

void parallel_find_faults(const struct parallel_scan *s, const float *lines, const struct parallel_consistency *each,
			  unsigned char *fault, struct parallel_faults *ret)
{
	const size_t n = (size_t)s->n_slices;
	struct work w = {calloc(n, sizeof(struct pair)), calloc(n, sizeof(double)), calloc(n, sizeof(double)),
			 calloc(n, sizeof(double)),	 calloc(n, sizeof(double)), calloc(n, sizeof(bool))};

	if (w.pair && w.turn && w.scale && w.value && w.sorted && w.same)
		find(s, lines, each, &w, fault);
	for (size_t k = 0; k < n; k++)
		if (fault[k] && ret->of[fault[k]].n++ == 0) {
			ret->of[fault[k]].first = (int)k;
			ret->of[fault[k]].value = w.value[k];
			ret->of[fault[k]].c = each[k];
		}
	free(w.same);
	free(w.sorted);
	free(w.value);
	free(w.scale);
	free(w.turn);
	free(w.pair);
}
