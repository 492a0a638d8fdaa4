/* SPDX-License-Identifier: Apache-2.0 */
/* audit_queue.c - a file of message lines after a header that records how far they were sent.
 *
 * - The header is HEAD_BYTES of text: the offset of the first line that was not sent. Lines follow.
 * - Every access holds flock(): an append for one write, sending for one nonblocking send per line.
 * - When all lines are sent, the header is reset first, then the file is truncated: a crash in between sends lines twice, but
 *   loses none.
 * - A line that was written only partly (full disk, power failure) is removed by the next append, or skipped.
 * - No fsync: a line survives the death of every process, and the syslog daemon does not sync either. After a power failure,
 *   messages that can be derived from the journal (transfers of instances) are appended again, see audit_trail.h.
 */
#include "node/audit/audit_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/audit/audit_file.h"

#define HEAD_BYTES 20 /* "%019lld\n" */
#define QUEUE_LINE_MAX (64 << 10)
#define DRAIN_LINES 500 /* maximum number of lines sent while the lock is held */
#define LOCK_TRIES 2000 /* 2 s */

static int queue_path(const char *spool, char *ret, size_t size, struct err *err)
{
	if (snprintf(ret, size, "%s/audit/queue", spool) >= (int)size)
		return err_set(err, ENAMETOOLONG, "the path of the audit queue is too long below %.200s", spool);
	return 0;
}

static int write_head(int fd, off_t at)
{
	char head[HEAD_BYTES + 2]; /* one more byte, because the compiler's check includes a minus sign */

	snprintf(head, sizeof(head), "%019lld\n", (long long)at);
	return pwrite(fd, head, HEAD_BYTES, 0) == HEAD_BYTES ? 0 : -(errno ? errno : ENOSPC);
}

/* Return the offset of the first line not yet sent. If the header is not a number (damage): that of the first line. */
static off_t read_head(int fd, off_t size)
{
	char head[HEAD_BYTES + 1] = "", *end;
	long long at;

	if (pread(fd, head, HEAD_BYTES, 0) != HEAD_BYTES)
		return HEAD_BYTES;
	at = strtoll(head, &end, 10);
	return end == head || *end != '\n' || at < HEAD_BYTES || at > size ? HEAD_BYTES : (off_t)at;
}

static int cannot_open(const char *path, int code, struct err *err)
{
	struct stat st;

	if (code == EACCES && lstat(path, &st) == 0 && st.st_uid != geteuid())
		return err_set(err, code,
			       "audit queue %s: it belongs to user %ld, but this process is of user %ld: run chown %ld %s", path,
			       (long)st.st_uid, (long)geteuid(), (long)geteuid(), path);
	return err_set(err, code, "audit queue %s: %s", path, strerror(code));
}

/* Open and lock the queue; create its header if it is missing. */
static int open_queue(const char *spool, int *ret_fd, off_t *ret_size, struct err *err)
{
	char path[400];
	struct stat st;
	int fd, rc = queue_path(spool, path, sizeof(path), err);

	if (rc < 0)
		return rc;
	fd = audit_file_open(path, O_RDWR);
	if (fd < 0)
		return cannot_open(path, errno, err);
	if (fstat(fd, &st) == 0 && !S_ISREG(st.st_mode)) {
		close(fd);
		return err_set(err, ENOTSUP, "audit queue %s: it is not a regular file: remove it", path);
	}
	rc = audit_file_lock(fd, LOCK_TRIES);
	if (rc == 0 && fstat(fd, &st) < 0)
		rc = -errno;
	if (rc < 0)
		rc = err_set(err, -rc, "audit queue %s: %s", path, strerror(-rc));
	if (rc == 0 && st.st_size < HEAD_BYTES) {
		rc = write_head(fd, HEAD_BYTES);
		if (rc < 0)
			rc = err_set(err, -rc, "audit queue %s: %s", path, strerror(-rc));
		st.st_size = HEAD_BYTES;
	}
	if (rc < 0) {
		close(fd);
		return rc;
	}
	*ret_fd = fd;
	*ret_size = st.st_size;
	return 0;
}

int audit_queue_append(const char *spool, const char *line, size_t n, uint64_t most, struct err *err)
{
	char *text = malloc(n + 1);
	off_t size = 0;
	int fd = -1, rc;
	char last = '\n';

	if (!text)
		return err_set(err, ENOMEM, "no memory for a line of the audit queue");
	memcpy(text, line, n);
	text[n] = '\n';
	rc = open_queue(spool, &fd, &size, err);
	if (rc < 0)
		goto out;
	if (n + 1 > QUEUE_LINE_MAX || (uint64_t)size + n + 1 > most) {
		rc = err_set(err, EFBIG, "the audit queue would exceed its limit: it has %lld bytes, at most %llu",
			     (long long)size, (unsigned long long)most);
		goto out;
	}
	if (size > HEAD_BYTES && pread(fd, &last, 1, size - 1) == 1 && last != '\n')
		size += pwrite(fd, "\n", 1, size) == 1; /* end the incomplete line */
	errno = 0;
	if (pwrite(fd, text, n + 1, size) != (ssize_t)(n + 1)) {
		rc = err_set(err, errno ? errno : ENOSPC, "the audit queue cannot be written: %s",
			     strerror(errno ? errno : ENOSPC));
		if (ftruncate(fd, size) < 0)
			rc = -err->code; /* the written part is skipped by audit_queue_drain() */
	}
out:
	if (fd >= 0)
		close(fd);
	free(text);
	return rc;
}

int audit_queue_ready(const char *spool, struct err *err)
{
	off_t size = 0;
	int fd = -1, rc = open_queue(spool, &fd, &size, err);

	if (rc == 0)
		close(fd);
	return rc;
}

bool audit_queue_has_lines(const char *spool)
{
	char path[400];
	struct stat st;

	return queue_path(spool, path, sizeof(path), NULL) == 0 && stat(path, &st) == 0 && st.st_size > HEAD_BYTES;
}

struct drain {
	int (*send)(void *ctx, const char *line, size_t n);
	void *ctx;
	size_t sent, dropped;
};

/* Send the complete lines in `text`. Return the number of bytes sent or dropped; *ret_rc: the last result of send(). */
static size_t hand_over(struct drain *d, const char *text, size_t n, int *ret_rc)
{
	size_t done = 0;

	*ret_rc = 0;
	while (done < n && d->sent + d->dropped < DRAIN_LINES) {
		const char *line = text + done, *end = memchr(line, '\n', n - done);
		size_t length = end ? (size_t)(end - line) : 0;
		bool whole = length > 0 && line[0] == '<' && !memchr(line, '\0', length);

		if (!end)
			break;
		*ret_rc = whole ? d->send(d->ctx, line, length) : -EINVAL;
		if (*ret_rc < 0 && *ret_rc != -EMSGSIZE && *ret_rc != -EINVAL)
			break;
		d->sent += *ret_rc == 0;
		d->dropped += *ret_rc < 0;
		*ret_rc = 0;
		done += length + 1;
	}
	return done;
}

int audit_queue_drain(const char *spool, int (*send)(void *ctx, const char *line, size_t n), void *ctx, size_t *ret_sent,
		      size_t *ret_dropped, struct err *err)
{
	struct drain d = {.send = send, .ctx = ctx};
	char *text = malloc(QUEUE_LINE_MAX);
	off_t at, size = 0;
	int fd = -1, rc = text ? open_queue(spool, &fd, &size, err) : err_set(err, ENOMEM, "no memory for the audit queue");

	if (rc < 0)
		goto out;
	at = read_head(fd, size);
	while (rc == 0 && at < size && d.sent + d.dropped < DRAIN_LINES) {
		ssize_t n = pread(fd, text, QUEUE_LINE_MAX, at);
		size_t done = n > 0 ? hand_over(&d, text, (size_t)n, &rc) : 0;

		if (n <= 0)
			rc = err_set(err, n < 0 ? errno : EIO, "the audit queue cannot be read");
		if (done == 0 && rc == 0) { /* no line end: an incomplete line, or damage */
			done = (size_t)n;
			d.dropped++;
		}
		at += (off_t)done;
	}
	if (at >= size) {
		if (write_head(fd, HEAD_BYTES) < 0 || ftruncate(fd, HEAD_BYTES) < 0)
			rc = err_set(err, errno, "the audit queue cannot be emptied: %s", strerror(errno));
	} else if (write_head(fd, at) < 0) {
		rc = err_set(err, errno, "the audit queue cannot be written: %s", strerror(errno));
	}
	if (rc < 0 && err && !err->code)
		err_set(err, -rc, "%s", strerror(-rc));
out:
	if (fd >= 0)
		close(fd);
	free(text);
	*ret_sent = d.sent;
	*ret_dropped = d.dropped;
	return rc;
}
