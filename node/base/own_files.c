/* SPDX-License-Identifier: Apache-2.0 */
#include "node/base/own_files.h"

#include <string.h>

#include "node/base/folder.h"

#define CORRECTIONS_END ".json"

static bool is_corrections(const char *name)
{
	size_t start = strlen(OWN_CORRECTIONS), end = strlen(CORRECTIONS_END), n = strlen(name);

	return n > start + end && !strncmp(name, OWN_CORRECTIONS, start) && !strcmp(name + n - end, CORRECTIONS_END) &&
	       strspn(name + start, "0123456789.") == n - start - end + 1;
}

bool own_file(const char *path)
{
	const char *name = file_name(path);

	return !strcmp(name, "truth.json") || is_corrections(name);
}
