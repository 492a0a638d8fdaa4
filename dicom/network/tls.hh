/* SPDX-License-Identifier: Apache-2.0 */
/* The stream of an established TLS connection. Only the handshake blocks, at most until its deadline. Private to dicom/ (C++). */
#ifndef TOMONODE_DICOM_TLS_HH
#define TOMONODE_DICOM_TLS_HH

#include <cstdint>
#include <sys/types.h>

#include "dicom/network/tls.h"

namespace tomonode
{

struct TlsStream;

/* Do the handshake on a connected socket (borrowed), until `deadline` (monotonic ms, deadline_now()). `who`: beginning of each
 * message. EPROTONOSUPPORT: the peer does not use TLS, or none in common; EKEYREJECTED: one side's certificate was refused;
 * ETIMEDOUT, ECONNRESET. name: host name or address for which the server's certificate must be issued; NULL: any. */
int tls_accept(int fd, const struct tls_context *context, int64_t deadline, const char *who, TlsStream **ret_stream,
	       struct err *err);
int tls_connect(int fd, const struct tls_context *context, const char *name, int64_t deadline, const char *who,
		TlsStream **ret_stream, struct err *err);
TlsStream *tls_stream_free(TlsStream *s); /* accepts NULL; returns NULL; sends nothing to the peer */

/* Set the new descriptor number of the same socket. */
void tls_set_fd(TlsStream *s, int fd);
/* Return false if the peer sent no certificate. */
bool tls_get_peer(const TlsStream *s, struct tls_peer *ret_peer);

/* Like recv() and send(), never blocking. -1 with EAGAIN: wait for tls_poll_events(); tls_read() returns 0: the peer closed.
 * more: these few bytes (at most 64) may wait for the next ones. */
ssize_t tls_read(TlsStream *s, void *buf, size_t n);
ssize_t tls_write(TlsStream *s, const void *buf, size_t n, bool more);
short tls_poll_events(const TlsStream *s); /* POLLIN or POLLOUT */
/* Return why the peer's TLS, or the local one, refused the connection: 0, or an error code as above with its text. */
int tls_error_text(const TlsStream *s, char *ret_text, size_t size);
/* Send the peer a close notification; the socket can be closed then. */
void tls_send_close_notify(TlsStream *s);

/* Does the peer answer a TLS handshake on this socket? Verifies nothing. */
bool tls_probe(int fd, int64_t deadline);

} // namespace tomonode
#endif
