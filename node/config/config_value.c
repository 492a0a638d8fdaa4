/* SPDX-License-Identifier: Apache-2.0 */
/* config_value.c - check and convert single values. A field is written only if the whole value is allowed. */
#include "node/config/config_value.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/device_names.h"
#include "node/base/nearest.h"
#include "node/base/network.h"

static void *key_field(const struct config_key *key, void *base)
{
	return (char *)base + key->offset;
}

static const void *field_const(const struct config_key *key, const void *base)
{
	return (const char *)base + key->offset;
}

static bool in_range(const struct config_key *key, double value)
{
	return (value >= key->lo && value <= key->hi) || (key->zero && value == 0); /* false for NaN */
}

static bool may_be_empty(const struct config_key *key)
{
	return key->fallback && key->fallback[0] == '\0';
}

/* ---- texts ---- */

static bool all_in(const char *text, const char *others)
{
	for (; *text; text++)
		if (!isalnum((unsigned char)*text) && !strchr(others, *text))
			return false;
	return true;
}

/* PS3.5 6.2: at most 16 characters of the default repertoire without control characters and backslash, not only blanks. Leading
 * and trailing blanks have no meaning in DICOM and are refused. */
static bool aet_allowed(const char *text)
{
	size_t n = strlen(text);

	if (n < 1 || n > 16 || text[0] == ' ' || text[n - 1] == ' ')
		return false;
	for (; *text; text++)
		if (*text < ' ' || *text > '~' || *text == '\\')
			return false;
	return true;
}

static bool lo_allowed(const char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~' || *text == '\\')
			return false;
	return true;
}

static bool address_allowed(const char *text)
{
	unsigned char bytes[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, text, bytes) == 1 || inet_pton(AF_INET6, text, bytes) == 1;
}

/* Check ADDRESS/BITS, or an address with a zone. */
static bool network_allowed(const char *text)
{
	struct network ignored;

	return network_parse(text, &ignored);
}

static bool host_allowed(const char *text)
{
	return strchr(text, '%') ? !strchr(text, '/') && network_allowed(text) : all_in(text, ".-:_") && text[0] != '-';
}

static bool path_allowed(const char *text)
{
	if (text[0] != '/')
		return false;
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return false;
	return true;
}

static bool device_allowed(const char *text)
{
	char names[DEVICE_NAMES_MAX][DEVICE_NAME_SIZE];

	return device_names_parse(text, names) > 0;
}

static const struct key_choice *find_choice(const struct config_key *key, const char *text)
{
	for (const struct key_choice *c = key->choices; c->word; c++)
		if (!strcmp(c->word, text))
			return c;
	return NULL;
}

static bool text_allowed(const struct config_key *key, const char *text)
{
	if (strlen(text) >= key->size)
		return false;
	if (!*text)
		return may_be_empty(key);
	switch (key->type) {
	case KEY_NAME:
		return all_in(text, "._-") && text[0] != '-';
	case KEY_AET:
		return aet_allowed(text);
	case KEY_HOST:
		return host_allowed(text);
	case KEY_NETWORK:
		return strchr(text, '/') ? network_allowed(text) : host_allowed(text);
	case KEY_ADDRESS:
		return address_allowed(text);
	case KEY_TEXT:
		return strlen(text) <= (size_t)key->hi && lo_allowed(text);
	case KEY_PATH:
		return path_allowed(text);
	case KEY_DEVICE:
		return device_allowed(text);
	case KEY_WORD:
		return find_choice(key, text) != NULL;
	default:
		return false;
	}
}

static int store_text(const struct config_key *key, const char *text, void *base)
{
	char *to = key_field(key, base);

	if (!text_allowed(key, text))
		return -1;
	memset(to, 0, key->size);
	memcpy(to, text, strlen(text) + 1);
	return 0;
}

/* ---- numbers ---- */

static void store_number(const struct config_key *key, long long value, void *base)
{
	void *to = key_field(key, base);

	if (key->size == sizeof(bool))
		*(bool *)to = value != 0;
	else if (key->size == sizeof(int))
		*(int *)to = (int)value;
	else
		*(uint64_t *)to = (uint64_t)value;
}

static long long load_number(const struct config_key *key, const void *base)
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
static const struct key_choice *find_words(const struct config_key *key, const char *text)
{
	const char *words[CONFIG_WORDS_MAX];
	char copy[CONFIG_JOINED_SIZE], joined[CONFIG_JOINED_SIZE], *rest;
	int n = 0;

	if (!(key->flags & KEY_UNORDERED) || strlen(text) >= sizeof(copy))
		return find_choice(key, text);
	strcpy(copy, text);
	for (rest = copy; rest && n < CONFIG_WORDS_MAX; n++)
		words[n] = strsep(&rest, "+");
	config_words_join(key, words, n, joined, sizeof(joined));
	return rest ? NULL : find_choice(key, joined);
}

int config_value_store(const struct config_key *key, const struct config_value *v, void *base)
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
	case KEY_NAMES:
		return -1; /* arrays are read by config_read.c */
	default:
		return v->kind == VALUE_TEXT ? store_text(key, v->text, base) : -1;
	}
}

/* Return where a word is in the list of choices; words that are not there come last. */
static int rank_of(const struct config_key *key, const char *word)
{
	int i = 0;

	while (key->choices[i].word && strcmp(key->choices[i].word, word) != 0)
		i++;
	return i;
}

void config_words_join(const struct config_key *key, const char **words, int n, char *ret_text, size_t size)
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
static int store_words(const struct config_key *key, const char *text, void *base)
{
	const char *words[CONFIG_WORDS_MAX];
	char copy[CONFIG_JOINED_SIZE], joined[CONFIG_JOINED_SIZE], *rest, *word;
	struct config_value v = {.kind = VALUE_TEXT, .text = joined};
	int n = 0;

	if (strlen(text) >= sizeof(copy) || text[strlen(text) - 1] != ']')
		return -1;
	strcpy(copy, text);
	for (word = strtok_r(copy, "[]\", \t", &rest); word; word = strtok_r(NULL, "[]\", \t", &rest)) {
		if (n == CONFIG_WORDS_MAX)
			return -1;
		words[n++] = word;
	}
	config_words_join(key, words, n, joined, sizeof(joined));
	return n > 0 ? config_value_store(key, &v, base) : -1;
}

int config_value_store_text(const struct config_key *key, const char *text, void *base)
{
	struct config_value v = {.kind = VALUE_TEXT, .text = text};
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
		return v.integer || !strcmp(text, "false") ? config_value_store(key, &v, base) : -1;
	case KEY_CHOICE:
		return text[0] == '[' ? store_words(key, text, base) : config_value_store(key, &v, base);
	default:
		return config_value_store(key, &v, base);
	}
	if (end == text || *end || isspace((unsigned char)text[0]) || (errno == ERANGE && key->type == KEY_INT))
		return -1;
	return config_value_store(key, &v, base);
}

void config_value_defaults(const struct config_section *section, void *base)
{
	memset(base, 0, section->entry_size);
	for (size_t i = 0; i < section->n_keys; i++) {
		const struct config_key *key = &section->keys[i];

		if (key->fallback && key->fallback[0])
			config_value_store_text(key, key->fallback, base);
	}
}

/* ---- conversion to text ---- */

static void format_real(double value, char *ret_text, size_t size)
{
	for (int digits = 6; digits <= 17; digits++) {
		snprintf(ret_text, size, "%.*g", digits, value);
		if (strtod(ret_text, NULL) == value)
			return;
	}
}

void config_value_format(const struct config_key *key, const void *base, char *ret_text, size_t size)
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
	case KEY_NAMES:
		break;
	default:
		snprintf(ret_text, size, "%s", (const char *)from);
	}
}

static void allowed_words(const struct config_key *key, char *ret_text, size_t size)
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
	if (may_be_empty(key) && n < size)
		snprintf(ret_text + n, size - n, ", or empty");
}

static const char *choice_word(const void *ctx, size_t i)
{
	const struct config_key *key = ctx;

	return key->choices[i].word;
}

const char *config_value_nearest(const struct config_key *key, const char *text)
{
	return key->type == KEY_WORD || key->type == KEY_CHOICE ? nearest_word(text, choice_word, key) : NULL;
}

void config_value_allowed(const struct config_key *key, char *ret_text, size_t size)
{
	const char *empty = may_be_empty(key) ? ", or empty" : "";
	char lo[32], hi[32];

	format_real(key->lo, lo, sizeof(lo));
	format_real(key->hi, hi, sizeof(hi));
	switch (key->type) {
	case KEY_NAME:
		snprintf(ret_text, size, "text of at most %zu letters, digits, '.', '_', '-'%s", key->size - 1, empty);
		break;
	case KEY_NAMES:
		snprintf(ret_text, size, "%s to %s %s in [ ], each once", lo, hi,
			 key->element == KEY_NETWORK ? "addresses or networks"
			 : key->element == KEY_TEXT  ? "texts"
						     : "names");
		break;
	case KEY_AET:
		snprintf(ret_text, size, "text of 1 to 16 printable ASCII characters, no backslash, no blank at either end%s",
			 empty);
		break;
	case KEY_HOST:
		snprintf(ret_text, size, "text, a host name or address of at most %zu characters%s", key->size - 1, empty);
		break;
	case KEY_NETWORK:
		snprintf(ret_text, size,
			 "text, a host name, an address, or a network as `10.1.0.0/16`, of at most %zu characters%s",
			 key->size - 1, empty);
		break;
	case KEY_ADDRESS:
		snprintf(ret_text, size, "text, a numeric IPv4 or IPv6 address%s", empty);
		break;
	case KEY_TEXT:
		snprintf(ret_text, size, "text of at most %s printable ASCII characters, no backslash%s", hi, empty);
		break;
	case KEY_PATH:
		snprintf(ret_text, size, "text, an absolute path of at most %zu bytes%s", key->size - 1, empty);
		break;
	case KEY_DEVICE:
		snprintf(ret_text, size, "auto, or a list of cuda, cuda:NUMBER, cpu, cpu:THREADS");
		break;
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

void config_value_show(const struct config_value *v, char *ret_text, size_t size)
{
	size_t n = 0;

	switch (v->kind) {
	case VALUE_INTEGER: /* the largest one stands for every larger one: node/config/config_text.c */
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
