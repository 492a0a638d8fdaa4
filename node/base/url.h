/* SPDX-License-Identifier: Apache-2.0 */
/* URLs of the services that the node connects to. Pure functions. */
#ifndef TOMONODE_NODE_URL_H
#define TOMONODE_NODE_URL_H

#include <stdbool.h>

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

/* Return true if the host is this machine: localhost, 127.0.0.0/8 or ::1. */
bool url_is_local(const struct url *url);

#endif
