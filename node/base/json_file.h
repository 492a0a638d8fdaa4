/* SPDX-License-Identifier: Apache-2.0 */
/* Write a JSON document to a file, indented, for people and programs. */
#ifndef TOMONODE_NODE_JSON_FILE_H
#define TOMONODE_NODE_JSON_FILE_H

#include <jansson.h>

#include "kernels/err.h"

/* Write root to FOLDER/NAME, which is then whole or as it was, and release the caller's reference to root. ENOMEM: also where
 * root is NULL, because building it failed. */
int json_file_write(json_t *root, const char *folder, const char *name, struct err *err);

#endif
