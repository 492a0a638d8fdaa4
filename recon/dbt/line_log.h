/* SPDX-License-Identifier: Apache-2.0 */
/* Logarithms of many numbers at once, rounded to float. */
#ifndef TOMONODE_RECON_LINE_LOG_H
#define TOMONODE_RECON_LINE_LOG_H

/* Compute ret[i] = (float)log(x[i]), to the bit, for n numbers that are at least 1, +inf or NaN. */
void line_log(int n, const double *x, float *ret);

#endif
