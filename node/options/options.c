/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - parse options with getopt_long from one table per command; see options.h for the conventions.
 * The help text is generated from the table, so that no option can be missing; the exit codes are in one list below.
 */
#include "node/options/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "dicom/core/dataset.h"
#include "node/base/folder.h"
#include "node/base/nearest.h"
#include "node/base/plural.h"
#include "node/config/config_path.h"
#include "node/config/config_table.h"
#include "node/config/kind.h"
#include "node/options/options_internal.h"

enum { ID_HELP = OPTION_LONG + 1000, ID_JSON, ID_INTO }; /* row i of the table without an id: ID_INTO + i */

const char options_exit_codes[] = "  0 success                        1 another failure, output that cannot be written\n"
				  "  2 wrong usage                    3 configuration has problems\n"
				  "  4 data refused or unreadable     5 not enough memory\n"
				  "  6 no such device, or it failed   7 peer unreachable or refused\n"
				  "  8 no such job, protocol, file    9 spool or port in use\n"
				  " 10 cancelled\n";

const char options_of_config[] =
	"Without --config: the file named by the environment variable TOMONODE_CONF, else the tomonode.conf of the\n"
	"installation, else the embedded defaults alone.\n";
const char options_of_json[] = "write one JSON document to stdout instead of text";
const char options_of_help[] = "show this text";

static struct {
	enum options_help how;
	const char *before, *word;
} help_as; /* options_help_as() */

void options_help_as(enum options_help how, const char *before, const char *word)
{
	help_as.how = how;
	help_as.before = before;
	help_as.word = word;
}

static void print_option(const char *name, int letter, const char *argument, const char *help)
{
	char left[64];
	char lead[8] = "    ";

	if (letter > 0 && letter < OPTION_LONG)
		snprintf(lead, sizeof(lead), "-%c, ", letter);
	snprintf(left, sizeof(left), "  %s--%s%s%s", lead, name, argument ? " " : "", argument ? argument : "");
	printf("%-30s", left);
	if (strlen(left) >= 30)
		printf("\n%-30s", "");
	for (const char *at = help; *at; at++) {
		putchar(*at);
		if (*at == '\n')
			printf("%-30s", "");
	}
	putchar('\n');
}

bool options_have(const struct command_spec *spec, const char *name)
{
	for (const struct option_spec *s = spec->options; s && s->name; s++)
		if (!strcmp(s->name, name))
			return true;
	return false;
}

static void print_text(const struct command_spec *spec)
{
	printf("Usage: tomonode %s %s\n%s\n", spec->name, spec->usage, spec->summary);
	if (spec->text)
		printf("\n%s\n", spec->text);
	printf("\nOptions:\n");
	for (const struct option_spec *s = spec->options; s && s->name; s++)
		print_option(s->name, s->id, s->argument, s->help);
	if (spec->json)
		print_option("json", 0, NULL, options_of_json);
	print_option("help", 'h', NULL, options_of_help);
	if (options_have(spec, "config"))
		printf("\n%s", options_of_config);
	if (spec->examples) {
		printf("\nExamples:\n");
		for (const char *at = spec->examples; *at; at += strcspn(at, "\n"), at += *at == '\n')
			printf("  %.*s\n", (int)strcspn(at, "\n"), at);
	}
	printf("\nExit codes:\n%s", options_exit_codes);
}

static void print_help(const struct command_spec *spec)
{
	if (help_as.how == OPTIONS_MAN)
		options_print_man(spec);
	else if (help_as.how == OPTIONS_WORDS)
		options_print_words(spec, help_as.before, help_as.word);
	else
		print_text(spec);
}

static int stop_parsing(struct options *o, int code)
{
	o->code = code;
	return OPTION_STOP;
}

static int usage_error(struct options *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int usage_error(struct options *o, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	options_fail(o, CODE_USAGE, "%s", text);
	fprintf(stderr, "More: tomonode %s --help\n", o->spec->name);
	return stop_parsing(o, CODE_USAGE);
}

void options_begin(struct options *o, const struct command_spec *spec, int argc, char **argv)
{
	size_t n = 0, at = 0;
	struct option *longs;

	memset(o, 0, sizeof(*o));
	o->spec = spec;
	o->argc = argc;
	o->argv = argv;
	o->first = argc;
	longs = o->scan.longs;
	o->scan.shorts[at++] = ':'; /* getopt then returns ':' for a missing value and '?' for an unknown option */
	o->scan.shorts[at++] = 'h';
	for (const struct option_spec *s = spec->options; s && s->name && n < OPTIONS_MAX; s++, n++) {
		longs[n] = (struct option){s->name, s->argument ? required_argument : no_argument, NULL,
					   s->id ? s->id : ID_INTO + (int)n};
		if (s->id > 0 && s->id < OPTION_LONG) {
			o->scan.shorts[at++] = (char)s->id;
			if (s->argument)
				o->scan.shorts[at++] = ':';
		}
	}
	if (spec->json)
		longs[n++] = (struct option){"json", no_argument, NULL, ID_JSON};
	longs[n] = (struct option){"help", no_argument, NULL, ID_HELP};
	/* Find --json before any option is parsed, so that an error in an option can be printed as JSON, too. */
	for (int i = 1; spec->json && i < argc && strcmp(argv[i], "--") != 0; i++)
		o->json = o->json || !strcmp(argv[i], "--json");
	optind = 0; /* glibc: reset the state that an earlier command line has left */
	opterr = 0;
}

/* Find the name of argument n (from 0): the allowed first words, or, in the usage up to an alternative, of its words outside of
 * brackets those that are no option and no value of one. "an argument" if it has no such word. */
static void name_argument(const struct command_spec *spec, int n, char ret_name[64])
{
	const char *usage = spec->usage;
	bool value = false; /* of an option */

	snprintf(ret_name, 64, "an argument");
	for (size_t i = 0, at = 0; n == 0 && spec->word && spec->word(i) && at < 63; i++)
		at += (size_t)snprintf(ret_name + at, 64 - at, "%s%s", i > 0 ? "|" : "", spec->word(i));
	if (n == 0 && spec->word)
		return;
	for (int depth = 0; *usage && strncmp(usage, "tomonode ", 9) != 0; usage += strspn(usage, " \n")) {
		size_t length = strcspn(usage, " \n"), inside = 0;
		bool option = *usage == '-';

		for (size_t i = 0; i < length; i++) {
			depth += (usage[i] == '[' || usage[i] == '(') - (usage[i] == ']' || usage[i] == ')');
			inside += depth > 0;
		}
		if (inside == 0 && *usage != '[' && !strchr("])", usage[length - 1]) && !option && !value && n-- == 0) {
			snprintf(ret_name, 64, "%.*s", (int)(length < 63 ? length : 63), usage);
			return;
		}
		value = option && inside == 0;
		usage += length;
	}
}

static int finish_parsing(struct options *o)
{
	int n = o->argc - optind;
	char name[64];

	o->first = optind;
	if (n < o->spec->min_arguments) {
		name_argument(o->spec, n, name);
		return usage_error(o, "%s is missing", name);
	}
	if (o->spec->max_arguments >= 0 && n > o->spec->max_arguments)
		return usage_error(o, "unexpected argument '%s'", o->argv[optind + o->spec->max_arguments]);
	return help_as.how == OPTIONS_PARSE ? stop_parsing(o, CODE_OK) : OPTION_END;
}

/* Return the row of the option with this id; NULL: none. */
static const struct option_spec *row_of(const struct options *o, int id)
{
	const struct option_spec *rows = o->spec->options;

	for (size_t i = 0; rows && rows[i].name; i++)
		if (id == (rows[i].id ? rows[i].id : ID_INTO + (int)i))
			return &rows[i];
	return NULL;
}

static bool parse_word(const char *value, const char *const *words, int *ret_index)
{
	for (int i = 0; words[i]; i++)
		if (strcmp(value, words[i]) == 0) {
			*ret_index = i;
			return true;
		}
	return false;
}

static bool parse_int(const char *text, int lo, int hi, int *ret_value)
{
	long long value;

	if (options_integer(text, lo, hi, &value) < 0)
		return false;
	*ret_value = (int)value;
	return true;
}

static bool parse_seed(const char *text, unsigned *ret_seed)
{
	long long value;

	if (options_integer(text, 0, UINT_MAX, &value) < 0)
		return false;
	*ret_seed = (unsigned)value;
	return true;
}

/* Return true if the text has the form of a UID. */
static bool is_uid(const char *text)
{
	return text[0] && strlen(text) < DICOM_UID_SIZE && strspn(text, "0123456789.") == strlen(text);
}

/* Return true if a folder with this name would be taken for a file: it ends like one, and is no folder yet. */
static bool is_like_a_file(const char *path)
{
	static const char *const endings[] = {".html", ".htm", ".pdf", ".png", ".jpg", ".dcm", ".json", ".nii", ".gz",	".mha",
					      ".mhd",  ".hs",  ".hv",  ".h5",  ".npy", ".zip", ".tar",	".csv", ".txt", ".xml"};
	const char *ending = strrchr(path, '.');

	for (size_t i = 0; ending && i < sizeof(endings) / sizeof(endings[0]); i++)
		if (!strcasecmp(ending, endings[i]))
			return !folder_exists(path);
	return false;
}

static bool store_value(const struct option_spec *row, const char *value, void *at)
{
	switch (row->type) {
	case OPTION_INTO_TEXT:
		*(const char **)at = value;
		return true;
	case OPTION_INTO_FOLDER:
		*(const char **)at = value;
		return !is_like_a_file(value);
	case OPTION_INTO_UID:
		*(const char **)at = value;
		return is_uid(value);
	case OPTION_INTO_CHARS:
		return snprintf(at, (size_t)row->hi, "%s", value) < (int)row->hi;
	case OPTION_INTO_WORD:
		return parse_word(value, row->words, at);
	case OPTION_INTO_INT:
		return parse_int(value, (int)row->lo, (int)row->hi, at);
	case OPTION_INTO_REAL:
		return options_real(value, row->lo, row->hi, at) >= 0;
	case OPTION_INTO_SEED:
		return parse_seed(value, at);
	default:
		*(bool *)at = row->type == OPTION_INTO_ON;
		return true;
	}
}

struct known_words {
	const struct option *longs;
	bool keys; /* also the keys of protocols, which --set KEY=VALUE sets */
};

/* Return an option without dashes, after all options "set KEY=". */
static const char *known_word(const void *ctx, size_t i)
{
	const struct known_words *w = ctx;
	const struct option *l = w->longs;
	const struct config_section *section;

	for (; l->name && i > 0; l++)
		i--;
	if (l->name || !w->keys)
		return l->name;
	for (enum case_kind kind = 0; kind < KIND_COUNT; kind++) {
		section = config_section_kind(&config_sections[SECTION_PROTOCOLS], kind_of(kind)->name);
		if (!section)
			continue;
		if (i + 2 < section->n_keys) /* after name and kind */
			return section->keys[i + 2].name;
		i -= section->n_keys - 2;
	}
	return NULL;
}

static bool is_option(const struct options *o, const char *word)
{
	for (const struct option *l = o->scan.longs; l->name; l++)
		if (l->name == word)
			return true;
	return false;
}

static bool sets_keys(const struct options *o)
{
	const struct option_spec *row = o->spec->options;

	while (row && row->name && !(row->argument && !strcmp(row->argument, "KEY=VALUE")))
		row++;
	return row && row->name;
}

/* Refuse --WORD, which begins no option or several ones. */
static int unknown_option(struct options *o, const char *word)
{
	size_t length = strcspn(word + 2, "="), n = 0, at = 0;
	char name[64], several[200] = "", hint[NEAREST_HINT] = "";
	const struct known_words known = {o->scan.longs, sets_keys(o)};
	const char *near;

	snprintf(name, sizeof(name), "%.*s", (int)length, word + 2);
	for (const struct option *l = o->scan.longs; l->name && at < sizeof(several); l++)
		if (!strncmp(l->name, name, strlen(name)) && ++n)
			at += (size_t)snprintf(several + at, sizeof(several) - at, "%s--%s", at ? ", " : "", l->name);
	if (n > 1)
		return usage_error(o, "option '%s' may be one of %s", word, several);
	near = nearest_word(name, known_word, &known);
	if (near)
		snprintf(hint, sizeof(hint), is_option(o, near) ? ", did you mean '--%s'?" : ", did you mean '--set %s=...'?",
			 near);
	return usage_error(o, "unknown option '%s'%s", word, hint);
}

/* Is it an option of the command, --WORD or -X? A number below 0 and "-" are not. */
static bool looks_like_option(const struct options *o, const char *word)
{
	return word[0] == '-' && (word[1] == '-' || (isalpha((unsigned char)word[1]) && strchr(o->scan.shorts, word[1])));
}

/* Refuse the word after an option as its value: another option, so that the value was forgotten; of KEY=VALUE, a key alone.
 * Return false for any other value. */
static bool refuse_value(struct options *o, const struct option_spec *row)
{
	const char *const word = o->argv[optind - 1], *const next = o->argv[optind];
	const bool pair = strspn(row->argument, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == strcspn(row->argument, "=");

	if (o->value == word && looks_like_option(o, word)) {
		usage_error(o, "option '%s' needs a value, %s, but '%s' follows", o->argv[optind - 2], row->argument, word);
		return true;
	}
	if (!pair || !strchr(row->argument, '=') || strchr(o->value, '='))
		return false;
	if (next && next[0] != '-' && access(next, F_OK) < 0)
		usage_error(o, "--%s %.100s has no '='; allowed: --%s %s: --%s %.100s=%.100s is meant?", row->name, o->value,
			    row->name, row->argument, row->name, o->value, next);
	else
		usage_error(o, "--%s %.100s has no '='; allowed: --%s %s", row->name, o->value, row->name, row->argument);
	return true;
}

int options_next(struct options *o)
{
	const struct option_spec *row;
	int id;

	for (;;) {
		id = getopt_long(o->argc, o->argv, o->scan.shorts, o->scan.longs, NULL);
		o->value = optarg;
		switch (id) {
		case -1:
			return finish_parsing(o);
		case ID_JSON:
			o->json = true;
			break;
		case 'h':
		case ID_HELP:
			print_help(o->spec);
			return stop_parsing(o, CODE_OK);
		case ':':
			return usage_error(o, "option '%s' needs a value", o->argv[optind - 1]);
		case '?':
			if (optopt > 0 && optopt < OPTION_LONG && strncmp(o->argv[optind - 1], "--", 2) != 0)
				return usage_error(o, "unknown option '-%c'", optopt);
			if (optopt)
				return usage_error(o, "option '%s' takes no value", o->argv[optind - 1]);
			return unknown_option(o, o->argv[optind - 1]);
		default:
			row = row_of(o, id);
			if (row && row->argument && refuse_value(o, row))
				return OPTION_STOP;
			if (!row || row->type == OPTION_RETURNED)
				return id;
			if (!store_value(row, o->value, (char *)o->into + row->at))
				return stop_parsing(o, options_refuse(o, id));
		}
	}
}

int options_json(struct json_t *root)
{
	int failed;

	if (!root)
		return CODE_FAILED;
	failed = json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) < 0;
	json_decref(root);
	if (putchar('\n') == EOF || fflush(stdout) != 0)
		failed = 1;
	return failed ? CODE_FAILED : CODE_OK;
}

static int fail_json(const struct options *o, enum exit_code code, const char *text)
{
	if (o->json)
		options_json(json_pack("{s:b, s:i, s:s}", "ok", 0, "code", (int)code, "error", text));
	return code;
}

int options_fail(const struct options *o, enum exit_code code, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	err_clean(text); /* JSON must be UTF-8, paths and arguments may be any bytes */
	fprintf(stderr, "tomonode %s: %s\n", o->spec->name, text);
	return fail_json(o, code, text);
}

enum exit_code options_code(const struct err *err)
{
	switch (err->code) {
	case EBADMSG:
	case ENOTSUP:
	case ENOKEY:
	case EFBIG:
	case ENOTUNIQ:
		return CODE_INPUT;
	case ENOENT:
		return CODE_NOT_FOUND;
	case ENOMEM:
		return CODE_MEMORY;
	case ENODEV:
	case EHWPOISON:
		return CODE_DEVICE;
	case ECANCELED:
		return CODE_CANCELLED;
	case EBUSY:
	case EADDRINUSE:
		return CODE_BUSY;
	case ECONNREFUSED:
	case ECONNRESET:
	case ETIMEDOUT:
	case EHOSTUNREACH:
	case ENETUNREACH:
	case EACCES:
		return CODE_PEER;
	default:
		return CODE_FAILED;
	}
}

int options_fail_err(const struct options *o, const struct err *err)
{
	return options_fail(o, options_code(err), "%s", err->msg);
}

int options_refuse(const struct options *o, int id)
{
	const struct option_spec *spec = row_of(o, id);
	char hint[NEAREST_HINT], help[800];

	if (!spec)
		return options_fail(o, CODE_USAGE, "option %d: %s is not allowed; see --help", id, o->value);
	snprintf(help, sizeof(help), "%s", spec->help);
	for (char *end = help; (end = strchr(end, '\n'));)
		*end = ' ';
	nearest_hint(spec->words ? nearest_in_list(o->value, spec->words) : NULL, hint);
	return options_fail(o, CODE_USAGE, "--%s %.300s is not allowed%s; --%s %s: %s", spec->name, o->value,
			    spec->type == OPTION_INTO_FOLDER ? ", for it is named like a file" : hint, spec->name,
			    spec->argument ? spec->argument : "", help);
}

static void print_problem(void *ctx, const char *problem)
{
	++*(size_t *)ctx;
	fprintf(stderr, "%s\n", problem);
}

int options_config_of_node(const struct options *o, const char *path, struct config **ret_config)
{
	struct err err = {0};
	size_t problems = 0;

	if (config_load(path, print_problem, &problems, ret_config, &err) == 0)
		return 0;
	if (problems == 0) /* the failure is not in the configuration's text: no memory, or the path is too long */
		return options_fail(o, CODE_CONFIG, "%s", err.msg);
	return fail_json(o, CODE_CONFIG, err.msg); /* each problem was printed to stderr already */
}

void options_note_folder(const struct options *o, const char *folder)
{
	size_t n = folder_entries(folder);

	if (n > 0)
		fprintf(stderr,
			"tomonode %s: warning: folder %s is not empty (%zu file%s): new files are added, and replace those with "
			"the same names\n",
			o->spec->name, folder, n, plural(n));
}

int options_config(const struct options *o, const char *path, struct config **ret_config)
{
	char buffer[CONFIG_PATH_BUFFER];

	return options_config_of_node(o, path ? path : config_path_default(buffer), ret_config);
}

int options_integer(const char *text, long long lo, long long hi, long long *ret_value)
{
	char *end;
	long long value;

	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno || end == text || *end || value < lo || value > hi)
		return -1;
	*ret_value = value;
	return 0;
}

int options_real(const char *text, double lo, double hi, double *ret_value)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !isfinite(value) || !(value >= lo) || !(value <= hi))
		return -1;
	*ret_value = value;
	return 0;
}
