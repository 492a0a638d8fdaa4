/* The command line of every subcommand: options from one table that also prints --help, errors, --json.
 *
 * - `--help` is always there and prints usage, options and exit codes on stdout; code 0.
 * - `--json` is there where the command has `json`: one JSON document on stdout, nothing else there. Else stdout is for people.
 * - Problems go to stderr as "tomonode COMMAND: sentence"; with --json stdout then holds "ok": false, "code" and "error".
 * - Exit codes are enum exit_code of node/commands.h.
 *
 *	static const struct option_spec options[] = {
 *		{'c', "config", "FILE", "configuration laid over the embedded defaults"},
 *		{OPTION_LONG + 0, "describe", NULL, "print the reference"},
 *		{0},
 *	};
 *	static const struct command_spec spec = {.name = "check", .summary = "...", .options = options};
 *	struct options o;
 *	int id;
 *
 *	options_begin(&o, &spec, argc, argv);
 *	while ((id = options_next(&o)) >= 0) {
 *		if (id == 'c')
 *			path = o.value;
 *	}
 *	if (id == OPTION_STOP)
 *		return o.code;
 *	for (int i = o.first; i < argc; i++) ... the remaining arguments, argv[i]
 */
#ifndef TOMONODE_NODE_OPTIONS_H
#define TOMONODE_NODE_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>

#include "kernels/err.h"
#include "node/commands.h"
#include "node/config.h"

#define OPTION_LONG 256 /* ids from here on have no short letter */
#define OPTIONS_MAX 40

struct option_spec {
	int id;		      /* the short letter, or OPTION_LONG + n; 0 ends the table */
	const char *name;     /* long name, without dashes */
	const char *argument; /* what to call its value in --help; NULL: a flag */
	const char *help;     /* what it does, its default, its range */
};

struct command_spec {
	const char *name;		   /* "recon" */
	const char *usage;		   /* what follows "tomonode NAME" */
	const char *summary;		   /* one line */
	const char *text;		   /* more for --help, lines of at most 100 characters; may be NULL */
	const struct option_spec *options; /* without --help and --json; may be NULL */
	bool json;			   /* has --json */
	int min_arguments, max_arguments;  /* besides options; max -1: any number */
};

struct options {
	const struct command_spec *spec;
	int argc;
	char **argv;
	const char *value; /* of the option just given back; NULL for a flag */
	int first;	   /* index of the first remaining argument, once options_next answered OPTION_END */
	bool json;	   /* --json was given, at whatever place */
	int code;	   /* exit code, with OPTION_STOP */
	struct {
		char shorts[2 * OPTIONS_MAX + 4];
		struct option longs[OPTIONS_MAX + 3];
	} scan; /* private */
};

enum { OPTION_END = -1, OPTION_STOP = -2 };

/* One command line at a time: getopt's state is global. */
void options_begin(struct options *o, const struct command_spec *spec, int argc, char **argv);
/* The next option's id; OPTION_END: all read, go on; OPTION_STOP: return o->code from the command (help, or wrong usage, already
 * printed). */
int options_next(struct options *o);

/* "tomonode COMMAND: sentence" on stderr, with --json also an object on stdout; returns code. */
int options_fail(const struct options *o, enum exit_code code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* "--NAME VALUE is not allowed", for the option that was just given back. */
int options_refuse(const struct options *o, int id);
/* The same for an error box; the exit code follows from err->code (options_code). */
int options_fail_err(const struct options *o, const struct err *err);
/* EBADMSG, ENOTSUP, ENOKEY: CODE_INPUT; ENOMEM: CODE_MEMORY; ENODEV, EHWPOISON: CODE_DEVICE; ECANCELED: CODE_CANCELLED; EBUSY,
 * EADDRINUSE: CODE_BUSY; ECONNREFUSED, ECONNRESET, ETIMEDOUT, EHOSTUNREACH, ENETUNREACH, EACCES: CODE_PEER; else CODE_FAILED. */
enum exit_code options_code(const struct err *err);

/* Load a configuration (path NULL: embedded defaults) and print every problem. 0, or CODE_CONFIG: return it. */
int options_config(const struct options *o, const char *path, struct config **ret_config);

/* Print a jansson value on stdout, with a newline, and give it up (the reference is stolen; NULL prints nothing: CODE_FAILED). */
struct json_t;
int options_json(struct json_t *root);

/* A whole number in [lo, hi] out of text; -1: it is not (nothing is printed). */
int options_integer(const char *text, long long lo, long long hi, long long *ret_value);
/* The same for an int within int's range, and a seed; false: it is not. */
bool options_int(const char *text, int lo, int hi, int *ret_value);
bool options_seed(const char *text, unsigned *ret_seed);
/* Could the text be a UID? */
bool options_uid(const char *text);
/* A finite number in [lo, hi] out of text. */
int options_real(const char *text, double lo, double hi, double *ret_value);

#endif
