/* SPDX-License-Identifier: Apache-2.0 */
/* The two clocks, in seconds. Use the wall clock, which an administrator can set, for times that are compared with other machines
 * or outlive the process (journal, DICOM headers, logs). Use the monotonic clock for deadlines and durations. */
#ifndef TOMONODE_KERNELS_CLOCK_H
#define TOMONODE_KERNELS_CLOCK_H

#include <time.h>

static inline double clock_read(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Return the wall-clock time, s since the epoch. */
static inline double clock_wall(void)
{
	return clock_read(CLOCK_REALTIME);
}

/* Return the monotonic time, s since an arbitrary start; setting the wall clock does not change it. */
static inline double clock_seconds(void)
{
	return clock_read(CLOCK_MONOTONIC);
}

#endif
