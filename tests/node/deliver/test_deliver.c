/* SPDX-License-Identifier: Apache-2.0 */
/* What a status of C-STORE, and an error of an association, mean for the delivery of an object. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "node/deliver/deliver.h"

static void test_status(void **state)
{
	static const struct {
		uint16_t first, last;
		enum deliver_outcome outcome;
	} known[] = {
		{0x0000, 0x0000, DELIVER_STORED},    {0x0111, 0x0111, DELIVER_STORED},	  {0x0107, 0x0107, DELIVER_STORED},
		{0x0116, 0x0116, DELIVER_STORED},    {0xb000, 0xbfff, DELIVER_STORED},	  {0xa700, 0xa7ff, DELIVER_TRANSIENT},
		{0xa900, 0xa9ff, DELIVER_PERMANENT}, {0xc000, 0xcfff, DELIVER_PERMANENT}, {0x0122, 0x0122, DELIVER_PERMANENT},
		{0x0124, 0x0124, DELIVER_PERMANENT}, {0x0117, 0x0118, DELIVER_PERMANENT}, {0x0106, 0x0106, DELIVER_PERMANENT},
		{0x0120, 0x0121, DELIVER_PERMANENT}, {0x0211, 0x0211, DELIVER_PERMANENT}, {0x0110, 0x0110, DELIVER_TRANSIENT},
		{0xfe00, 0xfe00, DELIVER_TRANSIENT},
	};

	(void)state;
	for (uint32_t status = 0; status <= 0xffff; status++) {
		enum deliver_outcome expected = DELIVER_TRANSIENT; /* a status that the standard does not name is tried again */
		const char *meaning = NULL;

		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
			if (status >= known[i].first && status <= known[i].last)
				expected = known[i].outcome;
		if (deliver_classify((uint16_t)status, &meaning) != expected)
			fail_msg("status %04X", (unsigned)status);
		assert_true(meaning && meaning[0]);
	}
}

static void test_errors(void **state)
{
	(void)state;
	assert_int_equal(deliver_classify_error(ENOTSUP), DELIVER_PERMANENT); /* no presentation context */
	assert_int_equal(deliver_classify_error(ETIMEDOUT), DELIVER_TRANSIENT);
	assert_int_equal(deliver_classify_error(EACCES), DELIVER_TRANSIENT);
	assert_true(deliver_needs_operator(EACCES) && deliver_needs_operator(ENOKEY) && deliver_needs_operator(EKEYREJECTED));
	assert_false(deliver_needs_operator(ETIMEDOUT) || deliver_needs_operator(EBUSY) || deliver_needs_operator(ECONNRESET));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_status),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
