/* SPDX-License-Identifier: Apache-2.0 */
/* Messages for failures of a TLS handshake. Private to dicom/ (C++). */
#ifndef TOMONODE_DICOM_TLS_TEXT_HH
#define TOMONODE_DICOM_TLS_TEXT_HH

#include <cstddef>

#include "dicom/network/tls.h"

typedef struct x509_st X509;
typedef struct X509_crl_st X509_CRL;

namespace tomonode
{

/* The first error in the peer's certificate. */
struct TlsCertificateError {
	int code = 0;  /* X509_V_ERR_*; 0: none */
	int depth = 0; /* 0: the peer's own certificate; more: that of an authority */
	/* of the certificate concerned; from, until: its validity; names: alternative names, separated by commas */
	char subject[256] = "", issuer[256] = "", from[32] = "", until[32] = "", names[400] = "";
	char list_until[32] = ""; /* end of validity of the revocation list concerned */
};

/* Store an error and the data of the certificate and revocation list concerned (each may be NULL). */
void tls_certificate_error_set(TlsCertificateError *d, int code, int depth, X509 *certificate, X509_CRL *list);
/* What the messages name. */
struct TlsMessageNames {
	bool server;		       /* this process is the server */
	const char *authorities, *crl; /* names of the files */
	const char *name;	       /* name that must be in the certificate */
};
/* Write the message for the error. */
void tls_certificate_error_text(const TlsCertificateError *d, const TlsMessageNames *of, char *ret_text, size_t size);

/* Write the message for OpenSSL's reason (SSL_R_*), which may be an alert from the peer (RFC 8446 6.2). server: this process is
 * the server; offered: TLS version of the peer. Return the errno value. */
int tls_reason_text(int reason, bool server, const char *offered, char *ret_text, size_t size);

/* Write subject or issuer in the format of RFC 2253, with control characters and non-ASCII bytes escaped. */
void tls_name_text(X509 *certificate, bool issuer, char *ret_text, size_t size);
/* Append the names of the certificate to those of ret_peer. */
void tls_names(X509 *certificate, struct tls_peer *ret_peer);

} // namespace tomonode
#endif
