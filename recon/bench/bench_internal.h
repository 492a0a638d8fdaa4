/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the benchmark: a work that has been opened, and the measurement of its time. */
#ifndef TOMONODE_RECON_BENCH_INTERNAL_H
#define TOMONODE_RECON_BENCH_INTERNAL_H

#include "recon/bench/bench.h"

struct bench_job {
	struct device *dev;
	void *state;					     /* private to the work */
	int (*once)(struct bench_job *job, struct err *err); /* queue a run and return; the caller waits until it is complete */
	/* The same run divided into stages, if the work has stages: stage() queues stage i. */
	int n_stages;
	const char *const *stages; /* names of the stages */
	int (*stage)(struct bench_job *job, int i, struct err *err);
	/* After the last run: return the sum of its result, the expected sum, and the largest relative difference allowed. */
	int (*check)(struct bench_job *job, double *ret_found, double *ret_expected, double *ret_tolerance, struct err *err);
	void (*close)(struct bench_job *job);
	double steps, bytes;
	double seconds_session; /* as in struct bench_result */
	char sizes[160];
};

/* Measure the time of each of n_steps steps (at most BENCH_STAGES_MAX): after a warm-up, call step(ctx, 0), step(ctx, 1) ...
 * `repeat` times, and wait for the device after each call. repeat: as in bench_run(). ret_times: n_steps elements. */
int bench_measure(struct device *dev, int repeat, int n_steps, int (*step)(void *ctx, int i, struct err *err), void *ctx,
		  struct bench_times *ret_times, struct err *err);
void bench_median(double *seconds, int n, struct bench_times *ret_times); /* sorts `seconds`; n >= 1 */

/* Return ENOMEM if the device has less memory than `bytes`. */
int bench_fits(const struct device *dev, size_t bytes, struct err *err);

static inline int bench_or(int given, int usual)
{
	return given ? given : usual;
}

enum bench_dbt_kind { BENCH_DBT_OSEM = 1, BENCH_DBT_MLEM };
enum bench_pet_kind { BENCH_PET_MLEM = 1, BENCH_PET_TOF };
enum bench_parallel_kind {
	BENCH_RADON = 1,
	BENCH_BP,
	BENCH_CONVOLUTION,
	BENCH_FOURIER,
	BENCH_ART,
	BENCH_JOSEPH,
	/* Added to a kind above: a stack of slices; pictures of 2048 x 2048 */
	BENCH_STACK = 16,
	BENCH_LARGE = 32
};
int bench_dbt_open(struct bench_job *job, int kind, const struct bench_setup *setup, struct err *err);
int bench_pet_open(struct bench_job *job, int kind, const struct bench_setup *setup, struct err *err);
int bench_scatter_open(struct bench_job *job, int kind, const struct bench_setup *setup, struct err *err);
int bench_list_open(struct bench_job *job, int kind, const struct bench_setup *setup, struct err *err);
int bench_parallel_open(struct bench_job *job, int kind, const struct bench_setup *setup, struct err *err);

#endif
