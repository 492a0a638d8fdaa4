/* SPDX-License-Identifier: Apache-2.0 */
/* End a test that this machine cannot run, with the reason, which tests/summary.py lists; include after cmocka.h. The arguments
 * are those of printf. */
#ifndef TOMONODE_TESTS_SKIP_H
#define TOMONODE_TESTS_SKIP_H

#define skip_because(...)                                                                                                        \
	do {                                                                                                                     \
		print_message("skipped: " __VA_ARGS__);                                                                          \
		print_message("\n");                                                                                             \
		skip();                                                                                                          \
	} while (0)

#endif
