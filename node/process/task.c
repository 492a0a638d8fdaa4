#include "node/process/task.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "node/audit/audit.h"
#include "node/base/exit_code.h"
#include "node/base/log.h"
#include "node/process/options.h"

enum { OPTION_NOTIFY = OPTION_LONG, OPTION_CHANNEL, OPTION_LISTEN };

static const struct option_spec options[] = {
	{'c', "config", "FILE", "configuration laid over the embedded defaults"},
	{OPTION_NOTIFY, "notify", "FD", "descriptor to wake the node with"},
	{OPTION_CHANNEL, "channel", "FD", "descriptor to talk to the node with"},
	{OPTION_LISTEN, "listen", "FD", "descriptor that listens for browsers"},
	{0},
};

int task_journal(struct task *t, struct err *err)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/journal.db", t->config->node.spool);
	return journal_open(path, &t->journal, err);
}

int task_options(struct task *t, const char *name, const char *usage, int n_arguments, int argc, char **argv)
{
	struct command_spec spec = {
		.name = name,
		.usage = usage,
		.summary = "Run by the node itself.",
		.options = options,
		.min_arguments = n_arguments,
		.max_arguments = n_arguments,
	};
	struct task task = {.notify_fd = -1, .channel_fd = -1, .listen_fd = -1};
	const char *path = NULL;
	struct options o;
	long long fd;
	int id, code;

	options_begin(&o, &spec, argc, argv);
	while ((id = options_next(&o)) >= 0) {
		if (id == 'c')
			path = o.value;
		if (id == OPTION_NOTIFY || id == OPTION_CHANNEL || id == OPTION_LISTEN) {
			if (options_integer(o.value, 0, 1 << 20, &fd) < 0)
				return options_fail(&o, CODE_USAGE, "'%s' is no descriptor", o.value);
			*(id == OPTION_NOTIFY	 ? &task.notify_fd
			  : id == OPTION_CHANNEL ? &task.channel_fd
						 : &task.listen_fd) = (int)fd;
		}
	}
	if (id == OPTION_STOP)
		return o.code;
	for (int i = 0; i < n_arguments; i++)
		task.argument[i] = argv[o.first + i];
	code = options_config_of_node(&o, path, &task.config);
	if (code != CODE_OK)
		return code;
	log_start(task.config->node.log_syslog ? LOG_TO_SYSLOG : LOG_TO_STDERR, task.config->node.log_facility,
		  task.config->node.log_level, name);
	audit_start(&task.config->node, AUDIT_QUEUED, name);
	*t = task;
	return 0;
}

int task_begin(struct task *t, const char *name, const char *usage, int n_arguments, int argc, char **argv)
{
	struct err err = {0};
	int code = task_options(t, name, usage, n_arguments, argc, argv);

	if (code || task_journal(t, &err) == 0)
		return code;
	log_event(LOG_CRIT, "journal-trouble", "reason=%s", log_quote(err.msg));
	task_end(t);
	return CODE_FAILED;
}

int task_sandbox(const struct task *t, enum sandbox_role role, const char *detail)
{
	struct err err = {0};
	int ret = sandbox_enter(role, t->config, detail, &err);

	if (ret < 0)
		log_event(LOG_CRIT, "sandbox-failed", "role=%s reason=%s", sandbox_role_name(role), log_quote(err.msg));
	return ret;
}

void task_notify(const struct task *t)
{
	ssize_t n;

	if (t->notify_fd < 0)
		return;
	n = write(t->notify_fd, "", 1); /* a full pipe is as good: the node has not looked yet */
	(void)n;
}

void task_end(struct task *t)
{
	t->journal = journal_close(t->journal);
	t->config = config_free(t->config);
}
