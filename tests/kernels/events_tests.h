/* SPDX-License-Identifier: Apache-2.0 */
/* The tests of list mode that every device must pass, on each setup of tests/kernels/events_fixture.h. */
#ifndef TOMONODE_TESTS_EVENTS_TESTS_H
#define TOMONODE_TESTS_EVENTS_TESTS_H

#include "tests/kernels/events_fixture.h"
#include "tests/test.h"

/* Call `each` for every setup, on each device of the file that includes this header. */
void events_on_each(void (*each)(struct events_case *c));

TEST(events_definition)
{
	events_on_each(events_check_definition);
}

TEST(events_adjoint)
{
	events_on_each(events_check_adjoint);
}

TEST(events_ratio)
{
	events_on_each(events_check_ratio);
}

TEST(events_sorted)
{
	events_on_each(events_check_sorted);
}

#endif
