/* SPDX-License-Identifier: Apache-2.0 */
/* figures.c - figures of image quality: running sums, a fitted peak, the width at half height. */
#include "recon/core/figures.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>

#define FIT_STEPS 200
#define MTF_STEPS 500	  /* from 0 to the Nyquist frequency */
#define MTF_BALL 0.1	  /* least modulation of the ball itself */
#define FIT_SETTLED 1e-12 /* relative decrease of the sum of squares at which a fit ends */

void figure_add(struct figure_sum *s, double value)
{
	double d = value - s->mean;

	s->n++;
	s->mean += d / (double)s->n;
	s->m2 += d * (value - s->mean);
}

double figure_sd(const struct figure_sum *s)
{
	return s->n > 1 ? sqrt(s->m2 / (double)(s->n - 1)) : 0;
}

double figure_fwhm(const struct figure_peak *p)
{
	return 2 * sqrt(2 * log(2)) * p->sigma;
}

static double sum_squares(const double *x, const double *v, size_t n, const double q[4])
{
	double sum = 0;

	for (size_t i = 0; i < n; i++) {
		double t = (x[i] - q[1]) / q[2], d = q[3] + q[0] * exp(-0.5 * t * t) - v[i];

		sum += d * d;
	}
	return sum;
}

/* Solve four linear equations by Gaussian elimination with pivoting. Return false if they are singular. */
static bool solve_four(double a[4][5])
{
	for (int c = 0; c < 4; c++) {
		int p = c;

		for (int r = c + 1; r < 4; r++)
			if (fabs(a[r][c]) > fabs(a[p][c]))
				p = r;
		if (!(fabs(a[p][c]) > 0))
			return false;
		for (int k = 0; k < 5; k++) {
			double t = a[c][k];

			a[c][k] = a[p][k];
			a[p][k] = t;
		}
		for (int r = 0; r < 4; r++) {
			double f = r == c ? 0 : a[r][c] / a[c][c];

			for (int k = c; k < 5; k++)
				a[r][k] -= f * a[c][k];
		}
	}
	for (int c = 0; c < 4; c++)
		a[c][4] /= a[c][c];
	return true;
}

/* Compute the parameters ret_q one damped Levenberg-Marquardt step after q. Return false if the equations are singular. */
static bool step_gaussian(const double *x, const double *v, size_t n, const double q[4], double damping, double ret_q[4])
{
	double a[4][5] = {{0}};

	for (size_t i = 0; i < n; i++) {
		double t = (x[i] - q[1]) / q[2], e = exp(-0.5 * t * t), d = v[i] - q[3] - q[0] * e;
		double g[4] = {e, q[0] * e * t / q[2], q[0] * e * t * t / q[2], 1};

		for (int r = 0; r < 4; r++) {
			for (int c = 0; c < 4; c++)
				a[r][c] += g[r] * g[c];
			a[r][4] += g[r] * d;
		}
	}
	for (int c = 0; c < 4; c++)
		a[c][c] *= 1 + damping;
	if (!solve_four(a))
		return false;
	for (int c = 0; c < 4; c++)
		ret_q[c] = q[c] + a[c][4];
	return ret_q[2] != 0 && isfinite(ret_q[0] + ret_q[1] + ret_q[2] + ret_q[3]);
}

/* Estimate the parameters from the highest sample, the lowest one, and the width at half of their difference. */
static bool first_guess(const double *x, const double *v, size_t n, double q[4])
{
	size_t top = 0, low = 0, wide = 0;

	for (size_t i = 0; i < n; i++) {
		top = v[i] > v[top] ? i : top;
		low = v[i] < v[low] ? i : low;
	}
	for (size_t i = 0; i < n; i++)
		wide += v[i] > 0.5 * (v[top] + v[low]);
	q[0] = v[top] - v[low];
	q[1] = x[top];
	q[2] = (x[n - 1] - x[0]) / (double)(n - 1) * (double)wide / 2.3548;
	q[3] = v[low];
	return q[0] > 0 && q[2] > 0;
}

int figure_fit_peak(const double *x, const double *v, size_t n, struct figure_peak *ret_peak, struct err *err)
{
	double q[4] = {0}, next[4] = {0}, damping = 1e-3, now;

	if (n < 5 || !first_guess(x, v, n, q))
		return err_set(err, EDOM, "no peak among %zu samples", n);
	now = sum_squares(x, v, n, q);
	for (int i = 0; i < FIT_STEPS && damping < 1e12; i++) {
		double then = step_gaussian(x, v, n, q, damping, next) ? sum_squares(x, v, n, next) : INFINITY;
		bool settled = then <= now && now - then <= FIT_SETTLED * now;

		if (then <= now) {
			for (int c = 0; c < 4; c++)
				q[c] = next[c];
			now = then;
			damping /= 10;
		} else {
			damping *= 10;
		}
		if (settled)
			break;
	}
	q[2] = fabs(q[2]);
	if (!(q[0] > 0) || !(q[1] > x[0] && q[1] < x[n - 1]) || !(q[2] < x[n - 1] - x[0]))
		return err_set(err, EDOM, "no peak between %g and %g: the fitted curve has its centre at %g and sigma %g", x[0],
			       x[n - 1], q[1], q[2]);
	*ret_peak = (struct figure_peak){q[0], q[1], q[2], q[3], sqrt(now / (double)n) / q[0]};
	return 0;
}

/* Return the distance from `top`, in direction `way`, at which the curve falls to half; NaN: it does not. */
static double half_way(const double *x, const double *v, size_t n, size_t top, int way)
{
	for (size_t i = top; way < 0 ? i > 0 : i + 1 < n; i = (size_t)((long)i + way)) {
		size_t j = (size_t)((long)i + way);

		if (v[j] <= 0.5 * v[top]) {
			double part = (v[i] - 0.5 * v[top]) / (v[i] - v[j]);

			return fabs(x[i] + part * (x[j] - x[i]) - x[top]);
		}
	}
	return NAN;
}

double figure_half_width(const double *x, const double *v, size_t n, size_t top)
{
	double left = half_way(x, v, n, top, -1), right = half_way(x, v, n, top, 1);

	if (isnan(left))
		return 2 * right;
	return isnan(right) ? 2 * left : left + right;
}

/* Return the modulation of the samples at a frequency, tapered from half of their reach on. */
static double modulation_at(const double *x, const double *v, size_t n, double frequency)
{
	double middle = (x[0] + x[n - 1]) / 2, reach = (x[n - 1] - x[0]) / 2, sum[2] = {0};

	for (size_t i = 0; i < n; i++) {
		double part = fabs(x[i] - middle) / reach, phase = 2 * M_PI * frequency * x[i];
		double weight = part > 0.5 ? 0.5 + 0.5 * cos(M_PI * (2 * part - 1)) : 1;

		sum[0] += weight * v[i] * cos(phase);
		sum[1] += weight * v[i] * sin(phase);
	}
	return hypot(sum[0], sum[1]);
}

double figure_mtf50(const double *x, const double *v, size_t n, double radius)
{
	double nyquist = n > 1 ? 0.5 * (double)(n - 1) / (x[n - 1] - x[0]) : 0, most = 0, before = 0;

	for (int k = 0; k < MTF_STEPS; k++) {
		double f = nyquist * k / MTF_STEPS, u = 2 * M_PI * f * radius;
		double ball = u > 1e-3 ? 3 * (sin(u) - u * cos(u)) / (u * u * u) : 1, m;

		if (!(ball > MTF_BALL))
			return NAN;
		m = modulation_at(x, v, n, f) / ball;
		if (!isfinite(m))
			return NAN;
		if (m > most)
			most = m;
		else if (m < most / 2)
			return nyquist / MTF_STEPS * (k - (most / 2 - m) / (before - m));
		before = m;
	}
	return NAN;
}
