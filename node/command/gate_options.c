/* SPDX-License-Identifier: Apache-2.0 */
/* gate_options.c - see node/command/gate_options.h. The name of a signal is taken as such, also if a file has this name. */
#include "node/command/gate_options.h"

#include <errno.h>
#include <stdlib.h>

#include "node/base/text_file.h"

static int check_gates(const struct options *o, const struct gate_options *g, const char *without)
{
	if (!g->gates && g->marks)
		return options_fail(o, CODE_USAGE, "--marks without --gates");
	if (!g->gates && g->cycle)
		return options_fail(o, CODE_USAGE, "--gate-cycle without --gates");
	if (g->gates && without)
		return options_fail(o, CODE_USAGE, "--gates and %s: gates of time frames are not supported", without);
	return CODE_OK;
}

static int read_table(const struct options *o, const char *path, struct pet_marks *ret)
{
	struct err err = {0};
	char *text = NULL;
	size_t size = 0;
	int rc = text_file_read(path, PET_MARKS_BYTES, "table of time marks", &text, &size, &err);

	if (rc == 0)
		rc = pet_marks_parse(text, size, ret, &err);
	free(text);
	if (rc == 0)
		return CODE_OK;
	if (err.code == ENOENT)
		return options_fail(o, CODE_NOT_FOUND, "--marks %s: no signal (ecg, resp, motion, sync), and no such file", path);
	return options_fail(o, options_code(&err), "--marks %s: %s", path, err.msg);
}

int gate_options_read(const struct options *o, const struct gate_options *given, const char *without, struct pet_gates *ret)
{
	struct pet_gates g = {.n = given->gates, .signal = PET_SIGNAL_TABLE};
	struct err err = {0};
	int code = check_gates(o, given, without);

	if (code == CODE_OK && given->cycle && pet_gates_parse_cycle(given->cycle, &g, &err) < 0)
		code = options_fail(o, CODE_USAGE, "--gate-cycle %s", err.msg);
	if (code == CODE_OK && given->marks && (!pet_signal_named(given->marks, &g.signal) || g.signal == PET_SIGNAL_TABLE)) {
		g.signal = PET_SIGNAL_TABLE;
		code = read_table(o, given->marks, &g.marks);
	}
	if (code == CODE_OK)
		*ret = g;
	return code;
}
