/* SPDX-License-Identifier: Apache-2.0 */
/* Common parts of the storage SCP and SCU below DIMSE: the TCP connection, DCMTK's global settings, error codes and messages.
 * Private to dicom/ (C++).
 *
 * This class replaces DCMTK's own connection class, to correct these deficiencies:
 * - Nagle's algorithm is on by default and delays each message by 40 ms: TCP_NODELAY is always set, and a pending ACK is sent
 *   after each read, so that a peer with Nagle's algorithm does not wait for it either. A PDU's 12-byte head is sent with its
 *   data (MSG_MORE).
 * - The body of a PDU is read with blocking calls, so a peer that sends a byte now and then can hold the association for ever:
 *   here a PDU, once begun, must be complete within `timeout`.
 * - When a deadline has just passed, DCMTK calls poll() with a negative time, which means for ever: here the wait ends at once.
 * - TLS is a stream between this class and the socket (tls.hh); a peer that answers plain DICOM with TLS is detected.
 * - If a PDV length exceeds its PDU, DCMTK reads beyond its buffer: these lengths are checked as the bytes are received.
 * - DCMTK keeps a command of any length in memory: one longer than association_command_max is malformed. */
#ifndef TOMONODE_DICOM_ASSOCIATION_HH
#define TOMONODE_DICOM_ASSOCIATION_HH

#include <cstddef>
#include <cstdint>

#include "kernels/err.h"

struct T_ASC_Network;
class OFCondition;

namespace tomonode
{

struct TlsStream;

/* Implementation class UID in associations and file meta headers. */
constexpr char implementation_class_uid[] = "2.25.49244811257506316241709766226311810009", implementation_version[] = "TOMONODE";

constexpr size_t association_read_ahead = 16384;
constexpr uint64_t association_command_max = 1u << 20; /* bytes; a command of PS3.7 has a few hundred */

/* The local state of the connection. It outlives DCMTK's connection object, so that the cause of an end can be read
 * afterwards. */
struct AssociationIo {
	int fd = -1;		    /* owned by DCMTK's connection object; -1 when closed */
	int handed = -1;	    /* a connection to use in place of the next one that DCMTK opens; owned until then */
	TlsStream *tls = nullptr;   /* borrowed, after the handshake; NULL: no TLS */
	int timeout = 30;	    /* s: limit for a PDU from its first byte to its last, and for a write */
	int64_t close_deadline = 0; /* if not 0: monotonic ms at which every wait ends */
	bool timed_out = false;
	int error = 0; /* errno of the last failed read or write */
	const char *malformed = nullptr;
	bool received_any = false; /* a byte has been received */
	bool wants_tls = false;	   /* the bytes received are TLS */

	/* State of the parser of the stream of PDUs. */
	uint8_t head[6];
	unsigned head_have = 0; /* bytes received of the 6-byte head */
	uint64_t body_left = 0;
	bool is_data = false; /* the PDU is a P-DATA-TF */
	uint8_t pdv[6];	      /* length, context, control (PS3.8 9.3.5.1) */
	unsigned pdv_have = 0;
	uint64_t pdv_left = 0;
	uint64_t command = 0;	   /* bytes received of the current command */
	int64_t deadline = 0;	   /* for the current PDU, monotonic ms */
	int64_t last_read_end = 0; /* end of the last read, monotonic ms: the peer is not charged for time spent outside reads */

	uint8_t read_ahead[association_read_ahead];
	size_t read_ahead_at = 0, read_ahead_n = 0;
};

/* Set DCMTK's globals: no reverse look-up of names, finite timeouts (s). */
void association_settings(int connect_timeout, int io_timeout);

/* Create a network whose connections use `io` (borrowed; one connection at a time). acceptor: if dcmExternalSocketHandle is set
 * before, no listening socket is created. */
int association_network(bool acceptor, int acse_timeout, AssociationIo *io, struct T_ASC_Network **ret_net, struct err *err);

/* Write whole PDUs without DCMTK, which writes one at a time; only between DCMTK's own messages. Errors as in
 * association_fail(). */
int association_write(AssociationIo *io, const void *bytes, size_t n, const char *what, struct err *err);

/* Limit the time to end the association to `seconds` from now. */
void association_close_within(AssociationIo *io, int seconds);

/* Return the errno value, and set the message, for a DCMTK condition: timeout, abort, closed connection, protocol. `what`: the
 * action that failed. */
int association_fail(struct err *err, const AssociationIo *io, const OFCondition &cond, const char *what);

/* Check a UID's characters and length (PS3.5 9.1), or an AE title (PS3.5 6.2, 1..16 characters, not all blanks). */
bool association_uid_ok(const char *uid);
bool association_aet_ok(const char *aet);

/* ts: a transfer syntax. Is it uncompressed, so that the peer may be offered the default transfer syntax too? */
bool association_uncompressed(const char *ts);
/* Can objects with this transfer syntax be stored as received? */
bool association_storable(const char *ts);

} // namespace tomonode
#endif
