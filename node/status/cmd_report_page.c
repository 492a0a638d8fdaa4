/* SPDX-License-Identifier: Apache-2.0 */
/* tomonode report-page: make the report of a case for the status page, send it over a socket, and exit. It reads the objects of
 * the result with the decoders of DICOM, so it is a separate process that may crash; it writes no file and has no network access. */
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

static int make_report(const struct config *config, int64_t job, const char *name, struct html *h, struct err *err)
{
	/* lazy: no worker's memory is reserved for this process */
	struct report_conf conf = {.config = config, .patient = config->status.show_patient, .lazy = true};
	struct series_files groups = {0};
	const struct series_volume *group;
	char folder[400];
	int rc = folder_path(config->node.spool, "outbox", job, folder, sizeof(folder), err);

	if (rc == 0)
		rc = series_files_find((char *const[]){folder, NULL}, false, &groups, err);
	group = report_volume_with(&groups, name);
	if (rc == 0)
		rc = group ? report_volume_make(group, &conf, h, err) : err_set(err, ENOENT, "the objects are no longer there");
	series_files_clear(&groups);
	return rc;
}

int cmd_report_page(int argc, char **argv)
{
	struct work_process process = {0};
	struct html h = {0};
	struct err err = {0};
	bool sent;
	int code = CODE_OK;

	if (!work_process_options(&process, "report-page", "-c FILE --ipc FD JOB FILE", 2, argc, argv, &code))
		return code;
	if (nice(LOWEST_PRIORITY) < 0 || work_process_enter_sandbox(&process, SANDBOX_REPORT, NULL) < 0) {
		work_process_end(&process);
		return CODE_FAILED;
	}
	alarm(WATCHDOG_SECONDS);
	if (make_report(process.config, strtoll(process.argument[0], NULL, 10), process.argument[1], &h, &err) == 0)
		sent = send_all(process.ipc_fd, "R", 1) && send_all(process.ipc_fd, h.text, h.n);
	else
		sent = send_all(process.ipc_fd, "E", 1) && send_all(process.ipc_fd, err.msg, strlen(err.msg));
	html_clear(&h);
	work_process_end(&process);
	return sent ? CODE_OK : CODE_FAILED;
}
