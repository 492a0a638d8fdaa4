/* The certificates, keys, authorities and lists of revoked certificates that a configuration names: can they be used, how long,
 * and who else can read the keys? Reads files; prints nothing.
 */
#ifndef TOMONODE_NODE_TLS_FILES_H
#define TOMONODE_NODE_TLS_FILES_H

#include "dicom/network/tls.h"
#include "node/config/config.h"

#define TLS_FILES_DAYS 30    /* before the end of a certificate somebody should know */
#define TLS_FILES_CRL_DAYS 1 /* ... of a list of revoked ones, which is made anew every few days */

struct tls_files_report {
	void *ctx;
	void (*problem)(void *ctx, const char *text);		   /* it cannot be used; may be NULL */
	void (*expiry)(void *ctx, const char *text, bool is_over); /* it ends soon, has ended, or has not begun; may be NULL */
	void (*open_key)(void *ctx, const char *text);		   /* a private key lies open to others; may be NULL */
};

/* The files of a listener. Points into it. */
struct tls_conf listener_tls(const struct listener_conf *listener);

/* Each listener and destination that speaks TLS; now: s since 1970. 0, or ENOKEY with the first problem. Expiry is no problem
 * here: peers refuse such a certificate, and say so. */
int tls_files_check(const struct config *config, double now, const struct tls_files_report *report, struct err *err);

#endif
