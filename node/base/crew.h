/* A crew of threads that shares one loop after the other: each call of crew_run() splits its work into parts. */
#ifndef TOMONODE_NODE_CREW_H
#define TOMONODE_NODE_CREW_H

#include <stddef.h>

#include "kernels/err.h"

/* Threads that this process may use: OMP_NUM_THREADS where it is set (the node shares the cores out among its workers that way),
 * else one for each core that we may run on. */
int threads_available(void);

struct crew;

/* threads 0: threads_available(), at most 16. Threads that the system does not give are done without. */
int crew_create(int threads, struct crew **ret_crew, struct err *err);
struct crew *crew_free(struct crew *c); /* takes NULL, returns NULL */
int crew_size(const struct crew *c);	/* threads, the caller's own included */

/* work(ctx, part) for part = 0 .. parts - 1, in any order, on all threads and the caller's; returns when all are done. From one
 * thread at a time. */
void crew_run(struct crew *c, size_t parts, void (*work)(void *ctx, size_t part), void *ctx);

#endif
