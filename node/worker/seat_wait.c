/* SPDX-License-Identifier: Apache-2.0 */
/* seat_wait.c - accept pilots until one is admitted. A peer that says nothing holds up nobody: handshakes run side by side.
 * Nobody fills the log or the audit trail: refusals above the limits of node/base/refusal_log.h are counted. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/audit/audit.h"
#include "node/base/log.h"
#include "node/base/network.h"
#include "node/base/refusal_log.h"
#include "node/base/version.h"
#include "node/process/worker_ipc.h"
#include "node/worker/seat.h"

struct arrival {
	struct link *link;
	double until;
	char from[64];
	struct in6_addr prefix; /* of its address, by which arrivals are counted */
	bool opened;		/* the handshake is done */
};

struct waiting {
	struct seat *seat;
	struct arrival list[SEAT_HANDSHAKES_MAX];
	size_t n;
	struct refusal_log *log;
};

static void drop_arrival(struct waiting *w, size_t i)
{
	link_close(w->list[i].link);
	w->list[i] = w->list[--w->n];
}

/* For the status page. A peer that gave no ID of a pilot is not shown: it may be any program. */
static void tell_manager(const struct waiting *w, const struct arrival *a, const char *why)
{
	struct worker_message m = {.kind = WORKER_TURNED_AWAY};

	if (!link_id(a->link)[0])
		return;
	snprintf(m.pilot, sizeof(m.pilot), "%s", link_id(a->link));
	snprintf(m.text, sizeof(m.text), "%s at %s was refused: %.200s", m.pilot, a->from, why);
	worker_ipc_send_message(w->seat->process.ipc_fd, &m, false);
}

/* limit: not because of what it said, but because there are too many. */
static void log_refusal(struct waiting *w, const struct arrival *a, bool limit, const char *why)
{
	const char *id = limit ? NULL : link_id(a->link);

	if (!refusal_log_may_write(w->log, &a->prefix, REFUSAL_REJECTED, clock_seconds()))
		return;
	log_event(LOG_WARNING, "pilot-refused", "%s%s%sfrom=%s reason=%s", id ? "pilot=" : "", id ? log_quote(id) : "",
		  id ? " " : "", a->from, log_quote(why));
	audit_refused(&(struct audit_peer){.pilot = id, .host = a->from}, limit, why);
}

static void log_counted(void *ctx, const struct in6_addr *sender, const unsigned long count[REFUSAL_KINDS], double seconds)
{
	char host[INET6_ADDRSTRLEN] = "several", reason[120];

	(void)ctx;
	if (sender)
		network_print(sender, host, sizeof(host));
	snprintf(reason, sizeof(reason), "%lu more connections of pilots were refused within %.0f s", count[REFUSAL_REJECTED],
		 seconds);
	log_event(LOG_WARNING, "pilot-refused", "from=%s reason=%s", host, log_quote(reason));
	audit_refused(&(struct audit_peer){.host = sender ? host : NULL}, true, reason);
}

static void refuse_arrival(struct waiting *w, size_t i, const struct err *why)
{
	struct arrival *a = &w->list[i];
	struct wire_message m = {.kind = WIRE_REFUSED, .code = why->code};

	if (why->code == EALREADY)
		m.last = (int64_t)link_last(a->link);

	log_refusal(w, a, false, why->msg);
	tell_manager(w, a, why->msg);
	snprintf(m.text, sizeof(m.text), "%s", why->msg);
	if (link_send(a->link, &m, NULL) == 0)
		link_drain(a->link, 1, NULL);
	drop_arrival(w, i);
}

static size_t count_from(const struct waiting *w, const struct in6_addr *prefix)
{
	size_t n = 0;

	for (size_t i = 0; i < w->n; i++)
		n += !memcmp(&w->list[i].prefix, prefix, sizeof(*prefix));
	return n;
}

/* Make room for one: the oldest arrival of the address that has the most. So one address keeps out no other. */
static void push_out(struct waiting *w)
{
	size_t most = 0, victim = 0;

	for (size_t i = 0; i < w->n; i++) {
		size_t n = count_from(w, &w->list[i].prefix);

		if (n > most || (n == most && w->list[i].until < w->list[victim].until)) {
			most = n;
			victim = i;
		}
	}
	log_refusal(w, &w->list[victim], true, "too many handshakes");
	drop_arrival(w, victim);
}

static void accept_one(struct waiting *w)
{
	struct sockaddr_storage from;
	socklen_t n = sizeof(from);
	struct in6_addr address;
	struct arrival a = {.until = clock_seconds() + SEAT_HANDSHAKE_LIMIT, .from = "?"};
	int fd = accept4(w->seat->process.listen_fd, (struct sockaddr *)&from, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	if (network_address((struct sockaddr *)&from, &address)) {
		network_print(&address, a.from, sizeof(a.from));
		a.prefix = network_client_prefix(&address);
	}
	if (w->n == SEAT_HANDSHAKES_MAX)
		push_out(w);
	if (link_open_node(fd, w->seat->process.config->node.spool, w->seat->tls, &a.link, NULL) == 0)
		w->list[w->n++] = a;
}

/* A peer that does not become a pilot: it is refused, unless it is `tomonode check`. */
static void turn_away(struct waiting *w, size_t i, const struct err *why)
{
	const struct arrival *a = &w->list[i];

	if (a->opened && !strncmp(link_id(a->link), LINK_TEST_ID, strlen(LINK_TEST_ID))) {
		log_event(LOG_INFO, "cluster-tested", "from=%s", a->from);
		drop_arrival(w, i);
	} else {
		refuse_arrival(w, i, why);
	}
}

static int check_hello(const struct wire_message *m, struct err *err)
{
	static const char own[] = TOMONODE_VERSION " " TOMONODE_REVISION;

	if (m->kind != WIRE_HELLO)
		return err_set(err, EPROTO, "it did not begin with HELLO");
	if (m->wire != WIRE_VERSION || strcmp(m->version, own) != 0)
		return err_set(
			err, EPROTO,
			"it is version %s (protocol %lld), this node is version %s (protocol %d): install the same version",
			m->version, (long long)m->wire, own, WIRE_VERSION);
	return 0;
}

/* Continue one arrival. 1: it is admitted, and the seat has it; 0: not yet, or it left the list. */
static int advance_arrival(struct waiting *w, size_t i)
{
	struct arrival *a = &w->list[i];
	struct wire_message m = {0}, welcome = {.kind = WIRE_WELCOME};
	const void *bytes;
	struct err why = {0};
	size_t n;
	int ret = link_handshake(a->link, &why);

	a->opened = ret == 1;
	if (ret == 1)
		ret = link_receive(a->link, &m, &bytes, &n, &why);
	if (ret == 0 && clock_seconds() > a->until)
		ret = err_set(&why, ETIMEDOUT, "no HELLO within %.0f s", SEAT_HANDSHAKE_LIMIT);
	if (ret == 0)
		return 0;
	if (ret == 1)
		ret = check_hello(&m, &why) < 0 ? -why.code : 1;
	welcome.lease = (int64_t)(1000 * w->seat->process.config->cluster.lease);
	if (ret == 1 && link_send(a->link, &welcome, &why) < 0)
		ret = -why.code;
	if (ret < 0) {
		turn_away(w, i, &why);
		wire_clear(&m);
		return 0;
	}
	w->seat->link = a->link;
	w->seat->hello = m;
	snprintf(w->seat->from, sizeof(w->seat->from), "%s", a->from);
	w->list[i] = w->list[--w->n];
	return 1;
}

/* Wait for something to happen. False: the manager ended. */
static bool wait_for_peers(const struct waiting *w)
{
	struct pollfd fds[SEAT_HANDSHAKES_MAX + 2] = {{.fd = w->seat->process.listen_fd, .events = POLLIN},
						      {.fd = w->seat->process.ipc_fd, .events = POLLIN}};

	for (size_t i = 0; i < w->n; i++)
		fds[2 + i] = (struct pollfd){.fd = link_fd(w->list[i].link), .events = link_events(w->list[i].link)};
	poll(fds, 2 + w->n, w->n > 0 ? 500 : (int)(1000 * REFUSAL_LOG_SECONDS));
	return !(fds[1].revents & (POLLIN | POLLHUP | POLLERR)); /* no message is due to a seat that waits */
}

int seat_wait(struct seat *seat, struct err *err)
{
	struct waiting w = {.seat = seat};
	bool taken = false, on = true;

	if (refusal_log_create(&w.log, err) < 0)
		return -err->code;
	while (!taken && on && !seat->stopped()) {
		on = wait_for_peers(&w);
		accept_one(&w);
		for (size_t i = w.n; !taken && i > 0; i--)
			taken = advance_arrival(&w, i - 1) == 1;
		refusal_log_tick(w.log, clock_seconds(), false, log_counted, NULL);
	}
	refusal_log_tick(w.log, clock_seconds(), true, log_counted, NULL);
	refusal_log_free(w.log);
	while (w.n > 0)
		drop_arrival(&w, w.n - 1);
	return taken ? 0 : err_set(err, ECANCELED, "stopped");
}
