/* SPDX-License-Identifier: Apache-2.0 */
/* Storage and verification SCP: serve one association on a connected socket until it ends.
 *
 * DCMTK negotiates and parses messages. The bytes of a data set are written by a separate stream to the descriptor that the
 * handler opened, so a failed write never stops the protocol: the first error is stored, the rest of the data is read and
 * dropped, and the handler decides which status is sent. The stored file is Part 10: preamble, meta header, data set in the
 * sender's transfer syntax, bit for bit.
 *
 * Accepted are every storage class that DCMTK knows and any other class whose UID looks like private storage; for each, the
 * sender's first proposed transfer syntax that is uncompressed, RLE, JPEG or JPEG-LS, without conversion. Reports of storage
 * commitment are accepted too if the handler has a function for them (dicom/network/commit.h). One association per process at a
 * time, because DCMTK's settings are global. */
#ifndef TOMONODE_DICOM_STORE_SCP_H
#define TOMONODE_DICOM_STORE_SCP_H

#include "dicom/network/commit.h"
#include "dicom/network/tls.h"

#ifdef __cplusplus
extern "C" {
#endif

/* DIMSE status values of a C-STORE response, PS3.4 table B.2-1. */
enum store_status {
	STORE_SUCCESS = 0x0000,
	STORE_CLASS_NOT_SUPPORTED = 0x0122,
	STORE_INVALID_INSTANCE = 0x0117,
	STORE_OUT_OF_RESOURCES = 0xA700,
	STORE_CLASS_MISMATCH = 0xA900,
	STORE_CANNOT_UNDERSTAND = 0xC000,
};

/* The decision on an association request. A rejection because of one of the peer's names is permanent, the last one transient. */
enum scp_admission {
	SCP_ADMIT = 0,
	SCP_REJECT_CALLED,  /* called AE title not recognized */
	SCP_REJECT_CALLING, /* calling AE title not recognized */
	SCP_REJECT_BUSY,    /* too many associations: the peer may try again later */
};

/* The requesting peer. */
struct scp_request {
	const char *calling, *called;
	const char *host;		    /* numeric address */
	const struct tls_peer *certificate; /* the certificate that it presented and that was verified; NULL: none */
};

struct scp_conf {
	const struct tls_context *tls; /* of the server; NULL: this port uses plain DICOM */
	int max_pdu;		       /* 4096..131072 */
	int acse_timeout;	       /* s, > 0 */
	int dimse_timeout;	       /* s, > 0: limit between messages, and for each PDU from its first byte to its last */
};

struct scp_object {
	char sop_class[DICOM_UID_SIZE];
	char sop_instance[DICOM_UID_SIZE];
	char transfer_syntax[DICOM_UID_SIZE];
	char calling[17], host[64];
};

struct scp_handler {
	void *ctx;
	/* Decide whether to admit this peer. If not, write the reason to `why` (for the log). */
	enum scp_admission (*admit)(void *ctx, const struct scp_request *request, char *why, size_t why_size);
	/* Called for each object: return a descriptor for its Part 10 file, or -1 to refuse it (the data are then dropped,
	 * *ret_status is sent, and neither data nor end is called). */
	int (*begin)(void *ctx, const struct scp_object *object, uint16_t *ret_status);
	/* Called for every chunk written, in order (for a running digest of the data set; the meta header is not included).
	 * Return 0, or an errno value to continue as if this write had failed. Called in another thread than the others, but only
	 * between begin and end. */
	int (*data)(void *ctx, const void *bytes, size_t n);
	/* Called at the end of an object. write_error: 0: all bytes are written; errno value: a write failed; EBADMSG: the data
	 * set is empty; ECONNRESET: the peer has disconnected. Close the descriptor, make the file durable or discard it, and
	 * return the status to send. bytes: size of the file. The response is sent after this function returns. */
	uint16_t (*end)(void *ctx, const struct scp_object *object, uint64_t bytes, int write_error);
	/* Handles reports of storage commitment that the peer sends on its own association; NULL: refuse them. */
	const struct commit_handler *commit;
	/* Called at the end of an admitted association: released (true) or aborted, cut or timed out (false). */
	void (*ended)(void *ctx, bool released);
};

/* Serve an association; takes ownership of `fd`. Return 0: ended normally; negative: ECONNRESET: the peer aborted; ETIMEDOUT:
 * timeout; EACCES: peer refused; EBUSY: refused for now because there is no room; ENODATA: the connection ended before any byte
 * was received; EPROTO: not DICOM; EPROTONOSUPPORT: TLS on a plain port, or no or unsuitable TLS on a TLS port; EKEYREJECTED: a
 * certificate was refused. */
int scp_associate(int fd, const struct scp_conf *conf, const struct scp_handler *handler, struct err *err);

#ifdef __cplusplus
}
#endif
#endif
