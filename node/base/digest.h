/* Digests of what lies in the spool: XXH3-128, as 32 hexadecimal digits. They find damage, not intent: bits that a disk, a memory
 * or a hand changed. Each function may be called from any thread; a struct digest is one thread's.
 */
#ifndef TOMONODE_NODE_DIGEST_H
#define TOMONODE_NODE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/err.h"

#define DIGEST_SIZE 33

/* Of bytes as they come. */
struct digest;
struct digest *digest_create(void);	      /* NULL: no memory */
struct digest *digest_free(struct digest *d); /* takes NULL, returns NULL */
void digest_begin(struct digest *d);	      /* anew */
void digest_add(struct digest *d, const void *bytes, size_t n);
void digest_end(const struct digest *d, char ret_hex[DIGEST_SIZE]);

/* Of what is left of an open file, from where it stands to its end. `stopped` (may be NULL) is asked now and then: ECANCELED. */
int digest_rest(int fd, bool (*stopped)(void *ctx), void *ctx, char ret_hex[DIGEST_SIZE], struct err *err);

/* Does this error (errno) of reading a file say something about us, not about the file? */
bool digest_error_is_transient(int code);

/* Of whole files, read side by side in pieces of 8 MiB: the digest of the pieces' digests, in order, each as its 16 bytes with
 * the highest first. ret_hex[i] of a file that cannot be read is "", ret_code[i] says why (errno; 0: it could). threads 0: those
 * that this process may use. */
int digest_files(const char *const *paths, size_t n, int threads, char (*ret_hex)[DIGEST_SIZE], int *ret_code, struct err *err);

#endif
