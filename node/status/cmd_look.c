/* SPDX-License-Identifier: Apache-2.0 */
/* tomonode look: decode slices of results for the status page (node/status/status_look.h), until the other end of its socket is
 * closed. It reads the objects with the decoders of DICOM, so it is a separate process that may crash; it writes no file and has
 * no network access. The results that were asked for last, two that are compared, stay open. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/base/exit_code.h"
#include "node/base/folder.h"
#include "node/process/work_process.h"
#include "node/report/look.h"
#include "node/status/cmd_status.h"
#include "node/status/status_look.h"

#define WATCHDOG_SECONDS 90 /* for one slice */
#define OPEN 2

struct opened {
	struct look_question of; /* job 0: none */
	struct look look;
	double used; /* on clock_seconds() */
};

static bool send_all(int fd, const void *bytes, size_t n)
{
	const char *at = bytes;

	while (n > 0) {
		ssize_t sent = send(fd, at, n, MSG_NOSIGNAL);

		if (sent <= 0)
			return false;
		at += sent;
		n -= (size_t)sent;
	}
	return true;
}

/* Return the result of a question, opened if it is not; NULL: an error. */
static struct look *find_result(const struct config *config, struct opened *opened, const struct look_question *q,
				struct err *err)
{
	struct opened *oldest = &opened[0];
	char folder[400];

	for (int i = 0; i < OPEN; i++) {
		if (opened[i].of.job == q->job && opened[i].of.version == q->version) {
			opened[i].used = clock_seconds();
			return &opened[i].look;
		}
		oldest = opened[i].used < oldest->used ? &opened[i] : oldest;
	}
	look_close(&oldest->look);
	*oldest = (struct opened){0};
	if (folder_path(config->node.spool, "outbox", q->job, folder, sizeof(folder), err) < 0 ||
	    look_open(config, folder, q->file, &oldest->look, err) < 0)
		return NULL;
	oldest->of = *q;
	oldest->used = clock_seconds();
	return &oldest->look;
}

static bool answer_question(const struct config *config, struct opened *opened, const struct look_question *q, int fd)
{
	struct look_answer a = {.code = 200};
	const struct look *look;
	struct html h = {0};
	struct err err = {0};
	bool sent;
	int rc = 0;

	look = find_result(config, opened, q, &err);
	if (look)
		rc = q->slice > 0 ? look_slice(look, q->slice, &h, &err) : look_strip(look, &h, &err);
	if (rc == 0 && h.failed)
		rc = err_set(&err, ENOMEM, "no memory for a slice");
	if (!look || rc < 0) {
		html_clear(&h);
		html_put(&h, err.msg);
		a.code = rc == -ERANGE ? 404 : 503;
	}
	a.n = h.n;
	sent = send_all(fd, &a, sizeof(a)) && send_all(fd, h.text, h.n);
	html_clear(&h);
	return sent;
}

int cmd_look(int argc, char **argv)
{
	struct work_process process = {0};
	struct opened opened[OPEN] = {0};
	struct look_question q;
	int code = CODE_OK;

	if (!work_process_options(&process, "look", "-c FILE --ipc FD", 0, argc, argv, &code))
		return code;
	if (work_process_enter_sandbox(&process, SANDBOX_REPORT, NULL) < 0) {
		work_process_end(&process);
		return CODE_FAILED;
	}
	while (recv(process.ipc_fd, &q, sizeof(q), MSG_WAITALL) == (ssize_t)sizeof(q) && q.job > 0 &&
	       memchr(q.file, '\0', sizeof(q.file))) {
		alarm(WATCHDOG_SECONDS);
		if (!answer_question(process.config, opened, &q, process.ipc_fd))
			break;
		alarm(0);
	}
	for (int i = 0; i < OPEN; i++)
		look_close(&opened[i].look);
	work_process_end(&process);
	return CODE_OK;
}
