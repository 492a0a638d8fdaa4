/* A connected socket to a peer, before DCMTK comes in: names, all of their addresses (IPv6 and IPv4), one finite time for all of
 * it. Private to dicom/ (C++).
 */
#ifndef TOMONODE_DICOM_CONNECT_HH
#define TOMONODE_DICOM_CONNECT_HH

#include "kernels/err.h"

/* *ret_fd: connected, non-blocking, closed on exec. `who` names the peer in sentences. EHOSTUNREACH: the name is not known;
 * ETIMEDOUT; else what the last address answered (ECONNREFUSED, ENETUNREACH, ...). */
int connect_open(const char *host, int port, int timeout, const char *who, int *ret_fd, struct err *err);

/* A socket that listens on a port of the loopback and takes one connection that nobody accepts; *ret_port: where. DCMTK wants to
 * connect by itself: it connects here, and gets the real connection in this one's place (see association_hand_over()). */
int connect_placeholder(int *ret_fd, int *ret_port, struct err *err);

#endif
