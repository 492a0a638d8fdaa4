#include "node/task.h"

#include <stdio.h>
#include <unistd.h>

#include "node/commands.h"
#include "node/log.h"
#include "node/options.h"

#define OPTION_NOTIFY OPTION_LONG

static const struct option_spec options[] = {
	{'c', "config", "FILE", "configuration laid over the embedded defaults"},
	{OPTION_NOTIFY, "notify", "FD", "descriptor to wake the node with"},
	{0},
};

static int open_journal(struct task *t, struct err *err)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/journal.db", t->config->node.spool);
	return journal_open(path, &t->journal, err);
}

int task_begin(struct task *t, const char *name, const char *usage, int n_arguments, int argc, char **argv)
{
	struct command_spec spec = {
		.name = name,
		.usage = usage,
		.summary = "Run by the node itself.",
		.options = options,
		.min_arguments = n_arguments,
		.max_arguments = n_arguments,
	};
	struct task task = {.notify_fd = -1};
	const char *path = NULL;
	struct err err = {0};
	struct options o;
	long long fd;
	int id, code;

	options_begin(&o, &spec, argc, argv);
	while ((id = options_next(&o)) >= 0) {
		if (id == 'c')
			path = o.value;
		if (id == OPTION_NOTIFY) {
			if (options_integer(o.value, 0, 1 << 20, &fd) < 0)
				return options_fail(&o, CODE_USAGE, "--notify %s is no descriptor", o.value);
			task.notify_fd = (int)fd;
		}
	}
	if (id == OPTION_STOP)
		return o.code;
	for (int i = 0; i < n_arguments; i++)
		task.argument[i] = argv[o.first + i];
	code = options_config(&o, path, &task.config);
	if (code != CODE_OK)
		return code;
	log_start(task.config->node.log_syslog ? LOG_TO_SYSLOG : LOG_TO_STDERR, task.config->node.log_facility,
		  task.config->node.log_level, name);
	if (open_journal(&task, &err) < 0) {
		log_event(LOG_CRIT, "journal-trouble", "reason=%s", log_quote(err.msg));
		task_end(&task);
		return CODE_FAILED;
	}
	*t = task;
	return 0;
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
