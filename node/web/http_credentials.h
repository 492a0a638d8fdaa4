/* SPDX-License-Identifier: Apache-2.0 */
/* The file with the credentials for a web service: one line, a bearer token (RFC 6750) or USER:PASSWORD. A token has no ':'. */
#ifndef TOMONODE_NODE_HTTP_CREDENTIALS_H
#define TOMONODE_NODE_HTTP_CREDENTIALS_H

#include "kernels/err.h"

#define HTTP_CREDENTIALS_SIZE 4096

struct http_credentials {
	char user[HTTP_CREDENTIALS_SIZE];   /* "": `secret` is a bearer token */
	char secret[HTTP_CREDENTIALS_SIZE]; /* password or token */
};

/* Read the file. ENOKEY: it cannot be read, has another form, or other users of this machine can read or change it; reading by
 * its group is accepted, as for private keys. No message has a part of the content. */
int http_credentials_read(const char *path, struct http_credentials *ret, struct err *err);
void http_credentials_clear(struct http_credentials *c); /* overwrite them */

#endif
