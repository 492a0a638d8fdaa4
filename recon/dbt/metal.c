/* SPDX-License-Identifier: Apache-2.0 */
/* metal.c - find the shadows of metal in a view.
 *
 * Most views have none, so bins are read once, for the largest value of each cell, and few cells are examined. Shadows grow from the
 * largest rise on, so that their edge is a part of it. */
#include "recon/dbt/metal.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "kernels/order.h"

#define COLUMNS 1024	 /* bins read together */
#define AROUND 4	 /* cells on either side of a cell in which the tissue is looked for */
#define WEAK 0.55	 /* part of the limits that a shadow has at a place known from other views, */
#define WEAK_SIZE 0.2	 /* and of METAL_SIZE: a clip seen along its axis */
#define EDGE 0.25f	 /* part of the largest rise at which a shadow ends; */
#define EDGE_LEAST 0.35f /* but not below this rise, */
#define EDGE_MOST 1.0f	 /* nor above this one */
#define BESIDE 0.15	 /* mm replaced around it: blur of the detector, bins that are covered in part */

enum {
	EXAMINED = 1, /* as part of a shadow */
	KEPT = 2,     /* in a shadow or beside it: to be replaced */
};

/* ---- cells that may be in a shadow ---- */

struct seed {
	float rise, tissue;
	int u, v; /* the largest bin of the cell */
};

struct search {
	const struct scan *scan;
	const struct view_cells *cells;
	const float *mean, *line, *valid;
	float *most; /* largest bin of each cell */
	struct seed *seed;
	size_t n_seeds;
	unsigned char *seen;	 /* of each bin: EXAMINED, KEPT; NULL: none yet */
	struct metal_bin *found; /* the bins of the shadow that grows */
	size_t n_found, room;
};

static size_t bin_of(const struct search *s, int u, int v)
{
	return (size_t)v * (size_t)s->scan->n_u + (size_t)u;
}

/* Find the largest bin of each cell. */
static void find_most(const struct search *s)
{
	size_t n_u = (size_t)s->scan->n_u;

#pragma omp parallel for schedule(static)
	for (int j = 0; j < s->cells->n_v; j++) {
		float *most = s->most + (size_t)j * (size_t)s->cells->n_u, column[COLUMNS];
		int end = order_smaller((j + 1) * s->cells->bins_v, s->scan->n_v),
		    step = COLUMNS / s->cells->bins_u * s->cells->bins_u;

		for (size_t from = 0; from < n_u; from += (size_t)step) {
			int n = order_smaller(step, (int)(n_u - from));

			for (int u = 0; u < n; u++)
				column[u] = 0;
			for (int v = j * s->cells->bins_v; v < end; v++) {
				const float *line = s->line + (size_t)v * n_u + from, *valid = s->valid + (size_t)v * n_u + from;

				for (int u = 0; u < n; u++) {
					float value = valid[u] > 0 ? line[u] : 0;

					column[u] = value > column[u] ? value : column[u];
				}
			}
			for (int u = 0; u < n; u++) {
				float *cell = &most[((int)from + u) / s->cells->bins_u];

				*cell = u % s->cells->bins_u == 0 || column[u] > *cell ? column[u] : *cell;
			}
		}
	}
}

/* Return whether the largest bin of a cell exceeds the cell's mean and one of eight cells around it, as it does in a shadow. */
static bool is_suspect(const struct search *s, int i, int j)
{
	size_t at = (size_t)j * (size_t)s->cells->n_u + (size_t)i;
	float least = INFINITY;

	if (!(s->most[at] - s->mean[at] >= (float)(0.5 * WEAK * METAL_RISE)))
		return false;
	for (int b = j - AROUND; b <= j + AROUND; b += AROUND)
		for (int a = i - AROUND; a <= i + AROUND; a += AROUND)
			if (a >= 0 && a < s->cells->n_u && b >= 0 && b < s->cells->n_v) {
				float mean = s->mean[(size_t)b * (size_t)s->cells->n_u + (size_t)a];

				least = mean >= 0 && mean < least ? mean : least;
			}
	return s->most[at] >= least + (float)(WEAK * METAL_RISE);
}

/* Return the median of the cells around a cell: the tissue, without what is smaller. */
static float median_around(const struct search *s, int i, int j)
{
	float around[(2 * AROUND + 1) * (2 * AROUND + 1)];
	size_t n = 0;

	for (int b = order_larger(j - AROUND, 0); b <= order_smaller(j + AROUND, s->cells->n_v - 1); b++)
		for (int a = order_larger(i - AROUND, 0); a <= order_smaller(i + AROUND, s->cells->n_u - 1); a++) {
			float mean = s->mean[(size_t)b * (size_t)s->cells->n_u + (size_t)a];

			if (mean >= 0)
				around[n++] = mean;
		}
	qsort(around, n, sizeof(*around), order_floats);
	return n ? around[n / 2] : INFINITY;
}

/* Add a cell to the seeds if its largest bin exceeds the tissue. */
static void examine_cell(struct search *s, int i, int j)
{
	float tissue = median_around(s, i, j), most = s->most[(size_t)j * (size_t)s->cells->n_u + (size_t)i];
	struct seed seed = {.rise = most - tissue, .tissue = tissue};

	if (!(seed.rise >= (float)(WEAK * METAL_RISE)))
		return;
	for (int v = j * s->cells->bins_v; v < order_smaller((j + 1) * s->cells->bins_v, s->scan->n_v); v++)
		for (int u = i * s->cells->bins_u; u < order_smaller((i + 1) * s->cells->bins_u, s->scan->n_u); u++)
			if (s->valid[bin_of(s, u, v)] > 0 && s->line[bin_of(s, u, v)] == most) {
				seed.u = u;
				seed.v = v;
			}
	s->seed[s->n_seeds++] = seed;
}

/* The largest rise first; equal ones by place, so that the order is always the same. */
static int order_seeds(const void *a, const void *b)
{
	const struct seed *x = a, *y = b;

	if (x->rise != y->rise)
		return x->rise > y->rise ? -1 : 1;
	return x->v != y->v ? (x->v < y->v ? -1 : 1) : (x->u > y->u) - (x->u < y->u);
}

static int find_seeds(struct search *s, struct err *err)
{
	size_t n = 0;

	find_most(s);
	for (int j = 0; j < s->cells->n_v; j++)
		for (int i = 0; i < s->cells->n_u; i++)
			n += is_suspect(s, i, j);
	if (n == 0)
		return 0;
	s->seed = malloc(n * sizeof(*s->seed));
	if (!s->seed)
		return err_set(err, ENOMEM, "metal: no memory for %zu cells", n);
	for (int j = 0; j < s->cells->n_v; j++)
		for (int i = 0; i < s->cells->n_u; i++)
			if (is_suspect(s, i, j))
				examine_cell(s, i, j);
	qsort(s->seed, s->n_seeds, sizeof(*s->seed), order_seeds);
	return 0;
}

/* ---- shadows ---- */

/* Add a bin to the shadow if it is part of it and was not examined. */
static int take_bin(struct search *s, const struct seed *seed, float edge, int u, int v, struct err *err)
{
	size_t at;

	if (u < 0 || u >= s->scan->n_u || v < 0 || v >= s->scan->n_v)
		return 0;
	at = bin_of(s, u, v);
	if (s->seen[at] & EXAMINED || !(s->valid[at] > 0 && s->line[at] - seed->tissue >= edge))
		return 0;
	if (s->n_found == s->room) {
		size_t room = s->room ? 2 * s->room : 256;
		struct metal_bin *more = realloc(s->found, room * sizeof(*more));

		if (!more)
			return err_set(err, ENOMEM, "metal: no memory for a shadow of %zu bins", room);
		s->found = more;
		s->room = room;
	}
	s->seen[at] |= EXAMINED;
	s->found[s->n_found++] = (struct metal_bin){u, v, s->line[at] - seed->tissue};
	return 0;
}

/* Find the bins that are connected with a seed. */
static int grow_shadow(struct search *s, const struct seed *seed, struct err *err)
{
	float edge = fminf(fmaxf(EDGE * seed->rise, EDGE_LEAST), EDGE_MOST);
	int r;

	s->n_found = 0;
	r = take_bin(s, seed, edge, seed->u, seed->v, err);
	for (size_t i = 0; r == 0 && i < s->n_found; i++)
		for (int d = 0; r == 0 && d < 9; d++)
			r = take_bin(s, seed, edge, s->found[i].u + d % 3 - 1, s->found[i].v + d / 3 - 1, err);
	return r;
}

/* Return whether a shadow meets these parts of the limits. */
static bool meets_limits(const struct metal_shadow *m, double part, double part_of_size)
{
	return m->rise >= part * METAL_RISE && m->size >= part_of_size * METAL_SIZE && m->rise >= part * METAL_MU * m->width;
}

/* Measure the shadow. Return false if it is too long, or no metal. */
static bool measure_shadow(const struct search *s, struct metal_shadow *ret)
{
	const double *h = s->scan->h;
	double weight = 0, first[2] = {0}, square[3] = {0}, least;
	struct metal_shadow m = {0};
	bool cut = false;

	for (size_t i = 0; i < s->n_found; i++) {
		double w = 1 - exp(-(double)s->found[i].rise), x[2] = {s->found[i].u, s->found[i].v};

		weight += w;
		for (int c = 0; c < 2; c++)
			first[c] += w * x[c];
		for (int c = 0; c < 3; c++) /* uu, uv, vv */
			square[c] += w * x[c / 2] * h[c / 2] * x[(c + 1) / 2] * h[(c + 1) / 2];
		cut |= x[0] == 0 || x[0] == s->scan->n_u - 1 || x[1] == 0 || x[1] == s->scan->n_v - 1;
		m.rise = fmax(m.rise, s->found[i].rise);
		m.sum += s->found[i].rise;
	}
	for (int c = 0; c < 2; c++)
		m.at[c] = first[c] / weight;
	for (int c = 0; c < 3; c++)
		square[c] = square[c] / weight - m.at[c / 2] * h[c / 2] * m.at[(c + 1) / 2] * h[(c + 1) / 2];
	for (size_t i = 0; i < s->n_found; i++)
		if (hypot((s->found[i].u - m.at[0]) * h[0], (s->found[i].v - m.at[1]) * h[1]) > METAL_REACH)
			return false;
	/* the smaller eigenvalue is the variance across; that of a strip is width^2 / 12, and bins add theirs. No shadow is narrower
	 * than a bin */
	least = 0.5 * (square[0] + square[2] - hypot(square[0] - square[2], 2 * square[1]));
	m.width = sqrt(fmax(12 * least, 2 * h[0] * h[1]) - h[0] * h[1]);
	m.size = weight * h[0] * h[1];
	m.spread = square[2] / (h[1] * h[1]);
	m.sure = !cut && meets_limits(&m, 1, 1);
	*ret = m;
	return meets_limits(&m, WEAK, WEAK_SIZE);
}

/* Copy the bins of the shadow with those beside it that have data. */
static int keep_bins(struct search *s, struct metal_shadow *m, struct err *err)
{
	const double *h = s->scan->h;
	int reach[2] = {(int)ceil(BESIDE / h[0]), (int)ceil(BESIDE / h[1])}, lo[2] = {s->scan->n_u, s->scan->n_v}, hi[2] = {0, 0};
	size_t columns, rows, n = 0;
	float *box;

	for (size_t i = 0; i < s->n_found; i++) {
		lo[0] = order_smaller(lo[0], order_larger(s->found[i].u - reach[0], 0));
		lo[1] = order_smaller(lo[1], order_larger(s->found[i].v - reach[1], 0));
		hi[0] = order_larger(hi[0], order_smaller(s->found[i].u + reach[0], s->scan->n_u - 1));
		hi[1] = order_larger(hi[1], order_smaller(s->found[i].v + reach[1], s->scan->n_v - 1));
	}
	columns = (size_t)(hi[0] - lo[0] + 1);
	rows = (size_t)(hi[1] - lo[1] + 1);
	box = malloc(columns * rows * sizeof(*box));
	m->bin = malloc(columns * rows * sizeof(*m->bin));
	if (!box || !m->bin) {
		free(box);
		return err_set(err, ENOMEM, "metal: no memory for a shadow of %zu x %zu bins", columns, rows);
	}
	for (size_t i = 0; i < columns * rows; i++)
		box[i] = -1;
	for (size_t i = 0; i < s->n_found; i++)
		for (int v = order_larger(s->found[i].v - reach[1], lo[1]); v <= order_smaller(s->found[i].v + reach[1], hi[1]);
		     v++)
			for (int u = order_larger(s->found[i].u - reach[0], lo[0]);
			     u <= order_smaller(s->found[i].u + reach[0], hi[0]); u++) {
				float *at = &box[(size_t)(v - lo[1]) * columns + (size_t)(u - lo[0])];

				*at = u == s->found[i].u && v == s->found[i].v ? s->found[i].rise : fmaxf(*at, 0);
			}
	for (size_t i = 0; i < columns * rows; i++) {
		struct metal_bin bin = {lo[0] + (int)(i % columns), lo[1] + (int)(i / columns), box[i]};

		if (box[i] >= 0 && s->valid[bin_of(s, bin.u, bin.v)] > 0) {
			s->seen[bin_of(s, bin.u, bin.v)] |= KEPT;
			m->bin[n++] = bin;
		}
	}
	m->n = n;
	free(box);
	return 0;
}

/* Add the bins that were found to the shadows of the view if they may be one. */
static int add_shadow(struct search *s, struct metal_view *view, struct err *err)
{
	struct metal_shadow m;

	if (s->n_found == 0 || !measure_shadow(s, &m))
		return 0;
	view->shadow[view->n++] = m;
	return keep_bins(s, &view->shadow[view->n - 1], err);
}

/* Return the line integral of the bins beside all shadows that are nearest to a bin; where there are none, its own. */
static float line_beside(const struct search *s, int u, int v)
{
	double sum = 0, weight = 0;

	for (int d = 0; d < 9; d++) {
		int to_u = d % 3 - 1, to_v = d / 3 - 1, a = u, b = v;

		do {
			a += to_u;
			b += to_v;
		} while ((to_u || to_v) && a >= 0 && a < s->scan->n_u && b >= 0 && b < s->scan->n_v &&
			 s->seen[bin_of(s, a, b)] & KEPT);
		if ((to_u || to_v) && a >= 0 && a < s->scan->n_u && b >= 0 && b < s->scan->n_v && s->valid[bin_of(s, a, b)] > 0) {
			double part = 1 / hypot((a - u) * s->scan->h[0], (b - v) * s->scan->h[1]);

			sum += part * s->line[bin_of(s, a, b)];
			weight += part;
		}
	}
	return weight > 0 ? (float)(sum / weight) : s->line[bin_of(s, u, v)];
}

static int find_shadows(struct search *s, struct metal_view *view, struct err *err)
{
	int r = 0;

	if (s->n_seeds == 0)
		return 0;
	s->seen = calloc((size_t)s->scan->n_u * (size_t)s->scan->n_v, 1);
	if (!s->seen)
		return err_set(err, ENOMEM, "metal: no memory for %d x %d bins", s->scan->n_u, s->scan->n_v);
	for (size_t i = 0; r == 0 && i < s->n_seeds && view->n < METAL_SHADOWS_MOST; i++) {
		r = grow_shadow(s, &s->seed[i], err);
		if (r == 0)
			r = add_shadow(s, view, err);
	}
	for (int i = 0; r == 0 && i < view->n; i++)
		for (size_t b = 0; b < view->shadow[i].n; b++) {
			struct metal_bin *bin = &view->shadow[i].bin[b];

			bin->excess = s->line[bin_of(s, bin->u, bin->v)] - line_beside(s, bin->u, bin->v);
		}
	return r;
}

int metal_find(const struct scan *scan, const struct view_cells *cells, const float *mean, const float *line, const float *valid,
	       struct metal_view *ret_view, struct err *err)
{
	size_t n = (size_t)cells->n_u * (size_t)cells->n_v;
	struct search s = {.scan = scan, .cells = cells, .mean = mean, .line = line, .valid = valid};
	struct metal_view view = {0};
	int r;

	if (scan->kind != SCAN_DBT)
		return err_set(err, EINVAL, "metal: scan of kind %d, not tomosynthesis", (int)scan->kind);
	s.most = malloc(n * sizeof(*s.most));
	if (!s.most)
		return err_set(err, ENOMEM, "metal: no memory for %zu cells", n);
	r = find_seeds(&s, err);
	if (r == 0)
		r = find_shadows(&s, &view, err);
	free(s.most);
	free(s.seed);
	free(s.seen);
	free(s.found);
	if (r < 0)
		metal_release(&view);
	else
		*ret_view = view;
	return r;
}

void metal_release(struct metal_view *v)
{
	for (int i = 0; i < v->n; i++)
		free(v->shadow[i].bin);
	*v = (struct metal_view){0};
}

/* ---- images of shadows ---- */

int metal_image_create(const struct metal_shadow *m, bool lost, float beside, struct metal_image *ret, struct err *err)
{
	struct metal_image image = {.lo = {INT_MAX, INT_MAX}, .beside = beside};
	int hi[2] = {0, 0};
	size_t n;

	for (size_t b = 0; b < m->n; b++) {
		const int at[2] = {m->bin[b].u, m->bin[b].v};

		for (int c = 0; c < 2; c++) {
			image.lo[c] = order_smaller(at[c], image.lo[c]);
			hi[c] = order_larger(at[c], hi[c]);
		}
	}
	for (int c = 0; c < 2; c++)
		image.n[c] = m->n > 0 ? hi[c] - image.lo[c] + 1 : 1;
	n = (size_t)image.n[0] * (size_t)image.n[1];
	image.value = malloc(n * sizeof(*image.value));
	if (!image.value)
		return err_set(err, ENOMEM, "metal: no memory for a shadow of %d x %d bins", image.n[0], image.n[1]);
	for (size_t i = 0; i < n; i++)
		image.value[i] = beside;
	for (size_t b = 0; b < m->n; b++)
		image.value[(m->bin[b].v - image.lo[1]) * image.n[0] + m->bin[b].u - image.lo[0]] =
			lost ? 1 - expf(-m->bin[b].rise) : m->bin[b].excess;
	*ret = image;
	return 0;
}

static float image_bin(const struct metal_image *m, int u, int v)
{
	u -= m->lo[0];
	v -= m->lo[1];
	return u >= 0 && u < m->n[0] && v >= 0 && v < m->n[1] ? m->value[v * m->n[0] + u] : m->beside;
}

float metal_image_at(const struct metal_image *m, const double foot[2])
{
	int u = (int)floor(foot[0]), v = (int)floor(foot[1]);
	float part[2] = {(float)(foot[0] - u), (float)(foot[1] - v)}, sum = 0;

	for (int i = 0; i < 4; i++)
		sum += image_bin(m, u + i % 2, v + i / 2) * (i % 2 ? part[0] : 1 - part[0]) * (i / 2 ? part[1] : 1 - part[1]);
	return sum;
}
