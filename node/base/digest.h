/* SPDX-License-Identifier: Apache-2.0 */
/* Digests of files in the spool: XXH3-128 as 32 hexadecimal digits. They detect accidental damage (disk, memory, an edited file);
 * they are no protection against an attacker. Every function may be called from any thread; one thread at a time may use a struct
 * digest.
 */
#ifndef TOMONODE_NODE_DIGEST_H
#define TOMONODE_NODE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"

#define DIGEST_SIZE 33	/* characters, with the terminating zero */
#define DIGEST_BYTES 16 /* most significant first */
#define DIGEST_PIECE ((uint64_t)8 << 20)

/* State of a digest whose bytes are added in several calls. */
struct digest;
struct digest *digest_create(void);	      /* NULL: no memory */
struct digest *digest_free(struct digest *d); /* takes NULL, returns NULL */
void digest_begin(struct digest *d);	      /* start a new digest */
void digest_add(struct digest *d, const void *bytes, size_t n);
void digest_end(const struct digest *d, char ret_hex[DIGEST_SIZE]);
void digest_end_bytes(const struct digest *d, unsigned char ret_hash[DIGEST_BYTES]);

/* Compute the digest of an open file from its current position to its end. `stopped` (may be NULL) is called repeatedly; if it
 * returns true, the call ends with ECANCELED. */
int digest_rest(int fd, bool (*stopped)(void *ctx), void *ctx, char ret_hex[DIGEST_SIZE], struct err *err);

/* Return true if a read that failed with this errno can be retried, because the cause is not a damaged file (no memory, no
 * descriptors, no permission, ECANCELED). */
bool digest_error_is_transient(int code);

/* Compute the digest of the piece of a file that begins at `at`. Returns 0 or the negative errno. */
int digest_piece(const char *path, uint64_t at, unsigned char ret_hash[DIGEST_BYTES]);

/* Compute the digests of whole files, read in parallel in pieces of 8 MiB. The digest of a file is that of the concatenated
 * digests of its pieces, each as 16 bytes, most significant first. If file i cannot be read, ret_hex[i] is "" and ret_code[i] the
 * errno; otherwise ret_code[i] is 0. threads: number of threads; 0: threads_available(). */
int digest_files(const char *const *paths, size_t n, int threads, char (*ret_hex)[DIGEST_SIZE], int *ret_code, struct err *err);

#endif
