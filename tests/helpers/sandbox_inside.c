/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox_inside.c - what a process can do in the sandbox of a role, tried from inside.
 *
 * sandbox_inside MODE ROLE[:DETAIL] SPOOL LOG ACTION [ARGUMENT]   MODE: auto, on, off; LOG: stderr, syslog
 * enters the role and prints "done", or the name of the error ("EPERM"); a signal ends it as it would end a process of the node.
 * An association is entered through its listener, as in the node.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <net/if.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "node/sandbox/sandbox.h"

static int answer(long rc)
{
	return rc < 0 ? errno : 0;
}

static int try_open(const char *path, int flags)
{
	return answer(open(path, flags | O_CLOEXEC, 0600));
}

static int try_fork(const char *argument)
{
	pid_t pid = fork();

	(void)argument;
	if (pid == 0)
		_exit(0);
	return answer(pid);
}

static void *nothing(void *ctx)
{
	return ctx;
}

static int try_thread(const char *argument)
{
	pthread_t thread;
	int rc = pthread_create(&thread, NULL, nothing, NULL);

	(void)argument;
	return rc ? rc : pthread_join(thread, NULL);
}

static int try_socket(const char *family)
{
	static const struct {
		const char *name;
		int family;
	} known[] = {{"inet", AF_INET}, {"inet6", AF_INET6}, {"unix", AF_UNIX}, {"packet", AF_PACKET}, {"netlink", AF_NETLINK}};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(known[i].name, family))
			return answer(socket(known[i].family, family[0] == 'p' ? SOCK_RAW : SOCK_DGRAM, 0));
	return EINVAL;
}

static int try_exec(const char *path)
{
	return answer(execl(path, path, (char *)NULL));
}

static int try_read(const char *path)
{
	return try_open(path, O_RDONLY);
}

static int try_write(const char *path)
{
	return try_open(path, O_WRONLY);
}

static int try_make(const char *path)
{
	return try_open(path, O_WRONLY | O_CREAT | O_EXCL);
}

static int try_remove(const char *path)
{
	return answer(unlink(path));
}

/* "FROM TO" */
static int try_rename(const char *both)
{
	char from[1024];
	const char *space = strchr(both, ' ');

	if (!space)
		return EINVAL;
	snprintf(from, sizeof(from), "%.*s", (int)(space - both), both);
	return answer(rename(from, space + 1));
}

static int try_trace(const char *pid)
{
	return answer(ptrace(PTRACE_ATTACH, (pid_t)atoi(pid), NULL, NULL));
}

static int try_peek(const char *pid)
{
	char byte;
	struct iovec here = {&byte, 1}, there = {(void *)&errno, 1};

	return answer(process_vm_readv((pid_t)atoi(pid), &here, 1, &there, 1, 0));
}

static int try_kill(const char *pid)
{
	return answer(kill((pid_t)atoi(pid), 0));
}

static int try_mount(const char *path)
{
	return answer(mount("none", path, "tmpfs", 0, NULL));
}

static int try_ring(const char *argument)
{
	struct io_uring_params p = {0};

	(void)argument;
	return answer(syscall(SYS_io_uring_setup, 1, &p));
}

static int try_raise_limit(const char *argument)
{
	struct rlimit limit = {.rlim_cur = 1 << 16, .rlim_max = 1 << 16};

	(void)argument;
	return answer(setrlimit(RLIMIT_NOFILE, &limit));
}

static int try_mode(const char *path)
{
	return answer(chmod(path, 0666));
}

static int try_type(const char *argument)
{
	(void)argument;
	return answer(ioctl(0, TIOCSTI, "x"));
}

/* The number of an interface, as in fe80::1%lo. */
static int try_interface(const char *name)
{
	return answer(if_nametoindex(name) > 0 ? 0 : -1);
}

static int try_open_many(const char *count)
{
	int rc = 0;

	for (int i = atoi(count); i > 0 && rc == 0; i--)
		rc = try_open("/dev/null", O_RDONLY);
	return rc;
}

static const struct action {
	const char *name;
	int (*run)(const char *argument); /* errno, or 0 */
} actions[] = {
	{"fork", try_fork},	{"thread", try_thread},	      {"socket", try_socket},	    {"exec", try_exec},
	{"read", try_read},	{"write", try_write},	      {"make", try_make},	    {"remove", try_remove},
	{"rename", try_rename}, {"trace", try_trace},	      {"peek", try_peek},	    {"kill", try_kill},
	{"mount", try_mount},	{"ring", try_ring},	      {"mode", try_mode},	    {"raise-limit", try_raise_limit},
	{"type", try_type},	{"open-many", try_open_many}, {"interface", try_interface},
};

static int enter(char *role, const struct config *config, struct err *err)
{
	char *detail = strchr(role, ':');

	if (detail)
		*detail++ = '\0';
	for (int r = 0; r < SANDBOX_ROLES; r++) {
		if (strcmp(sandbox_role_name(r), role) != 0)
			continue;
		if (r == SANDBOX_ASSOCIATION && sandbox_enter(SANDBOX_LISTENER, config, NULL, err) < 0)
			return -EPERM;
		return sandbox_enter(r, config, detail, err);
	}
	return err_set(err, EINVAL, "no role %s", role);
}

int main(int argc, char **argv)
{
	struct config config = {0};
	struct err err = {0};
	const char *argument = argc > 6 ? argv[6] : "";

	if (argc < 6 || argc > 7)
		return 2;
	setvbuf(stdout, NULL, _IONBF, 0);
	config.node.sandbox = !strcmp(argv[1], "off") ? SANDBOX_OFF : !strcmp(argv[1], "on") ? SANDBOX_ON : SANDBOX_AUTO;
	config.node.log_syslog = !strcmp(argv[4], "syslog");
	snprintf(config.node.spool, sizeof(config.node.spool), "%s", argv[3]);
	if (enter(argv[2], &config, &err) < 0) {
		printf("%s\n", err.msg);
		return 3;
	}
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
		if (!strcmp(actions[i].name, argv[5])) {
			int rc = actions[i].run(argument);

			printf("%s\n", rc ? strerrorname_np(rc) : "done");
			return 0;
		}
	return 2;
}
