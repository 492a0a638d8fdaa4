/* SPDX-License-Identifier: Apache-2.0 */
/* Read a small text file into memory. */
#ifndef TOMONODE_NODE_TEXT_FILE_H
#define TOMONODE_NODE_TEXT_FILE_H

#include <stddef.h>

#include "kernels/err.h"

/* Read the whole file and append a NUL. The file itself may contain NULs. The caller frees *ret_text. what: type of the file for
 * messages, "Interfile header". EBADMSG: larger than `most` bytes; other errors: the errno of open or read. */
int text_file_read(const char *path, size_t most, const char *what, char **ret_text, size_t *ret_size, struct err *err);

#endif
