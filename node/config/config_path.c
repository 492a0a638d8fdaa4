/* SPDX-License-Identifier: Apache-2.0 */
/* config_path.c - find the configuration of the installation that contains the program.
 *
 * The prefix is taken from the program's own path, not from CMake's settings: `cmake --install --prefix`, DESTDIR and the tar of
 * deploy/bundle.sh can move a program that is already built. Only names within the prefix are compiled in (TOMONODE_BINDIR,
 * TOMONODE_SYSCONFDIR: CMAKE_INSTALL_BINDIR and _SYSCONFDIR).
 *
 *	PREFIX/bin/tomonode      PREFIX/etc/tomonode/tomonode.conf
 *	ROOT/usr/bin/tomonode    ROOT/etc/tomonode/tomonode.conf, as in deploy/CMakeLists.txt for the prefix /usr
 *	TOP/libexec/tomonode     TOP/etc/tomonode/tomonode.conf (the tar)
 */
#include "node/config/config_path.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_NAME "tomonode/tomonode.conf"

/* Return true if text[0..n) ends with `tail`. *ret_head: length of the text before it. */
static bool ends_with(const char *text, size_t n, const char *tail, size_t *ret_head)
{
	size_t m = strlen(tail);

	if (n < m || memcmp(text + n - m, tail, m) != 0)
		return false;
	*ret_head = n - m;
	return true;
}

const char *config_path_place(const char *program, size_t n, char buffer[CONFIG_PATH_BUFFER])
{
	const char *slash = strrchr(program, '/'), *etc = TOMONODE_SYSCONFDIR;
	size_t folder = slash ? (size_t)(slash - program) : 0, head = 0;
	bool tar = ends_with(program, folder, "/libexec", &head);

	if (folder >= PATH_MAX || (!tar && !ends_with(program, folder, "/" TOMONODE_BINDIR, &head)))
		return NULL;
	if (tar)
		etc = "etc";
	if (n == 0 && etc[0] == '/')
		snprintf(buffer, CONFIG_PATH_BUFFER, "%s/" FILE_NAME, etc);
	else if (n == 0 || (n == 1 && !tar && etc[0] != '/' && ends_with(program, head, "/usr", &head)))
		snprintf(buffer, CONFIG_PATH_BUFFER, "%.*s/%s/" FILE_NAME, (int)head, program, etc);
	else
		return NULL;
	return buffer;
}

const char *config_path_default(char buffer[CONFIG_PATH_BUFFER])
{
	const char *named = getenv("TOMONODE_CONF"), *place;
	char program[PATH_MAX];
	ssize_t n;

	if (named)
		return named[0] ? named : NULL;
	n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	program[n > 0 ? n : 0] = '\0';
	for (size_t i = 0; (place = config_path_place(program, i, buffer)) != NULL; i++)
		if (access(place, F_OK) == 0 ||
		    (errno != ENOENT && errno != ENOTDIR)) /* a file that cannot be read must be reported later */
			return place;
	return NULL;
}
