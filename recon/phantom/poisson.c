/* SPDX-License-Identifier: Apache-2.0 */
/* poisson.c - Poisson random numbers; see poisson.h. */
#include "recon/phantom/poisson.h"

#include <math.h>

#define POISSON_INVERSION_BELOW 10.0 /* PTRS is valid from this mean on */

/* Return ln k!: a table for small k; else Stirling's series, whose first omitted term 1/(1260 k^5) is below 4e-9 from k = 12
 * on. */
static double log_factorial(double k)
{
	static const double small[12] = {0,
					 0,
					 0.69314718055994531,
					 1.79175946922805500,
					 3.17805383034794562,
					 4.78749174278204599,
					 6.57925121201010100,
					 8.52516136106541430,
					 10.6046029027452502,
					 12.8018274800814696,
					 15.1044125730755153,
					 17.5023078458738858};

	if (k < 12)
		return small[(int)k];
	return (k + 0.5) * log(k) - k + 0.91893853320467274 + (1.0 / 12 - 1.0 / (360 * k * k)) / k; /* 0.5 ln(2 pi) */
}

static double draw_inversion(double mean, uint64_t stream)
{
	double u = poisson_uniform(&stream);
	double p = exp(-mean), k = 0;

	while (u > p &&
	       k < 200) { /* P(k >= 200) < 1e-100 for a mean below 10: the loop also ends if rounding leaves u above the sum */
		u -= p;
		k++;
		p *= mean / k;
	}
	return k;
}

/* Hormann, The transformed rejection method for generating Poisson random variables, 1993, algorithm PTRS. */
static double draw_transformed(double mean, uint64_t stream)
{
	double b = 0.931 + 2.53 * sqrt(mean);
	double a = -0.059 + 0.02483 * b;
	double v_r = 0.9277 - 3.6224 / (b - 2);

	for (;;) {
		double u = poisson_uniform(&stream) - 0.5;
		double v = poisson_uniform(&stream);
		double us = 0.5 - fabs(u);
		double k = floor((2 * a / us + b) * u + mean + 0.43);

		if (us >= 0.07 && v <= v_r)
			return k;
		if (k < 0 || (us < 0.013 && v > us))
			continue;
		double inv_alpha = 1.1239 + 1.1328 / (b - 3.4);
		if (log(v * inv_alpha / (a / (us * us) + b)) <= k * log(mean) - mean - log_factorial(k))
			return k;
	}
}

double poisson_draw(double mean, uint64_t stream)
{
	if (!(mean > 0))
		return 0;
	if (mean < POISSON_INVERSION_BELOW)
		return draw_inversion(mean, stream);
	return draw_transformed(mean < POISSON_MEAN_MAX ? mean : POISSON_MEAN_MAX, stream);
}
