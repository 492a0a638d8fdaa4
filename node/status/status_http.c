/* SPDX-License-Identifier: Apache-2.0 */
#include "node/status/status_http.h"

#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "kernels/clock.h"
#include "node/base/language.h"
#include "node/base/network.h"
#include "node/status/status.h"
#include "node/status/status_ipc.h"
#include "node/status/web.h"

#define CONNECTIONS 64
#define CROWDED 40	      /* number of connections from which HTTP_LIFE_CROWDED applies */
#define HTTP_LIFE 15.0	      /* s; longest duration of a connection */
#define HTTP_LIFE_CROWDED 3.0 /* s; the same while many connections are open */
#define HTTP_SILENCE 5	      /* s without a byte after which a connection is closed */
#define HEADER_BYTES 16384
#define REJECTED_BYTES 65536 /* bytes that are read and dropped of a body that is too large; then the connection is closed */
#define ASK_SECONDS 10.0     /* longest time to wait for a page */
#define RETRY_AFTER "5"	     /* s after which a browser may try again if it did not come */
#define TICK_MS 250
#define TOKENS 64 /* persons whose forms are accepted at the same time; of more, those that asked first get another token */

struct connection {   /* an open connection */
	int fd;	      /* -1: the entry is free */
	double since; /* time of its start, on clock_seconds() */
};

struct token { /* of the forms of a person; a person's form is not accepted from another one */
	char person[STATUS_PERSON_SIZE];
	char text[STATUS_TOKEN_SIZE]; /* "": the entry is free */
};

struct http {
	const struct status_http_conf *conf;
	struct token tokens[TOKENS];
	size_t next; /* entry of `tokens` for the next person */
	struct connection open[CONNECTIONS];
	bool late;   /* the process that makes the pages owes a reply for which nobody waits any more */
	bool broken; /* the socket to it has failed */
};

struct request { /* a request whose body may not be received completely */
	struct status_person person;
	char form[STATUS_FORM_MAX];
	size_t n;
};

static const char *header_of(struct MHD_Connection *c, const char *name)
{
	return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

/* ---- languages ---- */

#define LANGUAGE_FIELD "language" /* of the address, and the name of the cookie */

static enum language language_of(const struct http *s, struct MHD_Connection *c)
{
	return language_choose(s->conf->status->language, MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, LANGUAGE_FIELD),
			       MHD_lookup_connection_value(c, MHD_COOKIE_KIND, LANGUAGE_FIELD), header_of(c, "Accept-Language"));
}

/* Keep a language that the address asks for, for a year. */
static void keep_language(struct MHD_Connection *c, struct MHD_Response *r)
{
	enum language l;
	char text[120];

	if (!language_parse(MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, LANGUAGE_FIELD), &l))
		return;
	snprintf(text, sizeof(text), LANGUAGE_FIELD "=%s; Path=/; Max-Age=31536000; HttpOnly; SameSite=Lax", language_code(l));
	MHD_add_response_header(r, "Set-Cookie", text);
}

/* ---- responses ---- */

static const char report_type[] = "text/html; charset=utf-8"; /* add_headers() knows a report by this address */
static const char slice_type[] = "application/octet-stream";
static const char *const types[STATUS_TYPES] = {
	[STATUS_TYPE_HTML] = "text/html; charset=utf-8",
	[STATUS_TYPE_JSON] = "application/json",
	[STATUS_TYPE_METRICS] = "text/plain; version=0.0.4; charset=utf-8",
	[STATUS_TYPE_TEXT] = "text/plain; charset=utf-8",
	[STATUS_TYPE_PNG] = "image/png",
	[STATUS_TYPE_SLICE] = slice_type,
	[STATUS_TYPE_REPORT] = report_type,
};

static void add_headers(struct MHD_Response *r, int code, const char *type)
{
	static const char own[] = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
				  "form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
	/* A report has style, script and pictures inside. `sandbox` gives it an origin of its own: it cannot act on the node's
	 * pages, even if a text of an object became a script. Its own policy allows only its own script. */
	static const char report[] = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
				     "form-action 'none'; base-uri 'none'; frame-ancestors 'none'; sandbox allow-scripts";
	static const char *const headers[][2] = {
		{"X-Content-Type-Options", "nosniff"},		 {"X-Frame-Options", "DENY"}, {"Referrer-Policy", "same-origin"},
		{"Cross-Origin-Resource-Policy", "same-origin"}, {"Connection", "close"},
	};

	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
		MHD_add_response_header(r, headers[i][0], headers[i][1]);
	MHD_add_response_header(r, "Content-Security-Policy", type == report_type ? report : own);
	if (type != report_type) /* not allowed together with `sandbox` (HTML, 7.4.5) */
		MHD_add_response_header(r, "Cross-Origin-Opener-Policy", "same-origin");
	MHD_add_response_header(r, "Content-Type", type);
	/* A browser may cache a picture or a slice for a minute, but no other response; 202: it is being made. */
	MHD_add_response_header(r, "Cache-Control",
				code == 200 && (!strcmp(type, "image/png") || type == slice_type) ? "private, max-age=60"
												  : "no-store");
}

static enum MHD_Result queue_response(struct MHD_Connection *c, int code, struct MHD_Response *r)
{
	enum MHD_Result ret = r ? MHD_queue_response(c, (unsigned)code, r) : MHD_NO;

	if (r)
		MHD_destroy_response(r);
	return ret;
}

static enum MHD_Result reply_fixed(struct MHD_Connection *c, const char *type, const char *bytes, size_t n)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(n, (void *)bytes, MHD_RESPMEM_PERSISTENT);

	if (r)
		add_headers(r, 200, type);
	return queue_response(c, 200, r);
}

/* Refuse a request with a sentence as the body. */
static enum MHD_Result refuse_request(const struct http *s, struct MHD_Connection *c, int code, const char *allow,
				      const char *sentence)
{
	struct MHD_Response *r;
	struct html h = {0};

	status_write_sentence(&h, language_of(s, c), "Not done", sentence);
	r = h.failed ? NULL : MHD_create_response_from_buffer(h.n, h.text, MHD_RESPMEM_MUST_COPY);
	html_clear(&h);
	if (r)
		add_headers(r, code, types[STATUS_TYPE_HTML]);
	if (r && allow)
		MHD_add_response_header(r, "Allow", allow);
	if (r && code == 503)
		MHD_add_response_header(r, "Retry-After", RETRY_AFTER);
	if (r && code == 401) /* RFC 9110 section 15.5.2; no browser asks for a password for this scheme */
		MHD_add_response_header(r, "WWW-Authenticate", "TrustedHeader realm=\"tomonode\"");
	return queue_response(c, code, r);
}

/* ---- tokens ---- */

static int make_token(char ret_token[STATUS_TOKEN_SIZE])
{
	unsigned char bytes[(STATUS_TOKEN_SIZE - 1) / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return -1;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(ret_token + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

/* Return the token of a person ("": no person); NULL: no random numbers. */
static const char *token_of(struct http *s, const char *person)
{
	struct token *t;

	for (size_t i = 0; i < TOKENS; i++)
		if (s->tokens[i].text[0] && !strcmp(s->tokens[i].person, person))
			return s->tokens[i].text;
	t = &s->tokens[s->next];
	if (make_token(t->text) < 0) {
		t->text[0] = '\0';
		return NULL;
	}
	snprintf(t->person, sizeof(t->person), "%s", person);
	s->next = (s->next + 1) % TOKENS;
	return t->text;
}

/* Send a request to the process that reads the journal. false: it has not replied in time, or to an earlier request; this process
 * stays, as long as the socket is whole. */
static bool exchange_request(struct http *s, struct status_request *q, struct status_reply *ret_reply)
{
	const char *token = token_of(s, q->person.name);
	int came = -1;

	if (token) {
		memcpy(q->token, token, sizeof(q->token));
		came = status_ipc_request(s->conf->ipc_fd, q, ASK_SECONDS, &s->late, ret_reply);
	}
	s->broken = s->broken || came < 0;
	return came > 0;
}

static enum MHD_Result ask_reporter(struct http *s, struct MHD_Connection *c, struct status_request *q)
{
	struct status_reply a = {0};
	struct MHD_Response *r;
	char location[40] = "/";

	for (enum status_field i = 0; q->page == STATUS_CASES && i < STATUS_FIELDS; i++)
		status_filter_set(&q->filter, i, MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, status_filter_field(i)));
	if (!exchange_request(s, q, &a))
		return refuse_request(s, c, 503, NULL,
				      status_page_changes_job(q->page) ? "The node does not respond. It may still do what you "
									 "asked for: look at the case before you try again."
								       : "The node does not respond. Try again in a moment.");
	r = MHD_create_response_from_buffer(a.n, a.bytes, MHD_RESPMEM_MUST_FREE);
	if (!r) {
		free(a.bytes);
		return MHD_NO;
	}
	add_headers(r, a.code, types[a.type]);
	if (a.job > 0)
		snprintf(location, sizeof(location), "/jobs/%lld", (long long)a.job);
	keep_language(c, r);
	if (a.code == 303)
		MHD_add_response_header(r, "Location", location);
	return queue_response(c, a.code, r);
}

/* ---- requests ---- */

/* The address of the other end; "::", which is never a sender's, if it is unknown. */
static struct in6_addr address_of(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	struct in6_addr address;

	return info && network_address(info->client_addr, &address) ? address : in6addr_any;
}

/* Have it logged that a request from another page, or under another host name, was refused: somebody may be trying to use a
 * person's browser. This process itself may write nothing but to its sockets. */
static void log_refusal(struct http *s, struct MHD_Connection *c, int code, const char *path, const char *sentence)
{
	const char *host = header_of(c, "Host"), *origin = header_of(c, "Origin");
	struct status_request q = {.page = STATUS_REFUSED, .person.role = STATUS_ROLE_ANYONE};
	struct status_reply reply = {0};
	struct in6_addr address = address_of(c);
	char client[INET6_ADDRSTRLEN];

	network_print(&address, client, sizeof(client));
	snprintf(q.refused, sizeof(q.refused), "%d for %.80s from %s, Host: %.80s%s%.80s: %s", code, path, client,
		 host ? host : "", origin ? ", Origin: " : "", origin ? origin : "", sentence);
	exchange_request(s, &q, &reply);
	free(reply.bytes);
}

/* Check that a POST request is a form of the page itself. NULL: it is, and `to` has its fields; otherwise return the reason of
 * the refusal. */
static const char *why_not(struct http *s, struct MHD_Connection *c, const struct request *q, struct status_request *to)
{
	const char *site = header_of(c, "Sec-Fetch-Site"), *type = header_of(c, "Content-Type");
	const char *token = token_of(s, q->person.name);
	const char *field = to->page == STATUS_REDO    ? "protocol"
			    : to->page == STATUS_SWEEP ? "sweep"
			    : to->page == STATUS_SAME  ? "seen"
						       : NULL;

	if (!status_request_origin_allowed(header_of(c, "Origin"), header_of(c, "Host")) ||
	    (site && strcmp(site, "same-origin") != 0))
		return "Cases can only be changed from the node's own page.";
	if (!token || !type || strcasecmp(type, "application/x-www-form-urlencoded") != 0 ||
	    !(field ? status_request_choice_valid(q->form, q->n, token, field, to->choice, sizeof(to->choice))
		    : status_request_token_valid(q->form, q->n, token)))
		return "The page was out of date. Go back, and try again.";
	return NULL;
}

struct headers {
	const struct status_conf *conf;
	int hosts;
	bool blank; /* a name contains a blank */
	struct status_claim claim;
};

static enum MHD_Result look_at_header(void *cls, enum MHD_ValueKind kind, const char *name, size_t n_name, const char *value,
				      size_t n)
{
	struct headers *h = cls;

	(void)kind;
	(void)n_name;
	h->hosts += !strcasecmp(name, "Host");
	h->blank = h->blank || name[strcspn(name, " \t")];
	status_claim_header(&h->claim, h->conf, name, value, n);
	return MHD_YES;
}

/* Return why the headers are ambiguous (RFC 9112 sections 3.2 and 5.1), so that a proxy in front of the node may read them in
 * another way than this program; NULL: they are not. */
static const char *ambiguous_headers(const struct headers *h)
{
	if (h->hosts > 1)
		return "The request has more than one Host.";
	return h->blank ? "The name of a header contains a blank." : NULL;
}

/* Reply to a request that was received completely. */
static enum MHD_Result reply_request(struct http *s, struct MHD_Connection *c, const char *path, const char *method,
				     const struct request *q)
{
	bool reads = !strcmp(method, "GET") || !strcmp(method, "HEAD"), posts = !strcmp(method, "POST");
	struct status_request to = {.person = q->person, .language = language_of(s, c)};
	int64_t numbers[2];
	enum status_page page = to.page = status_request_page(path, numbers);
	bool acts = status_page_changes_job(page);
	const char *sentence;

	to.job = numbers[0];
	to.number = numbers[1];
	if (!reads && !posts)
		return refuse_request(s, c, 405, acts ? "POST" : "GET, HEAD", "Unknown HTTP method.");
	if (page == STATUS_NONE)
		return refuse_request(s, c, 404, NULL, "There is no such page.");
	if (acts != posts)
		return refuse_request(s, c, 405, acts ? "POST" : "GET, HEAD", "This page does not accept this HTTP method.");
	if (q->n > sizeof(q->form))
		return refuse_request(s, c, 413, NULL, "The form is too large.");
	sentence = acts ? why_not(s, c, q, &to) : NULL;
	if (sentence) {
		log_refusal(s, c, 403, path, sentence);
		return refuse_request(s, c, 403, NULL, sentence);
	}
	switch (page) {
	case STATUS_STYLE:
		return reply_fixed(c, "text/css; charset=utf-8", web_style, sizeof(web_style) - 1);
	case STATUS_SCRIPT:
		return reply_fixed(c, "text/javascript; charset=utf-8", web_script, sizeof(web_script) - 1);
	case STATUS_VIEWER:
		return reply_fixed(c, "text/javascript; charset=utf-8", web_viewer, sizeof(web_viewer) - 1);
	case STATUS_ICON:
		return reply_fixed(c, "image/svg+xml", web_icon, sizeof(web_icon) - 1);
	default:
		return ask_reporter(s, c, &to);
	}
}

/* Check the headers of a request, and make room for its body. */
static enum MHD_Result begin_request(struct http *s, struct MHD_Connection *c, const char *path, void **state)
{
	struct headers h = {.conf = s->conf->status};
	struct in6_addr from = address_of(c);
	char sentence[STATUS_SENTENCE_SIZE];
	struct status_person person;
	const char *why;
	int64_t numbers[2];
	int code;

	MHD_get_connection_values_n(c, MHD_HEADER_KIND, look_at_header, &h);
	why = ambiguous_headers(&h);
	if (why)
		return refuse_request(s, c, 400, NULL, why);
	code = status_person_judge(s->conf->status, &from, &h.claim, status_page_role(status_request_page(path, numbers)),
				   &person, sentence);
	if (code == 0 && !status_request_host_allowed(header_of(c, "Host"), s->conf->status->host)) {
		code = 421;
		snprintf(sentence, sizeof(sentence),
			 "The page is not served under this host name: use localhost, an IP address, or the name in "
			 "status.host.");
	}
	if (code) {
		log_refusal(s, c, code, path, sentence);
		return refuse_request(s, c, code, NULL, sentence);
	}
	*state = calloc(1, sizeof(struct request));
	if (!*state)
		return MHD_NO;
	((struct request *)*state)->person = person;
	return MHD_YES;
}

/* Called by the library after the headers, for each part of the body, and at the end of the body. */
static enum MHD_Result on_request(void *cls, struct MHD_Connection *c, const char *path, const char *method, const char *version,
				  const char *data, size_t *n, void **state)
{
	struct http *s = cls;
	struct request *q = *state;

	(void)version;
	if (!q)
		return begin_request(s, c, path, state);
	if (*n == 0)
		return reply_request(s, c, path, method, q);
	if (q->n + *n <= sizeof(q->form))
		memcpy(q->form + q->n, data, *n);
	q->n += *n;
	*n = 0;
	return q->n > REJECTED_BYTES ? MHD_NO : MHD_YES;
}

/* Decode a path or a query; one with %00 stays as it is, because the text would end there. */
static size_t decode_escapes(void *cls, struct MHD_Connection *c, char *text)
{
	(void)cls;
	(void)c;
	return strstr(text, "%00") ? strlen(text) : MHD_http_unescape(text);
}

static void on_completed(void *cls, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode how)
{
	(void)cls;
	(void)c;
	(void)how;
	free(*state);
	*state = NULL;
}

/* ---- connections ---- */

static void on_connection(void *cls, struct MHD_Connection *c, void **state, enum MHD_ConnectionNotificationCode code)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct http *s = cls;
	struct connection *slot = *state;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED && slot)
		slot->fd = -1;
	if (code != MHD_CONNECTION_NOTIFY_STARTED || !info)
		return;
	for (size_t i = 0; i < CONNECTIONS; i++)
		if (s->open[i].fd < 0) {
			s->open[i] = (struct connection){.fd = info->connect_fd, .since = clock_seconds()};
			*state = &s->open[i];
			return;
		}
}

/* Shut down the connections that have exceeded their time, also active ones; the library then closes them. */
static void end_old(struct http *s)
{
	double now = clock_seconds(), life = HTTP_LIFE;
	size_t n = 0;

	for (size_t i = 0; i < CONNECTIONS; i++)
		n += s->open[i].fd >= 0;
	if (n >= CROWDED)
		life = HTTP_LIFE_CROWDED;
	for (size_t i = 0; i < CONNECTIONS; i++)
		if (s->open[i].fd >= 0 && now - s->open[i].since > life)
			shutdown(s->open[i].fd, SHUT_RDWR);
}

static bool is_gone(int ipc_fd)
{
	struct pollfd p = {.fd = ipc_fd, .events = 0};

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR | POLLNVAL));
}

int status_http_run(const struct status_http_conf *conf, const volatile sig_atomic_t *stop, struct err *err)
{
	struct http s = {.conf = conf};
	struct MHD_Daemon *d;

	for (size_t i = 0; i < CONNECTIONS; i++)
		s.open[i].fd = -1;
	if (!token_of(&s, ""))
		return err_set(err, errno, "no random numbers: %s", strerror(errno));
	d = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, on_request, &s, MHD_OPTION_LISTEN_SOCKET, conf->listen_fd,
			     MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
			     (unsigned)HTTP_SILENCE, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_BYTES,
			     MHD_OPTION_UNESCAPE_CALLBACK, decode_escapes, NULL, MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL,
			     MHD_OPTION_NOTIFY_CONNECTION, on_connection, &s, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
	if (!d)
		return err_set(err, EIO, "the HTTP library cannot be started");
	while (!*stop && !s.broken && !is_gone(conf->ipc_fd)) {
		if (MHD_run_wait(d, TICK_MS) != MHD_YES)
			break;
		end_old(&s);
		s.broken = s.broken || !status_ipc_drop(conf->ipc_fd, ASK_SECONDS, &s.late);
	}
	if (s.broken) /* send the last responses */
		MHD_run_wait(d, TICK_MS);
	MHD_stop_daemon(d);
	return *stop ? 0 : err_set(err, EPIPE, "the process that reads the journal has ended");
}
