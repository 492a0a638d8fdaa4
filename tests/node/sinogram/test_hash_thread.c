/* SPDX-License-Identifier: Apache-2.0 */
/* A digest by a thread is that of the same bytes in the same order, however they are added. */
#include "dicom/core/bulk.h"
#include "node/sinogram/hash_thread.h"
#include "tests/test.h"

#define BYTES ((size_t)3 << 20)

static uint8_t *make_bytes(void)
{
	uint8_t *bytes = malloc(BYTES);

	assert_non_null(bytes);
	for (size_t i = 0; i < BYTES; i++)
		bytes[i] = (uint8_t)(i * 2654435761u >> 11);
	return bytes;
}

static void hash_all(const uint8_t *bytes, char ret_hex[65])
{
	struct dicom_digest *d = dicom_digest_new();

	dicom_digest_add(d, bytes, BYTES);
	dicom_digest_hex(d, ret_hex);
	dicom_digest_free(d);
}

/* Adjacent pieces of one range of memory. */
TEST(adjacent)
{
	uint8_t *bytes = make_bytes();
	char whole[65], pieces[65];

	hash_all(bytes, whole);
	for (size_t piece = 1 << 10; piece <= BYTES; piece *= 8) {
		struct hash_thread *h = hash_thread_create();

		for (size_t at = 0; at < BYTES; at += piece)
			hash_thread_add(h, bytes + at, BYTES - at < piece ? BYTES - at : piece);
		hash_thread_hex(h, pieces);
		assert_string_equal(pieces, whole);
		hash_thread_free(h);
	}
	free(bytes);
}

/* Two buffers by turns, which are written over as soon as they may; they are beside each other, or not. */
TEST(by_turns)
{
	const size_t piece = 1 << 16;
	uint8_t *bytes = make_bytes(), *buffers = malloc(3 * piece);
	char whole[65], turns[65];

	assert_non_null(buffers);
	hash_all(bytes, whole);
	for (size_t apart = 1; apart <= 2; apart++) {
		struct hash_thread *h = hash_thread_create();

		for (size_t at = 0; at < BYTES; at += piece) {
			uint8_t *to = buffers + (at / piece % 2) * apart * piece;

			hash_thread_leave(h, to, piece);
			memcpy(to, bytes + at, piece);
			hash_thread_add(h, to, piece);
		}
		hash_thread_hex(h, turns);
		assert_string_equal(turns, whole);
		hash_thread_free(h);
	}
	free(buffers);
	free(bytes);
}

/* Freed while it hashes: the bytes may go after that. */
TEST(freed_early)
{
	uint8_t *bytes = make_bytes();
	struct hash_thread *h = hash_thread_create();

	hash_thread_add(h, bytes, BYTES);
	assert_null(hash_thread_free(h));
	free(bytes);
}
