/* SPDX-License-Identifier: Apache-2.0 */
/* Which code a test runs: in a build with -fsanitize-coverage=trace-pc each basic block calls __sanitizer_cov_trace_pc(). This
 * marks its address, relative to the program, in the file $TOMONODE_TRACE/PROGRAM, which all processes of a test share: the marks
 * of a process that is killed are there, too. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE ((size_t)1 << 26) /* of the file, which has holes: more than a program's code */

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
static unsigned char *marks;

__attribute__((visibility("hidden"))) void __sanitizer_cov_trace_pc(void)
{
	uintptr_t at = (uintptr_t)__builtin_return_address(0) - (uintptr_t)__ehdr_start;
	if (marks && at < SIZE)
		marks[at] = 1;
}

#ifndef TRACE_NOTHING /* a shared object that is preloaded is not what is tested */
__attribute__((constructor)) static void open_trace(void)
{
	const char *folder = getenv("TOMONODE_TRACE");
	char self[4096] = "", path[8192];
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur < SIZE) /* a test of what a file may have */
		return;
	if (!folder || readlink("/proc/self/exe", self, sizeof self - 1) <= 0)
		return;
	snprintf(path, sizeof path, "%s/%s", folder, strrchr(self, '/') + 1);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		return;
	(void)fchmod(fd, 0666); /* the processes of a node can run as a different user */
	void *found = ftruncate(fd, SIZE) ? MAP_FAILED : mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (found != MAP_FAILED)
		marks = found;
	close(fd);
}
#endif
