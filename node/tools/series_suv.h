/* SPDX-License-Identifier: Apache-2.0 */
/* The factor from the values of a PET series to SUV by body weight (g/ml), from standard attributes alone:
 *
 *   SUV = value weight 1000 / (dose 2^(-t / half-life))
 *
 * value in Bq/ml, weight (0010,1030) in kg, dose (0018,1074) in Bq at the time of injection (PS3.3 C.8.9.1, QIBA FDG-PET/CT
 * profile, "SUV vendor-neutral pseudo-code"). Decay Correction START: t is from the injection to Series Time, which must not be
 * after the acquisition; it is below 0 if it was injected during the acquisition. ADMIN: t = 0. Units GML with SUV Type BW or
 * none: the factor is 1. Whatever is missing, implausible or different between the objects gives no factor, but a sentence. */
#ifndef TOMONODE_NODE_SERIES_SUV_H
#define TOMONODE_NODE_SERIES_SUV_H

#include <stddef.h>

#include "kernels/err.h"

struct series_suv {
	double factor;	  /* NaN: unknown */
	char reason[256]; /* why it is unknown; "" */
};

/* Read the headers of all objects of a series. An error: a file cannot be read. */
int series_suv_read(char *const *paths, size_t n, struct series_suv *ret, struct err *err);

#endif
