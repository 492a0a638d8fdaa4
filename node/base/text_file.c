/* SPDX-License-Identifier: Apache-2.0 */
/* text_file.c - small text files. Reading one of limited size reads one byte more than the limit, so that it need not trust the
 * size that the file system reports. */
#include "node/base/text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int regular_file_open(const char *path, FILE **ret_file, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc = 0; /* O_NONBLOCK has no effect on a regular file */
	struct stat st;
	FILE *f = NULL;

	if (fd < 0)
		return err_set(err, errno, "cannot open %s: %s", path, strerror(errno));
	if (fstat(fd, &st) < 0)
		rc = err_set(err, errno, "cannot open %s: %s", path, strerror(errno));
	else if (!S_ISREG(st.st_mode))
		rc = err_set(err, EBADMSG, "%s is not a regular file%s", path, S_ISDIR(st.st_mode) ? ", but a folder" : "");
	else if (!(f = fdopen(fd, "rb")))
		rc = err_set(err, errno, "cannot open %s: %s", path, strerror(errno));
	if (rc < 0)
		close(fd);
	else
		*ret_file = f;
	return rc;
}

int text_file_read(const char *path, size_t most, const char *what, char **ret_text, size_t *ret_size, struct err *err)
{
	char *text = malloc(most + 2);
	FILE *f = NULL;
	size_t n = 0;
	int rc = err_remap(regular_file_open(path, &f, err), EACCES, EBADMSG, err);

	if (rc == 0 && !text)
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

int text_file_write(const char *path, const char *text, size_t n, struct err *err)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600), rc = 0;

	if (fd < 0)
		return err_set(err, errno, "cannot create %s: %s", path, strerror(errno));
	while (rc == 0 && n > 0) {
		ssize_t done = write(fd, text, n);

		if (done < 0 && errno != EINTR)
			rc = err_set(err, errno, "cannot write %s: %s", path, strerror(errno));
		text += done > 0 ? done : 0;
		n -= done > 0 ? (size_t)done : 0;
	}
	if (close(fd) < 0 && rc == 0)
		rc = err_set(err, errno, "cannot write %s: %s", path, strerror(errno));
	return rc;
}
