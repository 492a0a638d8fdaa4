/* SPDX-License-Identifier: Apache-2.0 */
/* tls.cc - the TLS handshake and the stream after it, over a socket on which OpenSSL never blocks.
 *
 * OpenSSL reads and writes through a custom BIO, because its socket BIO raises SIGPIPE and requires a non-blocking descriptor.
 * The BIO also stores the first byte that the peer sends: if it is not that of a handshake or an alert, the peer does not use
 * TLS.
 *
 * In TLS 1.3 a client completes its handshake before the server verifies the client's certificate. If the server refuses it, the
 * client receives an alert later: tls_read() returns it, or a write fails first and read_last_alert() reads it. */
#include "dicom/network/tls.hh"
#include "dicom/network/deadline.hh"
#include "dicom/network/tls_context.hh"
#include "dicom/network/tls_text.hh"

#include <arpa/inet.h>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>

constexpr uint8_t record_handshake = 0x16, record_alert = 0x15; /* RFC 8446 5.1 */
constexpr size_t record_max = 16384;

namespace tomonode
{

struct TlsStream {
	int fd = -1;
	SSL *ssl = nullptr;
	const struct tls_context *context = nullptr;
	const char *name = nullptr; /* used while connecting */
	short poll_events = POLLIN; /* event of the socket for which OpenSSL waits */
	bool received_any = false;  /* a byte was received from the peer */
	uint8_t first = 0;	    /* the first byte received */
	int error = 0;		    /* errno of the socket */
	bool failed = false;	    /* the stream is unusable */
	TlsCertificateError certificate_error;
	int tls_error = 0;	/* errno value of the first TLS error: an alert of the peer or a local one; 0: none */
	char message[700] = ""; /* of that error */
	/* Bytes that are sent together with those of the next call. */
	uint8_t held[record_max];
	size_t n_held = 0, n_appended = 0; /* n_appended: how many of them were already copied from the next call's bytes */
};

/* ---- the BIO ---- */

static int bio_read(BIO *bio, char *to, int n)
{
	TlsStream *s = static_cast<TlsStream *>(BIO_get_data(bio));
	ssize_t got;

	BIO_clear_retry_flags(bio);
	do
		got = recv(s->fd, to, (size_t)n, MSG_DONTWAIT);
	while (got < 0 && errno == EINTR);
	if (got > 0 && !s->received_any) {
		s->received_any = true;
		s->first = (uint8_t)to[0];
	}
	if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		BIO_set_retry_read(bio);
	else if (got < 0)
		s->error = errno;
	return (int)got;
}

static int bio_write(BIO *bio, const char *from, int n)
{
	TlsStream *s = static_cast<TlsStream *>(BIO_get_data(bio));
	ssize_t sent;

	BIO_clear_retry_flags(bio);
	do
		sent = send(s->fd, from, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (sent < 0 && errno == EINTR);
	if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		BIO_set_retry_write(bio);
	else if (sent < 0)
		s->error = errno;
	return (int)sent;
}

static long bio_control(BIO *, int command, long, void *)
{
	return command == BIO_CTRL_FLUSH || command == BIO_CTRL_DUP ? 1 : 0;
}

/* Created once and never freed. */
static const BIO_METHOD *bio_method(void)
{
	static BIO_METHOD *const method = [] {
		BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "association");

		if (m) {
			BIO_meth_set_read(m, bio_read);
			BIO_meth_set_write(m, bio_write);
			BIO_meth_set_ctrl(m, bio_control);
		}
		return m;
	}();

	return method;
}

/* ---- a stream ---- */

/* Does the error code mean that there is no revocation list, or none with a valid signature? */
static bool crl_unavailable(int code)
{
	return code == X509_V_ERR_UNABLE_TO_GET_CRL || code == X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER ||
	       code == X509_V_ERR_CRL_SIGNATURE_FAILURE;
}

/* Called by OpenSSL for each certificate of the peer's chain, and for each error. Return 1 to accept it. */
static int on_verify(int ok, X509_STORE_CTX *store)
{
	SSL *ssl = static_cast<SSL *>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
	TlsStream *s = static_cast<TlsStream *>(SSL_get_app_data(ssl));
	int code = X509_STORE_CTX_get_error(store);

	/* A certificate that is itself in the file of authorities has no authority with a revocation list. To revoke it, remove
	 * it from that file. */
	if (!ok && crl_unavailable(code) && sk_X509_num(X509_STORE_CTX_get0_chain(store)) == 1) {
		X509_STORE_CTX_set_error(store, X509_V_OK);
		return 1;
	}
	if (!ok && s->certificate_error.code == 0)
		tls_certificate_error_set(&s->certificate_error, code, X509_STORE_CTX_get_error_depth(store),
					  X509_STORE_CTX_get_current_cert(store), X509_STORE_CTX_get0_current_crl(store));
	return ok;
}

static bool is_address(const char *name)
{
	uint8_t bytes[16];

	return inet_pton(AF_INET, name, bytes) == 1 || inet_pton(AF_INET6, name, bytes) == 1;
}

/* Set the name that must be in the server's certificate. The zone of an address (%eth0 in fe80::1%eth0) is removed: it is the
 * local name of a network interface, and no certificate contains it. */
static bool set_name(SSL *ssl, const char *name)
{
	X509_VERIFY_PARAM *verify = SSL_get0_param(ssl);
	char address[INET6_ADDRSTRLEN];
	size_t n = strcspn(name, "%");

	if (n < sizeof(address)) {
		memcpy(address, name, n);
		address[n] = '\0';
		if (is_address(address))
			return X509_VERIFY_PARAM_set1_ip_asc(verify, address) == 1;
	}
	X509_VERIFY_PARAM_set_hostflags(verify, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	return X509_VERIFY_PARAM_set1_host(verify, name, 0) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

static TlsStream *stream_create(int fd, const struct tls_context *context, const char *name)
{
	TlsStream *s = new TlsStream;
	BIO *bio = bio_method() ? BIO_new(bio_method()) : nullptr;

	s->fd = fd;
	s->context = context;
	s->name = name;
	s->ssl = SSL_new(context->ctx);
	if (!bio || !s->ssl || (name && !set_name(s->ssl, name))) {
		BIO_free(bio);
		return tls_stream_free(s);
	}
	BIO_set_data(bio, s);
	BIO_set_init(bio, 1);
	SSL_set_bio(s->ssl, bio, bio); /* takes ownership of it */
	SSL_set_app_data(s->ssl, s);
	SSL_set_verify(s->ssl, SSL_CTX_get_verify_mode(context->ctx), on_verify);
	return s;
}

TlsStream *tls_stream_free(TlsStream *s)
{
	if (s)
		SSL_free(s->ssl);
	delete s;
	return nullptr;
}

/* Return the highest TLS version that the client has offered, or the one that the server has chosen. */
static const char *offered_version(SSL *ssl)
{
	int version = SSL_is_server(ssl) ? SSL_client_version(ssl) : SSL_version(ssl);

	switch (version) {
	case SSL3_VERSION:
		return "SSL 3.0";
	case TLS1_VERSION:
		return "TLS 1.0";
	case TLS1_1_VERSION:
		return "TLS 1.1";
	case TLS1_2_VERSION:
		return "TLS 1.2";
	case TLS1_3_VERSION:
		return "TLS 1.3";
	default:
		return "another one";
	}
}

/* Mark the stream as failed and store the first error with its message. Later errors are consequences of it. */
static void store_error(TlsStream *s)
{
	int reason = ERR_GET_REASON(ERR_peek_error());
	bool library = ERR_GET_LIB(ERR_peek_error()) == ERR_LIB_SSL;

	s->failed = true;
	if (!s->tls_error && s->certificate_error.code && SSL_get_verify_result(s->ssl) != X509_V_OK) {
		TlsMessageNames of = {s->context->server, s->context->authorities.c_str(), s->context->crl.c_str(), s->name};

		tls_certificate_error_text(&s->certificate_error, &of, s->message, sizeof(s->message));
		s->tls_error = EKEYREJECTED;
	} else if (!s->tls_error && library) {
		s->tls_error =
			tls_reason_text(reason, s->context->server, offered_version(s->ssl), s->message, sizeof(s->message));
	}
	ERR_clear_error();
}

/* Return 1: done, 0: wait for s->poll_events and call again, -1: failed. result: return value of an SSL_*() function. */
static int check_result(TlsStream *s, int result)
{
	if (result > 0)
		return 1;
	switch (SSL_get_error(s->ssl, result)) {
	case SSL_ERROR_WANT_READ:
		s->poll_events = POLLIN;
		return 0;
	case SSL_ERROR_WANT_WRITE:
		s->poll_events = POLLOUT;
		return 0;
	default:
		store_error(s);
		return -1;
	}
}

/* ---- the handshake ---- */

static int handshake_failed(TlsStream *s, const char *who, struct err *err)
{
	if (s->received_any && s->first != record_handshake && s->first != record_alert)
		return err_set(
			err, EPROTONOSUPPORT,
			"%s does not use TLS on this port: its response to the handshake began with 0x%02x%s; use its TLS port, "
			"or set tls = false",
			who, s->first, s->first >= 1 && s->first <= 7 ? ", as plain DICOM does" : "");
	if (s->tls_error)
		return err_set(err, s->tls_error, "%s: %s", who, s->message);
	if (!s->received_any && !s->context->server)
		return err_set(
			err, ECONNRESET,
			"%s closed the connection instead of beginning TLS: perhaps this port uses plain DICOM (tls = false)",
			who);
	return err_set(err, ECONNRESET, "%s closed the connection in the TLS handshake%s%s", who, s->error ? ": " : "",
		       s->error ? strerror(s->error) : "");
}

static int shake_hands(TlsStream *s, int64_t deadline, const char *who, struct err *err)
{
	for (;;) {
		int done, ready;

		ERR_clear_error();
		done = check_result(s, s->context->server ? SSL_accept(s->ssl) : SSL_connect(s->ssl));
		if (done > 0)
			return 0;
		if (done < 0)
			return handshake_failed(s, who, err);
		ready = deadline_wait(s->fd, s->poll_events, deadline);
		if (ready == 0)
			return err_set(err, ETIMEDOUT,
				       s->received_any || s->context->server
					       ? "%s did not complete the TLS handshake in time"
					       : "%s did not respond to the TLS handshake in time: perhaps this port "
						 "uses plain DICOM (tls = false)",
				       who);
		if (ready < 0)
			return err_set(err, errno, "%s: %s", who, strerror(errno));
	}
}

static int establish_stream(int fd, const struct tls_context *context, const char *name, int64_t deadline, const char *who,
			    TlsStream **ret_stream, struct err *err)
{
	TlsStream *s = stream_create(fd, context, name);
	int rc;

	if (!s)
		return err_set(err, ENOMEM, "%s: TLS: %s", who, ERR_reason_error_string(ERR_get_error()));
	rc = shake_hands(s, deadline, who, err);
	s->name = nullptr;
	if (rc < 0)
		tls_stream_free(s);
	else
		*ret_stream = s;
	return rc;
}

int tls_accept(int fd, const struct tls_context *context, int64_t deadline, const char *who, TlsStream **ret_stream,
	       struct err *err)
{
	return establish_stream(fd, context, nullptr, deadline, who, ret_stream, err);
}

int tls_connect(int fd, const struct tls_context *context, const char *name, int64_t deadline, const char *who,
		TlsStream **ret_stream, struct err *err)
{
	return establish_stream(fd, context, name, deadline, who, ret_stream, err);
}

bool tls_probe(int fd, int64_t deadline)
{
	struct tls_context context;
	TlsStream *s = nullptr;
	bool tls = false;

	context.ctx = SSL_CTX_new(TLS_client_method());
	if (context.ctx)
		s = stream_create(fd, &context, nullptr);
	if (s) {
		(void)shake_hands(s, deadline, "", nullptr);
		tls = s->received_any && (s->first == record_handshake || s->first == record_alert);
	}
	tls_stream_free(s);
	SSL_CTX_free(context.ctx);
	ERR_clear_error();
	return tls;
}

/* ---- the stream ---- */

void tls_set_fd(TlsStream *s, int fd)
{
	s->fd = fd;
}

bool tls_get_peer(const TlsStream *s, struct tls_peer *ret_peer)
{
	X509 *certificate = SSL_get0_peer_certificate(s->ssl);
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned n = 0;

	memset(ret_peer, 0, sizeof(*ret_peer));
	if (!certificate || X509_digest(certificate, EVP_sha256(), digest, &n) != 1 || n != 32)
		return false;
	for (unsigned i = 0; i < n; i++)
		snprintf(ret_peer->fingerprint + 2 * i, 3, "%02x", digest[i]);
	tls_name_text(certificate, false, ret_peer->subject, sizeof(ret_peer->subject));
	tls_names(certificate, ret_peer);
	return true;
}

static ssize_t io_result(TlsStream *s, int done, size_t n)
{
	if (done > 0)
		return (ssize_t)n;
	errno = done == 0 ? EAGAIN : s->error ? s->error : EPROTO;
	return -1;
}

ssize_t tls_read(TlsStream *s, void *buf, size_t n)
{
	size_t got = 0;
	int done;

	if (s->failed) {
		errno = s->error ? s->error : EPROTO;
		return -1;
	}
	ERR_clear_error();
	done = SSL_read_ex(s->ssl, buf, n, &got);
	if (done <= 0 && SSL_get_error(s->ssl, done) == SSL_ERROR_ZERO_RETURN)
		return 0;
	return io_result(s, check_result(s, done), got);
}

/* After a failed write: read the peer's alert, which may have been received before the connection was closed. */
static void read_last_alert(TlsStream *s)
{
	uint8_t bytes[256];
	size_t got;
	int code = s->error;

	ERR_clear_error();
	if (!s->tls_error && code && SSL_read_ex(s->ssl, bytes, sizeof(bytes), &got) <= 0)
		store_error(s);
	s->error = code;
}

/* Write the held bytes and the first of these n bytes as one record. */
static ssize_t write_held(TlsStream *s, const uint8_t *p, size_t n)
{
	size_t room = sizeof(s->held) - s->n_held, sent = 0;
	int done;

	if (s->n_appended == 0) { /* after EAGAIN the caller passes the same bytes again: they are already copied */
		s->n_appended = n < room ? n : room;
		memcpy(s->held + s->n_held, p, s->n_appended);
		s->n_held += s->n_appended;
	}
	done = check_result(s, SSL_write_ex(s->ssl, s->held, s->n_held, &sent));
	if (done < 0)
		read_last_alert(s);
	if (done > 0) { /* held and new bytes are one record, which is sent completely */
		sent = s->n_appended;
		s->n_held = s->n_appended = 0;
	}
	return io_result(s, done, sent);
}

ssize_t tls_write(TlsStream *s, const void *buf, size_t n, bool more)
{
	size_t sent = 0;
	int done;

	if (s->failed) {
		errno = s->error ? s->error : EPROTO;
		return -1;
	}
	ERR_clear_error();
	if (more && s->n_held == 0 && n <= 64) {
		memcpy(s->held, buf, n);
		s->n_held = n;
		return (ssize_t)n;
	}
	if (s->n_held > 0)
		return write_held(s, static_cast<const uint8_t *>(buf), n);
	done = check_result(s, SSL_write_ex(s->ssl, buf, n, &sent));
	if (done < 0)
		read_last_alert(s);
	return io_result(s, done, sent);
}

short tls_poll_events(const TlsStream *s)
{
	return s->poll_events;
}

int tls_error_text(const TlsStream *s, char *ret_text, size_t size)
{
	if (s->tls_error)
		snprintf(ret_text, size, "%s", s->message);
	return s->tls_error;
}

void tls_send_close_notify(TlsStream *s)
{
	if (s->fd >= 0 && !s->failed) {
		(void)SSL_shutdown(s->ssl);
		ERR_clear_error();
	}
	s->fd = -1;
}

} // namespace tomonode
