/* SPDX-License-Identifier: Apache-2.0 */
/* Solve the normal equations of least squares: Cholesky's factors of a symmetric matrix, with its rows and columns scaled so that
 * the diagonal is 1. */
#ifndef TOMONODE_RECON_NORMAL_MATRIX_H
#define TOMONODE_RECON_NORMAL_MATRIX_H

#include <stdbool.h>

/* Replace the lower triangle of a[n][n] by L, with L L' = a. false: a is singular as far as doubles show (a scaled pivot is below
 * 1e-13). */
bool normal_factor(double *a, int n);
/* Solve L L' x = b in place. a: from normal_factor(). */
void normal_solve(const double *a, int n, double *b);

#endif
