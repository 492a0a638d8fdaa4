/* SPDX-License-Identifier: Apache-2.0 */
/* Find factors that are upside down from all their values: ATTENUATION that is the fraction which survives, MULTIPLICATIVE that
 * is correction factors. Planes are surveyed one by one, in any thread, and joined. */
#ifndef TOMONODE_NODE_FACTOR_SURVEY_H
#define TOMONODE_NODE_FACTOR_SURVEY_H

#include <stddef.h>

#include "kernels/err.h"
#include "recon/pet/michelogram.h"

/* Attenuation correction factors are 1 or more; below this they are not only rounded. */
#define FACTOR_SURVEY_LEAST 0.99f
/* What attenuates has factors above this, those of 5 mm of water. */
#define FACTOR_SURVEY_WATER 1.05f

struct factor_survey {
	float least, most; /* of the values above 0; INFINITY and 0: none */
	size_t plane, bin; /* of the least value */
	double up, down;   /* sums of v - 1 of the values above 1, and of 1 / v - 1 of those below 1: 1 / v exchanges them */
	size_t n, below;   /* values; values below FACTOR_SURVEY_LEAST */
	size_t above;	   /* FACTOR_SURVEY_WATER */
	/* ---- of complete planes ---- */
	size_t planes;		       /* with values */
	size_t low, first_low;	       /* planes that are below 1 as a whole; the first of them */
	size_t shared, from_1;	       /* planes with several pairs of detectors in a bin; those of them whose least value is 1 */
	float per_pair, per_pair_most; /* largest ratio of a plane's largest value to its number of pairs; this value */
	size_t per_pair_plane;	       /* its plane */
	int per_pair_pairs;	       /* its number of pairs */
};

void factor_survey_begin(struct factor_survey *s);
/* Add values of a plane of m: with TOF bins several times for a plane. */
void factor_survey_add(struct factor_survey *s, size_t plane, const float *values, size_t n);
/* All values of the plane, the only one in s, have been added. */
void factor_survey_end_plane(struct factor_survey *s, const struct michelogram *m, size_t plane);
/* Planes of s come before those of the other. */
void factor_survey_join(struct factor_survey *s, const struct factor_survey *other);

/* EBADMSG: attenuation correction factors that are upside down. Those that a transmission scan measured have noise, and values
 * below 1 beside rays that meet nothing. They are refused if they are below 1 as a whole, down > 2 up; if a plane is, by more
 * than 0.03 for each of its 100 or more values; and if a value is below 0.3. */
int factor_survey_attenuation(const struct factor_survey *s, const struct michelogram *m, struct err *err);
/* EBADMSG: fractions that nowhere are one: none below 1, and in a plane one above 2 for each pair of detectors that is added in
 * its bins. If most planes with several pairs begin at 1, as correction factors in air do, the pairs are not in the values, and
 * none may be above 2. */
int factor_survey_fraction(const struct factor_survey *s, struct err *err);

#endif
