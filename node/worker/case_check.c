/* SPDX-License-Identifier: Apache-2.0 */
/* case_check.c - compare the files of a case with the digests that the journal recorded when they were received.
 *
 * - The digest is of the data set as received, so that it covers pixels and header. The part of the file before it (preamble and
 *   group 0002, PS3.10 7.1), which the node wrote, is compared with the journal row: class, instance, transfer syntax.
 * - The recorded file length is not compared, because a file that another sender sent again may have a longer group 0002.
 * - The files are read once more for this, and are then in the page cache when the reconstruction reads them.
 */
#include "node/worker/case_check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/base/digest.h"
#include "node/base/thread_pool.h"

#define HEAD_MAX 2048	   /* bytes read for preamble, "DICM" and group 0002; the node writes at most 1 KiB of them */
#define META_AT 132	   /* offset after the preamble and "DICM" */
#define META_FIRST 12	   /* bytes of (0002,0000), which contains the length of the following group */
#define FILES_AT_A_TIME 64 /* number of files between two checks for cancellation */

/* ---- one file ---- */

static unsigned get16(const uint8_t *p)
{
	return p[0] | (unsigned)p[1] << 8;
}

/* Copy the value of a UI element of group 0002 without its padding; false: the element is missing. */
static bool find_uid(const uint8_t *at, const uint8_t *end, unsigned element, char *ret, size_t size)
{
	while (end - at >= 12) { /* shortest element with a value */
		bool is_long = !memcmp(at + 4, "OB", 2) || !memcmp(at + 4, "UN", 2);
		size_t head = is_long ? 12 : 8;
		size_t n = is_long ? get16(at + 8) | (size_t)get16(at + 10) << 16 : get16(at + 6);

		if (get16(at) != 2 || n > (size_t)(end - at) - head)
			return false;
		if (get16(at + 2) == element && !memcmp(at + 4, "UI", 2) && n < size) {
			memcpy(ret, at + head, n);
			ret[n] = '\0';
			return true;
		}
		at += head + n;
	}
	return false;
}

/* Return true if the bytes before the data set are those that the node wrote; ret_length: their number. */
static bool head_is_sound(const uint8_t *head, size_t n, const struct instance_row *row, off_t *ret_length)
{
	const struct {
		unsigned element;
		const char *is;
	} wanted[] = {{0x0002, row->sop_class}, {0x0003, row->sop_instance}, {0x0010, row->transfer_syntax}};
	static const uint8_t first[] = {0x02, 0x00, 0x00, 0x00, 'U', 'L', 0x04, 0x00};
	size_t group;
	char uid[65];

	if (n < META_AT + META_FIRST || memcmp(head + META_AT - 4, "DICM", 4) != 0 ||
	    memcmp(head + META_AT, first, sizeof(first)) != 0)
		return false;
	group = get16(head + META_AT + 8) | (size_t)get16(head + META_AT + 10) << 16;
	if (group > n - META_AT - META_FIRST)
		return false;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (!find_uid(head + META_AT + META_FIRST, head + META_AT + META_FIRST + group, wanted[i].element, uid,
			      sizeof(uid)) ||
		    strcmp(uid, wanted[i].is) != 0)
			return false;
	*ret_length = (off_t)(META_AT + META_FIRST + group);
	return true;
}

static int refuse_unreadable(const struct instance_row *row, int code, struct err *err)
{
	return err_set(err, digest_error_is_transient(code) ? code : EBADMSG, "%s cannot be read: %s", row->file, strerror(code));
}

static ssize_t read_head(int fd, uint8_t *head)
{
	size_t n = 0;
	ssize_t got;

	while (n < HEAD_MAX && (got = read(fd, head + n, HEAD_MAX - n)) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		n += (size_t)got;
	}
	return (ssize_t)n;
}

static int check_open_file(int fd, const struct instance_row *row, bool (*stopped)(void *ctx), void *ctx, struct err *err)
{
	uint8_t head[HEAD_MAX];
	char digest[DIGEST_SIZE];
	ssize_t n = read_head(fd, head);
	struct err why = {0};
	off_t length;

	if (n < 0)
		return refuse_unreadable(row, errno, err);
	if (!head_is_sound(head, (size_t)n, row, &length))
		return err_set(err, EBADMSG, "the file header of %s differs from the one that was written", row->file);
	if (lseek(fd, length, SEEK_SET) < 0)
		return refuse_unreadable(row, errno, err);
	if (digest_rest(fd, stopped, ctx, digest, &why) < 0)
		return refuse_unreadable(row, why.code, err);
	if (strcmp(digest, row->digest) != 0)
		return err_set(err, EBADMSG, "the bytes of %s differ from those that were received", row->file);
	return 0;
}

int case_check_file(const char *spool, const struct instance_row *row, bool (*stopped)(void *ctx), void *ctx, struct err *err)
{
	char path[500];
	int fd, ret;

	if (snprintf(path, sizeof(path), "%s/%s", spool, row->file) >= (int)sizeof(path))
		return err_set(err, ENAMETOOLONG, "the path of %s in the spool is too long", row->file);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 && errno == ENOENT)
		return err_set(err, EBADMSG, "%s is no longer in the spool", row->file);
	if (fd < 0)
		return refuse_unreadable(row, errno, err);
	ret = check_open_file(fd, row, stopped, ctx, err);
	close(fd);
	return ret;
}

/* ---- all files of a case ---- */

struct check {
	const char *folder;
	const struct case_order *order;
	const struct monitor *monitor;
	struct err *found; /* of each file */
	size_t first;
};

static void check_part(void *ctx, size_t part)
{
	struct check *c = ctx;
	size_t i = c->first + part;

	case_check_file(c->folder, &c->order->files[i], c->monitor ? c->monitor->cancelled : NULL,
			c->monitor ? c->monitor->ctx : NULL, &c->found[i]);
}

static int check_all(struct check *c, struct err *err)
{
	struct thread_pool *pool = NULL;
	size_t n = c->order->n_files;
	int ret = thread_pool_create(n < 2 ? 1 : 0, &pool, err);

	for (c->first = 0; ret == 0 && c->first < n; c->first += FILES_AT_A_TIME) {
		monitor_progress(c->monitor, "open", 0);
		if (monitor_cancelled(c->monitor))
			ret = err_set(err, ECANCELED, "cancelled while the files were checked");
		else
			thread_pool_run(pool, n - c->first < FILES_AT_A_TIME ? n - c->first : FILES_AT_A_TIME, check_part, c);
	}
	thread_pool_free(pool);
	return ret;
}

/* Set err to the sentence with which the case is held: the damage of one file, or the number of damaged files, and what to do. */
static int describe_damage(const struct check *c, size_t damaged, const struct err *first, struct err *err)
{
	char which[80] = "";

	if (damaged > 1)
		snprintf(which, sizeof(which), "%zu of %zu files are damaged, the first: ", damaged, c->order->n_files);
	return err_set(err, EBADMSG, "%s%s: send the exam again; the case then continues automatically", which, first->msg);
}

static int evaluate_files(const struct check *c, size_t *ret_damaged, struct err *err)
{
	const struct err *first = NULL;
	size_t damaged = 0;

	for (size_t i = 0; i < c->order->n_files; i++) {
		const struct err *found = &c->found[i];

		if (found->code && found->code != EBADMSG)
			return err_set(err, found->code, "%s", found->msg);
		first = found->code && !first ? found : first;
		damaged += found->code != 0;
	}
	*ret_damaged = damaged;
	return damaged ? describe_damage(c, damaged, first, err) : 0;
}

static int check_files(struct check *c, struct case_check_report *ret_report, struct err *err)
{
	size_t n = c->order->n_files;
	double begun = clock_seconds();
	int ret;

	ret_report->damaged = 0;
	c->found = calloc(n ? n : 1, sizeof(c->found[0]));
	ret = c->found ? check_all(c, err) : err_set(err, ENOMEM, "no memory for %zu files", n);
	if (ret == 0)
		ret = evaluate_files(c, &ret_report->damaged, err);
	ret_report->files = n;
	ret_report->seconds = clock_seconds() - begun;
	if (ret == -ENOMEM) { /* no memory for these lists: temporary, unlike a plan that does not fit */
		if (err)
			err->code = EAGAIN;
		ret = -EAGAIN;
	}
	return ret;
}

int case_check_files(const char *folder, const struct case_order *order, const struct monitor *monitor,
		     struct case_check_report *ret_report, struct err *err)
{
	struct check c = {.folder = folder, .order = order, .monitor = monitor};
	int ret = check_files(&c, ret_report, err);

	free(c.found);
	return ret;
}

int case_check_forget(struct journal *j, const struct case_order *order, struct err *err)
{
	int64_t marked = journal_count_damaged(j, order->job, err);
	int ret = marked < 0 ? (int)marked : 0;

	for (size_t i = 0; ret == 0 && marked > 0 && i < order->n_files; i++)
		ret = journal_mark_intact(j, order->files[i].id, err);
	return ret;
}

int case_check(struct journal *j, const char *spool, const struct case_order *order, double now, const struct monitor *monitor,
	       struct case_check_report *ret_report, bool *ret_journal, struct err *err)
{
	struct check c = {.folder = spool, .order = order, .monitor = monitor};
	int ret = case_check_forget(j, order, err), marked = 0;

	*ret_journal = ret < 0;
	if (ret == 0)
		ret = check_files(&c, ret_report, err);
	for (size_t i = 0; !*ret_journal && ret == -EBADMSG && marked == 0 && i < order->n_files; i++)
		marked = c.found[i].code ? journal_mark_damaged(j, order->files[i].id, now, err) : 0;
	free(c.found);
	*ret_journal = *ret_journal || marked < 0;
	return marked < 0 ? marked : ret;
}
