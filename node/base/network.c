/* SPDX-License-Identifier: Apache-2.0 */
#include "node/base/network.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAPPED 96 /* bits before an IPv4 address */

static void map_ipv4(const struct in_addr *from, struct in6_addr *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->s6_addr[10] = 0xff;
	ret->s6_addr[11] = 0xff;
	memcpy(ret->s6_addr + 12, &from->s_addr, 4);
}

static void clear_bits_from(struct in6_addr *a, int bits)
{
	for (int i = 0; i < 16; i++) {
		int left = bits - 8 * i;

		if (left < 8)
			a->s6_addr[i] &= left <= 0 ? 0 : (unsigned char)(0xff << (8 - left));
	}
}

/* Store the zone: the n characters after '%'. Returns false if they are not valid or the address cannot have a zone. */
static bool parse_zone(const char *text, size_t n, struct network *net)
{
	if (!IN6_IS_ADDR_LINKLOCAL(&net->address) || n == 0 || n >= sizeof(net->zone))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!isgraph((unsigned char)text[i]) || text[i] == '%')
			return false;
	memcpy(net->zone, text, n);
	return true;
}

bool network_parse(const char *text, struct network *ret_network)
{
	const char *slash = strchr(text, '/'), *percent = strchr(text, '%');
	char address[INET6_ADDRSTRLEN];
	size_t whole = slash ? (size_t)(slash - text) : strlen(text);
	bool zoned = percent && percent < text + whole;
	size_t n = zoned ? (size_t)(percent - text) : whole;
	struct network net = {.bits = 0};
	struct in_addr v4;
	long bits = 128;
	int before = 0;
	char *end;

	if (n >= sizeof(address))
		return false;
	memcpy(address, text, n);
	address[n] = '\0';
	if (inet_pton(AF_INET, address, &v4) == 1) {
		map_ipv4(&v4, &net.address);
		before = MAPPED;
	} else if (inet_pton(AF_INET6, address, &net.address) != 1) {
		return false;
	}
	if (zoned && !parse_zone(percent + 1, whole - n - 1, &net))
		return false;
	if (slash) {
		if (!isdigit((unsigned char)slash[1]))
			return false;
		bits = strtol(slash + 1, &end, 10);
		if (*end || bits > 128 - before)
			return false;
		bits += before;
	}
	net.bits = (int)bits;
	clear_bits_from(&net.address, net.bits);
	*ret_network = net;
	return true;
}

bool network_contains(const struct network *n, const struct network *address)
{
	struct in6_addr a = address->address;

	clear_bits_from(&a, n->bits);
	return !memcmp(&a, &n->address, sizeof(a)) && (!n->zone[0] || !strcmp(n->zone, address->zone));
}

bool network_address(const struct sockaddr *from, struct in6_addr *ret_address)
{
	if (from->sa_family == AF_INET)
		map_ipv4(&((const struct sockaddr_in *)from)->sin_addr, ret_address);
	else if (from->sa_family == AF_INET6)
		*ret_address = ((const struct sockaddr_in6 *)from)->sin6_addr;
	else
		return false;
	return true;
}

void network_print(const struct in6_addr *address, char *ret_text, size_t size)
{
	bool v4 = IN6_IS_ADDR_V4MAPPED(address);

	if (!inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? (const void *)(address->s6_addr + 12) : address, ret_text, (socklen_t)size))
		snprintf(ret_text, size, "unknown");
}

struct in6_addr network_client_prefix(const struct in6_addr *address)
{
	struct in6_addr a = *address;

	if (!IN6_IS_ADDR_V4MAPPED(address))
		clear_bits_from(&a, 64);
	return a;
}
