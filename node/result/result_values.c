/* SPDX-License-Identifier: Apache-2.0 */
/* result_values.c - stored values, and the range of them that is displayed.
 *
 * - stored = round((mu - offset) / step), limited to 0..top. With 16 bits, step is the protocol's. With fewer it is the smallest
 * multiple of it for which no value exceeds top, at most the one that gives the range of 16 bits: what that clips is counted.
 * - The display window is the range of the stored values of the tissue, from a histogram. Air and voxels outside the breast are 0
 * or small; tissue is everything above a quarter of the value that most of the rest reaches.
 * - Filtered backprojection has values around 0, so that the value does not tell tissue from air. There the window is from the
 * inside of the breast, and air is stored as padding, which is black (PS3.3 C.7.5.1.1.2).
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "node/result/result_internal.h"
#include "recon/dbt/inside.h"

#define BINS (RESULT_STORED_MAX + 1)
#define INSIDE_DEPTH 3.0   /* mm in a slice: nearer to the air, filtered backprojection overshoots */
#define VIEW_DEPTH 12.0	   /* mm in a view: its air is that of all slices, whose masks are of different size */
#define INSIDE_LEAST 0.005 /* quantiles of the inside that are black and white */
#define INSIDE_MOST 0.995
#define BRIGHTEST 0.9995 /* quantile that is white in maxima and views */
/* In a view whose rim is filled, the darkest tissue is fat, as in a mammogram: it is to be dark grey. Part of the range of the
 * tissue that is darker than it. */
#define FAT_GREY 0.3

/* ---- converting ---- */

struct stored_form result_form(const struct result_pipeline *f, const struct stored_scale *scale)
{
	const struct grid *g = &f->info->plan->grid;

	return (struct stored_form){
		.offset = (float)scale->offset,
		.per_step = (float)(1 / scale->step),
		.top = (float)scale->top,
		.columns = (size_t)g->n[0],
		.rows = (size_t)g->n[1],
		.turn_columns = f->exam->columns_toward_chest,
		.turn_rows = f->exam->rows_toward_minus_y,
		.padded = scale->padded,
	};
}

struct convert {
	struct stored_form form;
	const float *plane;
	uint16_t *values;
	size_t parts;
};

static void convert_rows(void *ctx, size_t part)
{
	const struct convert *c = ctx;

	stored_rows(&c->form, c->plane, c->form.rows * part / c->parts, c->form.rows * (part + 1) / c->parts, c->values);
}

void result_store(struct result_pipeline *f, const float *plane, const struct stored_scale *scale, uint16_t *ret_values)
{
	struct convert c = {.form = result_form(f, scale),
			    .plane = plane,
			    .values = ret_values,
			    .parts = (size_t)thread_pool_size(f->pool) * 2};

	thread_pool_run(f->pool, c.parts, convert_rows, &c);
}

/* ---- the window ---- */

/* Return the stored value below which this fraction of `bins`, from `first` on, is found. */
static double find_quantile(const uint64_t *bins, size_t first, double part)
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
static void widen_range(double *lo, double *hi, int top)
{
	if (*hi - *lo < 100) {
		*lo = fmin(*lo > 50 ? *lo - 50 : 0, top - 100);
		*hi = *lo + 100;
	}
}

void result_put_window(const struct result *r, struct item_writer *w)
{
	double lo = fmin(floor(r->window_lo), r->scale.top - 2), width = 2 * fmax(floor((r->window_hi - lo) / 2), 1);

	item_put_double(w, TAG_WINDOW_CENTER, lo + width / 2);
	item_put_double(w, TAG_WINDOW_WIDTH, width);
	item_put_text(w, TAG_WINDOW_CENTER_WIDTH_EXPLANATION, "NORMAL");
	item_put_text(w, TAG_VOI_LUT_FUNCTION, "LINEAR");
}

void result_put_mapping(const struct result *r, struct item_writer *w)
{
	bool relative = r->exam->relative[0] != '\0', view = r->type->is_view;
	const char *explanation = view && relative ? "Integral of relative attenuation, fine detail enhanced"
				  : view	   ? "Integral of attenuation, fine detail enhanced"
				  : relative	   ? "Relative attenuation, unattenuated intensity unknown"
						   : "Linear attenuation coefficient";
	struct item_writer item = item_begin(w, TAG_REAL_WORLD_VALUE_MAPPING_SEQUENCE);

	item_put_int(&item, TAG_REAL_WORLD_VALUE_FIRST_VALUE_MAPPED, r->scale.padded ? 1 : 0);
	item_put_int(&item, TAG_REAL_WORLD_VALUE_LAST_VALUE_MAPPED, r->scale.top);
	item_put_double(&item, TAG_REAL_WORLD_VALUE_INTERCEPT, r->scale.offset);
	item_put_double(&item, TAG_REAL_WORLD_VALUE_SLOPE, r->scale.step);
	item_put_text(&item, TAG_LUT_EXPLANATION, explanation);
	item_put_text(&item, TAG_LUT_LABEL, relative ? "RELATIVE" : view ? "INTEGRAL" : "ATTENUATION");
	item_put_code(&item, TAG_MEASUREMENT_UNITS_CODE_SEQUENCE, relative || view ? "1" : "/mm", "UCUM",
		      relative || view ? "no units" : "per millimeter");
	item_end(w, &item);
}

bool result_has_negative(const struct protocol_conf *p)
{
	return algorithm_info(p->dbt.algorithm)->filtered && p->dbt.breast_mask && p->stored_offset < 0;
}

/* Return the bin where tissue begins. zero: the stored value of no attenuation. */
static size_t tissue_begins(const uint64_t *bins, double zero)
{
	size_t air = zero > 0 ? (size_t)fmin(zero, RESULT_STORED_MAX - 1) : 0;

	return air + (size_t)((find_quantile(bins, air + 1, 0.9) - (double)air) / 4) + 1;
}

/* ---- the scale ---- */

static struct stored_scale scale_of(double offset, double step, int bits, int multiple)
{
	return (struct stored_scale){.offset = offset, .step = step * multiple, .bits = bits, .top = (1 << bits) - 1};
}

/* Return the largest multiple of the step: the one with the range of 16 bits. */
static int largest_multiple(int bits)
{
	return 1 << (16 - bits);
}

/* Count the voxels above the range. dbt_tally() counts those above 65535 steps: lower the offset so that this is the top. */
static int count_above(struct dbt_session *session, const struct stored_scale *scale, uint64_t *bins, size_t *ret_above,
		       struct err *err)
{
	struct tally tally = {0};
	size_t counted;
	int rc = dbt_tally(session, scale->offset - (RESULT_STORED_MAX - scale->top) * scale->step, scale->step, bins, &counted,
			   &tally, err);

	*ret_above = tally.above;
	return rc;
}

/* Find the smallest multiple, from `least` on, that clips no voxel. bins: memory for histograms. */
static int choose_multiple(struct dbt_session *session, const struct protocol_conf *p, int least, uint64_t *bins,
			   struct volume_summary *s, struct err *err)
{
	int lo = least, hi = largest_multiple(p->stored_bits), multiple = least, rc;

	do { /* the histogram holds a sample of the voxels, so that the first multiple may be too small */
		s->scale = scale_of(p->stored_offset, p->stored_step, p->stored_bits, multiple);
		rc = count_above(session, &s->scale, bins, &s->above, err);
		if (s->above)
			lo = multiple + 1;
		else
			hi = multiple;
		multiple = (lo + hi) / 2;
	} while (rc == 0 && lo < hi);
	if (rc == 0 && s->scale.step != p->stored_step * hi) {
		s->scale = scale_of(p->stored_offset, p->stored_step, p->stored_bits, hi);
		rc = count_above(session, &s->scale, bins, &s->above, err);
	}
	return rc;
}

/* Set the window in steps of the protocol. */
static void set_window(const uint64_t *bins, double zero, struct volume_summary *s)
{
	size_t tissue = tissue_begins(bins, zero);

	s->window_lo = find_quantile(bins, tissue, 0.02);
	s->window_hi = find_quantile(bins, tissue, 0.998);
	s->window_top = fmax(s->window_hi, find_quantile(bins, tissue, BRIGHTEST));
	widen_range(&s->window_lo, &s->window_hi, RESULT_STORED_MAX);
	s->window_top = fmax(s->window_hi, s->window_top);
}

/* Set the window from the inside of the breast; it is not changed if no voxel is inside. */
static int set_window_inside(struct dbt_session *session, const struct protocol_conf *p, struct volume_summary *s,
			     struct err *err)
{
	uint64_t *bins = calloc(BINS, sizeof(*bins));
	size_t inside = 0;
	int rc;

	if (!bins)
		return err_set(err, ENOMEM, "no memory for a histogram");
	rc = dbt_tally_inside(session, p->stored_offset, p->stored_step, INSIDE_DEPTH, bins, &inside, err);
	if (rc == 0 && inside > 0) {
		s->window_lo = find_quantile(bins, 0, INSIDE_LEAST);
		s->window_hi = find_quantile(bins, 0, INSIDE_MOST);
		widen_range(&s->window_lo, &s->window_hi, RESULT_STORED_MAX);
		s->window_top = fmax(s->window_hi, find_quantile(bins, 0, BRIGHTEST));
	}
	free(bins);
	return rc;
}

static void set_doubt(const uint64_t *bins, const struct protocol_conf *p, bool quantitative, struct volume_summary *s)
{
	struct value_shares shares;

	result_value_shares(bins, BINS, tissue_begins(bins, -p->stored_offset / p->stored_step), p->stored_offset, p->stored_step,
			    &shares);
	result_add_value_warnings(&shares, quantitative, s->doubt, sizeof(s->doubt));
}

/* Choose the scale for fewer than 16 bits and convert the window to it. */
static int fewer_bits(struct dbt_session *session, const struct protocol_conf *p, uint64_t *bins, struct volume_summary *s,
		      struct err *err)
{
	int top = (1 << p->stored_bits) - 1, rc;
	double highest = find_quantile(bins, 0, 1), multiple;

	rc = choose_multiple(session, p, (int)fmin(fmax(ceil(highest / (top + 0.5)), 1), largest_multiple(p->stored_bits)), bins,
			     s, err);
	multiple = s->scale.step / p->stored_step;
	s->window_lo /= multiple;
	s->window_hi = fmin(s->window_hi / multiple, top);
	s->window_top = fmin(s->window_top / multiple, top);
	return rc;
}

int result_summarise(struct dbt_session *session, const struct grid *grid, const struct protocol_conf *p, bool quantitative,
		     struct volume_summary *ret_summary, struct err *err)
{
	uint64_t *bins = calloc(BINS, sizeof(*bins));
	struct volume_summary s = {.scale = scale_of(p->stored_offset, p->stored_step, p->stored_bits, 1)};
	struct tally tally = {0};
	size_t counted;
	int rc;

	if (!bins)
		return err_set(err, ENOMEM, "no memory for a histogram");
	rc = dbt_tally(session, p->stored_offset, p->stored_step, bins, &counted, &tally, err);
	if (rc == 0 && tally.bad)
		rc = err_set(err, EIO, "%zu of %zu voxels are not numbers (NaN)", tally.bad, grid_size(grid));
	if (rc == 0) {
		s.below = tally.below;
		s.above = tally.above;
		set_window(bins, -p->stored_offset / p->stored_step, &s);
		set_doubt(bins, p, quantitative, &s);
	}
	if (rc == 0 && result_has_negative(p))
		rc = set_window_inside(session, p, &s, err);
	if (rc == 0 && p->stored_bits < 16)
		rc = fewer_bits(session, p, bins, &s, err);
	s.scale.padded = result_has_negative(p);
	if (rc == 0)
		*ret_summary = s;
	free(bins);
	return rc < 0 ? rc : 0;
}

void result_image_scale(const float *image, size_t n, double offset, double step, int bits, struct stored_scale *ret_scale,
			size_t *ret_above)
{
	struct stored_scale s;
	double highest = offset, multiple;
	size_t above = 0;

	for (size_t i = 0; i < n; i++)
		highest = fmax(highest, image[i]);
	multiple = ceil((highest - offset) / step / ((1 << bits) - 0.5));
	s = scale_of(offset, step, bits, (int)fmin(fmax(multiple, 1), largest_multiple(bits)));
	for (size_t i = 0; i < n; i++)
		above += (image[i] - offset) / s.step > s.top + 0.5;
	*ret_scale = s;
	*ret_above = above;
}

int result_window(const uint16_t *values, size_t n, const struct stored_scale *scale, bool filled, double *ret_lo, double *ret_hi,
		  struct err *err)
{
	uint64_t *bins = calloc(BINS, sizeof(*bins));
	size_t tissue;

	if (!bins)
		return err_set(err, ENOMEM, "no memory for a histogram");
	for (size_t i = 0; i < n; i++)
		bins[values[i]]++;
	tissue = tissue_begins(bins, -scale->offset / scale->step);
	*ret_lo = find_quantile(bins, tissue, 0.02);
	*ret_hi = find_quantile(bins, tissue, BRIGHTEST);
	if (filled)
		*ret_lo = fmax(0, *ret_lo - FAT_GREY * (*ret_hi - *ret_lo));
	widen_range(ret_lo, ret_hi, scale->top);
	free(bins);
	return 0;
}

int result_window_inside(const struct grid *grid, const float *image, const struct stored_scale *scale, double *ret_lo,
			 double *ret_hi, struct err *err)
{
	uint64_t *bins = calloc(BINS, sizeof(*bins));
	size_t inside = 0;
	int rc;

	if (!bins)
		return err_set(err, ENOMEM, "no memory for a histogram");
	rc = inside_tally(grid, image, scale->offset, scale->step, VIEW_DEPTH, 1, bins, &inside, err);
	if (rc == 0) {
		*ret_lo = inside ? find_quantile(bins, 0, INSIDE_LEAST) : 0;
		*ret_hi = inside ? find_quantile(bins, 0, BRIGHTEST) : scale->top;
		widen_range(ret_lo, ret_hi, scale->top);
	}
	free(bins);
	return rc;
}
