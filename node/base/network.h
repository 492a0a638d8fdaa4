/* SPDX-License-Identifier: Apache-2.0 */
/* IP addresses and networks. IPv4 and IPv6 share one form: an IPv4 address is stored as ::ffff:a.b.c.d. Pure functions.
 *
 * A link-local IPv6 address (fe80::/10) is valid on one link only. It may name the link as a zone, which is the name of an
 * interface of this machine: fe80::1%eth0, fe80::%eth0/64 (RFC 4007 section 11), as getnameinfo() writes it. No other address has
 * a zone.
 */
#ifndef TOMONODE_NODE_NETWORK_H
#define TOMONODE_NODE_NETWORK_H

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct network {
	struct in6_addr address;
	int bits;		/* length of the prefix, 0..128; for IPv4 its own length plus 96 */
	char zone[IF_NAMESIZE]; /* name of the interface for a link-local address; "": any interface */
};

/* Parse "10.1.2.3", "10.1.0.0/16", "2001:db8::1", "2001:db8::/32" or "fe80::1%eth0". Address bits after the prefix are ignored.
 * Returns false if the text has another form. */
bool network_parse(const char *text, struct network *ret_network);
/* Return true if the network contains the address; only `address` and `zone` of the second argument are used. A network with a
 * zone contains only addresses of that zone. */
bool network_contains(const struct network *n, const struct network *address);

/* Extract the IP address of a socket address; false: neither IPv4 nor IPv6. */
bool network_address(const struct sockaddr *from, struct in6_addr *ret_address);
/* Print an address in its usual notation: an IPv4 address as a.b.c.d. */
void network_print(const struct in6_addr *address, char *ret_text, size_t size);
/* Return the address by which limits for a sender are counted: the IPv4 address, or the /64 prefix of an IPv6 address, because an
 * IPv6 host may change the last 64 bits at any time. */
struct in6_addr network_client_prefix(const struct in6_addr *address);

#endif
