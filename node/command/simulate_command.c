/* SPDX-License-Identifier: Apache-2.0 */
/* simulate_command.c - see node/command/simulate_command.h. */
#include "node/command/simulate_command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "node/base/nearest.h"

int simulate_not_found(const struct options *o, const char *what, const char *name, const char *names, size_t n, size_t stride)
{
	char list[512] = "", hint[NEAREST_HINT];

	for (size_t i = 0; i < n; i++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", i ? ", " : "", names + i * stride);
	return options_fail(o, CODE_NOT_FOUND, "no %s '%s'%s; available: %s", what, name,
			    nearest_hint(nearest_in_array(name, names, n, stride), hint), list);
}

/* Parse and check the options. Return -1, or the exit code to return. */
static int read_options(struct simulate_command *c, const struct simulator *simulator, int argc, char **argv)
{
	int id, code;

	options_begin(&c->o, simulator->spec, argc, argv);
	c->o.into = c;
	while ((id = options_next(&c->o)) >= 0)
		if (!simulator->accept(c))
			return options_refuse(&c->o, id);
	if (id == OPTION_STOP)
		return c->o.code;
	code = simulator->check(c);
	if (code != CODE_OK)
		return code;
	return c->folder ? -1 : options_fail(&c->o, CODE_USAGE, "-o DIR is missing");
}

/* Print the error of a stage that checks options, too. Return the exit code. */
static int refuse_options(const struct simulate_command *c, const struct err *err)
{
	return err->code == EINVAL ? options_fail(&c->o, CODE_USAGE, "%s", err->msg) : options_fail_err(&c->o, err);
}

/* Simulate and print the report. Return the exit code. */
static int simulate_and_print(struct simulate_command *c, const struct simulator *simulator)
{
	struct progress progress;
	struct err err = {0};
	int rc;

	if (simulator->plan && simulator->plan(c, &err) < 0)
		return refuse_options(c, &err);
	options_note_folder(&c->o, c->folder);
	progress_start(&progress, !c->o.json);
	rc = simulator->run(c, &progress.monitor, &err);
	progress_stop(&progress);
	if (rc >= 0)
		return simulator->print(c);
	if (simulator->plan)
		return options_fail_err(&c->o, &err);
	return rc == -ENOENT ? options_fail(&c->o, CODE_NOT_FOUND, "%s", err.msg) : refuse_options(c, &err);
}

int simulate_command(struct simulate_command *c, const struct simulator *simulator, int argc, char **argv)
{
	struct config *config = NULL;
	int code = read_options(c, simulator, argc, argv);

	if (code >= 0)
		return code;
	code = simulator->choose ? options_config(&c->o, c->conf_path, &config) : CODE_OK;
	if (code == CODE_OK && simulator->choose)
		code = simulator->choose(c, config);
	if (code == CODE_OK)
		code = simulate_and_print(c, simulator);
	if (simulator->clear)
		simulator->clear(c);
	config_free(config);
	return code;
}
