/* SPDX-License-Identifier: Apache-2.0 */
/* check_as_user.c - the tests run in a process of their own, which becomes node.user as `serve` does: after it has listened. It
 * reports by lines: a letter, P or W, and the sentence.
 */
#include "node/command/check_as_user.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/alert/alert_send.h"
#include "node/base/device_names.h"
#include "node/base/log.h"
#include "node/command/check_cluster.h"
#include "node/process/user.h"
#include "node/receive/listen.h"
#include "node/receive/tls_files.h"
#include "node/store/journal.h"

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

/* Try it: a file system such as /proc gives rights that it does not keep. */
static void check_creates(const struct checked *c, const char *key, const char *folder)
{
	char path[420], line[900];
	int fd;

	snprintf(path, sizeof(path), "%s/check-XXXXXX", folder);
	fd = mkstemp(path);
	if (fd >= 0) {
		unlink(path);
		close(fd);
		return;
	}
	snprintf(line, sizeof(line), "%s is %s, but user %ld cannot create a file in it: %s", key, folder, (long)geteuid(),
		 strerror(errno));
	c->report.problem(c->report.ctx, line);
}

/* Write the nearest folder above a path that does not exist. */
static void nearest_folder(const char *path, char ret[400])
{
	struct stat st;
	size_t n;

	snprintf(ret, 400, "%.399s", path);
	while (stat(ret, &st) < 0 && (errno == ENOENT || errno == EACCES) && (n = strlen(ret)) > 1) {
		while (n > 1 && ret[n - 1] != '/')
			n--;
		ret[n > 1 ? n - 1 : 1] = '\0';
	}
}

/* The user must get to a folder that root creates for it. */
static void check_way(const struct checked *c)
{
	char parent[400], line[900];

	nearest_folder(c->config->node.spool, parent);
	if (access(parent, X_OK) == 0)
		return;
	snprintf(line, sizeof(line), "node.spool is %.399s, but user %ld cannot enter %.399s: %s", c->config->node.spool,
		 (long)geteuid(), parent, strerror(errno));
	c->report.problem(c->report.ctx, line);
}

/* The folder that the node would create: as root, if root starts it. */
static void check_missing_spool(const struct checked *c)
{
	const char *spool = c->config->node.spool;
	char parent[400], line[900];
	struct stat st;

	if (lstat(spool, &st) == 0) {
		snprintf(line, sizeof(line), "node.spool is %.399s, a link to a folder that does not exist", spool);
		c->report.problem(c->report.ctx, line);
		return;
	}
	nearest_folder(spool, parent);
	snprintf(line, sizeof(line), "%s/check-XXXXXX", parent);
	if (mkdtemp(line)) {
		rmdir(line);
		return;
	}
	snprintf(line, sizeof(line), "node.spool is %.399s, but user %ld cannot create a folder in %.399s: %s", spool,
		 (long)geteuid(), parent, strerror(errno));
	c->report.problem(c->report.ctx, line);
}

/* Parts of a spool that was not used yet do not exist: the node makes them. */
static void check_spool(const struct checked *c)
{
	static const char *const folders[] = {"incoming", "instances", "outbox", "work", "audit"};
	const char *spool = c->config->node.spool;
	struct journal *journal = NULL;
	struct err err = {0};
	char path[400];

	check_creates(c, "node.spool", spool);
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", spool, folders[i]);
		if (access(path, F_OK) == 0)
			check_creates(c, "a folder of node.spool", path);
	}
	snprintf(path, sizeof(path), "%s/journal.db", spool);
	if (access(path, F_OK) == 0) {
		check_writable(c, "the journal", path);
		if (journal_open_reader(path, &journal, &err) < 0 && err.code != ENOENT && err.code != EACCES)
			c->report.problem(c->report.ctx, err.msg);
		journal_close(journal);
	}
}

/* A daemon of syslog may start later. */
static void check_socket(const struct checked *c, const char *key, const char *path)
{
	char line[900];
	int code = log_socket_check(path);

	if (code == 0)
		return;
	snprintf(line, sizeof(line), "%s is \"syslog\", but nothing receives at %s, so that lines would be lost: %s", key, path,
		 strerror(code));
	c->report.warning(c->report.ctx, line);
}

static void check_logs(const struct checked *c)
{
	const struct node_conf *node = &c->config->node;

	if (node->log_syslog)
		check_socket(c, "node.log", LOG_SYSLOG_SOCKET);
	if (node->audit == AUDIT_SYSLOG)
		check_socket(c, "node.audit", node->audit_socket);
	if (node->audit == AUDIT_FILE)
		check_writable(c, "node.audit_file", node->audit_file);
}

static void check_device(const struct checked *c)
{
	struct device *dev = NULL;
	struct err err = {0};
	char line[sizeof(err.msg) + 400];

	if (!(c->config->node.executor & EXECUTOR_LOCAL))
		return;
	if (device_names_open(c->config->node.device, &dev, &err) < 0) {
		snprintf(line, sizeof(line), "node.device is '%s', but cases would wait: %s", c->config->node.device, err.msg);
		c->report.problem(c->report.ctx, line);
	}
	device_close(dev);
}

static void check_flatfields(const struct checked *c)
{
	char line[900];

	for (size_t i = 0; i < c->config->n_profiles; i++) {
		const struct profile_conf *p = &c->config->profiles[i];
		struct stat st;

		if (!p->flatfield[0] ||
		    (stat(p->flatfield, &st) == 0 && access(p->flatfield, S_ISDIR(st.st_mode) ? R_OK | X_OK : R_OK) == 0))
			continue;
		snprintf(line, sizeof(line), "key 'flatfield' of profile '%s': user %ld cannot read %s: %s", p->name,
			 (long)geteuid(), p->flatfield, strerror(errno));
		c->report.problem(c->report.ctx, line);
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
	check_flatfields(c);
}

static void check_all(const struct checked *c, bool runs)
{
	bool exists = access(c->config->node.spool, F_OK) == 0 || errno != ENOENT;
	struct err err = {0};
	struct user user;
	char line[sizeof(err.msg) + 100];
	int ret = user_look_up(c->config->node.user, geteuid(), &user, &err);

	if (!runs)
		check_addresses(c);
	if (!exists)
		check_missing_spool(c);
	if (ret == 0 && user.change)
		ret = user_become(&user, &err);
	if (ret == 0) {
		if (exists)
			check_spool(c);
		else
			check_way(c);
		check_logs(c);
		check_device(c);
	} else {
		snprintf(line, sizeof(line),
			 "Tested as user %ld, not as node.user, and without the spool, the logs and the device: %s",
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
