/* SPDX-License-Identifier: Apache-2.0 */
/* tls_context.cc - load certificate, key, authorities and revocation lists from their files, with a separate message for each
 * possible fault of a file. */
#include "dicom/network/tls_context.hh"

#include "dicom/core/guarded.hh"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace tomonode;

/* largest file, bytes; the authorities of a whole operating system have 250 kB, long revocation lists some MB */
constexpr int file_max = 16 << 20;

/* RFC 9325 4.2: ephemeral keys, authenticated encryption. All suites of TLS 1.3 have both. */
constexpr char suites[] =
	"ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"
	"ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305";

static bool is_set(const char *path)
{
	return path && path[0];
}

static const char *kind_of(mode_t mode)
{
	return S_ISDIR(mode) ? "a folder" : S_ISFIFO(mode) ? "a pipe" : S_ISSOCK(mode) ? "a socket" : "a device";
}

/* Check that a file can be read, before OpenSSL opens it: OpenSSL would wait for a pipe for ever, and its messages about
 * unreadable files are long and do not begin with the reason. */
static int check_file(const char *what, const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), rc = 0;
	struct stat st;
	char byte;

	if (fd < 0 || fstat(fd, &st) < 0)
		rc = err_set(err, ENOKEY, "%s file %s: %s", what, path, strerror(errno));
	else if (!S_ISREG(st.st_mode))
		rc = err_set(err, ENOKEY, "%s file %s: it is %s, but must be a regular file", what, path, kind_of(st.st_mode));
	else if (st.st_size > file_max)
		rc = err_set(err, ENOKEY, "%s file %s: it has %lld bytes, at most %d are read", what, path, (long long)st.st_size,
			     file_max);
	else if (read(fd, &byte, 1) < 0)
		rc = err_set(err, ENOKEY, "%s file %s: %s", what, path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return rc;
}

/* Return the reason of the last error in OpenSSL's queue, and empty the queue; 0: no error. */
static int last_reason(void)
{
	int reason = ERR_GET_REASON(ERR_peek_last_error());

	ERR_clear_error();
	return reason;
}

static int use_certificate(SSL_CTX *ctx, const char *path, struct err *err)
{
	int rc = check_file("certificate", path, err);

	if (rc < 0)
		return rc;
	if (SSL_CTX_use_certificate_chain_file(ctx, path) == 1)
		return 0;
	switch (last_reason()) {
	case SSL_R_EE_KEY_TOO_SMALL:
	case SSL_R_CA_KEY_TOO_SMALL:
		return err_set(err, ENOKEY, "certificate file %s: the key is too short to be safe (RSA: at least 2048 bits)",
			       path);
	case SSL_R_CA_MD_TOO_WEAK:
		return err_set(err, ENOKEY, "certificate file %s: it is signed with a digest that is not safe any more", path);
	default:
		return err_set(err, ENOKEY, "certificate file %s: it holds no certificate in PEM form", path);
	}
}

namespace
{

struct Password {
	bool requested;
};

} // namespace

/* Called by OpenSSL if the key has a password. Return -1: a service cannot ask a person for it. */
static int refuse_password(char *, int, int, void *ctx)
{
	static_cast<Password *>(ctx)->requested = true;
	return -1;
}

static int use_key(SSL_CTX *ctx, const char *path, const char *certificate, struct err *err)
{
	Password password = {false};
	EVP_PKEY *key = nullptr;
	FILE *f;
	int rc = check_file("key", path, err);

	if (rc < 0)
		return rc;
	f = fopen(path, "re");
	if (f) {
		key = PEM_read_PrivateKey(f, nullptr, refuse_password, &password);
		fclose(f);
	}
	if (!key) {
		ERR_clear_error();
		if (password.requested)
			return err_set(err, ENOKEY, "key file %s: it is locked by a password; a node needs one without", path);
		return err_set(err, ENOKEY, "key file %s: it holds no private key in PEM form", path);
	}
	/* The call also compares key and certificate. */
	if (SSL_CTX_use_PrivateKey(ctx, key) != 1 || SSL_CTX_check_private_key(ctx) != 1)
		rc = err_set(err, ENOKEY, "key file %s: it does not belong to the certificate in %s", path, certificate);
	ERR_clear_error();
	EVP_PKEY_free(key);
	return rc;
}

static int use_authorities(SSL_CTX *ctx, const struct tls_conf *conf, struct err *err)
{
	STACK_OF(X509_NAME) * names;
	int rc = check_file("authorities", conf->authorities, err);

	if (rc < 0)
		return rc;
	if (SSL_CTX_load_verify_file(ctx, conf->authorities) != 1) {
		ERR_clear_error();
		return err_set(err, ENOKEY, "authorities file %s: it holds no certificate in PEM form", conf->authorities);
	}
	if (!conf->server)
		return 0;
	names = SSL_load_client_CA_file(conf->authorities); /* the authorities from which a client may choose its certificate */
	if (names)
		SSL_CTX_set_client_CA_list(ctx, names);
	ERR_clear_error();
	return 0;
}

static double seconds_of(const ASN1_TIME *t)
{
	struct tm parts;

	return t && ASN1_TIME_to_tm(t, &parts) == 1 ? (double)timegm(&parts) : 0;
}

/* Load all revocation lists of the file, and check the certificates of peers against them. */
static int use_crl(struct tls_context *c, const char *path, struct err *err)
{
	X509_STORE *store = SSL_CTX_get_cert_store(c->ctx);
	int rc = check_file("crl", path, err), n = 0, reason;
	X509_CRL *list = nullptr;
	FILE *f;

	if (rc < 0)
		return rc;
	f = fopen(path, "re");
	while (f && (list = PEM_read_X509_CRL(f, nullptr, nullptr, nullptr))) {
		double until = seconds_of(X509_CRL_get0_nextUpdate(list));

		if (until > 0 && (c->crl_until <= 0 || until < c->crl_until))
			c->crl_until = until;
		n += X509_STORE_add_crl(store, list) == 1;
		X509_CRL_free(list);
	}
	if (f)
		fclose(f);
	reason = last_reason(); /* in any case: an error that stays in OpenSSL's queue would be taken for one of a connection */
	if (n == 0 || reason != PEM_R_NO_START_LINE) /* OpenSSL's code for the end of the file */
		return err_set(err, ENOKEY, "crl file %s: %s", path,
			       n ? "one of its lists of revoked certificates is damaged"
				 : "it holds no list of revoked certificates (CRL) in PEM form");
	c->crl = path;
	X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(c->ctx), X509_V_FLAG_CRL_CHECK);
	return 0;
}

static int set_protocol(SSL_CTX *ctx)
{
	X509_VERIFY_PARAM *verify = SSL_CTX_get0_param(ctx);

	SSL_CTX_set_options(ctx,
			    SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET | SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_num_tickets(ctx, 0);
	/* level 2 requires keys of at least 112 bits of strength and SHA-2 digests; do not use the setting of the system */
	SSL_CTX_set_security_level(ctx, 2);
	/* trust every certificate in the file of authorities, also that of a device */
	X509_VERIFY_PARAM_set_flags(verify, X509_V_FLAG_PARTIAL_CHAIN);
	return SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1 && SSL_CTX_set_max_proto_version(ctx, 0) == 1 &&
			       SSL_CTX_set_cipher_list(ctx, suites) == 1
		       ? 0
		       : -1;
}

static int load_context(struct tls_context *c, const struct tls_conf *conf, struct err *err)
{
	int mode = SSL_VERIFY_PEER | (conf->client_certificate ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0);
	bool verify = !conf->server || conf->client_certificate;
	int rc = 0;

	c->ctx = SSL_CTX_new(conf->server ? TLS_server_method() : TLS_client_method());
	if (!c->ctx || set_protocol(c->ctx) < 0)
		return err_set(err, ENOMEM, "TLS cannot be set up: %s", ERR_reason_error_string(ERR_get_error()));
	c->server = conf->server;
	if (is_set(conf->authorities))
		c->authorities = conf->authorities;
	if (is_set(conf->certificate)) {
		rc = use_certificate(c->ctx, conf->certificate, err);
		if (rc == 0)
			rc = use_key(c->ctx, is_set(conf->key) ? conf->key : conf->certificate, conf->certificate, err);
	} else if (conf->server) {
		return err_set(err, ENOKEY, "a port that uses TLS needs a certificate (key `certificate`)");
	} else if (is_set(conf->key)) {
		return err_set(err, ENOKEY, "key file %s: there is a key, but no certificate (key `certificate`)", conf->key);
	}
	if (rc == 0 && is_set(conf->authorities))
		rc = use_authorities(c->ctx, conf, err);
	else if (rc == 0 && verify)
		rc = err_set(err, ENOKEY,
			     "no authorities are named (key `authorities`): no certificate of a peer could be verified");
	if (rc == 0 && verify && is_set(conf->crl))
		rc = use_crl(c, conf->crl, err);
	if (rc == 0)
		SSL_CTX_set_verify(c->ctx, verify ? mode : SSL_VERIFY_NONE, nullptr);
	return rc;
}

int tls_create(const struct tls_conf *conf, struct tls_context **ret_context, struct err *err)
{
	struct tls_context *c = nullptr;
	int rc = guarded(err, "TLS", [&] {
		c = new struct tls_context;
		return load_context(c, conf, err);
	});

	if (rc < 0)
		tls_free(c);
	else
		*ret_context = c;
	return rc;
}

struct tls_context *tls_free(struct tls_context *c)
{
	if (c)
		SSL_CTX_free(c->ctx);
	delete c;
	return nullptr;
}

bool tls_validity(const struct tls_context *c, double *ret_from, double *ret_until)
{
	X509 *own = SSL_CTX_get0_certificate(c->ctx);
	STACK_OF(X509) *chain = nullptr;

	if (!own)
		return false;
	*ret_from = seconds_of(X509_get0_notBefore(own));
	*ret_until = seconds_of(X509_get0_notAfter(own));
	SSL_CTX_get0_chain_certs(c->ctx, &chain);
	for (int i = 0; i < sk_X509_num(chain); i++) {
		double from = seconds_of(X509_get0_notBefore(sk_X509_value(chain, i)));
		double until = seconds_of(X509_get0_notAfter(sk_X509_value(chain, i)));

		*ret_from = from > *ret_from ? from : *ret_from;
		*ret_until = until < *ret_until ? until : *ret_until;
	}
	return true;
}

bool tls_crl_until(const struct tls_context *c, double *ret_until)
{
	if (c->crl_until > 0)
		*ret_until = c->crl_until;
	return c->crl_until > 0;
}
