/* SPDX-License-Identifier: Apache-2.0 */
/* config_value.c - check and convert single values. A field is written only if the whole value is allowed. */
#include "node/config/config_value.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/device_names.h"
#include "node/base/nearest.h"
#include "node/base/network.h"

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

static bool text_allowed(const struct key *key, const char *text)
{
	if (strlen(text) >= key->size)
		return false;
	if (!*text)
		return key_may_be_empty(key);
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
	default:
		return false;
	}
}

static int store_text(const struct key *key, const char *text, void *base)
{
	char *to = (char *)base + key->offset;

	if (!text_allowed(key, text))
		return -1;
	memset(to, 0, key->size);
	memcpy(to, text, strlen(text) + 1);
	return 0;
}

int config_value_store(const struct key *key, const struct key_value *v, void *base)
{
	if (key->type < KEY_TYPES)
		return key_store(key, v, base);
	return key->type != KEY_NAMES && v->kind == VALUE_TEXT ? store_text(key, v->text, base) : -1; /* arrays: config_read.c */
}

int config_value_store_text(const struct key *key, const char *text, void *base)
{
	return key->type < KEY_TYPES ? key_store_text(key, text, base)
				     : config_value_store(key, &(struct key_value){.kind = VALUE_TEXT, .text = text}, base);
}

void config_value_defaults(const struct config_section *section, void *base)
{
	memset(base, 0, section->entry_size);
	for (size_t i = 0; i < section->n_keys; i++) {
		const struct key *key = &section->keys[i];

		if (key->fallback && key->fallback[0])
			config_value_store_text(key, key->fallback, base);
	}
}

/* ---- conversion to text ---- */

void config_value_format(const struct key *key, const void *base, char *ret_text, size_t size)
{
	ret_text[0] = '\0';
	if (key->type != KEY_NAMES)
		key_format(key, base, ret_text, size);
}

static const char *choice_word(const void *ctx, size_t i)
{
	const struct key *key = ctx;

	return key->choices[i].word;
}

const char *config_value_nearest(const struct key *key, const char *text)
{
	return key->type == KEY_WORD || key->type == KEY_CHOICE ? nearest_word(text, choice_word, key) : NULL;
}

void config_value_allowed(const struct key *key, char *ret_text, size_t size)
{
	const char *empty = key_may_be_empty(key) ? ", or empty" : "";

	switch (key->type) {
	case KEY_NAME:
		snprintf(ret_text, size, "text of at most %zu letters, digits, '.', '_', '-'%s", key->size - 1, empty);
		break;
	case KEY_NAMES:
		snprintf(ret_text, size, "%g to %g %s in [ ], each once", key->lo, key->hi,
			 key->element == KEY_NETWORK ? "addresses or networks"
			 : key->element == KEY_PATH  ? "absolute paths of at most 63 bytes"
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
		snprintf(ret_text, size, "text of at most %g printable ASCII characters, no backslash%s", key->hi, empty);
		break;
	case KEY_PATH:
		snprintf(ret_text, size, "text, an absolute path of at most %zu bytes%s", key->size - 1, empty);
		break;
	case KEY_DEVICE:
		snprintf(ret_text, size, "auto, or a list of cuda, cuda:NUMBER, cpu, cpu:THREADS");
		break;
	default:
		key_allowed(key, ret_text, size);
	}
}
