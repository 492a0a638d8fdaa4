/* Waiting for a socket with a deadline. Below associations and TLS, which both use it. Private to dicom/ (C++). */
#ifndef TOMONODE_DICOM_DEADLINE_HH
#define TOMONODE_DICOM_DEADLINE_HH

#include <stdint.h>

int64_t deadline_now(void); /* monotonic, ms */

/* Wait until the socket is ready or the deadline (monotonic ms) is over: 1, 0 (over), -1 (errno). */
int deadline_wait(int fd, short events, int64_t deadline);

#endif
