/* SPDX-License-Identifier: Apache-2.0 */
/* config_reference.c - write the table of keys as Markdown, and pass the values of a configuration to a visitor. */
#include "node/config/config_reference.h"

#include "node/config/config_internal.h"
#include "node/config/config_read.h"
#include "node/config/config_value.h"
#include "node/config/kind.h"

static void print_default(FILE *to, const struct key *key)
{
	if (!key->fallback)
		fputs("required", to);
	else if (key->flags & KEY_COMPUTED)
		fputs("see meaning", to);
	else if (!key->fallback[0])
		fputs("empty", to);
	else
		fprintf(to, "`%s`", key->fallback);
}

static void print_kinds(FILE *to)
{
	for (int i = 0; i < KIND_COUNT; i++) {
		const struct kind *kind = kind_of((enum case_kind)i);

		fprintf(to, "%s `%s`: %s", i ? ";" : ":", kind->name, kind->content);
	}
}

static void print_keys(FILE *to, const struct config_section *section)
{
	char allowed[256];

	fprintf(to, "%s\n\n", section->meaning);
	fputs("| key | unit | default | allowed | meaning |\n|---|---|---|---|---|\n", to);
	for (size_t i = 0; i < section->n_keys; i++) {
		const struct key *key = &section->keys[i];

		config_value_allowed(key, allowed, sizeof(allowed));
		fprintf(to, "| `%s` | %s | ", key->name, key->unit);
		print_default(to, key);
		fprintf(to, " | %s | ", allowed);
		if (key->only && section == &config_sections[SECTION_DESTINATIONS])
			fprintf(to, "of kind `%s`: ", key->only);
		fputs(key->meaning, to);
		if (key->flags & KEY_KINDS)
			print_kinds(to);
		fputs(" |\n", to);
	}
	fputs("\n", to);
}

void config_reference(FILE *to)
{
	for (size_t s = 0; s < SECTION_COUNT; s++) {
		fprintf(to, "### %s\n\n", config_sections[s].name);
		if (config_sections[s].of_kinds)
			fprintf(to, "%s\n\n", config_sections[s].meaning);
		else
			print_keys(to, &config_sections[s]);
		for (int i = 0; config_sections[s].of_kinds && i < KIND_COUNT; i++)
			print_keys(to, kind_of((enum case_kind)i)->protocols);
	}
}

/* ---- values ---- */

static void visit_entry(const struct config_section *section, const void *base, const struct config_visitor *v)
{
	char value[300];

	v->entry(v->ctx, section->name);
	for (size_t i = 0; i < section->n_keys; i++) {
		const struct key *key = &section->keys[i];
		const struct config_names *list = (const struct config_names *)((const char *)base + key->offset);
		const char *names[CONFIG_NAMES_MAX];

		if (key->type == KEY_NAMES) {
			for (size_t k = 0; k < list->n; k++)
				names[k] = list->name[k];
			v->names(v->ctx, key->name, names, list->n);
			continue;
		}
		config_value_format(key, base, value, sizeof(value));
		v->value(v->ctx, key->name, value,
			 key->type == KEY_INT || key->type == KEY_REAL || key->type == KEY_BOOL || key->type == KEY_BYTES);
	}
}

void config_visit(const struct config *c, const struct config_visitor *v)
{
	for (size_t s = 0; s < SECTION_COUNT; s++) {
		const struct config_section *section = &config_sections[s];
		const char *entries;
		size_t n;

		if (!section->list) {
			visit_entry(section, (const char *)c + section->offset, v);
			continue;
		}
		entries = config_entries(c, section, &n);
		for (size_t i = 0; i < n; i++)
			visit_entry(config_section_of(section, entries + i * section->entry_size),
				    entries + i * section->entry_size, v);
	}
}
