/* SPDX-License-Identifier: Apache-2.0 */
/* A pilot: it connects to the node (node/cluster/link.h), receives cases (node/cluster/wire.h), has its worker reconstruct them
 * and returns the results.
 *
 * - The worker (`tomonode case`) is another process, so that a case that crashes it is reported as a crash of that case. The
 * pilot itself reads no image.
 * - If the connection is lost, the worker continues, and the pilot connects again: the node may take the case back, also after it
 *   was restarted.
 * - Nothing is kept: the folder is emptied at the start, and the files of a case are removed when the node has the result.
 */
#ifndef TOMONODE_NODE_PILOT_H
#define TOMONODE_NODE_PILOT_H

#include <stdbool.h>

#include "dicom/network/tls.h"
#include "node/store/pilot_secret.h"

struct pilot_conf {
	const char *address; /* HOST:PORT of the node */
	const char *id, *name, *device;
	char secret[PILOT_SECRET_SIZE];
	const struct tls_context *tls; /* NULL: without certificates */
	const char *root;	       /* its folder, or the shared spool */
	bool shared;
	double patience; /* s without a connection after which it ends */
};

/* Run until the node ends it, SIGTERM, or an error that another attempt does not cure. Returns an exit code. */
int pilot_run(const struct pilot_conf *conf);
/* Remove its files, with `all` also the folder. */
void pilot_clean(const struct pilot_conf *conf, bool all);

#endif
