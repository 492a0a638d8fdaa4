/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the fuzz targets: the two functions that libFuzzer (or tests/fuzz/replay.c) calls, a check, and an input that readers
 * of files get: a file in memory with a name in /proc. */
#ifndef TOMONODE_TESTS_FUZZ_H
#define TOMONODE_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Abort, which is a finding, unless it holds. */
static inline void must(bool holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "%s\n", what);
		abort();
	}
}

/* The file is created by the first fuzz_file_fill() and used again by the others; its name stays the same. */
struct fuzz_file {
	char path[64]; /* "": not created */
	int fd;
};

static inline void fuzz_file_fill(struct fuzz_file *f, const uint8_t *data, size_t size)
{
	if (!f->path[0]) {
		f->fd = memfd_create("fuzz", MFD_CLOEXEC);
		must(f->fd >= 0, "no memory file");
		snprintf(f->path, sizeof(f->path), "/proc/self/fd/%d", f->fd);
	}
	must(ftruncate(f->fd, 0) == 0 && pwrite(f->fd, data, size, 0) == (ssize_t)size, "the memory file is full");
}

#endif
