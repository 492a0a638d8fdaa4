/* SPDX-License-Identifier: Apache-2.0 */
#include "node/process/work_process.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "node/audit/audit.h"
#include "node/base/exit_code.h"
#include "node/base/log.h"
#include "node/options/options.h"

enum { OPTION_NOTIFY = OPTION_LONG, OPTION_IPC, OPTION_LEDGER, OPTION_LISTEN };

static const struct option_spec options[] = {
	{'c', "config", "FILE", "configuration file, applied over the embedded defaults"},
	{OPTION_NOTIFY, "notify", "FD", "descriptor to wake the node with"},
	{OPTION_IPC, "ipc", "FD", "descriptor to talk to the node with"},
	{OPTION_LEDGER, "ledger", "FD", "memory file in which the workers reserve memory"},
	{OPTION_LISTEN, "listen", "FD", "descriptor that listens for browsers"},
	{0},
};

int work_process_open_journal(struct work_process *p, struct err *err)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/journal.db", p->config->node.spool);
	return journal_open(path, &p->journal, err);
}

/* Parse the options into *ret_process and *ret_path. False: *ret_code is the exit code of the command, also after --help. */
static bool read_options(struct options *o, int n_arguments, struct work_process *ret_process, const char **ret_path,
			 int *ret_code)
{
	long long fd;
	int id;

	while ((id = options_next(o)) >= 0) {
		if (id == 'c')
			*ret_path = o->value;
		if (id == OPTION_NOTIFY || id == OPTION_IPC || id == OPTION_LEDGER || id == OPTION_LISTEN) {
			if (options_integer(o->value, 0, 1 << 20, &fd) < 0) {
				*ret_code = options_fail(o, CODE_USAGE, "'%s' is not a descriptor", o->value);
				return false;
			}
			*(id == OPTION_NOTIFY	? &ret_process->notify_fd
			  : id == OPTION_IPC	? &ret_process->ipc_fd
			  : id == OPTION_LEDGER ? &ret_process->ledger_fd
						: &ret_process->listen_fd) = (int)fd;
		}
	}
	*ret_code = o->code;
	for (int i = 0; id != OPTION_STOP && i < n_arguments; i++)
		ret_process->argument[i] = o->argv[o->first + i];
	return id != OPTION_STOP;
}

bool work_process_options(struct work_process *p, const char *name, const char *usage, int n_arguments, int argc, char **argv,
			  int *ret_code)
{
	struct command_spec spec = {
		.name = name,
		.usage = usage,
		.summary = "Run by the node itself.",
		.options = options,
		.min_arguments = n_arguments,
		.max_arguments = n_arguments,
	};
	struct work_process process = {.notify_fd = -1, .ipc_fd = -1, .listen_fd = -1};
	const char *path = NULL;
	struct options o;

	options_begin(&o, &spec, argc, argv);
	if (!read_options(&o, n_arguments, &process, &path, ret_code))
		return false;
	*ret_code = options_config_of_node(&o, path, &process.config);
	if (*ret_code != CODE_OK)
		return false;
	log_start(process.config->node.log_syslog ? LOG_TO_SYSLOG : LOG_TO_STDERR, process.config->node.log_facility,
		  process.config->node.log_level, name);
	audit_start(&process.config->node, AUDIT_QUEUED, name);
	*p = process;
	return true;
}

bool work_process_begin(struct work_process *p, const char *name, const char *usage, int n_arguments, int argc, char **argv,
			int *ret_code)
{
	struct err err = {0};

	if (!work_process_options(p, name, usage, n_arguments, argc, argv, ret_code))
		return false;
	if (work_process_open_journal(p, &err) == 0)
		return true;
	log_event(LOG_CRIT, "journal-error", "reason=%s", log_quote(err.msg));
	work_process_end(p);
	*ret_code = CODE_FAILED;
	return false;
}

int work_process_enter_sandbox(const struct work_process *p, enum sandbox_role role, const char *detail)
{
	struct err err = {0};
	int ret = sandbox_enter(role, p->config, detail, &err);

	if (ret < 0)
		log_event(LOG_CRIT, "sandbox-failed", "role=%s reason=%s", sandbox_role_name(role), log_quote(err.msg));
	return ret;
}

void work_process_notify(const struct work_process *p)
{
	ssize_t n;

	if (p->notify_fd < 0)
		return;
	n = write(p->notify_fd, "", 1); /* ignore a full pipe: the node has not yet read it and will wake */
	(void)n;
}

void work_process_end(struct work_process *p)
{
	p->journal = journal_close(p->journal);
	p->config = config_free(p->config);
}

/* ---- stop ---- */

static volatile sig_atomic_t stop_requested;
static int ipc_to_shut;

static void on_stop(int signal_number)
{
	(void)signal_number;
	stop_requested = 1;
	shutdown(ipc_to_shut, SHUT_RD);
}

void work_process_catch_stop(const struct work_process *p)
{
	struct sigaction sa = {.sa_handler = on_stop};

	ipc_to_shut = p->ipc_fd;
	sigaction(SIGTERM, &sa, NULL);
}

bool work_process_stopped(void)
{
	return stop_requested;
}
