/* SPDX-License-Identifier: Apache-2.0 */
/* For `tomonode check`: may this process use a path as the node does, and does the path keep what is stored there? */
#ifndef TOMONODE_NODE_CHECK_PATHS_H
#define TOMONODE_NODE_CHECK_PATHS_H

#include <stdbool.h>

#include "node/command/check_as_user.h"

enum path_use {
	PATH_NOTHING,
	PATH_WRITE,
	PATH_CREATE, /* a file in this folder; of a path that does not exist: in the folder that it is to be in */
	PATH_MAKE,   /* a folder in the nearest one above that exists */
	PATH_ENTER,  /* the nearest one above that exists */
};

/* Report a finding. Returns false. */
enum finding { FINDING_PROBLEM, FINDING_WARNING };
bool check_say(const struct check_report *to, enum finding what, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Report a problem if this process cannot use the path, and return false. missing: what is needed if it does not exist. */
bool check_path(const struct check_report *to, const char *key, const char *path, enum path_use use, enum path_use missing);
/* Report a path for what must not be lost on a file system that loses it, and return false. */
bool check_place(const struct check_report *to, const char *key, const char *path);
/* Warn of a folder in which others remove files. */
void check_emptied(const struct check_report *to, const char *key, const char *path);

#endif
