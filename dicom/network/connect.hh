/* SPDX-License-Identifier: Apache-2.0 */
/* Connect a socket to a peer, before DCMTK is used: resolve the name, try all of its addresses (IPv6 and IPv4), within one time
 * limit. Private to dicom/ (C++). */
#ifndef TOMONODE_DICOM_CONNECT_HH
#define TOMONODE_DICOM_CONNECT_HH

#include "kernels/err.h"

namespace tomonode
{

/* Connect. *ret_fd: connected, non-blocking, close-on-exec. `who`: the peer's name in messages. EHOSTUNREACH: the name cannot be
 * resolved; ETIMEDOUT; else the error of the last address (ECONNREFUSED, ENETUNREACH, ...). */
int connect_open(const char *host, int port, int timeout, const char *who, int *ret_fd, struct err *err);

/* Listen on a port of the loopback interface for one connection that is never accepted; *ret_port: its number. DCMTK must open a
 * connection itself: it connects to this port, and the real connection then replaces that one (see `handed` in association.hh).
 */
int connect_placeholder(int *ret_fd, int *ret_port, struct err *err);

} // namespace tomonode
#endif
