/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of image quality, computed from samples of slices that the caller provides. Lengths in mm, values in the image's unit.
 *
 *   SNR      (m_F - m_B) / s_B      of a small detail F on its background B; detectable from about 5 on (Rose 1948)
 *   CNR      (m_L - m_B) / s_B      of a lesion L: the same formula, on regions
 *   contrast (m_F - m_B) / m_B
 *   CV       s_B / m_B              noise
 *   ASF(z)   |m_F(z) - m_B(z)| / |m_F(z0) - m_B(z0)|, z0 the detail's own slice: artefact spread function, Wu et al. 2004
 *   FWHM     2 sqrt(2 ln 2) times the sigma of a Gaussian on a constant background, fitted to a profile through a point
 *   MTF50    the frequency at which the modulation of a line spread function has fallen to half of its largest value */
#ifndef TOMONODE_RECON_FIGURES_H
#define TOMONODE_RECON_FIGURES_H

#include <stddef.h>

#include "kernels/err.h"

/* Running mean and standard deviation (n - 1) of values added one by one (Welford 1962). Start from zero. */
struct figure_sum {
	size_t n;
	double mean, m2;
};

void figure_add(struct figure_sum *s, double value);
double figure_sd(const struct figure_sum *s); /* 0 if there are fewer than two values */

/* v(x) = background + height * exp(-(x - centre)^2 / (2 sigma^2)) */
struct figure_peak {
	double height, centre, sigma, background;
	double residual; /* root mean square of the residuals / |height| */
};

/* Fit a peak by least squares (Levenberg 1944, Marquardt 1963) to n >= 5 samples v[i] at ascending x[i]. EDOM: no peak (flat, at
 * the very edge, or wider than the samples). */
int figure_fit_peak(const double *x, const double *v, size_t n, struct figure_peak *ret_peak, struct err *err);
double figure_fwhm(const struct figure_peak *p);

/* Return the width of the curve at half its value at `top`, between the nearest crossings, linearly interpolated; x ascending. If
 * the curve does not fall to a half on one side, return twice the distance to the crossing on the other side; if on neither side,
 * return NaN. */
double figure_half_width(const double *x, const double *v, size_t n, size_t top);

/* Compute MTF50, 1 / (unit of x), from the line spread of a ball: n samples at equal distances that are sums across the profile, less
 * their background. The modulation is divided by that of the ball, 3 (sin u - u cos u) / u^3 with u = 2 pi f radius, as far as this
 * is above 0.1; radius 0: a point. The outer half of the samples is tapered by a cosine. NaN: a sample is NaN, or the modulation
 * does not fall to half below the Nyquist frequency or where the ball is too large. */
double figure_mtf50(const double *x, const double *v, size_t n, double radius);

#endif
