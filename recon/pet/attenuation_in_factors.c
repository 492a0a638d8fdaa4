/* SPDX-License-Identifier: Apache-2.0 */
/* attenuation_in_factors.c - see recon/pet/attenuation_in_factors.h. */
#include "recon/pet/attenuation_in_factors.h"

#include <math.h>

/* Sums over bins: x = L, y = -ln(factor). */
struct sums {
	double n, x, y, xx, xy, yy;
};

/* Sums of squares of the differences from means. */
struct squares {
	double n, xx, xy, yy;
};

static void add_bin(struct sums *s, float factor, double least, float attenuation)
{
	double x, y;

	if (!((double)factor > least) || !(attenuation > 0))
		return;
	x = -log((double)attenuation);
	y = -log((double)factor);
	s->n++;
	s->x += x;
	s->y += y;
	s->xx += x * x;
	s->xy += x * y;
	s->yy += y * y;
}

static void add_sums(struct sums *s, const struct sums *more)
{
	s->n += more->n;
	s->x += more->x;
	s->y += more->y;
	s->xx += more->xx;
	s->xy += more->xy;
	s->yy += more->yy;
}

static void add_squares(struct squares *q, const struct sums *s)
{
	if (s->n < 2)
		return;
	q->n += s->n;
	q->xx += fmax(s->xx - s->x * s->x / s->n, 0);
	q->xy += s->xy - s->x * s->y / s->n;
	q->yy += fmax(s->yy - s->y * s->y / s->n, 0);
}

static double mean_of(const float *values, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (double)values[i];
	return sum / (double)n;
}

/* Sum the differences between angles, and those within planes. */
static void sum_all(const struct michelogram *m, const float *factors, const float *attenuation, struct squares *ret_angles,
		    struct squares *ret_planes)
{
	size_t n_radial = (size_t)m->n_radial, plane = (size_t)m->n_angles * n_radial;

	for (size_t p = 0; p < michelogram_planes(m); p++) {
		double least = ATTENUATION_IN_DEAD * mean_of(factors + p * plane, plane);
		struct sums all = {0};

		for (size_t t = 0; t < n_radial; t++) {
			struct sums one = {0};

			for (size_t a = 0; a < (size_t)m->n_angles; a++)
				add_bin(&one, factors[p * plane + a * n_radial + t], least,
					attenuation[p * plane + a * n_radial + t]);
			add_squares(ret_angles, &one);
			add_sums(&all, &one);
		}
		add_squares(ret_planes, &all);
	}
}

/* What the line leaves of the squares of y. */
static double squares_left(const struct squares *q)
{
	return fmax(q->yy - q->xy * q->xy / q->xx, 0);
}

static bool is_about_1(double slope, double range)
{
	return fabs(slope - 1) < range;
}

struct attenuation_in_factors attenuation_in_factors(const struct michelogram *m, const float *factors, const float *attenuation)
{
	struct attenuation_in_factors ret = {.slope = NAN, .deviation = INFINITY};
	struct squares angles = {0}, planes = {0};

	sum_all(m, factors, attenuation, &angles, &planes);
	if (angles.xx > 0)
		ret.deviation = sqrt(squares_left(&angles) / angles.xx / m->scanner.detectors);
	if (ret.deviation <= ATTENUATION_IN_DEVIATION) {
		ret.slope = angles.xy / angles.xx;
		ret.found = is_about_1(ret.slope, ATTENUATION_IN_SLOPE) && ret.slope > ATTENUATION_IN_SURE * ret.deviation &&
			    is_about_1(planes.xy / planes.xx, ATTENUATION_IN_SLOPE);
	} else if (planes.xx > planes.n * ATTENUATION_IN_LINES * ATTENUATION_IN_LINES) {
		ret.slope = planes.xy / planes.xx;
		ret.found = is_about_1(ret.slope, ATTENUATION_IN_RANGE) &&
			    squares_left(&planes) < ATTENUATION_IN_RESIDUAL * planes.yy;
	}
	return ret;
}
