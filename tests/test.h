/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests in C: what every test program includes, in place of cmocka.h, of a main() of its own and of
 * the headers of C and POSIX that are below.
 *
 *     TEST(name) { assert_int_equal(...); }                         registers itself; tests run in the order of the file
 *     TEST(name, .setup = f, .teardown = g) { struct x *x = *state; ... }    cmocka's fixtures, and their `state`
 *     TEST(name, .tier = 2) { ... }                                 runs only in tier 2 (tests/README.md)
 *     TESTS_NEED(device_cuda_count() > 0, "no CUDA device")         the whole program is skipped without it
 *     TESTS_SETUP(f, g)                                             cmocka's fixtures of the whole program
 *     TESTS_COMMAND("word", n, f)                                   `program word` with n more words calls f(words), no test
 *     REFUSES(name, table, function)                                see below
 *
 * The program runs all tests, or those that its arguments name; `--list` prints the names. The environment: TOMONODE_TIER, 1
 * (default) or 2; TOMONODE_TEST_SEED, a number, 1 without it. Not for several threads: assert_*() only in the thread that runs
 * the test. */
#ifndef TOMONODE_TESTS_TEST_H
#define TOMONODE_TESTS_TEST_H

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernels/err.h"

struct test_row {
	const char *name;
	CMUnitTestFunction function;
	CMFixtureFunction setup, teardown;
	int tier; /* 2: in tier 2 only */
};

void test_register(const struct test_row *row);
void test_register_need(bool (*have)(void), const char *reason);
void test_register_setup(CMFixtureFunction setup, CMFixtureFunction teardown);
void test_register_command(const char *word, int n_words, int (*run)(char **words));

/* 1 or 2: a test of tier 1 takes a typical size of each sweep, in tier 2 all of them. */
int test_tier(void);

/* A sweep over n values: of 0 ... n - 1, tier 1 takes `few`, spread evenly, with the first and the last; tier 2 all n.
 *     for (size_t k = 0; k < test_count(n, 3); k++) { size_t i = test_nth(k, n, 3); ... } */
size_t test_count(size_t n, size_t few);
size_t test_nth(size_t k, size_t n, size_t few);

/* The number of open descriptors, to compare. A test that leaves more than it found fails. */
int test_descriptors(void);

/* The seed of random tests. The program prints it. */
unsigned test_seed(void);

#define TEST(name_, ...)                                                                                                         \
	static void name_(void **state);                                                                                         \
	__attribute__((constructor)) static void name_##_register(void)                                                          \
	{                                                                                                                        \
		static const struct test_row row = {.name = #name_, .function = name_, ##__VA_ARGS__};                           \
                                                                                                                                 \
		test_register(&row);                                                                                             \
	}                                                                                                                        \
	static void name_(void **state)

#define TESTS_NEED(condition, reason)                                                                                            \
	static bool tests_have(void)                                                                                             \
	{                                                                                                                        \
		return condition;                                                                                                \
	}                                                                                                                        \
	__attribute__((constructor)) static void tests_have_register(void)                                                       \
	{                                                                                                                        \
		test_register_need(tests_have, reason);                                                                          \
	}                                                                                                                        \
	struct test_row /* so that a semicolon may follow */

#define TESTS_SETUP(setup_, teardown_)                                                                                           \
	__attribute__((constructor)) static void tests_setup_register(void)                                                      \
	{                                                                                                                        \
		test_register_setup(setup_, teardown_);                                                                          \
	}                                                                                                                        \
	struct test_row

#define TESTS_COMMAND(word, n_words, run)                                                                                        \
	__attribute__((constructor)) static void run##_register(void)                                                            \
	{                                                                                                                        \
		test_register_command(word, n_words, run);                                                                       \
	}                                                                                                                        \
	struct test_row

/* A table of refused input. Its rows begin with these members; behind them is the input that function() takes out of its row.
 *     static const struct { REFUSED; int n; } bad[] = {{"no bins", EINVAL, "bins", 0}, ...};
 *     static int try_bins(const void *row, struct err *err) { ... return scan_create(..., err); }
 *     REFUSES(bins_out_of_range, bad, try_bins)
 * function() must fail with the code of the row, and its sentence must name the thing. The sentence itself is not compared. */
struct test_refused {
	const char *what;  /* what is wrong with the input, for the person who reads a failure */
	int code;	   /* errno value */
	const char *names; /* the thing that the sentence must name; NULL: the function has no struct err */
};
#define REFUSED struct test_refused refused
#define REFUSES(name_, table, function)                                                                                          \
	TEST(name_)                                                                                                              \
	{                                                                                                                        \
		for (size_t i = 0; i < sizeof(table) / sizeof((table)[0]); i++)                                                  \
			test_refuse(&(table)[i].refused, &(table)[i], function, __FILE__, __LINE__);                             \
	}
void test_refuse(const struct test_refused *expected, const void *row, int (*function)(const void *row, struct err *err),
		 const char *file, int line);

/* What a test takes by these goes when it ends, the last first, also when it has failed; what TESTS_SETUP takes, when the program
 * ends. None of it is freed by hand. TEST_BLOCK at the beginning of a block, of a loop for example: what is taken in it goes at
 * its end. */
void *take_memory(size_t size); /* what is in it is not set */
void *take_zeros(size_t n, size_t size);
void *take_copy(const void *thing, size_t size);
void test_later(void (*give_back)(void *thing), void *thing);
#define TEST_BLOCK TEST_BLOCK_AT(__LINE__)
#define TEST_BLOCK_AT(line) TEST_BLOCK_NAMED(line)
#define TEST_BLOCK_NAMED(line) size_t test_block_##line __attribute__((cleanup(test_block_end), unused)) = test_taken()
size_t test_taken(void);
void test_block_end(const size_t *taken);

/* A variable in a block, which this clears at the end of the block: struct jobs jobs GOES(jobs_clear) = {0}; */
#define GOES(clear) __attribute__((cleanup(clear)))

/* For test_later(): give_back_NAME(), which calls NAME(), a destructor. */
#define TEST_GIVES_BACK(name)                                                                                                    \
	static inline void give_back_##name(void *thing)                                                                         \
	{                                                                                                                        \
		name(thing);                                                                                                     \
	}                                                                                                                        \
	struct test_row

/* Make an empty folder and store its path, which is shorter than 64 characters; it goes with all that is in it when the program
 * ends. It is in $TMPDIR, else in memory where there is enough of it, so that tests do not wait for a disk, else in /tmp. */
void test_folder(char *path, size_t size);

/* The path of a file in a folder. It is valid until it is asked for eight more. */
const char *test_path(const char *folder, const char *name);

/* Write a file; a new one has mode 0600. */
void test_put_file(const char *path, const void *bytes, size_t n);

/* rc is not negative; else the sentence of the error is printed. */
void assert_done_at(int rc, const struct err *err, const char *file, int line);
#define assert_done(rc, err) assert_done_at(rc, err, __FILE__, __LINE__)

/* rc is -code, and so is the stored error; its sentence names the thing. */
void assert_error_at(int rc, const struct err *err, int code, const char *names, const char *file, int line);
#define assert_error(rc, err, code, names) assert_error_at(rc, err, code, names, __FILE__, __LINE__)

/* |found - expected| <= tolerance; NaN is near nothing. */
void assert_near_at(double found, double expected, double tolerance, const char *file, int line);
#define assert_near(found, expected, tolerance) assert_near_at(found, expected, tolerance, __FILE__, __LINE__)

/* End a test that this machine cannot run, with the reason, which tests/summary.py lists. The arguments are those of printf. */
#define skip_because(...)                                                                                                        \
	do {                                                                                                                     \
		print_message("skipped: " __VA_ARGS__);                                                                          \
		print_message("\n");                                                                                             \
		skip();                                                                                                          \
	} while (0)

#endif
