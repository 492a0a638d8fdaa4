/* SPDX-License-Identifier: Apache-2.0 */
/* store_fixture.h - a storage SCP in a child process, for one connection. Through shared memory the test tells it how to respond,
 * and reads what it has received. */
#ifndef TOMONODE_TESTS_STORE_FIXTURE_H
#define TOMONODE_TESTS_STORE_FIXTURE_H

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "dicom/network/store_scp.h"
#include "dicom/network/store_scu.h"
#include "dicom/pixels/start.h"
#include "tests/test.h"

#define CLASS_MG "1.2.840.10008.5.1.4.1.1.1.2.1"
#define CLASS_PRIVATE "1.3.12.2.1107.5.9.1"
#define CLASS_FIND "1.2.840.10008.5.1.4.1.2.2.1"
#define EXPLICIT "1.2.840.10008.1.2.1"
#define IMPLICIT "1.2.840.10008.1.2"
#define JPEG_LOSSLESS "1.2.840.10008.1.2.4.70"
#define JPEG_2000 "1.2.840.10008.1.2.4.91" /* not the lossless one */

/* In shared memory: what the SCP has received, and how it shall respond. */
struct seen {
	int begun, ended, stored; /* number of calls of begin() and end(), number of objects stored */
	int rc;			  /* result of scp_associate() */
	int write_error;	  /* last one passed to end() */
	int over, released;	  /* number of calls of ended(), and its last argument */
	int echoes, n_refused;	  /* number of calls of echoed(), first argument of contexts_refused() */
	char refused[500];	  /* second argument of the latter */
	uint64_t bytes, data_bytes;
	uint32_t sum; /* of the data set's bytes */
	struct scp_object object;
	char err[500];
	long rss_at_start, peak_rss; /* KiB */
	uint8_t body[512]; /* beginning of the last PDU with data or a command, which a peer of raw bytes has received */
	uint32_t longest;  /* length of the longest one */
	/* set by the test */
	enum scp_admission admission;
	int refuse;	  /* status with which begin() refuses the object; 0: accept it */
	int max_pdu;	  /* largest PDU that the SCP accepts, bytes; 0: 131072 */
	uint64_t fail_at; /* data() fails once with ENOSPC, at this byte of the data set; 0: never */
	char file[128];
};

static struct seen *seen;
static char folder[64];

static uint32_t add_up(uint32_t sum, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sum = sum * 31 + p[i];
	return sum;
}

static int out_fd = -1;

static enum scp_admission on_admit(void *ctx, const struct scp_request *r, char *why, size_t size)
{
	struct seen *s = ctx;

	snprintf(why, size, "%s from %s to %s is not wanted", r->calling, r->host, r->called);
	return s->admission;
}

static int on_begin(void *ctx, const struct scp_object *o, uint16_t *ret_status)
{
	struct seen *s = ctx;

	s->begun++;
	s->object = *o;
	s->sum = 0;
	s->data_bytes = 0;
	if (s->refuse) {
		*ret_status = (uint16_t)s->refuse;
		return -1;
	}
	out_fd = open(s->file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	return out_fd;
}

static int on_data(void *ctx, const void *bytes, size_t n)
{
	struct seen *s = ctx;

	s->sum = add_up(s->sum, bytes, n);
	s->data_bytes += n;
	if (!s->fail_at || s->data_bytes < s->fail_at)
		return 0;
	s->fail_at = 0;
	return ENOSPC;
}

static uint16_t on_end(void *ctx, const struct scp_object *o, uint64_t bytes, int write_error)
{
	struct seen *s = ctx;

	(void)o;
	s->ended++;
	s->bytes = bytes;
	s->write_error = write_error;
	close(out_fd);
	if (write_error) {
		unlink(s->file);
		return write_error == EBADMSG ? STORE_CANNOT_UNDERSTAND : STORE_OUT_OF_RESOURCES;
	}
	s->stored++;
	return STORE_SUCCESS;
}

static void on_contexts_refused(void *ctx, unsigned n, const char *which)
{
	struct seen *s = ctx;

	s->n_refused += (int)n;
	snprintf(s->refused, sizeof(s->refused), "%s", which);
}

static void on_echo(void *ctx)
{
	struct seen *s = ctx;

	s->echoes++;
}

static void on_over(void *ctx, bool released)
{
	struct seen *s = ctx;

	s->over++;
	s->released = released;
}

static void serve(int listener, int timeout)
{
	struct scp_conf conf = {.host = "127.0.0.1",
				.max_pdu = seen->max_pdu ? seen->max_pdu : 131072,
				.acse_timeout = timeout,
				.dimse_timeout = timeout};
	struct scp_handler h = {.ctx = seen,
				.admit = on_admit,
				.contexts_refused = on_contexts_refused,
				.echoed = on_echo,
				.begin = on_begin,
				.data = on_data,
				.end = on_end,
				.ended = on_over};
	struct err err = {0};
	struct rusage usage;
	int fd = accept(listener, NULL, NULL);

	getrusage(RUSAGE_SELF, &usage);
	seen->rss_at_start = usage.ru_maxrss;
	signal(SIGXFSZ, SIG_IGN);
	seen->rc = scp_associate(fd, &conf, &h, &err);
	snprintf(seen->err, sizeof(seen->err), "%s", err.msg);
	getrusage(RUSAGE_SELF, &usage);
	seen->peak_rss = usage.ru_maxrss;
}

static void (*server_runs)(int listener, int timeout) = serve;

struct server {
	int port;
	pid_t pid;
};

static int port_of(int fd)
{
	struct sockaddr_storage a;
	socklen_t n = sizeof(a);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
	return ntohs(a.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&a)->sin6_port : ((struct sockaddr_in *)&a)->sin_port);
}

/* Start an SCP for one connection. file_limit: RLIMIT_FSIZE of its process, bytes; 0: no limit. */
static struct server start_on(int fd, int timeout, rlim_t file_limit)
{
	struct rlimit limit = {file_limit, file_limit};
	struct server s;

	s.port = port_of(fd);
	seen->begun = seen->ended = seen->stored = seen->over = seen->released = seen->write_error = 0;
	seen->longest = 0;
	seen->rc = 1;
	seen->err[0] = '\0';
	unlink(seen->file);
	s.pid = fork();
	assert_true(s.pid >= 0);
	if (s.pid == 0) {
		alarm(60);
		if (file_limit)
			setrlimit(RLIMIT_FSIZE, &limit);
		server_runs(fd, timeout);
		_exit(0);
	}
	close(fd);
	return s;
}

static struct server start_limited(int timeout, rlim_t file_limit)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 1), 0);
	return start_on(fd, timeout, file_limit);
}

static inline struct server start(int timeout)
{
	return start_limited(timeout, 0);
}

static void finish(struct server s)
{
	int status;

	assert_int_equal(waitpid(s.pid, &status, 0), s.pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static int set_up(void **state)
{
	struct err err = {0};

	signal(SIGPIPE, SIG_IGN);
	test_folder(folder, sizeof(folder));
	if (dicom_start(&err) < 0)
		return -1;
	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (seen == MAP_FAILED)
		return -1;
	snprintf(seen->file, sizeof(seen->file), "%s/stored.dcm", folder);
	return 0;
}

static int tear_down(void **state)
{
	munmap(seen, sizeof(*seen));
	dicom_stop();
	return 0;
}

#endif
