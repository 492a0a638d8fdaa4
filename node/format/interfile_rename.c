/* SPDX-License-Identifier: Apache-2.0 */
/* interfile_rename.c - another name of the data file in the text of a header, which is otherwise unchanged. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/format/interfile.h"

/* Return where the value begins if the line has this key, else NULL. key: without characters that Interfile ignores
 * (interfile_normalise()). */
static const char *value_of(const char *line, const char *key)
{
	static const char passed_over[] = " \t\v\f_!";

	line += strspn(line, passed_over);
	for (; *key; key++) {
		if (tolower((unsigned char)*line) != *key)
			return NULL;
		line++;
		line += strspn(line, passed_over);
	}
	return strncmp(line, ":=", 2) ? NULL : line + 2;
}

int interfile_rename_data(const char *text, const char *data_file, char **ret_text, struct err *err)
{
	for (const char *line = text; *line;) {
		const char *value = value_of(line, "nameofdatafile");
		size_t length = strcspn(line, "\r\n"), size;

		if (value) {
			size = strlen(text) + strlen(data_file) + 2;
			*ret_text = malloc(size);
			if (!*ret_text)
				return err_set(err, ENOMEM, "no memory for a header of %zu bytes", size);
			snprintf(*ret_text, size, "%.*s %s%s", (int)(value - text), text, data_file, line + length);
			return 0;
		}
		line += length;
		line += strspn(line, "\r\n");
	}
	return err_set(err, EBADMSG, "the Interfile header names no data file");
}
