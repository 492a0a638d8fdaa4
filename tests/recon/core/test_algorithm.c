/* SPDX-License-Identifier: Apache-2.0 */
/* The list of algorithms: each has a unique word, a rule, and a session that supports it; a session supports exactly the
 * algorithms whose rules it implements. */
#include "recon/dbt/dbt.h"
#include "recon/parallel/parallel.h"
#include "recon/pet/pet.h"
#include "tests/test.h"

TEST(every_slot)
{
	for (enum algorithm a = 1; a < ALGORITHM_COUNT; a++) {
		const struct algorithm_info *i = algorithm_info(a);

		assert_true(i->word[0] && i->name[0] && i->rule && i->update);
		assert_true(dbt_supports(a) || pet_supports(a) || parallel_supports(a));
		assert_false(i->filtered && algorithm_iterates(a));
		for (enum algorithm b = 1; b < a; b++)
			assert_string_not_equal(algorithm_info(b)->word, i->word);
	}
}

TEST(what_there_is_not)
{
	static const enum algorithm none[] = {ALGORITHM_NONE, ALGORITHM_COUNT, (enum algorithm) - 1};

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		assert_string_equal(algorithm_info(none[i])->word, "");
		assert_false(algorithm_iterates(none[i]));
		assert_false(dbt_supports(none[i]) || pet_supports(none[i]) || parallel_supports(none[i]));
	}
}

TEST(sessions)
{
	static const struct {
		bool (*takes)(enum algorithm a);
		const char *refusal;
	} all[] = {{dbt_supports, "algorithm=none; allowed: bp, fbp, sart, mlem, osem, ostr, mltr"},
		   {pet_supports, "algorithm=none; allowed: fbp, mlem, osem, bsrem"},
		   {parallel_supports, "algorithm=none; allowed: bp, fbp, art, sart, mlem, osem, ostr, mltr"}};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct err err = {0};

		assert_int_equal(algorithm_refuse(ALGORITHM_NONE, all[i].takes, &err), -EINVAL);
		assert_string_equal(err.msg, all[i].refusal);
	}
}
