/* SPDX-License-Identifier: Apache-2.0 */
/* config_defaults.c - write the table of keys as a configuration file, see node/config/config_reference.h. */
#include <string.h>

#include "node/config/config_internal.h"
#include "node/config/config_reference.h"
#include "node/config/config_value.h"
#include "node/config/kind.h"

enum { COLUMNS = 116 };

/* Write a text as comment lines. */
static void print_comment(FILE *to, const char *indent, const char *text)
{
	while (*text) {
		size_t n = strlen(text), end = n;

		if (n > COLUMNS)
			for (end = COLUMNS; end > 1 && text[end] != ' ';)
				end--;
		fprintf(to, "%s%s%.*s\n", indent, indent[0] == '#' ? "" : "# ", (int)end, text);
		text += end + (text[end] == ' ');
	}
}

static bool is_quoted(const struct key *key)
{
	return key->type != KEY_INT && key->type != KEY_REAL && key->type != KEY_BOOL && key->type != KEY_NAMES &&
	       !(key->type == KEY_BYTES && key->fallback[strspn(key->fallback, "0123456789")] == '\0');
}

/* Write `key = default`; what an entry must have, and what is computed, has none. */
static void print_assignment(FILE *to, const struct key *key)
{
	const char *quote = key->fallback && is_quoted(key) ? "\"" : "";

	if (!key->fallback || (key->flags & KEY_COMPUTED))
		fputs(key->name, to);
	else if (key->type == KEY_NAMES)
		fprintf(to, "%s = [];", key->name);
	else
		fprintf(to, "%s = %s%s%s;", key->name, quote, key->fallback, quote);
}

static void print_described(FILE *to, const struct key *key, const char *indent)
{
	char allowed[256], text[2000];

	config_value_allowed(key, allowed, sizeof(allowed));
	snprintf(text, sizeof(text), "%s%s%s%s (%s)", key->only ? "of " : "", key->only ? key->only : "", key->only ? ": " : "",
		 key->meaning, allowed);
	print_comment(to, indent, text);
}

/* A section with one group is written as it is; of a list, what an entry may have. */
static void print_section(FILE *to, const struct config_section *section)
{
	print_comment(to, "", section->meaning);
	if (!section->list)
		fprintf(to, "%s = {\n", section->name);
	for (size_t i = 0; i < section->n_keys; i++) {
		const struct key *key = &section->keys[i];

		print_described(to, key, section->list ? "#   " : "\t");
		fputs(section->list ? "#       " : key->flags & KEY_COMPUTED ? "\t# " : "\t", to);
		print_assignment(to, key);
		fputs(section->list ? "\n#\n" : "\n\n", to);
	}
	fputs(section->list ? "\n" : "};\n\n", to);
}

void config_defaults(FILE *to)
{
	print_comment(
		to, "",
		"Every key of tomonode with its default and its meaning, and the entries that it has without a configuration "
		"file. Written by `tomonode check --defaults`; what the program reads is tomonode.conf, which needs only what "
		"differs.");
	fputc('\n', to);
	for (size_t s = 0; s < SECTION_COUNT; s++) {
		if (!config_sections[s].of_kinds)
			print_section(to, &config_sections[s]);
		for (int i = 0; config_sections[s].of_kinds && i < KIND_COUNT; i++)
			print_section(to, kind_of((enum case_kind)i)->protocols);
	}
	fputs(config_embedded(), to);
}
