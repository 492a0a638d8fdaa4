/* SPDX-License-Identifier: Apache-2.0 */
#include "node/sandbox/user.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int user_look_up(const char *name, uid_t euid, struct user *ret_user, struct err *err)
{
	struct passwd entry, *found = NULL;
	struct user user = {.uid = euid, .gid = getegid()};
	char buffer[4096];

	if (!name[0] && euid == 0)
		return err_set(
			err, EPERM,
			"started as root: set node.user to an ordinary user, which the node then becomes (it needs rights to the spool "
			"only), or start the node as that user; node.user = \"root\" lets all of it run as root");
	if (!name[0]) {
		*ret_user = user;
		return 0;
	}
	if (name[strspn(name, "0123456789")] == '\0')
		return err_set(err, ENOKEY, "node.user is '%s': a number; it must be a user's name (`getent passwd %s` tells it)",
			       name, name);
	if (getpwnam_r(name, &entry, buffer, sizeof(buffer), &found) != 0 || !found)
		return err_set(err, ENOKEY, "node.user is '%s': this system has no such user (useradd --system %s)", name, name);
	if (euid != 0 && found->pw_uid != euid)
		return err_set(err, EPERM,
			       "node.user is '%s', but this is a process of user %ld: only root can become another user", name,
			       (long)euid);
	snprintf(user.name, sizeof(user.name), "%s", name);
	snprintf(user.home, sizeof(user.home), "%s", found->pw_dir);
	user.uid = found->pw_uid;
	user.gid = found->pw_gid;
	user.change = found->pw_uid != euid;
	*ret_user = user;
	return 0;
}

const char *user_tested(const char *name, uid_t euid)
{
	return !name[0] && euid == 0 && getpwnam(USER_OF_UNIT) ? USER_OF_UNIT : name;
}

int user_prepare_folder(const struct user *user, const char *path, struct err *err)
{
	struct stat st;

	if (mkdir(path, 0700) == 0) {
		if (chown(path, user->uid, user->gid) < 0)
			return err_set(err, errno, "cannot change the owner of %s to user '%s': %s", path, user->name,
				       strerror(errno));
		return 0;
	}
	if (errno != EEXIST)
		return err_set(err, errno, "cannot create folder %s: %s", path, strerror(errno));
	if (stat(path, &st) < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	if (st.st_uid != user->uid)
		return err_set(
			err, EPERM,
			"%s belongs to user %ld, but node.user is '%s': set another node.spool, or give this folder to the user "
			"if only tomonode uses it",
			path, (long)st.st_uid, user->name);
	return 0;
}

int user_become(const struct user *user, struct err *err)
{
	if (initgroups(user->name, user->gid) < 0 || setresgid(user->gid, user->gid, user->gid) < 0 ||
	    setresuid(user->uid, user->uid, user->uid) < 0)
		return err_set(err, errno, "cannot become user '%s': %s", user->name, strerror(errno));
	if (geteuid() != user->uid || (user->uid != 0 && setuid(0) == 0))
		return err_set(err, EPERM, "cannot become user '%s': the process could become root again", user->name);
	setenv("HOME", user->home, 1);
	setenv("USER", user->name, 1);
	setenv("LOGNAME", user->name, 1);
	return 0;
}

int user_become_tested(const char *name, struct err *err)
{
	struct user user;
	int rc = user_look_up(user_tested(name, geteuid()), geteuid(), &user, err);

	return rc == 0 && user.change ? user_become(&user, err) : rc;
}
