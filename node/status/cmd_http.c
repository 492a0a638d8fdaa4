/* SPDX-License-Identifier: Apache-2.0 */
/* tomonode http: the process that serves HTTP to browsers (node/status/status_http.h). `tomonode status` starts it with only the
 * listening socket and a socket pair open, and restarts it when it dies.
 */
#include <signal.h>
#include <sys/resource.h>

#include "node/base/exit_code.h"
#include "node/base/log.h"
#include "node/process/work_process.h"
#include "node/status/cmd_status.h"
#include "node/status/status_http.h"

#define FILES_MAX 96 /* maximum number of descriptors: the connections and a few more */

static volatile sig_atomic_t stop_asked;

static void on_stop(int signal_number)
{
	(void)signal_number;
	stop_asked = 1;
}

int cmd_http(int argc, char **argv)
{
	struct rlimit files = {FILES_MAX, FILES_MAX}, none = {0, 0};
	struct sigaction sa = {.sa_handler = on_stop};
	struct status_http_conf conf;
	struct err err = {0};
	struct work_process process = {0};
	int code = CODE_OK;

	if (!work_process_options(&process, "http", "-c FILE --listen FD --ipc FD", 0, argc, argv, &code))
		return code;
	conf = (struct status_http_conf){
		.listen_fd = process.listen_fd, .ipc_fd = process.ipc_fd, .status = &process.config->status};
	if (conf.listen_fd < 0 || conf.ipc_fd < 0) {
		work_process_end(&process);
		return CODE_USAGE;
	}
	sigemptyset(&sa.sa_mask);
	sigaction(SIGTERM, &sa, NULL);
	setrlimit(RLIMIT_NOFILE, &files);
	setrlimit(RLIMIT_CORE, &none);
	setrlimit(RLIMIT_FSIZE, &none);
	if (work_process_enter_sandbox(&process, SANDBOX_HTTP, NULL) < 0 || status_http_run(&conf, &stop_asked, &err) < 0) {
		log_event(LOG_DEBUG, "http-ended", "reason=%s", log_quote(err.msg));
		code = CODE_FAILED;
	}
	work_process_end(&process);
	return code;
}
