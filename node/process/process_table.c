/* SPDX-License-Identifier: Apache-2.0 */
#include "node/process/process_table.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "node/process/worker_ipc.h"

#define ARGS_MAX 12
#define WORKER_NICE 5 /* nice value of workers: a worker that uses every core must not slow associations down */

const char *process_role_name(enum process_role role)
{
	static const char *const names[] = {"receiver", "index",   "worker",  "deliver", "status",
					    "commit",	"resolve", "cluster", "alert",	 "check"};

	return names[role];
}

/* In the child process: let it be killed when the node ends, ignore SIGINT and SIGHUP, reset all other signals. */
static void child_begin(pid_t node)
{
	static const int plain[] = {SIGTERM, SIGCHLD, SIGALRM, SIGUSR1, SIGUSR2};
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != node) /* the node died before the call above */
		_exit(1);
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		signal(plain[i], SIG_DFL);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void keep_over_exec(int fd)
{
	if (fd >= 0)
		fcntl(fd, F_SETFD, 0);
}

static int add_process(struct process_table *all, const struct process *p, pid_t pid, int ipc_fd, double now)
{
	struct process *slot = &all->list[all->n++];

	*slot = *p;
	slot->pid = pid;
	slot->ipc_fd = ipc_fd;
	slot->started = slot->seen = now;
	slot->kill_at = 0;
	return 0;
}

/* Set the number of threads of OpenMP for the whole process. They sleep while they wait for each other: else they spin for some
 * milliseconds first, while the receiver, deliveries and other workers need the processor. */
static void limit_threads(int threads)
{
	char text[16];

	setenv("OMP_WAIT_POLICY", "passive", 0);
	if (threads <= 0)
		return;
	snprintf(text, sizeof(text), "%d", threads);
	setenv("OMP_NUM_THREADS", text, 1);
}

int process_table_spawn(struct process_table *all, const struct process *p, const char *const *args, double now, struct err *err)
{
	const char *argv[ARGS_MAX + 8];
	char notify[16], ipc[16], ledger[16];
	pid_t node = getpid(), pid;
	int pair[2] = {-1, -1};
	size_t n = 0;

	if (all->n >= PROCESS_MAX)
		return err_set(err, EAGAIN, "%zu processes are running, the maximum", all->n);
	argv[n++] = "tomonode";
	while (*args && n < ARGS_MAX)
		argv[n++] = *args++;
	if (*args)
		return err_set(err, E2BIG, "too many arguments for a work process");
	snprintf(notify, sizeof(notify), "%d", all->notify_fd);
	argv[n++] = "--notify";
	argv[n++] = notify;
	if (p->role == PROCESS_WORKER || p->role == PROCESS_CLUSTER) {
		if (worker_ipc_pair(pair) < 0)
			return err_set(err, errno, "cannot create the socket to a work process: %s", strerror(errno));
		snprintf(ipc, sizeof(ipc), "%d", pair[1]);
		argv[n++] = "--ipc";
		argv[n++] = ipc;
	}
	if (p->role == PROCESS_WORKER && !p->seat && all->ledger_fd > 0) {
		snprintf(ledger, sizeof(ledger), "%d", all->ledger_fd);
		argv[n++] = "--ledger";
		argv[n++] = ledger;
	}
	argv[n] = NULL;
	pid = fork();
	if (pid == 0) {
		child_begin(node);
		keep_over_exec(all->lock_fd);
		keep_over_exec(all->notify_fd);
		keep_over_exec(pair[1]);
		if (p->listen_fd > 0)
			keep_over_exec(p->listen_fd);
		if (p->role == PROCESS_WORKER && !p->seat && all->ledger_fd > 0)
			keep_over_exec(all->ledger_fd);
		limit_threads(p->threads);
		if (p->role == PROCESS_WORKER) {
			/* Each case allocates buffers of many megabytes: huge pages save most page faults (mallopt(3) has no such
			 * option). */
			setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1", 0);
			setpriority(PRIO_PROCESS, 0, WORKER_NICE);
		}
		execv("/proc/self/exe", (char *const *)argv);
		_exit(127);
	}
	if (pid < 0)
		err_set(err, errno, "cannot start a %s process: %s", process_role_name(p->role), strerror(errno));
	if (pair[1] >= 0)
		close(pair[1]);
	if (pid < 0) {
		if (pair[0] >= 0)
			close(pair[0]);
		return -EAGAIN;
	}
	return add_process(all, p, pid, pair[0], now);
}

int process_table_fork(struct process_table *all, const struct process *p, int (*run)(void *ctx), void *ctx, double now,
		       struct err *err)
{
	pid_t node = getpid(), pid;

	if (all->n >= PROCESS_MAX)
		return err_set(err, EAGAIN, "%zu processes are running, the maximum", all->n);
	fflush(NULL); /* otherwise the child would write the buffered output again */
	pid = fork();
	if (pid < 0)
		return err_set(err, errno, "cannot start a %s process: %s", process_role_name(p->role), strerror(errno));
	if (pid == 0) {
		child_begin(node);
		for (size_t i = 0; i < all->n; i++) /* without exec, the sockets to the workers would stay open in the child */
			if (all->list[i].ipc_fd >= 0)
				close(all->list[i].ipc_fd);
		_exit(run(ctx));
	}
	return add_process(all, p, pid, -1, now);
}

void process_close_inherited(void)
{
	if (close_range(3, ~0u, 0) < 0)
		_exit(1);
}

struct process *process_table_find(struct process_table *all, enum process_role role, int64_t job, const char *destination)
{
	for (size_t i = 0; i < all->n; i++) {
		struct process *p = &all->list[i];

		if (p->role == role && !p->retired && (!job || p->job == job) &&
		    (!destination || !strcmp(p->destination, destination)))
			return p;
	}
	return NULL;
}

size_t process_table_count(const struct process_table *all, enum process_role role, const char *destination)
{
	size_t n = 0;

	for (size_t i = 0; i < all->n; i++)
		n += all->list[i].role == role && !strcmp(all->list[i].destination, destination);
	return n;
}

struct process *process_table_of_slot(struct process_table *all, int slot)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->list[i].role == PROCESS_WORKER && all->list[i].slot == slot)
			return &all->list[i];
	return NULL;
}

void process_stop(struct process *p, double now, double grace)
{
	if (p->kill_at == 0 && p->pid > 0) /* 0: it has ended */
		kill(p->pid, SIGTERM);
	if (p->kill_at == 0 || now + grace < p->kill_at)
		p->kill_at = now + grace;
}

void process_kill(struct process *p, double now)
{
	if (p->pid > 0)
		kill(p->pid, SIGKILL);
	p->kill_at = now + 1; /* process_table_tick() sends it again until the process has ended */
}

double process_table_tick(struct process_table *all, double now)
{
	double next = 0;

	for (size_t i = 0; i < all->n; i++) {
		struct process *p = &all->list[i];

		if (p->kill_at == 0)
			continue;
		if (p->kill_at <= now)
			process_kill(p, now);
		if (next == 0 || p->kill_at < next)
			next = p->kill_at;
	}
	return next;
}

int process_table_reap(struct process_table *all, struct process *ret_process, int *ret_status)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (size_t i = 0; i < all->n; i++)
			if (all->list[i].pid == pid) {
				*ret_process = all->list[i];
				*ret_status = status;
				all->list[i] = all->list[--all->n];
				return 1;
			}
	return 0;
}

double process_cpu_seconds(const struct process *p)
{
	struct timespec used;
	clockid_t clock;

	if (clock_getcpuclockid(p->pid, &clock) != 0 || clock_gettime(clock, &used) < 0)
		return -1;
	return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

void process_describe(int status, char *ret_text, size_t size)
{
	if (WIFSIGNALED(status))
		snprintf(ret_text, size, "died with signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		snprintf(ret_text, size, "ended with exit code %d", WEXITSTATUS(status));
}
