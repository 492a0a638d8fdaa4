/* SPDX-License-Identifier: Apache-2.0 */
/* check_as_user.c - the tests run in a process of their own, which becomes node.user as `serve` does: after it has listened. It
 * reports by lines: a letter, P or W, and the sentence.
 */
#include "node/command/check_as_user.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/alert/alert_send.h"
#include "node/base/log.h"
#include "node/command/check_cluster.h"
#include "node/process/user.h"
#include "node/receive/listen.h"
#include "node/receive/tls_files.h"

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

/* A file or folder that the node writes to, or, if it does not exist, the folder in which it is created. */
static void check_writable(const struct checked *c, const char *key, const char *path)
{
	char folder[400], line[900];
	const char *slash = strrchr(path, '/'), *tested = path;

	if (access(path, F_OK) < 0 && errno == ENOENT) {
		snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
		tested = folder[0] ? folder : "/";
	}
	if (access(tested, tested == path ? W_OK : W_OK | X_OK) == 0)
		return;
	snprintf(line, sizeof(line), "%s is %s, but user %ld cannot write to %s: %s", key, path, (long)geteuid(), tested,
		 strerror(errno));
	c->report.problem(c->report.ctx, line);
}

/* Parts of a spool that was not used yet do not exist: the node makes them. */
static void check_spool(const struct checked *c, bool created_by_root)
{
	static const char *const parts[] = {"incoming", "instances", "outbox", "work", "audit", "journal.db"};
	const char *spool = c->config->node.spool;
	char path[400];

	if (access(spool, F_OK) < 0 && errno == ENOENT && created_by_root)
		return;
	check_writable(c, "node.spool", spool);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", spool, parts[i]);
		if (access(path, F_OK) == 0)
			check_writable(c, "part of node.spool", path);
	}
}

/* What the configuration names and the node only reads. */
static void check_named(const struct checked *c)
{
	const struct tls_files_report files = {c->report.ctx, c->report.problem, NULL, NULL};
	struct err err = {0};
	char line[sizeof(err.msg) + 16];

	tls_files_check(c->config, &files, NULL);
	if (c->config->alerts.url[0] && alert_check(c->config, &err) < 0) {
		snprintf(line, sizeof(line), "alerts: %s", err.msg);
		c->report.problem(c->report.ctx, line);
	}
}

static void check_all(const struct checked *c, bool runs)
{
	struct err err = {0};
	struct user user;
	char line[sizeof(err.msg) + 100];
	int ret = user_look_up(c->config->node.user, geteuid(), &user, &err);

	if (!runs)
		check_addresses(c);
	if (ret == 0 && user.change)
		ret = user_become(&user, &err);
	if (ret == 0) {
		check_spool(c, user.change);
		if (c->config->node.audit == AUDIT_FILE)
			check_writable(c, "node.audit_file", c->config->node.audit_file);
	} else {
		snprintf(line, sizeof(line), "Tested as user %ld, not as node.user, and without the spool and the audit file: %s",
			 (long)geteuid(), err.msg);
		c->report.warning(c->report.ctx, line);
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

static int test(FILE *to, const struct config *config, bool runs)
{
	log_start(LOG_TO_NOWHERE, 0, LOG_ERR, "check");
	check_all(&(struct checked){config, {to, write_problem, write_warning}}, runs);
	return fclose(to);
}

static void read_lines(int fd, const struct check_report *report)
{
	FILE *from = fdopen(fd, "r");
	char line[1400];

	while (from && fgets(line, sizeof(line), from)) {
		line[strcspn(line, "\n")] = '\0';
		(line[0] == 'P' ? report->problem : report->warning)(report->ctx, line + 1);
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
		_exit(test(fdopen(fd[1], "w"), config, runs) == 0 ? 0 : 1);
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
