/* SPDX-License-Identifier: Apache-2.0 */
/* Test the configuration path that is derived from the path of the program. */
#include "node/config/config_path.h"
#include "tests/test.h"

static void check(const char *program, const char *first, const char *second)
{
	char buffer[CONFIG_PATH_BUFFER];
	const char *expected[] = {first, second, NULL};

	for (size_t i = 0; i < 3; i++) {
		const char *place = config_path_place(program, i, buffer);

		if (expected[i])
			assert_string_equal(place ? place : "none", expected[i]);
		else
			assert_null(place);
		if (!expected[i])
			break;
	}
}

TEST(test_places)
{
	check("/usr/bin/tomonode", "/usr/etc/tomonode/tomonode.conf", "/etc/tomonode/tomonode.conf");
	check("/stage/usr/bin/tomonode", "/stage/usr/etc/tomonode/tomonode.conf", "/stage/etc/tomonode/tomonode.conf");
	check("/usr/local/bin/tomonode", "/usr/local/etc/tomonode/tomonode.conf", NULL);
	check("/bin/tomonode (deleted)", "/etc/tomonode/tomonode.conf", NULL); /* replaced while it runs */
	check("/opt/tomonode-0.1.0/libexec/tomonode", "/opt/tomonode-0.1.0/etc/tomonode/tomonode.conf", NULL);
	check("/opt/usr/libexec/tomonode", "/opt/usr/etc/tomonode/tomonode.conf", NULL);
}

TEST(test_of_no_installation)
{
	check("/srv/me/tomonode/build/release/tomonode", NULL, NULL);
	check("/opt/cabin/tomonode", NULL, NULL);
	check("/tomonode", NULL, NULL);
	check("tomonode", NULL, NULL);
	check("", NULL, NULL);
}

TEST(test_named)
{
	char buffer[CONFIG_PATH_BUFFER];

	setenv("TOMONODE_CONF", "/some/node.conf", 1);
	assert_string_equal(config_path_default(buffer), "/some/node.conf");
	setenv("TOMONODE_CONF", "", 1);
	assert_null(config_path_default(buffer));
	unsetenv("TOMONODE_CONF"); /* the test program is in its build folder: no installation */
	assert_null(config_path_default(buffer));
}
