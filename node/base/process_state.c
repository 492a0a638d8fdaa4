/* SPDX-License-Identifier: Apache-2.0 */
#include "node/base/process_state.h"

#include <stdio.h>
#include <string.h>

bool process_is_stopped(long pid)
{
	char path[40], text[200] = "";
	const char *name_end;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	name_end = strrchr(text, ')'); /* "PID (NAME) STATE ...": the name may contain anything */
	return name_end && (name_end[1] == ' ') && (name_end[2] == 'T' || name_end[2] == 't');
}
