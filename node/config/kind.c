/* SPDX-License-Identifier: Apache-2.0 */
#include "node/config/kind.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "node/config/config.h"

static const struct kind *const kinds[KIND_COUNT] = {
#define X(constant, name) [KIND_##constant] = &kind_##name,
	KINDS(X)
#undef X
};

const char *const kind_positions[] = {"HFP", "HFS", "HFDR", "HFDL", "FFDR", "FFDL", "FFP",  "FFS", "LFP",
				      "LFS", "RFP", "RFS",  "AFDR", "AFDL", "PFDR", "PFDL", NULL};

const struct kind *kind_of(enum case_kind kind)
{
	return kinds[kind];
}

const struct kind *kind_named(const char *name)
{
	for (size_t i = 0; i < KIND_COUNT; i++)
		if (!strcmp(kinds[i]->name, name))
			return kinds[i];
	return NULL;
}

const struct kind *kind_with(const struct config_section *protocols)
{
	for (size_t i = 0; i < KIND_COUNT; i++)
		if (kinds[i]->protocols == protocols)
			return kinds[i];
	return NULL;
}

enum case_kind kind_id(const struct kind *kind)
{
	int i = 0;

	while (i + 1 < KIND_COUNT && kinds[i] != kind)
		i++;
	return (enum case_kind)i;
}

void kind_key_attribute(const struct kind *kind, const char *key, enum case_attribute which, char *ret, size_t size)
{
	size_t n;

	ret[0] = '\0';
	for (size_t i = 0; kind && kind->key[i]; i++) {
		n = strcspn(key, "|");
		if (kind->key[i] == which)
			snprintf(ret, size, "%.*s", (int)(n < size ? n : size - 1), key);
		key += key[n] ? n + 1 : n;
	}
}

bool kind_keys_differ_in_frame(const struct kind *kind, const char *a, const char *b)
{
	char of_a[200], of_b[200];
	bool differ = false;

	for (size_t i = 0; kind && kind->key[i]; i++) {
		kind_key_attribute(kind, a, kind->key[i], of_a, sizeof(of_a));
		kind_key_attribute(kind, b, kind->key[i], of_b, sizeof(of_b));
		if (strcmp(of_a, of_b) && kind->key[i] != CASE_FRAME_OF_REFERENCE)
			return false;
		differ = differ || strcmp(of_a, of_b);
	}
	return differ;
}

void kind_frames_text(long files, long frames, char *ret_text, size_t size)
{
	snprintf(ret_text, size,
		 "%ld files of one series have %ld frames of reference (0020,0052), each of which is a case: ", files, frames);
}

bool kind_needs_ct(const struct protocol_conf *protocol)
{
	const struct kind *kind = kind_of(protocol->kind);

	return kind->needs_ct && kind->needs_ct(protocol);
}

bool kind_any_needs_ct(const struct config *c)
{
	for (size_t i = 0; i < c->n_protocols; i++)
		if (kind_needs_ct(&c->protocols[i]))
			return true;
	return false;
}

/* ---- check of a table ---- */

static bool is_word(const char *text, size_t most)
{
	return text && text[0] >= 'a' && text[0] <= 'z' && strlen(text) <= most &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(text);
}

static const char *empty_slot(const struct kind *k)
{
	if (!is_word(k->name, KIND_NAME_SIZE - 1))
		return "name";
	if (!k->content || !k->content[0])
		return "content";
	if (!k->title || !k->title[0])
		return "title";
	if (!is_word(k->views, 32))
		return "views";
	if (!k->view_patterns || !k->view_patterns[0])
		return "view_patterns";
	if (!k->key[0])
		return "key";
	if (k->as_is_frames < 0 || !k->as_is_refusal || !k->as_is_refusal[0])
		return "as_is_refusal";
	if (!k->image.unit || !(k->image.object > k->image.around))
		return "image";
	if (!k->protocols || !config_key_find(k->protocols, "algorithm") || !config_key_find(k->protocols, "algorithm")->choices)
		return "protocols";
	return NULL;
}

int kind_check(const struct kind *kind, struct err *err)
{
	const char *slot = empty_slot(kind);

	return slot ? err_set(err, EINVAL, "kind '%s': member '%s' is empty or invalid", kind->name ? kind->name : "", slot) : 0;
}
