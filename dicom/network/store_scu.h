/* SPDX-License-Identifier: Apache-2.0 */
/* Storage and verification SCU: open one association to a peer, with contexts for the objects to send. */
#ifndef TOMONODE_DICOM_STORE_SCU_H
#define TOMONODE_DICOM_STORE_SCU_H

#include "dicom/core/dataset.h"
#include "dicom/network/tls.h"

#ifdef __cplusplus
extern "C" {
#endif

struct scu_peer {
	const char *host; /* name, IPv4 or IPv6 address */
	int port;
	const char *called, *calling;			  /* AE titles: of the peer, and of this node */
	int max_pdu;					  /* largest PDU received, bytes: 4096..131072 */
	int connect_timeout, acse_timeout, dimse_timeout; /* s, > 0 */
	bool use_tls;					  /* false: plain DICOM, and the following members are ignored */
	struct tls_conf tls;
	const char *tls_name; /* name that must be in the peer's certificate; "" or NULL: the name is not checked */
};

/* SOP class and transfer syntax of an object to send. */
struct scu_context {
	char sop_class[DICOM_UID_SIZE];
	char transfer_syntax[DICOM_UID_SIZE];
};

struct scu;

/* Connect and negotiate an association. contexts: those of the objects to send. Verification and the transfer syntaxes to which
 * objects can be converted are added, and duplicates are removed; at most 128 contexts are proposed. Errors:
 *   EHOSTUNREACH, ECONNREFUSED, ...  the name cannot be resolved, or no server is listening
 *   ETIMEDOUT, ECONNRESET            the peer did not respond in time, or it closed the connection
 *   ECONNABORTED                     the peer answered the request with an abort, which gives no reason
 *   EBUSY                            the association was rejected for now
 *   EACCES                           the association was rejected permanently, for example because of an AE title
 *   EKEYREJECTED                     one side does not accept the other's certificate
 *   ENOKEY                           the local certificate, key or authorities cannot be used
 *   EPROTONOSUPPORT                  only one side uses TLS, or they have no version or cipher in common
 *   ENOTSUP                          none of the contexts was accepted
 * The last five persist until the configuration of one side changes. */
int scu_open(const struct scu_peer *peer, const struct scu_context *contexts, size_t n, struct scu **ret_scu, struct err *err);
/* Return true if scu_store() can send an object of this class and transfer syntax, as it is or converted. */
bool scu_accepts(const struct scu *scu, const struct scu_context *object);

/* Send a C-ECHO and wait for the response. EPROTO: its status is not success. */
int scu_echo(struct scu *scu, struct err *err);

/* Send one Part 10 file, unchanged. If the peer does not accept its transfer syntax, a file in an uncompressed one is converted
 * to Implicit VR Little Endian, and one in JPEG-LS lossless is decoded. Return 0 if the peer has responded, with any status,
 * which is in *ret_status. ENOTSUP: the peer accepted no context for the file's class and transfer syntax; after other errors the
 * association is unusable. */
int scu_store(struct scu *scu, const char *path, uint16_t *ret_status, struct err *err);
/* Return the Error Comment (0000,0902) of the last response to scu_store(), in printable ASCII; "": it has none. */
const char *scu_comment(const struct scu *scu);
struct scu *scu_close(struct scu *scu); /* release the association; accepts NULL; returns NULL */

#ifdef __cplusplus
}
#endif
#endif
