/* SPDX-License-Identifier: Apache-2.0 */
/* breast_mask.c - find the air of a projection.
 *
 * - All decisions use cells of 1 mm or slightly more, with the mean of their bins: this reduces noise, and later steps are fast
 *   compared with reading the view once.
 * - A compressed breast is some mm thick only a fraction of a mm inside its skin line. So line integrals exceed a threshold well
 *   above the noise of air within one cell of the skin, and its exact value has little effect. The threshold is the level of the
 *   air (the most frequent class of the small line integrals, whatever I0 is) plus six standard deviations of the
 *   cells, estimated from differences of neighbours, which slow shading does not change.
 * - The side opposite the chest wall is, in each row, the last SEED_DEPTH mm with data: beyond them there may be a collimator's
 *   shadow. */
#include "recon/dbt/breast_mask.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define CELL 1.0       /* mm */
#define SEED_DEPTH 5.0 /* mm */
#define LOW 0.4	       /* line integrals of air are smaller, whatever I0 is: 8 mm of tissue */
#define CLASSES 128    /* histogram classes between 0 and LOW */
#define SIGMAS 6
#define RISE_LEAST 0.05 /* least distance of the threshold from the air's level: 1 mm of tissue */
#define RISE_MOST 0.3
#define SHARE_LEAST 0.005 /* least share of air, and of other cells, among the cells with data */
#define COLUMNS 1024	  /* bins summed together */

enum { NO_DATA = -1 }; /* value of a cell without data; means of data are not negative */

struct cells {
	int n_u, n_v;	       /* number of cells */
	int bins_u, bins_v;    /* bins of a cell; the last cells may have fewer */
	double size_u, size_v; /* size of a cell, mm */
	float *mean;	       /* line integral, or NO_DATA */
	unsigned char *air;
	int *work;
};

static int cells_make(const struct scan *scan, struct cells *ret, struct err *err)
{
	struct cells c = {.bins_u = (int)fmin(ceil(0.99 * CELL / scan->h[0]), COLUMNS),
			  .bins_v = (int)fmin(ceil(0.99 * CELL / scan->h[1]), COLUMNS)};
	size_t n;

	c.n_u = (scan->n_u + c.bins_u - 1) / c.bins_u;
	c.n_v = (scan->n_v + c.bins_v - 1) / c.bins_v;
	c.size_u = c.bins_u * scan->h[0];
	c.size_v = c.bins_v * scan->h[1];
	n = (size_t)c.n_u * (size_t)c.n_v;
	c.mean = malloc(n * (sizeof(*c.mean) + sizeof(*c.work) + sizeof(*c.air)));
	if (!c.mean)
		return err_set(err, ENOMEM, "breast mask: no memory for %d x %d cells", c.n_u, c.n_v);
	c.work = (int *)(c.mean + n);
	c.air = (unsigned char *)(c.work + n);
	*ret = c;
	return 0;
}

static int smaller_of(int a, int b)
{
	return a < b ? a : b;
}

/* Add the bins of a row that have data, and count them. */
static inline __attribute__((always_inline)) void add_bins_loop(const float *restrict y, const float *restrict ok, int n,
								float *restrict sum, float *restrict count)
{
	for (int i = 0; i < n; i++) {
		int counts = (ok[i] > 0) & (fabsf(y[i]) <= FLT_MAX);

		sum[i] += counts ? y[i] : 0;
		count[i] += counts ? 1.0f : 0;
	}
}

/* Mark the bins with data as air; return their number. */
static inline __attribute__((always_inline)) size_t mark_bins_loop(float *ok, int n)
{
	int marked = 0;

	for (int i = 0; i < n; i++) {
		int counts = ok[i] > 0;

		ok[i] = counts ? -1 : ok[i];
		marked += counts;
	}
	return (size_t)marked;
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static void add_bins_avx2(const float *y, const float *ok, int n, float *sum, float *count)
{
	add_bins_loop(y, ok, n, sum, count);
}

static void add_bins(const float *y, const float *ok, int n, float *sum, float *count)
{
	if (__builtin_cpu_supports("avx2"))
		add_bins_avx2(y, ok, n, sum, count);
	else
		add_bins_loop(y, ok, n, sum, count);
}

__attribute__((target("avx2"))) static size_t mark_bins_avx2(float *ok, int n)
{
	return mark_bins_loop(ok, n);
}

static size_t mark_bins(float *ok, int n)
{
	return __builtin_cpu_supports("avx2") ? mark_bins_avx2(ok, n) : mark_bins_loop(ok, n);
}
#else
static void add_bins(const float *y, const float *ok, int n, float *sum, float *count)
{
	add_bins_loop(y, ok, n, sum, count);
}

static size_t mark_bins(float *ok, int n)
{
	return mark_bins_loop(ok, n);
}
#endif

/* Compute the means of one row of cells. A cell with less than half of its bins valid has no data. */
static void average_row(const struct scan *scan, const struct cells *c, const float *line, const float *valid, int row)
{
	float *mean = c->mean + (size_t)row * (size_t)c->n_u;
	int v0 = row * c->bins_v, v1 = smaller_of(v0 + c->bins_v, scan->n_v), step = COLUMNS / c->bins_u * c->bins_u;

	for (int from = 0; from < scan->n_u; from += step) {
		float sum[COLUMNS] = {0}, count[COLUMNS] = {0};
		int m = smaller_of(step, scan->n_u - from);

		for (int v = v0; v < v1; v++)
			add_bins(line + (size_t)v * (size_t)scan->n_u + from, valid + (size_t)v * (size_t)scan->n_u + from, m,
				 sum, count);
		for (int i = 0; i < m; i += c->bins_u) {
			int bins = smaller_of(c->bins_u, m - i);
			double s = 0, k = 0;

			for (int b = i; b < i + bins; b++) {
				s += sum[b];
				k += count[b];
			}
			mean[(from + i) / c->bins_u] = 2 * k >= bins * (v1 - v0) && k > 0 ? (float)fmax(0, s / k) : NO_DATA;
		}
	}
}

static bool is_low(float mean)
{
	return mean >= 0 && mean < (float)LOW;
}

static int class_of(double value)
{
	return smaller_of((int)(value * (CLASSES / LOW)), CLASSES - 1);
}

/* Return the histogram class that contains the 90th percentile. */
static int percentile_90(const size_t hist[CLASSES], size_t total)
{
	size_t below = 0;
	int k = 0;

	for (; k < CLASSES - 1 && 10 * (below + hist[k]) < 9 * total; k++)
		below += hist[k];
	return k;
}

/* Find the level of the air and its threshold; false: too few small values for an air region. */
static bool find_level(const struct cells *c, size_t n_data, double *ret_air, double *ret_threshold)
{
	size_t hist[CLASSES] = {0}, steps[CLASSES] = {0}, n_low = 0, n_steps = 0, most = 0;
	int mode = 0;
	double sigma;

	for (int j = 0; j < c->n_v; j++)
		for (int i = 0; i < c->n_u; i++) {
			const float *mean = c->mean + (size_t)j * (size_t)c->n_u + i;

			if (!is_low(*mean))
				continue;
			hist[class_of(*mean)]++;
			n_low++;
			if (i > 0 && is_low(mean[-1])) {
				steps[class_of(fabs(*mean - mean[-1]))]++;
				n_steps++;
			}
		}
	if (n_low == 0 || (double)n_low < SHARE_LEAST * (double)n_data)
		return false;
	for (int k = 0; k < CLASSES; k++) { /* three classes together, for a peak between two classes */
		size_t sum = hist[k] + (k > 0 ? hist[k - 1] : 0) + (k < CLASSES - 1 ? hist[k + 1] : 0);

		if (sum > most) {
			most = sum;
			mode = k;
		}
	}
	/* Nine tenths of |a - b| are below 1.645 sqrt(2) standard deviations; use the class's upper end. The median would fail:
	 * where line integrals are clamped at 0, many differences are 0. */
	sigma = n_steps ? (percentile_90(steps, n_steps) + 1) * (LOW / CLASSES) / 2.326 : 0;
	*ret_air = (mode + 0.5) * (LOW / CLASSES);
	*ret_threshold = *ret_air + fmin(fmax(SIGMAS * sigma, RISE_LEAST), RISE_MOST);
	return true;
}

/* Mark cells at or below the threshold that are connected with the end of the rows; return their number. */
static size_t flood_air(const struct cells *c, double threshold)
{
	int depth = (int)ceil(SEED_DEPTH / c->size_u);
	size_t n = (size_t)c->n_u * (size_t)c->n_v, n_air = 0, waiting = 0;

	memset(c->air, 0, n);
	for (int j = 0; j < c->n_v; j++) {
		const float *mean = c->mean + (size_t)j * (size_t)c->n_u;
		int i = c->n_u - 1;

		while (i >= 0 && mean[i] < 0)
			i--;
		for (int end = i - depth; i >= 0 && i > end; i--)
			if (mean[i] >= 0 && mean[i] <= threshold) {
				c->air[(size_t)j * (size_t)c->n_u + (size_t)i] = 1;
				c->work[waiting++] = j * c->n_u + i;
				break;
			}
	}
	while (waiting > 0) {
		int at = c->work[--waiting], i = at % c->n_u, j = at / c->n_u;
		const int next[4] = {i > 0 ? at - 1 : -1, i < c->n_u - 1 ? at + 1 : -1, j > 0 ? at - c->n_u : -1,
				     j < c->n_v - 1 ? at + c->n_u : -1};

		n_air++;
		for (int k = 0; k < 4; k++)
			if (next[k] >= 0 && !c->air[next[k]] && c->mean[next[k]] >= 0 && c->mean[next[k]] <= threshold) {
				c->air[next[k]] = 1;
				c->work[waiting++] = next[k];
			}
	}
	return n_air;
}

/* Compute the distance along u from each cell to the nearest cell of its row that is not air, in cells; n_u or more: there is
 * none. */
static void compute_distances(const struct cells *c)
{
	for (int j = 0; j < c->n_v; j++) {
		const unsigned char *air = c->air + (size_t)j * (size_t)c->n_u;
		int *away = c->work + (size_t)j * (size_t)c->n_u, far = c->n_u + c->n_v;

		for (int i = 0; i < c->n_u; i++)
			away[i] = far = air[i] ? far + 1 : 0;
		far = c->n_u + c->n_v;
		for (int i = c->n_u - 1; i >= 0; i--) {
			far = air[i] ? far + 1 : 0;
			away[i] = smaller_of(away[i], far);
		}
	}
}

/* Return the least distance along u, in cells, at which cells of two rows `across` apart are not nearer than `margin`. */
static int least_away(const struct cells *c, double margin, int across)
{
	double d_v = fmax(0, across - 1) * c->size_v; /* of the edges of the cells */
	int away = 0;

	while (away < c->n_u) {
		double d_u = fmax(0, away - 1) * c->size_u;

		if (!(d_u * d_u + d_v * d_v < margin * margin))
			break;
		away++;
	}
	return away;
}

/* Unmark n cells that are less than `least` away. */
static inline __attribute__((always_inline)) void unmark_loop(const int *restrict away, int least, int n,
							      unsigned char *restrict air)
{
	for (int i = 0; i < n; i++)
		air[i] = away[i] < least ? 0 : air[i];
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static void unmark_avx2(const int *away, int least, int n, unsigned char *air)
{
	unmark_loop(away, least, n, air);
}
#endif

static void unmark_cells(const int *away, int least, int n, unsigned char *air)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2")) {
		unmark_avx2(away, least, n, air);
		return;
	}
#endif
	unmark_loop(away, least, n, air);
}

/* Unmark air cells with any part nearer than `margin` to a cell that is not air. */
static void erode_air(const struct cells *c, double margin)
{
	int reach = (int)fmin(ceil(margin / c->size_v), c->n_v);

	compute_distances(c);
	for (int across = 0; across <= reach; across++) {
		int least = least_away(c, margin, across);

		for (int j = 0; j < c->n_v; j++)
			for (int k = j - across; k <= j + across; k += across ? 2 * across : 1)
				if (k >= 0 && k < c->n_v)
					unmark_cells(c->work + (size_t)k * (size_t)c->n_u, least, c->n_u,
						     c->air + (size_t)j * (size_t)c->n_u);
	}
}

static size_t mark_air(const struct scan *scan, const struct cells *c, float *valid)
{
	size_t marked = 0;

#pragma omp parallel for schedule(static) reduction(+ : marked)
	for (int v = 0; v < scan->n_v; v++) {
		const unsigned char *air = c->air + (size_t)(v / c->bins_v) * (size_t)c->n_u;
		float *ok = valid + (size_t)v * (size_t)scan->n_u;

		for (int i = 0; i < c->n_u; i++) {
			int first = i;

			while (i < c->n_u && air[i])
				i++;
			if (i > first)
				marked += mark_bins(ok + first * c->bins_u,
						    smaller_of(i * c->bins_u, scan->n_u) - first * c->bins_u);
		}
	}
	return marked;
}

int breast_mask_view(const struct scan *scan, double margin, const float *line, float *valid,
		     struct breast_mask_report *ret_report, struct err *err)
{
	struct breast_mask_report report = {.verdict = BREAST_MASK_NO_AIR};
	struct cells c;
	size_t n_data = 0, n_air;
	int r;

	if (scan->kind != SCAN_DBT)
		return err_set(err, EINVAL, "breast mask: scan of kind %d, not tomosynthesis", (int)scan->kind);
	if (!(margin >= 0 && margin <= 1000))
		return err_set(err, EINVAL, "breast mask: margin %g mm, not in 0..1000", margin);
	r = cells_make(scan, &c, err);
	if (r < 0)
		return r;
#pragma omp parallel for schedule(static)
	for (int j = 0; j < c.n_v; j++)
		average_row(scan, &c, line, valid, j);
	for (size_t i = 0; i < (size_t)c.n_u * (size_t)c.n_v; i++)
		n_data += c.mean[i] >= 0;
	if (!find_level(&c, n_data, &report.air, &report.threshold))
		goto out;
	n_air = flood_air(&c, report.threshold);
	if ((double)(n_data - n_air) < SHARE_LEAST * (double)n_data) {
		report.verdict = BREAST_MASK_ALL_AIR;
		goto out;
	}
	if ((double)n_air < SHARE_LEAST * (double)n_data)
		goto out;
	erode_air(&c, margin);
	report.marked = mark_air(scan, &c, valid);
	report.verdict = BREAST_MASK_MARKED;
out:
	if (ret_report)
		*ret_report = report;
	free(c.mean);
	return 0;
}
