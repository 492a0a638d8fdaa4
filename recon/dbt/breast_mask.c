/* SPDX-License-Identifier: Apache-2.0 */
/* breast_mask.c - find the air of a projection.
 *
 * - All decisions use cells with the mean of their bins (recon/dbt/view_cells.h).
 * - A compressed breast is some mm thick only a fraction of a mm inside its skin line. So line integrals exceed a threshold well
 *   above the noise of air within one cell of the skin, and its exact value has little effect. The threshold is the level of the
 *   air (the most frequent class of the small line integrals, whatever I0 is) plus six standard deviations of the
 *   cells, estimated from differences of neighbours, which slow shading does not change.
 * - The side opposite the chest wall is, in each row, the last SEED_DEPTH mm with data: beyond them there may be a collimator's
 *   shadow. */
#include "recon/dbt/breast_mask.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/avx2.h"
#include "kernels/order.h"
#include "recon/dbt/view_cells.h"

#define SEED_DEPTH 5.0 /* mm */
#define LOW 0.4	       /* line integrals of air are smaller, whatever I0 is: 8 mm of tissue */
#define CLASSES 128    /* histogram classes between 0 and LOW */
#define SIGMAS 6
#define RISE_LEAST 0.05 /* least distance of the threshold from the air's level: 1 mm of tissue */
#define RISE_MOST 0.3
#define SHARE_LEAST 0.005 /* least share of air, and of other cells, among the cells with data */

struct cells {
	struct view_cells grid;
	float *mean; /* line integral, or VIEW_CELLS_NO_DATA */
	unsigned char *air;
	int *work;
};

static int cells_make(const struct scan *scan, struct cells *ret, struct err *err)
{
	struct cells c = {.grid = view_cells_of(scan)};
	size_t n = (size_t)c.grid.n_u * (size_t)c.grid.n_v;

	c.mean = malloc(n * (sizeof(*c.mean) + sizeof(*c.work) + sizeof(*c.air)));
	if (!c.mean)
		return err_set(err, ENOMEM, "breast mask: no memory for %d x %d cells", c.grid.n_u, c.grid.n_v);
	c.work = (int *)(c.mean + n);
	c.air = (unsigned char *)(c.work + n);
	*ret = c;
	return 0;
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

FOR_AVX2(size_t, mark_bins, (float *ok, int n), (ok, n))

static bool is_low(float mean)
{
	return mean >= 0 && mean < (float)LOW;
}

static int class_of(double value)
{
	return order_smaller((int)(value * (CLASSES / LOW)), CLASSES - 1);
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

	for (int j = 0; j < c->grid.n_v; j++)
		for (int i = 0; i < c->grid.n_u; i++) {
			const float *mean = c->mean + (size_t)j * (size_t)c->grid.n_u + i;

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
	int depth = (int)ceil(SEED_DEPTH / c->grid.size_u);
	size_t n = (size_t)c->grid.n_u * (size_t)c->grid.n_v, n_air = 0, waiting = 0;

	memset(c->air, 0, n);
	for (int j = 0; j < c->grid.n_v; j++) {
		const float *mean = c->mean + (size_t)j * (size_t)c->grid.n_u;
		int i = c->grid.n_u - 1;

		while (i >= 0 && mean[i] < 0)
			i--;
		for (int end = i - depth; i >= 0 && i > end; i--)
			if (mean[i] >= 0 && mean[i] <= threshold) {
				c->air[(size_t)j * (size_t)c->grid.n_u + (size_t)i] = 1;
				c->work[waiting++] = j * c->grid.n_u + i;
				break;
			}
	}
	while (waiting > 0) {
		int at = c->work[--waiting], i = at % c->grid.n_u, j = at / c->grid.n_u;
		const int next[4] = {i > 0 ? at - 1 : -1, i < c->grid.n_u - 1 ? at + 1 : -1, j > 0 ? at - c->grid.n_u : -1,
				     j < c->grid.n_v - 1 ? at + c->grid.n_u : -1};

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
	for (int j = 0; j < c->grid.n_v; j++) {
		const unsigned char *air = c->air + (size_t)j * (size_t)c->grid.n_u;
		int *away = c->work + (size_t)j * (size_t)c->grid.n_u, far = c->grid.n_u + c->grid.n_v;

		for (int i = 0; i < c->grid.n_u; i++)
			away[i] = far = air[i] ? far + 1 : 0;
		far = c->grid.n_u + c->grid.n_v;
		for (int i = c->grid.n_u - 1; i >= 0; i--) {
			far = air[i] ? far + 1 : 0;
			away[i] = order_smaller(away[i], far);
		}
	}
}

/* Return the least distance along u, in cells, at which cells of two rows `across` apart are not nearer than `margin`. */
static int least_away(const struct cells *c, double margin, int across)
{
	double d_v = fmax(0, across - 1) * c->grid.size_v; /* of the edges of the cells */
	int away = 0;

	while (away < c->grid.n_u) {
		double d_u = fmax(0, away - 1) * c->grid.size_u;

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

FOR_AVX2(void, unmark, (const int *away, int least, int n, unsigned char *air), (away, least, n, air))

/* Unmark air cells with any part nearer than `margin` to a cell that is not air. */
static void erode_air(const struct cells *c, double margin)
{
	int reach = (int)fmin(ceil(margin / c->grid.size_v), c->grid.n_v);

	compute_distances(c);
	for (int across = 0; across <= reach; across++) {
		int least = least_away(c, margin, across);

		for (int j = 0; j < c->grid.n_v; j++)
			for (int k = j - across; k <= j + across; k += across ? 2 * across : 1)
				if (k >= 0 && k < c->grid.n_v)
					unmark(c->work + (size_t)k * (size_t)c->grid.n_u, least, c->grid.n_u,
					       c->air + (size_t)j * (size_t)c->grid.n_u);
	}
}

static size_t mark_air(const struct scan *scan, const struct cells *c, float *valid)
{
	size_t marked = 0;

#pragma omp parallel for schedule(static) reduction(+ : marked)
	for (int v = 0; v < scan->n_v; v++) {
		const unsigned char *air = c->air + (size_t)(v / c->grid.bins_v) * (size_t)c->grid.n_u;
		float *ok = valid + (size_t)v * (size_t)scan->n_u;

		for (int i = 0; i < c->grid.n_u; i++) {
			int first = i;

			while (i < c->grid.n_u && air[i])
				i++;
			if (i > first)
				marked += mark_bins(ok + first * c->grid.bins_u,
						    order_smaller(i * c->grid.bins_u, scan->n_u) - first * c->grid.bins_u);
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
	view_cells_average(scan, &c.grid, false, line, valid, c.mean);
	for (size_t i = 0; i < (size_t)c.grid.n_u * (size_t)c.grid.n_v; i++)
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
