/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to a scripted server without TLS: what it reads, and what each of its answers becomes. With TLS:
 * tests/system/jobs/test_stow.py. */
#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>

#include "node/web/http_client.h"
#include "node/web/http_credentials.h"
#include "tests/test.h"

/* A server that answers one request on each connection of a script. */
struct server {
	int fd, port;
	pthread_t thread;
	const char *answers[4]; /* for each connection; "": close without one; NULL: end of the script */
	bool hold;		/* after the answer keep the connection until the client closes it */
	char request[4][70000]; /* what was read */
};

static void read_request(int fd, char *ret, size_t size)
{
	size_t n = 0, body = 0;
	char *end = NULL, *length;
	ssize_t got;

	ret[0] = '\0';
	while (n + 1 < size && (!end || n < (size_t)(end + 4 - ret) + body)) {
		got = recv(fd, ret + n, size - 1 - n, 0);
		if (got <= 0)
			return;
		n += (size_t)got;
		ret[n] = '\0';
		if (!end && (end = strstr(ret, "\r\n\r\n"))) {
			length = strstr(ret, "Content-Length: ");
			body = length && length < end ? strtoul(length + 16, NULL, 10) : 0;
		}
	}
}

static void *serve(void *arg)
{
	struct server *s = arg;
	char rest[100];

	for (size_t i = 0; i < 4 && s->answers[i]; i++) {
		int fd = accept(s->fd, NULL, NULL);

		read_request(fd, s->request[i], sizeof(s->request[i]));
		send(fd, s->answers[i], strlen(s->answers[i]), MSG_NOSIGNAL);
		while (s->hold && recv(fd, rest, sizeof(rest), 0) > 0)
			;
		close(fd);
	}
	return NULL;
}

static void start(struct server *s)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(at);

	s->fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(s->fd, (struct sockaddr *)&at, size), 0);
	assert_int_equal(listen(s->fd, 4), 0);
	assert_int_equal(getsockname(s->fd, (struct sockaddr *)&at, &size), 0);
	s->port = ntohs(at.sin_port);
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void stop(struct server *s)
{
	pthread_join(s->thread, NULL);
	close(s->fd);
}

static struct http_client *client(int port, const char *credentials, size_t answer_max, double idle_timeout)
{
	struct http_client *c = NULL;
	char url[80];
	const struct http_target target = {.url = url,
					   .credentials = credentials,
					   .connect_timeout = 10,
					   .idle_timeout = idle_timeout,
					   .answer_max = answer_max};

	snprintf(url, sizeof(url), "http://127.0.0.1:%d/dicom-web/", port);
	assert_int_equal(http_client_open(&target, &c, NULL), 0);
	return c;
}

/* A body that is computed: byte i is 'a' + i % 26. */
static ssize_t alphabet(void *context, uint64_t at, void *ret_bytes, size_t n)
{
	(void)context;
	n = n > 1000 ? 1000 : n;
	for (size_t i = 0; i < n; i++)
		((char *)ret_bytes)[i] = (char)('a' + (at + i) % 26);
	return (ssize_t)n;
}

static ssize_t broken(void *context, uint64_t at, void *ret_bytes, size_t n)
{
	return at < 5000 ? alphabet(context, at, ret_bytes, n) : -EIO;
}

#define OK_ANSWER                                                                                                                \
	"HTTP/1.1 200 OK\r\nContent-Type: application/dicom+json\r\nRetry-After: 7\r\nContent-Length: 4\r\nConnection: "         \
	"close\r\n\r\n[{}]"

TEST(test_post)
{
	static const char *const headers[] = {"Content-Type: text/plain", "Accept: application/dicom+json", NULL};
	static struct server s;
	struct http_body body = {.read = alphabet, .size = 60000};
	struct http_request request = {.path = "/studies", .headers = headers, .body = &body};
	struct http_answer answer;
	struct http_client *c;
	char *sent;

	s = (struct server){.answers = {OK_ANSWER, OK_ANSWER, OK_ANSWER}};
	/* none of these may have an effect */
	setenv("http_proxy", "http://127.0.0.1:1/", 1);
	setenv("ALL_PROXY", "http://127.0.0.1:1/", 1);
	start(&s);
	c = client(s.port, NULL, 100, 60);
	assert_int_equal(http_client_send(c, &request, &answer, NULL), 0);
	assert_int_equal(answer.status, 200);
	assert_string_equal(answer.content_type, "application/dicom+json");
	assert_true(answer.retry_after > 6.5 && answer.retry_after < 7.5);
	assert_int_equal(answer.size, 4);
	assert_string_equal(answer.body, "[{}]");
	body = (struct http_body){.data = "hello", .size = 5};
	assert_int_equal(http_client_send(c, &request, &answer, NULL), 0);
	request = (struct http_request){.path = NULL};
	assert_int_equal(http_client_send(c, &request, &answer, NULL), 0);
	http_client_close(c);
	stop(&s);
	assert_non_null(strstr(s.request[0], "POST /dicom-web/studies HTTP/1.1\r\n"));
	assert_non_null(strstr(s.request[0], "\r\nContent-Type: text/plain\r\n"));
	assert_non_null(strstr(s.request[0], "\r\nContent-Length: 60000\r\n"));
	assert_null(strstr(s.request[0], "Authorization"));
	sent = strstr(s.request[0], "\r\n\r\n") + 4;
	assert_int_equal(strlen(sent), 60000);
	for (size_t i = 0; i < 60000; i++)
		assert_int_equal(sent[i], 'a' + i % 26);
	assert_string_equal(strstr(s.request[1], "\r\n\r\n") + 4, "hello");
	assert_non_null(strstr(s.request[2], "GET /dicom-web/ HTTP/1.1\r\n"));
	assert_null(strstr(s.request[2], "Content-Type"));
	unsetenv("http_proxy");
	unsetenv("ALL_PROXY");
}

TEST(test_answers)
{
	static const struct {
		const char *answer;
		int ret, status;
	} rows[] = {
		{"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", 0, 302},
		{"HTTP/1.1 401 no\r\nWWW-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n", 0, 401},
		{"HTTP/1.1 409 no\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n0\r\n\r\n", 0, 409},
		{"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n[{", -ECONNRESET, 0},
		{"HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n"
		 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		 -EMSGSIZE, 0},
		{"hello, I am not HTTP at all\r\n\r\n", -EPROTO, 0},
		{"", -ECONNRESET, 0},
	};
	const struct http_body body = {.data = "hello", .size = 5};
	const struct http_request request = {.path = "/studies", .body = &body};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		static struct server s;
		struct http_answer answer;
		struct http_client *c;
		struct err err = {0};
		char name[80];

		s = (struct server){.answers = {rows[i].answer}};
		start(&s);
		c = client(s.port, NULL, 100, 60);
		assert_int_equal(http_client_send(c, &request, &answer, &err), rows[i].ret);
		assert_int_equal(answer.status, rows[i].status);
		snprintf(name, sizeof(name), "http://127.0.0.1:%d: ", s.port);
		if (rows[i].ret < 0)
			assert_memory_equal(err.msg, name, strlen(name));
		http_client_close(c);
		stop(&s);
	}
}

TEST(test_failures)
{
	static struct server s;
	struct http_body body = {.read = broken, .size = 60000};
	struct http_request request = {.body = &body};
	struct http_answer answer;
	struct http_client *c;
	struct err err = {0};

	/* the file ends early */
	s = (struct server){.answers = {""}};
	start(&s);
	c = client(s.port, NULL, 100, 60);
	assert_error(http_client_send(c, &request, &answer, &err), &err, EIO, ": sending: what is to be sent cannot be read: ");
	http_client_close(c);
	stop(&s);
	/* nobody listens on this port any more */
	c = client(s.port, NULL, 100, 60);
	assert_error(http_client_send(c, &request, &answer, &err), &err, ECONNREFUSED, ": connecting: ");
	http_client_close(c);
	/* an answer that never comes */
	s = (struct server){.answers = {""}, .hold = true};
	body = (struct http_body){.data = "x", .size = 1};
	request.total_timeout = 0.2;
	start(&s);
	c = client(s.port, NULL, 100, 60);
	assert_error(http_client_send(c, &request, &answer, &err), &err, ETIMEDOUT, ": waiting for the answer: ");
	http_client_close(c);
	stop(&s);
	s = (struct server){.answers = {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n["}, .hold = true};
	request.total_timeout = 0;
	start(&s);
	c = client(s.port, NULL, 100, 1);
	assert_error(http_client_send(c, &request, &answer, &err), &err, ETIMEDOUT,
		     ": receiving the answer: nothing was sent or received for 1 s");
	http_client_close(c);
	stop(&s);
}

/* The script's server answers after at most 69999 bytes. A success is then no proof; a refusal is an answer. */
TEST(test_early)
{
	static const struct {
		const char *answer;
		int ret, status;
	} rows[] = {
		{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n[]", -ECONNRESET, 0},
		{"HTTP/1.1 413 no\r\nContent-Length: 2\r\nConnection: close\r\n\r\n[]", 0, 413},
	};
	static const char *const headers[] = {"Expect:", NULL}; /* send without waiting for "100 Continue" */
	const struct http_body body = {.read = alphabet, .size = (uint64_t)200 << 20};
	const struct http_request request = {.path = "/studies", .headers = headers, .body = &body};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		static struct server s;
		struct http_answer answer;
		struct http_client *c;
		struct err err = {0};

		s = (struct server){.answers = {rows[i].answer}, .hold = true};
		start(&s);
		c = client(s.port, NULL, 100, 60);
		assert_int_equal(http_client_send(c, &request, &answer, &err), rows[i].ret);
		assert_int_equal(answer.status, rows[i].status);
		if (rows[i].ret < 0)
			assert_non_null(strstr(err.msg, ": sending: the server answered with success before "));
		http_client_close(c);
		stop(&s);
	}
}

static void put(const char *path, const char *text, size_t n, mode_t mode)
{
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, n), n);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

TEST(test_credentials)
{
	static const struct {
		const char *text, *sent;
	} rows[] = {{"abc.DEF-123_~+/==\n", "\r\nAuthorization: Bearer abc.DEF-123_~+/==\r\n"},
		    {"user:pass:word\r\n", "\r\nAuthorization: Basic dXNlcjpwYXNzOndvcmQ=\r\n"}};
	static const char *const wrong[] = {"", "\n", "two words", "a\nb\n", ":x", "t\xc3\xb6ken", "a=b", "us\ter:x"};
	char folder[64], path[100];
	struct http_credentials credentials;
	struct err err = {0};
	char *large = calloc(1, HTTP_CREDENTIALS_SIZE);

	test_folder(folder, sizeof(folder));
	snprintf(path, sizeof(path), "%s/secret", folder);
	for (size_t i = 0; i < 2; i++) {
		static struct server s;
		struct http_request request = {.path = NULL};
		struct http_answer answer;
		struct http_client *c;

		put(path, rows[i].text, strlen(rows[i].text), 0640);
		s = (struct server){.answers = {OK_ANSWER}};
		start(&s);
		c = client(s.port, path, 100, 60);
		assert_int_equal(http_client_send(c, &request, &answer, NULL), 0);
		http_client_close(c);
		stop(&s);
		assert_non_null(strstr(s.request[0], rows[i].sent));
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		put(path, wrong[i], strlen(wrong[i]), 0600);
		assert_int_equal(http_credentials_read(path, &credentials, NULL), -ENOKEY);
	}
	put(path, "ab\0c", 4, 0600);
	assert_int_equal(http_credentials_read(path, &credentials, NULL), -ENOKEY);
	memset(large, 'a', HTTP_CREDENTIALS_SIZE);
	put(path, large, HTTP_CREDENTIALS_SIZE - 1, 0600);
	assert_error(http_credentials_read(path, &credentials, &err), &err, ENOKEY, "more than 4094 bytes");
	put(path, large, HTTP_CREDENTIALS_SIZE - 2, 0600);
	assert_int_equal(http_credentials_read(path, &credentials, NULL), 0);
	assert_int_equal(strlen(credentials.secret), HTTP_CREDENTIALS_SIZE - 2);
	http_credentials_clear(&credentials);
	for (size_t i = 0; i < sizeof(credentials); i++)
		assert_int_equal(((const char *)&credentials)[i], 0);
	for (const mode_t *mode = (const mode_t[]){0604, 0602, 0620, 0666, 0}; *mode; mode++) {
		put(path, "token", 5, *mode);
		assert_error(http_credentials_read(path, &credentials, &err), &err, ENOKEY, "mode 0");
	}
	free(large);
	put(path, "geheim 1", 8, 0600); /* the sentence does not repeat the content */
	assert_int_equal(http_credentials_read(path, &credentials, &err), -ENOKEY);
	assert_null(strstr(err.msg, "geheim"));
	put(path, "token", 5, 0644);
	assert_error(http_credentials_read(path, &credentials, &err), &err, ENOKEY,
		     "other users of this machine can read it (mode 0644)");
	unlink(path);
	assert_int_equal(http_credentials_read(path, &credentials, &err), -ENOKEY);
	assert_int_equal(http_credentials_read(folder, &credentials, &err), -ENOKEY);
}

TEST(test_targets)
{
	struct http_client *c = NULL;
	struct http_target target = {.url = "ftp://host/", .connect_timeout = 1, .idle_timeout = 1};

	assert_int_equal(http_client_open(&target, &c, NULL), -EINVAL);
	target.url = "https://host/";
	target.credentials = "/does/not/exist";
	assert_int_equal(http_client_open(&target, &c, NULL), -ENOKEY);
	target.credentials = "";
	assert_int_equal(http_client_open(&target, &c, NULL), 0);
	assert_string_equal(http_client_name(c), "https://host:443");
	http_client_close(c);
	http_client_close(NULL);
}
