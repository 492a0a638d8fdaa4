/* Storage and verification SCU: one association to a peer, contexts built from what is to be sent. */
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
	const char *called, *calling; /* AE titles */
	int max_pdu;
	int connect_timeout, acse_timeout, dimse_timeout; /* s, > 0 */
	bool use_tls;					  /* else plain DICOM, and the rest says nothing */
	struct tls_conf tls;
	const char *tls_name; /* that its certificate must be for; "" or NULL: any, as long as its authority is known */
};

struct scu_context {
	char sop_class[DICOM_UID_SIZE];
	char transfer_syntax[DICOM_UID_SIZE];
};

struct scu;

/* Connects and negotiates; contexts: what will be sent (duplicates are merged, at most 128 remain; Verification is always added).
 * The sentence tells apart:
 *   EHOSTUNREACH, ECONNREFUSED, ...  the name is not known, or nobody answers there
 *   ETIMEDOUT, ECONNRESET            it did not answer in time, or it ended the connection
 *   EBUSY                            the association was rejected for now
 *   EACCES                           the association was rejected for good: AE titles
 *   EKEYREJECTED                     one of the two does not accept the other's certificate
 *   ENOKEY                           our own certificate, key or authorities cannot be used
 *   EPROTONOSUPPORT                  one speaks TLS and the other does not, or they have no version or cipher in common
 *   ENOTSUP                          none of the contexts was accepted
 * The last five last until somebody changes something there or here. */
int scu_open(const struct scu_peer *peer, const struct scu_context *contexts, size_t n, struct scu **ret_scu, struct err *err);
int scu_echo(struct scu *scu, struct err *err);

/* Sends one Part 10 file, streamed: as it lies there; or, where the peer does not take that, an uncompressed one in Implicit VR
 * Little Endian, one of JPEG-LS lossless decoded. 0 with *ret_status set when the peer answered (whatever it answered);
 * ENOTSUP: the peer took no context for its class or transfer syntax; other errors: the association is gone. */
int scu_store(struct scu *scu, const char *path, uint16_t *ret_status, struct err *err);
struct scu *scu_close(struct scu *scu); /* release; takes NULL, returns NULL */

#ifdef __cplusplus
}
#endif
#endif
