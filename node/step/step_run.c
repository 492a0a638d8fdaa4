/* SPDX-License-Identifier: Apache-2.0 */
/* step_run.c - the helper: run the program of a step. It waits by polling, because what a program writes, its end, its time, the
 * size of its files and the caller are watched at once. */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/clock.h"
#include "node/base/folder.h"
#include "node/sandbox/sandbox.h"
#include "node/step/step_files.h"
#include "node/step/step_internal.h"

#define LOOK_MS 20			 /* between two looks at the program */
#define SIZE_EVERY 0.25			 /* s between two looks at its files */
#define ROOM_LEAST ((uint64_t)256 << 20) /* bytes that it may write beside 4 volumes */
#define DESCRIPTORS 1024
#define LAST_LINE 160 /* characters of its output in a sentence */

struct running {
	const struct config *config;
	const struct step_conf *step;
	char in[420], out[420], scratch[420];
	uint64_t room; /* bytes that it may write */
	int gpu;       /* as in struct step_request */
	int caller;    /* socket */
	int output;    /* what it writes, -1: closed */
	int trouble;   /* why it could not be started; closed by exec */
	pid_t helper, pid;
	size_t n_output;
	bool cancelled, over_time, over_room, left;
	int status;
	struct step_answer *answer;
};

/* ---- the program ---- */

static bool set_limit(int what, rlim_t to)
{
	struct rlimit limit = {to, to}, now;

	if (getrlimit(what, &now) == 0 && now.rlim_max != RLIM_INFINITY && now.rlim_max < to)
		limit.rlim_cur = limit.rlim_max = now.rlim_max;
	return setrlimit(what, &limit) == 0;
}

/* That of addresses comes last: nothing is allocated afterwards. */
static int set_limits(const struct running *r, struct err *err)
{
	return set_limit(RLIMIT_CORE, 0) && set_limit(RLIMIT_CPU, (rlim_t)ceil(r->step->time * r->step->threads) + 1) &&
			       set_limit(RLIMIT_FSIZE, (rlim_t)r->room) && set_limit(RLIMIT_NOFILE, DESCRIPTORS) &&
			       set_limit(r->step->gpu ? RLIMIT_DATA : RLIMIT_AS, (rlim_t)r->step->memory)
		       ? 0
		       : err_set(err, errno, "cannot set its limits: %s", strerror(errno));
}

void step_visible_devices(const char *list, int n, char *ret, size_t size)
{
	snprintf(ret, size, "%s", list ? list : "");
	if (n < 0)
		return;
	for (int i = 0; list && list[0] && i < n; i++)
		list += strcspn(list, ",") + (list[strcspn(list, ",")] == ',');
	if (list)
		snprintf(ret, size, "%.*s", (int)strcspn(list, ","), list);
	else
		snprintf(ret, size, "%d", n);
}

#define VARIABLES 14
#define VARIABLE_SIZE (CONFIG_PATH_SIZE + 440)

struct environment {
	char text[VARIABLES][VARIABLE_SIZE];
	char *all[VARIABLES + 1];
	int n;
};

__attribute__((format(printf, 2, 3))) static void set_variable(struct environment *e, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(e->text[e->n], VARIABLE_SIZE, fmt, args);
	va_end(args);
	e->all[e->n] = e->text[e->n];
	e->n++;
}

/* Tell it which GPU it may use: none without `gpu`. */
static void set_devices(const struct running *r, struct environment *e)
{
	const char *list = getenv("CUDA_VISIBLE_DEVICES"), *order = getenv("CUDA_DEVICE_ORDER");
	char visible[300];

	step_visible_devices(list, r->gpu, visible, sizeof(visible));
	if (!r->step->gpu)
		set_variable(e, "CUDA_VISIBLE_DEVICES=");
	else if (list || r->gpu >= 0)
		set_variable(e, "CUDA_VISIBLE_DEVICES=%s", visible);
	if (order)
		set_variable(e, "CUDA_DEVICE_ORDER=%s", order);
}

static void set_environment(const struct running *r, struct environment *e)
{
	static const char *const threads[] = {"OMP", "OPENBLAS", "MKL", "NUMBA"};
	const char *program = r->step->program;

	set_variable(e, "PATH=/usr/local/bin:/usr/bin:/bin");
	set_variable(e, "LANG=C.UTF-8");
	set_variable(e, "PYTHONDONTWRITEBYTECODE=1");
	set_variable(e, "PYTHONPATH=%.*s", (int)(file_name(program) - program), program);
	set_variable(e, "HOME=%s", r->scratch);
	set_variable(e, "TMPDIR=%s", r->scratch);
	for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]); i++)
		set_variable(e, "%s_NUM_THREADS=%d", threads[i], r->step->threads);
	set_devices(r, e);
}

/* In the new process. fd: of the program. Does not return. */
static void execute_program(const struct running *r, int fd)
{
	const struct step_conf *s = r->step;
	const struct sandbox_step fence = {s, r->in, r->out, r->scratch};
	char *const argv[] = {(char *)s->program, (char *)r->in, (char *)r->out, NULL};
	struct environment env = {0};
	struct err err = {0};
	int null = open("/dev/null", O_RDWR);

	set_environment(r, &env);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != r->helper) /* it died before the call above */
		_exit(1);
	signal(SIGINT, SIG_DFL);
	setpgid(0, 0);
	umask(0077);
	if (null < 0 || dup2(null, 0) < 0 || dup2(r->output, 1) < 0 || dup2(r->output, 2) < 0 || chdir(r->scratch) < 0)
		err_set(&err, errno, "%s", strerror(errno));
	else if (sandbox_enter_step(r->config, &fence, &err) == 0 && set_limits(r, &err) == 0) {
		close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
		fcntl(fd, F_SETFD, 0); /* a script is read from it */
		syscall(SYS_execveat, fd, "", argv, env.all, AT_EMPTY_PATH);
		err_set(&err, errno, "%s", strerror(errno));
	}
	dprintf(r->trouble, "%s", err.msg);
	_exit(127);
}

/* ---- watching ---- */

static void kill_group(const struct running *r)
{
	kill(-r->pid, SIGKILL);
}

static void read_output(struct running *r)
{
	char *to = r->answer->output, rest[4096];
	bool full = r->n_output >= STEP_OUTPUT;
	ssize_t n = read(r->output, full ? rest : to + r->n_output, full ? sizeof(rest) : STEP_OUTPUT - r->n_output);

	if (n > 0 && !full)
		r->n_output += (size_t)n;
	if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) {
		close(r->output);
		r->output = -1;
	}
}

/* Wait a moment for output or a message of the caller; any message ends the program. */
static void watch_once(struct running *r)
{
	struct pollfd p[] = {{.fd = r->caller, .events = POLLIN}, {.fd = r->output, .events = POLLIN}};
	struct step_request m;

	if (poll(p, 2, LOOK_MS) <= 0)
		return;
	if (p[1].revents)
		read_output(r);
	if (p[0].revents) {
		if (recv(r->caller, &m, sizeof(m), MSG_DONTWAIT) == 0)
			_exit(0); /* the caller has ended, and so does the program */
		r->cancelled = true;
	}
}

static void watch_program(struct running *r)
{
	double begun = clock_seconds(), sizes_at = begun, now = begun;
	struct rusage use = {0};
	pid_t got;

	while ((got = wait4(r->pid, &r->status, WNOHANG, &use)) == 0 || (got < 0 && errno == EINTR)) {
		watch_once(r);
		now = clock_seconds();
		if (now - begun > r->step->time)
			r->over_time = true;
		if (now - sizes_at > SIZE_EVERY) {
			sizes_at = now;
			r->over_room = folder_bytes(r->out) + folder_bytes(r->scratch) > r->room;
		}
		if (r->cancelled || r->over_time || r->over_room)
			kill_group(r);
	}
	r->answer->end.seconds = clock_seconds() - begun;
	r->answer->end.memory = 1024 * (uint64_t)use.ru_maxrss;
	r->left = kill(-r->pid, 0) == 0;
	kill_group(r);
	while (waitpid(-r->pid, NULL, 0) > 0 || errno == EINTR) /* this process is the parent of orphans */
		;
	for (struct pollfd p = {.fd = r->output, .events = POLLIN};
	     r->output >= 0 && r->n_output < STEP_OUTPUT && poll(&p, 1, 0) > 0;)
		read_output(r);
}

/* ---- the answer ---- */

/* Replace what is not text, and cut blank lines at the end. */
static void clean_output(char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (text[i] != '\n' && (text[i] < ' ' || text[i] > '~'))
			text[i] = text[i] == '\t' ? ' ' : '?';
	while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' '))
		text[--n] = '\0';
}

/* Return ": " and the last line of its output; "": none. */
static const char *last_line(const struct running *r, char ret[LAST_LINE + 3])
{
	const char *text = r->answer->output, *line = strrchr(text, '\n');

	snprintf(ret, LAST_LINE + 3, "%s%.*s", text[0] ? ": " : "", LAST_LINE, line ? line + 1 : text);
	return ret;
}

static void set_answer(struct step_answer *a, const struct err *err)
{
	a->code = err->code;
	snprintf(a->why, sizeof(a->why), "%.*s", (int)sizeof(a->why) - 1, err->msg);
}

/* trouble: why it could not be started; "": it was. */
static void judge_end(const struct running *r, const char *trouble)
{
	struct step_answer *a = r->answer;
	char of_output[LAST_LINE + 3];
	const char *line = last_line(r, of_output);
	struct err err = {0};

	a->end.signal = WIFSIGNALED(r->status) ? WTERMSIG(r->status) : 0;
	a->end.exit_code = WIFEXITED(r->status) ? WEXITSTATUS(r->status) : 0;
	if (trouble[0])
		err_set(&err, EBADMSG, "it could not be started: %s", trouble);
	else if (r->cancelled)
		err_set(&err, ECANCELED, "cancelled while step '%s' ran", r->step->name);
	else if (r->over_time)
		err_set(&err, EBADMSG, "it was killed, because it ran longer than its time, %g s%s", r->step->time, line);
	else if (r->over_room)
		err_set(&err, EBADMSG, "it was killed, because it wrote more than %.0f MB%s", (double)r->room / 1e6, line);
	else if (a->end.signal)
		err_set(&err, EBADMSG, "it ended by signal %d (%s)%s", a->end.signal, strsignal(a->end.signal), line);
	else if (a->end.exit_code)
		err_set(&err, EBADMSG, "exit code %d%s", a->end.exit_code, line);
	else if (r->left)
		err_set(&err, EBADMSG, "it left a process behind, which was killed");
	set_answer(a, &err);
}

/* In the helper: watch the program until its end. */
static void attend_program(struct running *r, int output, int trouble)
{
	char text[300] = "";

	setpgid(r->pid, r->pid); /* also here: whoever is first */
	r->output = output;
	if (read(trouble, text, sizeof(text) - 1) < 0) /* ends with the exec */
		text[0] = '\0';
	watch_program(r);
	if (r->output >= 0)
		close(r->output);
	clean_output(r->answer->output, r->n_output);
	judge_end(r, text);
}

static void close_if_open(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void run_program(struct running *r, int program)
{
	int output[2] = {-1, -1}, trouble[2] = {-1, -1};
	struct err err = {0};

	r->helper = getpid();
	if (pipe2(output, O_CLOEXEC) < 0 || pipe2(trouble, O_CLOEXEC) < 0 || (r->pid = fork()) < 0)
		err_set(&err, EAGAIN, "no process for step '%s': %s", r->step->name, strerror(errno));
	r->output = output[1];
	r->trouble = trouble[1];
	if (!err.code && r->pid == 0)
		execute_program(r, program);
	close_if_open(output[1]);
	close_if_open(trouble[1]);
	if (err.code) {
		set_answer(r->answer, &err);
		close_if_open(output[0]);
	} else {
		attend_program(r, output[0], trouble[0]);
	}
	close_if_open(trouble[0]);
}

/* ---- requests ---- */

static bool is_below(const char *folder, const char *path)
{
	size_t n = strlen(folder);

	return !strncmp(path, folder, n) && path[n] == '/' && !strstr(path + n, "/.");
}

static bool is_folder(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static void answer_request(const struct config *config, struct step_files *files, const char *folder, int caller,
			   struct step_request *m, struct step_answer *ret)
{
	struct running r = {.config = config, .caller = caller, .answer = ret, .output = -1, .gpu = m->gpu};
	struct err err = {0};
	size_t i = 0;
	int program = -1;

	m->name[sizeof(m->name) - 1] = m->folder[sizeof(m->folder) - 1] = '\0';
	while (i < config->n_steps && strcmp(config->steps[i].name, m->name) != 0)
		i++;
	snprintf(r.in, sizeof(r.in), "%s/in", m->folder);
	snprintf(r.out, sizeof(r.out), "%s/out", m->folder);
	snprintf(r.scratch, sizeof(r.scratch), "%s/scratch", m->folder);
	if (i == config->n_steps || !is_below(folder, m->folder) || !is_folder(r.in) || !is_folder(r.out) ||
	    !is_folder(r.scratch))
		err_set(&err, EINVAL, "no step '%s' with the folder %.300s", m->name, m->folder);
	else if (step_files_open(&config->steps[i], &files[i], &program, &err) == 0) {
		r.step = &config->steps[i];
		r.room = 4 * m->bytes + ROOM_LEAST;
		run_program(&r, program);
		close(program);
		folder_empty(r.scratch, &err); /* as long as it may change modes; what stays is removed later */
		return;
	}
	set_answer(ret, &err);
}

void step_serve(const struct config *config, const char *folder, int fd)
{
	struct step_files *files = calloc(config->n_steps, sizeof(*files));
	struct step_answer *answer = malloc(sizeof(*answer));
	struct step_request m;
	ssize_t n;

	while (files && answer && ((n = recv(fd, &m, sizeof(m), 0)) == (ssize_t)sizeof(m) || (n < 0 && errno == EINTR))) {
		if (n < 0 || !m.name[0]) /* ended already */
			continue;
		memset(answer, 0, sizeof(*answer));
		answer_request(config, files, folder, fd, &m, answer);
		if (send(fd, answer, sizeof(*answer), MSG_NOSIGNAL) != (ssize_t)sizeof(*answer))
			break;
	}
	free(answer);
	free(files);
}
