/* SPDX-License-Identifier: Apache-2.0 */
/* Find factors that are upside down from all their values: ATTENUATION that is the fraction which survives, MULTIPLICATIVE that
 * is correction factors. */
#ifndef TOMONODE_NODE_FACTOR_SURVEY_H
#define TOMONODE_NODE_FACTOR_SURVEY_H

#include <stddef.h>

#include "kernels/err.h"
#include "recon/pet/michelogram.h"

/* Attenuation correction factors are 1 or more; below this they are not only rounded. */
#define FACTOR_SURVEY_LEAST 0.99f

struct factor_survey {
	float least, most; /* of the values above 0; INFINITY and 0: none */
	double up, down;   /* sums of v - 1 of the values above 1, and of 1 / v - 1 of those below 1: 1 / v exchanges them */
	size_t n, below;   /* values; values below FACTOR_SURVEY_LEAST */
};

void factor_survey_begin(struct factor_survey *s);
void factor_survey_add(struct factor_survey *s, const float *values, size_t n);
void factor_survey_join(struct factor_survey *s, const struct factor_survey *other);

/* EBADMSG: attenuation correction factors that are upside down. Those that a transmission scan measured have noise, and values
 * below 1 beside rays that meet nothing: they are refused only if they are below 1 as a whole, down > 2 up. */
int factor_survey_attenuation(const struct factor_survey *s, struct err *err);
/* EBADMSG: fractions that nowhere are one. Where pairs of detectors are added in a bin of m, their number may be in it. */
int factor_survey_fraction(const struct factor_survey *s, const struct michelogram *m, struct err *err);

#endif
