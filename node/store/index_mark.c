/* SPDX-License-Identifier: Apache-2.0 */
#include "node/store/index_mark.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MARK_FILE "indexing"

int index_mark_open(const char *spool, struct err *err)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/" MARK_FILE, spool);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? err_set(err, errno, "%s: %s", path, strerror(errno)) : fd;
}

void index_mark_write(int fd, const struct index_mark *mark)
{
	(void)!pwrite(fd, mark, sizeof(*mark), 0);
}

void index_mark_read(const char *spool, struct index_mark *ret_mark)
{
	struct index_mark mark = {0};
	int fd = index_mark_open(spool, NULL);

	if (fd < 0 || pread(fd, &mark, sizeof(mark), 0) != (ssize_t)sizeof(mark))
		mark.instance = 0;
	if (fd >= 0)
		close(fd);
	mark.calling[sizeof(mark.calling) - 1] = mark.host[sizeof(mark.host) - 1] = '\0';
	*ret_mark = mark;
}
