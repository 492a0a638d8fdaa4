/* SPDX-License-Identifier: Apache-2.0 */
/* receiver.c - the listener: accept connections, fork a process per association, reap these processes, and stop.
 *
 * - It parses nothing and opens no journal: a peer can only harm the process of its own association. TLS contexts (certificates,
 *   keys) are created here before any fork; handshakes are made in the association's process.
 * - Only the listener knows all associations, so it keeps the limits of each sender; the processes send it requests
 *   (node/receive/association_ipc.h), and it accepts from each only information about its own association.
 * - When the maximum number of connections is reached, connections that have not become an association are closed for new ones.
 * - An association ends with its listener, and the listener with the node that started it (PR_SET_PDEATHSIG): no association of a
 *   dead node can continue to write at the same time as a new node.
 * - Signals are blocked except while waiting, so that none is lost between a check and the wait.
 */
#include "node/receive/receiver.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/base/log.h"
#include "node/base/network.h"
#include "node/receive/admission.h"
#include "node/receive/association_ipc.h"
#include "node/receive/intake.h"
#include "node/receive/limits.h"
#include "node/receive/peer_limits.h"
#include "node/receive/tls_files.h"
#include "node/sandbox/sandbox.h"

#define EVICTED_MAX 16 /* maximum number of processes that were killed for a new connection and have not been reaped */
#define REJECTERS_MAX                                                                                                            \
	16 /* maximum number of processes beyond max_associations that reject an association; further connections are closed at  \
	      once */
#define CONNECTIONS_AT_ONCE 64
#define REQUESTS_AT_ONCE 16 /* maximum number of requests of one process that are served before those of the others */
#define ADMIT_SECONDS 5.0   /* s; while max_associations is reached, time for a connection to become an association */
#define TICK_SECONDS 1	    /* s between two checks whether the node still runs */

struct child {	   /* process of an association, or one that rejects it */
	pid_t pid; /* 0: the entry is free */
	int ipc_fd;
	struct limits_key who;
	bool admitted; /* it is counted in the associations of `who` */
	bool rejecter; /* it only rejects the association, because max_associations or its peer's limit is reached */
	bool evicted;  /* it was killed for a new connection */
	double began;
};

struct receiver {
	struct listen_sockets *sockets;
	struct tls_context *tls[LISTENERS_MAX];
	int notify_fd;
	const struct config *config;
	struct admission *admission;
	struct peer_limits *peer_limits;
	struct limits *limits; /* table of peer_limits */
	pid_t node;	       /* process that started the listener */
	struct child *children;
	size_t n_slots, n_children;
	size_t n_serving; /* number of children that count towards max_associations */
	/* on clock_seconds(): */
	struct receiver_places places;
	struct pollfd *fds;		     /* sockets, then the children that have a socket pair */
	size_t *child_of;		     /* index of the child of each of the latter */
	struct receiver_state *state;	     /* shared with the manager; NULL: none, or it belongs to the next receiver */
	struct receiver_state *associations; /* the same, for associations that ended, as long as this process lives */
	sigset_t waiting;		     /* signal mask while waiting */
};

static volatile sig_atomic_t stop_requested;

static void on_stop(int signal_number)
{
	(void)signal_number;
	stop_requested = 1;
}

static void on_child(int signal_number)
{
	(void)signal_number; /* its only purpose is to interrupt ppoll() */
}

/* ---- limits ---- */

static int associations_of(const struct receiver *r, const struct limits_key *who)
{
	int n = 0;

	for (size_t i = 0; i < r->n_slots; i++)
		n += r->children[i].pid != 0 && r->children[i].admitted && limits_is_same_sender(&r->children[i].who, who);
	return n;
}

/* The process only rejects its association from now on, and no longer takes the place of one. A peer may leave it waiting: of
 * more than REJECTERS_MAX the oldest, which had the most time to send its rejection, is killed. */
static void only_reject(struct receiver *r, struct child *c)
{
	struct child *oldest = NULL;

	if (c->rejecter || c->evicted)
		return;
	c->rejecter = true;
	r->n_serving--;
	for (size_t i = 0; i < r->n_slots; i++) {
		struct child *other = &r->children[i];

		if (other->pid > 0 && other != c && other->rejecter && !other->evicted &&
		    (!oldest || other->began < oldest->began))
			oldest = other;
	}
	if (oldest && r->n_children - r->n_serving > REJECTERS_MAX) {
		oldest->evicted = true;
		kill(oldest->pid, SIGKILL);
	}
}

static void reply_admit(struct receiver *r, struct child *c, const struct association_request *q)
{
	struct association_reply a = {.yes = false};

	if (q->peer < ADMISSION_UNKNOWN_PEER || q->peer >= (int)r->config->n_peers || c->admitted)
		return;
	c->who.peer = q->peer;
	a.limit = limits_max_associations(r->limits, &c->who);
	a.yes = a.limit == 0 || associations_of(r, &c->who) < a.limit;
	a.counted = limits_has_byte_limit(r->limits, &c->who);
	c->admitted = a.yes;
	association_ipc_reply(c->ipc_fd, q, &a);
	if (!a.yes)
		only_reject(r, c);
}

static enum refusal_kind refusal_kind_of(const struct association_request *q)
{
	return q->refusal == REFUSAL_SILENT ? REFUSAL_SILENT : REFUSAL_REJECTED;
}

/* Serve at most REQUESTS_AT_ONCE requests of a process, so that one that sends many does not delay the others. false: the process
 * has ended. */
static bool serve_requests(struct receiver *r, struct child *c)
{
	struct association_request q;
	struct association_reply a = {.yes = true};
	double now = clock_seconds();
	int got = 1;

	for (int i = 0; i < REQUESTS_AT_ONCE && (got = association_ipc_receive(c->ipc_fd, &q)) > 0; i++) {
		switch (q.kind) {
		case ASSOCIATION_ADMIT:
			reply_admit(r, c, &q);
			break;
		case ASSOCIATION_BYTES:
			a.wait = limits_count_bytes(r->limits, &c->who, q.bytes, now);
			association_ipc_reply(c->ipc_fd, &q, &a);
			break;
		case ASSOCIATION_MAY_LOG:
			a.yes = peer_limits_may_log(r->peer_limits, &c->who.sender, refusal_kind_of(&q), now);
			association_ipc_reply(c->ipc_fd, &q, &a);
			break;
		case ASSOCIATION_REFUSED:
			peer_limits_count_refusal(r->peer_limits, &c->who.sender, refusal_kind_of(&q), now);
			break;
		case ASSOCIATION_ENDED:
			receiver_state_add_association(r->associations, &q.ended, clock_wall());
			break;
		}
	}
	return got >= 0;
}

/* ---- processes ---- */

static void close_ipc(struct child *c)
{
	if (c->ipc_fd >= 0)
		close(c->ipc_fd);
	c->ipc_fd = -1;
}

static void reap_children(struct receiver *r)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		bool evicted = false;

		for (size_t i = 0; i < r->n_slots; i++) {
			struct child *c = &r->children[i];

			if (c->pid != pid)
				continue;
			if (c->ipc_fd >= 0)
				serve_requests(r, c); /* requests sent before its end */
			close_ipc(c);
			c->pid = 0;
			r->n_children--;
			r->n_serving -= !c->rejecter && !c->evicted;
			evicted = c->evicted;
		}
		if (evicted)
			continue;
		if (WIFSIGNALED(status))
			log_event(LOG_ERR, "association-crashed", "process=%ld signal=%d", (long)pid, WTERMSIG(status));
		else if (WEXITSTATUS(status) != 0)
			log_event(LOG_ERR, "association-crashed", "process=%ld code=%d", (long)pid, WEXITSTATUS(status));
	}
}

static void signal_children(const struct receiver *r, int signal_number)
{
	for (size_t i = 0; i < r->n_slots; i++)
		if (r->children[i].pid > 0)
			kill(r->children[i].pid, signal_number);
}

static void set_signal(int signal_number, void (*handler)(int))
{
	struct sigaction sa = {.sa_handler = handler};

	sigemptyset(&sa.sa_mask);
	sigaction(signal_number, &sa, NULL);
}

/* In the new process: serve one association, then exit without the exit handlers of the parent. */
static void run_association(struct receiver *r, int fd, const char *host, size_t socket, int ipc_fd, pid_t listener, bool busy)
{
	struct intake_place place = {.config = r->config,
				     .admission = r->admission,
				     .listener = &r->sockets->list[socket].conf,
				     .tls = r->tls[socket],
				     .host = host,
				     .notify_fd = r->notify_fd,
				     .ipc_fd = ipc_fd,
				     .busy = busy};
	struct err err = {0};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != listener)
		_exit(1);
	listen_close(r->sockets);
	for (size_t i = 0; i < r->n_slots; i++) /* close the sockets of other associations */
		if (r->children[i].pid > 0)
			close_ipc(&r->children[i]);
	set_signal(SIGTERM, SIG_DFL);
	set_signal(SIGINT, SIG_IGN); /* ignore Ctrl-C: the listener decides when to end */
	set_signal(SIGCHLD, SIG_DFL);
	sigprocmask(SIG_SETMASK, &r->waiting, NULL);
	intake_prepare(r->config);
	if (sandbox_enter(SANDBOX_ASSOCIATION, r->config, NULL, &err) < 0) {
		log_event(LOG_CRIT, "sandbox-failed", "role=association reason=%s", log_quote(err.msg));
		_exit(1);
	}
	intake_run(fd, &place);
	_exit(0);
}

/* Return true if the connection is older than ADMIT_SECONDS and has not become an association. */
static bool is_idle(const struct child *c, double now)
{
	return c->pid > 0 && !c->admitted && !c->rejecter && !c->evicted && now - c->began >= ADMIT_SECONDS;
}

/* Return the number of idle connections of its sender, plus a fraction that is larger for an older connection. */
static double idle_of_sender(const struct receiver *r, const struct child *c, double now)
{
	double n = 1 - 1 / (1 + now - c->began);

	for (size_t i = 0; i < r->n_slots; i++)
		n += is_idle(&r->children[i], now) && limits_is_same_sender(&r->children[i].who, &c->who);
	return n;
}

/* Called when max_associations is reached: kill the process of an idle connection, of the sender that has most of them. Admitted
 * peers request an association within ADMIT_SECONDS and are not affected. false: there is no idle connection. */
static bool evict_idle(struct receiver *r)
{
	double now = clock_seconds(), most = 0;
	struct child *victim = NULL;

	for (size_t i = 0; i < r->n_slots; i++) {
		struct child *c = &r->children[i];
		double idle = is_idle(c, now) ? idle_of_sender(r, c, now) : 0;

		if (idle > most) {
			most = idle;
			victim = c;
		}
	}
	if (!victim)
		return false;
	victim->evicted = true;
	r->n_serving--;
	kill(victim->pid, SIGKILL);
	peer_limits_count_closed(r->peer_limits, &victim->who.sender,
				 "it did not become an association in time, and node.max_associations is reached", now);
	peer_limits_count_refusal(r->peer_limits, &victim->who.sender, REFUSAL_REJECTED, now);
	return true;
}

static bool is_full(const struct receiver *r)
{
	return r->n_serving >= (size_t)r->config->node.max_associations;
}

static void accept_connection(struct receiver *r, int fd, size_t socket, const struct in6_addr *from, const char *host)
{
	pid_t listener = getpid(), pid;
	int pair[2] = {-1, -1};
	struct in6_addr sender = limits_sender_address(from, admission_has_address(r->admission, from));
	double now = clock_seconds();
	struct child *c;
	size_t slot = 0;
	char reason[100];
	bool busy;

	if (peer_limits_is_blocked(r->peer_limits, &sender, now)) {
		close(fd);
		return;
	}
	if (r->sockets->list[socket].conf.tls && !r->tls[socket]) {
		peer_limits_count_closed(r->peer_limits, &sender,
					 "this port has no usable certificate (see listener-failed in the log)", now);
		close(fd);
		return;
	}
	busy = is_full(r) && !evict_idle(r);
	if (busy && receiver_places_refuse(&r->places, now)) {
		snprintf(reason, sizeof(reason), "all %d (node.max_associations) are in use", r->config->node.max_associations);
		receiver_state_fault(r->state, RECEIVER_FAULT_FULL, reason);
	}
	while (slot < r->n_slots && r->children[slot].pid != 0)
		slot++;
	if (slot == r->n_slots || (busy && r->n_children - r->n_serving >= REJECTERS_MAX)) {
		peer_limits_count_closed(r->peer_limits, &sender, "too many simultaneous connections (node.max_associations)",
					 now);
		close(fd);
		return;
	}
	c = &r->children[slot];
	if (association_ipc_pair(pair) < 0 || (pid = fork()) < 0) {
		peer_limits_count_closed(r->peer_limits, &sender, strerror(errno), now);
		if (pair[0] >= 0)
			close(pair[0]);
	} else if (pid == 0) {
		close(pair[0]);
		run_association(r, fd, host, socket, pair[1], listener, busy);
	} else {
		*c = (struct child){.pid = pid,
				    .ipc_fd = pair[0],
				    .who = {.peer = ADMISSION_UNKNOWN_PEER, .sender = sender},
				    .rejecter = busy,
				    .began = now};
		r->n_children++;
		r->n_serving += !busy;
	}
	if (pair[1] >= 0)
		close(pair[1]);
	close(fd);
}

/* Write the numeric address of a peer; of IPv4 through an IPv6 socket, the IPv4 address. */
static void print_host(const struct sockaddr *from, socklen_t n, char *ret, size_t size)
{
	if (getnameinfo(from, n, ret, (socklen_t)size, NULL, 0, NI_NUMERICHOST) != 0)
		snprintf(ret, size, "unknown");
	if (!strncmp(ret, "::ffff:", 7))
		memmove(ret, ret + 7, strlen(ret + 7) + 1);
}

/* Accept at most CONNECTIONS_AT_ONCE waiting connections; further ones are accepted after the requests of running associations.
 */
static void accept_all(struct receiver *r, size_t socket)
{
	for (int i = 0; i < CONNECTIONS_AT_ONCE; i++) {
		struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
		socklen_t n = sizeof(address);
		struct in6_addr from = {0};
		char host[64];
		int fd = accept4(r->sockets->list[socket].fd, (struct sockaddr *)&address, &n, SOCK_CLOEXEC);

		if (fd >= 0) {
			receiver_state_fault(r->state, RECEIVER_FAULT_WAIT, "");
			network_address((const struct sockaddr *)&address, &from);
			print_host((const struct sockaddr *)&address, n, host, sizeof(host));
			accept_connection(r, fd, socket, &from, host);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			struct timespec pause = {.tv_nsec = 100 * 1000 * 1000};

			log_event(LOG_ERR, "accept-failed", "reason=%s", log_quote(strerror(errno)));
			receiver_state_fault(r->state, RECEIVER_FAULT_WAIT, strerror(errno));
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

/* List the sockets and the children's socket pairs: only open descriptors, because ppoll() refuses more entries than a process
 * may have descriptors. Returns their number. */
static size_t fill_fds(struct receiver *r, size_t n_sockets)
{
	size_t n = 0;

	for (; n < n_sockets; n++)
		r->fds[n] = (struct pollfd){.fd = r->sockets->list[n].fd, .events = POLLIN};
	for (size_t i = 0; i < r->n_slots; i++)
		if (r->children[i].pid > 0 && r->children[i].ipc_fd >= 0) {
			r->child_of[n] = i;
			r->fds[n++] = (struct pollfd){.fd = r->children[i].ipc_fd, .events = POLLIN};
		}
	return n;
}

/* Waiting for connections failed: nobody is heard. Report it and do not use up the processor. */
static void wait_failed(struct receiver *r)
{
	struct timespec pause = {.tv_nsec = 500 * 1000 * 1000};

	log_event(LOG_CRIT, "wait-failed", "reason=%s", log_quote(strerror(errno)));
	receiver_state_fault(r->state, RECEIVER_FAULT_WAIT, strerror(errno));
	nanosleep(&pause, NULL);
}

/* Wait at most `wait` for connections (on the first n_sockets sockets) and requests, and handle all of them. */
static void poll_once(struct receiver *r, size_t n_sockets, struct timespec wait)
{
	size_t n = fill_fds(r, n_sockets);
	int ready = ppoll(r->fds, n, &wait, &r->waiting);

	if (ready < 0 && errno != EINTR)
		wait_failed(r);
	receiver_state_beat(r->state, clock_seconds());
	for (size_t i = n_sockets; ready > 0 && i < n; i++) {
		struct child *c = &r->children[r->child_of[i]];

		if (r->fds[i].revents && !serve_requests(r, c))
			close_ipc(c);
	}
	reap_children(r);
	if (receiver_places_look(&r->places, is_full(r), clock_seconds()))
		receiver_state_fault(r->state, RECEIVER_FAULT_FULL, "");
	peer_limits_tick(r->peer_limits, clock_seconds(), false);
	for (size_t i = 0; ready > 0 && !stop_requested && i < n_sockets; i++)
		if (r->fds[i].revents)
			accept_all(r, i);
}

/* Accept no more connections: wait until the running associations end, then kill those that still run after `grace` seconds. */
static void drain_associations(struct receiver *r, int grace)
{
	double until = clock_seconds() + grace;

	while (r->n_children > 0 && clock_seconds() < until && !node_is_gone(r)) {
		poll_once(r, 0, (struct timespec){.tv_nsec = 200 * 1000 * 1000});
	}
	if (r->n_children > 0) {
		log_event(LOG_WARNING, "associations-aborted", "count=%zu grace=%d", r->n_children, grace);
		signal_children(r, SIGKILL);
	}
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
}

static void open_tls(struct receiver *r)
{
	for (size_t i = 0; i < r->sockets->n; i++) {
		const struct listener_conf *l = &r->sockets->list[i].conf;
		struct tls_conf conf = listener_tls(l);
		struct err err = {0};

		/* Connections to this port are closed; the other ports work. */
		if (l->tls && tls_create(&conf, &r->tls[i], &err) < 0) {
			char reason[CONFIG_NAME_SIZE + sizeof(err.msg) + 16];

			log_event(LOG_CRIT, "listener-failed", "listener=%s reason=%s", log_quote(l->name), log_quote(err.msg));
			snprintf(reason, sizeof(reason), "listener %s: %s", l->name, err.msg);
			receiver_state_fault(r->state, RECEIVER_FAULT_TLS, reason);
		}
	}
}

/* Raise the limit of open descriptors: one for each child in addition to those already open. */
static void raise_descriptors(const struct receiver *r)
{
	struct rlimit limit;
	rlim_t wanted = (rlim_t)r->n_slots + LISTENERS_MAX + 64;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur < wanted) {
		char reason[200];

		snprintf(reason, sizeof(reason),
			 "node.max_associations = %d needs %llu descriptors, and the limit of this process is %llu (ulimit -n, "
			 "LimitNOFILE)",
			 r->config->node.max_associations, (unsigned long long)wanted, (unsigned long long)limit.rlim_cur);
		log_event(LOG_ERR, "descriptors-limited", "reason=%s", log_quote(reason));
		receiver_state_fault(r->state, RECEIVER_FAULT_DESCRIPTORS, reason);
	}
}

static int prepare_receiver(struct receiver *r, struct err *err)
{
	int rc;

	r->n_slots = (size_t)r->config->node.max_associations + REJECTERS_MAX + EVICTED_MAX;
	r->children = calloc(r->n_slots, sizeof(r->children[0]));
	r->fds = calloc(r->n_slots + LISTENERS_MAX, sizeof(r->fds[0]));
	r->child_of = calloc(r->n_slots + LISTENERS_MAX, sizeof(r->child_of[0]));
	if (!r->children || !r->fds || !r->child_of)
		return err_set(err, ENOMEM, "receiver: no memory for %zu associations", r->n_slots);
	rc = admission_create(r->config, &r->admission, err);
	if (rc == 0)
		rc = peer_limits_create(r->config, &r->peer_limits, err);
	if (rc < 0)
		return rc;
	r->limits = peer_limits_table(r->peer_limits);
	open_tls(r);
	raise_descriptors(r);
	for (size_t i = 0; i < r->sockets->n; i++) {
		int fd = r->sockets->list[i].fd, flags = fcntl(fd, F_GETFL);

		if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
			return err_set(err, errno, "receiver: %s", strerror(errno));
	}
	return 0;
}

static void set_signals(struct receiver *r)
{
	sigset_t blocked;

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* if the node died before this call, node_is_gone() detects it */
	stop_requested = 0;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	sigaddset(&blocked, SIGINT);
	sigaddset(&blocked, SIGCHLD);
	sigprocmask(SIG_BLOCK, &blocked, &r->waiting);
	sigdelset(&r->waiting, SIGTERM);
	sigdelset(&r->waiting, SIGINT);
	sigdelset(&r->waiting, SIGCHLD);
	set_signal(SIGTERM, on_stop);
	set_signal(SIGINT, on_stop);
	set_signal(SIGCHLD, on_child);
	set_signal(SIGHUP, SIG_IGN);
	set_signal(SIGPIPE, SIG_IGN);
}

int receiver_run(struct listen_sockets *sockets, const struct config *config, int notify_fd, int grace,
		 struct receiver_state *state, struct err *err)
{
	struct receiver r = {.sockets = sockets,
			     .notify_fd = notify_fd,
			     .config = config,
			     .node = getppid(),
			     .state = state,
			     .associations = state};
	int rc = prepare_receiver(&r, err);

	if (rc < 0)
		goto out;
	set_signals(&r);
	receiver_state_keep(state);
	rc = sandbox_enter(SANDBOX_LISTENER, config, NULL, err);
	if (rc < 0)
		goto out;
	while (!stop_requested && !node_is_gone(&r))
		poll_once(&r, sockets->n, (struct timespec){.tv_sec = TICK_SECONDS});
	listen_close(sockets);
	r.state = NULL; /* signs of life and faults are those of the next receiver now */
	drain_associations(&r, node_is_gone(&r) ? 0 : grace);
	peer_limits_tick(r.peer_limits, clock_seconds(), true);
out:
	for (size_t i = 0; i < LISTENERS_MAX; i++)
		r.tls[i] = tls_free(r.tls[i]);
	r.admission = admission_free(r.admission);
	r.peer_limits = peer_limits_free(r.peer_limits);
	free(r.children);
	free(r.fds);
	free(r.child_of);
	return rc;
}
