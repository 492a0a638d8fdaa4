/* SPDX-License-Identifier: Apache-2.0 */
/* options_complete.c - what can stand at a place of the command line, for the completion of shells: one word a line, or ":files
 * ENDING..." (no ending: all) or ":folders". */
#include <stdio.h>
#include <string.h>

#include "node/config/config_path.h"
#include "node/config/config_table.h"
#include "node/config/kind.h"
#include "node/options/options_internal.h"

static void put_if(const char *candidate, const char *word)
{
	if (!strncmp(candidate, word, strlen(word)))
		puts(candidate);
}

static void put_option(const char *name, const char *word)
{
	char option[64];

	snprintf(option, sizeof(option), "--%s", name);
	put_if(option, word);
}

static void ignore_problem(void *ctx, const char *problem)
{
	(void)ctx;
	(void)problem;
}

/* Print names of the configuration: protocols, scanners, profiles or destinations. */
static void put_names(const char *option, const char *word)
{
	struct config *c = NULL;
	struct err err = {0};
	char buffer[CONFIG_PATH_BUFFER];

	if (config_load(config_path_default(buffer), ignore_problem, NULL, &c, &err) < 0)
		return;
	for (size_t i = 0; !strcmp(option, "protocol") && i < c->n_protocols; i++)
		put_if(c->protocols[i].name, word);
	for (size_t i = 0; !strcmp(option, "scanner") && i < c->n_scanners; i++)
		put_if(c->scanners[i].name, word);
	for (size_t i = 0; !strcmp(option, "system") && i < c->n_profiles; i++)
		put_if(c->profiles[i].name, word);
	config_free(c);
}

/* Print the keys that `--set KEY=VALUE` can set: those of the protocols of every kind, each once. */
static void put_keys(const char *word)
{
	const struct config_section *section, *of = &config_sections[SECTION_PROTOCOLS];
	char key[80];

	for (enum case_kind kind = 0; kind < KIND_COUNT; kind++) {
		section = config_section_kind(of, kind_of(kind)->name);
		for (size_t i = 0; section && i < section->n_keys; i++) {
			bool seen = !strcmp(section->keys[i].name, "name") || !strcmp(section->keys[i].name, "kind");

			for (enum case_kind k = 0; k < kind; k++)
				seen = seen || config_key_find(config_section_kind(of, kind_of(k)->name), section->keys[i].name);
			snprintf(key, sizeof(key), "%s=", section->keys[i].name);
			if (!seen)
				put_if(key, word);
		}
	}
}

/* Print ":files" with the endings that a text names: "FILE.nii|FILE.hv" has nii and hv; "FILE" has none. */
static void put_files(const char *text)
{
	char endings[100] = "";
	size_t n = 0;
	bool all = false;

	for (const char *at = text; *at; at += strcspn(at, "|"), at += *at == '|') {
		int length = (int)strcspn(at, "|");
		const char *dot = memchr(at, '.', (size_t)length);

		all = all || !dot;
		if (dot && n < sizeof(endings))
			n += (size_t)snprintf(endings + n, sizeof(endings) - n, " %.*s", length - (int)(dot + 1 - at), dot + 1);
	}
	printf(":files%s\n", all ? "" : endings);
}

/* Print the values of an option. */
static void put_values(const struct option_spec *row, const char *word)
{
	static const char *const devices[] = {"auto", "cpu", "cuda", NULL};
	const char *const *words = !strcmp(row->name, "device") ? devices : row->words;

	for (size_t i = 0; words && words[i]; i++)
		put_if(words[i], word);
	if (words)
		return;
	if (!strcmp(row->argument, "DIR"))
		puts(":folders");
	else if (!strcmp(row->argument, "FILE") || !strncmp(row->argument, "FILE.", 5) || !strcmp(row->argument, "F.hs") ||
		 strstr(row->argument, "|FILE"))
		put_files(row->argument);
	else if (!strcmp(row->argument, "KEY=VALUE"))
		put_keys(word);
	else
		put_names(row->name, word);
}

/* Return the option with a value that the word before is; NULL: none. */
static const struct option_spec *option_before(const struct command_spec *spec, const char *before)
{
	for (const struct option_spec *s = spec->options; s && s->name; s++)
		if (s->argument && ((!strncmp(before, "--", 2) && !strcmp(before + 2, s->name)) ||
				    (before[0] == '-' && before[1] == s->id && !before[2] && s->id < OPTION_LONG)))
			return s;
	return NULL;
}

void options_print_words(const struct command_spec *spec, const char *before, const char *word)
{
	const struct option_spec *row = option_before(spec, before);
	bool first = !strcmp(before, spec->name);

	if (row) {
		put_values(row, word);
		return;
	}
	if (word[0] == '-') {
		for (const struct option_spec *s = spec->options; s && s->name; s++)
			put_option(s->name, word);
		if (spec->json)
			put_option("json", word);
		put_option("help", word);
		return;
	}
	for (size_t i = 0; first && spec->word && spec->word(i); i++)
		put_if(spec->word(i), word);
	for (size_t i = 0; !first && spec->last_words && spec->last_words[i]; i++)
		put_if(spec->last_words[i], word);
	if (spec->files && !(first && spec->word))
		puts(":files");
}
