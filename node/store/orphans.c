/* SPDX-License-Identifier: Apache-2.0 */
#include "node/store/orphans.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/base/folder.h"

#define DAY 86400.0
#define PATH_MAX_BYTES 1024
#define AHEAD 60.0 /* s; tolerated lead of a file's time over the clock: the file system may have its own clock */

static int path_of(char ret[PATH_MAX_BYTES], const char *spool, const char *folder, const char *name, struct err *err)
{
	if (snprintf(ret, PATH_MAX_BYTES, "%s/%s/%s", spool, folder, name) >= PATH_MAX_BYTES)
		return err_set(err, ENAMETOOLONG, "spool: the path of %s/%.200s is too long", folder, name);
	return 0;
}

/* Call each() for every image until it returns a negative value, which is returned; otherwise return the sum of its results. */
static int64_t walk_images(const char *spool, int (*each)(void *ctx, int folder, const char *name), void *ctx, struct err *err)
{
	char path[PATH_MAX_BYTES];
	int64_t sum = 0;
	DIR *dir;

	if (path_of(path, spool, ORPHANS_FOLDER, "", err) < 0)
		return -ENAMETOOLONG;
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? 0 : err_set(err, errno, "spool: cannot open %s: %s", path, strerror(errno));
	for (struct dirent *e = readdir(dir); e && sum >= 0; e = readdir(dir)) {
		size_t n = strlen(e->d_name);
		int ret = n > 4 && !strcmp(e->d_name + n - 4, ".dcm") ? each(ctx, dirfd(dir), e->d_name) : 0;

		sum = ret < 0 ? ret : sum + ret;
	}
	closedir(dir);
	return sum;
}

int orphans_set_aside(const char *spool, const char *name, struct err *err)
{
	char from[PATH_MAX_BYTES], to[PATH_MAX_BYTES];
	int ret = path_of(from, spool, "instances", name, err);

	if (ret == 0)
		ret = path_of(to, spool, ORPHANS_FOLDER, name, err);
	if (ret == 0 && (utimensat(AT_FDCWD, from, NULL, AT_SYMLINK_NOFOLLOW) < 0 || rename(from, to) < 0))
		ret = err_set(err, errno, "spool: cannot move %s to %s: %s", from, ORPHANS_FOLDER, strerror(errno));
	return ret;
}

/* Sync the target folder first: after a crash between the two calls a file is in both folders, never in none. */
int orphans_sync(const char *spool, struct err *err)
{
	static const char *const folders[] = {ORPHANS_FOLDER, "instances"};
	char path[PATH_MAX_BYTES];
	int ret = 0;

	for (int i = 0; ret == 0 && i < 2; i++)
		if ((ret = path_of(path, spool, folders[i], "", err)) == 0)
			ret = folder_sync(path, err);
	return ret;
}

struct back {
	const char *spool;
	int (*names)(void *ctx, const char *file);
	void *ctx;
	struct err *err;
};

static int restore_one(void *ctx, int folder, const char *name)
{
	struct back *b = ctx;
	char file[384], to[PATH_MAX_BYTES];

	if (snprintf(file, sizeof(file), "instances/%s", name) >= (int)sizeof(file) || b->names(b->ctx, file) != 1)
		return 0;
	if (path_of(to, b->spool, "instances", name, b->err) < 0)
		return -ENAMETOOLONG;
	if (access(to, F_OK) == 0)
		return 0; /* the file exists in instances/, too (it was restored) */
	if (renameat(folder, name, AT_FDCWD, to) < 0)
		return err_set(b->err, errno, "spool: cannot move an orphan back to %s: %s", to, strerror(errno));
	return 1;
}

int orphans_restore(const char *spool, int (*names)(void *ctx, const char *file), void *ctx, struct err *err)
{
	struct back b = {.spool = spool, .names = names, .ctx = ctx, .err = err};
	int64_t n = walk_images(spool, restore_one, &b, err);
	int ret = n > 0 ? orphans_sync(spool, err) : 0;

	return ret < 0 ? ret : (int)n;
}

static int count_one(void *ctx, int folder, const char *name)
{
	(void)ctx;
	(void)folder;
	(void)name;
	return 1;
}

uint64_t orphans_count(const char *spool)
{
	int64_t n = walk_images(spool, count_one, NULL, NULL);

	return n > 0 ? (uint64_t)n : 0;
}

struct old {
	double until, now;
	struct err *err;
};

static int remove_old(void *ctx, int folder, const char *name)
{
	struct old *o = ctx;
	struct stat st;
	double at;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0; /* a person has removed it meanwhile */
	at = (double)st.st_mtim.tv_sec;
	if (at > o->now + AHEAD) /* the clock was ahead when it was moved: without a correction it would be removed too late */
		utimensat(folder, name, NULL, AT_SYMLINK_NOFOLLOW);
	if (at > o->until)
		return 0;
	if (unlinkat(folder, name, 0) < 0 && errno != ENOENT)
		return err_set(o->err, errno, "cannot remove %s/%.200s: %s", ORPHANS_FOLDER, name, strerror(errno));
	return 1;
}

int orphans_remove_old(const char *spool, int days, double now, struct err *err)
{
	struct old o = {.until = now - days * DAY, .now = now, .err = err};

	return (int)walk_images(spool, remove_old, &o, err);
}
