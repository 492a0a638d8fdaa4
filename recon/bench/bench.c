/* SPDX-License-Identifier: Apache-2.0 */
/* bench.c - the table of works, the limits of a device, and running one work. */
#include "recon/bench/bench.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/clock.h"
#include "recon/bench/bench_data.h"
#include "recon/bench/bench_internal.h"

#define CEILING_RUNS 7
#define VOXELS_MAX 65535 /* largest number of voxels along an axis, and of views */

static const char check_em[] = "sum of A x over the bins of the last update = sum of their data";
static const char check_list[] = "<x, sum of a_e / (a_e x)> = number of events";
static const char check_scatter[] = "scatter fraction of the estimate = that of the data";
static const char check_radon[] = "sum of the line integrals = the phantom's analytic ones";
static const char check_bp[] = "image summed with a Gaussian weight = data summed with the weight's line integrals";
static const char check_joseph[] = "<x, A'A x> = sum of the squares of the phantom's analytic line integrals";
static const char check_image[] = "image summed with a Gaussian weight = phantom summed with it";

static const struct bench_work works[] = {
	{"dbt-osem", "an OSEM iteration of breast tomosynthesis, an update for each view, data on the device", check_em,
	 BENCH_DBT_OSEM, bench_dbt_open},
	{"dbt-mlem", "an ML-EM iteration of breast tomosynthesis, one update from all views, data on the device", check_em,
	 BENCH_DBT_MLEM, bench_dbt_open},
	{"pet-mlem", "an MLEM iteration of PET with Siddon's paths, sensitivity kept, data on the device", check_em,
	 BENCH_PET_MLEM, bench_pet_open},
	{"pet-tof", "the same with time of flight, for a scanner of today", check_em, BENCH_PET_TOF, bench_pet_open},
	{"pet-list", "an update of list-mode EM with time of flight, forward and back, sorted events on the device", check_list,
	 BENCH_PET_MLEM, bench_list_open},
	{"pet-scatter", "the scatter of PET data in three iterations of image, simulation and fit, the last with time of flight",
	 check_scatter, BENCH_PET_TOF, bench_scatter_open},
	{"radon", "the Radon transform of a picture with Siddon's paths, picture and sinogram on the device", check_radon,
	 BENCH_RADON, bench_parallel_open},
	{"bp", "the voxel-driven backprojection of a sinogram, both on the device", check_bp, BENCH_BP, bench_parallel_open},
	{"fbp-convolution", "FBP: convolution with Shepp and Logan's kernel and backprojection, both on the device", check_image,
	 BENCH_CONVOLUTION, bench_parallel_open},
	{"fbp-fourier", "FBP: the same filter by transforms on the device; if it has none: on the host's threads, then upload",
	 check_image, BENCH_FOURIER, bench_parallel_open},
	{"art", "a sweep of ART (Kaczmarz) over all rays with Siddon's paths, data on the device", check_image, BENCH_ART,
	 bench_parallel_open},
	{"radon-stack", "the Radon transform of a stack of pictures", check_radon, BENCH_RADON + BENCH_STACK,
	 bench_parallel_open},
	{"bp-stack", "the backprojection of a stack", check_bp, BENCH_BP + BENCH_STACK, bench_parallel_open},
	{"fbp-convolution-stack", "FBP by convolution of a stack", check_image, BENCH_CONVOLUTION + BENCH_STACK,
	 bench_parallel_open},
	{"fbp-fourier-stack", "FBP by transforms of a stack", check_image, BENCH_FOURIER + BENCH_STACK, bench_parallel_open},
	{"art-stack", "a sweep of ART over a stack", check_image, BENCH_ART + BENCH_STACK, bench_parallel_open},
	{"radon-2048", "the Radon transform of a picture of 2048 x 2048 (this and the next four are smaller with --quick)",
	 check_radon, BENCH_RADON + BENCH_LARGE, bench_parallel_open},
	{"radon-2048-stack", "the Radon transform of 16 such pictures", check_radon, BENCH_RADON + BENCH_LARGE + BENCH_STACK,
	 bench_parallel_open},
	{"bp-2048", "the backprojection of such a picture", check_bp, BENCH_BP + BENCH_LARGE, bench_parallel_open},
	{"art-2048", "a sweep of ART over such a picture", check_image, BENCH_ART + BENCH_LARGE, bench_parallel_open},
	{"joseph-512", "projection and its adjoint with Joseph's interpolation, 512 x 512 pixels from 360 angles", check_joseph,
	 BENCH_JOSEPH, bench_parallel_open},
};

const struct bench_work *bench_work_at(size_t i)
{
	return i < sizeof(works) / sizeof(works[0]) ? &works[i] : NULL;
}

const struct bench_work *bench_work_find(const char *name)
{
	const struct bench_work *w;

	for (size_t i = 0; (w = bench_work_at(i)); i++)
		if (!strcmp(w->name, name))
			return w;
	return NULL;
}

const char *bench_size_name(enum bench_size size)
{
	static const char *const names[BENCH_SIZES] = {"tiny", "quick", "normal", "full"};

	return (unsigned)size < BENCH_SIZES ? names[size] : NULL;
}

enum bench_size bench_size_find(const char *name)
{
	int size = 0;

	while (size < BENCH_SIZES && strcmp(name, bench_size_name((enum bench_size)size)) != 0)
		size++;
	return (enum bench_size)size;
}

struct copy {
	struct buf from, to;
};

static int copy_once(void *ctx, int i, struct err *err)
{
	struct copy *c = ctx;

	(void)i;
	return c->from.dev->ops->copy(&c->from, &c->to, err);
}

int bench_ceiling(struct device *dev, enum bench_size size, struct bench_ceiling *ret_ceiling, struct err *err)
{
	size_t n = (size_t)1 << (size == BENCH_TINY ? 18 : 26); /* 256 MiB: larger than the caches of processors and GPUs */
	struct bench_ceiling c = {0};
	struct bench_times times;
	struct copy copy = {0};
	int r = bench_fits(dev, 2 * n * sizeof(float), err);

	if (r == 0)
		r = bench_random_alloc(dev, n, 0, 1, 3, &copy.from, err);
	if (r == 0)
		r = dev->ops->alloc(dev, n, &copy.to, err);
	if (r == 0)
		r = bench_measure(dev, CEILING_RUNS, 1, copy_once, &copy, &times, err);
	if (r == 0)
		r = dev->ops->step_rate(dev, &c.steps, err);
	if (r == 0) {
		c.copy_bytes = 2 * (double)(n * sizeof(float)) / times.median;
		*ret_ceiling = c;
	}
	buf_release(&copy.from);
	buf_release(&copy.to);
	return r;
}

static int job_once(void *ctx, int i, struct err *err)
{
	struct bench_job *job = ctx;

	(void)i;
	return job->once(job, err);
}

static int job_stage(void *ctx, int i, struct err *err)
{
	struct bench_job *job = ctx;

	return job->stage(job, i, err);
}

static int measure_stages(struct bench_job *job, int repeat, struct bench_result *result, struct err *err)
{
	struct bench_times times[BENCH_STAGES_MAX];
	int r = bench_measure(job->dev, repeat, job->n_stages, job_stage, job, times, err);

	for (int i = 0; r == 0 && i < job->n_stages; i++) {
		result->stage[i].name = job->stages[i];
		result->stage[i].seconds = times[i];
	}
	result->n_stages = job->n_stages;
	return r;
}

static int check_result(struct bench_job *job, struct bench_result *result, struct err *err)
{
	double tolerance, gap;
	int r = job->check(job, &result->found, &result->expected, &tolerance, err);

	if (r < 0)
		return r;
	gap = fabs(result->found - result->expected);
	if (gap <= tolerance * fabs(result->expected))
		return 0;
	return err_set(err, EHWPOISON,
		       "%s on %s computes wrong numbers: %s is %.7g instead of %.7g; allowed relative difference: %g",
		       result->work->name, result->device, result->work->check, result->found, result->expected, tolerance);
}

static int check_setup(const struct bench_work *work, const struct bench_setup *s, int repeat, struct err *err)
{
	if (!bench_size_name(s->size) || repeat < 0 || repeat > BENCH_REPEAT_MAX)
		return err_set(err, EINVAL, "%s: size=%d, repeat=%d; allowed: sizes 0 to %d, repeat 0 to %d", work->name,
			       (int)s->size, repeat, BENCH_SIZES - 1, BENCH_REPEAT_MAX);
	for (int c = 0; c < 3; c++)
		if (s->voxels[c] < 0 || s->voxels[c] > VOXELS_MAX)
			return err_set(err, EINVAL, "%s: %d voxels along axis %d; allowed: 0 to %d", work->name, s->voxels[c], c,
				       VOXELS_MAX);
	if (s->views < 0 || s->views > VOXELS_MAX || s->tile[0] < 0 || s->tile[1] < 0 || !(s->fov_radius >= 0))
		return err_set(err, EINVAL, "%s: %d views, tiles of %d x %d, a field of view of %g mm", work->name, s->views,
			       s->tile[0], s->tile[1], s->fov_radius);
	return 0;
}

static void set_floor(struct bench_result *result, const struct bench_job *job)
{
	double memory = job->bytes / result->ceiling.copy_bytes, arithmetic = job->steps / result->ceiling.steps;

	memcpy(result->sizes, job->sizes, sizeof(result->sizes));
	result->steps = job->steps;
	result->bytes = job->bytes;
	result->floor_memory = memory >= arithmetic;
	result->floor = fmax(memory, arithmetic);
}

int bench_run(const struct bench_work *work, struct device *dev, const struct bench_setup *setup, int repeat,
	      const struct bench_ceiling *ceiling, struct bench_result *ret_result, struct err *err)
{
	struct bench_result result = {.work = work, .size = setup->size, .ceiling = *ceiling};
	struct bench_job job = {.dev = dev};
	double begun = clock_seconds();
	int r = check_setup(work, setup, repeat, err);

	if (r < 0)
		return r;
	snprintf(result.device, sizeof(result.device), "%s", dev->name);
	r = work->open(&job, work->kind, setup, err);
	if (r == 0 && setup->stages && !job.n_stages)
		r = err_set(err, EINVAL, "%s has no stages", work->name);
	if (r == 0)
		r = dev->ops->wait(dev, QUEUE_WORK, err);
	result.seconds_open = clock_seconds() - begun;
	result.seconds_session = job.seconds_session;
	if (r == 0)
		r = bench_measure(dev, repeat, 1, job_once, &job, &result.seconds, err);
	if (r == 0 && setup->stages)
		r = measure_stages(&job, repeat, &result, err);
	if (r == 0)
		r = check_result(&job, &result, err);
	if (r == 0) {
		set_floor(&result, &job);
		*ret_result = result;
	}
	if (job.close)
		job.close(&job);
	return r;
}

void bench_write(const struct bench_result *r, const struct bench_writer *w)
{
	char name[32];

	w->text(w->ctx, "work", r->work->name);
	w->text(w->ctx, "device", r->device);
	w->text(w->ctx, "size", bench_size_name(r->size));
	w->text(w->ctx, "sizes", r->sizes);
	w->number(w->ctx, "repeat", r->seconds.n);
	w->number(w->ctx, "seconds", r->seconds.median);
	w->number(w->ctx, "spread", r->seconds.spread);
	w->number(w->ctx, "least", r->seconds.least);
	w->number(w->ctx, "most", r->seconds.most);
	for (int i = 0; i < r->n_stages; i++) {
		snprintf(name, sizeof(name), "%s_seconds", r->stage[i].name);
		w->number(w->ctx, name, r->stage[i].seconds.median);
	}
	w->number(w->ctx, "open_seconds", r->seconds_open);
	if (r->seconds_session > 0)
		w->number(w->ctx, "session_seconds", r->seconds_session);
	w->number(w->ctx, "gsteps_per_s", 1e-9 * r->steps / r->seconds.median);
	w->number(w->ctx, "gb_per_s", 1e-9 * r->bytes / r->seconds.median);
	w->number(w->ctx, "floor_seconds", r->floor);
	w->number(w->ctx, "floor_share", r->floor / r->seconds.median);
	w->text(w->ctx, "floor_by", r->floor_memory ? "memory" : "arithmetic");
	w->number(w->ctx, "copy_gb_per_s", 1e-9 * r->ceiling.copy_bytes);
	w->number(w->ctx, "limit_gsteps_per_s", 1e-9 * r->ceiling.steps);
	w->number(w->ctx, "found", r->found);
	w->number(w->ctx, "expected", r->expected);
	w->text(w->ctx, "check", r->work->check);
	w->text(w->ctx, "what", r->work->what);
	w->text(w->ctx, "floor",
		"the larger of: least bytes to and from memory / copy rate; linear interpolations / their rate from the nearest "
		"memory; both rates measured on this device in this run");
}
