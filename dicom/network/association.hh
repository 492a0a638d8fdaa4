/* What the storage SCP and SCU share below DIMSE: the TCP connection, DCMTK's global settings, names for what went wrong.
 * Private to dicom/ (C++).
 *
 * DCMTK's own connection class leaves holes that this one closes:
 * - Nagle's algorithm is on by default and costs 40 ms a message: TCP_NODELAY always, and a pending ACK is pushed out after
 *   each read, so that a peer with Nagle does not wait for it either. A PDU's 12-byte head travels with its data (MSG_MORE).
 * - The body of a PDU is read with blocking calls, so that a peer that sends a byte now and then holds the association for ever:
 *   here a PDU that has begun must be complete within `timeout`.
 * - A poll() with a negative time, which means for ever, follows when a deadline has just passed: here it means now.
 * - TLS is a stream between these and the socket (tls.hh); a peer that answers plain DICOM with TLS is recognized.
 * - PDV lengths that leave their PDU make DCMTK read beyond its buffer: they are checked while the bytes pass.
 * - DCMTK keeps a command in memory whatever its length: one beyond ASSOCIATION_COMMAND_MAX is malformed.
 */
#ifndef TOMONODE_DICOM_ASSOCIATION_HH
#define TOMONODE_DICOM_ASSOCIATION_HH

#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"

struct T_ASC_Network;
struct tls_stream;
class OFCondition;

/* "Who implemented this", in associations and file meta headers. */
#define IMPLEMENTATION_CLASS_UID "2.25.49244811257506316241709766226311810009"
#define IMPLEMENTATION_VERSION "TOMONODE"

#define ASSOCIATION_READ_AHEAD 16384
#define ASSOCIATION_COMMAND_MAX (1u << 20) /* bytes; commands of PS3.7 have a few hundred */

/* Our side of the connection. It outlives DCMTK's connection object, so that the reason for an end can be read afterwards. */
struct association_io {
	int fd = -1;			  /* owned by DCMTK's connection object; -1 when closed */
	int handed = -1;		  /* a connection to be used instead of the one that DCMTK makes next; owned until then */
	struct tls_stream *tls = nullptr; /* borrowed; the handshake is done. NULL: plain */
	int timeout = 30;		  /* s a PDU may take from its first byte to its last, and a write may wait */
	int64_t closing = 0;		  /* when not 0: monotonic ms after which nothing is waited for any more */
	bool timed_out = false;
	int error = 0; /* errno of the last read or write that failed */
	const char *malformed = nullptr;
	bool received_any = false; /* a byte of DICOM or of something else came */
	bool wants_tls = false;	   /* ... and it was TLS */

	/* Where we are in the stream of PDUs. */
	uint8_t head[6];
	unsigned head_have = 0; /* bytes of the 6-byte head */
	uint64_t body_left = 0;
	bool is_data = false; /* P-DATA-TF */
	uint8_t pdv[6];	      /* length, context, control (PS3.8 9.3.5.1) */
	unsigned pdv_have = 0;
	uint64_t pdv_left = 0;
	uint64_t command = 0; /* bytes of the command under way */
	int64_t deadline = 0; /* of the PDU under way */
	int64_t left_at = 0;  /* when the last read ended: the time that we spend elsewhere is not the peer's */

	uint8_t ahead[ASSOCIATION_READ_AHEAD];
	size_t ahead_at = 0, ahead_n = 0;
};

/* DCMTK's globals: no reverse look-up of names, finite timeouts (s). */
void association_settings(int connect_timeout, int io_timeout);

/* A network whose connections go through `io` (borrowed; one connection at a time). acceptor: no listening socket is made when
 * dcmExternalSocketHandle is set before. */
int association_network(bool acceptor, int acse_timeout, struct association_io *io, struct T_ASC_Network **ret_net,
			struct err *err);

/* Whole PDUs past DCMTK, which writes one at a time; between messages of its own. An error as from association_fail(). */
int association_write(struct association_io *io, const void *bytes, size_t n, const char *what, struct err *err);

/* At most `seconds` from now are spent on saying goodbye. */
void association_close_within(struct association_io *io, int seconds);

/* The errno and sentence for a condition: timeout, abort, cut, protocol. `what` says what was being done. */
int association_fail(struct err *err, const struct association_io *io, const OFCondition &cond, const char *what);

/* Does the UID have legal characters and length (PS3.5 9.1)? Is the AE title one (PS3.5 6.2, 1..16 characters,
 * not all blanks)? */
bool association_uid_ok(const char *uid);
bool association_aet_ok(const char *aet);

/* ts: a transfer syntax. Uncompressed: the peer may be offered the default transfer syntax instead. */
bool association_uncompressed(const char *ts);
/* A transfer syntax whose objects can be kept as they come. */
bool association_storable(const char *ts);

#endif
