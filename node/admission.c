/* admission.c - the allow-list of calling AE titles and hosts.
 *
 * A peer matches when its AE title is the same (trailing and leading blanks do not count) and its address is one of those that
 * the configured host had when the receiver started. Several entries may share an AE title.
 */
#include "node/admission.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "node/log.h"

#define ADDRESSES_MAX 16 /* of one peer */

struct known_peer {
	const struct peer_conf *conf; /* borrowed */
	size_t n_addresses;
	struct in6_addr address[ADDRESSES_MAX]; /* IPv4 as ::ffff:a.b.c.d */
};

struct admission {
	const struct node_conf *node; /* borrowed */
	size_t n_peers;
	struct known_peer peers[];
};

static void map_ipv4(const struct in_addr *from, struct in6_addr *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->s6_addr[10] = 0xff;
	ret->s6_addr[11] = 0xff;
	memcpy(ret->s6_addr + 12, &from->s_addr, 4);
}

static bool parse_address(const char *text, struct in6_addr *ret)
{
	struct in_addr v4;

	if (inet_pton(AF_INET, text, &v4) == 1) {
		map_ipv4(&v4, ret);
		return true;
	}
	return inet_pton(AF_INET6, text, ret) == 1;
}

static void resolve(struct known_peer *peer)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct addrinfo *list = NULL;
	int code = getaddrinfo(peer->conf->host, NULL, &hints, &list);

	if (code != 0) {
		log_event(LOG_WARNING, "peer-unresolved", "peer=%s host=%s reason=%s", log_quote(peer->conf->name),
			  log_quote(peer->conf->host), log_quote(gai_strerror(code)));
		return;
	}
	for (struct addrinfo *a = list; a && peer->n_addresses < ADDRESSES_MAX; a = a->ai_next) {
		struct in6_addr *to = &peer->address[peer->n_addresses];

		if (a->ai_family == AF_INET)
			map_ipv4(&((struct sockaddr_in *)a->ai_addr)->sin_addr, to);
		else if (a->ai_family == AF_INET6)
			*to = ((struct sockaddr_in6 *)a->ai_addr)->sin6_addr;
		else
			continue;
		peer->n_addresses++;
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
		if (a->node->require_known_peer && config->peers[i].host[0])
			resolve(&a->peers[i]);
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

static bool at_address(const struct known_peer *peer, const struct in6_addr *from)
{
	for (size_t i = 0; i < peer->n_addresses; i++)
		if (!memcmp(&peer->address[i], from, sizeof(*from)))
			return true;
	return false;
}

enum scp_admission admission_check(const struct admission *a, const char *calling, const char *called, const char *host,
				   char *why, size_t why_size)
{
	struct in6_addr from;
	bool known = false, readable = parse_address(host, &from);

	if (a->node->check_called && !same_aet(called, a->node->aet)) {
		snprintf(why, why_size, "%s called AE title '%s', ours is '%s' (node.check_called)", host, called, a->node->aet);
		return SCP_REJECT_CALLED;
	}
	if (!a->node->require_known_peer)
		return SCP_ADMIT;
	for (size_t i = 0; i < a->n_peers; i++) {
		if (!same_aet(calling, a->peers[i].conf->aet))
			continue;
		known = true;
		if (!a->peers[i].conf->host[0] || (readable && at_address(&a->peers[i], &from)))
			return SCP_ADMIT;
	}
	if (known)
		snprintf(why, why_size, "calling AE title '%s' is a known peer's, but %s is not its host", calling, host);
	else
		snprintf(why, why_size, "calling AE title '%s' from %s is no known peer's (node.require_known_peer)", calling,
			 host);
	return SCP_REJECT_CALLING;
}
