/* SPDX-License-Identifier: Apache-2.0 */
/* Read a small text file into memory. */
#ifndef TOMONODE_NODE_TEXT_FILE_H
#define TOMONODE_NODE_TEXT_FILE_H

#include <stddef.h>

#include "kernels/err.h"

/* Read the whole file. The text is followed by a NUL and may contain others; the caller frees it. what: name of the kind of file
 * for messages, "Interfile header". EBADMSG: larger than `most` bytes; otherwise the errno of open or read. */
int text_file_read(const char *path, size_t most, const char *what, char **ret_text, size_t *ret_size, struct err *err);

#endif
