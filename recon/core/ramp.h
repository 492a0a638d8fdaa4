/* SPDX-License-Identifier: Apache-2.0 */
/* The ramp filter of filtered backprojection: convolve rows of equidistant samples with a band-limited |f|.
 *
 * h: the band-limited ramp, Kak & Slaney 1988 eq. 61; or that times a Hann window that reaches 0 at `cut` of the Nyquist
 * frequency; or Shepp & Logan's h(n) = 2 / (pi^2 t^2 (1 - 4 n^2)), 1974; or the ramp times a cosine that reaches 0 at the Nyquist
 * frequency. The kernel is computed in space, by closed formulas, and then transformed: a filter that is sampled in frequency
 * would have the wrong value at frequency 0 and would wrap around (Kak & Slaney, section 3.3). Samples outside a row count as 0.
 *
 * In a build without kissfft a stub returns ENOTSUP. */
#ifndef TOMONODE_RECON_RAMP_H
#define TOMONODE_RECON_RAMP_H

#include <stddef.h>

#include "kernels/err.h"

enum ramp_filter {
	RAMP_PLAIN = 1, /* Ramachandran & Lakshminarayanan 1971 */
	RAMP_HANN,
	RAMP_SHEPP_LOGAN,
	RAMP_COSINE,
};

struct ramp; /* a filter for rows of one length and pitch; threads may share it */

/* Create a filter. cut: only for RAMP_HANN. n: samples of a row. The result's unit is that of the samples / mm. */
int ramp_create(enum ramp_filter filter, double cut, double pitch, int n, struct ramp **ret_ramp, struct err *err);
struct ramp *ramp_free(struct ramp *r); /* accepts NULL; returns NULL */

/* Return the sum of the kernel from sample j to infinity, 0 <= j <= n, 1/mm: the value that a sample gets from the region beyond
 * the row's end, j samples away, if the row continued there with the constant 1. */
float ramp_tail(const struct ramp *r, int j);

/* Return the kernel times the pitch, 1/mm: samples 0 .. n - 1; the kernel is even. */
const float *ramp_kernel(const struct ramp *r);

/* Return the bytes of working memory that a call of ramp_rows() needs; each thread needs its own. */
size_t ramp_work(const struct ramp *r);

/* Filter two rows of n samples in place, in one transform; b may be NULL. */
void ramp_rows(const struct ramp *r, float *a, float *b, void *work);

#endif
