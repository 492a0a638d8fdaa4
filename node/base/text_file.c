/* SPDX-License-Identifier: Apache-2.0 */
/* text_file.c - read a text file of limited size: it reads one byte more than the limit, so that it need not trust the size that
 * the file system reports. */
#include "node/base/text_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int text_file_read(const char *path, size_t most, const char *what, char **ret_text, size_t *ret_size, struct err *err)
{
	char *text = malloc(most + 2);
	FILE *f = fopen(path, "rbe");
	size_t n = 0;
	int rc = 0;

	if (!f)
		rc = err_set(err, errno, "cannot open %s: %s", path, strerror(errno));
	else if (!text)
		rc = err_set(err, ENOMEM, "no memory for a file: %s", what);
	if (rc == 0) {
		n = fread(text, 1, most + 1, f);
		if (ferror(f))
			rc = err_set(err, EIO, "cannot read %s: %s", path, strerror(errno));
		else if (n > most)
			rc = err_set(err, EBADMSG, "%s has more than %zu bytes, the limit for this type of file (%s)", path, most,
				     what);
	}
	if (f)
		fclose(f);
	if (rc < 0) {
		free(text);
		return rc;
	}
	text[n] = '\0';
	*ret_text = text;
	*ret_size = n;
	return 0;
}
