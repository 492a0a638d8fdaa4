/* SPDX-License-Identifier: Apache-2.0 */
/* The known word that a mistyped one is most similar to. */
#include "node/base/nearest.h"
#include "tests/test.h"

static void near(const char *word, const char *const *list, const char *expected)
{
	const char *found = nearest_in_list(word, list);

	if (expected)
		assert_non_null(found);
	else
		assert_null(found);
	if (found)
		assert_string_equal(found, expected);
}

/* Neighbours in the wrong order are one mistake, so that a word that lacks a letter is not nearer. */
TEST(test_swapped)
{
	static const char *const protocols[] = {"dbt-osem", "dbt-bp", "dbt-fbp", "pet-osem", NULL};

	near("dbt-fpb", protocols, "dbt-fbp");
	near("dbt-bfp", protocols, "dbt-fbp");
	near("dbt-pb", protocols, "dbt-bp");
	near("pte-osem", protocols, "pet-osem");
}

/* Among equally similar words the first of the same length is taken, whatever its place; else the first. */
TEST(test_equal)
{
	static const char *const first[] = {"abcd", "abd", "abe", NULL}, *const last[] = {"ab", "abcde", NULL};

	near("abc", (const char *const[]){"abcd", "abd", NULL}, "abd");
	near("abc", first, "abd");
	near("abcd", last, "abcde");
	near("abd", (const char *const[]){"abcd", "abxd", NULL}, "abcd");
}

TEST(test_none)
{
	static const char *const list[] = {"list", "show", NULL};

	near("no-such-command", list, NULL);
	near("xyzw", list, NULL);
	near("lsit", list, "list");
	near("max", (const char *const[]){"mean", "maximum", NULL}, NULL); /* two of three letters are another word */
	near("a word of more than thirty-one letters", list, NULL);
}
