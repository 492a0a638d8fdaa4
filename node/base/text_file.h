/* A small text file as a whole. */
#ifndef TOMONODE_NODE_TEXT_FILE_H
#define TOMONODE_NODE_TEXT_FILE_H

#include <stddef.h>

#include "kernels/err.h"

/* A NUL follows the text, which may hold some; the caller frees it. what: "Interfile header". EBADMSG: it is larger than `most`
 * bytes; else what opening or reading says. */
int text_file_read(const char *path, size_t most, const char *what, char **ret_text, size_t *ret_size, struct err *err);

#endif
