/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines: each type of option at its limits, what is refused as wrong usage, and exit codes of errors. */
#include <limits.h>

#include "node/options/options.h"
#include "tests/test.h"

struct values {
	const char *text, *folder, *uid;
	char chars[5];
	int word, number;
	double real;
	unsigned seed;
	bool on, off;
};

static const char *const words[] = {"red", "green", NULL};
static const struct option_spec specs[] = {
	{'r', "returned", "KEY=VALUE", "returned"},
	{0, "text", "TEXT", "text", INTO_TEXT(struct values, text)},
	{'d', "folder", "DIR", "folder", INTO_FOLDER(struct values, folder)},
	{0, "uid", "UID", "uid", INTO_UID(struct values, uid)},
	{0, "chars", "CHARS", "chars", INTO_CHARS(struct values, chars)},
	{0, "word", "WORD", "word", INTO_WORD(struct values, word, words)},
	{'n', "number", "N", "number", INTO_INT(struct values, number, -3, 7)},
	{0, "real", "X", "real", INTO_REAL(struct values, real, 0.5, 2)},
	{0, "seed", "N", "seed", INTO_SEED(struct values, seed)},
	{0, "on", NULL, "on", INTO_ON(struct values, on)},
	{0, "off", NULL, "off", INTO_OFF(struct values, off)},
	{0, NULL, NULL, NULL},
};
static const struct command_spec spec = {.name = "test",
					 .usage = "ARGUMENT...",
					 .summary = "test",
					 .options = specs,
					 .json = true,
					 .min_arguments = 1,
					 .max_arguments = 2,
					 .examples = "tomonode test a\n"};

/* Parse "word word ...", without what it prints. Return the exit code; CODE_OK: go on. */
static int parse(const char *line, struct values *ret, struct options *o, int *ret_returned)
{
	static char copy[400];
	static char *argv[40];
	int argc = 1, id, out = dup(1), error = dup(2), nowhere = open("/dev/null", O_WRONLY);

	snprintf(copy, sizeof(copy), "%s", line);
	argv[0] = "test";
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		argv[argc++] = !strcmp(word, "''") ? "" : word;
	argv[argc] = NULL;
	*ret = (struct values){.word = -1, .off = true};
	*ret_returned = 0;
	fflush(stdout);
	dup2(nowhere, 1);
	dup2(nowhere, 2);
	options_begin(o, &spec, argc, argv);
	o->into = ret;
	while ((id = options_next(o)) >= 0)
		++*ret_returned;
	fflush(stdout);
	dup2(out, 1);
	dup2(error, 2);
	close(out);
	close(error);
	close(nowhere);
	return id == OPTION_STOP ? o->code : CODE_OK;
}

#define UID_64 "1.234567890123456789012345678901234567890123456789012345678901.3"

TEST(usage)
{
	static const struct {
		const char *line;
		int code;
	} rows[] = {
		{"a", CODE_OK},
		{"a b", CODE_OK},
		{"", CODE_USAGE},
		{"a b c", CODE_USAGE},
		{"--help", CODE_OK},
		{"-d x.y/html a", CODE_OK},
		{"-d x.html/ a", CODE_OK}, /* says itself that it is a folder */
		{"-d x.html a", CODE_USAGE},
		{"-d x/y.DCM a", CODE_USAGE},
		{"--uid 1.2.3 a", CODE_OK},
		{"--uid " UID_64 " a", CODE_OK},
		{"--uid " UID_64 "4 a", CODE_USAGE},
		{"--uid 1.2.x a", CODE_USAGE},
		{"--uid '' a", CODE_USAGE},
		{"--chars 1234 a", CODE_OK},
		{"--chars 12345 a", CODE_USAGE},
		{"--chars '' a", CODE_OK},
		{"--word red a", CODE_OK},
		{"--word green a", CODE_OK},
		{"--word blue a", CODE_USAGE},
		{"--word '' a", CODE_USAGE},
		{"--word gree a", CODE_USAGE},
		{"--number -3 a", CODE_OK},
		{"--number -4 a", CODE_USAGE},
		{"--number 7 a", CODE_OK},
		{"--number 8 a", CODE_USAGE},
		{"--number 1.5 a", CODE_USAGE},
		{"--number '' a", CODE_USAGE},
		{"--number 99999999999999999999 a", CODE_USAGE},
		{"--number 4294967296 a", CODE_USAGE},
		{"-n 7 a", CODE_OK},
		{"-n7 a", CODE_OK},
		{"-n8 a", CODE_USAGE},
		{"-n a", CODE_USAGE},
		{"--real 0.5 a", CODE_OK},
		{"--real 0.4999 a", CODE_USAGE},
		{"--real 2 a", CODE_OK},
		{"--real 2.0001 a", CODE_USAGE},
		{"--real nan a", CODE_USAGE},
		{"--real inf a", CODE_USAGE},
		{"--real 1x a", CODE_USAGE},
		{"--seed 4294967295 a", CODE_OK},
		{"--seed 4294967296 a", CODE_USAGE},
		{"--seed -1 a", CODE_USAGE},
		{"--on a", CODE_OK},
		{"--on=1 a", CODE_USAGE},
		{"--returned k=v a", CODE_OK},
		{"--returned k a", CODE_USAGE},
		{"--returned", CODE_USAGE},
		{"a --text", CODE_USAGE},
		{"--text --on a", CODE_USAGE},
		{"--text -n a", CODE_USAGE},
		{"--text -5 a", CODE_OK},
		{"--unknown a", CODE_USAGE},
		{"-x a", CODE_USAGE},
		{"--o a", CODE_USAGE}, /* --on or --off */
		{"--tex t a", CODE_OK},
		{"-- --on", CODE_OK},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct options o;
		struct values v;
		int returned, code = parse(rows[i].line, &v, &o, &returned);

		if (code != rows[i].code)
			fail_msg("'%s': %d instead of %d", rows[i].line, code, rows[i].code);
	}
}

TEST(values_of_options)
{
	struct options o;
	struct values v;
	int returned;

	assert_int_equal(parse("--text t --uid 1.2 --chars abcd --word green -n -2 --real 1.25 --seed 7 --on --off -r a=b "
			       "--returned c= --json x -",
			       &v, &o, &returned),
			 CODE_OK);
	assert_string_equal(v.text, "t");
	assert_string_equal(v.uid, "1.2");
	assert_string_equal(v.chars, "abcd");
	assert_int_equal(v.word, 1);
	assert_int_equal(v.number, -2);
	assert_near(v.real, 1.25, 0);
	assert_int_equal(v.seed, 7);
	assert_true(v.on && !v.off && o.json);
	assert_int_equal(returned, 2);
	assert_string_equal(o.argv[o.first], "x");
	assert_string_equal(o.argv[o.first + 1], "-");
	assert_int_equal(o.argc - o.first, 2);
}

TEST(numbers)
{
	static const struct {
		const char *text;
		bool integer, real; /* allowed in -10 to 10 */
	} rows[] = {{"10", true, true},	   {"11", false, false},  {"-10", true, true},	{"-11", false, false},
		    {"1.5", false, true},  {"", false, false},	  {"1 ", false, false}, {"x", false, false},
		    {"nan", false, false}, {"inf", false, false}, {"1e1", false, true}, {"9223372036854775808", false, false}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		long long integer = 77;
		double real = 77;

		assert_int_equal(options_integer(rows[i].text, -10, 10, &integer), rows[i].integer ? 0 : -1);
		assert_int_equal(options_real(rows[i].text, -10, 10, &real), rows[i].real ? 0 : -1);
		assert_int_equal(integer == 77, !rows[i].integer);
		assert_int_equal(real == 77, !rows[i].real);
	}
	assert_int_equal(options_integer("9223372036854775807", 0, LLONG_MAX, &(long long){0}), 0);
	assert_int_equal(options_integer("9223372036854775808", 0, LLONG_MAX, &(long long){0}), -1);
}

TEST(exit_codes)
{
	static const struct {
		int error;
		enum exit_code code;
	} rows[] = {{EBADMSG, CODE_INPUT},     {ENOTSUP, CODE_INPUT},	    {ENOKEY, CODE_INPUT},   {EFBIG, CODE_INPUT},
		    {ENOTUNIQ, CODE_INPUT},    {ENOENT, CODE_NOT_FOUND},    {ENOMEM, CODE_MEMORY},  {ENODEV, CODE_DEVICE},
		    {EHWPOISON, CODE_DEVICE},  {ECANCELED, CODE_CANCELLED}, {EBUSY, CODE_BUSY},	    {EADDRINUSE, CODE_BUSY},
		    {ECONNREFUSED, CODE_PEER}, {ECONNRESET, CODE_PEER},	    {ETIMEDOUT, CODE_PEER}, {EHOSTUNREACH, CODE_PEER},
		    {ENETUNREACH, CODE_PEER},  {EACCES, CODE_PEER},	    {EIO, CODE_FAILED},	    {ENOSPC, CODE_FAILED},
		    {EINVAL, CODE_FAILED}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct err err = {.code = rows[i].error};

		assert_int_equal(options_code(&err), rows[i].code);
	}
}
