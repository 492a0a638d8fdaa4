/* SPDX-License-Identifier: Apache-2.0 */
/* Compute how long to wait before an operation that failed is tried again. */
#ifndef TOMONODE_NODE_BACKOFF_H
#define TOMONODE_NODE_BACKOFF_H

/* Return the seconds to wait after the n-th failure in a row (n >= 1): first, 2 * first, 4 * first, ..., at most cap. */
static inline double backoff_seconds(int n, double first, double cap)
{
	double wait = first;

	for (int i = 1; i < n && wait < cap; i++)
		wait *= 2;
	return wait < cap ? wait : cap;
}

#endif
