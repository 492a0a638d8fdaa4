/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_lines.c - stacks of 2-D parallel beams on the CPU: the table of lines, forward, back, and sweeps. Forward: each line is
 * computed by one thread. Back: each band of image rows is computed by one thread, which adds the entries of every line in the
 * band. Sweeps: each thread computes some of the slices, over all rays; if there are fewer slices than threads, the threads
 * divide the rays of each pass among them and wait for each other at its end. */
#include "kernels/cpu/cpu_lines.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BANDS 64
#define BANDS_A_THREAD 4
#define CHUNK 8		      /* adjacent lines per unit of work; they share most of their pixels */
#define WORTH_THREADS 16384.0 /* smallest number of entries of a pass for which several threads are faster than one */

static struct lines_table table_of(const struct projection *a)
{
	return lines_table(a->model, a->scan, a->first, a->n_views, &a->grid, CPU_LINES_KEPT, CPU_LINES_BATCH);
}

/* A sweep over a table that is kept is faster than one without a table. */
bool cpu_lines_kept(const struct projection_spec *spec)
{
	return lines_table(spec->model, spec->scan, spec->first, spec->n_views, spec->grid, CPU_LINES_KEPT, CPU_LINES_BATCH)
		       .batch == spec->n_views;
}

static int bands_of(const struct projection *a)
{
	int n = cpu_min(BANDS_A_THREAD * cpu_state(a->dev)->threads, MOST_BANDS);

	return cpu_min(n, a->grid.n[1]);
}

/* Return the first row of a band. */
static int band_row(const struct projection *a, int band)
{
	return (int)((long long)a->grid.n[1] * band / a->lines->bands);
}

/* With the largest number of bands: a plan must not depend on the number of threads. */
size_t cpu_lines_bytes(const struct projection *a)
{
	struct lines_table b;
	size_t lines;

	if (a->by_rows)
		return sizeof(struct cpu_lines) + cpu_line_rows_bytes(a);
	b = table_of(a);
	lines = (size_t)b.batch * (size_t)a->scan->n_v;

	return sizeof(struct cpu_lines) + b.entries * sizeof(struct line_entry) +
	       lines * (sizeof(struct line) + (MOST_BANDS + 1) * sizeof(int32_t));
}

/* Sort the entries into ascending rows; within a row they keep their order along the line. A line only rises or only falls, so
 * only neighbours may be out of order. The rows are compared without divisions, which would take as long as computing the
 * line. */
static void sort_rows(struct line_entry *e, int n, int n_x)
{
	int row = 0; /* first pixel of the highest row so far */

	if (n && e[0].column / n_x > e[n - 1].column / n_x)
		for (int i = 0, j = n - 1; i < j; i++, j--) {
			struct line_entry swap = e[i];

			e[i] = e[j];
			e[j] = swap;
		}
	for (int i = 0; i < n; i++) {
		struct line_entry here = e[i];
		int to = i, next;

		if (here.column >= row) {
			if (here.column - row >= n_x)
				row = here.column / n_x * n_x;
			continue;
		}
		next = (here.column / n_x + 1) * n_x;
		for (; to > 0 && e[to - 1].column >= next; to--)
			e[to] = e[to - 1];
		e[to] = here;
	}
}

static void make_line(const struct projection *a, int view, int v, struct line *line, int32_t *split)
{
	struct line_entry *e = a->lines->entry + line->at;
	int n_x = a->grid.n[0], bands = a->lines->bands, k = 0;

	line_make(a->model, a->scan, a->scan->views + a->first + view, v, &a->grid, a->sampling, e, line);
	sort_rows(e, line->n, n_x);
	for (int band = 0; band < bands; band++) {
		int end = band_row(a, band + 1) * n_x;

		split[band] = k;
		while (k < line->n && e[k].column < end)
			k++;
	}
	split[bands] = k;
}

/* Fill the table with the views from `first` on. Return the number of views. */
static int make_batch(const struct projection *a, int first)
{
	struct cpu_lines *l = a->lines;
	int n_v = a->scan->n_v, n = cpu_min(l->batch, a->n_views - first), threads = cpu_state(a->dev)->threads;
	size_t at = 0;

	if (l->rays || l->table_first == first)
		return n;
	(void)threads;
	for (int i = 0; i < n; i++)
		for (int v = 0; v < n_v; v++) {
			l->line[(size_t)i * (size_t)n_v + (size_t)v].at = at;
			at += (size_t)line_bound(a->model, a->scan, a->scan->views + a->first + first + i, v, &a->grid);
		}
#pragma omp parallel for collapse(2) num_threads(threads) schedule(dynamic, 64)
	for (int i = 0; i < n; i++)
		for (int v = 0; v < n_v; v++) {
			size_t line = (size_t)i * (size_t)n_v + (size_t)v;

			make_line(a, first + i, v, l->line + line, l->split + line * ((size_t)l->bands + 1));
		}
	l->table_first = first;
	return n;
}

int cpu_lines_create(struct projection *a, struct err *err)
{
	struct cpu_lines *l = calloc(1, sizeof(*l));
	struct lines_table b;
	size_t lines;

	a->lines = l;
	if (!l)
		return err_set(err, ENOMEM, "projection: out of memory");
	l->stride = lines_stride(a->model, a->scan, &a->grid);
	l->batch = a->n_views;
	if (a->by_rows)
		return cpu_line_rows_create(a, err);
	b = table_of(a);
	lines = (size_t)b.batch * (size_t)a->scan->n_v;
	l->batch = b.batch;
	l->table_first = -1;
	l->bands = bands_of(a);
	l->line = calloc(lines, sizeof(*l->line));
	l->split = calloc(lines * ((size_t)l->bands + 1), sizeof(*l->split));
	l->entry = cpu_memory(b.entries * sizeof(*l->entry));
	if (!l->line || !l->split || !l->entry)
		return err_set(err, ENOMEM, "projection: out of memory for %zu lines", lines);
	make_batch(a, 0);
	return 0;
}

void cpu_lines_free(struct cpu_lines *l)
{
	if (!l)
		return;
	free(l->line);
	free(l->entry);
	free(l->split);
	free(l->rays);
	free(l->turned);
	free(l);
}

/* A range of slices that are processed together. */
struct part {
	int first, n, width;
	bool single;
};

/* Return the number of slices per part, such that there are at least `parts` parts if possible. */
static int slices_at_a_time(const struct projection *a, int parts)
{
	int wide = CPU_LINES_WIDE, n = a->scan->n_u;

	while (wide > 16 && (n + wide - 1) / wide < parts)
		wide /= 2;
	return wide;
}

static struct part part_of(const struct projection *a, int first, int wide)
{
	struct part p = {first, cpu_min(wide, a->scan->n_u - first), 0, a->scan->n_u == 1};

	p.width = (p.n + 3) / 4 * 4;
	return p;
}

static void forward_line(const struct projection *a, const struct line *line, const struct part *p, const float *x, bool add,
			 float *y)
{
	const struct cpu_line_loops *loops = cpu_state(a->dev)->rows->lines;
	const struct line_entry *e = a->lines->entry + line->at;
	size_t column = lines_column(&a->grid);
	float sum[CPU_LINES_WIDE];

	if (p->single)
		sum[0] = loops->dot(e, line->n, x, column);
	else
		loops->sums(e, line->n, x + p->first, column, p->width, sum);
	for (int u = 0; u < p->n; u++)
		y[p->first + u] = add ? y[p->first + u] + sum[u] : sum[u];
}

void cpu_lines_forward(struct projection *a, const struct cpu_forward *f)
{
	int n_v = a->scan->n_v, n_u = a->scan->n_u, threads = cpu_state(a->dev)->threads;

	(void)threads;
	if (a->by_rows) {
		cpu_line_rows_forward(a, f);
		return;
	}
	for (int first = 0, n; first < a->n_views; first += n) {
		n = make_batch(a, first);
#pragma omp parallel for collapse(2) num_threads(threads) schedule(dynamic, 4)
		for (int i = 0; i < n; i++)
			for (int v0 = 0; v0 < n_v; v0 += CHUNK)
				for (int u = 0; u < n_u; u += CPU_LINES_WIDE) {
					struct part p = part_of(a, u, CPU_LINES_WIDE);

					for (int v = v0; v < cpu_min(v0 + CHUNK, n_v); v++) {
						size_t at = (size_t)i * (size_t)n_v + (size_t)v;

						forward_line(a, a->lines->line + at, &p, f->x, f->add,
							     f->out + ((size_t)first * (size_t)n_v + at) * (size_t)n_u);
					}
				}
	}
}

/* Add n entries of a line, times the line's values q (one per slice), to x. */
static void back_piece(const struct projection *a, const struct line_entry *e, int n, const struct part *p, const float *q,
		       float *x)
{
	const struct cpu_line_loops *loops = cpu_state(a->dev)->rows->lines;
	size_t column = lines_column(&a->grid);
	float value[CPU_LINES_WIDE];

	if (p->single) {
		loops->add(e, n, q[0], x, column);
		return;
	}
	memcpy(value, q + p->first, (size_t)p->n * sizeof(*q));
	for (int u = p->n; u < p->width; u++)
		value[u] = 0;
	loops->spread(e, n, value, p->width, x + p->first, column);
}

static void back_band(const struct projection *a, int first, int n, int band, const struct part *p, const float *q, float *x)
{
	const struct cpu_lines *l = a->lines;
	size_t lines = (size_t)n * (size_t)a->scan->n_v, n_u = (size_t)a->scan->n_u;
	const float *from = q + (size_t)first * (size_t)a->scan->n_v * n_u;

	for (size_t i = 0; i < lines; i++) {
		const int32_t *split = l->split + i * ((size_t)l->bands + 1) + band;

		if (split[1] > split[0])
			back_piece(a, l->entry + l->line[i].at + split[0], split[1] - split[0], p, from + i * n_u, x);
	}
}

static void clear_band(const struct projection *a, int band, float *x)
{
	size_t row = (size_t)a->grid.n[0] * lines_column(&a->grid);
	int from = band_row(a, band), to = band_row(a, band + 1);

	memset(x + (size_t)from * row, 0, (size_t)(to - from) * row * sizeof(*x));
}

void cpu_lines_back(struct projection *a, const struct cpu_back *b)
{
	int bands = a->lines->bands, n_u = a->scan->n_u, threads = cpu_state(a->dev)->threads;

	(void)threads;
	if (a->by_rows) {
		cpu_line_rows_back(a, b);
		return;
	}
	for (int first = 0, n; first < a->n_views; first += n) {
		n = make_batch(a, first);
#pragma omp parallel for num_threads(threads) schedule(dynamic)
		for (int band = 0; band < bands; band++) {
			if (first == 0 && !b->add)
				clear_band(a, band, b->num);
			for (int u = 0; u < n_u; u += CPU_LINES_WIDE) {
				struct part p = part_of(a, u, CPU_LINES_WIDE);

				back_band(a, first, n, band, &p, b->q, b->num);
			}
		}
	}
}

struct sweep {
	float relaxation;
	const float *y;
	float *x;
	int first, n; /* views in the table: the first one, and their number */
};

static void sweep_line(const struct projection *a, const struct sweep *s, int view, int v, const struct part *p)
{
	const struct cpu_line_loops *loops = cpu_state(a->dev)->rows->lines;
	size_t n_v = (size_t)a->scan->n_v, at = (size_t)view * n_v + (size_t)v;
	const float *y = s->y + ((size_t)s->first * n_v + at) * (size_t)a->scan->n_u + p->first;
	size_t column = lines_column(&a->grid);
	const struct line_entry *e;
	const struct line *line;
	float sum[CPU_LINES_WIDE];

	if (a->by_rows) {
		if (!isnan(y[0]))
			cpu_line_rows_sweep(a, s->relaxation, view, v, y[0], s->x);
		return;
	}
	line = a->lines->line + at;
	e = a->lines->entry + line->at;
	if (!(line->norm > 0))
		return;
	if (p->single) {
		if (isnan(y[0]))
			return;
		sum[0] = loops->dot(e, line->n, s->x, column);
		loops->add(e, line->n, s->relaxation * (y[0] - sum[0]) / line->norm, s->x, column);
		return;
	}
	loops->sums(e, line->n, s->x + p->first, column, p->width, sum);
	for (int u = 0; u < p->n; u++)
		sum[u] = isnan(y[u]) ? 0 : s->relaxation * (y[u] - sum[u]) / line->norm;
	for (int u = p->n; u < p->width; u++)
		sum[u] = 0;
	loops->spread(e, line->n, sum, p->width, s->x + p->first, column);
}

static void sweep_alone(const struct projection *a, const struct sweep *s, const struct part *p)
{
	int stride = a->lines->stride;

	for (int view = 0; view < s->n; view++)
		for (int pass = 0; pass < stride; pass++)
			for (int v = pass; v < a->scan->n_v; v += stride)
				sweep_line(a, s, view, v, p);
}

static void sweep_together(const struct projection *a, const struct sweep *s, const struct part *p, int threads)
{
	int stride = a->lines->stride;

	(void)threads;
#pragma omp parallel num_threads(threads)
	for (int view = 0; view < s->n; view++)
		for (int pass = 0; pass < stride; pass++) {
#pragma omp for schedule(static)
			for (int v = pass; v < a->scan->n_v; v += stride)
				sweep_line(a, s, view, v, p);
		}
}

static void sweep_batch(const struct projection *a, const struct sweep *s)
{
	int n_u = a->scan->n_u, threads = cpu_state(a->dev)->threads, wide = slices_at_a_time(a, threads);
	int parts = (n_u + wide - 1) / wide;
	double pass = (double)a->scan->n_v / a->lines->stride * (a->grid.n[0] + a->grid.n[1]) / 2 * cpu_min(n_u, wide);

	if (threads > 1 && parts < threads && pass > WORTH_THREADS) {
		for (int u = 0; u < n_u; u += wide) {
			struct part p = part_of(a, u, wide);

			sweep_together(a, s, &p, threads);
		}
		return;
	}
#pragma omp parallel for num_threads(threads) schedule(dynamic)
	for (int u = 0; u < n_u; u += wide) {
		struct part p = part_of(a, u, wide);

		sweep_alone(a, s, &p);
	}
}

int cpu_row_sweep(struct projection *a, float relaxation, const struct buf *y, struct buf *x, struct err *err)
{
	struct sweep s = {.relaxation = relaxation, .y = y->mem, .x = x->mem};
	size_t bins = (size_t)a->n_views * scan_view_size(a->scan);

	if (!a->lines)
		return err_set(err, ENOTSUP, "row_sweep: the scan is not a stack of parallel beams");
	if (y->n != bins || x->n != grid_size(&a->grid))
		return err_set(
			err, EINVAL,
			"row_sweep: the vectors have %zu and %zu floats, but the scan has %zu bins and the grid %zu voxels", y->n,
			x->n, bins, grid_size(&a->grid));
	if (!(relaxation > 0 && relaxation < 2))
		return err_set(err, EINVAL, "row_sweep: relaxation %g; allowed: between 0 and 2", (double)relaxation);
	for (; s.first < a->n_views; s.first += s.n) {
		s.n = make_batch(a, s.first);
		sweep_batch(a, &s);
	}
	return 0;
}
