/* SPDX-License-Identifier: Apache-2.0 */
/* api_keys.c - protocols as text, by the same tables as those of the node. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "recon/api/api_internal.h"
#include "recon/dbt/dbt_keys.h"
#include "recon/parallel/parallel_keys.h"
#include "recon/pet/pet_keys.h"

#define NOT_GIVEN "0" /* of keys without a default */

static const struct key pet_keys[] = {PET_KEYS(api_protocol, pet.), PET_KEYS_DEVICE(api_protocol, pet.)};
static const struct key views_keys[] = {
	DBT_KEYS(api_protocol, dbt.),
	DBT_KEYS_DEVICE(api_protocol, dbt.),
	{"support", AS_REAL(api_protocol, support, -500, 500), .unit = "mm", .fallback = "0",
	 .meaning = "z of the lower face of the lowest slice"},
	{"thickness", AS_REAL(api_protocol, thickness, 0.1, 300), .unit = "mm",
	 .zero = "that of the grid, which is then required", .fallback = NOT_GIVEN, .meaning = "thickness of all slices"},
};
static const struct key parallel_keys[] = {PARALLEL_KEYS(api_protocol, parallel.)};

#define TABLE(keys)                                                                                                              \
	{                                                                                                                        \
		keys, sizeof(keys) / sizeof((keys)[0])                                                                           \
	}
static const struct {
	const struct key *keys;
	size_t n;
} tables[API_KINDS] = {
	[API_PET] = TABLE(pet_keys),
	[API_LINES] = TABLE(pet_keys),
	[API_VIEWS] = TABLE(views_keys),
	[API_PARALLEL] = TABLE(parallel_keys),
};

int tn_keys(int kind, void (*each)(void *ctx, const char *key, const char *fallback, const char *allowed, const char *meaning),
	    void *ctx)
{
	char allowed[256];

	if (kind < API_PET || kind >= API_KINDS || !each)
		return 0;
	for (size_t i = 0; i < tables[kind].n; i++) {
		const struct key *key = &tables[kind].keys[i];

		key_allowed(key, allowed, sizeof(allowed));
		each(ctx, key->name, key->fallback, allowed, key->meaning);
	}
	return (int)tables[kind].n;
}

static int refuse_key(enum api_kind kind, const char *name, struct err *err)
{
	char all[300];
	size_t n = 0;

	for (size_t i = 0; i < tables[kind].n && n < sizeof(all); i++)
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", i ? ", " : "", tables[kind].keys[i].name);
	return err_set(err, EINVAL, "'%.60s' is no key of this kind of scan; allowed: %s", name, all);
}

static int parse_word(enum api_kind kind, const char *word, struct api_protocol *ret, struct err *err)
{
	const char *equals = strchr(word, '=');
	const struct key *key;
	char name[100], allowed[256];

	snprintf(name, sizeof(name), "%.*s", equals ? (int)(equals - word) : -1, word);
	key = key_find(tables[kind].keys, tables[kind].n, name);
	if (!key)
		return refuse_key(kind, name, err);
	if (!equals || key_store_text(key, equals + 1, ret) < 0) {
		key_allowed(key, allowed, sizeof(allowed));
		return err_set(err, EINVAL, "key '%s': \"%.60s\"; allowed: %s", name, equals ? equals + 1 : "", allowed);
	}
	return 0;
}

int api_keys_parse(enum api_kind kind, const char *text, struct api_protocol *ret, struct err *err)
{
	struct api_protocol p = {{0}}, defaults;
	char word[100], why[KEY_EFFECT_SIZE];
	int r = 0;

	for (size_t i = 0; i < tables[kind].n; i++)
		key_store_text(&tables[kind].keys[i], tables[kind].keys[i].fallback, &p);
	defaults = p;
	for (const char *at = text ? text : ""; r == 0 && *(at += strspn(at, " \t\n,")); at += strcspn(at, " \t\n,")) {
		int n = (int)strcspn(at, " \t\n,");

		if (n >= (int)sizeof(word))
			return err_set(err, EINVAL, "keys: \"%.60s...\"; allowed: KEY=VALUE", at);
		snprintf(word, sizeof(word), "%.*s", n, at);
		r = parse_word(kind, word, &p, err);
	}
	if (r == 0 && keys_without_effect(tables[kind].keys, tables[kind].n, &defaults, &p, "", why))
		r = err_set(err, EINVAL, "%s", why);
	if (r == 0)
		*ret = p;
	return r;
}
