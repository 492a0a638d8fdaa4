/* SPDX-License-Identifier: Apache-2.0 */
/* Find out whether ADDITIVE has the expected counts b of the model y = m A x + b, or b / m, as the additive sinogram of STIR and
 * SIRF: what is expected of randoms and scatter changes smoothly over the edges of the object, b / m as 1 / m does. The factors
 * are given first, then the background. */
#ifndef TOMONODE_NODE_ADDITIVE_SENSE_H
#define TOMONODE_NODE_ADDITIVE_SENSE_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/err.h"
#include "recon/pet/michelogram.h"

#define ADDITIVE_SENSE_TEXT 400

struct additive_sense;

/* m: borrowed. ENOMEM. */
int additive_sense_create(const struct michelogram *m, struct additive_sense **ret, struct err *err);
size_t additive_sense_bytes(const struct michelogram *m); /* of memory that create() needs */
void additive_sense_free(struct additive_sense *s);

/* plane: of a TOF bin; s may be NULL. Different planes: in any thread. */
void additive_sense_normalisation(struct additive_sense *s, size_t plane, const float *values); /* NORMALISATION alone */
/* All factors m of the plane, and the background b that the model gets; of TOF bins the sums. One thread at a time. */
void additive_sense_factors(struct additive_sense *s, size_t plane, const float *m);
void additive_sense_background(struct additive_sense *s, size_t plane, const float *b);

/* multiplied: the background was given as b / m. EBADMSG: it is the other one. ret_sentence (ADDITIVE_SENSE_TEXT bytes): what is
 * doubtful, with numbers; "": nothing. */
int additive_sense_check(const struct additive_sense *s, bool multiplied, char *ret_sentence, struct err *err);

#endif
