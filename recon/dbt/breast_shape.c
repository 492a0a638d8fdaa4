/* SPDX-License-Identifier: Apache-2.0 */
/* breast_shape.c - thickness by distance from the skin, height of the rim, and the start image. */
#include "recon/dbt/breast_shape.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recon/dbt/breast_shape_internal.h"

#define CENTRAL 8.0	 /* degrees: angle of central views at most */
#define OUTER 3		 /* views at each end of the arc that show the height of the rim */
#define ARC_LEAST 30.0	 /* degrees: of shorter arcs the height is not seen well enough */
#define SKIN 1.5	 /* mm: nearer to the skin, profiles are not fitted: the skin itself, and blur */
#define CLASSES_LEAST 12 /* classes with data of a profile */
#define VALUES_LEAST 6	 /* of a class */
#define WIDTHS 43	 /* 2, 3, ... 44 mm */
#define ROUNDNESSES 5	 /* 1, 1.25, ... 2 */
#define SECTORS_LEAST 9	 /* sectors with a fit: 45 degrees */
#define ERROR_MOST 0.1	 /* deviation of a profile from its fit, relative to L: median of the sectors */
#define MARGIN 2.0	 /* mm at the full thickness, above and below */
#define REFINE 3	 /* corrections for slanted rays */
#define MEDIAN 5	 /* sectors on each side of the median along the skin */
#define SMOOTH 4.0	 /* sectors: standard deviation of the Gaussian along the skin */
#define FULL 0.98f	 /* (T / H)^2 from which the full thickness is reached */
#define SHIFTS 7	 /* heights of the rim: -6, -4, ... 6 mm */
#define SHIFT_STEP 2.0	 /* mm */
#define SHIFT_MOST 5.0	 /* mm */
#define SURFACE 1.0	 /* mm: width of the surface in projections of the shape */
#define STEP_Z 2.0	 /* mm, along a ray */
#define EDGE_LEAST 0.1	 /* line integrals that show the edge of the breast */
#define EDGE_MOST 1.3
#define BLUR 6
#define BLUR_FROM 2.5f /* mm: the neighbours of these points are inside */
#define EDGE_REACH 6   /* cells beside the edge that are compared, too */

const double breast_shape_depths[BREAST_SHAPE_DEPTHS] = {2, 5, 10};

typedef float sector_table[SHAPE_SECTORS][SHAPE_CLASSES];

static double view_angle(const struct scan *scan, int view)
{
	return atan2(scan->views[view].src[1], scan->views[view].src[2]) * 180 / M_PI;
}

/* Sort the views by angle, and choose the central ones. */
static int choose_views(const struct scan *scan, const struct view_cells *cells, const float *mean, struct shape_views *ret,
			struct err *err)
{
	int n = scan->n_views, first = 0, last = n - 1, step;
	struct shape_views v = {.scan = scan, .cells = cells, .mean = mean, .by_angle = malloc(2 * (size_t)n * sizeof(int))};

	if (!v.by_angle)
		return err_set(err, ENOMEM, "breast shape: no memory for %d views", n);
	for (int i = 0; i < n; i++) {
		int k = i;

		for (; k > 0 && view_angle(scan, v.by_angle[k - 1]) > view_angle(scan, i); k--)
			v.by_angle[k] = v.by_angle[k - 1];
		v.by_angle[k] = i;
	}
	v.arc = view_angle(scan, v.by_angle[n - 1]) - view_angle(scan, v.by_angle[0]);
	while (last - first > 2) {
		double a = fabs(view_angle(scan, v.by_angle[first])), b = fabs(view_angle(scan, v.by_angle[last]));

		if (fmax(a, b) <= CENTRAL)
			break;
		first += a >= b;
		last -= a < b;
	}
	v.central = v.by_angle + n;
	step = (last - first) / CENTRAL_MOST + 1;
	for (int i = first + (last - first) % step / 2; i <= last; i += step)
		v.central[v.n_central++] = v.by_angle[i];
	*ret = v;
	return 0;
}

static int compare_floats(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

/* Return a percentile of values, which are sorted. */
static double find_percentile(float *values, size_t n, double share)
{
	qsort(values, n, sizeof(*values), compare_floats);
	return n ? (double)values[(size_t)(share * (double)(n - 1) + 0.5)] : 0;
}

/* Points of the outline by sector and class of distance: bucket k has the points at[first[k]] ... at[first[k + 1]] - 1. */
#define BUCKETS (SHAPE_SECTORS * SHAPE_CLASSES)
struct buckets {
	int *at, first[BUCKETS + 1];
};

static int bucket_of(const struct shape_outline *o, size_t i)
{
	if (!(o->distance[i] >= 0 && o->distance[i] < SHAPE_CLASSES))
		return -1;
	return (int)fminf(o->sector[i], SHAPE_SECTORS - 1) * SHAPE_CLASSES + (int)o->distance[i];
}

static int sort_points(const struct shape_outline *o, struct buckets *b, struct err *err)
{
	size_t n = (size_t)o->n[0] * (size_t)o->n[1];

	*b = (struct buckets){.at = malloc(n * sizeof(*b->at))};
	if (!b->at)
		return err_set(err, ENOMEM, "breast shape: no memory for %zu points", n);
	for (size_t i = 0; i < n; i++)
		if (bucket_of(o, i) >= 0)
			b->first[bucket_of(o, i)]++;
	for (int k = 1; k <= BUCKETS; k++) /* where each bucket ends */
		b->first[k] += b->first[k - 1];
	for (size_t i = n; i-- > 0;) /* and where it begins, when it is filled from its end */
		if (bucket_of(o, i) >= 0)
			b->at[--b->first[bucket_of(o, i)]] = (int)i;
	return 0;
}

struct fit {
	bool ok;
	float line, width, roundness, error;
};

/* (T / H)^2 at a distance from the skin. */
static double square_of(double distance, double width, double roundness)
{
	double t = distance / width;

	return t < 1 ? fmax(0, roundness * t - (roundness - 1) * t * t) : 1;
}

/* f of every width and roundness, for the middles of the classes. */
static void fill_shapes(float shapes[WIDTHS * ROUNDNESSES][SHAPE_CLASSES])
{
	for (int k = 0; k < WIDTHS * ROUNDNESSES; k++)
		for (int c = 0; c < SHAPE_CLASSES; c++)
			shapes[k][c] =
				(float)sqrt(square_of(c + 0.5, 2 + k / ROUNDNESSES, 1 + k % ROUNDNESSES / (ROUNDNESSES - 1.0)));
}

/* Fit L f to n values by least absolute deviations (three steps of weighted least squares). Return the sum of deviations. */
static float fit_line(const float *f, const float *y, int n, float *ret_line)
{
	float fy = 0, ff = 0, line, sum = 0;

	for (int i = 0; i < n; i++) {
		fy += f[i] * y[i];
		ff += f[i] * f[i];
	}
	line = fy / ff;
	for (int step = 0; step < 3; step++) {
		fy = ff = 0;
		for (int i = 0; i < n; i++) {
			float w = 1 / fmaxf(fabsf(y[i] - line * f[i]), 0.02f);

			fy += w * f[i] * y[i];
			ff += w * f[i] * f[i];
		}
		line = fy / ff;
	}
	for (int i = 0; i < n; i++)
		sum += fabsf(y[i] - line * f[i]);
	*ret_line = line;
	return sum;
}

/* Fit the profile of a sector and its two neighbours. work: memory for the values of a class. */
static struct fit fit_sector(const struct shape_outline *o, const struct buckets *b, int sector,
			     float shapes[WIDTHS * ROUNDNESSES][SHAPE_CLASSES], float *work)
{
	float y[SHAPE_CLASSES], f[SHAPE_CLASSES], line;
	int n = 0, of[SHAPE_CLASSES];
	struct fit best = {.error = INFINITY};

	for (int c = (int)SKIN; c < SHAPE_CLASSES; c++) {
		size_t m = 0;

		for (int k = -1; k <= 1; k++) {
			int bucket = (sector + k + SHAPE_SECTORS) % SHAPE_SECTORS * SHAPE_CLASSES + c;

			for (int i = b->first[bucket]; i < b->first[bucket + 1]; i++)
				work[m++] = o->line[b->at[i]];
		}
		if (c + 0.5 < SKIN || m < VALUES_LEAST)
			continue;
		y[n] = (float)find_percentile(work, m, 0.5);
		of[n++] = c;
	}
	if (n < CLASSES_LEAST)
		return best;
	for (int k = 0; k < WIDTHS * ROUNDNESSES; k++) {
		float error;

		for (int i = 0; i < n; i++)
			f[i] = shapes[k][of[i]];
		error = fit_line(f, y, n, &line);
		if (error < best.error)
			best = (struct fit){true, line, (float)(2 + k / ROUNDNESSES),
					    1 + (float)(k % ROUNDNESSES) / (ROUNDNESSES - 1.0f), error};
	}
	best.error /= (float)n * best.line;
	best.ok = best.line > 0;
	return best;
}

static int fit_sectors(const struct shape_outline *o, const struct buckets *b, struct fit fits[SHAPE_SECTORS], struct err *err)
{
	size_t n = (size_t)b->first[BUCKETS] + 1;
	float shapes[WIDTHS * ROUNDNESSES][SHAPE_CLASSES];
	int failed = 0;

	fill_shapes(shapes);
#pragma omp parallel reduction(+ : failed)
	{
		float *work = malloc(n * sizeof(*work));

		failed += !work;
#pragma omp for schedule(dynamic)
		for (int s = 0; s < SHAPE_SECTORS; s++)
			if (work)
				fits[s] = fit_sector(o, b, s, shapes, work);
		free(work);
	}
	return failed ? err_set(err, ENOMEM, "breast shape: no memory for %zu points", n) : 0;
}

/* Return the weights of a Gaussian, 0 to 4 sigma; sigma > 0. */
static int fill_gaussian(double sigma, double ret[64])
{
	int n = (int)fmin(ceil(4 * sigma), 63);

	for (int i = 0; i <= n; i++)
		ret[i] = exp(-0.5 * i * i / (sigma * sigma));
	return n;
}

/* Replace sectors without a fit by interpolation along the skin between the nearest ones that have one. */
static void fill_gaps(const struct fit fits[SHAPE_SECTORS], sector_table t)
{
	for (int s = 0; s < SHAPE_SECTORS; s++) {
		int before = 1, after = 1, a, b;

		if (fits[s].ok)
			continue;
		while (!fits[(s - before + SHAPE_SECTORS) % SHAPE_SECTORS].ok)
			before++;
		while (!fits[(s + after) % SHAPE_SECTORS].ok)
			after++;
		a = (s - before + SHAPE_SECTORS) % SHAPE_SECTORS;
		b = (s + after) % SHAPE_SECTORS;
		for (int c = 0; c < SHAPE_CLASSES; c++)
			t[s][c] = t[a][c] + (t[b][c] - t[a][c]) * (float)before / (float)(before + after);
	}
}

/* Smooth along the skin: a median, then a Gaussian. */
static void smooth_along(sector_table t)
{
	double weights[64];
	int n = fill_gaussian(SMOOTH, weights);
	sector_table median;

	for (int s = 0; s < SHAPE_SECTORS; s++)
		for (int c = 0; c < SHAPE_CLASSES; c++) {
			float near[2 * MEDIAN + 1];

			for (int k = -MEDIAN; k <= MEDIAN; k++)
				near[k + MEDIAN] = t[(s + k + SHAPE_SECTORS) % SHAPE_SECTORS][c];
			median[s][c] = (float)find_percentile(near, 2 * MEDIAN + 1, 0.5);
		}
	for (int s = 0; s < SHAPE_SECTORS; s++)
		for (int c = 0; c < SHAPE_CLASSES; c++) {
			double sum = 0, of = 0;

			for (int k = -n; k <= n; k++) {
				sum += weights[abs(k)] * (double)median[(s + k + SHAPE_SECTORS) % SHAPE_SECTORS][c];
				of += weights[abs(k)];
			}
			t[s][c] = (float)(sum / of);
		}
}

/* Interpolate a table of the middles of sectors and classes. Nearer to the skin than half a class, `square` goes on linearly. */
static float look_up(const sector_table t, float sector, float distance)
{
	float s = sector - 0.5f, c = fminf(distance - 0.5f, SHAPE_CLASSES - 1), a, b, p, q;
	int i = (int)floorf(s), k = (int)fmaxf(0, fminf(floorf(c), SHAPE_CLASSES - 2)), next;

	a = s - (float)i;
	b = c < 0 ? 0 : c - (float)k;
	i = (i + SHAPE_SECTORS) % SHAPE_SECTORS;
	next = (i + 1) % SHAPE_SECTORS;
	p = t[i][k] + a * (t[next][k] - t[i][k]);
	q = t[i][k + 1] + a * (t[next][k + 1] - t[i][k + 1]);
	return c < 0 ? p * distance / 0.5f : p + b * (q - p);
}

/* The shape on the plane while it is found. */
struct finding {
	const struct shape_views *views;
	const struct shape_outline *o;
	const struct buckets *b;
	double bottom, thickness;
	sector_table fitted, f; /* T / H as fitted to the profiles, and corrected */
	float *square, *line;	/* of each point: (T / H)^2, and T */
};

/* Compute thickness and its square for all points. Beside the skin the square is that inside, mirrored. */
static void spread_table(struct finding *w)
{
	const struct shape_outline *o = w->o;

#pragma omp parallel for schedule(static)
	for (int j = 0; j < o->n[1]; j++)
		for (int i = 0; i < o->n[0]; i++) {
			size_t at = (size_t)j * (size_t)o->n[0] + (size_t)i;
			bool rim = o->distance[at] < SHAPE_CLASSES;
			float f = rim ? look_up(w->f, o->sector[at], o->distance[at]) : 1;

			w->square[at] = o->kind[at] != POINT_INSIDE ? -1 : rim ? f * f : 1;
			w->line[at] = o->kind[at] != POINT_INSIDE ? 0 : (float)w->thickness * (rim ? f : 1);
		}
}

/* Blur the square by (1 2 1) / 4 along x and y, BLUR times, from some mm inside the skin on: distances are those to whole points, and
 * slices near the plates would have a scalloped outline. work: as large as the square. */
static void blur_square(const struct shape_outline *o, float *square, float *work)
{
	size_t n = (size_t)o->n[0];

	for (int k = 0; k < BLUR; k++) {
		memcpy(work, square, n * (size_t)o->n[1] * sizeof(*work));
#pragma omp parallel for schedule(static)
		for (int j = 1; j < o->n[1] - 1; j++)
			for (size_t i = 0; i < n - 1; i++) {
				size_t at = (size_t)j * n + i, left = i > 0 ? at - 1 : at;
				float sum[3];

				if (!(o->distance[at] > BLUR_FROM && o->distance[at] < SHAPE_CLASSES))
					continue;
				for (int v = 0; v < 3; v++)
					sum[v] = work[left + v * n - n] + 2 * work[at + v * n - n] + work[at + 1 + v * n - n];
				square[at] = (sum[0] + 2 * sum[1] + sum[2]) / 16;
			}
	}
}

/* Give points beside the skin the negative mean of their neighbours inside, so that the square is 0 at the skin line. */
static void mirror_skin(const struct shape_outline *o, float *square)
{
	for (int j = 0; j < o->n[1]; j++)
		for (int i = 0; i < o->n[0]; i++) {
			size_t at = (size_t)j * (size_t)o->n[0] + (size_t)i;
			float sum = 0;
			int n = 0;

			if (o->kind[at] == POINT_INSIDE)
				continue;
			for (int v = j > 0 ? j - 1 : 0; v <= j + 1 && v < o->n[1]; v++)
				for (int u = i > 0 ? i - 1 : 0; u <= i + 1 && u < o->n[0]; u++) {
					size_t near = (size_t)v * (size_t)o->n[0] + (size_t)u;

					if (o->kind[near] == POINT_INSIDE) {
						sum += square[near];
						n++;
					}
				}
			square[at] = n ? -sum / (float)n : -1;
		}
}

/* Add up the lengths along z of a ray in the shape, for n heights of the rim's middle above that of the plates. The ray passes the
 * point (x, y) at height z. */
static void project_shape(const struct finding *w, const double src[3], const double point[3], const float *height, int n,
			  float *ret)
{
	const struct shape_outline *o = w->o;
	int steps = (int)fmax(1, ceil(w->thickness / STEP_Z));
	float dz = (float)(w->thickness / steps), full = 0.4975f * (float)w->thickness, per_mm = 1 / fmaxf(SURFACE, dz);
	double at[2], step[2];

	for (int c = 0; c < 2; c++) { /* from point to point along the ray, in steps of the plane */
		double slope = (point[c] - src[c]) / (src[2] - point[2]) / o->step;

		at[c] = (src[c] - o->lo[c]) / o->step + slope * (src[2] - w->bottom - 0.5 * (double)dz);
		step[c] = -slope * (double)dz;
	}
	for (int k = 0; k < n; k++)
		ret[k] = 0;
	for (int s = 0; s < steps; s++, at[0] += step[0], at[1] += step[1]) {
		float half = 0.5f * shape_interpolate(o, w->line, (float)at[0], (float)at[1]),
		      z = (float)(s - steps / 2.0 + 0.5) * dz;

		if (half <= 0)
			continue;
		for (int k = 0; k < n; k++) {
			float inside = (half - fabsf(z - height[k])) * per_mm + 0.5f;

			inside = half >= full || inside > 1 ? 1 : inside;
			ret[k] += inside > 0 ? dz * inside : 0;
		}
	}
}

/* Return whether the i-th sorted point may be corrected, or is near such points. */
static bool is_thin(const struct finding *w, int i)
{
	return look_up(w->fitted, w->o->sector[w->b->at[i]], w->o->distance[w->b->at[i]]) < 0.97f;
}

/* Correct T / H so that the projection of the shape has the fitted profile: slanted rays widen the rim. */
static int correct_slant(struct finding *w, struct err *err)
{
	const struct shape_outline *o = w->o;
	const struct buckets *b = w->b;
	int n = b->first[BUCKETS];
	float *seen = malloc(((size_t)n + 1) * sizeof(*seen));
	double along[64], across[64];
	int n_along = fill_gaussian(2, along), n_across = fill_gaussian(1.5, across);
	static const float middle[1] = {0};
	sector_table target, model;

	if (!seen)
		return err_set(err, ENOMEM, "breast shape: no memory for %d points", n);
#pragma omp parallel for schedule(static)
	for (int i = 0; i < n; i++) {
		int at = b->at[i];
		const double point[3] = {o->lo[0] + at % o->n[0] * o->step, o->lo[1] + at / o->n[0] * o->step, o->z};
		float sum = 0;

		seen[i] = NAN;
		if (!is_thin(w, i) || (at % o->n[0] + at / o->n[0]) % 2)
			continue;
		for (int k = 0; k < w->views->n_central; k += 2) {
			float length;

			project_shape(w, w->views->scan->views[w->views->central[k]].src, point, middle, 1, &length);
			sum += length;
		}
		seen[i] = sum / (float)((w->views->n_central + 1) / 2);
	}
	for (int k = 0; k < BUCKETS; k++) {
		float wanted = 0, found = 0;

		for (int i = b->first[k]; i < b->first[k + 1]; i++) {
			if (isnan(seen[i]))
				continue;
			wanted += (float)w->thickness * look_up(w->fitted, o->sector[b->at[i]], o->distance[b->at[i]]);
			found += seen[i];
		}
		target[k / SHAPE_CLASSES][k % SHAPE_CLASSES] = wanted;
		model[k / SHAPE_CLASSES][k % SHAPE_CLASSES] = found;
	}
	free(seen);
	for (int s = 0; s < SHAPE_SECTORS; s++)
		for (int c = 0; c < SHAPE_CLASSES; c++) {
			double wanted = 0, found = 0, fix;

			for (int k = -n_along; k <= n_along; k++)
				for (int m = c > n_across ? c - n_across : 0; m <= c + n_across && m < SHAPE_CLASSES; m++) {
					double weight = along[abs(k)] * across[abs(m - c)];
					int from = (s + k + SHAPE_SECTORS) % SHAPE_SECTORS;

					wanted += weight * (double)target[from][m];
					found += weight * (double)model[from][m];
				}
			fix = found > 0 ? fmin(fmax(wanted / found, 0.6), 1.3) : 1;
			if (w->f[s][c] <= 0.9f)
				w->f[s][c] = fminf(1, w->f[s][c] * (float)fix);
		}
	return 0;
}

/* Mark the cells of a view at the edge of the breast: 1, to be compared. */
static void mark_edge(const struct view_cells *c, const float *mean, double air, unsigned char *edge)
{
	for (int j = 0; j < c->n_v; j++)
		for (int i = 0; i < c->n_u; i++) {
			int at = j * c->n_u + i;
			bool near = false;

			edge[at] = 0;
			if ((i + j) % 2 || mean[at] < 0 || (double)mean[at] - air > EDGE_MOST)
				continue;
			for (int v = -1; v <= 1 && !near; v++)
				for (int u = -1; u <= 1 && !near; u++) {
					int x = i + u * EDGE_REACH, y = j + v * EDGE_REACH;

					near = x >= 0 && x < c->n_u && y >= 0 && y < c->n_v &&
					       (double)mean[y * c->n_u + x] - air > EDGE_LEAST;
				}
			edge[at] = near;
		}
}

static void cell_point(const struct shape_views *v, int view, int i, int j, double ret[3])
{
	const struct view_cells *c = v->cells;

	scan_bin_at(v->scan, &v->scan->views[view], (i + 0.5) * c->bins_u - 0.5, (j + 0.5) * c->bins_v - 0.5, ret);
}

/* Return the ratio of a ray's length in the shape to its length along z. */
static double ray_obliquity(const double src[3], const double point[3])
{
	double z = src[2] - point[2];

	return hypot(hypot(src[0] - point[0], src[1] - point[1]), z) / z;
}

/* Add up the deviations of a view from the shadow of the shape, for each height. */
static void compare_shadow(const struct finding *w, int view, const float height[SHIFTS], unsigned char *edge, float *work,
			   double ret[SHIFTS])
{
	const struct view_cells *c = w->views->cells;
	const float *mean = shape_view(w->views, view);
	const double *src = w->views->scan->views[view].src, air = w->o->air;
	static const float middle[1] = {0};
	double mu, point[3];
	float length[SHIFTS];
	size_t n = 0;

	for (int at = 0; at < c->n_u * c->n_v; at += 16)
		if ((double)mean[at] - air > 1.5) {
			cell_point(w->views, view, at % c->n_u, at / c->n_u, point);
			project_shape(w, src, point, middle, 1, length);
			if (length[0] > 10)
				work[n++] = (float)(((double)mean[at] - air) / (double)length[0] / ray_obliquity(src, point));
		}
	mu = n ? find_percentile(work, n, 0.5) : 0;
	mark_edge(c, mean, air, edge);
	for (int at = 0; at < c->n_u * c->n_v; at++) {
		if (!edge[at])
			continue;
		cell_point(w->views, view, at % c->n_u, at / c->n_u, point);
		project_shape(w, src, point, height, SHIFTS, length);
		for (int k = 0; k < SHIFTS; k++)
			ret[k] += fabs((double)mean[at] - air - mu * ray_obliquity(src, point) * (double)length[k]);
	}
}

/* Find the height of the rim's middle. */
static int find_height(const struct finding *w, struct breast_shape_report *report, struct err *err)
{
	const struct shape_views *v = w->views;
	size_t cells = (size_t)v->cells->n_u * (size_t)v->cells->n_v;
	double errors[2 * OUTER][SHIFTS] = {{0}}, e[SHIFTS] = {0}, curve;
	float height[SHIFTS];
	int n = v->scan->n_views, best = 1, failed = 0;

	report->height_seen = v->arc >= ARC_LEAST && n >= 2 * OUTER;
	if (!report->height_seen)
		return 0;
	for (int k = 0; k < SHIFTS; k++)
		height[k] = (float)(k - SHIFTS / 2) * SHIFT_STEP;
#pragma omp parallel for schedule(dynamic) reduction(+ : failed)
	for (int i = 0; i < 2 * OUTER; i++) {
		float *work = malloc(cells * (sizeof(*work) + 1));

		failed += !work;
		if (work)
			compare_shadow(w, v->by_angle[i < OUTER ? i : n - 1 - (i - OUTER)], height,
				       (unsigned char *)(work + cells), work, errors[i]);
		free(work);
	}
	if (failed)
		return err_set(err, ENOMEM, "breast shape: no memory for %zu cells", cells);
	for (int i = 0; i < 2 * OUTER; i++)
		for (int k = 0; k < SHIFTS; k++)
			e[k] += errors[i][k];
	for (int k = 1; k < SHIFTS - 1; k++)
		best = e[k] < e[best] ? k : best;
	curve = e[best - 1] - 2 * e[best] + e[best + 1];
	report->height = (double)height[best] + (curve > 0 ? 0.5 * (double)SHIFT_STEP * (e[best - 1] - e[best + 1]) / curve : 0);
	report->height = fmin(fmax(report->height, -SHIFT_MOST), SHIFT_MOST);
	return 0;
}

/* Write medians of the fits into the report. Return whether they are good enough. */
static bool judge_fits(const struct fit fits[SHAPE_SECTORS], struct breast_shape_report *r)
{
	float values[4][SHAPE_SECTORS];
	size_t n = 0;

	for (int s = 0; s < SHAPE_SECTORS; s++) {
		if (!fits[s].ok)
			continue;
		values[0][n] = fits[s].line;
		values[1][n] = fits[s].width;
		values[2][n] = fits[s].roundness;
		values[3][n++] = fits[s].error;
	}
	r->sectors = (int)n;
	if (n < SECTORS_LEAST) {
		snprintf(r->reason, sizeof(r->reason),
			 "the profile of the rim was found in %zu of %d sectors of the skin, less than %d", n, SHAPE_SECTORS,
			 SECTORS_LEAST);
		return false;
	}
	r->line = find_percentile(values[0], n, 0.5);
	r->width = find_percentile(values[1], n, 0.5);
	r->width_least = find_percentile(values[1], n, 0.1);
	r->width_most = find_percentile(values[1], n, 0.9);
	r->roundness = find_percentile(values[2], n, 0.5);
	r->error = find_percentile(values[3], n, 0.5);
	if (r->error > ERROR_MOST)
		snprintf(r->reason, sizeof(r->reason),
			 "the profiles deviate from their fit by %.0f %%, more than %.0f %%: this is not the rim of a breast",
			 100 * r->error, 100 * ERROR_MOST);
	return r->error <= ERROR_MOST;
}

/* Describe the corrected thickness: the median over the sectors with a fit, at some depths. */
static void report_thickness(const struct finding *w, const struct fit fits[SHAPE_SECTORS], struct breast_shape_report *r)
{
	for (int d = 0; d < BREAST_SHAPE_DEPTHS; d++) {
		float values[SHAPE_SECTORS];
		size_t n = 0;

		for (int s = 0; s < SHAPE_SECTORS; s++)
			if (fits[s].ok)
				values[n++] = look_up(w->f, (float)s + 0.5f, (float)breast_shape_depths[d]);
		r->part[d] = find_percentile(values, n, 0.5);
	}
}

/* Find thickness and height from an outline. Return 1 if there is no shape; ret->report says why. */
static int find_thickness(struct finding *w, struct breast_shape *ret, struct err *err)
{
	struct fit fits[SHAPE_SECTORS];
	int rc = fit_sectors(w->o, w->b, fits, err);

	if (rc < 0)
		return rc;
	if (!judge_fits(fits, &ret->report))
		return 1;
	for (int s = 0; s < SHAPE_SECTORS; s++)
		for (int c = 0; c < SHAPE_CLASSES && fits[s].ok; c++)
			w->fitted[s][c] = (float)sqrt(square_of(c + 0.5, (double)fits[s].width, (double)fits[s].roundness));
	fill_gaps(fits, w->fitted);
	smooth_along(w->fitted);
	memcpy(w->f, w->fitted, sizeof(w->f));
	for (int k = 0; rc == 0 && k < REFINE; k++) {
		spread_table(w);
		rc = correct_slant(w, err);
	}
	spread_table(w);
	report_thickness(w, fits, &ret->report);
	return rc < 0 ? rc : find_height(w, &ret->report, err);
}

/* Find the shape inside an outline. */
static int find_inside(const struct shape_views *v, const struct shape_outline *o, const struct grid *grid,
		       struct breast_shape *ret, struct err *err)
{
	size_t n = (size_t)o->n[0] * (size_t)o->n[1];
	struct finding w = {.views = v, .o = o, .bottom = grid->lo[2], .thickness = grid->n[2] * grid->h[2]};
	struct buckets b;
	int rc = sort_points(o, &b, err);

	if (rc < 0)
		return rc;
	w.b = &b;
	w.square = malloc(2 * n * sizeof(*w.square));
	w.line = w.square + n;
	rc = w.square ? find_thickness(&w, ret, err) : err_set(err, ENOMEM, "breast shape: no memory for %zu points", n);
	if (rc == 0) {
		blur_square(o, w.square, w.line);
		mirror_skin(o, w.square);
		ret->n[0] = o->n[0];
		ret->n[1] = o->n[1];
		memcpy(ret->lo, o->lo, sizeof(ret->lo));
		ret->step = o->step;
		ret->thickness = w.thickness;
		ret->middle = w.bottom + w.thickness / 2 + ret->report.height;
		ret->square = w.square;
		ret->report.used = true;
	} else {
		free(w.square);
	}
	free(b.at);
	return rc;
}

int breast_shape_find(const struct scan *scan, const struct view_cells *cells, const float *mean, const struct grid *grid,
		      struct breast_shape *ret, struct err *err)
{
	struct breast_shape shape = {.report.asked = true};
	struct shape_outline o = {.n = {0}};
	struct shape_views v;
	int rc;

	if (scan->kind != SCAN_DBT)
		return err_set(err, EINVAL, "breast shape: scan of kind %d, not tomosynthesis", (int)scan->kind);
	rc = choose_views(scan, cells, mean, &v, err);
	if (rc < 0)
		return rc;
	rc = shape_outline_make(&v, grid, grid->lo[2] + grid->n[2] * grid->h[2] / 2, &o, shape.report.reason,
				sizeof(shape.report.reason), err);
	if (rc == 0 && !shape.report.reason[0])
		rc = find_inside(&v, &o, grid, &shape, err);
	shape_outline_release(&o);
	free(v.by_angle);
	if (rc < 0)
		return rc;
	*ret = shape;
	return 0;
}

void breast_shape_release(struct breast_shape *s)
{
	free(s->square);
	*s = (struct breast_shape){.report = s->report};
}

/* Half of the thickness, with a margin that grows with the thickness: an outline near the plates that is too narrow loses skin, and one
 * at mid-height too wide darkens the nipple. Between FULL and 1, the column grows to the value that reaches both plates. */
static float column_of(const struct breast_shape *s, double square)
{
	double part = fmax(square, 0), full = fmin(fmax((square - (double)FULL) / (1 - (double)FULL), 0), 1);
	double half = s->thickness * sqrt(part) / 2 + MARGIN * part + fabs(s->report.height) * full;

	return (float)(half / BREAST_SHAPE_SOFT + 0.5 + 0.5 * full);
}

void breast_shape_columns(const struct breast_shape *s, const struct grid *grid, float *ret_columns)
{
	const struct shape_outline plane = {.n = {s->n[0], s->n[1]}, .lo = {s->lo[0], s->lo[1]}, .step = s->step};

#pragma omp parallel for schedule(static)
	for (int j = 0; j < grid->n[1]; j++)
		for (int i = 0; i < grid->n[0]; i++)
			ret_columns[(size_t)j * (size_t)grid->n[0] + (size_t)i] =
				column_of(s, (double)shape_at(&plane, s->square, grid->lo[0] + (i + 0.5) * grid->h[0],
							      grid->lo[1] + (j + 0.5) * grid->h[1]));
}

float breast_shape_away(const struct breast_shape *s, const struct grid *grid, int slice)
{
	return (float)(fabs(grid->lo[2] + (slice + 0.5) * grid->h[2] - s->middle) / BREAST_SHAPE_SOFT);
}

void breast_shape_text(const struct breast_shape_report *r, char *ret_text, size_t size)
{
	ret_text[0] = '\0';
	if (r->asked && !r->used)
		snprintf(ret_text, size, "Uniform start image: %s.", r->reason);
	else if (r->asked)
		snprintf(ret_text, size,
			 "Start image of the breast's shape: rim %.0f mm (%.0f to %.0f), its middle %s%.1f mm, fit %.1f %%.",
			 r->width, r->width_least, r->width_most, r->height_seen ? "at " : "not seen, at ", r->height,
			 100 * r->error);
}
