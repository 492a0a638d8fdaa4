/* SPDX-License-Identifier: Apache-2.0 */
/* Test the tables of all kinds of cases: complete, with distinct names; a table with an empty member is refused. */
#include "node/config/config.h"
#include "node/config/kind.h"
#include "tests/test.h"

TEST(whole)
{
	struct err err = {0};

	for (int i = 0; i < KIND_COUNT; i++) {
		const struct kind *k = kind_of((enum case_kind)i);

		assert_done(kind_check(k, &err), &err);
		assert_ptr_equal(kind_named(k->name), k);
		assert_ptr_equal(kind_with(k->protocols), k);
		assert_int_equal(kind_id(k), i);
		for (int other = 0; other < i; other++)
			assert_string_not_equal(kind_of((enum case_kind)other)->title, k->title);
	}
	assert_string_equal(kind_of(0)->name, KIND_DEFAULT);
	assert_null(kind_named("ct"));
	assert_null(kind_named(""));
	assert_null(kind_with(&config_sections[SECTION_ROUTES]));
}

TEST(empty_slots)
{
	static const struct {
		size_t at, size;
		const char *name;
	} slots[] = {
		{offsetof(struct kind, name), sizeof(char *), "name"},
		{offsetof(struct kind, content), sizeof(char *), "content"},
		{offsetof(struct kind, title), sizeof(char *), "title"},
		{offsetof(struct kind, views), sizeof(char *), "views"},
		{offsetof(struct kind, view_patterns), sizeof(char **), "view_patterns"},
		{offsetof(struct kind, key), sizeof(((struct kind *)0)->key), "key"},
		{offsetof(struct kind, as_is_refusal), sizeof(char *), "as_is_refusal"},
		{offsetof(struct kind, image), sizeof(struct kind_image), "image"},
		{offsetof(struct kind, protocols), sizeof(struct config_section *), "protocols"},
	};
	struct err err = {0};

	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
		struct kind k = kind_pet;

		memset((char *)&k + slots[i].at, 0, slots[i].size);
		assert_error(kind_check(&k, &err), &err, EINVAL, slots[i].name);
	}
}

static bool (*const takes[KIND_COUNT])(enum algorithm a) = {
#define X(constant, name) [KIND_##constant] = name##_supports,
	KINDS(X)
#undef X
};

/* The choices of the key `algorithm` are the names of those algorithms (recon/core/algorithm.h) that the kind's session accepts.
 */
TEST(algorithms)
{
	for (int i = 0; i < KIND_COUNT; i++) {
		const struct kind *k = kind_of((enum case_kind)i);
		const struct key_choice *c = config_key_find(k->protocols, "algorithm")->choices;

		for (; c->word; c++) {
			assert_string_equal(algorithm_info((enum algorithm)c->value)->word, c->word);
			assert_true(takes[i]((enum algorithm)c->value));
		}
	}
}

/* A condition of a key names another key of the kind, and one of its words. */
TEST(conditions)
{
	int n = 0;

	for (int i = 0; i < KIND_COUNT; i++) {
		const struct config_section *protocols = kind_of((enum case_kind)i)->protocols;

		for (size_t k = 0; k < protocols->n_keys; k++) {
			char text[100], *rest = NULL;

			if (!protocols->keys[k].needs)
				continue;
			snprintf(text, sizeof(text), "%s", protocols->keys[k].needs);
			for (char *at = strtok_r(text, " ", &rest); at; at = strtok_r(NULL, " ", &rest), n++) {
				char *equals = strchr(at, '=');
				const struct key *key;
				const struct key_choice *c;

				if (equals)
					*equals = '\0';
				key = config_key_find(protocols, at);
				assert_non_null(key);
				for (c = key->choices; equals && c && c->word && strcmp(c->word, equals + 1) != 0;)
					c++;
				assert_true(!equals || (c && c->word));
			}
		}
	}
	assert_true(n > 10);
}

TEST(keys_of_one_series)
{
	static const struct {
		const char *a, *b;
		bool differ;
	} keys[] = {
		{"1|2|L|CC|5", "1|2|L|CC|6", true},  {"1|2|L|CC|5", "1|2|L|CC|", true},	   {"1|2|L|CC|5", "1|2|L|CC|5", false},
		{"1|2|L|CC|5", "1|2|R|CC|6", false}, {"1|2|L|CC|5", "1|2|L|MLO|6", false}, {"1|2|L|CC|5", "1|3|L|CC|6", false},
		{"1|2|L|CC|5", "4|2|L|CC|6", false},
	};
	char text[200];

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		assert_int_equal(kind_keys_differ_in_frame(&kind_dbt, keys[i].a, keys[i].b), keys[i].differ);
	assert_false(kind_keys_differ_in_frame(NULL, "1", "2"));
	kind_frames_text(25, 5, text, sizeof(text));
	assert_string_equal(text, "25 files of one series have 5 frames of reference (0020,0052), each of which is a case: ");
}
