/* SPDX-License-Identifier: Apache-2.0 */
/* Files over a link: FILE (which, from where on) and its DATA. The receiver says with HAVE how many bytes of each file it has, so
 * that an interrupted transfer continues where it ended. */
#ifndef TOMONODE_NODE_TRANSFER_H
#define TOMONODE_NODE_TRANSFER_H

#include "node/cluster/link.h"

/* Write path and size of file i. */
typedef int transfer_file(void *ctx, size_t i, char *ret_path, size_t size, int64_t *ret_bytes, struct err *err);

/* The sender. Start with {.n, .offsets, .file, .ctx, .fd = -1}; n_offsets must be n. */
struct transfer_out {
	size_t n, index;
	const int64_t *offsets; /* bytes of each file that the other end has; beyond the file's size: all */
	transfer_file *file;
	void *ctx;
	int fd;
	int64_t at, bytes;
	void *buffer; /* of WIRE_DATA_MAX bytes */
};

/* Queue data until the link has enough. 1: everything is queued; 0: call again when the queue is shorter. EBADMSG: a file is
 * shorter than its recorded size. */
int transfer_out_step(struct transfer_out *t, struct link *l, struct err *err);
void transfer_out_end(struct transfer_out *t);

/* The receiver. Start with {.fd = -1}. */
struct transfer_in {
	int fd;
	int64_t at, bytes;
};

/* A message FILE: the next data belong to `path`, of `bytes` bytes in the end, from `offset` on. EBADMSG: it has fewer bytes. 1:
 * it is complete already, and closed: no data follow. */
int transfer_in_begin(struct transfer_in *t, const char *path, int64_t offset, int64_t bytes, struct err *err);
/* 1: the file is complete, on disk if `sync`, and closed; 0: more is to come. */
int transfer_in_data(struct transfer_in *t, const void *data, size_t n, bool sync, struct err *err);
void transfer_in_end(struct transfer_in *t);

/* Allocate a HAVE for n files. `suffix` is appended to their paths. *ret_missing: number of files that are not complete. */
int transfer_have(transfer_file *file, void *ctx, size_t n, const char *suffix, int64_t **ret_offsets, size_t *ret_missing,
		  struct err *err);

#endif
