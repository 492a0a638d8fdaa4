/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to a web service: POST and GET over HTTP/1.1, with TLS and credentials (libcurl).
 *
 * - https is always verified: authority, validity period and name of the certificate, TLS 1.2 or later. There is no switch.
 * - No redirect is followed, so credentials and data go to the configured host only: an answer 3xx is returned as it is.
 * - Nothing is taken from the environment or from files of the user: no proxy, no .netrc, no cookies, no key log. Answers are not
 *   decompressed.
 * - A client keeps its connection for the next request. If the server has closed it meanwhile, the request is sent once more over
 *   a new one: a body may be read twice, and a server may see a request twice.
 * - A body of more than 1 MiB waits up to one second for "100 Continue", so that a server can refuse it before it is sent.
 *
 * Threads: a client belongs to one thread at a time. The first http_client_open() of a process is made while no other thread
 * opens one, or changes the environment. The process ignores SIGPIPE. The library may resolve a name in a thread of its own.
 *
 * Errors: the sentence is "https://HOST:PORT: PHASE: CAUSE". Codes:
 *   EINVAL                           the URL
 *   ENOKEY                           own certificate, key, authorities, revocation list or credentials cannot be used
 *   EKEYREJECTED                     the server's certificate is not accepted here, or ours not there
 *   EPROTONOSUPPORT                  the server does not speak TLS, or no version or cipher that is allowed here
 *   EHOSTUNREACH, ECONNREFUSED       the name cannot be resolved; no connection
 *   ETIMEDOUT                        one of the three times is over
 *   ECONNRESET                       the connection ended, during the TLS handshake too, or before the end of the answer; or an
 *                                    answer 2xx came before the whole body was sent, so it is no proof
 *   EMSGSIZE                         the answer is too large; EPROTO: it is not HTTP
 *   EIO                              the body could not be read; ENOMEM
 */
#ifndef TOMONODE_NODE_HTTP_CLIENT_H
#define TOMONODE_NODE_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernels/err.h"

/* Where to, and how. The strings are not used after http_client_open(). "" and NULL: none. */
struct http_target {
	const char *url;	       /* http or https, see node/base/url.h */
	const char *authorities;       /* file of trusted certificates (PEM), which replace the system's; none: the system's */
	const char *crl;	       /* file of revocation lists, of every authority in the chain */
	const char *certificate, *key; /* own certificate and its key (PEM); no key: it is in the certificate's file */
	const char *credentials;       /* file, read by http_client_open(): see node/web/http_credentials.h */
	double connect_timeout;	       /* s: name, TCP connection and TLS handshake together */
	double idle_timeout; /* s without a byte in either direction, after connecting; rounded up to a whole second, and
				noticed up to 6 s late: the library averages its speed over the last seconds */
	size_t answer_max;   /* most bytes of an answer's body */
};

/* The body: `size` bytes from `data`, or, if that is NULL, from read(), which stores the `n` bytes at offset `at` (or fewer, but
 * at least one) and returns their number, or a negative errno value. `at` may go back: see above. */
struct http_body {
	const void *data;
	ssize_t (*read)(void *context, uint64_t at, void *ret_bytes, size_t n);
	void *context;
	uint64_t size;
};

struct http_request {
	const char *path;	      /* replaces slashes at the end of the URL, "/studies"; NULL: the URL as it is */
	const char *const *headers;   /* "Content-Type: application/json", ..., NULL; NULL: none */
	const struct http_body *body; /* POST; NULL: GET */
	double total_timeout;	      /* s for the whole request; 0: none but the other two */
};

struct http_answer {
	int status;		/* 100 to 999 */
	char content_type[128]; /* "": none */
	double retry_after;	/* s, at most 86400; 0: none */
	const char *body;	/* followed by a NUL; valid until the client's next request */
	size_t size;
};

struct http_client;

/* Check the target and read its credentials. Does not connect. EINVAL, ENOKEY, ENOMEM. */
int http_client_open(const struct http_target *target, struct http_client **ret_client, struct err *err);
/* Send a request and read the whole answer. 0: *ret_answer is complete, whatever its status. */
int http_client_send(struct http_client *client, const struct http_request *request, struct http_answer *ret_answer,
		     struct err *err);
/* Return "https://HOST:PORT", for messages. */
const char *http_client_name(const struct http_client *client);
void http_client_close(struct http_client *client); /* may be NULL */

#endif
