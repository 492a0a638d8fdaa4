/* SPDX-License-Identifier: Apache-2.0 */
/* The connection between node and pilot over a socket pair: who is let in, and what happens when the other end misbehaves. */
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include "kernels/clock.h"
#include "node/cluster/link.h"
#include "node/cluster/token.h"
#include "tests/test.h"

struct place {
	char spool[64], secret[PILOT_SECRET_SIZE];
	int fd[2];
	struct link *node, *pilot;
	struct tls_context *tls_node, *tls_pilot; /* NULL: without certificates */
};

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	signal(SIGPIPE, SIG_IGN);
	test_folder(p->spool, sizeof(p->spool));
	*state = p;
	return pilot_secret_create(p->spool, "d1", p->secret, NULL);
}

static void disconnect(struct place *p)
{
	p->node = link_close(p->node);
	p->pilot = link_close(p->pilot);
}

static int teardown(void **state)
{
	struct place *p = *state;

	disconnect(p);
	tls_free(p->tls_node);
	tls_free(p->tls_pilot);
	free(p);
	return 0;
}

/* Do the handshake at both ends; the results are 1 or negative. */
static void connect_both(struct place *p, const char *id, const char *secret, uint64_t number, int *ret_node, int *ret_pilot,
			 struct err *node_err)
{
	struct err err = {0};

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, p->fd), 0);
	assert_int_equal(link_open_node(p->fd[0], p->spool, p->tls_node, &p->node, &err), 0);
	assert_int_equal(
		link_open_pilot(p->fd[1], &(struct link_pilot){id, secret, p->tls_pilot}, number, "localhost", &p->pilot, &err),
		0);
	*ret_node = *ret_pilot = 0;
	for (int i = 0; i < 20 && (*ret_node == 0 || *ret_pilot == 0); i++) {
		if (*ret_pilot == 0)
			*ret_pilot = link_handshake(p->pilot, &err);
		if (*ret_node == 0)
			*ret_node = link_handshake(p->node, node_err);
	}
}

static void connect_well(struct place *p, uint64_t number)
{
	struct err err = {0};
	int node, pilot;

	connect_both(p, "d1", p->secret, number, &node, &pilot, &err);
	assert_int_equal(node, 1);
	assert_int_equal(pilot, 1);
	assert_string_equal(link_id(p->node), "d1");
}

static struct wire_message receive(struct link *from, struct link *to)
{
	struct wire_message m;
	const void *bytes;
	struct err err = {0};
	size_t n;
	int got = 0;

	for (int i = 0; i < 100 && got == 0; i++) {
		assert_int_equal(link_flush(from, &err), 0);
		got = link_receive(to, &m, &bytes, &n, &err);
	}
	assert_int_equal(got, 1);
	return m;
}

TEST(test_messages, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	struct wire_message m = {.kind = WIRE_END, .text = "enough"}, back;
	struct err err = {0};

	connect_well(p, 1);
	assert_int_equal(link_send(p->node, &m, &err), 0);
	back = receive(p->node, p->pilot);
	assert_int_equal(back.kind, WIRE_END);
	assert_string_equal(back.text, "enough");
	wire_clear(&back);
	assert_int_equal(link_send(p->pilot, &(struct wire_message){.kind = WIRE_PING}, &err), 0);
	back = receive(p->pilot, p->node);
	assert_int_equal(back.kind, WIRE_PING);
	wire_clear(&back);
	assert_true(link_heard(p->node) > 0 && link_queued(p->node) == 0);
}

/* More than the socket holds: the sender keeps it until the other end reads. */
TEST(test_data, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	size_t n = WIRE_DATA_MAX, got_bytes = 0, n_got;
	uint8_t *bytes = malloc(n);
	struct wire_message m;
	const void *got;
	struct err err = {0};

	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)(i * 31 >> 3);
	connect_well(p, 1);
	for (int i = 0; i < 5; i++)
		assert_int_equal(link_send_data(p->pilot, bytes, n, &err), 0);
	assert_int_equal(link_flush(p->pilot, &err), 0);
	assert_true(link_queued(p->pilot) > LINK_QUEUE / 2 && (link_events(p->pilot) & POLLOUT));
	alarm(20); /* of a loop without an end */
	assert_int_equal(link_drain(p->pilot, 0, &err), -ETIMEDOUT);
	assert_int_equal(link_drain(p->pilot, 0.01, &err), -ETIMEDOUT);
	while (got_bytes < 5 * n) {
		int ret = link_receive(p->node, &m, &got, &n_got, &err);

		assert_true(ret >= 0);
		if (ret == 1) {
			assert_true(m.kind == WIRE_DATA && n_got == n && !memcmp(got, bytes, n));
			got_bytes += n_got;
		}
		assert_int_equal(link_flush(p->pilot, &err), 0);
	}
	assert_int_equal(link_send_data(p->pilot, bytes, 0, &err), 0);
	assert_int_equal(link_drain(p->pilot, 0.01, &err), 0);
	assert_true(link_queued(p->pilot) == 0);
	alarm(0);
	free(bytes);
}

/* A token that was used is refused with that reason, and the pilot learns it. */
TEST(test_replayed, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	struct wire_message m = {.kind = WIRE_REFUSED}, back;
	struct err err = {0};
	int node, pilot;

	connect_well(p, 5);
	for (uint64_t number = 5; number >= 4; number--) {
		disconnect(p);
		connect_both(p, "d1", p->secret, number, &node, &pilot, &err);
		assert_int_equal(node, -EALREADY);
		assert_int_equal(pilot, 1);
		assert_non_null(strstr(err.msg, "was used before"));
		assert_int_equal(link_last(p->node), 5);
		snprintf(m.text, sizeof(m.text), "%s", err.msg);
		assert_int_equal(link_send(p->node, &m, NULL), 0);
		back = receive(p->node, p->pilot);
		assert_int_equal(back.kind, WIRE_REFUSED);
		assert_string_equal(back.text, err.msg);
		wire_clear(&back);
	}
	disconnect(p);
	connect_well(p, 6);
}

TEST(test_strangers, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	char other[PILOT_SECRET_SIZE];
	struct err err = {0};
	int node, pilot;

	memset(other, '0', sizeof(other) - 1);
	other[sizeof(other) - 1] = '\0';
	connect_both(p, "d1", other, 9, &node, &pilot, &err);
	assert_true(node < 0 && pilot < 0);
	disconnect(p);
	connect_both(p, "d2", p->secret, 9, &node, &pilot, &err);
	assert_true(node == -EACCES && pilot < 0);
	assert_non_null(strstr(err.msg, "no secret of a pilot 'd2'"));
	disconnect(p);
	/* Neither used a number up. */
	connect_well(p, 1);
}

/* A peer that says nothing, one that speaks no TLS, one that closes. */
TEST(test_no_handshake, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	struct err err = {0};

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, p->fd), 0);
	assert_int_equal(link_open_node(p->fd[0], p->spool, p->tls_node, &p->node, &err), 0);
	assert_int_equal(link_handshake(p->node, &err), 0);
	assert_int_equal(link_events(p->node), POLLIN);
	assert_int_equal(write(p->fd[1], "GET / HTTP/1.1\r\n\r\n", 18), 18);
	assert_int_equal(link_handshake(p->node, &err), -ECONNRESET);
	p->node = link_close(p->node);
	close(p->fd[1]);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, p->fd), 0);
	assert_int_equal(link_open_node(p->fd[0], p->spool, p->tls_node, &p->node, &err), 0);
	close(p->fd[1]);
	assert_int_equal(link_handshake(p->node, &err), -ECONNRESET);
}

/* A peer that connects and is silent: nothing can be sent to it, and nobody waits for it. */
TEST(test_silent, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	struct err err = {0};

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, p->fd), 0);
	assert_int_equal(link_open_node(p->fd[0], p->spool, p->tls_node, &p->node, &err), 0);
	assert_int_equal(link_handshake(p->node, &err), 0);
	assert_int_equal(link_send(p->node, &(struct wire_message){.kind = WIRE_REFUSED, .text = "late"}, &err), 0);
	alarm(8); /* the fault was a loop without an end */
	assert_int_equal(link_drain(p->node, 0.1, &err), -ENOTCONN);
	alarm(0);
	close(p->fd[1]);
}

/* The other end disappears in a message. */
TEST(test_cut, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	static uint8_t bytes[WIRE_DATA_MAX];
	struct wire_message m;
	const void *got;
	struct err err = {0};
	size_t n;
	int ret = 0;

	connect_well(p, 1);
	assert_int_equal(link_send_data(p->pilot, bytes, sizeof(bytes), &err), 0);
	assert_int_equal(link_flush(p->pilot, &err), 0);
	assert_true(link_queued(p->pilot) > 0);
	p->pilot = link_close(p->pilot);
	while (ret == 0)
		ret = link_receive(p->node, &m, &got, &n, &err);
	assert_int_equal(ret, -ECONNRESET);
	assert_int_equal(link_send_data(p->node, bytes, sizeof(bytes), &err), 0);
	assert_int_equal(link_flush(p->node, &err), -ECONNRESET);
}

/* A certificate of its own authority for "localhost", with its key, as the file SPOOL/NAME. */
static void make_certificate(const struct place *p, const char *name, char ret_path[100])
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *x = X509_new();
	X509_EXTENSION *names = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "DNS:localhost");
	FILE *f;

	X509_set_version(x, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
	X509_gmtime_adj(X509_getm_notBefore(x), -60);
	X509_gmtime_adj(X509_getm_notAfter(x), 3600);
	X509_set_pubkey(x, key);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
	X509_set_issuer_name(x, X509_get_subject_name(x));
	assert_true(X509_add_ext(x, names, -1) && X509_sign(x, key, EVP_sha256()));
	snprintf(ret_path, 100, "%s/%s.pem", p->spool, name);
	f = fopen(ret_path, "w");
	assert_non_null(f);
	assert_true(PEM_write_X509(f, x) && PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL));
	fclose(f);
	X509_EXTENSION_free(names);
	X509_free(x);
	EVP_PKEY_free(key);
}

static struct tls_context *open_tls(const char *own, const char *trusted, bool node)
{
	const struct tls_conf conf = {.certificate = own, .authorities = trusted, .server = node, .client_certificate = node};
	struct tls_context *tls = NULL;
	struct err err = {0};

	assert_int_equal(tls_create(&conf, &tls, &err), 0);
	return tls;
}

/* With certificates the token is still required, once. */
TEST(test_certified, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	char node_path[100], pilot_path[100], other[PILOT_SECRET_SIZE];
	struct wire_message m = {.kind = WIRE_END, .text = "enough"}, back;
	struct err err = {0};
	int node, pilot;

	make_certificate(p, "node", node_path);
	make_certificate(p, "pilot", pilot_path);
	p->tls_node = open_tls(node_path, pilot_path, true);
	p->tls_pilot = open_tls(pilot_path, node_path, false);
	connect_well(p, 5);
	assert_int_equal(link_send(p->node, &m, &err), 0);
	back = receive(p->node, p->pilot);
	assert_string_equal(back.text, "enough");
	wire_clear(&back);
	disconnect(p);
	connect_both(p, "d1", p->secret, 5, &node, &pilot, &err);
	assert_int_equal(node, -EALREADY);
	assert_int_equal(link_last(p->node), 5);
	/* It is told so. */
	m = (struct wire_message){.kind = WIRE_REFUSED, .code = EALREADY, .last = 5};
	assert_int_equal(link_send(p->node, &m, &err), 0);
	back = receive(p->node, p->pilot);
	assert_int_equal(back.last, 5);
	wire_clear(&back);
	disconnect(p);
	memset(other, '0', sizeof(other) - 1);
	other[sizeof(other) - 1] = '\0';
	connect_both(p, "d1", other, 6, &node, &pilot, &err);
	assert_int_equal(node, -EACCES);
	assert_non_null(strstr(err.msg, "its token is not proven"));
	disconnect(p);
	connect_both(p, "d9", p->secret, 6, &node, &pilot, &err);
	assert_int_equal(node, -EACCES);
	assert_non_null(strstr(err.msg, "no secret of a pilot 'd9'"));
	disconnect(p);
	/* Neither used the number up. */
	connect_well(p, 6);
}

/* Certificates that the other end does not trust, and one end without. */
TEST(test_not_certified, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	char node_path[100], pilot_path[100], stranger_path[100];
	struct tls_context *tls;
	struct err err = {0};
	int node, pilot;

	make_certificate(p, "node", node_path);
	make_certificate(p, "pilot", pilot_path);
	make_certificate(p, "stranger", stranger_path);
	p->tls_node = open_tls(node_path, pilot_path, true);
	p->tls_pilot = open_tls(stranger_path, node_path, false);
	connect_both(p, "d1", p->secret, 1, &node, &pilot, &err);
	assert_true(node < 0 && pilot < 0);
	assert_non_null(
		strstr(err.msg, "its certificate (CN=stranger) is not trusted: nobody else has signed it, and it is not in"));
	disconnect(p);
	tls_free(p->tls_pilot);
	p->tls_pilot = open_tls(pilot_path, stranger_path, false); /* another node than it expects */
	connect_both(p, "d1", p->secret, 1, &node, &pilot, &err);
	assert_true(node < 0 && pilot < 0);
	disconnect(p);
	/* A pilot without certificates trusts no certificate in place of the key. */
	tls = p->tls_pilot;
	p->tls_pilot = NULL;
	connect_both(p, "d1", p->secret, 1, &node, &pilot, &err);
	assert_true(node < 0 && pilot < 0);
	disconnect(p);
	p->tls_pilot = tls;
	tls = p->tls_node;
	p->tls_node = NULL;
	connect_both(p, "d1", p->secret, 1, &node, &pilot, &err);
	assert_true(node < 0 && pilot < 0);
	p->tls_node = tls;
}

static void shake_hands(SSL *server, SSL *client, int fd[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
	SSL_set_fd(server, fd[0]);
	SSL_set_fd(client, fd[1]);
	SSL_set_accept_state(server);
	SSL_set_connect_state(client);
	for (int i = 0; i < 20; i++) {
		SSL_do_handshake(client);
		SSL_do_handshake(server);
	}
	assert_true(SSL_is_init_finished(server) && SSL_is_init_finished(client));
}

/* A proof belongs to one connection, one identity and one secret. */
TEST(test_proof, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	char node_path[100], pilot_path[100], proof[2][TOKEN_PROOF_SIZE], other[TOKEN_PROOF_SIZE], secret[PILOT_SECRET_SIZE];

	make_certificate(p, "node", node_path);
	make_certificate(p, "pilot", pilot_path);
	p->tls_node = open_tls(node_path, pilot_path, true);
	p->tls_pilot = open_tls(pilot_path, node_path, false);
	for (int i = 0; i < 2; i++) {
		SSL *server = tls_connection(p->tls_node, NULL), *client = tls_connection(p->tls_pilot, "localhost");
		int fd[2];

		shake_hands(server, client, fd);
		assert_true(token_proof(client, p->secret, "d1.7", proof[i]) && token_proof(server, p->secret, "d1.7", other));
		assert_string_equal(proof[i], other);
		assert_true(token_proof(server, p->secret, "d1.8", other));
		assert_string_not_equal(proof[i], other);
		memset(secret, 'a', sizeof(secret) - 1);
		secret[sizeof(secret) - 1] = '\0';
		assert_true(token_proof(server, secret, "d1.7", other));
		assert_string_not_equal(proof[i], other);
		SSL_free(server);
		SSL_free(client);
		close(fd[0]);
		close(fd[1]);
	}
	assert_string_not_equal(proof[0], proof[1]);
}

TEST(test_dial, .setup = setup, .teardown = teardown)
{
	struct place *p = *state;
	struct link *l = NULL;
	struct err err = {0};
	double begun = clock_seconds();

	assert_int_equal(link_dial("nowhere", &(struct link_pilot){"d1", p->secret, NULL}, 1, 1, &l, &err), -EINVAL);
	assert_error(link_dial("127.0.0.1:1", &(struct link_pilot){"d1", p->secret, NULL}, 1, 5, &l, &err), &err, ECONNREFUSED,
		     "127.0.0.1:1");
	assert_null(l);
	assert_true(clock_seconds() - begun < 60);
}
