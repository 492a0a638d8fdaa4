/* SPDX-License-Identifier: Apache-2.0 */
/* The context that tls_context.cc creates and tls.cc uses. Private to these two. */
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
	double crl_until = 0;	      /* s since 1970; 0: unknown */
};

#endif
