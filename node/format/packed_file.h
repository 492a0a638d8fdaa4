/* SPDX-License-Identifier: Apache-2.0 */
/* Write bytes to a file, compressed or not, without holding them in memory. */
#ifndef TOMONODE_NODE_PACKED_FILE_H
#define TOMONODE_NODE_PACKED_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "node/base/atomic_file.h"

enum packing { PACKING_NONE, PACKING_GZIP, PACKING_ZLIB };

struct packed_file;

/* Begin to write behind what `file` has already; it is borrowed. NULL: only count the bytes. */
int packed_file_open(struct atomic_file *file, enum packing packing, struct packed_file **ret_file, struct err *err);
int packed_file_write(struct packed_file *p, const void *bytes, size_t n, struct err *err);
/* Write what is left, and return in *ret_bytes how many bytes were stored; it may be NULL. */
int packed_file_finish(struct packed_file *p, uint64_t *ret_bytes, struct err *err);
void packed_file_free(struct packed_file *p); /* accepts NULL */

#endif
