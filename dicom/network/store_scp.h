/* Storage and verification SCP: one association on a connected socket, to its end.
 *
 * DCMTK negotiates and frames; the bytes of a data set go through an own stream straight to the descriptor that the handler
 * opened, so that a write that fails never stops the protocol: the error is latched, the rest is read and dropped, and the
 * handler decides the status that is sent. The stored file is Part 10: preamble, meta header, data set in the sender's transfer
 * syntax, bit for bit.
 *
 * Every storage class DCMTK knows is accepted, and any other class whose UID looks like private storage; for each, the sender's
 * first proposed transfer syntax that is uncompressed, RLE, JPEG or JPEG-LS is taken as it comes. Reports of storage commitment
 * are taken, too, where the handler has a place for them (dicom/network/commit.h). One association per process at
 * a time: DCMTK's settings are global.
 */
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

/* The answer to an association request. A rejection for one of the peer's names is permanent, the last one transient. */
enum scp_admission {
	SCP_ADMIT = 0,
	SCP_REJECT_CALLED,  /* called AE title not recognized */
	SCP_REJECT_CALLING, /* calling AE title not recognized */
	SCP_REJECT_BUSY,    /* too many associations: the peer may try again later */
};

/* Who asks. */
struct scp_request {
	const char *calling, *called;
	const char *host;		    /* a numeric address */
	const struct tls_peer *certificate; /* that it showed and that was verified; NULL: none */
};

struct scp_conf {
	const struct tls_context *tls; /* of a server; NULL: this port speaks plain DICOM */
	int max_pdu;		       /* 4096..131072 */
	int acse_timeout;	       /* s, > 0 */
	int dimse_timeout;	       /* s, > 0: between messages, and for each PDU from its first byte to its last */
};

struct scp_object {
	char sop_class[DICOM_UID_SIZE];
	char sop_instance[DICOM_UID_SIZE];
	char transfer_syntax[DICOM_UID_SIZE];
	char calling[17], host[64];
};

struct scp_handler {
	void *ctx;
	/* May this peer speak to us? When not, the reason goes to why (for the log). */
	enum scp_admission (*admit)(void *ctx, const struct scp_request *request, char *why, size_t why_size);
	/* An object comes: give a descriptor for its Part 10 file, or -1 to refuse (then *ret_status is sent after the data are
	 * dropped, and neither data nor end is called). */
	int (*begin)(void *ctx, const struct scp_object *object, uint16_t *ret_status);
	/* Every chunk written, in order (for a running digest of the data set; the meta header is not in it). 0, or an errno to
	 * go on as if this write had failed. Called in another thread than the others, but only between begin and end. */
	int (*data)(void *ctx, const void *bytes, size_t n);
	/* All bytes are there (write_error 0), or a write failed (errno), or the data set is empty (EBADMSG), or the peer went
	 * away (ECONNRESET): close the descriptor, make it durable or discard it, and answer the status to send. bytes: of the
	 * file. The response goes out after this returns. */
	uint16_t (*end)(void *ctx, const struct scp_object *object, uint64_t bytes, int write_error);
	/* Takes reports of storage commitment that the peer brings on an association of its own; NULL: not wanted. */
	const struct commit_handler *commit;
	/* The association is over: released (true) or aborted/cut/timed out (false). Not called when it was not admitted. */
	void (*ended)(void *ctx, bool released);
};

/* Takes `fd` over. 0: ended in order; negative: what went wrong (an abort by the peer is ECONNRESET, a timeout ETIMEDOUT, a
 * refused peer EACCES, one for whom there is no room now EBUSY, a connection that ended before it said anything ENODATA,
 * something else than DICOM EPROTO, TLS where it is not or not as it should be EPROTONOSUPPORT, a certificate that is refused
 * EKEYREJECTED). */
int scp_associate(int fd, const struct scp_conf *conf, const struct scp_handler *handler, struct err *err);

#ifdef __cplusplus
}
#endif
#endif
