/* SPDX-License-Identifier: Apache-2.0 */
/* Connect a socket to a peer, before DCMTK is used: resolve the name, try all of its addresses (IPv6 and IPv4), within one time
 * limit. Private to dicom/ (C++). */
#ifndef TOMONODE_DICOM_CONNECT_HH
#define TOMONODE_DICOM_CONNECT_HH

#include "kernels/err.h"

namespace tomonode
{

/* Connect within `timeout` s. *ret_fd: the socket, non-blocking, close-on-exec. `who`: the peer's name in messages. EHOSTUNREACH:
 * the name cannot be resolved; ETIMEDOUT; else the error for the last address that was tried (ECONNREFUSED, ENETUNREACH, ...). */
int connect_open(const char *host, int port, int timeout, const char *who, int *ret_fd, struct err *err);

/* Create a listening socket on the loopback interface; *ret_port: its port. DCMTK cannot use a socket that is already connected,
 * so it is made to connect to this port. The socket from connect_open() then replaces that connection (`connected` in
 * association.hh). */
int connect_placeholder(int *ret_fd, int *ret_port, struct err *err);

} // namespace tomonode
#endif
