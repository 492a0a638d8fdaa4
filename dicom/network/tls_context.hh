/* SPDX-License-Identifier: Apache-2.0 */
/* The settings for TLS connections: created by tls_context.cc, used by tls.cc and tls_connection.cc. Private to these. */
#ifndef TOMONODE_DICOM_TLS_CONTEXT_HH
#define TOMONODE_DICOM_TLS_CONTEXT_HH

#include <new>
#include <openssl/ssl.h>
#include <string>

#include "dicom/network/tls.h"

struct tls_context {
	SSL_CTX *ctx = nullptr;
	bool server = false;
	std::string authorities, crl; /* names of the files, for messages */
	double crl_until = 0;	      /* when the first revocation list expires, s since 1970; 0: unknown */
};

#endif
