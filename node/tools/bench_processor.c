/* SPDX-License-Identifier: Apache-2.0 */
/* bench_processor.c - read the processor's model. x86 has the key "model name"; Arm's kernels have "CPU implementer" and "CPU
 * part", which are numbers that identify the core. */
#include "node/tools/bench_processor.h"

#include <stdio.h>
#include <string.h>

#define LINE_MOST 512

/* Return the value of a line "key<blanks>: value", if it has this key; else NULL. */
static const char *value_of(char *line, const char *key)
{
	size_t n = strlen(key);
	char *value;

	if (strncmp(line, key, n) != 0 || !strchr(" \t:", line[n]) || !(value = strchr(line + n, ':')))
		return NULL;
	line[strcspn(line, "\r\n")] = '\0';
	value++;
	return value + strspn(value, " \t");
}

void bench_processor(const char *path, char *ret, size_t size)
{
	char line[LINE_MOST], implementer[32] = "";
	FILE *file = fopen(path, "re");
	const char *value;

	snprintf(ret, size, "unknown");
	while (file && fgets(line, sizeof(line), file)) {
		if ((value = value_of(line, "model name")) && *value) {
			snprintf(ret, size, "%s", value);
			break;
		}
		if ((value = value_of(line, "CPU implementer")))
			snprintf(implementer, sizeof(implementer), "%s", value);
		if ((value = value_of(line, "CPU part")) && implementer[0]) {
			snprintf(ret, size, "implementer %s, part %s", implementer, value);
			break;
		}
	}
	if (file)
		fclose(file);
}
