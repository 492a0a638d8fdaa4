/* SPDX-License-Identifier: Apache-2.0 */
/* clock_offset.c - a library for LD_PRELOAD: it adds the number of seconds in a file to the wall clock of a process and its
 * children.
 *
 * The file (environment CLOCK_OFFSET_FILE, 8 bytes, an int64_t of this machine) is mapped once, so that a test can set the clock
 * of running processes. Clocks that do not depend on the wall clock (CLOCK_MONOTONIC) do not change, as when an administrator or
 * NTP sets the clock. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const _Atomic int64_t *offset;

__attribute__((constructor)) static void map_offset(void)
{
	const char *path = getenv("CLOCK_OFFSET_FILE");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *p;

	if (fd < 0)
		return;
	p = mmap(NULL, sizeof(*offset), PROT_READ, MAP_SHARED, fd, 0);
	if (p != MAP_FAILED)
		offset = p;
	close(fd);
}

int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, ret_time);

	if (rc == 0 && offset && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		ret_time->tv_sec += atomic_load(offset);
	return rc;
}

int gettimeofday(struct timeval *restrict ret_time, void *restrict zone)
{
	struct timespec t;

	(void)zone;
	if (clock_gettime(CLOCK_REALTIME, &t) < 0)
		return -1;
	ret_time->tv_sec = t.tv_sec;
	ret_time->tv_usec = t.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *ret_time)
{
	struct timespec t = {0};

	clock_gettime(CLOCK_REALTIME, &t);
	if (ret_time)
		*ret_time = t.tv_sec;
	return t.tv_sec;
}
