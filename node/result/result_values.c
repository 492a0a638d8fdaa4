/* SPDX-License-Identifier: Apache-2.0 */
/* result_values.c - stored values, and the range of them that is displayed.
 *
 * - stored = round((mu - offset) / step), limited to 0..RESULT_STORED_MAX.
 * - The display window is the range of the stored values of the tissue, from a histogram. Air and voxels outside the breast are 0
 * or small; tissue is everything above a quarter of the value that most of the rest reaches.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "node/result/result_internal.h"

#define BINS (RESULT_STORED_MAX + 1)

/* ---- converting ---- */

struct convert {
	const struct exam *exam;
	const float *plane;
	uint16_t *values;
	size_t columns, rows, parts;
	float offset, per_step;
};

/* Convert one value. A NaN fails the first comparison and gives 0. */
static inline uint16_t stored_value(float mu, float offset, float per_step)
{
	float steps = (mu - offset) * per_step + 0.5f;

	steps = steps > 0 ? steps : 0;
	return (uint16_t)(int)(steps < RESULT_STORED_MAX ? steps : RESULT_STORED_MAX);
}

__attribute__((optimize("O3"))) static void convert_row(const float *from, uint16_t *to, size_t n, float offset, float per_step,
							bool mirror)
{
	if (mirror)
		for (size_t j = 0; j < n; j++)
			to[j] = stored_value(from[n - 1 - j], offset, per_step);
	else
		for (size_t j = 0; j < n; j++)
			to[j] = stored_value(from[j], offset, per_step);
}

static void convert_rows(void *ctx, size_t part)
{
	const struct convert *c = ctx;
	size_t first = c->rows * part / c->parts, end = c->rows * (part + 1) / c->parts;

	for (size_t i = first; i < end; i++)
		convert_row(c->plane + (c->exam->rows_toward_minus_y ? c->rows - 1 - i : i) * c->columns,
			    c->values + i * c->columns, c->columns, c->offset, c->per_step, c->exam->columns_toward_chest);
}

void result_store(struct result_pipeline *f, const float *plane, double offset, double step, uint16_t *ret_values)
{
	const struct grid *g = &f->info->plan->grid;
	struct convert c = {
		.exam = f->exam,
		.plane = plane,
		.values = ret_values,
		.columns = (size_t)g->n[0],
		.rows = (size_t)g->n[1],
		.parts = (size_t)thread_pool_size(f->pool) * 2,
		.offset = (float)offset,
		.per_step = (float)(1 / step),
	};

	thread_pool_run(f->pool, c.parts, convert_rows, &c);
}

/* ---- the window ---- */

/* Return the stored value below which this fraction of `bins`, from `first` on, is found. */
static double quantile(const uint64_t *bins, size_t first, double part)
{
	uint64_t all = 0, below = 0;
	size_t i;

	for (i = first; i < BINS; i++)
		all += bins[i];
	for (i = first; i < BINS - 1 && (double)(below + bins[i]) < part * (double)all; i++)
		below += bins[i];
	return (double)i;
}

/* Widen a range: that of uniform phantoms is almost zero. */
static void widen(double *lo, double *hi)
{
	if (*hi - *lo < 100) {
		*lo = fmin(*lo > 50 ? *lo - 50 : 0, RESULT_STORED_MAX - 100);
		*hi = *lo + 100;
	}
}

void result_put_window(const struct result *r, struct item_writer *w)
{
	double lo = floor(r->window_lo), width = 2 * fmax(floor((r->window_hi - lo) / 2), 1);

	item_put_double(w, TAG_WINDOW_CENTER, lo + width / 2);
	item_put_double(w, TAG_WINDOW_WIDTH, width);
	item_put_text(w, TAG_WINDOW_CENTER_WIDTH_EXPLANATION, "NORMAL");
	item_put_text(w, TAG_VOI_LUT_FUNCTION, "LINEAR");
}

/* Return the bin where tissue begins. zero: the stored value of no attenuation. */
static size_t tissue_begins(const uint64_t *bins, double zero)
{
	size_t air = zero > 0 ? (size_t)fmin(zero, RESULT_STORED_MAX - 1) : 0;

	return air + (size_t)((quantile(bins, air + 1, 0.9) - (double)air) / 4) + 1;
}

int result_summarise(struct dbt_session *session, const struct grid *grid, double offset, double step,
		     struct volume_summary *ret_summary, struct err *err)
{
	uint64_t *bins = calloc(BINS, sizeof(*bins));
	struct volume_summary s = {0};
	struct tally tally = {0};
	size_t counted, tissue;
	int rc;

	if (!bins)
		return err_set(err, ENOMEM, "no memory for a histogram");
	rc = dbt_tally(session, offset, step, bins, &counted, &tally, err);
	if (rc == 0 && tally.bad)
		rc = err_set(err, EIO, "%zu of %zu voxels are not numbers (NaN)", tally.bad, grid_size(grid));
	if (rc == 0) {
		tissue = tissue_begins(bins, -offset / step);
		s.below = tally.below;
		s.above = tally.above;
		s.window_lo = quantile(bins, tissue, 0.02);
		s.window_hi = quantile(bins, tissue, 0.998);
		s.window_top = fmax(s.window_hi, quantile(bins, tissue, 0.9995));
		widen(&s.window_lo, &s.window_hi);
		s.window_top = fmax(s.window_hi, s.window_top);
		*ret_summary = s;
	}
	free(bins);
	return rc < 0 ? rc : 0;
}

int result_window(const uint16_t *values, size_t n, double zero, double *ret_lo, double *ret_hi, struct err *err)
{
	uint64_t *bins = calloc(BINS, sizeof(*bins));
	size_t tissue;

	if (!bins)
		return err_set(err, ENOMEM, "no memory for a histogram");
	for (size_t i = 0; i < n; i++)
		bins[values[i]]++;
	tissue = tissue_begins(bins, zero);
	*ret_lo = quantile(bins, tissue, 0.02);
	*ret_hi = quantile(bins, tissue, 0.9995);
	widen(ret_lo, ret_hi);
	free(bins);
	return 0;
}
