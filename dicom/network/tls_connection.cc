/* SPDX-License-Identifier: Apache-2.0 */
/* tls_connection.cc - TLS with verified certificates for a connection that is no association: OpenSSL's object, and the messages
 * of tls_text.cc for what goes wrong. */
#include "dicom/network/tls_context.hh"
#include "dicom/network/tls_text.hh"

#include <arpa/inet.h>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <openssl/err.h>
#include <openssl/x509v3.h>

using namespace tomonode;

namespace
{

/* What belongs to a connection; freed with it. */
struct Connection {
	const struct tls_context *context;
	std::string name;
	TlsCertificateError error;
};

} // namespace

static void free_connection(void *, void *ptr, CRYPTO_EX_DATA *, int, long, void *)
{
	delete static_cast<Connection *>(ptr);
}

static int connection_index(void)
{
	static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, free_connection);

	return index;
}

static Connection *connection_of(const SSL *ssl)
{
	return static_cast<Connection *>(SSL_get_ex_data(ssl, connection_index()));
}

static int on_verify(int ok, X509_STORE_CTX *store)
{
	SSL *ssl = static_cast<SSL *>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
	Connection *c = connection_of(ssl);

	if (!ok && c && c->error.code == 0)
		tls_certificate_error_set(&c->error, X509_STORE_CTX_get_error(store), X509_STORE_CTX_get_error_depth(store),
					  X509_STORE_CTX_get_current_cert(store), X509_STORE_CTX_get0_current_crl(store));
	return ok;
}

static bool set_name(SSL *ssl, const char *name)
{
	X509_VERIFY_PARAM *verify = SSL_get0_param(ssl);

	if (X509_VERIFY_PARAM_set1_ip_asc(verify, name) == 1)
		return true;
	ERR_clear_error();
	X509_VERIFY_PARAM_set_hostflags(verify, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	return X509_VERIFY_PARAM_set1_host(verify, name, 0) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

struct ssl_st *tls_connection(const struct tls_context *context, const char *name)
{
	SSL *ssl = SSL_new(context->ctx);
	Connection *c = ssl ? new (std::nothrow) Connection : nullptr;

	if (!c || SSL_set_ex_data(ssl, connection_index(), c) != 1) {
		delete c;
		SSL_free(ssl);
		return nullptr;
	}
	c->context = context;
	if (SSL_set_min_proto_version(ssl, TLS1_3_VERSION) != 1 || (name && !set_name(ssl, name))) {
		SSL_free(ssl);
		return nullptr;
	}
	if (name)
		c->name = name;
	SSL_set_verify(ssl, SSL_CTX_get_verify_mode(context->ctx), on_verify);
	return ssl;
}

bool tls_connection_error(const struct ssl_st *ssl, char *ret_text, size_t size)
{
	const Connection *c = connection_of(ssl);
	unsigned long code = ERR_peek_error();

	if (!c)
		return false;
	if (c->error.code) {
		TlsMessageNames of = {c->context->server, c->context->authorities.c_str(), c->context->crl.c_str(),
				      c->name.c_str()};

		tls_certificate_error_text(&c->error, &of, ret_text, size);
	} else if (ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) {
		snprintf(ret_text, size,
			 "it sent no certificate, and this port requires one: configure certificate and key there");
	} else if (ERR_GET_LIB(code) == ERR_LIB_SSL) {
		tls_reason_text(ERR_GET_REASON(code), c->context->server, "another one", ret_text, size);
	} else {
		return false;
	}
	ERR_clear_error();
	return true;
}
