/* Addresses and networks, IPv4 and IPv6 alike: an IPv4 address is kept as ::ffff:a.b.c.d. Pure. */
#ifndef TOMONODE_NODE_NETWORK_H
#define TOMONODE_NODE_NETWORK_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct network {
	struct in6_addr address;
	int bits; /* of it that count, 0..128 */
};

/* "10.1.2.3", "10.1.0.0/16", "2001:db8::1", "2001:db8::/32"; what lies behind the bits does not count. false: none of these. */
bool network_parse(const char *text, struct network *ret_network);
bool network_holds(const struct network *n, const struct in6_addr *address);

/* false: neither IPv4 nor IPv6. */
bool network_address(const struct sockaddr *from, struct in6_addr *ret_address);
/* As people write it: an IPv4 one as such. */
void network_print(const struct in6_addr *address, char *ret_text, size_t size);
/* What one sender has for itself: an IPv4 address, or the /64 of an IPv6 one, in which it can change its address at will. */
struct in6_addr network_sender(const struct in6_addr *address);
bool network_is_loopback(const struct in6_addr *address);

#endif
