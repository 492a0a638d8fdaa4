/* SPDX-License-Identifier: Apache-2.0 */
#include "node/web/http_client.h"

#include <curl/curl.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/url.h"
#include "node/web/http_credentials.h"

#define RETRY_AFTER_MAX 86400.0

struct http_client {
	CURL *curl;
	char url[URL_SIZE], name[160];
	double idle_timeout;
	size_t answer_max;
	char *answer; /* answer_max + 1 bytes at most */
	size_t answer_size, answer_room;
	bool too_large;
	/* of the present request */
	const struct http_body *body;
	uint64_t at;
	int read_error;
	char detail[CURL_ERROR_SIZE];
};

const char *http_client_name(const struct http_client *c)
{
	return c->name;
}

static size_t take_answer(char *bytes, size_t one, size_t n, void *context)
{
	struct http_client *c = context;
	char *grown;

	n *= one;
	if (n > c->answer_max - c->answer_size) {
		c->too_large = true;
		return CURL_WRITEFUNC_ERROR;
	}
	if (c->answer_size + n + 1 > c->answer_room) {
		c->answer_room = 2 * (c->answer_size + n) + 1;
		grown = realloc(c->answer, c->answer_room);
		if (!grown)
			return CURL_WRITEFUNC_ERROR;
		c->answer = grown;
	}
	memcpy(c->answer + c->answer_size, bytes, n);
	c->answer_size += n;
	c->answer[c->answer_size] = '\0';
	return n;
}

static size_t give_body(char *ret_bytes, size_t one, size_t n, void *context)
{
	struct http_client *c = context;
	ssize_t got;

	n *= one;
	if (n > c->body->size - c->at)
		n = (size_t)(c->body->size - c->at);
	if (n == 0)
		return 0;
	if (c->body->data) {
		memcpy(ret_bytes, (const char *)c->body->data + c->at, n);
		got = (ssize_t)n;
	} else {
		got = c->body->read(c->body->context, c->at, ret_bytes, n);
	}
	if (got <= 0 || (size_t)got > n) {
		c->read_error = got < 0 ? (int)-got : EIO;
		return CURL_READFUNC_ABORT;
	}
	c->at += (uint64_t)got;
	return (size_t)got;
}

static int seek_body(void *context, curl_off_t at, int origin)
{
	struct http_client *c = context;

	if (origin != SEEK_SET || at < 0 || (uint64_t)at > c->body->size)
		return CURL_SEEKFUNC_FAIL;
	c->at = (uint64_t)at;
	return CURL_SEEKFUNC_OK;
}

/* Once for the process. The library would write the keys of TLS to a file that the environment names. */
static CURLcode begin_library(void)
{
	static bool begun;
	CURLcode rc = CURLE_OK;

	if (!begun) {
		unsetenv("SSLKEYLOGFILE");
		rc = curl_global_init(CURL_GLOBAL_DEFAULT);
		begun = rc == CURLE_OK;
	}
	return rc;
}

static bool is_given(const char *text)
{
	return text && text[0];
}

/* Add the code of an option that cannot be set to *rc, which keeps the first. */
#define SET(client, rc, option, value) ((rc) = (rc) != CURLE_OK ? (rc) : curl_easy_setopt((client)->curl, option, value))

static CURLcode set_tls(struct http_client *c, const struct http_target *t)
{
	CURLcode rc = CURLE_OK;

	SET(c, rc, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	SET(c, rc, CURLOPT_SSL_VERIFYPEER, 1L);
	SET(c, rc, CURLOPT_SSL_VERIFYHOST, 2L);
	if (is_given(t->authorities)) {
		SET(c, rc, CURLOPT_CAINFO, t->authorities);
		SET(c, rc, CURLOPT_CAPATH, NULL); /* otherwise the system's authorities would be trusted, too */
	}
	if (is_given(t->crl))
		SET(c, rc, CURLOPT_CRLFILE, t->crl);
	if (is_given(t->certificate)) {
		SET(c, rc, CURLOPT_SSLCERT, t->certificate);
		SET(c, rc, CURLOPT_SSLKEY, is_given(t->key) ? t->key : t->certificate);
	}
	return rc;
}

static CURLcode set_credentials(struct http_client *c, const struct http_credentials *credentials)
{
	CURLcode rc = CURLE_OK;

	if (credentials->user[0]) {
		SET(c, rc, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
		SET(c, rc, CURLOPT_USERNAME, credentials->user);
		SET(c, rc, CURLOPT_PASSWORD, credentials->secret);
	} else {
		SET(c, rc, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
		SET(c, rc, CURLOPT_XOAUTH2_BEARER, credentials->secret);
	}
	return rc;
}

static CURLcode set_options(struct http_client *c, const struct http_target *t)
{
	CURLcode rc = CURLE_OK;

	SET(c, rc, CURLOPT_ERRORBUFFER, c->detail);
	SET(c, rc, CURLOPT_NOSIGNAL, 1L);
	SET(c, rc, CURLOPT_PROTOCOLS_STR, "http,https");
	SET(c, rc, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	SET(c, rc, CURLOPT_FOLLOWLOCATION, 0L);
	SET(c, rc, CURLOPT_PROXY, "");
	SET(c, rc, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	SET(c, rc, CURLOPT_HTTP09_ALLOWED, 0L);
	SET(c, rc, CURLOPT_USERAGENT, "tomonode");
	SET(c, rc, CURLOPT_TCP_KEEPALIVE, 1L);
	SET(c, rc, CURLOPT_CONNECTTIMEOUT_MS, (long)ceil(t->connect_timeout * 1000));
	SET(c, rc, CURLOPT_LOW_SPEED_LIMIT, 1L);
	SET(c, rc, CURLOPT_LOW_SPEED_TIME, (long)c->idle_timeout);
	SET(c, rc, CURLOPT_WRITEFUNCTION, take_answer);
	SET(c, rc, CURLOPT_WRITEDATA, c);
	SET(c, rc, CURLOPT_READFUNCTION, give_body);
	SET(c, rc, CURLOPT_READDATA, c);
	SET(c, rc, CURLOPT_SEEKFUNCTION, seek_body);
	SET(c, rc, CURLOPT_SEEKDATA, c);
	return rc == CURLE_OK ? set_tls(c, t) : rc;
}

int http_client_open(const struct http_target *t, struct http_client **ret_client, struct err *err)
{
	struct http_credentials credentials = {0};
	struct http_client *c = NULL;
	struct url url;
	CURLcode rc;
	int ret = url_parse(t->url, &url, err);

	if (ret < 0)
		return ret;
	if (is_given(t->credentials)) {
		ret = http_credentials_read(t->credentials, &credentials, err);
		if (ret < 0)
			return ret;
	}
	rc = begin_library();
	c = calloc(1, sizeof(*c));
	if (c && rc == CURLE_OK)
		c->curl = curl_easy_init();
	if (!c || rc != CURLE_OK || !c->curl) {
		ret = err_set(err, ENOMEM, "%s: no memory for a client", t->url);
		goto out;
	}
	snprintf(c->url, sizeof(c->url), "%s", t->url);
	snprintf(c->name, sizeof(c->name), strchr(url.host, ':') ? "%s://[%s]:%d" : "%s://%s:%d", url.tls ? "https" : "http",
		 url.host, url.port);
	c->answer_max = t->answer_max;
	c->idle_timeout = ceil(t->idle_timeout);
	rc = set_options(c, t);
	if (rc == CURLE_OK && is_given(t->credentials))
		rc = set_credentials(c, &credentials);
	if (rc != CURLE_OK)
		ret = err_set(err, rc == CURLE_OUT_OF_MEMORY ? ENOMEM : EINVAL, "%s: cannot set up a client: %s", c->name,
			      curl_easy_strerror(rc));
out:
	http_credentials_clear(&credentials);
	if (ret < 0)
		http_client_close(c);
	else
		*ret_client = c;
	return ret;
}

void http_client_close(struct http_client *c)
{
	if (!c)
		return;
	curl_easy_cleanup(c->curl);
	free(c->answer);
	free(c);
}

static double seconds_until(struct http_client *c, CURLINFO info)
{
	double seconds = 0;

	curl_easy_getinfo(c->curl, info, &seconds);
	return seconds;
}

/* The phase that a request was in when it failed with this code. The library knows the time of a connection only after the
 * handshake. */
static const char *request_phase(struct http_client *c, CURLcode rc)
{
	curl_off_t sent = 0;

	switch (rc) {
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_ISSUER_ERROR:
	case CURLE_SSL_CIPHER:
		return "TLS handshake";
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_CRL_BADFILE:
		return "own TLS files";
	default:
		break;
	}

	if (seconds_until(c, CURLINFO_PRETRANSFER_TIME) > 0) {
		if (seconds_until(c, CURLINFO_STARTTRANSFER_TIME) > 0 && c->answer_size > 0)
			return "receiving the answer";
		curl_easy_getinfo(c->curl, CURLINFO_SIZE_UPLOAD_T, &sent);
		return c->body && (uint64_t)sent < c->body->size ? "sending" : "waiting for the answer";
	}
	if (seconds_until(c, CURLINFO_CONNECT_TIME) > 0)
		return "TLS handshake";
	return seconds_until(c, CURLINFO_NAMELOOKUP_TIME) > 0 ? "connecting" : "resolving the name";
}

static const struct {
	CURLcode from;
	int code;
	const char *text; /* NULL: the library's */
} failures[] = {
	{CURLE_COULDNT_RESOLVE_HOST, EHOSTUNREACH, "the name cannot be resolved"},
	{CURLE_COULDNT_CONNECT, ECONNREFUSED, NULL},
	{CURLE_OPERATION_TIMEDOUT, ETIMEDOUT, NULL},
	{CURLE_PEER_FAILED_VERIFICATION, EKEYREJECTED, NULL},
	{CURLE_SSL_ISSUER_ERROR, EKEYREJECTED, NULL},
	{CURLE_SSL_CERTPROBLEM, ENOKEY, NULL},
	{CURLE_SSL_CACERT_BADFILE, ENOKEY, NULL},
	{CURLE_SSL_CRL_BADFILE, ENOKEY, NULL},
	{CURLE_SSL_CIPHER, EPROTONOSUPPORT, NULL},
	{CURLE_UNSUPPORTED_PROTOCOL, EPROTO, "the answer is not HTTP/1"},
	{CURLE_WEIRD_SERVER_REPLY, EPROTO, "the answer is not HTTP"},
	{CURLE_GOT_NOTHING, ECONNRESET, "the server closed the connection without an answer"},
	{CURLE_PARTIAL_FILE, ECONNRESET, "the connection ended before the end of the answer"},
	{CURLE_RECV_ERROR, ECONNRESET, NULL},
	{CURLE_SEND_ERROR, ECONNRESET, NULL},
	{CURLE_SEND_FAIL_REWIND, ECONNRESET, NULL},
	{CURLE_OUT_OF_MEMORY, ENOMEM, "no memory"},
};

/* CURLE_SSL_CONNECT_ERROR has many causes, which only its text tells apart. */
static int handshake_code(const char *detail)
{
	static const char *const ours[] = {"certificate required", "bad certificate",	  "unknown ca",	   "certificate unknown",
					   "certificate expired",  "certificate revoked", "access denied", "alert decrypt error"};
	static const char *const other[] = {"wrong version number", "unsupported protocol",   "protocol version",
					    "no protocols",	    "handshake failure",      "insufficient security",
					    "no shared cipher",	    "packet length too long", "http request"};

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (strstr(detail, ours[i]))
			return EKEYREJECTED;
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++)
		if (strstr(detail, other[i]))
			return EPROTONOSUPPORT;
	return ECONNRESET;
}

static int fail_request(struct http_client *c, CURLcode rc, struct err *err)
{
	const char *text = c->detail[0] ? c->detail : curl_easy_strerror(rc);
	int code = EIO;

	if (c->too_large)
		return err_set(err, EMSGSIZE, "%s: receiving the answer: it has more than %zu bytes", c->name, c->answer_max);
	if (c->read_error)
		return err_set(err, EIO, "%s: sending: what is to be sent cannot be read: %s", c->name, strerror(c->read_error));
	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++)
		if (failures[i].from == rc) {
			code = failures[i].code;
			text = failures[i].text ? failures[i].text : text;
		}
	if (rc == CURLE_OPERATION_TIMEDOUT && strstr(text, "too slow"))
		return err_set(err, code, "%s: %s: nothing was sent or received for %g s", c->name, request_phase(c, rc),
			       c->idle_timeout);
	if (rc == CURLE_SSL_CONNECT_ERROR)
		code = handshake_code(text);
	else if (code == ECONNRESET && strstr(text, "alert")) /* TLS 1.3: the server judges our certificate after the handshake */
		code = handshake_code(text);
	return err_set(err, code, "%s: %s: %.300s", c->name, request_phase(c, rc), text);
}

static void read_answer(struct http_client *c, struct http_answer *ret)
{
	curl_off_t after = 0;
	char *type = NULL;
	long status = 0;

	curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(c->curl, CURLINFO_CONTENT_TYPE, &type);
	curl_easy_getinfo(c->curl, CURLINFO_RETRY_AFTER, &after);
	ret->status = (int)status;
	snprintf(ret->content_type, sizeof(ret->content_type), "%s", type ? type : "");
	err_clean(ret->content_type);
	ret->retry_after = after > 0 ? fmin((double)after, RETRY_AFTER_MAX) : 0;
	ret->body = c->answer ? c->answer : "";
	ret->size = c->answer_size;
}

/* Return true if the body was not wholly sent: the server did not wait for it, and the library then reads the answer all the
 * same. */
static bool cut_short(struct http_client *c)
{
	curl_off_t sent = 0;

	curl_easy_getinfo(c->curl, CURLINFO_SIZE_UPLOAD_T, &sent);
	return c->body && (c->at < c->body->size || (uint64_t)sent < c->body->size);
}

static CURLcode set_request(struct http_client *c, const struct http_request *r, const char *url, struct curl_slist *headers)
{
	CURLcode rc = CURLE_OK;

	SET(c, rc, CURLOPT_URL, url);
	SET(c, rc, CURLOPT_HTTPHEADER, headers);
	SET(c, rc, CURLOPT_TIMEOUT_MS, (long)ceil(r->total_timeout * 1000));
	if (r->body) {
		SET(c, rc, CURLOPT_POST, 1L);
		SET(c, rc, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body->size);
	} else {
		SET(c, rc, CURLOPT_HTTPGET, 1L);
	}
	return rc;
}

int http_client_send(struct http_client *c, const struct http_request *r, struct http_answer *ret_answer, struct err *err)
{
	struct curl_slist *headers = NULL, *more;
	size_t n = strlen(c->url);
	char url[2 * URL_SIZE];
	CURLcode rc = CURLE_OK;

	*ret_answer = (struct http_answer){0};
	while (r->path && c->url[n - 1] == '/') /* the path begins with one */
		n--;
	if ((size_t)snprintf(url, sizeof(url), "%.*s%s", (int)n, c->url, r->path ? r->path : "") >= sizeof(url))
		return err_set(err, EINVAL, "%s: a path of more than %d characters", c->name, URL_SIZE);
	c->body = r->body;
	c->at = 0;
	c->read_error = 0;
	c->answer_size = 0;
	if (c->answer)
		c->answer[0] = '\0';
	c->too_large = false;
	c->detail[0] = '\0';
	for (const char *const *h = r->headers; h && *h && rc == CURLE_OK; h++) {
		more = curl_slist_append(headers, *h);
		rc = more ? CURLE_OK : CURLE_OUT_OF_MEMORY;
		headers = more ? more : headers;
	}
	if (rc == CURLE_OK)
		rc = set_request(c, r, url, headers);
	if (rc == CURLE_OK)
		rc = curl_easy_perform(c->curl);
	curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, NULL);
	curl_slist_free_all(headers);
	if (rc != CURLE_OK)
		return fail_request(c, rc, err);
	read_answer(c, ret_answer);
	if (ret_answer->status < 200 || ret_answer->status > 299 || !cut_short(c))
		return 0;
	*ret_answer = (struct http_answer){0};
	return err_set(err, ECONNRESET, "%s: sending: the server answered with success before everything was sent", c->name);
}
