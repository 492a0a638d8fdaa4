/* SPDX-License-Identifier: Apache-2.0 */
/* spool.c - the folder that stores received files and results, and the order of calls that makes a rename durable.
 *
 * - A file name consists of the time, the process and a counter: unique without reading the disk, and free of received data.
 * - To make a rename durable: fsync the file, rename it, fsync the folder that it was moved to. The source folder needs no fsync:
 *   if a crash brings the old name back, the sweep at the start removes it.
 * - An instance file without a row in the journal was never acknowledged, unless the journal was lost or replaced by an older
 *   one. The two cases cannot be distinguished, so the sweep moves such files to orphans/ (node/store/orphans.h).
 */
#include "node/store/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "node/base/folder.h"
#include "node/store/orphans.h"

#define SPOOL_PATH_SIZE 1024
#define LOCK_FORMAT "%-20ld\n%-20.3f\n%-20.3f\n" /* of a constant length: process number, last sign of life, node.json */
#define LOCK_TEXT_SIZE 96

static const char *const folders[] = {"incoming", "instances", "outbox", "work", "audit", ORPHANS_FOLDER};
#define N_FOLDERS (sizeof(folders) / sizeof(folders[0]))

static int join_path(char *ret, const char *a, const char *b, const char *suffix, struct err *err)
{
	int n = snprintf(ret, SPOOL_PATH_SIZE, "%s/%s%s", a, b, suffix);

	if (n < 0 || n >= SPOOL_PATH_SIZE)
		return err_set(err, ENAMETOOLONG, "spool: a path of more than %d characters below %.200s", SPOOL_PATH_SIZE - 1,
			       a);
	return 0;
}

/* Create a folder and its missing parent folders. */
static int make_folder(const char *path, struct err *err)
{
	char parent[SPOOL_PATH_SIZE];
	char *slash;
	struct stat st;
	int rc;

	if (stat(path, &st) == 0)
		return S_ISDIR(st.st_mode) ? 0 : err_set(err, ENOTDIR, "spool: %s is not a folder", path);
	if (snprintf(parent, sizeof(parent), "%s", path) >= (int)sizeof(parent))
		return err_set(err, ENAMETOOLONG, "spool: path longer than %d characters: %.200s", SPOOL_PATH_SIZE - 1, path);
	slash = strrchr(parent, '/');
	if (slash && slash != parent) {
		*slash = '\0';
		rc = make_folder(parent, err);
		if (rc < 0)
			return rc;
	} else {
		snprintf(parent, sizeof(parent), "%s", slash ? "/" : ".");
	}
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return err_set(err, errno, "spool: cannot create folder %s: %s", path, strerror(errno));
	return folder_sync(parent, err);
}

int spool_prepare(const char *spool, struct err *err)
{
	char path[SPOOL_PATH_SIZE];
	size_t n = strlen(spool);
	int rc;

	if (n == 0 || n >= SPOOL_PATH_SIZE)
		return err_set(err, EINVAL, "spool: folder name of %zu characters", n);
	snprintf(path, sizeof(path), "%s", spool);
	while (n > 1 && path[n - 1] == '/')
		path[--n] = '\0';
	rc = make_folder(path, err);
	for (size_t i = 0; rc == 0 && i < N_FOLDERS; i++) {
		rc = join_path(path, spool, folders[i], "", err);
		if (rc == 0)
			rc = make_folder(path, err);
	}
	if (rc == 0 && access(spool, W_OK | X_OK) < 0)
		rc = err_set(err, errno, "spool: cannot write to %s: %s", spool, strerror(errno));
	return rc;
}

static int open_lock_file(int folder, int flags)
{
	return openat(folder, "node.lock", flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* Read the lock file. Its contents are only for messages: the lock is that of the folder, which stays if a file is removed. */
static void read_lock_file(int folder, char ret_text[LOCK_TEXT_SIZE])
{
	int fd = open_lock_file(folder, O_RDONLY);
	ssize_t n = fd >= 0 ? read(fd, ret_text, LOCK_TEXT_SIZE - 1) : 0;

	ret_text[n > 0 ? n : 0] = '\0';
	if (fd >= 0)
		close(fd);
}

/* Write process number and times. Ignore a full disk. */
static int write_lock_file(int folder, double alive, double reported)
{
	char text[LOCK_TEXT_SIZE];
	int n = snprintf(text, sizeof(text), LOCK_FORMAT, (long)getpid(), alive, reported);
	int fd = open_lock_file(folder, O_RDWR | O_CREAT), ret;

	if (fd < 0)
		return errno == ENOSPC || errno == EDQUOT ? 0 : -errno;
	errno = 0;
	ret = pwrite(fd, text, (size_t)n, 0) == n && ftruncate(fd, n) == 0 ? 0 : errno ? -errno : -EIO;
	close(fd);
	return ret == -ENOSPC || ret == -EDQUOT ? 0 : ret;
}

int spool_lock(const char *spool, struct err *err)
{
	char text[LOCK_TEXT_SIZE];
	int fd = open(spool, O_RDONLY | O_DIRECTORY | O_CLOEXEC), ret;

	if (fd < 0)
		return err_set(err, errno, "spool: cannot open %s: %s", spool, strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		int code = errno;

		read_lock_file(fd, text);
		text[strcspn(text, " \n")] = '\0';
		close(fd);
		if (code == EWOULDBLOCK)
			return err_set(err, EBUSY, "spool: %s is in use by process %s", spool, text[0] ? text : "(unknown)");
		return err_set(err, code, "spool: cannot lock %s: %s", spool, strerror(code));
	}
	ret = write_lock_file(fd, 0, 0);
	if (ret == 0)
		return fd;
	close(fd);
	return err_set(err, -ret, "spool: cannot write %s/node.lock: %s", spool, strerror(-ret));
}

void spool_lock_beat(int lock_fd, double alive, double reported)
{
	if (lock_fd >= 0) /* a failure shows as a missing sign of life */
		(void)write_lock_file(lock_fd, alive, reported);
}

bool spool_holder(const char *spool, struct spool_holder *ret_holder)
{
	char text[LOCK_TEXT_SIZE] = "";
	int fd = open(spool, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool held;

	*ret_holder = (struct spool_holder){0};
	if (fd < 0)
		return false;
	held = flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
	if (held)
		read_lock_file(fd, text);
	if (held && sscanf(text, "%ld %lf %lf", &ret_holder->pid, &ret_holder->alive, &ret_holder->reported) < 3)
		ret_holder->alive = ret_holder->reported = 0;
	close(fd);
	return held;
}

static int check_writable(const char *spool, const char *folder, struct err *err)
{
	char path[SPOOL_PATH_SIZE];

	if (join_path(path, spool, folder, "", err) < 0)
		return -ENAMETOOLONG;
	if (access(path, W_OK | X_OK) < 0)
		return err_set(err, errno, "spool: cannot write to %s: %s", path, strerror(errno));
	return 0;
}

int spool_probe(const char *spool, struct err *err)
{
	static const char byte[1] = {0};
	char name[64];
	int fd = spool_begin(spool, name, err), ret;

	if (fd < 0)
		return fd;
	if (write(fd, byte, sizeof(byte)) != (ssize_t)sizeof(byte) || fsync(fd) < 0)
		ret = err_set(err, errno, "spool: cannot write incoming/%s.part in %s: %s", name, spool, strerror(errno));
	else
		ret = check_writable(spool, "instances", err);
	spool_discard(spool, name, fd);
	return ret;
}

int spool_probe_results(const char *spool, struct err *err)
{
	int ret = check_writable(spool, "work", err);

	return ret < 0 ? ret : check_writable(spool, "outbox", err);
}

int spool_begin(const char *spool, char ret_name[64], struct err *err)
{
	static unsigned counter;
	char path[SPOOL_PATH_SIZE], file[80], name[64];
	struct timespec now;
	int fd, tries;

	for (tries = 0; tries < 16; tries++) {
		clock_gettime(CLOCK_REALTIME, &now);
		snprintf(name, sizeof(name), "%08llx-%07lx-%ld-%u", (unsigned long long)now.tv_sec, now.tv_nsec / 100,
			 (long)getpid(), counter++);
		snprintf(file, sizeof(file), "incoming/%s", name);
		if (join_path(path, spool, file, ".part", err) < 0)
			return -ENAMETOOLONG;
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd >= 0) {
			memcpy(ret_name, name, sizeof(name));
			return fd;
		}
		if (errno != EEXIST)
			break;
	}
	return err_set(err, errno, "spool: cannot create %s: %s", path, strerror(errno));
}

int spool_commit(const char *spool, const char *name, int fd, char ret_file[128], struct err *err)
{
	char from[SPOOL_PATH_SIZE], to[SPOOL_PATH_SIZE], folder[SPOOL_PATH_SIZE], part[80], file[128];
	int rc = 0;

	if (snprintf(part, sizeof(part), "incoming/%s", name) >= (int)sizeof(part) ||
	    snprintf(file, sizeof(file), "instances/%s.dcm", name) >= (int)sizeof(file)) {
		close(fd);
		return err_set(err, ENAMETOOLONG, "spool: name too long: %zu characters", strlen(name));
	}
	rc = join_path(from, spool, part, ".part", err);
	if (rc == 0)
		rc = join_path(to, spool, file, "", err);
	if (rc == 0)
		rc = join_path(folder, spool, "instances", "", err);
	if (rc == 0 && fsync(fd) < 0)
		rc = err_set(err, errno, "spool: cannot sync %s: %s", from, strerror(errno));
	if (close(fd) < 0 && rc == 0)
		rc = err_set(err, errno, "spool: cannot close %s: %s", from, strerror(errno));
	if (rc < 0)
		return rc;
	if (rename(from, to) < 0)
		return err_set(err, errno, "spool: cannot rename %s: %s", from, strerror(errno));
	rc = folder_sync(folder, err);
	if (rc < 0) {
		unlink(to);
		return rc;
	}
	memcpy(ret_file, file, sizeof(file));
	return 0;
}

bool spool_has_file(const char *spool, const char *file, uint64_t bytes)
{
	char path[SPOOL_PATH_SIZE];
	struct stat st;

	return join_path(path, spool, file, "", NULL) == 0 && lstat(path, &st) == 0 && S_ISREG(st.st_mode) &&
	       (uint64_t)st.st_size == bytes;
}

int spool_replace(const char *spool, const char *file, const char *lost, struct err *err)
{
	char from[SPOOL_PATH_SIZE], to[SPOOL_PATH_SIZE], folder[SPOOL_PATH_SIZE];
	int rc = join_path(from, spool, file, "", err);

	if (rc == 0)
		rc = join_path(to, spool, lost, "", err);
	if (rc == 0)
		rc = join_path(folder, spool, "instances", "", err);
	if (rc == 0 && rename(from, to) < 0) {
		rc = err_set(err, errno, "spool: cannot rename %s: %s", from, strerror(errno));
		unlink(from);
	}
	return rc < 0 ? rc : folder_sync(folder, err);
}

void spool_discard(const char *spool, const char *name, int fd)
{
	char path[SPOOL_PATH_SIZE], part[80];

	if (fd >= 0)
		close(fd);
	if (snprintf(part, sizeof(part), "incoming/%s", name) < (int)sizeof(part) &&
	    join_path(path, spool, part, ".part", NULL) == 0)
		unlink(path);
}

uint64_t spool_free_bytes(const char *spool)
{
	struct statvfs v;

	if (statvfs(spool, &v) < 0)
		return 0;
	return (uint64_t)v.f_bavail * v.f_frsize;
}

/* ---- the sweep ---- */

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && !strcmp(text + n - m, end);
}

static bool is_dot(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

/* Remove a file, or a folder with its content; add the number of removed files to *count. Symbolic links are removed, not
 * followed. */
static int remove_at(int folder_fd, const char *name, int *count)
{
	struct stat st;
	int fd;
	DIR *dir;

	if (fstatat(folder_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISDIR(st.st_mode)) {
		if (unlinkat(folder_fd, name, 0) < 0)
			return -errno;
		(*count)++;
		return 0;
	}
	fd = openat(folder_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
		int rc = is_dot(e->d_name) ? 0 : remove_at(dirfd(dir), e->d_name, count);

		if (rc < 0) {
			closedir(dir);
			return rc;
		}
	}
	closedir(dir);
	return unlinkat(folder_fd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

struct sweep {
	const char *spool;
	int (*row_of)(void *ctx, const char *file);
	void *ctx;
	int removed, orphans;
};

enum verdict { VERDICT_KEEP, VERDICT_REMOVE, VERDICT_DESCEND, VERDICT_UNKNOWN };

static enum verdict verdict_of_incoming(struct sweep *s, const char *name)
{
	(void)s;
	return ends_with(name, ".part") ? VERDICT_REMOVE : VERDICT_KEEP;
}

static enum verdict verdict_of_instance(struct sweep *s, const char *name)
{
	char file[384];

	if (!ends_with(name, ".dcm") || snprintf(file, sizeof(file), "instances/%s", name) >= (int)sizeof(file))
		return VERDICT_KEEP;
	switch (s->row_of(s->ctx, file)) {
	case SPOOL_NO_ROW:
		return VERDICT_UNKNOWN;
	case SPOOL_REMOVED:
		return VERDICT_REMOVE;
	default: /* negative: the row could not be read; the file is left unchanged */
		return VERDICT_KEEP;
	}
}

static enum verdict verdict_of_outbox(struct sweep *s, const char *name)
{
	(void)s;
	return ends_with(name, ".part") ? VERDICT_REMOVE : VERDICT_DESCEND;
}

static enum verdict verdict_of_work(struct sweep *s, const char *name)
{
	char file[SPOOL_PATH_SIZE];
	const char *end = strchr(name, '.');

	if (!strchr(name, '-'))
		return VERDICT_REMOVE;
	if (snprintf(file, sizeof(file), "work/%.*s", end ? (int)(end - name) : (int)strlen(name), name) >= (int)sizeof(file))
		return VERDICT_KEEP;
	return s->row_of(s->ctx, file) == SPOOL_NO_ROW ? VERDICT_REMOVE : VERDICT_KEEP;
}

static int sweep_folder(struct sweep *s, const char *folder, enum verdict (*verdict_of)(struct sweep *, const char *),
			struct err *err)
{
	char path[SPOOL_PATH_SIZE], below[SPOOL_PATH_SIZE];
	DIR *dir;
	int rc = join_path(path, s->spool, folder, "", err);

	if (rc < 0)
		return rc;
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT || errno == ENOTDIR
			       ? 0
			       : err_set(err, errno, "spool: cannot open %s: %s", path, strerror(errno));
	for (struct dirent *e = readdir(dir); e && rc == 0; e = readdir(dir)) {
		enum verdict v = is_dot(e->d_name) ? VERDICT_KEEP : verdict_of(s, e->d_name);

		if (v == VERDICT_REMOVE) {
			int code = remove_at(dirfd(dir), e->d_name, &s->removed);

			if (code < 0)
				rc = err_set(err, -code, "spool: cannot remove %s/%s: %s", path, e->d_name, strerror(-code));
		} else if (v == VERDICT_UNKNOWN) {
			rc = orphans_set_aside(s->spool, e->d_name, err);
			s->orphans += rc == 0;
		} else if (v == VERDICT_DESCEND && (e->d_type == DT_DIR || e->d_type == DT_UNKNOWN)) {
			rc = join_path(below, folder, e->d_name, "", err);
			if (rc == 0)
				rc = sweep_folder(s, below, verdict_of, err);
		}
	}
	closedir(dir);
	return rc;
}

int spool_sweep(const char *spool, int (*row_of)(void *ctx, const char *file), void *ctx, struct err *err)
{
	struct sweep s = {.spool = spool, .row_of = row_of, .ctx = ctx};
	int rc = sweep_folder(&s, "incoming", verdict_of_incoming, err);

	if (rc == 0)
		rc = sweep_folder(&s, "instances", verdict_of_instance, err);
	if (rc == 0 && s.orphans > 0)
		rc = orphans_sync(spool, err);
	if (rc == 0)
		rc = sweep_folder(&s, "outbox", verdict_of_outbox, err);
	if (rc == 0)
		rc = sweep_folder(&s, "work", verdict_of_work, err);
	return rc < 0 ? rc : s.removed;
}
