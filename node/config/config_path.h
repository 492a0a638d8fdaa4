/* SPDX-License-Identifier: Apache-2.0 */
/* Find the configuration file of a command without -c. */
#ifndef TOMONODE_NODE_CONFIG_PATH_H
#define TOMONODE_NODE_CONFIG_PATH_H

#include <stddef.h>

#define CONFIG_PATH_BUFFER 4352 /* PATH_MAX plus room for a suffix */

/* Return the path in TOMONODE_CONF; if the variable is not set, the path of the configuration of the installation that contains
 * the running program, if that file exists. NULL: use the embedded defaults (also if TOMONODE_CONF is empty). The returned text
 * is in `buffer` or in the environment. */
const char *config_path_default(char buffer[CONFIG_PATH_BUFFER]);

/* Return the n-th candidate (from 0) for the path of the configuration of the installation that contains `program`, an absolute
 * path. The file need not exist. NULL: no more candidates. A program in its build folder has none. */
const char *config_path_place(const char *program, size_t n, char buffer[CONFIG_PATH_BUFFER]);

#endif
