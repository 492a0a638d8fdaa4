/* SPDX-License-Identifier: Apache-2.0 */
/* check_as_user.c - the tests run in a process of their own, which becomes node.user as `serve` does: after it has listened. It
 * reports by lines: a letter, P or W, and the sentence.
 */
#include "node/command/check_as_user.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
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

/* ---- paths ---- */

/* What the node does with a path. The kernel is asked: a file that is created for a test would meet a running node. */
enum use { NOTHING, WRITE, CREATE, MAKE, ENTER };
static const struct {
	const char *cannot;
	int mode;
} uses[] = {
	[WRITE] = {"write to", W_OK},
	[CREATE] = {"create a file in", W_OK | X_OK},
	[MAKE] = {"create a folder in", W_OK | X_OK},
	[ENTER] = {"enter", X_OK},
};

struct trial {
	const char *key, *path;
	enum use use;
	enum use missing; /* if it does not exist: CREATE in the folder that it is to be in, MAKE or ENTER in the nearest above */
};

/* Shorten a path to the folder above it. */
static void go_up(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash)
		slash[slash == path] = '\0';
	else
		strcpy(path, ".");
}

static void go_up_to_existing(char *path)
{
	struct stat st;

	do
		go_up(path);
	while (stat(path, &st) < 0 && strcmp(path, "/") != 0 && strcmp(path, ".") != 0);
}

static void say_problem(const struct checked *c, const char *key, const char *path, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
static void say_problem(const struct checked *c, const char *key, const char *path, const char *fmt, ...)
{
	char line[1300];
	int n = snprintf(line, sizeof(line), "%s is %.399s, ", key, path);
	va_list args;

	va_start(args, fmt);
	vsnprintf(line + n, sizeof(line) - (size_t)n, fmt, args);
	va_end(args);
	c->report.problem(c->report.ctx, line);
}

static void try_path(const struct checked *c, const struct trial *t)
{
	bool found = faccessat(AT_FDCWD, t->path, F_OK, AT_EACCESS) == 0;
	enum use use = found || (errno != ENOENT && t->use == NOTHING) ? t->use : errno == ENOENT ? t->missing : ENTER;
	struct stat st;
	char tested[400];

	if (use == NOTHING)
		return;
	if (use == MAKE && lstat(t->path, &st) == 0) {
		say_problem(c, t->key, t->path, "a link to a folder that does not exist");
		return;
	}
	snprintf(tested, sizeof(tested), "%.399s", t->path);
	if (use >= MAKE)
		go_up_to_existing(tested);
	else if (!found)
		go_up(tested);
	if (faccessat(AT_FDCWD, tested, uses[use].mode, AT_EACCESS) < 0)
		say_problem(c, t->key, t->path, "but user %ld cannot %s %.399s: %s", (long)geteuid(), uses[use].cannot, tested,
			    strerror(errno));
}

/* File systems on which no node can keep what it acknowledged; and folders that are emptied. */
static const struct {
	long magic;
	const char *what;
} bad_systems[] = {
	{PROC_SUPER_MAGIC, "a file system of the kernel (proc), which has no place for files"},
	{SYSFS_MAGIC, "a file system of the kernel (sysfs), which has no place for files"},
	{TMPFS_MAGIC, "in memory (tmpfs): acknowledged images and results would be lost at the next boot"},
	{RAMFS_MAGIC, "in memory (ramfs): acknowledged images and results would be lost at the next boot"},
};
static const char *const emptied[] = {"/tmp/", "/var/tmp/"};

static void check_place(const struct checked *c)
{
	const char *spool = c->config->node.spool;
	char tested[400], real[PATH_MAX] = "", line[900];
	struct statfs fs;

	snprintf(tested, sizeof(tested), "%.399s", spool);
	if (access(tested, F_OK) < 0)
		go_up_to_existing(tested);
	if (statfs(tested, &fs) < 0 || !realpath(tested, real))
		return;
	for (size_t i = 0; i < sizeof(bad_systems) / sizeof(bad_systems[0]); i++)
		if (fs.f_type == bad_systems[i].magic) {
			say_problem(c, "node.spool", spool, "but this is %s", bad_systems[i].what);
			return;
		}
	strncat(real, "/", sizeof(real) - strlen(real) - 1);
	for (size_t i = 0; i < sizeof(emptied) / sizeof(emptied[0]); i++)
		if (!strncmp(real, emptied[i], strlen(emptied[i]))) {
			snprintf(line, sizeof(line),
				 "node.spool is %.399s, but systemd removes old files in %s, and a boot may empty it: "
				 "acknowledged "
				 "images would be lost",
				 spool, emptied[i]);
			c->report.warning(c->report.ctx, line);
		}
}

/* Parts of a spool that was not used yet do not exist: the node makes them. */
static void check_spool(const struct checked *c)
{
	static const char *const folders[] = {"incoming", "instances", "outbox", "work", "audit"};
	const char *spool = c->config->node.spool;
	struct journal *journal = NULL;
	struct err err = {0};
	char path[420];

	try_path(c, &(struct trial){"node.spool", spool, CREATE, ENTER});
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(path, sizeof(path), "%.399s/%s", spool, folders[i]);
		try_path(c, &(struct trial){"a folder of node.spool", path, CREATE, NOTHING});
	}
	snprintf(path, sizeof(path), "%.399s/journal.db", spool);
	try_path(c, &(struct trial){"the journal", path, WRITE, NOTHING});
	if (journal_open_reader(path, &journal, &err) < 0 && err.code != ENOENT && err.code != EACCES)
		c->report.problem(c->report.ctx, err.msg);
	journal_close(journal);
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
		try_path(c, &(struct trial){"node.audit_file", node->audit_file, WRITE, CREATE});
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
	for (size_t i = 0; i < c->config->n_profiles; i++) {
		const struct profile_conf *p = &c->config->profiles[i];
		char line[1300];
		struct err err = {0};

		if (!p->flatfield[0] || exam_flatfield_readable(p->flatfield, &err) == 0)
			continue;
		snprintf(line, sizeof(line), "key 'flatfield' of profile '%s': user %ld cannot read %s: %s", p->name,
			 (long)geteuid(), p->flatfield, err.msg);
		c->report.problem(c->report.ctx, line);
	}
}

/* Those of the webhook are read when there is a message. */
static void check_authorities(const struct checked *c)
{
	const struct tls_conf conf = {.authorities = c->config->alerts.authorities};
	struct tls_context *context = NULL;
	struct err err = {0};
	char line[sizeof(err.msg) + 16];

	if (conf.authorities[0] && tls_create(&conf, &context, &err) < 0) {
		snprintf(line, sizeof(line), "alerts: %s", err.msg);
		c->report.problem(c->report.ctx, line);
	}
	tls_free(context);
}

/* What the configuration names and the node only reads. */
static void check_named(const struct checked *c)
{
	const struct tls_files_report files = {c->report.ctx, c->report.problem, NULL, NULL};
	struct err err = {0};
	char line[sizeof(err.msg) + 16];

	tls_files_check(c->config, &files, NULL);
	check_authorities(c);
	if (c->config->alerts.url[0] && alert_check(c->config, &err) < 0) {
		snprintf(line, sizeof(line), "alerts: %s", err.msg);
		c->report.problem(c->report.ctx, line);
	}
	check_flatfields(c);
}

static void check_all(const struct checked *c, bool runs)
{
	struct err err = {0};
	struct user user;
	char line[sizeof(err.msg) + 100];
	int ret = user_look_up(c->config->node.user, geteuid(), &user, &err);

	if (!runs)
		check_addresses(c);
	check_place(c);
	/* the folder that the node would create: as root, if root starts it */
	try_path(c, &(struct trial){"node.spool", c->config->node.spool, NOTHING, MAKE});
	if (ret == 0 && user.change)
		ret = user_become(&user, &err);
	if (ret == 0) {
		check_spool(c);
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
