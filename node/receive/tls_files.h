/* SPDX-License-Identifier: Apache-2.0 */
/* Check the certificates, keys, authorities and revocation lists (CRL) that a configuration names: whether they are usable, when
 * they expire, and whether other users can read the keys. Reads files; prints nothing.
 */
#ifndef TOMONODE_NODE_TLS_FILES_H
#define TOMONODE_NODE_TLS_FILES_H

#include "dicom/network/tls.h"
#include "node/config/config.h"

#define TLS_FILES_DAYS 30    /* days before the expiry of a certificate from which it is reported */
#define TLS_FILES_CRL_DAYS 1 /* the same for a revocation list, which its issuer renews every few days */

struct tls_files_report {
	void *ctx;
	void (*problem)(void *ctx, const char *text); /* a file is not usable; may be NULL */
	void (*expiry)(void *ctx, const char *text,
		       bool is_over); /* a certificate expires soon, has expired, or is not yet valid; may be NULL */
	void (*open_key)(void *ctx, const char *text); /* other users can read a private key; may be NULL */
};

/* Return the TLS files of a listener; the pointers refer to `listener`. */
struct tls_conf listener_tls(const struct listener_conf *listener);

/* Check each listener and destination that uses TLS. now: s since 1970. Returns 0, or ENOKEY with the first problem. Expiry is
 * reported but is no error: peers refuse an expired certificate and say so. */
int tls_files_check(const struct config *config, double now, const struct tls_files_report *report, struct err *err);

#endif
