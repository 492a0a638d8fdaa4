/* SPDX-License-Identifier: Apache-2.0 */
/* The user that the node runs as. A node started as root keeps root's rights until it listens (it may need a port below 1024 or
 * to create the spool); then it becomes the user node.user permanently. */
#ifndef TOMONODE_NODE_USER_H
#define TOMONODE_NODE_USER_H

#include <stdbool.h>
#include <sys/types.h>

#include "kernels/err.h"

struct user {
	char name[33], home[256];
	uid_t uid;
	gid_t gid;
	bool change; /* this process is root and must become another user */
};

/* Look up the user `name` (node.user) for a process whose user is `euid`. If that is root, a name is required ("root" is
 * allowed); otherwise the name must be empty or that of `euid`. EPERM: the change is not possible; ENOKEY: no such user. */
int user_look_up(const char *name, uid_t euid, struct user *ret_user, struct err *err);
/* Return the user that the node runs as when a configuration is only tested: `name`; if that is "" and the process root, the user
 * of the unit of systemd (deploy/tomonode.service.in), which starts the node, if this system has it. */
#define USER_OF_UNIT "tomonode"
const char *user_tested(const char *name, uid_t euid);
/* Create the folder, owned by the user, if it does not exist. Fail if it exists and the user cannot write to it. */
int user_prepare_folder(const struct user *user, const char *path, struct err *err);
/* Set groups, group, user and $HOME. This cannot be undone. */
int user_become(const struct user *user, struct err *err);
/* Become the user that the node runs as, for a command that tests what the node may do: user_tested() of `name` (node.user).
 * Errors: those of user_look_up() and user_become(). */
int user_become_tested(const char *name, struct err *err);

#endif
