/* SPDX-License-Identifier: Apache-2.0 */
/* A connection between node and pilot that carries messages (node/cluster/wire.h): TLS 1.3 over a socket that never blocks.
 *
 * - Both ends prove that they have the secret of the pilot's ID, by a pre-shared key (RFC 8446 2.2): the identity is "ID.N", the
 *   key is HMAC-SHA-256(secret, "ID.N"). The secret is never sent, and no certificate is needed. Each connection has new session
 *   keys (psk_dhe_ke), so that a recorded one cannot be read later.
 * - With certificates both ends verify that of the other (dicom/network/tls.h; the pilot also the name of the node), and the
 * pilot proves its token in the connection instead (node/cluster/token.h), because a handshake with a pre-shared key has no
 *   certificates.
 * - N is the number of a token. The node accepts each once, and none after one with a higher number: it records N before it
 *   sends or believes anything (pilot_token_use()). A used token is refused with that reason and the highest number that was
 *   used, so that a pilot whose clock is behind continues with the next one. Only a pilot that has proven the secret is told it.
 * - A process that uses a link ignores SIGPIPE.
 */
#ifndef TOMONODE_NODE_LINK_H
#define TOMONODE_NODE_LINK_H

#include <stddef.h>
#include <stdint.h>

#include "dicom/network/tls.h"
#include "node/cluster/wire.h"
#include "node/store/pilot_secret.h"

#define LINK_QUEUE (4u << 20) /* bytes that wait to be sent above which no more file data should be added */

/* IDs that begin so are those of `tomonode check`, which does the handshake and leaves: the node accepts and forgets it. */
#define LINK_TEST_ID "check-"

struct link;

struct link_pilot { /* who connects */
	const char *id, *secret;
	const struct tls_context *tls; /* NULL: without certificates */
};
/* The pilot's end. host: name of the node that its certificate must have. Takes over the connected socket, also on failure. */
int link_open_pilot(int fd, const struct link_pilot *pilot, uint64_t number, const char *host, struct link **ret_link,
		    struct err *err);
/* The node's end. spool: has the secrets; it must stay valid, and `tls` (NULL: without certificates). Takes over the socket, also
 * on failure. */
int link_open_node(int fd, const char *spool, const struct tls_context *tls, struct link **ret_link, struct err *err);
struct link *link_close(struct link *l); /* accepts NULL, returns NULL */

/* Continue the handshake. 1: done; 0: call again when link_events() occur; negative: failed. EALREADY, EPERM: the handshake is
 * done, but the token was used before, or the ID is blocked: send WIRE_REFUSED and close. */
int link_handshake(struct link *l, struct err *err);
/* EINVAL: it is not HOST:PORT or [ADDRESS]:PORT with a port from 1 to 65535. */
int link_check_address(const char *address, struct err *err);
/* Connect to HOST:PORT and do the handshake within `timeout` s. */
int link_dial(const char *address, const struct link_pilot *pilot, uint64_t number, double timeout, struct link **ret_link,
	      struct err *err);

/* At the node: 0 while the secret that the pilot has proven is that of its ID. EACCES: it was removed, or there is another one.
 */
int link_admitted(const struct link *l, struct err *err);

const char *link_id(const struct link *l); /* of the pilot; "": unknown before the handshake */
uint64_t link_last(const struct link *l);  /* at the node: highest number of a token of this ID before this one */
int link_fd(const struct link *l);
short link_events(const struct link *l);  /* for poll() */
double link_heard(const struct link *l);  /* clock_seconds() of the last byte received */
double link_sent(const struct link *l);	  /* clock_seconds() of the last message queued */
size_t link_queued(const struct link *l); /* bytes that wait to be sent */

/* Queue a message, or bytes of a file (at most WIRE_DATA_MAX). */
int link_send(struct link *l, const struct wire_message *m, struct err *err);
int link_send_data(struct link *l, const void *bytes, size_t n, struct err *err);
/* Send what can be sent now. ECONNRESET: the connection is lost. */
int link_flush(struct link *l, struct err *err);
/* Send all within `timeout` s. ENOTCONN: the handshake is not done. */
int link_drain(struct link *l, double timeout, struct err *err);
/* Receive a message. 1: *ret_message, which the caller clears; of WIRE_DATA only the kind is set, and the bytes are valid until
 * the next call. 0: none is complete. ECONNRESET: the connection is lost. EBADMSG: the bytes are no message. */
int link_receive(struct link *l, struct wire_message *ret_message, const void **ret_bytes, size_t *ret_n, struct err *err);

#endif
