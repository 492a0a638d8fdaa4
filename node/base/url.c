/* SPDX-License-Identifier: Apache-2.0 */
#include "node/base/url.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define IN_NAME "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"
#define IN_PATH IN_NAME "~!$&'()*+,;=:@/%"

static int refuse_url(const char *text, const char *why, struct err *err)
{
	return err_set(err, EINVAL, "\"%.200s\": %s; allowed: https://HOST[:PORT][/PATH] or http://...",
		       strchr(text, '@') ? "..." : text, why); /* a password may be before '@', even one with '/' */
}

/* Read the host at *at, and move on to what follows it. */
static bool read_host(const char **at, struct url *ret)
{
	bool bracket = **at == '[';
	const char *begin = *at + bracket;
	size_t n = bracket ? strcspn(begin, "]") : strspn(begin, IN_NAME);
	struct in6_addr address;

	if (n == 0 || n >= sizeof(ret->host) || (bracket && begin[n] != ']'))
		return false;
	memcpy(ret->host, begin, n);
	ret->host[n] = '\0';
	*at = begin + n + bracket;
	return bracket ? inet_pton(AF_INET6, ret->host, &address) == 1 : ret->host[0] != '-' && ret->host[0] != '.';
}

static bool read_port(const char **at, struct url *ret)
{
	char *end;
	long port;

	if (**at != ':')
		return true;
	if (!isdigit((unsigned char)(*at)[1]))
		return false;
	port = strtol(*at + 1, &end, 10);
	*at = end;
	ret->port = (int)(port < 65536 ? port : 0);
	return ret->port > 0;
}

static bool path_is_plain(const char *path)
{
	if (path[0] && path[0] != '/')
		return false;
	if (path[strspn(path, IN_PATH)] != '\0')
		return false;
	for (; *path; path++)
		if (*path == '%' && (!isxdigit((unsigned char)path[1]) || !isxdigit((unsigned char)path[2])))
			return false;
	return true;
}

int url_parse(const char *text, struct url *ret, struct err *err)
{
	const char *at = text;

	*ret = (struct url){0};
	if (strlen(text) >= URL_SIZE)
		return refuse_url(text, "it is longer than 255 characters", err);
	if (strncasecmp(text, "https://", 8) == 0) {
		*ret = (struct url){.tls = true, .port = 443};
		at += 8;
	} else if (strncasecmp(text, "http://", 7) == 0) {
		ret->port = 80;
		at += 7;
	} else {
		return refuse_url(text, "its scheme is neither https nor http", err);
	}
	if (strchr(at, '@') && strcspn(at, "@") < strcspn(at, "/"))
		return refuse_url(text, "it has a user or a password, which would be logged", err);
	if (!read_host(&at, ret))
		return refuse_url(text, "it has no valid host", err);
	if (!read_port(&at, ret))
		return refuse_url(text, "its port is not a number from 1 to 65535", err);
	if (!path_is_plain(at))
		return refuse_url(text, "its path has other characters than a path may have, or a query", err);
	return 0;
}

bool url_is_local(const struct url *url)
{
	struct in_addr v4;
	struct in6_addr v6;

	if (strcasecmp(url->host, "localhost") == 0)
		return true;
	if (inet_pton(AF_INET, url->host, &v4) == 1)
		return ntohl(v4.s_addr) >> 24 == 127;
	return inet_pton(AF_INET6, url->host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

size_t url_encode(const char *text, char *ret, size_t size)
{
	static const char hex[] = "0123456789ABCDEF";
	size_t n = 0;

	for (; *text && n + 4 <= size; text++) {
		unsigned char c = (unsigned char)*text;

		if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || strchr("-._~", c)) {
			ret[n++] = (char)c;
			continue;
		}
		ret[n++] = '%';
		ret[n++] = hex[c >> 4];
		ret[n++] = hex[c & 15];
	}
	ret[n] = '\0';
	return n;
}
