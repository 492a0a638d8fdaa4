/* SPDX-License-Identifier: Apache-2.0 */
/* atomic_file.c - see node/base/atomic_file.h. */
#include "node/base/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/base/folder.h"

struct atomic_file {
	char path[PATH_MAX], part[PATH_MAX];
	int fd;
};

int atomic_file_open(const char *path, struct atomic_file **ret_file, struct err *err)
{
	struct atomic_file *f = calloc(1, sizeof(*f));

	if (!f)
		return err_set(err, ENOMEM, "no memory for a file");
	if (snprintf(f->path, sizeof(f->path), "%s", path) >= (int)sizeof(f->path) ||
	    snprintf(f->part, sizeof(f->part), "%s.part", path) >= (int)sizeof(f->part)) {
		free(f);
		return err_set(err, ENAMETOOLONG, "the path of the output file is too long");
	}
	f->fd = open(f->part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (f->fd < 0) {
		int rc = err_set(err, folder_output_code(errno), "%s: %s", f->part, strerror(errno));

		free(f);
		return rc;
	}
	*ret_file = f;
	return 0;
}

int atomic_file_write(struct atomic_file *f, const void *bytes, size_t n, struct err *err)
{
	const char *at = bytes;

	while (n > 0) {
		ssize_t done = write(f->fd, at, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return err_set(err, errno, "%s: %s", f->part, strerror(errno));
		at += done;
		n -= (size_t)done;
	}
	return 0;
}

/* Sync and close PATH.part. It is not renamed to a folder, which the rename would refuse when other files are in place already.
 */
static int complete_part(struct atomic_file *f, struct err *err)
{
	struct stat st;
	int rc = 0;

	if (fsync(f->fd) < 0)
		rc = err_set(err, errno, "%s: fsync: %s", f->part, strerror(errno));
	if (close(f->fd) < 0 && rc == 0)
		rc = err_set(err, errno, "%s: close: %s", f->part, strerror(errno));
	f->fd = -1;
	if (rc == 0 && stat(f->path, &st) == 0 && S_ISDIR(st.st_mode))
		rc = err_set(err, EISDIR, "%s: %s", f->path, strerror(EISDIR));
	return rc;
}

/* Remove the header that existed, durably. */
static int remove_header(const char *path, struct err *err)
{
	if (unlink(path) == 0)
		return folder_sync_parent(path, err);
	return errno == ENOENT ? 0 : err_set(err, errno, "%s: %s", path, strerror(errno));
}

int atomic_files_close(struct atomic_file *const *files, size_t n, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++)
		rc = complete_part(files[i], err);
	if (rc == 0 && n > 1)
		rc = remove_header(files[n - 1]->path, err);
	for (size_t i = 0; i < n && rc == 0; i++)
		if (rename(files[i]->part, files[i]->path) < 0)
			rc = err_set(err, errno, "%s: renaming to %s: %s", files[i]->part, files[i]->path, strerror(errno));
	if (rc == 0)
		rc = folder_sync_parent(files[n - 1]->path, err);
	for (size_t i = 0; i < n; i++)
		if (rc < 0)
			atomic_file_abort(files[i]);
		else
			free(files[i]);
	return rc;
}

int atomic_file_close(struct atomic_file *f, struct err *err)
{
	return atomic_files_close(&f, 1, err);
}

void atomic_file_abort(struct atomic_file *f)
{
	if (!f)
		return;
	if (f->fd >= 0)
		close(f->fd);
	unlink(f->part);
	free(f);
}

int atomic_file_put(const char *path, const void *bytes, size_t n, struct err *err)
{
	struct atomic_file *f = NULL;
	int rc = atomic_file_open(path, &f, err);

	if (rc == 0)
		rc = atomic_file_write(f, bytes, n, err);
	if (rc == 0)
		return atomic_file_close(f, err);
	atomic_file_abort(f);
	return rc;
}
