/* A pool of threads that shares one loop after the other: each call of thread_pool_run() splits its work into parts. */
#ifndef TOMONODE_NODE_THREAD_POOL_H
#define TOMONODE_NODE_THREAD_POOL_H

#include <stddef.h>

#include "kernels/err.h"

/* Threads that this process may use: OMP_NUM_THREADS where it is set (the node shares the cores out among its workers that way),
 * else one for each core that we may run on. */
int threads_available(void);

struct thread_pool;

/* threads 0: threads_available(), at most 16. Threads that the system does not give are done without. */
int thread_pool_create(int threads, struct thread_pool **ret_pool, struct err *err);
struct thread_pool *thread_pool_free(struct thread_pool *p); /* takes NULL, returns NULL */
int thread_pool_size(const struct thread_pool *p);	     /* threads, the caller's own included */

/* work(ctx, part) for part = 0 .. parts - 1, in any order, on all threads and the caller's; returns when all are done. From one
 * thread at a time. */
void thread_pool_run(struct thread_pool *p, size_t parts, void (*work)(void *ctx, size_t part), void *ctx);

#endif
