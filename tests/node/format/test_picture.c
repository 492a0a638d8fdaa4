/* SPDX-License-Identifier: Apache-2.0 */
/* A written picture is read again; a folder that does not exist is an error without a file left behind. */
#include <errno.h>
#include <unistd.h>

#include "node/format/picture.h"
#include "tests/test.h"

TEST(write_and_read)
{
	static const unsigned char grey[6] = {0, 1, 64, 128, 254, 255};
	char folder[64], path[100], part[110];
	struct picture p;
	struct err err = {0};

	test_folder(folder, sizeof(folder));
	snprintf(path, sizeof(path), "%s/a.png", folder);
	assert_int_equal(picture_write(path, 3, 2, grey, &err), 0);
	assert_int_equal(picture_read(path, &p, &err), 0);
	assert_int_equal(p.width, 3);
	assert_int_equal(p.height, 2);
	assert_true(p.value[0] == 0 && p.value[5] == 1);
	for (int i = 1; i < 6; i++)
		assert_true(p.value[i] > p.value[i - 1]);
	picture_clear(&p);
	snprintf(part, sizeof(part), "%s.part", path);
	assert_int_equal(access(part, F_OK), -1);
	unlink(path);
	rmdir(folder);
	assert_true(picture_write(path, 3, 2, grey, &err) < 0);
	assert_non_null(strstr(err.msg, "a.png.part"));
}
