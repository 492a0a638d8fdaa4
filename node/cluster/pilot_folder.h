/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a pilot that was given none: a new one in a folder for temporary files. */
#ifndef TOMONODE_NODE_PILOT_FOLDER_H
#define TOMONODE_NODE_PILOT_FOLDER_H

#include <stddef.h>

#include "kernels/err.h"

/* Create TMP/tomonode-pilot.XXXXXX, and remove those of pilots of this user that were killed: they contain images. Returns a
 * descriptor that locks the folder while it is open. */
int pilot_folder_create(const char *tmp, char *ret_path, size_t size, struct err *err);
/* Remove a folder with all that is in it. */
void pilot_folder_remove(const char *path);

#endif
