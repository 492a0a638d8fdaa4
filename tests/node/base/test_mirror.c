/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of every length are reversed, whatever part of them the loop of words covers; their neighbours stay. */
#include "node/base/mirror.h"
#include "tests/test.h"

#define MOST 41

TEST(test_lengths)
{
	for (size_t n = 0; n <= MOST; n++) {
		uint16_t row[MOST + 2];

		for (size_t i = 0; i < MOST + 2; i++)
			row[i] = (uint16_t)(1657 * (i + 1));
		mirror_values(row + 1, n);
		for (size_t i = 0; i < MOST + 2; i++) {
			size_t from = i > 0 && i <= n ? n + 1 - i : i;

			assert_int_equal(row[i], (uint16_t)(1657 * (from + 1)));
		}
	}
}
