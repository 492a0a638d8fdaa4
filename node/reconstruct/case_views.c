/* SPDX-License-Identifier: Apache-2.0 */
/* case_views.c - convert the stored values of all views of a case to line integrals in the session.
 *
 * - The views are read twice: I0 of a view without air depends on the other views, so the air of all views is measured first.
 * - Each reader, a thread, does all steps of one view after the other: read and orient, I0, bin and logarithm, mark air, pass to
 * the session. The data of a view are in one core's caches most of the time, and the frames of one file are also read in
 * parallel.
 * - Outside the session, memory is needed only for the stored values of one view per reader.
 * - The caller's thread waits, reports progress and checks for cancellation: callbacks are called only from it.
 * - A view that was begun is always ended, also after an error, so that no reader waits for its buffer forever.
 */
#include "node/reconstruct/case_views.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/clock.h"
#include "recon/core/threads.h"
#include "recon/dbt/breast_mask.h"

#define READERS_MAX 8	/* four prepare while four read */
#define PREPARING 4	/* a session has buffers for about this number of views at a time */
#define LOOK_EVERY 0.05 /* interval of checks of the monitor, s */

struct reading {
	const struct exam *exam;
	const struct dbt_plan *plan;
	struct dbt_session *session;
	struct view_air *air; /* first pass: of each view; NULL: second pass */
	struct scan merged;   /* for the mask: numbers and pitch of the merged bins */
	bool mask;
	int threads_each;
	pthread_mutex_t lock; /* protects all members below */
	pthread_cond_t changed;
	int next, done; /* next view to read, and number of finished views */
	int running;	/* number of running readers */
	bool stop;
	int rc; /* error of the first reader that failed */
	struct err err;
	struct case_views_report report;
};

/* Compute line integrals and mask of one view in the session's buffer. */
static int prepare(const struct reading *r, const struct prep *prep, const uint16_t *raw, float *line, float *valid,
		   struct case_views_report *report, struct err *err)
{
	struct breast_mask_report mask;
	struct prep_stats stats;
	int rc = prep_view(prep, raw, line, valid, &stats, err);

	if (rc < 0)
		return rc;
	report->padded += stats.padded;
	report->saturated += stats.saturated;
	report->over_range += stats.over_range;
	report->floored += stats.floored;
	report->clamped += stats.clamped;
	if (!r->mask)
		return 0;
	rc = breast_mask_view(&r->merged, BREAST_MASK_MARGIN, line, valid, &mask, err);
	if (rc < 0)
		return rc;
	report->air += mask.marked;
	report->unmasked += mask.verdict != BREAST_MASK_MARKED;
	return 0;
}

static int measure_one(const struct reading *r, int view, uint16_t *raw, struct case_views_report *report, struct err *err)
{
	double begun = clock_seconds();
	int rc = exam_measure_view(r->exam, view, raw, &r->air[view], err);

	report->seconds_read += clock_seconds() - begun;
	return rc;
}

static int read_one(const struct reading *r, int view, uint16_t *raw, struct case_views_report *report, struct err *err)
{
	size_t bins = (size_t)r->plan->n_u * (size_t)r->plan->n_v;
	float *line, *valid;
	struct prep prep;
	double at[5];
	int rc, ended;

	at[0] = clock_seconds();
	rc = exam_read_view(r->exam, view, raw, &prep, err);
	if (rc < 0)
		return rc;
	at[1] = clock_seconds();
	rc = dbt_view_begin(r->session, view, &line, &valid, err);
	if (rc < 0)
		return rc;
	at[2] = clock_seconds();
	prep.bin = r->plan->bin;
	rc = prepare(r, &prep, raw, line, valid, report, err);
	if (rc < 0) {
		memset(line, 0, bins * sizeof(*line));
		memset(valid, 0, bins * sizeof(*valid));
	}
	at[3] = clock_seconds();
	ended = dbt_view_end(r->session, view, rc < 0 ? NULL : err);
	at[4] = clock_seconds();
	report->seconds_read += at[1] - at[0];
	report->seconds_prepare += at[3] - at[2];
	report->seconds_upload += at[2] - at[1] + at[4] - at[3];
	return rc < 0 ? rc : ended;
}

/* Return the next view to read; -1: none left, or reading was stopped. */
static int next_view(struct reading *r, int finished)
{
	int view;

	pthread_mutex_lock(&r->lock);
	r->done += finished;
	view = r->stop || r->next == r->exam->n_views ? -1 : r->next++;
	pthread_cond_signal(&r->changed);
	pthread_mutex_unlock(&r->lock);
	return view;
}

static void leave(struct reading *r, const struct case_views_report *part, int rc, const struct err *err)
{
	pthread_mutex_lock(&r->lock);
	r->report.seconds_read += part->seconds_read;
	r->report.seconds_prepare += part->seconds_prepare;
	r->report.seconds_upload += part->seconds_upload;
	r->report.padded += part->padded;
	r->report.saturated += part->saturated;
	r->report.over_range += part->over_range;
	r->report.floored += part->floored;
	r->report.clamped += part->clamped;
	r->report.air += part->air;
	r->report.unmasked += part->unmasked;
	if (rc < 0 && r->rc == 0) {
		r->rc = rc;
		r->err = *err;
	}
	if (rc < 0)
		r->stop = true;
	r->running--;
	pthread_cond_signal(&r->changed);
	pthread_mutex_unlock(&r->lock);
}

static void *reader(void *arg)
{
	struct reading *r = arg;
	size_t n = scan_view_size(r->exam->scan);
	struct case_views_report part = {0};
	struct err err = {0};
	uint16_t *raw = malloc(n * sizeof(*raw));
	int rc = raw ? 0 : err_set(&err, ENOMEM, "no memory for a projection of %zu pixels", n);

	threads_limit(r->threads_each);
	for (int view = rc < 0 ? -1 : next_view(r, 0); view >= 0; view = next_view(r, 1)) {
		rc = r->air ? measure_one(r, view, raw, &part, &err) : read_one(r, view, raw, &part, &err);
		if (rc < 0)
			break;
	}
	free(raw);
	leave(r, &part, rc, &err);
	return NULL;
}

/* Wait until all readers have ended. Returns true if the caller cancelled. */
static bool watch(struct reading *r, const struct monitor *monitor)
{
	bool cancelled = false;

	pthread_mutex_lock(&r->lock);
	while (r->running > 0) {
		double fraction = ((r->air ? 0 : 1) + (double)r->done / r->exam->n_views) / 2;
		struct timespec until;

		pthread_mutex_unlock(&r->lock);
		monitor_progress(monitor, "read", fraction);
		cancelled = cancelled || monitor_cancelled(monitor);
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += (long)(LOOK_EVERY * 1e9);
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_mutex_lock(&r->lock);
		r->stop = r->stop || cancelled;
		if (r->running > 0)
			pthread_cond_timedwait(&r->changed, &r->lock, &until);
	}
	pthread_mutex_unlock(&r->lock);
	return cancelled;
}

/* Return the number of readers. It is reduced if fewer need as many rounds: 25 views take four rounds with eight readers and with
 * seven.
 */
static int count_readers(int n_views, int threads)
{
	int most = threads < 1 ? 1 : threads > READERS_MAX ? READERS_MAX : threads;
	int rounds = (n_views + most - 1) / most;

	return (n_views + rounds - 1) / rounds;
}

static int read_all(struct reading *r, int threads, const struct monitor *monitor, struct err *err)
{
	int wanted = count_readers(r->exam->n_views, threads), started = 0, rc = 0;
	pthread_t readers[READERS_MAX];
	bool cancelled;

	r->threads_each = wanted < PREPARING ? threads / wanted : threads / PREPARING;
	r->running = wanted;
	while (started < wanted && (rc = pthread_create(&readers[started], NULL, reader, r)) == 0)
		started++;
	pthread_mutex_lock(&r->lock);
	r->running -= wanted - started; /* the started readers read all views */
	pthread_mutex_unlock(&r->lock);
	if (started == 0)
		return err_set(err, rc, "cannot start a thread to read projections");
	cancelled = watch(r, monitor);
	for (int i = 0; i < started; i++)
		pthread_join(readers[i], NULL);
	r->report.seconds_read /= started;
	r->report.seconds_prepare /= started;
	r->report.seconds_upload /= started;
	if (r->rc < 0) {
		if (err)
			*err = r->err;
		return r->rc;
	}
	return cancelled ? err_set(err, ECANCELED, "cancelled while reading") : 0;
}

/* Make one pass over the views with a lock that measures time like clock_seconds(). */
static int make_pass(struct reading *r, int threads, const struct monitor *monitor, struct err *err)
{
	pthread_condattr_t attributes;
	int rc;

	monitor_progress(monitor, "read", r->air ? 0 : 0.5);
	if (monitor_cancelled(monitor))
		return err_set(err, ECANCELED, "cancelled before reading");
	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&r->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	rc = read_all(r, threads, monitor, err);
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->lock);
	return rc;
}

int case_measure_views(struct exam *exam, int threads, const struct monitor *monitor, double *ret_seconds, struct err *err)
{
	struct reading r = {.exam = exam, .air = calloc((size_t)exam->n_views, sizeof(*r.air))};
	int rc = r.air ? 0 : err_set(err, ENOMEM, "no memory for the air of %d views", exam->n_views);

	if (rc == 0 && !exam->prep.is_log)
		rc = make_pass(&r, threads, monitor, err);
	if (rc == 0 && !exam->prep.is_log)
		rc = exam_decide_i0(exam, r.air, err);
	if (rc == 0)
		*ret_seconds = r.report.seconds_read;
	free(r.air);
	return rc;
}

int case_read_views(const struct exam *exam, const struct dbt_protocol *protocol, const struct dbt_plan *plan,
		    struct dbt_session *session, int threads, const struct monitor *monitor, struct case_views_report *ret_report,
		    struct err *err)
{
	struct reading r = {.exam = exam, .plan = plan, .session = session, .merged = *exam->scan, .mask = protocol->breast_mask};
	int rc;

	if (plan->n_u != exam->scan->n_u / plan->bin || plan->n_v != exam->scan->n_v / plan->bin ||
	    plan->n_views != exam->n_views)
		return err_set(
			err, EINVAL,
			"the plan has %d views of %d x %d bins, but the case has %d views of %d x %d bins before binning by %d",
			plan->n_views, plan->n_u, plan->n_v, exam->n_views, exam->scan->n_u, exam->scan->n_v, plan->bin);
	r.merged.n_u = plan->n_u;
	r.merged.n_v = plan->n_v;
	r.merged.h[0] *= plan->bin;
	r.merged.h[1] *= plan->bin;
	rc = make_pass(&r, threads, monitor, err);
	if (rc < 0)
		return rc;
	monitor_progress(monitor, "read", 1);
	*ret_report = r.report;
	return 0;
}
