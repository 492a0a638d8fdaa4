/* SPDX-License-Identifier: Apache-2.0 */
/* A SHA-256 that a thread computes while its caller reads the next bytes, or writes these. */
#ifndef TOMONODE_NODE_SINOGRAM_HASH_THREAD_H
#define TOMONODE_NODE_SINOGRAM_HASH_THREAD_H

#include <stddef.h>

struct hash_thread;

struct hash_thread *hash_thread_create(void);		     /* NULL: no memory */
struct hash_thread *hash_thread_free(struct hash_thread *h); /* takes NULL, returns NULL */

/* Hash bytes behind all others. They must not change before hash_thread_leave(). */
void hash_thread_add(struct hash_thread *h, const void *bytes, size_t n);
/* Return when these bytes may change. */
void hash_thread_leave(struct hash_thread *h, const void *bytes, size_t n);
/* End the hash, once. */
void hash_thread_hex(struct hash_thread *h, char ret_hex[65]);

#endif
