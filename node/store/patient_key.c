/* SPDX-License-Identifier: Apache-2.0 */
#include "node/store/patient_key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/base/folder.h"

#define PATH_SIZE 320

static void key_path(const char *spool, const char *suffix, char ret_path[PATH_SIZE])
{
	snprintf(ret_path, PATH_SIZE, "%s/patient.key%s", spool, suffix);
}

int patient_key_read(const char *spool, uint8_t ret_key[PATIENT_KEY_BYTES], struct err *err)
{
	uint8_t bytes[PATIENT_KEY_BYTES + 1];
	char path[PATH_SIZE];
	ssize_t n;
	int fd;

	key_path(spool, "", path);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return err_set(err, errno, "cannot open %s: %s", path, strerror(errno));
	n = read(fd, bytes, sizeof(bytes));
	close(fd);
	if (n != PATIENT_KEY_BYTES)
		return err_set(err, EBADMSG, "%s is not %d bytes long", path, PATIENT_KEY_BYTES);
	memcpy(ret_key, bytes, PATIENT_KEY_BYTES);
	return 0;
}

static int write_key(const char *part, const uint8_t *key)
{
	int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600), code = 0;

	if (fd < 0)
		return errno;
	errno = 0;
	if (fchmod(fd, 0600) < 0 || write(fd, key, PATIENT_KEY_BYTES) != PATIENT_KEY_BYTES || fsync(fd) < 0)
		code = errno ? errno : ENOSPC;
	close(fd);
	return code;
}

int patient_key_create(const char *spool, bool *ret_created, struct err *err)
{
	uint8_t key[PATIENT_KEY_BYTES];
	char path[PATH_SIZE], part[PATH_SIZE];
	int code = 0;

	*ret_created = false;
	if (patient_key_read(spool, key, NULL) == 0)
		return 0;
	key_path(spool, "", path);
	key_path(spool, ".part", part);
	if (getrandom(key, sizeof(key), 0) != (ssize_t)sizeof(key))
		code = EIO;
	if (!code)
		code = write_key(part, key);
	if (!code && rename(part, path) < 0)
		code = errno;
	if (!code)
		code = -folder_sync(spool, NULL);
	if (code)
		return err_set(err, code, "cannot write %s: %s", path, strerror(code));
	*ret_created = true;
	return 0;
}
