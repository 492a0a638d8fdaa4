/* SPDX-License-Identifier: Apache-2.0 */
#include "node/cluster/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/base/folder.h"

static int start_file(struct transfer_out *t, struct link *l, struct err *err)
{
	struct wire_message m = {.kind = WIRE_FILE, .index = (int64_t)t->index, .offset = t->offsets[t->index]};
	char path[500];
	int ret = t->file(t->ctx, t->index, path, sizeof(path), &t->bytes, err);

	if (ret < 0)
		return ret;
	t->at = m.offset;
	if (t->at >= t->bytes) {
		t->index++;
		return 0;
	}
	t->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (t->fd < 0)
		return err_set(err, errno, "cannot open %s: %s", file_name(path), strerror(errno));
	return link_send(l, &m, err);
}

static int send_piece(struct transfer_out *t, struct link *l, struct err *err)
{
	int64_t left = t->bytes - t->at;
	ssize_t n = pread(t->fd, t->buffer, left < WIRE_DATA_MAX ? (size_t)left : WIRE_DATA_MAX, t->at);

	if (n < 0 && errno == EINTR)
		return 0;
	if (n <= 0)
		return err_set(err, n < 0 ? errno : EBADMSG, "file %zu of the case cannot be read to its end: %s", t->index + 1,
			       n < 0 ? strerror(errno) : "it is too short");
	t->at += n;
	if (t->at == t->bytes) {
		close(t->fd);
		t->fd = -1;
		t->index++;
	}
	return link_send_data(l, t->buffer, (size_t)n, err);
}

int transfer_out_step(struct transfer_out *t, struct link *l, struct err *err)
{
	int ret = 0;

	if (!t->buffer)
		t->buffer = malloc(WIRE_DATA_MAX);
	if (!t->buffer)
		return err_set(err, ENOMEM, "no memory to send files");
	while (ret == 0 && t->index < t->n && link_queued(l) < LINK_QUEUE)
		ret = t->fd < 0 ? start_file(t, l, err) : send_piece(t, l, err);
	return ret < 0 ? ret : t->index == t->n;
}

void transfer_out_end(struct transfer_out *t)
{
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
	free(t->buffer);
	t->buffer = NULL;
}

int transfer_in_begin(struct transfer_in *t, const char *path, int64_t offset, int64_t bytes, struct err *err)
{
	struct stat st;

	transfer_in_end(t);
	t->fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (t->fd < 0)
		return err_set(err, errno, "cannot create %s: %s", path, strerror(errno));
	if (fstat(t->fd, &st) < 0 || st.st_size < offset || offset > bytes)
		return err_set(err, EBADMSG, "data of %s from byte %lld on, but it has fewer", file_name(path),
			       (long long)offset);
	if (ftruncate(t->fd, offset) < 0 || lseek(t->fd, offset, SEEK_SET) < 0)
		return err_set(err, errno, "cannot write %s: %s", path, strerror(errno));
	t->at = offset;
	t->bytes = bytes;
	if (offset < bytes)
		return 0;
	transfer_in_end(t);
	return 1;
}

int transfer_in_data(struct transfer_in *t, const void *data, size_t n, bool sync, struct err *err)
{
	const char *from = data;

	if (t->fd < 0 || (int64_t)n > t->bytes - t->at)
		return err_set(err, EBADMSG, "data that belong to no file");
	while (n > 0) {
		ssize_t done = write(t->fd, from, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return err_set(err, errno ? errno : EIO, "cannot write a received file: %s", strerror(errno));
		from += done;
		n -= (size_t)done;
		t->at += done;
	}
	if (t->at < t->bytes)
		return 0;
	if (sync && fsync(t->fd) < 0)
		return err_set(err, errno, "cannot write a received file: %s", strerror(errno));
	transfer_in_end(t);
	return 1;
}

void transfer_in_end(struct transfer_in *t)
{
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
}

int transfer_have(transfer_file *file, void *ctx, size_t n, const char *suffix, int64_t **ret_offsets, size_t *ret_missing,
		  struct err *err)
{
	int64_t *offsets = calloc(n ? n : 1, sizeof(offsets[0])), bytes = 0;
	size_t missing = 0;
	int ret = offsets ? 0 : err_set(err, ENOMEM, "no memory for %zu files", n);

	for (size_t i = 0; ret == 0 && i < n; i++) {
		char path[500], full[520];
		struct stat st;

		ret = file(ctx, i, path, sizeof(path), &bytes, err);
		snprintf(full, sizeof(full), "%s%s", path, suffix);
		offsets[i] = ret == 0 && lstat(full, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= bytes ? st.st_size : 0;
		missing += offsets[i] != bytes;
	}
	if (ret < 0) {
		free(offsets);
		return ret;
	}
	*ret_offsets = offsets;
	*ret_missing = missing;
	return 0;
}
