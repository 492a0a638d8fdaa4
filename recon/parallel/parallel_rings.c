/* SPDX-License-Identifier: Apache-2.0 */
/* parallel_rings.c - see parallel_rings.h. Slices one after the other, the bins of a slice in parallel. The least squares have a
 * band matrix, solved by Cholesky's method. */
#include "recon/parallel/parallel_rings.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SMALL 0.02 /* a, for each distance: offsets of many bins that are alike are no rings */
#define SECTORS 6  /* of views, by angle */
#define AGREE 1	   /* this many sectors may say something else */
#define PASSES 4
#define LOOKED_AT 8    /* slices that are looked at again */
#define LEAST_WIDTHS 8 /* radial bins, in widths */
#define LEAST_ANGLES (2 * SECTORS)
#define ROUND 0.5	     /* of the squares of the offsets, at least: an object that is round about the axis */
#define ROUND_BINS (1.0 / 3) /* of the bins, at least, are as on the other side: two equal rings are few */
#define AROUND_MAX (4 * PARALLEL_RING_WIDTH_MAX - 1)

struct turned {
	double angle;
	int view;
};

struct finder {
	const struct parallel_scan *s;
	int n;			   /* radial bins */
	int *view;		   /* views in the order of their angles */
	int farthest;		   /* largest distance of neighbours */
	int reach;		   /* of the matrix */
	double (*sector)[SECTORS]; /* [bin]: medians at one distance */
	double *all;		   /* [bin]: of all views */
	double *around;		   /* their neighbours */
	double *band;		   /* [bin][0 to reach]: the matrix, its diagonal first */
	double *found;		   /* the offsets of a pass */
	double *offset;
	bool is_round; /* the object is round about the axis, and its offsets are left out */
};

/* Return the lower median of n values; changes their order (Hoare 1961). */
static float select_median(float *x, int n)
{
	int low = 0, high = n - 1, middle = (n - 1) / 2;

	while (low < high) {
		float pivot = x[(low + high) / 2];
		int i = low, j = high;

		while (i <= j) {
			while (x[i] < pivot)
				i++;
			while (x[j] > pivot)
				j--;
			if (i <= j) {
				float kept = x[i];

				x[i++] = x[j];
				x[j--] = kept;
			}
		}
		if (middle <= j)
			high = j;
		else if (middle >= i)
			low = i;
		else
			break;
	}
	return x[middle];
}

/* Angle of a view after the first one, within a turn. */
static double angle_of(const struct parallel_scan *s, int view)
{
	double angle = fmod(parallel_angle(s, view) - parallel_angle(s, 0), 360);

	return angle < 0 ? angle + 360 : angle;
}

static int compare_angles(const void *a, const void *b)
{
	const struct turned *x = a, *y = b;

	return x->angle < y->angle ? -1 : x->angle > y->angle ? 1 : x->view - y->view;
}

/* Order the views: those of a sector are beside each other, in whatever order they were taken. NULL: no memory. */
static int *order_views(const struct parallel_scan *s)
{
	struct turned *all = malloc((size_t)s->n_angles * sizeof(*all));
	int *ret = malloc((size_t)s->n_angles * sizeof(*ret));

	if (!all || !ret) {
		free(all);
		free(ret);
		return NULL;
	}
	for (int a = 0; a < s->n_angles; a++)
		all[a] = (struct turned){angle_of(s, a), a};
	qsort(all, (size_t)s->n_angles, sizeof(*all), compare_angles);
	for (int a = 0; a < s->n_angles; a++)
		ret[a] = all[a].view;
	free(all);
	return ret;
}

/* Set the medians of bins less the mean of their neighbours at distance k, with the offsets found so far. */
static int find_medians(struct finder *f, const float *lines, int k, struct err *err)
{
	int n_views = f->s->n_angles, failed = 0;

#pragma omp parallel reduction(+ : failed)
	{
		float *x = malloc((size_t)n_views * sizeof(*x));

		failed += !x;
#pragma omp for schedule(static)
		for (int t = k; t < f->n - k; t++) {
			float own = (float)(f->offset[t] - 0.5 * (f->offset[t - k] + f->offset[t + k]));

			for (int a = 0; x && a < n_views; a++) {
				const float *y = lines + (size_t)f->view[a] * (size_t)f->n + t;

				x[a] = y[0] - 0.5f * (y[-k] + y[k]) - own;
			}
			for (int i = 0; x && i < SECTORS; i++) {
				int first = i * n_views / SECTORS, end = (i + 1) * n_views / SECTORS;

				f->sector[t][i] = (double)select_median(x + first, end - first);
			}
			f->all[t] = x ? (double)select_median(x, n_views) : 0;
		}
		free(x);
	}
	return failed ? err_set(err, ENOMEM, "no memory for %d angles", n_views) : 0;
}

/* The medians of the bins around each bin. */
static void find_around(struct finder *f, int k)
{
	int reach = f->farthest, low = k, high = f->n - k;

	for (int t = low; t < high; t++) {
		float around[AROUND_MAX];
		int first = t - reach > low ? t - reach : low, end = t + reach + 1 < high ? t + reach + 1 : high;

		for (int i = first; i < end; i++)
			around[i - first] = (float)f->all[i];
		f->around[t] = (double)select_median(around, end - first);
	}
}

/* What all sectors but AGREE say at least, of one sign; 0: they do not agree. */
static double find_agreed(const double sector[SECTORS], double around)
{
	double x[SECTORS];

	memcpy(x, sector, sizeof(x));
	for (int i = 1; i < SECTORS; i++) /* sort them */
		for (int j = i; j > 0 && x[j] < x[j - 1]; j--) {
			double kept = x[j];

			x[j] = x[j - 1];
			x[j - 1] = kept;
		}
	if (x[AGREE] > around)
		return x[AGREE] - around;
	return x[SECTORS - 1 - AGREE] < around ? x[SECTORS - 1 - AGREE] - around : 0;
}

/* Add what the bins at distance k say to the equations. */
static void add_equations(struct finder *f, int k)
{
	size_t row = (size_t)f->reach + 1;

	for (int t = k; t < f->n - k; t++) {
		const double e = find_agreed(f->sector[t], f->around[t]), part[3] = {-0.5, 1, -0.5};

		for (int i = 0; i < 3; i++) {
			f->found[t + (i - 1) * k] += part[i] * e;
			for (int j = i; j < 3; j++)
				f->band[(size_t)(t + (i - 1) * k) * row + (size_t)((j - i) * k)] += part[i] * part[j];
		}
	}
}

/* Solve the band matrix times x = f->found, in place. */
static void solve_band(struct finder *f)
{
	int reach = f->reach, row = reach + 1;
	double *m = f->band, *x = f->found;

	for (int t = 0; t < f->n; t++) { /* L' of L L', row by row */
		double *own = m + (size_t)t * (size_t)row;

		own[0] = sqrt(own[0]);
		for (int k = 1; k <= reach; k++)
			own[k] /= own[0];
		x[t] /= own[0];
		for (int k = 1; k <= reach && t + k < f->n; k++) {
			double *below = own + (size_t)k * (size_t)row;

			for (int i = k; i <= reach; i++)
				below[i - k] -= own[k] * own[i];
			x[t + k] -= own[k] * x[t];
		}
	}
	for (int t = f->n - 1; t >= 0; t--) {
		const double *own = m + (size_t)t * (size_t)row;

		for (int k = 1; k <= reach && t + k < f->n; k++)
			x[t] -= own[k] * x[t + k];
		x[t] /= own[0];
	}
}

/* Add to the offsets what is left with them. */
static int find_more(struct finder *f, const float *lines, struct err *err)
{
	size_t row = (size_t)f->reach + 1;
	int r = 0;

	memset(f->band, 0, (size_t)f->n * row * sizeof(*f->band));
	memset(f->found, 0, (size_t)f->n * sizeof(*f->found));
	for (int t = 0; t < f->n; t++)
		f->band[(size_t)t * row] = SMALL * f->farthest;
	for (int k = 1; r == 0 && k <= f->farthest; k++) {
		r = find_medians(f, lines, k, err);
		if (r == 0) {
			find_around(f, k);
			add_equations(f, k);
		}
	}
	if (r < 0)
		return r;
	solve_band(f);
	for (int t = 0; t < f->n; t++)
		f->offset[t] += f->found[t];
	return 0;
}

/* ---- an object that is round about the axis ---- */

/* Sum the products of offsets with those on the other side, of bins with t + other = both. */
static double sum_products(const struct finder *f, int both)
{
	double sum = 0;

	for (int t = both < f->n ? 0 : both - f->n + 1; both - 2 * t > 2 * (f->farthest + 1); t++)
		sum += 2 * f->offset[t] * f->offset[both - t];
	return sum;
}

/* Find the middle between bins with the same offsets on both sides. Return the part of the squares of all that is the same. */
static double find_middle(const struct finder *f, double all, int *ret_both)
{
	double *sum = f->band; /* it has 3 values or more for each bin */

#pragma omp parallel for schedule(dynamic, 64)
	for (int both = 0; both < 2 * f->n - 1; both++)
		sum[both] = sum_products(f, both);
	*ret_both = 0;
	for (int both = 1; both < 2 * f->n - 1; both++)
		*ret_both = sum[both] > sum[*ret_both] ? both : *ret_both;
	return all > 0 ? sum[*ret_both] / all : 0;
}

/* How much are the offsets around a bin those on the other side? 1: the same, 0: not at all. */
static double find_alike(const struct finder *f, int t, int both)
{
	double products = 0, squares = 0;

	for (int i = t - f->farthest - 1; i <= t + f->farthest + 1; i++) {
		if (i < 0 || i >= f->n || both - i < 0 || both - i >= f->n)
			continue;
		products += 2 * f->offset[i] * f->offset[both - i];
		squares += f->offset[i] * f->offset[i] + f->offset[both - i] * f->offset[both - i];
	}
	return squares > 0 ? products / squares : 0;
}

/* Set the offsets that an object makes which is round about the axis to 0. Return whether there is one. */
static bool spare_round(struct finder *f, double all)
{
	int both, n_alike = 0, n_both;

	if (find_middle(f, all, &both) < ROUND)
		return false;
	if (!f->s->offset_unknown && fabs(0.5 * both - 0.5 * (f->n - 1) + f->s->offset / f->s->bin) > 1)
		return false;
	n_both = both < f->n ? both + 1 : 2 * f->n - 1 - both;
	for (int t = 0; t < f->n; t++) {
		f->around[t] = both - t < 0 || both - t >= f->n ? 0 : find_alike(f, t, both);
		n_alike += f->around[t] > ROUND;
	}
	if (n_alike < ROUND_BINS * n_both)
		return false;
	for (int t = 0; t < f->n; t++)
		f->offset[t] = f->around[t] > ROUND ? 0 : f->offset[t];
	return true;
}

static double square_offsets(const struct finder *f)
{
	double sum = 0;

	for (int t = 0; t < f->n; t++)
		sum += f->offset[t] * f->offset[t];
	return sum / f->n;
}

static int find_offsets(struct finder *f, const float *lines, struct err *err)
{
	int r = 0;

	memset(f->offset, 0, (size_t)f->n * sizeof(*f->offset));
	for (int pass = 0; r == 0 && pass < PASSES; pass++)
		r = find_more(f, lines, err);
	f->is_round = r == 0 && spare_round(f, f->n * square_offsets(f));
	return r;
}

static void subtract_offsets(const struct finder *f, float *lines)
{
#pragma omp parallel for schedule(static)
	for (int a = 0; a < f->s->n_angles; a++)
		for (int t = 0; t < f->n; t++)
			lines[(size_t)a * (size_t)f->n + (size_t)t] -= (float)f->offset[t];
}

int parallel_remove_rings(const struct parallel_scan *s, int width, float *lines, const struct monitor *monitor,
			  struct parallel_rings *ret, struct err *err)
{
	size_t n = (size_t)s->n_radial, slice = n * (size_t)s->n_angles;
	int step = (s->n_slices + LOOKED_AT - 1) / LOOKED_AT, looked = 0, r = 0;
	struct finder f = {.s = s, .n = s->n_radial, .farthest = 2 * width - 1, .reach = 4 * width - 2};
	double *memory;

	*ret = (struct parallel_rings){0};
	if (width < 1 || width > PARALLEL_RING_WIDTH_MAX || s->n_radial < LEAST_WIDTHS * width || s->n_angles < LEAST_ANGLES)
		return err_set(
			err, EINVAL,
			"rings of %d of %d radial bins in %d angles; allowed: 1 to %d, at most an eighth of the bins, at least "
			"%d angles",
			width, s->n_radial, s->n_angles, PARALLEL_RING_WIDTH_MAX, LEAST_ANGLES);
	memory = malloc(n * (size_t)(SECTORS + 4 + f.reach + 1) * sizeof(*memory));
	f.view = order_views(s);
	if (!memory || !f.view) {
		free(memory);
		free(f.view);
		return err_set(err, ENOMEM, "no memory for the offsets of %zu radial bins", n);
	}
	f.sector = (double(*)[SECTORS])memory;
	f.all = memory + SECTORS * n;
	f.around = f.all + n;
	f.found = f.around + n;
	f.offset = f.found + n;
	f.band = f.offset + n;
	for (int k = 0; r == 0 && k < s->n_slices; k++) {
		float *own = lines + (size_t)k * slice;

		r = monitor_cancelled(monitor)
			    ? err_set(err, ECANCELED, "cancelled after the rings of %d of %d slices", k, s->n_slices)
			    : find_offsets(&f, own, err);
		if (r < 0)
			break;
		ret->before += k % step ? 0 : square_offsets(&f);
		ret->n_round += f.is_round;
		subtract_offsets(&f, own);
		if (k % step == 0) {
			r = find_offsets(&f, own, err);
			ret->after += square_offsets(&f);
			looked++;
		}
		monitor_progress(monitor, "prepare", (k + 1.0) / s->n_slices);
	}
	free(memory);
	free(f.view);
	ret->before = looked ? sqrt(ret->before / looked) : 0;
	ret->after = looked ? sqrt(ret->after / looked) : 0;
	return r;
}
