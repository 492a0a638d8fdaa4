/* SPDX-License-Identifier: Apache-2.0 */
/* TLS for associations, as BCP 195 (RFC 8996, RFC 9325) recommends: 1.2 and 1.3, forward secrecy, authenticated encryption, no
 * renegotiation, no resumption. A peer is trusted if one of the authorities in a file has issued its certificate. There is no
 * option to trust every peer: a device's certificate that no authority has signed can be added to the file of authorities.
 *
 * A context is created once, before any fork, and is immutable: the handshake then runs in the association's own process. */
#ifndef TOMONODE_DICOM_TLS_H
#define TOMONODE_DICOM_TLS_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/err.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tls_conf {		 /* files in PEM; "" or NULL: none */
	const char *certificate; /* the local certificate, followed by the intermediate ones up to its authority */
	const char *key;	 /* private key without a password; NULL or "": it is in `certificate` */
	const char *authorities; /* the trusted authorities */
	const char *crl; /* certificate revocation lists of these authorities. If set, a peer's certificate is accepted only if
			    its authority's list is in the file, has not expired, and does not contain the certificate. A peer
			    certificate that is itself in `authorities` needs no list. Authorities are not checked for
			    revocation. */
	bool server;	 /* for accepting connections; false: for opening them */
	bool client_certificate; /* server: refuse clients without a certificate. A client always requires one from the server */
};

struct tls_context;

/* Create a context. Opens only regular files and never blocks on one. ENOKEY: a file cannot be read or has unsuitable content, or
 * key and certificate do not match; the message names it. */
int tls_create(const struct tls_conf *conf, struct tls_context **ret_context, struct err *err);
struct tls_context *tls_free(struct tls_context *context); /* accepts NULL; returns NULL */
/* Return the period (s since 1970) in which the local certificate and its intermediate ones are all valid. false: there is no
 * certificate. */
bool tls_validity(const struct tls_context *context, double *ret_from, double *ret_until);
/* Return when the first of the revocation lists expires, s since 1970. false: there is no list with a date. */
bool tls_crl_until(const struct tls_context *context, double *ret_until);

/* Create OpenSSL's object for a connection that is no association (node/cluster/link.h): TLS 1.3, certificates are verified as by
 * the context, which must stay valid. name: host name or address that must be in the server's certificate; NULL: not checked.
 * NULL: no memory, or no valid name. */
struct ssl_st;
struct ssl_st *tls_connection(const struct tls_context *context, const char *name);
/* After a call of OpenSSL failed: write why one of the two sides has ended TLS, and empty OpenSSL's queue of errors. false: this
 * is no TLS error, or no such connection. */
bool tls_connection_error(const struct ssl_st *ssl, char *ret_text, size_t size);

#define TLS_NAMES_MAX 16
#define TLS_NAME_SIZE 128

/* The content of a peer's certificate. */
struct tls_peer {
	char fingerprint[65];			  /* SHA-256 of the certificate, in lower-case hexadecimal digits */
	char subject[256];			  /* in the format of RFC 2253 */
	size_t n_names;				  /* number of names */
	char names[TLS_NAMES_MAX][TLS_NAME_SIZE]; /* alternative names (DNS, mail, URI, IP), then the common name */
};

#ifdef __cplusplus
}
#endif
#endif
