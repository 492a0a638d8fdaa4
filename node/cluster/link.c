/* SPDX-License-Identifier: Apache-2.0 */
#include "node/cluster/link.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/cluster/token.h"

#define READ_BUFFER ((size_t)256 << 10) /* bytes */

struct buffer {
	uint8_t *bytes;
	size_t n, capacity;
};

struct link {
	int fd;
	SSL_CTX *context; /* without certificates: of this connection alone */
	SSL *ssl;
	bool certified;	   /* with certificates: the token is proven in the connection */
	bool node;	   /* this is the node's end */
	const char *spool; /* of the node */
	char id[PILOT_ID_SIZE];
	uint64_t number;
	uint64_t last;			/* of the node's end: highest number that was used before */
	char secret[PILOT_SECRET_SIZE]; /* of the pilot; at the node's end as it was when the connection began */
	char refusal[300];		/* of the node's end: why the identity was not accepted */
	bool secured;			/* that of TLS is done */
	bool opened;			/* the handshake is done: the pilot has proven its token */
	bool wants_write;		/* of the handshake */
	double heard, sent;
	struct buffer out; /* waits to be sent, from out_at on */
	size_t out_at;
	uint8_t head[WIRE_HEAD]; /* of the message that is being received */
	size_t n_head;
	enum wire_kind kind;
	size_t want; /* bytes of its payload */
	struct buffer in;
};

static int grow_buffer(struct buffer *b, size_t n, struct err *err)
{
	size_t capacity = b->capacity ? b->capacity : 4096;
	uint8_t *bytes;

	if (n <= b->capacity)
		return 0;
	while (capacity < n)
		capacity *= 2;
	bytes = realloc(b->bytes, capacity);
	if (!bytes)
		return err_set(err, ENOMEM, "no memory for a message of %zu bytes", n);
	b->bytes = bytes;
	b->capacity = capacity;
	return 0;
}

/* ---- keys ---- */

static SSL_SESSION *make_session(SSL *ssl, const char *secret, const char *identity)
{
	static const unsigned char aes_128_gcm_sha256[] = {0x13, 0x01};
	unsigned char key[TOKEN_KEY_SIZE];
	SSL_SESSION *session = SSL_SESSION_new();

	if (!session || !token_key(secret, identity, key) || !SSL_SESSION_set1_master_key(session, key, sizeof(key)) ||
	    !SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, aes_128_gcm_sha256)) ||
	    !SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION)) {
		SSL_SESSION_free(session);
		session = NULL;
	}
	OPENSSL_cleanse(key, sizeof(key));
	return session;
}

/* The pilot's end: name the token. */
static int use_token(SSL *ssl, const EVP_MD *md, const unsigned char **ret_identity, size_t *ret_n, SSL_SESSION **ret_session)
{
	static _Thread_local char identity[TOKEN_IDENTITY_SIZE];
	const struct link *l = SSL_get_app_data(ssl);

	*ret_session = NULL;
	if (md && EVP_MD_get_type(md) != NID_sha256)
		return 1;
	token_print(l->id, l->number, identity);
	*ret_session = make_session(ssl, l->secret, identity);
	*ret_identity = (const unsigned char *)identity;
	*ret_n = strlen(identity);
	return *ret_session != NULL;
}

/* The node's end: read the secret of an identity; if there is none, l->refusal says why. */
static bool find_secret(struct link *l, const char *identity, char ret_secret[PILOT_SECRET_SIZE])
{
	struct err err = {0};

	if (!token_parse(identity, l->id, &l->number)) {
		snprintf(l->refusal, sizeof(l->refusal), "no token of a pilot");
		return false;
	}
	if (pilot_secret_read(l->spool, l->id, ret_secret, &err) < 0) {
		snprintf(l->refusal, sizeof(l->refusal), "%.*s", (int)sizeof(l->refusal) - 1, err.msg);
		return false;
	}
	memcpy(l->secret, ret_secret, sizeof(l->secret));
	return true;
}

int link_admitted(const struct link *l, struct err *err)
{
	char secret[PILOT_SECRET_SIZE];
	int ret = pilot_secret_read(l->spool, l->id, secret, NULL);
	bool same = ret == 0 && CRYPTO_memcmp(secret, l->secret, sizeof(secret)) == 0;

	OPENSSL_cleanse(secret, sizeof(secret));
	if (same || (ret < 0 && ret != -ENOENT)) /* it cannot be read now: nobody has removed it */
		return 0;
	return err_set(err, EACCES, "the secret of pilot '%s' was removed", l->id);
}

/* The node's end: find the secret of the identity. */
static int find_token(SSL *ssl, const unsigned char *bytes, size_t n, SSL_SESSION **ret_session)
{
	struct link *l = SSL_get_app_data(ssl);
	char identity[TOKEN_IDENTITY_SIZE], secret[PILOT_SECRET_SIZE];

	*ret_session = NULL;
	if (n >= sizeof(identity))
		return 1;
	memcpy(identity, bytes, n);
	identity[n] = '\0';
	if (find_secret(l, identity, secret))
		*ret_session = make_session(ssl, secret, identity);
	OPENSSL_cleanse(secret, sizeof(secret));
	return 1; /* without a session the handshake fails, because the node has no certificate */
}

/* ---- open, close ---- */

static SSL_CTX *make_context(bool node)
{
	SSL_CTX *context = SSL_CTX_new(node ? TLS_server_method() : TLS_client_method());

	if (!context)
		return NULL;
	if (!SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) ||
	    !SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") || !SSL_CTX_set_num_tickets(context, 0)) {
		SSL_CTX_free(context);
		return NULL;
	}
	SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_read_ahead(context, 1); /* else two reads for each record; link_receive() is called until it has no more */
	SSL_CTX_set_default_read_buffer_len(context, READ_BUFFER);
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
	if (node) {
		SSL_CTX_set_psk_find_session_callback(context, find_token);
	} else {
		SSL_CTX_set_psk_use_session_callback(context, use_token);
		SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL); /* no certificate replaces the key: none is trusted */
	}
	return context;
}

static SSL *make_ssl(struct link *l, const struct tls_context *tls, const char *host)
{
	SSL *ssl;

	l->certified = tls;
	if (!tls) {
		l->context = make_context(l->node);
		return l->context ? SSL_new(l->context) : NULL;
	}
	ssl = tls_connection(tls, host);
	if (ssl) {
		SSL_set_read_ahead(ssl, 1);
		SSL_set_default_read_buffer_len(ssl, READ_BUFFER);
	}
	return ssl;
}

static int open_link(int fd, bool node, const struct tls_context *tls, const char *host, struct link **ret_link, struct err *err)
{
	struct link *l = calloc(1, sizeof(*l));
	int on = 1;

	if (!l) {
		close(fd);
		return err_set(err, ENOMEM, "no memory for a connection");
	}
	*l = (struct link){.fd = fd, .node = node, .heard = clock_seconds(), .sent = clock_seconds()};
	l->ssl = make_ssl(l, tls, host);
	if (!l->ssl || fcntl(fd, F_SETFL, O_NONBLOCK) < 0 || !SSL_set_fd(l->ssl, fd)) {
		link_close(l);
		return err_set(err, EIO, "cannot set up a TLS connection");
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* ignored by other sockets */
	SSL_set_app_data(l->ssl, l);
	*ret_link = l;
	return 0;
}

int link_open_node(int fd, const char *spool, const struct tls_context *tls, struct link **ret_link, struct err *err)
{
	int ret = open_link(fd, true, tls, NULL, ret_link, err);

	if (ret == 0) {
		(*ret_link)->spool = spool;
		SSL_set_accept_state((*ret_link)->ssl);
	}
	return ret;
}

int link_open_pilot(int fd, const struct link_pilot *pilot, uint64_t number, const char *host, struct link **ret_link,
		    struct err *err)
{
	int ret = open_link(fd, false, pilot->tls, host, ret_link, err);

	if (ret == 0) {
		struct link *l = *ret_link;

		snprintf(l->id, sizeof(l->id), "%s", pilot->id);
		snprintf(l->secret, sizeof(l->secret), "%s", pilot->secret);
		l->number = number;
		SSL_set_connect_state(l->ssl);
	}
	return ret;
}

struct link *link_close(struct link *l)
{
	if (!l)
		return NULL;
	SSL_free(l->ssl);
	SSL_CTX_free(l->context);
	close(l->fd);
	OPENSSL_cleanse(l->secret, sizeof(l->secret));
	free(l->out.bytes);
	free(l->in.bytes);
	free(l);
	return NULL;
}

const char *link_id(const struct link *l)
{
	return l->id;
}

uint64_t link_last(const struct link *l)
{
	return l->last;
}

int link_fd(const struct link *l)
{
	return l->fd;
}

short link_events(const struct link *l)
{
	bool write = l->secured ? l->out_at < l->out.n : l->wants_write;

	return (short)(POLLIN | (write ? POLLOUT : 0));
}

double link_heard(const struct link *l)
{
	return l->heard;
}

double link_sent(const struct link *l)
{
	return l->sent;
}

size_t link_queued(const struct link *l)
{
	return l->out.n - l->out_at;
}

/* ---- handshake ---- */

static int lose_link(const struct link *l, const char *what, struct err *err)
{
	unsigned long code = ERR_peek_error();
	const char *text = code ? ERR_reason_error_string(code) : NULL;
	int system = errno;
	char tls[700];

	if (code && tls_connection_error(l->ssl, tls, sizeof(tls)))
		return err_set(err, ECONNRESET, "%s: %s", what, tls);
	ERR_clear_error();
	return err_set(err, ECONNRESET, "%s: %s", what,
		       text	? text
		       : system ? strerror(system)
				: "the peer closed the connection");
}

static int handshake_failed(struct link *l, struct err *err)
{
	int reason = ERR_GET_REASON(ERR_peek_error());

	if (l->refusal[0])
		return err_set(err, EACCES, "%s", l->refusal);
	if (l->node && reason == SSL_R_BINDER_DOES_NOT_VERIFY)
		return err_set(err, EACCES,
			       "its secret is not the node's for pilot '%s': copy it again, or make a new one (pilot-token)",
			       l->id);
	if (l->node)
		return lose_link(l, "no handshake with a pilot", err);
	if (!l->certified && reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
		return lose_link(
			l, "the node requires certificates (--certificate, --key, --authorities), or it is another program", err);
	if (!l->certified)
		return lose_link(l, "the node refused the handshake (another secret, or an unknown ID)", err);
	if (reason == SSL_AD_REASON_OFFSET + SSL_AD_HANDSHAKE_FAILURE)
		return lose_link(l, "the node has no certificate (cluster.certificate)", err);
	return lose_link(l, "no handshake with the node", err);
}

/* ---- the token in a connection with certificates ---- */

static int check_token(struct link *l, const struct wire_message *m, struct err *err)
{
	char secret[PILOT_SECRET_SIZE], proof[TOKEN_PROOF_SIZE] = "";
	bool fits = m->kind == WIRE_TOKEN && find_secret(l, m->text, secret) && token_proof(l->ssl, secret, m->text, proof) &&
		    CRYPTO_memcmp(proof, m->proof, sizeof(proof)) == 0;

	OPENSSL_cleanse(secret, sizeof(secret));
	l->opened = true; /* it is told why */
	if (fits)
		return 1;
	return err_set(err, EACCES, "%s", l->refusal[0] ? l->refusal : "its token is not proven (another secret)");
}

static int send_token(struct link *l, const struct wire_message *m, struct err *err)
{
	struct wire_message reply = {.kind = WIRE_TOKEN};
	int ret;

	if (m->kind != WIRE_TOKEN)
		return err_set(err, EBADMSG, "the node did not ask for a token");
	token_print(l->id, l->number, reply.text);
	if (!token_proof(l->ssl, l->secret, reply.text, reply.proof))
		return err_set(err, EIO, "the token cannot be proven");
	ret = link_send(l, &reply, err);
	if (ret == 0)
		ret = link_flush(l, err);
	l->opened = ret == 0;
	return ret < 0 ? ret : 1;
}

/* The node asks, because a pilot learns only from its first bytes that the node has accepted its certificate. */
static int exchange_token(struct link *l, struct err *err)
{
	struct wire_message m = {0};
	const void *bytes;
	size_t n;
	int ret = link_flush(l, err);

	if (ret == 0)
		ret = link_receive(l, &m, &bytes, &n, err);
	if (ret == 1)
		ret = l->node ? check_token(l, &m, err) : send_token(l, &m, err);
	wire_clear(&m);
	return ret;
}

/* The node's end, after the pilot has proven that it knows the secret. */
static int use_number(struct link *l, struct err *err)
{
	int ret = pilot_token_use(l->spool, l->id, l->number, &l->last, err);

	return ret < 0 ? ret : 1;
}

/* 1: TLS is established. */
static int secure_link(struct link *l, struct err *err)
{
	int rc, why;

	ERR_clear_error();
	errno = 0;
	rc = SSL_do_handshake(l->ssl);
	why = SSL_get_error(l->ssl, rc);
	l->wants_write = why == SSL_ERROR_WANT_WRITE;
	if (rc != 1 && (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE))
		return 0;
	if (rc != 1)
		return handshake_failed(l, err);
	l->heard = clock_seconds();
	l->secured = true;
	if (l->certified)
		return l->node ? link_send(l, &(struct wire_message){.kind = WIRE_TOKEN}, err) : 0;
	if (!SSL_session_reused(l->ssl)) /* the key was not used: nothing is proven */
		return err_set(err, EACCES, "the peer did not use the token");
	l->opened = true;
	return 1;
}

int link_handshake(struct link *l, struct err *err)
{
	int ret = 1;

	if (l->opened)
		return 1;
	if (!l->secured)
		ret = secure_link(l, err);
	if (ret >= 0 && l->secured && l->certified)
		ret = exchange_token(l, err);
	return ret == 1 && l->node ? use_number(l, err) : ret;
}

static int connect_to(const struct addrinfo *a, double until, struct err *err)
{
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), code = 0;
	socklen_t n = sizeof(code);
	struct pollfd p = {.fd = fd, .events = POLLOUT};

	if (fd < 0)
		return err_set(err, errno, "no socket: %s", strerror(errno));
	if (connect(fd, a->ai_addr, a->ai_addrlen) < 0 && errno != EINPROGRESS)
		code = errno;
	else if (poll(&p, 1, (int)fmax(0, 1000 * (until - clock_seconds()))) <= 0)
		code = ETIMEDOUT;
	else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &n) < 0)
		code = errno;
	if (code == 0)
		return fd;
	close(fd);
	return err_set(err, code, "%s", strerror(code));
}

static bool is_port(const char *text)
{
	size_t n = strlen(text);

	return n > 0 && n <= 5 && strspn(text, "0123456789") == n && strtol(text, NULL, 10) > 0 &&
	       strtol(text, NULL, 10) <= 65535;
}

/* Split "HOST:PORT" or "[ADDRESS]:PORT". */
static bool split_address(const char *address, char ret_host[128], char ret_port[8])
{
	const char *colon = strrchr(address, ':');
	size_t n = colon ? (size_t)(colon - address) : 0;

	if (address[0] != '[' && memchr(address, ':', n))
		return false;
	if (n > 1 && address[0] == '[' && address[n - 1] == ']') {
		address++;
		n -= 2;
	}
	if (n == 0 || n >= 128 || !is_port(colon + 1))
		return false;
	memcpy(ret_host, address, n);
	ret_host[n] = '\0';
	strcpy(ret_port, colon + 1);
	return true;
}

int link_check_address(const char *address, struct err *err)
{
	char host[128], port[8];

	if (split_address(address, host, port))
		return 0;
	return err_set(err, EINVAL, "'%.150s' is no address of a node; allowed: HOST:PORT, PORT from 1 to 65535", address);
}

static int connect_any(const char *address, double until, struct err *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *list = NULL;
	char host[128], port[8];
	int fd = -1, rc = link_check_address(address, err);

	if (rc < 0)
		return rc;
	split_address(address, host, port);
	rc = getaddrinfo(host, port, &hints, &list);
	if (rc != 0)
		return err_set(err, EHOSTUNREACH, "cannot resolve %s: %s", address, gai_strerror(rc));
	for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next)
		fd = connect_to(a, until, err);
	freeaddrinfo(list);
	if (fd < 0)
		err_prefix(err, "cannot connect to %s", address);
	return fd;
}

int link_dial(const char *address, const struct link_pilot *pilot, uint64_t number, double timeout, struct link **ret_link,
	      struct err *err)
{
	char host[128], port[8];
	double until = clock_seconds() + timeout;
	struct link *l = NULL;
	int fd = connect_any(address, until, err), ret;

	if (fd < 0)
		return fd;
	split_address(address, host, port);
	ret = link_open_pilot(fd, pilot, number, host, &l, err);
	while (ret == 0) {
		struct pollfd p = {.fd = fd};

		ret = link_handshake(l, err);
		p.events = link_events(l);
		if (ret == 0 && poll(&p, 1, (int)fmax(0, 1000 * (until - clock_seconds()))) == 0)
			ret = err_set(err, ETIMEDOUT, "%s does not complete the handshake", address);
	}
	if (ret < 0)
		link_close(l);
	else
		*ret_link = l;
	return ret < 0 ? ret : 0;
}

/* ---- messages ---- */

static int queue_frame(struct link *l, enum wire_kind kind, const void *bytes, size_t n, struct err *err)
{
	int ret;

	if (l->out_at > l->out.n / 2) { /* so no byte is moved more than once on average */
		memmove(l->out.bytes, l->out.bytes + l->out_at, l->out.n - l->out_at);
		l->out.n -= l->out_at;
		l->out_at = 0;
	}
	ret = grow_buffer(&l->out, l->out.n + WIRE_HEAD + n, err);
	if (ret < 0)
		return ret;
	wire_put_head(kind, n, l->out.bytes + l->out.n);
	memcpy(l->out.bytes + l->out.n + WIRE_HEAD, bytes, n);
	l->out.n += WIRE_HEAD + n;
	l->sent = clock_seconds();
	return 0;
}

int link_send(struct link *l, const struct wire_message *m, struct err *err)
{
	char *text;
	size_t n;
	int ret = wire_encode(m, &text, &n, err);

	if (ret < 0)
		return ret;
	ret = queue_frame(l, m->kind, text, n, err);
	free(text);
	return ret;
}

int link_send_data(struct link *l, const void *bytes, size_t n, struct err *err)
{
	return queue_frame(l, WIRE_DATA, bytes, n, err);
}

int link_flush(struct link *l, struct err *err)
{
	while (l->out_at < l->out.n) {
		size_t n = 0;
		int rc, why;

		ERR_clear_error();
		errno = 0;
		rc = SSL_write_ex(l->ssl, l->out.bytes + l->out_at, l->out.n - l->out_at, &n);
		why = SSL_get_error(l->ssl, rc);
		if (rc != 1 && (why == SSL_ERROR_WANT_WRITE || why == SSL_ERROR_WANT_READ))
			return 0;
		if (rc != 1)
			return lose_link(l, "the connection is lost", err);
		l->out_at += n;
	}
	return 0;
}

int link_drain(struct link *l, double timeout, struct err *err)
{
	double until = clock_seconds() + timeout;
	int ret = l->opened ? link_flush(l, err) : err_set(err, ENOTCONN, "the handshake is not done");

	while (ret == 0 && link_queued(l) > 0) {
		struct pollfd p = {.fd = l->fd, .events = POLLOUT};
		double left = until - clock_seconds();

		if (left <= 0 || poll(&p, 1, (int)ceil(1000 * left)) == 0)
			return err_set(err, ETIMEDOUT, "the peer does not read");
		ret = link_flush(l, err);
	}
	return ret;
}

/* Read until `have` bytes are `want`. 1: they are; 0: not yet. */
static int read_some(struct link *l, uint8_t *to, size_t *have, size_t want, struct err *err)
{
	while (*have < want) {
		size_t n = 0;
		int rc, why;

		ERR_clear_error();
		errno = 0;
		rc = SSL_read_ex(l->ssl, to + *have, want - *have, &n);
		why = SSL_get_error(l->ssl, rc);
		if (rc != 1 && (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE))
			return 0;
		if (rc != 1)
			return lose_link(l, l->opened ? "the connection is lost" : "no handshake", err);
		*have += n;
		l->heard = clock_seconds();
	}
	return 1;
}

int link_receive(struct link *l, struct wire_message *ret_message, const void **ret_bytes, size_t *ret_n, struct err *err)
{
	int ret = 1;

	if (l->n_head < WIRE_HEAD) {
		ret = read_some(l, l->head, &l->n_head, WIRE_HEAD, err);
		if (ret == 1) {
			l->in.n = 0;
			ret = wire_get_head(l->head, &l->kind, &l->want, err);
			ret = ret == 0 ? grow_buffer(&l->in, l->want, err) : ret;
			ret = ret == 0 ? 1 : ret;
		}
	}
	if (ret == 1)
		ret = read_some(l, l->in.bytes, &l->in.n, l->want, err);
	if (ret != 1)
		return ret;
	l->n_head = 0;
	*ret_message = (struct wire_message){.kind = l->kind};
	*ret_bytes = l->in.bytes;
	*ret_n = l->want;
	if (l->kind == WIRE_DATA)
		return 1;
	ret = wire_decode(l->kind, (const char *)l->in.bytes, l->want, ret_message, err);
	return ret < 0 ? ret : 1;
}
