/* The stream within an established TLS connection. Nothing here blocks but the handshake, and that not beyond its deadline.
 * Private to dicom/ (C++). */
#ifndef TOMONODE_DICOM_TLS_HH
#define TOMONODE_DICOM_TLS_HH

#include <stdint.h>
#include <sys/types.h>

#include "dicom/network/tls.h"

struct tls_stream;

/* The handshake on a connected socket (borrowed), until `deadline` (monotonic ms, deadline_now()). `who` begins each sentence.
 * EPROTONOSUPPORT: no TLS there, or none that both can; EKEYREJECTED: somebody's certificate is refused; ETIMEDOUT, ECONNRESET.
 * name: what the server's certificate must be issued for, NULL: any; a host name or an address. */
int tls_accept(int fd, const struct tls_context *context, int64_t deadline, const char *who, struct tls_stream **ret_stream,
	       struct err *err);
int tls_connect(int fd, const struct tls_context *context, const char *name, int64_t deadline, const char *who,
		struct tls_stream **ret_stream, struct err *err);
struct tls_stream *tls_stream_free(struct tls_stream *s); /* takes NULL, returns NULL; says nothing to the peer */

/* Another number for the same socket. */
void tls_move(struct tls_stream *s, int fd);
/* false: it showed no certificate. */
bool tls_peer_of(const struct tls_stream *s, struct tls_peer *ret_peer);

/* As recv() and send() without waiting: -1 with EAGAIN: wait for tls_wants(); 0 of tls_read: the peer closed. more: these few
 * bytes (at most 64) can wait for the next ones. */
ssize_t tls_read(struct tls_stream *s, void *buf, size_t n);
ssize_t tls_write(struct tls_stream *s, const void *buf, size_t n, bool more);
short tls_wants(const struct tls_stream *s); /* POLLIN or POLLOUT */
/* What the peer's TLS, or ours, objects to: 0, or a code as above with its words. */
int tls_objection(const struct tls_stream *s, char *ret_words, size_t size);
/* Tell the peer that nothing more comes; the socket can be closed then. */
void tls_goodbye(struct tls_stream *s);

/* Does it answer a TLS handshake on this socket? Verifies nothing. */
bool tls_probe(int fd, int64_t deadline);

#endif
