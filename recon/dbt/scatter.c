/* SPDX-License-Identifier: Apache-2.0 */
/* scatter.c - estimate and subtract scattered radiation; see scatter.h for the model.
 *
 * - The kernel is the sum of two terms of integral 1, part / (1 - part), with distance q from their centre:
 *     near   h^2 / (pi (q^2 + h^2)^2),     h = near + 0.509 gap
 *     far    2 h^4 / (pi (q^2 + h^2)^3),   h = far + 1.09 gap
 *   Their centres are displaced by lean h times the ray's slope.
 * - Means of cells use at most SAMPLES x SAMPLES bins of a cell: noise of a cell is negligible.
 * - In bins with less than RIM the subtraction fades out: there I0, which is measured in the air, includes the scatter. */
#include "recon/dbt/scatter.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES 8
#define TISSUE 0.2	    /* least line integral of a cell with tissue */
#define RIM 0.3f	    /* line integral */
#define PRIMARY_LEAST 0.15f /* of the intensity of a bin; noise and calcifications are below the mean of their cell */

/* Fitted to pencil beams by tests/scatter_fit.py. */
struct kernel {
	double thickness; /* mm */
	double ratio;	  /* S / P of a wide beam perpendicular to the slab */
	double part;	  /* of the near term */
	double near, far; /* mm */
	double near_lean, far_lean;
};
static const struct kernel kernels[] = {
	{20, 0.2720, 0.742, 5.989, 31.793, 0.407, 0.473},  {35, 0.4672, 0.736, 8.975, 29.874, 0.398, 0.766},
	{50, 0.6644, 0.713, 11.420, 30.935, 0.407, 0.940}, {65, 0.8675, 0.668, 13.305, 33.653, 0.420, 1.014},
	{80, 1.0790, 0.621, 14.915, 36.926, 0.433, 1.064},
};
#define N_KERNELS (sizeof kernels / sizeof *kernels)
#define NEAR_GAP 0.509
#define FAR_GAP 1.09

struct cell {
	float x, y;   /* centre on the detector along u and v, mm */
	float sx, sy; /* slope of its ray along u and v: positive away from the source */
	float intensity, primary, scatter;
};

struct cells {
	int n_u, n_v, bins; /* cells; bins of a cell along u and v, the last cells may have fewer */
	float area;	    /* mm^2 */
	struct cell *cell;
	float *sorted, *x; /* x: centres of the columns */
};

/* The scatter of the ray of one cell, ready for summing. */
struct source {
	float near_x, near_y, near_hh, near_weight;
	float far_x, far_y, far_hh, far_weight;
};

static struct kernel kernel_at(double thickness)
{
	size_t k = 0;
	const struct kernel *a, *b;
	double part, shape;

	while (k + 2 < N_KERNELS && thickness > kernels[k + 1].thickness)
		k++;
	a = &kernels[k];
	b = &kernels[k + 1];
	part = (thickness - a->thickness) / (b->thickness - a->thickness);
	shape = fmin(fmax(part, 0), 1);
	return (struct kernel){
		.thickness = thickness,
		.ratio = thickness < a->thickness ? a->ratio * thickness / a->thickness : a->ratio + part * (b->ratio - a->ratio),
		.part = a->part + shape * (b->part - a->part),
		.near = a->near + shape * (b->near - a->near),
		.far = a->far + shape * (b->far - a->far),
		.near_lean = a->near_lean + shape * (b->near_lean - a->near_lean),
		.far_lean = a->far_lean + shape * (b->far_lean - a->far_lean),
	};
}

/* An oblique ray is longer by 1 / cos, and its scatter has a longer way than the primary: the exponent grows with thickness. */
static double oblique(double thickness, double slope)
{
	return pow(1 + slope * slope, 0.5 * (0.7 + 0.0175 * thickness));
}

double scatter_ratio(double thickness, double slope)
{
	return kernel_at(thickness).ratio * oblique(thickness, slope);
}

/* ---- cells ---- */

static int cells_make(const struct scan *scan, const struct scan_view *view, int bin, struct cells *ret, struct err *err)
{
	int n_u = scan->n_u / bin, n_v = scan->n_v / bin;
	struct cells c = {.bins = (int)fmax(1, round(SCATTER_CELL / (scan->h[0] * bin)))};
	size_t n;

	c.n_u = (n_u + c.bins - 1) / c.bins;
	c.n_v = (n_v + c.bins - 1) / c.bins;
	n = (size_t)c.n_u * (size_t)c.n_v;
	c.area = (float)(c.bins * scan->h[0] * bin * c.bins * scan->h[1] * bin);
	c.cell = malloc(n * (sizeof(*c.cell) + sizeof(*c.sorted)) + (size_t)c.n_u * sizeof(*c.x));
	if (!c.cell)
		return err_set(err, ENOMEM, "scatter: no memory for %d x %d cells", c.n_u, c.n_v);
	c.sorted = (float *)(c.cell + n);
	c.x = c.sorted + n;
	for (int j = 0; j < c.n_v; j++)
		for (int i = 0; i < c.n_u; i++) {
			double u = (i + 0.5) * c.bins * bin - 0.5, v = (j + 0.5) * c.bins * bin - 0.5, at[3];
			struct cell *cell = &c.cell[(size_t)j * (size_t)c.n_u + (size_t)i];

			scan_bin_at(scan, view, u, v, at);
			*cell = (struct cell){.x = (float)(u * scan->h[0]),
					      .y = (float)(v * scan->h[1]),
					      .sx = (float)((at[0] - view->src[0]) / (view->src[2] - at[2])),
					      .sy = (float)((at[1] - view->src[1]) / (view->src[2] - at[2]))};
			c.x[i] = cell->x;
		}
	*ret = c;
	return 0;
}

static int smaller(int a, int b)
{
	return a < b ? a : b;
}

/* Return the mean intensity of a cell's valid bins; 0: it has none. */
static float mean_intensity(const struct cells *c, int i, int j, int n_u, int n_v, const float *line, const float *valid)
{
	int step = (c->bins + SAMPLES - 1) / SAMPLES, end_u = smaller((i + 1) * c->bins, n_u);
	int end_v = smaller((j + 1) * c->bins, n_v);
	double sum = 0;
	int n = 0;

	for (int v = j * c->bins + step / 2; v < end_v; v += step)
		for (int u = i * c->bins + step / 2; u < end_u; u += step) {
			size_t at = (size_t)v * (size_t)n_u + (size_t)u;

			if (valid[at] != 0) { /* air that the mask has marked has an intensity too */
				sum += (double)expf(-line[at]);
				n++;
			}
		}
	return n ? (float)(sum / n) : 0;
}

/* Give cells without data the mean of their neighbours that have some, as the scatter in them. */
static void fill_scatter(struct cells *c)
{
	for (int j = 0; j < c->n_v; j++)
		for (int i = 0; i < c->n_u; i++) {
			struct cell *cell = &c->cell[(size_t)j * (size_t)c->n_u + (size_t)i];
			float sum = 0;
			int n = 0;

			for (int k = 0; k < 9 && cell->intensity == 0; k++) {
				int x = i + k % 3 - 1, y = j + k / 3 - 1;
				const struct cell *other;

				if (x < 0 || x >= c->n_u || y < 0 || y >= c->n_v)
					continue;
				other = &c->cell[(size_t)y * (size_t)c->n_u + (size_t)x];
				if (other->intensity > 0) {
					sum += other->scatter;
					n++;
				}
			}
			if (n)
				cell->scatter = sum / (float)n;
		}
}

/* Return the line integral of a cell per length in units of the slab's thickness; 0: no tissue. */
static float depth_of(const struct cell *c)
{
	float depth = c->intensity > 0 ? -logf(c->primary) : 0;

	return depth > (float)TISSUE ? depth / sqrtf(1 + c->sx * c->sx + c->sy * c->sy) : 0;
}

static int compare(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

/* Return the median of the cells with tissue; 0: none. */
static float median_depth(struct cells *c)
{
	size_t n = (size_t)c->n_u * (size_t)c->n_v, found = 0;

	for (size_t i = 0; i < n; i++) {
		float depth = depth_of(&c->cell[i]);

		if (depth > 0)
			c->sorted[found++] = depth;
	}
	qsort(c->sorted, found, sizeof(*c->sorted), compare);
	return found ? c->sorted[found / 2] : 0;
}

/* ---- scatter ---- */

static struct source source_of(const struct scatter *s, const struct cells *cells, const struct cell *c, float median)
{
	double slope = hypot((double)c->sx, (double)c->sy), thickness = s->thickness * fmin(1, (double)(depth_of(c) / median));
	struct kernel k = kernel_at(thickness);
	double near = k.near + NEAR_GAP * s->gap, far = k.far + FAR_GAP * s->gap;
	double weight = s->scale * k.ratio * oblique(thickness, slope) * (double)(sqrtf(c->primary) * cells->area) / M_PI;

	return (struct source){
		.near_x = c->x - (float)(k.near_lean * near) * c->sx,
		.near_y = c->y - (float)(k.near_lean * near) * c->sy,
		.near_hh = (float)(near * near),
		.near_weight = (float)(weight * k.part / (near * near)),
		.far_x = c->x - (float)(k.far_lean * far) * c->sx,
		.far_y = c->y - (float)(k.far_lean * far) * c->sy,
		.far_hh = (float)(far * far),
		.far_weight = (float)(weight * 2 * (1 - k.part) / (far * far)),
	};
}

/* Add the scatter of one source to a row of cells at height y. */
static void add_source(const struct source *s, const float *restrict x, float y, int n, float *restrict sum)
{
	float near_rest = (y - s->near_y) * (y - s->near_y) + s->near_hh, far_rest = (y - s->far_y) * (y - s->far_y) + s->far_hh;

	for (int i = 0; i < n; i++) {
		float a = x[i] - s->near_x, b = x[i] - s->far_x;
		float p = s->near_hh / (a * a + near_rest), q = s->far_hh / (b * b + far_rest);

		sum[i] += s->near_weight * p * p + s->far_weight * q * q * q;
	}
}

static void compute_scatter(const struct scatter *s, struct cells *c, float median, struct source *sources, float *sums)
{
	size_t n = (size_t)c->n_u * (size_t)c->n_v, n_sources = 0;

	for (size_t i = 0; i < n; i++)
		if (depth_of(&c->cell[i]) > 0)
			sources[n_sources++] = source_of(s, c, &c->cell[i], median);
#pragma omp parallel for schedule(static)
	for (int j = 0; j < c->n_v; j++) {
		struct cell *row = c->cell + (size_t)j * (size_t)c->n_u;
		float *sum = sums + (size_t)j * (size_t)c->n_u;

		memset(sum, 0, (size_t)c->n_u * sizeof(*sum));
		for (size_t k = 0; k < n_sources; k++)
			add_source(&sources[k], c->x, row->y, c->n_u, sum);
		for (int i = 0; i < c->n_u; i++)
			row[i].scatter = sqrtf(row[i].primary) * sum[i];
	}
}

/* Compute primary and scattered intensity of all cells from their intensity. */
static int solve(const struct scatter *s, struct cells *c, struct scatter_report *ret, struct err *err)
{
	size_t n = (size_t)c->n_u * (size_t)c->n_v, tissue = 0;
	struct source *sources = malloc(n * (sizeof(*sources) + sizeof(float)));
	struct scatter_report report = {0};

	if (!sources)
		return err_set(err, ENOMEM, "scatter: no memory for %zu cells", n);
	for (size_t i = 0; i < n; i++)
		c->cell[i].primary = c->cell[i].intensity;
	for (int k = 0; k < SCATTER_ITERATIONS; k++) {
		compute_scatter(s, c, median_depth(c), sources, (float *)(sources + n));
		for (size_t i = 0; i < n; i++)
			if (c->cell[i].intensity > 0)
				c->cell[i].primary *= c->cell[i].intensity / (c->cell[i].primary + c->cell[i].scatter);
	}
	for (size_t i = 0; i < n; i++) {
		struct cell *cell = &c->cell[i];
		double ratio = cell->intensity > 0 ? (double)(cell->intensity / cell->primary - 1) : 0;

		cell->scatter = cell->intensity - cell->primary;
		if (depth_of(cell) > 0) {
			report.mean += ratio;
			report.most = fmax(report.most, ratio);
			tissue++;
		}
	}
	fill_scatter(c);
	report.mean /= tissue ? (double)tissue : 1;
	*ret = report;
	free(sources);
	return 0;
}

/* ---- bins ---- */

/* Return e^x for 0 <= x < 80, with a relative error below 1e-6; unlike expf(), loops with it vectorise. */
static inline float exp_of(float x)
{
	float t = x * 1.44269504f, f;
	int n = (int)t, bits;
	float power;

	f = (t - (float)n) * 0.69314718f;
	bits = (n + 127) << 23;
	memcpy(&power, &bits, sizeof(power));
	return power * (1 + f * (1 + f * (0.5f + f * (0.16666667f + f * (0.041666667f + f * (0.0083333f + f * 0.0015f))))));
}

/* Return -ln(m) for 0 < m <= 1, with an error below 2e-6. */
static inline float minus_log(float m)
{
	int bits, exponent;
	float z, zz;

	memcpy(&bits, &m, sizeof(bits));
	exponent = (bits >> 23) - 127;
	bits = (bits & 0x7fffff) | 0x3f800000;
	memcpy(&m, &bits, sizeof(m));
	z = (m - 1) / (m + 1);
	zz = z * z;
	return -0.69314718f * (float)exponent - 2 * z * (1 + zz * (0.33333333f + zz * (0.2f + zz * (0.14285714f + zz * 0.12f))));
}

/* Subtract from n bins the scatter first, first + step ... */
static void subtract(float first, float step, const float *restrict valid, int n, float *restrict line)
{
	for (int i = 0; i < n; i++) {
		float y = line[i] > 0 ? line[i] < 60 ? line[i] : 60 : 0, part = y < RIM ? y * (1 / RIM) : 1;
		float primary = 1 - part * (first + (float)i * step) * exp_of(y);

		primary = primary > PRIMARY_LEAST ? primary : PRIMARY_LEAST;
		line[i] += valid[i] > 0 ? minus_log(primary) : 0;
	}
}

/* Correct row v of bins with the scatter interpolated between the cells. */
static void correct_row(const struct cells *c, int v, int n_u, const float *valid, float *line)
{
	float at = fminf(fmaxf(((float)v + 0.5f) / (float)c->bins - 0.5f, 0), (float)(c->n_v - 1));
	int j = smaller((int)at, c->n_v > 1 ? c->n_v - 2 : 0), k = j + (c->n_v > 1);
	const struct cell *low = c->cell + (size_t)j * (size_t)c->n_u, *high = c->cell + (size_t)k * (size_t)c->n_u;
	float part = at - (float)j;

	for (int i = -1; i < c->n_u;
	     i++) { /* the bins between the centres of cells i and i + 1; outside of them it is constant */
		int a = i < 0 ? 0 : i, b = smaller(i + 1, c->n_u - 1);
		int from = i < 0 ? 0 : smaller((2 * i + 1) * c->bins / 2, n_u), end = smaller((2 * i + 3) * c->bins / 2, n_u);
		float left = low[a].scatter + part * (high[a].scatter - low[a].scatter);
		float step = (low[b].scatter + part * (high[b].scatter - low[b].scatter) - left) / (float)c->bins;

		subtract(left + step * ((float)from + 0.5f - ((float)i + 0.5f) * (float)c->bins), step, valid + from, end - from,
			 line + from);
	}
}

int scatter_correct_view(const struct scatter *s, const struct scan *scan, int view, int bin, float *line, const float *valid,
			 struct scatter_report *ret_report, struct err *err)
{
	struct scatter_report report = {0};
	struct cells c;
	int n_u, n_v, rc;

	if (scan->kind != SCAN_DBT || view < 0 || view >= scan->n_views || bin < 1 || bin > scan->n_u || bin > scan->n_v)
		return err_set(err, EINVAL, "scatter: view %d of %d, %d bins merged of %d x %d", view, scan->n_views, bin,
			       scan->n_u, scan->n_v);
	if (!(s->thickness > 0 && s->thickness <= 1000 && s->gap >= 0 && s->gap <= 1000 && s->scale >= 0 && s->scale <= 100))
		return err_set(err, EINVAL, "scatter: thickness %g mm, gap %g mm, scale %g", s->thickness, s->gap, s->scale);
	n_u = scan->n_u / bin;
	n_v = scan->n_v / bin;
	rc = cells_make(scan, &scan->views[view], bin, &c, err);
	if (rc < 0)
		return rc;
#pragma omp parallel for schedule(static)
	for (int j = 0; j < c.n_v; j++)
		for (int i = 0; i < c.n_u; i++)
			c.cell[(size_t)j * (size_t)c.n_u + (size_t)i].intensity = mean_intensity(&c, i, j, n_u, n_v, line, valid);
	rc = solve(s, &c, &report, err);
#pragma omp parallel for schedule(static)
	for (int v = 0; v < (rc == 0 ? n_v : 0); v++)
		correct_row(&c, v, n_u, valid + (size_t)v * (size_t)n_u, line + (size_t)v * (size_t)n_u);
	if (rc == 0 && ret_report)
		*ret_report = report;
	free(c.cell);
	return rc;
}
