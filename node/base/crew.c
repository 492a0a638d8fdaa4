/* crew.c - threads that wait for parts of a loop.
 *
 * - A part is taken under the lock; parts are large (milliseconds), so the lock is never the price.
 * - `left` counts the parts that are not finished, `next` the next one to take: the loop is over at left = 0.
 */
#include "node/base/crew.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS_MAX 16 /* of a crew */
#define CORES_MAX 1024

struct crew {
	pthread_t threads[THREADS_MAX];
	int n; /* started; the caller is one more */
	pthread_mutex_t lock;
	pthread_cond_t work_there, work_done;
	void (*work)(void *ctx, size_t part);
	void *ctx;
	size_t next, parts, left;
	bool stop;
};

/* Under the lock: parts as long as there are any. */
static void take_parts(struct crew *c)
{
	while (c->next < c->parts) {
		size_t part = c->next++;

		pthread_mutex_unlock(&c->lock);
		c->work(c->ctx, part);
		pthread_mutex_lock(&c->lock);
		if (--c->left == 0)
			pthread_cond_signal(&c->work_done);
	}
}

static void *member(void *arg)
{
	struct crew *c = arg;

	pthread_mutex_lock(&c->lock);
	while (!c->stop) {
		take_parts(c);
		if (!c->stop)
			pthread_cond_wait(&c->work_there, &c->lock);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

int crew_create(int threads, struct crew **ret_crew, struct err *err)
{
	struct crew *c = calloc(1, sizeof(*c));

	if (!c)
		return err_set(err, ENOMEM, "no memory for a crew of threads");
	if (threads <= 0)
		threads = threads_available() > THREADS_MAX ? THREADS_MAX : threads_available();
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->work_there, NULL);
	pthread_cond_init(&c->work_done, NULL);
	for (int i = 1; i < threads && i <= THREADS_MAX; i++) {
		if (pthread_create(&c->threads[c->n], NULL, member, c))
			break;
		c->n++;
	}
	*ret_crew = c;
	return 0;
}

struct crew *crew_free(struct crew *c)
{
	if (!c)
		return NULL;
	pthread_mutex_lock(&c->lock);
	c->stop = true;
	pthread_cond_broadcast(&c->work_there);
	pthread_mutex_unlock(&c->lock);
	for (int i = 0; i < c->n; i++)
		pthread_join(c->threads[i], NULL);
	pthread_cond_destroy(&c->work_done);
	pthread_cond_destroy(&c->work_there);
	pthread_mutex_destroy(&c->lock);
	free(c);
	return NULL;
}

int crew_size(const struct crew *c)
{
	return c->n + 1;
}

void crew_run(struct crew *c, size_t parts, void (*work)(void *ctx, size_t part), void *ctx)
{
	pthread_mutex_lock(&c->lock);
	c->work = work;
	c->ctx = ctx;
	c->next = 0;
	c->parts = c->left = parts;
	pthread_cond_broadcast(&c->work_there);
	take_parts(c);
	while (c->left > 0)
		pthread_cond_wait(&c->work_done, &c->lock);
	pthread_mutex_unlock(&c->lock);
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
	n = sysconf(_SC_NPROCESSORS_ONLN); /* more than 1024 of them */
	return n < 1 ? 1 : n > CORES_MAX ? CORES_MAX : (int)n;
}
