/* SPDX-License-Identifier: Apache-2.0 */
/* tomonode report-page: make the report of a case, or a picture of its slices, for the status page, send it over a socket, and
 * exit. It reads the objects of the result with the decoders of DICOM, so it is a separate process that may crash; it writes no
 * file and has no network access. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "node/base/exit_code.h"
#include "node/base/folder.h"
#include "node/process/work_process.h"
#include "node/report/report_files.h"
#include "node/result/thumbnail.h"
#include "node/status/cmd_status.h"

#define WATCHDOG_SECONDS 150
#define LOWEST_PRIORITY 19

static bool send_all(int fd, const char *bytes, size_t n)
{
	while (n > 0) {
		ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);

		if (sent <= 0)
			return false;
		bytes += sent;
		n -= (size_t)sent;
	}
	return true;
}

/* Return the group of this file; NULL: none. */
static const struct series_volume *group_with(const struct series_files *groups, const char *name)
{
	for (size_t i = 0; i < groups->n; i++)
		for (size_t k = 0; k < groups->list[i].n; k++)
			if (!strcmp(file_name(groups->list[i].paths[k]), name))
				return &groups->list[i];
	return NULL;
}

static int make_report(const struct config *config, const char *folder, const char *name, struct html *h, struct err *err)
{
	struct report_conf conf = {.config = config, .patient = config->status.show_patient, .lazy = true};
	struct series_files groups = {0};
	const struct series_volume *group;
	int rc = series_files_find((char *const[]){(char *)folder, NULL}, false, &groups, err);

	group = group_with(&groups, name);
	if (rc == 0)
		rc = group ? report_volume_make(group, &conf, h, err) : err_set(err, ENOENT, "the objects are no longer there");
	series_files_clear(&groups);
	return rc;
}

static int make_slices(const char *folder, const char *const *files, size_t n, struct html *h, struct err *err)
{
	unsigned char *png = NULL;
	size_t size = 0;
	int rc = thumbnail_slices(folder, files, n, &png, &size, err);

	if (rc == 0)
		html_bytes(h, png, size);
	free(png);
	return rc;
}

/* what: "report/FILE", or "slices/FILE/FILE..."; it is divided here. */
static int make_page(const struct config *config, int64_t job, char *what, struct html *h, struct err *err)
{
	const char *files[THUMBNAIL_SLICES] = {0};
	char folder[400], *rest = NULL, *kind = strtok_r(what, "/", &rest), *file;
	size_t n = 0;
	int rc = folder_path(config->node.spool, "outbox", job, folder, sizeof(folder), err);

	while ((file = strtok_r(NULL, "/", &rest)) && n < THUMBNAIL_SLICES)
		files[n++] = file;
	if (rc < 0)
		return rc;
	if (kind && n > 0 && !strcmp(kind, "slices"))
		return make_slices(folder, files, n, h, err);
	if (kind && n > 0 && !strcmp(kind, "report"))
		return make_report(config, folder, files[0], h, err);
	return err_set(err, EINVAL, "'%s' cannot be made", kind ? kind : "");
}

int cmd_report_page(int argc, char **argv)
{
	struct work_process process = {0};
	struct html h = {0};
	struct err err = {0};
	char *what;
	bool sent;
	int code = CODE_OK;

	if (!work_process_options(&process, "report-page", "-c FILE --ipc FD JOB WHAT", 2, argc, argv, &code))
		return code;
	if (nice(LOWEST_PRIORITY) < 0 || work_process_enter_sandbox(&process, SANDBOX_REPORT, NULL) < 0) {
		work_process_end(&process);
		return CODE_FAILED;
	}
	alarm(WATCHDOG_SECONDS);
	what = strdup(process.argument[1]);
	if (!what)
		err_set(&err, ENOMEM, "no memory");
	if (what && make_page(process.config, strtoll(process.argument[0], NULL, 10), what, &h, &err) == 0)
		sent = send_all(process.ipc_fd, "R", 1) && send_all(process.ipc_fd, h.text, h.n);
	else
		sent = send_all(process.ipc_fd, "E", 1) && send_all(process.ipc_fd, err.msg, strlen(err.msg));
	free(what);
	html_clear(&h);
	work_process_end(&process);
	return sent ? CODE_OK : CODE_FAILED;
}
