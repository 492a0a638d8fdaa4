/* SPDX-License-Identifier: Apache-2.0 */
/* The digest that is computed while a file is written is that of digest_files(), which journals hold: for every length about a
 * piece, however the bytes come, and when some are written over. */
#include "node/base/digest_stream.h"
#include "tests/test.h"

#define MOST (3 * DIGEST_PIECE + 4096)

static unsigned char *bytes;
static char path[] = "/tmp/test_digest_stream.XXXXXX";
static uint32_t seed = 1;

static uint32_t any(void)
{
	seed = seed * 1664525u + 1013904223u;
	return seed >> 8;
}

static int setup(void **state)
{
	int fd = mkstemp(path);

	bytes = malloc(MOST);
	for (size_t i = 0; bytes && i < MOST; i++)
		bytes[i] = (unsigned char)any();
	close(fd);
	return bytes && fd >= 0 ? 0 : -1;
}

static int teardown(void **state)
{
	free(bytes);
	return unlink(path);
}

static void write_file(size_t n)
{
	int fd = open(path, O_WRONLY | O_TRUNC);

	for (size_t at = 0; at < n;) {
		ssize_t done = write(fd, bytes + at, n - at);

		assert_true(done > 0);
		at += (size_t)done;
	}
	close(fd);
}

static void of_file(char ret[DIGEST_SIZE])
{
	const char *name = path;
	int code;

	assert_int_equal(digest_files(&name, 1, 1, (char(*)[DIGEST_SIZE])ret, &code, NULL), 0);
	assert_int_equal(code, 0);
}

TEST(same_as_of_the_file)
{
	static const size_t lengths[] = {0, 1, 4096, DIGEST_PIECE - 1, DIGEST_PIECE, DIGEST_PIECE + 1, 2 * DIGEST_PIECE, MOST};
	static const size_t runs[] = {1 << 12, 1 << 20, 5 << 20, MOST};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (size_t k = 0; k < sizeof(runs) / sizeof(runs[0]); k++) {
			struct digest_stream *s = digest_stream_create();
			char file[DIGEST_SIZE], stream[DIGEST_SIZE];
			struct err err = {0};

			for (size_t at = 0, n; at < lengths[i]; at += n) {
				n = 1 + any() % runs[k];
				n = n < lengths[i] - at ? n : lengths[i] - at;
				digest_stream_add(s, at, bytes + at, n);
				digest_stream_wait(s);
			}
			write_file(lengths[i]);
			of_file(file);
			assert_int_equal(digest_stream_end(s, "/nonexistent", stream, &err), 0); /* the file is not read */
			assert_string_equal(stream, file);
			digest_stream_free(s);
		}
}

/* Bytes that begin before the end of what was written and end behind it. */
TEST(written_across)
{
	static const size_t ends[] = {4096, DIGEST_PIECE, DIGEST_PIECE + 500, 2 * DIGEST_PIECE};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		for (size_t more = 1; more < 2 * DIGEST_PIECE; more *= 100) {
			struct digest_stream *s = digest_stream_create();
			size_t n = ends[i] + more < MOST ? ends[i] + more : MOST, from = ends[i] - 300;
			char file[DIGEST_SIZE], stream[DIGEST_SIZE];
			struct err err = {0};

			digest_stream_add(s, 0, bytes, ends[i]);
			digest_stream_wait(s);
			memset(bytes + from, (int)(i + more), 300);
			digest_stream_add(s, from, bytes + from, n - from);
			digest_stream_wait(s);
			write_file(n);
			of_file(file);
			assert_int_equal(digest_stream_end(s, path, stream, &err), 0);
			assert_string_equal(stream, file);
			digest_stream_free(s);
		}
}

/* A table at the end of the first piece and the beginning of the second is written again, and bytes of the last one. */
TEST(written_over)
{
	static const size_t at[] = {DIGEST_PIECE - 100, MOST - 10};
	struct digest_stream *s = digest_stream_create();
	char file[DIGEST_SIZE], stream[DIGEST_SIZE];
	struct err err = {0};

	digest_stream_add(s, 0, bytes, MOST);
	digest_stream_wait(s);
	for (int i = 0; i < 2; i++) {
		memset(bytes + at[i], i, i ? 10 : 200);
		digest_stream_add(s, at[i], bytes + at[i], i ? 10 : 200);
	}
	write_file(MOST);
	of_file(file);
	assert_int_equal(digest_stream_end(s, "/nonexistent", stream, &err), -ENOENT);
	assert_int_equal(digest_stream_end(s, path, stream, &err), 0);
	assert_string_equal(stream, file);
	digest_stream_free(s);
}

/* Bytes that the stream did not get are read from the file. */
TEST(with_a_gap)
{
	struct digest_stream *s = digest_stream_create();
	char file[DIGEST_SIZE], stream[DIGEST_SIZE];
	struct err err = {0};

	digest_stream_add(s, 0, bytes, 100);
	digest_stream_add(s, 200, bytes + 200, DIGEST_PIECE);
	write_file(200 + DIGEST_PIECE);
	of_file(file);
	assert_int_equal(digest_stream_end(s, path, stream, &err), 0);
	assert_string_equal(stream, file);
	digest_stream_free(s);
}

TESTS_SETUP(setup, teardown);
