/* SPDX-License-Identifier: Apache-2.0 */
/* The digest of a file (digest_files()) while it is written: the bytes are hashed from memory, and the file is not read again.
 *
 * - Large runs of bytes are hashed by a thread of the stream while the caller writes them.
 * - Bytes that are written over later (the offset table of encapsulated frames) make their piece of 8 MiB invalid; only such
 *   pieces are read from the file at the end.
 */
#ifndef TOMONODE_NODE_DIGEST_STREAM_H
#define TOMONODE_NODE_DIGEST_STREAM_H

#include "node/base/digest.h"

struct digest_stream;
struct digest_stream *digest_stream_create(void);		   /* NULL: no memory */
struct digest_stream *digest_stream_free(struct digest_stream *s); /* takes NULL, returns NULL */

/* The bytes of the file at offset `at`, in order from 0, or again below that, also partly. They must not change before
 * digest_stream_wait(). One thread at a time may call. */
void digest_stream_add(struct digest_stream *s, uint64_t at, const void *bytes, size_t n);
void digest_stream_wait(struct digest_stream *s);
/* Return the digest of the file, which has been written to `path`. Errors: those of reading it, ENOMEM. */
int digest_stream_end(struct digest_stream *s, const char *path, char ret_hex[DIGEST_SIZE], struct err *err);

#endif
