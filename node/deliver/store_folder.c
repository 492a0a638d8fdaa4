/* SPDX-License-Identifier: Apache-2.0 */
/* store_folder.c - destinations of kind folder: files PATH/STUDY/SERIES/OBJECT.dcm, named by their UIDs.
 *
 * A file is complete or not there (node/base/atomic_file.h), and on disk before the object counts as stored. An object that is
 * stored again takes the place of its file: the UIDs of a result are those of what it was made of. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dicom/core/dataset.h"
#include "node/base/atomic_file.h"
#include "node/base/folder.h"
#include "node/deliver/destination.h"

#define PIECE ((size_t)1 << 20) /* bytes copied at a time */

static void describe_folder(const struct destination_conf *d, char *ret, size_t size)
{
	snprintf(ret, size, "files in %s", d->path);
}

static double longest_wait(const struct destination_conf *d)
{
	(void)d; /* a process without progress is ended by node.worker_timeout */
	return 0;
}

/* The folder must be there: below the mount point of a file system that is not mounted, it is not. */
static int check_folder(const struct destination_conf *d, struct err *err)
{
	struct stat st;

	if (stat(d->path, &st) < 0)
		return err_set(err, errno, "%s: %s", d->path, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return err_set(err, ENOTDIR, "%s is a file, not a folder", d->path);
	if (faccessat(AT_FDCWD, d->path, W_OK | X_OK, AT_EACCESS) < 0)
		return err_set(err, errno, "user %ld cannot create a file in %s: %s", (long)geteuid(), d->path, strerror(errno));
	return 0;
}

static int open_folder(const struct config *config, const struct destination_conf *d, const struct scu_context *contexts,
		       size_t n, void **ret_session, struct err *err)
{
	(void)config;
	(void)contexts;
	(void)n;
	*ret_session = (void *)d;
	return check_folder(d, err);
}

/* Append the UID of an attribute to a path. EBADMSG: it is none, and would be another place. */
static int append_uid(struct dicom_file *file, uint32_t tag, char *path, size_t size, struct err *err)
{
	char uid[DICOM_UID_SIZE] = "";
	size_t n = strlen(path);

	if (dicom_get_text(dicom_root(file), tag, uid, sizeof(uid), err) < 0)
		return -err->code;
	if (!uid[0] || uid[0] == '.' || uid[strspn(uid, "0123456789.")] || strstr(uid, ".."))
		return err_set(err, EBADMSG, "the result has the UID \"%s\" in (%04x,%04x), which is none", uid, tag >> 16,
			       tag & 0xffff);
	if ((size_t)snprintf(path + n, size - n, "/%s", uid) >= size - n)
		return err_set(err, ENAMETOOLONG, "%s/%s: too long", path, uid);
	return 0;
}

/* Write the path of the object's file, and make the folders that it is in. */
static int make_place(const char *root, const char *object, char *ret_path, size_t size, struct err *err)
{
	static const uint32_t folders[] = {DICOM_TAG(0x0020, 0x000D), DICOM_TAG(0x0020, 0x000E)};
	struct dicom_file *file = NULL;
	int ret = dicom_open(object, &file, err);

	snprintf(ret_path, size, "%s", root);
	for (size_t i = 0; ret >= 0 && i < sizeof(folders) / sizeof(folders[0]); i++) {
		ret = append_uid(file, folders[i], ret_path, size - 8, err);
		if (ret == 0 && mkdir(ret_path, 0777) < 0 && errno != EEXIST)
			ret = err_set(err, errno, "cannot create the folder %s: %s", ret_path, strerror(errno));
	}
	if (ret >= 0)
		ret = append_uid(file, DICOM_TAG(0x0008, 0x0018), ret_path, size - 8, err);
	if (ret >= 0)
		strcat(ret_path, ".dcm");
	dicom_close(file);
	return ret < 0 ? ret : 0;
}

static int copy_file(int from, const char *to, struct err *err)
{
	static char piece[PIECE]; /* a process delivers one object after the other */
	struct atomic_file *file = NULL;
	int ret = atomic_file_open(to, &file, err);
	ssize_t n;

	while (ret >= 0 && (n = read(from, piece, sizeof(piece))) != 0)
		if (n > 0)
			ret = atomic_file_write(file, piece, (size_t)n, err);
		else if (errno != EINTR)
			ret = err_set(err, errno, "cannot read the result: %s", strerror(errno));
	if (ret < 0) {
		atomic_file_abort(file);
		return ret;
	}
	return atomic_file_close(file, err);
}

/* The folders are new: their entries must be on disk, too. */
static int sync_folders(const char *root, const char *path, struct err *err)
{
	char folder[500];
	int ret = 0;

	snprintf(folder, sizeof(folder), "%s", path);
	while (ret >= 0 && strlen(folder) > strlen(root)) {
		*strrchr(folder, '/') = '\0';
		ret = folder_sync(folder, err);
	}
	return ret;
}

/* Would every object fail in the same way, not only those of one study? */
static bool fails_for_every_object(const struct destination_conf *d, int code)
{
	return code == ENOSPC || code == EDQUOT || code == EROFS || code == EIO || check_folder(d, NULL) < 0;
}

static void copy_object(void *session, const char *path, const char *sop_instance, struct store_result *ret)
{
	const struct destination_conf *d = session;
	struct err err = {0};
	char to[500];
	int rc, from = open(path, O_RDONLY | O_CLOEXEC);

	(void)sop_instance; /* the file has it */
	rc = from < 0 ? err_set(&err, errno, "cannot open %s: %s", path, strerror(errno)) : 0;
	if (rc == 0)
		rc = make_place(d->path, path, to, sizeof(to), &err);
	if (rc == 0)
		rc = copy_file(from, to, &err);
	if (rc >= 0)
		rc = sync_folders(d->path, to, &err);
	if (from >= 0)
		close(from);
	*ret = (struct store_result){.outcome = rc >= 0		      ? DELIVER_STORED
						: err.code == EBADMSG ? DELIVER_PERMANENT
								      : DELIVER_TRANSIENT,
				     .code = rc < 0 ? err.code : 0};
	if (ret->outcome == DELIVER_TRANSIENT)
		ret->failure = (struct destination_failure){.down = fails_for_every_object(d, err.code),
							    .rejected = deliver_needs_operator(err.code)};
	snprintf(ret->reason, sizeof(ret->reason), "%s", rc >= 0 ? "stored" : err.msg);
}

const struct destination_kind_actions destination_folder = {
	.verb = "copy",
	.describe = describe_folder,
	.longest_wait = longest_wait,
	.check = check_folder,
	.open = open_folder,
	.store = copy_object,
	.role = SANDBOX_FOLDER,
};
