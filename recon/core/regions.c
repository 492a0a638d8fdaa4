/* SPDX-License-Identifier: Apache-2.0 */
/* regions.c - see recon/core/regions.h. */
#include "recon/core/regions.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define SIDE_MAX 256

/* ---- parts of pixels and voxels ---- */

/* Antiderivative of sqrt(r^2 - x^2). */
static double half_disc(double r, double x)
{
	double t = fmax(-1, fmin(1, x / r));

	return 0.5 * r * r * (t * sqrt(fmax(0, 1 - t * t)) + asin(t));
}

/* Area inside the circle with a <= x <= b and y <= top, y >= 0; 0 <= a. The arc is above `top` up to x = sqrt(r^2 - top^2). */
static double area_below(double r, double a, double b, double top)
{
	double flat;

	b = fmin(b, r);
	if (!(b > a) || !(top > 0))
		return 0;
	flat = top < r ? sqrt(r * r - top * top) : 0;
	if (flat >= b)
		return (b - a) * top;
	if (flat <= a)
		return half_disc(r, b) - half_disc(r, a);
	return (flat - a) * top + half_disc(r, b) - half_disc(r, flat);
}

/* Area inside the circle of the rectangle between (0, 0) and (x, y), negative if one of them is. */
static double quadrant_area(double r, double x, double y)
{
	return copysign(1, x) * copysign(1, y) * area_below(r, 0, fabs(x), fabs(y));
}

double circle_area(double r, const double lo[2], const double hi[2])
{
	if (!(r > 0) || !(hi[0] > lo[0]) || !(hi[1] > lo[1]))
		return 0;
	return fmax(0, quadrant_area(r, hi[0], hi[1]) - quadrant_area(r, lo[0], hi[1]) - quadrant_area(r, hi[0], lo[1]) +
			       quadrant_area(r, lo[0], lo[1]));
}

/* Abscissae and weights of Gauss-Legendre with 8 points. */
static const double gauss[4][2] = {{0.1834346424956498, 0.3626837833783620},
				   {0.5255324099163290, 0.3137066458778873},
				   {0.7966664774136267, 0.2223810344533745},
				   {0.9602898564975363, 0.1012285362903763}};

double sphere_volume(double r, const double lo[3], const double hi[3])
{
	double a = fmax(lo[2], -r), b = fmin(hi[2], r), sum = 0;

	if (!(b > a))
		return 0;
	for (int i = 0; i < 8; i++) {
		double z = 0.5 * (a + b) + (i % 2 ? 0.5 : -0.5) * (b - a) * gauss[i / 2][0];

		sum += 0.5 * (b - a) * gauss[i / 2][1] * circle_area(sqrt(fmax(0, r * r - z * z)), lo, hi);
	}
	return sum;
}

/* ---- sums ---- */

void region_add(struct region_sum *s, double weight, double value)
{
	double before = s->weight, away = value - s->mean;

	if (!(weight > 0))
		return;
	if (s->n == 0 || value < s->min)
		s->min = value;
	if (s->n == 0 || value > s->max)
		s->max = value;
	s->n++;
	s->weight += weight;
	s->weight2 += weight * weight;
	s->mean += away * weight / s->weight;
	s->m2 += weight * before / s->weight * away * away;
}

double region_sd(const struct region_sum *s)
{
	double free = s->n > 1 ? s->weight - s->weight2 / s->weight : 0;

	return free > 0 ? sqrt(s->m2 / free) : NAN;
}

/* ---- noise power spectrum ---- */

int noise_spectrum_create(int side, const double h[2], struct noise_spectrum *ret, struct err *err)
{
	size_t n = (size_t)side;
	struct noise_spectrum s = {.side = side, .h = {h[0], h[1]}};

	if (side < 4 || side > SIDE_MAX || !(h[0] > 0) || !(h[1] > 0))
		return err_set(err, EINVAL, "noise power spectrum: side of %d pixels of %g x %g mm; allowed: 4 to %d pixels",
			       side, h[0], h[1], SIDE_MAX);
	s.power = calloc(n * n, sizeof(*s.power));
	s.work = calloc(2 * n + 3 * n * n, sizeof(*s.work));
	if (!s.power || !s.work) {
		noise_spectrum_clear(&s);
		return err_set(err, ENOMEM, "noise power spectrum: no memory for %d x %d frequencies", side, side);
	}
	for (size_t i = 0; i < n; i++) {
		s.work[i] = cos(2 * M_PI * (double)i / side);
		s.work[n + i] = -sin(2 * M_PI * (double)i / side);
	}
	*ret = s;
	return 0;
}

void noise_spectrum_clear(struct noise_spectrum *s)
{
	free(s->power);
	free(s->work);
	*s = (struct noise_spectrum){0};
}

/* Subtract the plane a + b x + c y; x and y are centred, so that a, b and c are independent of each other. */
static double detrend_values(const float *values, size_t stride, size_t n, double *ret)
{
	double middle = ((double)n - 1) / 2, sum = 0, sx = 0, sy = 0, xx = 0, square = 0;

	for (size_t j = 0; j < n; j++)
		for (size_t i = 0; i < n; i++) {
			double v = values[j * stride + i];

			sum += v;
			sx += v * ((double)i - middle);
			sy += v * ((double)j - middle);
			xx += ((double)i - middle) * ((double)i - middle);
		}
	for (size_t j = 0; j < n; j++)
		for (size_t i = 0; i < n; i++) {
			double plane = sum / (double)(n * n) + sx / xx * ((double)i - middle) + sy / xx * ((double)j - middle);
			double v = values[j * stride + i] - plane;

			ret[j * n + i] = v;
			square += v * v;
		}
	return square / (double)(n * n);
}

void noise_spectrum_add(struct noise_spectrum *s, const float *values, size_t stride)
{
	size_t n = (size_t)s->side;
	const double *c = s->work, *d = c + n;
	double *region = s->work + 2 * n, *re = region + n * n, *im = re + n * n;
	double variance = detrend_values(values, stride, n, region);

	s->variance += (variance - s->variance) / (double)++s->n;
	for (size_t j = 0; j < n; j++) /* along rows */
		for (size_t k = 0; k < n; k++) {
			double a = 0, b = 0;

			for (size_t i = 0; i < n; i++) {
				a += region[j * n + i] * c[i * k % n];
				b += region[j * n + i] * d[i * k % n];
			}
			re[j * n + k] = a;
			im[j * n + k] = b;
		}
	for (size_t l = 0; l < n; l++) /* along columns */
		for (size_t k = 0; k < n; k++) {
			double a = 0, b = 0;

			for (size_t j = 0; j < n; j++) {
				double p = c[j * l % n], q = d[j * l % n];

				a += re[j * n + k] * p - im[j * n + k] * q;
				b += re[j * n + k] * q + im[j * n + k] * p;
			}
			s->power[l * n + k] += a * a + b * b;
		}
}

double noise_spectrum_at(const struct noise_spectrum *s, int i, int j)
{
	double side = s->side;

	return s->n ? s->power[(size_t)j * (size_t)s->side + (size_t)i] * s->h[0] * s->h[1] / (side * side * (double)s->n) : NAN;
}

/* Frequency of an index: those above the half are negative. */
static double frequency_of(const struct noise_spectrum *s, int i, int axis)
{
	return (2 * i > s->side ? i - s->side : i) / (s->side * s->h[axis]);
}

void noise_spectrum_rings(const struct noise_spectrum *s, struct noise_bin *ret_bins)
{
	double width = 1 / (s->side * fmax(s->h[0], s->h[1]));

	for (int k = 0; k < s->side / 2; k++)
		ret_bins[k] = (struct noise_bin){0};
	for (int j = 0; j < s->side; j++)
		for (int i = 0; i < s->side; i++) {
			double f = hypot(frequency_of(s, i, 0), frequency_of(s, j, 1));
			long k = lround(f / width);
			struct noise_bin *bin;

			if (k < 1 || k > s->side / 2)
				continue;
			bin = &ret_bins[k - 1];
			bin->n++;
			bin->frequency += (f - bin->frequency) / (double)bin->n;
			bin->power += (noise_spectrum_at(s, i, j) - bin->power) / (double)bin->n;
		}
}

double noise_spectrum_integral(const struct noise_spectrum *s)
{
	double sum = 0;

	for (int j = 0; j < s->side; j++)
		for (int i = 0; i < s->side; i++)
			sum += noise_spectrum_at(s, i, j);
	return sum / (s->side * s->h[0]) / (s->side * s->h[1]);
}
