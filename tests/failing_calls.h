/* SPDX-License-Identifier: Apache-2.0 */
/* failing_calls.h - let the n-th call of a kind fail: memory, write(), close(), fsync(), rename(), ... Include it in one file of
 * a test program: it defines these functions, and the linker uses them for the program under test and for its libraries, too.
 *
 *     for (int n = 1; fail_calls(FAIL_CLOSE, n), rc = f(), fail_end(); n++)
 *             assert_true(rc < 0);
 *
 * fail_end() returns true if a call did fail: the loop ends after the first f() that makes fewer than n of them. It also counts
 * live allocations, for FAIL_MEMORY without sanitizers: see fail_allocations(); test_descriptors() counts open descriptors.
 *
 * Only descriptors that can be written count as close() and fclose(): nothing is lost when reading ends with an error. */
#ifndef TOMONODE_TESTS_FAILING_CALLS_H
#define TOMONODE_TESTS_FAILING_CALLS_H

#include <dlfcn.h>
#include <sys/syscall.h>

#include "tests/test.h"

enum fail_kind { FAIL_NONE, FAIL_WRITE, FAIL_CLOSE, FAIL_SYNC, FAIL_RENAME, FAIL_MEMORY };

static struct {
	enum fail_kind kind;
	int left; /* calls until the one that fails */
	bool failed;
	long live; /* allocations */
} fail;

static bool fail_now(enum fail_kind kind)
{
	if (fail.kind != kind || --fail.left != 0)
		return false;
	fail.failed = true;
	errno = kind == FAIL_MEMORY ? ENOMEM : kind == FAIL_WRITE ? ENOSPC : EIO;
	return true;
}

static inline void fail_calls(enum fail_kind kind, int n)
{
	fail.kind = kind;
	fail.left = n;
	fail.failed = false;
}

static inline bool fail_end(void)
{
	fail.kind = FAIL_NONE;
	return fail.failed;
}

static bool fail_is_written(int fd)
{
	int saved = errno, flags = fd < 0 ? O_RDONLY : fcntl(fd, F_GETFL);

	errno = saved;
	return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

ssize_t write(int fd, const void *bytes, size_t n)
{
	return fail_now(FAIL_WRITE) ? -1 : syscall(SYS_write, fd, bytes, n);
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
	return fail_now(FAIL_WRITE) ? -1 : syscall(SYS_pwrite64, fd, bytes, n, at);
}

int close(int fd)
{
	bool fails = fail.kind == FAIL_CLOSE && fail_is_written(fd) && fail_now(FAIL_CLOSE);
	int rc = (int)syscall(SYS_close, fd);

	if (!fails)
		return rc;
	errno = EIO;
	return -1;
}

int fsync(int fd)
{
	return fail_now(FAIL_SYNC) ? -1 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
	return fail_now(FAIL_SYNC) ? -1 : (int)syscall(SYS_fdatasync, fd);
}

int rename(const char *from, const char *to)
{
	return fail_now(FAIL_RENAME) ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
	return fail_now(FAIL_RENAME) ? -1 : (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, 0);
}

int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
	return fail_now(FAIL_RENAME) ? -1 : (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, flags);
}

/* What a stream still has in its buffer is written by fclose(): there a full disk shows, too. */
int fclose(FILE *f)
{
	static int (*real)(FILE *);
	bool written = fail_is_written(fileno(f)), fails;

	if (!real)
		real = (int (*)(FILE *))dlsym(RTLD_NEXT, "fclose");
	fails = written && (fail_now(FAIL_CLOSE) || fail_now(FAIL_WRITE));
	if (real(f) != 0 || fails) {
		errno = fails ? EIO : errno;
		return EOF;
	}
	return 0;
}

/* ---- memory ---- */

#if defined(__has_feature) /* clang */
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define FAIL_HAS_MEMORY false
#else
#define FAIL_HAS_MEMORY true

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t alignment, size_t n);
void __libc_free(void *p);

void *malloc(size_t n)
{
	void *p = fail_now(FAIL_MEMORY) ? NULL : __libc_malloc(n);

	fail.live += p != NULL;
	return p;
}

void *calloc(size_t n, size_t size)
{
	void *p = fail_now(FAIL_MEMORY) ? NULL : __libc_calloc(n, size);

	fail.live += p != NULL;
	return p;
}

void *realloc(void *old, size_t n)
{
	void *p = fail_now(FAIL_MEMORY) ? NULL : __libc_realloc(old, n);

	fail.live += !old && p;
	return p;
}

void *aligned_alloc(size_t alignment, size_t n)
{
	void *p = fail_now(FAIL_MEMORY) ? NULL : __libc_memalign(alignment, n);

	fail.live += p != NULL;
	return p;
}

int posix_memalign(void **ret, size_t alignment, size_t n)
{
	void *p = aligned_alloc(alignment, n);

	if (!p)
		return ENOMEM;
	*ret = p;
	return 0;
}

void free(void *p)
{
	int saved = errno;

	fail.live -= p != NULL;
	__libc_free(p);
	errno = saved;
}
#endif

static inline long fail_allocations(void)
{
	return fail.live;
}

#endif
