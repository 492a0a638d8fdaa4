/* SPDX-License-Identifier: Apache-2.0 */
/* fail_call.c - a library for LD_PRELOAD: it counts the calls of a program by their kind, from the begin of its main(), and lets
 * the N-th one of a kind fail. Not those of its children.
 *
 * - FAIL_CALL_LOG: a file to which a line is appended for each counted call, "KIND NUMBER PATH"; with FAIL_CALL set only for a
 *   call that fails. Of allocations only the last one, or with FAIL_CALL_STACKS each whose stack of callers is a new one.
 * - FAIL_CALL_PART: only calls on paths that contain this text count. Calls without a path (malloc, library, fork, thread) always
 * do. malloc: an allocation of the program itself; library: one of a library, also for the program's C++ (operator new).
 * - FAIL_CALL: "KIND NUMBER ERRNO HOW". HOW: 1: this call fails; 2: this one and all later ones on
 *   its path. With the errno 0 a write or a
 * read handles only half of its bytes, which is no error.
 * - A close or a sync that fails loses the second half of the file: that is what such an error says. So a program that passes
 * over the error has another file than without it.
 * - FAIL_CALL_TIME: seconds since 1970 at which the wall clock stands still, so that two runs write the same times.
 * - The streams of fopen() and fdopen() are made here, because the C library's own do not call what is preloaded. Not seen: mmap,
 *   tmpfile(), fts.
 */
#undef _FORTIFY_SOURCE
#undef _FILE_OFFSET_BITS
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "tests/preload/open_calls.h"

#define PATH_SIZE 4096
#define LOG_FD 60 /* above the descriptors that the programs use */
#define FILES_MAX 1024
#define STACKS_MAX 65536 /* a power of two */
#define DEPTH 10	 /* of a stack: the callers that make a call another one */

enum kind { CREATE, OPEN, WRITE, READ, CLOSE, SYNC, RENAME, LINK, UNLINK, MKDIR, MALLOC, LIBRARY, FORK, THREAD, KINDS };

static const char *const names[KINDS] = {"create", "open",   "write", "read",	"close",   "sync", "rename",
					 "link",   "unlink", "mkdir", "malloc", "library", "fork", "thread"};

static _Atomic unsigned counts[KINDS];
static int log_fd = -1, failing = -1, error, how;
static unsigned number;
static char part[PATH_SIZE], failed_path[PATH_SIZE];
static pid_t process;
static uintptr_t text_begin, text_size; /* of the program */
static time_t standing;			/* wall clock, 0: it runs */
static bool counting, by_stack;
static _Atomic uint64_t stacks[STACKS_MAX];
static __thread bool inside __attribute__((tls_model("initial-exec")));
static FILE *_Atomic streams[FILES_MAX]; /* of the descriptor */

__attribute__((constructor)) static void begin(void)
{
	const char *what = getenv("FAIL_CALL"), *log = getenv("FAIL_CALL_LOG"), *text = getenv("FAIL_CALL_PART");
	char kind[16];
	void *frame;
	int fd;

	if (!log || !text || strlen(text) >= sizeof(part))
		return;
	fd = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	log_fd = fcntl(fd, F_DUPFD_CLOEXEC, LOG_FD);
	syscall(SYS_close, fd);
	strcpy(part, text);
	process = getpid();
	if (what && sscanf(what, "%15s %u %d %d", kind, &number, &error, &how) == 4)
		for (int i = 0; i < KINDS; i++)
			if (!strcmp(kind, names[i]))
				failing = i;
	by_stack = getenv("FAIL_CALL_STACKS") != NULL;
	standing = getenv("FAIL_CALL_TIME") ? atol(getenv("FAIL_CALL_TIME")) : 0;
	unsetenv("FAIL_CALL_LOG"); /* of the programs that this one starts */
	backtrace(&frame, 1);	   /* loads a library at its first call */
}

static void put_line(enum kind kind, unsigned n, const char *path);

__attribute__((destructor)) static void end(void)
{
	if (counting && failing < 0 && !by_stack && getpid() == process) {
		put_line(MALLOC, counts[MALLOC], "");
		put_line(LIBRARY, counts[LIBRARY], "");
	}
}

static void put_line(enum kind kind, unsigned n, const char *path)
{
	char line[PATH_SIZE + 64];
	int size = snprintf(line, sizeof(line), "%s %u %s\n", names[kind], n, path);

	if (syscall(SYS_write, log_fd, line, size) != size)
		abort(); /* an incomplete log would be worse than none */
}

/* Whether no call came from this stack of callers before. */
static bool is_new_stack(void)
{
	void *frames[DEPTH + 3];
	int n = backtrace(frames, DEPTH + 3);
	uint64_t hash = 1469598103934665603u, none;

	for (int i = 3; i < n; i++)
		hash = (hash ^ (uintptr_t)frames[i]) * 1099511628211u;
	for (unsigned i = 0; i < STACKS_MAX; i++) {
		_Atomic uint64_t *at = &stacks[(hash + i) % STACKS_MAX];

		none = 0;
		if (atomic_compare_exchange_strong(at, &none, hash))
			return true;
		if (none == hash)
			return false;
	}
	return false;
}

/* Count a call; whether it is to fail, with errno set (0: half of the bytes). */
static bool fails(enum kind kind, const char *path)
{
	int code = errno;
	bool due;
	unsigned n;

	if (!counting || inside || getpid() != process || (path && !strstr(path, part)))
		return false;
	inside = true;
	n = atomic_fetch_add(&counts[kind], 1) + 1;
	due = (int)kind == failing && (n == number || (how == 2 && failed_path[0] && path && !strcmp(path, failed_path)));
	if (due && path)
		snprintf(failed_path, sizeof(failed_path), "%s", path);
	if (due || (failing < 0 && ((kind != MALLOC && kind != LIBRARY) || (by_stack && is_new_stack()))))
		put_line(kind, n, path ? path : "");
	inside = false;
	errno = due ? error : code;
	return due;
}

static bool path_of_fd(int fd, char ret_path[PATH_SIZE])
{
	char link[32];
	int code = errno;
	ssize_t n;

	if (!counting)
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = syscall(SYS_readlinkat, AT_FDCWD, link, ret_path, PATH_SIZE - 1);
	errno = code;
	if (n <= 0)
		return false;
	ret_path[n] = '\0';
	return ret_path[0] == '/';
}

static bool fails_at(enum kind kind, int at, const char *name)
{
	char path[2 * PATH_SIZE];

	if (name[0] == '/' || at == AT_FDCWD || !path_of_fd(at, path))
		return fails(kind, name);
	snprintf(path + strlen(path), PATH_SIZE, "/%s", name);
	return fails(kind, path);
}

static bool fails_fd(enum kind kind, int fd)
{
	char path[PATH_SIZE];

	return path_of_fd(fd, path) && fails(kind, path);
}

static bool is_written(int fd)
{
	int code = errno, flags = fcntl(fd, F_GETFL);

	errno = code;
	return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

static void lose_half(int fd)
{
	struct stat st;
	int code = errno;

	if (is_written(fd) && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		syscall(SYS_ftruncate, fd, st.st_size / 2);
	errno = code;
}

/* ---- the program begins ---- */

static int (*main_of_program)(int, char **, char **);

/* The first object is the program. */
static int find_text(struct dl_phdr_info *info, size_t size, void *ctx)
{
	(void)size;
	(void)ctx;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
			text_begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
			text_size = info->dlpi_phdr[i].p_memsz;
		}
	return 1;
}

static int counted_main(int n, char **words, char **variables)
{
	dl_iterate_phdr(find_text, NULL);
	counting = log_fd >= 0;
	return main_of_program(n, words, variables);
}

int __libc_start_main(int (*program)(int, char **, char **), int n, char **words, void (*first)(void), void (*last)(void),
		      void (*linker)(void), void *stack);

int __libc_start_main(int (*program)(int, char **, char **), int n, char **words, void (*first)(void), void (*last)(void),
		      void (*linker)(void), void *stack)
{
	__typeof__(&__libc_start_main) next = (__typeof__(next))dlsym(RTLD_NEXT, "__libc_start_main");

	main_of_program = program;
	return next(counted_main, n, words, first, last, linker, stack);
}

/* ---- files ---- */

static int open_at(int at, const char *name, int flags, unsigned mode)
{
	bool writes = flags & (O_CREAT | O_TRUNC) || (flags & O_ACCMODE) != O_RDONLY;

	if (fails_at(writes ? CREATE : OPEN, at, name))
		return -1;
	return (int)syscall(SYS_openat, at, name, flags, mode);
}

DIR *opendir(const char *name)
{
	DIR *(*next)(const char *) = (DIR * (*)(const char *)) dlsym(RTLD_NEXT, "opendir");

	return fails(OPEN, name) ? NULL : next(name);
}

int mkstemp(char *pattern)
{
	int (*next)(char *) = (int (*)(char *))dlsym(RTLD_NEXT, "mkstemp");

	return fails(CREATE, pattern) ? -1 : next(pattern);
}

char *mkdtemp(char *pattern)
{
	char *(*next)(char *) = (char *(*)(char *))dlsym(RTLD_NEXT, "mkdtemp");

	return fails(MKDIR, pattern) ? NULL : next(pattern);
}

/* Whether a write or a read fails; if not, *n may become half of it. */
static bool fails_bytes(enum kind kind, int fd, size_t *n)
{
	if (!fails_fd(kind, fd))
		return false;
	*n = errno ? *n : (*n + 1) / 2;
	return errno != 0;
}

ssize_t write(int fd, const void *bytes, size_t n)
{
	return fails_bytes(WRITE, fd, &n) ? -1 : syscall(SYS_write, fd, bytes, n);
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
	return fails_bytes(WRITE, fd, &n) ? -1 : syscall(SYS_pwrite64, fd, bytes, n, at);
}

int ftruncate(int fd, off_t size)
{
	return fails_fd(WRITE, fd) && errno ? -1 : (int)syscall(SYS_ftruncate, fd, size);
}

int fallocate(int fd, int mode, off_t at, off_t n)
{
	return fails_fd(WRITE, fd) && errno ? -1 : (int)syscall(SYS_fallocate, fd, mode, at, n);
}

ssize_t read(int fd, void *bytes, size_t n)
{
	return fails_bytes(READ, fd, &n) ? -1 : syscall(SYS_read, fd, bytes, n);
}

ssize_t __read_chk(int fd, void *bytes, size_t n, size_t room);

ssize_t __read_chk(int fd, void *bytes, size_t n, size_t room)
{
	if (n > room)
		abort();
	return read(fd, bytes, n);
}

ssize_t pread(int fd, void *bytes, size_t n, off_t at)
{
	return fails_bytes(READ, fd, &n) ? -1 : syscall(SYS_pread64, fd, bytes, n, at);
}

int close(int fd)
{
	bool failed = is_written(fd) && fails_fd(CLOSE, fd);
	int code = errno, ret;

	if (failed)
		lose_half(fd);
	ret = (int)syscall(SYS_close, fd);
	if (!failed)
		return ret;
	errno = code;
	return -1;
}

static int sync_by(long call, int fd)
{
	if (!fails_fd(SYNC, fd))
		return (int)syscall(call, fd);
	lose_half(fd);
	return -1;
}

/* ---- streams ---- */

static int fd_of(void *cookie)
{
	return (int)(intptr_t)cookie - 1;
}

static ssize_t read_stream(void *cookie, char *bytes, size_t n)
{
	return read(fd_of(cookie), bytes, n);
}

static ssize_t write_stream(void *cookie, const char *bytes, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t part_done = write(fd_of(cookie), bytes + done, n - done);

		if (part_done < 0)
			break;
		done += (size_t)part_done;
	}
	return (ssize_t)done;
}

static int seek_stream(void *cookie, off64_t *at, int from)
{
	off_t ret = lseek(fd_of(cookie), *at, from);

	*at = ret;
	return ret < 0 ? -1 : 0;
}

static int close_stream(void *cookie)
{
	atomic_store(&streams[fd_of(cookie)], NULL);
	return close(fd_of(cookie));
}

FILE *fdopen(int fd, const char *mode)
{
	static FILE *(*next)(int, const char *);
	cookie_io_functions_t functions = {read_stream, write_stream, seek_stream, close_stream};
	char path[PATH_SIZE];
	FILE *f;

	if (!path_of_fd(fd, path) || !strstr(path, part) || fd >= FILES_MAX) {
		next = (FILE * (*)(int, const char *)) dlsym(RTLD_NEXT, "fdopen");
		return next(fd, mode);
	}
	f = fopencookie((void *)(intptr_t)(fd + 1), mode, functions);
	if (f)
		atomic_store(&streams[fd], f);
	return f;
}

FILE *fopen(const char *path, const char *mode)
{
	int access = mode[0] == 'r' ? O_RDONLY : O_WRONLY, code, fd;
	FILE *f;

	access = strchr(mode, '+') ? O_RDWR : access;
	access |= mode[0] == 'w' ? O_CREAT | O_TRUNC : mode[0] == 'a' ? O_CREAT | O_APPEND : 0;
	access |= (strchr(mode, 'e') ? O_CLOEXEC : 0) | (strchr(mode, 'x') ? O_EXCL : 0);
	fd = open_at(AT_FDCWD, path, access, 0666);
	if (fd < 0)
		return NULL;
	f = fdopen(fd, mode);
	if (!f) {
		code = errno;
		syscall(SYS_close, fd);
		errno = code;
	}
	return f;
}

int fileno(FILE *f)
{
	int (*next)(FILE *) = (int (*)(FILE *))dlsym(RTLD_NEXT, "fileno");

	for (int fd = 0; fd < FILES_MAX; fd++)
		if (atomic_load(&streams[fd]) == f)
			return fd;
	return next(f);
}

/* ---- names ---- */

int renameat(int from_at, const char *from, int to_at, const char *to)
{
	return fails_at(RENAME, to_at, to) ? -1 : (int)syscall(SYS_renameat2, from_at, from, to_at, to, 0);
}

int linkat(int from_at, const char *from, int to_at, const char *to, int flags)
{
	return fails_at(LINK, to_at, to) ? -1 : (int)syscall(SYS_linkat, from_at, from, to_at, to, flags);
}

int link(const char *from, const char *to)
{
	return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int symlink(const char *from, const char *to)
{
	return fails(LINK, to) ? -1 : (int)syscall(SYS_symlinkat, from, AT_FDCWD, to);
}

int unlinkat(int at, const char *name, int flags)
{
	return fails_at(UNLINK, at, name) ? -1 : (int)syscall(SYS_unlinkat, at, name, flags);
}

int remove(const char *name)
{
	struct stat st;
	bool folder = lstat(name, &st) == 0 && S_ISDIR(st.st_mode);

	return unlinkat(AT_FDCWD, name, folder ? AT_REMOVEDIR : 0);
}

int mkdirat(int at, const char *name, mode_t mode)
{
	return fails_at(MKDIR, at, name) ? -1 : (int)syscall(SYS_mkdirat, at, name, mode);
}

int mkdir(const char *name, mode_t mode)
{
	return mkdirat(AT_FDCWD, name, mode);
}

/* ---- memory ---- */

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

/* Whether an allocation fails that returns to this address. */
static bool memory_fails(const void *caller)
{
	return fails((uintptr_t)caller - text_begin < text_size ? MALLOC : LIBRARY, NULL);
}

void *malloc(size_t n)
{
	return memory_fails(__builtin_return_address(0)) ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t each)
{
	return memory_fails(__builtin_return_address(0)) ? NULL : __libc_calloc(n, each);
}

void *realloc(void *old, size_t n)
{
	return n > 0 && memory_fails(__builtin_return_address(0)) ? NULL : __libc_realloc(old, n);
}

void *memalign(size_t align, size_t n);

void *memalign(size_t align, size_t n)
{
	return memory_fails(__builtin_return_address(0)) ? NULL : __libc_memalign(align, n);
}

void *aligned_alloc(size_t align, size_t n)
{
	return memory_fails(__builtin_return_address(0)) ? NULL : __libc_memalign(align, n);
}

int posix_memalign(void **ret, size_t align, size_t n)
{
	void *p = memory_fails(__builtin_return_address(0)) ? NULL : __libc_memalign(align, n);

	if (!p)
		return ENOMEM;
	*ret = p;
	return 0;
}

/* ---- processes and threads ---- */

pid_t fork(void)
{
	pid_t (*next)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork");

	return fails(FORK, NULL) ? -1 : next();
}

int posix_spawn(pid_t *ret, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *how_to,
		char *const words[], char *const variables[])
{
	__typeof__(&posix_spawn) next = (__typeof__(next))dlsym(RTLD_NEXT, "posix_spawn");

	return fails(FORK, NULL) ? errno : next(ret, path, actions, how_to, words, variables);
}

int pthread_create(pthread_t *ret, const pthread_attr_t *how_to, void *(*run)(void *), void *ctx)
{
	__typeof__(&pthread_create) next = (__typeof__(next))dlsym(RTLD_NEXT, "pthread_create");

	return fails(THREAD, NULL) ? errno : next(ret, how_to, run, ctx);
}

/* ---- the wall clock ---- */

int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	if (!standing || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
		return (int)syscall(SYS_clock_gettime, clock, ret_time);
	*ret_time = (struct timespec){.tv_sec = standing};
	return 0;
}

int gettimeofday(struct timeval *restrict ret_time, void *restrict zone)
{
	struct timespec t = {0};
	int ret = clock_gettime(CLOCK_REALTIME, &t);

	(void)zone;
	*ret_time = (struct timeval){t.tv_sec, t.tv_nsec / 1000};
	return ret;
}

time_t time(time_t *ret_time)
{
	struct timespec t = {0};

	clock_gettime(CLOCK_REALTIME, &t);
	if (ret_time)
		*ret_time = t.tv_sec;
	return t.tv_sec;
}

FILE_CALLS_64;
int mkstemp64(char *) __attribute__((alias("mkstemp")));
ssize_t pread64(int, void *, size_t, off_t) __attribute__((alias("pread")));
FILE *fopen64(const char *, const char *) __attribute__((alias("fopen")));
