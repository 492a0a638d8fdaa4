/* SPDX-License-Identifier: Apache-2.0 */
/* JSON documents in files, for people and programs. */
#ifndef TOMONODE_NODE_JSON_FILE_H
#define TOMONODE_NODE_JSON_FILE_H

#include <jansson.h>

#include "kernels/err.h"

/* Write root to FOLDER/NAME, which is then whole or as it was, and release the caller's reference to root. ENOMEM: also where
 * root is NULL, because building it failed. */
int json_file_write(json_t *root, const char *folder, const char *name, struct err *err);

/* Read a document that somebody named. ENOENT, EBADMSG: a folder, or not JSON; the text does not name the path. */
int json_file_read(const char *path, json_t **ret_root, struct err *err);

#endif
