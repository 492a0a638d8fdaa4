/* SPDX-License-Identifier: Apache-2.0 */
/* stack_memory.c - see node/reconstruct/stack_memory.h. The file gets all its blocks at once: a disk that is full later would end the
 * process with SIGBUS. */
#include "node/reconstruct/stack_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

static int refuse_file(const char *folder, size_t bytes, int code, struct err *err)
{
	return err_set(err, code, "no file of %.0f MB in %s for a stack that main memory does not hold: %s", (double)bytes / 1e6,
		       folder, strerror(code));
}

/* Open a file without a name; some file systems of clusters need one for a moment. */
static int open_unnamed(const char *folder)
{
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char path[4096];

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR) ||
	    snprintf(path, sizeof(path), "%s/.stack-XXXXXX", folder) >= (int)sizeof(path))
		return fd;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

/* Give a new file its blocks. */
static int fill_file(int fd, const char *folder, size_t bytes, uint64_t keep_free, struct err *err)
{
	struct statvfs disk;
	int rc = fstatvfs(fd, &disk) < 0 ? errno : 0;
	double left = rc == 0 ? (double)disk.f_bavail * (double)disk.f_frsize : 0;

	if (rc == 0 && left < (double)bytes + (double)keep_free)
		return err_set(err, ENOSPC,
			       "a stack that main memory does not hold needs a file of %.0f MB; %s has %.0f MB of free space, of "
			       "which %.0f MB are kept",
			       (double)bytes / 1e6, folder, left / 1e6, (double)keep_free / 1e6);
	if (rc == 0)
		rc = posix_fallocate(fd, 0, (off_t)bytes);
	return rc == 0 ? 0 : refuse_file(folder, bytes, rc, err);
}

int stack_memory_make(size_t n, const char *folder, uint64_t keep_free, struct stack_memory *ret, struct err *err)
{
	size_t bytes = n * sizeof(*ret->values);
	void *values = MAP_FAILED;
	int fd, rc;

	*ret = (struct stack_memory){0};
	if (!folder) {
		ret->values = malloc(bytes);
		return ret->values ? 0 : err_set(err, ENOMEM, "no memory for %zu values", n);
	}
	fd = open_unnamed(folder);
	if (fd < 0)
		return refuse_file(folder, bytes, errno, err);
	rc = fill_file(fd, folder, bytes, keep_free, err);
	if (rc == 0)
		values = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (rc == 0 && values == MAP_FAILED)
		rc = refuse_file(folder, bytes, errno, err);
	close(fd);
	if (rc == 0)
		*ret = (struct stack_memory){values, bytes};
	return rc;
}

void stack_memory_leave(const struct stack_memory *m)
{
	if (m->mapped > 0)
		madvise(m->values, m->mapped, MADV_DONTNEED);
}

void stack_memory_free(struct stack_memory *m)
{
	if (m->mapped > 0)
		munmap(m->values, m->mapped);
	else
		free(m->values);
	*m = (struct stack_memory){0};
}
