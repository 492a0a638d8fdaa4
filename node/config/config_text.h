/* SPDX-License-Identifier: Apache-2.0 */
/* Read the text of a configuration, insert the files named by @include, and record for each line its file and line number.
 *
 * Text that could harm libconfig is refused: too large, too deeply nested, with bytes that are not text, with includes of files
 * that are not regular or that include themselves. The result has at most CONFIG_TEXT_MAX bytes and contains no @include.
 */
#ifndef TOMONODE_NODE_CONFIG_TEXT_H
#define TOMONODE_NODE_CONFIG_TEXT_H

#include <stddef.h>

#include "kernels/err.h"

#define CONFIG_TEXT_MAX (1024 * 1024) /* bytes, all included files together */
#define CONFIG_NESTING_MAX 12	      /* maximum depth of { ( [ */
#define CONFIG_INCLUDE_MAX 8	      /* maximum depth of included files */
#define CONFIG_FILES_MAX 64

struct config_text {
	char *bytes; /* zero-terminated */
	size_t size;
	char *files[CONFIG_FILES_MAX];
	size_t n_files;
	struct config_line {
		int file, line; /* index into files; line number from 1 */
	} * lines;
	size_t n_lines, room; /* used and allocated elements of lines */
};

/* Read a file. A line `@include "name"` inserts another file; a relative name is relative to the folder of the file that contains
 * the line. */
int config_text_load(const char *path, struct config_text **ret_text, struct err *err);
/* Copy a text in memory, named `name` in messages. @include is refused. */
int config_text_copy(const char *bytes, const char *name, struct config_text **ret_text, struct err *err);
struct config_text *config_text_free(struct config_text *t);

/* Return the file and the line number there of line `line` (from 1) of the whole text. */
void config_text_where(const struct config_text *t, unsigned line, const char **ret_file, int *ret_line);

#endif
