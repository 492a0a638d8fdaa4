/* SPDX-License-Identifier: Apache-2.0 */
/* breast_thickness.c - the thickness of the breast by the distance from its skin, from the profiles of the line integral. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recon/dbt/breast_shape_internal.h"

#define SKIN 1.5	  /* mm: nearer to the skin, profiles are not fitted: the skin itself, and blur */
#define CLASSES_LEAST 12  /* classes with data of a profile */
#define VALUES_LEAST 6	  /* of a class */
#define WIDTHS 43	  /* 2, 3, ... 44 mm */
#define ROUNDNESSES 5	  /* 1, 1.25, ... 2 */
#define LEVEL_LEAST 0.125 /* quantiles of L over the sectors: the mean between them limits L */
#define LEVEL_MOST 0.375
#define SECTORS_LEAST 9 /* sectors with a fit: 45 degrees */
#define ERROR_MOST 0.1	/* deviation of a profile from its fit, relative to L: median of the sectors */
#define REFINE 3	/* corrections for slanted rays */
#define MEDIAN 5	/* sectors on each side of the median along the skin */
#define SMOOTH 4.0	/* sectors: standard deviation of the Gaussian along the skin */

/* Points of the outline by sector and class of distance: bucket k has the points at[first[k]] ... at[first[k + 1]] - 1. */
#define SHAPE_BUCKETS (SHAPE_SECTORS * SHAPE_CLASSES)
struct shape_buckets {
	int *at, first[SHAPE_BUCKETS + 1];
};

static int compare_floats(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

double shape_percentile(float *values, size_t n, double share)
{
	qsort(values, n, sizeof(*values), compare_floats);
	return n ? (double)values[(size_t)(share * (double)(n - 1) + 0.5)] : 0;
}

static int bucket_of(const struct shape_outline *o, size_t i)
{
	if (!(o->distance[i] >= 0 && o->distance[i] < SHAPE_CLASSES))
		return -1;
	return (int)fminf(o->sector[i], SHAPE_SECTORS - 1) * SHAPE_CLASSES + (int)o->distance[i];
}

static int sort_points(const struct shape_outline *o, struct shape_buckets *b, struct err *err)
{
	size_t n = (size_t)o->n[0] * (size_t)o->n[1];

	*b = (struct shape_buckets){.at = malloc(n * sizeof(*b->at))};
	if (!b->at)
		return err_set(err, ENOMEM, "breast shape: no memory for %zu points", n);
	for (size_t i = 0; i < n; i++)
		if (bucket_of(o, i) >= 0)
			b->first[bucket_of(o, i)]++;
	for (int k = 1; k <= SHAPE_BUCKETS; k++) /* where each bucket ends */
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

static float add_deviations(const float *f, const float *y, int n, float line)
{
	float sum = 0;

	for (int i = 0; i < n; i++)
		sum += fabsf(y[i] - line * f[i]);
	return sum;
}

/* Fit L f to n values by least absolute deviations (three steps of weighted least squares). Return the sum of deviations. */
static float fit_line(const float *f, const float *y, int n, float *ret_line)
{
	float fy = 0, ff = 0, line;

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
	*ret_line = line;
	return add_deviations(f, y, n, line);
}

/* Medians of the line integral by distance from the skin, of a sector and its two neighbours. */
struct profile {
	int n, of[SHAPE_CLASSES]; /* classes with a median */
	float y[SHAPE_CLASSES];
};

/* work: memory for the values of a class. */
static struct profile measure_profile(const struct shape_outline *o, const struct shape_buckets *b, int sector, float *work)
{
	struct profile p = {.n = 0};

	for (int c = (int)SKIN; c < SHAPE_CLASSES; c++) {
		size_t m = 0;

		for (int k = -1; k <= 1; k++) {
			int bucket = (sector + k + SHAPE_SECTORS) % SHAPE_SECTORS * SHAPE_CLASSES + c;

			for (int i = b->first[bucket]; i < b->first[bucket + 1]; i++)
				work[m++] = o->line[b->at[i]];
		}
		if (c + 0.5 < SKIN || m < VALUES_LEAST)
			continue;
		p.y[p.n] = (float)shape_percentile(work, m, 0.5);
		p.of[p.n++] = c;
	}
	return p;
}

/* Fit a profile. most: the largest L; larger line integrals count as this. INFINITY: L is free. */
static struct fit fit_profile(const struct profile *p, float shapes[WIDTHS * ROUNDNESSES][SHAPE_CLASSES], float most)
{
	float y[SHAPE_CLASSES], f[SHAPE_CLASSES], line;
	struct fit best = {.error = INFINITY};

	if (p->n < CLASSES_LEAST)
		return best;
	for (int i = 0; i < p->n; i++)
		y[i] = fminf(p->y[i], most);
	for (int k = 0; k < WIDTHS * ROUNDNESSES; k++) {
		float error;

		for (int i = 0; i < p->n; i++)
			f[i] = shapes[k][p->of[i]];
		error = fit_line(f, y, p->n, &line);
		if (line > most) {
			line = most;
			error = add_deviations(f, y, p->n, line);
		}
		if (error < best.error)
			best = (struct fit){true, line, (float)(2 + k / ROUNDNESSES),
					    1 + (float)(k % ROUNDNESSES) / (ROUNDNESSES - 1.0f), error};
	}
	best.error /= (float)p->n * best.line;
	best.ok = best.line > 0;
	return best;
}

/* Return the largest L of a sector: that of a fourth of the sectors. Breasts have dense tissue behind much of their skin, most behind the
 * nipple, where a profile rises as slowly as if the rim were wider. A mean around the quantile changes less than a single sector. */
static float find_level(const struct fit fits[SHAPE_SECTORS])
{
	float lines[SHAPE_SECTORS];
	double sum = 0;
	size_t n = 0, first, end;

	for (int s = 0; s < SHAPE_SECTORS; s++)
		if (fits[s].ok)
			lines[n++] = fits[s].line;
	if (n == 0)
		return INFINITY;
	shape_percentile(lines, n, 0.5); /* sorts them */
	first = (size_t)((double)n * LEVEL_LEAST);
	for (end = first; end < n && (double)end <= (double)n * LEVEL_MOST; end++)
		sum += (double)lines[end];
	return (float)(sum / (double)(end - first));
}

static int fit_sectors(const struct shape_outline *o, const struct shape_buckets *b, struct fit fits[SHAPE_SECTORS],
		       struct err *err)
{
	size_t n = (size_t)b->first[SHAPE_BUCKETS] + 1;
	float shapes[WIDTHS * ROUNDNESSES][SHAPE_CLASSES], level;
	struct profile profiles[SHAPE_SECTORS];
	int failed = 0;

	fill_shapes(shapes);
#pragma omp parallel reduction(+ : failed)
	{
		float *work = malloc(n * sizeof(*work));

		failed += !work;
#pragma omp for schedule(dynamic)
		for (int s = 0; s < SHAPE_SECTORS; s++)
			if (work) {
				profiles[s] = measure_profile(o, b, s, work);
				fits[s] = fit_profile(&profiles[s], shapes, INFINITY);
			}
		free(work);
	}
	if (failed)
		return err_set(err, ENOMEM, "breast shape: no memory for %zu points", n);
	level = find_level(fits);
#pragma omp parallel for schedule(dynamic)
	for (int s = 0; s < SHAPE_SECTORS; s++)
		if (fits[s].ok && fits[s].line > level)
			fits[s] = fit_profile(&profiles[s], shapes, level);
	return 0;
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
static void fill_gaps(const struct fit fits[SHAPE_SECTORS], shape_table t)
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
static void smooth_along(shape_table t)
{
	double weights[64];
	int n = fill_gaussian(SMOOTH, weights);
	shape_table median;

	for (int s = 0; s < SHAPE_SECTORS; s++)
		for (int c = 0; c < SHAPE_CLASSES; c++) {
			float near[2 * MEDIAN + 1];

			for (int k = -MEDIAN; k <= MEDIAN; k++)
				near[k + MEDIAN] = t[(s + k + SHAPE_SECTORS) % SHAPE_SECTORS][c];
			median[s][c] = (float)shape_percentile(near, 2 * MEDIAN + 1, 0.5);
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
static float look_up(const shape_table t, float sector, float distance)
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

/* Compute thickness and its square for all points. Beside the skin the square is that inside, mirrored. */
static void spread_table(struct shape_finding *w)
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

/* Return whether the i-th sorted point may be corrected, or is near such points. */
static bool is_thin(const struct shape_finding *w, const struct shape_buckets *b, int i)
{
	return look_up(w->fitted, w->o->sector[b->at[i]], w->o->distance[b->at[i]]) < 0.97f;
}

/* Correct T / H so that the projection of the shape has the fitted profile: slanted rays widen the rim. */
static int correct_slant(struct shape_finding *w, const struct shape_buckets *b, struct err *err)
{
	const struct shape_outline *o = w->o;
	int n = b->first[SHAPE_BUCKETS];
	float *seen = malloc(((size_t)n + 1) * sizeof(*seen));
	double along[64], across[64];
	int n_along = fill_gaussian(2, along), n_across = fill_gaussian(1.5, across);
	static const float middle[1] = {0};
	shape_table target, model;

	if (!seen)
		return err_set(err, ENOMEM, "breast shape: no memory for %d points", n);
#pragma omp parallel for schedule(static)
	for (int i = 0; i < n; i++) {
		int at = b->at[i];
		const double point[3] = {o->lo[0] + at % o->n[0] * o->step, o->lo[1] + at / o->n[0] * o->step, o->z};
		float sum = 0;

		seen[i] = NAN;
		if (!is_thin(w, b, i) || (at % o->n[0] + at / o->n[0]) % 2)
			continue;
		for (int k = 0; k < w->views->n_central; k += 2) {
			float length;

			shape_project(w, w->views->scan->views[w->views->central[k]].src, point, middle, 1, &length);
			sum += length;
		}
		seen[i] = sum / (float)((w->views->n_central + 1) / 2);
	}
	for (int k = 0; k < SHAPE_BUCKETS; k++) {
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
	r->line = shape_percentile(values[0], n, 0.5);
	r->width = shape_percentile(values[1], n, 0.5);
	r->width_least = shape_percentile(values[1], n, 0.1);
	r->width_most = shape_percentile(values[1], n, 0.9);
	r->roundness = shape_percentile(values[2], n, 0.5);
	r->error = shape_percentile(values[3], n, 0.5);
	if (r->error > ERROR_MOST)
		snprintf(r->reason, sizeof(r->reason),
			 "the profiles deviate from their fit by %.0f %%, more than %.0f %%: this is not the rim of a breast",
			 100 * r->error, 100 * ERROR_MOST);
	return r->error <= ERROR_MOST;
}

/* Describe the corrected thickness: the median over the sectors with a fit, at some depths. */
static void report_thickness(const struct shape_finding *w, const struct fit fits[SHAPE_SECTORS], struct breast_shape_report *r)
{
	for (int d = 0; d < BREAST_SHAPE_DEPTHS; d++) {
		float values[SHAPE_SECTORS];
		size_t n = 0;

		for (int s = 0; s < SHAPE_SECTORS; s++)
			if (fits[s].ok)
				values[n++] = look_up(w->f, (float)s + 0.5f, (float)breast_shape_depths[d]);
		r->part[d] = shape_percentile(values, n, 0.5);
	}
}

/* Make the thickness of all points from the fits. */
static int spread_fits(struct shape_finding *w, const struct shape_buckets *b, const struct fit fits[SHAPE_SECTORS],
		       struct err *err)
{
	int rc = 0;

	for (int s = 0; s < SHAPE_SECTORS; s++)
		for (int c = 0; c < SHAPE_CLASSES && fits[s].ok; c++)
			w->fitted[s][c] = (float)sqrt(square_of(c + 0.5, (double)fits[s].width, (double)fits[s].roundness));
	fill_gaps(fits, w->fitted);
	smooth_along(w->fitted);
	memcpy(w->f, w->fitted, sizeof(w->f));
	for (int k = 0; rc == 0 && k < REFINE; k++) {
		spread_table(w);
		rc = correct_slant(w, b, err);
	}
	spread_table(w);
	return rc;
}

int shape_thickness_find(struct shape_finding *w, struct breast_shape_report *report, struct err *err)
{
	struct fit fits[SHAPE_SECTORS];
	struct shape_buckets b;
	int rc = sort_points(w->o, &b, err);

	if (rc < 0)
		return rc;
	rc = fit_sectors(w->o, &b, fits, err);
	if (rc == 0 && !judge_fits(fits, report))
		rc = 1;
	if (rc == 0)
		rc = spread_fits(w, &b, fits, err);
	free(b.at);
	if (rc == 0)
		report_thickness(w, fits, report);
	return rc;
}
