/* SPDX-License-Identifier: Apache-2.0 */
/* TLS without a connection: files that are refused, until when certificates and lists are valid, the names in a certificate at
 * their limits, and what a person is told. With connections: tests/system/test_tls.py. */
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "dicom/network/tls.h"
#include "tests/test.h"

/* Of dicom/network/tls_text.hh, which is C++: the names under which the linker knows its functions. */
struct certificate_error {
	int code, depth;
	char subject[256], issuer[256], from[32], until[32], names[400], list_until[32];
};
struct message_names {
	bool server;
	const char *authorities, *crl, *name;
};
void names_of(X509 *certificate, struct tls_peer *ret_peer) __asm__("_ZN8tomonode9tls_namesEP7x509_stP8tls_peer");
void name_text(X509 *certificate, bool issuer, char *ret_text, size_t size) __asm__("_ZN8tomonode13tls_name_textEP7x509_stbPcm");
int reason_text(int reason, bool server, const char *offered, char *ret_text,
		size_t size) __asm__("_ZN8tomonode15tls_reason_textEibPKcPcm");
void error_set(struct certificate_error *d, int code, int depth, X509 *certificate, X509_CRL *list) __asm__(
	"_ZN8tomonode25tls_certificate_error_setEPNS_19TlsCertificateErrorEiiP7x509_stP11X509_crl_st");
void error_text(const struct certificate_error *d, const struct message_names *of, char *ret_text, size_t size) __asm__(
	"_ZN8tomonode26tls_certificate_error_textEPKNS_19TlsCertificateErrorEPKNS_15TlsMessageNamesEPcm");

#define YEAR_2030 1893456000L /* 1 January, s since 1970 */
#define DAY 86400L
#define FILE_MOST (16 << 20) /* bytes */

static char folder[64];
static EVP_PKEY *key, *other_key;

/* A certificate of the authority "tests" for `subject`, valid for `days` from 2030 on. san: as in OpenSSL's configuration. */
static X509 *make_certificate(const char *subject, EVP_PKEY *of, const char *san, long days, const EVP_MD *digest)
{
	X509 *x = X509_new();
	X509_NAME *name = X509_NAME_new();

	X509_set_version(x, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(x), 7);
	ASN1_TIME_set(X509_getm_notBefore(x), YEAR_2030);
	ASN1_TIME_set(X509_getm_notAfter(x), YEAR_2030 + days * DAY);
	X509_set_pubkey(x, of);
	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)"tests", -1, -1, 0);
	X509_set_issuer_name(x, name);
	X509_NAME_free(name);
	name = X509_NAME_new();
	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)subject, -1, -1, 0);
	X509_set_subject_name(x, name);
	X509_NAME_free(name);
	if (san) {
		X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, san);

		assert_non_null(extension);
		X509_add_ext(x, extension, -1);
		X509_EXTENSION_free(extension);
	}
	assert_true(X509_sign(x, other_key, digest) > 0);
	return x;
}

static X509_CRL *make_list(long days)
{
	X509_CRL *list = X509_CRL_new();
	X509_NAME *name = X509_NAME_new();
	ASN1_TIME *at = ASN1_TIME_set(NULL, YEAR_2030);

	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)"tests", -1, -1, 0);
	X509_CRL_set_version(list, X509_CRL_VERSION_2);
	X509_CRL_set_issuer_name(list, name);
	X509_CRL_set1_lastUpdate(list, at);
	if (days) {
		ASN1_TIME_set(at, YEAR_2030 + days * DAY);
		X509_CRL_set1_nextUpdate(list, at);
	}
	assert_true(X509_CRL_sign(list, other_key, EVP_sha256()) > 0);
	ASN1_TIME_free(at);
	X509_NAME_free(name);
	return list;
}

static const char *in_folder(const char *name)
{
	return test_path(folder, name);
}

static FILE *create(const char *name)
{
	FILE *f = fopen(in_folder(name), "w");

	assert_non_null(f);
	return f;
}

static void write_certificates(const char *name, X509 *const *certificates, size_t n, EVP_PKEY *own)
{
	FILE *f = create(name);

	for (size_t i = 0; i < n; i++) {
		assert_int_equal(PEM_write_X509(f, certificates[i]), 1);
		X509_free(certificates[i]);
	}
	if (own)
		assert_int_equal(PEM_write_PrivateKey(f, own, NULL, NULL, 0, NULL, NULL), 1);
	fclose(f);
}

static void write_key(const char *name, EVP_PKEY *of, const char *password)
{
	FILE *f = create(name);

	assert_int_equal(PEM_write_PrivateKey(f, of, password ? EVP_aes_128_cbc() : NULL, NULL, 0, NULL, (void *)password), 1);
	fclose(f);
}

static void write_lists(const char *name, const long *days, size_t n, const char *end)
{
	FILE *f = create(name);

	for (size_t i = 0; i < n; i++) {
		X509_CRL *list = make_list(days[i]);

		assert_int_equal(PEM_write_X509_CRL(f, list), 1);
		X509_CRL_free(list);
	}
	fputs(end, f);
	fclose(f);
}

static void write_certificate(const char *name, EVP_PKEY *of, long days, const EVP_MD *digest, EVP_PKEY *own)
{
	X509 *x = make_certificate("node", of, NULL, days, digest);

	write_certificates(name, &x, 1, own);
}

static int set_up(void **state)
{
	EVP_PKEY *small = EVP_RSA_gen(1024);

	test_folder(folder, sizeof(folder));
	key = EVP_EC_gen("P-256");
	other_key = EVP_EC_gen("P-256");
	if (!small || !key || !other_key)
		return -1;
	write_certificate("both.pem", key, 365, EVP_sha256(), key);
	write_certificate("certificate.pem", key, 365, EVP_sha256(), NULL);
	write_certificate("small.pem", small, 365, EVP_sha256(), small);
	write_certificate("weak.pem", key, 365, EVP_sha1(), key);
	write_key("key.pem", key, NULL);
	write_key("other.pem", other_key, NULL);
	write_key("locked.pem", key, "secret");
	write_lists("list.pem", (const long[]){9, 3, 6}, 3, "");
	write_lists("endless.pem", (const long[]){0}, 1, "");
	write_lists("damaged.pem", (const long[]){9}, 1, "-----BEGIN X509 CRL-----\nMIIB\n-----END X509 CRL-----\n");
	fclose(create("empty.pem"));
	EVP_PKEY_free(small);
	return mkdir(in_folder("folder"), 0700) | mkfifo(in_folder("pipe"), 0600);
}

static int tear_down(void **state)
{
	EVP_PKEY_free(key);
	EVP_PKEY_free(other_key);
	return 0;
}

/* ---- files ---- */

struct row {
	REFUSED;
	const char *certificate, *key, *authorities, *crl;
	bool client; /* of a client; else of a server that requires a client's certificate */
};

#define AUTHORITY "certificate.pem"

static const struct row refused_files[] = {
	{{"a server without a certificate", ENOKEY, "`certificate`"}, NULL, NULL, AUTHORITY, NULL, false},
	{{"a key without a certificate", ENOKEY, "key.pem"}, NULL, "key.pem", AUTHORITY, NULL, true},
	{{"no such certificate", ENOKEY, "none.pem: No such file"}, "none.pem", NULL, AUTHORITY, NULL, false},
	{{"no such key", ENOKEY, "key file"}, "both.pem", "none.pem", AUTHORITY, NULL, false},
	{{"no such authorities", ENOKEY, "authorities file"}, "both.pem", NULL, "none.pem", NULL, false},
	{{"no such list", ENOKEY, "crl file"}, "both.pem", NULL, AUTHORITY, "none.pem", false},
	{{"a folder", ENOKEY, "a folder"}, "folder", NULL, AUTHORITY, NULL, false},
	{{"a pipe, which is not waited for", ENOKEY, "a pipe"}, "pipe", NULL, AUTHORITY, NULL, false},
	{{"a pipe for a key", ENOKEY, "a pipe"}, "both.pem", "pipe", AUTHORITY, NULL, false},
	{{"an empty certificate", ENOKEY, "empty.pem"}, "empty.pem", NULL, AUTHORITY, NULL, false},
	{{"a key is no certificate", ENOKEY, "key.pem"}, "key.pem", NULL, AUTHORITY, NULL, false},
	{{"a short key", ENOKEY, "2048 bits"}, "small.pem", NULL, AUTHORITY, NULL, false},
	{{"a weak signature", ENOKEY, "digest"}, "weak.pem", NULL, AUTHORITY, NULL, false},
	{{"a certificate is no key", ENOKEY, "no private key"}, "certificate.pem", NULL, AUTHORITY, NULL, false},
	{{"an empty key", ENOKEY, "empty.pem"}, "both.pem", "empty.pem", AUTHORITY, NULL, false},
	{{"the key of another", ENOKEY, "other.pem"}, "both.pem", "other.pem", AUTHORITY, NULL, false},
	{{"a locked key", ENOKEY, "password"}, "both.pem", "locked.pem", AUTHORITY, NULL, false},
	{{"a server without authorities", ENOKEY, "`authorities`"}, "both.pem", NULL, NULL, NULL, false},
	{{"a client without authorities", ENOKEY, "`authorities`"}, NULL, NULL, "", NULL, true},
	{{"empty authorities", ENOKEY, "empty.pem"}, "both.pem", NULL, "empty.pem", NULL, false},
	{{"a key is no authority", ENOKEY, "key.pem"}, "both.pem", NULL, "key.pem", NULL, false},
	{{"a certificate is no list", ENOKEY, "(CRL)"}, "both.pem", NULL, AUTHORITY, "both.pem", false},
	{{"an empty list", ENOKEY, "(CRL)"}, NULL, NULL, AUTHORITY, "empty.pem", true},
	{{"a damaged list", ENOKEY, "damaged"}, "both.pem", NULL, AUTHORITY, "damaged.pem", false},
};

static const char *path_of(const char *name)
{
	return name && *name ? in_folder(name) : name;
}

static int create_context(const struct row *r, struct tls_context **ret, struct err *err)
{
	const struct tls_conf conf = {.certificate = path_of(r->certificate),
				      .key = path_of(r->key),
				      .authorities = path_of(r->authorities),
				      .crl = path_of(r->crl),
				      .server = !r->client,
				      .client_certificate = !r->client};

	return tls_create(&conf, ret, err);
}

static int try_files(const void *row, struct err *err)
{
	struct tls_context *c = NULL;
	int rc = create_context(row, &c, err);

	assert_int_equal(!c, rc < 0);
	assert_int_equal(ERR_peek_error(), 0); /* nothing is left in OpenSSL's queue for a later connection */
	tls_free(c);
	return rc;
}

REFUSES(unsuitable_files, refused_files, try_files)

/* A file of 16 MiB is read, one byte more is not. */
TEST(largest_file)
{
	struct row r = {.certificate = "both.pem", .authorities = "large.pem"};
	struct err err = {0};

	write_certificate("large.pem", key, 365, EVP_sha256(), NULL);
	assert_int_equal(truncate(in_folder("large.pem"), FILE_MOST), 0);
	assert_int_equal(try_files(&r, &err), 0);
	assert_int_equal(truncate(in_folder("large.pem"), FILE_MOST + 1), 0);
	assert_error(try_files(&r, &err), &err, ENOKEY, "16777217 bytes");
}

TEST(validity)
{
	X509 *chain[3];
	struct tls_context *c = NULL;
	double from = 0, until = 0;
	struct err err = {0};

	assert_int_equal(create_context(&(struct row){.authorities = AUTHORITY, .client = true}, &c, &err), 0);
	assert_false(tls_validity(c, &from, &until)); /* no certificate of its own */
	assert_false(tls_crl_until(c, &until));
	tls_free(c);
	chain[0] = make_certificate("node", key, NULL, 100, EVP_sha256());
	chain[1] = make_certificate("between", other_key, NULL, 50, EVP_sha256());
	chain[2] = make_certificate("above", other_key, NULL, 200, EVP_sha256());
	ASN1_TIME_set(X509_getm_notBefore(chain[2]), YEAR_2030 + DAY);
	assert_true(X509_sign(chain[2], other_key, EVP_sha256()) > 0);
	write_certificates("chain.pem", chain, 3, key);
	assert_int_equal(
		create_context(&(struct row){.certificate = "chain.pem", .authorities = AUTHORITY, .crl = "list.pem"}, &c, &err),
		0);
	assert_true(tls_validity(c, &from, &until));
	assert_near(from, YEAR_2030 + DAY, 0);
	assert_near(until, YEAR_2030 + 50 * DAY, 0);
	assert_true(tls_crl_until(c, &until));
	assert_near(until, YEAR_2030 + 3 * DAY, 0);
	tls_free(c);
	assert_int_equal(create_context(&(struct row){.certificate = "both.pem", .authorities = AUTHORITY, .crl = "endless.pem"},
					&c, &err),
			 0);
	assert_false(tls_crl_until(c, &until));
	tls_free(c);
	assert_null(tls_free(NULL));
}

/* ---- names ---- */

/* What is behind the names would show a write beyond them. */
struct guarded_peer {
	struct tls_peer peer;
	char behind[4 * TLS_NAME_SIZE];
};

static void find_names(const char *subject, const char *san, struct guarded_peer *ret)
{
	X509 *x = make_certificate(subject, key, san, 365, EVP_sha256());

	memset(ret, 0x5a, sizeof(*ret));
	ret->peer.n_names = 0;
	names_of(x, &ret->peer);
	for (size_t i = 0; i < sizeof(ret->behind); i++)
		assert_int_equal(ret->behind[i], 0x5a);
	X509_free(x);
}

/* "DNS:n0,DNS:n1,..." */
static char *many_names(size_t n, char *ret_text)
{
	size_t at = 0;

	ret_text[0] = '\0';
	for (size_t i = 0; i < n; i++)
		at += (size_t)sprintf(ret_text + at, "%sDNS:n%zu", i ? "," : "", i);
	return ret_text;
}

/* The common name is the last one: it is one name more. */
TEST(numbers_of_names)
{
	struct guarded_peer g;
	char san[1000], last[16];

	for (size_t n = 1; n < TLS_NAMES_MAX + 5; n++) {
		size_t expected = n + 1 < TLS_NAMES_MAX ? n + 1 : TLS_NAMES_MAX;

		find_names("common", many_names(n, san), &g);
		assert_int_equal(g.peer.n_names, expected);
		snprintf(last, sizeof(last), "n%zu", expected - 1);
		assert_string_equal(g.peer.names[expected - 1], n + 1 <= TLS_NAMES_MAX ? "common" : last);
	}
	find_names("common", NULL, &g);
	assert_int_equal(g.peer.n_names, 1);
}

TEST(kinds_of_names)
{
	struct guarded_peer g;
	static const char *const expected[] = {"a.example", "me@example.org", "urn:x", "10.1.2.3", "2001:db8::5", "common"};
	size_t n = sizeof(expected) / sizeof(expected[0]);

	find_names("common", "DNS:a.example,email:me@example.org,RID:1.2.3,URI:urn:x,IP:10.1.2.3,IP:2001:DB8:0::5", &g);
	assert_int_equal(g.peer.n_names, n);
	for (size_t i = 0; i < n; i++)
		assert_string_equal(g.peer.names[i], expected[i]);
}

/* A name that could deceive a person, or does not fit, is none. */
TEST(names_that_are_left_out)
{
	struct guarded_peer g;
	char san[TLS_NAME_SIZE + 10];

	memset(san, 'x', sizeof(san));
	memcpy(san, "DNS:", 4);
	san[4 + TLS_NAME_SIZE - 1] = '\0';
	find_names("n\xc3\xb6", san, &g);
	assert_int_equal(g.peer.n_names, 1);
	assert_int_equal(strlen(g.peer.names[0]), TLS_NAME_SIZE - 1);
	san[4 + TLS_NAME_SIZE - 1] = 'x';
	san[4 + TLS_NAME_SIZE] = '\0';
	find_names("two words", san, &g);
	assert_int_equal(g.peer.n_names, 1);
	assert_string_equal(g.peer.names[0], "two words");
	for (const char *const *bad = (const char *const[]){" x", "x\x7f", "x\t", "\x1f", NULL}; *bad; bad++) {
		find_names(*bad, NULL, &g);
		assert_int_equal(g.peer.n_names, 0);
	}
}

TEST(text_of_a_name_is_cut)
{
	X509 *x = make_certificate("node", key, NULL, 365, EVP_sha256());
	char text[16];

	name_text(x, false, text, sizeof(text));
	assert_string_equal(text, "CN=node");
	name_text(x, true, text, sizeof(text));
	assert_string_equal(text, "CN=tests");
	memset(text, 'x', sizeof(text));
	name_text(x, false, text, 5);
	assert_string_equal(text, "CN=n");
	assert_int_equal(text[5], 'x');
	X509_free(x);
}

/* ---- sentences ---- */

TEST(reasons)
{
	static const struct {
		int reason, code;
		const char *names;
	} rows[] = {
		{SSL_AD_REASON_OFFSET + SSL_AD_BAD_CERTIFICATE, EKEYREJECTED, "our certificate"},
		{SSL_AD_REASON_OFFSET + SSL_AD_UNSUPPORTED_CERTIFICATE, EKEYREJECTED, "kind of certificate"},
		{SSL_AD_REASON_OFFSET + SSL_AD_CERTIFICATE_REVOKED, EKEYREJECTED, "revoked"},
		{SSL_AD_REASON_OFFSET + SSL_AD_CERTIFICATE_EXPIRED, EKEYREJECTED, "expired"},
		{SSL_AD_REASON_OFFSET + SSL_AD_CERTIFICATE_UNKNOWN, EKEYREJECTED, "our certificate"},
		{SSL_AD_REASON_OFFSET + SSL_AD_UNKNOWN_CA, EKEYREJECTED, "authority"},
		{SSL_AD_REASON_OFFSET + SSL_AD_ACCESS_DENIED, EKEYREJECTED, "denies"},
		{SSL_AD_REASON_OFFSET + SSL_AD_CERTIFICATE_REQUIRED, EKEYREJECTED, "requires a client certificate"},
		{SSL_AD_REASON_OFFSET + SSL_AD_DECRYPT_ERROR, EKEYREJECTED, "signature"},
		{SSL_AD_REASON_OFFSET + SSL_AD_UNRECOGNIZED_NAME, EKEYREJECTED, "name"},
		{SSL_AD_REASON_OFFSET + SSL_AD_PROTOCOL_VERSION, EPROTONOSUPPORT, "TLS 1.2"},
		{SSL_AD_REASON_OFFSET + SSL_AD_INSUFFICIENT_SECURITY, EPROTONOSUPPORT, "stronger"},
		{SSL_AD_REASON_OFFSET + SSL_AD_HANDSHAKE_FAILURE, EPROTONOSUPPORT, "handshake failure"},
		{SSL_AD_REASON_OFFSET + SSL_AD_INTERNAL_ERROR, EPROTO, "internal error"},
		{SSL_R_NO_SHARED_CIPHER, EPROTONOSUPPORT, "cipher suite"},
		{SSL_R_NO_SUITABLE_KEY_SHARE, EPROTONOSUPPORT, "elliptic curve"},
		{SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM, EPROTONOSUPPORT, "signature algorithm"},
		{SSL_R_UNSUPPORTED_PROTOCOL, EPROTONOSUPPORT, "TLSv1.1"},
		{SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE, EKEYREJECTED, "no certificate"},
		{SSL_R_BAD_LENGTH, EPROTO, "bad length"},
	};
	char text[300];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int server = 0; server < 2; server++) {
			assert_int_equal(reason_text(rows[i].reason, server, "TLSv1.1", text, sizeof(text)), rows[i].code);
			if (!strstr(text, rows[i].names))
				fail_msg("'%s' does not name '%s'", text, rows[i].names);
		}
}

TEST(errors_of_certificates)
{
	static const struct {
		int code, depth;
		const char *names[2];
	} rows[] = {
		{X509_V_ERR_CERT_HAS_EXPIRED, 0, {"its certificate (CN=node)", "2030-12-31 00:00 UTC"}},
		{X509_V_ERR_CERT_HAS_EXPIRED, 1, {"of its authority", "2030-12-31"}},
		{X509_V_ERR_CERT_NOT_YET_VALID, 0, {"2030-01-01 00:00 UTC", "clocks"}},
		{X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, 0, {"CN=tests", "AUTHORITIES"}},
		{X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, 0, {"CN=node", "AUTHORITIES"}},
		{X509_V_ERR_HOSTNAME_MISMATCH, 0, {"for n0, n1, ", "not for NAME"}},
		{X509_V_ERR_IP_ADDRESS_MISMATCH, 0, {"for n0, n1, ", "not for the address NAME"}},
		{X509_V_ERR_INVALID_PURPOSE, 0, {"TLS client", "extended key usage"}},
		{X509_V_ERR_EE_KEY_TOO_SMALL, 0, {"2048", "CN=node"}},
		{X509_V_ERR_CA_MD_TOO_WEAK, 1, {"digest", "of its authority"}},
		{X509_V_ERR_CERT_REVOKED, 0, {"revoked", "CN=tests"}},
		{X509_V_ERR_UNABLE_TO_GET_CRL, 0, {"LIST", "CN=tests"}},
		{X509_V_ERR_CRL_HAS_EXPIRED, 0, {"2030-01-05 00:00 UTC", "LIST"}},
		{X509_V_ERR_CRL_SIGNATURE_FAILURE, 0, {"LIST", "signature"}},
		{X509_V_ERR_PATH_LENGTH_EXCEEDED, 0, {"CN=node", "path length"}},
	};
	const struct message_names of = {true, "AUTHORITIES", "LIST", "NAME"};
	char san[1000], text[1200];
	X509 *x = make_certificate("node", key, many_names(TLS_NAMES_MAX + 4, san), 364, EVP_sha256());
	X509_CRL *list = make_list(4);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct certificate_error e = {0};

		error_set(&e, rows[i].code, rows[i].depth, x, list);
		error_text(&e, &of, text, sizeof(text));
		for (int k = 0; k < 2; k++)
			if (!strstr(text, rows[i].names[k]))
				fail_msg("'%s' does not name '%s'", text, rows[i].names[k]);
	}
	X509_CRL_free(list);
	X509_free(x);
}

/* Sixteen long names are more than the sentence holds: they are cut, and nothing else is touched. */
TEST(long_names_are_cut)
{
	struct certificate_error e = {0};
	char san[20 * TLS_NAME_SIZE];
	size_t n = 0;
	X509 *x;

	for (int i = 0; i < 18; i++)
		n += (size_t)sprintf(san + n, "%sDNS:%0100d", i ? "," : "", i);
	x = make_certificate("node", key, san, 365, EVP_sha256());
	strcpy(e.list_until, "untouched");
	error_set(&e, X509_V_ERR_HOSTNAME_MISMATCH, 0, x, NULL);
	assert_int_equal(strlen(e.names), sizeof(e.names) - 1);
	assert_string_equal(e.list_until, "untouched");
	X509_free(x);
	error_set(&e, X509_V_ERR_UNSPECIFIED, 2, NULL, NULL); /* without a certificate the texts stay as they are */
	assert_int_equal(e.code, X509_V_ERR_UNSPECIFIED);
	assert_int_equal(e.depth, 2);
}

TESTS_SETUP(set_up, tear_down);
