/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a large array: that of the process, or pages of a file without a name, which the kernel writes to disk. Of the
 * file only the pages that were used since the last stack_memory_leave() count as memory of the process. */
#ifndef TOMONODE_NODE_STACK_MEMORY_H
#define TOMONODE_NODE_STACK_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"

struct stack_memory {
	float *values; /* NULL: none */
	size_t mapped; /* bytes of the file; 0: memory of the process */
};

/* Make n floats, whose content is undefined. folder: of the file, which vanishes with the process; NULL: no file. keep_free: bytes
 * that the file leaves on its disk. ENOMEM; ENOSPC: both numbers are in the text. */
int stack_memory_make(size_t n, const char *folder, uint64_t keep_free, struct stack_memory *ret, struct err *err);
/* Give the pages of the file back; they are read again when they are used. Other threads may use them meanwhile. */
void stack_memory_leave(const struct stack_memory *m);
void stack_memory_free(struct stack_memory *m);

#endif
