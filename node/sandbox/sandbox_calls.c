/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox_calls.c - the system calls that each role of a process may make, by seccomp (libseccomp).
 *
 * - The lists contain the allowed calls. Any other call returns EPERM, so that a new call of a library causes an error message
 * and does not kill the process. Calls with an older alternative return ENOSYS: the C library then uses the alternative, whose
 *   arguments can be checked (clone3: the flags of clone() distinguish a thread from a process).
 * - Calls that only an attacker in control of the process would make kill it; the node sees signal 31 (Bad system call).
 * - For the GPU every call is allowed except those listed: the library of its driver is closed and changes with each version.
 * - Listed calls that do not exist on this architecture or in this libseccomp are skipped.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "node/sandbox/sandbox_internal.h"

/* Allowed for every role: memory, time, threads, and files, which Landlock restricts. */
static const char *const common[] = {
	"read",
	"write",
	"readv",
	"writev",
	"pread64",
	"pwrite64",
	"preadv",
	"pwritev",
	"preadv2",
	"pwritev2",
	"close",
	"close_range",
	"lseek",
	"_llseek",
	"fstat",
	"fstat64",
	"stat",
	"stat64",
	"lstat",
	"lstat64",
	"newfstatat",
	"fstatat64",
	"statx",
	"statfs",
	"statfs64",
	"fstatfs",
	"fstatfs64",
	"access",
	"faccessat",
	"faccessat2",
	"open",
	"openat",
	"readlink",
	"readlinkat",
	"getdents",
	"getdents64",
	"getcwd",
	"fcntl",
	"fcntl64",
	"dup",
	"dup2",
	"dup3",
	"flock",
	"fsync",
	"fdatasync",
	"sync_file_range",
	"sync_file_range2",
	"fadvise64",
	"fadvise64_64",
	"arm_fadvise64_64",
	"readahead",
	"ftruncate",
	"ftruncate64",
	"fallocate",
	"fchmod",
	"fchown",
	"fchown32",
	"unlink",
	"unlinkat",
	"umask",
	"mmap",
	"mmap2",
	"munmap",
	"mremap",
	"mprotect",
	"madvise",
	"msync",
	"brk",
	"mlock",
	"munlock",
	"futex",
	"futex_time64",
	"set_robust_list",
	"get_robust_list",
	"rseq",
	"set_tid_address",
	"membarrier",
	"sched_yield",
	"sched_getaffinity",
	"sched_setaffinity",
	"sched_getscheduler",
	"sched_getparam",
	"sched_get_priority_max",
	"sched_get_priority_min",
	"getcpu",
	"clock_gettime",
	"clock_gettime64",
	"clock_getres",
	"clock_getres_time64",
	"clock_nanosleep",
	"clock_nanosleep_time64",
	"nanosleep",
	"gettimeofday",
	"time",
	"times",
	"getrusage",
	"sysinfo",
	"uname",
	"getpid",
	"gettid",
	"getppid",
	"getuid",
	"geteuid",
	"getgid",
	"getegid",
	"getuid32",
	"geteuid32",
	"getgid32",
	"getegid32",
	"getresuid",
	"getresgid",
	"poll",
	"ppoll",
	"ppoll_time64",
	"select",
	"_newselect",
	"pselect6",
	"pselect6_time64",
	"epoll_create",
	"epoll_create1",
	"epoll_ctl",
	"epoll_wait",
	"epoll_pwait",
	"eventfd2",
	"pipe",
	"pipe2",
	"rt_sigaction",
	"rt_sigprocmask",
	"rt_sigreturn",
	"sigreturn",
	"sigaltstack",
	"rt_sigpending",
	"rt_sigtimedwait",
	"rt_sigtimedwait_time64",
	"restart_syscall",
	"exit",
	"exit_group",
	"getrandom",
	"alarm",
	"setitimer",
	NULL,
};

/* Use of an open socket: of an association, to the manager, to the system's log. */
static const char *const talk[] = {
	"recvfrom", "recv",	"recvmsg",    "recvmmsg",   "sendto",	   "send",	  "sendmsg",
	"sendmmsg", "shutdown", "getsockopt", "setsockopt", "getsockname", "getpeername", NULL,
};
static const char *const change[] = {"rename", "renameat", "renameat2", "mkdir", "mkdirat", "rmdir", "utimensat", NULL};
static const char *const connecting[] = {"connect", "bind", "listen", NULL};
static const char *const accepting[] = {"accept", "accept4", NULL};
/* Start and wait for processes, and install further filters, because a forked process restricts itself further. */
static const char *const forking[] = {"fork",
				      "vfork",
				      "wait4",
				      "waitpid",
				      "waitid",
				      "kill",
				      "seccomp",
				      "landlock_create_ruleset",
				      "landlock_add_rule",
				      "landlock_restrict_self",
				      NULL};
static const char *const older_way[] = {"clone3", "openat2", NULL};
static const char *const executing[] = {"execve", "execveat", NULL};
/* What a program does at its start, and interpreters do. */
static const char *const starting[] = {"execve", "execveat",  "arch_prctl", "getpgrp", "getpgid",
				       "getsid", "getgroups", "chdir",	    "fchdir",  NULL};
/* What starts it does before. */
static const char *const limiting[] = {"fchmodat", "pidfd_open",  "setpgid",	 "setsid", "clone",
				       "tgkill",   "getpriority", "setpriority", NULL};

/* What a shell does with its commands. */
static const char *const commanding[] = {"fork", "vfork", "clone", "wait4", "waitpid", "waitid", "rt_sigsuspend", "pause", NULL};

static const char *const hostile[] = {
	"ptrace",
	"process_vm_readv",
	"process_vm_writev",
	"process_madvise",
	"pidfd_getfd",
	"kcmp",
	"kexec_load",
	"kexec_file_load",
	"init_module",
	"finit_module",
	"delete_module",
	"bpf",
	"userfaultfd",
	"add_key",
	"request_key",
	"keyctl",
	"mount",
	"umount",
	"umount2",
	"pivot_root",
	"chroot",
	"move_mount",
	"open_tree",
	"fsopen",
	"fsmount",
	"setns",
	"unshare",
	"swapon",
	"swapoff",
	"reboot",
	"settimeofday",
	"clock_settime",
	"clock_adjtime",
	"adjtimex",
	"sethostname",
	"setdomainname",
	"open_by_handle_at",
	"acct",
	"quotactl",
	"iopl",
	"ioperm",
	"syslog",
	"io_uring_setup",
	"io_uring_enter",
	"io_uring_register",
	"modify_ldt",
	"vhangup",
	"nfsservctl",
	"lookup_dcookie",
	"setuid",
	"setgid",
	"setresuid",
	"setresgid",
	"setreuid",
	"setregid",
	"setgroups",
	"capset",
	NULL,
};
/* Forbidden for a worker on the GPU, which has a list of forbidden calls, in addition to `hostile`. */
static const char *const refused_for_gpu[] = {
	"accept",      "accept4",  "fork",	"vfork",     "chmod",	    "fchmodat",	 "chown",
	"lchown",      "fchownat", "link",	"linkat",    "symlink",	    "symlinkat", "mknod",
	"mknodat",     "setxattr", "lsetxattr", "fsetxattr", "removexattr", "truncate",	 "sched_setscheduler",
	"setpriority", NULL,
};

/* And for a step on the GPU: processes and files of others that Landlock does not protect, and what would outlive it. */
static const char *const refused_for_gpu_step[] = {
	"connect",
	"sendto",
	"sendmsg",
	"sendmmsg",
	"kill",
	"tkill",
	"rt_sigqueueinfo",
	"rt_tgsigqueueinfo",
	"setpgid",
	"setsid",
	"perf_event_open",
	"mq_open",
	"msgget",
	"semget",
	"inotify_init",
	"inotify_init1",
	"fanotify_init",
	"utime",
	"utimes",
	"futimesat",
	"pidfd_send_signal",
	"sched_setattr",
	NULL,
};

struct calls {
	scmp_filter_ctx filter;
	int rc; /* error of the first rule that failed; 0: none */
};

static void add_rule(struct calls *c, uint32_t action, const char *name, unsigned n, const struct scmp_arg_cmp *args)
{
	int number = seccomp_syscall_resolve_name(name);

	if (c->rc == 0 && number != __NR_SCMP_ERROR)
		c->rc = seccomp_rule_add_array(c->filter, action, number, n, args);
}

static void add_rules(struct calls *c, uint32_t action, const char *const *names)
{
	for (; *names; names++)
		add_rule(c, action, *names, 0, NULL);
}

static void allow_if(struct calls *c, const char *name, struct scmp_arg_cmp a)
{
	add_rule(c, SCMP_ACT_ALLOW, name, 1, &a);
}

static void allow_if_both(struct calls *c, const char *name, struct scmp_arg_cmp a, struct scmp_arg_cmp b)
{
	const struct scmp_arg_cmp both[] = {a, b};

	add_rule(c, SCMP_ACT_ALLOW, name, 2, both);
}

/* Allow calls that have many uses only with certain arguments. */
static void allow_by_argument(struct calls *c, enum sandbox_role role)
{
	static const int requests[] = {TCGETS, FIONREAD, FIONBIO, FIOCLEX}; /* is it a terminal; how many bytes can be read */
	static const int options[] = {PR_SET_NAME,     PR_GET_NAME,    PR_SET_PDEATHSIG,   PR_GET_DUMPABLE,
				      PR_CAPBSET_READ, PR_GET_SECCOMP, PR_SET_NO_NEW_PRIVS};

	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
		allow_if(c, "ioctl", SCMP_A1(SCMP_CMP_EQ, (scmp_datum_t)requests[i]));
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (options[i] != PR_SET_PDEATHSIG || role != SANDBOX_STEP) /* it dies with what started it */
			allow_if(c, "prctl", SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)options[i]));
	allow_if(c, "clone", SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
	allow_if(c, "tgkill", SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid())); /* abort() */
	allow_if_both(c, "prlimit64", SCMP_A0(SCMP_CMP_EQ, 0),
		      SCMP_A2(SCMP_CMP_EQ, 0)); /* only to read a limit of this process */
	add_rule(c, SCMP_ACT_ALLOW, "getrlimit", 0, NULL);
	add_rule(c, SCMP_ACT_ALLOW, "ugetrlimit", 0, NULL);
}

/* Allow a new connection to the system's log, because its daemon may be restarted. */
static void allow_log(struct calls *c, const struct config *config)
{
	if (!config->node.log_syslog)
		return;
	allow_if(c, "socket", SCMP_A0(SCMP_CMP_EQ, AF_UNIX));
	add_rule(c, SCMP_ACT_ALLOW, "connect", 0, NULL);
	add_rules(c, SCMP_ACT_ALLOW, talk);
}

static void allow_families(struct calls *c)
{
	static const int families[] = {AF_INET, AF_INET6, AF_UNIX, AF_NETLINK}; /* the last two are used to resolve names */

	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		allow_if(c, "socket", SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)families[i]));
}

static void allow_role(struct calls *c, enum sandbox_role role)
{
	switch (role) {
	case SANDBOX_LISTENER: /* a forked process cannot have more rights, so these include the calls of an association */
		add_rules(c, SCMP_ACT_ALLOW, accepting);
		add_rules(c, SCMP_ACT_ALLOW, forking);
		add_rule(c, SCMP_ACT_ALLOW, "clone", 0, NULL);
		add_rule(c, SCMP_ACT_ALLOW, "tgkill", 0,
			 NULL); /* for any pid, because those of the associations are not known yet */
		allow_if(c, "socketpair", SCMP_A0(SCMP_CMP_EQ, AF_UNIX)); /* node/receive/association_ipc.h */
		add_rules(c, SCMP_ACT_ALLOW, talk);
		add_rules(c, SCMP_ACT_ALLOW, change);
		break;
	case SANDBOX_ASSOCIATION:
	case SANDBOX_WORKER:
	case SANDBOX_CASE:
	case SANDBOX_FOLDER:
	case SANDBOX_NAMES:
		add_rules(c, SCMP_ACT_ALLOW, talk);
		add_rules(c, SCMP_ACT_ALLOW, change);
		break;
	case SANDBOX_REPORT:
		add_rules(c, SCMP_ACT_ALLOW, talk);
		break;
	case SANDBOX_INDEX:
		break;
	case SANDBOX_EXEC: /* not setpgid and setsid: it stays in its group of processes, and signals no other */
		add_rules(c, SCMP_ACT_ALLOW, commanding);
		add_rules(c, SCMP_ACT_ALLOW, starting);
		allow_if(c, "kill", SCMP_A0(SCMP_CMP_EQ, 0));
		/* fall through */
	case SANDBOX_DELIVER:
	case SANDBOX_ALERT:
		add_rules(c, SCMP_ACT_ALLOW, talk);
		add_rules(c, SCMP_ACT_ALLOW, connecting);
		allow_families(c);
		allow_if(c, "ioctl", SCMP_A1(SCMP_CMP_EQ, SIOCGIFINDEX)); /* the interface of fe80::1%eth0 */
		allow_if(c, "socketpair",
			 SCMP_A0(SCMP_CMP_EQ, AF_UNIX)); /* libcurl: the end of its thread that resolves a name */
		break;
	case SANDBOX_STEPS: /* a forked process cannot have more rights, so these include the calls of a step */
		add_rules(c, SCMP_ACT_ALLOW, forking);
		add_rules(c, SCMP_ACT_ALLOW, limiting);
		add_rules(c, SCMP_ACT_ALLOW, talk);
		/* fall through */
	case SANDBOX_STEP:
		add_rules(c, SCMP_ACT_ALLOW, starting);
		allow_if(c, "prlimit64", SCMP_A0(SCMP_CMP_EQ, 0)); /* of this process: no limit can be raised */
		add_rules(c, SCMP_ACT_ALLOW, change);
		break;
	case SANDBOX_SEAT:
		add_rules(c, SCMP_ACT_ALLOW, change);
		/* fall through */
	case SANDBOX_HTTP:
		add_rules(c, SCMP_ACT_ALLOW, talk);
		add_rules(c, SCMP_ACT_ALLOW, accepting);
		break;
	}
}

static void refuse_if(struct calls *c, const char *name, struct scmp_arg_cmp a)
{
	add_rule(c, SCMP_ACT_ERRNO(EPERM), name, 1, &a);
}

/* Forbid networks, other programs and the calls in `hostile`; allow every other call. */
static void forbid_for_gpu(struct calls *c, enum sandbox_role role)
{
	const struct scmp_arg_cmp typing = SCMP_A1(SCMP_CMP_EQ, TIOCSTI), pasting = SCMP_A1(SCMP_CMP_EQ, TIOCLINUX);

	if (role != SANDBOX_STEPS) { /* which starts processes; its programs drop more when they start */
		add_rules(c, SCMP_ACT_ERRNO(EPERM), refused_for_gpu);
		refuse_if(c, "clone", SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
	}
	if (role == SANDBOX_STEP) {
		add_rules(c, SCMP_ACT_ERRNO(EPERM), refused_for_gpu_step);
		refuse_if(c, "prctl", SCMP_A0(SCMP_CMP_EQ, PR_SET_PDEATHSIG)); /* it dies with what started it */
		refuse_if(c, "tgkill", SCMP_A0(SCMP_CMP_NE, (scmp_datum_t)getpid()));
		refuse_if(c, "prlimit64", SCMP_A0(SCMP_CMP_NE, 0));
	} else if (role != SANDBOX_STEPS) {
		/* an error, not a kill: the driver's library tries to run nvidia-modprobe */
		add_rules(c, SCMP_ACT_ERRNO(EPERM), executing);
		add_rule(c, SCMP_ACT_ERRNO(EPERM), "listen", 0, NULL); /* the library does it when it starts: in a step */
	}
	refuse_if(c, "socket", SCMP_A0(SCMP_CMP_NE, AF_UNIX)); /* MPS; without any the library does not start */
	add_rule(c, SCMP_ACT_ERRNO(EPERM), "ioctl", 1, &typing);
	add_rule(c, SCMP_ACT_ERRNO(EPERM), "ioctl", 1, &pasting);
}

bool sandbox_calls_supported(void)
{
	uint32_t action = SECCOMP_RET_KILL_PROCESS;

	return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

int sandbox_calls_limit(enum sandbox_role role, const struct config *config, bool gpu, struct err *err)
{
	struct calls c = {.filter = seccomp_init(gpu ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO(EPERM))};

	if (!c.filter)
		return err_set(err, ENOMEM, "sandbox: no memory for a list of system calls");
	c.rc = seccomp_attr_set(c.filter, SCMP_FLTATR_CTL_NNP,
				0); /* PR_SET_NO_NEW_PRIVS was set before, as a process without capabilities must do */
	if (c.rc == 0)
		c.rc = seccomp_attr_set(c.filter, SCMP_FLTATR_CTL_OPTIMIZE,
					2); /* a binary tree instead of a list, which would be searched at every call */
	if (c.rc == 0)			    /* apply the filter also to running threads: those of the CUDA driver */
		c.rc = seccomp_attr_set(c.filter, SCMP_FLTATR_CTL_TSYNC, 1);
	add_rules(&c, gpu ? SCMP_ACT_ERRNO(EPERM) : SCMP_ACT_KILL_PROCESS, hostile);
	add_rules(&c, SCMP_ACT_ERRNO(ENOSYS), older_way);
	if (gpu) {
		forbid_for_gpu(&c, role);
	} else {
		if (!sandbox_is_of_steps(role) && role != SANDBOX_EXEC) {
			add_rules(&c, SCMP_ACT_KILL_PROCESS, executing);
			allow_log(&c, config);
		}
		add_rules(&c, SCMP_ACT_ALLOW, common);
		allow_by_argument(&c, role);
		allow_role(&c, role);
	}
	if (c.rc == 0)
		c.rc = seccomp_load(c.filter);
	seccomp_release(c.filter);
	if (c.rc < 0)
		return err_set(err, -c.rc, "sandbox: cannot limit the system calls of a %s process: %s", sandbox_role_name(role),
			       strerror(-c.rc));
	return 0;
}
