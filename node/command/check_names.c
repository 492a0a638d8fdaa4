/* SPDX-License-Identifier: Apache-2.0 */
/* check_names.c - the C library resolves in threads of its own; those that still wait for a server end with the process. */
#include "node/command/check_names.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/clock.h"
#include "node/base/network.h"
#include "node/command/check_paths.h"

#define RESOLVE_SECONDS 5.0 /* for all names: a person waits */

static const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};

/* Return why a name has no address, until this time; NULL: it has one. */
static const char *wait_for(struct gaicb *name, double until)
{
	const struct gaicb *const list[] = {name};
	int code;

	while ((code = gai_error(name)) == EAI_INPROGRESS && clock_seconds() < until)
		gai_suspend(list, 1, &(struct timespec){.tv_nsec = 100000000});
	return code == 0 ? NULL : code == EAI_INPROGRESS ? "the name service does not reply" : gai_strerror(code);
}

static void add_destination(struct manager_facts *facts, const struct destination_conf *d, const char *reason)
{
	struct node_unresolved *u = &facts->unresolved[facts->n_unresolved++];

	snprintf(u->destination, sizeof(u->destination), "%s", d->name);
	snprintf(u->host, sizeof(u->host), "%s", d->host);
	snprintf(u->reason, sizeof(u->reason), "%s", reason);
}

static void say_peer(const struct peer_conf *p, const char *reason, const struct check_report *to)
{
	check_say(to, FINDING_WARNING,
		  "key 'host' of peer '%s': %.253s cannot be resolved (%s): no sender is taken for this peer", p->name, p->host,
		  reason);
}

/* Write what is to be resolved to `ret`, the peers behind the destinations; "": no name. */
static size_t list_names(const struct config *config, size_t n_destinations, struct gaicb *names, struct gaicb **ret)
{
	struct network network;
	size_t n = 0;

	for (size_t i = 0; i < n_destinations + config->n_peers; i++) {
		bool peer = i >= n_destinations;
		const char *host = peer ? config->peers[i - n_destinations].host : config->destinations[i].host;

		names[i] = (struct gaicb){.ar_name = host, .ar_request = &hints};
		if (host[0] && (!peer || !network_parse(host, &network)))
			ret[n++] = &names[i];
	}
	return n;
}

void check_names(const struct config *config, struct manager_facts *facts, const struct check_report *to)
{
	size_t destinations = config->n_destinations < DESTINATION_STATES_MAX ? config->n_destinations : DESTINATION_STATES_MAX;
	struct gaicb *names = calloc(destinations + config->n_peers + 1, sizeof(*names));
	struct gaicb **list = calloc(destinations + config->n_peers + 1, sizeof(*list));
	double until = clock_seconds() + RESOLVE_SECONDS;
	size_t n = names && list ? list_names(config, destinations, names, list) : 0;
	bool running = false;

	facts->n_unresolved = 0;
	if (n == 0 || getaddrinfo_a(GAI_NOWAIT, list, (int)n, NULL) != 0)
		n = 0;
	for (size_t i = 0; i < n; i++) {
		size_t k = (size_t)(list[i] - names);
		const char *reason = wait_for(list[i], until);

		if (reason && k < destinations)
			add_destination(facts, &config->destinations[k], reason);
		else if (reason)
			say_peer(&config->peers[k - destinations], reason, to);
		if (gai_error(list[i]) == EAI_INPROGRESS)
			running = true;
		else if (list[i]->ar_result)
			freeaddrinfo(list[i]->ar_result);
	}
	if (running) /* a thread uses them until the program ends */
		return;
	free(names);
	free(list);
}
