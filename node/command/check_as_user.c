/* SPDX-License-Identifier: Apache-2.0 */
/* check_as_user.c - the tests run in a process of their own, which becomes node.user as `serve` does: after it has listened. It
 * reports by lines: a letter, P, W or T, and the sentence.
 */
#include "node/command/check_as_user.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/alert/alert_send.h"
#include "node/base/device_names.h"
#include "node/base/log.h"
#include "node/command/check_cluster.h"
#include "node/command/check_paths.h"
#include "node/command/check_steps.h"
#include "node/deliver/destination.h"
#include "node/receive/listen.h"
#include "node/receive/tls_files.h"
#include "node/sandbox/user.h"
#include "node/store/journal.h"
#include "node/tomo/exam.h"

struct checked {
	const struct config *config;
	struct check_report report;
};

/* ---- the tests ---- */

static void check_address(const struct checked *c, const char *bind, int port)
{
	struct err err = {0};
	int fd = listen_on(bind, port, NULL, &err);

	if (fd >= 0)
		close(fd);
	else /* an address may come, another program end, and systemd may give the right to a port below 1024 */
		c->report.warning(c->report.ctx, err.msg);
}

static void check_addresses(const struct checked *c)
{
	struct listener_conf list[LISTENERS_MAX];
	size_t n = config_listeners(c->config, list);

	for (size_t i = 0; i < n; i++)
		check_address(c, list[i].bind, list[i].port);
	if (c->config->status.enabled)
		check_address(c, c->config->status.bind, c->config->status.port);
}

/* Parts of a spool that was not used yet do not exist: the node makes them. kept: its file system keeps files. */
static void check_spool(const struct checked *c, bool kept)
{
	static const struct {
		const char *key, *part;
		enum path_use use, missing;
		bool scratch; /* may be lost with the machine's memory */
	} parts[] = {
		{"node.spool", "", PATH_CREATE, PATH_ENTER},
		{"a folder of node.spool", "/incoming", PATH_CREATE, PATH_NOTHING},
		{"a folder of node.spool", "/instances", PATH_CREATE, PATH_NOTHING},
		{"a folder of node.spool", "/outbox", PATH_CREATE, PATH_NOTHING},
		{"a folder of node.spool", "/work", PATH_CREATE, PATH_NOTHING, true},
		{"a folder of node.spool", "/audit", PATH_CREATE, PATH_NOTHING},
		{"the journal", "/journal.db", PATH_WRITE, PATH_NOTHING},
	};
	struct journal *journal = NULL;
	struct err err = {0};
	char path[420];
	bool usable = true;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		snprintf(path, sizeof(path), "%.399s%s", c->config->node.spool, parts[i].part);
		usable = check_path(&c->report, parts[i].key, path, parts[i].use, parts[i].missing);
		if (!usable && i == 0)
			return;
		if (kept && i > 0 && !parts[i].scratch && access(path, F_OK) == 0)
			check_place(&c->report, parts[i].key, path);
	}
	/* the last of them */
	if (usable && journal_open_reader(path, &journal, &err) < 0 && err.code != ENOENT && err.code != EACCES)
		c->report.problem(c->report.ctx, err.msg);
	journal_close(journal);
}

/* A daemon of syslog may start later. */
static void check_socket(const struct checked *c, const char *key, const char *path)
{
	int code = log_socket_check(path);

	if (code != 0)
		check_say(&c->report, FINDING_WARNING,
			  "%s is \"syslog\", but nothing receives at %s, so that lines would be lost: %s", key, path,
			  strerror(code));
}

static void check_logs(const struct checked *c)
{
	const struct node_conf *node = &c->config->node;

	if (node->log_syslog)
		check_socket(c, "node.log", LOG_SYSLOG_SOCKET);
	if (node->audit == AUDIT_SYSLOG)
		check_socket(c, "node.audit", node->audit_socket);
	if (node->audit == AUDIT_FILE)
		check_path(&c->report, "node.audit_file", node->audit_file, PATH_WRITE, PATH_CREATE);
}

static void check_destinations(const struct checked *c)
{
	for (size_t i = 0; i < c->config->n_destinations; i++) {
		const struct destination_conf *d = &c->config->destinations[i];
		struct err err = {0};

		if (destination_actions(d)->check && destination_actions(d)->check(d, &err) != 0)
			check_say(&c->report, FINDING_PROBLEM, "destination '%s': results would wait: %s", d->name, err.msg);
	}
}

static void check_device(const struct checked *c)
{
	struct device *dev = NULL;
	struct err err = {0};

	if (!(c->config->node.executor & EXECUTOR_LOCAL))
		return;
	if (device_names_open(c->config->node.device, &dev, &err) < 0)
		check_say(&c->report, FINDING_PROBLEM, "node.device is '%s', but cases would wait: %s", c->config->node.device,
			  err.msg);
	device_close(dev);
}

static void check_flatfields(const struct checked *c)
{
	for (size_t i = 0; i < c->config->n_profiles; i++) {
		const struct profile_conf *p = &c->config->profiles[i];
		struct err err = {0};

		if (p->flatfield[0] && exam_flatfield_readable(p->flatfield, &err) != 0)
			check_say(&c->report, FINDING_PROBLEM, "key 'flatfield' of profile '%s': user %ld cannot read %s: %s",
				  p->name, (long)geteuid(), p->flatfield, err.msg);
	}
}

/* Those of the webhook are read when there is a message. */
static void check_authorities(const struct checked *c)
{
	const struct tls_conf conf = {.authorities = c->config->alerts.authorities};
	struct tls_context *context = NULL;
	struct err err = {0};

	if (conf.authorities[0] && tls_create(&conf, &context, &err) < 0)
		check_say(&c->report, FINDING_PROBLEM, "alerts: %s", err.msg);
	tls_free(context);
}

/* What the configuration names and the node only reads. */
static void check_named(const struct checked *c)
{
	const struct tls_files_report files = {c->report.ctx, c->report.problem, NULL, NULL};
	struct err err = {0};

	tls_files_check(c->config, &files, NULL);
	check_authorities(c);
	check_step_files(c->config, &c->report);
	if (config_tells_alerts(c->config) && alert_check(c->config, &err) < 0)
		check_say(&c->report, FINDING_PROBLEM, "alerts: %s", err.msg);
	check_flatfields(c);
}

static void check_all(const struct checked *c, bool runs)
{
	struct err err = {0};
	int ret;
	bool kept = check_place(&c->report, "node.spool", c->config->node.spool), made;

	if (!runs)
		check_addresses(c);
	check_emptied(&c->report, "node.spool", c->config->node.spool);
	/* the folder that the node would create: as root, if root starts it */
	made = check_path(&c->report, "node.spool", c->config->node.spool, PATH_NOTHING, PATH_MAKE);
	ret = user_become_tested(c->config->node.user, &err);
	if (c->report.told) /* first, while this process has one thread */
		check_steps(c->config, &c->report);
	if (ret == 0) {
		if (made)
			check_spool(c, kept);
		check_logs(c);
		check_destinations(c);
		check_device(c);
	} else {
		check_say(&c->report, FINDING_WARNING,
			  "Tested as user %ld, not as node.user, and without the spool, the logs and the device: %s",
			  (long)geteuid(), err.msg);
	}
	check_named(c);
	if (c->config->cluster.port != 0)
		check_cluster(c->config, runs, &c->report);
}

/* ---- the process ---- */

static void write_line(FILE *to, char kind, const char *text)
{
	fputc(kind, to);
	for (; *text; text++)
		fputc(*text == '\n' || *text == '\r' ? ' ' : *text, to);
	fputc('\n', to);
}

static void write_problem(void *ctx, const char *text)
{
	write_line(ctx, 'P', text);
}

static void write_warning(void *ctx, const char *text)
{
	write_line(ctx, 'W', text);
}

static void write_told(void *ctx, const char *text)
{
	write_line(ctx, 'T', text);
}

static int test_config(FILE *to, const struct config *config, bool runs, bool steps)
{
	log_start(LOG_TO_NOWHERE, 0, LOG_ERR, "check");
	check_all(&(struct checked){config, {to, write_problem, write_warning, steps ? write_told : NULL}}, runs);
	return fclose(to);
}

static void read_lines(int fd, const struct check_report *report)
{
	FILE *from = fdopen(fd, "r");
	char line[1400];

	while (from && fgets(line, sizeof(line), from)) {
		line[strcspn(line, "\n")] = '\0';
		(line[0] == 'P' ? report->problem : line[0] == 'T' ? report->told : report->warning)(report->ctx, line + 1);
	}
	if (from)
		fclose(from);
}

void check_as_user(const struct config *config, bool runs, const struct check_report *report)
{
	int fd[2] = {-1, -1}, status = 0;
	pid_t pid = -1;

	fflush(NULL);
	if (pipe(fd) == 0)
		pid = fork();
	if (pid == 0) {
		close(fd[0]);
		_exit(test_config(fdopen(fd[1], "w"), config, runs, report->told) == 0 ? 0 : 1);
	}
	if (pid < 0) {
		report->warning(report->ctx, "What the node's user may do cannot be tested: no process can be started");
		return;
	}
	close(fd[1]);
	read_lines(fd[0], report);
	waitpid(pid, &status, 0);
	if (status != 0)
		report->warning(report->ctx, "The tests as the node's user ended before their end");
}
