/* SPDX-License-Identifier: Apache-2.0 */
/* Find the configuration file of a command without -c. */
#ifndef TOMONODE_NODE_CONFIG_PATH_H
#define TOMONODE_NODE_CONFIG_PATH_H

#include <stddef.h>

#define CONFIG_PATH_BUFFER 4352 /* PATH_MAX plus room for a suffix */

/* Return the file named by TOMONODE_CONF ("": none), else the file of the installation that contains the running program, if it
 * exists. NULL: use the embedded defaults. The returned text is in `buffer` or in the environment. */
const char *config_path_default(char buffer[CONFIG_PATH_BUFFER]);

/* Return the n-th path (from 0) at which the installation of the program with this absolute path may have its configuration. The
 * file need not exist. NULL: no more paths. A program in its build folder belongs to no installation. */
const char *config_path_place(const char *program, size_t n, char buffer[CONFIG_PATH_BUFFER]);

#endif
