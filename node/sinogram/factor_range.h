/* SPDX-License-Identifier: Apache-2.0 */
/* Say how correction factors are taken, with the range of their values: a role given upside down cannot always be proven wrong
 * (node/reconstruct/factor_survey.h, normalisation_sense.h), but a reader who knows the data sees it. */
#ifndef TOMONODE_NODE_FACTOR_RANGE_H
#define TOMONODE_NODE_FACTOR_RANGE_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/err.h"
#include "node/sinogram/sinogram.h"

#define FACTOR_RANGE_TEXT 400

struct factor_range;

/* Is it a role of factors, whose values are multiplied or divided by? */
bool factor_range_is_factor(enum sinogram_role role);
/* planes: of the data. ENOMEM. */
int factor_range_create(enum sinogram_role role, size_t planes, struct factor_range **ret, struct err *err);
void factor_range_free(struct factor_range *r);
/* Add all values of a plane, once. Different planes: in any thread. */
void factor_range_add(struct factor_range *r, size_t plane, const float *values, size_t n);
/* Write the sentence, once: role, what is done with the values, least, largest and median value. The median is that of up to
 * 65536 values, evenly distributed. Values that exclude their bin (0 of MULTIPLICATIVE, infinite NORMALISATION) are counted
 * apart. Of ATTENUATION that has no factor near 1 it asks whether they are percent. */
void factor_range_text(struct factor_range *r, char ret[FACTOR_RANGE_TEXT]);

#endif
