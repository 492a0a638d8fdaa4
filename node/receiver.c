/* receiver.c - the listener: accepts, forks a process per association, reaps, and knows when to stop.
 *
 * - It parses nothing and opens no journal: a peer can only harm the process of its own association.
 * - An association dies with its listener, and the listener with the node that started it (PR_SET_PDEATHSIG): no association of a
 *   dead node can go on writing beside a new one.
 * - Signals are blocked but while waiting, so that none is lost between a look and the wait.
 */
#include "node/receiver.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "node/admission.h"
#include "node/intake.h"
#include "node/log.h"

#define BACKLOG 64
#define REJECTERS_MAX                                                                                                            \
	16	       /* processes beyond max_associations that tell a peer so; beyond these a connection is closed at once     \
			*/
#define TICK_SECONDS 1 /* how often the listener looks whether its node is still there */

struct receiver {
	int listen_fd, notify_fd;
	const struct config *config;
	struct admission *admission;
	pid_t node;	 /* who started us */
	pid_t *children; /* of associations and rejecters, 0: free */
	size_t n_slots, n_children;
	sigset_t waiting; /* the mask while waiting */
};

static volatile sig_atomic_t stop_asked;

static void on_stop(int signal_number)
{
	(void)signal_number;
	stop_asked = 1;
}

static void on_child(int signal_number)
{
	(void)signal_number; /* it only has to end ppoll() */
}

int receiver_listen(const char *bind_to, int port, int *ret_port, struct err *err)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	struct addrinfo *list = NULL, *a;
	struct sockaddr_storage bound;
	socklen_t n = sizeof(bound);
	char service[16], found[16];
	int fd = -1, rc, code = EADDRNOTAVAIL, on = 1, off = 0;

	if (port < 0 || port > 65535)
		return err_set(err, EINVAL, "port %d, allowed 0..65535", port);
	snprintf(service, sizeof(service), "%d", port);
	rc = getaddrinfo(bind_to[0] ? bind_to : NULL, service, &hints, &list);
	if (rc != 0)
		return err_set(err, EADDRNOTAVAIL, "cannot listen on '%s': %s", bind_to, gai_strerror(rc));
	for (a = list; a && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd < 0) {
			code = errno;
			continue;
		}
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		if (a->ai_family == AF_INET6) /* "::" takes IPv4 as well */
			setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
		if (bind(fd, a->ai_addr, a->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0) {
			code = errno;
			close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(list);
	if (fd < 0)
		return err_set(err, code, "cannot listen on %s port %d: %s", bind_to, port, strerror(code));
	if (getsockname(fd, (struct sockaddr *)&bound, &n) < 0 ||
	    getnameinfo((struct sockaddr *)&bound, n, NULL, 0, found, sizeof(found), NI_NUMERICSERV) != 0) {
		close(fd);
		return err_set(err, EIO, "cannot read back the port that listens on %s", bind_to);
	}
	if (ret_port)
		*ret_port = atoi(found);
	return fd;
}

static void reap(struct receiver *r)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (size_t i = 0; i < r->n_slots; i++) {
			if (r->children[i] != pid)
				continue;
			r->children[i] = 0;
			r->n_children--;
		}
		if (WIFSIGNALED(status))
			log_event(LOG_ERR, "association-crashed", "process=%ld signal=%d", (long)pid, WTERMSIG(status));
		else if (WEXITSTATUS(status) != 0)
			log_event(LOG_ERR, "association-crashed", "process=%ld code=%d", (long)pid, WEXITSTATUS(status));
	}
}

static void signal_children(const struct receiver *r, int signal_number)
{
	for (size_t i = 0; i < r->n_slots; i++)
		if (r->children[i] > 0)
			kill(r->children[i], signal_number);
}

static void set_signal(int signal_number, void (*handler)(int))
{
	struct sigaction sa = {.sa_handler = handler};

	sigemptyset(&sa.sa_mask);
	sigaction(signal_number, &sa, NULL);
}

/* In the new process: serve one association, then leave without running what the parent registered for its own exit. */
static void child_run(struct receiver *r, int fd, pid_t listener, bool busy)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != listener)
		_exit(1);
	close(r->listen_fd);
	set_signal(SIGTERM, SIG_DFL);
	set_signal(SIGINT, SIG_IGN); /* Ctrl-C in the foreground: the listener decides */
	set_signal(SIGCHLD, SIG_DFL);
	sigprocmask(SIG_SETMASK, &r->waiting, NULL);
	intake_run(fd, r->config, r->admission, r->notify_fd, busy);
	_exit(0);
}

static void take(struct receiver *r, int fd)
{
	bool busy = r->n_children >= (size_t)r->config->node.max_associations;
	pid_t listener = getpid(), pid;
	size_t slot = 0;

	while (slot < r->n_slots && r->children[slot] != 0)
		slot++;
	if (slot == r->n_slots) {
		log_event(LOG_WARNING, "connection-closed", "reason=%s",
			  log_quote("far too many connections at a time (node.max_associations)"));
		close(fd);
		return;
	}
	pid = fork();
	if (pid == 0)
		child_run(r, fd, listener, busy);
	if (pid < 0) {
		log_event(LOG_ERR, "connection-closed", "reason=%s", log_quote(strerror(errno)));
	} else {
		r->children[slot] = pid;
		r->n_children++;
	}
	close(fd);
}

/* Take every connection that waits. */
static void accept_all(struct receiver *r)
{
	for (;;) {
		int fd = accept4(r->listen_fd, NULL, NULL, SOCK_CLOEXEC);

		if (fd >= 0) {
			take(r, fd);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			struct timespec pause = {.tv_nsec = 100 * 1000 * 1000};

			log_event(LOG_ERR, "accept-failed", "reason=%s", log_quote(strerror(errno)));
			nanosleep(&pause, NULL);
			return;
		}
		if (errno != EINTR && errno != ECONNABORTED)
			return;
	}
}

static bool node_is_gone(const struct receiver *r)
{
	return getppid() != r->node;
}

static double now_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* No more connections: let the associations under way end, then end those that did not. */
static void drain(struct receiver *r, int grace)
{
	double until = now_seconds() + grace;

	while (r->n_children > 0 && now_seconds() < until && !node_is_gone(r)) {
		struct timespec wait = {.tv_nsec = 200 * 1000 * 1000};

		ppoll(NULL, 0, &wait, &r->waiting);
		reap(r);
	}
	if (r->n_children > 0) {
		log_event(LOG_WARNING, "associations-cut", "count=%zu grace=%d", r->n_children, grace);
		signal_children(r, SIGKILL);
	}
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
}

int receiver_run(int listen_fd, const struct config *config, int notify_fd, int grace, struct err *err)
{
	struct receiver r = {.listen_fd = listen_fd, .notify_fd = notify_fd, .config = config, .node = getppid()};
	sigset_t blocked;
	int rc, flags;

	r.n_slots = (size_t)config->node.max_associations + REJECTERS_MAX;
	r.children = calloc(r.n_slots, sizeof(r.children[0]));
	if (!r.children)
		return err_set(err, ENOMEM, "receiver: no memory for %zu associations", r.n_slots);
	rc = admission_create(config, &r.admission, err);
	if (rc < 0)
		goto out;

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a node that died before this line is seen by node_is_gone() */
	stop_asked = 0;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	sigaddset(&blocked, SIGINT);
	sigaddset(&blocked, SIGCHLD);
	sigprocmask(SIG_BLOCK, &blocked, &r.waiting);
	sigdelset(&r.waiting, SIGTERM);
	sigdelset(&r.waiting, SIGINT);
	sigdelset(&r.waiting, SIGCHLD);
	set_signal(SIGTERM, on_stop);
	set_signal(SIGINT, on_stop);
	set_signal(SIGCHLD, on_child);
	set_signal(SIGHUP, SIG_IGN);
	set_signal(SIGPIPE, SIG_IGN);
	set_signal(SIGXFSZ, SIG_IGN); /* a file size limit is then an error of write() */
	flags = fcntl(listen_fd, F_GETFL);
	if (flags < 0 || fcntl(listen_fd, F_SETFL, flags | O_NONBLOCK) < 0) {
		rc = err_set(err, errno, "receiver: %s", strerror(errno));
		goto out;
	}

	while (!stop_asked && !node_is_gone(&r)) {
		struct pollfd pfd = {.fd = listen_fd, .events = POLLIN};
		struct timespec tick = {.tv_sec = TICK_SECONDS};
		int n = ppoll(&pfd, 1, &tick, &r.waiting);

		reap(&r);
		if (n > 0 && !stop_asked)
			accept_all(&r);
	}
	close(listen_fd);
	drain(&r, node_is_gone(&r) ? 0 : grace);
	rc = 0;
out:
	r.admission = admission_free(r.admission);
	free(r.children);
	return rc;
}
