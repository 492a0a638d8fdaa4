/* SPDX-License-Identifier: Apache-2.0 */
#include "node/store/pilot_secret.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include "node/base/folder.h"

#define BLOCKED UINT64_MAX /* highest number of a token, if none is accepted any more */

bool pilot_id_is_valid(const char *id)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	size_t n = strlen(id);

	return n > 0 && n < PILOT_ID_SIZE && strspn(id, allowed) == n;
}

bool pilot_secret_is_valid(const char *hex)
{
	return strlen(hex) == PILOT_SECRET_SIZE - 1 && strspn(hex, "0123456789abcdef") == PILOT_SECRET_SIZE - 1;
}

static int path_of(const char *spool, const char *id, const char *suffix, char ret_path[400], struct err *err)
{
	if (!pilot_id_is_valid(id))
		return err_set(err, EINVAL, "'%.70s' is no name of a pilot; allowed: 1 to 63 letters, digits, '-' and '_'", id);
	if (snprintf(ret_path, 400, "%s/pilots/%s%s", spool, id, suffix) >= 400)
		return err_set(err, ENAMETOOLONG, "the path of the spool %s is too long", spool);
	return 0;
}

static int write_all(int fd, const char *path, const char *text, struct err *err)
{
	size_t n = strlen(text);

	if (pwrite(fd, text, n, 0) != (ssize_t)n || fsync(fd) < 0)
		return err_set(err, errno ? errno : EIO, "cannot write %s: %s", path, strerror(errno));
	return 0;
}

int pilot_secret_create(const char *spool, const char *id, char ret_hex[PILOT_SECRET_SIZE], struct err *err)
{
	char folder[400], path[400], text[PILOT_SECRET_SIZE + 1];
	unsigned char bytes[32];
	int fd, ret = path_of(spool, id, "", path, err);

	snprintf(folder, sizeof(folder), "%s/pilots", spool);
	if (ret == 0)
		ret = folder_make(folder, err);
	if (ret < 0)
		return ret;
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return err_set(err, EIO, "no random bytes for a secret: %s", strerror(errno));
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	memcpy(ret_hex, text, PILOT_SECRET_SIZE);
	strcpy(text + PILOT_SECRET_SIZE - 1, "\n");
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_set(err, errno, "cannot create %s: %s", path, strerror(errno));
	ret = write_all(fd, path, text, err);
	if (close(fd) < 0 && ret == 0)
		ret = err_set(err, errno, "cannot write %s: %s", path, strerror(errno));
	if (ret == 0)
		ret = folder_sync(folder, err);
	if (ret < 0)
		unlink(path);
	return ret;
}

int pilot_secret_remove(const char *spool, const char *id, struct err *err)
{
	char path[400], used[400];
	int ret = path_of(spool, id, "", path, err);

	if (ret == 0)
		ret = path_of(spool, id, ".used", used, err);
	if (ret == 0 && unlink(path) < 0)
		ret = err_set(err, errno, "cannot remove %s: %s", path, strerror(errno));
	if (ret == 0) {
		unlink(used);
		*strrchr(path, '/') = '\0';
		ret = folder_sync(path, err);
	}
	return ret;
}

int pilot_secret_read(const char *spool, const char *id, char ret_hex[PILOT_SECRET_SIZE], struct err *err)
{
	char path[400], text[PILOT_SECRET_SIZE + 1] = "";
	int fd, ret = path_of(spool, id, "", path, NULL);
	ssize_t n = 0;

	if (ret < 0)
		return err_set(err, ENOENT, "'%.70s' is no name of a pilot", id);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_set(err, errno, "no secret of a pilot '%s': %s", id, strerror(errno));
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n == PILOT_SECRET_SIZE && text[n - 1] == '\n' ? n - 1 : 0] = '\0';
	if (!pilot_secret_is_valid(text))
		return err_set(err, EBADMSG, "%s has no secret; remove it and create another one", path);
	memcpy(ret_hex, text, PILOT_SECRET_SIZE);
	return 0;
}

/* Lock the file with the highest number and read it. Returns its descriptor; closing it unlocks it. */
static int open_used(const char *spool, const char *id, char ret_path[400], uint64_t *ret_last, struct err *err)
{
	char text[24] = "";
	int fd, ret = path_of(spool, id, ".used", ret_path, err);

	if (ret < 0)
		return ret;
	fd = open(ret_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_set(err, errno, "cannot open %s: %s", ret_path, strerror(errno));
	if (flock(fd, LOCK_EX) < 0 || pread(fd, text, sizeof(text) - 1, 0) < 0) {
		err_set(err, errno, "cannot read %s: %s", ret_path, strerror(errno));
		close(fd);
		return err ? -err->code : -EIO;
	}
	*ret_last = strtoull(text, NULL, 10);
	return fd;
}

static int write_used(int fd, const char *spool, const char *path, uint64_t number, bool is_new, struct err *err)
{
	char text[24], folder[400];
	int ret;

	snprintf(text, sizeof(text), "%020" PRIu64 "\n", number);
	ret = write_all(fd, path, text, err);
	if (ret < 0 || !is_new)
		return ret;
	snprintf(folder, sizeof(folder), "%.380s/pilots", spool);
	return folder_sync(folder, err);
}

int pilot_token_use(const char *spool, const char *id, uint64_t number, uint64_t *ret_last, struct err *err)
{
	char path[400];
	int fd = open_used(spool, id, path, ret_last, err), ret;

	if (fd < 0)
		return fd;
	if (*ret_last == BLOCKED)
		ret = err_set(
			err, EPERM,
			"pilot '%s' is blocked, because it returned a result that is not of its case: `tomonode pilot-token "
			"--remove %s`, then make another secret",
			id, id);
	else if (number <= *ret_last)
		ret = err_set(err, EALREADY,
			      "token %" PRIu64 " of pilot '%s' was used before, or is older than the last one, %" PRIu64, number,
			      id, *ret_last);
	else
		ret = write_used(fd, spool, path, number, *ret_last == 0, err);
	close(fd);
	return ret;
}

int pilot_block(const char *spool, const char *id, struct err *err)
{
	char path[400];
	uint64_t last;
	int fd = open_used(spool, id, path, &last, err), ret;

	if (fd < 0)
		return fd;
	ret = write_used(fd, spool, path, BLOCKED, last == 0, err);
	close(fd);
	return ret;
}

int pilot_blocked_count(const char *spool)
{
	char path[400], text[24];
	struct dirent *entry;
	int n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%.390s/pilots", spool);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		const char *dot = strrchr(entry->d_name, '.');
		int fd = dot && !strcmp(dot, ".used") ? openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
		ssize_t got = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

		text[got > 0 ? got : 0] = '\0';
		n += strtoull(text, NULL, 10) == BLOCKED;
		if (fd >= 0)
			close(fd);
	}
	if (dir)
		closedir(dir);
	return n;
}
