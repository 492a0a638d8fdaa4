/* SPDX-License-Identifier: Apache-2.0 */
#include "node/fleet/slurm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/clock.h"

#define OUTPUT_MAX (256 << 10) /* bytes of standard output; a line of squeue has about 100 */
#define ERROR_MAX 2048
#define ARGS_MAX 24
#define ARG_SIZE 320

static double limit = SLURM_SECONDS;

void slurm_set_seconds(double seconds)
{
	limit = seconds;
}

/* ---- running a command ---- */

struct command {
	const char *argv[ARGS_MAX + 1];
	const char *input; /* "": none */
	char *output;	   /* allocated, OUTPUT_MAX + 1 */
	char error[ERROR_MAX + 1];
	size_t n_output, n_error, n_input;
	int code;      /* exit code; -1: killed, or ended by a signal */
	bool late;     /* killed because it took too long */
	bool too_long; /* its output was cut */
};

/* Replace the environment in the child process. */
static void clean_environment(void)
{
	static const char *const kept[] = {"PATH", "HOME", "USER", "LOGNAME", "SLURM_CONF", "SLURM_CONF_SERVER"};
	char *values[sizeof(kept) / sizeof(kept[0])];

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		values[i] = getenv(kept[i]);
	clearenv();
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (values[i])
			setenv(kept[i], values[i], 1);
	setenv("LC_ALL", "C", 1);
	setenv("SLURM_TIME_FORMAT", "%s", 1); /* times as seconds since the epoch */
}

static void exec_command(const struct command *c, int in, int out, int error, pid_t parent)
{
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(error, 2) < 0 || close_range(3, ~0u, 0) < 0)
		_exit(127);
	clean_environment();
	execvp(c->argv[0], (char *const *)c->argv);
	fprintf(stderr, "%s: %s", c->argv[0], strerror(errno));
	fflush(stderr);
	_exit(127);
}

static void close_pair(int fd[2])
{
	for (int i = 0; i < 2; i++) {
		if (fd[i] >= 0)
			close(fd[i]);
		fd[i] = -1;
	}
}

static void close_one(int *fd)
{
	close(*fd);
	*fd = -1;
}

static void write_input(struct command *c, int *fd)
{
	size_t left = strlen(c->input) - c->n_input;
	ssize_t n = left > 0 ? write(*fd, c->input + c->n_input, left) : 0;

	if (n > 0)
		c->n_input += (size_t)n;
	if ((n < 0 && errno != EAGAIN && errno != EINTR) || !c->input[c->n_input])
		close_one(fd);
}

/* Append what can be read; what is too much is read and dropped, so that the command does not block. */
static void read_output(int *fd, char *to, size_t *n, size_t max, bool *too_long)
{
	char buffer[4096];
	ssize_t got = read(*fd, buffer, sizeof(buffer));
	size_t fits;

	if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
		close_one(fd);
	if (got <= 0)
		return;
	fits = (size_t)got < max - *n ? (size_t)got : max - *n;
	memcpy(to + *n, buffer, fits);
	*n += fits;
	if (fits < (size_t)got && too_long)
		*too_long = true;
}

/* Exchange data with the command until it closes its output, or until it has been killed at `deadline`. */
static void exchange_data(struct command *c, pid_t pid, int *in, int *out, int *error, double deadline)
{
	while (*out >= 0 || *error >= 0) {
		struct pollfd fds[3] = {{*in, POLLOUT, 0}, {*out, POLLIN, 0}, {*error, POLLIN, 0}};
		double left = deadline - clock_seconds();

		if (left <= 0) {
			c->late = true;
			kill(-pid, SIGKILL);
			return;
		}
		if (poll(fds, 3, (int)(1000 * left) + 1) < 0)
			continue;
		if (*in >= 0 && fds[0].revents)
			write_input(c, in);
		if (*out >= 0 && fds[1].revents)
			read_output(out, c->output, &c->n_output, OUTPUT_MAX, &c->too_long);
		if (*error >= 0 && fds[2].revents)
			read_output(error, c->error, &c->n_error, ERROR_MAX, NULL);
	}
}

/* Wait for the end of the process; one that has closed its output but does not end is killed, too. */
static void wait_for_end(struct command *c, pid_t pid, double deadline)
{
	int status = 0;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (clock_seconds() > deadline) {
			c->late = true;
			kill(-pid, SIGKILL);
		}
		usleep(1000);
	}
	c->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int start_command(struct command *c, int in[2], int out[2], int error[2], pid_t *ret_pid)
{
	pid_t parent = getpid();

	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0 || pipe2(error, O_CLOEXEC) < 0)
		return -1;
	*ret_pid = fork();
	if (*ret_pid == 0) {
		setpgid(0, 0); /* a command may be a script: its processes are killed together */
		exec_command(c, in[0], out[1], error[1], parent);
	}
	if (*ret_pid < 0)
		return -1;
	setpgid(*ret_pid, *ret_pid);
	return 0;
}

static int run_command(struct command *c)
{
	int in[2] = {-1, -1}, out[2] = {-1, -1}, error[2] = {-1, -1};
	double deadline = clock_seconds() + limit;
	struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
	pid_t pid;
	int ret = -1;

	c->output = malloc(OUTPUT_MAX + 1);
	sigaction(SIGPIPE, &ignore, &before); /* a command that does not read its input */
	if (c->output && start_command(c, in, out, error, &pid) == 0) {
		close_one(&in[0]);
		close_one(&out[1]);
		close_one(&error[1]);
		fcntl(in[1], F_SETFL, O_NONBLOCK);
		exchange_data(c, pid, &in[1], &out[0], &error[0], deadline);
		wait_for_end(c, pid, deadline);
		c->output[c->n_output] = '\0';
		c->error[c->n_error] = '\0';
		ret = 0;
	}
	sigaction(SIGPIPE, &before, NULL);
	close_pair(in);
	close_pair(out);
	close_pair(error);
	return ret;
}

/* ---- what a command replied ---- */

enum fleet_controller slurm_error_state(const char *error)
{
	static const struct {
		const char *text;
		enum fleet_controller state;
	} known[] = {
		{"temporarily unable to accept job", FLEET_BUSY}, /* sbatch repeats the request by itself */
		{"Unable to contact slurm controller", FLEET_DOWN},
		{"Socket timed out", FLEET_DOWN},
		{"Connection refused", FLEET_DOWN},
		{"Zero Bytes were transmitted", FLEET_DOWN},
		{"Communication connection failure", FLEET_DOWN},
		{"in standby mode", FLEET_DOWN},
		{"Protocol authentication error", FLEET_DOWN},
		{"Could not establish a configuration source", FLEET_DOWN},
		{"Munge", FLEET_DOWN},
		{"No such file or directory", FLEET_DOWN}, /* the command is not installed */
		{"Permission denied", FLEET_DOWN},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strstr(error, known[i].text))
			return known[i].state;
	return FLEET_REFUSES;
}

/* Write the last line of `error` that is not empty, without the name of the command before it. */
static void last_line(const char *error, char *ret, size_t size)
{
	const char *end = error + strlen(error), *begin;

	while (end > error && strchr(" \t\r\n", end[-1]))
		end--;
	for (begin = end; begin > error && begin[-1] != '\n'; begin--)
		;
	snprintf(ret, size, "%.*s", (int)(end - begin), begin);
	for (char *c = ret; *c; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c >= 127)
			*c = '?';
}

static struct slurm_reply reply_of(const struct command *c, int started)
{
	struct slurm_reply r = {.state = FLEET_UP};
	char line[200];

	if (started < 0) {
		r.state = FLEET_DOWN;
		snprintf(r.text, sizeof(r.text), "cannot start %s: %s", c->argv[0], strerror(errno));
		return r;
	}
	last_line(c->error, line, sizeof(line));
	if (c->late) {
		r.state = slurm_error_state(c->error) == FLEET_BUSY ? FLEET_BUSY : FLEET_DOWN;
		r.unknown = true;
		snprintf(r.text, sizeof(r.text), "%s did not end within %g s%s%s", c->argv[0], limit, line[0] ? "; " : "", line);
	} else if (c->code != 0) {
		r.state = slurm_error_state(c->error);
		r.unknown = c->code < 0;
		snprintf(r.text, sizeof(r.text), "%s", line);
		if (!line[0])
			snprintf(r.text, sizeof(r.text), "%s ended with code %d and no message", c->argv[0], c->code);
	}
	return r;
}

static struct slurm_reply not_understood(const char *command, const char *text)
{
	struct slurm_reply r = {.state = FLEET_DOWN, .unknown = true};
	char line[120];

	last_line(text, line, sizeof(line));
	snprintf(r.text, sizeof(r.text), "the output of %s is not in the format that was asked for: '%s'", command, line);
	return r;
}

/* ---- the commands ---- */

struct arguments {
	struct command c;
	char text[ARGS_MAX][ARG_SIZE];
	size_t n;
};

/* Add the argument `name` + `value`; nothing if value is empty. */
static void add_argument(struct arguments *a, const char *name, const char *value)
{
	if (!value[0] || a->n == ARGS_MAX)
		return;
	snprintf(a->text[a->n], ARG_SIZE, "%s%s", name, value);
	a->c.argv[a->n] = a->text[a->n];
	a->c.argv[++a->n] = NULL;
}

static void begin_arguments(struct arguments *a, const char *command)
{
	*a = (struct arguments){.c.input = ""};
	add_argument(a, "", command);
}

static void job_arguments(struct arguments *a, const struct slurm_options *o)
{
	char cpus[16] = "";

	begin_arguments(a, "sbatch");
	if (o->cpus > 0)
		snprintf(cpus, sizeof(cpus), "%d", o->cpus);
	add_argument(a, "--partition=", o->partition);
	add_argument(a, "--account=", o->account);
	add_argument(a, "--gres=", o->gres);
	add_argument(a, "--constraint=", o->constraint);
	add_argument(a, "--time=", o->time);
	add_argument(a, "--mem=", o->memory);
	add_argument(a, "--cpus-per-task=", cpus);
	add_argument(a, "", "--nodes=1");
	add_argument(a, "", "--ntasks=1");
	add_argument(a, "", "--requeue");
	add_argument(a, "", "--export=ALL");
	add_argument(a, "", "--chdir=/");
	add_argument(a, "--output=", o->output[0] ? o->output : "/dev/null");
}

int slurm_parse_job(const char *text, uint64_t *ret_job)
{
	size_t n = strspn(text, "0123456789");
	const char *after = text + n;

	if (*after == ';')
		after += strcspn(after, "\n");
	if (n == 0 || n > 18 || strcmp(after, "\n") != 0)
		return -1;
	*ret_job = strtoull(text, NULL, 10);
	return *ret_job > 0 ? 0 : -1;
}

struct slurm_reply slurm_submit(const struct slurm_options *o, const char *id, const char *script, uint64_t *ret_job)
{
	struct arguments a;
	struct slurm_reply r;

	job_arguments(&a, o);
	add_argument(&a, "", "--parsable");
	add_argument(&a, "--job-name=", id);
	a.c.input = script;
	r = reply_of(&a.c, run_command(&a.c));
	if (r.state == FLEET_UP && slurm_parse_job(a.c.output, ret_job) < 0)
		r = not_understood("sbatch", a.c.output);
	free(a.c.output);
	return r;
}

struct slurm_reply slurm_test(const struct slurm_options *o)
{
	struct arguments a;
	struct slurm_reply r;

	job_arguments(&a, o);
	add_argument(&a, "", "--test-only");
	a.c.input = "#!/bin/sh\n:\n";
	r = reply_of(&a.c, run_command(&a.c));
	free(a.c.output);
	return r;
}

struct slurm_reply slurm_cancel(uint64_t job)
{
	struct arguments a;
	struct slurm_reply r;
	char number[24];

	snprintf(number, sizeof(number), "%llu", (unsigned long long)job);
	begin_arguments(&a, "scancel");
	add_argument(&a, "", number);
	r = reply_of(&a.c, run_command(&a.c));
	if (r.state == FLEET_REFUSES &&
	    (strstr(a.c.error, "Invalid job id") || strstr(a.c.error, "already completing or completed")))
		r = (struct slurm_reply){.state = FLEET_UP};
	free(a.c.output);
	return r;
}

/* ---- for `tomonode check` ---- */

int slurm_parse_version(const char *text, int *ret_major, int *ret_minor, char ret_version[32])
{
	const char *digits = strpbrk(text, "0123456789");
	size_t n = digits ? strspn(digits, "0123456789.") : 0;

	if (strncmp(text, "slurm", 5) != 0 || n == 0 || n >= 32 || sscanf(digits, "%d.%d", ret_major, ret_minor) != 2)
		return -1;
	memcpy(ret_version, digits, n);
	ret_version[n] = '\0';
	return 0;
}

struct slurm_reply slurm_version(char ret_version[32])
{
	struct arguments a;
	struct slurm_reply r;
	int major, minor;

	begin_arguments(&a, "sbatch");
	add_argument(&a, "", "--version");
	r = reply_of(&a.c, run_command(&a.c));
	if (r.state == FLEET_UP && slurm_parse_version(a.c.output, &major, &minor, ret_version) < 0)
		r = not_understood("sbatch --version", a.c.output);
	free(a.c.output);
	return r;
}

/* Return true if the shell would find the first of the words. */
static bool is_visible(const char *words)
{
	char folder[400], path[800];
	size_t n = strcspn(words, " \t");
	const char *at = getenv("PATH");

	if (memchr(words, '/', n))
		return snprintf(path, sizeof(path), "%.*s", (int)n, words) < (int)sizeof(path) && access(path, X_OK) == 0;
	for (; at && *at; at += strspn(at, ":")) {
		size_t length = strcspn(at, ":");

		snprintf(folder, sizeof(folder), "%.*s", (int)length, at);
		snprintf(path, sizeof(path), "%s/%.*s", folder, (int)n, words);
		if (access(path, X_OK) == 0)
			return true;
		at += length;
	}
	return false;
}

int slurm_program_version(const char *program, char *ret_version, size_t size)
{
	struct arguments a;
	double before = limit;
	char command[ARG_SIZE];
	int ret;

	if (!is_visible(program))
		return 0;
	if (snprintf(command, sizeof(command), "exec %s --version", program) >= (int)sizeof(command))
		return -1;
	begin_arguments(&a, "/bin/sh");
	add_argument(&a, "", "-c");
	add_argument(&a, "", command);
	limit = SLURM_PROGRAM_SECONDS;
	ret = run_command(&a.c) == 0 && a.c.code == 0 && !strncmp(a.c.output, "tomonode ", 9) ? 1 : -1;
	limit = before;
	if (ret > 0)
		last_line(a.c.output, ret_version, size);
	free(a.c.output);
	return ret;
}

const char *slurm_hint(const char *error)
{
	static const char *const folders[] = {"/usr/bin", "/usr/local/bin", "/opt/slurm/bin", "/usr/local/slurm/bin",
					      "/opt/slurm/default/bin"};
	static const struct {
		const char *text, *hint;
	} known[] = {
		{"unge", "munged does not run on this machine, or its key is not that of the cluster (munge -n | unmunge)"},
		{"authentication",
		 "munged does not run on this machine, or its key is not that of the cluster (munge -n | unmunge)"},
		{"did not end within",
		 "It waits without a reply: check slurmctld (scontrol ping), munged on this machine (munge -n), and "
		 "firewalls"},
		{"configuration source",
		 "Slurm finds no slurm.conf: install that of the cluster in /etc/slurm, or set SLURM_CONF"},
		{"Invalid account", "The user has no association with this account and partition (sacctmgr show associations)"},
		{"Invalid user", "The controller does not know the user (id, on its machine), or the user has no account"},
		{"User not found", "The controller does not know the user (id, on its machine), or the user has no account"},
	};
	static char elsewhere[200];
	char path[80];

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strstr(error, known[i].text))
			return known[i].hint;
	if (!strstr(error, "sbatch: No such file"))
		return "";
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(path, sizeof(path), "%s/sbatch", folders[i]);
		snprintf(elsewhere, sizeof(elsewhere), "sbatch is in %s, which is not in PATH of this process", folders[i]);
		if (access(path, X_OK) == 0)
			return elsewhere;
	}
	return "The commands of Slurm are not in PATH: install them (slurm-client), or add their folder to PATH";
}

/* ---- squeue ---- */

static int read_state(const char *text)
{
	static const struct {
		const char *name;
		int state;
	} known[] = {
		{"PENDING", FLEET_PENDING},	  {"CONFIGURING", FLEET_PENDING}, {"REQUEUED", FLEET_PENDING},
		{"REQUEUE_HOLD", FLEET_PENDING},  {"REQUEUE_FED", FLEET_PENDING}, {"SPECIAL_EXIT", FLEET_PENDING},
		{"RESV_DEL_HOLD", FLEET_PENDING}, {"RUNNING", FLEET_RUNNING},	  {"SUSPENDED", FLEET_RUNNING},
		{"STOPPED", FLEET_RUNNING},	  {"RESIZING", FLEET_RUNNING},	  {"SIGNALING", FLEET_RUNNING},
		{"COMPLETING", FLEET_ENDING},	  {"STAGE_OUT", FLEET_ENDING},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(text, known[i].name))
			return known[i].state;
	return FLEET_GONE; /* COMPLETED, FAILED, CANCELLED, TIMEOUT, ... */
}

static double read_time(const char *text)
{
	size_t n = strspn(text, "0123456789");

	return n > 0 && n < 12 && !text[n] ? strtod(text, NULL) : 0; /* "N/A": it has not started */
}

int slurm_parse_row(const char *line, struct fleet_row *ret_row)
{
	struct fleet_row row = {0};
	char copy[512], *field[6], *rest = copy;
	int state;

	if (strlen(line) >= sizeof(copy))
		return -1;
	strcpy(copy, line);
	for (int i = 0; i < 6; i++) { /* the last one, the reason, may contain the separator */
		field[i] = i < 5 ? strsep(&rest, "|") : rest;
		if (!field[i])
			return -1;
	}
	row.job = strtoull(field[0], NULL, 10);
	if (row.job == 0 || strspn(field[0], "0123456789_[]-,%") != strlen(field[0]) || !field[1][0])
		return -1;
	state = read_state(field[1]);
	row.state = (enum fleet_state)state;
	row.submitted = read_time(field[2]);
	row.started = state == FLEET_PENDING ? 0 : read_time(field[3]); /* of a pending job: when it is expected to start */
	snprintf(row.id, sizeof(row.id), "%.*s", FLEET_ID_SIZE - 1, strlen(field[4]) < FLEET_ID_SIZE ? field[4] : "");
	snprintf(row.reason, sizeof(row.reason), "%.79s", field[5]);
	*ret_row = row;
	return state != FLEET_GONE;
}

static int parse_rows(char *text, struct fleet_row *ret_rows, size_t n_rows, size_t *ret_n)
{
	char *line;
	size_t n = 0;

	while ((line = strsep(&text, "\n")))
		if (line[0] && n < n_rows) {
			int is = slurm_parse_row(line, &ret_rows[n]);

			if (is < 0)
				return -1;
			n += is > 0 && !strncmp(ret_rows[n].id, FLEET_ID_PREFIX, strlen(FLEET_ID_PREFIX));
		}
	*ret_n = n;
	return 0;
}

struct slurm_reply slurm_list(struct fleet_row *ret_rows, size_t n_rows, size_t *ret_n)
{
	struct arguments a;
	struct slurm_reply r;
	char user[24];

	snprintf(user, sizeof(user), "%ld", (long)geteuid());
	begin_arguments(&a, "squeue");
	add_argument(&a, "", "--noheader");
	add_argument(&a, "--user=", user);
	add_argument(&a, "--format=", SLURM_FORMAT);
	r = reply_of(&a.c, run_command(&a.c));
	if (r.state == FLEET_UP && a.c.too_long)
		r = not_understood("squeue", "too many jobs");
	else if (r.state == FLEET_UP && parse_rows(a.c.output, ret_rows, n_rows, ret_n) < 0)
		r = not_understood("squeue", a.c.output);
	free(a.c.output);
	return r;
}

/* ---- the script ---- */

static bool is_plain(const char *text)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:_[]%-";

	return text[0] && strspn(text, allowed) == strlen(text);
}

/* Append an option with a path in quotes; nothing for an empty path. false: it does not fit in a script. */
static bool add_path(char *script, const char *option, const char *path)
{
	size_t n = strlen(script);

	if (!path || !path[0])
		return true;
	if (strpbrk(path, "'\n\r"))
		return false;
	return snprintf(script + n, SLURM_SCRIPT_SIZE - n, " --%s '%s'", option, path) < (int)(SLURM_SCRIPT_SIZE - n);
}

/* The secret reaches the pilot on its standard input; the shell reads it from the script itself. */
int slurm_script(const struct slurm_pilot *p, char ret_script[SLURM_SCRIPT_SIZE], struct err *err)
{
	const struct {
		const char *option, *path;
	} paths[] = {{"spool", p->spool}, {"certificate", p->certificate}, {"key", p->key}, {"authorities", p->authorities}};
	char text[SLURM_SCRIPT_SIZE];
	size_t at;
	int n;

	if (!is_plain(p->id) || !is_plain(p->address) || !is_plain(p->secret))
		return err_set(err, EINVAL, "the address '%s' of the node cannot be used in a script", p->address);
	n = snprintf(text, sizeof(text), "#!/bin/sh\nexec %s pilot --node '%s' --id '%s' --secret-file /dev/stdin", p->program,
		     p->address, p->id);
	if (n < 0 || (size_t)n >= sizeof(text) || strpbrk(p->program, "\n\r"))
		return err_set(err, EINVAL, "the command of the pilots is too long or has a line break: %.60s", p->program);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (!add_path(text, paths[i].option, paths[i].path))
			return err_set(err, EINVAL, "the path of --%s cannot be used in a script: %.200s", paths[i].option,
				       paths[i].path);
	at = strlen(text);
	n = snprintf(text + at, sizeof(text) - at, " <<'END'\n%s\nEND\n", p->secret);
	if (n < 0 || (size_t)n >= sizeof(text) - at)
		return err_set(err, EINVAL, "the command of the pilots is too long: %.60s", p->program);
	memcpy(ret_script, text, at + (size_t)n + 1);
	return 0;
}
