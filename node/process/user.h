/* The user that a node runs as. Started as root it keeps root's rights only until it listens (a port below 1024, a spool to be
 * made); then it becomes the user of node.user, for good. */
#ifndef TOMONODE_NODE_USER_H
#define TOMONODE_NODE_USER_H

#include <stdbool.h>
#include <sys/types.h>

#include "kernels/err.h"

struct user {
	char name[33], home[256];
	uid_t uid;
	gid_t gid;
	bool change; /* we are root, and this is somebody else */
};

/* Who node.user means for a process of user `euid`: root must be told who to be ("root" is an answer), others can only be
 * themselves. EPERM with a sentence where that cannot be, ENOKEY where there is no such user. */
int user_choose(const char *name, uid_t euid, struct user *ret_user, struct err *err);
/* Make the folder where it is missing and give it to the user; one that is there and that he cannot write to is refused. */
int user_own_folder(const struct user *user, const char *path, struct err *err);
/* Groups, group, user, $HOME. Nothing can be taken back. */
int user_become(const struct user *user, struct err *err);

#endif
