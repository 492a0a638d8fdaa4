/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of threads that execute the iterations of a loop in parallel. */
#ifndef TOMONODE_NODE_THREAD_POOL_H
#define TOMONODE_NODE_THREAD_POOL_H

#include <stddef.h>

#include "kernels/err.h"

/* Return the number of threads this process may use: OMP_NUM_THREADS if it is set (the node divides the cores among its workers
 * by it), otherwise the number of cores it may run on. */
int threads_available(void);

struct thread_pool;

/* Create a pool. threads: their number, at most 16; 0: threads_available(). If some threads cannot be started, the pool has
 * fewer.
 */
int thread_pool_create(int threads, struct thread_pool **ret_pool, struct err *err);
struct thread_pool *thread_pool_free(struct thread_pool *p); /* takes NULL, returns NULL */
int thread_pool_size(const struct thread_pool *p);	     /* number of threads, the caller's included */

/* Call work(ctx, part) for part = 0 .. parts - 1, in any order, on all threads and the caller's. Returns when all are done. Only
 * one thread at a time may call it. */
void thread_pool_run(struct thread_pool *p, size_t parts, void (*work)(void *ctx, size_t part), void *ctx);

#endif
