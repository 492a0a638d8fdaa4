/* SPDX-License-Identifier: Apache-2.0 */
/* tls_text.cc - convert OpenSSL's codes into messages: which side refuses what, and what to do. A message follows "PEER: ", so
 * "it" is the peer. */
#include "dicom/network/tls_text.hh"

#include <arpa/inet.h>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace tomonode
{

void tls_name_text(X509 *certificate, bool issuer, char *ret_text, size_t size)
{
	const X509_NAME *name = issuer ? X509_get_issuer_name(certificate) : X509_get_subject_name(certificate);
	BIO *to = BIO_new(BIO_s_mem());
	int n = 0;

	if (to && X509_NAME_print_ex(to, name, 0, XN_FLAG_RFC2253) >= 0)
		n = BIO_read(to, ret_text, (int)size - 1);
	ret_text[n > 0 ? n : 0] = '\0';
	BIO_free(to);
}

static void print_date(const void *asn1_time, char *ret_text, size_t size)
{
	struct tm t;

	snprintf(ret_text, size, "an unreadable date");
	if (ASN1_TIME_to_tm(static_cast<const ASN1_TIME *>(asn1_time), &t) == 1)
		strftime(ret_text, size, "%Y-%m-%d %H:%M UTC", &t);
}

/* ---- names ---- */

static void add_name(struct tls_peer *p, const unsigned char *bytes, int n)
{
	char *to = p->names[p->n_names];

	if (p->n_names == TLS_NAMES_MAX || n <= 0 || n >= TLS_NAME_SIZE)
		return;
	for (int i = 0; i < n; i++) { /* reject unprintable characters; a NUL within a name is a known attack */
		if (bytes[i] <= ' ' && (bytes[i] != ' ' || i == 0))
			return;
		if (bytes[i] >= 0x7f)
			return;
	}
	memcpy(to, bytes, (size_t)n);
	to[n] = '\0';
	p->n_names++;
}

static void add_address(struct tls_peer *p, const ASN1_OCTET_STRING *address)
{
	int n = ASN1_STRING_length(address);
	char text[INET6_ADDRSTRLEN];

	if ((n == 4 || n == 16) && inet_ntop(n == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(address), text, sizeof(text)))
		add_name(p, (const unsigned char *)text, (int)strlen(text));
}

static void add_common_name(struct tls_peer *p, X509 *certificate)
{
	const X509_NAME *subject = X509_get_subject_name(certificate);
	int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
	unsigned char *utf8 = nullptr;
	int n;

	if (at < 0)
		return;
	n = ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
	if (n > 0)
		add_name(p, utf8, n);
	OPENSSL_free(utf8);
}

static void add_alternative_names(struct tls_peer *p, X509 *certificate)
{
	GENERAL_NAMES *names =
		static_cast<GENERAL_NAMES *>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));

	for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
		int kind;
		const void *value = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, i), &kind);

		if (kind == GEN_DNS || kind == GEN_EMAIL || kind == GEN_URI)
			add_name(p, ASN1_STRING_get0_data(static_cast<const ASN1_STRING *>(value)),
				 ASN1_STRING_length(static_cast<const ASN1_STRING *>(value)));
		else if (kind == GEN_IPADD)
			add_address(p, static_cast<const ASN1_OCTET_STRING *>(value));
	}
	GENERAL_NAMES_free(names);
}

void tls_names(X509 *certificate, struct tls_peer *ret_peer)
{
	add_alternative_names(ret_peer, certificate);
	add_common_name(ret_peer, certificate);
}

/* ---- the peer's certificate ---- */

/* Join the alternative names with commas. Only these are compared with the name of a server (RFC 9525). */
static void join_alternative_names(X509 *certificate, char *ret_text, size_t size)
{
	struct tls_peer p;
	size_t n = 0;

	p.n_names = 0;
	ret_text[0] = '\0';
	add_alternative_names(&p, certificate);
	for (size_t i = 0; i < p.n_names && n < size; i++)
		n += (size_t)snprintf(ret_text + n, size - n, "%s%s", i ? ", " : "", p.names[i]);
}

void tls_certificate_error_set(TlsCertificateError *d, int code, int depth, X509 *certificate, X509_CRL *list)
{
	d->code = code;
	d->depth = depth;
	if (list && X509_CRL_get0_nextUpdate(list))
		print_date(X509_CRL_get0_nextUpdate(list), d->list_until, sizeof(d->list_until));
	if (!certificate)
		return;
	tls_name_text(certificate, false, d->subject, sizeof(d->subject));
	tls_name_text(certificate, true, d->issuer, sizeof(d->issuer));
	print_date(X509_get0_notBefore(certificate), d->from, sizeof(d->from));
	print_date(X509_get0_notAfter(certificate), d->until, sizeof(d->until));
	join_alternative_names(certificate, d->names, sizeof(d->names));
}

/* Write the message for an error concerning revocation. Return false, and write nothing, for other errors. */
static bool crl_error_text(const TlsCertificateError *d, const char *whose, const char *file, char *ret_text, size_t size)
{
	switch (d->code) {
	case X509_V_ERR_CERT_REVOKED:
		snprintf(ret_text, size, "%s (%s) was revoked by its authority (%s): it needs a new one", whose, d->subject,
			 d->issuer);
		return true;
	case X509_V_ERR_UNABLE_TO_GET_CRL:
	case X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER:
		snprintf(ret_text, size,
			 "%s (%s) cannot be checked for revocation: %s has no revocation list of %s; get that list, or remove "
			 "`crl`",
			 whose, d->subject, file, d->issuer);
		return true;
	case X509_V_ERR_CRL_HAS_EXPIRED:
		snprintf(ret_text, size,
			 "%s (%s) cannot be checked for revocation: the revocation list of %s in %s ended on %s; get the new "
			 "list and reload",
			 whose, d->subject, d->issuer, file, d->list_until);
		return true;
	case X509_V_ERR_CRL_NOT_YET_VALID:
	case X509_V_ERR_CRL_SIGNATURE_FAILURE:
	case X509_V_ERR_UNABLE_TO_DECRYPT_CRL_SIGNATURE:
	case X509_V_ERR_KEYUSAGE_NO_CRL_SIGN:
		snprintf(ret_text, size, "%s (%s) cannot be checked for revocation: the list of %s in %s: %s", whose, d->subject,
			 d->issuer, file, X509_verify_cert_error_string(d->code));
		return true;
	default:
		return false;
	}
}

void tls_certificate_error_text(const TlsCertificateError *d, const TlsMessageNames *of, char *ret_text, size_t size)
{
	const char *authorities = of->authorities, *name = of->name;
	const char *whose = d->depth ? "the certificate of its authority" : "its certificate";

	if (crl_error_text(d, whose, of->crl, ret_text, size))
		return;
	switch (d->code) {
	case X509_V_ERR_CERT_HAS_EXPIRED:
		snprintf(ret_text, size, "%s (%s) expired on %s: it needs a new one", whose, d->subject, d->until);
		break;
	case X509_V_ERR_CERT_NOT_YET_VALID:
		snprintf(ret_text, size, "%s (%s) is not valid before %s: check the clocks of both machines", whose, d->subject,
			 d->from);
		break;
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
	case X509_V_ERR_CERT_UNTRUSTED:
		if (!authorities || !authorities[0])
			authorities = "any file (key `authorities`)";
		if (strcmp(d->issuer, d->subject) != 0)
			snprintf(ret_text, size, "%s (%s) was issued by %s, which is not trusted: it is not in %s", whose,
				 d->subject, d->issuer, authorities);
		else /* a root, or a certificate without an authority */
			snprintf(ret_text, size, "%s (%s) is not trusted: nobody else has signed it, and it is not in %s", whose,
				 d->subject, authorities);
		break;
	case X509_V_ERR_HOSTNAME_MISMATCH:
	case X509_V_ERR_IP_ADDRESS_MISMATCH:
		if (d->names[0] && d->code == X509_V_ERR_IP_ADDRESS_MISMATCH)
			snprintf(ret_text, size,
				 "its certificate (%s) is for %s, not for the address %s, the configured name, which must be "
				 "there as an IP address in subjectAltName",
				 d->subject, d->names, name ? name : "");
		else if (d->names[0])
			snprintf(ret_text, size, "its certificate (%s) is for %s, not for %s, the configured name", d->subject,
				 d->names, name ? name : "");
		else
			snprintf(ret_text, size,
				 "its certificate (%s) contains no host name (subjectAltName), but must contain %s, the "
				 "configured name",
				 d->subject, name ? name : "");
		break;
	case X509_V_ERR_INVALID_PURPOSE:
		snprintf(ret_text, size, "its certificate (%s) may not be used by a %s (extended key usage)", d->subject,
			 of->server ? "TLS client" : "TLS server");
		break;
	case X509_V_ERR_EE_KEY_TOO_SMALL:
	case X509_V_ERR_CA_KEY_TOO_SMALL:
		snprintf(ret_text, size, "%s (%s) has a key that is too short to be safe (RSA: at least 2048 bits)", whose,
			 d->subject);
		break;
	case X509_V_ERR_CA_MD_TOO_WEAK:
		snprintf(ret_text, size, "%s (%s) is signed with a digest that is no longer safe", whose, d->subject);
		break;
	default:
		snprintf(ret_text, size, "%s (%s) is not accepted: %s", whose, d->subject,
			 X509_verify_cert_error_string(d->code));
	}
}

/* ---- alerts and reasons ---- */

static int alert_text(int alert, bool server, char *ret_text, size_t size)
{
	static const struct {
		int alert, code;
		const char *words;
	} table[] = {
		{SSL_AD_BAD_CERTIFICATE, EKEYREJECTED, "it does not accept our certificate"},
		{SSL_AD_UNSUPPORTED_CERTIFICATE, EKEYREJECTED, "it does not support this kind of certificate"},
		{SSL_AD_CERTIFICATE_REVOKED, EKEYREJECTED, "it says that our certificate is revoked"},
		{SSL_AD_CERTIFICATE_EXPIRED, EKEYREJECTED,
		 "it says that our certificate has expired, or is not valid yet: check the clocks of both machines too"},
		{SSL_AD_CERTIFICATE_UNKNOWN, EKEYREJECTED, "it does not accept our certificate"},
		{SSL_AD_UNKNOWN_CA, EKEYREJECTED,
		 "it does not trust the authority that issued our certificate: install that authority there"},
		{SSL_AD_ACCESS_DENIED, EKEYREJECTED, "it denies access to our certificate"},
		{SSL_AD_CERTIFICATE_REQUIRED, EKEYREJECTED,
		 "it requires a client certificate, and none is configured (keys `certificate` and `key`)"},
		{SSL_AD_DECRYPT_ERROR, EKEYREJECTED, "it could not verify our signature: our certificate or key is damaged"},
		{SSL_AD_PROTOCOL_VERSION, EPROTONOSUPPORT, "it supports neither TLS 1.2 nor 1.3"},
		{SSL_AD_INSUFFICIENT_SECURITY, EPROTONOSUPPORT, "it requires stronger cryptography than this node offers"},
		{SSL_AD_UNRECOGNIZED_NAME, EKEYREJECTED, "it does not have the configured name"},
	};

	if (alert == SSL_AD_HANDSHAKE_FAILURE) {
		snprintf(ret_text, size, "%s (its alert: \"handshake failure\")",
			 server ? "it accepts none of the local cipher suites"
				: "it accepts none of the local cipher suites, or it requires a client certificate and none is "
				  "configured");
		return EPROTONOSUPPORT;
	}
	for (const auto &row : table)
		if (row.alert == alert) {
			snprintf(ret_text, size, "%s", row.words);
			return row.code;
		}
	snprintf(ret_text, size, "it ended the TLS connection with the alert \"%s\"", SSL_alert_desc_string_long(alert));
	return EPROTO;
}

int tls_reason_text(int reason, bool server, const char *offered, char *ret_text, size_t size)
{
	if (reason >= SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256)
		return alert_text(reason - SSL_AD_REASON_OFFSET, server, ret_text, size);
	switch (reason) {
	case SSL_R_NO_SHARED_CIPHER:
	case SSL_R_UNKNOWN_CIPHER_RETURNED:
	case SSL_R_WRONG_CIPHER_RETURNED:
	case SSL_R_NO_CIPHERS_AVAILABLE:
		snprintf(ret_text, size,
			 "no common cipher suite: supported are those with forward secrecy and authenticated encryption (ECDHE "
			 "with AES-GCM or ChaCha20-Poly1305)%s",
			 server ? " that suit our certificate's key" : "");
		return EPROTONOSUPPORT;
	case SSL_R_NO_SHARED_GROUPS:
	case SSL_R_NO_SUITABLE_KEY_SHARE:
	case SSL_R_NO_SUITABLE_GROUPS:
		snprintf(ret_text, size, "no common elliptic curve for the key exchange");
		return EPROTONOSUPPORT;
	case SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS:
	case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
		snprintf(ret_text, size, "no common signature algorithm");
		return EPROTONOSUPPORT;
	case SSL_R_UNSUPPORTED_PROTOCOL:
	case SSL_R_VERSION_TOO_LOW:
	case SSL_R_WRONG_SSL_VERSION:
	case SSL_R_INAPPROPRIATE_FALLBACK:
		snprintf(ret_text, size, "no common TLS version: it %s %s, but 1.2 or 1.3 is required",
			 server ? "offers at most" : "answers with", offered);
		return EPROTONOSUPPORT;
	case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
		snprintf(ret_text, size,
			 "it sent no certificate, and this port requires one (key `client_certificate`): configure a certificate "
			 "and its key there");
		return EKEYREJECTED;
	default:
		snprintf(ret_text, size, "TLS failed: %s", ERR_reason_error_string(ERR_PACK(ERR_LIB_SSL, 0, reason)));
		return EPROTO;
	}
}

} // namespace tomonode
