/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the randoms: what both estimates from delayed coincidences use (randoms.c). */
#ifndef TOMONODE_RECON_PET_RANDOMS_INTERNAL_H
#define TOMONODE_RECON_PET_RANDOMS_INTERNAL_H

#include "recon/pet/randoms.h"

/* Check delayed coincidences, and add them up. EINVAL, EDOM. */
int randoms_check_counts(const struct michelogram *m, const float *data, double *ret_sum, struct err *err);
double randoms_total(const struct michelogram *m, const float *values);

#endif
