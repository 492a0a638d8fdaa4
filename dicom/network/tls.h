/* TLS for associations, as BCP 195 (RFC 8996, RFC 9325) wants it: 1.2 and 1.3, forward secrecy, authenticated encryption, no
 * renegotiation, no resumption. Whom we trust stands in files; there is no switch that trusts everybody: the certificate of a
 * device that no authority has signed can stand among the authorities itself.
 *
 * A context is made once, before any fork, and is immutable: the handshake then runs in the association's own process.
 */
#ifndef TOMONODE_DICOM_TLS_H
#define TOMONODE_DICOM_TLS_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/err.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tls_conf {		 /* files in PEM; "" or NULL: none */
	const char *certificate; /* ours, then those between it and its authority */
	const char *key;	 /* without a password; none: it stands in `certificate` */
	const char *authorities; /* that we trust */
	const char *crl;	 /* of these: lists of what they have revoked. With it a peer's certificate counts only where its
				  * authority's list is there, in time, and does not have it; what is trusted without an authority
				  * is on no list. Lists of authorities that an authority has revoked are not asked for. */
	bool server;
	bool client_certificate; /* server: refuse who shows none. A client always wants one of the server */
};

struct tls_context;

/* Reads regular files alone, and never waits for one. ENOKEY: a file cannot be read, holds something else, or key and certificate
 * do not belong together; the sentence names it. */
int tls_create(const struct tls_conf *conf, struct tls_context **ret_context, struct err *err);
struct tls_context *tls_free(struct tls_context *context); /* takes NULL, returns NULL */
/* When our certificate is valid (s since 1970), of a chain the shortest. false: there is none. */
bool tls_validity(const struct tls_context *context, double *ret_from, double *ret_until);
/* When the first of the lists ends. false: there are none, or none says. */
bool tls_crl_until(const struct tls_context *context, double *ret_until);

#define TLS_NAMES_MAX 16
#define TLS_NAME_SIZE 128

/* What a peer's certificate says. */
struct tls_peer {
	char fingerprint[65]; /* SHA-256 of it, in small hexadecimal digits */
	char subject[256];    /* as RFC 2253 writes it */
	size_t n_names;	      /* common name; alternative names: DNS, IP, mail, URI */
	char names[TLS_NAMES_MAX][TLS_NAME_SIZE];
};

#ifdef __cplusplus
}
#endif
#endif
