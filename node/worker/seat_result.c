/* SPDX-License-Identifier: Apache-2.0 */
/* seat_result.c - fetch and verify the result that a pilot reports.
 *
 * - An object is received as NAME.part, compared with its digest, and renamed: what the outbox has under its name is complete.
 * - Before the rename the headers of all objects are compared with the case (node/worker/seat_check.h). A result that is not
 *   of the case, that has names or sizes that no result can have, is rejected: the case goes to another device, and the pilot is
 *   blocked (pilot_block()), because no pilot in order returns one.
 * - A result is only fetched if the disk has room for it besides node.reserve. The folder never has files of two results.
 * - In a shared spool the pilot can write without limits: there it is trusted like the users of that file system.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/order.h"
#include "node/base/digest.h"
#include "node/base/folder.h"
#include "node/base/log.h"
#include "node/store/spool.h"
#include "node/worker/seat_check.h"
#include "node/worker/seat_internal.h"

#define FETCHES_MAX 2  /* attempts to get an object whose digest fits */
#define RESULT_RATIO 3 /* objects of a result / node.max_result: beside the slices there are volumes made of them */
#define HEADER_MAX ((uint64_t)1 << 20) /* bytes of an object that are not pixels */
#define PART ".part"

static int object_path(void *ctx, size_t i, char *ret_path, size_t size, int64_t *ret_bytes, struct err *err)
{
	const struct seat_case *c = ctx;
	const char *digest, *name = pilot_case_object(c->outcome.body, i, ret_bytes, &digest);

	if (snprintf(ret_path, size, "%s/%s", c->out_dir, name) >= (int)size)
		return err_set(err, ENAMETOOLONG, "the path of %s is too long", name);
	return 0;
}

static bool is_shared(const struct seat_case *c)
{
	return c->seat->process.config->cluster.shared_spool;
}

/* ---- limits ---- */

static int reject_result(struct seat_case *c, const struct err *why)
{
	char text[600];

	snprintf(text, sizeof(text), "the result of pilot %s is rejected: %s", c->seat->hello.name, why->msg);
	c->seat->rejected = true;
	seat_end_case(c, EHWPOISON, text);
	return 0;
}

/* The node, not the pilot, has no room or cannot write: the case is tried again later. */
static int end_unwritten(struct seat_case *c, struct err *err)
{
	struct err why = *err;

	seat_end_case(c, why.code, why.msg);
	return seat_cancel(c->seat, c->order.order.job, c->order.order.attempt, err);
}

static int check_size(const struct seat_case *c, uint64_t bytes, struct err *err)
{
	double allowed = RESULT_RATIO * (double)c->seat->process.config->node.max_result + (double)(c->n_objects * HEADER_MAX);

	if (c->seat->process.config->node.max_result == 0 || (double)bytes <= allowed)
		return 0;
	return err_set(err, EBADMSG, "its %zu objects have %.0f MB; with this node.max_result they may have %.0f MB",
		       c->n_objects, (double)bytes / 1e6, allowed / 1e6);
}

static int check_room(const struct seat_case *c, uint64_t missing, struct err *err)
{
	uint64_t left = spool_free_bytes(c->spool), reserve = (uint64_t)c->seat->process.config->node.reserve;

	if (left >= reserve && missing <= left - reserve)
		return 0;
	return err_set(err, ENOSPC,
		       "%.0f MB of the result are to be received; the spool has %.0f MB of free space, of which node.reserve "
		       "keeps %.0f MB",
		       (double)missing / 1e6, (double)left / 1e6, (double)reserve / 1e6);
}

static bool is_part_of(const char *file, const char *const *names, size_t n)
{
	size_t length = strlen(file), end = strlen(PART);
	char name[256], *key = name;

	if (length <= end || length >= sizeof(name) || strcmp(file + length - end, PART) != 0)
		return false;
	snprintf(name, sizeof(name), "%.*s", (int)(length - end), file);
	return bsearch(&key, names, n, sizeof(names[0]), order_texts);
}

/* Remove what an earlier connection of the pilot has left and this result does not have. */
static int prune_folder(const struct seat_case *c, struct err *err)
{
	const char **names = calloc(c->n_objects, sizeof(names[0])), *digest;
	DIR *dir = names ? opendir(c->out_dir) : NULL;
	struct dirent *entry;
	int64_t bytes;

	for (size_t i = 0; dir && i < c->n_objects; i++)
		names[i] = pilot_case_object(c->outcome.body, i, &bytes, &digest);
	if (dir)
		qsort(names, c->n_objects, sizeof(names[0]), order_texts);
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && !is_part_of(entry->d_name, names, c->n_objects))
			unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	free(names);
	return dir ? 0 : err_set(err, EAGAIN, "cannot list %s", c->out_dir);
}

/* ---- verify ---- */

/* Sync the objects that an earlier connection received completely: it may have ended before they were on disk. */
static int sync_complete(const struct seat_case *c, const int64_t *offsets, struct err *err)
{
	int ret = 0;

	for (size_t i = 0; ret == 0 && i < c->n_objects; i++) {
		char path[500], part[520];
		int64_t bytes;
		int fd;

		ret = object_path((void *)c, i, path, sizeof(path), &bytes, err);
		if (ret < 0 || offsets[i] == 0 || offsets[i] < bytes)
			continue;
		snprintf(part, sizeof(part), "%s" PART, path);
		fd = open(part, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (fd < 0 || fsync(fd) < 0)
			ret = err_set(err, errno, "cannot sync %s: %s", part, strerror(errno));
		if (fd >= 0)
			close(fd);
	}
	return ret;
}

static int ask_for_objects(struct seat_case *c, struct err *err)
{
	struct wire_message m = {
		.kind = WIRE_HAVE, .job = c->outcome.job, .attempt = c->outcome.attempt, .n_offsets = c->n_objects};
	uint64_t missing = c->result_bytes;
	int ret = transfer_have(object_path, c, c->n_objects, PART, &m.offsets, &c->missing, err);

	if (ret < 0)
		return ret;
	for (size_t i = 0; i < m.n_offsets; i++)
		missing -= (uint64_t)m.offsets[i];
	if (sync_complete(c, m.offsets, err) < 0 || (c->missing > 0 && check_room(c, missing, err) < 0))
		ret = end_unwritten(c, err);
	else if (c->missing > 0)
		ret = link_send(c->seat->link, &m, err);
	free(m.offsets);
	return ret < 0 ? ret : !c->done && c->missing == 0;
}

/* In a shared spool the pilot has written the files: they must be files of the reported size. */
static int check_files(const struct seat_case *c, const char *folder, struct err *err)
{
	for (size_t i = 0; i < c->n_objects; i++) {
		int64_t bytes;
		const char *digest, *name = pilot_case_object(c->outcome.body, i, &bytes, &digest);
		char path[520];
		struct stat st;

		snprintf(path, sizeof(path), "%.350s/%.130s", folder, name);
		if (lstat(path, &st) < 0)
			return err_set(err, EIO, "the object %s is not in the spool: %s", name, strerror(errno));
		if (!S_ISREG(st.st_mode) || st.st_size != bytes)
			return err_set(err, EBADMSG, "the object %s is no file of %lld bytes, as reported", name,
				       (long long)bytes);
	}
	return 0;
}

/* Compare the received files with the digests in the outcome; remove those that differ. 0: all are as they should be; EIO: some
 * differ; another error: a file could not be read. */
static int verify_files(struct seat_case *c, const char *folder, const char *suffix, struct err *err)
{
	size_t n = c->n_objects;
	char(*names)[520] = calloc(n, sizeof(names[0]));
	char(*hex)[DIGEST_SIZE] = calloc(n, sizeof(hex[0]));
	const char **paths = calloc(n, sizeof(paths[0]));
	int *codes = calloc(n, sizeof(codes[0]));
	int ret = names && hex && paths && codes ? 0 : err_set(err, EAGAIN, "no memory for %zu digests", n);

	for (size_t i = 0; ret == 0 && i < n; i++) {
		int64_t bytes;
		const char *digest, *name = pilot_case_object(c->outcome.body, i, &bytes, &digest);

		snprintf(names[i], sizeof(names[0]), "%.350s/%.130s%s", folder, name, suffix);
		paths[i] = names[i];
	}
	if (ret == 0)
		ret = digest_files(paths, n, 0, hex, codes, err);
	for (size_t i = 0, read = ret >= 0 ? n : 0; i < read; i++) {
		int64_t bytes;
		const char *digest, *name = pilot_case_object(c->outcome.body, i, &bytes, &digest);

		if (codes[i] == 0 && !strcmp(hex[i], digest))
			continue;
		if (digest_error_is_transient(codes[i])) {
			ret = err_set(err, codes[i], "the object %s of the result cannot be read: %s", name, strerror(codes[i]));
			break;
		}
		unlink(paths[i]);
		ret = err_set(err, EIO, "the object %s of pilot %s differs from its digest", name, c->seat->hello.name);
	}
	free(names);
	free(hex);
	free(paths);
	free(codes);
	return ret;
}

static int take_objects(struct seat_case *c, const char *folder, const char *suffix, struct err *err)
{
	int ret = 0;

	for (size_t i = 0; ret == 0 && i < c->n_objects; i++) {
		char from[520], to[500];
		int64_t bytes;
		const char *digest, *name = pilot_case_object(c->outcome.body, i, &bytes, &digest);

		snprintf(from, sizeof(from), "%.350s/%.130s%s", folder, name, suffix);
		snprintf(to, sizeof(to), "%.350s/%.130s", c->out_dir, name);
		if (rename(from, to) < 0)
			ret = err_set(err, errno, "cannot rename %s: %s", from, strerror(errno));
	}
	return ret < 0 ? ret : folder_sync(c->out_dir, err);
}

/* All objects are there: in the folder of the attempt in a shared spool, else as .part in the outbox. */
static int finish_result(struct seat_case *c, struct err *err)
{
	const char *suffix = is_shared(c) ? "" : PART;
	const struct case_order *order = &c->order.order;
	char folder[400];
	int ret = 0;

	if (is_shared(c))
		ret = pilot_case_path(c->spool, order->job, order->attempt, "", folder, sizeof(folder), err);
	else
		snprintf(folder, sizeof(folder), "%s", c->out_dir);
	if (ret == 0 && is_shared(c))
		ret = check_files(c, folder, err);
	if (ret == 0)
		ret = verify_files(c, folder, suffix, err);
	if (ret == -EIO && !is_shared(c) && ++c->fetches < FETCHES_MAX) {
		log_event(LOG_WARNING, "object-fetched-again", "job=%lld reason=%s", (long long)order->job, log_quote(err->msg));
		return ask_for_objects(c, err);
	}
	if (ret == 0)
		ret = seat_check_result(c->seat->process.journal, c->spool, order, c->outcome.body, folder, suffix, err);
	if (ret == 0)
		ret = take_objects(c, folder, suffix, err);
	if (ret == 0)
		c->result->detail = json_incref(c->outcome.body);
	if (is_shared(c))
		folder_remove(folder, NULL);
	if (ret == -EBADMSG)
		return reject_result(c, err);
	seat_end_case(c, ret < 0 ? err->code : 0, err->msg);
	return 0;
}

/* An object is complete: finish if all are. */
static int on_complete(struct seat_case *c, struct err *err)
{
	int64_t *offsets = NULL;
	int ret;

	if (c->missing > 1) {
		c->missing--;
		return 0;
	}
	ret = transfer_have(object_path, c, c->n_objects, PART, &offsets, &c->missing, err);
	free(offsets);
	return ret == 0 && c->missing == 0 ? finish_result(c, err) : ret;
}

static int on_result(struct seat_case *c, struct err *err)
{
	int64_t n = pilot_case_objects(c->outcome.body, c->outcome.job, &c->result_bytes, err);
	int ret = n < 0 ? (int)n : 0;

	c->n_objects = n < 0 ? 0 : (size_t)n;
	if (ret == 0)
		ret = check_size(c, c->result_bytes, err);
	if (ret == -EBADMSG)
		return reject_result(c, err);
	if (ret == 0 && !is_shared(c))
		ret = prune_folder(c, err);
	if (ret < 0) {
		seat_end_case(c, err->code, err->msg);
		return 0;
	}
	ret = is_shared(c) ? 1 : ask_for_objects(c, err);
	return ret == 1 ? finish_result(c, err) : ret;
}

/* ---- messages ---- */

int seat_on_outcome(struct seat_case *c, struct wire_message *m, struct err *err)
{
	char text[600];

	if (m->job != c->order.order.job || m->attempt != c->order.order.attempt) {
		log_event(LOG_WARNING, "late-outcome-dropped", "pilot=%s job=%lld attempt=%lld", log_quote(c->seat->hello.name),
			  (long long)m->job, (long long)m->attempt);
		return 0;
	}
	wire_clear(&c->outcome);
	c->outcome = *m;
	*m = (struct wire_message){0};
	c->result->damaged = (size_t)c->outcome.damaged;
	if (c->outcome.code == CASE_LOST) /* an error of the pilot's machine; this code says that the pilot is lost */
		c->outcome.code = EIO;
	if (c->outcome.code) {
		bool space = c->outcome.code == ENOSPC || c->outcome.code == EDQUOT;

		snprintf(text, sizeof(text), "%s%s%s%s", space ? "on pilot " : "", space ? c->seat->hello.name : "",
			 space ? ": " : "", c->outcome.text);
		seat_end_case(c, (int)c->outcome.code, text);
		return 0;
	}
	return on_result(c, err);
}

int seat_on_file(struct seat_case *c, const struct wire_message *m, struct err *err)
{
	char path[500], part[520];
	int64_t bytes;
	int ret;

	if ((size_t)m->index >= c->n_objects)
		return err_set(err, EBADMSG, "an object that is not of the result");
	ret = object_path(c, (size_t)m->index, path, sizeof(path), &bytes, err);
	snprintf(part, sizeof(part), "%s" PART, path);
	if (ret == 0 && m->offset < bytes && check_room(c, (uint64_t)(bytes - m->offset), err) < 0)
		return end_unwritten(c, err);
	if (ret == 0)
		ret = transfer_in_begin(&c->in, part, m->offset, bytes, err);
	if (ret < 0 && ret != -EBADMSG)
		return end_unwritten(c, err);
	return ret == 1 ? on_complete(c, err) : ret;
}

int seat_on_data(struct seat_case *c, const void *bytes, size_t n, struct err *err)
{
	int ret = transfer_in_data(&c->in, bytes, n, true, err);

	monitor_progress(c->monitor, "write", c->in.bytes > 0 ? (double)c->in.at / (double)c->in.bytes : 1);
	if (ret < 0 && ret != -EBADMSG)
		return end_unwritten(c, err);
	return ret == 1 ? on_complete(c, err) : ret;
}
