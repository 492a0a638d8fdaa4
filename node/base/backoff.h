/* SPDX-License-Identifier: Apache-2.0 */
/* How long to wait before the next attempt. */
#ifndef TOMONODE_NODE_BACKOFF_H
#define TOMONODE_NODE_BACKOFF_H

/* Seconds to wait after the n-th failure in a row (n >= 1): first, 2 first, 4 first, ... up to cap. */
static inline double backoff_seconds(int n, double first, double cap)
{
	double wait = first;

	for (int i = 1; i < n && wait < cap; i++)
		wait *= 2;
	return wait < cap ? wait : cap;
}

#endif
