/* SPDX-License-Identifier: Apache-2.0 */
/* The integral of a phantom along one line, for tests that compare projections with it. */
#ifndef TOMONODE_TESTS_RECON_PHANTOM_LINE_H
#define TOMONODE_TESTS_RECON_PHANTOM_LINE_H

#include <math.h>

#include "recon/phantom/phantom_body.h"

/* Return the line integral from a to b. Shapes are added in the order of phantom_project(), so the result is bitwise equal to its
 * value before rounding to float. */
static inline double phantom_line(const struct phantom *p, const double a[3], const double b[3])
{
	double d[3] = {b[0] - a[0], b[1] - a[1], b[2] - a[2]};
	double sum = 0;

	for (size_t k = 0; k < p->n; k++) {
		struct body s;

		body_set(&p->shapes[k], &s);
		sum += s.mu * chord_length(&s, a, d);
	}
	return sum * sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
}

#endif
