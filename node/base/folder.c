/* SPDX-License-Identifier: Apache-2.0 */
#include "node/base/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

int folder_path(const char *spool, const char *what, int64_t job, char *ret_path, size_t size, struct err *err)
{
	if (snprintf(ret_path, size, "%s/%s/%lld", spool, what, (long long)job) >= (int)size)
		return err_set(err, ENAMETOOLONG, "the path of folder %s of job %lld is too long", what, (long long)job);
	return 0;
}

int folder_sync(const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), ret = 0;

	if (fd < 0 || fsync(fd) < 0)
		ret = err_set(err, errno, "cannot sync folder %s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return ret;
}

int folder_sync_parent(const char *path, struct err *err)
{
	char parent[PATH_MAX];
	char *slash;

	snprintf(parent, sizeof(parent), "%s", path);
	slash = strrchr(parent, '/');
	if (slash)
		slash[slash == parent] = '\0'; /* keep the slash of the root folder */
	return folder_sync(slash ? parent : ".", err);
}

int folder_make(const char *path, struct err *err)
{
	if (mkdir(path, 0700) < 0) {
		if (errno == EEXIST)
			return 0;
		return err_set(err, errno, "cannot make folder %s: %s", path, strerror(errno));
	}
	return folder_sync_parent(path, err);
}

/* Remove a folder in another one, with all that is in it; a folder without rights for its owner, too. */
static int remove_below(int dir_fd, const char *path, const char *name, struct err *err)
{
	char below[PATH_MAX];

	if (snprintf(below, sizeof(below), "%s/%s", path, name) >= (int)sizeof(below))
		return err_set(err, ENAMETOOLONG, "the path of folder %.60s... has more than %zu bytes", path, sizeof(below) - 1);
	return fchmodat(dir_fd, name, 0700, 0) == 0 || errno == EPERM
		       ? folder_remove(below, err)
		       : err_set(err, errno, "cannot remove %s/%.100s: %s", path, name, strerror(errno));
}

int folder_empty(const char *path, struct err *err)
{
	DIR *dir = opendir(path);
	int ret = 0;

	if (!dir)
		return errno == ENOENT ? 0 : err_set(err, errno, "cannot open folder %s: %s", path, strerror(errno));
	for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (unlinkat(dirfd(dir), e->d_name, 0) == 0 || errno == ENOENT)
			continue;
		if (errno == EISDIR)
			ret = remove_below(dirfd(dir), path, e->d_name, err);
		else
			ret = err_set(err, errno, "cannot remove %s/%.100s: %s", path, e->d_name, strerror(errno));
	}
	closedir(dir);
	return ret;
}

int folder_remove(const char *path, struct err *err)
{
	int ret = folder_empty(path, err);

	if (ret == 0 && rmdir(path) < 0 && errno != ENOENT)
		ret = err_set(err, errno, "cannot remove folder %s: %s", path, strerror(errno));
	return ret;
}

bool folder_exists(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int order_entries(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

FTS *folder_walk(char *const *paths)
{
	return fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_COMFOLLOW, order_entries);
}

int folder_output_code(int os)
{
	return os == EACCES || os == ENOENT || os == EBUSY || os == ENODEV || os == ETIMEDOUT ? EPERM : os;
}

int folder_input_code(int os)
{
	return os == EACCES ? EBADMSG : os;
}

static int create_one(const char *path, struct err *err)
{
	if (folder_exists(path))
		return 0;
	if (mkdir(path, 0777) == 0)
		return 0;
	if (errno == EEXIST) /* another process may have made the folder meanwhile */
		return folder_exists(path) ? 0 : err_set(err, ENOTDIR, "%s is not a folder", path);
	return err_set(err, folder_output_code(errno), "cannot make folder %s: %s", path, strerror(errno));
}

int folder_create(const char *path, struct err *err)
{
	char part[PATH_MAX];
	int rc = 0;

	if (folder_exists(path))
		return 0;
	if (snprintf(part, sizeof(part), "%s", path) >= (int)sizeof(part))
		return err_set(err, ENAMETOOLONG, "the path of folder %.60s... has more than %zu bytes", path, sizeof(part) - 1);
	for (char *c = part + 1; rc == 0 && part[0] && *c; c++) {
		if (*c != '/')
			continue;
		*c = '\0';
		rc = create_one(part, err);
		*c = '/';
	}
	return rc < 0 ? rc : create_one(path, err);
}

int folder_create_parent(const char *file, struct err *err)
{
	char parent[PATH_MAX];
	size_t n = (size_t)(file_name(file) - file);

	if (n >= sizeof(parent))
		return err_set(err, ENAMETOOLONG, "the path of file %.60s... has more than %zu bytes", file, sizeof(parent) - 1);
	snprintf(parent, sizeof(parent), "%.*s", (int)n, file);
	return n > 0 ? folder_create(parent, err) : 0;
}

size_t folder_entries(const char *path)
{
	DIR *dir = opendir(path);
	size_t n = 0;

	if (!dir)
		return 0;
	for (struct dirent *e = readdir(dir); e; e = readdir(dir))
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	closedir(dir);
	return n;
}

uint64_t folder_bytes(const char *path)
{
	char *const paths[] = {(char *)path, NULL}; /* fts_open() only reads it */
	FTS *fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	uint64_t bytes = 0;

	if (!fts)
		return 0;
	for (FTSENT *entry = fts_read(fts); entry; entry = fts_read(fts))
		if (entry->fts_info == FTS_F)
			bytes += (uint64_t)entry->fts_statp->st_blocks * 512;
	fts_close(fts);
	return bytes;
}

/* Scramble a number (Steele, Lea, Flood 2014: SplitMix64). The fingerprint is the sum of a scrambled number for each file: a sum,
 * because the order of readdir() is undefined; scrambled, so that the growth of one file cannot cancel the removal of another. */
static uint64_t mix_number(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

uint64_t folder_fingerprint(const char *path)
{
	DIR *dir = opendir(path);
	uint64_t sum = 0;
	struct stat st;

	if (!dir)
		return 0;
	for (struct dirent *e = readdir(dir); e; e = readdir(dir))
		if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
			sum += mix_number(mix_number((uint64_t)st.st_ino) ^ (uint64_t)st.st_size);
	closedir(dir);
	return sum;
}

const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

void file_name_plain(const char *path, char *ret, size_t size)
{
	snprintf(ret, size, "%s", file_name(path));
	for (char *c = ret; *c; c++)
		if (*c < ' ' || *c > '~' || *c == '\\')
			*c = '?';
}

bool file_name_ends(const char *path, const char *ending)
{
	const char *name = file_name(path);
	size_t n = strlen(name), m = strlen(ending);

	return n > m && !strcasecmp(name + n - m, ending);
}
