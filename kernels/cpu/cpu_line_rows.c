/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_line_rows.c - a single slice of parallel beams on the CPU without a table (kernels/line_rows.h): forward pass and sweeps.
 *
 * - Forward: CPU_BUNDLE adjacent rays at a time. In one row of pixels they are in a few adjacent pixels, which a vector
 *   instruction selects from registers. Rows that a ray has in part, at the edge of the field of view, are computed one by one.
 * - Sweeps: the entries of a ray are listed in the thread's scratch and used like those of a table.
 * - Positions: the first ray of a bundle in double, the others relative to it in float; the error is below 1e-5 pixels. */
#include "kernels/cpu/cpu_line_rows.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BUNDLE_PITCH 2.0 /* pixels; of rays further apart, CPU_BUNDLE do not fit into CPU_WINDOW */
#define WORTH_TURNING 8	 /* views along x from which on the image is copied with x and y exchanged */
#define LEAST_SLOPE (1.0 / 256)
#define LEAST_PART 1e-6f /* of `length`: smallest entry in a sweep */

/* The entries of one ray. */
struct entries {
	struct line_entry *entry;
	int n;
	double norm; /* sum of the squares of the weights */
};

static struct view_rays rays_of(const struct projection *a, int view)
{
	const struct grid *g = &a->grid;
	double x = fmax(fabs(g->lo[0]), fabs(g->lo[0] + g->n[0] * g->h[0])),
	       y = fmax(fabs(g->lo[1]), fabs(g->lo[1] + g->n[1] * g->h[1]));
	struct view_rays r = {row_view_make(a->model, a->scan, a->scan->views + a->first + view, g),
			      hypot(x, y) <= a->scan->fov_radius, false};

	r.descending = r.w.pitch < 0;
	r.one_by_one = a->model == PROJECTION_PATHS && fabs(r.w.along) < LEAST_SLOPE;
	return r;
}

/* Return the room that the entries of a ray need: two in each row, and one that is not counted. */
static size_t entries_of(const struct grid *g)
{
	return 2 * (size_t)cpu_max(g->n[0], g->n[1]) + 1;
}

/* Return the thread's room for the entries of a ray. */
static struct entries thread_entries(const struct projection *a)
{
	return (struct entries){.entry = (struct line_entry *)cpu_rows_scratch(a)};
}

/* Is the ray in pixels of the image, both of row k? */
static bool inside_row(const struct row_view *w, double low, int k)
{
	double at = low + w->slope * k;

	return k < 0 || (at >= 0 && at < w->width - 1);
}

/* Distances in the image, floats: from row to row, and from pixel to pixel in a row. */
static size_t row_step(const struct projection *a, const struct row_view *w)
{
	return (w->lead ? (size_t)a->grid.n[0] : 1) * lines_column(&a->grid);
}

static size_t pixel_step(const struct projection *a, const struct row_view *w)
{
	return (w->lead ? 1 : (size_t)a->grid.n[0]) * lines_column(&a->grid);
}

/* ---- the entries of one ray ---- */

/* The rows in which low + slope k is in (least, most): [*begin, *end), slightly too many. */
static void clip_rows(double low, double slope, double least, double most, int *begin, int *end)
{
	double a, b;

	if (fabs(slope) < 1e-9) {
		if (low < least - 1 || low > most + 1)
			*end = *begin;
		return;
	}
	a = (least - low) / slope;
	b = (most - low) / slope;
	*begin = (int)fmax(*begin, fmin(fmin(a, b) - 1, *end));
	*end = (int)fmin(*end, fmax(fmax(a, b) + 2, *begin));
}

/* Add the entries of a row. Those that are there only by rounding are left out: their pixel may belong to another ray of the same
 * pass of a sweep (lines_stride()). */
static inline void add_entries(struct entries *e, int column, int pixel, float first, float second, float least)
{
	e->entry[e->n] = (struct line_entry){column, first};
	e->n += first > least;
	e->entry[e->n] = (struct line_entry){column + pixel, second};
	e->n += second > least;
	e->norm += (double)(first * first + second * second);
}

/* List the rows [begin, end), in which the ray is in pixels of the image and has whole rows. */
static void list_whole(const struct projection *a, const struct row_view *w, double radius, int begin, int end, struct entries *e)
{
	int row = w->lead ? a->grid.n[0] : 1, pixel = w->lead ? 1 : a->grid.n[0];
	double low = row_low(w, radius), inverse = a->model == PROJECTION_JOSEPH ? 1 : 1 / fmax(fabs(w->along), 1e-30);
	float least = LEAST_PART * w->length;

	for (int k = begin; k < end; k++) {
		double at = low + w->slope * k, first = (int)at, from = fmin(1, (first + 1 - at) * inverse);

		add_entries(e, k * row + (int)first * pixel, pixel, (float)from * w->length, (float)(1 - from) * w->length,
			    least);
	}
}

static void list_part(const struct projection *a, const struct row_view *w, const struct row_range *range, double radius,
		      int begin, int end, struct entries *e)
{
	int row = w->lead ? a->grid.n[0] : 1, pixel = w->lead ? 1 : a->grid.n[0];

	for (int k = begin; k < end; k++) {
		float weight[2];
		int first;

		if (!row_entries(w, range, radius, k, &first, weight))
			continue;
		add_entries(e, k * row + (first < 0 ? 0 : first) * pixel, first < 0 ? 0 : pixel, first < 0 ? 0 : weight[0],
			    first + 1 < w->width ? weight[1] : 0, LEAST_PART * w->length);
	}
}

/* List the entries of a ray. e: room for entries_of(). */
static void list_entries(const struct projection *a, const struct view_rays *r, int view, int v, struct entries *e)
{
	const struct row_view *w = &r->w;
	struct row_range range = row_range_of(w, a->scan, cpu_rows_view(a, view), v, &a->grid);
	double radius = a->scan->radius[v], low = row_low(w, radius);
	int begin = (int)floor(range.begin), end = (int)ceil(range.end), from = (int)ceil(range.begin),
	    to = (int)floor(range.end);

	e->n = 0;
	e->norm = 0;
	if (range.begin >= range.end)
		return;
	clip_rows(low, w->slope, -2, w->width + 1, &begin, &end);
	/* rows in which the ray is at least a pixel away from both ends of the row */
	clip_rows(low, w->slope, 0, w->width - 1, &from, &to);
	from = cpu_max(from + 3, begin);
	to = cpu_max(cpu_min(to - 3, end), from);
	if (!inside_row(w, low, from) || !inside_row(w, low, to - 1))
		to = from = begin;
	list_part(a, w, &range, radius, begin, from, e);
	list_whole(a, w, radius, from, to, e);
	list_part(a, w, &range, radius, to, end, e);
}

/* ---- forward ---- */

static float sum_entries(const struct projection *a, const struct entries *e, const float *x)
{
	return cpu_state(a->dev)->rows->lines->dot(e->entry, e->n, x, lines_column(&a->grid));
}

/* Return the sum of a ray in one row, in mm. */
static float row_sum(const struct projection *a, const struct view_rays *r, const struct row_range *range, int v, int k,
		     const float *x)
{
	struct entries e = thread_entries(a);

	list_part(a, &r->w, range, a->scan->radius[v], k, k + 1, &e);
	return sum_entries(a, &e, x);
}

/* The whole rows of a ray; those with a part of it are outside. */
static void whole_rows(const struct projection *a, const struct view_rays *r, int view, int v, int *ret_from, int *ret_to)
{
	struct row_range range = row_range_of(&r->w, a->scan, cpu_rows_view(a, view), v, &a->grid);
	int from = (int)ceil(range.begin), to = (int)floor(range.end);

	if (r->inside && a->model == PROJECTION_PATHS &&
	    range.begin < range.end) { /* a row that ends the range is outside the image */
		from = 0;
		to = r->w.n;
	}
	if (a->model == PROJECTION_JOSEPH) {
		const struct row_view *w = &r->w;
		double low = row_low(w, a->scan->radius[v]);
		int begin = from, end = to;

		/* rows in which u is between -1/2 and width - 1/2: the two ends may be one row away */
		clip_rows(low, w->slope, -0.5, w->width - 0.5, &begin, &end);
		while (begin < end && !(low + w->slope * begin >= -0.5 && low + w->slope * begin < w->width - 0.5))
			begin++;
		while (end > begin && !(low + w->slope * (end - 1) >= -0.5 && low + w->slope * (end - 1) < w->width - 0.5))
			end--;
		from = begin;
		to = end;
	}
	*ret_from = from;
	*ret_to = to > from ? to : from;
}

/* Compute CPU_BUNDLE rays from v0 on, of which n exist. */
static void forward_bundle(const struct projection *a, const struct view_rays *r, int view, int v0, int n, const float *x,
			   float *ret_sum)
{
	const struct row_view *w = &r->w;
	bool turned = !w->lead && a->lines->turned;
	struct cpu_bundle b = {.image = turned ? a->lines->turned : x,
			       .row = turned ? (size_t)w->width : row_step(a, w),
			       .pixel = turned ? 1 : pixel_step(a, w),
			       .width = w->width,
			       .rim = a->model == PROJECTION_JOSEPH,
			       .low = w->start + w->pitch * (r->descending ? v0 + CPU_BUNDLE - 1 : v0),
			       .slope = w->slope,
			       .pitch = (float)fabs(w->pitch),
			       .inverse = w->inverse,
			       .partial = w->n,
			       .begin = w->n};
	float sum[CPU_BUNDLE];
	int first = 0, last = w->n;

	clip_rows(b.low, b.slope, -(CPU_BUNDLE - 1) * fabs(w->pitch) - 2, w->width + 1, &first, &last);
	for (int i = 0; i < CPU_BUNDLE; i++) {
		int v = r->descending ? v0 + CPU_BUNDLE - 1 - i : v0 + i;

		b.from[i] = b.to[i] = 0;
		if (v - v0 >= n)
			continue;
		whole_rows(a, r, view, v, &b.from[i], &b.to[i]);
		if (b.to[i] <= b.from[i])
			continue;
		b.begin = b.from[i] < b.begin ? b.from[i] : b.begin;
		b.end = b.to[i] > b.end ? b.to[i] : b.end;
		b.whole = b.from[i] > b.whole ? b.from[i] : b.whole;
		b.partial = b.to[i] < b.partial ? b.to[i] : b.partial;
	}
	b.begin = first > b.begin ? first : b.begin;
	b.end = last < b.end ? last : b.end;
	b.end = b.end > b.begin ? b.end : b.begin;
	b.whole = b.whole < b.begin ? b.begin : b.whole > b.end ? b.end : b.whole;
	b.partial = b.partial < b.whole ? b.whole : b.partial > b.end ? b.end : b.partial;
	cpu_state(a->dev)->rows->lines->bundle(&b, sum);
	for (int i = 0; i < n; i++) {
		int lane = r->descending ? CPU_BUNDLE - 1 - i : i, v = v0 + i;

		ret_sum[i] = b.to[lane] > b.from[lane] ? sum[lane] * w->length : 0;
		if (a->model == PROJECTION_PATHS && !r->inside && scan_reach(a->scan, v) > 0) {
			struct row_range range = row_range_of(w, a->scan, cpu_rows_view(a, view), v, &a->grid);
			int before = (int)floor(range.begin), after = (int)floor(range.end);

			if (before < range.begin)
				ret_sum[i] += row_sum(a, r, &range, v, before, x);
			if (after < range.end && (after > before || before == range.begin))
				ret_sum[i] += row_sum(a, r, &range, v, after, x);
		}
	}
}

static void forward_view(const struct projection *a, int view, int v0, int n, const float *x, float *ret_sum)
{
	const struct view_rays *r = &a->lines->rays[view];

	if (fabs(r->w.pitch) <= BUNDLE_PITCH && !r->one_by_one)
		forward_bundle(a, r, view, v0, n, x, ret_sum);
	else
		for (int i = 0; i < n; i++) {
			struct entries e = thread_entries(a);

			list_entries(a, r, view, v0 + i, &e);
			ret_sum[i] = sum_entries(a, &e, x);
		}
}

/* Copy the image with x and y exchanged, so that the pixels of a column follow each other. */
static void turn_image(const struct projection *a, const float *x, float *turned)
{
	int n_x = a->grid.n[0], n_y = a->grid.n[1], threads = cpu_state(a->dev)->threads;
	size_t column = lines_column(&a->grid);

	(void)threads;
#pragma omp parallel for collapse(2) num_threads(threads) schedule(static)
	for (int i0 = 0; i0 < n_x; i0 += CPU_TILE)
		for (int j0 = 0; j0 < n_y; j0 += CPU_TILE)
			for (int i = i0; i < cpu_min(i0 + CPU_TILE, n_x); i++)
				for (int j = j0; j < cpu_min(j0 + CPU_TILE, n_y); j++)
					turned[(size_t)i * (size_t)n_y + (size_t)j] =
						x[((size_t)j * (size_t)n_x + (size_t)i) * column];
}

void cpu_line_rows_forward(const struct projection *a, const struct cpu_forward *f)
{
	int n_v = a->scan->n_v, threads = cpu_state(a->dev)->threads;

	(void)threads;
	if (a->lines->turned)
		turn_image(a, f->x, a->lines->turned);
#pragma omp parallel for collapse(2) num_threads(threads) schedule(dynamic, 4)
	for (int view = 0; view < a->n_views; view++)
		for (int v = 0; v < n_v; v += CPU_BUNDLE) {
			float *y = f->out + (size_t)view * (size_t)n_v + (size_t)v, sum[CPU_BUNDLE];
			int n = cpu_min(CPU_BUNDLE, n_v - v);

			forward_view(a, view, v, n, f->x, sum);
			for (int i = 0; i < n; i++)
				y[i] = f->add ? y[i] + sum[i] : sum[i];
		}
}

/* ---- sweep ---- */

void cpu_line_rows_sweep(const struct projection *a, float relaxation, int view, int v, float y, float *x)
{
	struct entries e = thread_entries(a);
	float step;

	list_entries(a, &a->lines->rays[view], view, v, &e);
	if (!(e.norm > 0))
		return;
	step = relaxation * (y - sum_entries(a, &e, x)) / (float)e.norm;
	cpu_state(a->dev)->rows->lines->add(e.entry, e.n, step, x, lines_column(&a->grid));
}

/* ---- create ---- */

size_t cpu_line_rows_scratch(const struct projection *a)
{
	size_t back = cpu_line_rows_back_scratch(), sweep = entries_of(&a->grid) * sizeof(struct line_entry) / sizeof(float);

	return back > sweep ? back : sweep;
}

/* Is a copy of the image with x and y exchanged worth its time? */
static bool is_turned(const struct projection *a)
{
	int n = 0;

	for (int view = 0; view < a->n_views; view++)
		n += !rays_of(a, view).w.lead;
	return n >= WORTH_TURNING;
}

size_t cpu_line_rows_bytes(const struct projection *a)
{
	size_t image = is_turned(a) ? (size_t)a->grid.n[0] * (size_t)a->grid.n[1] : 0;

	return (size_t)a->n_views * sizeof(struct view_rays) + image * sizeof(float);
}

int cpu_line_rows_create(struct projection *a, struct err *err)
{
	struct view_rays *rays = malloc((size_t)a->n_views * sizeof(*rays));

	a->lines->rays = rays;
	if (is_turned(a))
		a->lines->turned = cpu_memory((size_t)a->grid.n[0] * (size_t)a->grid.n[1] * sizeof(float));
	if (!rays || (is_turned(a) && !a->lines->turned))
		return err_set(err, ENOMEM, "projection: out of memory for %d views", a->n_views);
	for (int view = 0; view < a->n_views; view++)
		rays[view] = rays_of(a, view);
	return cpu_scratch(a->dev, a->thread_floats, err);
}
