/* SPDX-License-Identifier: Apache-2.0 */
/* Wait for a socket with a deadline. Used by associations and by TLS. Private to dicom/ (C++). */
#ifndef TOMONODE_DICOM_DEADLINE_HH
#define TOMONODE_DICOM_DEADLINE_HH

#include <cstdint>

namespace tomonode
{

int64_t deadline_now(void); /* monotonic clock, ms */

/* Wait until the socket is ready or the deadline (monotonic ms) passes. Return 1: ready, 0: deadline passed, -1: error
 * (errno). */
int deadline_wait(int fd, short events, int64_t deadline);

} // namespace tomonode
#endif
