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

/* Do the handshake on a connected socket (borrowed) until `deadline` (monotonic ms, as deadline_now()). `who`: the peer, first
 * word of each message. name: host name or address that must be in the server's certificate; NULL: not checked.
 * EPROTONOSUPPORT: the peer does not use TLS, or no version or cipher that is supported here; EKEYREJECTED: one side does not
 * accept the other's certificate; ETIMEDOUT, ECONNRESET. */
int tls_accept(int fd, const struct tls_context *context, int64_t deadline, const char *who, TlsStream **ret_stream,
	       struct err *err);
int tls_connect(int fd, const struct tls_context *context, const char *name, int64_t deadline, const char *who,
		TlsStream **ret_stream, struct err *err);
TlsStream *tls_stream_free(TlsStream *s); /* accepts NULL; returns NULL; sends nothing to the peer */

/* Set the descriptor number, after the same socket has got another one. */
void tls_set_fd(TlsStream *s, int fd);
/* Return false if the peer sent no certificate. */
bool tls_get_peer(const TlsStream *s, struct tls_peer *ret_peer);

/* Like non-blocking recv() and send(). -1 with EAGAIN: wait until the socket is ready for tls_poll_events(), then call again.
 * tls_read() returns 0 if the peer has closed the stream. more: these bytes may be sent together with the next ones (only if
 * there are at most 64). */
ssize_t tls_read(TlsStream *s, void *buf, size_t n);
ssize_t tls_write(TlsStream *s, const void *buf, size_t n, bool more);
short tls_poll_events(const TlsStream *s); /* POLLIN or POLLOUT */
/* Return why one of the two sides has ended TLS: an errno value as above and its message in ret_text; 0: no TLS error. */
int tls_error_text(const TlsStream *s, char *ret_text, size_t size);
/* Send a close notification to the peer. Call it before the socket is closed. */
void tls_send_close_notify(TlsStream *s);

/* Begin a TLS handshake on this socket and return whether the peer responds with TLS. Certificates are not verified. */
bool tls_probe(int fd, int64_t deadline);

} // namespace tomonode
#endif
