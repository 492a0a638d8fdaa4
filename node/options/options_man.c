/* SPDX-License-Identifier: Apache-2.0 */
/* options_man.c - the manual page of a command, from the table that also prints --help. The build writes one for each command. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "node/base/version.h"
#include "node/options/options_internal.h"

#define FILL 60 /* letters in a line of filled text; escapes make it longer */

/* Print text so that troff prints it unchanged. start: the text begins a line of the input. */
static void put_text(const char *text, size_t n, bool start)
{
	for (const char *c = text; c < text + n; c++) {
		if (start && (*c == '.' || *c == '\''))
			fputs("\\&", stdout);
		start = *c == '\n';
		switch (*c) {
		case '\\':
			fputs("\\e", stdout);
			break;
		case '-':
			fputs("\\-", stdout);
			break;
		case '`':
			fputs("\\(ga", stdout);
			break;
		case '\'':
			fputs("\\(aq", stdout);
			break;
		case '^':
			fputs("\\(ha", stdout);
			break;
		case '~':
			fputs("\\(ti", stdout);
			break;
		default:
			putchar(*c);
		}
	}
}

static void put_plain(const char *text)
{
	put_text(text, strlen(text), false);
}

void options_put_man(const char *text)
{
	size_t column = 0;

	for (size_t n; *(text += strspn(text, " \n")); text += n) {
		n = strcspn(text, " \n");
		if (column > 0)
			putchar(column + n > FILL ? '\n' : ' ');
		column = column + n > FILL ? 0 : column;
		put_text(text, n, column == 0);
		column += n + 1;
	}
	putchar('\n');
}

/* Print lines as they are. */
static void put_unfilled(const char *text)
{
	size_t n = strlen(text);

	puts(".nf");
	put_text(text, n - (n > 0 && text[n - 1] == '\n'), true);
	puts("\n.fi");
}

/* Return true if the lines are a table or a list, which would be joined. */
static bool has_columns(const char *text)
{
	return text[0] == '.' || strstr(text, "\n.") || strstr(text, "\n  ");
}

static void put_option(const char *name, int letter, const char *argument, const char *help)
{
	puts(".TP");
	if (letter > 0 && letter < OPTION_LONG)
		printf("\\fB\\-%c\\fR, ", letter);
	fputs("\\fB\\-\\-", stdout);
	put_plain(name);
	fputs("\\fR", stdout);
	if (argument) {
		fputs(" \\fI", stdout);
		put_plain(argument);
		fputs("\\fR", stdout);
	}
	putchar('\n');
	options_put_man(help);
}

static void put_synopsis(const struct command_spec *spec)
{
	const char *at = spec->usage;

	puts(".SH SYNOPSIS\n.nf");
	printf("\\fBtomonode ");
	put_plain(spec->name);
	fputs("\\fR ", stdout);
	for (size_t n; *at; at += n + (at[n] == '\n')) {
		n = strcspn(at, "\n");
		if (at != spec->usage && strncmp(at, "       tomonode", strlen("       tomonode")) != 0)
			fputs("    ", stdout); /* a continued line */
		while (n > 0 && *at == ' ') {
			at++;
			n--;
		}
		put_text(at, n, true);
		putchar('\n');
	}
	puts(".fi");
}

/* Commands that are used together: each page names the others of its rows. */
static const char *const together[][8] = {
	{"serve", "check", "list", "devices", "test-peer", "test-alert"},
	{"list", "show", "redo", "retry", "cancel", "priority"},
	{"recon", "simulate", "import", "measure", "export", "arrays", "report", "compare"},
	{"pilot", "pilot-token", "devices", "serve"},
	{"devices", "bench", "recon"},
	{"simulate", "simulate-dbt", "simulate-pet", "simulate-parallel"},
	{"profile", "simulate", "recon", "measure"},
};
#define N_TOGETHER (sizeof(together) / sizeof(together[0]))

/* Return true if the row has this name, with blanks as dashes. */
static bool row_has(const char *const row[8], const char *name)
{
	bool found = false;

	for (size_t i = 0; i < 8 && row[i] && !found; i++) {
		size_t n = strlen(row[i]), k = 0;

		while (k < n && (row[i][k] == name[k] || (row[i][k] == '-' && name[k] == ' ')))
			k++;
		found = k == n && !name[n];
	}
	return found;
}

static void put_see_also(const char *name)
{
	puts(".SH \"SEE ALSO\"");
	for (size_t r = 0; r < N_TOGETHER; r++)
		for (size_t i = 0; i < 8 && together[r][i] && row_has(together[r], name); i++) {
			const char *other = together[r][i];
			bool before = row_has((const char *const[8]){other}, name);

			for (size_t k = 0; k < r; k++)
				before = before || (row_has(together[k], name) && row_has(together[k], other));
			if (before)
				continue;
			fputs(".BR tomonode\\-", stdout);
			put_plain(other);
			puts(" (1),");
		}
	puts(".BR tomonode (1)");
}

void options_print_man(const struct command_spec *spec)
{
	printf(".TH \"TOMONODE\\-");
	for (const char *c = spec->name; *c; c++)
		printf(*c == ' ' || *c == '-' ? "\\-" : "%c", toupper((unsigned char)*c));
	printf("\" 1 \"%s\" \"tomonode %s\" \"tomonode\"\n.SH NAME\ntomonode\\-", TOMONODE_DATE, TOMONODE_VERSION);
	for (const char *c = spec->name; *c; c++)
		printf(*c == ' ' || *c == '-' ? "\\-" : "%c", *c);
	puts(" \\-");
	options_put_man(spec->summary);
	put_synopsis(spec);
	if (spec->text) {
		puts(".SH DESCRIPTION");
		if (has_columns(spec->text))
			put_unfilled(spec->text);
		else
			options_put_man(spec->text);
	}
	puts(".SH OPTIONS");
	for (const struct option_spec *s = spec->options; s && s->name; s++)
		put_option(s->name, s->id, s->argument, s->help);
	if (spec->json)
		put_option("json", 0, NULL, options_of_json);
	put_option("help", 'h', NULL, options_of_help);
	if (options_have(spec, "config")) {
		puts(".SH ENVIRONMENT\n.TP\n.B TOMONODE_CONF");
		options_put_man(options_of_config);
	}
	if (spec->examples) {
		puts(".SH EXAMPLES");
		put_unfilled(spec->examples);
	}
	puts(".SH \"EXIT STATUS\"");
	put_unfilled(options_exit_codes);
	put_see_also(spec->name);
}
