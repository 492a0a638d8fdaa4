/* The text of a configuration with its @include lines carried out, and where each line came from.
 *
 * Everything libconfig must not see unguarded is dealt with here: size, nesting, bytes that are no text, includes that are no
 * regular files or that include themselves. What comes out is at most CONFIG_TEXT_MAX bytes without any @include.
 */
#ifndef TOMONODE_NODE_CONFIG_TEXT_H
#define TOMONODE_NODE_CONFIG_TEXT_H

#include <stddef.h>

#include "kernels/err.h"

#define CONFIG_TEXT_MAX (1024 * 1024) /* bytes, all included files together */
#define CONFIG_NESTING_MAX 12	      /* of { ( [ */
#define CONFIG_INCLUDE_MAX 8	      /* files within files */
#define CONFIG_FILES_MAX 64

struct config_text {
	char *bytes; /* terminated */
	size_t size;
	char *files[CONFIG_FILES_MAX];
	size_t n_files;
	struct config_line {
		int file, line; /* index into files, number from 1 */
	} * lines;
	size_t n_lines, room;
};

/* `@include "name"` on a line of its own reads another file; a relative name is looked for beside the file that names it. */
int config_text_load(const char *path, struct config_text **ret_text, struct err *err);
/* Text in memory: @include is refused. */
int config_text_copy(const char *bytes, const char *name, struct config_text **ret_text, struct err *err);
struct config_text *config_text_free(struct config_text *t);

/* Where line `line` (from 1) of the whole came from. */
void config_text_where(const struct config_text *t, unsigned line, const char **ret_file, int *ret_line);

#endif
