/* SPDX-License-Identifier: Apache-2.0 */
#include "node/sandbox/sandbox_internal.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILES_ABI_LEAST                                                                                                          \
	2 /* the first version that allows a rename from one folder to another, by which an instance is committed */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZER 1
#endif
#endif
#ifndef SANITIZER
#define SANITIZER 0
#endif

struct limits {
	rlim_t files;  /* number of open descriptors */
	rlim_t memory; /* bytes of addresses; 0: no limit */
};

/* Several times the usage measured under load. Memory is not limited for workers, whose plan is checked against the memory of the
 * machine and whose CUDA reserves hundreds of GiB of addresses, and for deliveries, which read results of any configured size. */
static const struct limits limits[SANDBOX_ROLES] = {
	[SANDBOX_LISTENER] = {256, (rlim_t)4 << 30},
	[SANDBOX_INDEX] = {128, (rlim_t)16 << 30},
	[SANDBOX_WORKER] = {4096, 0},
	[SANDBOX_DELIVER] = {256, 0},
	[SANDBOX_NAMES] = {128, (rlim_t)16 << 30},
	[SANDBOX_REPORT] = {128, (rlim_t)16 << 30},
	[SANDBOX_HTTP] = {96, (rlim_t)4 << 30},
	[SANDBOX_SEAT] = {1024, (rlim_t)16 << 30},
	[SANDBOX_CASE] = {4096, 0},
	[SANDBOX_FOLDER] = {256, 0},
	[SANDBOX_ALERT] = {128, (rlim_t)16 << 30},
	[SANDBOX_EXEC] = {128, (rlim_t)16 << 30},
	[SANDBOX_STEPS] = {1024, 0}, /* the programs have limits of their own (node/step/step_run.c) */
};

const char *sandbox_role_name(enum sandbox_role role)
{
	static const char *const names[SANDBOX_ROLES] = {"listener", "association", "index", "worker", "deliver",
							 "names",    "http",	    "seat",  "report", "case",
							 "folder",   "alert",	    "exec",  "steps",  "step"};

	return names[role];
}

void sandbox_probe(struct sandbox_support *ret_support)
{
	*ret_support = (struct sandbox_support){
		.calls = sandbox_calls_supported(), .files = sandbox_files_abi(), .sanitizer = SANITIZER};
}

int sandbox_check(const struct config *config, char *ret_missing, size_t size, struct err *err)
{
	struct sandbox_support s;
	char missing[200] = "";

	snprintf(ret_missing, size, "%s", "");
	if (config->node.sandbox == SANDBOX_OFF)
		return 0;
	sandbox_probe(&s);
	if (s.sanitizer)
		snprintf(missing, sizeof(missing), "any restriction (this is a build with a sanitizer)");
	else
		snprintf(missing, sizeof(missing), "%s%s%s", s.calls ? "" : "a restriction of system calls (no seccomp filters)",
			 !s.calls && s.files < FILES_ABI_LEAST ? ", " : "",
			 s.files < FILES_ABI_LEAST ? "a restriction of files (no Landlock, or Linux before 5.19)" : "");
	if (!missing[0])
		return 0;
	snprintf(ret_missing, size, "%s", missing);
	if (config->node.sandbox == SANDBOX_AUTO)
		return 1;
	return err_set(err, ENOTSUP,
		       "node.sandbox is on, but this machine does not support %s: set it to auto to run without it, or use a "
		       "newer kernel",
		       missing);
}

static int lower_limit(int what, const char *name, rlim_t to, struct err *err)
{
	struct rlimit limit;

	if (getrlimit(what, &limit) < 0)
		return err_set(err, errno, "sandbox: cannot read the limit of %s: %s", name, strerror(errno));
	if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max > to)
		limit.rlim_max = to;
	if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > limit.rlim_max)
		limit.rlim_cur = limit.rlim_max;
	if (setrlimit(what, &limit) < 0)
		return err_set(err, errno, "sandbox: cannot set the limit of %s: %s", name, strerror(errno));
	return 0;
}

static int set_limits(enum sandbox_role role, const struct config *config, struct err *err)
{
	const struct limits *l = &limits[role];
	/* A listener also has one descriptor for each of its associations. */
	rlim_t files = l->files + (role == SANDBOX_LISTENER ? (rlim_t)config->node.max_associations : 0);
	int ret = lower_limit(RLIMIT_CORE, "core files", 0, err); /* a core file would contain patient data */

	if (ret == 0)
		ret = lower_limit(RLIMIT_NOFILE, "descriptors", files, err);
	if (ret == 0 && l->memory)
		ret = lower_limit(RLIMIT_AS, "memory", l->memory, err);
	return ret;
}

static int drop_capabilities(struct err *err)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 && errno != EINVAL)
		return err_set(err, errno, "sandbox: cannot drop inheritable capabilities: %s", strerror(errno));
	if (syscall(SYS_capset, &header, none) < 0)
		return err_set(err, errno, "sandbox: cannot drop capabilities: %s", strerror(errno));
	return 0;
}

static int give_up_privileges(enum sandbox_role role, const struct config *config, struct err *err)
{
	int ret = set_limits(role, config, err);

	if (ret == 0)
		ret = drop_capabilities(err);
	if (ret == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		ret = err_set(err, errno, "sandbox: cannot set PR_SET_NO_NEW_PRIVS: %s", strerror(errno));
	return ret;
}

/* Does it run a driver, or programs that do? */
static bool has_gpu(enum sandbox_role role, const struct config *config, const char *detail, const struct sandbox_step *step)
{
	bool any = false;

	if (role == SANDBOX_STEP)
		return step->step->gpu;
	for (size_t i = 0; role == SANDBOX_STEPS && i < config->n_steps; i++)
		any = any || config->steps[i].gpu;
	return any || ((role == SANDBOX_WORKER || role == SANDBOX_CASE) && detail && strncmp(detail, "cpu", 3) != 0);
}

static int enter_role(enum sandbox_role role, const struct config *config, const char *detail, const struct sandbox_step *step,
		      struct err *err)
{
	bool gpu = has_gpu(role, config, detail, step);
	struct sandbox_support s;
	char missing[200];
	int ret;

	ret = sandbox_check(config, missing, sizeof(missing), err);
	if (ret < 0 || config->node.sandbox == SANDBOX_OFF)
		return ret;
	sandbox_probe(&s);
	if (s.sanitizer)
		return 0;
	/* the process that forked them has given them up */
	ret = role == SANDBOX_ASSOCIATION || role == SANDBOX_STEP ? 0 : give_up_privileges(role, config, err);
	/* A CUDA driver may open further files later, depending on its version: under `auto` its files are not restricted, so
	 * that no case fails. A step that fails has its own rule. */
	if (ret == 0 && s.files >= FILES_ABI_LEAST && role != SANDBOX_LISTENER &&
	    !(gpu && config->node.sandbox == SANDBOX_AUTO && !sandbox_is_of_steps(role)))
		ret = sandbox_files_restrict(role, config, gpu, detail, step, s.files, err);
	if (ret == 0 && s.calls)
		ret = sandbox_calls_limit(role, config, gpu, err);
	return ret;
}

int sandbox_enter(enum sandbox_role role, const struct config *config, const char *detail, struct err *err)
{
	return enter_role(role, config, detail, NULL, err);
}

int sandbox_enter_step(const struct config *config, const struct sandbox_step *step, struct err *err)
{
	return enter_role(SANDBOX_STEP, config, NULL, step, err);
}
