/* SPDX-License-Identifier: Apache-2.0 */
/* record_io.c - a library for LD_PRELOAD: it records the calls of a process and its children that change files below a folder,
 * the calls that sync them, and the bytes that are sent to sockets, in one file and in one order for all processes.
 *
 * - RECORD_IO_FILE: the record, to which each call appends one record by one write() (O_APPEND), so that the order of the records
 *   is that of the writes for all processes. RECORD_IO_FOLDER: the folder, an absolute path without symbolic links.
 * - A call that changes a file is recorded after it; a sync before and after it (it covers what was recorded before its begin); a
 *   send before it. So a state that is computed from the records up to any one contains no sync too early and no send too late.
 * - Paths are read from /proc/self/fd, which works in every sandbox of the node. The descriptor of the record is opened
 *   before main(), and again after each exec.
 * - RECORD_IO_FAULT: a file with a struct fault. If it is armed, the next call of this kind below a path that contains `part`,
 * and of a write the one that reaches `byte`, fails with `error`, once.
 * - Not seen: stdio, mmap. tests/system/tools/power_tools.py compares the record with the files.
 */
#undef _FORTIFY_SOURCE
#undef _FILE_OFFSET_BITS
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/preload/open_calls.h"

#define RECORD_FD 60 /* below every limit of descriptors, above those that the programs use */
#define SENT_MAX 512 /* bytes of a send that are recorded: more than a response */
#define PATH_SIZE 1024

/* Kinds of records. `at` and `size`: offset and length of a write, 0 and the length of a truncation, descriptor and length of a
 * send. */
enum kind {
	OPENED = 'O', /* with O_CREAT or O_TRUNC, the flags in `at` */
	WRITTEN = 'W',
	TRUNCATED = 'T',
	EXTENDED = 'E', /* to at least `size` bytes */
	SYNC_BEGUN = 's',
	SYNCED = 'S',
	FOLDER_SYNCED = 'F', /* of faults only */
	RENAMED = 'R',
	UNLINKED = 'U',
	FOLDER_MADE = 'D',
	FOLDER_REMOVED = 'd',
	SENT = 'N',
	SENT_LESS = 'n', /* the send before returned `size` */
};

struct record {
	uint32_t bytes; /* of the whole record: this structure, path, second path, data */
	uint32_t kind;
	int32_t process, thread;
	int64_t at, size;
	uint32_t n_path, n_second, n_data;
	uint32_t pad;
};

struct fault {
	_Atomic int32_t armed;
	int32_t error;	/* errno */
	int32_t kind;	/* WRITTEN, SYNCED (of a file) or FOLDER_SYNCED */
	int32_t spared; /* a process whose calls do not fail */
	int64_t byte;
	char part[64];
};

static int record_fd = -1;
static char folder[PATH_SIZE];
static size_t n_folder;
static struct fault *fault;

static void map_fault(const char *path)
{
	int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0) : -1;
	void *p;

	if (fd < 0)
		return;
	p = mmap(NULL, sizeof(*fault), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p != MAP_FAILED)
		fault = p;
	close(fd);
}

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("RECORD_IO_FILE"), *below = getenv("RECORD_IO_FOLDER");
	int fd;

	if (!path || !below || strlen(below) >= sizeof(folder))
		return;
	fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	strcpy(folder, below);
	n_folder = strlen(folder);
	record_fd = fcntl(fd, F_DUPFD_CLOEXEC, RECORD_FD);
	close(fd);
	map_fault(getenv("RECORD_IO_FAULT"));
}

static int is_below(const char *path)
{
	return record_fd >= 0 && !strncmp(path, folder, n_folder) && (path[n_folder] == '/' || !path[n_folder]);
}

static void put(enum kind kind, int64_t at, int64_t size, const char *path, const char *second, const void *data, size_t n_data)
{
	struct record r = {.kind = kind,
			   .process = (int32_t)getpid(),
			   .thread = (int32_t)syscall(SYS_gettid),
			   .at = at,
			   .size = size,
			   .n_path = (uint32_t)strlen(path),
			   .n_second = (uint32_t)strlen(second),
			   .n_data = (uint32_t)n_data};
	struct iovec parts[] = {{&r, sizeof(r)}, {(void *)path, r.n_path}, {(void *)second, r.n_second}, {(void *)data, n_data}};
	int code = errno;

	r.bytes = (uint32_t)(sizeof(r) + r.n_path + r.n_second + n_data);
	if (syscall(SYS_writev, record_fd, parts, 4) != (long)r.bytes)
		abort(); /* an incomplete record would be worse than none */
	errno = code;
}

/* The path of a descriptor below the folder; 0: it is not there, or was removed. */
static int path_of_fd(int fd, char ret_path[PATH_SIZE])
{
	static const char removed[] = " (deleted)";
	char link[32];
	size_t m = sizeof(removed) - 1;
	int code = errno;
	ssize_t n;

	if (record_fd < 0)
		return 0;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, ret_path, PATH_SIZE - 1);
	errno = code;
	if (n <= 0)
		return 0;
	ret_path[n] = '\0';
	return is_below(ret_path) && !((size_t)n > m && !strcmp(ret_path + n - m, removed));
}

/* The path of a name in an open folder (AT_FDCWD: as it is); 0: not below the folder. */
static int path_of_name(int at, const char *name, char ret_path[PATH_SIZE])
{
	if (name[0] == '/' || at == AT_FDCWD)
		return snprintf(ret_path, PATH_SIZE, "%s", name) < PATH_SIZE && is_below(ret_path);
	if (!path_of_fd(at, ret_path))
		return 0;
	return strlen(ret_path) + strlen(name) + 1 < PATH_SIZE && strcat(strcat(ret_path, "/"), name) != NULL;
}

/* The errno of a call that is to fail, 0: none. */
static int fault_of(enum kind kind, const char *path, int64_t end)
{
	int one = 1;

	if (!fault || atomic_load(&fault->armed) != 1 || fault->kind != (int32_t)kind || fault->spared == getpid())
		return 0;
	if (!strstr(path, fault->part) || end <= fault->byte)
		return 0;
	return atomic_compare_exchange_strong(&fault->armed, &one, 0) ? fault->error : 0;
}

static int failed(int code)
{
	errno = code;
	return -1;
}

/* ---- files ---- */

static int open_at(int at, const char *name, int flags, unsigned mode)
{
	int fd = (int)syscall(SYS_openat, at, name, flags, mode);
	char path[PATH_SIZE];

	if (fd >= 0 && flags & (O_CREAT | O_TRUNC) && path_of_fd(fd, path))
		put(OPENED, flags, 0, path, "", "", 0);
	return fd;
}

static ssize_t write_at(int fd, const void *bytes, size_t n, int64_t at)
{
	char path[PATH_SIZE];
	int known = path_of_fd(fd, path), code;
	int64_t from = at >= 0 || !known ? at : lseek(fd, 0, SEEK_CUR);
	ssize_t done;

	code = known ? fault_of(WRITTEN, path, from + (int64_t)n) : 0;
	if (code)
		return failed(code);
	done = at < 0 ? syscall(SYS_write, fd, bytes, n) : syscall(SYS_pwrite64, fd, bytes, n, at);
	if (known && done > 0)
		put(WRITTEN, from, done, path, "", bytes, (size_t)done);
	return done;
}

ssize_t write(int fd, const void *bytes, size_t n)
{
	return write_at(fd, bytes, n, -1);
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
	return write_at(fd, bytes, n, at);
}

int ftruncate(int fd, off_t size)
{
	int ret = (int)syscall(SYS_ftruncate, fd, size);
	char path[PATH_SIZE];

	if (ret == 0 && path_of_fd(fd, path))
		put(TRUNCATED, 0, size, path, "", "", 0);
	return ret;
}

int fallocate(int fd, int mode, off_t at, off_t n)
{
	int ret = (int)syscall(SYS_fallocate, fd, mode, at, n);
	char path[PATH_SIZE];

	if (ret == 0 && mode == 0 && path_of_fd(fd, path))
		put(EXTENDED, 0, at + n, path, "", "", 0);
	return ret;
}

int posix_fallocate(int fd, off_t at, off_t n)
{
	return fallocate(fd, 0, at, n) == 0 ? 0 : errno;
}

static int is_folder(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
}

static int sync_by(long call, int fd)
{
	char path[PATH_SIZE];
	int known = path_of_fd(fd, path), code = known ? fault_of(is_folder(fd) ? FOLDER_SYNCED : SYNCED, path, 1) : 0, ret;

	if (code)
		return failed(code);
	if (known)
		put(SYNC_BEGUN, 0, 0, path, "", "", 0);
	ret = (int)syscall(call, fd);
	if (known && ret == 0)
		put(SYNCED, 0, 0, path, "", "", 0);
	return ret;
}

/* ---- names ---- */

int renameat(int from_at, const char *from, int to_at, const char *to)
{
	char a[PATH_SIZE], b[PATH_SIZE];
	int known = path_of_name(from_at, from, a) && path_of_name(to_at, to, b);
	int ret = (int)syscall(SYS_renameat2, from_at, from, to_at, to, 0);

	if (ret < 0 && errno == ENOSYS)
		ret = (int)syscall(SYS_renameat, from_at, from, to_at, to);
	if (ret == 0 && known)
		put(RENAMED, 0, 0, a, b, "", 0);
	return ret;
}

int unlinkat(int at, const char *name, int flags)
{
	char path[PATH_SIZE];
	int known = path_of_name(at, name, path), ret = (int)syscall(SYS_unlinkat, at, name, flags);

	if (ret == 0 && known)
		put(flags & AT_REMOVEDIR ? FOLDER_REMOVED : UNLINKED, 0, 0, path, "", "", 0);
	return ret;
}

int mkdir(const char *name, mode_t mode)
{
	char path[PATH_SIZE];
	int known = path_of_name(AT_FDCWD, name, path), ret = (int)syscall(SYS_mkdirat, AT_FDCWD, name, mode);

	if (ret == 0 && known)
		put(FOLDER_MADE, 0, 0, path, "", "", 0);
	return ret;
}

/* ---- sockets ---- */

ssize_t send(int fd, const void *bytes, size_t n, int flags)
{
	ssize_t ret;

	if (record_fd >= 0)
		put(SENT, fd, (int64_t)n, "", "", bytes, n < SENT_MAX ? n : SENT_MAX);
	ret = syscall(SYS_sendto, fd, bytes, n, flags, NULL, 0);
	if (record_fd >= 0 && ret != (ssize_t)n)
		put(SENT_LESS, fd, ret > 0 ? ret : 0, "", "", "", 0);
	return ret;
}

FILE_CALLS_64;
int posix_fallocate64(int, off_t, off_t) __attribute__((alias("posix_fallocate")));
