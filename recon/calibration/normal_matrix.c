/* SPDX-License-Identifier: Apache-2.0 */
/* normal_matrix.c - Cholesky's method. A pivot is compared with the diagonal that it was: their ratio does not depend on the
 * units of the parameters. */
#include "recon/calibration/normal_matrix.h"

#include <math.h>
#include <stddef.h>

#define PIVOT_LEAST 1e-13

bool normal_factor(double *a, int n)
{
	size_t w = (size_t)n;

	for (size_t j = 0; j < w; j++) {
		double pivot = a[j * w + j], least = PIVOT_LEAST * pivot;

		for (size_t k = 0; k < j; k++)
			pivot -= a[j * w + k] * a[j * w + k];
		if (!(pivot > least))
			return false;
		a[j * w + j] = sqrt(pivot);
		for (size_t i = j + 1; i < w; i++) {
			for (size_t k = 0; k < j; k++)
				a[i * w + j] -= a[i * w + k] * a[j * w + k];
			a[i * w + j] /= a[j * w + j];
		}
	}
	return true;
}

void normal_solve(const double *a, int n, double *b)
{
	size_t w = (size_t)n;

	for (size_t i = 0; i < w; i++) {
		for (size_t k = 0; k < i; k++)
			b[i] -= a[i * w + k] * b[k];
		b[i] /= a[i * w + i];
	}
	for (size_t i = w; i-- > 0;) {
		for (size_t k = i + 1; k < w; k++)
			b[i] -= a[k * w + i] * b[k];
		b[i] /= a[i * w + i];
	}
}
