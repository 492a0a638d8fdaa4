/* SPDX-License-Identifier: Apache-2.0 */
/* `tomonode check --route`: which routes DICOM files would take, and why not the others. */
#ifndef TOMONODE_NODE_CHECK_ROUTE_H
#define TOMONODE_NODE_CHECK_ROUTE_H

#include "node/config/config.h"
#include "node/options/options.h"

/* Print it for each case in a file or folder, with o->json as JSON. calling: AE title of the sender; "": of none that a route
 * names. Returns an exit code; a case without a route is CODE_CONFIG. */
int check_route(const struct options *o, const struct config *c, const char *path, const char *calling);

#endif
