/* SPDX-License-Identifier: Apache-2.0 */
/* The main() of every unit test program: collects the tests that registered themselves, runs those that were asked for. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* the flags of nftw() */
#endif
#include <dirent.h>
#include <dlfcn.h>
#include <ftw.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "tests/test.h"

#define MAX_FOLDERS 1000
#define MAX_TESTS 256
#define MAX_COMMANDS 4

struct command {
	const char *word;
	int n_words;
	int (*run)(char **words);
};

static struct {
	struct test_row rows[MAX_TESTS];
	size_t n;
	bool (*have)(void);
	const char *need;
	CMFixtureFunction setup, teardown;
	struct command commands[MAX_COMMANDS];
	size_t n_commands;
} all;

/* LeakSanitizer asks for it: the memory of NVIDIA's driver. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libcuda\nleak:libnvidia\n";
}

void test_register(const struct test_row *row)
{
	if (all.n == MAX_TESTS) {
		fprintf(stderr, "more than %d tests in one program\n", MAX_TESTS);
		exit(2);
	}
	all.rows[all.n++] = *row;
}

void test_register_need(bool (*have)(void), const char *reason)
{
	all.have = have;
	all.need = reason;
}

void test_register_setup(CMFixtureFunction setup, CMFixtureFunction teardown)
{
	all.setup = setup;
	all.teardown = teardown;
}

void test_register_command(const char *word, int n_words, int (*run)(char **words))
{
	if (all.n_commands == MAX_COMMANDS) {
		fprintf(stderr, "more than %d commands in one program\n", MAX_COMMANDS);
		exit(2);
	}
	all.commands[all.n_commands++] = (struct command){word, n_words, run};
}

static unsigned number_of(const char *variable)
{
	const char *text = getenv(variable);
	char *end;
	unsigned long value = text && *text ? strtoul(text, &end, 10) : 1;

	if (text && *text && (*end || value > UINT32_MAX)) {
		fprintf(stderr, "%s is \"%s\", not a number\n", variable, text);
		exit(2);
	}
	return (unsigned)value;
}

int test_tier(void)
{
	return number_of("TOMONODE_TIER") > 1 ? 2 : 1;
}

unsigned test_seed(void)
{
	unsigned seed = number_of("TOMONODE_TEST_SEED");

	print_message("seed %u\n", seed);
	return seed;
}

size_t test_count(size_t n, size_t few)
{
	return test_tier() == 2 || n < few ? n : few;
}

size_t test_nth(size_t k, size_t n, size_t few)
{
	size_t count = test_count(n, few);

	return count < 2 ? k : k * (n - 1) / (count - 1);
}

void assert_near_at(double found, double expected, double tolerance, const char *file, int line)
{
	if (found == expected || fabs(found - expected) <= tolerance)
		return;
	print_error("%.12g is not within %g of %.12g\n", found, tolerance, expected);
	_fail(file, line);
}

void assert_done_at(int rc, const struct err *err, const char *file, int line)
{
	if (rc >= 0)
		return;
	print_error("returned %d: %s\n", rc, err->msg);
	_fail(file, line);
}

void assert_error_at(int rc, const struct err *err, int code, const char *names, const char *file, int line)
{
	if (rc == -code && (!names || (err->code == code && strstr(err->msg, names))))
		return;
	print_error("returned %d, expected %d (%s); the error is %d, \"%s\", which should name \"%s\"\n", rc, -code,
		    strerror(code), err ? err->code : 0, err ? err->msg : "", names ? names : "");
	_fail(file, line);
}

void test_refuse(const struct test_refused *expected, const void *row, int (*function)(const void *row, struct err *err),
		 const char *file, int line)
{
	struct err err = {0};
	int rc = function(row, &err);

	if (rc != -expected->code)
		print_error("%s:\n", expected->what);
	assert_error_at(rc, &err, expected->code, expected->names, file, line);
}

/* What tests have taken. `kept` of them are of TESTS_SETUP. */
static struct {
	struct thing {
		void (*give_back)(void *thing);
		void *thing;
	} * things;
	size_t n, kept;
} taken;

void test_later(void (*give_back)(void *thing), void *thing)
{
	if ((taken.n & (taken.n - 1)) == 0) { /* full: room for twice as many */
		void *more = realloc(taken.things, (taken.n ? 2 * taken.n : 1) * sizeof(*taken.things));

		assert_non_null(more);
		taken.things = more;
	}
	taken.things[taken.n++] = (struct thing){give_back, thing};
}

static void *keep_memory(void *memory)
{
	assert_non_null(memory);
	test_later(free, memory);
	return memory;
}

void *take_memory(size_t size)
{
	return keep_memory(malloc(size ? size : 1));
}

void *take_zeros(size_t n, size_t size)
{
	return keep_memory(calloc(n ? n : 1, size));
}

void *take_copy(const void *thing, size_t size)
{
	return memcpy(take_memory(size), thing, size);
}

size_t test_taken(void)
{
	return taken.n;
}

void test_block_end(const size_t *n)
{
	while (taken.n > *n) {
		struct thing *last = &taken.things[--taken.n];

		last->give_back(last->thing);
	}
}

static struct {
	char *paths[MAX_FOLDERS];
	size_t n;
	pid_t owner; /* a child that calls exit() removes nothing */
} folders;

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	remove(path);
	return 0;
}

static void remove_folders(void)
{
	if (getpid() == folders.owner)
		for (size_t i = 0; i < folders.n; i++)
			nftw(folders.paths[i], remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static const char *folder_of_folders(void)
{
	static const char memory[] = "/dev/shm";
	const char *tmp = getenv("TMPDIR");
	struct statvfs v;

	if (tmp && *tmp)
		return tmp;
	return statvfs(memory, &v) == 0 && (double)v.f_bavail * v.f_frsize > 2e9 && access(memory, W_OK) == 0 ? memory : "/tmp";
}

void test_folder(char *path, size_t size)
{
	int n = snprintf(path, size, "%s/tomonode-test-XXXXXX", folder_of_folders());

	if (n < 0 || (size_t)n >= size || n >= 64 || folders.n == MAX_FOLDERS || !mkdtemp(path)) {
		perror(path);
		exit(2);
	}
	if (folders.n == 0) {
		folders.owner = getpid();
		atexit(remove_folders);
	}
	folders.paths[folders.n++] = strdup(path);
}

const char *test_path(const char *folder, const char *name)
{
	static char path[8][512];
	static unsigned k;

	k = (k + 1) % 8;
	snprintf(path[k], sizeof(path[k]), "%s/%s", folder, name);
	return path[k];
}

void test_put_file(const char *path, const void *bytes, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, bytes, n) != (ssize_t)n || close(fd) < 0) {
		perror(path);
		fail();
	}
}

static bool is_asked_for(const struct test_row *row, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], row->name))
			return true;
	return argc == 1 && row->tier <= test_tier();
}

static bool has_test(const char *name)
{
	for (size_t i = 0; i < all.n; i++)
		if (!strcmp(all.rows[i].name, name))
			return true;
	fprintf(stderr, "no test \"%s\"; --list prints the names\n", name);
	return false;
}

/* The tests that run, in their order, and how many have begun. */
static struct {
	struct CMUnitTest tests[MAX_TESTS];
	const struct test_row *rows[MAX_TESTS];
	size_t n, begun;
	int open; /* descriptors before the test */
} chosen;

int test_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static int begin_test(void **state)
{
	const struct test_row *row = chosen.rows[chosen.begun++];

	if (chosen.begun == 1)
		taken.kept = taken.n;
	test_block_end(&taken.kept);
	chosen.open = test_descriptors();
	return row->setup ? row->setup(state) : 0;
}

static int end_test(void **state)
{
	const struct test_row *row = chosen.rows[chosen.begun - 1];
	int rc = row->teardown ? row->teardown(state) : 0, open;

	test_block_end(&taken.kept);
	open = test_descriptors();
	if (rc == 0 && open > chosen.open && !dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD)) { /* which keeps some for ever */
		print_error("%s leaves %d descriptors open\n", row->name, open - chosen.open);
		return -1;
	}
	return rc;
}

int main(int argc, char **argv)
{
	static const size_t nothing = 0;
	int rc;

	for (size_t i = 0; i < all.n_commands; i++)
		if (argc == 2 + all.commands[i].n_words && !strcmp(argv[1], all.commands[i].word))
			return all.commands[i].run(argv + 2);
	if (argc == 2 && !strcmp(argv[1], "--list")) {
		for (size_t i = 0; i < all.n; i++)
			printf("%s%s\n", all.rows[i].name, all.rows[i].tier == 2 ? " (tier 2)" : "");
		return 0;
	}
	for (int i = 1; i < argc; i++)
		if (!has_test(argv[i]))
			return 2;
	if (all.have && !all.have()) {
		printf("skipped: %s\n", all.need);
		return 77;
	}
	for (size_t i = 0; i < all.n; i++)
		if (is_asked_for(&all.rows[i], argc, argv)) {
			const struct test_row *row = &all.rows[i];

			chosen.rows[chosen.n] = row;
			chosen.tests[chosen.n++] = (struct CMUnitTest){row->name, row->function, begin_test, end_test, NULL};
		}
	if (chosen.n == 0) {
		printf("skipped: all tests of this program are of tier 2\n");
		return 77;
	}
	rc = _cmocka_run_group_tests(argv[0], chosen.tests, chosen.n, all.setup, all.teardown);
	test_block_end(&nothing);
	return rc ? 1 : 0;
}
