/* SPDX-License-Identifier: Apache-2.0 */
#include "dicom/network/deadline.hh"

#include <cerrno>
#include <ctime>
#include <poll.h>

namespace tomonode
{

int64_t deadline_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int deadline_wait(int fd, short events, int64_t deadline)
{
	for (;;) {
		struct pollfd pfd = {fd, events, 0};
		int64_t left = deadline - deadline_now();
		int n = poll(&pfd, 1, left > 0 ? (int)(left < 1000000 ? left : 1000000) : 0);

		if (n > 0)
			return 1;
		if (n == 0 && left <= 1000000)
			return 0;
		if (n < 0 && errno != EINTR)
			return -1;
	}
}

} // namespace tomonode
