/* SPDX-License-Identifier: Apache-2.0 */
/* Files that appear whole or not at all: synced before they get their name, then their folder; no part remains after a failure.
 * This program has its own fsync() and rename(), which the linker uses for the files under test, too. */
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "node/base/atomic_file.h"
#include "tests/test.h"

static char calls[8], folder[64], path[100], header[100];
static bool fail_sync, fail_rename;

static void record(char call)
{
	size_t n = strlen(calls);

	if (n + 1 < sizeof(calls))
		calls[n] = call;
}

int fsync(int fd)
{
	struct stat st;

	record(fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) ? 'd' : 'f');
	if (fail_sync) {
		errno = EIO;
		return -1;
	}
	return (int)syscall(SYS_fsync, fd);
}

int rename(const char *from, const char *to)
{
	record(header[0] && access(header, F_OK) == 0 ? 'R' : 'r');
	if (fail_rename) {
		errno = EACCES;
		return -1;
	}
	return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

static int entries(void)
{
	DIR *d = opendir(folder);
	int n = -2;

	while (d && readdir(d))
		n++;
	closedir(d);
	return n;
}

static int setup(void **state)
{
	test_folder(folder, sizeof(folder));
	snprintf(path, sizeof(path), "%s/file", folder);
	return 0;
}

static int teardown(void **state)
{
	unlink(path);
	return rmdir(folder);
}

TEST(test_order)
{
	struct err err = {0};

	memset(calls, 0, sizeof(calls));
	assert_int_equal(atomic_file_put(path, "text", 4, &err), 0);
	assert_string_equal(calls, "frd"); /* the file, its name, the folder */
	assert_int_equal(entries(), 1);
}

TEST(test_failures)
{
	struct rlimit old, small;
	static char bytes[5000];
	struct atomic_file *f = NULL;
	struct err err = {0};
	int ret;

	unlink(path);
	fail_sync = true;
	assert_int_equal(atomic_file_put(path, "text", 4, &err), -EIO);
	assert_int_equal(entries(), 0);
	fail_sync = false;
	fail_rename = true;
	assert_int_equal(atomic_file_put(path, "text", 4, &err), -EACCES);
	assert_int_equal(entries(), 0);
	fail_rename = false;
	assert_int_equal(atomic_file_open(path, &f, &err), 0);
	assert_int_equal(entries(), 1);
	atomic_file_abort(f);
	assert_int_equal(entries(), 0);
	/* a file system without space, as a limit of the size of a file */
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = (struct rlimit){1000, old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	ret = atomic_file_put(path, bytes, sizeof(bytes), &err);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(ret, -EFBIG);
	assert_int_equal(entries(), 0);
}

static void write_pair(const char *text, int expected)
{
	struct atomic_file *f[2] = {NULL};
	struct err err = {0};

	assert_int_equal(atomic_file_open(path, &f[0], &err), 0);
	assert_int_equal(atomic_file_open(header, &f[1], &err), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(atomic_file_write(f[i], text, strlen(text), &err), 0);
	memset(calls, 0, sizeof(calls));
	assert_int_equal(atomic_files_close(f, 2, &err), expected);
}

static void expect(const char *name, const char *text)
{
	char found[16] = "";
	FILE *f = fopen(name, "r");

	assert_non_null(f);
	assert_non_null(fgets(found, sizeof(found), f));
	fclose(f);
	assert_string_equal(found, text);
}

/* Whenever the process ends: a header has the files that it was written with. */
TEST(test_pair)
{
	unlink(path);
	snprintf(header, sizeof(header), "%s/header", folder);
	write_pair("one", 0);
	write_pair("two", 0);
	assert_string_equal(calls, "ffdrrd"); /* both files; the header is away; the names, the header's last; the folder */
	expect(path, "two");
	expect(header, "two");
	fail_sync = true;
	write_pair("three", -EIO);
	fail_sync = false;
	expect(path, "two");
	expect(header, "two");
	assert_int_equal(entries(), 2);
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	write_pair("three", -EISDIR);
	assert_string_equal(calls, "f");
	expect(header, "two");
	assert_int_equal(entries(), 2);
	assert_int_equal(rmdir(path), 0);
	unlink(header);
	header[0] = '\0';
}

TESTS_SETUP(setup, teardown);
