/* SPDX-License-Identifier: Apache-2.0 */
/* Check the certificates, keys, authorities, revocation lists (CRL) and credentials that a configuration names: whether they are
 * usable, when they expire, and whether other users can read the keys. Reads files; prints nothing.
 */
#ifndef TOMONODE_NODE_TLS_FILES_H
#define TOMONODE_NODE_TLS_FILES_H

#include "dicom/network/tls.h"
#include "node/config/config.h"
#include "node/jobs/node_problems.h"

struct tls_files_report {
	void *ctx;
	void (*problem)(void *ctx, const char *text); /* a file is not usable; may be NULL */
	/* A certificate or revocation list was read, or cannot be used (then `problem` is called, too); may be NULL. */
	void (*validity)(void *ctx, const struct node_certificate *certificate);
	void (*open_key)(void *ctx, const char *text); /* other users can read a private key; may be NULL */
};

/* Return the TLS files of a listener; the pointers refer to `listener`. */
struct tls_conf listener_tls(const struct listener_conf *listener);

/* Check each listener and destination that uses TLS, and the port for pilots if it has a certificate. Returns 0, or ENOKEY with
 * the first problem. The end of a certificate is reported but is no error: peers refuse an expired one and say so. */
int tls_files_check(const struct config *config, const struct tls_files_report *report, struct err *err);

#endif
