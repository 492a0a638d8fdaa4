/* SPDX-License-Identifier: Apache-2.0 */
/* URLs of the services that the node connects to. Pure functions. */
#ifndef TOMONODE_NODE_URL_H
#define TOMONODE_NODE_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/err.h"

#define URL_SIZE 256 /* longest URL and its NUL */

struct url {
	bool tls;      /* https */
	char host[64]; /* a name or an address; of IPv6 without brackets */
	int port;      /* that of the scheme if the URL has none */
};

/* Parse "http://HOST[:PORT][/PATH]" or "https://...". EINVAL: another form; the sentence says what is allowed. Accepted are only
 * the characters that every parser reads alike: letters, digits, '.', '-', '_' in a name, and those and "~!$&'()*+,;=:@/" and
 * %XX in the path. Refused are a user, a query and a fragment, because URLs are logged and extended. */
int url_parse(const char *text, struct url *ret, struct err *err);

/* Write a text as a value of a query or a part of a path: everything but letters, digits and "-._~" as %XX. What does not fit is left
 * out. Returns the number of bytes without the terminating NUL. */
size_t url_encode(const char *text, char *ret, size_t size);

/* Return true if the host is this machine: localhost, 127.0.0.0/8 or ::1. */
bool url_is_local(const struct url *url);

#endif
