/* quality.c - regions of interest and what is computed out of their means and variances.
 *
 * A region is walked twice, once for the mean, once for the squares about it: volumes hold attenuations whose variance is a
 * millionth of their square. */
#include "recon/quality.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>

struct span {
	int first, end;
};

/* Voxels of an axis whose centres lie within r of c. */
static struct span axis_span(const struct grid *g, int axis, double c, double r)
{
	double first = ceil((c - r - g->lo[axis]) / g->h[axis] - 0.5), last = floor((c + r - g->lo[axis]) / g->h[axis] - 0.5);

	return (struct span){(int)fmin(fmax(first, 0), g->n[axis]), (int)fmin(fmax(last + 1, 0), g->n[axis])};
}

static double centre_of(const struct grid *g, int axis, int i)
{
	return g->lo[axis] + (i + 0.5) * g->h[axis];
}

static bool inside(const struct quality_roi *roi, const double at[3])
{
	double t[3], square = 0;

	for (int a = 0; a < 3; a++) {
		t[a] = (at[a] - roi->c[a]) / roi->r[a];
		if (!(fabs(t[a]) <= 1))
			return false;
	}
	if (roi->kind == QUALITY_BOX)
		return true;
	square = t[0] * t[0] + t[1] * t[1];
	return (roi->kind == QUALITY_CYLINDER ? square : square + t[2] * t[2]) <= 1;
}

/* The voxel that a place lies in; NULL: outside. */
static const float *voxel_at(const struct quality_volume *v, const double at[3])
{
	const struct grid *g = &v->grid;
	size_t i[3];

	for (int a = 0; a < 3; a++) {
		double t = floor((at[a] - g->lo[a]) / g->h[a]);

		if (!(t >= 0 && t < g->n[a]))
			return NULL;
		i[a] = (size_t)t;
	}
	return v->values + (i[2] * (size_t)g->n[1] + i[1]) * (size_t)g->n[0] + i[0];
}

struct sum {
	size_t n;
	double sum;
};

/* Sum over the region of (value - about)^power, power 1 or 2. */
static struct sum sum_over(const struct quality_volume *v, const struct quality_roi *roi, double about, int power)
{
	const struct grid *g = &v->grid;
	struct span s[3];
	struct sum all = {0};
	double at[3];

	for (int a = 0; a < 3; a++)
		s[a] = axis_span(g, a, roi->c[a], roi->r[a]);
	for (int k = s[2].first; k < s[2].end; k++)
		for (int j = s[1].first; j < s[1].end; j++) {
			const float *row = v->values + ((size_t)k * (size_t)g->n[1] + (size_t)j) * (size_t)g->n[0];

			at[2] = centre_of(g, 2, k);
			at[1] = centre_of(g, 1, j);
			for (int i = s[0].first; i < s[0].end; i++) {
				double d = row[i] - about;

				at[0] = centre_of(g, 0, i);
				if (!inside(roi, at))
					continue;
				all.n++;
				all.sum += power == 2 ? d * d : d;
			}
		}
	return all;
}

int quality_stats(const struct quality_volume *v, const struct quality_roi *roi, struct quality_stats *ret_stats, struct err *err)
{
	struct sum first = sum_over(v, roi, 0, 1);
	const float *only = first.n ? NULL : voxel_at(v, roi->c);
	struct quality_stats s = {.n = first.n};

	if (!first.n && !only)
		return err_set(err, ENODATA, "the region at (%.2f, %.2f, %.2f) mm lies outside the volume", roi->c[0], roi->c[1],
			       roi->c[2]);
	if (only) {
		s.n = 1;
		s.mean = *only;
	} else {
		s.mean = first.sum / (double)first.n;
		s.variance = first.n > 1 ? sum_over(v, roi, s.mean, 2).sum / (double)(first.n - 1) : 0;
	}
	*ret_stats = s;
	return 0;
}

/* All regions as one sample: its squares about the common mean are those about the regions' means plus the means' own. */
static struct quality_stats pool(const struct quality_stats *a, const struct quality_stats *b)
{
	double n = (double)(a->n + b->n), between = a->mean - b->mean;
	double squares = (double)(a->n - (a->n > 0)) * a->variance + (double)(b->n - (b->n > 0)) * b->variance +
			 between * between * (double)a->n * (double)b->n / n;

	return (struct quality_stats){.n = a->n + b->n,
				      .mean = ((double)a->n * a->mean + (double)b->n * b->mean) / n,
				      .variance = n > 1 ? squares / (n - 1) : 0};
}

static double ratio(double a, double b)
{
	return b != 0 ? a / b : NAN;
}

int quality_figures(const struct quality_volume *v, const struct quality_roi *roi, const struct quality_roi *background, size_t n,
		    struct quality_figures *ret_figures, struct err *err)
{
	struct quality_figures f = {0};
	double variances = 0;
	int rc;

	if (n == 0)
		return err_set(err, EINVAL, "no background region");
	rc = quality_stats(v, roi, &f.roi, err);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		struct quality_stats s = {0};

		rc = quality_stats(v, &background[i], &s, err);
		if (rc == 0) {
			variances += s.variance;
			f.background = pool(&f.background, &s);
		}
	}
	if (rc < 0)
		return rc;
	f.noise = sqrt(variances / (double)n);
	f.snr = ratio(f.roi.mean - f.background.mean, f.noise);
	f.cv = ratio(f.noise, f.background.mean);
	f.contrast = ratio(f.roi.mean - f.background.mean, f.background.mean);
	f.cnr = ratio(f.roi.mean - f.background.mean, sqrt(f.background.variance));
	*ret_figures = f;
	return 0;
}

/* A region's cross section through its centre, in slice k. */
static struct quality_roi section(const struct grid *g, const struct quality_roi *roi, const double move[2], int k)
{
	struct quality_roi s = *roi;

	s.kind = roi->kind == QUALITY_BOX ? QUALITY_BOX : QUALITY_CYLINDER;
	s.c[0] += move[0];
	s.c[1] += move[1];
	s.c[2] = centre_of(g, 2, k);
	s.r[2] = g->h[2] / 4; /* the slice's own centre and no other */
	return s;
}

void quality_depth(const struct quality_volume *v, const struct quality_roi *roi, const struct quality_roi *background, size_t n,
		   const double slope[2], double *ret_roi, double *ret_background)
{
	for (int k = 0; k < v->grid.n[2]; k++) {
		double up = centre_of(&v->grid, 2, k) - roi->c[2];
		double move[2] = {slope ? slope[0] * up : 0, slope ? slope[1] * up : 0};
		struct quality_roi s = section(&v->grid, roi, move, k);
		struct quality_stats all = {0}, one;

		ret_roi[k] = quality_stats(v, &s, &one, NULL) == 0 ? one.mean : NAN;
		for (size_t i = 0; i < n; i++) {
			s = section(&v->grid, &background[i], move, k);
			if (quality_stats(v, &s, &one, NULL) == 0)
				all = pool(&all, &one);
		}
		if (ret_background)
			ret_background[k] = all.n ? all.mean : NAN;
	}
}

void quality_asf(const double *roi, const double *background, size_t n, size_t focus, double *ret_asf)
{
	double at_focus = fabs(roi[focus] - background[focus]);

	for (size_t k = 0; k < n; k++)
		ret_asf[k] = ratio(fabs(roi[k] - background[k]), at_focus);
}

double quality_half_width(const double *profile, size_t n, size_t focus, double spacing)
{
	double half = profile[focus] / 2, up, down;
	size_t a = focus, b = focus;

	while (a > 0 && profile[a] > half)
		a--;
	while (b + 1 < n && profile[b] > half)
		b++;
	if (!(profile[a] <= half && profile[b] <= half) || a == b)
		return NAN;
	down = (half - profile[a]) / (profile[a + 1] - profile[a]);
	up = (half - profile[b]) / (profile[b - 1] - profile[b]);
	return ((double)b - up - (double)a - down) * spacing;
}
