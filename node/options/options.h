/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of every subcommand: options from one table that also prints --help, errors, --json.
 *
 * - Every command has `--help`: it prints usage, options and exit codes to stdout and exits with 0.
 * - A command with `json` set has `--json`: it prints one JSON document to stdout and nothing else. Without --json, stdout is
 * readable text.
 * - Errors are printed to stderr as "tomonode COMMAND: sentence"; with --json, stdout also has "ok": false, "code" and "error".
 * - Exit codes are enum exit_code of node/base/exit_code.h.
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
 *
 * An option with a plain value may name the member that its value is stored in; options_next() then does not return it. A value
 * outside its range is refused with the option's help text. The value that the member has before is the default:
 *
 *		{0, "angles", "N", "views over the arc, 1 to 16384; default 180", INTO_INT(struct simulate, angles, 1, 16384)},
 *	...
 *	options_begin(&o, &spec, argc, argv);
 *	o.into = &s; (a struct simulate)
 */
#ifndef TOMONODE_NODE_OPTIONS_H
#define TOMONODE_NODE_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

#include "kernels/err.h"
#include "node/base/exit_code.h"
#include "node/config/config.h"

#define OPTION_LONG 256 /* options with an id from here on have no short letter */
#define OPTIONS_MAX 40

enum option_type {
	OPTION_RETURNED = 0, /* returned by options_next(), with its value */
	OPTION_INTO_TEXT,    /* const char *: points into argv */
	OPTION_INTO_FOLDER,  /* the same, of an output; may not be named like a file, unless it is a folder already */
	OPTION_INTO_UID,     /* the same; must have the form of a UID */
	OPTION_INTO_CHARS,   /* char[hi]: copied */
	OPTION_INTO_WORD,    /* int: index of one of `words` */
	OPTION_INTO_INT,     /* int in lo .. hi */
	OPTION_INTO_REAL,    /* double in lo .. hi */
	OPTION_INTO_SEED,    /* unsigned */
	OPTION_INTO_ON,	     /* bool, of a flag: true */
	OPTION_INTO_OFF,     /* bool, of a flag: false */
};

struct option_spec {
	int id;		      /* the short letter, or OPTION_LONG + n; 0: neither, its value is stored at `at` */
	const char *name;     /* long name, without dashes; NULL ends the table */
	const char *argument; /* name of its value in --help; NULL: a flag */
	const char *help;     /* what it does, its default, its range */
	enum option_type type;
	size_t at; /* offset in the structure that `into` of struct options points to */
	double lo, hi;
	const char *const *words; /* ended by NULL */
};

/* The offset of member m of s. The member must have the type `kind`: comparing pointers to different types does not compile. */
#define OPTION_AT(s, m, kind) (offsetof(s, m) + 0 * sizeof((kind *)NULL == &((s *)NULL)->m))
#define INTO_TEXT(s, m) .type = OPTION_INTO_TEXT, .at = OPTION_AT(s, m, const char *)
#define INTO_FOLDER(s, m) .type = OPTION_INTO_FOLDER, .at = OPTION_AT(s, m, const char *)
#define INTO_UID(s, m) .type = OPTION_INTO_UID, .at = OPTION_AT(s, m, const char *)
#define INTO_CHARS(s, m) .type = OPTION_INTO_CHARS, .at = offsetof(s, m), .hi = sizeof(((s *)NULL)->m)
#define INTO_WORD(s, m, list) .type = OPTION_INTO_WORD, .at = OPTION_AT(s, m, int), .words = (list)
#define INTO_INT(s, m, low, high) .type = OPTION_INTO_INT, .at = OPTION_AT(s, m, int), .lo = (low), .hi = (high)
#define INTO_REAL(s, m, low, high) .type = OPTION_INTO_REAL, .at = OPTION_AT(s, m, double), .lo = (low), .hi = (high)
#define INTO_SEED(s, m) .type = OPTION_INTO_SEED, .at = OPTION_AT(s, m, unsigned)
#define INTO_ON(s, m) .type = OPTION_INTO_ON, .at = OPTION_AT(s, m, bool)
#define INTO_OFF(s, m) .type = OPTION_INTO_OFF, .at = OPTION_AT(s, m, bool)

struct command_spec {
	const char *name;		   /* "recon" */
	const char *usage;		   /* what follows "tomonode NAME" */
	const char *summary;		   /* one line */
	const char *text;		   /* more for --help, lines of at most 100 characters; may be NULL */
	const struct option_spec *options; /* without --help and --json; may be NULL */
	bool json;			   /* has --json */
	int min_arguments, max_arguments;  /* besides options; max -1: any number */
	const char *examples;		   /* command lines for --help, each begins with "tomonode NAME" */
	const char *(*word)(size_t i);	   /* the i-th allowed first argument, NULL after the last; NULL: not a fixed list */
	const char *const *last_words; /* the allowed words of the last of several arguments, ended by NULL; NULL: not a list */
	bool files;		       /* the arguments are files or folders */
};

struct options {
	const struct command_spec *spec;
	int argc;
	char **argv;
	void *into;	   /* set it after options_begin() if the table has options with `at` */
	const char *value; /* of the option just returned; NULL for a flag */
	int first;	   /* index of the first remaining argument, valid after OPTION_END */
	bool json;	   /* --json was given, anywhere on the command line */
	int code;	   /* exit code, with OPTION_STOP */
	struct {
		char shorts[2 * OPTIONS_MAX + 4];
		struct option longs[OPTIONS_MAX + 3];
	} scan; /* private */
};

enum { OPTION_END = -1, OPTION_STOP = -2 };

/* What --help of the commands does in this process, for `tomonode help`: it prints text, or a page in the macros of man(7), or
 * what can stand at the place of the last word, which follows `before`; PARSE: options are parsed, and the command ends without
 * --help. */
enum options_help { OPTIONS_TEXT, OPTIONS_MAN, OPTIONS_WORDS, OPTIONS_PARSE };
void options_help_as(enum options_help how, const char *before, const char *word);

/* Print text for a manual page, in short lines. */
void options_put_man(const char *text);

/* Start parsing. Not reentrant, because getopt's state is global. */
void options_begin(struct options *o, const struct command_spec *spec, int argc, char **argv);
/* Return the id of the next option. OPTION_END: no more options, continue. OPTION_STOP: return o->code from the command; help or
 * the usage error has been printed. */
int options_next(struct options *o);

/* Print "tomonode COMMAND: sentence" to stderr, with --json also an object to stdout; return code. */
int options_fail(const struct options *o, enum exit_code code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Print "--NAME VALUE is not allowed" for the option just returned; return CODE_USAGE. */
int options_refuse(const struct options *o, int id);
/* Print the error's text; return options_code(err). */
int options_fail_err(const struct options *o, const struct err *err);
/* The exit code of an error. ENOENT: CODE_NOT_FOUND; EBADMSG, ENOTSUP, ENOKEY: CODE_INPUT; ENOMEM: CODE_MEMORY; ENODEV,
 * EHWPOISON: CODE_DEVICE; ECANCELED: CODE_CANCELLED; EBUSY, EADDRINUSE: CODE_BUSY; ECONNREFUSED, ECONNRESET, ETIMEDOUT,
 * EHOSTUNREACH, ENETUNREACH, EACCES: CODE_PEER; else CODE_FAILED. */
enum exit_code options_code(const struct err *err);

/* Warn on stderr if the folder for the output has files already: new files are added to them, and replace those with the same
 * names. */
void options_note_folder(const struct options *o, const char *folder);

/* Load a configuration and print every problem. path NULL: use config_path_default(). Returns 0, or CODE_CONFIG, which the
 * command returns. */
int options_config(const struct options *o, const char *path, struct config **ret_config);
/* Load the configuration that the node runs with: path NULL means the embedded defaults. */
int options_config_of_node(const struct options *o, const char *path, struct config **ret_config);

/* Print a jansson value and a newline to stdout; take over the reference. Returns CODE_OK; with NULL it prints nothing and
 * returns CODE_FAILED. */
struct json_t;
int options_json(struct json_t *root);

/* Parse a whole number in [lo, hi]. -1: the text is not such a number; nothing is printed. */
int options_integer(const char *text, long long lo, long long hi, long long *ret_value);
/* Parse a finite number in [lo, hi]. -1: the text is not such a number. */
int options_real(const char *text, double lo, double hi, double *ret_value);

#endif
