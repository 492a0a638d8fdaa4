/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets of pilots, and tokens that are used once. */
#include "node/base/folder.h"
#include "node/store/pilot_secret.h"
#include "tests/test.h"

TEST(test_secret)
{
	char spool[64], path[200], hex[PILOT_SECRET_SIZE], read[PILOT_SECRET_SIZE];
	struct err err = {0};
	uint64_t last = 1;
	struct stat st;

	test_folder(spool, sizeof(spool));
	assert_int_equal(pilot_secret_read(spool, "d1", read, &err), -ENOENT);
	assert_int_equal(pilot_secret_create(spool, "../d1", hex, &err), -EINVAL);
	assert_int_equal(pilot_secret_create(spool, "d1", hex, &err), 0);
	assert_true(pilot_secret_is_valid(hex));
	assert_int_equal(pilot_secret_create(spool, "d1", read, &err), -EEXIST);
	assert_int_equal(pilot_secret_read(spool, "d1", read, &err), 0);
	assert_string_equal(hex, read);
	snprintf(path, sizeof(path), "%s/pilots/d1", spool);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	/* A token is used once, and none after a later one. */
	assert_int_equal(pilot_token_use(spool, "d1", 7, &last, &err), 0);
	assert_error(pilot_token_use(spool, "d1", 7, &last, &err), &err, EALREADY, "token 7 of pilot 'd1' was used before");
	assert_int_equal(last, 7);
	assert_int_equal(pilot_token_use(spool, "d1", 6, &last, &err), -EALREADY);
	assert_int_equal(pilot_token_use(spool, "d1", PILOT_TOKEN_MAX, &last, &err), 0);
	assert_int_equal(pilot_token_use(spool, "d1", 8, &last, &err), -EALREADY);
	assert_int_equal(last, PILOT_TOKEN_MAX);
	/* Of a blocked ID none is accepted, until it has another secret. */
	assert_int_equal(pilot_block(spool, "d1", &err), 0);
	assert_error(pilot_token_use(spool, "d1", PILOT_TOKEN_MAX, &last, &err), &err, EPERM, "pilot 'd1' is blocked");
	assert_int_equal(pilot_secret_remove(spool, "d1", &err), 0);
	assert_int_equal(pilot_secret_create(spool, "d1", hex, &err), 0);
	assert_int_equal(pilot_token_use(spool, "d1", 1, &last, &err), 0);
	assert_int_equal(last, 0);
	assert_int_equal(pilot_secret_remove(spool, "d1", &err), 0);
	assert_int_equal(pilot_secret_remove(spool, "d1", &err), -ENOENT);
	snprintf(path, sizeof(path), "%s/pilots", spool);
	assert_int_equal(folder_entries(path), 0);
}
