/* SPDX-License-Identifier: Apache-2.0 */
/* alert_exec.c - give a message to a program of the site: on its standard input, as a mail without its receiver.
 *
 * Three processes: the caller waits for the keeper; the keeper is in the sandbox (SANDBOX_EXEC), starts the program and kills it
 * after its time, with all that it has started; both are in a process group of their own that nothing in the sandbox can leave.
 * The keeper is told by a signal that its caller has died.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/alert/alert_internal.h"
#include "node/alert/alert_json.h"
#include "node/sandbox/sandbox.h"

#define LOOK_MS 20	/* between two looks at the program */
#define LEAVING 0.5	/* s for which its last processes may take to end */
#define OUTPUT_MAX 8192 /* bytes of its output that are kept: the last ones */
#define LAST_LINE 120	/* characters of its output in a sentence */
#define REASON_SIZE 300

struct output {
	char text[OUTPUT_MAX + 1];
	size_t n;
};

int alert_exec_check(const struct alerts_conf *conf, struct err *err)
{
	struct stat st;

	if (stat(conf->exec, &st) < 0)
		return err_set(err, EINVAL, "exec: %s: %s", conf->exec, strerror(errno));
	if (!S_ISREG(st.st_mode) || access(conf->exec, X_OK) < 0)
		return err_set(err, EINVAL, "exec: %s: no program that user %ld may execute", conf->exec, (long)geteuid());
	for (size_t i = 0; i < conf->exec_files.n; i++)
		if (access(conf->exec_files.name[i], R_OK) < 0)
			return err_set(err, EINVAL, "exec_files: %s: %s", conf->exec_files.name[i], strerror(errno));
	return 0;
}

/* ---- the program ---- */

/* Does not return. message: a file with the message; said: what it writes goes there. */
static void execute_program(const struct alerts_conf *conf, int message, int said)
{
	char *const argv[] = {(char *)conf->exec, NULL};
	char *const environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "HOME=/", NULL};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	if (dup2(message, 0) == 0 && dup2(said, 1) == 1 && dup2(said, 2) == 2) /* every other descriptor is closed by exec */
		execve(conf->exec, argv, environment);
	dprintf(said, "it cannot be started: %s", strerror(errno));
	_exit(127);
}

/* ---- the keeper ---- */

/* End this process, too. */
static void kill_all(int signal_number)
{
	(void)signal_number;
	kill(0, SIGKILL);
}

/* Read what is there for at most LOOK_MS; of too much only the end is kept. */
static void read_output(int fd, struct output *o)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	ssize_t n;

	if (o->n == OUTPUT_MAX) {
		memmove(o->text, o->text + OUTPUT_MAX / 2, OUTPUT_MAX / 2);
		o->n = OUTPUT_MAX / 2;
	}
	if (poll(&p, 1, LOOK_MS) <= 0)
		return;
	n = read(fd, o->text + o->n, OUTPUT_MAX - o->n);
	if (n > 0)
		o->n += (size_t)n;
	else
		poll(NULL, 0, LOOK_MS); /* it has closed its output, and may still work */
}

/* Its last line, in plain characters. */
static const char *last_line(struct output *o, char ret[LAST_LINE + 3])
{
	size_t from;

	while (o->n > 0 && strchr("\n\r ", o->text[o->n - 1]))
		o->n--;
	for (from = o->n; from > 0 && o->text[from - 1] != '\n'; from--)
		if (o->text[from - 1] < ' ' || o->text[from - 1] > '~')
			o->text[from - 1] = '?';
	o->text[o->n] = '\0';
	snprintf(ret, LAST_LINE + 3, "%s%.*s", o->n > from ? ": " : "", LAST_LINE, o->text + from);
	return ret;
}

/* Does anything that the program has started outlive it, by more than LEAVING? This process is the parent of orphans. */
static bool leaves_processes(void)
{
	double until = clock_seconds() + LEAVING;
	pid_t got;

	while ((got = waitpid(-1, NULL, WNOHANG)) >= 0) {
		if (got == 0 && clock_seconds() > until)
			return true;
		if (got == 0)
			poll(NULL, 0, LOOK_MS);
	}
	return false;
}

/* Wait for the end of the program. Writes why the message counts as not taken; "": it was. */
static void watch_program(const struct alerts_conf *conf, pid_t pid, int said, char ret_reason[REASON_SIZE])
{
	double until = clock_seconds() + conf->timeout;
	struct output output = {.n = 0};
	char line[LAST_LINE + 3];
	int status = 0;
	pid_t got;

	fcntl(said, F_SETFL, O_NONBLOCK);
	while ((got = waitpid(pid, &status, WNOHANG)) == 0 && clock_seconds() < until)
		read_output(said, &output);
	read_output(said, &output);
	last_line(&output, line);
	if (got != pid)
		snprintf(ret_reason, REASON_SIZE, "it was killed, because it took longer than %g s (timeout)%s", conf->timeout,
			 line);
	else if (WIFSIGNALED(status))
		snprintf(ret_reason, REASON_SIZE, "it ended by signal %d (%s)%s", WTERMSIG(status), strsignal(WTERMSIG(status)),
			 line);
	else if (WEXITSTATUS(status) != 0)
		snprintf(ret_reason, REASON_SIZE, "it ended with exit code %d%s", WEXITSTATUS(status), line);
	else if (leaves_processes())
		snprintf(ret_reason, REASON_SIZE, "it left a process behind, which was killed");
}

/* Does not return. told: the reason goes there. */
static void keep_program(const struct config *config, int message, int told, pid_t caller)
{
	char reason[REASON_SIZE] = "";
	struct err err = {0};
	int said[2];
	pid_t pid;

	if (setpgid(0, 0) < 0) /* else kill_all() would reach others */
		_exit(1);
	signal(SIGTERM, kill_all);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (getppid() != caller) /* it died before the call above */
		_exit(1);
	if (sandbox_enter(SANDBOX_EXEC, config, NULL, &err) < 0)
		snprintf(reason, sizeof(reason), "%.*s", REASON_SIZE - 1, err.msg);
	else if (pipe2(said, O_CLOEXEC) < 0 || (pid = fork()) < 0)
		snprintf(reason, sizeof(reason), "no process for it: %s", strerror(errno));
	else if (pid == 0)
		execute_program(&config->alerts, message, said[1]);
	else
		watch_program(&config->alerts, pid, said[0], reason);
	if (!reason[0])
		_exit(write(told, "ok", 2) == 2 ? 0 : 1);
	if (write(told, reason, strlen(reason)) >= 0)
		kill_all(0);
	_exit(1);
}

/* ---- the caller ---- */

/* A file in memory with a text, at its beginning. */
static int make_file(const char *text)
{
	size_t n = strlen(text);
	int fd = memfd_create("message", MFD_CLOEXEC);

	if (fd < 0 || write(fd, text, n) != (ssize_t)n || lseek(fd, 0, SEEK_SET) < 0) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

/* Read what the keeper says until it ends. */
static void read_reason(int fd, char ret[REASON_SIZE])
{
	size_t n = 0;
	ssize_t got;

	while (n < REASON_SIZE - 1 && ((got = read(fd, ret + n, REASON_SIZE - 1 - n)) > 0 || (got < 0 && errno == EINTR)))
		n += got > 0 ? (size_t)got : 0;
	ret[n] = '\0';
}

int alert_exec(const struct config *config, const char *message, struct err *err)
{
	char *mail = alert_mail_text(message), reason[REASON_SIZE] = "";
	int fd = mail ? make_file(mail) : -1, told[2] = {-1, -1};
	pid_t caller = getpid(), pid = -1;

	free(mail);
	fflush(NULL); /* else the new process would write it again */
	if (fd < 0 || pipe2(told, O_CLOEXEC) < 0 || (pid = fork()) < 0)
		err_set(err, EAGAIN, "%s: no process for it: %s", config->alerts.exec, strerror(errno));
	if (pid == 0) {
		close(told[0]);
		keep_program(config, fd, told[1], caller);
	}
	if (told[1] >= 0)
		close(told[1]);
	if (pid > 0) {
		read_reason(told[0], reason);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if (told[0] >= 0)
		close(told[0]);
	if (fd >= 0)
		close(fd);
	if (pid < 0)
		return -EAGAIN;
	if (strcmp(reason, "ok") != 0)
		return err_set(err, EACCES, "%s: %s", config->alerts.exec,
			       reason[0] ? reason : "what watches it was ended without a reason");
	return 0;
}
