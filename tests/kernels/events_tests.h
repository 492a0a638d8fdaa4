/* SPDX-License-Identifier: Apache-2.0 */
/* The tests of list mode that every device must pass, on each setup of tests/kernels/events_fixture.h. */
#ifndef TOMONODE_TESTS_EVENTS_TESTS_H
#define TOMONODE_TESTS_EVENTS_TESTS_H

#include "tests/kernels/events_fixture.h"

/* Call `each` for every setup, on each device of the file that includes this header. */
void events_on_each(void (*each)(struct events_case *c));

static void events_definition(void **state)
{
	(void)state;
	events_on_each(events_check_definition);
}

static void events_adjoint(void **state)
{
	(void)state;
	events_on_each(events_check_adjoint);
}

static void events_ratio(void **state)
{
	(void)state;
	events_on_each(events_check_ratio);
}

static void events_sorted(void **state)
{
	(void)state;
	events_on_each(events_check_sorted);
}

#define EVENTS_TESTS                                                                                                             \
	cmocka_unit_test(events_definition), cmocka_unit_test(events_adjoint), cmocka_unit_test(events_ratio),                   \
		cmocka_unit_test(events_sorted)

#endif
