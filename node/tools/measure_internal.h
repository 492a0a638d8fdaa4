/* SPDX-License-Identifier: Apache-2.0 */
/* What the sources of `tomonode measure` for a tomosynthesis share. */
#ifndef TOMONODE_NODE_MEASURE_INTERNAL_H
#define TOMONODE_NODE_MEASURE_INTERNAL_H

#include "node/tools/measure.h"

json_t *measure_number(double value); /* null if it is not finite */

/* ---- the truth (measure_truth.c) ---- */

/* Convert column, row (pixels, 0 at the centre of the first) and depth (mm) to the scan axes of the truth. */
void measure_place(const struct tomo_object *t, const struct measure_list *list, double column, double row, double depth,
		   double ret_at[3]);
/* Return the true attenuation at a place in these axes, 1/mm; only if list->known. *ret_tissue: breast_tissue(), NULL in air and
 * for phantoms of shapes; may be NULL. */
double measure_true(const struct measure_list *list, const double at[3], const char **ret_tissue);
/* Add the true mean and the bias to the figures of a region or tissue. */
void measure_put_truth(json_t *root, double mean, double truth);

/* ---- tissues and the profile along the normal to the skin (measure_breast.c) ---- */

struct measure_breast;

/* Object and list are borrowed. ENOMEM. */
int measure_breast_begin(const struct tomo_object *t, const struct measure_list *list, struct measure_breast **ret,
			 struct err *err);
/* Add slice k. */
int measure_breast_slice(struct measure_breast *b, long k, const float *values, struct err *err);
json_t *measure_breast_skin(const struct measure_breast *b);
json_t *measure_breast_tissues(const struct measure_breast *b);
void measure_breast_free(struct measure_breast *b); /* accepts NULL */

#endif
