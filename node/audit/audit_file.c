/* SPDX-License-Identifier: Apache-2.0 */
/* audit_file.c - append whole lines to a file, even if the disk is full or a process dies.
 *
 * - Each writer locks the file, because commands write to it at the same time as the node and no process may truncate a line of
 * another.
 * - A line that was written only partly (full disk) is truncated. If that failed too, or a process died while writing, the next
 *   line starts after an additional line end.
 * - A file that is not a regular file, such as a pipe or a terminal, is written without these measures.
 */
#include "node/audit/audit_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_TRIES 100
#define LOCK_WAIT_US 1000 /* between two tries */

static int give_to_owner(const char *path, int fd)
{
	char folder[400];
	const char *slash = strrchr(path, '/');
	struct stat st;

	if (!slash || snprintf(folder, sizeof(folder), "%.*s/", (int)(slash - path), path) >= (int)sizeof(folder))
		return -1;
	if (stat(folder, &st) < 0)
		return -1;
	return st.st_uid == 0 ? 0 : fchown(fd, st.st_uid, st.st_gid);
}

int audit_file_open(const char *path, int flags)
{
	const int all = flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	int fd = open(path, all);

	if (fd >= 0 || errno != ENOENT)
		return fd;
	fd = open(path, all | O_CREAT | O_EXCL, 0600);
	if (fd < 0)
		return errno == EEXIST ? open(path, all) : -1; /* another process created it meanwhile */
	if (geteuid() == 0 && give_to_owner(path, fd) < 0) {
		int code = errno;

		unlink(path);
		close(fd);
		errno = code;
		return -1;
	}
	return fd;
}

int audit_file_lock(int fd, int tries)
{
	for (int i = 0; i < tries; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		usleep(LOCK_WAIT_US);
	}
	return -EBUSY;
}

/* Return true if the last line of the file has no line end. */
static bool is_cut(const char *path, off_t size)
{
	char last = '\n';
	int fd = size > 0 ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY) : -1;

	if (fd >= 0) {
		if (pread(fd, &last, 1, size - 1) != 1)
			last = '\n';
		close(fd);
	}
	return last != '\n';
}

static int append_text(int fd, const char *path, const char *text, size_t n)
{
	struct stat st;
	bool regular;
	ssize_t done;
	int rc;

	if (fstat(fd, &st) < 0)
		return -errno;
	regular = S_ISREG(st.st_mode);
	rc = regular ? audit_file_lock(fd, LOCK_TRIES) : 0;
	if (rc == 0 && regular && fstat(fd, &st) < 0)
		rc = -errno;
	if (rc < 0)
		return rc;
	if (!regular || !is_cut(path, st.st_size)) { /* text begins with a line end for the incomplete line */
		text++;
		n--;
	}
	errno = 0;
	done = write(fd, text, n);
	if (done == (ssize_t)n)
		return 0;
	rc = -(errno ? errno : ENOSPC);
	if (done > 0 && regular && ftruncate(fd, st.st_size) < 0)
		rc = -errno;
	return rc;
}

int audit_file_append(const char *path, const char *line, size_t n)
{
	int fd = audit_file_open(path, O_WRONLY | O_APPEND), rc;
	char *text = malloc(n + 2);

	if (fd < 0 || !text) {
		rc = fd < 0 ? -errno : -ENOMEM;
		goto out;
	}
	text[0] = '\n';
	memcpy(text + 1, line, n);
	text[n + 1] = '\n';
	rc = append_text(fd, path, text, n + 2);
out:
	if (fd >= 0)
		close(fd);
	free(text);
	return rc;
}
