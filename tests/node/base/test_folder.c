/* SPDX-License-Identifier: Apache-2.0 */
/* Test folders for output: created with their parents, never in place of a file; how many entries they have. */
#include <limits.h>

#include "node/base/atomic_file.h"
#include "node/base/folder.h"
#include "tests/test.h"

static char home[PATH_MAX];

static int enter(void **state)
{
	test_folder(home, sizeof(home));
	return chdir(home) == 0 ? 0 : -1;
}

TEST(test_parents)
{
	const char *paths[] = {"a/b/c", "a/b/c", "a//d/", "./e", "f"};
	struct err err = {0};
	struct stat st;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		assert_int_equal(folder_create(paths[i], &err), 0);
		assert_int_equal(stat(paths[i], &st), 0);
		assert_true(S_ISDIR(st.st_mode));
	}
	assert_int_equal(folder_create(home, &err), 0);
}

TEST(test_parent_of_file)
{
	const char *files[] = {"p/q/file.nii", "p/q/other.nii", "file.nii", "./file.nii", "/file.nii"};
	char path[PATH_MAX + 8];
	struct err err = {0};
	struct stat st;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		assert_int_equal(folder_create_parent(files[i], &err), 0);
	assert_int_equal(stat("p/q", &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(stat("p/q/file.nii", &st), -1);
	assert_int_equal(atomic_file_put("plain", "x", 1, &err), 0);
	assert_int_equal(folder_create_parent("plain/below.nii", &err), -ENOTDIR);
	memset(path, 'a', sizeof(path));
	path[sizeof(path) - 2] = '/';
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(folder_create_parent(path, &err), -ENAMETOOLONG);
}

TEST(test_not_a_folder)
{
	struct err err = {0};
	char path[PATH_MAX + 8];

	assert_int_equal(atomic_file_put("file", "x", 1, &err), 0);
	assert_int_equal(folder_create("file", &err), -ENOTDIR);
	assert_string_equal(err.msg, "file is not a folder");
	assert_int_equal(folder_create("file/below", &err), -ENOTDIR);
	assert_int_equal(folder_create("", &err), -folder_output_code(ENOENT));
	memset(path, 'a', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(folder_create(path, &err), -ENAMETOOLONG);
}

TEST(test_entries)
{
	struct err err = {0};

	assert_int_equal(folder_entries("g"), 0);
	assert_int_equal(folder_create("g", &err), 0);
	assert_int_equal(folder_entries("g"), 0);
	assert_int_equal(folder_create("g/.hidden", &err), 0);
	assert_int_equal(atomic_file_put("g/file", "x", 1, &err), 0);
	assert_int_equal(folder_entries("g"), 2);
}

TESTS_SETUP(enter, NULL);
