/* SPDX-License-Identifier: Apache-2.0 */
#include "node/step/step_files.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dicom/core/bulk.h"
#include "node/base/folder.h"

#define PIECE ((size_t)1 << 18)

struct walk {
	const struct step_conf *step;
	struct digest *seen;	   /* of what stat() says of all files */
	struct dicom_digest *text; /* NULL: their contents are not read */
	void *piece;		   /* [PIECE] */
	struct err *err;
};

static int check_owner(const struct walk *w, const char *path, const struct stat *st)
{
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return err_set(w->err, EBADMSG, "%s belongs to user %ld; needed: root, or user %ld of the node", path,
			       (long)st->st_uid, (long)geteuid());
	if (!S_ISLNK(st->st_mode) && (st->st_mode & (S_IWGRP | S_IWOTH)))
		return err_set(w->err, EBADMSG, "%s may be written by others (mode %o); needed: only by its owner", path,
			       (unsigned)st->st_mode & 07777);
	return 0;
}

/* Whoever may rename in a folder above can put another file in the place of one that was hashed. */
static int check_above(const struct walk *w, const char *path)
{
	char above[PATH_MAX], *slash;
	struct stat st;
	int rc = 0;

	snprintf(above, sizeof(above), "%s", path);
	while (rc == 0 && (slash = strrchr(above, '/')) && above[1]) {
		slash[slash == above] = '\0';
		if (stat(above, &st) < 0)
			rc = err_set(w->err, EBADMSG, "%s cannot be read: %s", above, strerror(errno));
		else if (st.st_uid != 0 && st.st_uid != geteuid())
			rc = err_set(w->err, EBADMSG, "%s, above %s, belongs to user %ld; needed: root, or user %ld of the node",
				     above, path, (long)st.st_uid, (long)geteuid());
		else if ((st.st_mode & S_IWOTH) && !(st.st_mode & S_ISVTX))
			rc = err_set(w->err, EBADMSG, "%s, above %s, may be written by everybody (mode %o)", above, path,
				     (unsigned)st.st_mode & 07777);
	}
	return rc;
}

/* Check the folders above a path, and those above what its links lead to. */
static int check_place(const struct walk *w, const char *path)
{
	char *real = realpath(path, NULL);
	int rc = real ? check_above(w, path) : err_set(w->err, EBADMSG, "%s cannot be read: %s", path, strerror(errno));

	if (rc == 0 && strcmp(real, path) != 0)
		rc = check_above(w, real);
	free(real);
	return rc;
}

static void note_seen(const struct walk *w, const char *path, const struct stat *st)
{
	const long long of[] = {(long long)st->st_dev,	       (long long)st->st_ino,	       (long long)st->st_size,
				(long long)st->st_mtim.tv_sec, (long long)st->st_mtim.tv_nsec, (long long)st->st_ctim.tv_sec,
				(long long)st->st_ctim.tv_nsec};

	digest_add(w->seen, path, strlen(path) + 1);
	digest_add(w->seen, of, sizeof(of));
}

static int hash_open(const struct walk *w, int fd, const char *path, char ret_hex[65])
{
	struct dicom_digest *d = dicom_digest_new();
	off_t at = 0;
	ssize_t n = -1;

	while (d && (n = pread(fd, w->piece, PIECE, at)) > 0) {
		dicom_digest_add(d, w->piece, (size_t)n);
		at += n;
	}
	if (n == 0)
		dicom_digest_hex(d, ret_hex);
	dicom_digest_free(d);
	return n == 0 ? 0 : err_set(w->err, EBADMSG, "%s cannot be read: %s", path, strerror(d ? errno : ENOMEM));
}

static void add_line(const struct walk *w, const char *what, const char *path)
{
	dicom_digest_add(w->text, what, strlen(what));
	dicom_digest_add(w->text, "  ", 2);
	dicom_digest_add(w->text, path, strlen(path));
	dicom_digest_add(w->text, "\n", 1);
}

static int add_file(const struct walk *w, const char *path)
{
	char hex[65];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), rc;

	if (fd < 0)
		return err_set(w->err, EBADMSG, "%s cannot be read: %s", path, strerror(errno));
	rc = hash_open(w, fd, path, hex);
	close(fd);
	if (rc == 0)
		add_line(w, hex, path);
	return rc;
}

static int add_link(const struct walk *w, const char *path)
{
	char what[PATH_MAX + 4] = "-> ";
	ssize_t n = readlink(path, what + 3, PATH_MAX);

	if (n < 0)
		return err_set(w->err, EBADMSG, "%s cannot be read: %s", path, strerror(errno));
	what[3 + n] = '\0';
	add_line(w, what, path);
	return 0;
}

static int visit_entry(const struct walk *w, const FTSENT *e)
{
	int rc;

	if (e->fts_info == FTS_DP)
		return 0;
	if (e->fts_info == FTS_NS || e->fts_info == FTS_DNR || e->fts_info == FTS_ERR)
		return err_set(w->err, EBADMSG, "%s cannot be read: %s", e->fts_path, strerror(e->fts_errno));
	rc = check_owner(w, e->fts_path, e->fts_statp);
	if (rc < 0 || e->fts_info == FTS_D)
		return rc;
	note_seen(w, e->fts_path, e->fts_statp);
	if (!w->text)
		return 0;
	if (e->fts_info == FTS_F)
		return add_file(w, e->fts_path);
	return e->fts_info == FTS_SL || e->fts_info == FTS_SLNONE ? add_link(w, e->fts_path) : 0; /* sockets: Landlock */
}

static int walk_path(const struct walk *w, const char *path)
{
	char *const paths[] = {(char *)path, NULL}; /* fts_open() only reads it */
	FTS *fts = folder_walk(paths);
	int rc = 0;

	if (!fts)
		return err_set(w->err, ENOMEM, "no memory for the files of step '%s'", w->step->name);
	for (FTSENT *e = fts_read(fts); rc == 0 && e; e = fts_read(fts))
		rc = visit_entry(w, e);
	fts_close(fts);
	return rc;
}

static int walk_all(struct walk *w, int fd, const char *program, char ret_seen[DIGEST_SIZE])
{
	struct stat st;
	int rc = fstat(fd, &st) == 0 && S_ISREG(st.st_mode)
			 ? check_owner(w, w->step->program, &st)
			 : err_set(w->err, EBADMSG, "%s is not a regular file", w->step->program);

	digest_begin(w->seen);
	if (rc == 0)
		rc = check_place(w, w->step->program);
	if (rc == 0)
		note_seen(w, w->step->program, &st);
	if (rc == 0 && w->text)
		add_line(w, program, w->step->program);
	for (size_t i = 0; rc == 0 && i < w->step->files.n; i++) {
		rc = check_place(w, w->step->files.name[i]);
		if (rc == 0)
			rc = walk_path(w, w->step->files.name[i]);
	}
	digest_end(w->seen, ret_seen);
	return rc;
}

/* Hash the contents; *io_seen is what stat() says before. */
static int hash_all(struct walk *w, int fd, struct step_files *io_seen)
{
	char program[65], after[DIGEST_SIZE];
	int rc = hash_open(w, fd, w->step->program, program);

	w->text = rc == 0 ? dicom_digest_new() : NULL;
	if (rc == 0 && !w->text)
		rc = err_set(w->err, ENOMEM, "no memory for the digest of step '%s'", w->step->name);
	if (rc == 0)
		rc = walk_all(w, fd, program, after);
	if (rc == 0 && strcmp(after, io_seen->seen) != 0)
		rc = err_set(w->err, EBADMSG, "its files change while they are read");
	if (rc == 0) {
		dicom_digest_hex(w->text, io_seen->sha256);
		if (w->step->files.n == 0)
			memcpy(io_seen->sha256, program, sizeof(program));
	}
	w->text = dicom_digest_free(w->text);
	return rc;
}

static int check_files(struct walk *w, int fd, struct step_files *io_seen)
{
	char now[DIGEST_SIZE];
	int rc = walk_all(w, fd, "", now);

	if (rc == 0 && strcmp(now, io_seen->seen) != 0) {
		memcpy(io_seen->seen, now, sizeof(now));
		rc = hash_all(w, fd, io_seen);
		if (rc < 0)
			io_seen->seen[0] = '\0';
	}
	if (rc == 0 && strcmp(io_seen->sha256, w->step->sha256) != 0)
		rc = err_set(w->err, EBADMSG, "the SHA-256 of its program and files is %s; key 'sha256' says %s", io_seen->sha256,
			     w->step->sha256);
	return rc;
}

int step_files_open(const struct step_conf *s, struct step_files *io_seen, int *ret_fd, struct err *err)
{
	struct walk w = {.step = s, .seen = digest_create(), .piece = malloc(PIECE), .err = err};
	int fd = open(s->program, O_RDONLY | O_NOCTTY | O_NONBLOCK), rc;

	if (fd < 0)
		rc = err_set(err, EBADMSG, "its program %s cannot be opened: %s", s->program, strerror(errno));
	else if (!w.seen || !w.piece)
		rc = err_set(err, ENOMEM, "no memory for the files of step '%s'", s->name);
	else
		rc = check_files(&w, fd, io_seen);
	digest_free(w.seen);
	free(w.piece);
	if (rc == 0)
		*ret_fd = fd;
	else if (fd >= 0)
		close(fd);
	return rc;
}
