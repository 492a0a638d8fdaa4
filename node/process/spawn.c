/* SPDX-License-Identifier: Apache-2.0 */
#include "node/process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static void exec_child(char *const *argv, const int *keep, size_t n_keep, pid_t parent)
{
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* the parent died before the call above */
		_exit(1);
	signal(SIGTERM, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (close_range(3, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
		_exit(1); /* otherwise the child would inherit a descriptor that it must not have */
	for (size_t i = 0; i < n_keep; i++)
		fcntl(keep[i], F_SETFD, 0);
	execv("/proc/self/exe", argv);
	_exit(127);
}

int spawn_start(char *const *argv, const int *keep, size_t n_keep, pid_t *ret_pid, struct err *err)
{
	pid_t parent = getpid(), pid = fork();

	if (pid == 0)
		exec_child(argv, keep, n_keep, parent);
	if (pid < 0)
		return err_set(err, errno, "cannot start a process: %s", strerror(errno));
	*ret_pid = pid;
	return 0;
}
