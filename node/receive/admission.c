/* SPDX-License-Identifier: Apache-2.0 */
/* admission.c - the access list of peers.
 *
 * A peer matches an entry if everything that the entry specifies matches: its AE title (without leading and trailing blanks), its
 * address (in the network, or one of those that the configured host had when the receiver started), its certificate. The first
 * matching entry is used; several entries may have the same AE title. The reason for a rejection is what did not match in the
 * entry that matched most.
 */
#include "node/receive/admission.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "node/base/log.h"
#include "node/base/network.h"
#include "node/config/certificate_pattern.h"

#define NETWORKS_MAX 16 /* of one peer: number of addresses that its host name may have */

struct known_peer {
	const struct peer_conf *conf; /* borrowed */
	size_t n_networks;
	struct network network[NETWORKS_MAX];
};

struct admission {
	const struct node_conf *node; /* borrowed */
	size_t n_peers;
	struct known_peer peers[];
};

/* Replace the name of an interface by its number, because a sandboxed process sees the number in a peer's address and cannot look
 * up the name. false: there is no such interface. */
static bool number_zone(struct network *n)
{
	unsigned index;

	if (n->zone[strspn(n->zone, "0123456789")] == '\0') /* a number, or no zone */
		return true;
	index = if_nametoindex(n->zone);
	if (index > 0)
		snprintf(n->zone, sizeof(n->zone), "%u", index);
	return index > 0;
}

static void find_networks(struct known_peer *peer)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct addrinfo *list = NULL;
	int code;

	if (network_parse(peer->conf->host, &peer->network[0])) {
		peer->n_networks = 1;
		if (!number_zone(&peer->network[0]))
			log_event(LOG_WARNING, "peer-unresolved", "peer=%s host=%s reason=%s", log_quote(peer->conf->name),
				  log_quote(peer->conf->host), log_quote("no network interface has this name"));
		return;
	}
	code = getaddrinfo(peer->conf->host, NULL, &hints, &list);
	if (code != 0) {
		log_event(LOG_WARNING, "peer-unresolved", "peer=%s host=%s reason=%s", log_quote(peer->conf->name),
			  log_quote(peer->conf->host), log_quote(gai_strerror(code)));
		return;
	}
	for (struct addrinfo *a = list; a && peer->n_networks < NETWORKS_MAX; a = a->ai_next) {
		char address[64]; /* with the zone, if it has one */

		if (getnameinfo(a->ai_addr, a->ai_addrlen, address, sizeof(address), NULL, 0, NI_NUMERICHOST) == 0 &&
		    network_parse(address, &peer->network[peer->n_networks]) && number_zone(&peer->network[peer->n_networks]))
			peer->n_networks++;
	}
	freeaddrinfo(list);
}

int admission_create(const struct config *config, struct admission **ret_admission, struct err *err)
{
	struct admission *a = calloc(1, sizeof(*a) + config->n_peers * sizeof(a->peers[0]));

	if (!a)
		return err_set(err, ENOMEM, "allow-list: no memory for %zu peers", config->n_peers);
	a->node = &config->node;
	a->n_peers = config->n_peers;
	for (size_t i = 0; i < a->n_peers; i++) {
		a->peers[i].conf = &config->peers[i];
		if (config->peers[i].host[0])
			find_networks(&a->peers[i]);
	}
	*ret_admission = a;
	return 0;
}

struct admission *admission_free(struct admission *a)
{
	free(a);
	return NULL;
}

static bool same_aet(const char *a, const char *b)
{
	size_t n, m;

	a += strspn(a, " ");
	b += strspn(b, " ");
	n = strlen(a);
	m = strlen(b);
	while (n > 0 && a[n - 1] == ' ')
		n--;
	while (m > 0 && b[m - 1] == ' ')
		m--;
	return n == m && !memcmp(a, b, n);
}

static bool at_address(const struct known_peer *peer, const struct network *from)
{
	for (size_t i = 0; i < peer->n_networks; i++)
		if (network_contains(&peer->network[i], from))
			return true;
	return false;
}

bool admission_has_address(const struct admission *a, const struct in6_addr *address)
{
	for (size_t i = 0; i < a->n_peers; i++)
		for (size_t k = 0; k < a->peers[i].n_networks; k++) {
			const struct network *n = &a->peers[i].network[k];

			if (n->bits == 128 && !memcmp(&n->address, address, sizeof(*address)))
				return true;
		}
	return false;
}

/* ---- certificates ---- */

bool admission_certificate_matches(const char *pattern, const struct tls_peer *certificate)
{
	char digits[CERTIFICATE_DIGITS + 1];

	if (!pattern[0])
		return true;
	if (!certificate)
		return false;
	if (certificate_pattern_is_fingerprint(pattern))
		return certificate_pattern_digits(pattern, digits) && !strcmp(digits, certificate->fingerprint);
	for (size_t i = 0; i < certificate->n_names; i++)
		if (pattern_matches(pattern, certificate->names[i]))
			return true;
	return false;
}

/* ---- access list ---- */

/* How much of a request matches an entry. */
enum fit { FIT_NONE, FIT_AET, FIT_HOST, FIT_ALL };

static enum fit fit_of(const struct known_peer *p, const struct scp_request *r, const struct network *from)
{
	if (p->conf->aet[0] && !same_aet(r->calling, p->conf->aet))
		return FIT_NONE;
	if (p->conf->host[0] && (from->bits < 0 || !at_address(p, from)))
		return p->conf->aet[0] ? FIT_AET : FIT_NONE;
	if (admission_certificate_matches(p->conf->certificate, r->certificate))
		return FIT_ALL;
	return p->conf->aet[0] || p->conf->host[0] ? FIT_HOST : FIT_NONE;
}

static void explain_refusal(const struct known_peer *nearest, enum fit fit, const struct scp_request *r, char *why, size_t size)
{
	if (fit == FIT_AET)
		snprintf(why, size, "calling AE title '%s' is that of a configured peer, but %s is not its host", r->calling,
			 r->host);
	else if (fit == FIT_HOST && r->certificate)
		snprintf(why, size,
			 "'%s' from %s is the peer '%s', whose certificate must match \"%s\", but it sent %.200s (sha256:%s)",
			 r->calling, r->host, nearest->conf->name, nearest->conf->certificate, r->certificate->subject,
			 r->certificate->fingerprint);
	else if (fit == FIT_HOST)
		snprintf(why, size,
			 "'%s' from %s is the peer '%s', which must send a certificate that matches \"%s\", but sent none: let "
			 "it connect to a TLS port that requires one",
			 r->calling, r->host, nearest->conf->name, nearest->conf->certificate);
	else
		snprintf(why, size, "calling AE title '%s' from %s is not that of a configured peer (node.require_known_peer)",
			 r->calling, r->host);
}

enum scp_admission admission_check(const struct admission *a, const struct scp_request *request, int *ret_peer, char *why,
				   size_t why_size)
{
	const struct known_peer *nearest = NULL;
	struct network from = {.bits = -1};
	enum fit best = FIT_NONE;

	if (a->node->check_called && !same_aet(request->called, a->node->aet)) {
		snprintf(why, why_size, "%s requested AE title '%s', but this node is '%s' (node.check_called)", request->host,
			 request->called, a->node->aet);
		return SCP_REJECT_CALLED;
	}
	if (!network_parse(request->host, &from))
		from.bits = -1;
	number_zone(&from);
	for (size_t i = 0; i < a->n_peers; i++) {
		enum fit fit = fit_of(&a->peers[i], request, &from);

		if (fit == FIT_ALL) {
			*ret_peer = (int)i;
			return SCP_ADMIT;
		}
		if (fit > best) {
			best = fit;
			nearest = &a->peers[i];
		}
	}
	if (!a->node->require_known_peer) {
		*ret_peer = ADMISSION_UNKNOWN_PEER;
		return SCP_ADMIT;
	}
	explain_refusal(nearest, best, request, why, why_size);
	return SCP_REJECT_CALLING;
}
