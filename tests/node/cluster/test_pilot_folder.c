/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a pilot: that of a killed one is removed with its files, that of a running one and those of others stay. */
#include "node/cluster/pilot_folder.h"
#include "tests/test.h"

static void put_file(const char *folder)
{
	const char *path = test_path(folder, "instances");

	assert_int_equal(mkdir(path, 0700), 0);
	test_put_file(test_path(path, "image"), "", 0);
}

TEST(test_folders)
{
	char tmp[64], first[400], second[400], third[400], other[100];
	struct err err;
	int fd[3];

	test_folder(tmp, sizeof(tmp));
	snprintf(other, sizeof(other), "%s/tomonode-other", tmp);
	assert_int_equal(mkdir(other, 0700), 0);
	fd[0] = pilot_folder_create(tmp, first, sizeof(first), &err);
	assert_true(fd[0] >= 0);
	put_file(first);
	fd[1] = pilot_folder_create(tmp, second, sizeof(second), &err);
	assert_true(fd[1] >= 0);
	put_file(second);
	assert_int_equal(access(first, F_OK), 0); /* its pilot runs */
	close(fd[0]);				  /* as if it was killed */
	fd[2] = pilot_folder_create(tmp, third, sizeof(third), &err);
	assert_true(fd[2] >= 0);
	assert_int_equal(access(first, F_OK), -1);
	assert_int_equal(access(second, F_OK), 0);
	assert_int_equal(access(other, F_OK), 0);
	close(fd[1]);
	close(fd[2]);
	close(pilot_folder_create(tmp, first, sizeof(first), &err));
	assert_int_equal(rmdir(first), 0);
	assert_int_equal(rmdir(other), 0);
	assert_int_equal(rmdir(tmp), 0); /* nothing else is left */
	assert_true(pilot_folder_create("/nowhere", first, sizeof(first), &err) < 0);
}
