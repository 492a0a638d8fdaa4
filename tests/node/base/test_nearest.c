/* SPDX-License-Identifier: Apache-2.0 */
/* The known word that a mistyped one is most similar to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "node/base/nearest.h"

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
static void test_swapped(void **state)
{
	static const char *const protocols[] = {"dbt-osem", "dbt-bp", "dbt-fbp", "pet-osem", NULL};

	(void)state;
	near("dbt-fpb", protocols, "dbt-fbp");
	near("dbt-bfp", protocols, "dbt-fbp");
	near("dbt-pb", protocols, "dbt-bp");
	near("pte-osem", protocols, "pet-osem");
}

/* Among equally similar words the first of the same length is taken, whatever its place; else the first. */
static void test_equal(void **state)
{
	static const char *const first[] = {"abcd", "abd", "abe", NULL}, *const last[] = {"ab", "abcde", NULL};

	(void)state;
	near("abc", (const char *const[]){"abcd", "abd", NULL}, "abd");
	near("abc", first, "abd");
	near("abcd", last, "abcde");
	near("abd", (const char *const[]){"abcd", "abxd", NULL}, "abcd");
}

static void test_none(void **state)
{
	static const char *const list[] = {"list", "show", NULL};

	(void)state;
	near("no-such-command", list, NULL);
	near("xyzw", list, NULL);
	near("lsit", list, "list");
	near("a word of more than thirty-one letters", list, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_swapped), cmocka_unit_test(test_equal),
					   cmocka_unit_test(test_none)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
