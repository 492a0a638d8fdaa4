/* SPDX-License-Identifier: Apache-2.0 */
/* Find a normalisation that is upside down, efficiencies instead of factors that multiply, from the counts of direct planes:
 * where an efficiency is higher than those of neighbouring views, so are the counts. The counts are given first, then the
 * values. */
#ifndef TOMONODE_NODE_NORMALISATION_SENSE_H
#define TOMONODE_NODE_NORMALISATION_SENSE_H

#include <stddef.h>

#include "kernels/err.h"
#include "recon/pet/michelogram.h"

struct normalisation_sense;

/* m: borrowed. *ret: NULL if there are too few views to judge. Needs normalisation_sense_bytes(). ENOMEM. */
int normalisation_sense_create(const struct michelogram *m, struct normalisation_sense **ret, struct err *err);
size_t normalisation_sense_bytes(const struct michelogram *m);
void normalisation_sense_free(struct normalisation_sense *s);

/* plane: of a TOF bin. s may be NULL. Counts of TOF bins are added; one thread at a time. */
void normalisation_sense_counts(struct normalisation_sense *s, size_t plane, const float *counts);
/* After all counts. Different planes: in any thread. */
void normalisation_sense_values(struct normalisation_sense *s, size_t plane, const float *values);

/* EBADMSG: the values are efficiencies. */
int normalisation_sense_check(const struct normalisation_sense *s, struct err *err);

#endif
