/* SPDX-License-Identifier: Apache-2.0 */
/* pilot_folder.c - a folder belongs to a pilot that runs as long as it is locked. It gets the name by which others find it after
 * it is locked, so that no other pilot that starts at the same time takes it for that of a killed one. */
#include "node/cluster/pilot_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "tomonode-pilot."

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	(void)remove(path);
	return 0;
}

void pilot_folder_remove(const char *path)
{
	nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

/* Open a folder of this user and lock it. Negative: it is not a folder of this user, or its pilot runs. */
static int lock_folder(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	close(fd);
	return -1;
}

static void remove_left(const char *tmp)
{
	struct dirent *entry;
	char path[600];
	DIR *dir = opendir(tmp);
	int fd;

	while (dir && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0)
			continue;
		snprintf(path, sizeof(path), "%.300s/%s", tmp, entry->d_name);
		fd = lock_folder(path);
		if (fd < 0)
			continue;
		pilot_folder_remove(path);
		close(fd);
	}
	if (dir)
		closedir(dir);
}

int pilot_folder_create(const char *tmp, char *ret_path, size_t size, struct err *err)
{
	char first[400], path[400];
	int fd, n = snprintf(first, sizeof(first), "%s/tomonode-new-pilot.XXXXXX", tmp);

	remove_left(tmp);
	if (n < 0 || (size_t)n >= sizeof(first) || (size_t)n >= size)
		return err_set(err, ENAMETOOLONG, "the path %.200s is too long", tmp);
	if (!mkdtemp(first))
		return err_set(err, errno, "cannot create a folder in %s: %s", tmp, strerror(errno));
	snprintf(path, sizeof(path), "%.300s/" PREFIX "%s", tmp, first + n - 6);
	fd = lock_folder(first);
	if (fd < 0 || rename(first, path) < 0) {
		err_set(err, errno, "cannot use the folder %s: %s", first, strerror(errno));
		if (fd >= 0)
			close(fd);
		rmdir(first);
		return -EIO;
	}
	snprintf(ret_path, size, "%s", path);
	return fd;
}
