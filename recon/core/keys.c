/* SPDX-License-Identifier: Apache-2.0 */
/* keys.c - check and convert single values, and find keys that have no effect. A field is written only if the whole value is
 * allowed. */
#include "recon/core/keys.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *key_field(const struct key *key, void *base)
{
	return (char *)base + key->offset;
}

static const void *field_const(const struct key *key, const void *base)
{
	return (const char *)base + key->offset;
}

static bool in_range(const struct key *key, double value)
{
	return (value >= key->lo && value <= key->hi) || (key->zero && value == 0); /* false for NaN */
}

static const struct key_choice *find_choice(const struct key *key, const char *text)
{
	for (const struct key_choice *c = key->choices; c->word; c++)
		if (!strcmp(c->word, text))
			return c;
	return NULL;
}

/* ---- numbers ---- */

static void store_number(const struct key *key, long long value, void *base)
{
	void *to = key_field(key, base);

	if (key->size == sizeof(bool))
		*(bool *)to = value != 0;
	else if (key->size == sizeof(int))
		*(int *)to = (int)value;
	else
		*(uint64_t *)to = (uint64_t)value;
}

static long long load_number(const struct key *key, const void *base)
{
	const void *from = field_const(key, base);

	if (key->size == sizeof(bool))
		return *(const bool *)from;
	if (key->size == sizeof(int))
		return *(const int *)from;
	return (long long)*(const uint64_t *)from;
}

/* Parse "512 MiB", "1 GB", "1.5GB", "4096" to a whole number of bytes. */
static int parse_bytes(const char *text, long long *ret_value)
{
	static const struct {
		const char *unit;
		double bytes;
	} units[] = {{"", 1},	   {"B", 1},	    {"kB", 1e3},	{"MB", 1e6},	       {"GB", 1e9},
		     {"TB", 1e12}, {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0}};
	char *end;
	double value;

	if (!isdigit((unsigned char)text[0]) || strchr(text, 'x') || strchr(text, 'X'))
		return -1;
	value = strtod(text, &end);
	while (*end == ' ')
		end++;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(end, units[i].unit)) {
			value *= units[i].bytes;
			if (!(value <= 9e15) || value != floor(value)) /* below 2^53, where doubles are exact */
				return -1;
			*ret_value = (long long)value;
			return 0;
		}
	return -1;
}

static int parse_tile(const char *text, int ret_tile[2])
{
	long tile[2];
	char *end;

	if (!strcmp(text, "auto")) {
		ret_tile[0] = ret_tile[1] = 0;
		return 0;
	}
	if (!isdigit((unsigned char)text[0]))
		return -1;
	tile[0] = strtol(text, &end, 10);
	if (*end != 'x' || !isdigit((unsigned char)end[1]))
		return -1;
	tile[1] = strtol(end + 1, &end, 10);
	if (*end || tile[0] < 1 || tile[0] > 65535 || tile[1] < 1 || tile[1] > 65535)
		return -1;
	ret_tile[0] = (int)tile[0];
	ret_tile[1] = (int)tile[1];
	return 0;
}

/* The same, of words joined by + in any order, if the key takes them so. */
static const struct key_choice *find_words(const struct key *key, const char *text)
{
	const char *words[KEY_WORDS_MAX];
	char copy[KEY_JOINED_SIZE], joined[KEY_JOINED_SIZE], *rest;
	int n = 0;

	if (!(key->flags & KEY_UNORDERED) || strlen(text) >= sizeof(copy))
		return find_choice(key, text);
	strcpy(copy, text);
	for (rest = copy; rest && n < KEY_WORDS_MAX; n++)
		words[n] = strsep(&rest, "+");
	key_words_join(key, words, n, joined, sizeof(joined));
	return rest ? NULL : find_choice(key, joined);
}

int key_store(const struct key *key, const struct key_value *v, void *base)
{
	const struct key_choice *choice = NULL;
	char word[24];
	long long number;
	double real;
	int tile[2];

	switch (key->type) {
	case KEY_INT:
		if (v->kind != VALUE_INTEGER || !in_range(key, (double)v->integer))
			return -1;
		store_number(key, v->integer, base);
		return 0;
	case KEY_REAL:
		if (v->kind != VALUE_INTEGER && v->kind != VALUE_REAL)
			return -1;
		real = v->kind == VALUE_INTEGER ? (double)v->integer : v->real;
		if (!in_range(key, real))
			return -1;
		*(double *)key_field(key, base) = real == 0 ? 0 : real; /* store -0 as 0, because "-0" would be another text */
		return 0;
	case KEY_BOOL:
		if (v->kind != VALUE_BOOL)
			return -1;
		store_number(key, v->integer, base);
		return 0;
	case KEY_CHOICE:
		if (v->kind == VALUE_TEXT) {
			choice = find_words(key, v->text);
		} else if (v->kind == VALUE_INTEGER) { /* so that angle_sign = -1 needs no quotes */
			snprintf(word, sizeof(word), "%lld", v->integer);
			choice = find_choice(key, word);
		}
		if (!choice)
			return -1;
		store_number(key, choice->value, base);
		return 0;
	case KEY_BYTES:
		if (v->kind == VALUE_INTEGER)
			number = v->integer;
		else if (v->kind != VALUE_TEXT || parse_bytes(v->text, &number) < 0)
			return -1;
		if (!in_range(key, (double)number))
			return -1;
		store_number(key, number, base);
		return 0;
	case KEY_TILE:
		if (v->kind != VALUE_TEXT || parse_tile(v->text, tile) < 0)
			return -1;
		memcpy(key_field(key, base), tile, sizeof(tile));
		return 0;
	case KEY_WORD:
		if (v->kind != VALUE_TEXT || strlen(v->text) >= key->size ||
		    !(v->text[0] ? find_choice(key, v->text) != NULL : key_may_be_empty(key)))
			return -1;
		memset(key_field(key, base), 0, key->size);
		memcpy(key_field(key, base), v->text, strlen(v->text) + 1);
		return 0;
	default:
		return -1;
	}
}

bool key_holds(const struct key *key, const void *base)
{
	const struct key_choice *c = key->choices;

	if (key->type == KEY_REAL)
		return in_range(key, *(const double *)field_const(key, base));
	if (key->type == KEY_INT)
		return in_range(key, (double)load_number(key, base));
	while (key->type == KEY_CHOICE && c->word && c->value != load_number(key, base))
		c++;
	return key->type != KEY_CHOICE || c->word;
}

/* Return where a word is in the list of choices; words that are not there come last. */
static int rank_of(const struct key *key, const char *word)
{
	int i = 0;

	while (key->choices[i].word && strcmp(key->choices[i].word, word) != 0)
		i++;
	return i;
}

void key_words_join(const struct key *key, const char **words, int n, char *ret_text, size_t size)
{
	size_t length = 0;

	for (int i = 1; i < n && (key->flags & KEY_UNORDERED); i++)
		for (int at = i; at > 0 && rank_of(key, words[at - 1]) > rank_of(key, words[at]); at--) {
			const char *word = words[at];

			words[at] = words[at - 1];
			words[at - 1] = word;
		}
	ret_text[0] = '\0';
	for (int i = 0; i < n && length < size; i++)
		length += (size_t)snprintf(ret_text + length, size - length, "%s%s", i ? "+" : "", words[i]);
}

/* Store ["a", "b"], as in the configuration, with or without quotes. */
static int store_words(const struct key *key, const char *text, void *base)
{
	const char *words[KEY_WORDS_MAX];
	char copy[KEY_JOINED_SIZE], joined[KEY_JOINED_SIZE], *rest, *word;
	struct key_value v = {.kind = VALUE_TEXT, .text = joined};
	int n = 0;

	if (strlen(text) >= sizeof(copy) || text[strlen(text) - 1] != ']')
		return -1;
	strcpy(copy, text);
	for (word = strtok_r(copy, "[]\", \t", &rest); word; word = strtok_r(NULL, "[]\", \t", &rest)) {
		if (n == KEY_WORDS_MAX)
			return -1;
		words[n++] = word;
	}
	key_words_join(key, words, n, joined, sizeof(joined));
	return n > 0 ? key_store(key, &v, base) : -1;
}

int key_store_text(const struct key *key, const char *text, void *base)
{
	struct key_value v = {.kind = VALUE_TEXT, .text = text};
	char *end;

	errno = 0;
	switch (key->type) {
	case KEY_INT:
		v.kind = VALUE_INTEGER;
		v.integer = strtoll(text, &end, 10);
		break;
	case KEY_REAL:
		v.kind = VALUE_REAL;
		v.real = strtod(text, &end);
		break;
	case KEY_BOOL:
		v.kind = VALUE_BOOL;
		v.integer = !strcmp(text, "true");
		return v.integer || !strcmp(text, "false") ? key_store(key, &v, base) : -1;
	case KEY_CHOICE:
		return text[0] == '[' ? store_words(key, text, base) : key_store(key, &v, base);
	default:
		return key_store(key, &v, base);
	}
	if (end == text || *end || isspace((unsigned char)text[0]) || (errno == ERANGE && key->type == KEY_INT))
		return -1;
	return key_store(key, &v, base);
}

/* ---- conversion to text ---- */

static void format_real(double value, char *ret_text, size_t size)
{
	char text[32];

	for (int digits = 6; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	snprintf(ret_text, size, "%s", text);
}

void key_format(const struct key *key, const void *base, char *ret_text, size_t size)
{
	const void *from = field_const(key, base);
	const int *tile = from;

	ret_text[0] = '\0';
	switch (key->type) {
	case KEY_REAL:
		format_real(*(const double *)from, ret_text, size);
		break;
	case KEY_BOOL:
		snprintf(ret_text, size, "%s", load_number(key, base) ? "true" : "false");
		break;
	case KEY_INT:
	case KEY_BYTES:
		snprintf(ret_text, size, "%lld", load_number(key, base));
		break;
	case KEY_CHOICE:
		for (const struct key_choice *c = key->choices; c->word; c++)
			if (c->value == load_number(key, base))
				snprintf(ret_text, size, "%s", c->word);
		break;
	case KEY_TILE:
		if (tile[0] > 0 && tile[1] > 0)
			snprintf(ret_text, size, "%dx%d", tile[0], tile[1]);
		else
			snprintf(ret_text, size, "auto");
		break;
	default:
		snprintf(ret_text, size, "%s", (const char *)from);
	}
}

static void allowed_words(const struct key *key, char *ret_text, size_t size)
{
	size_t n = 0;

	ret_text[0] = '\0';
	for (const struct key_choice *c = key->choices; c->word && n < size; c++)
		if (!(key->flags & KEY_UNORDERED) || !strchr(c->word, '+')) /* every combination of the others is a choice */
			n += (size_t)snprintf(ret_text + n, size - n, "%s%s",
					      !n						      ? ""
					      : (key->flags & KEY_UNORDERED) && c == key->choices + 1 ? ", or "
												      : ", ",
					      c->word);
	if ((key->flags & KEY_UNORDERED) && n < size) /* the first choice is none of them */
		n += (size_t)snprintf(ret_text + n, size - n, ", or several of these joined by +, each once");
	if (key_may_be_empty(key) && n < size)
		snprintf(ret_text + n, size - n, ", or empty");
}

void key_allowed(const struct key *key, char *ret_text, size_t size)
{
	char lo[32], hi[32];

	format_real(key->lo, lo, sizeof(lo));
	format_real(key->hi, hi, sizeof(hi));
	switch (key->type) {
	case KEY_WORD:
	case KEY_CHOICE:
		allowed_words(key, ret_text, size);
		break;
	case KEY_BOOL:
		snprintf(ret_text, size, "true, false");
		break;
	case KEY_TILE:
		snprintf(ret_text, size, "\"XxY\" with X and Y from %s to %s, \"auto\"", lo, hi);
		break;
	case KEY_INT:
	case KEY_REAL:
		snprintf(ret_text, size, "%s from %s to %s%s%s%s%s", key->type == KEY_INT ? "a whole number" : "a number", lo, hi,
			 key->unit[0] ? " " : "", key->unit, key->zero ? "; 0: " : "", key->zero ? key->zero : "");
		break;
	case KEY_BYTES:
		snprintf(ret_text, size, "a whole number of bytes from %s to %s, or text like \"512 MiB\", \"1 GB\"%s%s", lo, hi,
			 key->zero ? "; 0: " : "", key->zero ? key->zero : "");
		break;
	}
}

void key_show(const struct key_value *v, char *ret_text, size_t size)
{
	size_t n = 0;

	switch (v->kind) {
	case VALUE_INTEGER: /* the largest one stands for every larger one: a reader of text stores it so */
		snprintf(ret_text, size, v->integer == INT64_MAX ? "%lld or more" : "%lld", v->integer);
		break;
	case VALUE_REAL:
		format_real(v->real, ret_text, size);
		if (isnan(v->real))
			snprintf(ret_text, size, "not a number");
		break;
	case VALUE_BOOL:
		snprintf(ret_text, size, "%s", v->integer ? "true" : "false");
		break;
	case VALUE_OTHER:
		snprintf(ret_text, size, "%s", v->text);
		break;
	case VALUE_TEXT:
		ret_text[n++] = '"';
		for (const char *at = v->text; *at && n + 6 < size && n < 80; at++)
			ret_text[n++] = *at >= ' ' && *at <= '~' ? *at : '?';
		snprintf(ret_text + n, size - n, "%s\"", v->text[n - 1] ? "..." : "");
		break;
	}
}

/* ---- tables ---- */

const struct key *key_find(const struct key *keys, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(keys[i].name, name))
			return &keys[i];
	return NULL;
}

bool key_is_of(const struct key *key, const char *word)
{
	size_t n = strlen(word), length;

	for (const char *at = key->only; at && *at; at += length + strspn(at + length, " ")) {
		length = strcspn(at, " ");
		if (length == n && !memcmp(at, word, n))
			return true;
	}
	return !key->only;
}

/* Does a value, such as "attenuation+scatter", have this word of n characters? n = 0: is it not 0, false or empty? */
static bool has_word(const char *value, const char *word, size_t n)
{
	if (n == 0)
		return value[0] && strcmp(value, "0") != 0 && strcmp(value, "false") != 0;
	for (const char *at = value; *at; at += strcspn(at, "+"), at += *at == '+')
		if (strcspn(at, "+") == n && !strncmp(at, word, n))
			return true;
	return false;
}

/* Find the first condition of a key that the values do not meet, and write it for a sentence. False: it meets all. */
static bool lacks_condition(const struct key *keys, size_t n_keys, const struct key *key, const void *base, char *ret_text,
			    size_t size)
{
	const char *at = key->needs ? key->needs : "";

	for (size_t n; (n = strcspn(at, " ")) > 0; at += n + strspn(at + n, " ")) {
		size_t name = strcspn(at, " ="), word = name < n ? n - name - 1 : 0;
		char needed[40], value[300];

		snprintf(needed, sizeof(needed), "%.*s", (int)name, at);
		key_format(key_find(keys, n_keys, needed), base, value, sizeof(value));
		if (has_word(value, at + n - word, word))
			continue;
		snprintf(ret_text, size, "'%s'%s%.*s", needed, word ? " = " : "", (int)word, at + n - word);
		return true;
	}
	return false;
}

bool key_is_used(const struct key *keys, size_t n, const struct key *key, const void *base)
{
	char algorithm[16], without[80];

	key_format(key_find(keys, n, "algorithm"), base, algorithm, sizeof(algorithm));
	return key_is_of(key, algorithm) && !lacks_condition(keys, n, key, base, without, sizeof(without));
}

/* An algorithm without subsets uses all views at once: one subset. */
static bool is_what_is_done(const char *key, const char *value)
{
	return !strcmp(key, "subsets") && !strcmp(value, "1");
}

const char *keys_without_effect(const struct key *keys, size_t n, const void *before, const void *base, const char *of,
				char ret_why[KEY_EFFECT_SIZE])
{
	char value[300], other[300], algorithm[16], without[80];

	key_format(key_find(keys, n, "algorithm"), base, algorithm, sizeof(algorithm));
	for (size_t i = 0; i < n; i++) {
		const struct key *key = &keys[i];
		bool used = key_is_of(key, algorithm);

		if (used && !lacks_condition(keys, n, key, base, without, sizeof(without)))
			continue;
		key_format(key, base, value, sizeof(value));
		key_format(key, before, other, sizeof(other));
		if (!strcmp(value, other) || is_what_is_done(key->name, value))
			continue;
		if (used)
			snprintf(ret_why, KEY_EFFECT_SIZE, "key '%s'%s has no effect without %s", key->name, of, without);
		else
			snprintf(ret_why, KEY_EFFECT_SIZE,
				 "key '%s'%s has no effect with the algorithm '%s'; only these use it: %s", key->name, of,
				 algorithm, key->only);
		return key->name;
	}
	return NULL;
}
