/* SPDX-License-Identifier: Apache-2.0 */
/* Open a file that a person named; read and write small text files. */
#ifndef TOMONODE_NODE_TEXT_FILE_H
#define TOMONODE_NODE_TEXT_FILE_H

#include <stddef.h>
#include <stdio.h>

#include "kernels/err.h"

/* Open a file to read it. EBADMSG: it is not a regular file; a pipe without a writer does not block. Other errors: that of open.
 */
int regular_file_open(const char *path, FILE **ret_file, struct err *err);

/* Read the whole file and append a NUL. The file itself may contain NULs. The caller frees *ret_text. what: type of the file for
 * messages, "Interfile header". EBADMSG: larger than `most` bytes, or it may not be read; other errors: the errno of open or
 * read. */
int text_file_read(const char *path, size_t most, const char *what, char **ret_text, size_t *ret_size, struct err *err);

/* Write a file for another process of this machine, which is told afterwards: neither atomically nor durably. */
int text_file_write(const char *path, const char *text, size_t n, struct err *err);

#endif
