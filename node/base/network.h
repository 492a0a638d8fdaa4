/* Addresses and networks, IPv4 and IPv6 alike: an IPv4 address is kept as ::ffff:a.b.c.d. Pure.
 *
 * A link-local address of IPv6 (fe80::/10) is one on a certain link only, and may name it: fe80::1%eth0, fe80::%eth0/64 (RFC
 * 4007 11), with the name of our interface, as getnameinfo() writes peers. No other address has such a zone.
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
	int bits;		/* of it that count, 0..128 */
	char zone[IF_NAMESIZE]; /* "": any */
};

/* "10.1.2.3", "10.1.0.0/16", "2001:db8::1", "2001:db8::/32", "fe80::1%eth0"; what lies behind the bits does not count. false:
 * none of these. */
bool network_parse(const char *text, struct network *ret_network);
/* Is the address (of it, address and zone count) in the network? One that names a zone holds the addresses of that zone alone. */
bool network_contains(const struct network *n, const struct network *address);

/* false: neither IPv4 nor IPv6. */
bool network_address(const struct sockaddr *from, struct in6_addr *ret_address);
/* As people write it: an IPv4 one as such. */
void network_print(const struct in6_addr *address, char *ret_text, size_t size);
/* What one sender has for itself: an IPv4 address, or the /64 of an IPv6 one, in which it can change its address at will. */
struct in6_addr network_client_prefix(const struct in6_addr *address);

#endif
