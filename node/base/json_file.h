/* SPDX-License-Identifier: Apache-2.0 */
/* Write a JSON document to a file, indented, for people and programs. */
#ifndef TOMONODE_NODE_JSON_FILE_H
#define TOMONODE_NODE_JSON_FILE_H

#include <jansson.h>

#include "kernels/err.h"

/* Write root to FOLDER/NAME. The reference to root is taken over. root NULL (out of memory while it was built) is ENOMEM. */
int json_file_write(json_t *root, const char *folder, const char *name, struct err *err);

#endif
