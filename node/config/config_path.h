/* Which configuration a command reads where none is given with -c. */
#ifndef TOMONODE_NODE_CONFIG_PATH_H
#define TOMONODE_NODE_CONFIG_PATH_H

#include <stddef.h>

#define CONFIG_PATH_BUFFER 4352 /* PATH_MAX, and what is put behind it */

/* The file that TOMONODE_CONF names ("": none), else that of the installation which the running program is of, where there is
 * one. NULL: the embedded defaults. What is returned lies in `buffer` or in the environment. */
const char *config_path_default(char buffer[CONFIG_PATH_BUFFER]);

/* The n-th place (from 0) where the installation of the program with this absolute path may have its configuration; no file is
 * looked at. NULL: there are no more. A program that lies where its build left it is of no installation. */
const char *config_path_place(const char *program, size_t n, char buffer[CONFIG_PATH_BUFFER]);

#endif
