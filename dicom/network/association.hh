/* SPDX-License-Identifier: Apache-2.0 */
/* The layer between TCP and DIMSE, for the storage SCP and SCU: the connection, DCMTK's global settings, error codes and
 * messages. Private to dicom/ (C++).
 *
 * association.cc replaces DCMTK's connection class, because that has these deficiencies:
 * - Nagle's algorithm is on by default and delays each message by 40 ms. Here TCP_NODELAY is always set, and a pending ACK is
 * sent before each wait, so that a peer with Nagle's algorithm does not wait for it. The 12-byte header of a PDU is sent together
 *   with its data (MSG_MORE).
 * - DCMTK reads the body of a PDU with blocking calls, so a peer that sends a byte now and then can occupy an association for
 *   ever. Here a PDU must be complete within `timeout` after its first byte.
 * - When a deadline has just passed, DCMTK calls poll() with a negative time, which means for ever. Here the wait ends at once.
 * - TLS is a stream between the connection and the socket (tls.hh). If a peer responds to plain DICOM with TLS, this is reported.
 * - If the length of a PDV exceeds its PDU, DCMTK reads beyond its buffer. Here these lengths are checked when they are received.
 * - DCMTK keeps a command of any length in memory. Here a command longer than association_command_max is malformed. */
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

/* Implementation class UID and version name in associations and file meta headers. */
constexpr char implementation_class_uid[] = "2.25.49244811257506316241709766226311810009", implementation_version[] = "TOMONODE";

constexpr size_t association_read_ahead = 16384;       /* bytes */
constexpr uint64_t association_command_max = 1u << 20; /* bytes; a command of PS3.7 has a few hundred */

/* The state of a connection. It exists longer than DCMTK's connection object, so that the cause of a failure can be reported
 * after DCMTK has closed the connection. */
struct AssociationIo {
	int fd = -1;		  /* owned by DCMTK's connection object; -1 when closed */
	int connected = -1;	  /* a connected socket that replaces the next one that DCMTK opens; owned until then; -1: none */
	TlsStream *tls = nullptr; /* borrowed, after the handshake; NULL: no TLS */
	int timeout = 30;	  /* s: limit for a PDU from its first byte to its last, and for a write */
	int64_t close_deadline = 0;	 /* monotonic ms at which every wait ends; 0: no such limit */
	bool timed_out = false;		 /* a read exceeded its time limit */
	bool write_timed_out = false;	 /* a write did */
	bool peer_aborted = false;	 /* the header of an A-ABORT was received */
	int error = 0;			 /* errno of the last failed read or write */
	const char *malformed = nullptr; /* what is wrong with the received bytes; NULL: nothing */
	bool received_any = false;	 /* a byte has been received */
	bool peer_uses_tls = false;	 /* the first bytes received are a TLS record, on a connection without TLS */

	/* State of the parser of the stream of PDUs. */
	uint8_t head[6];	    /* header of the PDU */
	unsigned head_received = 0; /* bytes received of it */
	int first_pdu = -1;	    /* type of the first PDU that was received; -1: none */
	uint64_t body_left = 0;	    /* bytes of the PDU not yet received */
	bool is_data = false;	    /* the PDU is a P-DATA-TF */
	uint8_t pdv[6];		    /* header of a PDV: length, context, control (PS3.8 9.3.5.1) */
	unsigned pdv_received = 0;  /* bytes received of it */
	uint64_t pdv_left = 0;	    /* bytes of the PDV not yet received */
	uint64_t command_bytes = 0; /* bytes received of the current command */
	int64_t deadline = 0;	    /* of the current PDU, monotonic ms */
	int64_t last_read_end = 0;  /* end of the last read, monotonic ms; time between reads does not count against the peer */

	/* Bytes that were received but not yet requested by DCMTK. */
	uint8_t read_ahead[association_read_ahead];
	size_t read_ahead_at = 0, read_ahead_n = 0; /* position of the next one, and their number */
};

/* Set DCMTK's globals: no reverse look-up of names, finite timeouts (s). */
void association_settings(int connect_timeout, int io_timeout);

/* Create a DCMTK network whose connections use `io` (borrowed; one connection at a time). acceptor: for the accepting side; if
 * dcmExternalSocketHandle is set before, no listening socket is created. acse_timeout: s. */
int association_network(bool acceptor, int acse_timeout, AssociationIo *io, struct T_ASC_Network **ret_net, struct err *err);

/* Write several whole PDUs at once, without DCMTK, which writes one at a time. Call it only between two messages of DCMTK. `what`
 * and errors: as for association_fail(). */
int association_write(AssociationIo *io, const void *bytes, size_t n, const char *what, struct err *err);

/* Limit the duration of all further reads and writes: they end after `seconds` from now. */
void association_close_within(AssociationIo *io, int seconds);

/* Set the error for a DCMTK condition, using the state of the connection. Return it as a negative errno value: ETIMEDOUT;
 * ECONNRESET: aborted or closed; EPROTO, EPROTONOSUPPORT, or that of TLS or of the socket. `what`: peer or action, first word of
 * the message. */
int association_fail(struct err *err, const AssociationIo *io, const OFCondition &cond, const char *what);

/* Return whether characters and length are valid: of a UID (PS3.5 9.1; leading zeros are accepted), of an AE title (PS3.5 6.2; 1
 * to 16 characters, not all blanks). */
bool association_uid_ok(const char *uid);
bool association_aet_ok(const char *aet);

/* ts: UID of a transfer syntax. Is it uncompressed? */
bool association_uncompressed(const char *ts);
/* Does the storage SCP accept objects in this transfer syntax? */
bool association_storable(const char *ts);

} // namespace tomonode
#endif
