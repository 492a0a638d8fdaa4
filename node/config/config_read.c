/* SPDX-License-Identifier: Apache-2.0 */
/* config_read.c - read libconfig's tree with the table of config_table.c. After a problem is reported, reading continues, so that
 * the operator sees all problems at once. Values of an invalid entry are never used, because any problem refuses the whole
 * configuration.
 */
#include "node/config/config_read.h"
#include "node/base/nearest.h"

#include <libconfig.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/config/config_syntax.h"
#include "node/config/config_value.h"
#include "node/config/kind.h"

enum { CONFIG_KEYS_TEXT = 1000 }; /* bytes for the names of all keys of a section; those of node are about 700 */

void config_problem(struct config_reader *r, const char *file, int line, const char *fmt, ...)
{
	char text[CONFIG_KEYS_TEXT + 700]; /* a path of 300 bytes, a key of 64, an entry's name, a suggestion */
	size_t n;
	va_list ap;

	n = (size_t)snprintf(text, sizeof(text), "%.300s:%d: ", file, line);
	va_start(ap, fmt);
	vsnprintf(text + n, sizeof(text) - n, fmt, ap);
	va_end(ap);
	for (char *at = text; *at; at++) /* keep the message on one line, whatever the file name contains */
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			*at = '?';
	if (r->n_problems++ == 0)
		snprintf(r->first, sizeof(r->first), "%.*s", (int)sizeof(r->first) - 1, text);
	if (r->report)
		r->report(r->ctx, text);
}

static struct config_place place_of(const struct config_reader *r, const config_setting_t *setting)
{
	struct config_place place;

	config_text_where(r->text, setting->line, &place.file, &place.line);
	return place;
}

char *config_entries(const struct config *c, const struct config_section *section, size_t *ret_n)
{
	char *entries;

	memcpy(&entries, (const char *)c + section->offset, sizeof(entries));
	memcpy(ret_n, (const char *)c + section->count, sizeof(*ret_n));
	return entries;
}

static void set_entries(struct config *c, const struct config_section *section, void *entries, size_t n)
{
	memcpy((char *)c + section->offset, &entries, sizeof(entries));
	memcpy((char *)c + section->count, &n, sizeof(n));
}

/* ---- one value ---- */

static struct key_value value_of(const config_setting_t *setting)
{
	struct key_value v = {.kind = VALUE_OTHER, .text = "nothing"};

	switch (config_setting_type(setting)) {
	case CONFIG_TYPE_INT:
		v.kind = VALUE_INTEGER;
		v.integer = config_setting_get_int(setting);
		break;
	case CONFIG_TYPE_INT64:
		v.kind = VALUE_INTEGER;
		v.integer = config_setting_get_int64(setting);
		break;
	case CONFIG_TYPE_FLOAT:
		v.kind = VALUE_REAL;
		v.real = config_setting_get_float(setting);
		break;
	case CONFIG_TYPE_BOOL:
		v.kind = VALUE_BOOL;
		v.integer = config_setting_get_bool(setting) != 0;
		break;
	case CONFIG_TYPE_STRING:
		v.kind = VALUE_TEXT;
		v.text = config_setting_get_string(setting) ? config_setting_get_string(setting) : "";
		break;
	case CONFIG_TYPE_GROUP:
		v.text = "a group in { }";
		break;
	case CONFIG_TYPE_ARRAY:
		v.text = "an array in [ ]";
		break;
	case CONFIG_TYPE_LIST:
		v.text = "a list in ( )";
		break;
	}
	return v;
}

static void problem_value(struct config_reader *r, const config_setting_t *setting, const char *of, const struct key *key,
			  const struct key_value *v)
{
	struct config_place place = place_of(r, setting);
	char shown[128], allowed[256], hint[NEAREST_HINT];

	key_show(v, shown, sizeof(shown));
	config_value_allowed(key, allowed, sizeof(allowed));
	nearest_hint(v->kind == VALUE_TEXT ? config_value_nearest(key, v->text) : NULL, hint);
	config_problem(r, place.file, place.line, "key '%s' of %s: %s%s; allowed: %s", key->name, of, shown, hint, allowed);
}

/* Read an array of names. */
static void read_names(struct config_reader *r, const config_setting_t *setting, const char *of, const struct key *key,
		       void *base)
{
	struct config_names fresh = {0};
	struct key_value v = value_of(setting);
	bool list = config_setting_is_array(setting) || config_setting_is_list(setting);
	int n = list ? config_setting_length(setting) : 0;
	char many[32];

	if (list && (n < (int)key->lo || n > (int)key->hi)) {
		snprintf(many, sizeof(many), "%d names", n);
		v.text = many;
	}
	if (!list || n < (int)key->lo || n > (int)key->hi) {
		problem_value(r, setting, of, key, &v);
		return;
	}
	for (int i = 0; i < n; i++) {
		const struct key one = {
			.name = key->name, .type = key->element, .size = CONFIG_NAME_SIZE, .hi = CONFIG_NAME_SIZE - 1};
		config_setting_t *element = config_setting_get_elem(setting, (unsigned)i);
		char *to = fresh.name[i];
		bool twice = false;

		v = value_of(element);
		if (config_value_store(&one, &v, to) < 0) {
			problem_value(r, element, of, &one, &v);
			return;
		}
		for (int k = 0; k < i; k++)
			twice = twice || !strcmp(fresh.name[k], to);
		if (twice) {
			problem_value(r, element, of, key, &v);
			return;
		}
		fresh.n++;
	}
	memcpy((char *)base + key->offset, &fresh, sizeof(fresh));
}

static void problem_unknown(struct config_reader *r, const config_setting_t *setting, const char *of,
			    const struct config_section *section)
{
	struct config_place place = place_of(r, setting);
	const char *near = config_key_nearest(section, config_setting_name(setting));
	char keys[CONFIG_KEYS_TEXT], hint[NEAREST_HINT];

	config_keys_list(section, 0, keys, sizeof(keys));
	config_problem(r, place.file, place.line, "key '%.64s' of %s is not known%s; allowed: %s", config_setting_name(setting),
		       of, nearest_hint(near, hint), keys);
}

/* Report a key that only entries of another kind have. */
static void problem_kind(struct config_reader *r, const config_setting_t *setting, const char *of,
			 const struct config_section *section)
{
	struct config_place place = place_of(r, setting);
	char kinds[CONFIG_KINDS_TEXT];

	config_kinds_with(config_setting_name(setting), kinds);
	config_problem(r, place.file, place.line, "key '%s' of %s: only %ss of kind %s have it, and this one is of kind %s",
		       config_setting_name(setting), of, section->one, kinds, kind_with(section)->name);
}

/* Of ["a", "b"] return the text that key_words_join() makes; of anything else v. */
static struct key_value join_words(const config_setting_t *setting, const struct key *key, struct key_value v, char *text,
				   size_t size)
{
	const char *words[KEY_WORDS_MAX];
	int n = config_setting_length(setting);

	if (!config_setting_is_array(setting) || n == 0 || n > KEY_WORDS_MAX)
		return v;
	for (int i = 0; i < n; i++) {
		words[i] = config_setting_get_string_elem(setting, (unsigned)i);
		words[i] = words[i] ? words[i] : "?";
	}
	key_words_join(key, words, n, text, size);
	return (struct key_value){.kind = VALUE_TEXT, .text = text};
}

/* Read every key of one group into its structure. known: bit i is set if key i was given or comes from an embedded entry. */
static void read_group(struct config_reader *r, const config_setting_t *group, const char *of,
		       const struct config_section *section, void *base, unsigned long *ret_given)
{
	char joined[KEY_JOINED_SIZE];

	*ret_given = 0;
	for (int i = 0; i < config_setting_length(group); i++) {
		config_setting_t *setting = config_setting_get_elem(group, (unsigned)i);
		const struct key *key = config_key_find(section, config_setting_name(setting));
		struct key_value v = value_of(setting);

		if (!key) {
			if (config_section_with(section, config_setting_name(setting)))
				problem_kind(r, setting, of, section);
			else
				problem_unknown(r, setting, of, section);
			continue;
		}
		*ret_given |= 1ul << (key - section->keys);
		if (key->flags & KEY_SET)
			v = join_words(setting, key, v, joined, sizeof(joined));
		if (key->type == KEY_NAMES)
			read_names(r, setting, of, key, base);
		else if (config_value_store(key, &v, base) < 0)
			problem_value(r, setting, of, key, &v);
	}
}

/* ---- sections ---- */

static void read_single(struct config_reader *r, const config_setting_t *group, const struct config_section *section)
{
	struct config_place place = place_of(r, group);
	struct key_value v;
	char shown[128];
	unsigned long given;

	if (!config_setting_is_group(group)) {
		v = value_of(group);
		key_show(&v, shown, sizeof(shown));
		config_problem(r, place.file, place.line, "section '%s': %s; allowed: a group in { }", section->name, shown);
		return;
	}
	read_group(r, group, section->name, section, (char *)r->config + section->offset, &given);
	if (section == &config_sections[SECTION_NODE] &&
	    given & (1ul << (config_key_find(section, "require_known_peer") - section->keys)))
		r->peers_checked = true;
	if (section == &config_sections[SECTION_NODE] &&
	    given & (1ul << (config_key_find(section, "peer_refusals") - section->keys)))
		r->refusals_given = true;
	if (section == &config_sections[SECTION_NODE] &&
	    given & (1ul << (config_key_find(section, "peer_associations") - section->keys)))
		r->associations_given = true;
}

static size_t find_entry(const struct config_section *section, const char *entries, size_t n, const char *name)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!strcmp(entries + i * section->entry_size, name)) /* the name is each structure's first field */
			break;
	return i;
}

/* Return the kind of a destination; NULL: an entry of another section. */
static const char *kind_of_destination(const struct config_section *section, const void *entry)
{
	const struct key_choice *kind;

	if (section != &config_sections[SECTION_DESTINATIONS])
		return NULL;
	kind = config_key_find(section, "kind")->choices;
	while (kind->word && kind->value != (long long)((const struct destination_conf *)entry)->kind)
		kind++;
	return kind->word;
}

/* Report the keys that only destinations of another kind have. */
static void check_kind(struct config_reader *r, const config_setting_t *group, const char *of,
		       const struct config_section *section, const char *kind)
{
	for (int i = 0; kind && i < config_setting_length(group); i++) {
		const config_setting_t *setting = config_setting_get_elem(group, (unsigned)i);
		const struct key *key = config_key_find(section, config_setting_name(setting));
		struct config_place place = place_of(r, setting);

		if (key && !key_is_of(key, kind))
			config_problem(r, place.file, place.line,
				       "key '%s' of %s: only destinations of kind %s have it, and this one is of kind %s",
				       key->name, of, key->only, kind);
	}
}

/* Report a key of a protocol that its algorithm does not use. before: the entry without the group. */
static void check_effect(struct config_reader *r, const config_setting_t *group, const char *of, const void *before,
			 const void *entry)
{
	char why[KEY_EFFECT_SIZE], of_it[104];
	config_setting_t *setting;
	struct config_place place;
	const char *name;

	snprintf(of_it, sizeof(of_it), " of %s", of);
	name = config_key_without_effect(before, entry, of_it, why);
	setting = name ? config_setting_get_member(group, name) : NULL;
	if (!setting)
		return;
	place = place_of(r, setting);
	config_problem(r, place.file, place.line, "%s", why);
}

static void check_required(struct config_reader *r, struct config_place place, const char *of,
			   const struct config_section *section, unsigned long given, const char *kind)
{
	char allowed[256];

	for (size_t i = 0; i < section->n_keys; i++) {
		const struct key *key = &section->keys[i];

		if (key->fallback || (given & (1ul << i)) || (kind && !key_is_of(key, kind)))
			continue;
		config_value_allowed(key, allowed, sizeof(allowed));
		config_problem(r, place.file, place.line, "key '%s' of %s is missing; allowed: %s", key->name, of, allowed);
	}
}

/* Read the name of an entry. Returns 0, or -1: the problem is reported. */
static int read_name(struct config_reader *r, const config_setting_t *group, const struct config_section *section, char *ret_name)
{
	struct config_place place = place_of(r, group);
	const config_setting_t *setting;
	struct key_value v;
	char of[64];

	if (!config_setting_is_group(group)) {
		v = value_of(group);
		key_show(&v, of, sizeof(of));
		config_problem(r, place.file, place.line, "section '%s': %s as an entry; allowed: a group in { }", section->name,
			       of);
		return -1;
	}
	snprintf(of, sizeof(of), "a %s", section->one);
	setting = config_setting_get_member(group, "name");
	if (!setting) {
		config_problem(r, place.file, place.line, "key 'name' of %s is missing", of);
		return -1;
	}
	v = value_of(setting);
	if (config_value_store(&section->keys[0], &v, ret_name) < 0) {
		problem_value(r, setting, of, &section->keys[0], &v);
		return -1;
	}
	return 0;
}

/* Return the section with the keys of the entry's kind; an entry without a kind has that of `old`, the entry that it starts from
 * (NULL: none). NULL: the problem is reported. */
static const struct config_section *read_kind(struct config_reader *r, const config_setting_t *group, const char *of,
					      const struct config_section *section, const void *old)
{
	const config_setting_t *setting = section->of_kinds ? config_setting_get_member(group, "kind") : NULL;
	const struct config_section *before = old ? config_section_of(section, old) : NULL, *wanted;
	struct key_value v;
	struct config_place place;

	if (!setting && section->of_kinds && !before)
		return config_section_kind(section, KIND_DEFAULT);
	if (!setting)
		return before ? before : section;
	v = value_of(setting);
	wanted = v.kind == VALUE_TEXT ? config_section_kind(section, v.text) : NULL;
	if (!wanted) {
		problem_value(r, setting, of, config_key_find(section, "kind"), &v);
		return NULL;
	}
	if (before && before != wanted) {
		place = place_of(r, setting);
		config_problem(r, place.file, place.line,
			       "key 'kind' of %s: \"%s\"; allowed: \"%s\", as the embedded %s of that name, or another name", of,
			       v.text, kind_with(before)->name, section->one);
		return NULL;
	}
	return wanted;
}

/* Allocate arrays for the existing entries and n_new more; the caller gets the old entries in *ret_old. */
static int make_room(struct config_reader *r, const struct config_section *section, size_t n_new, char **ret_entries,
		     struct config_place **ret_places)
{
	size_t n_old;

	config_entries(r->config, section, &n_old);
	*ret_entries = calloc(n_old + n_new + 1, section->entry_size);
	*ret_places = calloc(n_old + n_new + 1, sizeof(**ret_places));
	if (*ret_entries && *ret_places)
		return 0;
	free(*ret_entries);
	free(*ret_places);
	return -1;
}

static void read_list(struct config_reader *r, const config_setting_t *list, size_t index)
{
	const struct config_section *section = &config_sections[index];
	struct config_place place = place_of(r, list);
	struct config_place *places;
	size_t n_old, n = 0, length;
	char *old = config_entries(r->config, section, &n_old);
	char *entries;
	struct key_value v = value_of(list);

	if (!config_setting_is_list(list) && !(config_setting_is_aggregate(list) && config_setting_length(list) == 0)) {
		char shown[128];

		key_show(&v, shown, sizeof(shown));
		r->incomplete[index] = true;
		config_problem(r, place.file, place.line, "section '%s': %s; allowed: a list ( { name = \"...\"; ... }, ... )",
			       section->name, shown);
		return;
	}
	length = (size_t)config_setting_length(list);
	if (length > CONFIG_ENTRIES_MAX) {
		r->incomplete[index] = true;
		config_problem(r, place.file, place.line, "section '%s': %zu entries; allowed: at most %d", section->name, length,
			       CONFIG_ENTRIES_MAX);
		return;
	}
	if (make_room(r, section, length, &entries, &places) < 0) {
		config_problem(r, place.file, place.line, "section '%s': out of memory", section->name);
		return;
	}
	if (section->merged && n_old) {
		memcpy(entries, old, n_old * section->entry_size);
		memcpy(places, r->places[index], n_old * sizeof(*places));
		n = n_old;
	}
	for (size_t i = 0; i < length; i++) {
		const config_setting_t *group = config_setting_get_elem(list, (unsigned)i);
		const struct config_section *own;
		struct protocol_conf before;
		char name[CONFIG_NAME_SIZE], of[CONFIG_NAME_SIZE + 32];
		const char *kind;
		size_t at, base;
		unsigned long given;

		if (read_name(r, group, section, name) < 0) {
			r->incomplete[index] = true;
			continue;
		}
		place = place_of(r, group);
		snprintf(of, sizeof(of), "%s '%s'", section->one, name);
		base = find_entry(section, old, n_old, name);
		at = find_entry(section, entries, n, name);
		if (at < n && places[at].file &&
		    !(section->merged && at < n_old && places[at].file == r->places[index][at].file &&
		      places[at].line == r->places[index][at].line)) {
			config_problem(r, place.file, place.line,
				       "%s: this name is already used at %s:%d; allowed: each name once", of, places[at].file,
				       places[at].line);
			continue;
		}
		own = read_kind(r, group, of, section, base < n_old ? old + base * section->entry_size : NULL);
		if (!own) {
			r->incomplete[index] = true;
			continue;
		}
		if (base < n_old)
			memcpy(entries + at * section->entry_size, old + base * section->entry_size, section->entry_size);
		else
			config_value_defaults(own, entries + at * section->entry_size);
		if (index == SECTION_PROTOCOLS)
			memcpy(&before, entries + at * section->entry_size, sizeof(before));
		read_group(r, group, of, own, entries + at * section->entry_size, &given);
		if (index == SECTION_PROTOCOLS)
			check_effect(r, group, of, &before, entries + at * section->entry_size);
		kind = kind_of_destination(section, entries + at * section->entry_size);
		check_kind(r, group, of, own, kind);
		if (base == n_old)
			check_required(r, place, of, own, given, kind);
		places[at] = place;
		if (at == n)
			n++;
	}
	set_entries(r->config, section, entries, n);
	free(old);
	free(r->places[index]);
	r->places[index] = places;
	if (!r->embedded)
		r->listed[index] = place_of(r, list);
}

static const char *section_name(const void *ctx, size_t i)
{
	(void)ctx;
	return i < SECTION_COUNT ? config_sections[i].name : NULL;
}

/* List the names of the sections, separated by commas. */
static void list_sections(char *ret_text, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < SECTION_COUNT && n < size; i++)
		n += (size_t)snprintf(ret_text + n, size - n, "%s%s", i > 0 ? ", " : "", config_sections[i].name);
}

static void read_root(struct config_reader *r, const config_setting_t *root)
{
	for (int i = 0; i < config_setting_length(root); i++) {
		const config_setting_t *setting = config_setting_get_elem(root, (unsigned)i);
		const char *name = config_setting_name(setting);
		struct config_place place = place_of(r, setting);
		const char *near;
		char hint[NEAREST_HINT], sections[CONFIG_KEYS_TEXT];
		size_t index;

		for (index = 0; index < SECTION_COUNT; index++)
			if (!strcmp(config_sections[index].name, name))
				break;
		if (index == SECTION_COUNT) {
			near = nearest_word(name, section_name, NULL);
			for (size_t k = 0; near && k < SECTION_COUNT; k++) /* perhaps its list was meant */
				r->incomplete[k] = r->incomplete[k] || !strcmp(config_sections[k].name, near);
			list_sections(sections, sizeof(sections));
			config_problem(r, place.file, place.line, "section '%.64s' is not known%s; allowed: %s", name,
				       nearest_hint(near, hint), sections);
		} else if (config_sections[index].list) {
			read_list(r, setting, index);
		} else {
			read_single(r, setting, &config_sections[index]);
		}
	}
}

void config_read_text(struct config_reader *r, const struct config_text *text, bool embedded)
{
	char mistake[CONFIG_SYNTAX_TEXT] = "not readable";
	struct config_place place;
	unsigned line;
	config_t tree;

	r->text = text;
	r->embedded = embedded;
	config_init(&tree);
	if (config_read_string(&tree, text->bytes) == CONFIG_TRUE) {
		read_root(r, config_root_setting(&tree));
	} else {
		line = config_syntax_explain(text, mistake);
		if (!line && config_error_text(&tree))
			snprintf(mistake, sizeof(mistake), "%s", config_error_text(&tree));
		config_text_where(text, line ? line : (unsigned)config_error_line(&tree), &place.file, &place.line);
		memset(r->incomplete, true, sizeof(r->incomplete)); /* nothing of the text was read */
		config_problem(r, place.file, place.line, "%s", mistake);
	}
	config_destroy(&tree);
}

void config_reader_clear(struct config_reader *r)
{
	for (size_t i = 0; i < SECTION_COUNT; i++) {
		free(r->places[i]);
		r->places[i] = NULL;
	}
}
