/* SPDX-License-Identifier: Apache-2.0 */
/* Identities of pilots, ID.NUMBER: what is read, and nothing else. */
#include "node/cluster/token.h"
#include "tests/test.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_" /* 64, one more than an ID may have */

TEST(printed_and_read)
{
	static const struct {
		const char *id;
		uint64_t number;
	} rows[] = {{"a", 1}, {"d-1_x", 10}, {LETTERS + 1, PILOT_TOKEN_MAX}};
	char text[TOKEN_IDENTITY_SIZE], id[PILOT_ID_SIZE];
	uint64_t number;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		token_print(rows[i].id, rows[i].number, text);
		assert_true(token_parse(text, id, &number));
		assert_string_equal(id, rows[i].id);
		assert_int_equal(number, rows[i].number);
	}
	assert_int_equal(strlen(rows[2].id), PILOT_ID_SIZE - 1);
}

TEST(what_is_none)
{
	static const char *const wrong[] = {"",
					    ".1",
					    "a",
					    "a.",
					    "a.0",
					    "a.01",
					    "a.-1",
					    "a.1x",
					    "a. 1",
					    "a.+1",
					    "a b.1",
					    "a/b.1",
					    "..1",
					    "a.b.1",
					    "a.9007199254740993",
					    "a.99999999999999999999",
					    LETTERS ".1"};
	char id[PILOT_ID_SIZE];
	uint64_t number;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (token_parse(wrong[i], id, &number))
			fail_msg("'%s' is read as '%s'", wrong[i], id);
	assert_true(token_parse("a.9007199254740992", id, &number));
}

/* Another secret or another identity gives another key. */
TEST(keys)
{
	char secret[PILOT_SECRET_SIZE], other[PILOT_SECRET_SIZE];
	unsigned char keys[4][TOKEN_KEY_SIZE];

	memset(secret, 'a', sizeof(secret) - 1);
	secret[sizeof(secret) - 1] = '\0';
	memcpy(other, secret, sizeof(other));
	other[sizeof(other) - 2] = 'b';
	assert_true(token_key(secret, "a.1", keys[0]));
	assert_true(token_key(secret, "a.1", keys[1]));
	assert_memory_equal(keys[0], keys[1], TOKEN_KEY_SIZE);
	assert_true(token_key(secret, "a.2", keys[2]));
	assert_true(token_key(other, "a.1", keys[3]));
	assert_memory_not_equal(keys[0], keys[2], TOKEN_KEY_SIZE);
	assert_memory_not_equal(keys[0], keys[3], TOKEN_KEY_SIZE);
}
