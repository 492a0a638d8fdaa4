/* SPDX-License-Identifier: Apache-2.0 */
/* case_views.c - convert the stored values of all views of a case to line integrals in the session.
 *
 * - I0 of a view may depend on the air in other views. The first pass converts each view with the I0 that the view alone shows;
 * then I0 of all views is decided, and the second pass reads and converts again the views for which it differs.
 * - Each reader, a thread, does all steps of one view after the other: read and orient, I0, bin and logarithm, mark air, pass to
 * the session. The data of a view are in one core's caches most of the time, and the frames of one file are also read in
 * parallel.
 * - Outside the session, memory is needed only for the stored values of one view per reader, and for its flat field; and for
 * what is kept for another result. That one has the decided I0 from the exam, and makes one pass.
 * - The caller's thread waits, reports progress and checks for cancellation: callbacks are called only from it.
 * - A view that was begun is always ended, also after an error, so that no reader waits for its buffer forever.
 */
#include "node/reconstruct/case_views.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "kernels/clock.h"
#include "node/base/digest.h"
#include "node/base/folder.h"
#include "node/base/log.h"
#include "recon/core/threads.h"
#include "recon/dbt/breast_mask.h"
#include "recon/dbt/scatter.h"

#define READERS_MAX 8 /* four prepare while four read */
#define PREPARING 4   /* a session has buffers for about this number of views at a time */
#define HUGE_PAGE ((size_t)2 << 20)
#define LOOK_EVERY 0.05 /* interval of checks of the monitor, s */

/* What is known of one view. */
struct view_state {
	struct view_air air;		    /* linear values only */
	struct exam_i0 alone;		    /* I0 decided from this view alone */
	unsigned char digest[DIGEST_BYTES]; /* of its stored values */
	bool passed;			    /* the session has the view */
	struct prep_stats stats;
	size_t air_bins; /* marked by the mask */
	bool unmasked;
	struct scatter_report scatter;
};

struct times {
	double read, prepare, upload; /* s */
};

struct reading {
	const struct exam *exam;
	const struct dbt_plan *plan;
	struct dbt_session *session;
	struct case_views_kept *kept; /* may be NULL; each view is used by one reader at a time */
	bool have_raw;		      /* kept->raw is filled */
	struct scan merged;	      /* for the mask: numbers and pitch of the merged bins */
	bool mask, correct_scatter;
	struct scatter scatter;
	struct view_state *views; /* each is used by one reader at a time */
	int *order, n_order;	  /* the views to read in this pass */
	bool decided;		  /* second pass, or logarithmic values: I0 is not measured */
	bool second;
	int threads_each;
	pthread_mutex_t lock; /* protects all members below */
	pthread_cond_t changed;
	int next, done; /* number of views of this pass that were begun, and finished */
	int running;	/* number of running readers */
	bool stop;
	int rc; /* error of the first reader that failed */
	struct err err;
	struct times times; /* summed over the readers */
};

static int mask_air(const struct reading *r, const float *line, float *valid, struct view_state *state, struct err *err)
{
	struct breast_mask_report mask;
	int rc = breast_mask_view(&r->merged, BREAST_MASK_MARGIN, line, valid, &mask, err);

	if (rc < 0)
		return rc;
	state->air_bins = mask.marked;
	state->unmasked = mask.verdict != BREAST_MASK_MARKED;
	return 0;
}

/* Return whether I0 was measured in air, which shows scatter too. i0: NULL: of logarithmic values. */
static bool is_of_air(const struct exam_i0 *i0)
{
	return i0 && (i0->source == I0_OF_VIEW || i0->source == I0_OF_OTHERS);
}

static int correct_scatter(const struct reading *r, int view, bool of_air, float *line, const float *valid, struct err *err)
{
	struct scatter s = r->scatter;

	s.of_air = of_air;
	return scatter_correct_view(&s, r->exam->scan, view, r->plan->bin, line, valid, &r->views[view].scatter, err);
}

/* Compute line integrals and mask of one view in the session's buffer. */
static int prepare_view(const struct reading *r, int view, const struct exam_i0 *i0, const struct prep *prep, const uint16_t *raw,
			float *line, float *valid, struct err *err)
{
	struct view_state *state = &r->views[view];
	int rc = prep_view(prep, raw, line, valid, &state->stats, err);

	if (rc == 0 && r->mask)
		rc = mask_air(r, line, valid, state, err);
	if (rc == 0 && r->correct_scatter)
		rc = correct_scatter(r, view, is_of_air(i0), line, valid, err);
	return rc;
}

static bool is_usable(const struct exam_i0 *i0)
{
	return i0->i0 > 0 && isfinite(i0->i0);
}

/* Return where line integrals and validity of a view are kept; NULL: nowhere. */
static float *kept_line(const struct reading *r, int view)
{
	return r->kept && r->kept->made ? r->kept->made[view] : NULL;
}

/* Pass the line integrals of a view that are kept. */
static int pass_kept(struct reading *r, int view, struct times *times, struct err *err)
{
	size_t bins = (size_t)r->plan->n_u * (size_t)r->plan->n_v;
	double begun = clock_seconds();
	float *line, *valid;
	int rc = dbt_view_begin(r->session, view, &line, &valid, err);

	if (rc < 0)
		return rc;
	memcpy(line, kept_line(r, view), bins * sizeof(*line));
	memcpy(valid, kept_line(r, view) + bins, bins * sizeof(*valid));
	rc = dbt_view_end(r->session, view, err);
	times->upload += clock_seconds() - begun;
	return rc;
}

/* Convert a view with this I0 and pass it to the session. */
static int pass_view(struct reading *r, int view, const struct exam_i0 *i0, const uint16_t *raw, float **flat,
		     struct times *times, struct err *err)
{
	size_t bins = (size_t)r->plan->n_u * (size_t)r->plan->n_v;
	struct prep prep = exam_view_prep(r->exam, i0);
	float *line, *valid;
	double at[4];
	int rc = i0 && i0->use_flatfield ? exam_load_flatfield(r->exam, view, flat, &prep, err) : 0, ended;

	if (rc < 0)
		return rc;
	at[0] = clock_seconds();
	rc = dbt_view_begin(r->session, view, &line, &valid, err);
	if (rc < 0)
		return rc;
	at[1] = clock_seconds();
	prep.bin = r->plan->bin;
	rc = prepare_view(r, view, i0, &prep, raw, line, valid, err);
	if (rc < 0) {
		memset(line, 0, bins * sizeof(*line));
		memset(valid, 0, bins * sizeof(*valid));
	} else if (kept_line(r, view)) {
		memcpy(kept_line(r, view), line, bins * sizeof(*line));
		memcpy(kept_line(r, view) + bins, valid, bins * sizeof(*valid));
	}
	at[2] = clock_seconds();
	ended = dbt_view_end(r->session, view, rc < 0 ? NULL : err);
	at[3] = clock_seconds();
	times->prepare += at[2] - at[1];
	times->upload += at[1] - at[0] + at[3] - at[2];
	r->views[view].passed = rc == 0 && ended == 0;
	return rc < 0 ? rc : ended;
}

static int digest_view(const struct reading *r, const uint16_t *raw, unsigned char ret_hash[DIGEST_BYTES], struct err *err)
{
	struct digest *d = digest_create();

	if (!d)
		return err_set(err, ENOMEM, "no memory for a digest");
	digest_begin(d);
	digest_add(d, raw, scan_view_size(r->exam->scan) * sizeof(*raw));
	digest_end_bytes(d, ret_hash);
	digest_free(d);
	return 0;
}

/* buffer: for the stored values, if they are not kept. */
static int read_one(struct reading *r, int view, uint16_t *buffer, float **flat, struct times *times, struct err *err)
{
	const struct exam_i0 *i0 = r->decided && r->exam->i0 ? &r->exam->i0[view] : NULL;
	uint16_t *raw = buffer ? buffer : r->kept->raw[view];
	struct view_state *v = &r->views[view];
	double begun = clock_seconds();
	int rc = r->have_raw ? 0 : exam_read_view(r->exam, view, raw, err);

	if (rc == 0 && !r->second)
		rc = digest_view(r, raw, v->digest, err);
	if (rc == 0 && !r->decided) {
		rc = exam_measure_view(r->exam, view, raw, &v->air, &v->alone, err);
		i0 = &v->alone;
	}
	times->read += clock_seconds() - begun;
	if (rc < 0 || (i0 && !is_usable(i0)))
		return rc;
	return pass_view(r, view, i0, raw, flat, times, err);
}

/* Return the next view to read; -1: none left, or reading was stopped. */
static int next_view(struct reading *r, int finished)
{
	int view;

	pthread_mutex_lock(&r->lock);
	r->done += finished;
	view = r->stop || r->next == r->n_order ? -1 : r->order[r->next++];
	pthread_cond_signal(&r->changed);
	pthread_mutex_unlock(&r->lock);
	return view;
}

static void end_reader(struct reading *r, const struct times *times, int rc, const struct err *err)
{
	pthread_mutex_lock(&r->lock);
	r->times.read += times->read;
	r->times.prepare += times->prepare;
	r->times.upload += times->upload;
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

/* Allocate memory for the stored values of a view, in huge pages if there are any: a reader writes all of it at first, and a
 * fault for each small page would take as long as reading. */
static uint16_t *stored_values(size_t n)
{
	size_t bytes = (n * sizeof(uint16_t) + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
	uint16_t *raw;

	if (n * sizeof(uint16_t) < HUGE_PAGE)
		return malloc(n * sizeof(uint16_t));
	raw = aligned_alloc(HUGE_PAGE, bytes);
	if (raw)
		madvise(raw, bytes, MADV_HUGEPAGE);
	return raw;
}

static void *run_reader(void *arg)
{
	struct reading *r = arg;
	size_t n = scan_view_size(r->exam->scan);
	struct times times = {0};
	struct err err = {0};
	bool kept = r->kept && r->kept->raw;
	uint16_t *raw = kept ? NULL : stored_values(n);
	float *flat = NULL; /* of the view, if there is one for each */
	int rc = raw || kept ? 0 : err_set(&err, ENOMEM, "no memory for a projection of %zu pixels", n);

	threads_limit(r->threads_each);
	for (int view = rc < 0 ? -1 : next_view(r, 0); view >= 0; view = next_view(r, 1)) {
		rc = r->kept && r->kept->complete ? pass_kept(r, view, &times, &err)
						  : read_one(r, view, raw, &flat, &times, &err);
		if (rc < 0)
			break;
	}
	free(flat);
	free(raw);
	end_reader(r, &times, rc, &err);
	return NULL;
}

/* Wait until all readers have ended. Returns true if the caller cancelled. */
static bool watch_readers(struct reading *r, const struct monitor *monitor)
{
	bool cancelled = false;

	pthread_mutex_lock(&r->lock);
	while (r->running > 0) {
		double fraction = r->second ? 1 : (double)r->done / r->n_order;
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

static int read_all(struct reading *r, int threads, const struct monitor *monitor, struct case_views_report *report,
		    struct err *err)
{
	int wanted = count_readers(r->n_order, threads), started = 0, rc = 0;
	pthread_t readers[READERS_MAX];
	bool cancelled;

	r->threads_each = wanted < PREPARING ? threads / wanted : threads / PREPARING;
	r->running = wanted;
	while (started < wanted && (rc = pthread_create(&readers[started], NULL, run_reader, r)) == 0)
		started++;
	pthread_mutex_lock(&r->lock);
	r->running -= wanted - started; /* the started readers read all views */
	pthread_mutex_unlock(&r->lock);
	if (started == 0)
		return err_set(err, rc, "cannot start a thread to read projections");
	cancelled = watch_readers(r, monitor);
	for (int i = 0; i < started; i++)
		pthread_join(readers[i], NULL);
	report->seconds_read += r->times.read / started;
	report->seconds_prepare += r->times.prepare / started;
	report->seconds_upload += r->times.upload / started;
	if (r->rc < 0) {
		if (err)
			*err = r->err;
		return r->rc;
	}
	return cancelled ? err_set(err, ECANCELED, "cancelled while reading") : 0;
}

/* Make one pass over the views with a lock that measures time like clock_seconds(). */
static int make_pass(struct reading *r, int threads, const struct monitor *monitor, struct case_views_report *report,
		     struct err *err)
{
	pthread_condattr_t attributes;
	int rc;

	r->next = r->done = 0;
	r->times = (struct times){0};
	if (monitor_cancelled(monitor))
		return err_set(err, ECANCELED, "cancelled before reading");
	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&r->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	rc = read_all(r, threads, monitor, report, err);
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->lock);
	return rc;
}

/* Decide I0 of all views from what the first pass measured. */
static int decide_i0(struct reading *r, struct exam *exam, struct err *err)
{
	size_t n = (size_t)exam->n_views;
	struct view_air *air = malloc(n * sizeof(*air));
	int rc;

	if (!air)
		return err_set(err, ENOMEM, "no memory for the air of %zu views", n);
	for (size_t i = 0; i < n; i++)
		air[i] = r->views[i].air;
	rc = exam_decide_i0(exam, air, err);
	free(air);
	return rc;
}

static bool has_changed(const struct exam_i0 *a, const struct exam_i0 *b)
{
	return a->i0 != b->i0 || a->open.slope[0] != b->open.slope[0] || a->open.slope[1] != b->open.slope[1] ||
	       a->use_flatfield != b->use_flatfield || a->over_code != b->over_code || is_of_air(a) != is_of_air(b) ||
	       a->shadow.far != b->shadow.far || a->shadow.first != b->shadow.first || a->shadow.last != b->shadow.last;
}

/* Withdraw the views that were converted with another I0 than the decided one; they are the views of the second pass. */
static int withdraw_changed(struct reading *r, struct err *err)
{
	int rc = 0;

	r->n_order = 0;
	r->decided = r->second = true;
	r->have_raw = r->kept && r->kept->raw;
	for (int i = 0; rc == 0 && i < r->exam->n_views; i++) {
		struct view_state *v = &r->views[i];

		if (v->passed && !has_changed(&v->alone, &r->exam->i0[i]))
			continue;
		rc = v->passed ? dbt_view_withdraw(r->session, i, err) : 0;
		v->passed = false;
		r->order[r->n_order++] = i;
	}
	return rc;
}

/* Refuse two views with the same values: noise is never equal, so one image was sent twice, with two angles. */
static int check_twice(const struct reading *r, struct err *err)
{
	const struct exam *exam = r->exam;

	for (int i = 1; i < exam->n_views; i++)
		for (int k = 0; k < i; k++) {
			const struct exam_view *a = &exam->views[k], *b = &exam->views[i];

			if (memcmp(r->views[i].digest, r->views[k].digest, DIGEST_BYTES) == 0)
				return err_set(err, EBADMSG,
					       "%s, frame %ld, and %s, frame %ld, have the same pixels at %g and %g degrees: one "
					       "image twice",
					       file_name(exam->paths[a->file]), a->frame + 1, file_name(exam->paths[b->file]),
					       b->frame + 1, a->angle, b->angle);
		}
	return 0;
}

static int read_passes(struct reading *r, struct exam *exam, int threads, const struct monitor *monitor,
		       struct case_views_report *report, struct err *err)
{
	int rc;

	for (int i = 0; i < exam->n_views; i++)
		r->order[i] = i;
	r->n_order = exam->n_views;
	r->decided = exam->prep.is_log || exam->i0;
	monitor_progress(monitor, "read", 0);
	rc = make_pass(r, threads, monitor, report, err);
	if (rc == 0 && !(r->kept && r->kept->complete))
		rc = check_twice(r, err);
	if (rc < 0 || r->decided)
		return rc;
	rc = decide_i0(r, exam, err);
	if (rc == 0)
		rc = withdraw_changed(r, err);
	return rc == 0 && r->n_order > 0 ? make_pass(r, threads, monitor, report, err) : rc;
}

static void add_up(const struct reading *r, struct case_views_report *report)
{
	for (int i = 0; i < r->exam->n_views; i++) {
		const struct view_state *v = &r->views[i];

		report->padded += v->stats.padded;
		report->saturated += v->stats.saturated;
		report->over_range += v->stats.over_range;
		report->floored += v->stats.floored;
		report->clamped += v->stats.clamped;
		report->air += v->air_bins;
		report->unmasked += v->unmasked;
		report->scatter_mean += v->scatter.mean / r->exam->n_views;
		report->scatter_air += v->scatter.air / r->exam->n_views;
		report->scatter_least = i ? fmin(report->scatter_least, v->scatter.mean) : v->scatter.mean;
		report->scatter_most = fmax(report->scatter_most, v->scatter.mean);
	}
}

static void finish_report(const struct reading *r, struct case_views_report *report)
{
	struct case_views_kept *kept = r->kept;

	if (kept && kept->complete) {
		const struct case_views_report times = *report;

		*report = kept->report;
		report->seconds_read = times.seconds_read;
		report->seconds_prepare = times.seconds_prepare;
		report->seconds_upload = times.seconds_upload;
		return;
	}
	add_up(r, report);
	if (kept && kept->made) {
		kept->report = *report;
		kept->complete = true;
	}
}

int case_read_views(struct exam *exam, const struct dbt_protocol *protocol, const struct dbt_plan *plan,
		    struct dbt_session *session, int threads, const struct monitor *monitor, struct case_views_kept *kept,
		    struct case_views_report *ret_report, struct err *err)
{
	struct reading r = {
		.exam = exam,
		.plan = plan,
		.session = session,
		.kept = kept,
		.merged = *exam->scan,
		.mask = protocol->breast_mask,
		.correct_scatter = protocol->scatter,
		.scatter = {.thickness = exam->thickness, .gap = exam->support, .scale = exam->profile->scatter_scale}};
	size_t n = (size_t)exam->n_views;
	struct case_views_report report = {0};
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
	r.views = calloc(n, sizeof(*r.views));
	r.order = calloc(n, sizeof(*r.order));
	r.have_raw = kept && kept->raw;
	if (r.have_raw)
		log_event(LOG_DEBUG, "images-again", "views=%d from=%s", exam->n_views,
			  kept->complete ? "line-integrals" : "stored-values");
	case_views_kept_make_room(kept, scan_view_size(exam->scan), plan);
	rc = r.views && r.order ? read_passes(&r, exam, threads, monitor, &report, err)
				: err_set(err, ENOMEM, "no memory for %zu views", n);
	if (rc == 0) {
		monitor_progress(monitor, "read", 1);
		finish_report(&r, &report);
		*ret_report = report;
	}
	free(r.views);
	free(r.order);
	return rc;
}
