/* SPDX-License-Identifier: Apache-2.0 */
/* thread_pool.c - threads that execute the parts of a loop.
 *
 * - A thread locks the pool to get its next part. Parts are large (milliseconds), so that the cost of the lock does not matter.
 * - `next` is the next part to execute, `left` the number of unfinished parts: the loop is finished when left is 0.
 */
#include "node/base/thread_pool.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS_MAX 16 /* maximum number of threads in a pool */
#define CORES_MAX 1024

struct thread_pool {
	pthread_t threads[THREADS_MAX];
	int n; /* started threads, without the caller's */
	pthread_mutex_t lock;
	pthread_cond_t work_there, work_done;
	void (*work)(void *ctx, size_t part);
	void *ctx;
	size_t next, parts, left;
	bool stop;
};

/* Execute parts until none is left. The caller holds the lock; it is released while a part is executed. */
static void run_parts(struct thread_pool *p)
{
	while (p->next < p->parts) {
		size_t part = p->next++;

		pthread_mutex_unlock(&p->lock);
		p->work(p->ctx, part);
		pthread_mutex_lock(&p->lock);
		if (--p->left == 0)
			pthread_cond_signal(&p->work_done);
	}
}

static void *run_thread(void *arg)
{
	struct thread_pool *p = arg;

	pthread_mutex_lock(&p->lock);
	while (!p->stop) {
		run_parts(p);
		if (!p->stop)
			pthread_cond_wait(&p->work_there, &p->lock);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

int thread_pool_create(int threads, struct thread_pool **ret_pool, struct err *err)
{
	struct thread_pool *p = calloc(1, sizeof(*p));

	if (!p)
		return err_set(err, ENOMEM, "no memory for a pool of threads");
	if (threads <= 0)
		threads = threads_available() > THREADS_MAX ? THREADS_MAX : threads_available();
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->work_there, NULL);
	pthread_cond_init(&p->work_done, NULL);
	for (int i = 1; i < threads && i < THREADS_MAX; i++) { /* the caller's is one of them */
		if (pthread_create(&p->threads[p->n], NULL, run_thread, p))
			break;
		p->n++;
	}
	*ret_pool = p;
	return 0;
}

struct thread_pool *thread_pool_free(struct thread_pool *p)
{
	if (!p)
		return NULL;
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_broadcast(&p->work_there);
	pthread_mutex_unlock(&p->lock);
	for (int i = 0; i < p->n; i++)
		pthread_join(p->threads[i], NULL);
	pthread_cond_destroy(&p->work_done);
	pthread_cond_destroy(&p->work_there);
	pthread_mutex_destroy(&p->lock);
	free(p);
	return NULL;
}

int thread_pool_size(const struct thread_pool *p)
{
	return p->n + 1;
}

void thread_pool_run(struct thread_pool *p, size_t parts, void (*work)(void *ctx, size_t part), void *ctx)
{
	pthread_mutex_lock(&p->lock);
	p->work = work;
	p->ctx = ctx;
	p->next = 0;
	p->parts = p->left = parts;
	pthread_cond_broadcast(&p->work_there);
	run_parts(p);
	while (p->left > 0)
		pthread_cond_wait(&p->work_done, &p->lock);
	pthread_mutex_unlock(&p->lock);
}

int threads_available(void)
{
	const char *text = getenv("OMP_NUM_THREADS");
	char *end = NULL;
	long n = text ? strtol(text, &end, 10) : 0;
	cpu_set_t cores;

	if (n >= 1 && n <= CORES_MAX && !*end)
		return (int)n;
	if (sched_getaffinity(0, sizeof(cores), &cores) == 0 && CPU_COUNT(&cores) > 0)
		return CPU_COUNT(&cores);
	n = sysconf(_SC_NPROCESSORS_ONLN); /* the machine has more than CORES_MAX cores */
	return n < 1 ? 1 : n > CORES_MAX ? CORES_MAX : (int)n;
}
