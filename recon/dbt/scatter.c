/* SPDX-License-Identifier: Apache-2.0 */
/* scatter.c - estimate and subtract scattered radiation; see scatter.h for the model.
 *
 * - The kernel is the sum of two terms of integral 1, part / (1 - part), with distance q from their centre:
 *     near   h^2 / (pi (q^2 + h^2)^2),     h = near + 0.509 gap
 *     far    2 h^4 / (pi (q^2 + h^2)^3),   h = far + 1.09 gap
 *   Their centres are displaced by lean h times the ray's slope.
 * - Where the tissue on a ray is shorter than the breast is thick, it is in the middle of the thickness, or nearer to the source
 *   if the rays leave the breast through its side, or nearer to the detector if they enter it there: edge_at().
 * - Photons that were scattered repeatedly are missing where there is less tissue around the ray than on it: part_left().
 * - Means of cells use at most SAMPLES x SAMPLES bins of a cell: noise of a cell is negligible.
 * - A bin with the line integral 0 is air, at least as bright as I0, and is not corrected. */
#include "recon/dbt/scatter.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/order.h"

#define SAMPLES 8
#define TISSUE 0.2	    /* least line integral of a cell with tissue */
#define AROUND 0.25	    /* standard deviation of the weights around a cell, relative to the thickness of the breast */
#define REACH_MOST 32	    /* cells */
#define AIR 0.05f	    /* largest line integral of a cell with air */
#define AIR_CELLS 8	    /* least number of cells with air */
#define AIR_MOST 0.1	    /* largest scatter in the air */
#define DARKEST 1e-30f	    /* primary intensity of a cell */
#define PRIMARY_LEAST 0.15f /* of the intensity of a bin; noise and calcifications are below the mean of their cell */

/* Fitted to pencil beams by tests/scatter_fit.py. */
struct kernel {
	double thickness; /* mm */
	double ratio;	  /* S / P of a wide beam perpendicular to the slab */
	double part;	  /* of the near term */
	double near, far; /* mm */
	double near_lean, far_lean;
	double repeated; /* part that was scattered more than once */
};
static const struct kernel kernels[] = {
	{20, 0.2720, 0.742, 5.989, 31.793, 0.407, 0.473, 0.199},  {35, 0.4672, 0.736, 8.975, 29.874, 0.398, 0.766, 0.272},
	{50, 0.6644, 0.713, 11.420, 30.935, 0.407, 0.940, 0.330}, {65, 0.8675, 0.668, 13.305, 33.653, 0.420, 1.014, 0.379},
	{80, 1.0790, 0.621, 14.915, 36.926, 0.433, 1.064, 0.422},
};
#define N_KERNELS (sizeof kernels / sizeof *kernels)
#define NEAR_GAP 0.509
#define FAR_GAP 1.09

struct cell {
	float x, y;   /* centre on the detector along u and v, mm */
	float sx, sy; /* slope of its ray along u and v: positive away from the source */
	float intensity, primary, scatter;
	float thickness; /* of the tissue on its ray, mm; 0: none */
	float around;	 /* mean thickness around it, mm */
};

struct cells {
	int n_u, n_v, bins; /* cells; bins of a cell along u and v, the last cells may have fewer */
	float area;	    /* mm^2 */
	struct cell *cell;
	float *sorted, *x; /* x: centres of the columns, then work for a row */
	float *line;	   /* line integral of each cell, without scatter */
	float air;	   /* intensity in the air, relative to I0 without scatter */
};

/* The scatter of the ray of one cell, ready for summing. On the way to a cell it passes the tissue that the rays between both
 * cells pass, at `way` of the distance; `rest`: part of their line integral. */
struct source {
	float u, v; /* index of its cell */
	float way, rest;
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
		.repeated = a->repeated + shape * (b->repeated - a->repeated),
	};
}

/* An oblique ray is longer by 1 / cos, and its scatter has a longer way than the primary: the exponent grows with thickness. */
static double oblique_factor(double thickness, double slope)
{
	return pow(1 + slope * slope, 0.5 * (0.7 + 0.0175 * thickness));
}

double scatter_ratio(double thickness, double slope)
{
	return kernel_at(thickness).ratio * oblique_factor(thickness, slope);
}

/* ---- cells ---- */

static int cells_make(const struct scan *scan, const struct scan_view *view, int bin, struct cells *ret, struct err *err)
{
	int n_u = scan->n_u / bin, n_v = scan->n_v / bin;
	struct cells c = {.bins = (int)fmax(1, round(SCATTER_CELL / (scan->h[0] * bin)))};
	size_t n;

	c.air = 1;
	c.n_u = (n_u + c.bins - 1) / c.bins;
	c.n_v = (n_v + c.bins - 1) / c.bins;
	n = (size_t)c.n_u * (size_t)c.n_v;
	c.area = (float)(c.bins * scan->h[0] * bin * c.bins * scan->h[1] * bin);
	c.cell = malloc(n * (sizeof(*c.cell) + sizeof(*c.sorted) + sizeof(*c.line)) + 2 * (size_t)c.n_u * sizeof(*c.x));
	if (!c.cell)
		return err_set(err, ENOMEM, "scatter: no memory for %d x %d cells", c.n_u, c.n_v);
	c.sorted = (float *)(c.cell + n);
	c.line = c.sorted + n;
	c.x = c.line + n;
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

/* Return the mean intensity of a cell's valid bins; 0: it has none. */
static float mean_intensity(const struct cells *c, int i, int j, int n_u, int n_v, const float *line, const float *valid)
{
	int step = (c->bins + SAMPLES - 1) / SAMPLES, end_u = order_smaller((i + 1) * c->bins, n_u);
	int end_v = order_smaller((j + 1) * c->bins, n_v);
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

/* Return whether a cell has tissue, and air is in none of the cells next to it. */
static bool is_inside(const struct cells *c, int i, int j)
{
	for (int k = 0; k < 9; k++) {
		int x = i + k % 3 - 1, y = j + k / 3 - 1;
		const struct cell *cell;

		if (x < 0 || x >= c->n_u || y < 0 || y >= c->n_v)
			continue;
		cell = &c->cell[(size_t)y * (size_t)c->n_u + (size_t)x];
		if ((k == 4 || cell->intensity > 0) && !(depth_of(cell) > 0))
			return false;
	}
	return true;
}

/* Return the median of the cells with tissue, of those inside if there are any; 0: none. */
static float median_depth(struct cells *c)
{
	size_t found = 0;

	for (int pass = 0; pass < 2 && found == 0; pass++)
		for (int j = 0; j < c->n_v; j++)
			for (int i = 0; i < c->n_u; i++) {
				float depth = depth_of(&c->cell[(size_t)j * (size_t)c->n_u + (size_t)i]);

				if (depth > 0 && (pass == 1 || is_inside(c, i, j)))
					c->sorted[found++] = depth;
			}
	qsort(c->sorted, found, sizeof(*c->sorted), order_floats);
	return found ? c->sorted[found / 2] : 0;
}

/* Compute the weights of the cells at 0, 1 ... from a cell. Returns the number of the last. */
static int gauss_weights(double sigma, float ret_weights[REACH_MOST + 1])
{
	int reach = order_smaller((int)ceil(3 * sigma), REACH_MOST);
	double sum = 1;

	ret_weights[0] = 1;
	for (int i = 1; i <= reach; i++) {
		ret_weights[i] = (float)exp(-0.5 * i * i / (sigma * sigma));
		sum += 2 * (double)ret_weights[i];
	}
	for (int i = 0; i <= reach; i++)
		ret_weights[i] /= (float)sum;
	return reach;
}

/* Return the weighted mean around value i of n; beyond them there are zeros. */
static float mean_around(const float *values, int n, size_t stride, int i, const float *weights, int reach)
{
	float sum = 0;

	for (int k = i > reach ? i - reach : 0; k <= order_smaller(i + reach, n - 1); k++)
		sum += weights[k < i ? i - k : k - i] * values[(size_t)k * stride];
	return sum;
}

/* Compute the mean thickness around all cells; those without data are as thick as the one before them. */
static void measure_around(const struct scatter *s, struct cells *c)
{
	float weights[REACH_MOST + 1], *row = c->x + c->n_u;
	int reach = gauss_weights(AROUND * s->thickness / sqrt((double)c->area), weights);

	for (int j = 0; j < c->n_v; j++) {
		const struct cell *cell = c->cell + (size_t)j * (size_t)c->n_u;

		for (int i = 0; i < c->n_u; i++)
			row[i] = cell[i].intensity > 0 || i == 0 ? cell[i].thickness : row[i - 1];
		for (int i = 0; i < c->n_u; i++)
			c->sorted[(size_t)j * (size_t)c->n_u + (size_t)i] = mean_around(row, c->n_u, 1, i, weights, reach);
	}
	for (int j = 0; j < c->n_v; j++)
		for (int i = 0; i < c->n_u; i++)
			c->cell[(size_t)j * (size_t)c->n_u + (size_t)i].around =
				mean_around(c->sorted + i, c->n_v, (size_t)c->n_u, j, weights, reach);
}

/* Compute line integrals and thickness of all cells; a cell without data has the line integral of the one before it. */
static void measure_tissue(const struct scatter *s, struct cells *c)
{
	float median = median_depth(c);

	for (size_t i = 0; i < (size_t)c->n_u * (size_t)c->n_v; i++) {
		struct cell *cell = &c->cell[i];

		if (cell->intensity > 0)
			c->line[i] = fmaxf(0, -logf(fmaxf(cell->primary, DARKEST)));
		else
			c->line[i] = i % (size_t)c->n_u ? c->line[i - 1] : 0;
		cell->thickness = median > 0 ? (float)s->thickness * fminf(1, depth_of(cell) / median) : 0;
	}
	measure_around(s, c);
}

/* Return how much shorter the tissue becomes along the slope of the rays of cell i, j, per height: 1 where they leave the breast
 * through a vertical side, -1 where they enter it there. */
static float edge_at(const struct cells *c, int i, int j)
{
	int left = i > 0 ? i - 1 : i, right = i + 1 < c->n_u ? i + 1 : i, low = j > 0 ? j - 1 : j,
	    high = j + 1 < c->n_v ? j + 1 : j;
	const struct cell *row = c->cell + (size_t)j * (size_t)c->n_u, *cell = &row[i];
	const struct cell *a = c->cell + (size_t)low * (size_t)c->n_u + i, *b = c->cell + (size_t)high * (size_t)c->n_u + i;
	float du = row[right].x - row[left].x, dv = b->y - a->y, sum = 0;

	sum += du > 0 ? cell->sx * (row[right].thickness - row[left].thickness) / du : 0;
	sum += dv > 0 ? cell->sy * (b->thickness - a->thickness) / dv : 0;
	return fminf(fmaxf(-sum, -1), 1);
}

/* ---- scatter ---- */

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

/* Return the height of the lowest tissue on a ray above the lower side of the breast. edge: from edge_at(). Without it the tissue
 * is in the middle. It is shifted in proportion to its length, as the middles of parallel chords of an ellipse are. */
static double lowest_tissue(const struct scatter *s, double thickness, double edge)
{
	return (s->thickness - thickness) * fmin(fmax(0.5 + edge * thickness / s->thickness, 0), 1);
}

/* Return the part of the scatter that is left if the tissue around the ray is thinner than on it. */
static double part_left(const struct kernel *k, const struct cell *c)
{
	return 1 - k->repeated * (1 - fmin(1, (double)(c->around / c->thickness)));
}

static struct source source_of(const struct scatter *s, const struct cells *cells, int i, int j)
{
	const struct cell *c = &cells->cell[(size_t)j * (size_t)cells->n_u + (size_t)i];
	double slope = hypot((double)c->sx, (double)c->sy), thickness = (double)c->thickness;
	double below = lowest_tissue(s, thickness, (double)edge_at(cells, i, j)), middle = below + 0.5 * thickness;
	struct kernel k = kernel_at(thickness);
	double near = k.near + NEAR_GAP * (s->gap + below), far = k.far + FAR_GAP * (s->gap + below);
	double ratio = k.ratio * oblique_factor(thickness, slope) * part_left(&k, c);
	double weight = s->scale * ratio * (double)(sqrtf(c->primary) * cells->area) / M_PI;

	return (struct source){
		.u = (float)i,
		.v = (float)j,
		.way = (float)(0.5 * middle / (s->gap + middle)),
		.rest = (float)(middle / s->thickness),
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

/* Compute the attenuation of one source's scatter on the way to the cells of row j. between: n_u + 1 floats of work. */
static void attenuate_source(const struct source *s, const struct cells *c, int j, float *restrict between, float *restrict ret)
{
	float v = s->v + s->way * ((float)j - s->v), first = s->u - s->way * s->u;
	int low = (int)v, high = order_smaller(low + 1, c->n_v - 1),
	    last = order_smaller((int)(first + s->way * (float)c->n_u) + 1, c->n_u - 1);
	const float *a = c->line + (size_t)low * (size_t)c->n_u, *b = c->line + (size_t)high * (size_t)c->n_u;

	for (int i = (int)first; i <= last; i++)
		between[i] = a[i] + (v - (float)low) * (b[i] - a[i]);
	between[last + 1] = between[last];
	for (int i = 0; i < c->n_u; i++) {
		float u = first + s->way * (float)i;
		int k = (int)u;

		ret[i] = between[k] + (u - (float)k) * (between[k + 1] - between[k]);
	}
	for (int i = 0; i < c->n_u; i++)
		ret[i] = 1 / exp_of(s->rest * ret[i]);
}

/* Add the scatter of one source to a row of cells at height y. */
static void add_source(const struct source *s, const float *restrict x, float y, int n, const float *restrict through,
		       float *restrict sum)
{
	float near_rest = (y - s->near_y) * (y - s->near_y) + s->near_hh, far_rest = (y - s->far_y) * (y - s->far_y) + s->far_hh;

	for (int i = 0; i < n; i++) {
		float a = x[i] - s->near_x, b = x[i] - s->far_x;
		float p = s->near_hh / (a * a + near_rest), q = s->far_hh / (b * b + far_rest);

		sum[i] += through[i] * (s->near_weight * p * p + s->far_weight * q * q * q);
	}
}

/* work: 3 n_u + 1 floats for each row of cells. */
static void compute_scatter(const struct scatter *s, struct cells *c, struct source *sources, float *work)
{
	size_t n_sources = 0, size = 3 * (size_t)c->n_u + 1;

	for (int j = 0; j < c->n_v; j++)
		for (int i = 0; i < c->n_u; i++)
			if (c->cell[(size_t)j * (size_t)c->n_u + (size_t)i].thickness > 0)
				sources[n_sources++] = source_of(s, c, i, j);
#pragma omp parallel for schedule(static)
	for (int j = 0; j < c->n_v; j++) {
		struct cell *row = c->cell + (size_t)j * (size_t)c->n_u;
		float *sum = work + (size_t)j * size, *through = sum + c->n_u;

		memset(sum, 0, (size_t)c->n_u * sizeof(*sum));
		for (size_t k = 0; k < n_sources; k++) {
			attenuate_source(&sources[k], c, j, through + c->n_u, through);
			add_source(&sources[k], c->x, row->y, c->n_u, through, sum);
		}
		for (int i = 0; i < c->n_u; i++)
			row[i].scatter = sum[i];
	}
}

static bool is_air(const struct cell *c)
{
	return c->intensity > 0 && -logf(c->intensity) < AIR;
}

/* Return the intensity in the air relative to I0 without scatter, so that what remains in the air after the correction is 1 on
 * average. Only the half of its cells with less scatter is used: the others are brighter than I0, which prep_view() limits. */
static float air_intensity(struct cells *c)
{
	size_t n = (size_t)c->n_u * (size_t)c->n_v, found = 0;
	double expected = 0, measured = 0;
	float half;

	for (size_t i = 0; i < n; i++)
		if (is_air(&c->cell[i]))
			c->sorted[found++] = c->cell[i].scatter;
	if (found < AIR_CELLS)
		return 1;
	qsort(c->sorted, found, sizeof(*c->sorted), order_floats);
	half = c->sorted[found / 2];
	for (size_t i = 0; i < n; i++)
		if (is_air(&c->cell[i]) && c->cell[i].scatter <= half) {
			expected += 1 + (double)c->cell[i].scatter;
			measured += (double)c->cell[i].intensity;
		}
	return (float)fmin(fmax(expected / measured, 1), 1 + AIR_MOST);
}

/* Compute primary and scattered intensity of all cells from their intensity, step by step. */
static void iterate_cells(const struct scatter *s, struct cells *c, struct source *sources, float *work)
{
	for (size_t i = 0; i < (size_t)c->n_u * (size_t)c->n_v; i++)
		c->cell[i].primary = c->cell[i].intensity;
	for (int k = 0; k < SCATTER_ITERATIONS; k++) {
		measure_tissue(s, c);
		compute_scatter(s, c, sources, work);
		c->air = s->of_air ? air_intensity(c) : 1;
		for (size_t i = 0; i < (size_t)c->n_u * (size_t)c->n_v; i++) {
			struct cell *cell = &c->cell[i];

			if (cell->intensity > 0)
				cell->primary *= c->air * cell->intensity / (cell->primary + cell->scatter);
		}
	}
}

static struct scatter_report report_of(const struct cells *c)
{
	struct scatter_report report = {.air = (double)c->air - 1};
	size_t tissue = 0;

	for (size_t i = 0; i < (size_t)c->n_u * (size_t)c->n_v; i++) {
		const struct cell *cell = &c->cell[i];

		if (depth_of(cell) > 0) {
			double ratio = (double)(c->air * cell->intensity / cell->primary - 1);

			report.mean += ratio;
			report.most = fmax(report.most, ratio);
			tissue++;
		}
	}
	report.mean /= tissue ? (double)tissue : 1;
	return report;
}

static int solve_cells(const struct scatter *s, struct cells *c, struct scatter_report *ret, struct err *err)
{
	size_t n = (size_t)c->n_u * (size_t)c->n_v;
	struct source *sources = malloc(n * (sizeof(*sources) + 4 * sizeof(float)));

	if (!sources)
		return err_set(err, ENOMEM, "scatter: no memory for %zu cells", n);
	iterate_cells(s, c, sources, (float *)(sources + n));
	for (size_t i = 0; i < n; i++)
		if (!is_air(&c->cell[i]))
			c->cell[i].scatter = c->air * c->cell[i].intensity - c->cell[i].primary;
	*ret = report_of(c);
	fill_scatter(c);
	free(sources);
	return 0;
}

/* ---- bins ---- */

/* Return -ln(m) for 0 < m < 2, with an error below 2e-6. */
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

/* Subtract from n bins the scatter first, first + step ... air: factor of their intensity. */
static void subtract_scatter(float air, float first, float step, const float *restrict valid, int n, float *restrict line)
{
	for (int i = 0; i < n; i++) {
		float y = line[i], primary = air - (first + (float)i * step) * exp_of(y < 60 ? y : 60);
		float corrected = y + minus_log(primary > PRIMARY_LEAST ? primary : PRIMARY_LEAST);

		corrected = corrected > 0 ? corrected : 0;
		corrected = y > 0 ? corrected : y; /* two steps, so that the loop vectorises */
		line[i] = valid[i] > 0 ? corrected : y;
	}
}

/* Correct row v of bins with the scatter interpolated between the cells. */
static void correct_row(const struct cells *c, int v, int n_u, const float *valid, float *line)
{
	float at = fminf(fmaxf(((float)v + 0.5f) / (float)c->bins - 0.5f, 0), (float)(c->n_v - 1));
	int j = order_smaller((int)at, c->n_v > 1 ? c->n_v - 2 : 0), k = j + (c->n_v > 1);
	const struct cell *low = c->cell + (size_t)j * (size_t)c->n_u, *high = c->cell + (size_t)k * (size_t)c->n_u;
	float part = at - (float)j;

	for (int i = -1; i < c->n_u;
	     i++) { /* the bins between the centres of cells i and i + 1; outside of them it is constant */
		int a = i < 0 ? 0 : i, b = order_smaller(i + 1, c->n_u - 1);
		int from = i < 0 ? 0 : order_smaller((2 * i + 1) * c->bins / 2, n_u),
		    end = order_smaller((2 * i + 3) * c->bins / 2, n_u);
		float left = low[a].scatter + part * (high[a].scatter - low[a].scatter);
		float step = (low[b].scatter + part * (high[b].scatter - low[b].scatter) - left) / (float)c->bins;

		subtract_scatter(c->air, left + step * ((float)from + 0.5f - ((float)i + 0.5f) * (float)c->bins), step,
				 valid + from, end - from, line + from);
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
	rc = solve_cells(s, &c, &report, err);
#pragma omp parallel for schedule(static)
	for (int v = 0; v < (rc == 0 ? n_v : 0); v++)
		correct_row(&c, v, n_u, valid + (size_t)v * (size_t)n_u, line + (size_t)v * (size_t)n_u);
	if (rc == 0 && ret_report)
		*ret_report = report;
	free(c.cell);
	return rc;
}
