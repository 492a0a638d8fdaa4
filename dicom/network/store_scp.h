/* SPDX-License-Identifier: Apache-2.0 */
/* Storage and verification SCP: serve one association on a connected socket until it ends.
 *
 * DCMTK negotiates the association and parses messages. The bytes of a data set are written to a descriptor that the handler has
 * opened. A failed write does not stop the association: the first error is stored, the rest of the data is received and dropped,
 * and the handler decides which status is sent. The file is Part 10: preamble, meta header, and the data set in the sender's
 * transfer syntax, unchanged.
 *
 * Every class for which dicom_is_storage_class() is true is accepted, with the first proposed transfer syntax that is
 * uncompressed, RLE, JPEG or JPEG-LS. Nothing is converted. Reports of storage commitment are accepted if the handler has a
 * function for them (dicom/network/commit.h). A process can serve only one association at a time, because DCMTK's settings are
 * global. */
#ifndef TOMONODE_DICOM_STORE_SCP_H
#define TOMONODE_DICOM_STORE_SCP_H

#include "dicom/network/commit.h"
#include "dicom/network/tls.h"

#ifdef __cplusplus
extern "C" {
#endif

/* DIMSE status values of a C-STORE response, PS3.4 table B.2-1. */
enum store_status {
	STORE_SUCCESS = 0x0000,		    /* the object is stored durably */
	STORE_CLASS_NOT_SUPPORTED = 0x0122, /* the SOP class is not that of the presentation context */
	STORE_INVALID_INSTANCE = 0x0117,    /* the SOP Instance UID is not a valid UID */
	STORE_OUT_OF_RESOURCES = 0xA700,    /* no space or a write error: the sender may try again */
	STORE_CLASS_MISMATCH = 0xA900,	    /* the data set does not match the SOP class */
	STORE_CANNOT_UNDERSTAND = 0xC000,   /* the data set cannot be used */
};

/* The decision on an association request. A rejection because of an AE title is permanent, SCP_REJECT_BUSY is transient. */
enum scp_admission {
	SCP_ADMIT = 0,
	SCP_REJECT_CALLED,  /* called AE title not recognized */
	SCP_REJECT_CALLING, /* calling AE title not recognized */
	SCP_REJECT_BUSY,    /* too many associations: the peer may try again later */
};

/* An association request. */
struct scp_request {
	const char *calling, *called;	    /* AE titles: of the peer, and the one that it uses for this node */
	const char *host;		    /* numeric address of the peer */
	const struct tls_peer *certificate; /* the peer's verified certificate; NULL: none */
};

struct scp_conf {
	const struct tls_context *tls; /* server context; NULL: this port uses plain DICOM */
	const char *host;	       /* numeric address of the peer; it may have closed the connection already */
	int max_pdu;		       /* largest PDU received, bytes: 4096..131072 */
	int acse_timeout;	       /* s, > 0 */
	int dimse_timeout;	       /* s, > 0: limit between messages, and for each PDU from its first byte to its last */
};

/* An object that is being received. */
struct scp_object {
	char sop_class[DICOM_UID_SIZE];
	char sop_instance[DICOM_UID_SIZE];
	char transfer_syntax[DICOM_UID_SIZE];
	char calling[17], host[64]; /* AE title and numeric address of the sender */
};

struct scp_handler {
	void *ctx;
	/* Decide whether to admit this peer. If not, write the reason to `why` (for the log). */
	enum scp_admission (*admit)(void *ctx, const struct scp_request *request, char *why, size_t why_size);
	/* Called once for an admitted association that proposed n > 0 classes of which no presentation context was accepted.
	 * which: classes, transfer syntaxes and reasons. NULL: not needed. */
	void (*contexts_refused)(void *ctx, unsigned n, const char *which);
	/* Called for an object that was refused because of its UIDs, before begin() would be. NULL: not needed. */
	void (*refused)(void *ctx, const struct scp_object *object, uint16_t status, const char *why);
	/* Called for each other object. Return a descriptor to which its Part 10 file is written, or -1 to refuse the object:
	 * then its data are dropped, *ret_status is sent, and data() and end() are not called for it. */
	int (*begin)(void *ctx, const struct scp_object *object, uint16_t *ret_status);
	/* Called with each written chunk of the data set, in order, for example to compute a digest; without the meta header.
	 * Return 0, or an errno value, which is treated as a failed write. Called in another thread than the other functions, but
	 * only between begin() and end(). */
	int (*data)(void *ctx, const void *bytes, size_t n);
	/* Called at the end of an object that begin() has not refused. bytes: size of the file. write_error: 0: all bytes are
	 * written; EBADMSG: the data set is empty; ECONNRESET: the peer has disconnected; other errno value: a write failed.
	 * Close the descriptor, make the file durable or discard it, and return the status for the response, which is sent next.
	 */
	uint16_t (*end)(void *ctx, const struct scp_object *object, uint64_t bytes, int write_error);
	/* Called after the response to each C-ECHO; NULL: not needed. */
	void (*echoed)(void *ctx);
	/* Handles reports of storage commitment that the peer sends on this association; NULL: refuse them. */
	const struct commit_handler *commit;
	/* Called at the end of an admitted association. released: true if the peer released it; false after an abort, a lost
	 * connection or a timeout. */
	void (*ended)(void *ctx, bool released);
};

/* Serve an association until it ends. Takes ownership of `fd`, a connected socket. Return 0 if the peer released the association.
 * Errors: ECONNRESET: the peer aborted; ETIMEDOUT; EACCES: the peer was rejected; EBUSY: it was rejected for now, because there
 * are too many associations; ENODATA: the connection ended before a byte was received; EPROTO: not DICOM; EPROTONOSUPPORT: TLS on
 * a plain port, or plain DICOM or unsuitable TLS on a TLS port; EKEYREJECTED: a certificate was refused. */
int scp_associate(int fd, const struct scp_conf *conf, const struct scp_handler *handler, struct err *err);

#ifdef __cplusplus
}
#endif
#endif
