/* result_pixels.c - attenuations to stored values: stored = round(mu / RESULT_SCALE), limited to 0..RESULT_TOP.
 *
 * The volume is read twice, both times at memory speed: once for what the header must say (clipped voxels, display window), once
 * slice by slice, while a second thread writes the slice before. A volume at detector resolution is 2.4 GB of floats. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "node/result_parts.h"

#define THREADS_MAX 16
#define BINS (RESULT_TOP + 1)

struct count_job {
	const float *values;
	size_t n, stride; /* every stride-th voxel goes to the histogram */
	size_t clipped, not_numbers;
	uint64_t *bins;
	pthread_t thread;
	bool started;
};

/* !(x > 0) is below zero or no number: 0. */
static inline uint16_t stored_value(float mu)
{
	float steps = mu * (float)(1 / RESULT_SCALE) + 0.5f;

	if (!(steps > 0))
		return 0;
	return steps < RESULT_TOP ? (uint16_t)steps : RESULT_TOP;
}

static void *count(void *arg)
{
	struct count_job *job = arg;
	const float top = (float)((RESULT_TOP + 0.5) * RESULT_SCALE);
	size_t clipped = 0, bad = 0;

	for (size_t i = 0; i < job->n; i++) {
		float v = job->values[i];

		clipped += v > top;
		bad += !(v <= 3e38f && v >= -3e38f);
	}
	for (size_t i = 0; i < job->n; i += job->stride)
		job->bins[stored_value(job->values[i])]++;
	job->clipped = clipped;
	job->not_numbers = bad;
	return NULL;
}

/* The stored value below which this part of `bins` from `first` on lies. */
static double quantile(const uint64_t *bins, size_t first, double part)
{
	uint64_t all = 0, below = 0;
	size_t i;

	for (i = first; i < BINS; i++)
		all += bins[i];
	for (i = first; i < BINS - 1 && (double)(below + bins[i]) < part * (double)all; i++)
		below += bins[i];
	return (double)i;
}

/* Tissue: above a quarter of what most of the volume that is not air reaches. */
static void display_window(const uint64_t *bins, struct volume_summary *s)
{
	size_t tissue = (size_t)(quantile(bins, 1, 0.9) / 4) + 1;

	s->window_lo = quantile(bins, tissue, 0.02);
	s->window_hi = quantile(bins, tissue, 0.998);
	if (s->window_hi - s->window_lo < 100) { /* 0.001/mm: flat phantoms */
		s->window_lo = s->window_lo > 50 ? s->window_lo - 50 : 0;
		s->window_hi = s->window_lo + 100;
	}
}

int volume_summarise(const float *volume, const struct grid *grid, struct volume_summary *ret_summary, struct err *err)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	int n_threads = processors < 1 ? 1 : processors > THREADS_MAX ? THREADS_MAX : (int)processors;
	struct count_job jobs[THREADS_MAX] = {0};
	size_t n = grid_size(grid), bad = 0;
	uint64_t *bins = calloc((size_t)n_threads * BINS, sizeof(*bins));

	if (!bins)
		return err_set(err, ENOMEM, "no memory for a histogram");
	for (int t = 0; t < n_threads; t++) {
		size_t from = n / (size_t)n_threads * (size_t)t,
		       to = t == n_threads - 1 ? n : n / (size_t)n_threads * (size_t)(t + 1);

		jobs[t] = (struct count_job){
			.values = volume + from, .n = to - from, .stride = 1 + n / 4000000, .bins = bins + (size_t)t * BINS};
		jobs[t].started = t > 0 && !pthread_create(&jobs[t].thread, NULL, count, &jobs[t]);
	}
	*ret_summary = (struct volume_summary){0};
	for (int t = 0; t < n_threads; t++) {
		if (jobs[t].started)
			pthread_join(jobs[t].thread, NULL);
		else
			count(&jobs[t]);
		for (size_t i = 0; t > 0 && i < BINS; i++)
			bins[i] += jobs[t].bins[i];
		ret_summary->clipped += jobs[t].clipped;
		bad += jobs[t].not_numbers;
	}
	display_window(bins, ret_summary);
	free(bins);
	return bad ? err_set(err, EIO, "%zu of %zu voxels are no numbers", bad, n) : 0;
}

void slice_store(const struct exam *exam, const struct grid *grid, const float *slice, uint16_t *ret_values)
{
	size_t columns = (size_t)grid->n[0], rows = (size_t)grid->n[1];

	for (size_t i = 0; i < rows; i++) {
		const float *from = slice + (exam->rows_toward_minus_y ? rows - 1 - i : i) * columns;
		uint16_t *to = ret_values + i * columns;

		if (exam->columns_toward_chest)
			for (size_t j = 0; j < columns; j++)
				to[j] = stored_value(from[columns - 1 - j]);
		else
			for (size_t j = 0; j < columns; j++)
				to[j] = stored_value(from[j]);
	}
}

struct write_job {
	struct dicom_writer *writer;
	const uint16_t *values;
	struct err err;
	int rc;
};

static void *write_frame(void *arg)
{
	struct write_job *job = arg;

	job->rc = dicom_writer_frame(job->writer, job->values, &job->err);
	return NULL;
}

int volume_store(const struct exam *exam, const struct grid *grid, const float *volume, struct dicom_writer *writer,
		 struct err *err)
{
	size_t n = (size_t)grid->n[0] * (size_t)grid->n[1];
	uint16_t *frames[2] = {malloc(n * sizeof(uint16_t)), malloc(n * sizeof(uint16_t))};
	struct write_job job = {.writer = writer};
	pthread_t thread;
	int rc = 0;

	if (!frames[0] || !frames[1]) {
		rc = err_set(err, ENOMEM, "no memory for two frames of %zu pixels", n);
		goto out;
	}
	slice_store(exam, grid, volume, frames[0]);
	for (int k = 0; k < grid->n[2] && !rc; k++) {
		bool started;

		job.values = frames[k % 2];
		started = !pthread_create(&thread, NULL, write_frame, &job);
		if (!started)
			write_frame(&job);
		if (k + 1 < grid->n[2])
			slice_store(exam, grid, volume + (size_t)(k + 1) * n, frames[(k + 1) % 2]);
		if (started)
			pthread_join(thread, NULL);
		rc = job.rc;
	}
	if (rc < 0 && err)
		*err = job.err;
out:
	free(frames[0]);
	free(frames[1]);
	return rc;
}
