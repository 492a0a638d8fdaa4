/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing doubles in tests; include after cmocka.h. NaN is near nothing. */
#ifndef TOMONODE_TESTS_NEAR_H
#define TOMONODE_TESTS_NEAR_H

#include <math.h>

static inline void assert_near_at(double found, double expected, double tolerance, const char *file, int line)
{
	if (found == expected || fabs(found - expected) <= tolerance)
		return;
	print_error("%.12g is not within %g of %.12g\n", found, tolerance, expected);
	_fail(file, line);
}

#define assert_near(found, expected, tolerance) assert_near_at(found, expected, tolerance, __FILE__, __LINE__)

#endif
