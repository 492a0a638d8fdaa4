/* SPDX-License-Identifier: Apache-2.0 */
/* Which GPU a step is told: that of its case, in the list of its node if this has one. */
#include "node/step/step_internal.h"
#include "tests/test.h"

TEST(the_gpu_of_a_step)
{
	static const struct {
		const char *list;
		int n;
		const char *visible;
	} rows[] = {
		{NULL, 0, "0"},
		{NULL, 3, "3"},
		{"5", 0, "5"},
		{"2,0,1", 0, "2"},
		{"2,0,1", 1, "0"},
		{"2,0,1", 2, "1"},
		{"2,0,1", 3, ""}, /* not one that this process can have opened */
		{"GPU-8a1b,GPU-77f0", 1, "GPU-77f0"},
		{"2,0,1", -1, "2,0,1"},
		{NULL, -1, ""},
	};
	char visible[40];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		step_visible_devices(rows[i].list, rows[i].n, visible, sizeof(visible));
		assert_string_equal(visible, rows[i].visible);
	}
}
