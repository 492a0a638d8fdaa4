/* file_out.c - see node/base/file_out.h. */
#include "node/base/file_out.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct file_out {
	char path[PATH_MAX], part[PATH_MAX];
	int fd;
};

int file_out_open(const char *path, struct file_out **ret_file, struct err *err)
{
	struct file_out *f = calloc(1, sizeof(*f));

	if (!f)
		return err_set(err, ENOMEM, "no memory for a file");
	if (snprintf(f->path, sizeof(f->path), "%s", path) >= (int)sizeof(f->path) ||
	    snprintf(f->part, sizeof(f->part), "%s.part", path) >= (int)sizeof(f->part)) {
		free(f);
		return err_set(err, ENAMETOOLONG, "the path of the output file is too long");
	}
	f->fd = open(f->part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (f->fd < 0) {
		int rc = err_set(err, errno == EACCES ? EPERM : errno, "%s: %s", f->part, strerror(errno));

		free(f);
		return rc;
	}
	*ret_file = f;
	return 0;
}

int file_out_write(struct file_out *f, const void *bytes, size_t n, struct err *err)
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

static int sync_folder(const char *path, struct err *err)
{
	char folder[PATH_MAX];
	char *slash;
	int fd, rc = 0;

	snprintf(folder, sizeof(folder), "%s", path);
	slash = strrchr(folder, '/');
	if (slash)
		slash[slash == folder] = '\0'; /* "/" stays */
	fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd) < 0)
		rc = err_set(err, errno, "%s: syncing the folder: %s", slash ? folder : ".", strerror(errno));
	if (fd >= 0)
		close(fd);
	return rc;
}

int file_out_close(struct file_out *f, struct err *err)
{
	int rc = 0;

	if (fsync(f->fd) < 0)
		rc = err_set(err, errno, "%s: fsync: %s", f->part, strerror(errno));
	if (close(f->fd) < 0 && rc == 0)
		rc = err_set(err, errno, "%s: close: %s", f->part, strerror(errno));
	f->fd = -1;
	if (rc == 0 && rename(f->part, f->path) < 0)
		rc = err_set(err, errno, "%s: renaming to %s: %s", f->part, f->path, strerror(errno));
	if (rc < 0)
		unlink(f->part);
	else
		rc = sync_folder(f->path, err);
	free(f);
	return rc;
}

void file_out_abort(struct file_out *f)
{
	if (!f)
		return;
	close(f->fd);
	unlink(f->part);
	free(f);
}

int file_out_put(const char *path, const void *bytes, size_t n, struct err *err)
{
	struct file_out *f = NULL;
	int rc = file_out_open(path, &f, err);

	if (rc == 0)
		rc = file_out_write(f, bytes, n, err);
	if (rc == 0)
		return file_out_close(f, err);
	file_out_abort(f);
	return rc;
}
