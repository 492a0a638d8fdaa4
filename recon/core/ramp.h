/* The ramp filter of filtered backprojection: convolution of rows of equidistant samples with a band-limited |f|.
 *
 * h: band-limited ramp, Kak & Slaney 1988 eq. 61; or times a Hann window that reaches 0 at `cut` of the Nyquist frequency; Shepp
 * & Logan's h(n) = 2 / (pi^2 t^2 (1 - 4 n^2)), 1974; or times a cosine that reaches 0 at the Nyquist frequency. It is given in
 * space, as closed formulas at every sample, and only then transformed: a filter sampled in frequency would have the wrong value
 * at frequency 0 and neighbours that wrap around (Kak & Slaney, section 3.3). Outside a row there is 0.
 *
 * A build without kissfft has a stub that answers ENOTSUP.
 */
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

struct ramp; /* of one length and pitch; read by all threads */

/* cut: of RAMP_HANN. n: samples of a row. The result's unit is that of the samples / mm. */
int ramp_create(enum ramp_filter filter, double cut, double pitch, int n, struct ramp **ret_ramp, struct err *err);
struct ramp *ramp_free(struct ramp *r); /* takes NULL, returns NULL */

/* The kernel's sum from sample j to infinity, 0 <= j <= n, 1/mm: what a constant beyond a row's end adds. */
float ramp_tail(const struct ramp *r, int j);

/* The kernel itself times the pitch, 1/mm: samples 0 .. n - 1 of n; it is even. */
const float *ramp_kernel(const struct ramp *r);

/* Bytes that ramp_rows() wants to work in, one piece for each thread. */
size_t ramp_work(const struct ramp *r);

/* Filters two rows of n in place, in one transform; b may be NULL. */
void ramp_rows(const struct ramp *r, float *a, float *b, void *work);

#endif
