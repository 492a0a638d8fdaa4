/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between the node and a pilot, as bytes. Pure functions.
 *
 * - A frame is its length as four bytes (most significant first), its kind as two, and so many bytes of payload. The payload of
 *   WIRE_DATA is bytes of a file; that of all others is a JSON object.
 * - A message has exactly the fields of its kind; a text that is too long, a number out of range, an unknown field and nesting
 *   deeper than WIRE_DEPTH are errors. Of a HELLO of another WIRE_VERSION only `wire` and `version` are read, to be able to
 *refuse it with the reason.
 *
 *	pilot                                        node
 *	                                             TOKEN (only with certificates: who are you?)
 *	TOKEN (identity and proof, node/cluster/token.h)
 *	HELLO (what it is; a case that it still has)
 *	                                             WELCOME, or REFUSED (text: why) and the connection ends
 *	                                             CASE (also for one that the pilot has: it then continues)
 *	HAVE (bytes of each file that it has)
 *	                                             FILE, DATA ... for each file that is not complete
 *	PROGRESS ...
 *	OUTCOME
 *	                                             HAVE (bytes of each object that it has)
 *	FILE, DATA ... for each object
 *	                                             ACK (the result is safe: the pilot removes all files of the case)
 *
 * CANCEL: the node no longer wants the case; the pilot stops, removes its files and sends OUTCOME with ECANCELED. END of the
 * node: no more cases, end; of a pilot: it ends (text: why), and its case is not computed any more. PING, PONG: signs of life,
 *while nothing else is sent. With a shared spool neither files nor objects are sent.
 */
#ifndef TOMONODE_NODE_WIRE_H
#define TOMONODE_NODE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "kernels/err.h"

#define WIRE_VERSION 2
#define WIRE_HEAD 6		     /* bytes in front of a payload */
#define WIRE_DATA_MAX (1u << 20)     /* bytes of a file in a frame */
#define WIRE_CONTROL_MAX (64u << 10) /* bytes of a message, but of CASE, HAVE and OUTCOME */
#define WIRE_CASE_MAX (16u << 20)
#define WIRE_FILES_MAX 65536 /* files of a case, or objects of a result */
#define WIRE_DEPTH 16

enum wire_kind {
	WIRE_HELLO = 1,
	WIRE_WELCOME,
	WIRE_REFUSED,
	WIRE_CASE,
	WIRE_HAVE,
	WIRE_FILE,
	WIRE_DATA,
	WIRE_PROGRESS,
	WIRE_OUTCOME,
	WIRE_ACK,
	WIRE_CANCEL,
	WIRE_PING,
	WIRE_PONG,
	WIRE_END,
	WIRE_TOKEN,
	WIRE_KINDS /* one more than the last */
};

/* Which fields a kind has: wire_fields[] in wire.c. */
struct wire_message {
	enum wire_kind kind;
	int64_t wire;	       /* HELLO: WIRE_VERSION of the sender */
	char version[160];     /* HELLO: of its program, with the revision */
	char name[64];	       /* HELLO: of the pilot, for messages: its machine's unless given */
	char instance[33];     /* HELLO: of this process, random */
	char device[96];       /* HELLO: its device, opened and tested */
	char batch[32];	       /* HELLO: number of its job in Slurm; "": none */
	int64_t memory;	       /* HELLO: of the device, bytes; 0: unknown */
	int64_t job, attempt;  /* of the case; HELLO: that the pilot still has; 0: none */
	int64_t lease;	       /* WELCOME: ms of silence after which each end drops the connection */
	bool shared;	       /* CASE: the files are in the shared spool */
	int64_t index, offset; /* FILE: which file or object the next DATA belong to, from where on */
	double fraction;       /* PROGRESS, 0 to 1 */
	int64_t code, damaged; /* OUTCOME: as in struct case_outcome; code: errno; REFUSED: EALREADY: a token above `last` is
				  accepted */
	int64_t last;	       /* REFUSED: highest number of a token that was used; 0: unknown */
	char text[500];	       /* REFUSED, OUTCOME, END: reason; PROGRESS: stage; TOKEN: identity */
	char proof[65];	       /* TOKEN: of the identity; "" as the text: the node asks for it */
	int64_t *offsets;      /* HAVE; allocated */
	size_t n_offsets;
	json_t *body; /* CASE, OUTCOME; a reference */
};

/* Largest payload of a kind, bytes; 0: there is no such kind. */
size_t wire_limit(unsigned kind);
void wire_put_head(enum wire_kind kind, size_t n, uint8_t ret_head[WIRE_HEAD]);
/* EBADMSG: an unknown kind, or a payload that is too long. */
int wire_get_head(const uint8_t head[WIRE_HEAD], enum wire_kind *ret_kind, size_t *ret_n, struct err *err);

/* Encode the payload, not of WIRE_DATA. The caller frees *ret_text. */
int wire_encode(const struct wire_message *m, char **ret_text, size_t *ret_n, struct err *err);
/* Decode a payload, not of WIRE_DATA. EBADMSG. On success the caller clears *ret_message. */
int wire_decode(enum wire_kind kind, const char *text, size_t n, struct wire_message *ret_message, struct err *err);
void wire_clear(struct wire_message *m);
const char *wire_kind_name(enum wire_kind kind);

#endif
