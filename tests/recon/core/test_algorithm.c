/* SPDX-License-Identifier: Apache-2.0 */
/* The list of algorithms: each has a unique word, a rule, and a session that supports it; a session supports exactly the
 * algorithms whose rules it implements. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "recon/dbt/dbt.h"
#include "recon/parallel/parallel.h"
#include "recon/pet/pet.h"

static void every_slot(void **state)
{
	(void)state;
	for (enum algorithm a = 1; a < ALGORITHM_COUNT; a++) {
		const struct algorithm_info *i = algorithm_info(a);

		assert_true(i->word[0] && i->name[0] && i->rule && i->update);
		assert_true(dbt_supports(a) || pet_supports(a) || parallel_supports(a));
		assert_false(i->filtered && algorithm_iterates(a));
		for (enum algorithm b = 1; b < a; b++)
			assert_string_not_equal(algorithm_info(b)->word, i->word);
	}
}

static void what_there_is_not(void **state)
{
	static const enum algorithm none[] = {ALGORITHM_NONE, ALGORITHM_COUNT, (enum algorithm) - 1};

	(void)state;
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		assert_string_equal(algorithm_info(none[i])->word, "");
		assert_false(algorithm_iterates(none[i]));
		assert_false(dbt_supports(none[i]) || pet_supports(none[i]) || parallel_supports(none[i]));
	}
}

static void sessions(void **state)
{
	static const struct {
		bool (*takes)(enum algorithm a);
		const char *refusal;
	} all[] = {{dbt_supports, "algorithm=none; allowed: bp, fbp, sart, mlem, osem, ostr, mltr"},
		   {pet_supports, "algorithm=none; allowed: fbp, mlem, osem, bsrem"},
		   {parallel_supports, "algorithm=none; allowed: bp, fbp, art, sart, mlem, osem"}};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct err err = {0};

		assert_int_equal(algorithm_refuse(ALGORITHM_NONE, all[i].takes, &err), -EINVAL);
		assert_string_equal(err.msg, all[i].refusal);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(every_slot), cmocka_unit_test(what_there_is_not),
					   cmocka_unit_test(sessions)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
