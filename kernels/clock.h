/* The two clocks, in seconds. What is to be held against other machines or to outlive the process (the journal, headers, logs)
 * takes the wall clock, which somebody may set; deadlines and durations take the one that only runs. */
#ifndef TOMONODE_KERNELS_CLOCK_H
#define TOMONODE_KERNELS_CLOCK_H

#include <time.h>

static inline double clock_read(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* s since the epoch */
static inline double clock_wall(void)
{
	return clock_read(CLOCK_REALTIME);
}

/* s since some moment; nobody sets it */
static inline double clock_seconds(void)
{
	return clock_read(CLOCK_MONOTONIC);
}

#endif
