/* SPDX-License-Identifier: Apache-2.0 */
/* Every name under which a program opens, syncs and changes files: they lead to open_at(), sync_by(), unlinkat() ..., which the file
 * that includes this defines before or behind it. The C library has the same functions also for 64-bit offsets and for hardened
 * builds. */
#ifndef TOMONODE_TESTS_OPEN_CALLS_H
#define TOMONODE_TESTS_OPEN_CALLS_H

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_at(int at, const char *name, int flags, unsigned mode);
static int sync_by(long call, int fd);

#define OPEN_BY(at, name, flags)                                                                                                 \
	va_list list;                                                                                                            \
	unsigned mode;                                                                                                           \
                                                                                                                                 \
	va_start(list, flags);                                                                                                   \
	mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, unsigned) : 0;                                                     \
	va_end(list);                                                                                                            \
	return open_at(at, name, flags, mode)

int open(const char *name, int flags, ...)
{
	OPEN_BY(AT_FDCWD, name, flags);
}

int openat(int at, const char *name, int flags, ...)
{
	OPEN_BY(at, name, flags);
}

int __open_2(const char *name, int flags);
int __openat_2(int at, const char *name, int flags);

int __open_2(const char *name, int flags)
{
	return open_at(AT_FDCWD, name, flags, 0);
}

int __openat_2(int at, const char *name, int flags)
{
	return open_at(at, name, flags, 0);
}

int fsync(int fd)
{
	return sync_by(SYS_fsync, fd);
}

int fdatasync(int fd)
{
	return sync_by(SYS_fdatasync, fd);
}

int rename(const char *from, const char *to)
{
	return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

int unlink(const char *name)
{
	return unlinkat(AT_FDCWD, name, 0);
}

int rmdir(const char *name)
{
	return unlinkat(AT_FDCWD, name, AT_REMOVEDIR);
}

int open64(const char *, int, ...) __attribute__((alias("open")));
int openat64(int, const char *, int, ...) __attribute__((alias("openat")));
int __open64_2(const char *, int) __attribute__((alias("__open_2")));
int __openat64_2(int, const char *, int) __attribute__((alias("__openat_2")));

/* The calls that the file itself defines. */
#define FILE_CALLS_64                                                                                                            \
	int ftruncate64(int, off_t) __attribute__((alias("ftruncate")));                                                         \
	int fallocate64(int, int, off_t, off_t) __attribute__((alias("fallocate")));                                             \
	ssize_t pwrite64(int, const void *, size_t, off_t) __attribute__((alias("pwrite")))

#endif
