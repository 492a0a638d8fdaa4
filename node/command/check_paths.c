/* SPDX-License-Identifier: Apache-2.0 */
/* check_paths.c - the kernel is asked what this process may do: a file that is created for a test would meet a running node. */
#include "node/command/check_paths.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

static const struct {
	const char *cannot;
	int mode;
} uses[] = {
	[PATH_WRITE] = {"write to", W_OK},
	[PATH_CREATE] = {"create a file in", W_OK | X_OK},
	[PATH_MAKE] = {"create a folder in", W_OK | X_OK},
	[PATH_ENTER] = {"enter", X_OK},
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

bool check_say(const struct check_report *to, enum finding what, const char *fmt, ...)
{
	char text[1400];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	(what == FINDING_PROBLEM ? to->problem : to->warning)(to->ctx, text);
	return false;
}

bool check_path(const struct check_report *to, const char *key, const char *path, enum path_use use, enum path_use missing)
{
	bool found = faccessat(AT_FDCWD, path, F_OK, AT_EACCESS) == 0;
	struct stat st;
	char tested[400];

	if (!found && errno == ENOENT && lstat(path, &st) == 0)
		return check_say(to, FINDING_PROBLEM, "%s is %.399s, a link to what does not exist", key, path);
	if (!found && (errno == ENOENT || use != PATH_NOTHING))
		use = errno == ENOENT ? missing : PATH_ENTER;
	if (use == PATH_NOTHING)
		return true;
	snprintf(tested, sizeof(tested), "%.399s", path);
	if (use >= PATH_MAKE)
		go_up_to_existing(tested);
	else if (!found)
		go_up(tested);
	if (stat(tested, &st) == 0 && S_ISDIR(st.st_mode) == (use == PATH_WRITE))
		return check_say(to, FINDING_PROBLEM, "%s is %.399s, but %.399s is %s", key, path, tested,
				 use == PATH_WRITE ? "a folder, not a file" : "a file, not a folder");
	if (faccessat(AT_FDCWD, tested, uses[use].mode, AT_EACCESS) < 0)
		return check_say(to, FINDING_PROBLEM, "%s is %.399s, but user %ld cannot %s %.399s: %s", key, path,
				 (long)geteuid(), uses[use].cannot, tested, strerror(errno));
	return true;
}

/* File systems on which no node can keep what it acknowledged. */
static const struct {
	long magic;
	const char *what;
} bad_systems[] = {
	{PROC_SUPER_MAGIC, "a file system of the kernel (proc), which has no place for files"},
	{SYSFS_MAGIC, "a file system of the kernel (sysfs), which has no place for files"},
	{TMPFS_MAGIC, "in memory (tmpfs): acknowledged images and results would be lost at the next boot"},
	{RAMFS_MAGIC, "in memory (ramfs): acknowledged images and results would be lost at the next boot"},
};
bool check_place(const struct check_report *to, const char *key, const char *path)
{
	char tested[400];
	struct statfs fs;

	snprintf(tested, sizeof(tested), "%.399s", path);
	if (access(tested, F_OK) < 0)
		go_up_to_existing(tested);
	if (statfs(tested, &fs) < 0)
		return true;
	for (size_t i = 0; i < sizeof(bad_systems) / sizeof(bad_systems[0]); i++)
		if (fs.f_type == bad_systems[i].magic)
			return check_say(to, FINDING_PROBLEM, "%s is %.399s, but this is %s", key, path, bad_systems[i].what);
	return true;
}

void check_emptied(const struct check_report *to, const char *key, const char *path)
{
	static const char *const emptied[] = {"/tmp/", "/var/tmp/"};
	char tested[400], real[PATH_MAX] = "";

	snprintf(tested, sizeof(tested), "%.399s", path);
	if (access(tested, F_OK) < 0)
		go_up_to_existing(tested);
	if (!realpath(tested, real))
		return;
	strncat(real, "/", sizeof(real) - strlen(real) - 1);
	for (size_t i = 0; i < sizeof(emptied) / sizeof(emptied[0]); i++)
		if (!strncmp(real, emptied[i], strlen(emptied[i])))
			check_say(to, FINDING_WARNING,
				  "%s is %.399s, but systemd removes old files in %s: acknowledged images would be lost", key,
				  path, emptied[i]);
}
