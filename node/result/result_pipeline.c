/* SPDX-License-Identifier: Apache-2.0 */
/* result_pipeline.c - one pass over the slices: read, convert, submit to the files, and compute slabs and synthetic view.
 *
 * - If only slices are written, the session's device converts them, and each is read into the frame that is written while the
 * next one is read.
 * - Slabs and synthetic view need floats: one thread reads the next slice from the session while all others convert the current
 * one and the writer (result_frames.c) writes earlier ones: the slowest of the three limits the speed. Two slices of floats are
 * in memory at a time.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "kernels/clock.h"
#include "node/result/result_internal.h"

#define READ_AHEAD 2

struct reader {
	struct dbt_session *session;
	int n; /* number of slices */
	float *slices[READ_AHEAD];
	int read, used; /* slices read, and slices no longer needed: used <= read <= used + READ_AHEAD */
	bool stop;
	int rc;
	struct err err;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
};

/* ---- reading ---- */

static void *read_slices(void *arg)
{
	struct reader *r = arg;

	pthread_mutex_lock(&r->lock);
	while (r->read < r->n && !r->stop && r->rc >= 0) {
		struct err err = {0};
		int k = r->read, rc;

		if (k == r->used + READ_AHEAD) {
			pthread_cond_wait(&r->changed, &r->lock);
			continue;
		}
		pthread_mutex_unlock(&r->lock);
		rc = dbt_read_slices(r->session, k, 1, r->slices[k % READ_AHEAD], &err);
		pthread_mutex_lock(&r->lock);
		if (rc < 0) {
			r->rc = rc;
			r->err = err;
		} else {
			r->read++;
		}
		pthread_cond_signal(&r->changed);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

static int reader_start(struct reader *r, const struct result_pipeline *f, struct err *err)
{
	const struct grid *g = &f->info->plan->grid;
	size_t slice = (size_t)g->n[0] * (size_t)g->n[1];
	bool memory = true;

	*r = (struct reader){.session = f->session, .n = g->n[2]};
	for (int i = 0; i < READ_AHEAD; i++) {
		r->slices[i] = malloc(slice * sizeof(float));
		memory = memory && r->slices[i];
	}
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->changed, NULL);
	if (!memory || pthread_create(&r->thread, NULL, read_slices, r)) {
		r->n = 0; /* no thread to join */
		return memory ? err_set(err, EAGAIN, "cannot start a thread to read slices")
			      : err_set(err, ENOMEM, "no memory for %d slices of %zu voxels", READ_AHEAD, slice);
	}
	return 0;
}

static void reader_end(struct reader *r)
{
	if (r->n > 0) {
		pthread_mutex_lock(&r->lock);
		r->stop = true;
		pthread_cond_signal(&r->changed);
		pthread_mutex_unlock(&r->lock);
		pthread_join(r->thread, NULL);
	}
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->lock);
	for (int i = 0; i < READ_AHEAD; i++)
		free(r->slices[i]);
}

/* Wait for slice k and return it. NULL: it could not be read. */
static const float *reader_wait(struct reader *r, int k, double *waited)
{
	double begun = clock_seconds();
	const float *slice = NULL;

	pthread_mutex_lock(&r->lock);
	while (r->read <= k && r->rc >= 0)
		pthread_cond_wait(&r->changed, &r->lock);
	if (r->read > k)
		slice = r->slices[k % READ_AHEAD];
	pthread_mutex_unlock(&r->lock);
	*waited += clock_seconds() - begun;
	return slice;
}

static void reader_release(struct reader *r)
{
	pthread_mutex_lock(&r->lock);
	r->used++;
	pthread_cond_signal(&r->changed);
	pthread_mutex_unlock(&r->lock);
}

/* ---- one slice ---- */

/* Convert a plane and submit it. false: an earlier frame could not be written. */
static bool submit_plane(struct result_pipeline *f, const float *plane, struct dicom_writer *writer)
{
	uint16_t *values = frames_acquire(f->frames);

	if (!values)
		return false;
	result_store(f, plane, &f->scale, values);
	frames_submit(f->frames, writer);
	return true;
}

/* Convert one slice, submit it, and add it to slabs and synthetic view. Returns 1; 0: an earlier frame could not be written, see
 * frames_finish(); negative: another error. */
static int use_slice(struct result_pipeline *f, const float *slice, struct err *err)
{
	int rc = 0;

	if (!submit_plane(f, slice, f->writer[RESULT_SLICES]))
		return 0;
	for (int i = 0; rc == 0 && i < RESULT_OBJECTS_MAX; i++) {
		const float *slab = NULL;

		if (f->slabs[i])
			rc = slabs_add(f->slabs[i], slice, &slab, err);
		if (rc == 0 && slab && !submit_plane(f, slab, f->writer[i]))
			return 0;
	}
	if (rc == 0 && f->synthetic)
		rc = synthetic_add(f->synthetic, slice, err);
	return rc < 0 ? rc : 1;
}

/* ---- all slices ---- */

static int write_with_others(struct result_pipeline *f, struct err *err)
{
	struct reader reader;
	int rc, going = 1;

	rc = reader_start(&reader, f, err);
	for (int k = 0; rc == 0 && going > 0 && k < reader.n; k++) {
		const float *slice = reader_wait(&reader, k, &f->seconds_waited);

		if (!slice) {
			rc = reader.rc;
			if (err)
				*err = reader.err;
			break;
		}
		going = use_slice(f, slice, err);
		reader_release(&reader);
	}
	reader_end(&reader);
	return going < 0 ? going : rc;
}

static int write_slices_only(struct result_pipeline *f, struct err *err)
{
	struct stored_form form = result_form(f, &f->scale);
	int rc = 0;

	for (int k = 0; rc == 0 && k < f->info->plan->grid.n[2]; k++) {
		uint16_t *values = frames_acquire(f->frames);
		double begun = clock_seconds();

		if (!values)
			return 0; /* frames_finish() returns the error of an earlier frame */
		rc = dbt_read_stored(f->session, k, &form, values, err);
		f->seconds_waited += clock_seconds() - begun;
		if (rc == 0)
			frames_submit(f->frames, f->writer[RESULT_SLICES]);
	}
	return rc;
}

int result_pipeline_run(struct result_pipeline *f, struct err *err)
{
	bool others = f->synthetic;

	for (int i = 0; i < RESULT_OBJECTS_MAX; i++)
		others = others || f->slabs[i];
	return others ? write_with_others(f, err) : write_slices_only(f, err);
}
