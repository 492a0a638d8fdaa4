/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands `tomonode simulate dbt`, `simulate pet` and `simulate parallel` share. */
#ifndef TOMONODE_NODE_SIMULATE_COMMAND_H
#define TOMONODE_NODE_SIMULATE_COMMAND_H

#include "node/base/progress.h"
#include "node/config/kind.h"
#include "node/options/options.h"

/* State of one such command; the first member of its own structure. */
struct simulate_command {
	struct options o;
	const char *conf_path, *folder; /* --config; --output */
	int phantom;			/* index of the word of --phantom */
};

/* Functions of one simulator, in the order in which they are called. An exit code other than CODE_OK ends the command. */
struct simulator {
	const struct command_spec *spec;
	/* Use the value of an option without INTO_..., c->o.value; false: it is not allowed. NULL: the table has no such option.
	 */
	bool (*accept)(struct simulate_command *c);
	/* Check the options together, and complete them. Return an exit code. */
	int (*check)(struct simulate_command *c);
	/* Choose the system from the configuration. Return an exit code. NULL: no configuration is needed. */
	int (*choose)(struct simulate_command *c, const struct config *config);
	/* Prepare the simulation. EINVAL: an option is not allowed. NULL: run() prepares it, and checks the options as well; its
	 * ENOENT means that a file named by an option does not exist. */
	int (*plan)(struct simulate_command *c, struct err *err);
	int (*run)(struct simulate_command *c, const struct monitor *monitor, struct err *err);
	/* Print the report, with --json as JSON. Return an exit code. */
	int (*print)(struct simulate_command *c);
	void (*clear)(struct simulate_command *c); /* free what plan() made; NULL: nothing */
};

/* Run a command from its arguments to its report. Return the exit code. */
int simulate_command(struct simulate_command *c, const struct simulator *simulator, int argc, char **argv);

/* Fail: no WHAT 'NAME'; available: the names, at intervals of `stride` bytes. */
int simulate_not_found(const struct options *o, const char *what, const char *name, const char *names, size_t n, size_t stride);

#define SIMULATE_BENCH_WORDS 16
/* Write the words behind `tomonode simulate` for the exam of a benchmark, ended by NULL: of the size that a system makes, or a tiny
 * one. ret_words: at most SIMULATE_BENCH_WORDS - 2, `folder` is one of them. Returns the kind of its case. */
const struct kind *simulate_bench_exam(bool full, const char *folder, const char **ret_words);

#endif
