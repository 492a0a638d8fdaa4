/* case_views.c - from the files' stored values to line integrals, all views of a case.
 *
 * Two slots and two threads: while one view is prepared (binned, logarithm; threaded inside), the next one is read from disk and
 * turned. One thread does all reading, because the views of a multi-frame object share a file.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "node/case_views.h"

struct slot {
	uint16_t *raw;
	struct prep prep;
	bool full;
};

struct reader {
	struct exam *exam;
	struct slot slots[2];
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool stop; /* set by the preparing side: no more views are wanted */
	int rc;	   /* of the reading side, once it failed */
	struct err err;
	double seconds;
};

static double seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Wait until slot is (not) full; false: the other side gave up. */
static bool wait_slot(struct reader *r, const struct slot *s, bool full)
{
	bool ok;

	pthread_mutex_lock(&r->lock);
	while (s->full != full && !r->stop && r->rc >= 0)
		pthread_cond_wait(&r->changed, &r->lock);
	ok = s->full == full && !r->stop;
	pthread_mutex_unlock(&r->lock);
	return ok;
}

static void set_slot(struct reader *r, struct slot *s, bool full)
{
	pthread_mutex_lock(&r->lock);
	s->full = full;
	pthread_cond_signal(&r->changed);
	pthread_mutex_unlock(&r->lock);
}

static void *read_views(void *arg)
{
	struct reader *r = arg;

	for (int i = 0; i < r->exam->n_views; i++) {
		struct slot *s = &r->slots[i % 2];
		struct err err = {0};
		double begun;
		int rc;

		if (!wait_slot(r, s, false))
			break;
		begun = seconds_now();
		rc = exam_read_view(r->exam, i, s->raw, &s->prep, &err);
		r->seconds += seconds_now() - begun;
		if (rc < 0) {
			pthread_mutex_lock(&r->lock);
			r->rc = rc;
			r->err = err;
			pthread_cond_signal(&r->changed);
			pthread_mutex_unlock(&r->lock);
			break;
		}
		set_slot(r, s, true);
	}
	return NULL;
}

static void stop_reader(struct reader *r)
{
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	pthread_cond_signal(&r->changed);
	pthread_mutex_unlock(&r->lock);
}

static int prepare_views(struct reader *r, const struct dbt_plan *plan, float *ret_line, float *ret_valid,
			 const struct monitor *monitor, struct case_views_report *report, struct err *err)
{
	size_t n = (size_t)plan->n_u * (size_t)plan->n_v;

	for (int i = 0; i < r->exam->n_views; i++) {
		struct slot *s = &r->slots[i % 2];
		struct prep_stats stats = {0};
		double begun;
		int rc;

		monitor_progress(monitor, "read", (double)i / r->exam->n_views);
		if (monitor_cancelled(monitor))
			return err_set(err, ECANCELED, "cancelled while reading");
		if (!wait_slot(r, s, true)) {
			if (err)
				*err = r->err;
			return r->rc;
		}
		begun = seconds_now();
		s->prep.bin = plan->bin;
		rc = prep_view(&s->prep, s->raw, ret_line + (size_t)i * n, ret_valid + (size_t)i * n, &stats, err);
		report->seconds_prepare += seconds_now() - begun;
		if (rc < 0)
			return rc;
		report->padded += stats.padded;
		report->saturated += stats.saturated;
		report->floored += stats.floored;
		report->clamped += stats.clamped;
		set_slot(r, s, false);
	}
	monitor_progress(monitor, "read", 1);
	return 0;
}

int case_read_views(struct exam *exam, const struct dbt_plan *plan, float *ret_line, float *ret_valid,
		    const struct monitor *monitor, struct case_views_report *ret_report, struct err *err)
{
	struct reader r = {.exam = exam, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
	size_t n = scan_view_size(exam->scan);
	struct case_views_report report = {0};
	pthread_t thread;
	int rc;

	if (plan->n_u != exam->scan->n_u / plan->bin || plan->n_v != exam->scan->n_v / plan->bin ||
	    plan->n_views != exam->n_views)
		return err_set(err, EINVAL, "the plan has %d views of %d x %d bins, the case %d of %d x %d by %d", plan->n_views,
			       plan->n_u, plan->n_v, exam->n_views, exam->scan->n_u, exam->scan->n_v, plan->bin);
	r.slots[0].raw = malloc(n * sizeof(uint16_t));
	r.slots[1].raw = malloc(n * sizeof(uint16_t));
	if (!r.slots[0].raw || !r.slots[1].raw) {
		rc = err_set(err, ENOMEM, "no memory for two projections of %zu pixels", n);
		goto out;
	}
	rc = pthread_create(&thread, NULL, read_views, &r);
	if (rc) {
		rc = err_set(err, rc, "cannot start a thread to read with");
		goto out;
	}
	rc = prepare_views(&r, plan, ret_line, ret_valid, monitor, &report, err);
	stop_reader(&r);
	pthread_join(thread, NULL);
	report.seconds_read = r.seconds;
	if (rc >= 0)
		*ret_report = report;
out:
	free(r.slots[0].raw);
	free(r.slots[1].raw);
	return rc;
}
